"""Every model of the packages that are installed: loaded, run for a second with and without its contacts, drawn as a page."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest

import dalembert as da

SITES = [Path(entry) for entry in sys.path if entry.endswith("site-packages")]
URDFS = sorted(file for site in SITES for file in (site / "cmeel.prefix/share/example-robot-data").rglob("*.urdf"))
MJCFS = sorted(file for site in SITES for folder in ("gymnasium", "dm_control/suite") for file in (site / folder).rglob("*.xml") if "common" not in file.parts)
#: files that hold nothing
EMPTY = ("ur3.urdf",)
#: what cannot run with its contacts, with what its error says: contacts that are redundant with joints
FAILING = {"point.xml": "a pivot block is singular", "pusher.xml": "no rigid motion exists", "pusher_v5.xml": "no rigid motion exists"}


def named(files: list[Path]) -> list[str]:
    return [f"{file.parent.parent.name}/{file.name}" for file in files]


@pytest.mark.slow
@pytest.mark.parametrize("contacts", [False, True], ids=["without", "with"])
@pytest.mark.parametrize("file", [*URDFS, *MJCFS], ids=[*named(URDFS), *named(MJCFS)])
@pytest.mark.filterwarnings("ignore")
def test_models_run_for_a_second(file, contacts, tmp_path):
    if file.name in EMPTY:
        with pytest.raises(da.ModelError, match="is empty"):
            da.load(file)
        return
    sim = da.Simulation(da.load(file, contacts=contacts), da.Variational(dt=0.005))
    if contacts:
        sim.resolve_overlaps()
    if contacts and file.name in FAILING:
        with pytest.raises(da.StepFailure, match=FAILING[file.name]):
            sim.run(1.0)
        return
    run = sim.run(1.0)
    assert run.constraint_violation().max() < 1e-8
    if run.touching:
        assert run.contacts().least_gap().min() > -1e-8
    assert run.to_html(tmp_path / "run.html").stat().st_size > 1000
