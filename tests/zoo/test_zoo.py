"""Every mechanism of the zoo builds, closes, starts with consistent velocities and runs; counts are as published."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert import zoo
from dalembert.model.placement import Placement

# name: (maker, dt, bodies, joints, rows, rank of the rows)
ZOO: dict[str, tuple[Callable[[], da.Mechanism], float, int, int, int, int]] = {
    "pendulum": (zoo.pendulum, 0.01, 1, 1, 5, 5),
    "pendulum of 5 links": (lambda: zoo.pendulum(5), 0.01, 5, 5, 25, 25),
    "spherical pendulum of 3 links": (lambda: zoo.pendulum(3, "spherical"), 0.01, 3, 3, 9, 9),
    "double_pendulum": (zoo.double_pendulum, 0.01, 2, 2, 10, 10),
    "simple_pendulum": (zoo.simple_pendulum, 0.01, 1, 1, 1, 1),
    "conical_pendulum": (zoo.conical_pendulum, 0.01, 1, 1, 1, 1),
    "mass_spring": (zoo.mass_spring, 0.01, 1, 1, 5, 5),
    "damped_oscillator": (zoo.damped_oscillator, 0.01, 1, 1, 5, 5),
    "free_body": (zoo.free_body, 0.01, 1, 0, 0, 0),
    "t_handle": (zoo.t_handle, 0.01, 1, 0, 0, 0),
    "heavy_top": (zoo.heavy_top, 0.001, 1, 1, 3, 3),
    "spinning_top": (zoo.spinning_top, 0.001, 1, 1, 3, 3),
    "three_link_loop": (zoo.three_link_loop, 0.01, 3, 4, 20, 17),
    "four_bar_chain": (zoo.four_bar_chain, 0.01, 12, 15, 75, 66),
    "four_bar_chain of 16": (lambda: zoo.four_bar_chain(16), 0.01, 64, 80, 400, 352),
    "n_four_bar of 1": (lambda: zoo.n_four_bar(1), 0.01, 3, 4, 20, 17),
    "double_four_bar": (zoo.double_four_bar, 0.01, 5, 7, 35, 29),
    "n_four_bar of 5": (lambda: zoo.n_four_bar(5), 0.01, 11, 16, 80, 65),
    "n_link_loop": (zoo.n_link_loop, 0.01, 5, 6, 30, 27),
    "n_link_loop of 12 on balls": (lambda: zoo.n_link_loop(12, "spherical"), 0.01, 12, 13, 39, 39),
    "slider_crank": (zoo.slider_crank, 0.001, 3, 4, 20, 17),
    "andrews_squeezer": (zoo.andrews_squeezer, 1e-5, 7, 11, 50, 41),
    "bricard": (zoo.bricard, 0.01, 5, 6, 30, 29),
    "door": (lambda: zoo.door(rate=1.0), 0.01, 1, 2, 10, 5),
    "door on balls": (lambda: zoo.door("spherical", rate=1.0), 0.01, 1, 2, 6, 5),
    "curling_finger": (zoo.curling_finger, 0.001, 3, 3, 15, 15),
    "cable_finger": (zoo.cable_finger, 0.001, 3, 3, 15, 15),
    "strand_pendulum": (zoo.strand_pendulum, 0.01, 7, 7, 23, 23),
    "rubbing_door": (zoo.rubbing_door, 0.01, 1, 1, 5, 5),
    "box_drop": (zoo.box_drop, 0.01, 1, 0, 0, 0),
    "contact_cylinder": (zoo.contact_cylinder, 0.01, 1, 0, 0, 0),
    "snake": (zoo.snake, 0.01, 10, 9, 27, 27),
    "sphere_chain": (zoo.sphere_chain, 0.01, 10, 9, 27, 27),
    "cart_pole": (zoo.cart_pole, 0.01, 2, 2, 10, 10),
    "cart_pole of 2 links": (lambda: zoo.cart_pole(2, angle=0.5), 0.01, 3, 3, 15, 15),
    "five_bar": (zoo.five_bar, 0.01, 4, 5, 25, 22),
    "biped": (zoo.biped, 0.005, 23, 26, 118, 118),
    "hopper": (zoo.hopper, 0.001, 2, 1, 5, 5),
    "quadruped": (zoo.quadruped, 0.005, 13, 12, 60, 60),
    "exoskeleton": (zoo.exoskeleton, 0.01, 6, 8, 34, 31),  # the cuff of the forearm only repeats what that of the upper arm says
    "hoberman_sphere": (lambda: zoo.hoberman_sphere(spin=2.0, opening_rate=1.0), 0.01, 240, 420, 1980, 1433),
}


def constraint_matrix(mechanism: da.Mechanism) -> np.ndarray:
    """(rows, 6 bodies): the gradients of all constraint rows at the start."""
    sim, placement = da.Simulation(mechanism, da.Variational(dt=0.01)), Placement.of(mechanism)
    placement.put(sim.position, sim.orientation)
    count = len(mechanism.bodies)
    rows = []
    for joint, at in zip(placement.model.joints, placement.work.joints):
        for k in range(int(joint["locks"])):
            row = np.zeros((count + 1, 6))
            row[joint["parent"]] += at["Gp"][k]
            row[joint["child"]] += at["Gc"][k]
            rows.append(row[:count].ravel())
    return np.array(rows).reshape(-1, 6 * count)


@pytest.mark.parametrize("name", ZOO)
def test_builds_closes_and_runs(name: str) -> None:
    make, dt, bodies, joints, rows, rank = ZOO[name]
    mechanism = make()
    sim = da.Simulation(mechanism, da.Variational(dt=dt))
    assert (len(mechanism.bodies), len(mechanism.joints)) == (bodies, joints)
    G = constraint_matrix(mechanism)
    assert len(G) == rows
    squares = np.linalg.eigvalsh(G.T @ G)  # of the singular values
    assert np.count_nonzero(squares > 1e-9 * squares[-1]) == rank
    velocity = np.concatenate([sim.velocity, sim.angular_velocity], axis=1)
    assert np.abs(G @ velocity.ravel()).max(initial=0.0) < 1e-10 * (1.0 + np.abs(velocity).max())
    trajectory = sim.run(20 * dt)
    assert len(trajectory) == 21
    assert np.all(trajectory.substeps[1:] == 1)
    assert trajectory.constraint_violation()[0] < 1e-10
    assert trajectory.constraint_violation().max() < 1e-9
    assert np.isfinite(trajectory.energy().total).all()


@pytest.mark.parametrize("name", ZOO)
def test_starts_as_its_velocities_say(name: str) -> None:
    """Velocities given to ``start`` satisfy the joints by themselves: nothing is changed to make them consistent."""
    mechanism = ZOO[name][0]()
    sim = da.Simulation(mechanism, da.Variational(dt=ZOO[name][1]))
    for body, (linear, angular) in mechanism.initial_velocities.items():
        index = mechanism[body].index
        if linear is not None:
            np.testing.assert_allclose(sim.velocity[index], linear, atol=1e-7)
        if angular is not None:
            np.testing.assert_allclose(sim.angular_velocity[index], angular, atol=1e-7)


def test_everything_exported_is_tested() -> None:
    folder = Path(__file__).parent
    elsewhere = ("zoo/test_zoo_driven.py", "reference/test_reference_redmax.py", "formulations/reduced/test_moving_joints.py")
    driven = " ".join((folder.parent / name).read_text(encoding="utf-8") for name in elsewhere)
    makers = {name for name in zoo.__all__ if name not in ("hoberman_exact", "hoberman_inertia", "hoberman_opening", "n_four_bar", "satellite_drives", "Gait", "hopper_turn", "leg_controller", "leg_torques", "exoskeleton_aims")}
    assert {name for name in makers - set(ZOO) if name not in driven} == set()


def test_pendulum_is_the_chain_of_unit_rods() -> None:
    chain = zoo.pendulum(3)
    r = 0.05
    for k, body in enumerate(chain.bodies):
        np.testing.assert_allclose(body.inertia, np.diag([0.5 * r * r, (3 * r * r + 1) / 12, (3 * r * r + 1) / 12]), rtol=1e-15)
        np.testing.assert_allclose(body.position, (k + 0.5, 0, 0))
        np.testing.assert_array_equal(body.orientation, (1, 0, 0, 0))


@pytest.mark.parametrize("make", [lambda: zoo.pendulum(0), lambda: zoo.pendulum(1, "ball"), lambda: zoo.four_bar_chain(1.5),  # type: ignore[arg-type]
                                  lambda: zoo.slider_crank(crank=1.0), lambda: zoo.door("glue"), lambda: zoo.hoberman_sphere(opening=0.0),
                                  lambda: zoo.three_link_loop(span=3.0), lambda: zoo.n_link_loop(2), lambda: zoo.n_link_loop(4, "ball"),
                                  lambda: zoo.exoskeleton(patient="none")])
def test_impossible_parameters_are_named(make: Callable[[], da.Mechanism]) -> None:
    with pytest.raises(da.ModelError):
        make()


def test_slider_follows_the_crank() -> None:
    r, l, angle = 0.15, 0.45, 0.5
    trajectory = da.Simulation(zoo.slider_crank(crank=r, rod=l, angle=angle), da.Variational(dt=1e-3)).run(0.5)
    turn = angle + trajectory.joint("bearing").coordinates
    assert turn[-1] > 2 * np.pi
    x = trajectory.body("slider").position[:, 0]
    np.testing.assert_allclose(x, r * np.cos(turn) + np.sqrt(l**2 - (r * np.sin(turn)) ** 2), atol=1e-9)


def test_the_biped_stands_by_itself_and_keeps_its_rods() -> None:
    run = da.Simulation(zoo.biped(), da.Variational(dt=0.005)).run(1.0)
    assert np.abs(run.position[-1] - run.position[0]).max() < 0.005
    assert run.substeps.max() == 1
    assert run.contacts().at(-1).normal_force.sum() == pytest.approx(9.81 * zoo.biped().mass, rel=0.02)
    for side in ("left", "right"):
        assert np.abs(run.joint(f"{side} knee").coordinates).max() < 0.02


def test_the_tip_of_the_five_bar_is_where_two_circles_meet() -> None:
    sim = da.Simulation(zoo.five_bar(span=0.2, arm=0.25, rod=0.35), da.Variational(dt=0.01))
    sim.set_joints({"left motor": 0.3, "right motor": -0.2})
    tip = sim.sensor("tip motion")[:3]
    for side, pivot, turn in (("left", -0.1, 0.4 + 0.3), ("right", 0.1, -0.4 - 0.2)):
        elbow = np.array([pivot - 0.25 * np.sin(turn), 0.25 * np.cos(turn), 0.0])
        assert np.linalg.norm(tip - elbow) == pytest.approx(0.35, abs=1e-9), side


def test_spinning_top_precesses_steadily_at_the_right_rate() -> None:
    """m g h = I3 spin Omega - (I1 - I3) cos(tilt) Omega^2 with I1 about the tip: the top neither rises nor falls."""
    spin, tilt = 120.0, 0.35
    top = zoo.spinning_top(tilt=tilt).bodies[0]
    height = float(np.linalg.norm(top.position))
    along, across = top.inertia[2, 2], top.inertia[0, 0] + top.mass * height**2
    slow = np.roots([(across - along) * np.cos(tilt), -along * spin, top.mass * 9.81 * height]).min()
    trajectory = da.Simulation(zoo.spinning_top(spin=spin, tilt=tilt, precession=slow), da.Variational(dt=1e-4)).run(0.5)
    angle = np.unwrap(np.arctan2(trajectory.position[:, 0, 1], trajectory.position[:, 0, 0]))
    assert np.ptp(trajectory.position[:, 0, 2]) < 1e-4 * height
    assert angle[-1] / 0.5 == pytest.approx(slow, rel=1e-4)


def test_hoberman_inertias() -> None:
    inertia = zoo.hoberman_inertia(0.7)
    assert inertia.internal == pytest.approx(0.81011152227, abs=1e-11)
    assert inertia.rotational == pytest.approx(0.75688964720, abs=1e-11)
    step = 1e-6
    ahead, back = zoo.hoberman_inertia(0.7 + step), zoo.hoberman_inertia(0.7 - step)
    assert inertia.internal_slope == pytest.approx((ahead.internal - back.internal) / (2 * step), rel=1e-8)
    assert inertia.rotational_slope == pytest.approx((ahead.rotational - back.rotational) / (2 * step), rel=1e-8)


def test_hoberman_kinetic_energy_is_that_of_the_formula() -> None:
    sim = da.Simulation(zoo.hoberman_sphere(spin=2.0, opening_rate=1.5), da.Variational(dt=0.01))
    inertia = zoo.hoberman_inertia(0.7)
    assert sim.energy() == pytest.approx(0.5 * (inertia.internal * 1.5**2 + inertia.rotational * 2.0**2), rel=1e-7)


def test_hoberman_opens_and_closes_as_its_one_coordinate_says() -> None:
    setting = dict(opening=0.7, spin=2.0, opening_rate=1.0)
    trajectory = da.Simulation(zoo.hoberman_sphere(**setting), da.Variational(dt=0.01)).run(0.5)
    opening = zoo.hoberman_opening(trajectory.position)
    exact = zoo.hoberman_exact(trajectory.time, **setting)
    assert np.ptp(exact) > 0.12
    np.testing.assert_allclose(opening, exact, atol=3e-5)
