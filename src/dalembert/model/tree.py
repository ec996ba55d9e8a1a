"""A mechanism as trees of one-element joints: what joint coordinates are made of.

A joint of the table is a product of exponentials X = X0 exp(s_1 q_1) exp(s_2 q_2) ..., with screws s_k that are constant in the
child's frame: slides first, then turns. Every factor is a node of its own, on a body without mass but for the last one, so
that only single factors need code. Read from child to parent a joint is the same product backwards with the screws
negated. A free rotation is one factor of three numbers: a rotation vector from where the body was at the last knot
(RedMax section 2.3.6; REDMAX "Rotations"). A body without a joint has three slides and such a rotation. Joints that close
loops, rods and springs are not in the tree.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.mechanism.mechanism import JointElement, Mechanism
from dalembert.model.records import F, I, Model, fields
from dalembert.model.topology import spanning_tree, tree_order

#: kinds of nodes: nothing moves, along a line, about an axis (with a lead), about a point
RIGID, LINE, AXIS, POINT = range(4)
#: what moves a node that is not free: a target, a coordinate map
TARGET_NODE, MAPPED_NODE = 1, 2
#: numbers of coordinates of the kinds
COUNT = (0, 1, 1, 3)

NODE = np.dtype(
    # ``body``: whose frame this is, -1 for a frame without mass; ``dof``: its first coordinate; ``joint`` (-1: none) and
    # ``direction``: whose law acts along it; ``driven``: it is free (0), or follows a target or a map;
    # ``backwards``: the joint is read from child to parent; ``acts``: a spring, damper or servo does along it
    fields(I, parent=0, kind=0, count=0, dof=0, body=0, joint=0, direction=0, driven=0, backwards=0, acts=0)
    # the fixed placement in the parent node's frame; the screw (angular, linear) in the node's own frame; the point that it
    # turns about, or a point of the axis, with the lead (m/rad); mass (kg) and inertia (kg m^2) about the frame's origin, the
    # centre of mass; the inertia reflected along the coordinate; the body's radius of gyration (m)
    + fields(F, R0=9, p0=3, screw=6, centre=3, lead=0, mass=0, inertia=9, rotor=0, length=0)
)


class Tree(NamedTuple):
    """Nodes from the roots outwards; the node of every body; joints outside of the tree."""

    nodes: np.ndarray
    node_of: np.ndarray
    loops: np.ndarray

    @property
    def freedom(self) -> int:
        """How many coordinates the nodes have."""
        return int(self.nodes["count"].sum())


Factor = tuple[int, int, np.ndarray]


def factors(joint: JointElement) -> list[Factor]:
    """The factors of a joint: kind, direction, and the screw (angular, linear) in the child's canonical frame."""
    found: list[Factor] = []
    axes = np.eye(3)
    for index, (kind, axis) in enumerate(joint.type.directions):
        if kind == "slide":
            found.append((LINE, index, np.concatenate([np.zeros(3), axes[axis]])))
        elif kind != "ball":
            found.append((AXIS, index, np.concatenate([axes[axis], joint.type.lead * axes[axis]])))
        elif axis == 0:
            found.append((POINT, index, np.zeros(6)))
    return found


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
    nodes = np.array(builder.nodes, NODE) if builder.nodes else np.zeros(0, NODE)
    return Tree(nodes, np.array(builder.node_of, np.int64), np.array(loops, np.int64))


class _Builder:
    """Adds nodes one joint after the other."""

    def __init__(self, mechanism: Mechanism, model: Model) -> None:
        self.mechanism, self.model = mechanism, model
        self.nodes: list[np.ndarray] = []
        self.node_of = [-1] * len(mechanism.bodies)
        self.dof = 0

    def free_body(self, body: int) -> None:
        """A body that hangs on nothing: slides along the world's axes and a free rotation."""
        slides: list[Factor] = [(LINE, -1, np.eye(6)[3 + k]) for k in range(3)]
        self._chain(body, -1, np.zeros(3), Rotation.identity(), np.zeros(3), np.eye(3), [*slides, (POINT, -1, np.zeros(6))], -1, False)

    def joint(self, joint: JointElement, here: int, there: int) -> None:
        """A joint from a known body to the next one."""
        sequence = factors(joint)
        parent, child = (frame @ joint.type.basis for frame in (joint.frame_parent, joint.frame_child))
        ends = (joint.point_parent, parent), (joint.point_child, child)
        backwards = here != joint.parent.index
        if backwards:
            sequence, ends = [(kind, index, -screw) for kind, index, screw in sequence[::-1]], ends[::-1]
        (point_here, frame_here), (point_there, frame_there) = ends
        turn = Rotation.from_matrix(frame_here @ frame_there.T)
        shift = point_here - turn.apply(point_there)
        self._chain(there, here, shift, turn, point_there, frame_there, sequence, joint.index, backwards)

    def _chain(
        self, body: int, parent: int, shift: np.ndarray, turn: Rotation, point: np.ndarray, frame: np.ndarray, sequence: list[Factor],
        joint: int, backwards: bool,
    ) -> None:
        """Nodes of a sequence of factors; ``point`` and ``frame``: the canonical frame on the body at their end."""
        above = self.node_of[parent] if parent >= 0 else -1
        for place, (kind, direction, screw) in enumerate(sequence or [(RIGID, -1, np.zeros(6))]):
            node = np.zeros((), NODE)
            first, last = place == 0, place == max(len(sequence), 1) - 1
            node["parent"], node["kind"], node["count"], node["dof"] = above, kind, COUNT[kind], self.dof
            node["body"], node["joint"], node["direction"] = body if last else -1, joint, direction
            node["backwards"] = backwards
            node["R0"] = (turn.as_matrix() if first else np.eye(3)).ravel()
            node["p0"] = shift if first else 0.0
            angular, linear = frame @ screw[:3], frame @ screw[3:]
            node["screw"] = np.concatenate([angular, linear + np.cross(point, angular)])
            node["centre"] = point
            node["lead"] = angular @ linear
            if joint >= 0 and direction >= 0:
                laws, own = self.model.joints[joint], slice(direction, direction + COUNT[kind])
                node["driven"] = laws["driven"][direction]
                node["acts"] = any(np.any(laws[name][own] != 0) for name in ("stiffness", "damping", "follows"))
                node["rotor"] = laws["armature"][direction]
            if last:
                node["mass"], node["inertia"] = self.model.bodies["mass"][body], self.model.bodies["inertia"][body]
            node["length"] = self.model.bodies["length"][body]
            self.nodes.append(node)
            above = len(self.nodes) - 1
            self.dof += COUNT[kind]
        self.node_of[body] = above
