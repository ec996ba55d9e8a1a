"""What sensors say, over the knots of a trajectory: the law of each kind, and errors that depend on seed, name and time alone."""
from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.checks import choices, shown
from dalembert.errors import ModelError
from dalembert.mechanism import sensors as kinds
from dalembert.mechanism.mechanism import JointElement, Mechanism
from dalembert.mechanism.sensors import Sensor, SensorKind
from dalembert.simulation.latest import Now
from dalembert.simulation.trajectory import UNITS, Trajectory, cross, rotate


@dataclass(frozen=True)
class SensorSeries:
    """A sensor over time: ``values`` (N, channels), with the name and the unit of each channel. ``series["force z"]``: one of them, (N,)."""

    name: str
    values: np.ndarray
    channels: tuple[str, ...]
    units: tuple[str, ...]

    def __getitem__(self, channel: str) -> np.ndarray:
        if channel not in self.channels:
            raise ModelError(f"sensor {self.name!r} has no channel {shown(channel)}; {choices(channel, self.channels)}")
        return self.values[:, self.channels.index(channel)]


def channels_of(sensor: Sensor) -> kinds.Channels:
    """Names and units of a sensor's numbers."""
    units = tuple(UNITS.get(kind, "rad") for kind, _ in sensor.on.type.directions) if isinstance(sensor.on, JointElement) else ()
    return sensor.kind.channels(units)


def sensor_named(mechanism: Mechanism, name: str) -> Sensor:
    """A sensor of a mechanism."""
    found = mechanism[name] if isinstance(name, str) and name in mechanism else None
    if not isinstance(found, Sensor):
        raise ModelError(f"{mechanism.name!r} has no sensor {shown(name)}; {choices(name, [s.name for s in mechanism.sensors])}")
    return found


def sensor_series(mechanism: Mechanism, name: str, trajectory: Trajectory) -> SensorSeries:
    """A sensor of the mechanism that ran, over a trajectory."""
    sensor = sensor_named(mechanism, name)
    channels = channels_of(sensor)
    return SensorSeries(name, measure(mechanism, sensor, trajectory), tuple(label for label, _ in channels), tuple(unit for _, unit in channels))


def of_steps(sensor: Sensor) -> bool:
    """Whether what a sensor says at a knot depends on the step before it."""
    return isinstance(sensor.kind, kinds.Accelerometer | kinds.IMU)


def measure(mechanism: Mechanism, sensor: Sensor, trajectory: Trajectory | Now) -> np.ndarray:
    """(N, channels) what a sensor says at the knots, errors included. ``trajectory`` may be the current knot where no forces are measured."""
    values = LAWS[type(sensor.kind)](sensor, trajectory, mechanism) + sensor.bias
    return values + sensor.noise * _draws(sensor, trajectory.time) if np.any(sensor.noise) else values


def _draws(sensor: Sensor, time: np.ndarray) -> np.ndarray:
    """(N, channels) standard normal numbers that follow from seed, name and the time of each knot: however a run is divided."""
    key = int.from_bytes(hashlib.blake2b(sensor.name.encode(), digest_size=8).digest())
    counters = np.asarray(time, dtype=np.float64).view(np.uint64)
    rows = [np.random.Generator(np.random.Philox(key=[sensor.seed, key], counter=[0, 0, 0, int(c)])).standard_normal(len(sensor.noise)) for c in counters]
    return np.array(rows)


# ---- the laws of the kinds


CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])


def _turn(sensor: Sensor, trajectory: Trajectory) -> np.ndarray:
    """(N, 4) from the sensor's axes to the world."""
    (w, x, y, z), q = sensor.kind.frame, trajectory.body(sensor.on.name).orientation  # type: ignore[attr-defined]
    right = np.array([[w, -x, -y, -z], [x, w, z, -y], [y, -z, w, x], [z, y, -x, w]])
    return q @ right.T


def _in_axes(sensor: Sensor, trajectory: Trajectory, vectors: np.ndarray) -> np.ndarray:
    """Vectors (N, 3) of the world in the sensor's axes."""
    return rotate(_turn(sensor, trajectory) * CONJUGATE, vectors)


def _place(sensor: Sensor, trajectory: Trajectory) -> np.ndarray:
    return trajectory.point(sensor.on.name, sensor.kind.point)  # type: ignore[attr-defined]


def _velocity(sensor: Sensor, trajectory: Trajectory) -> np.ndarray:
    """(N, 3) of the sensor's point in the world."""
    body = trajectory.body(sensor.on.name)
    return body.velocity + rotate(body.orientation, cross(body.angular_velocity, np.asarray(sensor.kind.point)))  # type: ignore[attr-defined]


def _accelerometer(sensor: Sensor, trajectory: Trajectory, mechanism: Mechanism) -> np.ndarray:
    """Mean over each step, in the axes in the middle of it."""
    velocity, acceleration = _velocity(sensor, trajectory), np.zeros((len(trajectory), 3))
    acceleration[1:] = np.diff(velocity, axis=0) / np.diff(trajectory.time)[:, None]
    turn = _turn(sensor, trajectory)
    middle = turn.copy()
    middle[1:] += np.copysign(1.0, np.sum(turn[1:] * turn[:-1], axis=1))[:, None] * turn[:-1]
    middle /= np.linalg.norm(middle, axis=1)[:, None]
    return rotate(middle * CONJUGATE, acceleration - np.asarray(mechanism.gravity))


def _gyroscope(sensor: Sensor, trajectory: Trajectory, _: Mechanism) -> np.ndarray:
    body = trajectory.body(sensor.on.name)
    return _in_axes(sensor, trajectory, rotate(body.orientation, body.angular_velocity))


def _imu(sensor: Sensor, trajectory: Trajectory, mechanism: Mechanism) -> np.ndarray:
    return np.concatenate([_accelerometer(sensor, trajectory, mechanism), _gyroscope(sensor, trajectory, mechanism)], axis=1)


def _velocimeter(sensor: Sensor, trajectory: Trajectory, _: Mechanism) -> np.ndarray:
    return _in_axes(sensor, trajectory, _velocity(sensor, trajectory))


def _point(sensor: Sensor, trajectory: Trajectory, _: Mechanism) -> np.ndarray:
    return np.concatenate([_place(sensor, trajectory), _velocity(sensor, trajectory)], axis=1)


def _attitude(sensor: Sensor, trajectory: Trajectory, _: Mechanism) -> np.ndarray:
    return _turn(sensor, trajectory)


def _ground_distance(sensor: Sensor, trajectory: Trajectory, mechanism: Mechanism) -> np.ndarray:
    point, kind = _place(sensor, trajectory), sensor.kind
    gaps = [point @ ground.normal - ground.offset for ground in mechanism.grounds]
    for terrain in mechanism.terrains:
        from dalembert.contact.terrain import height

        grid = np.array([*terrain.origin, *terrain.spacing])
        gaps.append(np.array([p[2] - height(terrain.heights, grid, p[0], p[1])[0] for p in point]))
    if not gaps:
        raise ModelError(f"sensor {sensor.name!r} measures the distance from the ground, and {mechanism.name!r} has none: add a ground or a height field")
    return (np.min(gaps, axis=0) - kind.radius)[:, None]  # type: ignore[attr-defined]


def _contact_force(sensor: Sensor, trajectory: Trajectory, _: Mechanism) -> np.ndarray:
    total = np.zeros((len(trajectory), 4))
    if not trajectory.can_touch:
        return total
    log = trajectory.contacts()
    for index, label in enumerate(log.names):
        ends = label.split(" / ")
        if sensor.on.name not in ends or (sensor.other is not None and sensor.other.name not in ends):
            continue
        rows, sign = log.pair == index, 1.0 if ends[0] == sensor.on.name else -1.0
        force = log.normal_force[rows, None] * log.normal[rows] + log.friction_force[rows]
        np.add.at(total, log.knot[rows], np.concatenate([log.normal_force[rows, None], sign * force], axis=1))
    return total


def _encoder(sensor: Sensor, trajectory: Trajectory, _: Mechanism) -> np.ndarray:
    index, free = sensor.on.index, sensor.on.type.freedom
    return np.concatenate([trajectory._get("coordinate")[:, index, :free], trajectory._get("rate")[:, index, :free]], axis=1)


def _motor_force(sensor: Sensor, trajectory: Trajectory, _: Mechanism) -> np.ndarray:
    return trajectory.joint(sensor.on.name).shares["drive"].reshape(len(trajectory), -1)


def _force_torque(sensor: Sensor, trajectory: Trajectory, _: Mechanism) -> np.ndarray:
    joint = trajectory.joint(sensor.on.name)
    return np.concatenate([joint.force, joint.torque], axis=1)


LAWS: dict[type[SensorKind], Callable[[Sensor, Any, Mechanism], Any]] = {
    kinds.Accelerometer: _accelerometer, kinds.Gyroscope: _gyroscope, kinds.IMU: _imu, kinds.Velocimeter: _velocimeter, kinds.PointMotion: _point,
    kinds.Attitude: _attitude, kinds.GroundDistance: _ground_distance, kinds.ContactForce: _contact_force, kinds.Encoder: _encoder,
    kinds.MotorForce: _motor_force, kinds.ForceTorque: _force_torque,
}
