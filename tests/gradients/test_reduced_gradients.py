"""Gradients in joint coordinates: what only trees have, and the task of the RedMax code."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

BDF2 = da.Reduced(dt=0.01, tolerance=1e-13)
#: the bars: adjoint against forward, and against differences of the run
EXACT, SMOOTH = 1e-9, 1e-6


def assert_right(check: da.GradientCheck) -> None:
    assert check.forward_error < EXACT, str(check)
    assert check.difference_error < SMOOTH, str(check)


def crane() -> da.Mechanism:
    """A free body that carries a tree: joints read from child to parent, balls in a row, a screw, motion-driven directions."""
    mechanism, rng = da.Mechanism("crane", gravity=(0.3, -0.2, -9.81)), np.random.default_rng(3)

    def body(name: str):
        A = rng.normal(size=(3, 3))
        return mechanism.body(
            name, mass=float(rng.uniform(0.5, 2.0)), inertia=0.1 * (np.trace(A @ A.T) * np.eye(3) - A @ A.T), position=rng.normal(size=3) * 0.5,
            orientation=rng.normal(size=4),
        )

    def joint(name: str, kind, parent, child) -> None:
        mechanism.joint(name, kind, parent, child, at=rng.normal(size=3) * 0.4, frame=rng.normal(size=4))

    base, arm, bob, load, nut, rod, tip = (body(name) for name in ("base", "arm", "bob", "load", "nut", "rod", "tip"))
    joint("mast", da.Revolute(axis="y", drive="motion"), base, arm)
    # the tree is built from the world outwards: these two are read from child to parent
    joint("ball", da.Spherical(stiffness=(1.0, 2.0, 3.0), rest=(0.2, 0.1, -0.3), damping=(0.1, 0.2, 0.05)), bob, arm)
    joint("rope", da.Spherical(damping=0.05, stiffness=0.3), bob, load)
    joint("screw", da.Helical(axis="x", pitch=0.3, damping=0.1, armature=0.2), base, nut)
    joint("cross", da.Universal(stiffness=1.5, damping=(0.1, 0.2), armature=0.05), rod, nut)
    joint("wrist", da.Spherical(drive="motion"), rod, tip)
    mechanism.cable("cable", [(tip, (0.1, 0.2, 0)), (base, (0, 0.1, 0.1)), (load, (0.1, 0, 0.2))], stiffness=20.0, damping=0.5, length=0.3)
    return mechanism


#: what is weighed: of the potential energy, forward differences leave 1e-7 where a point of the cross moves (the adjoint has 3e-10 there)
READ = ("position", "orientation", "velocity", "angular_velocity", "coordinate", "rate", "kinetic")


def moving(sim: da.Simulation) -> None:
    sim.set_velocity("base", linear=(0.3, -0.2, 0.1), angular=(0.5, 1.0, -0.7))
    for name, rate in (("ball", (1.0, -0.5, 0.3)), ("rope", (-0.8, 0.4, 1.2)), ("screw", 1.5), ("cross", (0.6, -0.9))):
        sim.set_joint(name, rate=rate)


NAMES = [
    "gravity", "arm.mass", "load.inertia", "nut.centre_of_mass", "ball.stiffness", "ball.rest", "ball.damping", "ball.point_parent", "ball.turn_child",
    "rope.turn_parent", "rope.point_child", "screw.pitch", "screw.armature", "screw.turn_parent", "cross.rest", "cross.point_child", "cross.turn_parent",
    "wrist.turn_child", "wrist.point_parent", "mast.point_child", "mast.turn_parent", "cable.points", "cable.stiffness",
    "base.start_velocity", "base.start_angular_velocity", "cross.start", "rope.start_rate",
]


#: those that the quick test takes
FEW = ["gravity", "load.inertia", "ball.rest", "ball.turn_child", "rope.turn_parent", "screw.pitch", "cross.point_child", "wrist.turn_child", "base.start_angular_velocity", "rope.start_rate"]
CHARTS = da.Reduced(dt=0.01, method="pareschi_russo", tolerance=1e-13, rotations={"ball": "zyx", "rope": "xyz"})


def test_a_tree_with_much_that_trees_have():
    assert_right(da.validate_gradients(crane(), BDF2, FEW, steps=2, setup=moving, outputs=READ))


@pytest.mark.slow
@pytest.mark.parametrize("formulation", [BDF2, CHARTS, da.Reduced(dt=0.01, method="bdf1", tolerance=1e-13)], ids=["bdf2", "charts", "bdf1"])
def test_a_tree_with_all_that_trees_have(formulation):
    assert_right(da.validate_gradients(crane(), formulation, NAMES, steps=3, setup=moving, outputs=READ))


def test_targets_within_a_tree():
    steps = 4
    times = np.linspace(0.0, 1.0, steps + 1)
    values = {"mast.target": 0.05 * times**2, "wrist.target": 0.05 * times[:, None] ** 2 * np.array([1.0, -2.0, 0.5])}
    rows = da.validate_gradients(
        crane(), BDF2, [*values, "tip.mass"], steps=steps, values=values, outputs=("position", "orientation", "velocity"),
    )
    assert_right(rows)


def test_the_jacobian_of_a_step_is_that_of_the_step():
    """Coordinates and rates of a chain after a step, by those before it: against differences."""
    mechanism = da.zoo.pendulum(3)
    formulation = da.Reduced(dt=0.01, method="sdirk2", tolerance=1e-13)
    names = [f"joint {k + 1}" for k in range(3)]

    def after(numbers: np.ndarray) -> np.ndarray:
        sim = da.Simulation(mechanism, formulation, energy_bound=None)
        for name, q, v in zip(names, numbers[:3], numbers[3:]):
            sim.set_joint(name, q, rate=v)
        sim.step()
        return np.concatenate([[float(part(name)[0]) for name in names] for part in (sim.coordinates, sim.rates)])

    here = np.array([0.3, -0.2, 0.5, 1.0, -2.0, 0.7])
    sim = da.Simulation(mechanism, formulation, energy_bound=None)
    for name, q, v in zip(names, here[:3], here[3:]):
        sim.set_joint(name, q, rate=v)
    found = sim.step_jacobian(["link 2.mass"])
    step = 1e-3
    columns = [(8.0 * (after(here + step * e) - after(here - step * e)) - (after(here + 2 * step * e) - after(here - 2 * step * e))) / (12.0 * step) for e in np.eye(6)]
    np.testing.assert_allclose(found.state, np.array(columns).T, atol=1e-9)
    assert found.parameters["link 2.mass"].shape == (6,)


def branched() -> da.Mechanism:
    """A tree of slides and turns with laws, one joint read from child to parent."""
    mechanism = da.Mechanism("branched")
    a, b, c, d = (
        mechanism.body(name, mass=1.0 + k, inertia=np.diag([0.1, 0.2, 0.25]) * (1 + k), position=(0.3 * k, 0.1 * k, -0.5)) for k, name in enumerate("abcd")
    )
    mechanism.joint("cross", da.Universal(damping=0.3, stiffness=1.0), "world", a, at=(0, 0, 0))
    mechanism.joint("sleeve", da.Cylindrical(axis=(1, 1, 0), damping=0.1, armature=0.2), b, a, at=(0.2, 0.1, -0.2))
    mechanism.joint("screw", da.Helical(axis="x", pitch=0.3), a, c, at=(0.1, 0.3, -0.2))
    mechanism.joint("hinge", da.Revolute(axis="z", stiffness=2.0, drive="force"), c, d, at=(0.4, 0.3, -0.2))
    mechanism.drag("drag", b, linear=0.3, angular=0.2)
    return mechanism


@pytest.mark.parametrize("method", ["bdf1", "bdf2", "sdirk2", "pareschi_russo"])
def test_all_steps_of_a_run_at_once(method):
    """Against the adjoint of the same steps one by one: no formula is shared but those of the equations."""
    sim = da.Simulation(branched(), da.Reduced(dt=0.01, method=method, tolerance=1e-13), energy_bound=None)
    for name, rate in (("cross", (1.0, -0.5)), ("sleeve", (0.3, 0.8)), ("screw", 2.0), ("hinge", -1.0)):
        sim.set_joint(name, rate=rate)
    start = sim.state
    found = sim.run(0.03, tape=True).step_jacobians()
    assert found.coordinates == ("cross[0]", "cross[1]", "sleeve[0]", "sleeve[1]", "screw", "hinge")
    sim.restore(start)
    for A, B in zip(found.state, found.force):
        single = sim.step_jacobian(["hinge.input"])
        np.testing.assert_allclose(A, single.state, atol=1e-10)
        np.testing.assert_allclose(B[:, -1], single.parameters["hinge.input"][:, 0], atol=1e-10)
        sim.step()


def test_steps_of_loops_are_not_differentiated_at_once():
    run = da.Simulation(da.zoo.four_bar_chain(1), BDF2).run(0.02, tape=True)
    with pytest.raises(da.GradientError, match="step_jacobian"):
        run.step_jacobians()


def test_checkpoints_change_nothing_in_a_tree(monkeypatch):
    mechanism = crane()
    names = ["gravity", f"{mechanism.bodies[0].name}.mass"]
    found = []
    for budget in (64_000_000, 20_000):
        monkeypatch.setattr("dalembert.simulation.simulation.BUDGET", budget)
        sim = da.Simulation(mechanism, BDF2, energy_bound=None)
        moving(sim)
        run = sim.run(0.2, tape=True)
        found.append(run.vjp({"position": np.ones_like(run.position), "angular_velocity": np.ones_like(run.position)}, names))
        assert run.record is not None
        assert (run.record.tape is None) == (budget == 20_000)
    for name in names:
        np.testing.assert_allclose(found[1][name], found[0][name], rtol=1e-11, atol=1e-12)


def test_a_shoulder_on_a_spline():
    """Forces of joints too; what cannot be read beside such joints says so (``test_moving_joint_gradients.test_beside_loops``)."""
    names = ["girdle.stiffness", "upper arm.mass", "shoulder.damping", "girdle.start", "gravity"]
    for outputs in (("position", "coordinate", "energy"), ("force", "torque")):
        assert_right(da.validate_gradients(da.zoo.spline_shoulder(), BDF2, names, steps=2, outputs=outputs))
