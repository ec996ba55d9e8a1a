"""Gradients of runs: adjoint against forward sensitivities and against differences of the run itself."""
from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from everything import everything
from pairs import TYPES, pair, with_laws

import dalembert as da
from dalembert.gradients.validate import SMOOTH as OUTPUTS
from dalembert.simulation import record

VARIATIONAL = da.Variational(dt=0.01, tolerance=1e-13)
METHODS = {
    "variational": VARIATIONAL,
    **{m: da.Implicit(dt=0.01, method=m, tolerance=1e-13, solver="general") for m in ("bdf1", "bdf2", "sdirk2", "pareschi_russo")},
    **{f"reduced {m}": da.Reduced(dt=0.01, method=m, tolerance=1e-13) for m in ("bdf1", "bdf2", "sdirk2", "pareschi_russo")},
}
ALL = pytest.mark.parametrize("formulation", METHODS.values(), ids=METHODS.keys())
SOME = pytest.mark.parametrize("formulation", [VARIATIONAL, METHODS["bdf2"], METHODS["reduced bdf2"]], ids=["variational", "bdf2", "reduced"])
#: all of them, three in the long run only
LONG = pytest.mark.parametrize(
    "formulation", [pytest.param(f, id=m, marks=[] if m in ("variational", "bdf2") else pytest.mark.slow) for m, f in METHODS.items()])
#: the bars: adjoint against forward, and against differences of the run
EXACT, SMOOTH = 1e-9, 1e-6


def assert_right(check: da.GradientCheck, *, forward: float = EXACT, differences: float = SMOOTH) -> None:
    assert check.forward_error < forward, str(check)
    assert check.difference_error < differences, str(check)


def throw(mechanism: da.Mechanism, seed: int = 0):
    """Sets all bodies moving."""
    rng = np.random.default_rng(seed)
    moves = {body.name: rng.normal(size=(2, 3)) for body in mechanism.bodies}

    def setup(sim: da.Simulation) -> None:
        for name, (linear, angular) in moves.items():
            sim.set_velocity(name, linear=0.3 * linear, angular=angular)

    return setup


@LONG
def test_a_double_pendulum_by_all_its_parameters(formulation):
    def setup(sim):
        sim.set_joint("joint 1", 0.4, rate=0.5)
        sim.set_joint("joint 2", 0.3, rate=-0.2)

    assert_right(da.validate_gradients(da.zoo.double_pendulum(), formulation, steps=4, setup=setup))


@LONG
def test_all_kinds_of_forces(formulation):
    """Springs, dampers, servos, rotors, gears, paths, cables, drags, penalties, users' laws."""
    mechanism = everything()
    rng, steps = np.random.default_rng(1), 3
    inputs = {"hinge": rng.normal(size=steps), "ball": rng.normal(size=(steps, 3)), "path": rng.normal(size=steps), "e": rng.normal(size=(steps, 6))}
    names = [
        "gravity", "a.mass", "d.inertia", "b.centre_of_mass", "hinge.armature", "hinge.damping", "hinge.stiffness", "cross.stiffness", "cross.rest",
        "cross.servo_stiffness", "cross.servo_damping", "ball.stiffness", "ball.rest", "ball.damping", "slide.stiffness", "slide.point_parent",
        "slide.turn_child", "ball.turn_parent", "gear.ratio", "path.stiffness", "path.rest", "path.points", "cable.damping", "spring.stiffness",
        "spring.point_child", "world force.force", "body force.force", "drag.linear", "drag.angular", "penalty.stiffness", "penalty.friction",
        "e.force", "a.torque", "hinge.input", "ball.input", "path.input", "e.input", "ball.start", "slide.start_rate",
    ]
    # what users' functions say is differenced, also inside the steps, and forward sensitivities difference it again
    outputs = (*OUTPUTS, "force", "torque")
    assert_right(da.validate_gradients(mechanism, formulation, names, steps=steps, inputs=inputs, seed=2, outputs=outputs), forward=1e-8, differences=1e-5)


@pytest.mark.slow
@SOME
@pytest.mark.parametrize("joint", TYPES.values(), ids=TYPES.keys())
def test_every_joint_of_the_table(formulation, joint):
    laws = {}
    if joint.freedom:
        laws = dict(stiffness=2.0, damping=0.3, rest=0.1)
    mechanism = pair(with_laws(joint, **laws), 4)
    assert_right(da.validate_gradients(mechanism, formulation, steps=3, setup=throw(mechanism)))


@ALL
def test_a_loop_with_redundant_rows(formulation):
    """Three of its 25 rows are redundant."""
    names = ["1 hanger.start", "1 top.start", "1 top.start_rate", "1 upper left.mass", "1 lower right.inertia", "gravity", "1 left.damping", "1 left.stiffness"]
    check = da.validate_gradients(da.zoo.four_bar_chain(1), formulation, names, steps=5)
    assert_right(check)


@SOME
def test_geometry_of_a_loop_along_changes_that_it_allows(formulation):
    """A longer coupler: both of its hinges move along it."""
    mechanism = da.zoo.four_bar_chain(1)
    names = ["1 top.point_child", "1 right.point_parent", "1 bottom.point_parent"]
    along = np.array([1.0, 0.0, 0.0])
    check = da.validate_gradients(mechanism, formulation, names, steps=4, directions=dict.fromkeys(names, 0.1 * along))
    assert_right(check)
    assert all(np.isfinite(row.difference) for row in check.rows)


@SOME
def test_targets_of_motion_drives_and_too_many_of_them(formulation):
    """A parallelogram with both cranks driven: changes of the targets must agree."""
    from machines import two_motors

    steps = 6
    targets = 0.3 * np.sin(np.linspace(0.0, 1.0, steps + 1))
    change = np.linspace(0.0, 1.0, steps + 1) ** 2
    scenario = da.validate_gradients(
        two_motors(), formulation, ["left motor.target", "bar.mass"], steps=steps, differences=False,
        values={"left motor.target": targets, "right motor.target": targets}, outputs=("position", "orientation"),
        directions={"left motor.target": change},
    )
    assert scenario.rows[1].forward_error < EXACT


def test_divided_steps():
    """A fast spin is covered by substeps, and the gradient goes through all of them."""
    mechanism = da.zoo.free_body() if hasattr(da.zoo, "free_body") else da.zoo.double_pendulum()
    name = mechanism.bodies[0].name

    def setup(sim):
        sim.set_velocity(name, angular=(3.0, 90.0, 2.0))

    formulation = da.Variational(dt=0.01, tolerance=1e-13)
    sim = da.Simulation(mechanism, formulation, energy_bound=None)
    setup(sim)
    assert sim.run(0.03).substeps.max() > 1
    assert_right(da.validate_gradients(mechanism, formulation, ["gravity", f"{name}.inertia", f"{name}.mass"], steps=3, setup=setup))


@SOME
def test_checkpoints_change_nothing(formulation, monkeypatch):
    mechanism = da.zoo.double_pendulum()
    names = ["gravity", "link 1.mass", "joint 2.start", "joint 1.damping"]
    found = []
    for budget in (record.BUDGET, 5000):
        monkeypatch.setattr("dalembert.simulation.simulation.BUDGET", budget)
        run = da.Simulation(mechanism, formulation).run(0.5, tape=True)
        found.append(run.vjp({"position": np.ones((51, 2, 3)), "velocity": np.ones((51, 2, 3))}, names))
        assert run.record is not None
        assert (run.record.tape is None) == (budget == 5000)
    for name in names:
        np.testing.assert_allclose(found[1][name], found[0][name], rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_a_long_run_of_many_bodies_takes_little_memory(monkeypatch):
    """100 links, 10,000 steps: below 1 GB with all that it returns, and the gradient of a run that keeps its tape as a whole."""
    chain, names, found = da.zoo.pendulum(100), ["gravity", "link 1.mass", "joint 50.damping"], []
    for budget in (record.BUDGET, 10**10):
        monkeypatch.setattr("dalembert.simulation.simulation.BUDGET", budget)
        sim = da.Simulation(chain, da.Variational(dt=0.001), energy_bound=None)
        tracemalloc.start()
        run = sim.run(10.0, tape=True)
        weights = np.zeros_like(run.position)
        weights[-1, -1] = (1.0, 0.5, 0.2)
        found.append(run.vjp({"position": weights}, names))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert run.record is not None
        assert (run.record.tape is None) == (budget == record.BUDGET)
        if budget == record.BUDGET:
            assert peak < 1e9
    for name in names:
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-9)


@pytest.mark.parametrize("formulation", [VARIATIONAL, METHODS["bdf2"]], ids=["variational", "bdf2"])
def test_the_jacobian_of_a_step_is_that_of_runs(formulation):
    """Forces of a step, and masses: the last row of cotangents pulled through one step is a row of the matrix."""
    sim = da.Simulation(da.zoo.double_pendulum(), formulation, energy_bound=None)
    sim.set_joint("joint 1", 0.3, rate=1.0)
    before = sim.state
    jacobian = sim.step_jacobian(["link 2.input", "gravity"])
    assert sim.state == before
    run = sim.run(formulation.dt, tape=True)
    weights = np.zeros((2, 2, 3))
    weights[1, 1] = 1.0, 2.0, 3.0
    gradient = run.vjp({"position": weights}, ["link 2.input", "gravity"])
    width = 18 if isinstance(formulation, da.Variational) else 14
    np.testing.assert_allclose(np.array([1.0, 2.0, 3.0]) @ jacobian.parameters["gravity"][width : width + 3], gradient["gravity"], atol=1e-13)
    np.testing.assert_allclose(np.array([1.0, 2.0, 3.0]) @ jacobian.parameters["link 2.input"][width : width + 3, 0], gradient["link 2.input"][0], atol=1e-13)


def test_an_optimiser_finds_the_start_that_reaches_a_point():
    from scipy.optimize import minimize

    mechanism = da.zoo.pendulum(2)
    thrown = da.Simulation(mechanism, da.Variational(dt=0.01))
    thrown.set_joint("joint 1", rate=0.8)
    thrown.set_joint("joint 2", rate=-0.5)
    goal = thrown.run(0.3).position[-1, 1]

    def loss(run):
        off = run.position[-1, 1] - goal
        weights = np.zeros_like(run.position)
        weights[-1, 1] = 2.0 * off
        return float(off @ off), {"position": weights}

    f = da.value_and_gradient(mechanism, da.Variational(dt=0.01), 0.3, ["joint 1.start_rate", "joint 2.start_rate"], loss)
    found = minimize(f, f.x0, jac=True, method="BFGS")
    assert found.fun < 1e-8
    assert found.nit < 40


# ---- bad input


def test_bad_input_has_names():
    sim = da.Simulation(da.zoo.double_pendulum(), VARIATIONAL)
    plain, run = sim.run(0.02), sim.run(0.02, tape=True)
    weights = {"position": np.zeros((3, 2, 3))}
    for call, words in (
        (lambda: plain.vjp(weights, ["gravity"]), "tape=True"),
        (lambda: run.vjp(weights, ["joint 1.dampign"]), "joint 1.damping"),
        (lambda: run.vjp({"position": np.zeros((3, 2))}, ["gravity"]), r"\(3, 2, 3\)"),
        (lambda: run.vjp({"place": np.zeros(3)}, ["gravity"]), "choose from"),
        (lambda: run.vjp({"position": np.full((3, 2, 3), np.nan)}, ["gravity"]), "finite"),
        (lambda: run.vjp({"position": 1j * weights["position"]}, ["gravity"]), "must be numbers"),
        (lambda: run.jvp({"gravity": np.zeros(3) + 1j}), "shape"),
        (lambda: run.vjp(weights, "gravity"), "list of names"),
        (lambda: run.vjp(weights, ["joint 1.armature"]), "one-sided"),
        (lambda: run.jvp({"gravity": np.zeros(2)}), "shape"),
        (lambda: run.jvp({"joint 1.damping": 1.0}), "zero"),
        (lambda: sim.step_jacobian(["joint 1.start"]), "state"),
    ):
        with pytest.raises((da.GradientError, da.ModelError), match=words):
            call()
