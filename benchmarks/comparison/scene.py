"""A mechanism as plain numbers in world axes, at its start: what every simulator's model is built from, so that all have the same problem."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.mechanism.mechanism import JointElement
from dalembert.mechanism.shapes import Shape
from dalembert.mechanism.touching import Touching as TouchingLaws

WORLD = -1


class Poses(NamedTuple):
    """Where all bodies are: centres of mass (n, 3) in m, and rotations (n, 3, 3) from body to world axes."""

    position: np.ndarray
    rotation: np.ndarray


@dataclass(frozen=True)
class Touching:
    """A shape of a body that touches; ``position`` (m) and ``rotation`` in the body's frame; ``friction``: a coefficient of its own."""

    shape: Shape
    position: np.ndarray
    rotation: np.ndarray
    friction: float | None = None


@dataclass(frozen=True)
class Link:
    """A body: mass in kg, inertia about its centre in body axes, pose and velocity at the start, angular velocity in world axes."""

    name: str
    mass: float
    inertia: np.ndarray
    position: np.ndarray
    rotation: np.ndarray
    velocity: np.ndarray
    angular: np.ndarray
    touching: tuple[Touching, ...]

    @property
    def radius(self) -> float:
        """Of gyration, in m: how far from the centre a turn of the body is measured."""
        return float(np.sqrt(0.5 * np.trace(self.inertia) / self.mass))


@dataclass(frozen=True)
class Hinge:
    """A joint between ``parent`` (or WORLD) and ``child``, by kind: "revolute", "prismatic", "spherical" or "fixed".

    ``point`` and ``axis`` in the world at the start, where its coordinate is taken as zero; ``rate`` (rad/s, m/s; three for a ball, world axes);
    ``armature``, ``damping``, dry ``friction`` and the servo's ``stiffness`` to ``target`` along its direction; ``ends`` of its way, None if it has none.
    """

    name: str
    kind: str
    parent: int
    child: int
    point: np.ndarray
    axis: np.ndarray
    rate: np.ndarray
    damping: float = 0.0
    armature: float = 0.0
    stiffness: float = 0.0
    target: float = 0.0
    friction: float = 0.0
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Floor:
    """The ground: all below ``height`` (m) is solid."""

    height: float
    friction: float


@dataclass(frozen=True)
class Scene:
    """Links, the joints of a spanning tree (parents first), those that close loops, and the ground; ``together``: bodies touch one another."""

    mechanism: da.Mechanism
    gravity: np.ndarray
    links: tuple[Link, ...]
    tree: tuple[Hinge, ...]
    loops: tuple[Hinge, ...]
    ground: Floor | None
    together: bool
    #: pairs of bodies that pass through one another, where bodies touch
    apart: tuple[tuple[int, int], ...]

    @property
    def roots(self) -> list[int]:
        """Bodies that no joint of the tree carries: they move freely."""
        carried = {hinge.child for hinge in self.tree}
        return [i for i in range(len(self.links)) if i not in carried]

    @cached_property
    def start(self) -> Poses:
        return Poses(np.array([link.position for link in self.links]), np.array([link.rotation for link in self.links]))

    def error(self, poses: Poses, exact: Poses) -> float:
        """Largest distance (m) of any body's centre, or of a point of it one radius of gyration away, from where it should be."""
        moved = np.linalg.norm(poses.position - exact.position, axis=1)
        turned = np.linalg.norm(poses.rotation - exact.rotation, axis=(1, 2)) / np.sqrt(2.0) * np.array([link.radius for link in self.links])
        worst = float(np.maximum(moved, turned).max())
        return worst if np.isfinite(worst) else np.inf

    def opening(self, poses: Poses) -> float:
        """How far the two ends of any joint are apart, in m."""
        def end(body: int, point: np.ndarray) -> np.ndarray:
            if body == WORLD:
                return point
            link = self.links[body]
            return poses.position[body] + poses.rotation[body] @ link.rotation.T @ (point - link.position)
        gaps = [np.linalg.norm(end(h.parent, h.point) - end(h.child, h.point)) for h in (*self.tree, *self.loops) if h.kind != "prismatic"]
        return float(max(gaps, default=0.0))

    def depth(self, poses: Poses) -> float:
        """How deep anything is in the ground, in m; 0 above it."""
        return 0.0 if self.ground is None else max(0.0, self.ground.height - self.lowest(poses))

    def lowest(self, poses: Poses) -> float:
        """Height (m) of the lowest point of anything that touches."""
        lowest = np.inf
        for position, rotation, link in zip(*poses, self.links):
            for part in link.touching:
                points, radius = _extent(part.shape)
                places = position + (part.position + points @ part.rotation.T) @ rotation.T
                lowest = min(lowest, float(places[:, 2].min()) - radius)
        return lowest


def _extent(shape: Shape) -> tuple[np.ndarray, float]:
    """Points (k, 3) of a shape, and how far it reaches around them (m)."""
    if isinstance(shape, da.Sphere):
        return np.zeros((1, 3)), shape.radius
    if isinstance(shape, da.Capsule):
        return 0.5 * shape.length * np.array([shape.axis, np.negative(shape.axis)]), shape.radius
    if isinstance(shape, da.Box):
        return np.array(list(product((-0.5, 0.5), repeat=3))) * np.asarray(shape.size), 0.0
    if isinstance(shape, da.Convex):
        return shape.corners, 0.0
    if isinstance(shape, da.Cylinder):  # a little less than it: points of its rims
        axis = np.asarray(shape.axis, dtype=float)
        u, w = np.linalg.svd(axis[None])[2][1:]
        around = np.linspace(0.0, 2.0 * np.pi, 64, endpoint=False)[:, None]
        rim = shape.radius * (np.cos(around) * u + np.sin(around) * w)
        return np.concatenate([rim - 0.5 * shape.length * axis, rim + 0.5 * shape.length * axis]), 0.0
    raise TypeError(f"no simulator is told of a {type(shape).__name__}")


def describe(mechanism: da.Mechanism) -> Scene:
    """The mechanism as it stands at the start of a simulation."""
    sim = da.Simulation(mechanism, da.Variational(dt=1e-3), energy_bound=None)
    rotation = Rotation.from_quat(sim.orientation, scalar_first=True)
    turns, places, linear, angular = rotation.as_matrix(), sim.position.copy(), sim.velocity, rotation.apply(sim.angular_velocity)
    touching: dict[int, list[Touching]] = {}
    for body in mechanism.bodies:
        if body.collide and body.shape is not None:
            touching.setdefault(body.index, []).append(Touching(body.shape, np.zeros(3), np.eye(3)))
    for part in mechanism.colliders:
        turn = Rotation.from_quat(part.orientation, scalar_first=True).as_matrix()
        touching.setdefault(part.body.index, []).append(Touching(part.shape, part.position, turn, part.friction))
    links = tuple(
        Link(b.name, b.mass, b.inertia, places[b.index], turns[b.index], linear[b.index], angular[b.index], tuple(touching.get(b.index, ())))
        for b in mechanism.bodies
    )
    tree, loops = _spanning_tree(mechanism)
    together, apart = _meetings(mechanism)
    return Scene(
        mechanism, np.asarray(mechanism.gravity, dtype=float), links,
        tuple(_hinge(sim, links, joint, backwards) for joint, backwards in tree), tuple(_hinge(sim, links, joint, False) for joint in loops),
        _floor(mechanism), together, apart,
    )


def _meetings(mechanism: da.Mechanism) -> tuple[bool, tuple[tuple[int, int], ...]]:
    """Whether bodies touch one another, and the pairs of them that do not."""
    law = TouchingLaws(mechanism)
    meeting = {(min(a.body, b.body), max(a.body, b.body)) for a, b in combinations(law.moving, 2) if law.law(a, b) is not None}
    bodies = sorted({surface.body for surface in law.moving})
    return bool(meeting), tuple(pair for pair in combinations(bodies, 2) if pair not in meeting)


def _floor(mechanism: da.Mechanism) -> Floor | None:
    if not mechanism.grounds:
        return None
    ground, = mechanism.grounds
    friction = max([ground.friction, *(part.friction for part in mechanism.colliders if part.friction is not None)])
    return Floor(ground.offset, friction)


def _spanning_tree(mechanism: da.Mechanism) -> tuple[list[tuple[JointElement, bool]], list[JointElement]]:
    """The joints from the root outwards, with whether each is read from child to parent, and the joints that close loops."""
    carried = {joint.child.index for joint in mechanism.joints}
    seen = {WORLD} | {b.index for b in mechanism.bodies if b.index not in carried}
    tree, left = [], list(mechanism.joints)
    while True:
        found = next((j for j in left if (j.parent.index in seen) != (j.child.index in seen)), None)
        if found is None:
            break
        left.remove(found)
        tree.append((found, found.child.index in seen))
        seen |= {found.parent.index, found.child.index}
    return tree, left


KINDS = {da.Revolute: "revolute", da.Prismatic: "prismatic", da.Spherical: "spherical", da.Fixed: "fixed"}


def _hinge(sim: da.Simulation, links: tuple[Link, ...], joint: JointElement, backwards: bool) -> Hinge:
    first, second = (joint.child, joint.parent) if backwards else (joint.parent, joint.child)
    parent, sign = joint.parent.index, -1.0 if backwards else 1.0
    turn, place = (np.eye(3), np.zeros(3)) if parent == WORLD else (links[parent].rotation, links[parent].position)
    point, axis = place + turn @ joint.point_parent, sign * turn @ joint.frame_parent @ joint.type.basis[:, 0]
    kind = KINDS[type(joint.type)]
    still = np.zeros(3)
    spins = [still if b.index == WORLD else links[b.index].angular for b in (first, second)]
    speeds = [
        still if b.index == WORLD else links[b.index].velocity + np.cross(links[b.index].angular, point - links[b.index].position)
        for b in (first, second)
    ]
    spin, speed = spins[1] - spins[0], speeds[1] - speeds[0]
    rate = {"revolute": np.array([axis @ spin]), "prismatic": np.array([axis @ speed]), "spherical": spin, "fixed": np.zeros(0)}[kind]
    if kind in ("spherical", "fixed"):
        return Hinge(joint.name, kind, first.index, second.index, point, axis, rate)
    servo, target, damping = joint.type.servo[0], 0.0, joint.type.damping[0]  # type: ignore[index]
    ends = np.sort(sign * (np.array(joint.type.limits[0]) - sim.coordinates(joint.name)[0]))
    if servo is not None:
        target, damping = sign * (servo.target - sim.coordinates(joint.name)[0]), damping + servo.damping
    return Hinge(
        joint.name, kind, first.index, second.index, point, axis, rate, damping, joint.type.armature[0],  # type: ignore[index]
        0.0 if servo is None else servo.stiffness, float(target), float(joint.type.friction[0]),  # type: ignore[index]
        (float(ends[0]), float(ends[1])) if np.isfinite(ends).any() else None,
    )
