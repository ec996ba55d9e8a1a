"""Gradients of steps that are differentiated as a whole: loops, prescribed motion and controllers with explicit methods, steps made with
derivatives of forces, coordinate maps, charts that change.
"""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

METHODS = {m: da.Reduced(dt=0.01, method=m) for m in ("rk4", "semi_implicit", "linearly_implicit")}
ALL = pytest.mark.parametrize("method", ["rk4", *(pytest.param(m, marks=pytest.mark.slow) for m in ("semi_implicit", "linearly_implicit"))])
#: the bars: adjoint against forward, and against differences of the run
EXACT, SMOOTH = 1e-9, 1e-6
#: what is weighed: of the potential energy, differences leave more
READ = ("position", "orientation", "velocity", "angular_velocity", "coordinate", "rate", "kinetic")


def assert_right(check: da.GradientCheck) -> None:
    assert check.forward_error < EXACT, str(check)
    assert check.difference_error < SMOOTH, str(check)


def loop(closed: bool = True) -> da.Mechanism:
    """Three bodies from the world back to it, by a rod; a spring across."""
    m, rng = da.Mechanism("loop", gravity=(0.2, 0.1, -9.81)), np.random.default_rng(1)
    for k, place in enumerate(((0.5, 0, 0.1), (1.1, 0.1, 0.3), (0.8, 0, -0.4))):
        A = rng.normal(size=(3, 3))
        m.body("abc"[k], mass=1.0 + k, inertia=0.1 * (np.trace(A @ A.T) * np.eye(3) - A @ A.T), position=place)
    m.joint("cross", da.Universal(damping=0.2, stiffness=1.0), "world", "a", at=(0, 0, 0))
    m.joint("ball", da.Spherical(damping=0.1), "a", "b", at=(1, 0, 0.2))
    m.joint("hinge", da.Revolute(axis="y", damping=0.1, drive="force"), "b", "c", at=(1, 0.1, -0.2))
    if closed:
        m.joint("rod", da.Distance(), "world", "c", at=((0.5, 0.5, 0.3), (0.7, 0, -0.5)))
    m.spring("spring", "a", "c", at=((0.5, 0, 0.1), (0.8, 0.1, -0.4)), stiffness=20.0, damping=0.5, length=0.3)
    return m


def swing(sim: da.Simulation) -> None:
    sim.set_joint("hinge", rate=0.7)
    sim.set_velocity("a", angular=(0.3, 0.2, -0.4))


NAMES = [
    "gravity", "b.mass", "c.inertia", "ball.damping", "cross.stiffness", "ball.point_child", "hinge.turn_parent", "rod.point_child", "spring.stiffness",
    "hinge.input", "b.input", "hinge.start_rate",
]
#: those that tests of every day take
SOME = ["b.mass", "ball.point_child", "rod.point_child", "hinge.input", "hinge.start_rate"]


def test_a_loop():
    assert_right(da.validate_gradients(loop(), METHODS["rk4"], SOME, steps=2, setup=swing, outputs=READ))


@pytest.mark.slow
@pytest.mark.parametrize("method", [*METHODS, "kkt_velocity", "kkt_acceleration"])
def test_a_loop_by_all_that_it_has(method):
    assert_right(da.validate_gradients(loop(), da.Reduced(dt=0.01, method=method), NAMES, steps=3, setup=swing, outputs=READ))


def held(sim):
    return {"hinge": -2.0 * sim.coordinates("hinge") - 0.3 * sim.rates("hinge") + 0.1 * sim.velocity[1, 2], "b": np.array([0, 0, -0.5 * sim.velocity[1, 2], 0, 0, 0])}


@ALL
def test_a_controller_in_a_loop(method):
    names = ["gravity", "b.mass", "hinge.start_rate"]
    assert_right(da.validate_gradients(loop(), METHODS[method], names, steps=3, setup=swing, outputs=READ, control=held))


def arm() -> da.Mechanism:
    m = da.Mechanism("arm")
    m.body("upper", da.Box(size=(1.0, 0.1, 0.1), mass=1.0), position=(0.5, 0, 0))
    m.body("lower", da.Box(size=(0.6, 0.1, 0.1), mass=0.5), position=(1.3, 0, 0))
    m.joint("hinge", da.Revolute(axis="y", drive="motion"), "world", "upper", at=(0, 0, 0))
    m.joint("elbow", da.Universal(damping=0.1, stiffness=2.0), "upper", "lower", at=(1, 0, 0))
    return m


@ALL
def test_prescribed_motion(method):
    """By numbers of the mechanism, and by the points of the table that a joint follows: its rates and accelerations move the rest."""
    times, points = np.linspace(0.0, 0.2, 6), 0.3 * np.linspace(0.0, 1.0, 6) ** 3

    def follow(sim: da.Simulation, table: np.ndarray = points) -> None:
        sim.set_target("hinge", (times, table))

    names = ["upper.mass", "lower.mass", "elbow.stiffness", "elbow.point_parent", "elbow.start_rate"]
    assert_right(da.validate_gradients(arm(), METHODS[method], names, steps=3, setup=follow, outputs=("position", "orientation", "coordinate", "velocity")))

    def run(table: np.ndarray, tape: bool = False):
        sim = da.Simulation(arm(), METHODS[method], energy_bound=None)
        follow(sim, table)
        return sim.run(0.06, tape=tape)

    rng, base = np.random.default_rng(0), run(points, True)
    weights, change, step = {"position": rng.normal(size=base.position.shape)}, rng.normal(size=6), 1e-3
    found = float(base.vjp(weights, ["hinge.target_points"])["hinge.target_points"] @ change)
    assert abs(np.sum(weights["position"] * base.jvp({"hinge.target_points": change})["position"]) - found) < EXACT * abs(found)
    values = [float(np.sum(weights["position"] * run(points + k * step * change).position)) for k in (1, -1, 2, -2)]
    assert abs((8.0 * (values[0] - values[1]) - (values[2] - values[3])) / (12.0 * step) - found) < SMOOTH * abs(found)


def test_a_linearly_implicit_step_starts_from_nothing_else():
    """A jump of a driven rate at the start meets the mechanism's inertia, whatever steps were made before."""
    sim = da.Simulation(arm(), METHODS["linearly_implicit"], energy_bound=None)
    sim.set_target("hinge", lambda time: 0.5 * time)
    start = sim.state
    first = sim.run(0.05).position
    sim.restore(start)
    np.testing.assert_array_equal(sim.run(0.05).position, first)


@pytest.mark.slow
def test_a_tree_with_linearly_implicit_steps():
    names = [name for name in NAMES if not name.startswith("rod")]
    assert_right(da.validate_gradients(loop(closed=False), METHODS["linearly_implicit"], names, steps=3, setup=swing, outputs=READ))


def finger() -> da.Mechanism:
    """Two of three hinges bend as one number says."""
    m = da.Mechanism("finger")
    for k in range(3):
        m.body("abc"[k], da.Box(size=(0.5, 0.1, 0.1), mass=1.0 - 0.2 * k), position=(0.25 + 0.5 * k, 0, 0))
    m.joint("root", da.Revolute(axis=(0.1, 1, 0), damping=0.1, drive="force"), "world", "a", at=(0, 0, 0))
    m.joint("near", da.Revolute(axis="y", stiffness=1.0), "a", "b", at=(0.5, 0, 0))
    m.joint("far", da.Revolute(axis="y", damping=0.1, armature=0.05), "b", "c", at=(1.0, 0, 0))
    m.coordinate_map(
        "bend", ["near", "far"], function=lambda y: np.array([y[0] + 0.2 * y[0] ** 2, 0.7 * y[0] - 0.1 * y[0] ** 3]),
        jacobian=lambda y: np.array([[1.0 + 0.4 * y[0]], [0.7 - 0.3 * y[0] ** 2]]), near=0.2,
    )
    return m


def bent(sim: da.Simulation) -> None:
    sim.set_joint("root", 0.1, rate=0.6)
    sim.set_joint("bend", 0.2, rate=1.0)


@pytest.mark.parametrize("method", ["bdf2", *(pytest.param(m, marks=pytest.mark.slow) for m in ("bdf1", "sdirk2", "pareschi_russo"))])
def test_coordinate_maps(method):
    names = ["gravity", "b.mass", "c.inertia", "near.stiffness", "far.damping", "far.armature", "root.point_child", "far.turn_parent", "root.input", "root.start_rate"]
    formulation = da.Reduced(dt=0.01, method=method, tolerance=1e-13)
    assert_right(da.validate_gradients(finger(), formulation, names, steps=4, setup=bent))


def bending(sim):
    return {"root": -2.0 * sim.coordinates("root") - 0.3 * sim.rates("near") + 0.1 * sim.velocity[2, 2]}


@pytest.mark.parametrize("formulation", [da.Reduced(dt=0.01, tolerance=1e-13), da.Variational(dt=0.01, tolerance=1e-13)], ids=["reduced", "variational"])
def test_a_controller_beside_a_map(formulation):
    names = ["gravity", "b.mass", "near.stiffness", "root.start_rate"]
    assert_right(da.validate_gradients(finger(), formulation, names, steps=3, setup=bent, control=bending))


def test_a_tension_beside_a_map_pulls_its_own_path():
    """As the force does that it is."""
    ends, found = np.array([1.0, 0.2, 1.0]), []
    for pull in ("rope", "c"):
        m = finger()
        m.path("rope", [(m.world, tuple(ends)), (m["c"], (1.25, 0, 0))], drive="force")
        line = ends - (1.25, 0, 0)
        value = 5.0 if pull == "rope" else np.concatenate([5.0 * line / np.linalg.norm(line), np.zeros(3)])
        sim = da.Simulation(m, da.Reduced(dt=1e-4), energy_bound=None)
        sim.run(1e-4, control=lambda _, pull=pull, value=value: {pull: value})
        found.append(sim.velocity.copy())
    np.testing.assert_allclose(found[0], found[1], atol=1e-3 * np.abs(found[1]).max())


def test_checkpoints_change_nothing_where_maps_are(monkeypatch):
    names, found = ["gravity", "b.mass", "root.input", "c.input"], []
    for budget in (64_000_000, 5_000):
        monkeypatch.setattr("dalembert.simulation.simulation.BUDGET", budget)
        sim = da.Simulation(finger(), da.Reduced(dt=0.01, tolerance=1e-13), energy_bound=None)
        bent(sim)
        run = sim.run(0.1, tape=True)
        assert run.record is not None
        assert (run.record.tape is None) == (budget == 5_000)
        found.append(run.vjp({"position": np.ones_like(run.position)}, names))
    for name in names:
        np.testing.assert_allclose(found[1][name], found[0][name], rtol=1e-10, atol=1e-12)


def test_the_jacobian_of_a_step_with_a_map():
    """Numbers y and their rates are part of the state: a step of them against the readings of that step."""
    sim = da.Simulation(finger(), da.Reduced(dt=0.01, method="bdf1", tolerance=1e-13), energy_bound=None)
    bent(sim)
    found = sim.step_jacobian(["root.input"])
    assert found.state.shape[0] == found.state.shape[1]
    assert np.all(np.isfinite(found.state))
    assert np.abs(found.parameters["root.input"]).max() > 0.0


def test_charts_that_change():
    m = da.Mechanism("top")
    m.body("top", mass=1.0, inertia=np.diag([0.1, 0.12, 0.05]), position=(0.1, 0, 0.4))
    m.joint("ball", da.Spherical(damping=0.05, stiffness=0.5), "world", "top", at=(0, 0, 0))

    def spin(sim: da.Simulation) -> None:
        sim.set_joint("ball", (0.1, 1.2, 0.3), rate=(1.0, 6.0, 4.0))

    formulation = da.Reduced(dt=0.01, tolerance=1e-13, rotations="xyz", switch_charts=True)
    names = ["gravity", "top.inertia", "ball.stiffness", "ball.point_child", "ball.start_rate"]
    assert_right(da.validate_gradients(m, formulation, names, steps=14, setup=spin))
