"""Published contact problems: inclines, stopping, slide to roll, bouncing; boxes, tables and stacks that stand."""
from __future__ import annotations

import numpy as np
import pytest
from published import problem
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert import zoo

GRAVITY = 9.81


@pytest.fixture(params=[da.Variational, da.Implicit, da.Reduced], ids=["variational", "implicit", "reduced"])
def formulation(request):
    return request.param


def on_incline(degrees: float, friction: float, shape, height: float) -> da.Mechanism:
    angle = np.radians(degrees)
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    mechanism = da.Mechanism("incline", gravity=(0, 0, -GRAVITY))
    mechanism.ground(normal=normal, friction=friction)
    mechanism.body("body", shape, position=height * normal, orientation=Rotation.from_rotvec((0, angle, 0)).as_quat(scalar_first=True), collide=True)
    return mechanism


def slide(formulation, mechanism: da.Mechanism, degrees: float, dt: float, duration: float) -> tuple[float, float]:
    """Acceleration down the incline, from the distance, and the speed at the end."""
    sim = da.Simulation(mechanism, formulation(dt=dt))
    trajectory = sim.run(duration)
    angle = np.radians(degrees)
    way = (trajectory.position[-1, 0] - trajectory.position[0, 0]) @ (np.cos(angle), 0.0, -np.sin(angle))
    assert trajectory.contacts().gap.min() > -1e-9
    return 2.0 * way / duration**2, float(np.linalg.norm(sim.velocity))


BLOCK = da.Box(size=(0.2, 0.2, 0.05), mass=1.0)


@pytest.mark.parametrize("degrees", [10, 20, 30])
def test_blocks_on_inclines_stick_below_the_cone_and_slide_above(formulation, degrees):
    tangent = np.tan(np.radians(degrees))
    _, speed = slide(formulation, on_incline(degrees, 1.001 * tangent, BLOCK, 0.025), degrees, 0.01, 5.0)
    assert speed < 1e-6
    acceleration, _ = slide(formulation, on_incline(degrees, 0.999 * tangent, BLOCK, 0.025), degrees, 0.01, 5.0)
    assert acceleration == pytest.approx(GRAVITY * 0.001 * np.sin(np.radians(degrees)), rel=1e-3)
    acceleration, _ = slide(formulation, on_incline(degrees, 0.1, BLOCK, 0.025), degrees, 0.01, 1.0)
    assert acceleration == pytest.approx(problem("contact_incline_suite")["reference"][str(degrees)]["block_acc_mu_0p1"], rel=1e-3)


@pytest.mark.parametrize("degrees", [10, 20, 30])
def test_rolling_on_inclines(formulation, degrees):
    expected = problem("contact_incline_suite")["reference"][str(degrees)]
    # BDF2 brakes rotations, by the square of the turn per step: 0.35 rad at the end of the steepest incline with 10 ms
    dt, within = (0.01, 1e-6) if formulation is da.Variational else (0.001, 1e-4)
    for shape, name in ((da.Sphere(radius=0.1, mass=1.0), "sphere_roll_acc"), (da.Cylinder(radius=0.1, length=0.2, mass=1.0, axis="y"), "disk_cylinder_roll_acc")):
        acceleration, _ = slide(formulation, on_incline(degrees, 0.6, shape, 0.1), degrees, dt, 1.0)
        assert acceleration == pytest.approx(expected[name], rel=within)
    slipping = slide(formulation, on_incline(degrees, 0.05, da.Sphere(radius=0.1, mass=1.0), 0.1), degrees, 0.005, 1.0)[0]
    assert slipping == pytest.approx(expected["sphere_slip_mu_0p05"]["acc"], rel=1e-3)


def test_stopping_distance_is_the_same_in_all_directions(formulation):
    expected = problem("contact_block_stop_isotropy")
    distances = []
    for angle in 0.1 + 2.0 * np.pi * np.arange(16) / 16:
        mechanism = da.Mechanism("stop", gravity=(0, 0, -GRAVITY))
        mechanism.ground(friction=expected["parameters"]["mu"])
        mechanism.body("block", BLOCK, position=(0, 0, 0.025), collide=True)
        mechanism.start("block", linear=3.0 * np.array([np.cos(angle), np.sin(angle), 0.0]))
        end = da.Simulation(mechanism, formulation(dt=1e-3)).run(1.0).position[-1, 0]
        distances.append(np.hypot(end[0], end[1]))
        assert abs(end[1] * np.cos(angle) - end[0] * np.sin(angle)) < 1e-9
    assert np.ptp(distances) < 1e-3 * np.mean(distances)
    np.testing.assert_allclose(distances, expected["reference"]["stop_distance"], rtol=5e-3)


def test_a_linearised_cone_is_weaker_between_its_edges(formulation):
    distances = {}
    for degrees in (0, 45):
        angle = np.radians(degrees)
        mechanism = da.Mechanism("stop", gravity=(0, 0, -GRAVITY))
        mechanism.ground(friction=0.4)
        mechanism.body("block", BLOCK, position=(0, 0, 0.025), collide=True)
        mechanism.start("block", linear=3.0 * np.array([np.cos(angle), np.sin(angle), 0.0]))
        distances[degrees] = np.linalg.norm(da.Simulation(mechanism, formulation(dt=1e-3, cone="linear")).run(1.3).position[-1, 0, :2])
    assert distances[45] / distances[0] == pytest.approx(np.sqrt(2.0), rel=2e-3)


def test_slide_to_roll(formulation):
    expected = problem("contact_slide_to_roll_sphere")["reference"]

    def roll(linear, angular, duration: float, dt: float) -> tuple[np.ndarray, np.ndarray]:
        mechanism = da.Mechanism("ball", gravity=(0, 0, -GRAVITY))
        mechanism.ground(friction=0.2)
        mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 0.1), collide=True)
        mechanism.start("ball", linear=linear, angular=angular)
        sim = da.Simulation(mechanism, formulation(dt=dt))
        sim.run(duration)
        return sim.velocity[0], Rotation.from_quat(sim.orientation[0], scalar_first=True).apply(sim.angular_velocity[0])

    billiard = expected["billiard"]
    if formulation is da.Implicit:  # rotations are of second order: 50 rad/s at the end
        errors = [np.linalg.norm(roll((7, 0, 0), (0, 0, 0), 1.5, dt)[0] - (5.0, 0, 0)) for dt in (0.002, 0.001)]
        assert errors[1] < 2e-3
        assert errors[0] > 3.8 * errors[1]
    else:
        np.testing.assert_allclose(roll((7, 0, 0), (0, 0, 0), 1.5, 0.01)[0], (5.0, 0, 0), atol=1e-9)
    if formulation is not da.Variational:  # the axis of rotation turns while the ball slides
        errors = [np.linalg.norm(roll(billiard["v0"], billiard["w0"], 1.0, dt)[0] - billiard["v_roll"]) for dt in (0.002, 0.001)]
        assert errors[1] < 1e-3
        assert errors[0] > 3.5 * errors[1]
        return
    velocity, spin = roll(billiard["v0"], billiard["w0"], 1.0, 0.01)
    np.testing.assert_allclose(velocity, billiard["v_roll"], atol=1e-6)
    np.testing.assert_allclose(spin, billiard["omega_roll"], atol=1e-5)


def test_bouncing_ball(formulation):
    expected = problem("contact_bouncing_ball")["reference"]
    errors = []
    for dt in (0.004, 0.001):
        mechanism = da.Mechanism("bounce", gravity=(0, 0, -GRAVITY))
        mechanism.ground(restitution=0.8)
        mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 1.1), collide=True)
        trajectory = da.Simulation(mechanism, formulation(dt=dt)).run(5.0)
        height = trajectory.position[:, 0, 2] - 0.1
        lows = [i for i in range(1, len(height) - 1) if height[i] < height[i - 1] and height[i] <= height[i + 1]]
        np.testing.assert_allclose(trajectory.time[lows[0]], expected["first_impact"], atol=dt)
        tops = [height[i] for i in range(1, len(height) - 1) if height[i] > height[i - 1] and height[i] >= height[i + 1]][:4]
        errors.append(np.abs(np.array(tops) - expected["apex_heights"][1:5]).max())
        assert height.min() > -1e-9
        assert abs(height[-1]) < 1e-9
    assert errors[1] < 0.005
    assert errors[0] > 2.0 * errors[1]


def test_box_drop(formulation):
    trajectory = da.Simulation(zoo.box_drop(), formulation(dt=0.01)).run(2.0)
    gap = trajectory.position[:, 0, 2] - 0.25  # it does not turn
    assert gap.min() > -1e-9
    assert gap[-1] < 1e-5


def test_a_table_on_four_legs_stands(formulation):
    legs = [(da.Box(size=(0.05, 0.05, 0.7), mass=1.0), (x, y, 0.35)) for x in (-0.5, 0.5) for y in (-0.3, 0.3)]
    mechanism = da.Mechanism("table")
    mechanism.ground(friction=0.5)
    shape = da.Composite(parts=[(da.Box(size=(1.2, 0.8, 0.04), mass=10.0), (0, 0, 0.72)), *legs])
    mechanism.body("table", shape, position=(0, 0, shape.center_of_mass[2]), collide=True)
    check_standing(formulation, mechanism, 10.0)


def test_a_stack_of_ten_boxes_stands(formulation):
    mechanism = da.Mechanism("stack")
    mechanism.ground()
    for i in range(10):
        mechanism.body(f"box {i}", da.Box(size=(0.2,) * 3, mass=100.0 if i % 2 else 1.0), position=(0, 0, 0.1 + 0.2 * i), collide=True)
    check_standing(formulation, mechanism, 10.0)


def check_standing(formulation, mechanism: da.Mechanism, duration: float) -> None:
    sim = da.Simulation(mechanism, formulation(dt=0.01))
    trajectory = sim.run(duration)
    assert np.abs(trajectory.position - trajectory.position[0]).max() < 1e-7
    assert np.abs(sim.velocity).max() < 1e-6
    carried = trajectory.contacts().of("ground").total_force()[-1]
    np.testing.assert_allclose(carried, (0, 0, 9.81 * mechanism.mass), atol=1e-6 * 9.81 * mechanism.mass)
