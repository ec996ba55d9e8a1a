"""Gaps from poses alone, by formulas that the solver does not use; the broad phase; a failure that names its contact."""
from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import dalembert as da
from dalembert import zoo
from dalembert.formulations.variational.contact_engine import ContactEngine
from dalembert.zoo.quadruped import WALKING


def least_height(mechanism: da.Mechanism, trajectory: da.Trajectory) -> float:
    """Least distance of any contact point or colliding ball from the ground, over the run."""
    ground = mechanism.grounds[0]
    normal = np.asarray(ground.normal, dtype=float)
    heights = [
        trajectory.point(p.body.name, p.point) @ normal - ground.offset - p.radius for p in mechanism.contact_points
    ]
    heights += [
        trajectory.position[:, b.index] @ normal - ground.offset - b.shape.radius for b in mechanism.bodies
        if b.collide and isinstance(b.shape, da.Sphere)
    ]
    assert heights
    return float(np.min(heights))


@pytest.mark.parametrize(("make", "dt", "duration", "control"), [
    (lambda: zoo.snake(100), 0.01, 3.0, None),
    (lambda: zoo.sphere_chain(100), 0.01, 3.0, None),
    (zoo.hopper, 0.001, 2.0, zoo.hopper_turn),
    (lambda: zoo.quadruped(gait=WALKING), 0.005, 5.0, zoo.leg_controller),
], ids=["snake of 100", "chain of 100 spheres", "hopper", "quadruped"])
def test_nothing_sinks_in(make, dt, duration, control):
    mechanism = make()
    trajectory = da.Simulation(mechanism, da.Variational(dt=dt)).run(duration, control=None if control is None else control())
    assert trajectory.time[-1] == pytest.approx(duration)
    assert least_height(mechanism, trajectory) >= -1e-8


def test_a_hundred_bodies_do_not_cost_five_thousand_pairs():
    mechanism = da.Mechanism("scattered")
    mechanism.ground()
    for i in range(100):
        mechanism.body(f"ball {i}", da.Sphere(radius=0.1, mass=1.0), position=(0.3 * (i % 10), 0.3 * (i // 10), 0.2), collide=True)
    simulation = da.Simulation(mechanism, da.Variational(dt=0.01))
    engine = simulation._engine
    assert isinstance(engine, ContactEngine)
    surfaces = [g.surface for g in engine.pairs.found]
    assert sum(engine.pairs.touching.law(a, b) is not None for a, b in combinations(surfaces, 2)) == 100 * 99 // 2
    assert len(engine.pairs.near(engine.view(simulation.state.numbers).bodies["place"])) < 200


def test_long_bodies_beside_each_other_are_not_near():
    """Rods of 1 m, 0.3 m apart: the balls about them overlap, they do not. One of them flies at the next one, and is listed before they meet."""
    mechanism = da.Mechanism("rods", gravity=(0, 0, 0))
    for i in range(12):
        kind = (da.Cylinder, da.Capsule, da.Cone)[i % 3]
        mechanism.body(f"rod {i}", kind(radius=0.02, length=1.0, mass=1.0, axis="x"), position=(0, 0.3 * i, 0), collide=True)
    mechanism.start("rod 0", linear=(0, 3.0, 0))
    simulation = da.Simulation(mechanism, da.Variational(dt=0.005))
    engine = simulation._engine
    assert isinstance(engine, ContactEngine)
    assert engine.pairs.near(engine.view(simulation.state.numbers).bodies["place"]) == []
    run = simulation.run(0.15)
    contacts = run.contacts()
    struck = contacts.of("rod 0", "rod 1")
    assert struck.normal_force.max() > 0.0
    assert struck.least_gap().min() > -1e-8
    assert run.velocity[-1, 1, 1] > 0.5
    np.testing.assert_array_equal(run.velocity[-1, 4:], 0.0)


def test_a_step_that_does_not_converge_names_its_contact():
    mechanism = zoo.box_drop()
    sim = da.Simulation(mechanism, da.Variational(dt=0.01, max_iterations=1, max_halvings=0))
    with pytest.raises(da.StepFailure, match="contact furthest from its solution is"):
        sim.run(2.0)
    assert sim.time < 2.0
