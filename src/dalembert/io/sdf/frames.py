"""Frames of an SDF file by name: each has a pose relative to another one, and all are known in the world once they are asked for."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError


class Pose(NamedTuple):
    """A place (3,), m, and a rotation."""

    position: np.ndarray
    rotation: Rotation

    def then(self, inner: Pose) -> Pose:
        """The pose that ``inner``, given in this one, has outside."""
        return Pose(self.position + self.rotation.apply(inner.position), self.rotation * inner.rotation)


HERE = Pose(np.zeros(3), Rotation.identity())


def numbers(text: str | None, count: int, what: str) -> np.ndarray:
    """Numbers of an element's text."""
    try:
        values = np.array([float(word) for word in (text or "").split()])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (count,) or not np.isfinite(values).all():
        raise ModelError(f"{what} must be {count} numbers, got {(text or '').strip()!r}")
    return values


def read_pose(element: Element | None, what: str) -> Pose:
    """What a <pose> says."""
    if element is None or not (element.text or "").strip():
        return HERE
    if element.get("rotation_format", "euler_rpy") == "quat_xyzw":
        values = numbers(element.text, 7, f"the pose of {what}")
        if np.linalg.norm(values[3:]) < 1e-9:
            raise ModelError(f"the pose of {what} has a quaternion of length zero")
        return Pose(values[:3], Rotation.from_quat(values[3:]))
    values = numbers(element.text, 6, f"the pose of {what}")
    return Pose(values[:3], Rotation.from_euler("xyz", values[3:], degrees=element.get("degrees", "false") in ("true", "1")))


class Frames:
    """Frames by full name ("model::link"), each with the frame that its pose is relative to."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[str, Callable[[], Pose]]] = {"world": ("", lambda: HERE)}
        self._known: dict[str, Pose] = {"": HERE}

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def add(self, name: str, relative_to: str, pose: Pose) -> None:
        if name in self._given:
            raise ModelError(f"two frames are named {name!r}")
        self._given[name] = relative_to, lambda: pose

    def pose(self, name: str) -> Pose:
        """A frame's pose in the world."""
        chain: dict[str, None] = {}
        while name not in self._known:
            if name not in self._given:
                raise ModelError(f"the frame {name!r} does not exist")
            if name in chain:
                raise ModelError(f"the frames {', '.join(map(repr, list(chain)[:6]))} are given relative to one another in a circle")
            chain[name] = None
            name = self._given[name][0]
        wanted = next(iter(chain), name)
        for inner in reversed(chain):
            outer, given = self._given[inner]
            self._known[inner] = self._known[outer].then(given())
        return self._known[wanted]
