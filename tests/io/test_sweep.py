"""Every model of the packages that are installed: loaded, run for a second with and without its contacts, drawn as a page."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import dalembert as da

SITES = [Path(entry) for entry in sys.path if entry.endswith("site-packages")]
URDFS = sorted(file for site in SITES for file in (site / "cmeel.prefix/share/example-robot-data").rglob("*.urdf"))
FOLDERS = ("gymnasium", "dm_control")
#: parts that other files include, and files that are no models
PARTS = {"common", "mjcf", "common.xml", "arena.xml"}
MJCFS = sorted(file for site in SITES for folder in FOLDERS for file in (site / folder).rglob("*.xml") if not PARTS & set(file.parts))
#: files that hold no whole robot, with what the error says: an empty one, some that a program fills in, and some whose meshes are not there
EMPTY = {
    "urdf/ur3.urdf": "is empty", "suite/lqr.xml": "has no bodies", "duplo/duplo2x4.xml": "has no bodies",
    "assets/sphere.xml": "has no bodies", "assets/model_with_assets.xml": "Error opening file",
    "dog_v2/dog_base.xml": "has no bodies", "assets/drosophila_defaults.xml": "has no bodies", "assets/drosophila.xml": "Error opening file",
    "build_fruitfly/fruitfly.xml": "Error opening file", "build_fruitfly/floor.xml": "Error opening file",
    "dog_v2/scene.xml": "repeated name",
}
#: what loads and does not run, by file and whether it has contacts: an arm held in the ground, neighbours held within one another (the
#: ant's hips in its torso, which the file alone fastens to the world), and a fly in grams and centimetres whose feet meet the floor
REFUSED = {
    ("assets/arm.xml", True): (da.OverlapError, "cannot be resolved"),
    ("assets/model_with_ball_joints.xml", True): (da.OverlapError, "cannot be resolved"),
    ("assets/humanoid_CMU_V2019.xml", True): (da.OverlapError, "cannot be resolved"),
    ("assets/humanoid_CMU_V2020.xml", True): (da.OverlapError, "cannot be resolved"),
    ("ant/ant.xml", True): (da.OverlapError, "cannot be resolved"),
    ("fruitfly_v2/floor.xml", True): (da.StepFailure, "no rigid motion exists"),
}
#: files of more and larger meshes than reading takes by default
LARGE = {"drosophila_fused.xml", "fruitfly.xml", "floor.xml"}
#: steps in s where 5 ms are too long for what happens
STEPS = {("dog_v2/dog.xml", True): 0.002}



def named(files: list[Path]) -> list[str]:
    return [f"{file.parent.parent.name}/{file.parent.name}/{file.name}" for file in files]


def package(file: Path) -> Path:
    """The folder of the package that a file is of: the bones of one dog are in the folder of another."""
    return next(site / folder for site in SITES for folder in FOLDERS if (site / folder) in file.parents)


@pytest.mark.slow
@pytest.mark.parametrize("contacts", [False, True], ids=["without", "with"])
@pytest.mark.parametrize("file", [*URDFS, *MJCFS], ids=[*named(URDFS), *named(MJCFS)])
@pytest.mark.filterwarnings("ignore")
def test_models_run_for_a_second(file, contacts, tmp_path):
    place = f"{file.parent.name}/{file.name}"
    room: dict[str, Any] = {"root": package(file)} if file.parent.name == "dog_v2" else {"budget": da.Budget(elements=100_000_000)} if file.name in LARGE else {}
    if place in EMPTY:
        with pytest.raises(da.ModelError, match=EMPTY[place]):
            da.Simulation(da.load(file, **room), da.Variational(dt=0.005))
        return
    sim = da.Simulation(da.load(file, contacts=contacts, **room), da.Variational(dt=STEPS.get((place, contacts), 0.005)))
    if (place, contacts) in REFUSED:
        kind, words = REFUSED[place, contacts]
        with pytest.raises(kind, match=words):
            run_for_a_second(sim, contacts)
        return
    run = run_for_a_second(sim, contacts)
    assert run.constraint_violation().max() < 1e-8
    if run.touching:
        assert run.contacts().least_gap().min() > -1e-8
    assert run.to_html(tmp_path / "run.html").stat().st_size > 1000


def run_for_a_second(sim: da.Simulation, contacts: bool) -> da.Trajectory:
    if contacts:
        sim.resolve_overlaps()
    return sim.run(1.0)
