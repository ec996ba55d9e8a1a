"""The implicit formulation: orders, closed constraints, drives, redundancy."""
from __future__ import annotations

import functools

import numpy as np
import pytest
from machines import two_motors

import dalembert as da
from dalembert import zoo
from dalembert.simulation.trajectory import rotate


def final(make, formulation, duration: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    trajectory = da.Simulation(make(), formulation).run(duration)
    pose = np.concatenate([trajectory.position[-1].ravel(), trajectory.orientation[-1].ravel()])
    velocity = np.concatenate([trajectory.velocity[-1].ravel(), trajectory.angular_velocity[-1].ravel()])
    return pose, velocity, np.concatenate([trajectory.joint(j).force[-1] for j in trajectory.joints[:3]])


EXPECTED = {"bdf1": (1, 1, 1), "bdf2": (2, 2, 2), "sdirk2": (1, 1, 1), "pareschi_russo": (2, 1, 1)}


@pytest.mark.parametrize("method", EXPECTED)
@pytest.mark.parametrize(("make", "dt", "duration"), [(zoo.heavy_top, 5e-5, 0.02), (zoo.andrews_squeezer, 2e-5, 0.01)], ids=["heavy top", "Andrews"])
def test_orders_on_index_three(method, make, dt, duration):
    """Positions, velocities and forces."""
    exact = final(make, da.Variational(dt=dt / 64, tolerance=1e-12), duration)
    errors = np.array([
        [np.abs(a - b).max() for a, b in zip(final(make, da.Implicit(dt=dt / k, method=method, tolerance=1e-11), duration), exact)] for k in (1, 2, 4)
    ])
    orders = np.log2(errors[:-1] / errors[1:])[-1]
    assert np.all(np.abs(orders[:2] - EXPECTED[method][:2]) < 0.25), orders
    assert orders[2] > EXPECTED[method][2] - 0.25 or errors[-1, 2] < 1e-5 * np.abs(exact[2]).max(), orders


@pytest.mark.parametrize("dt", [0.1, 0.01, 1e-3, 1e-5])
@pytest.mark.parametrize("method", ["bdf1", "bdf2", "sdirk2"])
def test_rows_hold_whatever_the_step(method, dt):
    for make in (zoo.double_four_bar, zoo.bricard, zoo.spinning_top):
        trajectory = da.Simulation(make(), da.Implicit(dt=dt, method=method)).run(20 * dt)
        assert trajectory.constraint_violation().max() < 1e-10


def test_hoberman_sphere():
    trajectory = da.Simulation(zoo.hoberman_sphere(opening=1.1, spin=3.0), da.Implicit(dt=0.004)).run(0.4)
    exact = zoo.hoberman_exact(trajectory.time, opening=1.1, spin=3.0)
    assert np.abs(zoo.hoberman_opening(trajectory.position) - exact).max() < 1e-4
    assert trajectory.constraint_violation().max() < 1e-10


def driven_slider() -> da.Mechanism:
    mechanism = da.Mechanism("driven slider")
    mechanism.body("crank", da.Rod(length=0.3, mass=1.0, radius=0.02, axis="x"), position=(0.15, 0, 0))
    mechanism.body("rod", da.Rod(length=0.5, mass=1.0, radius=0.02, axis="x"), position=(0.55, 0, 0))
    mechanism.joint("motor", da.Revolute(axis="y", drive="motion"), mechanism.world, "crank")
    mechanism.joint("pin", da.Revolute(axis="y"), "crank", "rod", at=(0.3, 0, 0))
    mechanism.joint("slide", da.PinInSlot(slot="x", axis="y"), mechanism.world, "rod", at=(0.8, 0, 0))
    return mechanism


def test_kinematic_and_general_solver_agree():
    runs = []
    for solver in ("kinematic", "general"):
        sim = da.Simulation(driven_slider(), da.Implicit(dt=0.005, solver=solver))
        sim.set_target("motor", lambda t: 3.0 * t * t)
        runs.append(sim.run(1.0))
    a, b = runs
    np.testing.assert_allclose(a.position, b.position, atol=1e-10)
    np.testing.assert_allclose(a.joint("motor").actuation, b.joint("motor").actuation, atol=2e-3)
    assert a.constraint_violation().max() < 1e-11


def test_the_kinematic_solver_is_chosen_where_it_applies():
    driven = da.Simulation(driven_slider(), da.Implicit(dt=0.01))
    assert type(driven._engine).__name__ == "KinematicEngine"
    free = da.Simulation(zoo.double_pendulum(), da.Implicit(dt=0.01))
    assert type(free._engine).__name__ == "ImplicitEngine"
    with pytest.raises(da.ModelError, match="2 velocities are free"):
        da.Simulation(zoo.double_pendulum(), da.Implicit(dt=0.01, solver="kinematic"))


def test_overactuation():
    sim = da.Simulation(two_motors(), da.Implicit(dt=0.01))
    found = sim.redundancy()
    assert (found.rows, found.rank, found.driven_rows, found.driven_rank, found.freedom) == (20, 17, 2, 1, 0)
    for side in ("left", "right"):
        sim.set_target(f"{side} motor", lambda t: 0.5 * t * t)
    trajectory = sim.run(0.5)
    assert trajectory.constraint_violation().max() < 1e-11
    shared = trajectory.least_norm(drive_weight=1.0, knots=[20])
    one_sided = trajectory.least_norm({"right motor": [1.0] * 5 + [1e6]}, knots=[20])
    left, right = (shared[f"{s} motor"].actuation[0] for s in ("left", "right"))
    total = one_sided["left motor"].actuation[0]
    assert abs(one_sided["right motor"].actuation[0]) < 1e-3 * abs(total)
    # whatever the shares, the work is the same: both cranks turn alike
    assert left + right == pytest.approx(total + one_sided["right motor"].actuation[0], rel=1e-6)


def test_solve_pose_finds_targets_that_agree():
    sim = da.Simulation(two_motors(), da.Implicit(dt=0.01))
    pose = sim.solve_pose({"left motor": 0.3, "right motor": 0.5})
    assert pose["left motor"][0] == pytest.approx(pose["right motor"][0], abs=1e-9)
    assert pose["left motor"][0] == pytest.approx(0.4, abs=1e-4)
    favoured = sim.solve_pose({"left motor": 0.3, "right motor": 0.5}, weights={"right motor": 1e4})
    assert favoured["left motor"][0] == pytest.approx(0.5, abs=1e-3)
    np.testing.assert_allclose(sim.coordinates("left motor"), [0.0], atol=1e-12)
    with pytest.raises(da.ModelError, match="positive"):
        sim.solve_pose({"left motor": 0.3}, weights={"left motor": 0.0})


def test_door_reactions_are_least_in_norm():
    """The numbers of the reference problem with redundant reactions: 1 N weighs as 1 N m."""
    for formulation in (da.Variational(dt=1e-3), da.Implicit(dt=1e-3)):
        forces = da.Simulation(zoo.door(), formulation).run(0.01).least_norm(knots=[5])
        np.testing.assert_allclose(forces["lower"].force[0], [31.7844, 0, 147.15], atol=1e-6)
        np.testing.assert_allclose(forces["upper"].force[0], [-31.7844, 0, 147.15], atol=1e-6)
        np.testing.assert_allclose(forces["upper"].torque[0], [0, -42.3792, 0], atol=1e-6)
        forces = da.Simulation(zoo.door("spherical"), formulation).run(0.01).least_norm(knots=[5])
        np.testing.assert_allclose(forces["lower"].force[0], [88.29, 0, 147.15], atol=1e-6)


def test_a_table_on_four_legs():
    """Reference problem: N_i = W/4 (1 + x x_i / a^2 + y y_i / b^2)."""
    a, b, weight = 0.6, 0.4, 100.0
    for x, y in ((0.0, 0.0), (0.2, 0.1), (0.5, 0.35)):
        mechanism = da.Mechanism("table", gravity=(0, 0, -10.0))
        mechanism.body("top", da.Box(size=(0.2, 0.2, 0.02), mass=weight / 10.0), position=(x, y, 0))
        legs = [(sx * a, sy * b) for sx, sy in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
        for i, (lx, ly) in enumerate(legs):
            mechanism.joint(f"leg {i}", da.PlanarFreeOrientation(normal="z"), mechanism.world, "top", at=(lx, ly, 0))
        forces = da.Simulation(mechanism, da.Implicit(dt=0.01)).run(0.05).least_norm(knots=[3])
        for i, (lx, ly) in enumerate(legs):
            expected = weight / 4 * (1 + x * lx / a**2 + y * ly / b**2)
            assert forces[f"leg {i}"].force[0, 2] == pytest.approx(expected, abs=1e-6)


def test_targets_from_tables_and_quaternions():
    mechanism = da.Mechanism("head", gravity=(0, 0, 0))
    mechanism.body("head", da.Ellipsoid(semi_axes=(0.1, 0.12, 0.15), mass=3.0))
    mechanism.joint("neck", da.Spherical(drive="motion"), mechanism.world, "head", at=(0, 0, -0.1))
    sim = da.Simulation(mechanism, da.Implicit(dt=0.01))
    angle = lambda t: 0.3 * t * t  # noqa: E731
    sim.set_target("neck", lambda t: (np.cos(angle(t) / 2), 0.0, np.sin(angle(t) / 2), 0.0))
    assert sim.run(1.0).joint("neck").coordinates[-1] == pytest.approx([0, 0.3, 0], abs=1e-9)
    times = np.linspace(0.0, 3.0, 61)
    other = da.Simulation(mechanism, da.Implicit(dt=0.01))
    other.set_target("neck", (times, np.outer(0.1 * times**2, [1.0, 0.0, 0.0])))
    assert other.run(1.0).joint("neck").coordinates[-1] == pytest.approx([0.1, 0, 0], abs=1e-6)
    with pytest.raises(da.ModelError, match=r"neck.*covers 0 to 3 s"):
        other.run(5.0)


@pytest.mark.parametrize("method", ["bdf2", "semi_implicit"])
def test_tables_of_quaternions_go_round(method):
    """Twice around an oblique axis: neither the sign of a quaternion nor half a turn of a rotation vector is a jump."""
    mechanism = da.Mechanism("ball", gravity=(0, 0, 0))
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0))
    mechanism.joint("centre", da.Spherical(drive="motion"), mechanism.world, "ball")
    times, axis = np.linspace(0.0, 1.0, 41), np.array([2.0, 1.0, 2.0]) / 3.0
    half = 0.5 * 4.0 * np.pi * times**2
    values = np.column_stack([np.cos(half), np.sin(half)[:, None] * axis])
    values[::3] *= -1.0
    sim = da.Simulation(mechanism, da.Implicit(dt=0.005, method=method))
    sim.set_target("centre", (times, values))
    trajectory = sim.run(1.0)
    np.testing.assert_allclose(trajectory.angular_velocity[20:-10, 0], np.outer(8.0 * np.pi * trajectory.time[20:-10], axis), atol=0.15)


def test_follow_needs_a_free_joint():
    sim = da.Simulation(two_motors(), da.Implicit(dt=0.01))
    with pytest.raises(da.ModelError, match="left pin"):
        sim.follow("left pin", sim.run(0.1))


def test_a_body_follows_a_recorded_motion():
    """Part of a figure alone: its base driven along all six directions by an earlier run."""
    whole = zoo.double_pendulum()
    upper, lower = whole.bodies
    recorded = da.Simulation(whole, da.Variational(dt=0.001)).run(0.5)
    part = da.Mechanism("lower alone")
    part.body("base", mass=1.0, inertia=np.eye(3), position=upper.position, orientation=upper.orientation)
    part.body("lower", mass=lower.mass, inertia=lower.inertia, position=lower.position, orientation=lower.orientation)
    hinge = whole.joints[1]
    part.joint("pose", da.Free(drive="motion"), part.world, "base", at=upper.position)
    at = upper.position + rotate(upper.orientation, hinge.point_parent)
    part.joint("hinge", hinge.type, "base", "lower", at=at)
    sim = da.Simulation(part, da.Implicit(dt=0.001))
    sim.follow("pose", recorded, upper.name)
    again = sim.run(0.5)
    assert np.abs(again.position[-1, 1] - recorded.position[-1, 1]).max() < 5e-4


@pytest.mark.parametrize("options", [
    dict(dt=0.0), dict(dt=0.01, method="rk4"), dict(dt=0.01, solver="fast"), dict(dt=0.01, solver="kinematic", method="sdirk2"),
    dict(dt=0.01, stabilization=2.0), dict(dt=0.01, drive_weight=0.0),
])
def test_options_that_make_no_sense(options):
    with pytest.raises(da.ModelError, match="Implicit"):
        da.Implicit(**options)


def with_all_forces() -> da.Mechanism:
    """A servo, a band and a cable over an arm, a ball with drag on a soft floor, a potential, and a bead on a surface of the user's."""
    mechanism = da.Mechanism("all forces")
    mechanism.body("arm", da.Rod(length=0.6, mass=2.0, radius=0.02, axis="x"), position=(0.3, 0, 0))
    mechanism.body("hand", da.Rod(length=0.4, mass=1.0, radius=0.02, axis="x"), position=(0.8, 0, 0))
    mechanism.body("ball", da.Sphere(radius=0.05, mass=0.5), position=(0.5, 0.2, -0.3))
    mechanism.body("bead", da.Sphere(radius=0.05, mass=0.5), position=(0.0, 0.5, -0.3))
    mechanism.joint("shoulder", da.Revolute(axis="y", servo=da.Servo(stiffness=40.0, damping=3.0, target=0.3)), mechanism.world, "arm")
    mechanism.joint("elbow", da.Revolute(axis="y", damping=0.1), "arm", "hand", at=(0.6, 0, 0))
    mechanism.path("band", [(mechanism.world, (0.2, 0, 0.3)), ("arm", (0.4, 0, 0)), ("hand", (0.9, 0, 0))], stiffness=60.0, damping=1.0, length=0.5)
    mechanism.cable("rope", [("hand", (1.0, 0, 0)), ("ball", (0.5, 0.2, -0.3))], stiffness=80.0, damping=0.5, length=0.3)
    mechanism.force("push", "ball", (0.3, 0.1, 0.0), at=(0.5, 0.25, -0.3))
    mechanism.drag("air", "ball", linear=0.5, angular=0.01)
    mechanism.penalty("floor", "ball", offset=-0.45, stiffness=500.0, damping=1.0)
    mechanism.force_law("magnet", ["ball", "bead"], energy=lambda x, q: 2.0 * np.sum((x[0] - x[1]) ** 2))
    mechanism.constraint("bowl", "bead", lambda x, q: x[0][0] ** 2 + x[0][1] ** 2 + 0.3 * x[0][2] ** 2 - 0.277)
    return mechanism


@functools.cache
def reference_run() -> da.Trajectory:
    return da.Simulation(with_all_forces(), da.Variational(dt=2.5e-4)).run(0.5)


@pytest.mark.parametrize(("method", "bar"), [("bdf2", 1e-3), ("sdirk2", 5e-3), ("pareschi_russo", 5e-4), ("semi_implicit", 8e-3)])
def test_all_forces(method, bar):
    """The same motion as that of the variational integrator, and the same tension."""
    runs = [reference_run(), da.Simulation(with_all_forces(), da.Implicit(dt=2.5e-3, method=method)).run(0.5)]
    np.testing.assert_allclose(runs[1].position, runs[0].position[::10], atol=bar)
    for name in ("shoulder", "elbow"):
        np.testing.assert_allclose(runs[1].joint(name).force, runs[0].joint(name).force[::10], atol=300.0 * bar)
    if method != "semi_implicit":
        assert runs[1].iterations.max() < 9  # two stages
