"""The interior point direction by finite differences: along it, residuals and products must go where they are aimed at."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.contact.cone import complementarity
from dalembert.contact.events import prepare
from dalembert.contact.limits import limit_products
from dalembert.contact.nodes import Encounter
from dalembert.formulations.implicit import encounter as encounters
from dalembert.formulations.implicit.contact_engine import ContactEngine as StageEngine
from dalembert.formulations.implicit.equations import Stage
from dalembert.formulations.implicit.step import aggregate_bdf, guess
from dalembert.formulations.maximal.knot import evaluate_knot
from dalembert.formulations.variational import contact_step as variational
from dalembert.formulations.variational.contact_engine import ContactEngine
from dalembert.formulations.variational.equations import Interval, first_guess, residual
from dalembert.linalg import clear, factor, solve
from dalembert.solvers.interior_point import open_all

DT, H, SPEED = 0.01, 0.009, 0.3


def scene_with_everything() -> da.Mechanism:
    rng = np.random.default_rng(4)
    mechanism = da.Mechanism("everything")
    mechanism.ground(normal=(0.1, -0.2, 1.0), friction=0.6)
    mechanism.body("box", da.Box(size=(0.4, 0.3, 0.2), mass=2.0), position=(0, 0, 0.3), orientation=(1, 0.1, 0.2, 0.05), collide=True)
    mechanism.body("ball", da.Sphere(radius=0.1, mass=0.5), position=(0.05, 0.0, 0.58), collide=True)
    mechanism.body("can", da.Cylinder(radius=0.1, length=0.3, mass=1.0), position=(1.0, 0, 0.3), orientation=(1, 0.3, 0.2, 0.1), collide=True)
    mechanism.body("arm", da.Rod(radius=0.02, length=0.5, mass=0.3), position=(0, 1, 1), orientation=rng.normal(size=4))
    mechanism.joint("elbow", da.Revolute(axis=(1, 2, 0), limits=(-0.01, 0.2), friction=0.4), "can", "arm", at=(0.5, 0.5, 0.6))
    mechanism.joint("ball joint", da.Spherical(limits=((-0.05, 0.1), None, (None, 0.08)), friction=(0.1, 0.0, 0.3)), mechanism.world, "arm", at=(0, 1.2, 1.2))
    for body in mechanism.bodies:
        mechanism.start(body.name, linear=rng.normal(size=3), angular=rng.normal(size=3))
    return mechanism


@pytest.mark.parametrize("cone", ["exact", "linear"])
@pytest.mark.parametrize("kappa", [0.01, -1e-12])
def test_direction(cone, kappa):
    simulation = da.Simulation(scene_with_everything(), da.Variational(dt=DT, cone=cone, cone_edges=6))
    engine = simulation._engine
    assert isinstance(engine, ContactEngine)
    engine.overlaps(simulation.state.numbers)
    model, work, scene = engine.model, engine.graph.work, engine.scene
    interval = Interval(model, work, DT, H, 0.0)
    encounter = Encounter(interval, scene, DT)
    rng = np.random.default_rng(1)
    evaluate_knot(model, work)
    first_guess(model, work)
    work.bodies["v"][:-1] += rng.normal(size=(4, 3))
    work.bodies["w"][:-1] += rng.normal(size=(4, 3))
    work.joints["mu"] = 0.1 * rng.normal(size=work.joints["mu"].shape)
    residual(interval)
    prepare(model, work, scene, DT, H, SPEED)
    check_direction(variational, encounter, rng, cone, kappa)


@pytest.mark.parametrize("cone", ["exact", "linear"])
@pytest.mark.parametrize("kappa", [0.01, -1e-12])
def test_direction_of_a_stage(cone, kappa):
    simulation = da.Simulation(scene_with_everything(), da.Implicit(dt=DT, cone=cone, cone_edges=6))
    engine = simulation._engine
    assert isinstance(engine, StageEngine)
    engine.overlaps(simulation.state.numbers)
    model, work, scene, own = engine.model, engine.graph.work, engine.scene, engine.own
    state = engine.view(simulation.state.numbers.copy())
    encounter = Encounter(Stage(model, work, own, DT, 0.0), scene, DT)
    rng = np.random.default_rng(1)
    encounters.carry_on(work, state, DT)
    prepare(model, work, scene, DT, H, SPEED)
    aggregate_bdf(state, own, 1)
    guess(state, own, 1)
    own.bodies["v"] += rng.normal(size=(4, 3))
    own.bodies["w"] += 0.5 * rng.normal(size=(4, 4))
    work.joints["mu"] = 0.1 * rng.normal(size=work.joints["mu"].shape)
    check_direction(encounters, encounter, rng, cone, kappa)


def check_direction(kind, encounter, rng, cone, kappa):
    """Along the direction of one kind of step problem residuals and products go where they are aimed at."""
    step, scene = encounter.step, encounter.scene
    model, work = step.model, step.work
    scene.contacts["awake"] = scene.contacts["used"]
    scene.limits["awake"] = np.isfinite(scene.limits["end"])
    scene.contacts["gamma0"] = rng.uniform(0.1, 1.0, len(scene.contacts)) * scene.contacts["weight"]
    scene.contacts["beta0"] = 0.1 * rng.normal(size=(len(scene.contacts), 2))
    kind.interior_point.residual(encounter)
    open_all(scene, DT, SPEED, False)

    def state() -> tuple[np.ndarray, np.ndarray]:
        assert kind.interior_point.residual(encounter)[1]
        awake = scene.contacts[scene.contacts["awake"] != 0]
        parts = [work.bodies["r"][:-1].ravel(), *(at["r"][: int(joint["rows"])] for joint, at in zip(model.joints, work.joints))]
        parts.append(awake["gap"] / DT - awake["bound"] - awake["s"])
        values = [complementarity(c)[0] for c in awake] + [limit_products(l)[0] for l in scene.limits]
        return np.concatenate(parts).copy(), np.array(values)

    before, products = state()
    clear(work.blocks, work.schedule)
    kind.jacobian(step)
    kind.nodes.jacobian(encounter)
    assert factor(work.blocks, work.schedule) == -1
    kind.load_vector(step, 0.0)
    kind.nodes.load(encounter, kappa, False, 0.0)
    solve(work.blocks, work.schedule, work.vector)
    kind.nodes.directions(encounter, kappa, False, 1.0, 0.0)
    kind.turn(step)
    far = 1e-6
    kind.interior_point.move(encounter, far)
    new_residual, new_products = state()
    np.testing.assert_allclose((new_residual - before) / far, -before, atol=2e-4 * np.abs(before).max())
    if kappa > 0.0:
        counts = [2 if cone == "exact" else 8] * int((scene.contacts["awake"] != 0).sum())
        counts += [limit_products(l)[1] for l in scene.limits]
        aims = kappa * np.array(counts) - products
    else:
        aims = -0.99 * products
    np.testing.assert_allclose((new_products - products) / far, aims, rtol=1e-3, atol=1e-4 * np.abs(products).max())
