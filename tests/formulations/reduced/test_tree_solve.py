"""The Newton matrix of a stage in linear time, against differences of the residual: every tree joint, also read backwards."""
from collections.abc import Sequence

import numpy as np
import pytest

import dalembert as da
from dalembert.formulations.reduced.engine import ReducedEngine
from dalembert.formulations.reduced.equations import Stage, residual
from dalembert.formulations.reduced.step import factorise
from dalembert.formulations.reduced.tree_solve import solve, solve_transposed
from dalembert.model.tree import POINT, SPLINE


def random_frames(count: int, seed: int) -> np.ndarray:
    """Control frames along a bent line."""
    rng = np.random.default_rng(seed)
    turns = np.column_stack([np.ones(count), 0.4 * rng.normal(size=(count, 3))])
    return np.column_stack([0.5 * np.arange(count), 0.2 * rng.normal(size=(count, 2)), turns])


def curve(**laws) -> da.SplineCurve:
    return da.SplineCurve(random_frames(6, 1), **laws)


def surface(**laws) -> da.SplineSurface:
    grid = 0.2 * np.random.default_rng(2).normal(size=(5, 4, 6))
    grid[..., 0] += 0.4 * np.arange(5)[:, None]
    grid[..., 1] += 0.4 * np.arange(4)
    return da.SplineSurface(grid, **laws)


SPLINES = (
    lambda: curve(stiffness=3.0, damping=0.3, armature=0.1), lambda: surface(stiffness=[2, 3], damping=0.2),
    lambda: da.CompositeJoint(curve(), da.Spherical(stiffness=[1, 2, 3], damping=0.2), position=(0.1, 0.2, 0.3), orientation=(1, 0.2, 0.3, 0.1)),
)
JOINTS = (
    lambda: da.CompositeJoint(da.Spherical(stiffness=2.0, damping=0.3), da.Cylindrical(axis=(1, 1, 0), stiffness=3.0), position=(0.3, 0, 0.1)),
    lambda: da.Revolute(axis=[1, 2, 3], stiffness=3.0, damping=0.4, rest=0.3, armature=0.2),
    lambda: da.Spherical(stiffness=[1, 2, 3], damping=[0.3, 0.2, 0.1]),
    da.Universal, lambda: da.Helical(pitch=0.3), da.Free, da.Planar, da.Cylindrical, da.Fixed, lambda: da.Slot(damping=0.2), None,
    da.Prismatic, da.Rectangular, da.PlanarFreeOrientation, da.PinInSlot, da.Cartesian, da.RotationAlongAxis,
)


def random_tree(bodies: int, rng: np.random.Generator, joints: Sequence = SPLINES + JOINTS) -> da.Mechanism:
    """Bodies hung on one another at random by joints of all kinds, half of them read from child to parent."""
    mechanism = da.Mechanism("tree")
    for i in range(bodies):
        square = np.cov(rng.normal(size=(3, 9)))
        orientation = rng.normal(size=4)
        body = mechanism.body(
            f"body {i}", mass=float(rng.uniform(0.5, 2.0)), inertia=0.2 * (np.trace(square) * np.eye(3) - square),
            position=rng.normal(size=3), orientation=orientation / np.linalg.norm(orientation),
        )
        kind = joints[int(rng.integers(len(joints)))]
        if kind is None:
            continue
        other = mechanism.bodies[int(rng.integers(i))] if i and rng.random() < 0.85 else mechanism.world
        ends = (other, body) if other is mechanism.world or rng.random() < 0.5 else (body, other)
        mechanism.joint(f"joint {i}", kind(), *ends, at=rng.normal(size=3))
    return mechanism


@pytest.mark.parametrize("seed", range(12))
def test_solves_with_the_matrix_that_differences_give(seed):
    rng = np.random.default_rng(seed)
    engine = ReducedEngine(random_tree(9, rng), da.Reduced(dt=0.01))
    tree, own, c = engine.tree.nodes, engine.own, 0.05
    stage = Stage(engine.model, tree, engine.work, own, engine.ties, c)
    places = [(i, j) for i, node in enumerate(tree) for j in range(int(node["count"]))]
    nodes = own.nodes
    nodes["aq"], nodes["av"] = rng.normal(size=nodes["aq"].shape), rng.normal(size=nodes["av"].shape)
    nodes["turn"] = [1.0, 0.0, 0.0, 0.0]
    start = rng.normal(size=(len(tree), 4))
    nodes["turn"][tree["kind"] == POINT] = (start / np.linalg.norm(start, axis=1, keepdims=True))[tree["kind"] == POINT]
    charts = rng.integers(13, size=len(tree))
    nodes["chart"] = np.where(tree["kind"] == POINT, charts, 0)
    index = tuple(np.array(places).T)
    nodes["aq"][tree["kind"] == POINT, 1] = 0.8 + 0.1 * rng.random(np.count_nonzero(tree["kind"] == POINT))  # no chart is singular there
    nodes["aq"][tree["kind"] == SPLINE] = 0.4 + 0.2 * rng.random((np.count_nonzero(tree["kind"] == SPLINE), 3))  # away from the knots
    x = nodes["aq"][index] + c * rng.normal(size=len(places))

    def equations(x):
        nodes["v"][index] = (x - nodes["aq"][index]) / c
        residual(stage)
        return nodes["g"][index].copy()

    h = 1e-4
    steps = h * np.eye(len(places))
    first, second, third = (np.array([equations(x + k * e) - equations(x - k * e) for e in steps]).T for k in (1, 2, 3))
    H = (45.0 * first - 9.0 * second + third) / (60.0 * h)
    equations(x)
    assert factorise(stage, 0.0)[1]
    right = rng.normal(size=len(places))
    nodes["g"][index], nodes["e"] = right, 0.0
    solve(tree, own)
    plain = nodes["dq"][index].copy()
    nodes["g"][index], nodes["s"] = right, 0.0
    solve_transposed(tree, own)
    for found, matrix in ((plain, H), (nodes["dq"][index], H.T)):
        expected = np.linalg.solve(matrix, right)
        assert np.abs(found - expected).max() < 1e-7 * np.abs(expected).max()
