"""Actuators as model files describe them: a control becomes forces on joints.

force = clip(gain * control + bias[0] + bias[1] * length + bias[2] * speed), with length = reference + sum of arm * coordinate
over the joints that it pulls on, speed = sum of arm * rate, and arm * force acts on each joint. A motor has gain 1; a
position servo has gain kp and bias (0, -kp, -kv); a velocity servo has gain kv and bias (0, 0, -kv).
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import ControlError

if TYPE_CHECKING:
    from dalembert.mechanism.mechanism import Mechanism
    from dalembert.simulation.simulation import Simulation


@dataclass(frozen=True, kw_only=True)
class Actuator:
    """One actuator. ``arms``: joints of one coordinate each that it pulls on, with the gear ratio or moment arm of each.

    ``reference``: length (m or rad) where all coordinates are zero; ``control``: what it gets when nobody gives one.
    """

    name: str
    arms: dict[str, float] = field(default_factory=dict)
    gain: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    control_range: tuple[float, float] | None = None
    force_range: tuple[float, float] | None = None
    reference: float = 0.0
    control: float = 0.0

    def force(self, control: float, coordinates: Mapping[str, float], rates: Mapping[str, float]) -> dict[str, float]:
        """Force or torque on each joint, in N or N m, at coordinates (m or rad) and rates of the joints."""
        if self.control_range is not None:
            control = float(np.clip(control, *self.control_range))
        length = self.reference + sum(arm * coordinates[joint] for joint, arm in self.arms.items())
        speed = sum(arm * rates[joint] for joint, arm in self.arms.items())
        force = self.gain * control + self.bias[0] + self.bias[1] * length + self.bias[2] * speed
        if self.force_range is not None:
            force = float(np.clip(force, *self.force_range))
        return {joint: arm * force for joint, arm in self.arms.items()}


def actuate(mechanism: Mechanism, simulation: Simulation, controls: Mapping[str, float]) -> dict[str, float]:
    """Joint forces for the actuators' ``controls``, as a controller returns them; actuators left out get their own control."""
    unknown = [name for name in controls if name not in mechanism.actuators]
    if unknown:
        raise ControlError(f"{mechanism.name!r} has no actuator {unknown[0]!r}; it has: {', '.join(mechanism.actuators)}")
    joints = {joint for actuator in mechanism.actuators.values() for joint in actuator.arms}
    coordinates = {joint: float(simulation.coordinates(joint)[0]) for joint in joints}
    rates = {joint: float(simulation.rates(joint)[0]) for joint in joints}
    forces: dict[str, float] = {}
    for name, actuator in mechanism.actuators.items():
        for joint, force in actuator.force(float(controls.get(name, actuator.control)), coordinates, rates).items():
            forces[joint] = forces.get(joint, 0.0) + force
    return forces
