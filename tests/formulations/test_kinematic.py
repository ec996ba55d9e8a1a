"""The fully constrained solver: the same motion and forces as the general one, its first forces, its first guesses, replays of its torques."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import dalembert as da
from dalembert import zoo


def follow(mechanism: da.Mechanism, motion, formulation: da.Implicit, duration: float) -> da.Trajectory:
    sim = da.Simulation(mechanism, formulation)
    for name, target in motion.items():
        sim.set_target(name, target)
    return sim.run(duration)


@pytest.mark.parametrize("method", ["bdf1", "bdf2"])
def test_forces_are_those_of_the_general_solver(method):
    """Poses are the targets' in both; forces agree from the step on at which the formulas no longer see the start."""
    fast, general = (follow(zoo.walker_legs(), zoo.walker_motion(), da.Implicit(dt=0.01, method=method, solver=s), 0.4) for s in ("kinematic", "general"))
    np.testing.assert_allclose(fast.position, general.position, atol=1e-10)
    np.testing.assert_allclose(fast.orientation, general.orientation, atol=1e-10)
    np.testing.assert_allclose(fast.velocity[3:], general.velocity[3:], atol=1e-8)
    knots = [5, 20, 40]
    ours, theirs = (t.least_norm(knots=knots) for t in (fast, general))
    for name in ours:
        np.testing.assert_allclose(ours[name].force, theirs[name].force, atol=1e-4)
        np.testing.assert_allclose(ours[name].torque, theirs[name].torque, atol=1e-4)


def test_forces_converge_from_the_first_step_on():
    """A driven rod: tau = J phi'' - m g l cos(phi), from a start at which phi'' is not zero."""
    mechanism = da.Mechanism("rod")
    mechanism.body("rod", da.Rod(length=0.6, mass=2.0, radius=0.02, axis="x"), position=(0.3, 0, 0))
    mechanism.joint("motor", da.Revolute(axis="y", drive="motion"), mechanism.world, "rod")
    inertia = mechanism.bodies[0].inertia[1, 1] + 2.0 * 0.3**2
    errors = []
    for dt in (0.01, 0.005, 0.0025):
        trajectory = follow(mechanism, {"motor": lambda t: 3.0 * t * t + t**3}, da.Implicit(dt=dt), 0.2)
        t = trajectory.time
        exact = inertia * (6.0 + 6.0 * t) - 2.0 * 9.81 * 0.3 * np.cos(3.0 * t * t + t**3)
        miss = np.abs(trajectory.joint("motor").actuation - exact)
        errors.append([*miss[:4], miss[-1]])
    orders = np.log2(np.array(errors)[:-1] / np.array(errors)[1:])
    assert np.all(np.array(errors)[0] < 0.05)
    assert np.all(orders[:, 1:] > [0.9, 0.9, 0.9, 1.8]), orders


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
    (da.Implicit(dt=0.01), 1.0, 400.0, 1e-6), (da.Implicit(dt=0.005), 1.0, 400.0, 0.01), (da.Variational(dt=0.005), 0.0, 200.0, 0.03),
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
