"""Ours against MuJoCo and what else is installed, on the same problems, in one run.

    python -m benchmarks.run                 # out/bench.json, docs/benchmarks.md and its pictures
    python -m benchmarks.run --quick         # a few problems, seconds each; writes to out/ alone
    python -m benchmarks.run --page out/bench.json    # the page and pictures of a run that was made before

Simulators run in processes of their own on one core, in turns; times are those of the processor.
"""
from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.comparison.measure import machine
from benchmarks.comparison.page import write_page
from benchmarks.comparison.problems import PROBLEMS, NotInstalled
from benchmarks.comparison.speed import measure
from benchmarks.comparison.work_precision import measure_all
from benchmarks.comparison.workers import Crew, Failed
from benchmarks.peers import installed
from dalembert.io.whole import write_whole

QUICK = ("chain 10", "five-bar", "box drop")


def run(quick: bool = False) -> dict[str, Any]:
    """All of it, as plain numbers."""
    begun = time.perf_counter()
    speed = []
    with Crew() as crew:
        for name in QUICK if quick else PROBLEMS:
            print(f"speed: {name}", flush=True)
            try:
                PROBLEMS[name].make()
            except NotInstalled as error:
                print(f"  left out: {error}", flush=True)
                continue
            speed.append(measure(crew, PROBLEMS[name], rounds=3, part=0.2) if quick else measure(crew, PROBLEMS[name]))
            for row in speed[-1]["rows"]:
                found = f"{row['us']:9.1f} us" if "us" in row else row.get("refuses") or row.get("failed") or "diverges"
                print(f"  {row['simulator']:10s} {row['method']:22s} {found}", flush=True)
        precision = measure_all(crew, quick)
    return dict(
        made=datetime.now(UTC).isoformat(timespec="minutes"), quick=quick, seconds=time.perf_counter() - begun, processor_seconds=processor_seconds(), machine=machine(),
        simulators={peer.name: peer.version() for peer in installed()}, speed=speed, work_precision=precision,
    )


def processor_seconds() -> float | None:
    """Of this process and all workers that have ended: what the run takes on a machine that does nothing else."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def main() -> None:
    parser = argparse.ArgumentParser(description="dalembert against other simulators")
    parser.add_argument("--quick", action="store_true", help="a few problems, in two minutes; docs are left alone")
    parser.add_argument("--out", type=Path, default=Path("out"), help="the folder for bench.json")
    parser.add_argument("--docs", type=Path, default=None, help="the folder for benchmarks.md and its pictures (by default docs/, with --quick the one of --out)")
    parser.add_argument("--page", type=Path, default=None, metavar="JSON", help="write the page of an earlier run")
    chosen = parser.parse_args()
    if chosen.page is not None:
        result = json.loads(chosen.page.read_text(encoding="utf-8"))
    else:
        try:
            result = run(chosen.quick)
        except Failed as error:
            raise SystemExit(f"the benchmark could not go on: {error}") from None
        chosen.out.mkdir(parents=True, exist_ok=True)
        with write_whole(chosen.out / "bench.json") as temporary:
            temporary.write_text(json.dumps(result, indent=1), encoding="utf-8")
    docs = chosen.docs or (chosen.out if result["quick"] else Path("docs"))
    for file in write_page(result, docs):
        print(f"written: {file}")


if __name__ == "__main__":
    main()
