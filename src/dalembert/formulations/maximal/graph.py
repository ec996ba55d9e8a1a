"""The step problem's graph: a node per body, per joint that holds something, per coupling, per contact; and work with its blocks."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dalembert.linalg import Structure, analyse
from dalembert.model.compile import new_work
from dalembert.model.records import CONSTRAINT, Model, Work


class Graph(NamedTuple):
    """Scratch whose records know their nodes and blocks; the analysed structure; where blocks between joined bodies lie
    (joints, 2), -1 where there are none; and the node of the first contact.
    """

    work: Work
    structure: Structure
    edges: np.ndarray
    contacts: int

    def new_work(self, model: Model) -> Work:
        """Scratch that nobody else uses, on the same graph: of its records the whole numbers say where nodes and blocks are."""
        made = new_work(model)
        for records, told in zip(made[:4], self.work[:4]):
            for name in records.dtype.names or ():
                if records.dtype[name].kind == "i":
                    records[name] = told[name]
        return made._replace(blocks=self.structure.new_blocks(), schedule=self.structure.schedule, vector=self.structure.new_vector())


def build_graph(
    model: Model, body_size: int = 6, couple_bodies: bool = False, contacts: Sequence[tuple[int, int]] = (), firm: bool = False,
) -> Graph:
    """Number the nodes, analyse the graph and tell every record where its blocks are.

    ``couple_bodies``: joined bodies also meet directly, through the change of the joint's forces with the pose.
    ``contacts``: the two bodies of every contact; their nodes, of three numbers each, come after all others. ``firm``: they are
    eliminated like rows of joints, after bodies that support them: that costs more, and rounding does less.
    """
    work = new_work(model)
    world = len(model.bodies) - 1
    work.bodies["node"][:world] = np.arange(world)
    sizes, constraint, edges = [body_size] * world, [False] * world, []
    pairs = [(int(j["parent"]), int(j["child"])) for j in model.joints]
    if couple_bodies:
        edges += [pair for pair in pairs if world not in pair]
    for joint, at in zip(model.joints, work.joints):
        if joint["rows"] > 0:
            at["node"] = len(sizes)
            sizes.append(int(joint["rows"]))
            constraint.append(bool(joint["locks"] > 0))
            edges += [(at["node"], end) for end in (joint["parent"], joint["child"]) if end != world]
    for coupling, tie in zip(model.couplings, work.couplings):
        tie["node"] = len(sizes)
        sizes.append(1)
        constraint.append(bool(coupling["law"] == CONSTRAINT))
        edges += [(tie["node"], body) for body in model.ends[coupling["first"] : coupling["first"] + coupling["ends"]]]
    first_contact = len(sizes)
    ends = np.array(contacts, dtype=np.int64).reshape(-1, 2)
    touching = np.stack([np.repeat(first_contact + np.arange(len(ends)), 2), ends.ravel()], axis=1)
    sizes += [3] * len(ends)
    constraint += [firm] * len(ends)
    every = np.concatenate([np.array(edges, dtype=np.int64).reshape(-1, 2), touching[touching[:, 1] != world]])
    structure = analyse(sizes, every, np.array(constraint, dtype=bool))
    _point_at_blocks(model, work, structure)
    between = np.full((len(pairs), 2), -1)
    if couple_bodies:
        for i, (a, b) in enumerate(pairs):
            if world not in (a, b):
                between[i] = structure.block(a, b), structure.block(b, a)
    work = work._replace(blocks=structure.new_blocks(), schedule=structure.schedule, vector=structure.new_vector())
    return Graph(work, structure, between, first_contact)


def _point_at_blocks(model: Model, work: Work, structure: Structure) -> None:
    """Tell every record where its blocks are."""
    world = len(model.bodies) - 1
    work.bodies["diagonal"][:world] = structure.diagonal[:world]
    for name in ("block_jp", "block_pj", "block_jc", "block_cj"):
        work.joints[name] = -1
    node = work.joints["node"].astype(np.int64)
    work.joints["diagonal"][node >= 0] = structure.diagonal[node[node >= 0]]
    for end, there, back in (("parent", "block_jp", "block_pj"), ("child", "block_jc", "block_cj")):
        held = (node >= 0) & (model.joints[end] != world)
        work.joints[there][held] = structure.blocks(node[held], model.joints[end][held])
        work.joints[back][held] = structure.blocks(model.joints[end][held], node[held])
    for coupling, tie in zip(model.couplings, work.couplings):
        node = int(tie["node"])
        tie["diagonal"] = structure.diagonal[node]
        for e in range(int(coupling["first"]), int(coupling["first"] + coupling["ends"])):
            work.ends["there"][e] = structure.block(node, int(model.ends[e]))
            work.ends["back"][e] = structure.block(int(model.ends[e]), node)


def has_loops(model: Model) -> bool:
    """True when some joint or coupling closes a cycle, counting the world as a body."""
    if np.any(model.couplings["law"] == CONSTRAINT):
        return True
    root = list(range(len(model.bodies)))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    for joint in model.joints:
        if joint["locks"] > 0:
            a, b = find(int(joint["parent"])), find(int(joint["child"]))
            if a == b:
                return True
            root[a] = b
    return False
