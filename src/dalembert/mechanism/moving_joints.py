"""Joints that are given by how they move, not by what they lock: two joints in sequence, and splines (RedMax 2.4.9, 2.4.12, 2.4.13).

They exist in joint coordinates alone: ``Reduced`` takes them, the formulations in maximal coordinates have no rows for them and say so.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.checks import ANYTHING, FLAG, NUMBERS, check_fields, numbers
from dalembert.errors import ModelError
from dalembert.mechanism.factors import SPLINE, Factor, frame
from dalembert.mechanism.joints import Joint
from dalembert.spatial.splines import curve_pieces, surface_pieces

__all__ = ["MOVING_JOINTS", "CompositeJoint", "SplineCurve", "SplineSurface"]

#: most of a turn between neighbouring control frames of a curve (rad)
LARGEST_TURN = 0.9 * np.pi
#: laws along directions that a composite takes from its parts
LAWS = ("stiffness", "damping", "rest", "drive", "servo", "armature", "limits", "friction")


def _frame(numbers: np.ndarray, what: str) -> np.ndarray:
    """(4, 4) of a position and a quaternion, scalar first."""
    if np.linalg.norm(numbers[3:]) < 1e-12:
        raise ModelError(f"{what} must not have the zero quaternion")
    return frame(numbers[:3], Rotation.from_quat(numbers[3:], scalar_first=True).as_matrix())


@dataclass(frozen=True)
class CompositeJoint(Joint):
    """Two joints in sequence: ``second`` moves in what ``first`` carries, at a constant ``position`` (m) and ``orientation`` (quaternion).

    Its coordinates are those of ``first``, then those of ``second``, with the springs, dampers, drives, limits and friction that
    the two were given, or that are given to the whole, one number per coordinate.
    """

    has_rows = False

    first: Joint = None  # type: ignore[assignment]
    second: Joint = None  # type: ignore[assignment]
    position: ArrayLike = (0.0, 0.0, 0.0)
    orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        check_fields(self, first=ANYTHING, second=ANYTHING)
        for which, part in (("first", self.first), ("second", self.second)):
            if not isinstance(part, Joint) or not part.places:
                raise ModelError(f"CompositeJoint: its {which} joint must be one that places its child, such as Revolute(), got {part!r}")
            if part.bearing is not None:
                raise ModelError(f"CompositeJoint: its {which} joint has a bearing, whose load is not known inside of a sequence; use friction= for a bound of your own")
        if self.first.restitution != self.second.restitution:
            raise ModelError("CompositeJoint: its two joints must have the same restitution")
        if self.freedom > 6:
            raise ModelError(f"CompositeJoint: its two joints have {self.freedom} coordinates, and two bodies have six at the most")
        object.__setattr__(self, "position", tuple(numbers(3)(self.position, "CompositeJoint.position").tolist()))
        object.__setattr__(self, "orientation", tuple(numbers(4)(self.orientation, "CompositeJoint.orientation").tolist()))
        for name in LAWS:
            own = getattr(self, name)
            if own is None or (np.isscalar(own) and own == 0.0):
                object.__setattr__(self, name, (*getattr(self.first, name), *getattr(self.second, name)))
        if self.restitution == 0.0:
            object.__setattr__(self, "restitution", self.first.restitution)
        _frame(np.array([*self.position, *self.orientation]), "CompositeJoint.orientation")  # type: ignore[misc]
        super().__post_init__()
        for which, part, own in (("first", self.first, slice(0, self.first.freedom)), ("second", self.second, slice(self.first.freedom, None))):
            laws = {name: getattr(self, name)[own] for name in LAWS}
            if any(laws[name] != getattr(part, name) for name in LAWS) or part.restitution != self.restitution:
                object.__setattr__(self, which, replace(part, **laws, restitution=self.restitution))

    @property
    def directions(self) -> tuple[tuple[str, int], ...]:
        return (*self.first.directions, *self.second.directions)

    @property
    def between(self) -> np.ndarray:
        """(4, 4): where the second joint stands in what the first one carries."""
        return _frame(np.array([*self.position, *self.orientation]), "CompositeJoint.orientation")  # type: ignore[misc]

    @property
    def offset(self) -> np.ndarray:
        return self.first.offset @ self.between @ self.second.offset

    @property
    def factors(self) -> tuple[Factor, ...]:
        back = np.linalg.inv(self.between @ self.second.offset)
        first = tuple(factor.seen_from(back) for factor in self.first.factors)
        return first + tuple(factor.seen_from(np.eye(4), self.first.freedom) for factor in self.second.factors)

    def describe(self) -> dict[str, Any]:
        return dict(first=self.first, second=self.second, position=self.position, orientation=self.orientation)


@dataclass(frozen=True)
class SplineCurve(Joint):
    """One freedom along a curve of frames: a cubic B-spline on rigid motions (RedMax eq. 2.74).

    ``frames`` (n, 7): position (m) and quaternion, scalar first, of n >= 4 control frames in the joint's frame on the parent; they
    pull the curve towards them. The coordinate goes from 0 to n - 3, one piece of the curve per unit; the reference pose is at
    0. A ``closed`` curve of n >= 3 frames comes back to its start after n units, and goes round and round. Beyond the ends of
    an open one there is nothing: a step that gets there fails and says so.
    """

    has_rows = False

    frames: ArrayLike = ()
    closed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "closed", FLAG(self.closed, "SplineCurve: closed"))
        values = numbers(None, 7)(self.frames, "SplineCurve.frames") if np.size(NUMBERS(self.frames, "SplineCurve.frames")) else np.zeros((0, 7))
        least = 3 if self.closed else 4
        if len(values) < least:
            raise ModelError(f"SplineCurve: a {'closed' if self.closed else 'open'} curve needs at least {least} control frames, got {len(values)}")
        object.__setattr__(self, "frames", tuple(map(tuple, values.tolist())))
        frames = np.array([_frame(v, f"frame {i} of SplineCurve.frames") for i, v in enumerate(values)])
        pieces = tuple(curve_pieces(frames, self.closed))
        for i, piece in enumerate(pieces):
            if np.linalg.norm(piece.screws[0, :3]) > LARGEST_TURN or np.linalg.norm(piece.screws[-1, :3]) > LARGEST_TURN:
                raise ModelError(f"SplineCurve: neighbouring control frames near frame {i} are turned by about half a turn, which can go either way: put frames between them")
            if not np.any(piece.screws):
                raise ModelError(f"SplineCurve: the control frames from frame {i} on coincide: the curve has no direction there")
        object.__setattr__(self, "_factors", (Factor(SPLINE, 0, 1, np.eye(4), np.zeros(6), pieces, (len(pieces),), bool(self.closed)),))
        super().__post_init__()

    @property
    def directions(self) -> tuple[tuple[str, int], ...]:
        return (("spline", 0),)

    @property
    def factors(self) -> tuple[Factor, ...]:
        return self._factors  # type: ignore[attr-defined]


@dataclass(frozen=True)
class SplineSurface(Joint):
    """Two freedoms over a surface of frames: bicubic B-splines of position and of angles (RedMax eq. 2.78).

    ``frames`` (m, n, 6): position (m), then the angles (rad) of turns about x, y and z, each about the axes reached so far, of m x n control frames,
    m, n >= 4, in the joint's frame on the parent. The coordinates go from 0 to m - 3 and from 0 to n - 3; the
    reference pose is at (0, 0). Angles about y must stay well below a quarter turn. Beyond the edges there is nothing: a step
    that gets there fails and says so.
    """

    has_rows = False

    frames: ArrayLike = ()

    def __post_init__(self) -> None:
        values = numbers(None, None, 6)(self.frames, "SplineSurface.frames") if np.size(NUMBERS(self.frames, "SplineSurface.frames")) else np.zeros((0, 0, 6))
        m, n = values.shape[:2]
        if min(m, n) < 4:
            raise ModelError(f"SplineSurface: a surface needs at least 4 x 4 control frames, got {m} x {n}")
        if np.abs(values[..., 4]).max() > 0.45 * np.pi:
            raise ModelError("SplineSurface: an angle about y of its control frames comes too near to a quarter turn, where the angles are singular")
        object.__setattr__(self, "frames", tuple(tuple(map(tuple, row)) for row in values.tolist()))
        factor = Factor(SPLINE, 0, 2, np.eye(4), np.zeros(6), tuple(surface_pieces(values)), (m - 3, n - 3))
        object.__setattr__(self, "_factors", (factor,))
        super().__post_init__()
        if "motion" in self.drive and set(self.drive) != {"motion"}:  # type: ignore[operator, arg-type]
            raise ModelError("SplineSurface: a motion drive drives both of its coordinates")

    @property
    def directions(self) -> tuple[tuple[str, int], ...]:
        return (("spline", 0), ("spline", 1))

    @property
    def factors(self) -> tuple[Factor, ...]:
        return self._factors  # type: ignore[attr-defined]


MOVING_JOINTS: tuple[type[Joint], ...] = (CompositeJoint, SplineCurve, SplineSurface)
