"""The fully constrained solver: the same motion and forces as the general one, its first forces, its first guesses, replays of its torques."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from machines import two_motors
from scipy.interpolate import CubicSpline

import dalembert as da
from dalembert import zoo


def follow(mechanism: da.Mechanism, motion, formulation: da.Implicit, duration: float, **options: float) -> da.Trajectory:
    sim = da.Simulation(mechanism, formulation, **options)
    for name, target in motion.items():
        sim.set_target(name, target)
    return sim.run(duration)


@pytest.mark.parametrize(("method", "order"), [("bdf1", 1), ("bdf2", 2)])
def test_forces_are_those_of_the_general_solver(method, order):
    """Poses are the targets' in both; forces, of the formula here and of accelerations there, agree to the order of the method."""
    gaps = []
    for dt in (0.01, 0.005):
        fast, general = (
            follow(zoo.walker_legs(), zoo.walker_motion(), da.Implicit(dt=dt, method=method, solver=s), 0.4) for s in ("kinematic", "general")
        )
        np.testing.assert_allclose(fast.position, general.position, atol=1e-10)
        np.testing.assert_allclose(fast.orientation, general.orientation, atol=1e-10)
        np.testing.assert_allclose(fast.velocity[3:], general.velocity[3:], atol=1e-8)
        knots = np.rint(np.array([0.0, 0.01, 0.02, 0.05, 0.2, 0.4]) / dt).astype(int)
        ours, theirs = (t.least_norm(knots=knots) for t in (fast, general))
        gaps.append(max(np.abs(getattr(ours[j], kind) - getattr(theirs[j], kind)).max() for j in ours for kind in ("force", "torque")))
    assert gaps[0] < 20.0  # of 1000 N
    assert np.log2(gaps[0] / gaps[1]) > order - 0.2


def test_forces_are_right_from_the_start_on():
    """A driven rod: tau = J phi'' - m g l cos(phi), from a start at which phi'' is not zero."""
    mechanism = da.Mechanism("rod")
    mechanism.body("rod", da.Rod(length=0.6, mass=2.0, radius=0.02, axis="x"), position=(0.3, 0, 0))
    mechanism.joint("motor", da.Revolute(axis="y", drive="motion"), mechanism.world, "rod")
    inertia = mechanism.bodies[0].inertia[1, 1] + 2.0 * 0.3**2
    errors = []
    for dt in (0.01, 0.005, 0.0025):
        trajectory = follow(mechanism, {"motor": lambda t: 3.0 * t * t + t**4}, da.Implicit(dt=dt), 0.2)
        t = trajectory.time
        exact = inertia * (6.0 + 12.0 * t**2) - 2.0 * 9.81 * 0.3 * np.cos(3.0 * t * t + t**4)
        errors.append(np.abs(trajectory.joint("motor").actuation - exact).max())
    assert errors[0] < 0.01
    assert np.all(np.log2(np.divide(errors[:-1], errors[1:])) > 1.8), errors


def slider_at_dead_centre() -> tuple[da.Mechanism, Callable[[float], float]]:
    """A driven slider that stretches crank and rod out, holds them there for a while and draws back: there it holds neither."""
    crank, rod, start = 0.3, 0.5, 0.5

    def reach(angle: float) -> float:
        return crank * np.cos(angle) + np.sqrt(rod**2 - (crank * np.sin(angle)) ** 2)

    mechanism = da.Mechanism("slider", gravity=(0, 0, 0))
    pin, wrist = np.array([crank * np.cos(start), 0, crank * np.sin(start)]), np.array([reach(start), 0, 0])
    for name, first, last in (("crank", np.zeros(3), pin), ("rod", pin, wrist)):
        angle = np.arctan2(last[0] - first[0], last[2] - first[2]) / 2
        shape = da.Rod(length=float(np.linalg.norm(last - first)), mass=1.0, radius=0.02, axis="z")
        mechanism.body(name, shape, position=(first + last) / 2, orientation=(np.cos(angle), 0, np.sin(angle), 0))
    mechanism.body("slider", da.Box(size=(0.08, 0.05, 0.05), mass=1.0), position=wrist)
    mechanism.joint("bearing", da.Revolute(axis="-y"), mechanism.world, "crank")
    mechanism.joint("pin", da.Revolute(axis="-y"), "crank", "rod", at=pin)
    mechanism.joint("wrist", da.Revolute(axis="-y"), "rod", "slider", at=wrist)
    mechanism.joint("guide", da.Prismatic(axis="x", drive="motion"), mechanism.world, "slider", at=wrist)
    return mechanism, lambda t: reach(2.0 * (max(0.0, 0.5 - t) ** 2 + max(0.0, t - 0.8) ** 2)) - reach(start)


def test_the_general_step_is_taken_where_the_drives_hardly_hold_a_pose():
    mechanism, target = slider_at_dead_centre()
    with pytest.raises(da.StepFailure, match=r"hardly hold.*solver='general'"):
        follow(mechanism, {"guide": target}, da.Implicit(dt=0.01, solver="kinematic"), 1.2, target_tolerance=0.0)
    trajectory = follow(mechanism, {"guide": target}, da.Implicit(dt=0.01), 1.2, target_tolerance=0.0)
    assert trajectory.constraint_violation().max() < 1e-10
    np.testing.assert_allclose(trajectory.joint("guide").coordinates, [target(t) for t in trajectory.time], atol=1e-10)
    assert abs(trajectory.joint("bearing").coordinates[-1] - trajectory.joint("bearing").coordinates[70]) > 0.1


@pytest.mark.parametrize("formulation", [da.Implicit(dt=0.01), da.Implicit(dt=0.01, solver="general"), da.Implicit(dt=0.01, method="sdirk2")], ids=["kinematic", "general", "sdirk2"])
def test_a_step_that_fails_leaves_the_state(formulation):
    sim = da.Simulation(two_motors(), formulation)
    sim.set_target("left motor", lambda t: 0.3 * t)
    sim.set_target("right motor", lambda t: 0.3 * t - 0.1 * max(t - 0.05, 0.0))
    states = [sim.state]

    def run() -> None:
        for _ in range(20):
            sim.step()
            states.append(sim.state)

    with pytest.raises(da.StepFailure):
        run()
    assert sim.time > 0.03
    assert sim.state == states[-1]


def test_weights_share_out_the_torques_and_leave_the_motion():
    even, spared = (follow(zoo.walker_legs(), zoo.walker_motion(), da.Implicit(dt=0.01, drive_weight=w), 0.5) for w in (1.0, 1e5))
    np.testing.assert_allclose(even.position, spared.position, atol=1e-11)
    asked = even.least_norm(drive_weight=1e5, knots=[50])
    effort = []
    for trajectory in (even, spared):
        torques = np.array([trajectory.joint(name).actuation[50] for name in zoo.walker_motion()])
        effort.append(float(np.sum(torques**2)))
    assert effort[1] < 0.98 * effort[0]
    for name in zoo.walker_motion():
        assert spared.joint(name).actuation[50] == pytest.approx(asked[name].actuation[0], abs=1e-4)


def test_smooth_motions_need_one_iteration():
    """The poses carried on by their differences are that near; a motion with kinks costs more, and is followed all the same."""
    smooth = follow(zoo.walker_legs(), zoo.walker_motion(), da.Implicit(dt=0.01), 1.0)
    assert smooth.iterations[20:].mean() < 1.3
    kinked = follow(
        zoo.walker_legs(), zoo.walker_motion(lambda t: zoo.dance(abs((t + 0.1) % 0.2 - 0.1), start=0.01)), da.Implicit(dt=0.01), 1.0,
    )
    assert kinked.constraint_violation().max() < 1e-11


def test_a_run_can_go_on_and_start_anew():
    """The poses behind belong to the state: a run in two parts, and one from another pose, are as if made at once."""
    motion = zoo.walker_motion()
    whole = follow(zoo.walker_legs(), motion, da.Implicit(dt=0.01), 0.4)
    sim = da.Simulation(zoo.walker_legs(), da.Implicit(dt=0.01))
    for name, target in motion.items():
        sim.set_target(name, target)
    sim.run(0.2)
    np.testing.assert_allclose(sim.run(0.2).position[-1], whole.position[-1], atol=1e-12)


DRIVES = list(zoo.walker_motion())
STRUTS = np.array([100.0 if "knee" in name else 1.0 for name in DRIVES])  # N per m of a strut for a N m per rad of a joint


@pytest.fixture(scope="module")
def danced() -> da.Trajectory:
    return follow(zoo.walker_legs(), zoo.walker_motion(), da.Implicit(dt=0.01), 2.0)


@pytest.mark.parametrize("weight", [1.0, 1e5])
@pytest.mark.parametrize(("formulation", "ahead", "gain", "bar"), [
    (da.Implicit(dt=0.01), 1.0, 400.0, 1e-3), (da.Implicit(dt=0.005), 1.0, 400.0, 0.01), (da.Variational(dt=0.005), 0.0, 200.0, 0.03),
], ids=["the same steps", "half the steps", "variational"])
def test_torques_played_back_reproduce_the_motion(danced, formulation, ahead, gain, bar, weight):
    """Eight torques on six freedoms, shared out by any weights, drive the same motion: mean error in degrees below ``bar``.

    Torques are those of the times at which the method takes forces: the end of a step, or for `Variational` its start.
    """
    forces = danced.least_norm(drive_weight=weight)
    torque, reached, rate = (
        CubicSpline(danced.time, np.column_stack(values)) for values in (
            [forces[n].actuation for n in DRIVES], [danced.joint(n).coordinates for n in DRIVES], [danced.joint(n).rates for n in DRIVES],
        )
    )

    def control(sim: da.Simulation) -> dict[str, float]:
        error = reached(sim.time) - [sim.coordinates(n)[0] for n in DRIVES]
        slip = rate(sim.time) - [sim.rates(n)[0] for n in DRIVES]
        push = torque(min(sim.time + ahead * formulation.dt, 2.0)) + gain * STRUTS * (error + 0.05 * slip)
        return dict(zip(DRIVES, push))

    again = da.Simulation(zoo.walker_legs(drive="force"), formulation).run(2.0, control=control)
    every = round(0.01 / formulation.dt)
    angles = [n for n in DRIVES if "knee" not in n] + ["left knee", "right knee"]
    errors = [np.degrees(np.abs(again.joint(n).coordinates[::every] - danced.joint(n).coordinates)) for n in angles]
    assert np.mean(errors) < bar
    assert np.ptp(danced.joint("left knee").coordinates) > 0.1
