"""Gradients in joint coordinates over the joint table, the methods with stages, and all numbers of a joint and of what hangs on it."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.mechanism.joints import JOINTS

METHODS = {m: da.Reduced(dt=0.01, method=m, tolerance=1e-13) for m in ("bdf2", "bdf1", "sdirk2", "pareschi_russo")}
#: the bars: adjoint against forward, and against differences of the run; these where something touches
EXACT, SMOOTH, NEAR = 1e-9, 1e-6, 1e-4
#: numbers of a joint
NUMBERS = ("point_parent", "point_child", "turn_parent", "turn_child", "stiffness", "damping", "rest", "armature", "pitch", "length")
#: of the bodies that hang on it, and of its start
OTHERS = ("gravity", "b.mass", "b.inertia", "b.centre_of_mass", "c.mass")


def hanging(kind: type[da.Joint], loop: bool, backwards: bool, **bounds) -> da.Mechanism:
    """Three bodies in a row, the second on a joint with laws along all of its directions; ``loop``: a rod holds the last one."""
    m, rng = da.Mechanism(kind.__name__, gravity=(0.3, -0.2, -9.81)), np.random.default_rng(3)

    def body(name: str, place: tuple[float, float, float]):
        A = rng.normal(size=(3, 3))
        inertia = 0.1 * (np.trace(A @ A.T) * np.eye(3) - A @ A.T)
        return m.body(name, mass=float(rng.uniform(0.5, 2.0)), inertia=inertia, position=place, orientation=rng.normal(size=4))

    a, b, c = body("a", (0.3, 0.1, -0.2)), body("b", (0.8, 0.2, -0.3)), body("c", (1.2, -0.2, -0.5))
    m.joint("root", da.Universal(stiffness=1.0, damping=0.2), "world", a, at=(0, 0, 0))
    kinds = [name for name, _ in kind().directions]
    free, laws = len(kinds), {}
    if free:
        laws = {name: rng.uniform(low, high, free) for name, low, high in (("stiffness", 1.0, 3.0), ("damping", 0.1, 0.5), ("rest", -0.2, 0.2), ("armature", 0.1, 0.3))}
        laws["armature"] = np.where([name == "ball" for name in kinds], 0.0, laws["armature"])
    at = ((0.5, 0.1, -0.3), (0.75, 0.5, 0.0)) if kind is da.Distance else (0.5, 0.1, -0.3)
    m.joint("joint", kind(**laws, **bounds), *((b, a) if backwards else (a, b)), at=at, frame=rng.normal(size=4))
    m.joint("tail", da.Revolute(axis=(1, 0.2, 0.3), damping=0.1), b, c, at=(1.0, 0, -0.4))
    if loop:
        m.joint("rod", da.Distance(), "world", c, at=((1.5, 0.5, 0.3), (1.3, -0.1, -0.5)))
    return m


def names(m: da.Mechanism, more: tuple[str, ...] = ()) -> list[str]:
    """All that the joint has, and what hangs on it."""
    kind, has = m["joint"].type, da.Simulation(m, METHODS["bdf2"]).parameters()
    known = [f"joint.{name}" for name in (*NUMBERS, *more) if name.startswith("turn") or f"joint.{name}" in has]
    absent = ("stiffness", "damping", "rest", "armature") if not kind.freedom else ("armature",) if any(name == "ball" for name, _ in kind.directions) else ()
    return [name for name in known if name.partition(".")[2] not in absent] + list(OTHERS) + ["joint.start_rate"] * (kind.freedom > 0 and kind is not da.Distance)


def moving(sim: da.Simulation) -> None:
    kind = sim.mechanism["joint"].type
    if isinstance(kind, da.Distance):
        return  # velocities that a rod does not allow are projected, and differences see more of that than derivatives of the start do: 1e-5
    sim.set_velocity("b", linear=(0.3, -0.2, 0.1), angular=(0.5, 1.0, -0.7))
    if kind.freedom:
        sim.set_joint("joint", rate=np.random.default_rng(5).uniform(0.3, 1.0, kind.freedom))
    sim.set_joint("tail", rate=0.6)


def assert_right(check: da.GradientCheck, what: str, far: float = SMOOTH) -> None:
    assert check.forward_error < EXACT, f"{what}\n{check}"
    assert check.difference_error < far, f"{what}\n{check}"


@pytest.mark.parametrize(("kind", "loop"), [(da.Cylindrical, True), (da.PlanarFreeOrientation, False)])
def test_a_few_joints(kind, loop):
    m = hanging(kind, loop, True)
    assert_right(da.validate_gradients(m, METHODS["bdf2"], names(m), steps=2, setup=moving), kind.__name__)


@pytest.mark.slow
@pytest.mark.parametrize("loop", [False, True], ids=["tree", "loop"])
@pytest.mark.parametrize("method", METHODS)
def test_all_joints(method, loop):
    for index, kind in enumerate(JOINTS):
        m = hanging(kind, loop, (index + loop) % 2 == 1)
        assert_right(da.validate_gradients(m, METHODS[method], names(m), steps=3, setup=moving), kind.__name__)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dalembert.GradientWarning")
@pytest.mark.parametrize("method", ["bdf2", "bdf1"])
def test_limits_and_dry_friction_of_all_joints(method):
    """Every direction rubs, and those that have limits meet them in the first steps."""
    for index, kind in enumerate(JOINTS):
        kinds = [name for name, _ in kind().directions]
        if not kinds or "ball" in kinds or kind is da.Distance:
            continue
        m = hanging(kind, False, index % 2 == 1, friction=0.05, limits=(-0.3, 0.004), restitution=0.3)
        check = da.validate_gradients(m, METHODS[method], names(m, ("friction", "upper", "restitution")), steps=5, setup=moving, step=1e-5)
        assert_right(check, kind.__name__, NEAR)
