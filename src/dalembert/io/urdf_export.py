"""Mechanisms that are trees of hinges and slides, as URDF files for other programs."""
from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError
from dalembert.io.whole import write_whole
from dalembert.mechanism.actuators import Actuator
from dalembert.mechanism.joints import Fixed, Prismatic, Revolute
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.mechanism.shapes import Box, Cylinder, Shape, Sphere
from dalembert.mechanism.visuals import Mesh, visuals_of

TYPES = {Revolute: "revolute", Prismatic: "prismatic", Fixed: "fixed"}
UNLIMITED = "1e9"


def save_urdf(mechanism: Mechanism, path: Path, *, lossy: bool = False) -> list[str]:
    """Write a tree as URDF. What URDF has no word for raises a ModelError, or is listed in the answer with ``lossy``."""
    carried = _tree(mechanism)
    lost = _lost(mechanism)
    if lost and not lossy:
        raise ModelError(f"URDF cannot hold all of {mechanism.name!r}: {lost[0]}" + (f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""))
    robot = ElementTree.Element("robot", name=mechanism.name)
    frames: dict[str, tuple[np.ndarray, Rotation]] = {"world": (np.zeros(3), Rotation.identity())}
    for body in mechanism.bodies:
        turn = Rotation.from_quat(body.orientation, scalar_first=True)
        joint = carried.get(body.name)
        frames[body.name] = (body.position if joint is None else body.position + turn.apply(joint.point_child)), turn
    if any(joint.parent is mechanism.world for joint in carried.values()):
        ElementTree.SubElement(robot, "link", name="world")
    for body in mechanism.bodies:
        _write_link(robot, mechanism, body, frames[body.name], lost)
    for joint in carried.values():
        _write_joint(robot, mechanism, joint, frames)
    ElementTree.indent(robot)
    with write_whole(path) as temporary:
        ElementTree.ElementTree(robot).write(temporary, encoding="utf-8", xml_declaration=True)
    return lost


def _tree(mechanism: Mechanism) -> dict[str, JointElement]:
    """The joint that carries each body, or a ModelError that says why there is no tree."""
    carried: dict[str, JointElement] = {}
    for joint in mechanism.joints:
        if type(joint.type) not in TYPES:
            raise ModelError(f"joint {joint.name!r} is of the type {type(joint.type).__name__}; URDF has Revolute, Prismatic and Fixed")
        if joint.child.name in carried:
            raise ModelError(f"{joint.name!r} and {carried[joint.child.name].name!r} both carry {joint.child.name!r}: URDF is a tree, and this is a loop")
        carried[joint.child.name] = joint
    for start in carried:
        here, seen = start, {start}
        while here in carried:
            here = carried[here].parent.name
            if here in seen:
                raise ModelError(f"the joints of {here!r} go in a circle: URDF is a tree")
            seen.add(here)
    roots = [b.name for b in mechanism.bodies if b.name not in carried]
    grounded = any(joint.parent is mechanism.world for joint in carried.values())
    if len(roots) + grounded != 1:
        raise ModelError(f"URDF has one root, and {mechanism.name!r} has several: {', '.join([*roots, *['world'] * grounded])}")
    return carried


def _lost(mechanism: Mechanism) -> list[str]:
    """What URDF has no word for."""
    pushing = (*mechanism.paths, *mechanism.point_forces, *mechanism.drags, *mechanism.penalties, *mechanism.force_laws, *mechanism.constraints)
    lines = [repr(element)[1:-1] for element in pushing] + [f"the wrench on {name!r}" for name in mechanism.wrenches]
    if not np.array_equal(mechanism.gravity, (0.0, 0.0, -9.81)):
        lines.append(f"gravity {np.asarray(mechanism.gravity).tolist()}")
    for joint in mechanism.joints:
        laws = [law for law in ("stiffness", "armature", "servo") if any(getattr(joint.type, law))] + (["restitution"] if joint.type.restitution else [])
        laws += ["bearing"] if joint.type.bearing is not None else []
        lines += [f"{law} of joint {joint.name!r}" for law in laws]
    lines += [f"where {name!r} starts" for name in (*mechanism.initial_joints, *mechanism.initial_velocities)]
    lines += [repr(element)[1:-1] for element in (*mechanism.grounds, *mechanism.obstacles, *mechanism.terrains)]
    lines += [f"a contact point of {point.body.name!r}" for point in mechanism.contact_points]
    lines += [f"how {' and '.join(map(repr, sorted(names)))} touch" for names in mechanism.pair_laws]
    lines += [f"friction, restitution or layers of {c!r}" for c in mechanism.colliders if c.friction is not None or c.restitution is not None or c.layer != 1]
    efforts = {effort.name for joint in mechanism.joints if (effort := _effort(mechanism, joint)) is not None}
    return lines + [f"actuator {name!r}" for name in mechanism.actuators if name not in efforts]


def _effort(mechanism: Mechanism, joint: JointElement) -> Actuator | None:
    """The actuator of a joint that does nothing but bound its force, the same way round both ways."""
    for actuator in mechanism.actuators.values():
        bounds = actuator.force_range
        if bounds is not None and actuator == Actuator(name=actuator.name, arms={joint.name: 1.0}, force_range=(-bounds[1], bounds[1])):
            return actuator
    return None


def _origin(parent: ElementTree.Element, position: np.ndarray, turn: Rotation) -> None:
    rpy = turn.as_euler("xyz")
    ElementTree.SubElement(parent, "origin", xyz=_words(position), rpy=_words(rpy))


def _words(values: np.ndarray) -> str:
    return " ".join(repr(float(v)) for v in values)


def _write_link(robot: ElementTree.Element, mechanism: Mechanism, body: Body, frame: tuple[np.ndarray, Rotation], lost: list[str]) -> None:
    link = ElementTree.SubElement(robot, "link", name=body.name)
    center = frame[1].inv().apply(body.position - frame[0])
    inertial = ElementTree.SubElement(link, "inertial")
    _origin(inertial, center, Rotation.identity())
    ElementTree.SubElement(inertial, "mass", value=repr(body.mass))
    J = body.inertia
    ElementTree.SubElement(inertial, "inertia", {n: repr(float(J[i, j])) for n, i, j in (
        ("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))})
    for visual in visuals_of(mechanism, body):
        element = _write_shape(link, "visual", visual.geometry, center + visual.position, Rotation.from_quat(visual.orientation, scalar_first=True))
        if element is None:
            lost.append(f"a {_name(visual.geometry)} that shows {body.name!r}")
        elif visual.colour is not None:
            material = ElementTree.SubElement(element, "material", name="")
            ElementTree.SubElement(material, "color", rgba=_words(np.array(visual.colour)))
    touching = [(body.name, body.shape, np.zeros(3), Rotation.identity())] if body.collide and body.shape is not None else []
    touching += [(c.name, c.shape, c.position, Rotation.from_quat(c.orientation, scalar_first=True)) for c in mechanism.colliders if c.body is body]
    for name, shape, position, turn in touching:
        element = _write_shape(link, "collision", shape, center + position, turn)
        if element is None:
            lost.append(f"the {_name(shape)} by which {name!r} touches")
        else:
            element.set("name", name)


def _name(geometry: Shape | Mesh) -> str:
    return "mesh" if isinstance(geometry, Mesh) else type(geometry).__name__


def _write_shape(
    link: ElementTree.Element, tag: str, geometry: Shape | Mesh, position: np.ndarray, turn: Rotation
) -> ElementTree.Element | None:
    """A <visual> or <collision>; None for shapes that URDF does not have."""
    if isinstance(geometry, Box):
        kind, values = "box", {"size": _words(np.array(geometry.size))}
    elif isinstance(geometry, Sphere):
        kind, values = "sphere", {"radius": repr(geometry.radius)}
    elif isinstance(geometry, Cylinder):
        kind, values = "cylinder", {"radius": repr(geometry.radius), "length": repr(geometry.length)}
        turn = turn * Rotation.align_vectors([geometry.axis], [[0.0, 0.0, 1.0]])[0]
    else:
        return None
    element = ElementTree.SubElement(link, tag)
    _origin(element, position, turn)
    ElementTree.SubElement(ElementTree.SubElement(element, "geometry"), kind, values)
    return element


def _write_joint(robot: ElementTree.Element, mechanism: Mechanism, joint: JointElement, frames: dict[str, tuple[np.ndarray, Rotation]]) -> None:
    kind = joint.type
    ends = kind.limits[0] if kind.freedom else (-np.inf, np.inf)
    turns = isinstance(kind, Revolute) and not np.isfinite(ends).any()
    element = ElementTree.SubElement(robot, "joint", name=joint.name, type="continuous" if turns else TYPES[type(kind)])
    (start, turn), (end, onward) = frames[joint.parent.name], frames[joint.child.name]
    _origin(element, turn.inv().apply(end - start), turn.inv() * onward)
    ElementTree.SubElement(element, "parent", link=joint.parent.name)
    ElementTree.SubElement(element, "child", link=joint.child.name)
    if kind.freedom:
        ElementTree.SubElement(element, "axis", xyz=_words(joint.frame_child @ kind.basis[:, 0]))
        ElementTree.SubElement(element, "dynamics", damping=repr(kind.damping[0]), friction=repr(kind.friction[0]))  # type: ignore[index]
        actuator = _effort(mechanism, joint)
        bounds = {} if turns else {"lower": _bound(ends[0]), "upper": _bound(ends[1])}
        effort = UNLIMITED if actuator is None or actuator.force_range is None else repr(float(actuator.force_range[1]))
        ElementTree.SubElement(element, "limit", {**bounds, "effort": effort, "velocity": UNLIMITED})
    for gear in mechanism.couplings:
        if gear.first is joint:
            ElementTree.SubElement(element, "mimic", joint=gear.second.name, multiplier=repr(gear.ratio), offset=repr(gear.offset))


def _bound(value: float) -> str:
    return repr(float(value)) if np.isfinite(value) else f"{'-' if value < 0 else ''}{UNLIMITED}"
