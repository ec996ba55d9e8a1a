"""The step problem's graph: a node per body, per joint that holds something, per coupling; and its block storage."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dalembert.linalg import Structure, analyse
from dalembert.model.records import Records

#: compliance of the proximal method, relative to each row's own scale
COMPLIANCE = 1e-8


@dataclass(frozen=True)
class System:
    """Records with their graph, its factor's blocks, a vector of unknowns, and where blocks between bodies lie (joints, 2)."""

    records: Records
    structure: Structure
    blocks: np.ndarray
    vector: np.ndarray
    edges: np.ndarray


def build_system(records: Records, body_size: int = 6, couple_bodies: bool = False, contacts: Sequence[tuple[int, int]] = ()) -> System:
    """Number the nodes, analyse the graph and tell every record where its blocks are.

    ``couple_bodies``: joined bodies also meet directly, through the change of the joint's forces with the pose.
    ``contacts``: the two bodies of every contact; their nodes, of three numbers each, come after all others.
    """
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    world = len(bodies) - 1
    bodies["node"][:world] = np.arange(world)
    sizes, constraint, edges = [body_size] * world, [False] * world, []
    pairs = [(int(j["parent"]), int(j["child"])) for j in joints]
    if couple_bodies:
        edges += [pair for pair in pairs if world not in pair]
    for joint in joints:
        if joint["rows"] > 0:
            joint["node"] = len(sizes)
            sizes.append(int(joint["rows"]))
            constraint.append(bool(joint["locks"] > 0))
            edges += [(joint["node"], end) for end in (joint["parent"], joint["child"]) if end != world]
    for coupling in couplings:
        coupling["node"] = len(sizes)
        sizes.append(1)
        constraint.append(True)
        edges += [(coupling["node"], body) for body in coupling["body"][: coupling["bodies"]]]
    for first, second in contacts:
        edges += [(len(sizes), end) for end in (first, second) if end != world]
        sizes.append(3)
        constraint.append(False)
    structure = analyse(sizes, np.array(edges, dtype=np.int64).reshape(-1, 2), np.array(constraint, dtype=bool))

    bodies["diagonal"][:world] = structure.diagonal[:world]
    for name in ("block_jp", "block_pj", "block_jc", "block_cj"):
        joints[name] = -1
    for joint in joints:
        node = int(joint["node"])
        if node < 0:
            continue
        joint["diagonal"] = structure.diagonal[node]
        for end, there, back in (("parent", "block_jp", "block_pj"), ("child", "block_jc", "block_cj")):
            if joint[end] != world:
                joint[there] = structure.block(node, int(joint[end]))
                joint[back] = structure.block(int(joint[end]), node)
    for coupling in couplings:
        node = int(coupling["node"])
        coupling["diagonal"] = structure.diagonal[node]
        for slot in range(int(coupling["bodies"])):
            coupling["block_cb"][slot] = structure.block(node, int(coupling["body"][slot]))
            coupling["block_bc"][slot] = structure.block(int(coupling["body"][slot]), node)
    between = np.full((len(joints), 2), -1)
    if couple_bodies:
        for i, (a, b) in enumerate(pairs):
            if world not in (a, b):
                between[i] = structure.block(a, b), structure.block(b, a)
    return System(records, structure, structure.new_blocks(), structure.new_vector(), between)


def has_loops(records: Records) -> bool:
    """True when some joint or coupling closes a cycle, counting the world as a body."""
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    if len(couplings):
        return True
    root = list(range(len(bodies)))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    for joint in joints:
        if joint["locks"] > 0:
            a, b = find(int(joint["parent"])), find(int(joint["child"]))
            if a == b:
                return True
            root[a] = b
    return False


def set_softness(records: Records) -> None:
    """Give every row the scale of its compliance: G M^-1 G^T, the inverse of the inertia that it feels.

    Needs the rows' gradients. A mechanism may hold grams and tonnes: one scale for all rows would not do.
    """
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    inverse = np.zeros((len(bodies), 6, 6))
    inverse[:-1, :3, :3] = np.eye(3) / bodies["mass"][:-1, None, None]
    inverse[:-1, 3:, 3:] = bodies["inertia_inverse"][:-1].reshape(-1, 3, 3)
    for G, end in (("Gp", "parent"), ("Gc", "child")):
        joints["soft"] += np.einsum("jkc,jcd,jkd->jk", joints[G], inverse[joints[end]], joints[G])
    joints["soft"][np.arange(6) >= joints["locks"][:, None]] = 1.0
    for coupling in couplings:
        slots = range(int(coupling["bodies"]))
        coupling["soft"] = sum(coupling["G"][s] @ inverse[coupling["body"][s]] @ coupling["G"][s] for s in slots)
