"""Violent motions, whose steps are divided: the energy does not rise by more than a symplectic step swings it."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import dalembert as da
from dalembert.mechanism.mechanism import Body


def whirling_chain(rng: np.random.Generator) -> da.Mechanism:
    """Two to five links on hinges and ball joints that turn at up to tens of rad/s."""
    chain = da.Mechanism("whirling chain", gravity=(0, 0, -9.81) if rng.random() < 0.5 else (0, 0, 0))
    last, end = chain.world, np.zeros(3)
    for i in range(int(rng.integers(2, 6))):
        length, way = rng.uniform(0.1, 0.5), rng.normal(size=3)
        way *= length / np.linalg.norm(way)
        mass = 10 ** rng.uniform(-0.7, 0.7)
        inertia = np.diag(mass * length**2 / 12 * rng.uniform(0.7, 1.3, 3))
        body = chain.body(f"link {i}", mass=mass, inertia=inertia, position=end + way / 2)
        joint = da.Revolute(axis=rng.normal(size=3)) if rng.random() < 0.6 else da.Spherical()
        chain.joint(f"joint {i}", joint, last, body, at=end)
        chain.start(f"joint {i}", rate=rng.uniform(3, 25) * rng.normal(size=joint.freedom))
        last, end = body, end + way
    if rng.random() < 0.3:
        chain.spring("spring", chain.world, last, at=(end + 0.2 * rng.normal(size=3), end), stiffness=10 ** rng.uniform(0, 3.5))
    return chain


def whirling_four_bar(rng: np.random.Generator) -> da.Mechanism:
    """A crank, a coupler and a rocker, with up to two links on the end of the rocker."""
    while True:
        crank, coupler, rocker = rng.uniform(0.1, 0.4), rng.uniform(0.5, 0.8), rng.uniform(0.4, 0.7)
        a, ground = crank * np.array([np.cos(1), 0, np.sin(1)]), np.array([0.6, 0, 0])
        apart = np.linalg.norm(ground - a)
        if abs(coupler - rocker) < apart < coupler + rocker:
            break
    along = (ground - a) / apart
    c = (coupler**2 - rocker**2 + apart**2) / (2 * apart)
    b = a + c * along + np.sqrt(coupler**2 - c**2) * np.array([-along[2], 0, along[0]])
    machine = da.Mechanism("whirling four-bar")

    def rod(name: str, first: np.ndarray, second: np.ndarray) -> Body:
        length = float(np.linalg.norm(second - first))
        return machine.body(name, mass=length * rng.uniform(0.5, 3), inertia=np.eye(3) * length**3 / 12, position=(first + second) / 2)

    bodies = rod("crank", np.zeros(3), a), rod("coupler", a, b), rod("rocker", ground, b)
    places = (("j0", machine.world, bodies[0], np.zeros(3)), ("j1", bodies[0], bodies[1], a), ("j2", machine.world, bodies[2], ground), ("j3", bodies[1], bodies[2], b))
    for name, parent, child, at in places:
        machine.joint(name, da.Revolute(axis="y"), parent, child, at=at)
    last, tip = bodies[2], b
    for i in range(int(rng.integers(0, 3))):
        way, length = rng.normal(size=3) * (1, 0, 1), rng.uniform(0.1, 0.4)
        way *= length / np.linalg.norm(way)
        link = machine.body(f"link {i}", mass=rng.uniform(0.1, 1), inertia=np.eye(3) * length**2 * 0.05, position=tip + way / 2)
        machine.joint(f"k{i}", da.Revolute(axis="y"), last, link, at=tip)
        last, tip = link, tip + way
    return machine


def violent(seed: int) -> tuple[da.Simulation, float]:
    """A random mechanism in motion, and its step."""
    rng = np.random.default_rng(seed)
    machine = (whirling_four_bar if seed % 3 == 0 else whirling_chain)(rng)
    dt = float(rng.choice([0.003, 0.005, 0.01, 0.015]))
    sim = da.Simulation(machine, da.Variational(dt=dt))
    if seed % 3 == 0:
        sim.set_joint("j0", rate=float(rng.uniform(5, 30)))
    return sim, dt


def rise(run: da.Trajectory) -> float:
    """By which part of the energy that moves about the energy rises above that of the start."""
    energy = run.energy()
    return float((energy.total.max() - energy.total[0]) / max(energy.kinetic.max(), np.ptp(energy.potential)))


#: of 200, those whose energy rose most, by up to 90 %, when whole steps came again at once
WORST = (12, 13, 15, 47, 60, 82, 159, 183)


@pytest.mark.parametrize("seed", WORST)
def test_divided_steps_do_not_raise_the_energy(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("error", da.EnergyWarning)
        sim, dt = violent(seed)
        run = sim.run(150 * dt, progress=False)
    assert run.substeps.max() > 1
    assert rise(run) < 0.03


@pytest.mark.slow
def test_divided_steps_of_many_mechanisms():
    """One in a hundred swings by more than 5 %: links on stiff springs, which turn by a third of a radian in a step. What rises by more than 10 % says so."""
    rises, divided = [], 0
    for seed in range(1000, 1400):
        sim, dt = violent(seed)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            run = sim.run(150 * dt, progress=False)
        divided += int(run.substeps.max() > 1)
        rises.append(rise(run))
        assert rises[-1] < 0.11 or any(issubclass(one.category, da.EnergyWarning) for one in said), (seed, rises[-1])
    assert divided > 100
    assert np.sum(np.array(rises) > 0.05) <= 4, np.argsort(rises)[-5:] + 1000


def test_whole_steps_come_again():
    """Parts become fewer by and by, and then steps are whole."""
    sim, dt = violent(192)
    run = sim.run(150 * dt, progress=False)
    divided = np.flatnonzero(run.substeps > 1)
    assert 0 < len(divided) < 100
    falls = run.substeps[1:-1] / np.maximum(run.substeps[2:], 1)
    assert falls.max() <= 2.0  # never from many parts to one at once


def test_divided_runs_are_the_same_in_parts():
    (whole, dt), (parts, _) = violent(12), violent(12)
    assert whole.run(40 * dt, progress=False).substeps.max() > 1
    for _ in range(8):
        parts.run(5 * dt, progress=False)
    np.testing.assert_array_equal(parts.position, whole.position)


def test_a_slow_motion_is_not_divided():
    """A chain that hangs nearly still has no kinetic energy to speak of, and a light link under a heavy load whips: both keep whole steps."""
    still = da.Simulation(da.zoo.pendulum(3), da.Variational(dt=0.01))
    assert still.run(1.0, progress=False).substeps.max() == 1
    hung = da.Mechanism("hung")
    light = hung.body("light", mass=1e-3, inertia=1e-6 * np.eye(3), position=(0, 0, -0.1))
    heavy = hung.body("heavy", da.Sphere(radius=0.1, mass=10.0), position=(0, 0, -0.3))
    hung.joint("top", da.Spherical(), hung.world, light, at=(0, 0, 0))
    hung.joint("bottom", da.Spherical(), light, heavy, at=(0, 0, -0.2))
    hung.start("bottom", rate=(0.3, 0.1, 0.0))
    run = da.Simulation(hung, da.Variational(dt=0.01)).run(2.0, progress=False)
    assert run.substeps.max() == 1
