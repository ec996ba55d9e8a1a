"""Mechanisms from the text of a model file: checked piece by piece, and bit for bit what was written."""
from __future__ import annotations

import base64
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.checks import vector
from dalembert.errors import ModelError
from dalembert.io.budget import PER_BODY, Meter
from dalembert.io.native.records import FORMAT, SENSOR_KINDS, SHAPES, TYPES, file_record, msgspec_module
from dalembert.io.options import Options
from dalembert.io.safety import read_model
from dalembert.mechanism.actuators import Actuator
from dalembert.mechanism.bearings import Bearing
from dalembert.mechanism.forces import Path as LinePath
from dalembert.mechanism.forces import Servo
from dalembert.mechanism.joints import Joint
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism, rotation_matrix
from dalembert.mechanism.shapes import Composite, Primitive, Shape, check_mass
from dalembert.mechanism.strands import Strand
from dalembert.mechanism.visuals import Mesh, Visual

#: more parts of a dotted key than any model has: reading them takes time that grows with their square
DOTTED = re.compile(rb"""(?<![\w.-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")


def read_native(path: Path, options: Options, meter: Meter) -> Mechanism:
    """The mechanism of a .toml or .json file."""
    options.refuse("native", "merge_fixed", "base", "root", "mesh_density", "self_collisions", "actuators", "keyframe", "srdf", "position", "orientation", "decompose")
    return loads(read_model(path, meter), path.suffix.lower(), str(path), options, meter)


def loads(text: bytes, ending: str, source: str, options: Options | None = None, meter: Meter | None = None) -> Mechanism:
    """The mechanism of a model file's text."""
    msgspec = msgspec_module()
    _weigh(text, ending, source, meter or Meter(source))
    try:
        decode = msgspec.toml.decode if ending == ".toml" else msgspec.json.decode
        data = decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ModelError(f"{source} is no valid {ending[1:].upper()}: {error}") from error
    if isinstance(data, dict) and "loads" in data:
        raise ModelError(f"{source} has a list 'loads', which is now called 'wrenches': rename it")
    try:
        checked = msgspec.convert(data, file_record())
    except msgspec.ValidationError as error:
        raise ModelError(f"{source} is no model of dalembert: {error}") from error
    if checked.format != FORMAT:
        raise ModelError(f"{source} has format {checked.format}; this version of dalembert reads format {FORMAT}")
    return _build(msgspec.to_builtins(checked), options or Options(), meter or Meter(source))


def _weigh(text: bytes, ending: str, source: str, meter: Meter) -> None:
    """Spend what a text will take, before it is parsed: each comma and bracket stands for a number or a thing."""
    meter.elements(sum(text.count(mark) for mark in (b",", b"[", b"{", b"=")), "its text")
    if ending == ".toml" and DOTTED.search(text):
        raise ModelError(f"{source} has a dotted key of more than 64 parts")


def _build(data: dict[str, Any], options: Options, meter: Meter) -> Mechanism:
    mechanism = Mechanism(data["name"], gravity=data["gravity"])
    meter.elements(PER_BODY * len(data["bodies"]), "its bodies")
    meter.elements(sum(map(_corners, _shapes(data))), "corners of its convex shapes")
    for entry in data["bodies"]:
        name = entry["name"]
        shape = _read_shape(entry["shape"]) if entry["shape"] is not None else None
        if shape is None and entry["collide"]:
            raise ModelError(f"body {name!r} has no shape to collide with")
        mechanism._append_body(
            name, check_mass(entry["mass"], name), _inertia(entry["inertia"], name), vector(entry["position"], 3, f"position of body {name!r}"),
            _unit(entry["orientation"], f"orientation of body {name!r}"), shape, entry["collide"] and options.contacts,
        )
        if entry["visuals"] is not None:
            mechanism.visuals[name] = [_read_visual(v, name) for v in entry["visuals"]]
    for entry in data["joints"]:
        _read_joint(mechanism, entry, options)
    for entry in data["gears"]:
        mechanism.gear(entry["name"], entry["first"], entry["second"], ratio=entry["ratio"], offset=entry["offset"], directions=tuple(entry["directions"]))
    for entry in data["maps"]:
        joints = [(tied["joint"], tied["direction"]) for tied in entry["joints"]]
        mechanism.coordinate_map(entry["name"], joints, matrix=entry["matrix"], offset=entry["offset"], near=entry["near"])
    for entry in data["wrenches"]:
        mechanism.wrench(entry["body"], force=entry["force"], torque=entry["torque"])
    _read_forces(mechanism, data)
    for entry in data["start"]:
        if (entry["joint"] is None) == (entry["body"] is None):
            raise ModelError("each entry of start names a joint or a body")
        name = entry["joint"] if entry["joint"] is not None else entry["body"]
        mechanism.start(name, entry["value"], rate=entry["rate"], linear=entry["linear"], angular=entry["angular"])
    for entry in data["actuators"]:
        for joint in entry["arms"]:
            if not isinstance(mechanism[joint], JointElement | LinePath):
                raise ModelError(f"actuator {entry['name']!r} needs joints or paths, got {joint!r}")
        tuples: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
        mechanism.actuators[entry["name"]] = Actuator(**tuples)
    if options.contacts:
        _read_contacts(mechanism, data)
    for entry in data["sensors"]:
        if options.contacts or entry["other"] is None or entry["other"] in mechanism:
            _read_sensor(mechanism, entry)
    if data["visuals"]:
        mechanism.visuals["world"] = [_read_visual(v, "world") for v in data["visuals"]]
    mechanism.report.extend(data["report"])
    return mechanism


def _shapes(data: dict[str, Any]) -> list[Any]:
    """All shapes of a file."""
    entries = [*data["bodies"], *data["visuals"], *data["obstacles"], *data["colliders"], *(v for body in data["bodies"] for v in body["visuals"] or [])]
    return [entry["shape"] for entry in entries]


def _corners(shape: Any) -> float:
    """What the corners count as whose hull a shape is, its parts included: each is looked at with each face."""
    if not isinstance(shape, dict):
        return 0
    parts, points = shape.get("parts", ()), shape.get("points", ())
    own = len(points) ** 2 / 50 if isinstance(points, list) else 0
    return own + sum(_corners(part.get("shape")) for part in (parts if isinstance(parts, list) else ()) if isinstance(part, dict))


def _read_forces(mechanism: Mechanism, data: dict[str, Any]) -> None:
    """Paths, and forces on bodies."""
    for entry in data["paths"]:
        ends = [(mechanism._body(end["body"], f"path {entry['name']!r}"), vector(end["point"], 3, f"a point of path {entry['name']!r}")) for end in entry["points"]]
        laws = dict(stiffness=entry["stiffness"], damping=entry["damping"], length=entry["rest"], drive=entry["drive"])
        path = (mechanism.cable if entry["pulls"] else mechanism.path)(entry["name"], [(body, _in_world(body, p)) for body, p in ends], **laws)
        object.__setattr__(path, "points", np.array([point for _, point in ends]))
    for entry in data["strands"]:
        mechanism._append_strand(_read_strand(mechanism, entry))
    for entry in data["forces"]:
        point = vector(entry["point"], 3, f"point of force {entry['name']!r}")
        object.__setattr__(mechanism.force(entry["name"], entry["body"], entry["force"], follows=entry["follows"]), "point", point)
    for entry in data["drags"]:
        mechanism.drag(**entry)
    for entry in data["penalties"]:
        _keep(mechanism.penalty(**entry), normal=entry["normal"])


def _read_strand(mechanism: Mechanism, entry: dict[str, Any]) -> Strand:
    what = f"strand {entry['name']!r}"
    paths = tuple(mechanism[name] for name in entry["paths"])
    if len(paths) != len(entry["points"]) - 1 or not all(isinstance(path, LinePath) for path in paths):
        raise ModelError(f"{what} needs a path between each of its points and the next one, got {entry['paths']}")
    if not entry["radius"] > 0.0:
        raise ModelError(f"{what}: radius must be positive, got {entry['radius']}")
    points = np.array([vector(end["point"], 3, f"a point of {what}") for end in entry["points"]])
    colour: Any = tuple(vector(entry["colour"], 4, f"colour of {what}").tolist())
    return Strand(entry["name"], tuple(mechanism._body(end["body"], what) for end in entry["points"]), points, paths, entry["radius"], colour)


def _in_world(body: Body, point: np.ndarray) -> np.ndarray:
    return body.position + rotation_matrix(body.orientation) @ point


def _read_contacts(mechanism: Mechanism, data: dict[str, Any]) -> None:
    """What touches, and how pairs do."""
    for entry in data["grounds"]:
        _keep(mechanism.ground(**entry), normal=entry["normal"])
    for kind, add in (("obstacles", mechanism.obstacle), ("colliders", mechanism.collider)):
        for entry in data[kind]:
            element = add(**{**entry, "shape": _read_shape(entry["shape"])})
            _keep(element, orientation=_unit(entry["orientation"], f"orientation of {entry['name']!r}"))
    for entry in data["terrains"]:
        mechanism.height_field(**entry)
    for entry in data["contact_points"]:
        mechanism.contact_point(**entry)
    for entry in data["pairs"]:
        if len(entry["between"]) != 2:
            raise ModelError(f"a pair is between two, got {entry['between']}")
        mechanism.contact_pair(*entry.pop("between"), **entry)


def _keep(element: Any, **numbers: Any) -> None:
    """Directions and quaternions as they were written: they have length one already, and to scale them again would round them."""
    for name, value in numbers.items():
        array = np.array(value, dtype=float)
        if np.abs(array - getattr(element, name)).max() > 1e-9:
            raise ModelError(f"{name} of {element.name!r} must have length one, got {array.tolist()}")
        object.__setattr__(element, name, array)


def _inertia(value: Any, name: str) -> np.ndarray:
    inertia = np.array(value, dtype=float)
    if inertia.shape != (3, 3) or not np.isfinite(inertia).all() or not np.array_equal(inertia, inertia.T) or np.linalg.eigvalsh(inertia)[0] <= 0.0:
        raise ModelError(f"inertia of body {name!r} must be a symmetric positive definite 3x3 matrix")
    return inertia


def _unit(value: Any, what: str) -> np.ndarray:
    """A quaternion as it stands, if its length is one."""
    q = vector(value, 4, what)
    if abs(float(q @ q) - 1.0) > 1e-9:
        raise ModelError(f"{what} must have length one, got {q.tolist()}")
    return q


def _frame(value: Any, what: str) -> np.ndarray:
    R = np.array(value, dtype=float)
    if R.shape != (3, 3) or not np.isfinite(R).all() or np.abs(R @ R.T - np.eye(3)).max() > 1e-9 or np.linalg.det(R) < 0.0:
        raise ModelError(f"{what} must be a rotation matrix")
    return R


def _read_joint(mechanism: Mechanism, entry: dict[str, Any], options: Options) -> None:
    name, joint = entry["name"], _read_kind(entry, entry["name"], options)
    element = mechanism.joint(name, joint, entry["parent"], entry["child"], at=((0, 0, 0), (1, 0, 0)))
    for field in ("point_parent", "point_child"):
        object.__setattr__(element, field, vector(entry[field], 3, f"{field} of joint {name!r}"))
    for field in ("frame_parent", "frame_child"):
        object.__setattr__(element, field, _frame(entry[field], f"{field} of joint {name!r}"))


def _read_kind(entry: dict[str, Any], name: str, options: Options, depth: int = 0) -> Joint:
    """A joint's type with its parameters; of a composite one, those of its two parts too."""
    parameters = dict(entry.get("parameters", {}))
    kind = TYPES.get(entry.get("type", ""))
    if kind is None or depth > 6:
        raise ModelError(f"joint {name!r} has the unknown type {entry.get('type')!r}; choose from: {', '.join(TYPES)}")
    unknown = set(parameters) - {f.name for f in fields(kind)} - {"spring"}  # the joint itself says what became of that
    if unknown:
        raise ModelError(f"joint {name!r}: {entry['type']} has no parameter {sorted(unknown)[0]!r}")
    if not options.limits:
        parameters = {k: v for k, v in parameters.items() if k not in ("limits", "friction", "restitution", "bearing")}
    parameters |= {key: _numbered(parameters[key]) for key in ("limits", "servo", "bearing") if key in parameters}
    if "servo" in parameters:
        parameters["servo"] = _read_servos(parameters["servo"], name)
    if "bearing" in parameters:
        parameters["bearing"] = _read_bearing(parameters["bearing"], name)
    if "drive" in parameters and not isinstance(parameters["drive"], str):
        parameters["drive"] = tuple(v or None for v in parameters["drive"])
    for part in ("first", "second"):
        if part in parameters:
            if not isinstance(parameters[part], dict):
                raise ModelError(f"joint {name!r}: its {part} joint must have a type and may have parameters, got {parameters[part]!r}")
            parameters[part] = _read_kind(parameters[part], name, options, depth + 1)
    tuples: dict[str, Any] = {k: tuple(tuple(w) if isinstance(w, list) else w for w in v) if isinstance(v, list) else v for k, v in parameters.items()}
    try:
        return kind(**tuples)
    except ModelError as error:
        raise ModelError(f"joint {name!r}: {error}") from None


def _numbered(value: Any) -> Any:
    """With infinite numbers for the words "inf" and "-inf", which JSON has no numbers for."""
    if isinstance(value, list):
        return [_numbered(item) for item in value]
    if isinstance(value, dict):
        return {key: _numbered(item) for key, item in value.items()}
    return float(value) if value in ("inf", "-inf") else value


def _read_sensor(mechanism: Mechanism, entry: dict[str, Any]) -> None:
    name, kind, parameters = entry["name"], SENSOR_KINDS.get(entry["type"]), entry["parameters"]
    if kind is None:
        raise ModelError(f"sensor {name!r} has the unknown type {entry['type']!r}; choose from: {', '.join(SENSOR_KINDS)}")
    unknown = set(parameters) - {f.name for f in fields(kind)}
    if unknown:
        raise ModelError(f"sensor {name!r}: {entry['type']} has no parameter {sorted(unknown)[0]!r}")
    mechanism.sensor(name, kind(**parameters), entry["on"], other=entry["other"], noise=entry["noise"], bias=entry["bias"], seed=entry["seed"])


def _read_servos(value: Any, name: str) -> Servo | list[Servo | None]:
    """A servo, or a list of one or "" per free direction."""
    if isinstance(value, list):
        return [_read_servos(v, name) if v else None for v in value]  # type: ignore[misc]
    known = {f.name for f in fields(Servo)}
    if not isinstance(value, dict) or not {"stiffness"} <= set(value) <= known:
        raise ModelError(f"a servo of joint {name!r} has stiffness and may have {', '.join(sorted(known - {'stiffness'}))}, got {value!r}")
    try:
        return Servo(**value)
    except ModelError as error:
        raise ModelError(f"joint {name!r}: {error}") from None


def _read_bearing(value: Any, name: str) -> Bearing:
    known = {f.name for f in fields(Bearing)}
    if not isinstance(value, dict) or not {"friction", "radius"} <= set(value) <= known:
        raise ModelError(f"the bearing of joint {name!r} has friction and radius and may have length and thrust, got {value!r}")
    try:
        return Bearing(**value)
    except ModelError as error:
        raise ModelError(f"joint {name!r}: {error}") from None


def _read_shape(data: dict[str, Any], depth: int = 0) -> Shape:
    data = dict(data)
    name = data.pop("type", None)
    if name not in SHAPES or depth > 20:
        raise ModelError(f"unknown shape {name!r}; choose from: {', '.join(SHAPES)}")
    kind = SHAPES[name]
    if kind is Composite:
        parts = [(_read_shape(p["shape"], depth + 1), tuple(p["position"]), tuple(p["orientation"])) for p in data["parts"]]
        shape: Shape = Composite(parts=parts)
        object.__setattr__(shape, "parts", tuple(parts))
        return shape
    unknown = set(data) - {f.name for f in fields(kind)}  # type: ignore[arg-type]
    if unknown or not issubclass(kind, Primitive):
        raise ModelError(f"shape {name} has no parameter {sorted(unknown)}")
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    shape = kind(**values)
    if "axis" in values and not isinstance(values["axis"], str):  # a unit vector already: not to be rounded once more
        object.__setattr__(shape, "axis", values["axis"])
    return shape


def _read_visual(data: dict[str, Any], name: str) -> Visual:
    if (data["mesh"] is None) == (data["shape"] is None):
        raise ModelError(f"a visual of {name!r} must have either a shape or a mesh")
    geometry = _read_shape(data["shape"]) if data["shape"] is not None else _read_mesh(data["mesh"], name)
    colour = None if data["colour"] is None else tuple(vector(data["colour"], 4, f"colour of a visual of {name!r}").tolist())
    return Visual(geometry, vector(data["position"], 3, f"position of a visual of {name!r}"), _unit(data["orientation"], f"orientation of a visual of {name!r}"), colour)  # type: ignore[arg-type]


def _read_mesh(data: dict[str, str], name: str) -> Mesh:
    try:
        arrays = [np.frombuffer(base64.b64decode(data[key], validate=True), dtype=kind).reshape(-1, 3) for key, kind in (("vertices", "<f4"), ("faces", "<i4"))]
    except ValueError as error:
        raise ModelError(f"a mesh of {name!r} is damaged: {error}") from error
    return Mesh(*arrays)
