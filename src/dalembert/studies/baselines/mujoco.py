"""MuJoCo with its default solver and Euler's method, on scenes of the papers."""
from __future__ import annotations

import importlib
from typing import Any

from dalembert.errors import MissingExtraError

#: contacts off where there is nothing to touch
NO_CONTACT = '<flag contact="disable"/>'


def load_mujoco() -> Any:
    """The module, or a MissingExtraError that says how to get it."""
    try:
        return importlib.import_module("mujoco")
    except ImportError:
        raise MissingExtraError("this study compares with MuJoCo: pip install dalembert[mjcf]") from None


def compiled(world: str, dt: float, options: str = "") -> tuple[Any, Any]:
    """Model and data of the bodies in ``world`` (MJCF)."""
    mujoco = load_mujoco()
    model = mujoco.MjModel.from_xml_string(f'<mujoco><option timestep="{dt}">{options}</option><worldbody>{world}</worldbody></mujoco>')
    return model, mujoco.MjData(model)


def pendulum(n: int, joint: str, dt: float) -> tuple[Any, Any]:
    """``da.zoo.pendulum``."""
    kind = 'type="hinge" axis="0 1 0"' if joint == "revolute" else 'type="ball"'
    across = (3 * 0.05**2 + 1.0) / 12.0
    links = "".join(
        f'<body pos="{float(k > 0)} 0 0"><joint {kind}/><inertial pos="0.5 0 0" mass="1" diaginertia="{0.5 * 0.05**2} {across} {across}"/>' for k in range(n)
    )
    return compiled(links + n * "</body>", dt, NO_CONTACT)


def box_drop(dt: float, height: float) -> tuple[Any, Any]:
    """``da.zoo.box_drop``."""
    floor = '<geom type="plane" size="5 5 1" friction="0.5 0 0"/>'
    return compiled(floor + f'<body pos="0 0 {height + 0.25}"><freejoint/><geom type="box" size="0.25 0.25 0.25" mass="1" friction="0.5 0 0"/></body>', dt)


def sphere_chain(n: int, dt: float, *, radius: float = 0.25, height: float = 0.5, slope: float = 0.1) -> tuple[Any, Any]:
    """``da.zoo.sphere_chain`` with its first sphere as the root."""
    step = f'{2 * radius} 0 0'
    ball = f'<geom type="sphere" size="{radius}" mass="1" friction="0.5 0 0"/>'
    first = f'<body pos="0 0 {height + radius}" euler="0 {-slope * 57.29577951308232} 0"><freejoint/>{ball}'
    rest = "".join(f'<body pos="{step}"><joint type="ball" pos="{-radius} 0 0"/>{ball}' for _ in range(n - 1))
    return compiled('<geom type="plane" size="5 5 1" friction="0.5 0 0"/>' + first + rest + n * "</body>", dt)
