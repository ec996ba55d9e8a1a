"""Gradients of runs in which drives determine the pose, of semi-implicit Euler, of coordinate maps, and by points of targets' tables."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machines import two_motors

import dalembert as da
from dalembert.gradients.validate import SMOOTH

OUTPUTS = (*SMOOTH, "force", "torque")
STEPS = 8
SHARE = np.linspace(0.0, 1.0, STEPS + 1)


def assert_right(check: da.GradientCheck, *, forward: float = 1e-9, differences: float = 1e-6) -> None:
    assert check.forward_error < forward, str(check)
    assert check.difference_error < differences, str(check)


def arm(**elbow) -> da.Mechanism:
    mechanism = da.Mechanism("arm")
    upper = mechanism.body("upper", da.Rod(length=1.0, mass=1.0, radius=0.05, axis="x"), position=(0.5, 0, 0))
    lower = mechanism.body("lower", da.Rod(length=0.8, mass=0.6, radius=0.04, axis="x"), position=(1.4, 0, 0))
    mechanism.joint("shoulder", da.Revolute(axis="z", damping=0.1, drive="motion"), "world", upper, at=(0, 0, 0))
    mechanism.joint("elbow", da.Revolute(axis="y", damping=0.2, stiffness=3.0, rest=0.2, **elbow), upper, lower, at=(1, 0, 0))
    mechanism.drag("drag", "lower", linear=0.3, angular=0.1)
    return mechanism


def swing(sim: da.Simulation) -> None:
    sim.set_velocity("lower", angular=(0.3, 0.5, 0.2))


@pytest.mark.parametrize("method", [pytest.param("bdf1", marks=pytest.mark.slow), "bdf2"])
def test_a_driven_arm(method):
    """Poses follow from targets and geometry, velocities from the formula, forces from both."""
    formulation = da.Implicit(dt=0.02, method=method, tolerance=1e-13, solver="kinematic")
    values = {"shoulder.target": 0.3 * SHARE**2, "elbow.target": 0.4 * np.sin(SHARE)}
    names = [
        "gravity", "upper.mass", "lower.inertia", "elbow.damping", "elbow.stiffness", "elbow.point_parent", "elbow.turn_child", "upper.centre_of_mass",
        "drag.linear", "lower.input", "shoulder.target", "elbow.target",
    ]
    check = da.validate_gradients(arm(drive="motion"), formulation, names, steps=STEPS, values=values, outputs=OUTPUTS, setup=swing)
    assert_right(check)


def four_bar() -> da.Mechanism:
    """A parallelogram with one driven crank, rotors and dampers in the other joints: 20 rows, of which three are redundant."""
    mechanism = two_motors()
    one = da.Mechanism("four-bar")
    for body in mechanism.bodies:
        one.body(body.name, mass=body.mass, inertia=body.inertia, position=body.position)
    one.joint("motor", da.Revolute(axis="y", drive="motion"), one.world, "left", at=(0, 0, 0))
    for name, parent, child, at in (("hinge", one.world, "right", (1, 0, 0)), ("left pin", "left", "bar", (0, 0, 0.5)), ("right pin", "right", "bar", (1, 0, 0.5))):
        one.joint(name, da.Revolute(axis="y", damping=0.3, armature=0.05), parent, child, at=at)
    return one


def test_a_driven_loop_with_redundant_rows():
    formulation = da.Implicit(dt=0.02, tolerance=1e-13, solver="kinematic", drive_weight=3.0)
    names = ["motor.target", "bar.mass", "left.inertia", "hinge.damping", "right pin.armature", "gravity", "bar.input"]
    check = da.validate_gradients(four_bar(), formulation, names, steps=STEPS, values={"motor.target": 0.3 + 0.4 * SHARE**2 - 0.3}, outputs=OUTPUTS)
    assert_right(check)


def test_the_kinematic_gradient_is_that_of_the_general_solver():
    """Poses are the same, and so is how they change."""
    found = []
    for solver in ("kinematic", "general"):
        sim = da.Simulation(four_bar(), da.Implicit(dt=0.02, solver=solver, tolerance=1e-13))
        sim.set_target("motor", lambda t: 0.5 * t * t)
        run = sim.run(0.4, tape=True)
        weights = np.zeros((len(run), 3, 3))
        weights[-1, 2] = 1.0, 0.0, 2.0
        found.append(run.vjp({"position": weights}, ["motor.target"])["motor.target"])
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    assert abs(found[0][-1]) > 0.1


@pytest.mark.parametrize("case", ["pendulum", "drives"])
def test_semi_implicit_euler(case):
    formulation = da.Implicit(dt=0.01, method="semi_implicit")
    if case == "pendulum":
        def setup(sim):
            sim.set_joint("joint 1", 0.4, rate=0.5)
            sim.set_joint("joint 2", 0.3, rate=-0.2)

        names = ["gravity", "link 1.mass", "link 2.inertia", "joint 1.damping", "joint 2.point_parent", "joint 2.turn_child", "joint 1.start", "joint 2.start_rate"]
        assert_right(da.validate_gradients(da.zoo.double_pendulum(), formulation, names, steps=5, setup=setup, outputs=OUTPUTS))
        return
    names = ["gravity", "upper.mass", "lower.inertia", "elbow.damping", "elbow.servo_stiffness", "elbow.point_parent", "drag.linear", "lower.input", "shoulder.target"]
    mechanism = arm(armature=0.05, servo=da.Servo(stiffness=5.0, damping=0.5))
    # angles of joints that have drifted apart are differentiated as if they had not: by dt^2 here
    short = da.Implicit(dt=0.002, method="semi_implicit")
    check = da.validate_gradients(mechanism, short, names, steps=STEPS, values={"shoulder.target": 0.01 * SHARE**2}, setup=swing, outputs=SMOOTH)
    assert_right(check)


@pytest.mark.slow
def test_semi_implicit_euler_with_redundant_rows():
    names = ["1 hanger.start", "1 top.start_rate", "1 upper left.mass", "1 lower right.inertia", "gravity", "1 left.damping"]
    assert_right(da.validate_gradients(da.zoo.four_bar_chain(1), da.Implicit(dt=0.01, method="semi_implicit"), names, steps=5))


@pytest.mark.parametrize("function", [None, lambda y: [y[0], 0.8 * y[0] + 0.1 * y[0] ** 2]], ids=["linear", "curved"])
def test_coordinate_maps(function):
    """Two hinges that one number moves; slopes of a user's function are differenced, and again by the forward pass."""
    mechanism = da.Mechanism("finger")
    first = mechanism.body("first", da.Rod(length=1.0, mass=1.0, radius=0.05, axis="x"), position=(0.5, 0, 0))
    second = mechanism.body("second", da.Rod(length=0.8, mass=0.6, radius=0.04, axis="x"), position=(1.4, 0, 0))
    mechanism.joint("near", da.Revolute(axis="y", damping=0.1, stiffness=2.0), "world", first, at=(0, 0, 0))
    mechanism.joint("far", da.Revolute(axis="y", damping=0.1), first, second, at=(1, 0, 0))
    given: dict[str, Any] = {"matrix": [1.0, 0.7]} if function is None else {"function": function}
    mechanism.coordinate_map("curl", ["near", "far"], **given)
    mechanism.start("curl", 0.5, rate=1.0)
    names = ["gravity", "first.mass", "second.inertia", "near.stiffness", "far.damping", "second.input"]
    check = da.validate_gradients(mechanism, da.Variational(dt=0.01, tolerance=1e-13), names, steps=4)
    assert_right(check, forward=1e-9 if function is None else 1e-6)


@pytest.mark.parametrize("formulation", [da.Variational(dt=0.01, tolerance=1e-13), da.Implicit(dt=0.01, tolerance=1e-13)], ids=["variational", "bdf2"])
def test_points_of_a_table_of_targets(formulation):
    times, points, change = np.array([0.0, 0.1, 0.2, 0.35]), np.array([0.0, 0.2, -0.1, 0.3]), np.array([0.0, 1.0, -0.5, 0.7])
    mechanism = da.Mechanism("arm")
    mechanism.body("upper", da.Rod(length=1.0, mass=1.0, radius=0.05, axis="x"), position=(0.5, 0, 0))
    mechanism.body("lower", da.Rod(length=0.8, mass=0.6, radius=0.04, axis="x"), position=(1.4, 0, 0))
    mechanism.joint("shoulder", da.Revolute(axis="y", damping=0.1), "world", "upper", at=(0, 0, 0))
    mechanism.joint("elbow", da.Revolute(axis="y", servo=da.Servo(stiffness=50.0, damping=2.0)), "upper", "lower", at=(1, 0, 0))

    def run(step: float, tape: bool = False) -> da.Trajectory:
        sim = da.Simulation(mechanism, formulation)
        sim.set_target("elbow", (times, points + step * change))
        return sim.run(0.3, tape=tape)

    taped = run(0.0, True)
    weights = np.random.default_rng(0).normal(size=taped.position.shape)
    adjoint = float(taped.vjp({"position": weights}, ["elbow.target_points"])["elbow.target_points"] @ change)
    forward = float(np.sum(weights * taped.jvp({"elbow.target_points": change})["position"]))
    ends = {k: float(np.sum(weights * run(1e-3 * k).position)) for k in (-2, -1, 1, 2)}
    difference = (8.0 * (ends[1] - ends[-1]) - (ends[2] - ends[-2])) / 12e-3
    assert abs(adjoint - forward) < 1e-9 * abs(adjoint)
    assert abs(adjoint - difference) < 1e-6 * abs(adjoint)
