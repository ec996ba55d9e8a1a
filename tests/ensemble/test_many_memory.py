"""Ten thousand runs with reductions take no more memory than a few."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import resource, sys, numpy as np, dalembert as da

def reduced(run):
    return {"path": run.position[:, 0], "turn": run.joint("hinge").coordinates[-1]}

pendulum = da.Mechanism("pendulum")
pendulum.body("rod", da.Rod(length=1.0, radius=0.02, mass=1.0), position=(0, 0, -0.5))
pendulum.joint("hinge", da.Revolute(axis="x"), pendulum.world, "rod", at=(0, 0, 0))
ensemble = da.run_many(pendulum, da.Variational(dt=0.01), 0.2, starts={"hinge": (-1.0, 1.0)}, samples=int(sys.argv[1]), reduce=reduced, out=sys.argv[2], workers=2)
assert ensemble.successful.all() and np.isfinite(ensemble.results["turn"]).all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024.0 if sys.platform != "darwin" else 1024.0**2))
"""


@pytest.mark.slow
def test_memory_of_ten_thousand_runs(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    few, many = (
        float(subprocess.run([sys.executable, "-c", PROGRAM, str(runs), str(tmp_path / f"{runs}.h5")], capture_output=True, text=True, check=True, timeout=1800).stdout)
        for runs in (200, 10_000)
    )
    print(f"{few:.0f} MB for 200 runs, {many:.0f} MB for 10,000")
    assert many < 500.0
    assert many < few + 100.0
