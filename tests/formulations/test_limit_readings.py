"""What is read at knots where joints meet their ends: what rests on its end answers a blow elsewhere, and that is no force that lasts."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da


def arm(seed: int, restitution: float, stiffness: float) -> da.Mechanism:
    """Three links in a row, light and heavy ones, with ends that they fall onto; the last joint has a spring."""
    rng = np.random.default_rng(seed)
    mechanism = da.Mechanism("arm")
    before = mechanism.world
    for i in range(3):
        place = np.array([0.3 * i, 0.0, 0.1 * i])
        body = mechanism.body(f"link {i}", mass=float(10.0 ** rng.uniform(-1, 1)), inertia=0.02 * np.eye(3), position=place + np.array([0.15, 0.0, 0.0]))
        spring = stiffness if i == 2 else 0.0
        joint = da.Revolute(axis="y", limits=(-0.3, 0.05), restitution=restitution, stiffness=spring, damping=0.01 * spring)
        mechanism.joint(f"joint {i}", joint, before, body, at=place)
        before = body
    return mechanism


@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("stiffness", [0.0, 100.0])
def test_rates_and_energies_where_ends_are_met(restitution, stiffness):
    """Nothing puts energy in: neither what a simulation says at each of its knots nor energies just after them may rise; rates are those of coordinates."""
    for seed in (1, 6, 8, 9):
        sim = da.Simulation(arm(seed, restitution, stiffness), da.Variational(dt=0.002), energy_bound=None)
        rng = np.random.default_rng(seed + 100)
        for i in range(3):
            sim.set_joint(f"joint {i}", rate=3.0 * rng.normal())
        begin = sim.state
        run = sim.run(0.15, progress=False)
        sim.restore(begin)
        seen, energy = [], []
        for _ in range(len(run) - 1):
            seen.append([sim.rates(f"joint {i}")[0] for i in range(3)])
            energy.append(sim.energy())
            sim.step()
        moves = run.energy().kinetic.max()
        assert np.diff(energy).max() < 0.03 * moves
        assert np.diff(run.energy_after().total).max() < 0.01 * moves
        rates = np.stack([np.diff(run.joint(f"joint {i}").coordinates) for i in range(3)], axis=1) / 0.002
        seen = np.array(seen)[1:]
        lower, upper = np.minimum(rates[:-1], rates[1:]), np.maximum(rates[:-1], rates[1:])
        assert np.maximum(lower - seen, seen - upper).max() < 0.05 * np.abs(rates).max()


def test_rates_beside_a_ball_joint_that_meets_its_ends():
    """Ends push along the rotation vector, whose components are no axes: with the blow read as torques about these, the hinge was off by 7.4 of 9.9 rad/s."""
    mechanism = da.Mechanism("ball and hinge", gravity=(0, 0, 0))
    mechanism.body("arm", position=(0.235, 1.41, -0.31), orientation=(-0.686, -0.375, -0.533, -0.0609), mass=1.17, inertia=np.diag((0.0257, 0.0112, 0.0157)))
    mechanism.body("hand", position=(-1.16, 0.0519, -0.62), orientation=(1.04, 0.653, -0.236, -0.561), mass=0.966, inertia=np.diag((0.00712, 0.00941, 0.00376)))
    ball = da.Spherical(limits=((-0.095, 0.0829), (-0.0771, 0.0495), (-0.028, 0.0971)))
    mechanism.joint("ball", ball, mechanism.world, "arm", at=(0.195, 1.36, -0.274), frame=(0.998, -0.36, -0.0162, 0.482))
    mechanism.joint("hinge", da.Revolute(axis=(0.509, -0.139, 0.352)), "hand", "arm", at=(-0.308, 0.673, -0.48), frame=(-1.7, -0.251, -0.642, 1.04))
    dt = 0.009 / 8
    sim = da.Simulation(mechanism, da.Variational(dt=dt))
    sim.set_joint("ball", rate=(1.23, 1.96, -4.56))
    sim.set_joint("hinge", rate=2.51)
    run = sim.run(36 * dt, progress=False)
    assert (np.abs(run.joint("ball").shares["limit"]) > 1e3).sum(axis=1).max() == 3
    changes = np.diff(run.joint("hinge").coordinates) / dt
    rates, lower, upper = run.joint("hinge").rates[1:-1], np.minimum(changes[:-1], changes[1:]), np.maximum(changes[:-1], changes[1:])
    assert np.maximum(lower - rates, rates - upper).max() < 1e-5
