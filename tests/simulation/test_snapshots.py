"""A simulation runs the mechanism as it was: later changes reach neither it nor its trajectories; parameters do, by name."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da


def arm(damping: float = 0.1, mass: float = 1.0, gravity=(0.0, 0.0, -9.81)) -> da.Mechanism:
    mechanism = da.Mechanism("arm", gravity=gravity)
    mechanism.body("upper", da.Rod(length=1.0, mass=mass, radius=0.05), position=(0, 0, -0.5))
    mechanism.body("lower", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -1.5))
    mechanism.joint("shoulder", da.Revolute(axis="x"), mechanism.world, "upper", at=(0, 0, 0))
    mechanism.joint("elbow", da.Revolute(axis="x", damping=damping), "upper", "lower", at=(0, 0, -1))
    return mechanism


FORMULATIONS = [da.Variational(dt=0.01), da.Implicit(dt=0.01), da.Reduced(dt=0.01)]


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: type(f).__name__)
def test_old_trajectories_do_not_change_with_their_mechanism(formulation):
    changed, kept = arm(), arm()
    runs = []
    for mechanism in (changed, kept):
        sim = da.Simulation(mechanism, formulation)
        sim.set_joint("shoulder", 1.0)
        runs.append(sim.run(0.3))
    changed.gravity = (0.0, 0.0, 5.0)
    changed.wrench("upper", force=(0.0, 3.0, 0.0))
    changed.body("extra", da.Sphere(radius=0.1, mass=1.0))
    for name in ("velocity", "angular_velocity"):
        np.testing.assert_array_equal(getattr(runs[0], name), getattr(runs[1], name))
    np.testing.assert_array_equal(runs[0].energy().total, runs[1].energy().total)
    np.testing.assert_array_equal(runs[0].joint("elbow").force, runs[1].joint("elbow").force)


def test_what_was_added_later_is_named():
    mechanism = arm()
    sim = da.Simulation(mechanism, da.Variational(dt=0.01))
    mechanism.body("extra", da.Sphere(radius=0.1, mass=1.0))
    mechanism.joint("hand", da.Revolute(axis="x"), "lower", "extra", at=(0, 0, -2))
    assert sim.position.shape == (2, 3)
    assert sim.run(0.05).bodies == ("upper", "lower")
    for ask in (lambda: sim.set_joint("hand", 0.1), lambda: sim.coordinates("hand"), lambda: sim.rates("hand"), lambda: sim.set_target("hand", 0.0)):
        with pytest.raises(da.ModelError, match="after this simulation was made"):
            ask()
    with pytest.raises(da.ModelError, match="extra"):
        sim.set_velocity("extra", linear=(1, 0, 0))


def test_gravity_set_on_the_mechanism_later_is_for_the_next_simulation():
    mechanism = arm()
    sim, other = da.Simulation(mechanism, da.Variational(dt=0.01)), da.Simulation(arm(), da.Variational(dt=0.01))
    mechanism.gravity = (0.0, 0.0, 0.0)
    np.testing.assert_array_equal(sim.run(0.2).position, other.run(0.2).position)


def test_bodies_cannot_be_changed_behind_a_simulation():
    mechanism = arm()
    with pytest.raises(ValueError, match="read-only"):
        mechanism["upper"].inertia[0, 0] = 3.0


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: type(f).__name__)
def test_parameters_between_runs_are_those_of_a_mechanism_built_with_them(formulation):
    sim, other = da.Simulation(arm(), formulation), da.Simulation(arm(damping=0.4, mass=2.0, gravity=(0.0, 1.0, -3.0)), formulation)
    before = sim.run(0.1)
    energy = before.energy().total.copy()
    other.run(0.1)
    sim.set_joint("shoulder", 0.7)
    other.set_joint("shoulder", 0.7)
    sim.set_joint("elbow", 0.2)
    other.set_joint("elbow", 0.2)
    # the rod's own inertia belongs to its mass
    inertia = arm(mass=2.0)["upper"].inertia
    sim.set_parameters({"elbow.damping": 0.4, "upper.mass": 2.0, "upper.inertia": inertia, "gravity": (0.0, 1.0, -3.0)})
    np.testing.assert_allclose(sim.run(0.5).position, other.run(0.5).position, atol=1e-9)
    np.testing.assert_array_equal(before.energy().total, energy)
    assert sim.parameters()["elbow.damping"].value == 0.4
    assert sim.parameters()["elbow.damping"].unit == "N m s/rad"


def test_parameters_keep_pose_velocity_and_time():
    sim = da.Simulation(arm(), da.Variational(dt=0.01))
    sim.set_joint("shoulder", 1.0)
    sim.run(0.5)
    position, velocity, time = sim.position, sim.velocity, sim.time
    sim.set_parameters({"upper.mass": 3.0})
    np.testing.assert_array_equal(sim.position, position)
    np.testing.assert_allclose(sim.velocity, velocity, atol=1e-10)
    assert sim.time == time


@pytest.mark.parametrize(("values", "message"), [
    ({"elbow.dampng": 0.2}, "no parameter 'elbow.dampng'.*elbow.damping"),
    ({"upper.mass": -1.0}, "mass"),
    ({"elbow.damping": -0.1}, "damping"),
    ({"elbow.damping": float("nan")}, "finite"),
    ({"elbow.damping": "much"}, "must be"),
    ({"gravity": (1.0, 2.0)}, "gravity"),
    ({"elbow.damping": 0.3, "nobody.mass": 1.0}, "nobody.mass"),
])
def test_bad_parameters_change_nothing(values, message):
    sim = da.Simulation(arm(), da.Variational(dt=0.01))
    sim.run(0.1)
    state, parameters = sim.state, {n: np.array(p.value) for n, p in sim.parameters().items()}
    with pytest.raises(da.ModelError, match=message):
        sim.set_parameters(values)
    assert sim.state == state
    for name, value in parameters.items():
        np.testing.assert_array_equal(sim.parameters()[name].value, value)


def test_the_formulation_is_read_only():
    sim = da.Simulation(arm(), da.Variational(dt=0.01))
    with pytest.raises(AttributeError):
        sim.formulation = da.Variational(dt=0.1)  # type: ignore[misc]
