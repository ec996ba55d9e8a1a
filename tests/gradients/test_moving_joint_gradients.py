"""Gradients with joints that joint coordinates alone know: splines and sequences; steps, readings, forces and starts."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from trees import curve, surface

import dalembert as da

#: the bars: adjoint against forward, and against differences of the run
EXACT, SMOOTH = 1e-9, 1e-6
MOTION = ("position", "orientation", "velocity", "angular_velocity", "coordinate", "rate", "kinetic", "potential")
FORCES = ("force", "torque")
AGAIN: dict[str, Any] = dict(position=(0.0, 0.2, 0.1), orientation=(1, 0.2, 0, 0))
#: joints with laws, where they start and how fast; splines away from the ends of their pieces, where forward passes reach into two of them
KINDS = {
    "sequence": (
        lambda: da.CompositeJoint(
            da.Revolute(axis="x", stiffness=3, damping=0.1, armature=0.05), da.Prismatic(axis="y", stiffness=20, damping=0.3, rest=0.05, armature=0.1), **AGAIN),
        (0.5, 0.1), (1.0, 0.4)),
    "ball": (
        lambda: da.CompositeJoint(da.Prismatic(axis="x", stiffness=30, damping=0.2), da.Spherical(stiffness=(1, 2, 3), damping=0.2, rest=(0.1, 0.2, -0.1)), **AGAIN),
        (0.1, 0.4, 0.5, -0.3), (0.2, 1.0, -1.0, 2.0)),
    "curve": (lambda: da.SplineCurve(curve().frames, stiffness=3.0, damping=0.3, rest=0.2, armature=0.1), 1.4, 0.7),
    "surface": (lambda: da.SplineSurface(surface().frames, stiffness=(2, 3), damping=0.2, rest=(0.1, 0.3)), (1.4, 0.4), (0.5, -0.4)),
}
METHODS = {m: da.Reduced(dt=0.005, method=m, tolerance=1e-13) for m in ("bdf1", "bdf2", "sdirk2", "pareschi_russo")}


def hanging(joint: da.Joint, backwards: bool, **laws) -> da.Mechanism:
    """Two bodies askew, one on a joint and the other on it by a hinge; ``backwards``: the tree reaches the joint's parent through its child."""
    m = da.Mechanism("hanging", gravity=(0.5, -0.3, -9.81))
    m.body("a", da.Box(size=(0.2, 0.3, 0.5), mass=2.0), position=(0.3, 0.1, -0.4), orientation=(1, 0.1, 0.3, -0.2))
    m.body("b", da.Box(size=(0.1, 0.2, 0.6), mass=1.0), position=(0.3, 0.2, -1.0), orientation=(1, 0.2, 0.1, 0))
    hinge = da.Revolute(axis="x", **{"stiffness": 2.0, "damping": 0.1, "armature": 0.05, **laws})
    if backwards:
        m.joint("hinge", hinge, m.world, "b", at=(0.3, 0.1, -0.7))
        m.joint("joint", joint, "a", "b", at=(0.1, 0.2, -0.3), frame=(1, 0.3, -0.2, 0.4))
    else:
        m.joint("joint", joint, m.world, "a", at=(0.1, 0.2, -0.3), frame=(1, 0.3, -0.2, 0.4))
        m.joint("hinge", hinge, "b", "a", at=(0.3, 0.1, -0.7))
    return m


def moving(value, rate):
    def setup(sim: da.Simulation) -> None:
        sim.set_joint("joint", value, rate=rate)
        sim.set_joint("hinge", 0.3, rate=-1.0)

    return setup


def assert_right(check: da.GradientCheck, differences: float = SMOOTH) -> None:
    assert check.forward_error < EXACT, str(check)
    assert check.difference_error < differences, str(check)


def check_of(kind: str, formulation: da.Reduced, backwards: bool, outputs: tuple[str, ...], steps: int = 3, **more) -> da.GradientCheck:
    make, value, rate = KINDS[kind]
    return da.validate_gradients(hanging(make(), backwards), formulation, setup=moving(value, rate), steps=steps, outputs=outputs, **more)


@pytest.mark.parametrize(("kind", "backwards"), [("curve", False), ("ball", True)])
def test_all_numbers(kind, backwards):
    assert_right(check_of(kind, METHODS["bdf2"], backwards, MOTION))
    assert_right(check_of(kind, METHODS["bdf2"], backwards, FORCES))


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [MOTION, FORCES], ids=["motion", "forces"])
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds(kind, method, backwards, outputs):
    assert_right(check_of(kind, METHODS[method], backwards, outputs))


@pytest.mark.parametrize(
    ("kind", "method"),
    [("curve", "rk4"), pytest.param("ball", "rk4", marks=pytest.mark.slow), pytest.param("surface", "rk4", marks=pytest.mark.slow),
     pytest.param("curve", "semi_implicit", marks=pytest.mark.slow), pytest.param("sequence", "linearly_implicit", marks=pytest.mark.slow)])
def test_explicit_methods(kind, method):
    formulation = da.Reduced(dt=0.005, method=method)
    for outputs in (MOTION, FORCES):
        assert_right(check_of(kind, formulation, True, outputs))


@pytest.mark.slow
def test_charts():
    names = ["a.mass", "a.inertia", "joint.stiffness", "joint.rest", "joint.damping", "joint.point_parent", "joint.turn_child", "joint.start", "joint.start_rate", "gravity"]
    for backwards in (False, True):
        for outputs in (MOTION, FORCES):
            assert_right(check_of("ball", da.Reduced(dt=0.005, rotations="zyx", tolerance=1e-13), backwards, outputs, parameters=names))


def test_drives_and_servos():
    """A prescribed motion, whose accelerations forces are read with, and a servo."""
    joint = da.CompositeJoint(da.Revolute(axis="x", drive="motion"), da.Revolute(axis="y", servo=da.Servo(stiffness=20.0, damping=1.0, target=0.3)))
    steps = 5
    times = np.arange(steps + 1) * METHODS["bdf2"].dt
    targets = np.column_stack([0.3 + np.sin(3.0 * times), 0.3 + 0.2 * times])
    for outputs in (MOTION, FORCES):
        check = da.validate_gradients(
            hanging(joint, False, drive="force"), METHODS["bdf2"], ["joint.target", "hinge.input", "joint.servo_stiffness", "joint.point_parent", "a.mass", "b.input"],
            setup=lambda sim: sim.set_joint("joint", (0.3, 0.1)), steps=steps, outputs=outputs, values={"joint.target": targets},
            inputs={"hinge": 0.3 * np.ones(steps)},
        )
        assert_right(check)


def test_beside_loops():
    """Another joint closes a loop: motion and energy are differentiated, forces of joints cannot be read there."""
    make, _, rate = KINDS["curve"]
    m = hanging(make(), False)
    m.joint("rod", da.Distance(), m.world, "b", at=((0.3, 1.4, -0.9), (0.3, 0.2, -1.2)))
    names = ["a.mass", "b.mass", "joint.stiffness", "joint.point_parent", "hinge.point_child", "joint.start", "joint.start_rate", "hinge.damping", "gravity"]
    check = da.validate_gradients(m, METHODS["bdf2"], names, setup=lambda sim: sim.set_joint("joint", 0.2, rate=rate), steps=3, outputs=MOTION)
    assert_right(check)
    sim = da.Simulation(m, METHODS["bdf2"])
    sim.set_joint("joint", 0.2, rate=rate)
    run = sim.run(0.02, tape=True)
    with pytest.raises(da.GradientError, match="loops, springs, couplings or maps meet joints without rows"):
        run.vjp({"force": np.zeros((5, 3, 3))}, ["gravity"])
    assert "force" not in run.jvp({"gravity": (0, 0, 1)})


def test_velocities_of_bodies_and_energy_of_a_loose_one():
    """A start by velocities of bodies, with a body that no joint holds."""
    make, _, _ = KINDS["sequence"]
    m = hanging(make(), False)
    m.body("c", mass=0.5, inertia=np.diag([0.1, 0.2, 0.15]), position=(2, 0, 0))

    def setup(sim: da.Simulation) -> None:
        sim.set_joint("joint", (0.5, 0.1))
        sim.set_velocity("b", linear=(0.3, -0.2, 0.1), angular=(0.5, 1.0, -0.7))
        sim.set_velocity("c", linear=(0.3, 0.2, 0.1), angular=(0.5, 1.0, -0.7))

    names = ["c.start_velocity", "c.start_angular_velocity", "c.inertia", "a.mass", "joint.turn_parent", "joint.start", "joint.start_rate", "hinge.point_child"]
    assert_right(da.validate_gradients(m, METHODS["bdf2"], names, setup=setup, steps=3, outputs=MOTION))
