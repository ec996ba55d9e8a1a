"""Intervals covered in several steps: where one has no solution, and where its error would be too large."""
import numpy as np
import pytest
from machines import two_motors

import dalembert as da
from dalembert import zoo
from dalembert.formulations.implicit.tableaus import TABLEAUS, tableau


def turn(time):
    return 6.0 * time + 0.3 * np.sin(9.0 * time)


def run_motors(formulation: da.Implicit | da.Variational, right=turn) -> da.Trajectory:
    sim = da.Simulation(two_motors(), formulation)
    sim.set_target("left motor", turn)
    sim.set_target("right motor", right)
    return sim.run(1.0)


def test_substeps_follow_functions_at_their_own_times():
    """At 8 rad/s a step of 0.1 s turns too far for the variational integrator; its halves meet the targets between the knots."""
    trajectory = run_motors(da.Variational(dt=0.1))
    assert trajectory.substeps.max() >= 2
    np.testing.assert_allclose(trajectory.joint("left motor").coordinates, turn(trajectory.time), atol=1e-9)
    assert trajectory.constraint_violation().max() < 1e-10
    fine = run_motors(da.Variational(dt=0.1 / 2 ** int(np.log2(trajectory.substeps.max()))))
    np.testing.assert_allclose(trajectory.position, fine.position[:: (len(fine.time) - 1) // 10], atol=1e-9)


@pytest.mark.parametrize("method", ["bdf1", "bdf2", "sdirk2"])
def test_stages_follow_functions_at_their_own_times(method):
    """Two drives that agree at all times agree at the stages too, though between the knots they are far from straight."""
    trajectory = run_motors(da.Implicit(dt=0.05, method=method, solver="general"))
    np.testing.assert_allclose(trajectory.joint("right motor").coordinates, turn(trajectory.time), atol=1e-9)
    assert trajectory.constraint_violation().max() < 1e-10


def test_a_controller_takes_over_from_a_function():
    sim = da.Simulation(two_motors(), da.Implicit(dt=0.01, method="sdirk2"))
    for side in ("left", "right"):
        sim.set_target(f"{side} motor", lambda t: 3.0 * t)
    trajectory = sim.run(0.1, control=lambda sim: {f"{side} motor": 0.5 * (sim.time + 0.01) for side in ("left", "right")})
    np.testing.assert_allclose(trajectory.joint("left motor").coordinates, 0.5 * trajectory.time, atol=1e-10)


def test_the_state_is_the_last_good_one_where_no_split_helps():
    sim = da.Simulation(two_motors(), da.Variational(dt=0.01, max_halvings=3))
    sim.set_target("left motor", lambda t: 0.3 * t)
    sim.set_target("right motor", lambda t: 0.3 * t - 0.1 * max(t - 0.2, 0.0))
    with pytest.raises(da.StepFailure):
        sim.run(0.5)
    assert sim.time == pytest.approx(0.2, abs=0.0101)
    assert sim.coordinates("left motor")[0] == pytest.approx(0.3 * sim.time, abs=1e-9)


@pytest.fixture(scope="module")
def falling() -> da.Trajectory:
    return da.Simulation(zoo.double_pendulum(), da.Variational(dt=1e-4)).run(1.0)


def test_steps_by_accuracy(falling):
    """The error follows the accuracy asked for by its root, as a method of first order has it, and beats equal steps."""
    errors, steps = [], []
    for accuracy in (1e-4, 1e-6):
        trajectory = da.Simulation(zoo.double_pendulum(), da.Implicit(dt=0.01, method="sdirk2", accuracy=accuracy)).run(1.0)
        assert trajectory.constraint_violation().max() < 1e-10
        errors.append(np.abs(trajectory.position - falling.position[::100]).max())
        steps.append(int(trajectory.substeps.sum()))
        assert trajectory.substeps.max() > 1.5 * trajectory.substeps[1:].min()  # small where it is fast, large where it is slow
    assert np.log10(errors[0] / errors[1]) == pytest.approx(1.0, abs=0.15)
    assert steps[1] / steps[0] == pytest.approx(10.0, rel=0.25)
    parts = -(-steps[1] // 100)
    equal = da.Simulation(zoo.double_pendulum(), da.Implicit(dt=0.01 / parts, method="sdirk2")).run(1.0)
    assert errors[1] < np.abs(equal.position[::parts] - falling.position[::100]).max()


def test_an_accuracy_out_of_reach():
    """A force that jumps within a step has no error that shrinks; neither has rounding."""
    sim = da.Simulation(zoo.double_pendulum(), da.Implicit(dt=0.01, method="sdirk2", accuracy=1e-22))
    with pytest.raises(da.StepFailure, match="accuracy"):
        sim.run(0.1)
    assert sim.time == 0.0


@pytest.mark.parametrize(("options", "word"), [
    (dict(method="sdirk2", accuracy=0.0), "positive"), (dict(method="bdf2", accuracy=1e-5), "stiffly"),
    (dict(method="pareschi_russo", accuracy=1e-5), "stiffly"),
])
def test_accuracies_that_are_refused(options, word):
    with pytest.raises(da.ModelError, match=word):
        da.Implicit(dt=0.01, **options)


def test_adding_a_method_is_adding_a_table(monkeypatch, falling):
    """Alexander's method with three stages: of third order for ordinary equations, of first order for index 3."""
    g = 0.4358665215084590
    b = [-(6.0 * g * g - 16.0 * g + 1.0) / 4.0, (6.0 * g * g - 20.0 * g + 5.0) / 4.0, g]
    monkeypatch.setitem(TABLEAUS, "alexander", tableau([[g, 0, 0], [0.5 * (1.0 - g), g, 0], b], b, [0.5, 0.5, 0.0]))
    errors = []
    for dt in (0.002, 0.001):
        trajectory = da.Simulation(zoo.double_pendulum(), da.Implicit(dt=dt, method="alexander")).run(1.0)
        errors.append(np.abs(trajectory.position[-1] - falling.position[-1]).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(1.0, abs=0.1)
    assert errors[0] < np.abs(da.Simulation(zoo.double_pendulum(), da.Implicit(dt=0.002, method="sdirk2")).run(1.0).position[-1] - falling.position[-1]).max()


@pytest.mark.parametrize(("a", "b", "word"), [
    ([[0.5, 0.1], [0.5, 0.5]], [0.5, 0.5], "triangular"), ([[0.0]], [1.0], "diagonal"), ([[1.0]], [0.9], "sum"),
    ([[1.0]], [0.5, 0.5], "shapes"),
])
def test_tables_that_are_refused(a, b, word):
    with pytest.raises(da.ModelError, match=word):
        tableau(a, b, b)
