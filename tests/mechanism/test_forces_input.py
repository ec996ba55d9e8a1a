"""Forces, servos and users' functions that make no sense: each gets its named error, and no state is harmed."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import dalembert as da
from dalembert.formulations.engine import Formulation

FORMULATIONS = pytest.mark.parametrize("formulation", [da.Variational(dt=0.01), da.Implicit(dt=0.01)], ids=["variational", "implicit"])
LINE = [("world", (0, 1, 0)), ("rod", (0, 0, -0.5))]


def pendulum() -> da.Mechanism:
    mechanism = da.Mechanism("pendulum")
    mechanism.body("rod", da.Rod(length=1.0, mass=1.0, radius=0.02), position=(0, 0, -0.5))
    mechanism.joint("hinge", da.Revolute(axis="x"), "world", "rod")
    return mechanism


@pytest.mark.parametrize(("build", "message"), [
    (lambda m: m.path("p", LINE[:1]), "path 'p' needs two points or more, got 1"),
    (lambda m: m.path("p", []), "path 'p' needs two points or more, got 0"),
    (lambda m: m.path("p", 3), r"path 'p' needs points as pairs \(body, world point\), got 3"),
    (lambda m: m.path("p", [("rod", (0, 0)), LINE[1]]), "point 0 of path 'p' must be 3 numbers"),
    (lambda m: m.path("p", [("nobody", (0, 0, 1)), LINE[1]]), "no element named 'nobody'"),
    (lambda m: m.path("p", [LINE[0], LINE[0], LINE[1]]), "path 'p': its points 0 and 1 coincide"),
    (lambda m: m.path("p", [("rod", (0, 0, 1)), LINE[1]]), "path 'p' runs on 'rod' alone"),
    (lambda m: m.path("p", LINE, stiffness=-1.0), "path 'p': stiffness must not be negative, got -1"),
    (lambda m: m.path("p", LINE, damping=-1.0), "path 'p': damping must not be negative"),
    (lambda m: m.path("p", LINE, length=-1.0), "path 'p': length must not be negative"),
    (lambda m: m.path("p", LINE, stiffness=np.nan), "path 'p': stiffness must be finite"),
    (lambda m: m.path("p", LINE, law=3.0), "path 'p': law must be a function or None, got 3.0"),
    (lambda m: m.path("p", LINE, drive="motion"), "path 'p': drive must be None or 'force', got 'motion'"),
    (lambda m: m.cable("c", LINE, stiffness=-1.0), "cable 'c': stiffness must not be negative"),
    (lambda m: m.force("f", "rod", (1, 2)), "force 'f': force must be 3 numbers"),
    (lambda m: m.force("f", "rod", (1, np.inf, 2)), "force 'f': force must be finite"),
    (lambda m: m.force("f", "world", (1, 2, 3)), "force 'f' on the world moves nothing"),
    (lambda m: m.force("rod", "rod", (1, 2, 3)), "the name 'rod' is taken"),
    (lambda m: m.drag("d", "rod", linear=-1.0), "drag 'd': linear must not be negative"),
    (lambda m: m.drag("d", "rod", angular="x"), "drag 'd': angular must be a number"),
    (lambda m: m.penalty("s", "rod", stiffness=-1.0), "penalty 's': stiffness must not be negative"),
    (lambda m: m.penalty("s", "rod", stiffness=1.0, friction=-1.0), "penalty 's': friction must not be negative"),
    (lambda m: m.penalty("s", "rod", stiffness=1.0, normal=(0, 0, 0)), "penalty 's': normal"),
    (lambda m: m.penalty("s", "rod", stiffness=1.0, offset=np.nan), "penalty 's': offset must be finite"),
    (lambda m: m.penalty("s", "rod", stiffness=1.0, offset="low"), "penalty 's': offset must be a number"),
    (lambda m: m.force_law("l", "rod"), "force law 'l' needs a function"),
    (lambda m: m.force_law("l", "rod", 3), "force law 'l': function must be a function"),
    (lambda m: m.force_law("l", ["rod", "rod"], lambda x, q, v: 0), "force law 'l' needs different bodies that move"),
    (lambda m: m.constraint("k", "rod", 3), "constraint 'k': function must be a function"),
    (lambda m: m.constraint("k", "world", lambda x, q: 0), "constraint 'k' needs different bodies that move"),
    (lambda m: m.constraint("k", "rod", lambda x, q: 0, rows=0), "constraint 'k': rows must be a whole number from 1"),
    (lambda m: da.Servo(stiffness=-1.0), "Servo: stiffness must not be negative"),
    (lambda m: da.Servo(stiffness=1.0, damping=np.nan), "Servo: damping"),
    (lambda m: da.Servo(stiffness=1.0, bound=-3.0), "Servo: bound must be positive"),
    (lambda m: da.Servo(stiffness=1.0, target="up"), "Servo: target must be a number"),  # type: ignore[arg-type]
    (lambda m: da.Revolute(servo=3.0), "Revolute: servo must be a Servo"),
    (lambda m: da.Cylindrical(servo=(da.Servo(stiffness=1.0),)), "Cylindrical: servo needs a Servo, or 2 of them"),
    (lambda m: da.Revolute(servo=da.Servo(stiffness=1.0), drive="force"), "takes no drive"),
    (lambda m: da.Spherical(servo=da.Servo(stiffness=1.0)), "not to a free rotation"),
])
def test_builders_refuse(build: Callable[[da.Mechanism], Any], message: str) -> None:
    mechanism = pendulum()
    names = set(mechanism._names)
    with pytest.raises(da.ModelError, match=message):
        build(mechanism)
    assert set(mechanism._names) == names
    assert not [*mechanism.paths, *mechanism.point_forces, *mechanism.drags, *mechanism.penalties, *mechanism.force_laws, *mechanism.constraints]


def raising(*_: Any) -> float:
    raise ZeroDivisionError("no more")


BUILT: dict[str, tuple[Callable[[da.Mechanism], Any], str]] = {
    "a law that is NaN": (lambda m: m.path("p", LINE, law=lambda length, rate: np.nan), "the law of <path 'p' through 2 points> gave nan, which is not finite"),
    "a law that raises": (lambda m: m.path("p", LINE, law=raising), "the function of <path 'p' through 2 points> raised ZeroDivisionError: no more"),
    "a law of two numbers": (lambda m: m.path("p", LINE, law=lambda length, rate: (1.0, 2.0)), r"the law of <path 'p' .*> gave \(1.0, 2.0\), and not one number"),
    "a compiled law that is NaN": (lambda m: m.path("p", LINE, law=numba.njit(lambda length, rate: np.nan)), "the law of <path 'p' .*> gave nan, which"),
    "a constraint that raises": (lambda m: m.constraint("k", "rod", raising), "the function of <constraint 'k' on rod> raised ZeroDivisionError: no more"),
    "a constraint of two numbers": (lambda m: m.constraint("k", "rod", lambda x, q: x[0, :2]), "the function of <constraint 'k' on rod> gave .* and not one number"),
    "a gradient of another shape": (
        lambda m: m.constraint("k", "rod", lambda x, q: 0.0, gradient=lambda x, q: np.zeros(5)), r"the gradient of <constraint 'k' on rod> gave .*\(1, 1, 6\)"),
}
RUNNING: dict[str, tuple[Callable[[da.Mechanism, list], Any], str]] = {
    "a law that becomes NaN": (lambda m, on: m.path("p", LINE, law=lambda length, rate: np.nan if on else 1.0), "the law of <path 'p' .*> gave nan, which is not finite"),
    "a law that comes to raise": (lambda m, on: m.path("p", LINE, law=lambda length, rate: raising() if on else 1.0), "<path 'p' .*> raised ZeroDivisionError"),
    "a force law that is NaN": (lambda m, on: m.force_law("l", "rod", lambda x, q, v: np.full((1, 6), np.nan if on else 0.0)), "function of <force law 'l' on rod> gave"),
    "a force law that raises": (lambda m, on: m.force_law("l", "rod", lambda x, q, v: raising() if on else np.zeros((1, 6))), "<force law 'l' on rod> raised Zero"),
    "a force law of three numbers": (
        lambda m, on: m.force_law("l", "rod", lambda x, q, v: np.zeros(3) if on else np.zeros((1, 6))), r"<force law 'l' on rod> gave .*not numbers of shape \(1, 6\)"),
    "a potential that is NaN": (lambda m, on: m.potential("u", "rod", lambda x, q: np.nan if on else 0.0), "the energy of <force law 'u' on rod> gave nan"),
    "a constraint that becomes NaN": (lambda m, on: m.constraint("k", "rod", lambda x, q: np.nan if on else x[0, 0]), "the function of <constraint 'k' on rod> gave nan"),
}


@pytest.mark.parametrize("name", BUILT)
def test_functions_that_are_wrong_from_the_start(name: str) -> None:
    mechanism = pendulum()
    BUILT[name][0](mechanism)
    with pytest.raises(da.ModelError, match=BUILT[name][1]):
        da.Simulation(mechanism, da.Variational(dt=0.01))


@FORMULATIONS
@pytest.mark.parametrize("name", RUNNING)
def test_functions_that_go_wrong_on_the_way(name: str, formulation: Formulation) -> None:
    mechanism, on = pendulum(), []
    RUNNING[name][0](mechanism, on)
    sim = da.Simulation(mechanism, formulation)
    sim.set_joint("hinge", 0.3)
    sim.run(0.05)
    state = sim.state
    on.append(True)
    for advance in (lambda: sim.run(0.05), sim.step):
        with pytest.raises(da.ModelError, match=RUNNING[name][1]):
            advance()
        assert sim.state == state
    on.clear()
    assert np.isfinite(sim.run(0.05).position).all()


@FORMULATIONS
def test_a_compiled_force_law_that_is_nan(formulation: Formulation) -> None:
    @numba.njit
    def lost(position, orientation, velocity):
        return np.full((1, 6), np.nan)

    mechanism = pendulum()
    mechanism.force_law("l", "rod", lost)
    sim = da.Simulation(mechanism, formulation)
    state = sim.state
    with pytest.raises(da.ModelError, match="the function of <force law 'l' on rod> gave"):
        sim.step()
    assert sim.state == state


def test_a_trajectory_says_what_went_wrong_in_reading() -> None:
    mechanism, on = pendulum(), []
    mechanism.potential("u", "rod", lambda x, q: np.nan if on else 0.0, wrench=lambda x, q: np.zeros(6))
    sim = da.Simulation(mechanism, da.Variational(dt=0.01))
    run = sim.run(0.05)
    on.append(True)
    with pytest.raises(da.ModelError, match="the energy of <force law 'u' on rod> gave nan"):
        run.energy()
    on.clear()
    assert np.isfinite(run.energy().total).all()


def test_controls_of_paths_and_servos() -> None:
    mechanism = pendulum()
    mechanism.path("free", LINE, stiffness=1.0)
    mechanism.cable("pulled", LINE, stiffness=1.0, drive="force")
    sim = da.Simulation(mechanism, da.Variational(dt=0.01))
    for control, message in (({"free": 1.0}, "takes none"), ({"pulled": (1.0, 2.0)}, "one number, a tension"), ({"pulled": np.nan}, "must be finite")):
        with pytest.raises(da.ControlError, match=message):
            sim.step(control)
    sim.step({"pulled": 3.0})
    with pytest.raises(da.ModelError, match=r"no parameter 'free\.tension'"):
        sim.set_parameters({"free.tension": 1.0})
