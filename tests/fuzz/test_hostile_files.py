"""Hostile files: each is refused or loaded, in little time and memory, and nothing outside of the model's folder is read."""
from __future__ import annotations

import sys
import warnings
from pathlib import Path

import attacks
import pytest
from sandbox import measured, watched

import dalembert as da

for module in ("mujoco", "yourdfpy", "trimesh", "h5py", "msgspec"):
    pytest.importorskip(module)
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="watches files and forks as Linux does")

#: what a file may take at the most: s of the processor, MB
SECONDS, MEGABYTES = 5.0, 1000.0
#: attacks that take seconds by themselves to be made
SLOW = ("urdf: a packed mesh", "urdf: a mesh packed as 3mf", "mjcf: a large PNG", "json: a hull of very many corners", "urdf: a large text mesh", "json: many numbers", "xml: many elements", "hdf5: zeros", "state of zeros")


def load(path: Path) -> str:
    """What becomes of a file."""
    read = {".h5": da.Trajectory.load, ".npz": da.State.load}.get(path.suffix, da.load)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read(path)
        except da.ModelError as error:
            return f"refused: {error}"
    return "loaded"


@pytest.fixture
def folder(short_run, tmp_path) -> Path:
    short_run.save(tmp_path / "run.h5")
    attacks.prepare(tmp_path / "place")
    return tmp_path / "place"


@pytest.fixture(scope="module", autouse=True)
def _imported(tmp_path_factory):
    """Libraries are loaded before anything is measured."""
    place = tmp_path_factory.mktemp("first")
    (place / "a.xml").write_text("<mujoco><worldbody><body><freejoint/><geom size='1'/></body></worldbody></mujoco>")
    (place / "m.stl").write_bytes(attacks.tetrahedron())
    (place / "a.urdf").write_text(attacks.LINK.format("m.stl"))
    da.zoo.pendulum(2).save(place / "a.toml")
    for path in place.glob("a.*"):
        da.load(path, **({"mesh_density": 1.0} if path.suffix == ".urdf" else {}))


def test_nothing_outside_of_the_folder_is_read(folder):
    for name, attack in attacks.READS.items():
        for path in (folder / "model").rglob("*"):
            if not path.is_dir():
                path.unlink()
        path = attack(folder)
        with watched(folder / "secret") as opened:
            found = measured(lambda path=path: load(path))
        assert opened == [], (name, opened, found.answer)
        assert found.answer.startswith("refused") or found.answer == "loaded", (name, found.answer)
        (folder / "package.xml").unlink(missing_ok=True)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else []) for name in attacks.BOMBS])
def test_bombs_take_little(folder, name):
    path = Path(measured(lambda: str(attacks.BOMBS[name](folder))).answer)  # apart, to have its memory back
    found = measured(lambda: load(path))
    assert found.answer.startswith("refused") or found.answer == "loaded", found.answer
    assert found.seconds < SECONDS
    assert found.megabytes < MEGABYTES


def test_a_larger_budget_lets_in(tmp_path):
    text = "<mujoco><worldbody>" + "".join(f'<body name="b{i}" pos="{i} 0 0"><freejoint/><geom size="0.1"/></body>' for i in range(40)) + "</worldbody></mujoco>"
    (tmp_path / "a.xml").write_text(text)
    with pytest.raises(da.BudgetError, match=r"load it with a larger Budget\(elements=\.\.\.\)"):
        da.load(tmp_path / "a.xml", budget=da.Budget(elements=1000))
    with pytest.raises(da.BudgetError, match=r"larger Budget\(bytes=\.\.\.\)"):
        da.load(tmp_path / "a.xml", budget=da.Budget(bytes=1000))
    with pytest.raises(da.BudgetError, match=r"larger Budget\(depth=\.\.\.\)"):
        da.load(tmp_path / "a.xml", budget=da.Budget(depth=2))
    with pytest.raises(da.BudgetError, match=r"larger Budget\(seconds=\.\.\.\)"):
        da.load(tmp_path / "a.xml", budget=da.Budget(seconds=1e-9))
    assert len(da.load(tmp_path / "a.xml", budget=da.Budget().times(2.0)).bodies) == 40
    with pytest.raises(da.ModelError, match="elements of a Budget must be a positive number"):
        da.Budget(elements=0)
