"""What the functions of an environment see: one simulation, or many at once with one more axis in front of every array."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.checks import shown
from dalembert.ensemble.batch import Batch
from dalembert.errors import ModelError
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.trajectory import rotate


class Sight:
    """The state after a step, as rewards, observations and ends of episodes are functions of it.

    Written with ``...`` for what comes in front, ``now.coordinates("hinge")[..., 0]``, one function serves a single environment, whose
    arrays have the shapes below, and a vector environment, whose arrays have one axis more.
    """

    #: goals by name, as drawn at the reset
    goal: Mapping[str, np.ndarray]
    #: (actions,) the last action, between -1 and 1; zeros after a reset
    action: np.ndarray
    mechanism: Mechanism

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism, self.goal, self.action = mechanism, {}, np.zeros(0)
        self._columns = columns(mechanism)
        self._kept: dict[str, Any] = {}

    def refresh(self) -> None:
        """Time has passed."""
        self._kept = {}

    @property
    def time(self) -> Any:
        """Seconds since the reset."""
        raise NotImplementedError

    def coordinates(self, joint: str | None = None) -> np.ndarray:
        """Coordinates (freedom,) of a joint, m or rad; without a name those of all joints, one after the other."""
        found = self._once("coordinates")
        return found if joint is None else found[..., self._of(joint)]

    def rates(self, joint: str | None = None) -> np.ndarray:
        """Rates (freedom,) of a joint's coordinates; without a name those of all joints, one after the other."""
        found = self._once("rates")
        return found if joint is None else found[..., self._of(joint)]

    def _of(self, joint: str) -> slice:
        if joint not in self._columns:
            raise ModelError(f"{shown(joint)} is {self.mechanism[joint]!r}, not a joint")
        return self._columns[joint]

    @property
    def position(self) -> np.ndarray:
        """(bodies, 3) centres of mass, m."""
        return self._once("position")

    @property
    def orientation(self) -> np.ndarray:
        """(bodies, 4) unit quaternions, scalar first."""
        return self._once("orientation")

    @property
    def velocity(self) -> np.ndarray:
        """(bodies, 3) m/s."""
        return self._once("velocity")

    @property
    def angular_velocity(self) -> np.ndarray:
        """(bodies, 3) body frame, rad/s."""
        return self._once("angular_velocity")

    def _once(self, what: str) -> np.ndarray:
        """What is read at most once a step."""
        if what not in self._kept:
            self._kept[what] = self._read(what)
        return self._kept[what]

    def _read(self, what: str) -> np.ndarray:
        raise NotImplementedError

    def sensor(self, name: str) -> np.ndarray:
        """What a sensor of the mechanism says, one number per channel."""
        raise NotImplementedError

    def point(self, body: str, at: ArrayLike | None = None) -> np.ndarray:
        """(3,) where a point of a body is, m: its centre of mass, or what is ``at`` from there, in its axes."""
        index = body_index(self.mechanism, body)
        centre = self.position[..., index, :]
        return centre if at is None else centre + rotate(self.orientation[..., index, :], np.asarray(at, dtype=float))

    def up(self, body: str) -> np.ndarray:
        """(3,) the world's z axis in a body's axes: what a body that stands upright has as (0, 0, 1)."""
        return upwards(self.orientation[..., body_index(self.mechanism, body), :])


class OneSight(Sight):
    """Of one simulation, which functions that only serve single environments may also use: ``now.simulation``."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation.mechanism)
        self.simulation = simulation

    @property
    def time(self) -> float:
        return self.simulation.time

    def _read(self, what: str) -> np.ndarray:
        found = getattr(self.simulation, what)
        return found() if what in ("coordinates", "rates") else found

    def sensor(self, name: str) -> np.ndarray:
        return self.simulation.sensor(name)


class ManySight(Sight):
    """Of the states of a batch, which are the first axis of every array."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch.mechanism)
        self.batch = batch

    @property
    def time(self) -> np.ndarray:
        return self.batch.time

    def _read(self, what: str) -> np.ndarray:
        found = getattr(self.batch, what)
        return found() if what in ("coordinates", "rates") else found

    def sensor(self, name: str) -> np.ndarray:
        raise ModelError(f"sensor {name!r} is read in single environments only: say vectorization_mode='sync' to Gymnasium's make_vec")


def columns(mechanism: Mechanism) -> dict[str, slice]:
    """Where the coordinates of each joint are among those of all, one after the other."""
    found, count = {}, 0
    for joint in mechanism.joints:
        found[joint.name] = slice(count, count + joint.type.freedom)
        count += joint.type.freedom
    return found


def upwards(orientation: np.ndarray) -> np.ndarray:
    """(..., 3) the world's z axis in the axes of bodies with some orientations (..., 4)."""
    w, x, y, z = (orientation[..., k] for k in range(4))
    found = np.empty((*orientation.shape[:-1], 3))
    found[..., 0], found[..., 1], found[..., 2] = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
    return found


def body_index(mechanism: Mechanism, name: str) -> int:
    """The index of a body that moves."""
    body = mechanism[name]
    if not isinstance(body, Body) or body is mechanism.world:
        raise ModelError(f"{shown(name)} is {body!r}, not a body that moves")
    return body.index
