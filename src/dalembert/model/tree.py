"""A mechanism as trees of one-element joints: what joint coordinates are made of.

A joint is a constant times a product of motions X = H N_1 N_2 ..., seen from the child's joint frame (mechanism/factors.py): exponentials
of constant screws exp(s q), free rotations, splines. Every factor is a node of its own, on a body without mass but for the last one, so
that only single factors need code. Read from child to parent a joint is the same product backwards with every motion
inverted. A free rotation is one factor of three numbers: a rotation vector from where the body was at the last knot
(RedMax section 2.3.6; REDMAX "Rotations"), or the angles of a chart. A body without a joint has three slides and such a rotation. Joints that close
loops, rods and springs are not in the tree.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError
from dalembert.mechanism.factors import BALL, SLIDE, Factor, frame
from dalembert.mechanism.factors import SPLINE as SPLINE_FACTOR
from dalembert.mechanism.mechanism import JointElement, Mechanism
from dalembert.model.records import F, I, Model, fields
from dalembert.model.splines import table_of
from dalembert.model.topology import spanning_tree, tree_order
from dalembert.spatial.splines import adjoint

#: kinds of nodes: nothing moves, along a line, about an axis (with a lead), about a point, along a curve or a surface
RIGID, LINE, AXIS, POINT, SPLINE = range(5)
#: how a direction is driven: by a target, held where it is, by a coordinate map
TARGET, HELD, FOLLOWER = 1, 2, 3

NODE = np.dtype(
    # ``body``: whose frame this is, -1 for a frame without mass; ``dof``: its first coordinate; ``joint`` (-1: none) and
    # ``direction``: whose law acts along it; ``driven``: it is free (0), or how it is driven;
    # ``backwards``: the joint is read from child to parent; ``acts``: a spring, damper or servo does along it; ``switch``: its chart may change. Of a spline: where its numbers begin, how many factors its pieces have, and
    # how many pieces there are along each coordinate; its record in the scratch
    fields(I, parent=0, kind=0, count=0, dof=0, body=0, joint=0, direction=0, driven=0, backwards=0, acts=0, switch=0, table=0, factors=0, closed=0, spline=0, cells=2)
    # the fixed placement in the parent node's frame; the screw (angular, linear) in the node's own frame; the point that it
    # turns about, or a point of the axis, with the lead (m/rad); mass (kg) and inertia (kg m^2) about the frame's origin, the
    # centre of mass; the inertia reflected along the coordinate; the body's radius of gyration (m); of a free rotation, the axes of its joint's frame and the rest orientation of its springs
    + fields(F, R0=9, p0=3, screw=6, centre=3, lead=0, mass=0, inertia=9, rotor=0, length=0, frame=9, rest=9)
)


class Tree(NamedTuple):
    """Nodes from the roots outwards; the node of every body; joints outside of the tree; numbers of the splines."""

    nodes: np.ndarray
    node_of: np.ndarray
    loops: np.ndarray
    splines: np.ndarray

    @property
    def freedom(self) -> int:
        """How many coordinates the nodes have."""
        return int(self.nodes["count"].sum())


def build_tree(mechanism: Mechanism, model: Model) -> Tree:
    """The trees of a mechanism: as many joints as can be coordinates, each body reached from the world.

    Loops are cut where no target is followed and no rotor's inertia is reflected, if possible.
    """
    joints = model.joints
    first = [j.name for j in mechanism.joints if joints["driven"][j.index].any() or np.any(joints["armature"][j.index] > 0.0)]
    chosen = spanning_tree(mechanism, [*first, *(joint.name for tied in mechanism.maps for joint in tied.joints)])
    builder = _Builder(mechanism, model)
    reached: set[int] = {-1}
    order = tree_order(mechanism, chosen)
    for index, here, there in order:
        if here not in reached:
            builder.free_body(here)
            reached.add(here)
        builder.joint(mechanism.joints[index], here, there)
        reached.add(there)
    for body in mechanism.bodies:
        if body.index not in reached:
            builder.free_body(body.index)
    loops = [joint.index for joint in mechanism.joints if joint.index not in chosen]
    for index in loops:
        joint = mechanism.joints[index]
        if not joint.type.has_rows:
            raise ModelError(f"joint {joint.name!r} closes a loop of joints of its kind, and {type(joint.type).__name__} has no equations to close one: let a joint of the table close it")
    nodes = np.array(builder.nodes, NODE) if builder.nodes else np.zeros(0, NODE)
    splines = np.concatenate([np.zeros(1), *builder.tables])
    splines.flags.writeable = False  # part of a model, and of the types that kernels are compiled for
    return Tree(nodes, np.array(builder.node_of, np.int64), np.array(loops, np.int64), splines)


class _Builder:
    """Adds nodes one joint after the other."""

    def __init__(self, mechanism: Mechanism, model: Model) -> None:
        self.mechanism, self.model = mechanism, model
        self.nodes: list[np.ndarray] = []
        self.tables: list[np.ndarray] = []
        self.node_of = [-1] * len(mechanism.bodies)
        self.dof = 0

    def free_body(self, body: int) -> None:
        """A body that hangs on nothing: slides along the world's axes and a free rotation."""
        slides = [Factor(SLIDE, -1, 1, np.eye(4), np.eye(6)[3 + k]) for k in range(3)]
        self._chain(body, -1, np.eye(4), np.eye(4), [*slides, Factor(BALL, -1, 3, np.eye(4), np.zeros(6))], -1, False)

    def joint(self, joint: JointElement, here: int, there: int) -> None:
        """A joint from a known body to the next one."""
        factors, H = joint.type.factors, joint.type.offset
        parent, child = frame(joint.point_parent, joint.frame_parent), frame(joint.point_child, joint.frame_child)
        if here == joint.parent.index:
            self._chain(there, here, parent @ H @ np.linalg.inv(child), child, factors, joint.index, False)
        else:
            turned = [factor.seen_from(H) for factor in reversed(factors)]
            self._chain(there, here, child @ np.linalg.inv(H) @ np.linalg.inv(parent), parent, turned, joint.index, True)

    def _chain(self, body: int, parent: int, X0: np.ndarray, end: np.ndarray, factors, joint: int, backwards: bool) -> None:
        """Nodes of a sequence of factors after a constant ``X0``; ``end``: the joint's frame on the body, in which the factors are given."""
        above = self.node_of[parent] if parent >= 0 else -1
        nodes = [self._node(factor, end, joint, backwards) for factor in factors] or [self._rigid(joint, backwards)]
        for node in nodes:
            node["parent"], node["body"], node["dof"] = above, -1, self.dof
            node["R0"], node["p0"] = X0[:3, :3].ravel(), X0[:3, 3]
            node["length"] = self.model.bodies["length"][body]
            X0 = np.eye(4)
            self.nodes.append(node)
            above = len(self.nodes) - 1
            self.dof += int(node["count"])
        last = nodes[-1]
        last["body"], last["mass"], last["inertia"] = body, self.model.bodies["mass"][body], self.model.bodies["inertia"][body]
        self.node_of[body] = above

    def _rigid(self, joint: int, backwards: bool) -> np.ndarray:
        node = np.zeros((), NODE)
        node["kind"], node["joint"], node["direction"], node["backwards"] = RIGID, joint, -1, backwards
        return node

    def _node(self, factor: Factor, end: np.ndarray, joint: int, backwards: bool) -> np.ndarray:
        """A factor seen from the body's frame."""
        node = self._rigid(joint, backwards)
        G, direction = end @ factor.G, factor.direction
        node["count"], node["direction"] = factor.count, direction
        node["frame"], node["centre"] = G[:3, :3].ravel(), G[:3, 3]
        if joint >= 0 and direction >= 0:
            laws, own = self.model.joints[joint], slice(direction, direction + factor.count)
            node["driven"] = laws["driven"][direction]
            node["acts"] = any(np.any(laws[name][own] != 0) for name in ("stiffness", "damping", "follows"))
            node["rotor"] = laws["armature"][direction]
        if factor.kind == BALL:
            node["kind"] = POINT
            rest = self.model.joints["rest"][joint, direction : direction + 3].copy() if joint >= 0 else np.zeros(3)
            node["rest"] = Rotation.from_rotvec(rest).as_matrix().ravel()
        elif factor.kind == SPLINE_FACTOR:
            node["kind"], node["closed"], node["spline"] = SPLINE, factor.closed, len(self.tables)
            node["cells"][: factor.count], node["factors"] = factor.cells, len(factor.pieces[0].screws)
            node["table"] = 1 + sum(map(len, self.tables))
            pieces = [piece.seen_from(G) for piece in factor.pieces]
            self.tables.append(table_of([piece.backwards() for piece in pieces] if backwards else pieces))
        else:
            screw = adjoint(G) @ (-factor.screw if backwards else factor.screw)
            node["kind"] = LINE if factor.kind == SLIDE else AXIS
            node["screw"] = screw
            node["lead"] = factor.screw[:3] @ factor.screw[3:]
        return node
