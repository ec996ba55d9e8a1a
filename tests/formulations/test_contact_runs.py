"""Runs with contacts, limits and dry friction: gaps by an oracle of their own, energy, linear cost in the graph, bad input."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert import zoo
from dalembert.contact.features import corners


@pytest.fixture(params=[da.Variational, da.Implicit], ids=["variational", "implicit"])
def formulation(request):
    return request.param


def lowest_corner(trajectory: da.Trajectory, mechanism: da.Mechanism) -> np.ndarray:
    """(N,) height of the lowest corner of all boxes, from poses alone."""
    lowest = np.full(len(trajectory), np.inf)
    for body in mechanism.bodies:
        assert body.shape is not None
        R = Rotation.from_quat(trajectory.orientation[:, body.index], scalar_first=True).as_matrix()
        points = trajectory.position[:, body.index, None] + np.einsum("nij,kj->nki", R, corners(body.shape))
        lowest = np.minimum(lowest, points[..., 2].min(axis=1))
    return lowest


@pytest.mark.parametrize("seed", range(6))
def test_tumbling_boxes_stay_above_the_ground(formulation, seed):
    rng = np.random.default_rng(seed)
    mechanism = zoo.box_drop(orientation=rng.normal(size=4))
    mechanism.start("box", linear=(2, 0, 0), angular=4 * rng.normal(size=3))
    trajectory = da.Simulation(mechanism, formulation(dt=0.01)).run(4.0)
    assert lowest_corner(trajectory, mechanism).min() > -1e-9
    energy = trajectory.energy_after().total
    assert energy.max() < energy[0] * 1.001


def test_boxes_in_a_heap(formulation):
    rng = np.random.default_rng(1)
    mechanism = da.Mechanism("heap")
    mechanism.ground()
    for i in range(5):
        mechanism.body(f"box {i}", da.Box(size=(0.2, 0.15, 0.1), mass=1.0), position=(*rng.uniform(-0.1, 0.1, 2), 0.3 + 0.3 * i), orientation=rng.normal(size=4), collide=True)
    trajectory = da.Simulation(mechanism, formulation(dt=0.01)).run(3.0)
    assert lowest_corner(trajectory, mechanism).min() > -1e-9
    assert trajectory.contacts().gap.min() > -1e-8


@pytest.mark.parametrize("make", [lambda: zoo.snake(20), lambda: zoo.sphere_chain(20), lambda: zoo.contact_cylinder(20)], ids=["snake", "spheres", "cylinder"])
def test_chains_on_the_ground(formulation, make):
    trajectory = da.Simulation(make(), formulation(dt=0.01)).run(3.0)
    assert trajectory.contacts().gap.min() > -1e-8
    assert trajectory.constraint_violation().max() < 1e-9


def test_the_hopper_turns_once_in_the_air_and_stands(formulation):
    trajectory = da.Simulation(zoo.hopper(), formulation(dt=0.001)).run(2.0, control=zoo.hopper_turn())
    assert trajectory.contacts().gap.min() > -1e-8
    assert trajectory.position[:, 0, 2].max() > 1.0
    ball = trajectory.orientation[:, 0]
    assert ball[-1, 0] * ball[0, 0] < -0.999  # the other quaternion of the same attitude: one full turn
    assert np.abs(ball[:, 1] - ball[:, 2]).max() < 1e-6  # about (1, 1, 0)
    assert np.abs(trajectory.position[-1] - trajectory.position[-20]).max() < 1e-2


def test_the_hopper_stands_after_its_turn_at_long_steps_too():
    trajectory = da.Simulation(zoo.hopper(), da.Variational(dt=0.01)).run(3.0, control=zoo.hopper_turn())
    ball = trajectory.orientation[:, 0]
    assert ball[-1, 0] * ball[0, 0] < -0.999
    assert trajectory.contacts().gap.min() > -1e-8
    assert np.abs(trajectory.velocity[-1]).max() < 0.2


def test_the_quadruped_walks(formulation):
    from dalembert.zoo.quadruped import WALKING

    trajectory = da.Simulation(zoo.quadruped(gait=WALKING), formulation(dt=0.005)).run(5.0, control=zoo.leg_controller())
    trunk = trajectory.position[:, 0]
    assert trunk[-1, 0] > 2.0
    assert trunk[:, 2].min() > 0.25
    assert trajectory.contacts().gap.min() > -1e-8


def pendulum(formulation, **laws) -> da.Simulation:
    mechanism = da.Mechanism("limited pendulum")
    mechanism.body("rod", da.Rod(length=1.0, radius=0.02, mass=1.0), position=(0, 0, -0.5))
    mechanism.joint("hinge", da.Revolute(axis="x", **laws), mechanism.world, "rod")
    return da.Simulation(mechanism, formulation(dt=0.01))


def test_limits_stop_a_pendulum(formulation):
    sim = pendulum(formulation, limits=(-0.5, None))
    sim.set_joint("hinge", 0.4)
    trajectory = sim.run(3.0)
    assert trajectory.joint("hinge").coordinates.min() > -0.5 - 1e-9
    sim = pendulum(formulation, limits=(-0.2, 0.5))
    sim.set_joint("hinge", 0.4)
    angle = sim.run(10.0).joint("hinge").coordinates
    assert angle.min() > -0.2 - 1e-9
    assert angle.min() < -0.19


def test_limits_bounce_with_restitution(formulation):
    sim = pendulum(formulation, limits=(0.0, None), restitution=1.0)
    sim.set_joint("hinge", 0.5)
    angle = sim.run(5.0).joint("hinge").coordinates
    assert angle.min() > -1e-9
    assert angle[250:].max() == pytest.approx(0.5, abs=0.01)


def test_dry_friction_holds_and_brakes(formulation):
    torque = 0.5 * 9.81 * np.sin(0.3)
    sim = pendulum(formulation, friction=1.01 * torque)
    sim.set_joint("hinge", 0.3)
    trajectory = sim.run(2.0)
    assert np.abs(trajectory.joint("hinge").coordinates - 0.3).max() < 1e-7
    assert trajectory.joint("hinge").actuation[-2] == pytest.approx(torque, rel=1e-6)
    mechanism = da.Mechanism("slider", gravity=(0, 0, 0))
    mechanism.body("cart", da.Box(size=(0.1,) * 3, mass=2.0))
    mechanism.joint("rail", da.Prismatic(axis="x", friction=3.0), mechanism.world, "cart")
    sim = da.Simulation(mechanism, formulation(dt=0.01))
    sim.set_joint("rail", rate=1.5)
    way = sim.run(3.0).joint("rail").coordinates
    assert way[-1] == pytest.approx(1.5**2 / (2 * 1.5), rel=1e-3)
    assert abs(way[-1] - way[-2]) < 1e-10


def test_a_fast_ball_does_not_pass_a_thin_wall(formulation):
    mechanism = da.Mechanism("shot", gravity=(0, 0, 0))
    mechanism.obstacle("wall", da.Box(size=(0.01, 2.0, 2.0), mass=1.0), position=(1.0, 0, 0))
    mechanism.body("ball", da.Sphere(radius=0.02, mass=0.1), collide=True)
    mechanism.start("ball", linear=(300.0, 0.1, 0))
    trajectory = da.Simulation(mechanism, formulation(dt=0.01)).run(0.1)
    assert trajectory.position[:, 0, 0].max() < 0.975 + 1e-9


def test_terrain_carries_a_ball(formulation):
    x = np.arange(-3, 3.1, 0.5)
    heights = 0.1 * (x[:, None] ** 2 + x[None, :] ** 2)
    mechanism = da.Mechanism("bowl")
    mechanism.height_field(heights, origin=(-3, -3), spacing=0.5, friction=0.3)
    mechanism.body("ball", da.Sphere(radius=0.2, mass=1.0), position=(1.0, 0.5, 0.6), collide=True)
    trajectory = da.Simulation(mechanism, formulation(dt=0.01)).run(4.0)
    assert trajectory.contacts().gap.min() > -1e-9
    assert np.abs(trajectory.position[:, 0, :2]).max() < 1.2


@pytest.mark.parametrize("upper", [da.Cylinder(radius=0.08, length=0.2, mass=1.0), da.Ellipsoid(semi_axes=(0.1, 0.1, 0.1), mass=1.0)], ids=["cylinder", "ellipsoid"])
def test_round_things_rest_on_a_box(formulation, upper):
    mechanism = da.Mechanism("on a box")
    mechanism.ground()
    mechanism.body("box", da.Box(size=(0.4, 0.4, 0.2), mass=2.0), position=(0, 0, 0.1), collide=True)
    mechanism.body("upper", upper, position=(0.1, 0, 0.35), collide=True)
    sim = da.Simulation(mechanism, formulation(dt=0.01))
    trajectory = sim.run(1.0)
    assert trajectory.contacts().gap.min() > -1e-9
    assert trajectory.position[-1, 1, 2] == pytest.approx(0.3, abs=1e-5)
    assert np.abs(sim.velocity).max() < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_energy_never_rises_in_random_scenes(formulation, seed):
    """Right limits, in scenes without restitution: no excess over the start, or one that falls threefold with half the step."""
    rng = np.random.default_rng(seed)
    poses = [(rng.uniform(-0.2, 0.2, 2), rng.normal(size=4), rng.normal(size=3), 2 * rng.normal(size=3)) for _ in range(4)]
    shapes = [da.Box(size=(0.2, 0.15, 0.1), mass=1.0), da.Sphere(radius=0.1, mass=0.5), da.Capsule(radius=0.05, length=0.2, mass=0.7), da.Box(size=(0.1, 0.1, 0.3), mass=2.0)]
    excess = []
    for dt in (0.01, 0.005):
        mechanism = da.Mechanism("random")
        mechanism.ground(normal=(0.1, 0, 1), friction=0.4)
        for i, (shape, (place, turn, linear, angular)) in enumerate(zip(shapes, poses)):
            mechanism.body(f"body {i}", shape, position=(*place, 0.4 + 0.45 * i), orientation=turn, collide=True)
            mechanism.start(f"body {i}", linear=linear, angular=angular)
        trajectory = da.Simulation(mechanism, formulation(dt=dt)).run(1.0)
        energy = trajectory.energy_after().total
        excess.append(max(float(energy.max() - energy[0]), 0.0) / abs(energy[0]))
    assert excess[0] < 1e-3
    assert excess[1] < max(excess[0] / 3.0, 1e-6)


def test_results_survive_a_file(tmp_path):
    pytest.importorskip("h5py")
    trajectory = da.Simulation(zoo.box_drop(), da.Variational(dt=0.01)).run(0.5)
    trajectory.save(tmp_path / "drop.h5")
    again = da.Trajectory.load(tmp_path / "drop.h5").contacts()
    assert again.names == trajectory.contacts().names == ("box / ground",)
    np.testing.assert_array_equal(again.gap, trajectory.contacts().gap)
    assert trajectory.contacts().at(-1).normal_force.sum() == pytest.approx(9.81, rel=1e-6)


def test_runs_without_contacts_have_none():
    trajectory = da.Simulation(zoo.pendulum(), da.Variational(dt=0.01)).run(0.1)
    with pytest.raises(da.ModelError, match="without contacts"):
        trajectory.contacts()


def test_overlaps_are_reported_and_resolved_when_asked(formulation):
    mechanism = da.Mechanism("crowd")
    mechanism.ground()
    mechanism.body("lower", da.Box(size=(0.2,) * 3, mass=1.0), position=(0, 0, 0.08), collide=True)
    mechanism.body("upper", da.Box(size=(0.2,) * 3, mass=1.0), position=(0.03, 0, 0.25), collide=True)
    sim = da.Simulation(mechanism, formulation(dt=0.01))
    with pytest.raises(da.OverlapError, match=r"lower / upper by 0\.03 m") as caught:
        sim.run(0.1)
    assert dict(caught.value.overlaps)["lower / ground"] == pytest.approx(0.02)
    sim.resolve_overlaps()
    assert sim.run(0.1).contacts().gap.min() > -1e-8


@pytest.mark.parametrize("bad", [
    lambda m: m.ground(friction=-0.1),
    lambda m: m.ground(restitution=1.5),
    lambda m: m.ground(normal=(0, 0, 0)),
    lambda m: m.contact_point("body", friction=-1.0),
    lambda m: m.contact_pair("body", "nobody"),
    lambda m: m.contact_pair("body", "other", restitution=-0.5),
    lambda m: m.body("new", mass=1.0, inertia=np.eye(3), collide=True),
    lambda m: m.height_field([[1.0]]),
    lambda m: da.Convex(points=np.zeros((0, 3)), mass=1.0),
    lambda m: da.Convex(points=np.eye(3), mass=1.0),
    lambda m: da.Convex(points=[(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.1, 0.1, 0.1)], triangles=[(0, 1, 4), (1, 2, 4), (2, 3, 4)], mass=1.0),
    lambda m: da.Revolute(limits=(1.0, -1.0)),
    lambda m: da.Revolute(friction=-1.0),
    lambda m: da.Revolute(limits=(-1, 1), restitution=2.0),
    lambda m: da.Variational(dt=0.01, cone="linear", cone_edges=5),
])
def test_bad_input_is_named(bad):
    mechanism = da.Mechanism("bad")
    mechanism.body("body", da.Sphere(radius=0.1, mass=1.0))
    mechanism.body("other", da.Sphere(radius=0.1, mass=1.0))
    with pytest.raises(da.ModelError):
        bad(mechanism)


def test_a_contact_point_without_ground_is_named():
    mechanism = da.Mechanism("bad")
    mechanism.body("body", da.Sphere(radius=0.1, mass=1.0))
    mechanism.contact_point("body")
    with pytest.raises(da.ModelError, match="no ground"):
        da.Simulation(mechanism, da.Variational(dt=0.01))
