"""Sensors of an MJCF model: those on frames, joints and contacts that a sensor of ours measures."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.io.mjcf.source import Source, rotation
from dalembert.mechanism import sensors
from dalembert.mechanism.sensors import SensorKind

#: kinds of sensors by MuJoCo's word: on a frame with axes, on a point, on a joint
FRAMED: dict[str, type[Any]] = {
    "ACCELEROMETER": sensors.Accelerometer, "GYRO": sensors.Gyroscope, "VELOCIMETER": sensors.Velocimeter, "FRAMEQUAT": sensors.Attitude,
}
POINTS: dict[str, type[Any]] = {"FRAMEPOS": sensors.PointMotion, "FRAMELINVEL": sensors.PointMotion}
JOINTS: dict[str, type[SensorKind]] = {"JOINTPOS": sensors.Encoder, "JOINTVEL": sensors.Encoder, "JOINTACTFRC": sensors.MotorForce}
#: where objects of a kind stand: fields of the body they belong to, and of their place and axes
PLACES = {"SITE": ("site_bodyid", "site_xpos", "site_xmat"), "GEOM": ("geom_bodyid", "geom_xpos", "geom_xmat"), "XBODY": (None, "xpos", "xmat"), "BODY": (None, "xipos", "ximat")}


def add_sensors(source: Source) -> None:
    """Add what can be measured; the rest goes into the report."""
    for k in range(source.model.nsensor):
        name = source.name("sensor", k)
        try:
            why = _add(source, k, name)
        except ModelError as error:
            why = str(error)
        if why:
            source.report.append(f"sensor {name!r} is left out: {why}")


def _add(source: Source, k: int, name: str) -> str:
    """Add one; returns why it cannot be."""
    model, mechanism = source.model, source.mechanism
    kind = source.mj.mjtSensor(int(model.sensor_type[k])).name.removeprefix("mjSENS_")
    found, title = int(model.sensor_objid[k]), source.free_name(name)
    if int(model.sensor_refid[k]) >= 0:
        return "it measures in a frame that moves"
    if kind in JOINTS:
        if found not in source.joints or source.joint(found) not in mechanism:
            return "its joint has no place in the mechanism"
        mechanism.sensor(title, JOINTS[kind](), source.joint(found))
    elif kind in FRAMED or kind in POINTS or kind == "TOUCH":
        where = PLACES.get(source.mj.mjtObj(int(model.sensor_objtype[k])).name.removeprefix("mjOBJ_"))
        if where is None:
            return "it is on no body, geom or site"
        owner, place, axes = where
        body = mechanism[source.body(found if owner is None else int(getattr(model, owner)[found]))]
        if body is mechanism.world:
            return "it does not move"
        turn = rotation(body.orientation)
        point = turn.inv().apply(np.array(getattr(source.data, place)[found]) - body.position)
        if kind == "TOUCH":
            mechanism.sensor(title, sensors.ContactForce(), body)
            source.report.append(f"sensor {name!r} counts all contacts of {body.name!r}, not only those at its site")
        elif kind in POINTS:
            mechanism.sensor(title, POINTS[kind](point=point), body)
        else:
            frame = (turn.inv() * rotation(_quaternion(source, getattr(source.data, axes)[found]))).as_quat(scalar_first=True)
            mechanism.sensor(title, FRAMED[kind](point=point, frame=frame), body)
    else:
        return f"a sensor of the kind {kind.lower()} is not known here"
    if model.sensor_noise[k]:
        source.report.append(f"sensor {name!r}: its noise of {model.sensor_noise[k]:g} is not added; Mechanism.change can")
    return ""


def _quaternion(source: Source, matrix: np.ndarray) -> np.ndarray:
    found = np.zeros(4)
    source.mj.mju_mat2Quat(found, np.array(matrix))
    return found
