"""Compile the kernels that a wheel brings along: run the examples and ``reach.py`` for the processor that they are for, and pack what they needed.

python packaging/prebuild.py [PROGRAM ...]: these programs instead of all.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dalembert.kernels import shipped

HERE = Path(__file__).resolve().parent
#: two compile at a time: they share what is compiled through the cache
WORKERS = min(2, os.cpu_count() or 1)


def main(programs: list[Path]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        cache.mkdir(mode=0o700)
        environment = {
            **os.environ, "NUMBA_CPU_NAME": shipped.PROCESSOR, "NUMBA_CPU_FEATURES": shipped.FEATURES, "DALEMBERT_CACHE": str(cache), "DALEMBERT_AHEAD": "0",
        }

        def run(program: Path) -> tuple[Path, int, str]:
            place = Path(folder) / program.stem
            place.mkdir()
            done = subprocess.run([sys.executable, str(program)], cwd=place, env=environment, capture_output=True, text=True)
            return program, done.returncode, done.stderr

        failed = False
        with ThreadPoolExecutor(WORKERS) as pool:
            for program, code, said in pool.map(run, programs):
                print(f"{program.name}: {'done' if code == 0 else 'failed'}", flush=True)
                if code:
                    print(said[-2000:], file=sys.stderr)
                    failed = True
        shutil.rmtree(shipped.FOLDER, ignore_errors=True)
        names = shipped.pack(cache, shipped.FOLDER)
        size = sum(path.stat().st_size for path in shipped.FOLDER.rglob("*.kernel"))
        print(f"{len(names)} kernels, {size / 2**20:.1f} MB, in {shipped.FOLDER}")
    return int(failed)


if __name__ == "__main__":
    chosen = [Path(name).resolve() for name in sys.argv[1:]]
    sys.exit(main(chosen or [HERE / "reach.py", *sorted((HERE.parent / "examples").glob("*.py"))]))
