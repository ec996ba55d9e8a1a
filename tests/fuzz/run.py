"""Runs the fuzzers: ``python tests/fuzz/run.py --seed 1 --seconds 600``.

A round is a function of random numbers, an empty folder and the number of the trial, in the list ROUNDS of a file ``rounds_*.py``. It
raises a Failure. Trials depend on the seed, their round and their number alone: ``--only "mutated file" --trial 17`` does one again.
"""
from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("DALEMBERT_AHEAD", "0")

from fuzzing import Failure  # noqa: E402

#: how often the state of a long campaign is told (s)
TELL = 60.0


def rounds() -> dict[str, tuple[Callable[..., None], Any]]:
    """All rounds by name, with their modules."""
    found = {}
    for file in sorted(HERE.glob("rounds_*.py")):
        module = importlib.import_module(file.stem)
        found |= {name: (function, module) for name, function in module.ROUNDS.items()}
    return found


def one(name: str, function: Callable[..., None], seed: int, trial: int) -> dict[str, Any] | None:
    """One trial; what went wrong, if anything."""
    folder = Path(tempfile.mkdtemp(prefix="dalembert-fuzz-"))
    try:
        function(np.random.default_rng([seed, zlib.crc32(name.encode()), trial]), folder / "place", trial)
    except Failure as failure:
        return {"round": name, "trial": trial, "seed": seed, "message": str(failure), "program": failure.program}
    except Exception:
        return {"round": name, "trial": trial, "seed": seed, "message": traceback.format_exc(), "program": ""}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None


def summary(done: dict[str, int], failures: list[dict[str, Any]]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in done.items()) + f"; {len(failures)} failures"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--only", action="append", default=[], metavar="ROUND")
    parser.add_argument("--trial", type=int, help="do this one alone")
    parser.add_argument("--count", action="append", default=[], metavar="ROUND=N", help="so many trials of a round, and of no others")
    parser.add_argument("--report", type=Path, help="write what happened to a JSON file")
    options = parser.parse_args()
    known = rounds()
    counts = {name: int(number) for name, number in (text.rsplit("=", 1) for text in options.count)}
    chosen = counts or dict.fromkeys(options.only or known, sys.maxsize)
    strange = [name for name in chosen if name not in known]
    if strange:
        parser.error(f"there is no round {', '.join(map(repr, strange))}; there are {', '.join(map(repr, known))}")
    chosen = {name: min(count, getattr(known[name][1], "MOST", {}).get(name, count)) for name, count in chosen.items()}
    for module in {id(module): module for name, (_, module) in known.items() if name in chosen}.values():
        if hasattr(module, "warm"):
            place = Path(tempfile.mkdtemp(prefix="dalembert-fuzz-"))
            module.warm(place / "place")
            shutil.rmtree(place)
    done, failures, end = dict.fromkeys(chosen, 0), [], time.monotonic() + options.seconds
    print(f"seed {options.seed}", flush=True)
    told = time.monotonic()
    while time.monotonic() < end and any(done[name] < chosen[name] for name in chosen):
        for name in chosen:
            if done[name] >= chosen[name]:
                continue
            trial = done[name] if options.trial is None else options.trial
            failure = one(name, known[name][0], options.seed, trial)
            done[name] += 1
            if failure:
                failures.append(failure)
                print(f"\n{name}, trial {trial}, seed {options.seed}: {failure['message']}\n{failure['program']}\n", flush=True)
        if time.monotonic() > told + TELL:
            told = time.monotonic()
            print(f"{summary(done, failures)}, {end - told:.0f} s left at most", flush=True)
        if options.trial is not None:
            break
    print(summary(done, failures), flush=True)
    for module in {id(module): module for name, (_, module) in known.items() if name in chosen}.values():
        if hasattr(module, "told") and module.told():
            print(module.told(), flush=True)
    if options.report:
        options.report.write_text(json.dumps({"done": done, "failures": failures}))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
