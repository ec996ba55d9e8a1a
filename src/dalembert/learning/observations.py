"""Observations by name: coordinates and rates of joints, motions of bodies, sensors and goals as one row of numbers."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dalembert.checks import choices, shown
from dalembert.errors import ModelError
from dalembert.learning.sight import Sight, columns, upwards
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.mechanism.sensors import Sensor

#: ends of what has none: a space that can be sampled needs some
FAR = float(np.finfo(np.float32).max)
#: what is seen of a joint, and of a body
OF_JOINT = ("coordinate", "rate", "direction")
OF_BODY = {"position": 3, "height": 1, "orientation": 4, "up": 3, "velocity": 3, "angular_velocity": 3}
#: of a body that no joint holds, unless told otherwise
FLOATING = ("position", "orientation", "velocity", "angular_velocity")
#: parts that lie between -1 and 1
UNIT = ("direction", "orientation", "up")

Read = Callable[[Sight], np.ndarray]
#: arrays (..., coordinates) or (..., bodies, numbers) by the parts that are read from them
SOURCES: dict[str, Read] = {
    "coordinate": lambda now: now.coordinates(), "rate": lambda now: now.rates(), "position": lambda now: now.position,
    "orientation": lambda now: now.orientation, "velocity": lambda now: now.velocity, "angular_velocity": lambda now: now.angular_velocity,
}


class Observation:
    """A row of numbers (count,) from a ``Sight``; ``names`` says what each is, ``low`` and ``high`` (count,) where it lies.

    ``wanted``: None for coordinates and rates of all joints and the motion of bodies that float (their positions last); names of
    joints, bodies, sensors and goals, or parts of them ("hinge.rate", "torso.height"); or a function of a ``Sight``.
    ``sin_cos``: angles of joints without limits are seen as sine and cosine.
    """

    def __init__(self, mechanism: Mechanism, wanted: Sequence[str] | Callable[[Sight], Any] | None, goals: Mapping[str, int], *, sin_cos: bool) -> None:
        self.mechanism, self.sin_cos = mechanism, sin_cos
        self._function = wanted if callable(wanted) else None
        self._reads: list[_Gather | Read] = []
        self.names: tuple[str, ...] = ()
        self.sensors: tuple[str, ...] = ()
        if self._function is None:
            words: Any = _default(mechanism, sin_cos) + list(goals) if wanted is None else wanted
            if isinstance(words, str) or not all(isinstance(word, str) for word in words) or not len(words):
                raise ModelError(f"observation= must be a list of names or a function, got {shown(wanted)}")
            for word in words:
                self._add(word, goals)

    @property
    def low(self) -> np.ndarray:
        return np.array([-1.0 if name.partition(":")[0].rpartition(".")[2] in UNIT else -FAR for name in self.names])

    @property
    def high(self) -> np.ndarray:
        return -self.low

    def measure(self, sight: Sight) -> None:
        """Find out how many numbers a function gives."""
        if self._function is not None:
            self.names = tuple(f"observation:{k}" for k in range(self(sight).shape[-1]))

    def __call__(self, now: Sight, *lead: int) -> np.ndarray:
        """(*lead, count), a new array."""
        if self._function is None:
            return np.concatenate([read(now) for read in self._reads], axis=-1) if len(self._reads) > 1 else self._reads[0](now).copy()
        found = np.array(self._function(now), dtype=float)
        if found.ndim != len(lead) + 1 or found.shape[:-1] != lead or (self.names and found.shape[-1] != len(self.names)):
            shape = (*lead, len(self.names) or "count")
            raise ModelError(f"the function of observations must give numbers in shape {shape}, got {found.shape}: write now.coordinates('hinge')[..., 0] and join along the last axis")
        return found

    def _add(self, word: str, goals: Mapping[str, int]) -> None:
        """Read one more."""
        mechanism = self.mechanism
        owner, part = (word, "") if word in mechanism or word in goals else (word.rpartition(".")[0], word.rpartition(".")[2])
        element: Any = mechanism[owner] if owner in mechanism else None  # noqa: SIM401, it is no dict
        if word in goals:
            self._take(word, goals[word], lambda now: now.goal[word])
        elif isinstance(element, JointElement) and element.type.freedom and part in ("", *OF_JOINT):
            for one in [part] if part else ["direction" if self.sin_cos and _turns(element) else "coordinate", "rate"]:
                self._add_joint(element, one)
        elif isinstance(element, Body) and element is not mechanism.world and part in ("", *OF_BODY):
            for one in [part] if part else FLOATING:
                self._add_body(element, one)
        elif isinstance(element, Sensor) and not part:
            freedom = element.on.type.freedom if isinstance(element.on, JointElement) else 0
            self.sensors = (*self.sensors, owner)
            self._take(owner, len(element.kind.channels(("m",) * freedom)), lambda now: now.sensor(owner))
        else:
            known = [e.name for e in (*mechanism.joints, *mechanism.bodies, *mechanism.sensors)]
            parts = f"a part is one of {', '.join(OF_JOINT)} of a joint, or {', '.join(OF_BODY)} of a body"
            raise ModelError(f"there is nothing to observe named {word!r}: {parts if element is not None else choices(owner or word, [*known, *goals])}")

    def _add_joint(self, element: JointElement, part: str) -> None:
        place = columns(self.mechanism)[element.name]
        if part != "direction":
            self._gather(f"{element.name}.{part}", part, [*range(*place.indices(10**9))])
            return
        if not _turns(element):
            raise ModelError(f"joint {element.name!r} has no single angle: 'direction' is for one that turns about one axis")
        self._take(f"{element.name}.direction", 2, lambda now: np.concatenate([f(now.coordinates()[..., place]) for f in (np.sin, np.cos)], axis=-1))

    def _add_body(self, body: Body, part: str) -> None:
        index, name, width = body.index, f"{body.name}.{part}", OF_BODY[part]
        if part == "up":
            self._take(name, 3, lambda now: upwards(now.orientation[..., index, :]))
        elif part == "height":
            self._gather(name, "position", [3 * index + 2])
        else:
            self._gather(name, part, [width * index + k for k in range(width)])

    def _take(self, word: str, count: int, read: Read) -> None:
        self._reads.append(read)
        self._name(word, count)

    def _gather(self, word: str, source: str, places: list[int]) -> None:
        """Numbers of one array; those of the same one that follow each other are taken at once."""
        last = self._reads[-1] if self._reads else None
        if isinstance(last, _Gather) and last.source == source:
            self._reads[-1] = _Gather(source, [*last.places, *places])
        else:
            self._reads.append(_Gather(source, places))
        self._name(word, len(places))

    def _name(self, word: str, count: int) -> None:
        self.names += tuple(f"{word}:{k}" for k in range(count)) if count > 1 else (word,)


class _Gather:
    """Reads numbers of an array of coordinates or of bodies by their places."""

    def __init__(self, source: str, places: list[int]) -> None:
        self.source, self.places = source, places
        self._index, self._read, self._bodies = np.array(places), SOURCES[source], source in OF_BODY

    def __call__(self, now: Sight) -> np.ndarray:
        found = self._read(now)
        return (found.reshape(*found.shape[:-2], -1) if self._bodies else found)[..., self._index]


def _turns(element: JointElement) -> bool:
    """Whether a joint turns about one axis and does nothing else."""
    return [kind for kind, _ in element.type.directions] == ["turn"]


def _default(mechanism: Mechanism, sin_cos: bool) -> list[str]:
    """All joints' coordinates, then their rates, then the motion of bodies that float."""
    joints = [joint for joint in mechanism.joints if joint.type.freedom and joint.type.places]
    bounded = {joint.name: joint.type.bounded for joint in joints}
    first = [f"{joint.name}.{'direction' if sin_cos and _turns(joint) and not bounded[joint.name] else 'coordinate'}" for joint in joints]
    return [*first, *(f"{joint.name}.rate" for joint in joints), *floating(mechanism)]


def floating(mechanism: Mechanism) -> list[str]:
    """The first body of every part of a mechanism that no joint connects to the world."""
    group = {body: body for body in (mechanism.world, *mechanism.bodies)}

    def root(body: Any) -> Any:
        while group[body] is not body:
            body = group[body]
        return body

    for joint in mechanism.joints:
        ends = sorted((root(joint.parent), root(joint.child)), key=lambda body: body.index)
        group[ends[1]] = ends[0]
    return [body.name for body in mechanism.bodies if root(body) is body]
