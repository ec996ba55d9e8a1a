"""What is measured on a mechanism: kinds of sensors, and sensors by name with their errors. ``simulation/sensing.py`` reads them."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dalembert.checks import (
    ANYTHING,
    NAME,
    NOT_NEGATIVE,
    check_fields,
    checked,
    shown,
    spread,
    unit_quaternion,
    vector,
    whole,
)
from dalembert.errors import ModelError

NOWHERE, UPRIGHT = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
#: one name and unit per number that a sensor gives
Channels = tuple[tuple[str, str], ...]


def _axes(what: str, unit: str) -> Channels:
    return tuple((f"{what} {axis}", unit) for axis in "xyz")


ACCELERATION, TURNING = _axes("acceleration", "m/s^2"), _axes("angular velocity", "rad/s")


@dataclass(frozen=True, kw_only=True)
class SensorKind:
    """A kind of sensor. ``of``: what it sits on, "body" or "joint"; ``of_forces``: whether it measures forces."""

    of: ClassVar[str] = "body"
    of_forces: ClassVar[bool] = False

    def channels(self, units: tuple[str, ...]) -> Channels:
        """Names and units of its numbers; ``units``: of the coordinates of the joint that it sits on."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class _AtPoint(SensorKind):
    """On a body, at ``point`` (m, from the centre of mass, body axes)."""

    point: ArrayLike = NOWHERE

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", tuple(vector(self.point, 3, f"{type(self).__name__}: point").tolist()))


@dataclass(frozen=True, kw_only=True)
class _InFrame(_AtPoint):
    """The same with axes of its own: ``frame``, a quaternion from its axes to the body's."""

    frame: ArrayLike = UPRIGHT

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "frame", tuple(unit_quaternion(self.frame, f"{type(self).__name__}: frame").tolist()))


@dataclass(frozen=True, kw_only=True)
class Accelerometer(_InFrame):
    """Proper acceleration of a point of a body, in the sensor's axes, m/s^2: what a spring balance would say; g upwards at rest.

    It is the mean over the step that ended at the knot, as sensors that count changes of velocity give it, and so half a step
    late; at the first knot of a run, before any step, that of a body which does not accelerate.
    """

    def channels(self, units: tuple[str, ...]) -> Channels:
        return ACCELERATION


@dataclass(frozen=True, kw_only=True)
class Gyroscope(_InFrame):
    """Angular velocity of a body, in the sensor's axes, rad/s."""

    def channels(self, units: tuple[str, ...]) -> Channels:
        return TURNING


@dataclass(frozen=True, kw_only=True)
class IMU(_InFrame):
    """An accelerometer and a gyroscope in one: six numbers."""

    def channels(self, units: tuple[str, ...]) -> Channels:
        return ACCELERATION + TURNING


@dataclass(frozen=True, kw_only=True)
class Velocimeter(_InFrame):
    """Velocity of a point of a body, in the sensor's axes, m/s."""

    def channels(self, units: tuple[str, ...]) -> Channels:
        return _axes("velocity", "m/s")


@dataclass(frozen=True, kw_only=True)
class PointMotion(_AtPoint):
    """Position (m) and velocity (m/s) of a point of a body in the world: six numbers."""

    def channels(self, units: tuple[str, ...]) -> Channels:
        return _axes("position", "m") + _axes("velocity", "m/s")


@dataclass(frozen=True, kw_only=True)
class Attitude(_InFrame):
    """Orientation of the sensor's axes in the world: a quaternion, scalar first."""

    def channels(self, units: tuple[str, ...]) -> Channels:
        return tuple((f"orientation {part}", "1") for part in "wxyz")


@dataclass(frozen=True, kw_only=True)
class GroundDistance(_AtPoint):
    """Distance (m) of a point of a body from the nearest ground or terrain, less ``radius`` (m); below a terrain's point, straight down."""

    radius: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, point=ANYTHING, radius=NOT_NEGATIVE)

    def channels(self, units: tuple[str, ...]) -> Channels:
        return (("distance", "m"),)


@dataclass(frozen=True, kw_only=True)
class ContactForce(SensorKind):
    """What contacts do to a body: the sum of the normal forces (N), and the whole force in the world (N), four numbers.

    Those of the step that ended at the knot; zero before any step. With ``other`` of ``Mechanism.sensor`` only contacts with that.
    """

    of_forces: ClassVar[bool] = True

    def channels(self, units: tuple[str, ...]) -> Channels:
        return (("normal force", "N"), *_axes("force", "N"))


@dataclass(frozen=True, kw_only=True)
class Encoder(SensorKind):
    """Coordinates of a joint (m or rad), then their rates."""

    of: ClassVar[str] = "joint"

    def channels(self, units: tuple[str, ...]) -> Channels:
        numbers = [""] if len(units) == 1 else [f" {k}" for k in range(len(units))]
        return (*((f"coordinate{k}", unit) for k, unit in zip(numbers, units)), *((f"rate{k}", f"{unit}/s") for k, unit in zip(numbers, units)))


@dataclass(frozen=True, kw_only=True)
class MotorForce(SensorKind):
    """What drives do along the free directions of a joint, N or N m."""

    of: ClassVar[str] = "joint"
    of_forces: ClassVar[bool] = True

    def channels(self, units: tuple[str, ...]) -> Channels:
        numbers = [""] if len(units) == 1 else [f" {k}" for k in range(len(units))]
        return tuple((f"drive{k}", "N" if unit == "m" else "N m") for k, unit in zip(numbers, units))


@dataclass(frozen=True, kw_only=True)
class ForceTorque(SensorKind):
    """Force (N) and torque (N m) that the parent exerts on the child through a joint, at its point, in its frame on the parent.

    Read live, before a step, those under the inputs of the step before.
    """

    of: ClassVar[str] = "joint"
    of_forces: ClassVar[bool] = True

    def channels(self, units: tuple[str, ...]) -> Channels:
        return _axes("force", "N") + _axes("torque", "N m")


#: all kinds, for files and for the public names
SENSORS: tuple[type[SensorKind], ...] = (
    Accelerometer, Gyroscope, IMU, Velocimeter, PointMotion, Attitude, GroundDistance, ContactForce, Encoder, MotorForce, ForceTorque,
)
__all__ = [
    "IMU", "Accelerometer", "Attitude", "ContactForce", "Encoder", "ForceTorque", "GroundDistance", "Gyroscope", "MotorForce", "PointMotion", "Velocimeter",
]


@dataclass(frozen=True, eq=False)
class Sensor:
    """A sensor of a mechanism: its ``kind``, the body or joint it is ``on``, and its errors: ``bias`` and ``noise``, one number per channel."""

    name: str
    index: int
    kind: SensorKind
    on: Any
    other: Any
    noise: np.ndarray
    bias: np.ndarray
    seed: int

    def __repr__(self) -> str:
        return f"<sensor {self.name!r}: {type(self.kind).__name__} on {self.on.name!r}>"


#: what seeds a sensor's noise
SEED = whole("be a whole number that is not negative", least=0, most=2**63 - 1)


def errors_of(name: str, count: int, noise: ArrayLike, bias: ArrayLike, seed: int) -> dict[str, Any]:
    """The errors of a sensor of ``count`` channels, checked."""
    spreads = spread(noise, count, f"sensor {name!r}: noise")
    if np.any(spreads < 0.0):
        raise ModelError(f"sensor {name!r}: noise must not be negative, got {shown(noise)}")
    return dict(noise=spreads, bias=spread(bias, count, f"sensor {name!r}: bias"), seed=SEED(seed, f"sensor {name!r}: seed"))


class SensorBuilder:
    """The part of ``Mechanism`` that says what is measured."""

    sensors: list[Sensor]
    _names: dict[str, Any]

    def _take_name(self, name: str, what: str) -> str:
        raise NotImplementedError

    @checked(name=NAME, kind=ANYTHING, on=ANYTHING, other=ANYTHING, noise=ANYTHING, bias=ANYTHING, seed=ANYTHING)
    def sensor(
        self, name: str, kind: SensorKind, on: Any, *, other: Any = None, noise: ArrayLike = 0.0, bias: ArrayLike = 0.0, seed: int = 0,
    ) -> Sensor:
        """Measure something on a body or joint: ``sensor("imu", da.IMU(), "torso")``, read by ``Simulation.sensor`` and ``Trajectory.sensor``.

        ``noise``: standard deviation of independent errors at the knots, in the unit of what is measured; ``bias``: what is always
        added; one number, or one per channel. The same ``seed`` and time give the same error. ``other``: of ``ContactForce``, the
        body, ground or obstacle whose contacts count.
        """
        from dalembert.mechanism.environment import TOUCHING, Collider
        from dalembert.mechanism.mechanism import Body, JointElement

        self._take_name(name, "sensor")
        what = f"sensor {name!r}"
        if not isinstance(kind, SENSORS):
            raise ModelError(f"{what}: the kind must be one such as dalembert.IMU(), got {shown(kind)}; there are {', '.join(__all__)}")
        wanted = Body if kind.of == "body" else JointElement
        found = self._sensed(on, what)
        if not isinstance(found, wanted) or found is self._names["world"]:
            raise ModelError(f"{what}: {type(kind).__name__} sits on a {kind.of}{' that moves' if wanted is Body else ''}, got {found!r}")
        pushes = None if other is None else self._sensed(other, f"{what}: other")
        if pushes is not None and not (isinstance(kind, ContactForce) and isinstance(pushes, (Body, *TOUCHING)) and not isinstance(pushes, Collider)):
            raise ModelError(f"{what}: other= is the body, ground, obstacle or terrain that a ContactForce counts contacts with, got {pushes!r} for {type(kind).__name__}")
        count = len(kind.channels(("m",) * found.type.freedom if isinstance(found, JointElement) else ()))
        element = Sensor(name, len(self.sensors), kind, found, pushes, **errors_of(name, count, noise, bias, seed))
        self.sensors.append(element)
        self._names[name] = element
        return element

    def _sensed(self, element: Any, what: str) -> Any:
        """An element of this mechanism, by itself or by name."""
        found = self[element] if isinstance(element, str) else element  # type: ignore[index]
        if not hasattr(found, "name") or self._names.get(found.name) is not found:
            raise ModelError(f"{what} needs an element of {self.name!r} or its name, got {shown(element)}")  # type: ignore[attr-defined]
        return found
