"""The Newton matrix of an implicit stage by finite differences, over every joint of the table."""
from __future__ import annotations

import numpy as np
import pytest
from pairs import TYPES, moved, pair, with_laws

import dalembert as da
from dalembert.formulations.engine import Start
from dalembert.formulations.implicit import equations
from dalembert.formulations.implicit.engine import ImplicitEngine
from dalembert.formulations.implicit.equations import Stage
from dalembert.formulations.implicit.state import recall
from dalembert.formulations.implicit.step import aggregate, guess, newton
from dalembert.model.pose import set_targets
from dalembert.solvers.outcomes import SOLVED

GAMMA = 0.01


def solved_stage(sim: da.Simulation, mechanism: da.Mechanism) -> tuple[ImplicitEngine, Stage]:
    """The stage of a BDF1 step from where a simulation of either formulation is, solved."""
    engine = ImplicitEngine(mechanism, da.Implicit(dt=GAMMA))
    coordinate = np.zeros((engine.sizes[1], 6))
    for joint in mechanism.joints:
        coordinate[joint.index, : joint.type.freedom] = sim.coordinates(joint.name)
    velocity = np.hstack([sim.velocity, sim.angular_velocity])
    state = engine.view(engine.start(Start(sim.position, sim.orientation, velocity, coordinate, coordinate)))
    work, own = engine.graph.work, engine.own
    set_targets(engine.model, work, state.joints["target"].copy())
    recall(engine.model, work, state)
    aggregate(state, own, 1.0, 0.0)
    guess(state, own, 1)
    outcome, *_ = newton(Stage(engine.model, work, own, GAMMA, engine.compliance), 1e-11, 40)
    assert outcome == SOLVED
    return engine, Stage(engine.model, work, own, GAMMA, 0.0)


def residuals(stage: Stage) -> np.ndarray:
    _, fine = equations.residual(stage)
    assert fine
    work = stage.work
    parts = [np.hstack([work.bodies["r"][:-1], stage.own.bodies["unit"][:, None]]).ravel()]
    parts += [at["r"][: int(joint["rows"])] for joint, at in zip(stage.model.joints, work.joints)]
    return np.concatenate([*parts, work.couplings["r"]])


def newton_matrix(engine: ImplicitEngine, stage: Stage) -> np.ndarray:
    structure, blocks = engine.graph.structure, stage.work.blocks
    sizes = np.array([7] * engine.sizes[0] + [int(j["rows"]) for j in stage.model.joints if j["rows"]] + [1] * engine.sizes[2])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    blocks["M"] = 0.0
    equations.jacobian(stage)
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


def check(sim: da.Simulation, mechanism: da.Mechanism | None = None) -> None:
    """At a solved stage, whose rows hold; of another mechanism with the same bodies and joints, if given."""
    engine, stage = solved_stage(sim, mechanism or sim.mechanism)
    residuals(stage)
    A, bodies, step = newton_matrix(engine, stage), stage.own.bodies, 1e-6
    column = 0

    def differ(change, back) -> np.ndarray:
        change(step)
        after = residuals(stage)
        back()
        change(-step)
        before = residuals(stage)
        back()
        return (after - before) / (2 * step)

    for i in range(engine.sizes[0]):
        v, w = bodies["v"][i].copy(), bodies["w"][i].copy()
        q = bodies["qp"][i] + GAMMA * w

        def back(i=i, v=v, w=w):
            bodies["v"][i], bodies["w"][i] = v, w

        for c in range(7):
            def change(size, i=i, c=c, v=v, w=w, q=q):
                if c < 3:
                    bodies["v"][i] = v + size * np.eye(3)[c]
                else:
                    e = np.roll(np.eye(4), 1, axis=1)[c - 3]
                    bodies["w"][i] = w + size * quaternion_product(q, e)

            np.testing.assert_allclose(differ(change, back), A[:, column], atol=2e-7, err_msg=f"body {i}, unknown {c}")
            column += 1
    work = stage.work
    views = [at["mu"][k : k + 1] for joint, at in zip(stage.model.joints, work.joints) for k in range(int(joint["rows"]))]
    for view in [*views, *(work.couplings["mu"][i : i + 1] for i in range(engine.sizes[2]))]:
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
    check(moved(with_laws(joint, **laws), 11, grounded=grounded))


@pytest.mark.parametrize("joint", [j for j in TYPES.values() if j.freedom], ids=[n for n, j in TYPES.items() if j.freedom])
def test_newton_matrix_of_motion_drives(joint):
    check(moved(with_laws(joint, drive="motion"), 12))


def test_newton_matrix_of_gears():
    mechanism = pair(da.Revolute(axis="x"), 4)
    mechanism.body("c", da.Sphere(radius=0.1, mass=1.0), position=(1, 1, 1))
    mechanism.joint("slider", da.Prismatic(axis=(1, 1, 1)), "a", "c", at=(1, 1, 1))
    mechanism.gear("rack", "joint", "slider", ratio=2.5)
    check(da.Simulation(mechanism, da.Implicit(dt=0.01)))


@pytest.mark.parametrize("joint", [da.Revolute(axis="y"), da.Prismatic(axis=(1, 2, 2)), da.Universal(axes=("z", "x"))], ids=["turn", "slide", "universal"])
def test_newton_matrix_of_servos(joint):
    check(moved(with_laws(joint, servo=da.Servo(stiffness=30.0, damping=2.0, target=0.3), damping=0.2), 5))


def test_newton_matrix_of_loads():
    """Forces on bodies by their pose and velocity; a penalty that sticks, and one that slips."""
    sim = moved(da.Spherical(), 7)
    mechanism = sim.mechanism.snapshot()
    mechanism.force("push", "a", (1.0, 2.0, -3.0), at=(0.3, 0.1, 0.2))
    mechanism.force("jet", "b", (4.0, 1.0, 2.0), at=(0.0, 0.4, 0.2), follows=True)
    mechanism.drag("air", "a", linear=2.0, angular=0.7)
    for name, friction in (("sticky", 100.0), ("slippery", 0.1)):
        mechanism.penalty(name, "b", point=(0.1, 0.2, 0.3), normal=(0.1, 0.2, 1.0), offset=5.0, stiffness=3.0, damping=0.4, friction=friction, tangential=0.8)
    check(sim, mechanism)
