"""The Newton matrix of an implicit stage by finite differences, over every joint of the table."""
from __future__ import annotations

import numpy as np
import pytest
from pairs import TYPES, moved, pair, with_laws

import dalembert as da
from dalembert.formulations.implicit import stage as kernels
from dalembert.formulations.implicit.step import aggregate, begin
from dalembert.model.rows import aim


def implicit(joint, seed: int, *, grounded: bool = False) -> da.Simulation:
    """The random pair of ``moved`` in the implicit formulation."""
    other = moved(joint, seed, grounded=grounded)
    sim = da.Simulation(other.mechanism, da.Implicit(dt=0.01))
    sim._engine.records.joints["coordinate"][:] = other._engine.records.joints["coordinate"]
    sim._engine.records.joints["target"][:] = other._engine.records.joints["target"]
    sim._engine.start(other.position, other.orientation, np.hstack([other.velocity, other.angular_velocity]))
    return sim


def residuals(engine, gamma: float) -> np.ndarray:
    _, fine = kernels.residual(
        engine.records, engine.stages, engine.impulse, engine.coupling_impulse, engine.row_residual, engine.coupling_residual, gamma,
    )
    assert fine
    parts = [engine.stages["r"].ravel()]
    parts += [engine.row_residual[i, : int(j["rows"])] for i, j in enumerate(engine.records.joints)]
    return np.concatenate([*parts, engine.coupling_residual]).copy()


def newton_matrix(engine, gamma: float) -> np.ndarray:
    structure, blocks = engine.system.structure, engine.system.blocks
    sizes = np.array([7] * engine.sizes[0] + [int(j["rows"]) for j in engine.records.joints if j["rows"]] + [1] * engine.sizes[2])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    blocks["M"] = 0.0
    kernels.jacobian(
        engine.records, engine.stages, engine.system.edges, blocks, engine.impulse, engine.coupling_impulse, gamma, 0.0,
        engine.scratch[:12], engine.scratch[12],
    )
    A = np.zeros((offsets[-1], offsets[-1]))
    for i in range(len(sizes)):
        for j in range(len(sizes)):
            try:
                index = structure.diagonal[i] if i == j else structure.block(i, j)
            except KeyError:
                continue
            A[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]] = blocks["M"][index][: sizes[i], : sizes[j]]
    return A


def quaternion_product(p, q):
    return np.array([p[0] * q[0] - p[1:] @ q[1:], *(p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:]))])


def check(sim: da.Simulation) -> None:
    """At a solved stage, whose rows hold."""
    engine, gamma = sim._engine, 0.01
    for i in engine.records.driven:
        aim(engine.records.joints[i])
    aggregate(engine.records, engine.stages, 1.0, 0.0)
    begin(engine.stages, engine.impulse, engine.coupling_impulse)
    system = engine.system
    outcome, *_ = kernels.solve_stage(
        engine.records, engine.stages, system.edges, system.blocks, system.structure.schedule, system.vector, engine.impulse,
        engine.coupling_impulse, engine.row_residual, engine.coupling_residual, engine.scratch, gamma, engine.compliance, 1e-11, 40,
    )
    assert outcome == kernels.SOLVED
    residuals(engine, gamma)
    A, stages, step = newton_matrix(engine, gamma), engine.stages, 1e-6
    column = 0

    def differ(change, back) -> np.ndarray:
        change(step)
        after = residuals(engine, gamma)
        back()
        change(-step)
        before = residuals(engine, gamma)
        back()
        return (after - before) / (2 * step)

    for i in range(engine.sizes[0]):
        v, w = stages["v"][i].copy(), stages["w"][i].copy()
        q = stages["qp"][i] + gamma * w

        def back(i=i, v=v, w=w):
            stages["v"][i], stages["w"][i] = v, w

        for c in range(7):
            def change(size, i=i, c=c, v=v, w=w, q=q):
                if c < 3:
                    stages["v"][i] = v + size * np.eye(3)[c]
                else:
                    e = np.roll(np.eye(4), 1, axis=1)[c - 3]
                    stages["w"][i] = w + size * quaternion_product(q, e)

            np.testing.assert_allclose(differ(change, back), A[:, column], atol=2e-7, err_msg=f"body {i}, unknown {c}")
            column += 1
    for views in ([engine.impulse[i, k : k + 1] for i, j in enumerate(engine.records.joints) for k in range(int(j["rows"]))],
                  [engine.coupling_impulse[i : i + 1] for i in range(engine.sizes[2])]):
        for view in views:
            value = float(view[0])

            def press(size, view=view, value=value):
                view[0] = value + size

            def release(view=view, value=value):
                view[0] = value

            np.testing.assert_allclose(differ(press, release), A[:, column], atol=2e-7)
            column += 1


JOINTS = pytest.mark.parametrize("joint", TYPES.values(), ids=TYPES.keys())


@JOINTS
@pytest.mark.parametrize("grounded", [False, True], ids=["floating", "grounded"])
def test_newton_matrix(joint, grounded):
    laws = dict(stiffness=3.0, damping=0.7) if joint.freedom else {}
    check(implicit(with_laws(joint, **laws), 11, grounded=grounded))


@pytest.mark.parametrize("joint", [j for j in TYPES.values() if j.freedom], ids=[n for n, j in TYPES.items() if j.freedom])
def test_newton_matrix_of_motion_drives(joint):
    check(implicit(with_laws(joint, drive="motion"), 12))


def test_newton_matrix_of_gears():
    mechanism = pair(da.Revolute(axis="x"), 4)
    mechanism.body("c", da.Sphere(radius=0.1, mass=1.0), position=(1, 1, 1))
    mechanism.joint("slider", da.Prismatic(axis=(1, 1, 1)), "a", "c", at=(1, 1, 1))
    mechanism.gear("rack", "joint", "slider", ratio=2.5)
    check(da.Simulation(mechanism, da.Implicit(dt=0.01)))
