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
