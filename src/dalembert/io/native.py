"""dalembert's own model files, TOML or JSON: everything that a mechanism holds, number for number.

Poses and joint frames are stored as the mechanism holds them, so that a mechanism read back gives the same
trajectory to the last bit. ``schema()`` is the published JSON schema of the format.
"""
from __future__ import annotations

import base64
import inspect
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError
from dalembert.io.hdf5 import _replacing
from dalembert.io.safety import read_model
from dalembert.mechanism import shapes as shape_table
from dalembert.mechanism.actuators import Actuator
from dalembert.mechanism.joints import JOINTS, Joint, PointSpring
from dalembert.mechanism.mechanism import Body, Coupling, JointElement, Mechanism, vector
from dalembert.mechanism.shapes import Composite, Primitive, Shape, check_mass
from dalembert.mechanism.visuals import Mesh, Visual

FORMAT = 1
TYPES: dict[str, type[Joint]] = {kind.__name__: kind for kind in (*JOINTS, PointSpring)}
SHAPES: dict[str, type[Shape]] = {
    name: kind for name, kind in vars(shape_table).items()
    if inspect.isclass(kind) and issubclass(kind, Shape) and not inspect.isabstract(kind) and not name.startswith("_")
}

# ---- writing


def to_data(mechanism: Mechanism) -> dict[str, Any]:
    """A mechanism as plain dicts, lists, numbers and words."""
    if mechanism.potentials:
        raise ModelError(f"potential {mechanism.potentials[0].name!r} of {mechanism.name!r} is a Python function, which no model file can hold")
    data: dict[str, Any] = dict(
        format=FORMAT, name=mechanism.name, gravity=_plain(mechanism.gravity),
        bodies=[_body(mechanism, body) for body in mechanism.bodies], joints=[_joint(j) for j in mechanism.joints],
    )
    world = mechanism.visuals.get("world")
    optional = dict(
        gears=[_gear(c) for c in mechanism.couplings],
        loads=[dict(body=name, force=_plain(w[:3]), torque=_plain(w[3:])) for name, w in mechanism.loads.items()],
        start=[*(_drop(dict(joint=n, value=_plain(v), rate=_plain(r))) for n, (v, r) in mechanism.initial_joints.items()),
               *(_drop(dict(body=n, linear=_plain(v), angular=_plain(w))) for n, (v, w) in mechanism.initial_velocities.items())],
        actuators=[_drop({k: _plain(v) for k, v in asdict(a).items()}) for a in mechanism.actuators.values()],
        visuals=[_visual(v) for v in world or []], report=list(mechanism.report),
    )
    return {**data, **{name: value for name, value in optional.items() if value}}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value


def _drop(data: dict[str, Any]) -> dict[str, Any]:
    """Without entries that are None: TOML has no word for it."""
    return {k: v for k, v in data.items() if v is not None}


def _body(mechanism: Mechanism, body: Body) -> dict[str, Any]:
    data: dict[str, Any] = dict(name=body.name, mass=body.mass, inertia=_plain(body.inertia), position=_plain(body.position), orientation=_plain(body.orientation))
    if body.shape is not None:
        data["shape"] = _shape(body.shape)
    if body.name in mechanism.visuals:
        data["visuals"] = [_visual(v) for v in mechanism.visuals[body.name]]
    return data


def _shape(shape: Shape) -> dict[str, Any]:
    if isinstance(shape, Composite):
        return dict(type="Composite", parts=[dict(shape=_shape(s), position=_plain(p), orientation=_plain(q)) for s, p, q in shape.parts])
    names = [f.name for f in fields(shape) if f.init and f.name != "density"]  # type: ignore[arg-type]
    return dict(type=type(shape).__name__, **{name: _plain(getattr(shape, name)) for name in names})


def _visual(visual: Visual) -> dict[str, Any]:
    geometry = visual.geometry
    if isinstance(geometry, Mesh):
        data: dict[str, Any] = dict(mesh=dict(vertices=_packed(geometry.vertices, "<f4"), faces=_packed(geometry.faces, "<i4")))
    else:
        data = dict(shape=_shape(geometry))
    return _drop(dict(**data, position=_plain(visual.position), orientation=_plain(visual.orientation), colour=_plain(visual.colour)))


def _packed(array: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()


def _joint(joint: JointElement) -> dict[str, Any]:
    kind = joint.type
    if TYPES.get(type(kind).__name__) is not type(kind):
        raise ModelError(f"joint {joint.name!r} is of the type {type(kind).__name__}, which is not in the joint table: no file can hold it")
    data: dict[str, Any] = dict(name=joint.name, type=type(kind).__name__, parent=joint.parent.name, child=joint.child.name)
    parameters: dict[str, Any] = {}
    for field in fields(kind):
        value = _plain(getattr(kind, field.name))
        if value is None or value == [] or _is_default(value):
            continue
        parameters[field.name] = ["" if v is None else v for v in value] if field.name == "drive" else value
    if parameters:
        data["parameters"] = parameters
    for name in ("point_parent", "point_child", "frame_parent", "frame_child"):
        data[name] = _plain(getattr(joint, name))
    return data


def _is_default(value: Any) -> bool:
    """True for laws that are zero or absent in every direction."""
    return isinstance(value, list) and all(v is None or (isinstance(v, float) and v == 0.0 and not np.signbit(v)) for v in value)


def _gear(gear: Coupling) -> dict[str, Any]:
    return dict(
        name=gear.name, first=gear.first.name, second=gear.second.name, ratio=gear.ratio, offset=gear.offset,
        directions=[gear.first_direction, gear.second_direction],
    )


def dumps(mechanism: Mechanism, ending: str = ".json") -> bytes:
    """The text of a model file, JSON or TOML by its ending."""
    msgspec = _msgspec()
    if mechanism.touches:
        raise ModelError(f"model files do not hold contacts, limits or dry friction yet, and {mechanism.name!r} has some")
    data = to_data(mechanism)
    try:
        if ending == ".toml":
            return msgspec.toml.encode(data)
        return msgspec.json.format(msgspec.json.encode(data), indent=1)
    except ImportError:
        raise MissingExtraError("writing TOML needs tomli-w: pip install dalembert[model]") from None


def save_native(mechanism: Mechanism, path: Path) -> None:
    """Write a mechanism to a .toml or .json file, which appears whole or not at all."""
    if path.suffix.lower() not in (".toml", ".json"):
        raise ModelError(f"cannot write a mechanism to {path}: choose an ending from .toml, .json")
    text = dumps(mechanism, path.suffix.lower())
    with _replacing(path) as temporary:
        temporary.write_bytes(text)


# ---- reading


def read_native(path: Path) -> Mechanism:
    """The mechanism of a .toml or .json file."""
    return loads(read_model(path), path.suffix.lower(), str(path))


def loads(text: bytes, ending: str, source: str) -> Mechanism:
    """The mechanism of a model file's text."""
    msgspec = _msgspec()
    try:
        decode = msgspec.toml.decode if ending == ".toml" else msgspec.json.decode
        data = decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ModelError(f"{source} is no valid {ending[1:].upper()}: {error}") from error
    try:
        checked = msgspec.convert(data, _records(msgspec))
    except msgspec.ValidationError as error:
        raise ModelError(f"{source} is no model of dalembert: {error}") from error
    if checked.format != FORMAT:
        raise ModelError(f"{source} has format {checked.format}; this version of dalembert reads format {FORMAT}")
    return _build(msgspec.to_builtins(checked))


def _build(data: dict[str, Any]) -> Mechanism:
    mechanism = Mechanism(data["name"], gravity=data["gravity"])
    for entry in data["bodies"]:
        name = entry["name"]
        shape = _read_shape(entry["shape"]) if entry["shape"] is not None else None
        mechanism._append_body(
            name, check_mass(entry["mass"], name), _inertia(entry["inertia"], name), vector(entry["position"], 3, f"position of body {name!r}"),
            _unit(entry["orientation"], f"orientation of body {name!r}"), shape,
        )
        if entry["visuals"] is not None:
            mechanism.visuals[name] = [_read_visual(v, name) for v in entry["visuals"]]
    for entry in data["joints"]:
        _read_joint(mechanism, entry)
    for entry in data["gears"]:
        mechanism.gear(entry["name"], entry["first"], entry["second"], ratio=entry["ratio"], offset=entry["offset"], directions=tuple(entry["directions"]))
    for entry in data["loads"]:
        mechanism.load(entry["body"], force=entry["force"], torque=entry["torque"])
    for entry in data["start"]:
        if (entry["joint"] is None) == (entry["body"] is None):
            raise ModelError("each entry of start names a joint or a body")
        name = entry["joint"] if entry["joint"] is not None else entry["body"]
        mechanism.start(name, entry["value"], rate=entry["rate"], linear=entry["linear"], angular=entry["angular"])
    for entry in data["actuators"]:
        if not isinstance(mechanism[entry["joint"]], JointElement):
            raise ModelError(f"actuator {entry['name']!r} needs a joint, got {entry['joint']!r}")
        tuples: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
        mechanism.actuators[entry["name"]] = Actuator(**tuples)
    if data["visuals"]:
        mechanism.visuals["world"] = [_read_visual(v, "world") for v in data["visuals"]]
    mechanism.report.extend(data["report"])
    return mechanism


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


def _read_joint(mechanism: Mechanism, entry: dict[str, Any]) -> None:
    name, parameters = entry["name"], dict(entry["parameters"])
    kind = TYPES.get(entry["type"])
    if kind is None:
        raise ModelError(f"joint {name!r} has the unknown type {entry['type']!r}; choose from: {', '.join(TYPES)}")
    unknown = set(parameters) - {f.name for f in fields(kind)}
    if unknown:
        raise ModelError(f"joint {name!r}: {entry['type']} has no parameter {sorted(unknown)[0]!r}")
    if "drive" in parameters and not isinstance(parameters["drive"], str):
        parameters["drive"] = tuple(v or None for v in parameters["drive"])
    tuples: dict[str, Any] = {k: tuple(tuple(w) if isinstance(w, list) else w for w in v) if isinstance(v, list) else v for k, v in parameters.items()}
    element = mechanism.joint(name, kind(**tuples), entry["parent"], entry["child"], at=((0, 0, 0), (1, 0, 0)))
    for field in ("point_parent", "point_child"):
        object.__setattr__(element, field, vector(entry[field], 3, f"{field} of joint {name!r}"))
    for field in ("frame_parent", "frame_child"):
        object.__setattr__(element, field, _frame(entry[field], f"{field} of joint {name!r}"))


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
    for key, value in values.items():  # directions are unit vectors already: do not round them once more
        object.__setattr__(shape, key, value)
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


# ---- the schema

def _records(msgspec: Any) -> Any:
    """The structure of a file, as msgspec types: what ``loads`` checks and ``schema`` publishes."""
    if "File" in _RECORDS:
        return _RECORDS["File"]
    Vector, Matrix = list[float], list[list[float]]

    def struct(name: str, *spec: tuple[Any, ...]) -> Any:
        return msgspec.defstruct(name, spec, forbid_unknown_fields=True, kw_only=True)

    empty = msgspec.field(default_factory=list)
    MeshRecord = struct("Mesh", ("vertices", str), ("faces", str))
    VisualRecord = struct("Visual", ("shape", dict[str, Any] | None, None), ("mesh", MeshRecord | None, None), ("position", Vector), ("orientation", Vector), ("colour", Vector | None, None))
    BodyRecord = struct(
        "Body", ("name", str), ("mass", float), ("inertia", Matrix), ("position", Vector), ("orientation", Vector),
        ("shape", dict[str, Any] | None, None), ("visuals", list[VisualRecord] | None, None))
    JointRecord = struct(
        "Joint", ("name", str), ("type", str), ("parent", str), ("child", str), ("parameters", dict[str, Any], msgspec.field(default_factory=dict)),
        ("point_parent", Vector), ("point_child", Vector), ("frame_parent", Matrix), ("frame_child", Matrix))
    GearRecord = struct("Gear", ("name", str), ("first", str), ("second", str), ("ratio", float), ("offset", float, 0.0), ("directions", list[int], msgspec.field(default_factory=lambda: [0, 0])))
    LoadRecord = struct("Load", ("body", str), ("force", Vector, msgspec.field(default_factory=lambda: [0.0] * 3)), ("torque", Vector, msgspec.field(default_factory=lambda: [0.0] * 3)))
    Value = float | list[float] | None
    StartRecord = struct("Start", ("joint", str | None, None), ("body", str | None, None), ("value", Value, None), ("rate", Value, None), ("linear", Vector | None, None), ("angular", Vector | None, None))
    ActuatorRecord = struct(
        "Actuator", ("name", str), ("joint", str), ("gain", float, 1.0), ("bias", Vector, msgspec.field(default_factory=lambda: [0.0] * 3)), ("gear", float, 1.0),
        ("control_range", Vector | None, None), ("force_range", Vector | None, None), ("reference", float, 0.0))
    _RECORDS["File"] = struct(
        "File", ("format", int), ("name", str), ("gravity", Vector), ("bodies", list[BodyRecord]), ("joints", list[JointRecord], empty), ("gears", list[GearRecord], empty),
        ("loads", list[LoadRecord], empty), ("start", list[StartRecord], empty), ("actuators", list[ActuatorRecord], empty),
        ("visuals", list[VisualRecord], empty), ("report", list[str], empty))
    return _RECORDS["File"]


_RECORDS: dict[str, Any] = {}


def schema() -> dict[str, Any]:
    """The JSON schema of the format, with every joint's and every shape's parameters."""
    msgspec = _msgspec()
    published = msgspec.json.schema(_records(msgspec))
    joint = published["$defs"]["Joint"]["properties"]
    joint["type"] = {"type": "string", "enum": sorted(TYPES)}
    known: Sequence[str] = sorted({f.name for kind in TYPES.values() for f in fields(kind)})
    joint["parameters"] = {"type": "object", "propertyNames": {"enum": list(known)}, "default": {},
                           "description": "; ".join(f"{n}: {', '.join(f.name for f in fields(k))}" for n, k in sorted(TYPES.items()))}
    published["$defs"]["Shape"] = {"type": "object", "required": ["type"], "properties": {"type": {"type": "string", "enum": sorted(SHAPES)}}}
    for owner in ("Body", "Visual"):
        published["$defs"][owner]["properties"]["shape"] = {"anyOf": [{"$ref": "#/$defs/Shape"}, {"type": "null"}], "default": None}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "dalembert model", **published}


def _msgspec() -> Any:
    try:
        import msgspec
    except ImportError:
        raise MissingExtraError("dalembert's own model files need msgspec: pip install dalembert[model]") from None
    return msgspec


__all__ = ["dumps", "loads", "read_native", "save_native", "schema", "to_data"]
