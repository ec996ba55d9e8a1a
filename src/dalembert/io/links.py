"""Robots as model files describe them, links on a tree, and how they become a mechanism.

A file's link may hang on several joints in a row, or have no mass; a body of a mechanism hangs on one joint at a time
and has mass. Links without mass merge with their neighbours. Between joints in a row there is a light body: where the
following joints turn about one point, it takes a small share of the link's mass to that point, which changes neither
mass nor motion, and its inertia is 1e-10 of the link's. A fixed link whose inertia could not turn by itself merges too.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError
from dalembert.mechanism.joints import Fixed, Free, Joint, Planar, Prismatic, Revolute, Spherical
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.shapes import Shape, check_inertia
from dalembert.mechanism.visuals import Colour, Mesh

#: rotational inertia of a light body, relative to that of its link
LIGHT_INERTIA = 1e-10
#: its mass, relative to its link's, where the share can be taken from the link
LIGHT_SHARE = 1e-3
#: and where it cannot: with joints that only turn, and with slides, which need more to be solved well
LIGHT_MASS, LIGHT_SLIDE = 1e-10, 1e-6


@dataclass
class LinkJoint:
    """One joint of a link, at the reference pose: ``anchor`` (m) and ``axis`` in the world; laws as in ``Joint``."""

    name: str
    kind: str  # "hinge", "slide", "ball", "planar" or "free"
    anchor: np.ndarray
    axis: np.ndarray
    spring: float = 0.0
    damping: float = 0.0
    rest: float = 0.0
    armature: float = 0.0
    drive: str | None = None

    def type(self) -> Joint:
        laws = dict(spring=self.spring, damping=self.damping, drive=self.drive)
        axis = tuple(float(v) for v in self.axis)
        if self.kind == "hinge":
            return Revolute(axis=axis, rest=self.rest, armature=self.armature, **laws)  # type: ignore[arg-type]
        if self.kind == "slide":
            return Prismatic(axis=axis, rest=self.rest, armature=self.armature, **laws)  # type: ignore[arg-type]
        if self.kind == "planar":
            return Planar(normal=axis, **laws)  # type: ignore[arg-type]
        return {"ball": Spherical, "free": Free}[self.kind](**laws)

    def keeps(self, point: np.ndarray) -> bool:
        """True when a point stays where it is while this joint moves."""
        if self.kind == "ball":
            return float(np.linalg.norm(point - self.anchor)) < 1e-9
        return self.kind == "hinge" and float(np.linalg.norm(np.cross(point - self.anchor, self.axis))) < 1e-9


@dataclass
class Drawing:
    """A shape or mesh at a pose of the world, at the reference pose."""

    geometry: Shape | Mesh
    position: np.ndarray
    rotation: Rotation
    colour: Colour | None = None


@dataclass
class Link:
    """A link at the reference pose: ``center`` of mass (3,) in the world, ``inertia`` (3, 3) about it in link axes."""

    name: str
    parent: int  # -1 for the world
    mass: float
    center: np.ndarray
    inertia: np.ndarray
    rotation: Rotation
    origin: np.ndarray
    joints: list[LinkJoint] = field(default_factory=list)
    floating: bool = False
    drawings: list[Drawing] = field(default_factory=list)
    fixing: str = ""  # name of the joint that fixes it, where the file gives one

    @property
    def fixed(self) -> bool:
        return not self.joints and not self.floating


@dataclass
class Robot:
    """What an importer reads: links (parents first), gravity, and the report of what has no place here."""

    name: str
    links: list[Link] = field(default_factory=list)
    gravity: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    drawings: list[Drawing] = field(default_factory=list)  # of the world
    report: list[str] = field(default_factory=list)
    #: link of the file -> body that moves with it ("world" where it does not move)
    carriers: dict[str, str] = field(default_factory=dict)
    #: joint of the file -> joint of the mechanism
    joints: dict[str, str] = field(default_factory=dict)


def build(robot: Robot, *, merge_fixed: bool = False) -> Mechanism:
    """The mechanism of a robot. ``merge_fixed``: links fixed to another become part of it."""
    links = _merge(robot, merge_fixed)
    mechanism = Mechanism(robot.name or "robot", gravity=robot.gravity)
    bodies: dict[int, Body] = {-1: mechanism.world}
    taken = {"world"} | {link.name for link in links.values()}
    for index, link in links.items():
        bodies[index] = _add_link(mechanism, robot, link, bodies[link.parent], taken)
    _draw(mechanism, mechanism.world, robot.drawings)
    for index, link in links.items():
        _draw(mechanism, bodies[index], link.drawings)
    mechanism.report.extend(robot.report)
    return mechanism


def fresh(name: str, taken: set[str], suffix: str) -> str:
    """``name``, or with a suffix when another element has it already; the result is taken from now on."""
    candidate, number = name, 1
    while candidate in taken:
        candidate = f"{name} {suffix}" if number == 1 else f"{name} {suffix} {number}"
        number += 1
    taken.add(candidate)
    return candidate


def _merge(robot: Robot, merge_fixed: bool) -> dict[int, Link]:
    """Links that become bodies, by index: no massless ones, and no fixed ones if they shall be merged."""
    links = dict(enumerate(robot.links))
    heavy = {i: link.mass > 0.0 for i, link in links.items()}
    for i in reversed(links):  # a subtree without any mass goes
        link = links[i]
        children = [j for j, other in links.items() if other.parent == i]
        if not heavy[i] and not children and not link.fixed:
            robot.report.append(f"link {link.name!r} has no mass and carries none: it is left out with its joints ({', '.join(j.name for j in link.joints)})")
            del links[i]
    for i in list(links):
        link = links[i]
        children = [j for j, other in links.items() if other.parent == i]
        thin = link.parent >= 0 and (_singular(link.inertia) or _singular(links[link.parent].inertia))
        if link.fixed and (not heavy[i] or (merge_fixed and link.parent >= 0) or thin):
            _absorb(robot, links, i)
        elif not heavy[i] and len(children) == 1 and not links[children[0]].floating:
            child = links[children[0]]
            child.joints = [*link.joints, *child.joints]
            child.floating, child.parent = link.floating, link.parent
            child.drawings += link.drawings
            robot.carriers[link.name] = child.name
            del links[i]
        elif not heavy[i]:
            raise ModelError(f"link {link.name!r} has no mass, but moves and carries {len(children)} links: give it an <inertial>")
    return links


def _absorb(robot: Robot, links: dict[int, Link], i: int) -> None:
    """Make a fixed link part of its parent (or of the world)."""
    link = links.pop(i)
    for other in links.values():
        if other.parent == i:
            other.parent = link.parent
    if link.parent < 0:
        robot.drawings += link.drawings
        robot.carriers[link.name] = "world"
        return
    parent = links[link.parent]
    parent.drawings += link.drawings
    robot.carriers[link.name] = parent.name
    if link.mass > 0.0:
        mass = parent.mass + link.mass
        center = (parent.mass * parent.center + link.mass * link.center) / mass
        turn = (parent.rotation.inv() * link.rotation).as_matrix()
        moved = [_moved(p.mass, parent.rotation.inv().apply(p.center - center)) for p in (parent, link)]
        parent.inertia = parent.inertia + moved[0] + turn @ link.inertia @ turn.T + moved[1]
        parent.mass, parent.center = mass, center


def _singular(inertia: np.ndarray) -> bool:
    moments = np.linalg.eigvalsh(0.5 * (inertia + inertia.T))
    return bool(moments[0] <= 1e-10 * np.abs(moments).max())


def _moved(mass: float, offset: np.ndarray) -> np.ndarray:
    """Inertia of a point mass (Steiner)."""
    return mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))


def _add_link(mechanism: Mechanism, robot: Robot, link: Link, parent: Body, taken: set[str]) -> Body:
    """A link's body, its joints and the light bodies between them."""
    name = link.name if link.name not in mechanism else fresh(link.name, taken, "link")
    mass, center, inertia = link.mass, link.center, _regular(link, robot)
    chain = link.joints
    shares: list[tuple[float, np.ndarray]] = []
    largest = float(np.linalg.eigvalsh(inertia)[-1])
    for before, after in zip(range(len(chain) - 1), chain[1:]):
        if all(joint.keeps(after.anchor) for joint in chain[before + 1 :]):
            reach = float(np.linalg.norm(after.anchor - link.center)) ** 2
            share = min(LIGHT_SHARE * link.mass, 0.05 * float(np.linalg.eigvalsh(inertia)[0]) / max(reach, 1e-12)) / len(chain)
            mass, center, inertia = _without_point(mass, center, inertia, share, after.anchor, link.rotation)
        else:
            slides = any(joint.kind in ("slide", "planar", "free") for joint in chain)
            share = (LIGHT_SLIDE if slides else LIGHT_MASS) * link.mass
            robot.report.append(f"link {link.name!r}: a body of {share:.3g} kg was added between its joints {chain[before].name!r} and {after.name!r}")
        shares.append((share, after.anchor))
    quaternion = link.rotation.as_quat(scalar_first=True)
    lights = []
    for k, (share, point) in enumerate(shares):
        light = fresh(f"{name} after {chain[k].name}", taken, "light")
        lights.append(mechanism._append_body(light, share, LIGHT_INERTIA * largest * np.eye(3), point, quaternion, None))
        mechanism.visuals[light] = []
    body = mechanism._append_body(name, mass, _checked(inertia, link.name, robot), center, quaternion, None)
    robot.carriers[link.name] = name
    for joint, (above, below) in zip(chain, zip([parent, *lights], [*lights, body])):
        robot.joints[joint.name] = fresh(joint.name, taken, "joint")
        mechanism.joint(robot.joints[joint.name], joint.type(), above, below, at=joint.anchor)
    if link.fixed:
        mechanism.joint(fresh(link.fixing or f"{name} fixed", taken, "joint"), Fixed(), parent, body, at=link.origin)
    return body


def _without_point(
    mass: float, center: np.ndarray, inertia: np.ndarray, share: float, point: np.ndarray, rotation: Rotation
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre and inertia of a body after a point mass was taken out of it."""
    left = mass - share
    new = (mass * center - share * point) / left
    shift, arm = (rotation.inv().apply(v) for v in (center - new, point - new))
    return left, new, inertia + _moved(mass, shift) - _moved(share, arm)


def _regular(link: Link, robot: Robot) -> np.ndarray:
    """The inertia of a link, made positive definite by a little on the diagonal where it is not."""
    if not np.isfinite(link.inertia).all() or not _singular(link.inertia):
        return link.inertia
    moments = np.linalg.eigvalsh(0.5 * (link.inertia + link.inertia.T))
    added = max(LIGHT_INERTIA * float(np.abs(moments).max()), 1e-12 * link.mass) - min(float(moments[0]), 0.0)
    robot.report.append(f"link {link.name!r}: its inertia has the moment {moments[0]:.3g} kg m^2; {added:.3g} was added on the diagonal")
    return link.inertia + added * np.eye(3)


def _checked(inertia: np.ndarray, name: str, robot: Robot) -> np.ndarray:
    """The inertia; one that no real body has is kept, with a line in the report, as long as motion follows from it."""
    inertia = 0.5 * (inertia + inertia.T)
    try:
        return check_inertia(inertia, name)
    except ModelError as error:
        if not np.isfinite(inertia).all() or np.linalg.eigvalsh(inertia)[0] <= 0.0:
            raise
        if "no real body" in str(error):
            moments = ", ".join(f"{m:.6g}" for m in np.linalg.eigvalsh(inertia))
            robot.report.append(f"link {name!r}: its principal moments {moments} kg m^2 belong to no real body; they are taken as they are")
        return inertia


def _draw(mechanism: Mechanism, body: Body, drawings: list[Drawing]) -> None:
    turn = Rotation.from_quat(body.orientation, scalar_first=True).inv()
    for drawing in drawings:
        mechanism.visual(
            body, drawing.geometry, position=turn.apply(drawing.position - body.position),
            orientation=(turn * drawing.rotation).as_quat(scalar_first=True), colour=drawing.colour,
        )
    if body is not mechanism.world:
        mechanism.visuals.setdefault(body.name, [])


Load = Callable[..., Mechanism]
