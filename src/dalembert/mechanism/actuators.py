"""Actuators as model files describe them: a control becomes the force on a joint.

force = gear * clip(gain * control + bias[0] + bias[1] * length + bias[2] * speed), with length and speed those of the
joint's coordinate times the gear. A motor has gain 1; a position servo has gain kp and bias (0, -kp, -kv); a velocity
servo has gain kv and bias (0, 0, -kv).
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import ControlError

if TYPE_CHECKING:
    from dalembert.mechanism.mechanism import Mechanism
    from dalembert.simulation import Simulation


@dataclass(frozen=True, kw_only=True)
class Actuator:
    """One actuator of a joint with one coordinate. ``reference``: what the file calls the coordinate's zero, in m or rad."""

    name: str
    joint: str
    gain: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    gear: float = 1.0
    control_range: tuple[float, float] | None = None
    force_range: tuple[float, float] | None = None
    reference: float = 0.0

    def force(self, control: float, coordinate: float, rate: float) -> float:
        """Force or torque on the joint, in N or N m."""
        if self.control_range is not None:
            control = float(np.clip(control, *self.control_range))
        length, speed = self.gear * (coordinate + self.reference), self.gear * rate
        force = self.gain * control + self.bias[0] + self.bias[1] * length + self.bias[2] * speed
        if self.force_range is not None:
            force = float(np.clip(force, *self.force_range))
        return self.gear * force


def actuate(mechanism: Mechanism, simulation: Simulation, controls: Mapping[str, float]) -> dict[str, float]:
    """Joint forces for the actuators' ``controls``, as a controller returns them; actuators left out get the control zero."""
    unknown = [name for name in controls if name not in mechanism.actuators]
    if unknown:
        raise ControlError(f"{mechanism.name!r} has no actuator {unknown[0]!r}; it has: {', '.join(mechanism.actuators)}")
    forces: dict[str, float] = {}
    for name, actuator in mechanism.actuators.items():
        coordinate, rate = simulation.coordinates(actuator.joint)[0], simulation.rates(actuator.joint)[0]
        forces[actuator.joint] = forces.get(actuator.joint, 0.0) + actuator.force(float(controls.get(name, 0.0)), coordinate, rate)
    return forces
