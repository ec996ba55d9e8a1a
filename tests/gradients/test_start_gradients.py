"""Starts that set-up made of a mechanism: gradients by its geometry go through every joint that was set, one after the other."""
from __future__ import annotations

import numpy as np
import pytest
from pairs import TYPES

import dalembert as da

GEOMETRY = ("point_parent", "point_child", "turn_parent", "turn_child")


def leg(grounded: bool) -> da.Mechanism:
    """A trunk with a leg, free to fall or on a ball joint."""
    mechanism = da.Mechanism("leg")
    mechanism.body("trunk", mass=2.0, inertia=np.diag([0.05, 0.06, 0.07]), position=(0, 0, 1))
    mechanism.body("thigh", mass=0.7, inertia=np.diag([0.010, 0.012, 0.004]), position=(0.2, 0.1, 0.8))
    mechanism.body("shin", mass=0.5, inertia=np.diag([0.008, 0.009, 0.003]), position=(0.3, 0.1, 0.5))
    mechanism.joint("hip", da.Universal(damping=0.1), "trunk", "thigh", at=(0.1, 0.1, 0.95))
    mechanism.joint("knee", da.Revolute(axis="y", damping=0.1, stiffness=2.0), "thigh", "shin", at=(0.25, 0.1, 0.65))
    if grounded:
        mechanism.joint("base", da.Spherical(damping=0.05), "world", "trunk", at=(0, 0.05, 1.1))
    return mechanism


def bend(sim: da.Simulation) -> None:
    sim.set_joint("knee", 0.6)
    sim.set_joint("hip", (0.2, -0.3), rate=(0.4, 0.1))
    sim.set_joint("knee", 0.5)
    sim.set_velocity("trunk", linear=(0.1, 0.2, 0.3), angular=(0.5, 0.2, -0.3))


@pytest.mark.parametrize("formulation", [da.Implicit(dt=0.02, tolerance=1e-13, solver="general"), da.Variational(dt=0.02, tolerance=1e-13)], ids=["implicit", "variational"])
@pytest.mark.parametrize("grounded", [False, True], ids=["floating", "grounded"])
def test_trees_whose_joints_were_set_in_part(formulation, grounded):
    names = ["hip.point_parent", "hip.turn_child", "knee.point_child", "knee.turn_parent", "shin.centre_of_mass", "hip.start_rate"]
    found = da.validate_gradients(leg(grounded), formulation, names, steps=2, setup=bend)
    assert found.forward_error < 5e-9, str(found)
    assert found.difference_error < 1e-6, str(found)


FEW = ["universal", "helical", "spherical"]


@pytest.mark.parametrize("kind", [*FEW, *(pytest.param(kind, marks=pytest.mark.slow) for kind in sorted(set(TYPES) - {"fixed", "distance", *FEW}))])
def test_every_joint_of_a_floating_tree_can_be_set(kind):
    mechanism = da.Mechanism("pair")
    rng = np.random.default_rng(3)
    for name, at in (("first", (0, 0, 0)), ("second", (0.4, 0.1, 0.2)), ("third", (0.7, 0.3, 0.1))):
        mechanism.body(name, mass=1.0, inertia=np.diag([0.02, 0.03, 0.04]), position=at)
    mechanism.joint("joint", TYPES[kind], "second", "first", at=(0.2, 0, 0.1), frame=rng.normal(size=4))
    mechanism.joint("hinge", da.Revolute(axis="z"), "second", "third", at=(0.5, 0.2, 0.2))
    values = rng.uniform(0.1, 0.4, size=mechanism["joint"].type.freedom)

    def setup(sim: da.Simulation) -> None:
        sim.set_joint("joint", values)

    names = [f"{joint}.{what}" for joint in ("joint", "hinge") for what in GEOMETRY]
    found = da.validate_gradients(mechanism, da.Implicit(dt=0.02, method="bdf1", tolerance=1e-13, solver="general"), names, steps=1, setup=setup, forward=False)
    assert found.difference_error < 1e-6, str(found)


def frame() -> da.Mechanism:
    """A four-bar that floats."""
    mechanism = da.Mechanism("frame")
    corners = np.array([[0.0, 0, 0], [0.1, 0, 0.5], [1.0, 0, 0.7], [0.9, 0, 0]])
    names = ("left", "top", "right", "bottom")
    for i, name in enumerate(names):
        mechanism.body(name, mass=1.0 + 0.1 * i, inertia=np.diag([0.02, 0.03, 0.04]), position=0.5 * (corners[i] + corners[(i + 1) % 4]))
    for i, name in enumerate(names):
        mechanism.joint(f"hinge {i}", da.Revolute(axis="y", damping=0.1), names[i - 1], name, at=corners[i])
    return mechanism


GENERAL = da.Implicit(dt=0.02, tolerance=1e-13, solver="general")
#: changes of geometry that the plane of the four-bar allows
MOVES = {f"hinge {i}.{what}": np.array([0.1, 0.0, -0.2]) for i, what in ((0, "point_parent"), (1, "point_child"), (2, "point_parent"))}


@pytest.mark.parametrize("asked", [True, False], ids=["asked for in full", "in part"])
def test_floating_loops(asked):
    """Where its place is not asked for, it is that to which assembly took the loop, step by step."""
    mechanism = frame()
    if asked:
        mechanism.joint("place", da.Free(), "world", "bottom")

    def setup(sim: da.Simulation) -> None:
        if asked:
            sim.set_joint("place", (0.5, 0.1, 0.2, 0.1, 0.3, -0.2))
        sim.set_joint("hinge 1", 0.3)

    found = da.validate_gradients(mechanism, GENERAL, list(MOVES), steps=2, setup=setup, directions=MOVES)
    assert found.forward_error < 1e-9, str(found)
    assert found.difference_error < 1e-6, str(found)


def test_a_loop_that_was_set_more_than_once():
    """Coordinates, geometry, and sizes of bodies, which weigh in the way that assembly takes."""
    def setup(sim: da.Simulation) -> None:
        sim.set_joint("hinge 1", 0.15)
        sim.set_joint("hinge 1", 0.3)

    names = [*MOVES, "hinge 1.start", "top.inertia", "top.mass", "top.centre_of_mass"]
    directions = {**MOVES, "top.centre_of_mass": np.array([0.1, 0.0, 0.2])}
    found = da.validate_gradients(frame(), da.Variational(dt=0.02, tolerance=1e-13), names, steps=1, setup=setup, directions=directions)
    assert found.forward_error < 1e-9, str(found)
    assert found.difference_error < 1e-6, str(found)


def test_a_start_that_an_optimiser_moves():
    """Every value of it is assembled from the reference pose: the loop goes all the way with it."""
    found = da.validate_gradients(frame(), GENERAL, ["hinge 1.start"], steps=2, values={"hinge 1.start": 0.3})
    assert found.forward_error < 1e-9, str(found)
    assert found.difference_error < 1e-6, str(found)


def test_rates_and_velocities_asked_for_in_a_loop():
    def setup(sim: da.Simulation) -> None:
        sim.set_joint("hinge 1", 0.3, rate=0.4)
        sim.set_velocity("bottom", linear=(0.1, 0.2, 0.1), angular=(0.1, 0.2, 0.3))

    names = ["hinge 1.start_rate", "bottom.start_velocity", "bottom.start_angular_velocity", *MOVES, "hinge 1.start", "top.mass", "bottom.mass"]
    found = da.validate_gradients(frame(), GENERAL, names, steps=2, setup=setup, directions=MOVES)
    assert found.forward_error < 1e-9, str(found)
    assert found.difference_error < 1e-6, str(found)


@pytest.mark.slow
def test_the_opening_of_a_sphere_that_floats():
    """240 rods in loops with redundant rows, assembled 0.1 rad away from where they were made."""
    sphere, method = da.zoo.hoberman_sphere(), da.Variational(dt=0.01, tolerance=1e-12)
    opening = da.Simulation(sphere, method).coordinates("pivot 0")
    found = da.validate_gradients(sphere, method, ["pivot 0.start"], steps=1, values={"pivot 0.start": opening + 0.1}, outputs=("position", "orientation"))
    assert found.forward_error < 1e-8, str(found)
    assert found.difference_error < 1e-6, str(found)
