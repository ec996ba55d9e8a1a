"""Graphs and systems that the tests of this folder share."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dalembert.linalg import GraphSystem, Structure

ORDERS = ("best", "depth_first", "stacked", "minimum_degree", "minimum_degree_reversed")


def random_tree(n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Each node joined to an earlier one, under shuffled numbers."""
    number = rng.permutation(n).tolist()
    return [(number[i], number[int(rng.integers(i))]) for i in range(1, n)]


def random_edges(n: int, extra: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """A random tree and ``extra`` more edges, some of them duplicates."""
    pairs = rng.integers(0, n, (extra, 2)).tolist()
    return random_tree(n, rng) + [(i, j) for i, j in pairs if i != j]


def fill_in_random(system: GraphSystem, edges: Iterable[tuple[int, int]], rng: np.random.Generator) -> None:
    """Unsymmetric random blocks, regular by a heavy diagonal whose rows are shuffled: no pivot is where it seems."""
    for i, m in enumerate(system.sizes.tolist()):
        system.set(i, i, rng.normal(size=(m, m)) + 40.0 * np.eye(m)[rng.permutation(m)])
    for i, j in edges:
        system.set(i, j, rng.normal(size=(system.sizes[i], system.sizes[j])))
        system.set(j, i, rng.normal(size=(system.sizes[j], system.sizes[i])))


def saddle_point(
    bodies: int, joints: Sequence[tuple[int, ...]], rows: list[int], rng: np.random.Generator, order: str = "best"
) -> GraphSystem:
    """Bodies of six unknowns with a definite block each, joints with ``rows`` rows on one or two bodies and no diagonal."""
    edges = [(bodies + k, body) for k, joint in enumerate(joints) for body in joint]
    constraint = np.arange(bodies + len(joints)) >= bodies
    system = GraphSystem([6] * bodies + rows, edges, constraint, order=order)
    for i in range(bodies):
        R = rng.normal(size=(6, 6))
        system.set(i, i, np.eye(6) + 0.1 * R @ R.T)
    for joint, body in edges:
        G = np.linalg.qr(rng.normal(size=(6, 6)))[0][: system.sizes[joint]]
        system.set(joint, body, G)
        system.set(body, joint, G.T + 0.05 * rng.normal(size=G.T.shape))
    return system


def write_random(structure: Structure, blocks: np.ndarray, rng: np.random.Generator) -> None:
    """New numbers in the original blocks, in place."""
    schedule = structure.schedule
    for i, m in enumerate(schedule.sizes):
        blocks["M"][schedule.diagonal[i], :m, :m] = rng.normal(size=(m, m)) + 20.0 * np.eye(m)
        for j, k in zip(*(x[schedule.offset[i] : schedule.offset[i + 1]] for x in (schedule.neighbour, schedule.entry))):
            blocks["M"][k, :m, : schedule.sizes[j]] = rng.normal(size=(m, schedule.sizes[j]))
