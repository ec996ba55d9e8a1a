"""The joint table: every joint is a set of free translations and a set of free rotations between two frames.

The classes follow tables 3 and 7 of Quaternion and table B.2 of Variational. A joint type names its free directions
in canonical axes x, y, z; its parameters (an axis, two axes, a normal) say how those axes lie in the joint's frame.
A new joint is one new class here. The free directions are, in order, the slides and then the turns; ``stiffness``,
``damping`` and ``rest`` take one number for all of them or one number each.
"""
from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dalembert.checks import ANYTHING, NOTHING, POSITIVE, SHARE, check_fields, items, number, numbers, one_of, rule_of
from dalembert.errors import ModelError
from dalembert.mechanism.bearings import Bearing
from dalembert.mechanism.factors import Factor, motion, motion_columns, table_factors
from dalembert.mechanism.forces import Servo
from dalembert.mechanism.shapes import as_axis

#: what dalembert offers of this file: a new joint is named here and in JOINTS
__all__ = [
    "JOINTS",
    "Cartesian",
    "Cylindrical",
    "CylindricalFreeOrientation",
    "Distance",
    "Fixed",
    "FixedOrientation",
    "Floating",
    "Free",
    "Helical",
    "Joint",
    "PinInSlot",
    "Planar",
    "PlanarFixedOrientation",
    "PlanarFreeOrientation",
    "Prismatic",
    "Rectangular",
    "Revolute",
    "RotationAlongAxis",
    "Slot",
    "Spherical",
    "Universal",
]

Vector = ArrayLike | str
Drive = str | None
DRIVES = one_of(None, "force", "motion")
DRIVE_LIST = items(DRIVES, "one of these per free direction")
LIMITS = items(ANYTHING, "a pair (lower, upper), or one per free direction")
SERVO = rule_of("Servo | None")
SERVOS = items(SERVO, "one per free direction")
#: of a limit
END = number(infinite=True)


@cache
def _directions(slides: str, turns: str) -> tuple[tuple[str, int], ...]:
    axes = ["xyz".index(a) for a in turns]
    kinds = {0: (), 1: ("turn",), 2: ("first", "second"), 3: ("ball",) * 3}[len(axes)]
    return tuple(("slide", "xyz".index(a)) for a in slides) + tuple(zip(kinds, axes))


@dataclass(frozen=True)
class Joint:
    """What two bodies may do relative to one another, and the laws along their free directions.

    ``stiffness`` of springs in N/m or N m/rad, ``damping`` in N s/m or N m s/rad, ``rest`` in m or rad, per free direction;
    ``armature``: inertia of a rotor that turns with the direction's rate, in kg or kg m^2, on the output side of its gears;
    ``drive``: None, "force" (the direction takes a force as input) or "motion" (it follows its target exactly).
    ``servo``: a motor with gains along the direction (one ``Servo`` or one, or None, per free direction).
    ``limits``: (lower, upper) in m or rad, None for no end, or one such pair (or None) per free direction; what meets an
    end comes back with ``restitution`` times its rate. ``friction``: the bound of dry friction in N or N m, per direction.
    ``bearing``: a ``Bearing``, whose friction along all free directions follows from the load that the joint carries.
    """

    slides: ClassVar[str] = ""
    turns: ClassVar[str] = ""
    #: a row with an equation of its own, on top of those of the two classes: its name in model/own_rows.py
    extra: ClassVar[str] = ""
    #: metres that the joint advances along its axis per radian
    lead: ClassVar[float] = 0.0
    #: whether its coordinates place the child; a rod's do not
    places: ClassVar[bool] = True
    #: whether it can be written as equations between the poses of its two bodies; others exist in joint coordinates alone
    has_rows: ClassVar[bool] = True
    #: how its surfaces carry their load: "journal", "ball", "plate" (see ``Bearing``), or not at all
    bears: ClassVar[str] = ""

    stiffness: ArrayLike = field(default=0.0, kw_only=True)
    damping: ArrayLike = field(default=0.0, kw_only=True)
    rest: ArrayLike = field(default=0.0, kw_only=True)
    drive: Drive | tuple[Drive, ...] = field(default=None, kw_only=True)
    servo: Any = field(default=None, kw_only=True)
    armature: ArrayLike = field(default=0.0, kw_only=True)
    limits: Any = field(default=None, kw_only=True)
    restitution: float = field(default=0.0, kw_only=True)
    friction: ArrayLike = field(default=0.0, kw_only=True)
    bearing: Bearing | None = field(default=None, kw_only=True)

    def __new__(cls, *_: Any, **parameters: Any) -> Self:
        if "spring" in parameters:
            raise ModelError(f"{cls.__name__} has no parameter 'spring': say stiffness=, in N/m or N m/rad")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_fields(self, restitution=SHARE, length=POSITIVE | NOTHING)
        count = self.freedom
        for name in ("stiffness", "damping", "rest", "armature", "friction"):
            object.__setattr__(self, name, self._per_direction(name, count))
        for name in ("stiffness", "damping", "armature", "friction"):
            if any(value < 0.0 for value in getattr(self, name)):
                raise ModelError(f"{type(self).__name__}: {name} must not be negative, got {getattr(self, name)}")
        given = self.drive
        if "position" in ((given,) if isinstance(given, str) else given if isinstance(given, tuple | list) else ()):
            raise ModelError(
                f"{type(self).__name__}: there is no drive='position'; say drive='motion' (the joint follows its target exactly, whatever force "
                "that takes) or servo=Servo(...) (a spring-like motor with gains and a force bound)")
        given = (DRIVES | DRIVE_LIST)(given, f"{type(self).__name__}: drive")
        drive = given if isinstance(given, tuple) else (given,) * count
        if len(drive) != count:
            raise ModelError(f"{type(self).__name__}: drive needs {count} entries, one per free direction (the others are locked), got {len(drive)}")
        turning = {drive[i] for i, (kind, _) in enumerate(self.directions) if kind == "ball"}
        if "motion" in turning and turning != {"motion"}:
            raise ModelError(f"{type(self).__name__}: a motion drive of a free rotation drives all three of its directions")
        if count == 0 and self.drive not in (None, ()):
            raise ModelError(f"{type(self).__name__}: there is no free direction to drive")
        if any(inertia > 0.0 and kind == "ball" for (kind, _), inertia in zip(self.directions, self.armature)):  # type: ignore[arg-type]
            raise ModelError(f"{type(self).__name__}: armature belongs to a direction with a rate of its own, but a free rotation has no single rate")
        object.__setattr__(self, "drive", drive)
        object.__setattr__(self, "servo", self._servos(count))
        object.__setattr__(self, "limits", self._pairs(count))
        for i, (lower, upper) in enumerate(self.limits):
            if drive[i] == "motion" and (np.isfinite(lower) or np.isfinite(upper) or self.friction[i] > 0.0):  # type: ignore[index]
                raise ModelError(f"{type(self).__name__}: direction {i} follows a target: it takes neither limits nor friction")
        self._check_bearing()
        object.__setattr__(self, "_basis", self._axes())

    def _check_bearing(self) -> None:
        what = type(self).__name__
        if self.bearing is None:
            return
        if not self.bears:
            raise ModelError(f"{what} has no surfaces that slide on one another and takes no bearing; use friction= for a bound of your own")
        if "motion" in self.drive:  # type: ignore[operator]
            raise ModelError(f"{what}: a joint that follows a target takes no bearing: the drive overcomes its friction")

    def _servos(self, count: int) -> tuple[Servo | None, ...]:
        """The servos as one, or None, per free direction."""
        given, what = self.servo, type(self).__name__
        given = (SERVO | SERVOS)(given, f"{what}: servo")
        servos = given if isinstance(given, tuple) else (given,) * max(count, given is not None)
        if len(servos) != count:
            raise ModelError(f"{what}: servo needs a Servo, or {count} of them or None, one per free direction, got {given!r}")
        for servo, drive, (kind, _) in zip(servos, self.drive, self.directions):  # type: ignore[arg-type]
            if servo is not None and drive is not None:
                raise ModelError(f"{what}: a direction with a servo follows a target and takes no drive, got drive={drive!r}")
            if servo is not None and kind == "ball":
                raise ModelError(f"{what}: a servo belongs to a slide or a single turn, not to a free rotation")
        return servos

    def _pairs(self, count: int) -> tuple[tuple[float, float], ...]:
        """The limits as one (lower, upper) per free direction, infinite where there is none."""
        given = self.limits
        what = f"{type(self).__name__}: limits"
        if given is None:
            return ((-np.inf, np.inf),) * count
        given = LIMITS(given, what)
        if not given:
            return ((-np.inf, np.inf),) * count
        if len(given) == 1 and given[0] is None:
            raise ModelError(f"{what} must be a pair (lower, upper), got {given!r}: leave them out where there are none")
        pairs = [given] * count if len(given) == 2 and all(e is None or np.isscalar(e) for e in given) else list(given)
        if len(pairs) != count:
            raise ModelError(f"{what} must be a pair (lower, upper) or {count} of them, one per free direction, got {given!r}")
        result = []
        for pair in pairs:
            ends = (None, None) if pair is None else LIMITS(pair, what)
            if len(ends) != 2:
                raise ModelError(f"{what} must be pairs (lower, upper) of numbers or None, got {given!r}")
            lower, upper = ends
            ends = (-np.inf if lower is None else END(lower, what), np.inf if upper is None else END(upper, what))
            if not ends[0] < ends[1]:
                raise ModelError(f"{what}: the lower one must lie below the upper one, got {pair!r}")
            result.append(ends)
        return tuple(result)

    @property
    def holds(self) -> bool:
        """True when it takes away some freedom; springs and free joints do not."""
        return bool(self.extra) or len(self.slides) + len(self.turns) < 6

    @property
    def follows(self) -> bool:
        """True when some direction follows a target: exactly, or by a servo."""
        return "motion" in self.drive or any(servo is not None for servo in self.servo)  # type: ignore[operator]

    @property
    def bounded(self) -> bool:
        """True when some direction has a limit or dry friction."""
        return self.bearing is not None or bool(np.isfinite(np.array(self.limits, dtype=float)).any() or any(f > 0.0 for f in self.friction))  # type: ignore[union-attr]

    def _per_direction(self, name: str, count: int) -> tuple[float, ...]:
        values = np.asarray(getattr(self, name), dtype=float)
        if count == 0 and np.any(values):
            raise ModelError(f"{type(self).__name__}: {name} acts along free directions, and there is none")
        if values.ndim == 0:
            values = np.full(count, float(values))
        if values.shape != (count,):
            raise ModelError(f"{type(self).__name__}: {name} needs one number or {count}, one per free direction, got {values.shape}")
        return tuple(float(v) for v in values)

    @cached_property
    def directions(self) -> tuple[tuple[str, int], ...]:
        """The free directions that are coordinates: a kind and a canonical axis each.

        Kinds: "slide" (a distance along the axis), "turn" (an angle about it), "first" and "second" (the two angles
        of a universal joint), "ball" (a component of a rotation vector), "distance" (between the two points).
        """
        return _directions(self.slides, self.turns)

    @property
    def freedom(self) -> int:
        """How many coordinates the joint has."""
        return len(self.directions)

    @property
    def basis(self) -> np.ndarray:
        """(3, 3): the canonical axes as columns, in the joint's frame."""
        return self._basis  # type: ignore[attr-defined]

    def _axes(self) -> np.ndarray:
        return np.eye(3)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """What its motion is made of."""
        return table_factors(self.directions, self.basis, self.lead)

    @property
    def offset(self) -> np.ndarray:
        """(4, 4): the constant that comes before the factors."""
        return np.eye(4)

    def motion(self, q: np.ndarray) -> np.ndarray:
        """(4, 4): the child's joint frame in the parent's at its coordinates."""
        return motion(self.offset, self.factors, numbers(self.freedom)(q, f"{type(self).__name__}.motion: q"))

    def motion_columns(self, q: np.ndarray) -> np.ndarray:
        """(freedom, 6): twists (angular, linear) of the child's joint frame, in that frame, per unit rate."""
        return motion_columns(self.factors, numbers(self.freedom)(q, f"{type(self).__name__}.motion_columns: q"))

    def describe(self) -> dict[str, Any]:
        """The parameters that make this joint, for printing and for files."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def _complete(columns: dict[int, np.ndarray], what: str) -> np.ndarray:
    """A right-handed basis that has the given unit columns; the rest is chosen by cyclic permutation where possible."""
    basis = np.zeros((3, 3))
    if len(columns) == 1:
        (k, axis), = columns.items()
        world = int(np.argmax(np.abs(axis)))
        helper = np.roll(np.eye(3)[world], 1)
        second = helper - axis * (helper @ axis)
        second /= np.linalg.norm(second)
        basis[:, k] = axis
        basis[:, (k + 1) % 3] = second
        basis[:, (k + 2) % 3] = np.cross(axis, second)
        return basis
    (i, first), (j, second) = columns.items()
    if abs(first @ second) > 1e-9:
        raise ModelError(f"{what}: its two axes must be perpendicular, got {first} and {second}")
    k = 3 - i - j
    basis[:, i], basis[:, j] = first, second
    basis[:, k] = np.cross(first, second) if (j - i) % 3 == 1 else np.cross(second, first)
    return basis


@dataclass(frozen=True)
class _AlongAxis(Joint):
    """A joint with one axis: the canonical x."""

    axis: Vector = "z"

    def _axes(self) -> np.ndarray:
        return _complete({0: as_axis(self.axis, f"{type(self).__name__}.axis")}, type(self).__name__)


@dataclass(frozen=True)
class _InPlane(Joint):
    """A joint with a plane: its normal is the canonical z."""

    normal: Vector = "z"

    def _axes(self) -> np.ndarray:
        return _complete({2: as_axis(self.normal, f"{type(self).__name__}.normal")}, type(self).__name__)


@dataclass(frozen=True)
class Fixed(Joint):
    """No freedom."""


@dataclass(frozen=True)
class Prismatic(_AlongAxis):
    """One translation along ``axis``."""

    bears = "journal"
    slides = "x"


@dataclass(frozen=True)
class Revolute(_AlongAxis):
    """One rotation about ``axis`` (a hinge)."""

    bears = "journal"
    turns = "x"


@dataclass(frozen=True)
class Cylindrical(_AlongAxis):
    """A translation along ``axis`` and a rotation about it."""

    bears = "journal"
    slides = "x"
    turns = "x"


@dataclass(frozen=True)
class Helical(_AlongAxis):
    """A screw: a rotation about ``axis`` that advances by ``pitch`` metres per turn. Its coordinate is the angle."""

    bears = "journal"
    slides = "x"
    turns = "x"
    extra = "helix"

    pitch: float = 0.01

    def __post_init__(self) -> None:
        check_fields(self)  # before anything asks for the lead
        super().__post_init__()

    @property
    def lead(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.pitch / (2.0 * np.pi)

    @property
    def directions(self) -> tuple[tuple[str, int], ...]:
        return (("turn", 0),)


@dataclass(frozen=True)
class Universal(Joint):
    """Two rotations: about ``axes[0]``, fixed on the parent, then about ``axes[1]``, fixed on the child."""

    bears = "journal"
    turns = "xy"

    axes: tuple[Vector, Vector] = ("x", "y")

    def _axes(self) -> np.ndarray:
        axes = items(ANYTHING, "two axes")(self.axes, "Universal.axes")
        if len(axes) != 2:
            raise ModelError(f"Universal.axes must be two axes, got {self.axes!r}")
        return _complete({0: as_axis(axes[0], "Universal.axes[0]"), 1: as_axis(axes[1], "Universal.axes[1]")}, "Universal")


@dataclass(frozen=True)
class Spherical(Joint):
    """All rotations (ball and socket). Its coordinates are a rotation vector."""

    bears = "ball"
    turns = "xyz"


@dataclass(frozen=True)
class Planar(_InPlane):
    """Two translations in a plane and a rotation about its ``normal``."""

    bears = "plate"
    slides = "xy"
    turns = "z"


@dataclass(frozen=True)
class Rectangular(_InPlane):
    """Two translations in a plane, no rotation ("planar, fixed orientation")."""

    bears = "plate"
    slides = "xy"


@dataclass(frozen=True)
class PlanarFreeOrientation(_InPlane):
    """Two translations in a plane and all rotations: a point on a plane."""

    bears = "ball"
    slides = "xy"
    turns = "xyz"


@dataclass(frozen=True)
class PinInSlot(Joint):
    """A translation along ``slot`` and a rotation about ``axis``, perpendicular to it."""

    bears = "journal"
    slides = "x"
    turns = "y"

    slot: Vector = "x"
    axis: Vector = "y"

    def _axes(self) -> np.ndarray:
        return _complete({0: as_axis(self.slot, "PinInSlot.slot"), 1: as_axis(self.axis, "PinInSlot.axis")}, "PinInSlot")


@dataclass(frozen=True)
class Slot(_AlongAxis):
    """A translation along ``axis`` and all rotations ("cylindrical, free orientation")."""

    bears = "ball"
    slides = "x"
    turns = "xyz"


@dataclass(frozen=True)
class Cartesian(Joint):
    """All translations, no rotation ("fixed orientation")."""

    slides = "xyz"


@dataclass(frozen=True)
class RotationAlongAxis(_AlongAxis):
    """All translations and a rotation about ``axis``."""

    slides = "xyz"
    turns = "x"


@dataclass(frozen=True)
class Free(Joint):
    """All six directions ("floating"): carries springs, dampers and drives, but no constraint by itself."""

    slides = "xyz"
    turns = "xyz"


@dataclass(frozen=True)
class Distance(Joint):
    """Two points keep the distance ``length`` (metres; by default the one they are built with): a massless rod."""

    slides = "xyz"
    turns = "xyz"
    extra = "distance"
    places = False

    length: float | None = None

    @property
    def directions(self) -> tuple[tuple[str, int], ...]:
        return ()


@dataclass(frozen=True)
class PointSpring(Joint):
    """No constraint: a spring and damper along the line between two points. ``Mechanism.spring`` makes it."""

    slides = "xyz"
    turns = "xyz"
    places = False

    @property
    def directions(self) -> tuple[tuple[str, int], ...]:
        return (("distance", 0),)


FixedOrientation = Cartesian
CylindricalFreeOrientation = Slot
PlanarFixedOrientation = Rectangular
Floating = Free

JOINTS: tuple[type[Joint], ...] = (
    Fixed, Prismatic, Revolute, Cylindrical, Helical, Universal, Spherical, Planar, Rectangular,
    PlanarFreeOrientation, PinInSlot, Slot, Cartesian, RotationAlongAxis, Free, Distance,
)
