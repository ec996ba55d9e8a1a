"""A hopper: a ball on a pole that jumps by a prismatic leg and turns in the air by torques on the ball (Contact IV.B)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ControlError
from dalembert.mechanism.joints import Prismatic
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Cylinder, Sphere
from dalembert.zoo.links import sized

#: longest step (s) over which the controller may hold its forces
LONGEST_STEP = 0.01
#: the ball's height above the pole's middle, leg at rest (m)
SEAT = 0.2
#: inertia of ball and pole about the ball (kg m^2), and the mass that the leg moves in flight (kg)
INERTIA, MOVED = np.array([0.023, 0.023, 0.00425]), 1.0 * 0.2 / 1.2


@sized
def hopper(*, friction: float = 0.2) -> Mechanism:
    """A ball of 1 kg on a pole of 0.2 kg, standing on the pole's lower end. Bodies "ball" and "pole", joint "leg"."""
    mechanism = Mechanism("hopper")
    mechanism.ground(friction=friction)
    mechanism.body("ball", Sphere(radius=0.1, mass=1.0), position=(0.0, 0.0, 0.4 + SEAT))
    mechanism.body("pole", Cylinder(radius=0.05, length=0.8, mass=0.2), position=(0.0, 0.0, 0.4))
    mechanism.joint(
        "leg", Prismatic(axis="z", drive="force", damping=2.0, limits=(-0.3, 0.3)), "ball", "pole", at=(0.0, 0.0, 0.4),
    )
    mechanism.contact_point("pole", point=(0.0, 0.0, -0.4))
    return mechanism


@sized
def hopper_turn(axis: tuple[float, float, float] = (1.0, 1.0, 0.0), *, takeoff: float = 0.1, push: float = 55.0, flight: float = 0.8) -> Callable[[Any], dict[str, Any]]:
    """A controller for ``hopper``: push off for ``takeoff`` seconds, turn once about ``axis`` within ``flight`` seconds, land and stand.

    ``push``: the leg's force in N. The ball's attitude follows a smooth full turn by torques, as flywheels would give. Forces are held over
    a step, so that they are what springs and dampers would exert at its end: stable for steps of up to 10 ms (a ControlError says so
    for longer ones).
    """
    direction = np.asarray(axis, dtype=float) / np.linalg.norm(axis)

    def held(stiffness: float, damping: float, error: Any, rate: Any, inertia: Any, dt: float) -> Any:
        """Of a spring and a damper at the end of a step, from error and its rate at the start."""
        return (stiffness * (error + dt * rate) + damping * rate) / (1.0 + (damping * dt + stiffness * dt**2) / inertia)

    def control(sim: Any) -> dict[str, Any]:
        dt = sim.formulation.dt
        if dt > LONGEST_STEP:
            raise ControlError(f"hopper_turn is stable for steps of up to {LONGEST_STEP:g} s, got dt = {dt:g} s")
        part = np.clip((sim.time - takeoff - 0.05) / (flight - 0.15), 0.0, 1.0)
        angle = 2.0 * np.pi * part**3 * (10.0 - 15.0 * part + 6.0 * part**2)
        rate = 2.0 * np.pi * 30.0 * part**2 * (1.0 - part) ** 2 / (flight - 0.15)
        attitude = Rotation.from_quat(sim.orientation[0], scalar_first=True)
        error = (attitude.inv() * Rotation.from_rotvec(angle * direction)).as_rotvec()
        torque = held(12.0, 1.2, error, attitude.inv().apply(rate * direction) - sim.angular_velocity[0], INERTIA, dt)
        stretch, speed = sim.coordinates("leg")[0], sim.rates("leg")[0]
        hold = held(400.0, 12.0, -stretch, -speed, MOVED, dt)
        force = -push if sim.time < takeoff else hold
        return {"leg": force, "ball": np.concatenate([np.zeros(3), torque])}

    return control
