"""SRDF files, which say more about a robot than its URDF: links that need not be kept apart, and poses with a name."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np

from dalembert.checks import choices
from dalembert.errors import ModelError
from dalembert.io.budget import Meter
from dalembert.io.robot import Robot
from dalembert.io.safety import read_model, scan_xml
from dalembert.mechanism.mechanism import Mechanism


@dataclass
class Semantics:
    """``apart``: pairs of links that do not collide; ``silent``: links that collide with none but their ``partners``; ``poses``: coordinates of joints
    by the name of the pose; ``lines`` for the report."""

    path: Path
    apart: list[tuple[str, str]] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    partners: set[frozenset[str]] = field(default_factory=set)
    poses: dict[str, dict[str, tuple[float, ...]]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def pose(self, name: str | int) -> dict[str, tuple[float, ...]]:
        """Coordinates of the joints in a pose."""
        if not isinstance(name, str) or name not in self.poses:
            raise ModelError(f"{self.path} has no pose {name!r}; {choices(name, self.poses) if self.poses else 'it has none'}")
        return self.poses[name]

    def pairs(self, links: list[str]) -> Iterator[tuple[str, str]]:
        """Pairs of links of a robot that do not collide."""
        known = set(links)
        yield from (pair for pair in self.apart if known.issuperset(pair))
        for link in self.silent:
            yield from ((link, other) for other in links if link in known and other != link and frozenset((link, other)) not in self.partners)


def read_semantics(path: Path, meter: Meter) -> Semantics:
    """What we use of an SRDF file."""
    found, pose, unread = Semantics(path), None, set()
    elements = scan_xml(read_model(path, meter), path, meter)
    if not elements or elements[0].tag != "robot":
        raise ModelError(f"{path} is no SRDF file: its root is <{elements[0].tag if elements else ''}>, not <robot>")
    for element in elements[1:]:
        tag, given = element.tag, element.attributes
        if element.depth == 2:
            pose = None
        if tag == "disable_collisions":
            found.apart.append((given.get("link1", ""), given.get("link2", "")))
        elif tag == "enable_collisions":
            found.partners.add(frozenset((given.get("link1", ""), given.get("link2", ""))))
        elif tag == "disable_default_collisions":
            found.silent.append(given.get("link", ""))
        elif tag == "group_state":
            pose = found.poses.setdefault(given.get("name", ""), {})
        elif tag == "joint" and pose is not None:
            pose[given.get("name", "")] = _numbers(given.get("value", ""), path, given.get("name", ""))
        elif tag in ("rotor_params", "torque_constant"):
            unread.add(tag)
    found.apart = [pair for pair in found.apart if frozenset(pair) not in found.partners]
    found.lines += [f"{path.name}: <{tag}> is left out" for tag in sorted(unread)]
    return found


def _numbers(text: str, path: Path, joint: str) -> tuple[float, ...]:
    try:
        values = tuple(float(word) for word in text.split())
    except ValueError:
        values = ()
    if not values or not np.isfinite(values).all():
        raise ModelError(f"{path}: the coordinates of joint {joint!r} must be finite numbers, got {text!r}")
    return values


def keep_apart(mechanism: Mechanism, robot: Robot, semantics: Semantics, meter: Meter) -> None:
    """Let shapes of links that the file keeps apart pass through one another."""
    shapes = {link.name: [robot.colliders[touch.name] for touch in link.touches if touch.name in robot.colliders] for link in robot.links}
    unknown = sorted({link for pair in [*semantics.apart, *((link, link) for link in semantics.silent)] for link in pair} - set(shapes))
    if unknown:
        semantics.lines.append(f"{semantics.path.name}: collisions of {', '.join(map(repr, unknown[:5]))}{' and others' if len(unknown) > 5 else ''} are left out: the robot has no such link")
    for one, two in semantics.pairs(list(shapes)):
        pairs = [pair for pair in product(shapes[one], shapes[two]) if pair[0] != pair[1]]
        meter.elements(len(pairs), "pairs that do not collide")
        for pair in pairs:
            mechanism.contact_pair(*pair, collide=False)


def take_pose(mechanism: Mechanism, robot: Robot, semantics: Semantics, name: str | int, mimics: Mapping[str, tuple[str, float, float]]) -> None:
    """Start in a pose of the file. Joints that mimic another one (its name, ratio and offset) start where that leads them."""
    given, outside = dict(semantics.pose(name)), []
    for joint, values in given.items():
        moving = robot.joints.get(joint)
        if moving is None:
            outside += [repr(joint)] if len(values) == 1 else []  # seven numbers are those of the root
        elif joint not in mimics:
            _start(mechanism, moving, joint, values, semantics, f"pose {name!r}")
    started = mechanism.initial_joints
    for joint, (leader, ratio, offset) in mimics.items():
        moving, led_by = robot.joints.get(joint), robot.joints.get(leader)
        if moving is not None and led_by in started:
            mechanism.start(moving, ratio * started[led_by][0] + offset)
    if outside:
        semantics.lines.append(f"{semantics.path.name}: pose {name!r} names {', '.join(outside)}, which {'do' if len(outside) > 1 else 'does'} not move")


def _start(mechanism: Mechanism, moving: str, joint: str, values: tuple[float, ...], semantics: Semantics, pose: str) -> None:
    """Start a joint at coordinates of the file, as near as its limits allow."""
    kind = mechanism[moving].type
    if len(values) != kind.freedom:
        semantics.lines.append(f"{semantics.path.name}: {pose} gives joint {joint!r} {len(values)} numbers for {kind.freedom} freedoms: left out")
        return
    reached = np.clip(values, *np.array(kind.limits).reshape(-1, 2).T)
    if np.any(reached != values):
        semantics.lines.append(f"{semantics.path.name}: joint {joint!r} starts at the end of its limits, {reached.round(6).tolist()}, and not at {list(values)} of {pose}")
    mechanism.start(moving, reached)


def root_pose(semantics: Semantics, name: str | int, joints: set[str]) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Where a pose puts the robot's root: position (m) and quaternion, scalar first; the file has it last, with a joint that the URDF has not."""
    for joint, values in semantics.pose(name).items():
        if joint not in joints and len(values) == 7 and np.linalg.norm(values[3:]) > 0.5:
            return values[:3], (values[6], *values[3:6])
    return None
