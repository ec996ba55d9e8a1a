"""Gradients of what joints transmit: through impulses, acceleration-level solves, and least-norm forces of redundant joints and drives."""
from __future__ import annotations

import numpy as np
import pytest
from machines import two_motors
from test_reduced_contact_gradients import PRESSED, sink, walker

import dalembert as da

#: forward sensitivities of forces are differences of positions over dt^2: a longer step leaves more digits of them
METHODS = {
    "variational": da.Variational(dt=0.03, tolerance=1e-13), "bdf2": da.Implicit(dt=0.02, tolerance=1e-13, solver="general"),
    "sdirk2": da.Implicit(dt=0.03, method="sdirk2", tolerance=1e-13, solver="general"),
}
ALL = pytest.mark.parametrize("formulation", [pytest.param(f, id=n, marks=[pytest.mark.slow] * (n == "sdirk2")) for n, f in METHODS.items()])
FORCES = ("force", "torque")
IN_STAGES = {method: da.Implicit(dt=0.01, method=method, tolerance=1e-13, solver="general") for method in ("bdf1", "bdf2", "sdirk2")}


def assert_right(check: da.GradientCheck, *, forward: float = 1e-9, differences: float = 1e-6) -> None:
    assert check.forward_error < forward, str(check)
    assert check.difference_error < differences, str(check)


@ALL
def test_forces_of_a_double_pendulum_by_all_its_parameters(formulation):
    def setup(sim):
        sim.set_joint("joint 1", 0.4, rate=0.5)
        sim.set_joint("joint 2", 0.3, rate=-0.2)

    assert_right(da.validate_gradients(da.zoo.double_pendulum(), formulation, steps=4, setup=setup, outputs=FORCES))


@ALL
def test_least_norm_forces_of_a_loop_with_redundant_rows(formulation):
    """Three of its 25 rows are redundant."""
    names = ["1 hanger.start", "1 top.start", "1 top.start_rate", "1 upper left.mass", "1 lower right.inertia", "gravity", "1 left.damping", "1 left.stiffness"]
    assert_right(da.validate_gradients(da.zoo.four_bar_chain(1), formulation, names, steps=5, outputs=FORCES))


@ALL
def test_least_norm_forces_of_too_many_drives(formulation):
    """A parallelogram with both cranks driven: what the motors share is least in a weighted norm."""
    steps = 6
    targets = 0.3 * np.sin(np.linspace(0.0, 1.0, steps + 1))
    values = {"left motor.target": targets, "right motor.target": targets}
    check = da.validate_gradients(two_motors(), formulation, ["bar.mass", "left.inertia", "gravity", "bar.force"], steps=steps, values=values, outputs=FORCES)
    assert_right(check)
    assert abs(check.rows[0].adjoint) > 1.0


def test_weights_of_the_norm():
    """Sparing one motor moves load to the other: vjp and jvp follow ``least_norm`` with the same weights."""
    sim = da.Simulation(two_motors(), METHODS["bdf2"])
    sim.set_target("left motor", lambda t: 0.3 * t**2)
    sim.set_target("right motor", lambda t: 0.3 * t**2)
    run = sim.run(0.1, tape=True)
    weights = np.zeros((len(run), 4, 3))
    weights[3, 0] = 1.0, 2.0, 3.0
    found = {}
    for heavy in (1.0, 10.0):
        norm = {"weights": {"left motor": heavy}, "drive_weight": 2.0}
        vjp = run.vjp({"torque": weights}, ["bar.mass"], **norm)["bar.mass"]
        jvp = run.jvp({"bar.mass": 1.0}, **norm)["torque"]
        assert abs(vjp - np.sum(weights * jvp)) < 1e-9 * abs(vjp)
        # forces are linear in a mass whose motion is given
        heavier = da.Simulation(two_motors(), METHODS["bdf2"])
        heavier.set_parameters({"bar.mass": 2.0})
        for name in ("left motor", "right motor"):
            heavier.set_target(name, lambda t: 0.3 * t**2)
        change = heavier.run(0.1).least_norm(**norm)["left motor"].torque - run.least_norm(**norm)["left motor"].torque
        assert abs(vjp - change[3] @ weights[3, 0]) < 1e-8 * abs(vjp)
        found[heavy] = vjp
    assert abs(found[1.0] - found[10.0]) > 1e-3 * abs(found[1.0])


@pytest.mark.filterwarnings("ignore::dalembert.GradientWarning")
def test_joint_forces_while_a_foot_presses():
    """By differences alone: what forward sensitivities need is compiled in the slow tests."""
    names = ["ground.offset", "trunk.mass", "knee.point_child", "trunk.start_velocity"]
    check = da.validate_gradients(walker(0.0, "force"), IN_STAGES["bdf1"], names, steps=8, setup=sink, step=1e-5, outputs=FORCES, forward=False)
    assert check.difference_error < 1e-4, str(check)
    assert max(abs(row.adjoint) for row in check.rows) > 1.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dalembert.GradientWarning")
@pytest.mark.parametrize("method", ["bdf1", "bdf2", "sdirk2"])
def test_joint_forces_while_a_foot_presses_in_stages(method):
    """Forces at a knot are those of the stage that ends there, or after an impact of a later one: so are their derivatives.

    Differences see what last digits do to dry friction beside the blow of the landing, over their step.
    """
    check = da.validate_gradients(walker(0.0, "force"), IN_STAGES[method], PRESSED, steps=8, setup=sink, step=1e-5, outputs=FORCES, rounding=True)
    assert check.agrees(5e-9, 1e-4), str(check)  # sensitivities of forces carry the rounding of positions over the square of a stage
