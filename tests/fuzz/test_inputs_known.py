"""Bad inputs that once got a foreign exception, silence or a changed state: each gets a named error, at the call, and changes nothing."""
# pyright: reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arm import arm, same, summary

import dalembert as da

NAN = float("nan")
TURN = (1, 0, 0, 0)


def quick(formulation: type = da.Variational, **options: Any) -> Any:
    return formulation(**{"dt": 0.01, **options})


def text_energy(x: np.ndarray, q: np.ndarray) -> Any:
    return "much"


def vector_energy(x: np.ndarray, q: np.ndarray) -> Any:
    return x


#: what is given to a mechanism with bodies "upper" and "lower" on joints "shoulder" and "elbow"
BUILD: dict[str, Callable[[da.Mechanism], Any]] = {
    "mass that rounds to nothing": lambda m: da.Box(size=(1, 1, 1), mass=1e-320),
    "mechanism name None": lambda m: da.Mechanism(None),
    "mechanism name 3": lambda m: da.Mechanism(3),
    "mechanism name empty": lambda m: da.Mechanism(""),
    "joint frame of three": lambda m: m.joint("j", da.Revolute(), "upper", "lower", frame=(TURN, TURN, TURN)),
    "limits of one None": lambda m: da.Revolute(limits=(None,)),
    "universal axes in one word": lambda m: da.Universal(axes="xy"),
    "pitch in a list": lambda m: da.Helical(pitch=[1]),
    "gear of a joint with itself": lambda m: m.gear("g", "shoulder", "shoulder", ratio=2.0),
    "potential on the world": lambda m: m.potential("p", "world", lambda x, q: 0.0),
    "triangles between vertices": lambda m: da.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0.5, 1, 2]]),
    "start a joint with linear": lambda m: m.start("elbow", linear=(1, 0, 0)),
    "start a body with a value": lambda m: m.start("upper", 1.0),
    "contact pair of joints": lambda m: m.contact_pair("shoulder", "elbow"),
    "joint at text": lambda m: m.joint("j", da.Revolute(), "upper", "lower", at="here"),
    "joint at ragged": lambda m: m.joint("j", da.Revolute(), "upper", "lower", at=((0, 0, 0), (1, 1))),
    "joint at dict": lambda m: m.joint("j", da.Revolute(), "upper", "lower", at={}),
    "drive 3": lambda m: da.Revolute(drive=3),
    "drive True": lambda m: da.Revolute(drive=True),
    "limits 3": lambda m: da.Revolute(limits=3),
    **{f"restitution {v!r}": lambda m, v=v: da.Revolute(restitution=v) for v in ("full", None, [0.5])},
    **{f"universal axes {v!r}": lambda m, v=v: da.Universal(axes=v) for v in (("x",), None)},
    **{f"pitch {v!r}": lambda m, v=v: da.Helical(pitch=v) for v in ("steep", None)},
    **{f"distance {v!r}": lambda m, v=v: da.Distance(length=v) for v in ("long", [1])},
    "spring length text": lambda m: m.spring("s", "upper", "lower", at=((0, 0, 0), (1, 0, 0)), length="l"),
    "spring at text": lambda m: m.spring("s", "upper", "lower", at="ab"),
    **{f"gear ratio {v!r}": lambda m, v=v: m.gear("g", "shoulder", "elbow", ratio=v) for v in ("two", None, [1])},
    **{f"gear directions {v!r}": lambda m, v=v: m.gear("g", "shoulder", "elbow", ratio=1.0, directions=v) for v in ((0,), None, ("a", "b"), (0.5, 0))},
    "vertices text": lambda m: da.Mesh("v", [[0, 1, 2]]),
    "triangles text": lambda m: da.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "t"),
    "start of text": lambda m: m.start("elbow", "bent"),
    **{f"ground offset {v!r}": lambda m, v=v: m.ground(offset=v) for v in ("low", None, [1])},
    "heights text": lambda m: m.height_field("hills"),
    "heights ragged": lambda m: m.height_field([[1, 2], [3]]),
    "spacing text": lambda m: m.height_field(np.zeros((3, 3)), spacing="wide"),
    "spacing of three": lambda m: m.height_field(np.zeros((3, 3)), spacing=(1, 2, 3)),
    **{
        f"{kind.__name__} {name} {value!r}": lambda m, kind=kind, name=name, value=value: quick(kind, **{name: value})
        for kind in (da.Variational, da.Implicit, da.Reduced)
        for name, values in (("dt", ("small", None, [0.01])), ("tolerance", ("small", None, [0.01])), ("max_iterations", (NAN, 1.5, "many", None)),
                             ("max_halvings", (NAN, 1.5, 200, "many", None)), ("resting_speed", ("slow", None)))
        for value in values
    },
    "accuracy text": lambda m: quick(da.Implicit, method="sdirk2", accuracy="good"),
    "stabilization text": lambda m: quick(da.Implicit, stabilization="x"),
    **{f"formulation {v!r}": lambda m, v=v: da.Simulation(m, v) for v in (None, "variational", da.Variational, 0.01)},
    "mechanism save None": lambda m: m.save(None),
    "mechanism save 3": lambda m: m.save(3),
    "load None": lambda m: da.load(None),
    "load 3": lambda m: da.load(3),
    "load mesh_density text": lambda m: da.load("arm.urdf", mesh_density="heavy"),
    "load root 3": lambda m: da.load("arm.urdf", root=3),
    "load root nowhere": lambda m: da.load("arm.urdf", root="/nonexistent"),
    "Trajectory.load None": lambda m: da.Trajectory.load(None),
    "Trajectory.load 3": lambda m: da.Trajectory.load(3),
}

#: what is asked of a simulation of the same mechanism, whose shoulder follows a target
ASK: dict[str, Callable[[da.Simulation], Any]] = {
    **{f"run {v!r}": lambda s, v=v: s.run(v) for v in ("long", None, [1], 1e30, 3e16)},
    **{f"run control {v!r}": lambda s, v=v: s.run(0.02, control=v) for v in (3, "x", {"elbow": 1})},
    "set_joint name list": lambda s: s.set_joint(["elbow"], 0.5),
    **{f"set_joint {v!r}": lambda s, v=v: s.set_joint("elbow", v) for v in ("0.5", "bent", {}, 1j)},
    "set_joint rate": lambda s: s.set_joint("elbow", rate="fast"),
    "set_target text": lambda s: s.set_target("shoulder", "up"),
    "set_target function of text": lambda s: s.set_target("shoulder", lambda t: "x"),
    "set_target function of nothing": lambda s: s.set_target("shoulder", lambda: 0.0),
    "set_target dict": lambda s: s.set_target("shoulder", {}),
    **{f"solve_pose {v!r}": lambda s, v=v: s.solve_pose(v) for v in ({"elbow": "x"}, "elbow", 3)},
    "solve_pose weights": lambda s: s.solve_pose({"elbow": 0.1}, weights={"elbow": "x"}),
    **{f"view port {v!r}": lambda s, v=v: s.view(port=v, block=False, browser=False) for v in (-1, 70000, "http", None)},
}

#: what is asked of a trajectory of the same mechanism
READ: dict[str, Callable[[da.Trajectory], Any]] = {
    **{f"point {v!r}": lambda t, v=v: t.point("upper", v) for v in (NAN, (NAN, 0, 0), (1, 2), "x")},
    "least_norm weights": lambda t: t.least_norm({"elbow": "x"}),
    "least_norm drive_weight": lambda t: t.least_norm(drive_weight="x"),
    **{f"least_norm knots {v!r}": lambda t, v=v: t.least_norm(knots=v) for v in (1.5, [99999], "x")},
    "save .xlsx": lambda t: t.save("r.xlsx"),
    "save .toml": lambda t: t.save("r.toml"),
    **{f"to_html fps {v!r}": lambda t, v=v: t.to_html("r.html", fps=v) for v in ("fast", None)},
    "snapshot time": lambda t: t.snapshot("r.png", time="now"),
    "snapshot azimuth": lambda t: t.snapshot("r.png", azimuth="x"),
    "snapshot colour": lambda t: t.snapshot("r.png", colour=3),
}


@pytest.fixture(scope="module")
def simulation() -> da.Simulation:
    return da.Simulation(arm(), da.Variational(dt=0.01))


@pytest.fixture(scope="module")
def trajectory(simulation: da.Simulation) -> da.Trajectory:
    return simulation.run(0.03)


@pytest.mark.parametrize("title", BUILD)
def test_what_is_built(title: str) -> None:
    mechanism = arm()
    before = summary(mechanism)
    with pytest.raises(da.DalembertError):
        BUILD[title](mechanism)
    assert summary(mechanism) == before


@pytest.mark.parametrize("title", ASK)
def test_what_a_simulation_is_asked(title: str, simulation: da.Simulation) -> None:
    before = simulation.state
    with pytest.raises(da.DalembertError):
        ASK[title](simulation)
    assert same(simulation.state, before)


@pytest.mark.parametrize("title", READ)
def test_what_a_trajectory_is_asked(title: str, trajectory: da.Trajectory, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((da.DalembertError, TypeError), match=None if title != "snapshot colour" else "colour"):
        READ[title](trajectory)
    assert not list(tmp_path.iterdir())


def test_one_name_is_a_name(trajectory: da.Trajectory) -> None:
    pytest.importorskip("matplotlib")
    one, several = (trajectory.plot("coordinates", names=names).axes[0].lines for names in ("elbow", ("elbow",)))
    assert len(one) == len(several) == 1
    assert np.array_equal(one[0].get_ydata(), several[0].get_ydata())


@pytest.mark.parametrize("energy", [text_energy, vector_energy, lambda x: 0.0], ids=["text", "vector", "one argument"])
def test_potentials_that_are_none(energy: Any) -> None:
    mechanism = arm()
    mechanism.potential("p", "upper", energy)
    with pytest.raises(da.ModelError, match="'p'"):
        da.Simulation(mechanism, da.Variational(dt=0.01)).step()


URDF = """<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="5" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""


def test_an_impossible_inertia_in_a_file_is_reported(tmp_path: Any) -> None:
    pytest.importorskip("yourdfpy")
    (tmp_path / "arm.urdf").write_text(URDF)
    assert any("belong to no real body" in line for line in da.load(tmp_path / "arm.urdf").report)
    with pytest.raises(da.ModelError, match="belong to no real body"):
        da.load(tmp_path / "arm.urdf", strict=True)
