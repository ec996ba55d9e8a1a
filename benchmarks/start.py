"""How long the demo's program takes with an empty cache of kernels, and with a full one."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
import time
begun = time.perf_counter()
import dalembert as da
sim = da.Simulation(da.zoo.three_link_loop(), da.Variational(dt=0.01))
run = sim.run(0.1)
print(time.perf_counter() - begun)
run.energy(), run.joint(run.joints[0]).force, run.constraint_violation()
print(time.perf_counter() - begun)
"""


def start_seconds(cache: Path) -> tuple[float, float]:
    """Seconds from the first import to the end of a short run, and to all its results, in a process of its own."""
    environment = {**os.environ, "DALEMBERT_CACHE": str(cache)}
    found = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    first, second = (float(line) for line in found.stdout.split())
    return first, second


def main() -> list[dict]:
    """Rows: what, figure, bar."""
    with tempfile.TemporaryDirectory() as folder:
        tick = time.perf_counter()
        cold, cold_results = start_seconds(Path(folder))
        whole = time.perf_counter() - tick
        warm, warm_results = start_seconds(Path(folder))
    return [
        dict(what="first start: a run, and all its results", figure=f"{cold:.1f} s, {cold_results:.1f} s ({whole:.1f} s with Python's start)", bar="reported", met=True),
        dict(what="second start", figure=f"{warm:.2f} s, {warm_results:.2f} s", bar="below 2 s", met=warm < 2.0),
    ]


if __name__ == "__main__":
    for row in main():
        print(row)
