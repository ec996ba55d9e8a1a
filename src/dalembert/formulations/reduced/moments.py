"""What a user's event sees: the mechanism at one moment between knots."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.formulations.maximal.recording import Recording
from dalembert.model.pose import joint_rates

if TYPE_CHECKING:
    from dalembert.formulations.reduced.explicit_engine import FlowEngine


class Moment:
    """A mechanism at a ``time`` (s). Arrays are by body, in the mechanism's order; joints are asked for by name."""

    def __init__(self, engine: FlowEngine, time: float, recording: Recording, coordinates: np.ndarray) -> None:
        self.time = time
        self._engine, self._recording, self._coordinates = engine, recording, coordinates
        self._rates: np.ndarray | None = None

    @property
    def position(self) -> np.ndarray:
        """(bodies, 3) centres of mass, metres."""
        return self._recording.position[0]

    @property
    def orientation(self) -> np.ndarray:
        """(bodies, 4) unit quaternions, scalar first."""
        return self._recording.orientation[0]

    @property
    def velocity(self) -> np.ndarray:
        """(bodies, 3), m/s."""
        return self._recording.momentum[0, :, :3] / self._engine.model.bodies["mass"][:-1, None]

    @property
    def angular_velocity(self) -> np.ndarray:
        """(bodies, 3) in the body frames, rad/s."""
        inverse = self._engine.model.bodies["inertia_inverse"][:-1].reshape(-1, 3, 3)
        return np.einsum("nij,nj->ni", inverse, self._recording.momentum[0, :, 3:])

    def body(self, name: str) -> int:
        """Where a body stands along the first axis."""
        return self._engine.mechanism[name].index

    def coordinates(self, joint: str) -> np.ndarray:
        """(freedom,) of a joint, m or rad."""
        element = self._engine.mechanism[joint]
        self._read()
        return self._coordinates[element.index, : element.type.freedom].copy()

    def rates(self, joint: str) -> np.ndarray:
        """(freedom,) of a joint's coordinates; of a free rotation, the relative angular velocity in the parent's axes."""
        element = self._engine.mechanism[joint]
        return self._read()[element.index, : element.type.freedom].copy()

    def _read(self) -> np.ndarray:
        if self._rates is None:
            placement = self._engine._place(self.position, self.orientation, self._coordinates)
            velocity = np.zeros((len(self.position) + 1, 6))
            velocity[:-1, :3], velocity[:-1, 3:] = self.velocity, self.angular_velocity
            rates = np.zeros_like(self._coordinates)
            joint_rates(self._engine.model, placement.work, velocity, rates)
            self._coordinates, self._rates = placement.work.joints["coordinate"].copy(), rates
        return self._rates
