"""Loops are closed whatever the bodies weigh and however little they resist turning."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da


def ring(seed: int, inertias: tuple[float, ...] | None) -> da.Simulation:
    """Three to five links in a row between two points of the world."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 6))
    points = np.cumsum(0.3 * rng.normal(size=(count + 1, 3)), axis=0)
    mechanism = da.Mechanism("ring")
    last = mechanism.world
    for i in range(count):
        inertia = 10.0 ** rng.uniform(-14.0, -1.0) if inertias is None else inertias[i % len(inertias)]
        link = mechanism.body(f"link {i}", mass=1.0, inertia=inertia * np.eye(3), position=0.5 * (points[i] + points[i + 1]))
        mechanism.joint(f"joint {i}", da.Spherical() if i % 2 else da.Universal(), last, link, at=points[i])
        last = link
    mechanism.joint("close", da.Spherical(), mechanism.world, last, at=points[-1])
    return da.Simulation(mechanism, da.Reduced(dt=0.005))


def closes(sim: da.Simulation) -> bool:
    try:
        sim.set_joint("joint 0", (0.15, 0.1))
    except da.AssemblyError:
        return False
    return True


def test_loops_of_bodies_that_turn_for_nothing_are_closed():
    """Of their small radii of gyration the way there would turn them by whole turns, and end where nothing closes."""
    able = [seed for seed in range(30) if closes(ring(seed, (0.01,)))]
    assert len(able) > 20
    stuck = [seed for seed in able if not closes(ring(seed, None))]
    assert len(stuck) <= 1, stuck


@pytest.mark.parametrize("inertia", [1e-6, 1e-9, 1e-12, 1e-15])
def test_a_coupler_without_inertia_goes_where_any_other_goes(inertia):
    def four_bar(inertia: float) -> da.Simulation:
        mechanism = da.Mechanism("four-bar")
        points = [np.array(point) for point in ((0.0, 0.0, 0.0), (0.0, 0.0, 0.2), (0.5, 0.0, 0.5), (0.6, 0.0, 0.0))]
        for i, name in enumerate(("crank", "coupler", "rocker")):
            mechanism.body(name, mass=1.0, inertia=(inertia if name == "coupler" else 0.01) * np.eye(3), position=0.5 * (points[i] + points[i + 1]))
        mechanism.joint("j0", da.Revolute(axis="y"), mechanism.world, "crank", at=points[0])
        mechanism.joint("j1", da.Spherical(), "crank", "coupler", at=points[1])
        mechanism.joint("j2", da.Spherical(), "coupler", "rocker", at=points[2])
        mechanism.joint("j3", da.Revolute(axis="y"), mechanism.world, "rocker", at=points[3])
        sim = da.Simulation(mechanism, da.Reduced(dt=0.005))
        sim.set_joint("j0", 1.3)
        return sim

    assert np.allclose(four_bar(inertia).position, four_bar(0.01).position, atol=1e-8)
