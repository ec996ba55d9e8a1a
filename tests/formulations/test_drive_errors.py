"""Drives that cannot be followed: each error names them, says by how much, and leaves the last good state."""
from __future__ import annotations

import re

import numpy as np
import pytest
from machines import two_motors

import dalembert as da
from dalembert import zoo

SOLVERS = ["kinematic", "general"]


def driven(mechanism: da.Mechanism, motion, solver: str, **options) -> da.Simulation:
    sim = da.Simulation(mechanism, da.Implicit(dt=0.01, solver=solver, **{"max_halvings": 1, **options}))
    for name, target in motion.items():
        sim.set_target(name, target)
    return sim


def failure(sim: da.Simulation, duration: float = 0.5) -> str:
    with pytest.raises(da.StepFailure) as caught:
        sim.run(duration)
    return str(caught.value)


def named(message: str, mechanism: da.Mechanism) -> set[str]:
    """Joints that a message names."""
    return {j.name for j in mechanism.joints if repr(j.name) in message}


def with_a_third_motor() -> da.Mechanism:
    """Two motors on one parallelogram, and one that has nothing to do with them."""
    mechanism = two_motors()
    mechanism.body("fan", da.Rod(length=0.3, mass=0.5, radius=0.01, axis="x"), position=(3, 0, 0))
    mechanism.joint("fan motor", da.Revolute(axis="z", drive="motion"), mechanism.world, "fan", at=(3, 0, 0))
    return mechanism


@pytest.mark.parametrize("solver", SOLVERS)
def test_targets_that_disagree(solver):
    """They part at t = 0.2 s, by 0.005 rad in the first step; the nearest pose misses both by half of it."""
    sim = driven(with_a_third_motor(), {
        "left motor": lambda t: 0.3 * t, "right motor": lambda t: 0.3 * t - 0.5 * max(t - 0.2, 0.0), "fan motor": lambda t: 5.0 * t,
    }, solver)
    message = failure(sim)
    assert named(message, sim.mechanism) == {"left motor", "right motor"}
    misses = [abs(float(m)) for m in re.findall(r"by (-?[\d.e-]+) rad", message)]
    assert misses == pytest.approx([0.0025, 0.0025], rel=1e-2)
    assert sim.time == pytest.approx(0.2, abs=0.0101)
    assert sim.coordinates("left motor")[0] == pytest.approx(0.3 * sim.time, abs=1e-9)
    sim.set_target("right motor", lambda t: 0.3 * t)
    assert sim.run(0.1).constraint_violation().max() < 1e-10


@pytest.mark.parametrize("solver", SOLVERS)
def test_overactuated_drives_that_disagree_are_all_named(solver):
    motion = dict(zoo.walker_motion())
    knee = motion["left knee drive"]
    sim = driven(zoo.walker_legs(), {**motion, "left knee drive": lambda t: knee(t) + 0.02 * t}, solver)
    message = failure(sim)
    assert "'left knee drive' by" in message
    assert named(message, sim.mechanism) <= set(motion)
    assert re.search(r"by -?[\d.e-]+ m\b", message)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_strut_out_of_reach(solver):
    """One drive of 27: the elbow's strut is asked to grow beyond what the stretched arm allows."""
    sim = driven(zoo.animatronic_figure(), {**zoo.figure_motion(), "left elbow drive": lambda t: 0.5 * t}, solver)
    message = failure(sim)
    assert named(message, sim.mechanism) == {"left elbow drive"}
    assert re.search(r"'left elbow drive' by -0\.00\d+ m", message)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_jump_that_is_too_large_for_a_step(solver):
    for jump, error in ((3.0, da.ModelError), (1.45, da.StepFailure)):
        sim = driven(two_motors(), {f"{side} motor": lambda t, jump=jump: 0.0 if t < 0.1 else jump for side in ("left", "right")}, solver)
        with pytest.raises(error, match=rf"(left|right) motor.*by {jump:.3g} rad"):
            sim.run(0.5)
        assert sim.time == pytest.approx(0.0 if error is da.ModelError else 0.09)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_controller_that_asks_for_too_much(solver):
    sim = driven(two_motors(), {}, solver)
    with pytest.raises(da.StepFailure, match="'left motor' by"):
        sim.run(0.5, control=lambda sim: {"left motor": 0.1, "right motor": 0.0})


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_table_that_does_not_cover_the_run(solver):
    times = np.linspace(0.0, 0.4, 9)
    sim = driven(two_motors(), {f"{side} motor": (times, 0.1 * times**2) for side in ("left", "right")}, solver)
    before = sim.position
    with pytest.raises(da.ModelError, match=r"'left motor' covers 0 to 0.4 s, the run goes from 0 to 0.5 s"):
        sim.run(0.5)
    assert sim.time == 0.0
    np.testing.assert_array_equal(sim.position, before)
    sim.run(0.4)
    with pytest.raises(da.ModelError, match=r"the run goes from 0.4 to 0.5 s"):
        sim.run(0.1)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: da.Fixed(drive="motion"), "no free direction"),
    (lambda: da.Revolute(drive=(None, "motion")), "drive needs 1 entries.*locked"),
    (lambda: da.Cylindrical(drive=("motion",)), "drive needs 2 entries"),
])
def test_a_drive_on_a_locked_direction(make, message):
    with pytest.raises(da.ModelError, match=message):
        make()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_target_for_a_locked_direction(solver):
    sim = driven(zoo.walker_legs(), {}, solver)
    with pytest.raises(da.ModelError, match="'left foot cover mount' is not motion-driven and has no servo; it locks every direction"):
        sim.set_target("left foot cover mount", 0.1)
    with pytest.raises(da.ModelError, match="'left knee' is not motion-driven and has no servo; make it"):
        sim.set_target("left knee", 0.1)
    with pytest.raises(da.ModelError, match=r"target of joint 'left knee drive'.*must be 1 finite"):
        sim.set_target("left knee drive", (0.1, 0.2, 0.3))


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan])
def test_weights_must_be_positive(weight):
    with pytest.raises(da.ModelError, match=r"drive_weight must be (positive|finite)"):
        da.Implicit(dt=0.01, drive_weight=weight)
    sim = da.Simulation(two_motors(), da.Implicit(dt=0.01))
    with pytest.raises(da.ModelError, match=r"'left motor' must be (positive|finite)"):
        sim.solve_pose({"left motor": 0.1}, weights={"left motor": weight})
    trajectory = sim.run(0.02)
    with pytest.raises(da.ModelError, match=r"'left motor' must be (positive|finite)"):
        trajectory.least_norm({"left motor": weight})
    with pytest.raises(da.ModelError, match=r"'left motor' must be (positive|finite)"):
        trajectory.least_norm({"left motor": [1.0, 1.0, 1.0, 1.0, 1.0, weight]})
    with pytest.raises(da.ModelError, match=r"drive_weight must be (positive|finite)"):
        trajectory.least_norm(drive_weight=weight)
