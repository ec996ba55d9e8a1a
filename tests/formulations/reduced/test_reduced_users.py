"""Joint coordinates as users meet them: random trees, reversed joints, uneven masses, long steps, fast spins, drives, files."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import dalembert as da

KINDS = (
    lambda axis: da.Revolute(axis=axis), lambda axis: da.Prismatic(axis=axis, stiffness=30.0), lambda axis: da.Spherical(), lambda axis: da.Universal(),
    lambda axis: da.Cylindrical(axis=axis), lambda axis: da.Helical(axis=axis, pitch=0.2), lambda axis: da.Planar(normal=axis), lambda axis: da.Fixed(),
)


def floating_tree(seed: int, bodies: int) -> da.Mechanism:
    """Bodies joined at random, in free flight, some joints read from child to parent."""
    rng = np.random.default_rng(seed)
    mechanism = da.Mechanism("floating tree", gravity=(0, 0, 0))
    for i in range(bodies):
        mechanism.body(f"body {i}", da.Box(size=tuple(rng.uniform(0.1, 0.4, 3)), mass=float(rng.uniform(0.5, 2.0))), position=0.5 * rng.normal(size=3), orientation=rng.normal(size=4))
        if i:
            ends = (f"body {int(rng.integers(i))}", f"body {i}")
            kind = KINDS[int(rng.integers(len(KINDS)))](rng.normal(size=3))
            mechanism.joint(f"joint {i}", kind, *(ends if rng.random() < 0.5 else ends[::-1]), at=0.5 * rng.normal(size=3))
    for body in mechanism.bodies:
        mechanism.start(body.name, linear=0.5 * rng.normal(size=3), angular=rng.normal(size=3))
    return mechanism


def drift(values: np.ndarray) -> float:
    return float(np.abs(values - values[0]).max())


@settings(max_examples=12)
@given(seed=st.integers(0, 10_000), bodies=st.integers(1, 6))
def test_momentum_and_energy_of_random_trees_at_second_order(seed, bodies):
    mechanism = floating_tree(seed, bodies)
    found = []
    for dt in (0.004, 0.002, 0.001):
        run = da.Simulation(mechanism, da.Reduced(dt=dt, tolerance=1e-12), energy_bound=None).run(0.2)
        assert run.constraint_violation().max() < 1e-12
        momentum = run.momentum()
        found.append([drift(momentum.linear), drift(momentum.angular), drift(run.energy().total)])
    first, _, last = np.array(found)
    assert np.all((first > 10.0 * last) | (last < 1e-9)), found


@pytest.mark.parametrize("joint", [
    da.Revolute(axis=(1, 2, 2), stiffness=3.0, damping=0.1), da.Spherical(stiffness=2.0, damping=0.1), da.Cylindrical(axis="x", damping=0.1), da.Helical(axis="x", pitch=0.3),
], ids=lambda joint: type(joint).__name__)
def test_a_joint_may_be_built_from_child_to_parent(joint):
    """The motion is the same; coordinates are those of the inverse, and forces those on the other body."""
    runs = []
    for ends in (("first", "second"), ("second", "first")):
        mechanism = da.Mechanism("pair")
        mechanism.body("first", da.Box(size=(0.3, 0.2, 0.1), mass=1.0), position=(0.2, 0, 0))
        mechanism.body("second", da.Box(size=(0.2, 0.3, 0.1), mass=0.7), position=(0.6, 0.1, 0))
        mechanism.joint("hinge", da.Revolute(axis="y"), mechanism.world, "first")
        mechanism.joint("joint", joint, *ends, at=(0.4, 0, 0))
        sim = da.Simulation(mechanism, da.Reduced(dt=0.002, tolerance=1e-12))
        sim.set_velocity("second", angular=(1.0, 2.0, -1.0), linear=(0.1, 0.2, 0.3))
        runs.append(sim.run(0.3))
    np.testing.assert_allclose(runs[0].position, runs[1].position, atol=1e-8)
    sizes = [np.linalg.norm(run.joint("joint").force, axis=1) for run in runs]
    np.testing.assert_allclose(sizes[0], sizes[1], atol=1e-5)


@pytest.mark.parametrize("masses", [(1e3, 1e-3, 1.0), (1e-3, 1e3, 1e-3)])
def test_masses_of_a_million_to_one(masses):
    mechanism, before = da.Mechanism("uneven"), None
    for i, mass in enumerate(masses):
        mechanism.body(f"link {i}", da.Rod(length=1.0, radius=0.05, mass=mass, axis="x"), position=(i + 0.5, 0, 0))
        mechanism.joint(f"joint {i}", da.Spherical() if i == 1 else da.Revolute(axis="y"), before or mechanism.world, f"link {i}", at=(i, 0, 0))
        before = mechanism.bodies[-1]
    runs = [da.Simulation(mechanism, formulation).run(0.3) for formulation in (da.Reduced(dt=0.001), da.Variational(dt=0.001))]
    assert runs[0].substeps.max() == 1
    np.testing.assert_allclose(runs[0].position, runs[1].position, atol=1e-4)


@pytest.mark.parametrize("dt", [1e-8, 1e-6, 0.5, 10.0])
def test_steps_of_any_length_are_solved(dt):
    run = da.Simulation(da.zoo.pendulum(3, "spherical"), da.Reduced(dt=dt), energy_bound=None).run(20 * dt)
    assert run.constraint_violation().max() < 1e-11
    assert np.isfinite(run.velocity).all()
    assert np.linalg.norm(run.position, axis=2).max() < 3.0


@pytest.mark.parametrize("method", ["bdf2", "sdirk2"])
@pytest.mark.parametrize("rate", [50.0, 250.0, 700.0])
def test_fast_spins_keep_count_of_their_turns(rate, method):
    """Seven radians in a step: divided, where a rotation vector could not tell how often it went round."""
    sim = da.Simulation(da.zoo.free_body(), da.Reduced(dt=0.01, method=method), energy_bound=None)
    sim.set_velocity(sim.mechanism.bodies[0].name, angular=(rate, 0.0, 0.0))
    run = sim.run(0.1)
    first, last = (Rotation.from_quat(run.orientation[k, 0], scalar_first=True) for k in (0, -1))
    assert (last.inv() * first * Rotation.from_rotvec((0.1 * rate, 0, 0))).magnitude() < 1e-9
    assert (run.substeps.max() > 1) == (rate > 250.0)


def test_a_spin_beyond_all_steps_is_named_and_changes_nothing():
    sim = da.Simulation(da.zoo.free_body(), da.Reduced(dt=0.01))
    name = sim.mechanism.bodies[0].name
    sim.set_velocity(name, angular=(0.0, 1e6, 0.0))
    before = sim.state
    with pytest.raises(da.StepFailure, match=f"{name!r} turns at 1e\\+06 rad/s"):
        sim.run(0.1)
    assert sim.state == before
    sim.set_velocity(name, angular=(0.0, 1.0, 0.0))
    assert len(sim.run(0.1)) == 11


@pytest.mark.parametrize("rotations", ["exponential", "xyz"])
def test_driven_balls_follow_and_say_what_it_takes(rotations):
    mechanism = da.Mechanism("driven")
    mechanism.body("box", da.Box(size=(0.3, 0.2, 0.1), mass=1.0), position=(0.2, 0, 0))
    mechanism.joint("ball", da.Spherical(drive="motion"), mechanism.world, "box")
    found = []
    for formulation in (da.Reduced(dt=0.005, rotations=rotations), da.Variational(dt=0.005)):
        sim = da.Simulation(mechanism, formulation)
        sim.set_target("ball", lambda t: (0.5 * np.sin(t), t * t, 0.3 * t))
        found.append(sim.run(0.5).joint("ball"))
    np.testing.assert_allclose(found[0].coordinates[-1], (0.5 * np.sin(0.5), 0.25, 0.15), atol=1e-12)
    np.testing.assert_allclose(found[0].torque[10:], found[1].torque[10:], atol=1e-4)


def test_servos_inputs_and_wrenches_push_as_in_implicit():
    mechanism = da.Mechanism("pushed")
    for i in range(2):
        mechanism.body(f"link {i}", da.Rod(length=1.0, radius=0.05, mass=1.0, axis="x"), position=(0.5 + i, 0, 0))
    mechanism.joint("shoulder", da.Revolute(axis="y", servo=da.Servo(stiffness=1e4, damping=100.0, bound=12.0)), mechanism.world, "link 0")
    mechanism.joint("elbow", da.Revolute(axis="y", drive="force"), "link 0", "link 1", at=(1, 0, 0))
    ends = []
    for formulation in (da.Reduced(dt=0.001), da.Implicit(dt=0.001)):
        sim = da.Simulation(mechanism, formulation)
        sim.set_target("shoulder", lambda t: 0.3 * t)
        sim.set_input("elbow", lambda t: 2.0 * np.sin(5.0 * t))
        sim.set_input("link 1", (0.0, 0.0, 1.0, 0.0, 0.0, 0.0))
        run = sim.run(0.5)
        assert run.joint("shoulder").actuation.min() == pytest.approx(-12.0)
        ends.append([run.joint(name).coordinates[-1] for name in ("shoulder", "elbow")])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-4)


def test_a_state_of_another_formulation_is_refused():
    reduced, implicit = (da.Simulation(da.zoo.double_pendulum(), f) for f in (da.Reduced(dt=0.01), da.Implicit(dt=0.01)))
    with pytest.raises(da.ModelError, match="Implicit"):
        reduced.restore(implicit.state)


@pytest.mark.parametrize("options", [{"method": "magic"}, {"dt": -1.0}, {"tolerance": 0.0}, {"rotations": "xxy"}, {"max_iterations": 0}])
def test_options_that_make_no_sense_are_named(options):
    with pytest.raises(da.ModelError, match="Reduced"):
        da.Reduced(**{"dt": 0.01, **options})
