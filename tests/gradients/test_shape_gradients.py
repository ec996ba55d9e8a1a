"""Gradients by sizes and places of shapes that touch one another, and through where they touch: adjoint, forward sensitivities and differences of the run."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import dalembert as da
from dalembert.formulations.engine import Formulation
from dalembert.mechanism.shapes import Shape

VARIATIONAL = da.Variational(dt=0.01, tolerance=1e-13)
BDF2 = da.Implicit(dt=0.01, method="bdf2", tolerance=1e-13, solver="general")
#: adjoint against forward, and against differences of the run
EXACT, NEAR = 1e-9, 1e-4
UPRIGHT, TURNED, TILTED = (1.0, 0.0, 0.0, 0.0), (0.99, 0.02, 0.12, 0.05), (0.9, 0.3, 0.2, 0.1)
pytestmark = pytest.mark.filterwarnings("ignore::dalembert.GradientWarning")


class Scene(NamedTuple):
    """A body at a place on a fixed shape; ``names``: sizes of interest; ``step``: of the differences; ``flat``: it slides without tumbling."""

    body: Shape
    place: tuple[float, float, float]
    orientation: tuple[float, float, float, float]
    floor: Shape
    names: tuple[str, ...]
    step: float = 1e-4
    flat: bool = False


BALL = da.Sphere(radius=0.08, mass=0.5)
EGG = da.Ellipsoid(semi_axes=(0.1, 0.15, 0.2), mass=1.0)
DRUM = da.Cylinder(radius=0.1, length=0.3, mass=1.0, axis="x")
ROLLER = da.Cylinder(radius=0.05, length=0.4, mass=0.5, axis="y")
PILL = da.Capsule(radius=0.05, length=0.4, mass=0.5, axis="y")
CONE = da.Cone(radius=0.15, length=0.4, mass=1.0, axis="x")
BOX = da.Box(size=(0.3, 0.2, 0.1), mass=0.5)
TABLE = da.Box(size=(1.0, 1.0, 0.2), mass=1.0)
SCENES = {
    "ball on ellipsoid": Scene(BALL, (0.02, 0.03, 0.2805), UPRIGHT, EGG, ("a.radius", "floor.semi_axes")),
    "ball on cylinder": Scene(BALL, (0.02, 0.05, 0.175), UPRIGHT, DRUM, ("a.radius", "floor.radius")),
    "ball on rim": Scene(BALL, (0.2, 0.05, 0.157), UPRIGHT, DRUM, ("a.radius", "floor.radius", "floor.length")),
    "ellipsoids": Scene(da.Ellipsoid(semi_axes=(0.1, 0.08, 0.12), mass=0.5), (0.02, 0.03, 0.3), TILTED, EGG, ("a.semi_axes", "floor.semi_axes")),
    "capsule on ellipsoid": Scene(da.Capsule(radius=0.05, length=0.4, mass=0.5, axis="x"), (0.02, 0.03, 0.2506), TURNED, EGG, ("a.radius", "floor.semi_axes")),
    "ellipsoid on face": Scene(EGG, (0.02, 0.03, 0.201), TILTED, TABLE, ("a.semi_axes", "floor.size"), 1e-3),
    "ellipsoid on edge": Scene(EGG, (0.55, 0.03, 0.18), TILTED, TABLE, ("a.semi_axes", "floor.size")),
    "cylinder on face": Scene(DRUM, (0.02, 0.03, 0.151), TILTED, TABLE, ("a.radius", "a.length", "floor.size")),
    "cylinder lies": Scene(DRUM, (0.02, 0.03, 0.1005), UPRIGHT, TABLE, ("a.radius", "a.length", "floor.size"), flat=True),
    "cylinders cross": Scene(ROLLER, (0.02, 0.03, 0.1505), UPRIGHT, DRUM, ("a.radius", "a.length", "floor.radius", "floor.length"), 1e-5),
    "cylinders' rims": Scene(ROLLER, (0.02, 0.2, 0.232), TILTED, DRUM, ("a.radius", "a.length", "floor.radius"), 1e-5),
    "cylinder on edge": Scene(DRUM, (0.55, 0.03, 0.09), TILTED, TABLE, ("a.radius", "a.length", "floor.size")),
    "capsule on cylinder": Scene(PILL, (0.02, 0.03, 0.1505), UPRIGHT, DRUM, ("a.radius", "a.length", "floor.radius", "floor.length")),
    "capsules cross": Scene(PILL, (0.02, 0.03, 0.1505), UPRIGHT, da.Capsule(radius=0.1, length=0.3, mass=1.0, axis="x"), ("a.radius", "a.length", "floor.radius")),
    "ball on the side of a cone": Scene(BALL, (0.08, 0.0, 0.17), UPRIGHT, CONE, ("a.radius", "floor.radius", "floor.length")),
    "ellipsoid on the side of a cone": Scene(EGG, (0.04, 0.02, 0.306), TILTED, CONE, ("a.semi_axes", "floor.radius", "floor.length"), 1e-5),
    "ball on the rim of a cone": Scene(BALL, (-0.14, 0.03, 0.218), UPRIGHT, CONE, ("a.radius", "floor.radius", "floor.length")),
    "cone on face": Scene(CONE, (0.02, 0.03, 0.1115), TILTED, TABLE, ("a.radius", "a.length", "floor.size")),
    "side of a cone on edge": Scene(CONE, (0.5, 0.03, 0.1115), TILTED, TABLE, ("a.radius", "a.length", "floor.size"), 1e-5),
    "sides of a cone and a cylinder cross": Scene(ROLLER, (0.02, 0.03, 0.159), UPRIGHT, CONE, ("a.radius", "floor.radius", "floor.length"), 1e-5),
    "box on edge": Scene(BOX, (0.55, 0.03, 0.086), TILTED, TABLE, ("a.size", "floor.size")),
}


def check(name: str, formulation: Formulation) -> da.GradientCheck:
    scene = SCENES[name]
    m = da.Mechanism(name)
    m.obstacle("floor", scene.floor, position=(0, 0, -0.1 if scene.floor is TABLE else 0.0), friction=0.3)
    m.body("a", scene.body, position=scene.place, orientation=np.array(scene.orientation) / np.linalg.norm(scene.orientation), collide=True)

    def setup(sim: da.Simulation) -> None:
        if scene.flat:
            sim.set_velocity("a", linear=(0.8, 0.3, -0.4), angular=(0, 0, -1.0))
        else:
            sim.set_velocity("a", linear=(0.2, 0.1, -0.3), angular=(0.3, 0.5, -1.0))

    names = [*scene.names, "floor.position", "a.inertia", "a.start_velocity"]
    return da.validate_gradients(m, formulation, names, steps=8, setup=setup, step=scene.step)


def assert_right(found: da.GradientCheck) -> None:
    assert found.forward_error < EXACT, str(found)
    assert found.difference_error < NEAR, str(found)


@pytest.mark.parametrize("name", ["ellipsoid on edge", "box on edge", "ellipsoid on the side of a cone"])
def test_some_shapes_on_one_another(name):
    assert_right(check(name, VARIATIONAL))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_shapes_on_one_another(name):
    assert_right(check(name, VARIATIONAL))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_shapes_on_one_another_in_stages(name):
    """Where the method gives way to backward Euler, and when, is an event too: differences that reach across one say nothing."""
    found = check(name, BDF2)
    assert found.forward_error < EXACT, str(found)
    assert found.difference_error < NEAR or name in ("ball on ellipsoid", "capsule on cylinder", "capsules cross"), str(found)


@pytest.mark.slow
@pytest.mark.parametrize("formulation", [VARIATIONAL, BDF2], ids=["variational", "bdf2"])
def test_a_box_that_slides_on_the_corner_of_another(formulation):
    """Its points of contact are where planes of both meet. Along the face: across it, how impulses are shared would follow the last digits."""
    m = da.Mechanism("on a corner")
    m.obstacle("floor", da.Box(size=(0.4, 0.4, 0.2), mass=1.0), position=(0, 0, -0.1), friction=0.3)
    m.body("a", BOX, position=(0.1, 0.13, 0.0503), orientation=(1, 0, 0, 0.1), collide=True)
    along = dict.fromkeys(("a.size", "floor.size", "floor.position"), (0.1, 0.05, 0.0))
    found = da.validate_gradients(
        m, formulation, [*along, "a.start_velocity"], steps=8, directions={**along, "a.start_velocity": (1.0, 0.5, 0.0)}, rounding=True,
        setup=lambda sim: sim.set_velocity("a", linear=(0.5, 0.2, -0.1), angular=(0, 0, -1.0)),
    )
    assert found.agrees(EXACT, NEAR), str(found)
