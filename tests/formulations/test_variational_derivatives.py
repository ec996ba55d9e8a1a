"""Row gradients, biases and the whole Newton matrix by finite differences, over every joint of the table."""
from __future__ import annotations

import numpy as np
import pytest
from pairs import TYPES, moved, pair, tangent, with_laws

import dalembert as da
from dalembert.forces.loads import clear_inputs
from dalembert.formulations.maximal.knot import accelerate, evaluate_knot
from dalembert.formulations.variational import equations as kernels
from dalembert.formulations.variational.equations import Interval
from dalembert.formulations.variational.state import recall
from dalembert.formulations.variational.step import newton
from dalembert.model.placement import Placement
from dalembert.model.pose import aim_all
from dalembert.solvers.outcomes import SOLVED

JOINTS = pytest.mark.parametrize("joint", TYPES.values(), ids=TYPES.keys())


def test_every_joint_of_the_table_is_here():
    assert {type(j) for j in TYPES.values()} == set(da.JOINTS)


def placed(sim: da.Simulation) -> Placement:
    """The mechanism at a simulation's pose."""
    placement = Placement.of(sim.mechanism)
    placement.put(sim.position, sim.orientation)
    return placement


def open_rows(placement: Placement) -> np.ndarray:
    placement.evaluate()
    return placement.opened()[0]


@JOINTS
@pytest.mark.parametrize("seed", [1, 2])
def test_row_gradients(joint, seed):
    placement = placed(moved(joint, seed))
    bodies, at = placement.work.bodies, placement.work.joints[0]
    exact = {0: at["Gp"].copy(), 1: at["Gc"].copy()}
    step, locks = 1e-6, int(placement.model.joints["locks"][0])
    for body in (0, 1):
        x, q = bodies["x"][body].copy(), bodies["q"][body].copy()
        for c in range(6):
            ends = []
            for sign in (1.0, -1.0):
                delta = np.eye(6)[c] * sign * step
                bodies["x"][body], bodies["q"][body] = x + delta[:3], tangent(q, delta[3:])
                ends.append(open_rows(placement)[0])
            bodies["x"][body], bodies["q"][body] = x, q
            difference = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(difference[:locks], exact[body][:locks, c], atol=2e-9)


@JOINTS
def test_free_directions_are_the_rates_of_the_coordinates(joint):
    sim = moved(joint, 5)
    if joint.freedom == 0:
        assert sim.rates("joint").size == 0
        return
    rates = sim.rates("joint")
    placement, step = placed(sim), 1e-6
    x, q = sim.position, sim.orientation
    v, w = sim.velocity, sim.angular_velocity
    ends = []
    for sign in (1.0, -1.0):
        placement.put(x + sign * step * v, np.array([tangent(a, sign * step * b) for a, b in zip(q, w)]))
        ends.append(placement.work.joints["coordinate"][0, : joint.freedom].copy())
    difference = (ends[0] - ends[1]) / (2 * step)
    for i, (kind, _) in enumerate(joint.directions):
        if kind != "ball":  # a ball joint's rates are an angular velocity, not the rates of a rotation vector
            assert difference[i] == pytest.approx(rates[i], abs=2e-8)


@JOINTS
def test_accelerations_keep_every_row_closed(joint):
    """G a = -G' v: along x + t v + t^2/2 a the rows open with the third power of t only."""
    sim = moved(joint, 3)
    velocity = np.hstack([sim.velocity, sim.angular_velocity])
    engine = da.Variational(dt=0.01).engine(sim.mechanism)
    model, work = engine.model, engine.reading.work
    placement = Placement(sim.mechanism, model, work)
    placement.put(sim.position, sim.orientation)
    clear_inputs(model, work)
    evaluate_knot(model, work)
    forces = np.zeros((1, 6))
    assert accelerate(model, work, engine.compliance, np.vstack([velocity, np.zeros(6)]), forces, np.zeros(0), False, np.zeros((3, 6)), np.zeros((3, 6)))
    pushed = work.bodies["load"][:2] + np.stack([forces[0] @ work.joints["Gp"][0], forces[0] @ work.joints["Gc"][0]])
    inertia = model.bodies["inertia"][:2].reshape(2, 3, 3)
    spin = np.einsum("bij,bj->bi", inertia, velocity[:, 3:])
    torque = pushed[:, 3:] - np.cross(velocity[:, 3:], spin)
    acceleration = np.hstack([pushed[:, :3] / model.bodies["mass"][:2, None], np.linalg.solve(inertia, torque[..., None])[..., 0]])
    x, q = sim.position, sim.orientation
    opened = []
    for t in (2e-3, 1e-3):
        # a rotation whose body angular velocity is w + t a, to second order (Magnus: the commutator is of third)
        turned = [tangent(q[i], t * velocity[i, 3:] + 0.5 * t * t * acceleration[i, 3:]) for i in range(2)]
        placement.put(x + t * velocity[:, :3] + 0.5 * t * t * acceleration[:, :3], np.array(turned))
        opened.append(np.abs(placement.opened()[0]).max())
    assert opened[1] <= max(opened[0] / 6.0, 1e-12)


def newton_matrix(engine, interval: Interval) -> np.ndarray:
    structure, blocks, model = engine.graph.structure, engine.graph.work.blocks, engine.model
    sizes = np.array([6] * engine.sizes[0] + [int(j["rows"]) for j in model.joints if j["rows"]] + [1] * engine.sizes[2])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    kernels.residual(interval)
    kernels.jacobian(interval)
    A = np.zeros((offsets[-1], offsets[-1]))
    for i in range(len(sizes)):
        for j in range(len(sizes)):
            try:
                index = structure.diagonal[i] if i == j else structure.block(i, j)
            except KeyError:
                continue
            A[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]] = blocks["M"][index][: sizes[i], : sizes[j]]
    return A


def unknowns(engine) -> list[np.ndarray]:
    """Views of one number each, in the order of the Newton matrix."""
    work = engine.graph.work
    views = [work.bodies[name][i][c : c + 1] for i in range(engine.sizes[0]) for name in ("v", "w") for c in range(3)]
    views += [at["mu"][k : k + 1] for joint, at in zip(engine.model.joints, work.joints) for k in range(int(joint["rows"]))]
    return views + [work.couplings["mu"][i : i + 1] for i in range(engine.sizes[2])]


def residuals(engine, interval: Interval) -> np.ndarray:
    _, fine = kernels.residual(interval)
    assert fine
    work = engine.graph.work
    parts = [work.bodies["r"][i] for i in range(engine.sizes[0])]
    parts += [at["r"][: int(joint["rows"])] for joint, at in zip(engine.model.joints, work.joints) if joint["rows"]]
    return np.concatenate([*parts, work.couplings["r"]]).copy()


def check_newton_matrix(sim: da.Simulation) -> None:
    engine = da.Variational(dt=0.01).engine(sim.mechanism)
    state, work = engine.view(sim.state.numbers), engine.graph.work
    clear_inputs(engine.model, work)
    recall(engine.model, work, state)
    work.joints["target"] = state.joints["target"]
    aim_all(engine.model, work)
    evaluate_knot(engine.model, work)
    kernels.first_guess(engine.model, work)
    outcome, *_ = newton(Interval(engine.model, work, 0.01, 0.008, engine.compliance), 1e-11, 30)
    assert outcome == SOLVED
    interval = Interval(engine.model, work, 0.01, 0.008, 0.0)
    A = newton_matrix(engine, interval)
    for column, view in enumerate(unknowns(engine)):
        middle, step, ends = float(view[0]), 1e-5, []
        for sign in (1.0, -1.0):
            view[0] = middle + sign * step
            ends.append(residuals(engine, interval))
        view[0] = middle
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), A[:, column], atol=1e-7)


@JOINTS
@pytest.mark.parametrize("grounded", [False, True], ids=["floating", "grounded"])
def test_newton_matrix(joint, grounded):
    laws = dict(stiffness=3.0, damping=0.7) if joint.freedom else {}
    check_newton_matrix(moved(with_laws(joint, **laws), 11, grounded=grounded))


@pytest.mark.parametrize("joint", [j for j in TYPES.values() if j.freedom], ids=[n for n, j in TYPES.items() if j.freedom])
def test_newton_matrix_of_motion_drives(joint):
    check_newton_matrix(moved(with_laws(joint, drive="motion"), 12))


def test_newton_matrix_of_gears():
    mechanism = pair(da.Revolute(axis="x"), 4)
    mechanism.body("c", da.Sphere(radius=0.1, mass=1.0), position=(1, 1, 1))
    mechanism.joint("slider", da.Prismatic(axis=(1, 1, 1)), "a", "c", at=(1, 1, 1))
    mechanism.joint("ground", da.Universal(), mechanism.world, "c", at=(1, 0, 1))
    mechanism.gear("rack", "joint", "slider", ratio=2.5)
    mechanism.gear("pair", "joint", "ground", ratio=-0.5, directions=(0, 1))
    check_newton_matrix(da.Simulation(mechanism, da.Variational(dt=0.01)))


def test_newton_matrix_of_forces():
    """Servos, paths, drag, penalty contact and laws of the user."""
    mechanism = pair(da.Revolute(axis="x", servo=da.Servo(stiffness=30.0, damping=2.0, target=0.4), damping=0.2, armature=0.05), 4)
    mechanism.path("spring", [("a", (0, 0, 0.5)), ("b", (1, 0.3, 0.2)), (mechanism.world, (0.2, 0.1, -2))], stiffness=40.0, damping=3.0, length=0.5)
    mechanism.cable("cable", [(mechanism.world, (0.2, 0.1, -2)), ("b", (1, 0.3, 0.2))], stiffness=20.0, length=0.5)
    mechanism.drag("drag", "a", linear=0.7, angular=0.2)
    mechanism.penalty("feet", "b", point=(0.1, 0, 0), offset=50.0, stiffness=2.0, damping=0.3, friction=0.4, tangential=5.0)
    mechanism.force_law("law", "b", lambda x, q, v: -0.3 * v * (1.0 + (v**2).sum()))
    mechanism.constraint("plane", ["a", "b"], lambda x, q: x[0, 0] + 2.0 * x[1, 1] + x[0, 2] * x[1, 2] - START)
    START = float(mechanism["a"].position[0] + 2.0 * mechanism["b"].position[1] + mechanism["a"].position[2] * mechanism["b"].position[2])
    check_newton_matrix(da.Simulation(mechanism, da.Variational(dt=0.01)))
