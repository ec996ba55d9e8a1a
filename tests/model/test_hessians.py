"""Second derivatives of rows and laws against finite differences of the wrenches, over every joint of the table."""
from __future__ import annotations

import numpy as np
import pytest
from pairs import TYPES, moved, tangent, with_laws

import dalembert as da
from dalembert.forces.directions import add_directions
from dalembert.forces.loads import clear_inputs, evaluate_loads
from dalembert.kernels import kernel
from dalembert.model.frames import frame_rotation, relative
from dalembert.model.hessians import add_row
from dalembert.model.placement import Placement
from dalembert.spatial.tuples import load3, load9


@kernel
def hessian(model, work, multipliers, K, gradient):
    joint, at = model.joints[0], work.joints[0]
    a = work.bodies[joint.parent]
    b = work.bodies[joint.child]
    Rp = load9(a.R)
    y, C = relative(joint, load3(a.x), Rp, load3(b.x), load9(b.R))
    for k in range(joint.rows):
        add_row(K, joint, at, k, multipliers[k], y, C, Rp)
    add_directions(K, joint, at, y, C, Rp, frame_rotation(joint, C), gradient)


def placed(sim: da.Simulation) -> Placement:
    placement = Placement.of(sim.mechanism)
    placement.put(sim.position, sim.orientation)
    return placement


def wrench(placement: Placement, multipliers: np.ndarray) -> np.ndarray:
    """Force and torque on parent and child from rows and laws, without gravity."""
    model, work = placement.model, placement.work
    placement.evaluate()
    clear_inputs(model, work)
    evaluate_loads(model, work)
    at, rows = work.joints[0], int(model.joints["rows"][0])
    load = work.bodies["load"][:2].ravel().copy()
    load[:6] += multipliers[:rows] @ at["Gp"][:rows]
    load[6:] += multipliers[:rows] @ at["Gc"][:rows]
    return load


CASES = [(n, dict()) for n in TYPES] + [(n, dict(stiffness=2.0, rest=0.3, damping=1.0)) for n, j in TYPES.items() if j.freedom]


@pytest.mark.parametrize(("name", "laws"), CASES, ids=[f"{n}{' with laws' if laws else ''}" for n, laws in CASES])
def test_hessians(name, laws):
    joint = with_laws(TYPES[name], **laws)
    placement = placed(moved(joint, 31, gravity=(0, 0, 0)))
    multipliers = np.random.default_rng(3).normal(size=6)
    K = np.zeros((12, 12))
    hessian(placement.model, placement.work, multipliers, K, np.zeros(12))
    bodies, step = placement.work.bodies, 1e-6
    x, q = bodies["x"].copy(), bodies["q"].copy()
    for column in range(12):
        body, direction = divmod(column, 6)
        ends = []
        for sign in (1.0, -1.0):
            delta = sign * step * np.eye(6)[direction]
            bodies["x"][body], bodies["q"][body] = x[body] + delta[:3], tangent(q[body], delta[3:])
            ends.append(wrench(placement, multipliers))
        bodies["x"][:], bodies["q"][:] = x, q
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), K[:, column], atol=1e-8)


def test_point_springs():
    mechanism = da.Mechanism("tie", gravity=(0, 0, 0))
    for name, at in (("a", (0, 0, 0)), ("b", (1, 0.5, 0.2))):
        mechanism.body(name, da.Box(size=(0.3, 0.2, 0.1), mass=1.0), position=at, orientation=(1, 0.2, -0.3, 0.1))
    mechanism.spring("joint", "a", "b", at=((0.1, 0.2, 0), (0.8, 0.5, 0.1)), stiffness=3.0, damping=1.0, length=0.3)
    placement = placed(da.Simulation(mechanism, da.Variational(dt=0.01)))
    K, multipliers = np.zeros((12, 12)), np.array([0.7, 0, 0, 0, 0, 0])
    hessian(placement.model, placement.work, multipliers, K, np.zeros(12))
    np.testing.assert_allclose(K[:, :3], -K[:, 6:9], atol=1e-12)
    step, x = 1e-6, placement.work.bodies["x"].copy()
    placement.work.bodies["x"][1, 0] += step
    after = wrench(placement, multipliers)
    placement.work.bodies["x"][1, 0] -= 2 * step
    before = wrench(placement, multipliers)
    placement.work.bodies["x"][:] = x
    np.testing.assert_allclose((after - before) / (2 * step), K[:, 6], atol=1e-8)
