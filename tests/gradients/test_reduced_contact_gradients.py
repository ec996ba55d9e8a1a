"""Gradients of joint coordinates through contact, joint limits and dry friction."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import dalembert as da

METHODS = {m: da.Reduced(dt=0.01, method=m, tolerance=1e-13) for m in ("bdf2", "bdf1", "sdirk2", "pareschi_russo")}
BDF2 = METHODS["bdf2"]
#: the bars: adjoint against forward, and against differences of the run, away from events
EXACT, NEAR = 1e-9, 1e-4
pytestmark = pytest.mark.filterwarnings("ignore::dalembert.GradientWarning")


def assert_right(check: da.GradientCheck) -> None:
    assert check.forward_error < EXACT, str(check)
    assert check.difference_error < NEAR, str(check)


def walker(restitution: float = 0.2, drive: str = "motion") -> da.Mechanism:
    """A free trunk on two feet: a ball, a joint read from child to parent, a driven knee, one with limits that rubs."""
    m = da.Mechanism("walker", gravity=(0.2, 0.1, -9.81))
    m.ground(friction=0.4, restitution=restitution)
    m.body("trunk", mass=2.0, inertia=np.diag([0.03, 0.04, 0.05]), position=(0, 0, 0.5))
    for k, x in enumerate((-0.2, 0.2)):
        m.body(f"thigh {k}", mass=0.5, inertia=np.diag([0.004, 0.005, 0.002]), position=(x, 0.05, 0.4))
        m.body(f"shin {k}", mass=0.4, inertia=np.diag([0.003, 0.004, 0.002]), position=(x, 0.05, 0.15), orientation=(0.99, 0.1, 0.05, 0))
        m.contact_point(f"shin {k}", point=(0, 0, -0.1), radius=0.04)
    m.joint("ball", da.Spherical(damping=0.1, stiffness=1.0), "trunk", "thigh 0", at=(-0.2, 0.05, 0.5))
    m.joint("cross", da.Universal(damping=0.1, limits=((-0.5, 0.4), (-0.4, 0.5)), friction=0.05), "thigh 1", "trunk", at=(0.2, 0.05, 0.5))
    m.joint("driven", da.Revolute(axis="y", drive=drive), "thigh 0", "shin 0", at=(-0.2, 0.05, 0.28))
    knee = da.Revolute(axis="y", stiffness=5.0, damping=0.2, limits=(-0.3, 0.02), friction=0.02, restitution=0.3)
    m.joint("knee", knee, "thigh 1", "shin 1", at=(0.2, 0.05, 0.28))
    return m


def drop(sim: da.Simulation) -> None:
    sim.set_velocity("trunk", linear=(0.3, 0.1, -1.0), angular=(0.4, 0.3, -0.2))
    sim.set_joint("knee", rate=0.8)


NAMES = [
    "ground.friction", "ground.restitution", "trunk.mass", "thigh 0.inertia", "shin 1.centre_of_mass", "gravity", "ball.point_parent",
    "cross.turn_child", "cross.friction", "knee.upper", "knee.friction", "knee.restitution", "knee.point_child", "driven.turn_parent",
    "shin 0 contact 0.radius", "shin 1 contact 0.point", "trunk.start_velocity", "trunk.start_angular_velocity", "knee.start_rate",
]
#: those that tests of every day take
SOME = ["ground.friction", "ground.restitution", "trunk.mass", "cross.friction", "knee.upper", "knee.point_child", "shin 1 contact 0.point", "trunk.start_velocity"]


def test_feet_limits_and_dry_friction_in_a_tree():
    """By differences alone: what forward sensitivities need is compiled in the slow tests."""
    check = da.validate_gradients(walker(), BDF2, SOME, steps=8, setup=drop, step=1e-5, forward=False)
    assert check.difference_error < NEAR, str(check)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_all_methods(method):
    assert_right(da.validate_gradients(walker(), METHODS[method], NAMES, steps=10, setup=drop, step=1e-5))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_where_the_ground_is(method):
    """Feet that stay on it go with it; those that bounce hardly see it, as impacts take their velocities from the knot."""
    names = ["ground.offset", "ground.friction", "shin 0 contact 0.radius"]
    check = da.validate_gradients(walker(restitution=0.0), METHODS[method], names, steps=12, setup=drop, step=1e-5)
    assert_right(check)
    assert abs(check.rows[0].adjoint) > 1.0


def sink(sim: da.Simulation) -> None:
    """One foot lands on the ground in the second step, and stays there."""
    sim.set_velocity("trunk", linear=(0.3, 0.1, -1.0), angular=(0.0, 0.1, -0.2))


#: what a foot that presses does to what joints transmit
PRESSED = ["ground.offset", "trunk.mass", "cross.friction", "knee.point_child", "shin 1 contact 0.point", "gravity", "trunk.start_velocity"]


def test_joint_forces_while_a_foot_presses():
    check = da.validate_gradients(walker(0.0, "force"), BDF2, PRESSED, steps=8, setup=sink, step=1e-5, outputs=("force", "torque"), forward=False)
    assert check.difference_error < NEAR, str(check)
    assert min(abs(row.adjoint) for row in check.rows) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("drive", ["force", "motion"])
@pytest.mark.parametrize("method", METHODS)
def test_joint_forces_of_all_methods(method, drive):
    """Forward sensitivities of forces carry the rounding of positions over the square of a stage, which is a third of a step in SDIRK2.

    At the knot of a blow dry friction stays below its bound by what the interior point leaves; the derivative holds these products, the run does not. That is seen
    in steps of backward Euler, which those after a blow are in the Pareschi-Russo method too.
    """
    names = [name for name in NAMES if name != "ground.restitution"]
    check = da.validate_gradients(walker(0.0, drive), METHODS[method], names, steps=8, setup=sink, step=1e-5, outputs=("force", "torque"))
    assert check.forward_error < 5e-8, str(check)
    assert check.difference_error < (3e-4 if method in ("bdf1", "pareschi_russo") else NEAR), str(check)


def steered(sim):
    (angle,), (rate,) = sim.coordinates("driven"), sim.rates("driven")
    push = np.array([-0.5 * sim.velocity[0, 0], 0.2 * sim.position[0, 1], 0.0, 0.0, 0.01 * sim.angular_velocity[0, 1], 0.0])
    return {"driven": -2.0 * np.sin(angle) - 0.3 * rate, "trunk": push}


@pytest.mark.parametrize("method", ["bdf2", *(pytest.param(m, marks=pytest.mark.slow) for m in ("bdf1", "sdirk2", "pareschi_russo"))])
def test_a_controller_that_sees_what_touches(method):
    names = ["ground.friction", "trunk.mass", "cross.friction", "knee.upper", "ball.point_parent", "trunk.start_velocity"]
    check = da.validate_gradients(walker(drive="force"), METHODS[method], names, steps=10, setup=drop, step=1e-5, control=steered, forward=method != "bdf2")
    assert_right(check)


def frame() -> da.Mechanism:
    """A planar loop, three of whose rows are redundant, that falls on one corner; one of its joints meets a limit."""
    m = da.Mechanism("frame")
    m.ground(friction=0.5, restitution=0.3)
    bars = ("left", -0.3, 0.25, (0.05, 0.05, 0.4)), ("right", 0.3, 0.3, (0.05, 0.05, 0.3)), ("top", 0.0, 0.45, (0.6, 0.05, 0.05)), ("bottom", 0.05, 0.15, (0.5, 0.05, 0.05))
    for name, x, z, size in bars:
        m.body(name, da.Box(size=size, mass=1.0), position=(x, 0, z))
    for a, b, x, z in (("left", "top", -0.3, 0.45), ("top", "right", 0.3, 0.43), ("right", "bottom", 0.25, 0.15), ("bottom", "left", -0.3, 0.18)):
        limited = da.Revolute(axis="y", friction=0.05, limits=(-0.2, 0.01), restitution=0.2)
        m.joint(f"{a} {b}", limited if a == "top" else da.Revolute(axis="y", friction=0.05, damping=0.05), a, b, at=(x, 0, z))
    m.contact_point("left", point=(0, 0.01, -0.2), radius=0.02)
    return m


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_loop_with_redundant_rows(method):
    names = ["ground.friction", "ground.offset", "top.mass", "right bottom.friction", "top right.upper", "left contact 0.radius", "left.start_velocity"]

    def fall(sim: da.Simulation) -> None:
        sim.set_velocity("left", linear=(0.5, 0.1, -0.6), angular=(0, 0.4, 0.1))

    assert_right(da.validate_gradients(frame(), METHODS[method], names, steps=10, setup=fall, step=1e-5))


def shapes(kind: str) -> tuple[da.Mechanism, list[str]]:
    m = da.Mechanism(kind)
    if kind == "balls":
        m.body("a", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 0), collide=True)
        m.body("b", da.Sphere(radius=0.08, mass=0.5), position=(0.19, 0.03, 0), collide=True)
        m.contact_pair("a", "b", friction=0.3, restitution=0.5)
        return m, ["a.radius", "b.radius", "a and b.friction", "a and b.restitution"]
    m.obstacle("floor", da.Box(size=(1, 1, 0.2), mass=1.0), position=(0, 0, -0.1), friction=0.3)
    m.body("a", da.Sphere(radius=0.08, mass=0.5), position=(0.19, 0.03, 0.09), collide=True)
    return m, ["a.radius", "floor.friction"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["balls", "ball on box"])
def test_shapes(kind):
    mechanism, names = shapes(kind)

    def meet(sim: da.Simulation) -> None:
        sim.set_velocity("a", linear=(0.5, 0.2, -0.3), angular=(0.3, 0.5, -1.0))
        if "b" in mechanism:
            sim.set_velocity("b", linear=(-0.5, -0.2, 0.0), angular=(0.3, -0.5, -1.0))

    assert_right(da.validate_gradients(mechanism, BDF2, [*names, "a.mass", "a.inertia", "a.start_velocity"], steps=12, setup=meet, step=1e-5))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bdf2", "bdf1"])
def test_a_box_that_slides_and_turns(method):
    """Four corners press, three would do: shares of impulses are as exact as gaps are rounded, so that differences take long steps, by gravity
    the longest: their error falls as 1/step there, from 7e-3 at 1e-3.
    """
    m = da.Mechanism("box")
    m.ground(friction=0.3)
    m.body("box", da.Box(size=(0.4, 0.3, 0.2), mass=1.0), position=(0, 0, 0.1), collide=True)

    def slide(sim: da.Simulation) -> None:
        sim.set_velocity("box", linear=(1.0, 0.3, 0), angular=(0, 0, 1.0))

    names = ["box.mass", "gravity", "box.start_velocity", "box.start_angular_velocity", "box.inertia", "ground.friction"]
    check = da.validate_gradients(m, METHODS[method], names, steps=8, setup=slide, step=1e-2)
    assert check.forward_error < EXACT, str(check)
    assert max(row.difference_error for row in check.rows if row.name != "gravity") < NEAR, str(check)
    assert_right(da.validate_gradients(m, METHODS[method], ["gravity"], steps=8, setup=slide, step=5e-2))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_box_that_lands(method):
    """In the step in which its four corners land, their shares move friction, and one ulp of the height that it starts from moves the derivative
    by 2e-8: no two ways to compute it agree to more than some 1e-9.
    """
    m = da.Mechanism("box")
    m.ground(friction=0.3)
    m.body("box", da.Box(size=(0.2, 0.3, 0.1), mass=1.0), position=(0, 0, 0.13), orientation=(0.98, 0.1, 0.15, 0.05), collide=True)

    def throw(sim: da.Simulation) -> None:
        sim.set_velocity("box", linear=(0.5, 0.2, -0.3), angular=(0.3, 0.5, -1.0))

    names = ["box.size", "ground.offset", "ground.friction", "box.mass", "box.inertia", "box.start_velocity"]
    check = da.validate_gradients(m, METHODS[method], names, steps=20, setup=throw, step=1e-4)
    assert check.difference_error < NEAR, str(check)
    assert max(row.forward_error for row in check.rows if row.name != "ground.offset") < EXACT, str(check)
    assert check.forward_error < 1e-8, str(check)


@pytest.mark.slow
def test_smoothed_gradients_leave_the_run_alone():
    names = ["ground.restitution", "trunk.mass", "trunk.start_velocity", "knee.friction"]
    sim = da.Simulation(walker(), BDF2, energy_bound=None)
    drop(sim)
    run = sim.run(0.08, tape=True)
    before, weights = run.position.copy(), {"position": np.ones_like(run.position)}
    exact, near, far = (run.vjp(weights, names, gradient_smoothing=s) for s in (0.0, 1e-3, 0.1))
    assert (exact.smoothing, near.smoothing, far.smoothing) == (0.0, 1e-3, 0.1)
    np.testing.assert_array_equal(run.position, before)
    for name in names:
        size = np.abs(exact[name]).max()
        assert np.abs(near[name] - exact[name]).max() < 1e-2 * size
        assert np.abs(far[name] - exact[name]).max() > 1e-4 * size


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_smoothed_gradients_of_all_methods(method):
    names = ["ground.friction", "trunk.mass", "trunk.start_velocity", "knee.friction"]
    assert da.validate_gradients(walker(), METHODS[method], names, steps=8, setup=drop, gradient_smoothing=0.03).forward_error < EXACT


def test_a_contact_that_just_closes_is_said():
    m = da.Mechanism("grazing")
    m.gravity = np.zeros(3)
    m.ground(friction=0.3)
    m.body("ball", mass=1.0, inertia=0.1 * np.eye(3), position=(0, 0, 0))
    m.contact_point("ball")
    run = da.Simulation(m, BDF2).run(0.03, tape=True)
    weights = {"position": np.ones_like(run.position)}
    with pytest.warns(da.GradientWarning, match="'ball / ground' just opens or closes.*between those of both sides"):
        run.vjp(weights, ["ball.start_velocity"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.vjp(weights, ["ball.start_velocity"], gradient_smoothing=0.01)


def test_checkpoints_change_nothing(monkeypatch):
    names, found = ["ground.friction", "trunk.mass", "knee.upper", "knee.start_rate"], []
    for budget in (64_000_000, 60_000):
        monkeypatch.setattr("dalembert.simulation.simulation.BUDGET", budget)
        sim = da.Simulation(walker(), BDF2, energy_bound=None)
        drop(sim)
        run = sim.run(0.12, tape=True)
        assert run.record is not None
        assert (run.record.tape is None) == (budget == 60_000)
        found.append(run.vjp({"position": np.ones_like(run.position), "velocity": np.ones_like(run.velocity)}, names))
    for name in names:
        np.testing.assert_allclose(found[1][name], found[0][name], rtol=1e-9, atol=1e-12)


def test_the_jacobian_of_a_step_with_contacts():
    """One of its rows is that of the knee: what one step pulls back."""
    sim = da.Simulation(walker(), BDF2, energy_bound=None)
    drop(sim)
    sim.run(0.02)
    before = sim.state
    jacobian = sim.step_jacobian(["knee.friction", "gravity"])
    np.testing.assert_array_equal(sim.state.numbers, before.numbers)
    one = sim.run(BDF2.dt, tape=True)
    weights = np.zeros((2, len(one.joints), 6))
    weights[-1, one.joints.index("knee"), 0] = 1.0
    pulled = one.vjp({"coordinate": weights}, ["knee.friction", "gravity"])
    rows = np.concatenate([jacobian.parameters["knee.friction"][:, None], jacobian.parameters["gravity"]], axis=1)
    expected = np.concatenate([[float(pulled["knee.friction"])], pulled["gravity"]])
    assert np.abs(expected).max() > 1e-6
    assert np.abs(rows - expected).max(axis=1).min() < 1e-9 * np.abs(expected).max()


def test_what_cannot_be_differentiated_says_so():
    run = da.Simulation(walker(), BDF2, energy_bound=None).run(0.02, tape=True)
    with pytest.raises(da.GradientError, match="step_jacobian"):
        run.step_jacobians()
