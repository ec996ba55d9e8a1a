"""Cones on their base, on their side, along which they roll about their tip, and on the tip itself."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da

RADIUS, LENGTH, MASS = 0.1, 0.3, 2.0
#: angle (rad) between axis and side
HALF_ANGLE = float(np.arctan(RADIUS / LENGTH))
FORMULATIONS = [da.Variational(dt=0.005), da.Implicit(dt=0.005), da.Reduced(dt=0.005)]
LEVEL = Rotation.identity()
#: turns that bring base, side and tip down, and how high the centre of mass is then
POSES = {
    "base": (LEVEL, 0.25 * LENGTH),
    "side": (Rotation.from_euler("y", 0.5 * np.pi + HALF_ANGLE), 0.75 * LENGTH * np.sin(HALF_ANGLE)),
    "tip": (Rotation.from_euler("x", np.pi), 0.75 * LENGTH),
}


def placed(on: str, place: np.ndarray, turn: Rotation, tilt: Rotation = LEVEL) -> da.Mechanism:
    """A cone at a place on a ground or a box, which are tilted."""
    mechanism = da.Mechanism(f"cone on a {on}")
    if on == "ground":
        mechanism.ground(normal=tilt.apply((0, 0, 1)), friction=1.0)
    else:
        mechanism.obstacle("table", da.Box(size=(2, 2, 0.2), mass=1.0), position=tilt.apply((0, 0, -0.1)), orientation=tilt.as_quat(scalar_first=True), friction=1.0)
    cone = da.Cone(radius=RADIUS, length=LENGTH, mass=MASS)
    mechanism.body("cone", cone, position=place, orientation=turn.as_quat(scalar_first=True), collide=True)
    return mechanism


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda one: type(one).__name__.lower())
@pytest.mark.parametrize("on", ["ground", "box"])
@pytest.mark.parametrize("pose", POSES)
def test_it_rests(formulation, on, pose):
    """Its weight is carried, and it stays: on its base by points all around, on its side by its tip and a point of its rim."""
    turn, height = POSES[pose]
    run = da.Simulation(placed(on, np.array((0, 0, height)), turn), formulation).run(0.05 if pose == "tip" else 0.3)
    contacts = run.contacts()
    assert contacts.least_gap().min() > -1e-9
    np.testing.assert_allclose(contacts.total_force()[5:-1], np.broadcast_to((0, 0, 9.81 * MASS), (len(run) - 6, 3)), atol=1e-4)
    np.testing.assert_allclose(run.position[-1], run.position[0], atol=1e-6)
    pressed = contacts.at(-1)
    points = pressed.point[np.linalg.norm(pressed.normal_force.reshape(len(pressed.point), -1), axis=1) > 1e-3]
    spread = np.linalg.matrix_rank(points - points[0], tol=1e-3)
    assert spread == {"base": 2, "side": 1, "tip": 0}[pose]


@pytest.mark.parametrize("on", ["ground", "box"])
def test_it_rolls_about_its_tip(on):
    """Small swings about the line of steepest descent: omega^2 = 5 g cos(half angle) sin(slope) / (length (1 + 5 cos^2(half angle)))."""
    slope, swing = 0.3, 0.05
    tilt = Rotation.from_euler("y", slope)
    # downhill of its tip, which lies in the origin, and turned about it
    turn = tilt * Rotation.from_euler("z", swing) * Rotation.from_euler("y", -0.5 * np.pi - HALF_ANGLE)
    mechanism = placed(on, turn.apply((0, 0, -0.75 * LENGTH)), turn, tilt)
    c = np.cos(HALF_ANGLE)
    omega = np.sqrt(5 * 9.81 * c * np.sin(slope) / (LENGTH * (1 + 5 * c * c)))
    run = da.Simulation(mechanism, da.Variational(dt=0.002)).run(0.5)
    across = run.position[:, 0] @ (0, 1, 0) / (0.75 * LENGTH * c)
    away = across / across[0]
    # the swing of a pendulum of 0.05 rad is slower by swing^2 / 16
    assert np.abs(away - np.cos(omega * (1 - swing**2 / 16) * run.time)).max() < 2e-3
    ends = run.position[:, 0] + Rotation.from_quat(run.orientation[:, 0], scalar_first=True).apply((0, 0, 0.75 * LENGTH))
    assert np.linalg.norm(ends, axis=1).max() < 1e-4
    assert run.contacts().least_gap().min() > -1e-9


def test_ends_that_stand_on_a_ground_do_not_overlap_it():
    """The largest discs too: as a circle that lies flat each counts a little lower than it is, which is no overlap."""
    for shape, height in ((da.Cone(radius=0.5, length=0.4, mass=1.0), 0.1), (da.Cylinder(radius=0.5, length=0.4, mass=1.0), 0.2)):
        mechanism = da.Mechanism("disc")
        mechanism.ground()
        mechanism.body("disc", shape, position=(0, 0, height), collide=True)
        run = da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.05)
        assert np.abs(run.position[:, 0, 2] - height).max() < 1e-9
