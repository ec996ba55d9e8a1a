"""Mechanisms as plain data, and as the text of a model file."""
from __future__ import annotations

import base64
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError
from dalembert.io.native.records import FORMAT, LAWS, TYPES, msgspec_module
from dalembert.io.whole import write_whole
from dalembert.mechanism.bearings import Bearing
from dalembert.mechanism.environment import Collider, ContactPoint, Ground, HeightField, Obstacle, PairLaw
from dalembert.mechanism.forces import Drag, Penalty, PointForce, Servo
from dalembert.mechanism.forces import Path as LinePath
from dalembert.mechanism.joints import Joint
from dalembert.mechanism.maps import CoordinateMap
from dalembert.mechanism.mechanism import Body, Coupling, JointElement, Mechanism
from dalembert.mechanism.sensors import Sensor
from dalembert.mechanism.shapes import Composite, Shape
from dalembert.mechanism.strands import Strand
from dalembert.mechanism.visuals import Mesh, Visual

Surface = Ground | Obstacle | HeightField | Collider | ContactPoint


def to_data(mechanism: Mechanism) -> dict[str, Any]:
    """A mechanism as plain dicts, lists, numbers and words."""
    functions = [*(path for path in mechanism.paths if path.law is not None), *mechanism.force_laws, *mechanism.constraints, *(m for m in mechanism.maps if m.function is not None)]
    if functions:
        raise ModelError(f"no model file can hold a Python function, and {mechanism.name!r} has those of: {', '.join(map(repr, functions))}")
    data: dict[str, Any] = dict(
        format=FORMAT, name=mechanism.name, gravity=_plain(mechanism.gravity),
        bodies=[_body(mechanism, body) for body in mechanism.bodies], joints=[_joint(j) for j in mechanism.joints],
    )
    optional = dict(
        gears=[_gear(c) for c in mechanism.couplings],
        maps=[_map(m) for m in mechanism.maps],
        paths=[_path(p) for p in mechanism.paths], strands=[_strand(s) for s in mechanism.strands], forces=[_on_body(f) for f in mechanism.point_forces],
        drags=[_on_body(d) for d in mechanism.drags], penalties=[_on_body(p) for p in mechanism.penalties],
        grounds=[_on_body(e) for e in mechanism.grounds], obstacles=[_on_body(e) for e in mechanism.obstacles],
        terrains=[_on_body(e) for e in mechanism.terrains], colliders=[_on_body(e) for e in mechanism.colliders],
        contact_points=[_on_body(e) for e in mechanism.contact_points],
        pairs=[_pair(names, law) for names, law in mechanism.pair_laws.items()],
        wrenches=[dict(body=name, force=_plain(w[:3]), torque=_plain(w[3:])) for name, w in mechanism.wrenches.items()],
        start=[*(_drop(dict(joint=n, value=_plain(v), rate=_plain(r))) for n, (v, r) in mechanism.initial_joints.items()),
               *(_drop(dict(body=n, linear=_plain(v), angular=_plain(w))) for n, (v, w) in mechanism.initial_velocities.items())],
        actuators=[_drop({k: _plain(v) for k, v in asdict(a).items()}) for a in mechanism.actuators.values()],
        sensors=[_sensor(s) for s in mechanism.sensors],
        visuals=[_visual(v) for v in mechanism.visuals.get("world", [])], report=list(mechanism.report),
    )
    return {**data, **{name: value for name, value in optional.items() if value}}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return asdict(value) if isinstance(value, Servo | Bearing) else value


def _drop(data: dict[str, Any]) -> dict[str, Any]:
    """Without entries that are None: TOML has no word for it."""
    return {k: v for k, v in data.items() if v is not None}


def _body(mechanism: Mechanism, body: Body) -> dict[str, Any]:
    data: dict[str, Any] = dict(name=body.name, mass=body.mass, inertia=_plain(body.inertia), position=_plain(body.position), orientation=_plain(body.orientation))
    if body.shape is not None:
        data["shape"] = _shape(body.shape)
    if body.collide:
        data["collide"] = True
    if body.name in mechanism.visuals:
        data["visuals"] = [_visual(v) for v in mechanism.visuals[body.name]]
    return data


def _shape(shape: Shape) -> dict[str, Any]:
    if isinstance(shape, Composite):
        return dict(type="Composite", parts=[dict(shape=_shape(s), position=_plain(p), orientation=_plain(q)) for s, p, q in shape.parts])
    names = [f.name for f in fields(shape) if f.init and f.name != "density"]  # type: ignore[arg-type]
    return _drop(dict(type=type(shape).__name__, **{name: _plain(getattr(shape, name)) for name in names}))


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
    data: dict[str, Any] = dict(name=joint.name, **_kind(joint.type, joint.name), parent=joint.parent.name, child=joint.child.name)
    for name in ("point_parent", "point_child", "frame_parent", "frame_child"):
        data[name] = _plain(getattr(joint, name))
    return data


def _kind(kind: Joint, name: str) -> dict[str, Any]:
    """The type of a joint with its parameters."""
    if TYPES.get(type(kind).__name__) is not type(kind):
        raise ModelError(f"joint {name!r} is of the type {type(kind).__name__}, which is not in the joint table: no file can hold it")
    parameters: dict[str, Any] = {}
    for field, given in kind.describe().items():
        value = _kind(given, name) if isinstance(given, Joint) else _plain(given)
        if value is None or (field in LAWS and _says_nothing(value)):
            continue
        parameters[field] = _worded(value) if field in ("drive", "limits", "servo", "bearing") else value
    return dict(type=type(kind).__name__, **(dict(parameters=parameters) if parameters else {}))


def _says_nothing(law: Any) -> bool:
    """True for a law that is zero, absent or unlimited in every direction."""
    if isinstance(law, list):
        return all(_says_nothing(v) for v in law)
    return law is None or (isinstance(law, float) and (np.isinf(law) or (law == 0.0 and not np.signbit(law))))


def _worded(value: Any) -> Any:
    """With words for what JSON or TOML has no number for: "" for None, "inf" and "-inf"."""
    if isinstance(value, list):
        return [_worded(v) for v in value]
    if isinstance(value, dict):
        return {name: _worded(v) for name, v in value.items()}
    if value is None:
        return ""
    return str(value) if isinstance(value, float) and np.isinf(value) else value


def _on_body(element: Surface | PointForce | Drag | Penalty) -> dict[str, Any]:
    """Something that touches or pushes; the body it is on goes by its name."""
    data = _values(element)
    if "body" in data:
        data["body"] = data["body"].name
    if "shape" in data:
        data["shape"] = _shape(data["shape"])
    return _drop({name: _plain(value) for name, value in _joined(data).items()})


def _values(element: Any) -> dict[str, Any]:
    """Fields by name, in the order in which they are given."""
    return {field.name: getattr(element, field.name) for field in sorted(fields(element), key=lambda field: bool(field.kw_only))}


def _pair(names: frozenset[str], law: PairLaw) -> dict[str, Any]:
    """How two things touch; that in whose frame a direction of friction is comes first."""
    data = _joined(_values(law))
    first = data.pop("direction_of")
    return _drop(dict(between=sorted(names, key=lambda name: (name != first, name)), **{name: _plain(value) for name, value in data.items()}))


def _joined(data: dict[str, Any]) -> dict[str, Any]:
    """Friction along a direction and across it as one entry of two numbers."""
    across = data.pop("friction_across", None)
    return data if across is None else data | dict(friction=[data["friction"], across])


def _map(element: CoordinateMap) -> dict[str, Any]:
    joints = [dict(joint=joint.name, direction=direction) for joint, direction in zip(element.joints, element.directions)]
    return dict(name=element.name, joints=joints, matrix=_plain(element.matrix), offset=_plain(element.offset), near=_plain(element.near))


def _strand(strand: Strand) -> dict[str, Any]:
    points = [dict(body=body.name, point=_plain(point)) for body, point in zip(strand.bodies, strand.points)]
    return dict(name=strand.name, points=points, paths=[path.name for path in strand.paths], radius=strand.radius, colour=_plain(strand.colour))


def _path(path: LinePath) -> dict[str, Any]:
    points = [dict(body=body.name, point=_plain(point)) for body, point in zip(path.bodies, path.points)]
    laws = dict(stiffness=path.stiffness, damping=path.damping, rest=path.rest, pulls=path.pulls)
    return _drop(dict(name=path.name, points=points, **laws, drive=path.drive))


def _gear(gear: Coupling) -> dict[str, Any]:
    return dict(
        name=gear.name, first=gear.first.name, second=gear.second.name, ratio=gear.ratio, offset=gear.offset,
        directions=[gear.first_direction, gear.second_direction],
    )


def _sensor(sensor: Sensor) -> dict[str, Any]:
    parameters = {field.name: _plain(getattr(sensor.kind, field.name)) for field in fields(sensor.kind)}
    other = None if sensor.other is None else sensor.other.name
    return _drop(dict(
        name=sensor.name, type=type(sensor.kind).__name__, on=sensor.on.name, other=other, **(dict(parameters=parameters) if parameters else {}),
        noise=_plain(sensor.noise), bias=_plain(sensor.bias), seed=sensor.seed,
    ))


def dumps(mechanism: Mechanism, ending: str = ".json") -> bytes:
    """The text of a model file, JSON or TOML by its ending."""
    msgspec = msgspec_module()
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
    with write_whole(path) as temporary:
        temporary.write_bytes(text)
