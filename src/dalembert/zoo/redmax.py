"""The scenes that the RedMax code is tested with (MIT licence, github.com/sueda/redmax, folder matlab-diff), by their numbers.

Boxes of density 1 in consistent units, centimetres, grams and seconds in effect. A scene lists its links from the root outwards;
a joint's frame is placed in the joint frame of its parent, the box in its own joint's frame.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import pi
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError
from dalembert.mechanism.joints import Cartesian, Fixed, Free, Joint, Planar, Prismatic, Revolute, Spherical
from dalembert.mechanism.mechanism import JointElement, Mechanism
from dalembert.mechanism.shapes import Box
from dalembert.zoo.links import sized

Vector = tuple[float, float, float]
DOWN: Vector = (0.0, 0.0, -980.0)
LONG, TALL, WIDE = (10.0, 1.0, 1.0), (1.0, 1.0, 10.0), (20.0, 1.0, 1.0)


@dataclass(frozen=True)
class Link:
    """A box of edges ``box`` with its centre at ``centre`` of its joint's frame, which sits at ``at`` of the parent's (-1: the world).

    ``q`` and ``rate``: how it starts, in the scene's own coordinates, turns of balls as intrinsic x-y-z Euler angles.
    """

    box: Vector
    joint: Joint
    parent: int = -1
    at: Vector = (0.0, 0.0, 0.0)
    centre: Vector = (0.0, 0.0, 0.0)
    q: tuple[float, ...] = ()
    rate: tuple[float, ...] = ()


def _about(axis: str, box: Vector, parent: int, at: Vector, q: float, rate: float = 0.0, **laws: Any) -> Link:
    """A link on a hinge at its end, along x or hanging."""
    centre = (0.5 * box[0], 0.0, 0.0) if box[0] > 1.0 else (0.0, 0.0, -0.5 * box[2])
    return Link(box, Revolute(axis=axis, **laws), parent, at, centre, (q,), (rate,))


END: Vector = (10.0, 0.0, 0.0)
_WELDED = Link(LONG, Fixed(), 0, END, (5.0, 0.0, 0.0))
_SCENES: dict[int, tuple[str, Vector, list[Link]]] = {
    0: ("chain of five, every other joint welded", DOWN, [
        _about("y", LONG, -1, (0, 0, 0), pi / 4), _WELDED, _about("y", LONG, 1, END, pi / 4),
        Link(LONG, Fixed(), 2, END, (5.0, 0.0, 0.0)), _about("y", LONG, 3, END, pi / 4),
    ]),
    1: ("three links about different axes", DOWN, [
        _about("z", LONG, -1, (0, 0, 0), 0.0), _about("y", LONG, 0, END, pi / 2), _about("z", LONG, 1, END, pi / 2),
    ]),
    3: ("pendulum on a slider", DOWN, [
        Link(WIDE, Prismatic(axis="x"), q=(0.0,), rate=(0.0,)), _about("y", TALL, 0, (-10.0, 0.0, 0.0), pi / 2),
    ]),
    5: ("two arms on a plate that glides", (0.0, 0.0, 0.0), [
        Link((10.0, 10.0, 1.0), Cartesian(), q=(0.0, 0.0, 0.0), rate=(0.0, 0.0, 0.0)),
        _about("y", TALL, 0, (-5.0, 0.0, 0.0), 0.0, -10.0), _about("x", TALL, 0, (0.0, -5.0, 0.0), 0.0, 10.0),
    ]),
    6: ("thrown in a plane", (0.0, -980.0, 0.0), [Link((1.0, 1.0, 1.0), Planar(normal="z"), q=(-10.0, -10.0, 0.0), rate=(50.0, 200.0, 20.0))]),
    7: ("double pendulum on balls", DOWN, [
        Link(TALL, Spherical(), -1, (0, 0, 0), (0.0, 0.0, -5.0), (pi / 8, 0.0, 0.0), (2.0, 2.0, 2.0)),
        Link(TALL, Spherical(), 0, (0.0, 0.0, -10.0), (0.0, 0.0, -5.0), (pi / 2, 0.0, 0.0), (0.0, 0.0, 0.0)),
    ]),
    9: ("free cube", (0.0, 0.0, -1.0), [Link((1.0, 1.0, 1.0), Free(), q=(0.0,) * 6, rate=(0.0, 0.0, 3.0, 0.2, 0.4, 0.6))]),
    10: ("loop closed by a stiff spring", DOWN, [
        Link(WIDE, Fixed()), _about("y", TALL, 0, (-10.0, 0.0, 0.0), 0.0), _about("y", TALL, 0, (10.0, 0.0, 0.0), 0.0),
        Link(WIDE, Revolute(axis="y"), 1, (0.0, 0.0, -10.0), (10.0, 0.0, 0.0), (0.0,), (0.0,)), _about("y", TALL, 3, END, 0.0, 5.0),
    ]),
    11: ("box thrown on soft ground", (0.0, -980.0, 0.0), [Link((3.0, 1.0, 1.0), Planar(normal="z"), q=(-1.0, 2.0, 0.0), rate=(5.0, 70.0, 2.0))]),
    12: ("double pendulum with two dampers", DOWN, [_about("y", LONG, -1, (0, 0, 0), 0.0), _about("y", LONG, 0, END, 0.0)]),
    100: ("two links with stiff joints", DOWN, [
        _about("y", LONG, -1, (0, 0, 0), pi / 2, 1.0, stiffness=1e4, damping=1e4, rest=pi / 2),
        _about("y", LONG, 0, END, pi / 4, 1.0, stiffness=1e4, damping=1e4, rest=pi / 4),
    ]),
}


@sized
def redmax_scene(number: int = 0, *, drive: str | None = None) -> Mechanism:
    """A scene of the RedMax code: 0, 1, 3, 5, 6, 7, 9, 10, 11, 12, or 100, the task of its optimisation.

    0: chain of hinges and welds; 1: hinges about different axes; 3: pendulum on a slider; 5: two arms on a plate in space; 6: thrown
    in a plane; 7: double pendulum on balls; 9: free cube; 10: loop closed by a spring of 1e7 dyn/cm; 11: box on soft
    ground; 12: dampers across a double pendulum; 100: two links with stiff joints. Bodies "body 1", ..., joints "joint 1", ...
    Units are centimetres, grams and seconds. ``drive``: "force" when a controller may push the hinges.
    """
    if number not in _SCENES:
        raise ModelError(f"there is no RedMax scene {number!r} here; there are {', '.join(map(str, _SCENES))}")
    title, gravity, links = _SCENES[number]
    mechanism = Mechanism(f"RedMax scene {number}: {title}", gravity=gravity)
    frames: list[np.ndarray] = []
    for place, link in enumerate(links):
        frames.append(np.array(link.at, dtype=float) + (frames[link.parent] if link.parent >= 0 else 0.0))
        shape = Box(size=link.box, density=1.0)
        body = mechanism.body(f"body {place + 1}", shape, position=frames[-1] + link.centre)
        parent = mechanism.world if link.parent < 0 else mechanism.bodies[link.parent]
        kind = link.joint if drive is None or not isinstance(link.joint, Revolute) else type(link.joint)(**{**link.joint.describe(), "drive": drive})
        joint = mechanism.joint(f"joint {place + 1}", kind, parent, body, at=frames[-1])
        if link.q:
            value, rate = _start(joint, link)
            mechanism.start(joint.name, value, rate=rate)
    if number in _FORCES:
        _FORCES[number](mechanism)
    return mechanism


def _start(joint: JointElement, link: Link) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and rates as ``Mechanism.start`` takes them: of balls, the rotation vector and the angular velocity in the parent's axes."""
    q, rate = np.array(link.q, dtype=float), np.array(link.rate, dtype=float)
    if any(kind == "ball" for kind, _ in joint.type.directions):
        x, y, _ = q[-3:]
        columns = [np.eye(3)[0], Rotation.from_euler("X", x).apply(np.eye(3)[1]), Rotation.from_euler("XY", (x, y)).apply(np.eye(3)[2])]
        rate[-3:] = np.array(columns).T @ rate[-3:]
        q[-3:] = Rotation.from_euler("XYZ", q[-3:]).as_rotvec()
    return q, rate


def _stiff_spring(mechanism: Mechanism) -> None:
    """Scene 10: a spring of no length from the end of body 3 to the far end of body 4."""
    law = Free(stiffness=(1e7, 1e7, 1e7, 0.0, 0.0, 0.0))
    mechanism.joint("spring", law, "body 3", "body 4", at=(10.0, 0.0, -10.0))


def _soft_ground(mechanism: Mechanism) -> None:
    """Scene 11: the eight corners on a plane that gives way."""
    for k, corner in enumerate(product((-1.5, 1.5), (-0.5, 0.5), (-0.5, 0.5))):
        mechanism.penalty(f"corner {k + 1}", "body 1", point=corner, normal="y", stiffness=1e5, damping=30.0, friction=0.5, tangential=100.0)


def _dampers(mechanism: Mechanism) -> None:
    """Scene 12: two spring-dampers whose force is that of the strain and its rate."""
    for name, (first, start), (second, end) in (
        ("first", ("world", (-5.0, 0.0, -5.0)), ("body 2", (15.0, 0.0, -2.0))),
        ("second", ("body 1", (5.0, 0.0, 2.0)), ("body 2", (15.0, 0.0, 2.0))),
    ):
        length = float(np.linalg.norm(np.subtract(end, start)))
        mechanism.path(name, [(first, start), (second, end)], stiffness=1e6 / length, damping=1e3 / length)


_FORCES: dict[int, Callable[[Mechanism], None]] = {10: _stiff_spring, 11: _soft_ground, 12: _dampers}
