"""Rolling and sliding in `Variational`: second order while nothing strikes or stops, and energy without drift."""
from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import dalembert as da


def order(errors: list[float]) -> float:
    """Of errors at halved steps."""
    return float(np.log2(errors[-2] / errors[-1]))


def ball_on_turntable(dt: float, duration: float) -> tuple[float, float]:
    """Largest distance (m) from the closed form, and by how much its circle grew: a ball that rolls on a disk runs on a circle with 2/7 of the disk's rate."""
    rate, radius, start, speed = 3.0, 0.05, np.array([0.5, 0.0]), np.array([0.0, 0.3])
    m = da.Mechanism("turntable")
    m.body("table", da.Cylinder(radius=2.0, length=0.1, mass=1e6, axis="z"), position=(0, 0, -0.05), collide=True)
    m.joint("axle", da.Revolute(axis="z"), m.world, "table", at=(0, 0, -0.05))
    m.body("ball", da.Sphere(radius=radius, mass=1e-3), position=(*start, radius), collide=True)
    m.contact_pair("table", "ball", friction=1.0)
    m.start("axle", rate=rate)
    sim = da.Simulation(m, da.Variational(dt=dt))
    slip = rate * np.array([-start[1], start[0]]) - speed
    sim.set_velocity("ball", linear=(*speed, 0.0), angular=(slip[1] / radius, -slip[0] / radius, 0.0))
    run = sim.run(duration)
    place, own = run.position[:, m.bodies.index(m["ball"]), :2], 2.0 / 7.0 * rate
    centre = start + np.array([-speed[1], speed[0]]) / own
    d, t = start - centre, own * run.time[:, None]
    expected = centre + np.cos(t) * d + np.sin(t) * np.array([-d[1], d[0]])
    sizes = np.linalg.norm(place - centre, axis=1)
    return float(np.abs(place - expected).max()), float(sizes[-1] / sizes[0] - 1.0)


def test_a_ball_on_a_turntable():
    """By the rows of the knot its circle grew as explicit Euler's, by 0.7 % in 2 s at 10 ms."""
    found = [ball_on_turntable(dt, 2.0) for dt in (0.016, 0.008, 0.004)]
    assert order([error for error, _ in found]) > 1.9
    assert found[-1][0] < 1e-5
    assert max(abs(growth) for _, growth in found) < 2e-6


def rolling_disk(dt: float, duration: float) -> da.Trajectory:
    """A thin disk that rolls and wobbles without slipping."""
    radius, thickness, tilt = 0.3, 1e-3, 0.3
    m = da.Mechanism("disk")
    m.ground(friction=5.0)
    c, s = np.cos(tilt), np.sin(tilt)
    turn = np.array([[1.0, 0, 0], [0, c, -s], [0, s, c]])
    m.body(
        "disk", da.Cylinder(radius=radius, length=thickness, mass=1.0, axis="y"), position=(0, 0, radius * c + 0.5 * thickness * s),
        orientation=(np.cos(0.5 * tilt), np.sin(0.5 * tilt), 0, 0), collide=True,
    )
    sim, spin = da.Simulation(m, da.Variational(dt=dt)), np.array([0.0, 12.0, 0.0])
    lowest = turn @ (0.0, -0.5 * thickness, -radius)
    sim.set_velocity("disk", linear=-np.cross(turn @ spin, lowest), angular=spin)
    return sim.run(duration)


def test_a_rolling_disk():
    """By the rows of the knot it gained 9e-4 of its energy in 6 s at 1 ms."""
    energy = rolling_disk(0.001, 6.0).energy().total
    assert np.abs(energy / energy[0] - 1.0).max() < 1e-6
    ends = [rolling_disk(dt, 2.0).position[-1, 0] for dt in (0.008, 0.004, 0.002, 0.001)]
    assert order([float(np.abs(b - a).max()) for a, b in pairwise(ends)]) > 1.9


def tippe_top(dt: float, duration: float) -> da.Trajectory:
    """A ball with its weight off its middle, which slides and spins: the direction in which it slides turns."""
    m = da.Mechanism("top")
    m.ground(friction=0.2)
    m.body(
        "top", mass=0.02, inertia=np.diag([8e-6, 8e-6, 7e-6]), position=(0, 0, 0.03 - 0.005 * np.cos(0.5)), orientation=(np.cos(0.25), np.sin(0.25), 0, 0),
    )
    m.contact_point("top", point=(0, 0, 0.005), radius=0.03)
    sim = da.Simulation(m, da.Variational(dt=dt))
    sim.set_velocity("top", linear=(0.3, 0.1, 0), angular=(0, 5.0, 60.0))
    return sim.run(duration)


def test_a_slide_whose_direction_turns():
    runs = [tippe_top(dt, 0.1) for dt in (0.001, 0.0005, 0.00025, 0.000125)]
    contacts = runs[-1].contacts()
    friction = contacts.friction_force
    assert np.linalg.norm(friction, axis=1) == pytest.approx(0.2 * contacts.normal_force, rel=1e-6)  # it slides all the time
    assert np.ptp(np.unwrap(np.arctan2(friction[:, 1], friction[:, 0]))) > 0.2
    ends = [np.concatenate([run.position[-1, 0], run.velocity[-1, 0] / 10.0]) for run in runs]
    assert order([float(np.abs(b - a).max()) for a, b in pairwise(ends)]) > 1.9


def test_what_stops_stays():
    """A block that friction brings to rest does not turn back, and loses all of its energy but what its rest keeps."""
    m = da.Mechanism("block")
    m.ground(friction=0.4)
    m.body("block", da.Box(size=(0.2, 0.2, 0.1), mass=1.0), position=(0, 0, 0.05), collide=True)
    for dt in (0.02, 0.01, 0.003):
        sim = da.Simulation(m, da.Variational(dt=dt))
        sim.set_velocity("block", linear=(1.0, 0.3, 0.0))
        run = sim.run(0.6)
        along = run.position[:, 0, :2] @ np.array([1.0, 0.3]) / np.hypot(1.0, 0.3)
        assert np.diff(along).min() > -1e-9
        assert np.diff(run.energy_after().kinetic).max() < 1e-9
        assert np.linalg.norm(run.velocity[-1, 0]) < 1e-6
        assert along[-1] == pytest.approx(1.09 / (2.0 * 0.4 * 9.81), rel=2.0 * dt)
