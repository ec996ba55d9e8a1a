"""Gradients of the explicit methods in joint coordinates."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

METHODS = {m: da.Reduced(dt=0.01, method=m) for m in ("rk4", "semi_implicit")}
#: the bars: adjoint against forward, and against differences of the run
EXACT, SMOOTH = 1e-9, 1e-6
#: what is weighed: of the potential energy, differences leave more
READ = ("position", "orientation", "velocity", "angular_velocity", "coordinate", "rate", "kinetic")


def assert_right(check: da.GradientCheck) -> None:
    assert check.forward_error < EXACT, str(check)
    assert check.difference_error < SMOOTH, str(check)


def tree() -> da.Mechanism:
    """A free body that carries a tree: balls, some read from child to parent, a screw, a servo, springs and a cable between bodies."""
    m, rng = da.Mechanism("tree", gravity=(0.3, -0.2, -9.81)), np.random.default_rng(3)

    def body(name: str):
        A = rng.normal(size=(3, 3))
        inertia = 0.1 * (np.trace(A @ A.T) * np.eye(3) - A @ A.T)
        return m.body(name, mass=float(rng.uniform(0.5, 2.0)), inertia=inertia, position=rng.normal(size=3) * 0.5, orientation=rng.normal(size=4))

    def joint(name: str, kind, parent, child) -> None:
        m.joint(name, kind, parent, child, at=rng.normal(size=3) * 0.4, frame=rng.normal(size=4))

    base, arm, bob, load, nut, rod = (body(name) for name in ("base", "arm", "bob", "load", "nut", "rod"))
    joint("mast", da.Revolute(axis="y", drive="force"), base, arm)
    joint("ball", da.Spherical(stiffness=(1.0, 2.0, 3.0), rest=(0.2, 0.1, -0.3), damping=(0.1, 0.2, 0.05)), bob, arm)
    joint("rope", da.Spherical(damping=0.05, stiffness=0.3), bob, load)
    joint("screw", da.Helical(axis="x", pitch=0.3, damping=0.1, armature=0.2), base, nut)
    servo = da.Servo(stiffness=5.0, damping=0.5, target=0.2)
    joint("cross", da.Universal(stiffness=1.5, damping=(0.1, 0.2), armature=0.05, servo=(servo, None)), rod, nut)
    m.cable("cable", [(rod, (0.1, 1.2, 0)), (base, (0, 0.1, 1.1)), (load, (1.1, 0, 0.2))], stiffness=20.0, damping=0.5, length=0.3)
    m.spring("spring", arm, rod, at=((0, 0, 1.0), (1.0, 0.5, 0)), stiffness=10.0, damping=0.4, length=0.3)
    m.drag("drag", bob, linear=0.3, angular=0.2)
    return m


def moving(sim: da.Simulation) -> None:
    sim.set_velocity("base", linear=(0.3, -0.2, 0.1), angular=(0.5, 1.0, -0.7))
    for name, rate in (("ball", (1.0, -0.5, 0.3)), ("rope", (-0.8, 0.4, 1.2)), ("screw", 1.5), ("cross", (0.6, -0.9))):
        sim.set_joint(name, rate=rate)


NAMES = [
    "gravity", "arm.mass", "load.inertia", "nut.centre_of_mass", "ball.stiffness", "ball.rest", "ball.damping", "ball.point_parent", "ball.turn_child",
    "rope.turn_parent", "screw.pitch", "screw.armature", "screw.turn_parent", "cross.rest", "cross.point_child", "cross.turn_parent", "cable.points", "cable.stiffness",
    "spring.damping", "drag.linear", "mast.input", "base.start_velocity", "base.start_angular_velocity", "cross.start", "rope.start_rate",
]
#: those that tests of every day take
SOME = ["gravity", "load.inertia", "ball.turn_child", "screw.pitch", "cable.stiffness", "spring.damping", "mast.input", "rope.start_rate"]


@pytest.mark.parametrize("method", METHODS)
def test_a_tree(method):
    check = da.validate_gradients(tree(), METHODS[method], SOME, steps=2, setup=moving, outputs=READ, forward=False)
    assert check.difference_error < SMOOTH, str(check)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_tree_by_all_that_it_has(method):
    assert_right(da.validate_gradients(tree(), METHODS[method], NAMES, steps=3, setup=moving, outputs=READ))


@pytest.mark.parametrize("method", METHODS)
def test_targets_of_servos(method):
    m = da.Mechanism("arm")
    m.body("arm", da.Box(size=(1.0, 0.1, 0.1), mass=1.0), position=(0.5, 0, 0))
    m.joint("hinge", da.Revolute(axis="y", servo=da.Servo(stiffness=50.0, damping=2.0)), "world", "arm", at=(0, 0, 0))
    values = {"hinge.target": 0.3 * np.linspace(0.0, 1.0, 7) ** 2}
    assert_right(da.validate_gradients(m, METHODS[method], ["hinge.target", "arm.mass"], steps=6, values=values, outputs=("position", "velocity", "coordinate")))


def test_checkpoints_change_nothing(monkeypatch):
    names, found = ["gravity", "arm.mass"], []
    for budget in (64_000_000, 20_000):
        monkeypatch.setattr("dalembert.simulation.simulation.BUDGET", budget)
        sim = da.Simulation(tree(), METHODS["rk4"], energy_bound=None)
        moving(sim)
        run = sim.run(0.2, tape=True)
        assert run.record is not None
        assert (run.record.tape is None) == (budget == 20_000)
        found.append(run.vjp({"position": np.ones_like(run.position), "angular_velocity": np.ones_like(run.position)}, names))
    for name in names:
        np.testing.assert_allclose(found[1][name], found[0][name], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_the_jacobian_of_a_step_is_that_of_the_step(method):
    mechanism, names = da.zoo.pendulum(3), [f"joint {k + 1}" for k in range(3)]

    def at(numbers: np.ndarray) -> da.Simulation:
        sim = da.Simulation(mechanism, METHODS[method], energy_bound=None)
        for name, q, v in zip(names, numbers[:3], numbers[3:]):
            sim.set_joint(name, q, rate=v)
        return sim

    def after(numbers: np.ndarray) -> np.ndarray:
        sim = at(numbers)
        sim.step()
        return np.concatenate([[float(part(name)[0]) for name in names] for part in (sim.coordinates, sim.rates)])

    here, step = np.array([0.3, -0.2, 0.5, 1.0, -2.0, 0.7]), 1e-3
    found = at(here).step_jacobian(["link 2.mass"])
    columns = [(8.0 * (after(here + step * e) - after(here - step * e)) - (after(here + 2 * step * e) - after(here - 2 * step * e))) / (12.0 * step) for e in np.eye(6)]
    np.testing.assert_allclose(found.state, np.array(columns).T, atol=1e-9)
    assert found.parameters["link 2.mass"].shape == (6,)


def test_a_run_with_a_tape_is_the_run():
    found = []
    for tape in (False, True):
        sim = da.Simulation(tree(), METHODS["rk4"], energy_bound=None)
        moving(sim)
        found.append(sim.run(0.1, tape=tape).position)
    np.testing.assert_allclose(found[1], found[0], atol=1e-14)


def steered(sim):
    return {"mast": -2.0 * sim.coordinates("mast") - 0.3 * sim.rates("mast") + 0.1 * sim.velocity[1, 2]}


@pytest.mark.parametrize("method", METHODS)
def test_a_controller(method):
    names = ["gravity", "arm.mass", "ball.turn_child", "rope.start_rate"]
    check = da.validate_gradients(tree(), METHODS[method], names, steps=3, setup=moving, outputs=READ, control=steered, forward=method == "rk4")
    assert_right(check)
