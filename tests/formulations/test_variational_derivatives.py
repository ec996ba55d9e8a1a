"""Row gradients, biases and the whole Newton matrix by finite differences, over every joint of the table."""
from __future__ import annotations

import numpy as np
import pytest
from pairs import TYPES, moved, pair, tangent, with_laws

import dalembert as da
from dalembert.formulations.maximal.knot import evaluate_knot, open_amounts
from dalembert.formulations.variational import equations as kernels
from dalembert.formulations.variational.step import newton
from dalembert.model.rows import aim

JOINTS = pytest.mark.parametrize("joint", TYPES.values(), ids=TYPES.keys())


def test_every_joint_of_the_table_is_here():
    assert {type(j) for j in TYPES.values()} == set(da.JOINTS)


def open_rows(engine) -> np.ndarray:
    values = np.zeros((len(engine.records.joints), 6))
    evaluate_knot(engine.records)
    open_amounts(engine.records, values, np.zeros(0))
    return values


@JOINTS
@pytest.mark.parametrize("seed", [1, 2])
def test_row_gradients(joint, seed):
    engine = moved(joint, seed)._engine
    bodies, record = engine.records.bodies, engine.records.joints[0]
    engine.refresh()
    exact = {0: record["Gp"].copy(), 1: record["Gc"].copy()}
    step = 1e-6
    for body in (0, 1):
        x, q = bodies["x"][body].copy(), bodies["q"][body].copy()
        for c in range(6):
            ends = []
            for sign in (1.0, -1.0):
                delta = np.eye(6)[c] * sign * step
                bodies["x"][body], bodies["q"][body] = x + delta[:3], tangent(q, delta[3:])
                ends.append(open_rows(engine)[0])
            bodies["x"][body], bodies["q"][body] = x, q
            difference = (ends[0] - ends[1]) / (2 * step)
            locks = int(record["locks"])
            np.testing.assert_allclose(difference[:locks], exact[body][:locks, c], atol=2e-9)


@JOINTS
def test_free_directions_are_the_rates_of_the_coordinates(joint):
    sim = moved(joint, 5)
    if joint.freedom == 0:
        assert sim.rates("joint").size == 0
        return
    rates = sim.rates("joint")
    engine, step = sim._engine, 1e-6
    x, q = sim.position, sim.orientation
    v, w = sim.velocity, sim.angular_velocity
    ends = []
    for sign in (1.0, -1.0):
        engine.records.bodies["x"][:-1] = x + sign * step * v
        engine.records.bodies["q"][:-1] = [tangent(a, sign * step * b) for a, b in zip(q, w)]
        ends.append(sim.coordinates("joint"))
    difference = (ends[0] - ends[1]) / (2 * step)
    for i, (kind, _) in enumerate(joint.directions):
        if kind != "ball":  # a ball joint's rates are an angular velocity, not the rates of a rotation vector
            assert difference[i] == pytest.approx(rates[i], abs=2e-8)


@JOINTS
def test_accelerations_keep_every_row_closed(joint):
    """G a = -G' v: along x + t v + t^2/2 a the rows open with the third power of t only."""
    sim = moved(joint, 3)
    engine = sim._engine
    velocity = np.hstack([sim.velocity, sim.angular_velocity])
    _, recording = engine.read_knot()
    bodies, record = engine.records.bodies, engine.records.joints[0]
    pushed = bodies["load"][:2] + np.stack([recording.row_force[0, 0] @ record["Gp"], recording.row_force[0, 0] @ record["Gc"]])
    inertia = bodies["inertia"][:2].reshape(2, 3, 3)
    spin = np.einsum("bij,bj->bi", inertia, velocity[:, 3:])
    torque = pushed[:, 3:] - np.cross(velocity[:, 3:], spin)
    acceleration = np.hstack([pushed[:, :3] / bodies["mass"][:2, None], np.linalg.solve(inertia, torque[..., None])[..., 0]])
    x, q = sim.position, sim.orientation
    opened = []
    for t in (2e-3, 1e-3):
        engine.records.bodies["x"][:-1] = x + t * velocity[:, :3] + 0.5 * t * t * acceleration[:, :3]
        for i in range(2):
            w, a = velocity[i, 3:], acceleration[i, 3:]
            # a rotation whose body angular velocity is w + t a, to second order (Magnus: the commutator is of third)
            engine.records.bodies["q"][i] = tangent(q[i], t * w + 0.5 * t * t * a)
        opened.append(np.abs(open_rows(engine)[0]).max())
    assert opened[1] <= max(opened[0] / 6.0, 1e-12)


def newton_matrix(engine, dt: float, h: float) -> np.ndarray:
    structure, blocks = engine.system.structure, engine.system.blocks
    sizes = np.array([6] * engine.sizes[0] + [int(j["rows"]) for j in engine.records.joints if j["rows"]] + [1] * engine.sizes[2])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    kernels.residual(engine.records, dt, h)
    kernels.jacobian(engine.records, blocks, dt, h, 0.0)
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
    records = engine.records
    views = [records.bodies[name][i][c : c + 1] for i in range(engine.sizes[0]) for name in ("v", "w") for c in range(3)]
    views += [j["mu"][k : k + 1] for j in records.joints for k in range(int(j["rows"]))]
    return views + [records.couplings["mu"][i : i + 1] for i in range(engine.sizes[2])]


def residuals(engine, dt: float, h: float) -> np.ndarray:
    _, fine = kernels.residual(engine.records, dt, h)
    assert fine
    records = engine.records
    parts = [records.bodies["r"][i] for i in range(engine.sizes[0])]
    parts += [j["r"][: int(j["rows"])] for j in records.joints if j["rows"]]
    return np.concatenate([*parts, records.couplings["r"]]).copy()


def check_newton_matrix(sim: da.Simulation) -> None:
    engine, dt, h = sim._engine, 0.01, 0.008
    engine.refresh()
    kernels.first_guess(engine.records, 0)
    system = engine.system
    outcome, *_ = newton(engine.records, system.blocks, system.structure.schedule, system.vector, dt, h, engine.compliance, 1e-11, 30)
    assert outcome == kernels.SOLVED
    A = newton_matrix(engine, dt, h)
    for column, view in enumerate(unknowns(engine)):
        middle, step, ends = float(view[0]), 1e-5, []
        for sign in (1.0, -1.0):
            view[0] = middle + sign * step
            ends.append(residuals(engine, dt, h))
        view[0] = middle
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), A[:, column], atol=1e-7)


@JOINTS
@pytest.mark.parametrize("grounded", [False, True], ids=["floating", "grounded"])
def test_newton_matrix(joint, grounded):
    laws = dict(stiffness=3.0, damping=0.7) if joint.freedom else {}
    check_newton_matrix(moved(with_laws(joint, **laws), 11, grounded=grounded))


@pytest.mark.parametrize("joint", [j for j in TYPES.values() if j.freedom], ids=[n for n, j in TYPES.items() if j.freedom])
def test_newton_matrix_of_motion_drives(joint):
    sim = moved(with_laws(joint, drive="motion"), 12)
    aim(sim._engine.records.joints[0])
    check_newton_matrix(sim)


def test_newton_matrix_of_gears():
    mechanism = pair(da.Revolute(axis="x"), 4)
    mechanism.body("c", da.Sphere(radius=0.1, mass=1.0), position=(1, 1, 1))
    mechanism.joint("slider", da.Prismatic(axis=(1, 1, 1)), "a", "c", at=(1, 1, 1))
    mechanism.joint("ground", da.Universal(), mechanism.world, "c", at=(1, 0, 1))
    mechanism.gear("rack", "joint", "slider", ratio=2.5)
    mechanism.gear("pair", "joint", "ground", ratio=-0.5, directions=(0, 1))
    check_newton_matrix(da.Simulation(mechanism, da.Variational(dt=0.01)))
