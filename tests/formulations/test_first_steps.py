"""Ordinary mechanisms that once had no first step: trees with springs across them, weak dry friction, feasible velocities."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da


def chain(rng: np.random.Generator) -> da.Mechanism:
    """Three bodies in a row on spherical joints, with a damped spring between two of them."""
    mechanism = da.Mechanism("chain")
    bodies = [mechanism.body(f"body {i}", mass=1.0, inertia=0.01 * np.eye(3), position=rng.normal(size=3)) for i in range(3)]
    for i, body in enumerate(bodies):
        other = bodies[i - 1] if i else mechanism.world
        mechanism.joint(f"ball {i}", da.Spherical(), *((other, body) if i == 0 or rng.random() < 0.5 else (body, other)), at=rng.normal(size=3))
    a, b = (bodies[i] for i in rng.choice(3, 2, replace=False))
    mechanism.spring("spring", a, b, at=(a.position + 0.1 * rng.normal(size=3), b.position + 0.1 * rng.normal(size=3)), stiffness=10.0, damping=1.0)
    return mechanism


def held(rng: np.random.Generator) -> da.Mechanism:
    """Bodies on a ball and on a fixed joint to the world, a planar joint to one of them, an undamped spring."""
    mechanism = da.Mechanism("held")
    bodies = [mechanism.body(f"body {i}", mass=1.0, inertia=0.01 * np.eye(3), position=rng.normal(size=3)) for i in range(3)]
    places = rng.permutation(3)
    mechanism.joint("ball", da.Spherical(), mechanism.world, bodies[places[0]], at=rng.normal(size=3))
    mechanism.joint("fixed", da.Fixed(), mechanism.world, bodies[places[1]], at=rng.normal(size=3))
    mechanism.joint("plane", da.Planar(normal=rng.normal(size=3)), bodies[places[int(rng.integers(2))]], bodies[places[2]], at=rng.normal(size=3))
    a, b = (bodies[i] for i in rng.choice(3, 2, replace=False))
    mechanism.spring("spring", a, b, at=(a.position + 0.1 * rng.normal(size=3), b.position + 0.1 * rng.normal(size=3)), stiffness=100.0)
    return mechanism


@pytest.mark.parametrize("formulation", [da.Variational(dt=0.01), da.Implicit(dt=0.01), da.Implicit(dt=0.01, method="bdf1")], ids=str)
@pytest.mark.parametrize("build", [chain, held])
def test_springs_across_a_tree_leave_it_regular(build, formulation):
    """A body that a joint holds already must not be counted on to hold the next one, whatever a spring does to the order."""
    for seed in range(40):
        run = da.Simulation(build(np.random.default_rng(seed)), formulation, energy_bound=None).run(3 * formulation.dt, progress=False)
        assert run.constraint_violation().max() < 1e-9


@pytest.mark.parametrize("formulation", [da.Variational, da.Implicit, da.Reduced])
@pytest.mark.parametrize(("mass", "friction", "dt"), [(1.0, 1e-5, 1e-4), (1.0, 1e-9, 1e-2), (1000.0, 0.01, 1e-4), (1e-3, 1e-10, 1e-3)])
def test_weak_friction_with_a_limit(formulation, mass, friction, dt):
    """A slide with next to no friction runs into its end, and keeps sliding back with the friction that it has."""
    mechanism = da.Mechanism("slide", gravity=(0.0, 0.0, 0.0))
    body = mechanism.body("body", mass=mass, inertia=0.01 * mass * np.eye(3))
    mechanism.joint("slide", da.Prismatic(axis="x", limits=(-0.1, 10 * 0.3 * dt), friction=friction, restitution=0.5), mechanism.world, body)
    sim = da.Simulation(mechanism, formulation(dt=dt))
    sim.set_joint("slide", 0.0, rate=0.3)
    run = sim.run(25 * dt, progress=False)
    joint = run.joint("slide")
    assert joint.rates[-1] == pytest.approx(-0.15, rel=1e-3)
    assert joint.coordinates.max() < 10 * 0.3 * dt + 1e-8
    assert joint.shares["friction"][-5] == pytest.approx(friction, rel=1e-3)


def test_a_velocity_that_the_joints_allow_is_taken():
    """Beside a planar joint that has nothing to do with it, and for heavy and light bodies in one mechanism."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        mechanism = da.Mechanism("two")
        names = ("first", "second", "third")
        bodies = [mechanism.body(name, mass=10.0 ** rng.uniform(-2, 2), inertia=0.01 * np.eye(3), position=rng.normal(size=3)) for name in names]
        mechanism.joint("universal", da.Universal(), mechanism.world, bodies[0], at=rng.normal(size=3), frame=rng.normal(size=4))
        mechanism.joint("plane", da.Planar(normal=rng.normal(size=3)), mechanism.world, bodies[1], at=rng.normal(size=3), frame=rng.normal(size=4))
        mechanism.joint("ball", da.Spherical(), bodies[0], bodies[2], at=rng.normal(size=3))
        sim = da.Simulation(mechanism, da.Variational(dt=0.01))
        sim.set_joint("universal", rate=rng.normal(size=2))
        linear = sim.velocity[0]
        sim = da.Simulation(mechanism, da.Variational(dt=0.01))
        sim.set_velocity("first", linear=linear)
        assert np.abs(sim.velocity[0] - linear).max() < 1e-7 * (1.0 + np.abs(linear).max())


def test_a_servo_at_its_bound_pushes_evenly_from_the_first_step_on():
    """Half a kick at the start, whole ones after it: with whole ones from the start, all speeds were half a step ahead."""
    mechanism = da.Mechanism("slide", gravity=(0, 0, 0))
    body = mechanism.body("body", mass=2.0, inertia=np.eye(3))
    mechanism.joint("rail", da.Prismatic(axis="x", servo=da.Servo(stiffness=1e4, damping=1.0, bound=6.0)), mechanism.world, body)
    sim = da.Simulation(mechanism, da.Variational(dt=0.01))
    sim.set_target("rail", 10.0)
    rail = sim.run(0.2).joint("rail")
    time = np.arange(21) * 0.01
    assert np.allclose(rail.rates, 3.0 * time, rtol=0.0, atol=1e-12)
    assert np.allclose(rail.coordinates, 1.5 * time**2, rtol=0.0, atol=1e-12)


def test_a_start_that_joints_strain_is_divided():
    """Links that turn by half a radian in the first step: whole, it raised the energy by 2 % (it is looked at as those after it are)."""
    from test_divided_energy import rise, violent

    sim, dt = violent(105)
    run = sim.run(2 * dt, progress=False)
    assert run.substeps[1] > 1
    assert rise(run) < 0.005


@pytest.mark.parametrize("method", ["bdf2", "sdirk2", "pareschi_russo"])
def test_what_rests_without_weight_stays(method):
    """Velocities that are rounding and nothing else do not count as such that do not fit the joints."""
    mechanism = da.Mechanism("at rest", gravity=(0, 0, 0))
    body = mechanism.body("body", mass=1.7, inertia=0.025 * np.eye(3), position=(0.96, -0.35, -0.07), orientation=(1.67, -1.37, -0.3, 0.22))
    other = mechanism.body("other", mass=1.5, inertia=0.02 * np.eye(3), position=(-0.13, 0.61, 0.0))
    mechanism.joint("plate", da.Rectangular(friction=(1e-5, 5e-4)), mechanism.world, body, at=(0.93, -0.44, -0.04), frame=(-0.53, 1.5, 1.61, -0.12))
    mechanism.joint("guide", da.Prismatic(bearing=da.Bearing(friction=0.08, radius=0.12, length=0.5)), body, other, at=(0.09, 0.31, -0.07))
    run = da.Simulation(mechanism, da.Implicit(dt=2e-4, method=method)).run(4e-3)
    assert run.substeps.max() == 1
    assert np.abs(run.velocity).max() < 1e-9
