"""Directions that follow given positions, rates or accelerations, and the torques that this takes (RedMax section 2.9)."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da


def chain(driven: tuple[int, ...], drive: str | None = "motion") -> da.Mechanism:
    """Four links about different axes, some of them driven."""
    mechanism = da.Mechanism("chain")
    before = mechanism.world
    for i in range(4):
        link = mechanism.body(f"link {i}", da.Box(size=[1.0, 0.1 + 0.1 * i, 0.2], mass=1.0 + 0.5 * i), position=[0.5 + i, 0.0, 0.0])
        kind = da.Revolute(axis="yzyx"[i], armature=0.1, drive=drive if i in driven else None)
        mechanism.joint(f"joint {i}", kind, before, link, at=[i, 0.0, 0.0])
        before = link
    return mechanism


def angle(t: float) -> float:
    return 0.6 * np.sin(2.0 * t) + 0.3 * t


def rate(t: float) -> float:
    return 1.2 * np.cos(2.0 * t) + 0.3


def acceleration(t: float) -> float:
    return -2.4 * np.sin(2.0 * t)


GIVEN = {
    "position": {"target": angle}, "rate": {"rate": rate}, "acceleration": {"acceleration": acceleration},
    "all": {"target": angle, "rate": rate, "acceleration": acceleration},
}


@pytest.mark.parametrize("method", ["rk4", "DOP853", "bdf2"])
@pytest.mark.parametrize("given", GIVEN)
def test_positions_rates_and_accelerations_are_one_motion(given, method):
    sim = da.Simulation(chain((0, 2)), da.Reduced(dt=0.01, method=method), energy_bound=None)
    for name in ("joint 0", "joint 2"):
        sim.set_joint(name, rate=1.5)
        sim.set_target(name, **GIVEN[given])
    run = sim.run(0.5)
    for name in ("joint 0", "joint 2"):
        series = run.joint(name)
        np.testing.assert_allclose(series.coordinates, [angle(t) for t in run.time], atol=1e-11)
        np.testing.assert_allclose(series.rates, [rate(t) for t in run.time], atol=1e-9 if method != "bdf2" else 2e-3)


def test_half_of_the_joints_prescribed_take_the_torques_of_inverse_dynamics():
    """Torques found while two joints follow and two are free, put in as forces, give the same motion: and Pinocchio agrees."""
    sim = da.Simulation(chain((0, 2)), da.Reduced(dt=0.002, method="rk4"), energy_bound=None)
    for name in ("joint 0", "joint 2"):
        sim.set_joint(name, rate=1.5)
        sim.set_target(name, angle, rate=rate, acceleration=acceleration)
    run = sim.run(0.2)
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.Model()
    parent, axes = 0, (pinocchio.JointModelRY, pinocchio.JointModelRZ, pinocchio.JointModelRY, pinocchio.JointModelRX)
    for i, axis in enumerate(axes):
        offset = pinocchio.SE3(np.eye(3), np.array([1.0 if i else 0.0, 0.0, 0.0]))
        parent = model.addJoint(parent, axis(), offset, f"joint {i}")
        body = sim.mechanism.bodies[i]
        model.appendBodyToJoint(parent, pinocchio.Inertia(body.mass, np.array([0.5, 0.0, 0.0]), np.asarray(body.inertia)), pinocchio.SE3.Identity())
    model.armature = 0.1 * np.ones(4)
    model.gravity.linear = np.array([0.0, 0.0, -9.81])
    data = model.createData()
    for knot in (0, 37, 100):
        q, v = (np.array([getattr(run.joint(f"joint {i}"), what)[knot] for i in range(4)]) for what in ("coordinates", "rates"))
        given = acceleration(run.time[knot])
        # free joints carry nothing: their accelerations follow from Pinocchio's own mass matrix, given those of the driven ones
        M, bias = pinocchio.crba(model, data, q), pinocchio.nonLinearEffects(model, data, q, v)
        M = np.triu(M) + np.triu(M, 1).T
        free, held = [1, 3], [0, 2]
        a = np.zeros(4)
        a[held] = given
        a[free] = np.linalg.solve(M[np.ix_(free, free)], -bias[free] - M[np.ix_(free, held)] @ a[held])
        torque = pinocchio.rnea(model, data, q, v, a)
        for i in held:
            assert run.joint(f"joint {i}").actuation[knot] == pytest.approx(torque[i], rel=1e-10, abs=1e-9)


def test_targets_that_jump_push_the_rest():
    """A controller's targets are ramps: the driven rate jumps at every knot, and momentum of the free joint is kept in that."""
    sim = da.Simulation(chain((0,)), da.Reduced(dt=0.001, method="rk4"), energy_bound=None)
    stepped = sim.run(0.2, control=lambda s: {"joint 0": angle(s.time + 0.001)})
    sim = da.Simulation(chain((0,)), da.Reduced(dt=0.001, method="rk4"), energy_bound=None)
    sim.set_joint("joint 0", rate=1.5)
    sim.set_target("joint 0", angle)
    smooth = sim.run(0.2)
    # the first jump is from rest to the ramp's rate, which the smooth run has from the start: joints below begin at other rates
    assert np.abs(stepped.joint("joint 0").coordinates - smooth.joint("joint 0").coordinates).max() < 1e-9
    sim = da.Simulation(chain((0,)), da.Variational(dt=0.001), energy_bound=None)
    other = sim.run(0.2, control=lambda s: {"joint 0": angle(s.time + 0.001)})
    assert np.abs(stepped.position[-1] - other.position[-1]).max() < 2e-4


def test_free_rotations_follow_too():
    def turn(t):
        return [0.3 * t, 0.5 * np.sin(2.0 * t), -0.4 * t]

    ends = []
    for formulation in (da.Reduced(dt=0.01, method="rk4"), da.Reduced(dt=0.005, method="rk4"), da.Reduced(dt=0.1, method="DOP853", rtol=1e-11)):
        mechanism = da.Mechanism("driven ball")
        ball = mechanism.body("ball", da.Box(size=[0.3, 0.2, 0.1], mass=1.0), position=[0.0, 0.0, -0.2])
        tail = mechanism.body("tail", da.Box(size=[0.1, 0.1, 0.5], mass=0.5), position=[0.0, 0.0, -0.6])
        mechanism.joint("neck", da.Spherical(drive="motion"), mechanism.world, ball, at=[0.0, 0.0, 0.0])
        mechanism.joint("hinge", da.Revolute(axis="x"), ball, tail, at=[0.0, 0.0, -0.35])
        sim = da.Simulation(mechanism, formulation, energy_bound=None)
        sim.set_target("neck", turn)
        run = sim.run(0.5)
        np.testing.assert_allclose(run.joint("neck").coordinates[-1], turn(0.5), atol=1e-9)
        ends.append(run.position[-1])
    assert np.abs(ends[1] - ends[2]).max() < max(0.1 * np.abs(ends[0] - ends[2]).max(), 1e-9)


def test_drives_that_over_determine_a_loop_are_named():
    mechanism = da.Mechanism("driven four-bar")
    a, b, c = (mechanism.body(name, da.Box(size=size, mass=1.0), position=place) for name, size, place in (
        ("crank", [0.1, 0.1, 1.0], [0.0, 0.0, 0.5]), ("coupler", [1.0, 0.1, 0.1], [0.5, 0.0, 1.0]), ("rocker", [0.1, 0.1, 1.0], [1.0, 0.0, 0.5])))
    mechanism.joint("left", da.Revolute(axis="y", drive="motion"), mechanism.world, a, at=[0.0, 0.0, 0.0])
    mechanism.joint("right", da.Revolute(axis="y", drive="motion"), mechanism.world, c, at=[1.0, 0.0, 0.0])
    mechanism.joint("top", da.Revolute(axis="y"), a, b, at=[0.0, 0.0, 1.0])
    mechanism.joint("closing", da.Revolute(axis="y"), b, c, at=[1.0, 0.0, 1.0])
    for method in ("rk4", "DOP853", "bdf2"):
        sim = da.Simulation(mechanism, da.Reduced(dt=0.01, method=method))
        sim.set_target("left", lambda t: 0.5 * t)
        sim.set_target("right", lambda t: 0.4 * t)
        with pytest.raises(da.StepFailure, match=r"(?s)'left'.*'right'|'right'.*'left'"):
            sim.run(0.2)
        assert sim.time < 0.02
        together = da.Simulation(mechanism, da.Reduced(dt=0.01, method=method))
        for name in ("left", "right"):
            together.set_target(name, lambda t: 0.5 * t)
        assert together.run(0.2).constraint_violation().max() < 1e-9


def test_bad_targets_are_named():
    sim = da.Simulation(chain((0,)), da.Reduced(dt=0.01, method="rk4"))
    for bad, words in (({}, "needs a target"), ({"target": 0.3, "rate": 1.0}, "function of time"), ({"rate": [1.0, 2.0]}, "1 finite numbers")):
        with pytest.raises(da.ModelError, match=words):
            sim.set_target("joint 0", **bad)
