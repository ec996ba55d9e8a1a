"""A and B of all steps of a taped run in joint coordinates, for trees of slides and turns, in one call."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.reduced.dense import stage_matrices
from dalembert.formulations.reduced.equations import Stage
from dalembert.model.functions import watched
from dalembert.model.tree import AXIS, LINE, RIGID


def step_matrices(engine: Any, tape: Tape) -> tuple[np.ndarray, np.ndarray]:
    """(N, s, s) and (N, s, n): coordinates and rates after each step by those before it, and by forces along the coordinates held over it.

    For BDF2 the numbers of a state are those of two knots, s = 4 n, otherwise s = 2 n.
    """
    nodes = engine.tree.nodes
    if len(engine.ties.rows) or not np.all(np.isin(nodes["kind"], (RIGID, LINE, AXIS))) or np.any(nodes["driven"]):
        raise GradientError(
            f"steps of {engine.mechanism.name!r} cannot be differentiated all at once: that needs a tree of slides and turns without loops, paths, "
            "free rotations and motion drives. Use Simulation.step_jacobian, step by step."
        )
    n, count = engine.tree.freedom, tape.count
    H, D, M = np.zeros((3, count, n, n))
    stage = Stage(engine.model, nodes, engine.work, engine.own, engine.ties, engine.options.dt)
    with watched(engine.mechanism):
        if not stage_matrices(stage, tape.arrays, count, np.zeros(len(nodes), bool), H, D, M):
            raise GradientError(f"a step of {engine.mechanism.name!r} cannot be differentiated: a number there is not finite")
    kind, clock = tape.arrays.kind[:count], tape.arrays.clock[:count]
    two_knots = engine.options.method == "bdf2"
    size = (4 if two_knots else 2) * n
    begins = np.flatnonzero(kind[:, 0] == 0)
    state, force = np.zeros((len(begins), size, size)), np.zeros((len(begins), size, n))
    for order in np.unique(kind[begins, 2]):
        of_order = np.flatnonzero(kind[begins, 2] == order)
        # columns: coordinates, rates, (those of the knot before,) forces
        found = _steps(engine.tableau, int(order), begins[of_order], kind, clock, H, D, M, size)
        state[of_order, : 2 * n], force[of_order, : 2 * n] = found[..., :size], found[..., size:]
    if two_knots:
        state[:, 2 * n :, : 2 * n] = np.eye(2 * n)
    return state, force


def _steps(tableau: Any, order: int, first: np.ndarray, kind: np.ndarray, clock: np.ndarray, H: np.ndarray, D: np.ndarray, M: np.ndarray, size: int) -> np.ndarray:
    """(steps, 2 n, s + n) coordinates and rates after steps of one kind whose stages begin at entries ``first``."""
    n = H.shape[1]
    if order > 0:
        return _multistep(order, clock[first, 0][:, None, None], _solved(H[first], D[first], M[first], clock[first, 0]), size)
    begun = np.eye(size + n)
    q, v = begun[:n], begun[n : 2 * n]
    slopes: list[tuple[np.ndarray, np.ndarray]] = []
    x = rate = np.zeros(0)
    dt = clock[first, 1][:, None, None]
    for number in range(int(kind[first[0], 1])):
        at = first + number
        c, aq, av = clock[at, 0][:, None, None], q[None], v[None]
        for a, (dq, dv) in zip(tableau.a[number], slopes):
            aq, av = aq + dt * a * dq, av + dt * a * dv
        by = _solved(H[at], D[at], M[at], clock[at, 0])
        x = by[:, :, :n] @ aq + by[:, :, n : 2 * n] @ av
        x[:, :, size:] += by[:, :, 2 * n :]
        rate = (x - aq) / c
        slopes.append((rate, (rate - av) / c))
    if not tableau.stiffly_accurate:
        x, rate = q + dt * sum(b * k[0] for b, k in zip(tableau.b, slopes)), v + dt * sum(b * k[1] for b, k in zip(tableau.b, slopes))
    return np.concatenate([x, rate], axis=1)


def _solved(H: np.ndarray, D: np.ndarray, M: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(stages, n, 3 n) coordinates at the ends of stages by both aggregates and by forces."""
    n, c = H.shape[1], c[:, None, None]
    right = np.empty((len(H), n, 3 * n))
    right[:, :, n : 2 * n] = M / c
    right[:, :, :n] = (D + right[:, :, n : 2 * n]) / c
    right[:, :, 2 * n :] = np.eye(n)
    return np.linalg.solve(H, right)


def _multistep(order: int, c: np.ndarray, by: np.ndarray, size: int) -> np.ndarray:
    """The same of steps of a BDF formula."""
    n = by.shape[1]
    found = np.zeros((len(by), 2 * n, size + n))
    parts = ((1.0, 0),) if order == 1 else ((4.0 / 3.0, 0), (-1.0 / 3.0, 2 * n))
    for weight, column in parts:
        found[:, :n, column : column + 2 * n] = weight * by[:, :, : 2 * n]
    found[:, :n, size:] = by[:, :, 2 * n :]
    np.divide(found[:, :n], c, out=found[:, n:])
    diagonal = np.arange(n)
    for weight, column in parts:
        found[:, n + diagonal, column + diagonal] -= weight / c[:, :, 0]
    return found
