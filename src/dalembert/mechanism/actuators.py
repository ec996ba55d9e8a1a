"""Actuators as model files describe them: a control becomes forces on joints and tensions of paths, or the target of a servo.

force = clip(gain * control + bias[0] + bias[1] * length + bias[2] * speed), with length = reference + sum of arm * coordinate
over the joints (or the path) that it pulls on, speed = sum of arm * rate, and arm * force acts on each of them; along a path,
a force that lengthens it. A motor has gain 1; a position servo has gain kp and bias (0, -kp, -kv); a velocity servo has
gain kv and bias (0, 0, -kv).
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import ControlError
from dalembert.mechanism.forces import Path, Servo

if TYPE_CHECKING:
    from dalembert.mechanism.mechanism import Mechanism
    from dalembert.simulation.simulation import Simulation


@dataclass(frozen=True, kw_only=True)
class Actuator:
    """One actuator. ``arms``: joints of one coordinate each, or the path, that it pulls on, with the gear ratio or moment arm of each.

    ``reference``: length (m or rad) where all coordinates are zero; ``control``: what it gets when nobody gives one.
    ``servo``: its gains and bounds are those of the joint's own servo, and its control becomes a target.
    """

    name: str
    arms: dict[str, float] = field(default_factory=dict)
    gain: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    control_range: tuple[float, float] | None = None
    force_range: tuple[float, float] | None = None
    reference: float = 0.0
    control: float = 0.0
    servo: bool = False

    def as_servo(self) -> Servo | None:
        """The same as the servo of its one joint, where it is one: it pulls to a position or a rate, with a bound that is alike both ways."""
        if len(self.arms) != 1 or self.bias[1] > 0.0 or self.bias[2] > 0.0 or not any(self.bias[1:]) or (self.bias[1] == 0.0 and self.gain == 0.0):
            return None
        (joint, arm), = self.arms.items()
        low, high = (-np.inf, np.inf) if self.force_range is None else self.force_range
        if arm == 0.0 or low != -high or high <= 0.0:
            return None
        gains = dict(stiffness=abs(self.bias[1]) * arm**2, damping=abs(self.bias[2]) * arm**2)
        return Servo(**gains, target=self.target(self.control)[joint], bound=high * abs(arm), follows="position" if self.bias[1] else "rate")

    def target(self, control: float) -> dict[str, float]:
        """Coordinate (m or rad), or rate, of the one joint of a servo at which its force is zero."""
        (joint, arm), = self.arms.items()
        push = self.gain * self._clipped(control) + self.bias[0]
        return {joint: (-push / self.bias[1] - self.reference) / arm if self.bias[1] else -push / self.bias[2] / arm}

    def _clipped(self, control: float) -> float:
        return control if self.control_range is None else float(np.clip(control, *self.control_range))

    def force(self, control: float, coordinates: Mapping[str, float], rates: Mapping[str, float]) -> dict[str, float]:
        """Force or torque on each joint or along the path, in N or N m, at coordinates (m or rad) and rates."""
        length = self.reference + sum(arm * coordinates[joint] for joint, arm in self.arms.items())
        speed = sum(arm * rates[joint] for joint, arm in self.arms.items())
        force = self.gain * self._clipped(control) + self.bias[0] + self.bias[1] * length + self.bias[2] * speed
        if self.force_range is not None:
            force = float(np.clip(force, *self.force_range))
        return {joint: arm * force for joint, arm in self.arms.items()}


def actuate(mechanism: Mechanism, simulation: Simulation, controls: Mapping[str, float]) -> dict[str, float]:
    """What a controller returns for the actuators' ``controls``: forces on joints, tensions of paths, targets of servos.

    Actuators left out get their own control.
    """
    unknown = [name for name in controls if name not in mechanism.actuators]
    if unknown:
        raise ControlError(f"{mechanism.name!r} has no actuator {unknown[0]!r}; it has: {', '.join(mechanism.actuators)}")
    pulled = {name for actuator in mechanism.actuators.values() if not actuator.servo for name in actuator.arms}
    paths = {name for name in pulled if isinstance(mechanism[name], Path)}
    coordinates = {name: simulation.path_length(name) if name in paths else float(simulation.coordinates(name)[0]) for name in pulled}
    rates = {name: simulation.path_rate(name) if name in paths else float(simulation.rates(name)[0]) for name in pulled}
    answer: dict[str, float] = {}
    for title, actuator in mechanism.actuators.items():
        control = float(controls.get(title, actuator.control))
        if actuator.servo:
            answer |= actuator.target(control)
            continue
        for name, force in actuator.force(control, coordinates, rates).items():
            answer[name] = answer.get(name, 0.0) + (-force if name in paths else force)
    return answer
