"""The structure of a model file: what reading checks and ``schema`` publishes."""
from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from dalembert.errors import MissingExtraError
from dalembert.mechanism import convex, shapes
from dalembert.mechanism.bearings import Bearing
from dalembert.mechanism.forces import Servo
from dalembert.mechanism.joints import JOINTS, Joint, PointSpring
from dalembert.mechanism.moving_joints import MOVING_JOINTS
from dalembert.mechanism.sensors import SENSORS, SensorKind
from dalembert.mechanism.shapes import Shape

FORMAT = 1
TYPES: dict[str, type[Joint]] = {kind.__name__: kind for kind in (*JOINTS, *MOVING_JOINTS, PointSpring)}
SHAPES: dict[str, type[Shape]] = {
    name: kind for module in (shapes, convex) for name, kind in vars(module).items()
    if inspect.isclass(kind) and issubclass(kind, Shape) and not inspect.isabstract(kind) and not name.startswith("_")
}
SENSOR_KINDS: dict[str, type[SensorKind]] = {kind.__name__: kind for kind in SENSORS}
#: parameters of every joint, left out where they say nothing
LAWS = {f.name for f in fields(Joint)}


@cache
def file_record() -> Any:
    """The structure of a file, as msgspec types."""
    msgspec = msgspec_module()
    Vector, Matrix, Value, Fraction = list[float], list[list[float]], float | list[float] | None, float | None

    def struct(name: str, *spec: tuple[Any, ...]) -> Any:
        return msgspec.defstruct(name, spec, forbid_unknown_fields=True, kw_only=True)

    def values(*numbers: float) -> Any:
        return msgspec.field(default_factory=lambda: list(numbers))

    empty, nothing, upright = values(), values(0.0, 0.0, 0.0), values(1.0, 0.0, 0.0, 0.0)
    anything = dict[str, Any]
    bits = (("layer", int, 1), ("mask", int, 1))
    environment = (("name", str), ("friction", float | Vector), ("restitution", float, 0.0), *bits)
    mesh = struct("Mesh", ("vertices", str), ("faces", str))
    visual = struct(
        "Visual", ("shape", anything | None, None), ("mesh", mesh | None, None), ("position", Vector, nothing), ("orientation", Vector, upright),
        ("colour", Vector | None, None))
    body = struct(
        "Body", ("name", str), ("mass", float), ("inertia", Matrix), ("position", Vector), ("orientation", Vector),
        ("shape", anything | None, None), ("collide", bool, False), ("visuals", list[visual] | None, None))
    joint = struct(
        "Joint", ("name", str), ("type", str), ("parent", str), ("child", str), ("parameters", anything, msgspec.field(default_factory=dict)),
        ("point_parent", Vector), ("point_child", Vector), ("frame_parent", Matrix), ("frame_child", Matrix))
    gear = struct(
        "Gear", ("name", str), ("first", str), ("second", str), ("ratio", float), ("offset", float, 0.0), ("directions", list[int], values(0, 0)))
    wrench = struct("Wrench", ("body", str), ("force", Vector, nothing), ("torque", Vector, nothing))
    end = struct("PathPoint", ("body", str), ("point", Vector))
    path = struct(
        "Path", ("name", str), ("points", list[end]), ("stiffness", float, 0.0), ("damping", float, 0.0), ("rest", float), ("pulls", bool, False),
        ("drive", str | None, None))
    tied = struct("MapJoint", ("joint", str), ("direction", int, 0))
    linear_map = struct(
        "CoordinateMap", ("name", str), ("joints", list[tied]), ("matrix", Matrix), ("offset", Vector), ("near", Vector))
    strand = struct("Strand", ("name", str), ("points", list[end]), ("paths", list[str]), ("radius", float), ("colour", Vector))
    force = struct("Force", ("name", str), ("body", str), ("force", Vector), ("point", Vector, nothing), ("follows", bool, False))
    drag = struct("Drag", ("name", str), ("body", str), ("linear", float, 0.0), ("angular", float, 0.0))
    penalty = struct(
        "Penalty", ("name", str), ("body", str), ("point", Vector, nothing), ("normal", Vector), ("offset", float, 0.0), ("stiffness", float),
        ("damping", float, 0.0), ("friction", float, 0.0), ("tangential", float, 0.0))
    start = struct(
        "Start", ("joint", str | None, None), ("body", str | None, None), ("value", Value, None), ("rate", Value, None),
        ("linear", Vector | None, None), ("angular", Vector | None, None))
    actuator = struct(
        "Actuator", ("name", str), ("arms", dict[str, float]), ("gain", float, 1.0), ("bias", Vector, nothing),
        ("control_range", Vector | None, None), ("force_range", Vector | None, None), ("reference", float, 0.0), ("control", float, 0.0),
        ("servo", bool, False))
    rough = (("friction_direction", Vector | None, None), ("spin_friction", Fraction, None), ("rolling_friction", Fraction, None), ("stiffness", Fraction, None), ("damping", Fraction, None))
    ground = struct("Ground", *environment, *rough, ("normal", Vector), ("offset", float, 0.0), ("velocity", Vector, nothing))
    obstacle = struct("Obstacle", *environment, *rough, ("shape", anything), ("position", Vector, nothing), ("orientation", Vector, upright))
    terrain = struct("Terrain", *environment, ("heights", Matrix), ("origin", Vector), ("spacing", Vector))
    collider = struct(
        "Collider", ("name", str), ("body", str), ("shape", anything), ("position", Vector, nothing), ("orientation", Vector, upright),
        ("friction", Fraction, None), ("restitution", Fraction, None), *bits)
    point = struct(
        "ContactPoint", ("body", str), ("point", Vector), ("radius", float, 0.0), ("friction", Fraction, None), ("restitution", Fraction, None))
    pair = struct("Pair", ("between", list[str]), *rough, ("friction", float | Vector, 0.5), ("restitution", float, 0.0), ("collide", bool, True))
    sensor = struct(
        "Sensor", ("name", str), ("type", str), ("on", str), ("other", str | None, None), ("parameters", anything, msgspec.field(default_factory=dict)),
        ("noise", Vector), ("bias", Vector), ("seed", int, 0))
    lists = dict(
        joints=joint, gears=gear, maps=linear_map, paths=path, strands=strand, forces=force, drags=drag, penalties=penalty, wrenches=wrench, start=start, actuators=actuator, grounds=ground, obstacles=obstacle, terrains=terrain,
        colliders=collider, contact_points=point, pairs=pair, sensors=sensor, visuals=visual, report=str,
    )
    return struct(
        "File", ("format", int), ("name", str), ("gravity", Vector), ("bodies", list[body]),
        *((name, list[kind], empty) for name, kind in lists.items()))


def schema() -> dict[str, Any]:
    """The JSON schema of the format, with every joint's and every shape's parameters."""
    msgspec = msgspec_module()
    published = msgspec.json.schema(file_record())
    joint = published["$defs"]["Joint"]["properties"]
    joint["type"] = {"type": "string", "enum": sorted(TYPES)}
    known: Sequence[str] = sorted({f.name for kind in TYPES.values() for f in fields(kind)})
    joint["parameters"] = {"type": "object", "propertyNames": {"enum": list(known)}, "default": {},
                           "description": "; ".join(f"{n}: {', '.join(f.name for f in fields(k))}" for n, k in sorted(TYPES.items()))}
    joint["parameters"]["properties"] = {"servo": {"anyOf": [{"$ref": "#/$defs/Servo"}, {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Servo"}, {"const": ""}]}}]}}
    published["$defs"]["Servo"] = {
        "type": "object", "required": ["stiffness"], "additionalProperties": False,
        "properties": {f.name: {"type": "number"} for f in fields(Servo)} | {"bound": {"anyOf": [{"type": "number"}, {"const": "inf"}], "default": "inf"}, "follows": {"enum": ["position", "rate"], "default": "position"}},
    }
    joint["parameters"]["properties"]["bearing"] = {"$ref": "#/$defs/Bearing"}
    published["$defs"]["Bearing"] = {
        "type": "object", "required": ["friction", "radius"], "additionalProperties": False,
        "properties": {f.name: {"type": "number"} for f in fields(Bearing)} | {"length": {"anyOf": [{"type": "number"}, {"const": "inf"}], "default": "inf"}},
    }
    for part in ("first", "second"):
        joint["parameters"]["properties"][part] = {"$ref": "#/$defs/JointPart"}
    published["$defs"]["JointPart"] = {
        "type": "object", "required": ["type"],
        "properties": {"type": joint["type"], "parameters": joint["parameters"]},
    }
    published["$defs"]["Sensor"]["properties"]["type"] = {"type": "string", "enum": sorted(SENSOR_KINDS)}
    published["$defs"]["Shape"] = {"type": "object", "required": ["type"], "properties": {"type": {"type": "string", "enum": sorted(SHAPES)}}}
    for owner in ("Body", "Visual"):
        published["$defs"][owner]["properties"]["shape"] = {"anyOf": [{"$ref": "#/$defs/Shape"}, {"type": "null"}], "default": None}
    for owner in ("Obstacle", "Collider"):
        published["$defs"][owner]["properties"]["shape"] = {"$ref": "#/$defs/Shape"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "dalembert model", **published}


def msgspec_module() -> Any:
    try:
        import msgspec
    except ImportError:
        raise MissingExtraError("dalembert's own model files need msgspec: pip install dalembert[model]") from None
    return msgspec
