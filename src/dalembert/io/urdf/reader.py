"""A parsed URDF, translated link by link from the root outwards."""
from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import BudgetError, ModelError
from dalembert.io.budget import PER_LINK, Meter
from dalembert.io.build import build
from dalembert.io.hulls import touching_shape
from dalembert.io.link_shapes import Inertial, Shapes
from dalembert.io.options import Options
from dalembert.io.robot import Drawing, Link, LinkJoint, Robot, Touch, fresh
from dalembert.io.urdf.extras import Extras
from dalembert.io.urdf.semantics import Semantics, keep_apart, root_pose, take_pose
from dalembert.mechanism.actuators import Actuator
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.visuals import Mesh

KINDS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "planar": "planar", "floating": "free", "fixed": "fixed"}

#: numbers of <limit> from which on there is none
UNLIMITED = 1e8


class Reader:
    """One file being read; what has no place goes into the report."""

    def __init__(self, model: Any, extras: Extras, semantics: Semantics | None, path: Path, options: Options, meter: Meter) -> None:
        self.model, self.extras, self.semantics, self.path, self.options = model, extras, semantics, path, options
        self.robot, self.meter = Robot(model.name or path.stem), meter
        self.report = self.robot.report
        self.shapes = Shapes(path, options.root, self.report, meter)
        self.materials = {m.name: m for m in model.materials or []}
        self.links = {link.name: link for link in model.links}

    def mechanism(self) -> Mechanism:
        index: dict[str, int] = {}
        poses: dict[str, tuple[np.ndarray, Rotation]] = {}
        for name, joint in self._order():
            if joint is None:
                poses[name] = self._root()
            else:
                position, rotation = poses[joint.parent]
                shift, turn = self._pose(joint.origin, f"joint {joint.name!r}")
                poses[name] = position + rotation.apply(shift), rotation * turn
            index[name] = len(self.robot.links)
            self.meter.elements(PER_LINK, f"link {name!r}")
            self.robot.links.append(self._link(name, joint, index, *poses[name]))
        for link in self.robot.links:  # last, so that pictures take of the budget what is left
            for visual in self.links[link.name].visuals or []:
                self._draw(link, visual)
        mechanism = build(self.robot, merge_fixed=self.options.merge_fixed)
        for joint in self.model.joints:
            self._mimic(mechanism, joint)
            self._effort(mechanism, joint)
        for transmission in getattr(self.model, "transmissions", None) or []:
            self.report.append(f"transmission {transmission.name!r} is left out: joints take their forces directly")
        semantics = self.semantics
        if semantics is not None:
            keep_apart(mechanism, self.robot, semantics, self.meter)
            if self.options.keyframe is not None:
                take_pose(mechanism, self.robot, semantics, self.options.keyframe, {j.name: _mimicry(j.mimic) for j in self.model.joints if j.mimic is not None})
        mechanism.report[:] = [*self.report, *self.extras.lines, *(semantics.lines if semantics is not None else ())]
        return mechanism

    def _root(self) -> tuple[np.ndarray, Rotation]:
        """Where the root is: as asked for, and from there on where a pose puts a floating one."""
        position, rotation = np.array(self.options.position), Rotation.from_quat(self.options.orientation, scalar_first=True)
        if self.semantics is None or self.options.keyframe is None or self.options.base != "free":
            return position, rotation
        given = root_pose(self.semantics, self.options.keyframe, {j.name for j in self.model.joints})
        if given is None:
            return position, rotation
        return position + rotation.apply(given[0]), rotation * Rotation.from_quat(given[1], scalar_first=True)

    def _order(self) -> list[tuple[str, Any]]:
        """Links with the joint that carries each, from the root outwards."""
        links = self.links
        if not links:
            raise ModelError(f"{self.path} has no links")
        for what, elements in (("link", self.model.links), ("joint", self.model.joints)):
            names = [e.name for e in elements]
            if not all(isinstance(n, str) and n for n in names):
                raise ModelError(f"{self.path}: a {what} has no name")
            if len(set(names)) < len(names):
                raise ModelError(f"{self.path}: two {what}s are named {Counter(names).most_common(1)[0][0]!r}")
        below: dict[str, list[Any]] = {}
        carried: dict[str, Any] = {}
        for joint in self.model.joints:
            for end in (joint.parent, joint.child):
                if end not in links:
                    raise ModelError(f"{self.path}: joint {joint.name!r} names the link {end!r}, which does not exist")
            if joint.child in carried:
                raise ModelError(f"{self.path}: link {joint.child!r} hangs on two joints, {carried[joint.child].name!r} and {joint.name!r}; URDF is a tree")
            if joint.type not in KINDS:
                raise ModelError(f"{self.path}: joint {joint.name!r} has the unknown type {joint.type!r}")
            carried[joint.child] = joint
            below.setdefault(joint.parent, []).append(joint)
        roots = [name for name in links if name not in carried]
        if len(roots) != 1:
            raise ModelError(f"{self.path} needs one root link, found {', '.join(map(repr, roots)) or 'none: its joints go in a circle'}")
        order: list[tuple[str, Any]] = [(roots[0], None)]
        for name, _ in order:
            order += [(joint.child, joint) for joint in below.get(name, [])]
        return order

    def _pose(self, matrix: np.ndarray | None, what: str) -> tuple[np.ndarray, Rotation]:
        if matrix is None:
            return np.zeros(3), Rotation.identity()
        matrix = np.asarray(matrix, dtype=float)
        if matrix.shape != (4, 4) or not np.isfinite(matrix).all():
            raise ModelError(f"{self.path}: the origin of {what} is not finite")
        return matrix[:3, 3].copy(), Rotation.from_matrix(matrix[:3, :3])

    def _link(self, name: str, joint: Any, index: dict[str, int], position: np.ndarray, rotation: Rotation) -> Link:
        source = self.links[name]
        mass, center, inertia = self._inertial(source)
        link = Link(
            name, -1 if joint is None else index[joint.parent], mass, position + rotation.apply(center), inertia, rotation, position,
            fixing="" if joint is None else joint.name,
        )
        if joint is None:
            link.floating = self.options.base == "free"
        elif joint.type == "floating":
            link.floating = True
        elif joint.type != "fixed":
            link.joints.append(self._joint(joint, position, rotation))
        for k, collision in enumerate(source.collisions or [] if self.options.contacts else []):
            self._touch(link, collision, collision.name or f"{name} collision{f' {k + 1}' if k else ''}")
        return link

    def _inertial(self, link: Any) -> Inertial:
        """Mass, centre and inertia about it in the link's frame; mass zero for a link without."""
        given = link.inertial
        if given is None or not given.mass:
            if given is not None and given.inertia is not None and np.any(given.inertia):
                self.report.append(f"link {link.name!r}: an inertia without a mass is left out")
            if self.options.mesh_density is not None and given is None:
                return self.shapes.inertial(link.collisions or link.visuals or [], self.options.mesh_density)
            return 0.0, np.zeros(3), np.zeros((3, 3))
        if not (np.isfinite(given.mass) and given.mass > 0.0):
            raise ModelError(f"{self.path}: link {link.name!r} has the mass {given.mass}; it must be positive")
        shift, turn = self._pose(given.origin, f"the inertia of link {link.name!r}")
        inertia = np.zeros((3, 3)) if given.inertia is None else np.asarray(given.inertia, dtype=float)
        if inertia.shape != (3, 3) or not np.isfinite(inertia).all():
            raise ModelError(f"{self.path}: the inertia of link {link.name!r} is not finite")
        return float(given.mass), shift, turn.as_matrix() @ inertia @ turn.as_matrix().T

    def _joint(self, joint: Any, position: np.ndarray, rotation: Rotation) -> LinkJoint:
        axis = np.array([1.0, 0.0, 0.0]) if joint.axis is None else np.asarray(joint.axis, dtype=float)
        if axis.shape != (3,) or not np.isfinite(axis).all() or np.linalg.norm(axis) < 1e-9:
            raise ModelError(f"{self.path}: the axis of joint {joint.name!r} must be three numbers that are not all zero, got {axis}")
        translated = LinkJoint(joint.name, KINDS[joint.type], position, rotation.apply(axis / np.linalg.norm(axis)), drive="force")
        translated.damping, friction = self._dynamics(joint)
        if self.options.limits:
            translated.limits = self._limits(joint)
            translated.friction = friction if translated.kind in ("hinge", "slide") else 0.0
            if friction and not translated.friction:
                self.report.append(f"joint {joint.name!r}: friction {friction:g} of a {joint.type} joint is not simulated")
        return translated

    def _dynamics(self, joint: Any) -> tuple[float, float]:
        """Damping and dry friction of a joint."""
        given = joint.dynamics
        values = (0.0, 0.0) if given is None else (float(given.damping or 0.0), float(given.friction or 0.0))
        for what, value in zip(("damping", "friction"), values):
            if not (np.isfinite(value) and value >= 0.0):
                raise ModelError(f"{self.path}: the {what} of joint {joint.name!r} must not be negative, got {value}")
        return values

    def _limits(self, joint: Any) -> tuple[float, float] | None:
        if joint.limit is None or joint.type not in ("revolute", "prismatic"):
            return None
        lower, upper = (0.0 if v is None else float(v) for v in (joint.limit.lower, joint.limit.upper))
        if not lower < upper:
            self.report.append(f"joint {joint.name!r}: its limits {lower:g} to {upper:g} leave no room, and are not enforced")
            return None
        ends = (lower if lower > -UNLIMITED else -np.inf, upper if upper < UNLIMITED else np.inf)
        return ends if np.isfinite(ends).any() else None

    def _effort(self, mechanism: Mechanism, joint: Any) -> None:
        """The bound of a joint's force belongs to its actuator; a bound of its speed has no place."""
        name = self.robot.joints.get(joint.name)
        if joint.limit is None or name is None or KINDS[joint.type] not in ("hinge", "slide"):
            return
        effort, velocity = (0.0 if v is None else float(v) for v in (joint.limit.effort, joint.limit.velocity))
        if 0.0 < effort < UNLIMITED:
            mechanism.actuators[name] = Actuator(name=name, arms={name: 1.0}, force_range=(-effort, effort))
        if 0.0 < velocity < UNLIMITED and self.options.limits:
            self.report.append(f"joint {joint.name!r}: its velocity limit {velocity:g} is not enforced")

    def _mimic(self, mechanism: Mechanism, joint: Any) -> None:
        if joint.mimic is None:
            return
        ends = [self.robot.joints.get(name) for name in (joint.name, joint.mimic.joint)]
        if None in ends or ends[0] == ends[1]:
            self.report.append(f"joint {joint.name!r} mimics {joint.mimic.joint!r}, which does not move: left out")
            return
        _, ratio, offset = _mimicry(joint.mimic)
        self._share_limits(mechanism, str(ends[0]), str(ends[1]), ratio, offset)
        mechanism.gear(fresh(f"{joint.name} mimic", set(mechanism._names), "gear"), ends[0], ends[1], ratio=ratio, offset=offset)  # type: ignore[arg-type]

    def _share_limits(self, mechanism: Mechanism, follower: str, leader: str, ratio: float, offset: float) -> None:
        """Let the leader keep what limits both: two ends that are reached at once would share the force of one in no certain way."""
        (low, high), (first, last) = (mechanism[name].type.limits[0] for name in (follower, leader))
        if ratio == 0.0 or not np.isfinite((low, high)).any():
            return
        ends = sorted(((low - offset) / ratio, (high - offset) / ratio))
        both = max(first, ends[0]), min(last, ends[1])
        mechanism.change(follower, limits=None)
        if both[0] < both[1]:
            mechanism.change(leader, limits=both)
        else:
            self.report.append(f"joint {follower!r} mimics {leader!r}, and the limits of both leave no room: its own are not enforced")

    def _draw(self, link: Link, visual: Any) -> None:
        shift, turn = self._pose(visual.origin, f"a visual of link {link.name!r}")
        try:
            pieces = self.shapes.coloured(visual.geometry, f"a visual of link {link.name!r}")
        except BudgetError as error:  # pictures are not worth refusing a robot
            self.meter.look_at_clock()
            self.report.append(f"a visual of link {link.name!r} is not drawn: {error}")
            return
        said = self._colour(visual.material)
        for shape, own in pieces:
            link.drawings.append(Drawing(shape, link.origin + link.rotation.apply(shift), link.rotation * turn, own if said is None else said))

    def _touch(self, link: Link, collision: Any, name: str) -> None:
        shift, turn = self._pose(collision.origin, f"collision {name!r} of link {link.name!r}")
        shape = self.shapes.shape(collision.geometry, f"collision {name!r} of link {link.name!r}")
        if isinstance(shape, Mesh):
            shape = touching_shape(shape, self.options.decompose, self.meter, f"collision {name!r} of link {link.name!r}", self.report)
        if shape is None:
            return
        friction, restitution = self.extras.contact.get(link.name, (None, None))
        turn = link.rotation * turn
        position = link.origin + link.rotation.apply(shift) + turn.apply(shape.center_of_mass)
        together = self.options.self_collisions
        mask = int(self.semantics is not None if together is None else together)
        link.touches.append(Touch(name, shape, position, turn, friction, None if restitution is None else min(restitution, 1.0), mask=mask))

    def _colour(self, material: Any) -> Any:
        if material is None:
            return None
        colour = material.color or (self.materials[material.name].color if material.name in self.materials else None)
        if colour is None or colour.rgba is None or len(colour.rgba) != 4:
            return None
        return tuple(float(v) for v in colour.rgba)


def _mimicry(mimic: Any) -> tuple[str, float, float]:
    """The joint that is mimicked, the ratio to it and the offset."""
    return mimic.joint, float(1.0 if mimic.multiplier is None else mimic.multiplier), float(mimic.offset or 0.0)
