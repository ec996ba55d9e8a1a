"""The quick share of the fuzzers with files and faults; ``make fuzz`` runs them for as long as one likes.

They run in a process of their own: they fork, and what they measure shall not depend on other tests.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import dalembert as da

for module in ("mujoco", "yourdfpy", "trimesh", "h5py", "msgspec", "tomli_w", "matplotlib"):
    pytest.importorskip(module)
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="watches files and forks as Linux does")

QUICK = {"attack": 30, "mutated file": 60, "kill a writer": 21, "kill a run": 4, "kill an ensemble": 3, "end a run": 2, "kill a compiler": 2, "damage the cache": 3, "fill the disk": 14}
#: the bars: 2,000 broken files, 200 kills
SLOW = {"mutated file": 2000, "kill a writer": 80, "kill a run": 40, "kill an ensemble": 30, "end a run": 20, "kill a compiler": 30, "damage the cache": 60, "fill the disk": 100}
if find_spec("pxr"):
    QUICK["mutated USD"], SLOW["mutated USD"] = 16, 400


def fuzz(counts: dict[str, int], report: Path, seed: int) -> dict:
    """What so many trials of each round found."""
    words = [word for name, count in counts.items() for word in ("--count", f"{name}={count}")]
    script = Path(__file__).parent / "run.py"
    done = subprocess.run([sys.executable, str(script), "--seed", str(seed), "--seconds", "3600", "--report", str(report), *words], capture_output=True, text=True, env={**os.environ, "DALEMBERT_AHEAD": "0"})
    assert report.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(report.read_text())


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> dict:
    return fuzz(QUICK, tmp_path_factory.mktemp("fuzz") / "report.json", 1)


@pytest.mark.parametrize("name", QUICK)
def test_quick_share(quick, name):
    """Hostile and broken files are refused or loaded below 5 s and 1 GB and read nothing else; kills, damage and full disks lose nothing."""
    found = [failure for failure in quick["failures"] if failure["round"] == name]
    assert not found, "\n".join(f"{failure['message']}\n{failure['program']}" for failure in found)
    assert quick["done"][name] > 0


@pytest.mark.slow
def test_long_share_of_mechanisms(tmp_path):
    found = fuzz({"random mechanism": 5000}, tmp_path / "report.json", 2027)
    assert found["done"] == {"random mechanism": 5000}
    assert not found["failures"], "\n".join(f"{failure['message']}\n{failure['program']}" for failure in found["failures"])


@pytest.mark.slow
def test_long_share(tmp_path):
    found = fuzz(SLOW, tmp_path / "report.json", 2026)
    assert found["done"] == SLOW
    assert not found["failures"], "\n".join(f"{failure['message']}\n{failure['program']}" for failure in found["failures"])


def test_a_larger_budget_lets_in(tmp_path):
    text = "<mujoco><worldbody>" + "".join(f'<body name="b{i}" pos="{i} 0 0"><freejoint/><geom size="0.1"/></body>' for i in range(40)) + "</worldbody></mujoco>"
    (tmp_path / "a.xml").write_text(text)
    for kind, budget in (("elements", da.Budget(elements=1000)), ("bytes", da.Budget(bytes=1000)), ("depth", da.Budget(depth=2)), ("seconds", da.Budget(seconds=1e-9))):
        with pytest.raises(da.BudgetError, match=rf"larger Budget\({kind}=\.\.\.\)"):
            da.load(tmp_path / "a.xml", budget=budget)
    assert len(da.load(tmp_path / "a.xml", budget=da.Budget().times(2.0)).bodies) == 40
    with pytest.raises(da.ModelError, match="Budget: elements must be"):
        da.Budget(elements=0)
