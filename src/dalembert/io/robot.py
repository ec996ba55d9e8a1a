"""Robots as model files describe them: links on a tree with their joints, pictures and shapes that touch."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.mechanism.forces import Servo
from dalembert.mechanism.joints import Free, Joint, Planar, Prismatic, Revolute, Spherical
from dalembert.mechanism.shapes import Shape
from dalembert.mechanism.visuals import Colour, Mesh


@dataclass
class LinkJoint:
    """One joint of a link, at the reference pose: ``anchor`` (m) and ``axis`` in the world; laws as in ``Joint``.

    ``start`` and ``rate``: its coordinates at the start, where they are not zero.
    """

    name: str
    kind: str  # "hinge", "slide", "ball", "planar" or "free"
    anchor: np.ndarray
    axis: np.ndarray
    stiffness: float = 0.0
    damping: float = 0.0
    rest: float = 0.0
    armature: float = 0.0
    drive: str | None = None
    servo: Servo | None = None
    limits: tuple[float, float] | None = None
    friction: float = 0.0
    start: ArrayLike | None = None
    rate: ArrayLike | None = None

    def type(self) -> Joint:
        laws = dict(stiffness=self.stiffness, damping=self.damping, drive=self.drive)
        axis = tuple(float(v) for v in self.axis)
        if self.kind in ("hinge", "slide"):
            single = dict(rest=self.rest, armature=self.armature, limits=self.limits, friction=self.friction, servo=self.servo)
            return {"hinge": Revolute, "slide": Prismatic}[self.kind](axis=axis, **single, **laws)  # type: ignore[arg-type]
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
class Touch:
    """A shape that touches, at a pose of the world (of its centre of mass), at the reference pose."""

    name: str
    shape: Shape
    position: np.ndarray
    rotation: Rotation
    friction: float | None = None
    restitution: float | None = None
    layer: int = 1
    mask: int = 1


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
    touches: list[Touch] = field(default_factory=list)
    fixing: str = ""  # name of the joint that fixes it, where the file gives one
    velocity: np.ndarray | None = None  # of a floating link's origin (world) and spin (link axes), at the start

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
    touches: list[Touch] = field(default_factory=list)  # of the world
    report: list[str] = field(default_factory=list)
    #: link of the file -> body that moves with it ("world" where it does not move)
    carriers: dict[str, str] = field(default_factory=dict)
    #: link of the file -> bodies that carry its mass, with the share of each (kg)
    masses: dict[str, dict[str, float]] = field(default_factory=dict)
    #: joint of the file -> joint of the mechanism
    joints: dict[str, str] = field(default_factory=dict)
    #: shape of the file that touches -> collider or obstacle of the mechanism
    colliders: dict[str, str] = field(default_factory=dict)


def fresh(name: str, taken: set[str], suffix: str) -> str:
    """``name``, or with a suffix when another element has it already; the result is taken from now on."""
    def numbered(number: int) -> str:
        return name if number == 0 else f"{name} {suffix}" if number == 1 else f"{name} {suffix} {number}"

    above = 0
    while numbered(above) in taken:  # the least number but where names have gaps; not one by one, since a file may use a name very often
        above = 2 * above + 1
    below = above // 2
    while below < above:
        middle = (below + above) // 2
        below, above = (middle + 1, above) if numbered(middle) in taken else (below, middle)
    taken.add(numbered(above))
    return numbered(above)
