"""Mechanisms that are trees of hinges and slides, as URDF files for other programs."""
from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError
from dalembert.io.hdf5 import _replacing
from dalembert.mechanism.joints import Fixed, Prismatic, Revolute
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.mechanism.shapes import Box, Cylinder, Sphere
from dalembert.mechanism.visuals import Mesh, visuals_of

TYPES = {Revolute: "continuous", Prismatic: "prismatic", Fixed: "fixed"}
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
    with _replacing(path) as temporary:
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
    lines = [f"potential {p.name!r}" for p in mechanism.potentials] + [f"the load on {name!r}" for name in mechanism.loads]
    if not np.array_equal(mechanism.gravity, (0.0, 0.0, -9.81)):
        lines.append(f"gravity {np.asarray(mechanism.gravity).tolist()}")
    for joint in mechanism.joints:
        lines += [f"{law} of joint {joint.name!r}" for law in ("spring", "armature") if any(getattr(joint.type, law))]
    lines += [f"where {name!r} starts" for name in (*mechanism.initial_joints, *mechanism.initial_velocities)]
    return lines


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
        geometry, turn = visual.geometry, Rotation.from_quat(visual.orientation, scalar_first=True)
        if isinstance(geometry, Box):
            tag, values = "box", {"size": _words(np.array(geometry.size))}
        elif isinstance(geometry, Sphere):
            tag, values = "sphere", {"radius": repr(geometry.radius)}
        elif isinstance(geometry, Cylinder):
            tag, values = "cylinder", {"radius": repr(geometry.radius), "length": repr(geometry.length)}
            turn = turn * Rotation.align_vectors([geometry.axis], [[0.0, 0.0, 1.0]])[0]
        else:
            lost.append(f"a {'mesh' if isinstance(geometry, Mesh) else type(geometry).__name__} that shows {body.name!r}")
            continue
        element = ElementTree.SubElement(link, "visual")
        _origin(element, center + visual.position, turn)
        ElementTree.SubElement(ElementTree.SubElement(element, "geometry"), tag, values)
        if visual.colour is not None:
            material = ElementTree.SubElement(element, "material", name="")
            ElementTree.SubElement(material, "color", rgba=_words(np.array(visual.colour)))


def _write_joint(robot: ElementTree.Element, mechanism: Mechanism, joint: JointElement, frames: dict[str, tuple[np.ndarray, Rotation]]) -> None:
    kind = joint.type
    element = ElementTree.SubElement(robot, "joint", name=joint.name, type=TYPES[type(kind)])
    (start, turn), (end, onward) = frames[joint.parent.name], frames[joint.child.name]
    _origin(element, turn.inv().apply(end - start), turn.inv() * onward)
    ElementTree.SubElement(element, "parent", link=joint.parent.name)
    ElementTree.SubElement(element, "child", link=joint.child.name)
    if kind.freedom:
        ElementTree.SubElement(element, "axis", xyz=_words(joint.frame_child @ kind.basis[:, 0]))
        ElementTree.SubElement(element, "dynamics", damping=repr(kind.damping[0]))  # type: ignore[index]
    if isinstance(kind, Prismatic):
        ElementTree.SubElement(element, "limit", lower=f"-{UNLIMITED}", upper=UNLIMITED, effort=UNLIMITED, velocity=UNLIMITED)
    for gear in mechanism.couplings:
        if gear.first is joint:
            ElementTree.SubElement(element, "mimic", joint=gear.second.name, multiplier=repr(gear.ratio), offset=repr(gear.offset))
