"""Every public signature with a call that works, and what bad values do in the place of each argument.

A new public function must be named here with its call, or ``test_every_signature_is_known`` fails.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from arm import arm, same, summary

import dalembert as da
from dalembert.mechanism import sensors

NAN, INF = float("nan"), float("inf")
#: values that hardly ever make sense, by a name for messages
BAD: dict[str, Any] = {
    "None": None, "text": "no such thing", "empty text": "", "nan": NAN, "inf": INF, "-inf": -INF, "huge": 1e300, "-1": -1, "-1.5": -1.5,
    "half": 0.5, "complex": 1j, "object": object(), "dict": {}, "list": [], "ragged": [[1.0, 2.0], [3.0]], "matrix": np.zeros((2, 5)), "nans": (NAN, NAN, NAN),
    "texts": ("x", "y"), "bytes": b"x", "huge whole": 10**400, "class": dict, "two": Fraction(2), "nested": {"elbow": NAN}, "huge vector": (1e300, 0.0, 0.0),
}


@dataclass(frozen=True)
class Call:
    """A public function with arguments that it takes; ``of`` makes what it is called on, and ``look`` says what must not change of it."""

    title: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    of: Callable[[], Any] | None = None
    look: Callable[[Any], Any] = lambda owner: None
    later: Callable[[], Any] | None = None

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        found = inspect.signature(self.function).parameters
        return {name: p for name, p in found.items() if name not in ("self", "cls") and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}

    def bad(self) -> Iterator[tuple[str, str]]:
        """Names of parameters and of values to put in their place."""
        for name in self.parameters:
            for value in BAD:
                yield name, value


TRIANGLE = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
CORNERS = (*TRIANGLE, (0.0, 0.0, 1.0))
BALL = da.Sphere(radius=0.1, mass=1.0)
FRAMES = [(0.1 * k, 0, 0, 1, 0, 0, 0) for k in range(5)]
SURFACE = [[(0.1 * i, 0.1 * j, 0, 0, 0, 0) for j in range(4)] for i in range(4)]

#: stands for a trajectory, which is made when it is needed
LATER = object()

#: classes and functions by name with what they need
MADE: dict[str, dict[str, Any]] = {
    "Bearing": dict(friction=0.1, radius=0.01), "Box": dict(size=(1, 1, 1), mass=1.0), "Sphere": dict(radius=1.0, mass=1.0),
    "Capsule": dict(radius=0.1, length=1.0, mass=1.0), "Cylinder": dict(radius=0.1, length=1.0, mass=1.0), "Cone": dict(radius=0.1, length=1.0, mass=1.0), "Rod": dict(radius=0.1, length=1.0, mass=1.0),
    "Ellipsoid": dict(semi_axes=(1, 2, 2), mass=1.0), "Convex": dict(points=CORNERS, mass=1.0), "Composite": dict(parts=[(BALL, (0, 0, 0))]),
    "Mesh": dict(vertices=TRIANGLE, faces=[(0, 1, 2)]), "Servo": dict(stiffness=1.0), "Variational": dict(dt=0.01), "Implicit": dict(dt=0.01),
    "Reduced": dict(dt=0.01), "Mechanism": {}, "CompositeJoint": dict(first=da.Revolute(), second=da.Prismatic()), "SplineCurve": dict(frames=FRAMES),
    "SplineSurface": dict(frames=SURFACE), "load": dict(path="no such file.urdf"), "Budget": {}, "Placed": dict(shape=BALL, position=(0, 0, 0)), "Aim": dict(body="upper", position=(0, 0, 0)),
    "convex_parts": dict(points=TRIANGLE, triangles=[(0, 1, 2)]),  # refused before it takes long, as it has no mass
    "run_many": dict(mechanism=arm(), formulation=da.Variational(dt=0.01), duration=0.01),
    **{kind.__name__: {} for kind in da.JOINTS},  # type: ignore[attr-defined]
    **{name: {} for name in sensors.__all__},
}
#: methods of a mechanism
BUILDING: dict[str, dict[str, Any]] = {
    "body": dict(name="new", shape=BALL), "visual": dict(body="upper", geometry=BALL), "joint": dict(name="new", type=da.Spherical(), parent="world", child="lower"),
    "spring": dict(name="new", parent="world", child="lower", at=((0, 0, 0), (1, 0, 0))), "gear": dict(name="new", first="shoulder", second="elbow", ratio=2.0),
    "wrench": dict(body="upper"), "potential": dict(name="new", body="upper", energy=lambda x, q: 0.0), "start": dict(element="elbow"),
    "draw_graph": {}, "save": dict(path="model.toml"), "ground": {}, "obstacle": dict(name="new", shape=BALL), "height_field": dict(heights=np.zeros((3, 3))),
    "collider": dict(name="new", body="upper", shape=BALL), "contact_point": dict(body="upper"), "contact_pair": dict(a="upper", b="lower"),
    "path": dict(name="new", points=[("world", (0, 0, 0)), ("upper", (1, 0, 0))]), "force": dict(name="new", body="upper", force=(1, 0, 0)),
    "cable": dict(name="new", points=[("world", (0, 0, 0)), ("upper", (1, 0, 0))], stiffness=1.0), "drag": dict(name="new", body="upper"),
    "penalty": dict(name="new", body="upper", stiffness=1.0), "force_law": dict(name="new", bodies="upper", function=lambda x, q, v: np.zeros((1, 6))),
    "constraint": dict(name="new", bodies="upper", function=lambda x, q: 0.0), "coordinate_map": dict(name="new", joints=["elbow"], matrix=[1.0]),
    "sensor": dict(name="new", kind=da.Encoder(), on="elbow"),
    "strand": dict(name="new", points=[(0, 0, 0), (1, 0, 0), (2, 0, 0)], mass=1.0, stiffness=1.0),
    "copy": {}, "change": dict(element="elbow"), "attach": dict(other=da.Mechanism("other")),
}
#: methods of a simulation
ASKED: dict[str, dict[str, Any]] = {
    "coordinates": dict(joint="elbow"), "rates": dict(joint="elbow"), "path_length": dict(path="cord"), "path_rate": dict(path="cord"), "restore": {}, "sensor": dict(name="none"),
    "set_joint": dict(name="elbow", value=0.0), "set_joints": dict(coordinates={"elbow": 0.0}), "set_velocity": dict(body="lower"), "set_target": dict(joint="shoulder", target=0.0),
    "set_input": dict(name="elbow", value=0.0), "set_parameters": dict(values={}), "solve_pose": dict(wishes={}), "linearise": {}, "equilibrium": {}, "modes": {},
    "step_jacobian": {}, "view": {}, "step": {}, "check": {}, "run": dict(duration=0.01), "stream": dict(duration=0.01, folder="parts"), "follow": dict(joint="elbow", trajectory=LATER),
}
#: methods of a batch
TOGETHER: dict[str, dict[str, Any]] = {
    "parameters": {}, "state": dict(index=0), "failure": dict(index=0), "coordinates": {}, "rates": {}, "reset": {}, "restore": dict(index=0, state=da.State("of nothing", (0.0, 0, 0.01), np.zeros(1), np.zeros(1))), "set_parameters": dict(values={}),
    "step": {},
}
#: methods of a trajectory
READ: dict[str, dict[str, Any]] = {
    "body": dict(name="upper"), "joint": dict(name="elbow"), "path": dict(name="cord"), "strand": dict(name="none"), "coordinate_map": dict(name="none"),
    "coupling_force": dict(name="cord"), "least_norm": {}, "vjp": dict(cotangents={}, parameters=[]), "jvp": dict(tangents={}), "point": dict(body="upper", point=(0, 0, 0)),
    "save": dict(path="run.npz"), "load": dict(path="no such file.h5"), "plot": {}, "to_html": dict(path="run.html"), "to_gltf": dict(path="run.glb"), "snapshot": dict(path="run.png", size=(16, 16)),
    "to_video": dict(path="run.gif", size=(16, 16)), "view": {}, "sensor": dict(name="none"),
}
#: those that start something when they are called without a mistake, or that take long: bad arguments only, one at a time
HEAVY = ("least_norm", "view", "to_video", "draw_graph", "plot", "snapshot", "linearise", "equilibrium", "modes", "step_jacobian", "stream", "check", "run_many")
#: signatures that are no part of this: gradients check their own, tables of classes that users do not make
ELSEWHERE = ("validate_gradients", "value_and_gradient", "residuals_and_jacobian", "GradientCheck", "Trajectory", "State", "Moment", "Joint", "Simulation", "Algebra", "Ensemble", "Batch")
#: arguments of the algebra of the arm by name
VECTORS = dict.fromkeys(("q", "v", "a", "tau", "q0", "q1", "x", "dq", "dv", "da"), (0.1, 0.2)) | dict(body="upper", name="elbow", wrenches=np.zeros((2, 6)))


def calls(simulation: Callable[[], da.Simulation], trajectory: Callable[[], da.Trajectory]) -> list[Call]:
    """All public signatures; what they are called on is made when it is needed."""
    found = [Call(name, getattr(da, name), arguments) for name, arguments in MADE.items()]
    found += [Call(f"Mechanism.{name}", getattr(da.Mechanism, name), arguments, arm, summary) for name, arguments in BUILDING.items()]
    found += [Call(f"Simulation.{name}", getattr(da.Simulation, name), arguments, simulation, lambda s: s.state, trajectory) for name, arguments in ASKED.items()]
    found += [Call(f"Trajectory.{name}", getattr(da.Trajectory, name), arguments, None if name == "load" else trajectory) for name, arguments in READ.items()]
    found += [Call(f"Revolute.{name}", getattr(da.Revolute, name), dict(q=[0.1]), da.Revolute) for name in ("motion", "motion_columns")]
    found.append(Call("Simulation", da.Simulation, dict(mechanism=arm(), formulation=da.Variational(dt=0.01))))
    found += [Call(f"Batch.{name}", getattr(da.Batch, name), arguments, batch, lambda b: b.state(0)) for name, arguments in TOGETHER.items()]
    found.append(Call("Batch", da.Batch, dict(mechanism=arm(), formulation=da.Variational(dt=0.01), n=2)))
    found.append(Call("State.save", da.State.save, dict(path="state.npz"), lambda: simulation().state))
    found.append(Call("State.load", da.State.load, dict(path="no such file.npz")))
    found.append(Call("Ensemble.load", da.Ensemble.load, dict(path="no such file.h5")))
    return found


def batch() -> da.Batch:
    return da.Batch(arm(), da.Variational(dt=0.01), 2)


def algebra_calls(algebra: Callable[[], da.Algebra]) -> list[Call]:
    """What can be asked of the algebra of the arm."""
    found = []
    for name, method in inspect.getmembers(da.Algebra, inspect.isfunction):
        parameters = inspect.signature(method).parameters
        if not name.startswith("_") and len(parameters) > 1:
            found.append(Call(f"Algebra.{name}", method, {key: VECTORS[key] for key in parameters if key in VECTORS}, algebra))
    return [*found, Call("Algebra", da.Algebra, dict(mechanism=arm()))]


def zoo_calls() -> list[Call]:
    """The mechanisms of the zoo, and what belongs to them."""
    needed: dict[str, dict[str, Any]] = {
        "hoberman_exact": dict(time=[0.0, 0.1]), "hoberman_inertia": dict(opening=0.7), "hoberman_opening": dict(position=np.ones((3, 3))), "dance": dict(time=0.1),
        "exoskeleton_aims": dict(time=0.1),
        "satellite_drives": dict(panel=0.5), "walker_drives": dict(position=(0.0, 0.0, 0.6), rotation=np.eye(3)),
    }
    functions = {name: getattr(da.zoo, name) for name in da.zoo.__all__}
    return [Call(f"zoo.{name}", f, needed.get(name, {})) for name, f in functions.items() if inspect.isfunction(f) and inspect.signature(f).parameters]


def known() -> set[str]:
    """Names of all signatures that are looked at, or left to others."""
    return {*MADE, *ELSEWHERE, *(f"Mechanism.{n}" for n in BUILDING), *(f"Simulation.{n}" for n in ASKED), *(f"Trajectory.{n}" for n in READ), *(f"Batch.{n}" for n in TOGETHER), "Trajectory.point"}


def public() -> set[str]:
    """Names of all public signatures with parameters: of functions and classes that dalembert offers, and of the methods of the large ones."""
    found = set()
    for name in da.__all__:
        item = getattr(da, name)
        if inspect.isfunction(item) or (inspect.isclass(item) and not issubclass(item, BaseException)):
            found.add(item.__name__)
    for kind in (da.Mechanism, da.Simulation, da.Trajectory, da.Batch):
        for name, method in inspect.getmembers(kind, lambda m: inspect.isfunction(m) or inspect.ismethod(m)):
            if not name.startswith("_") and [p for p in inspect.signature(method).parameters if p not in ("self", "cls")]:
                found.add(f"{kind.__name__}.{name}")
    return found - {"Mechanism.load"}


# ---- what may be accepted

#: arguments that may be negative
SIGNED = {
    "rest", "target", "offset", "directions", "pitch", "gravity", "position", "point", "normal", "axis", "slot", "axes", "origin", "heights", "force", "torque", "at", "ratio",
    "value", "rate", "linear", "angular", "near", "matrix", "limits", "acceleration", "time", "energy_bound", "spin", "precession", "velocity", "angle", "number", "knots", "layer", "mask", "bias",
}
#: arguments of the zoo that are angles, rates, forces and places, or that mean something else below zero
ZOO_SIGNED = {
    "torque", "gravity", "orientation", "angle", "bend", "curvature", "curl", "rate", "displacement", "start", "velocity", "angular_velocity", "spin", "precession",
    "opening_rate", "takeoff", "push", "flight", "slope", "tilt", "raised", "disturbance", "clearance", "pull", "lever", "rest", "time", "position", "hinge_heights", "height",
    "panel", "axis", "ribs", "size", "period", "opening", "duration", "half_angle", "design", "rotation", "inertia", "cable", "anchor", "misalignment",
}
#: arguments that may be without end: all of these where they bound something
ENDLESS = {("Budget", "seconds"), ("Servo", "bound"), ("Bearing", "length")}


def may_take(call: Call, name: str, value: str) -> bool:
    """Whether a call may go through with such a value, by what its signature says; written apart from the checks themselves."""
    parameter = call.parameters[name]
    note, default = str(parameter.annotation), parameter.default
    words = set(note.replace("[", " ").replace("]", " ").replace(",", " ").replace("|", " ").split())
    if value == "None":
        return "None" in words or default is None or bool(words & {"Any", "Drive"})
    if value in ("nan", "nans", "complex", "ragged", "huge", "huge whole", "nested", "huge vector"):
        return ("axis" in name and value == "huge vector") or (name in ("slot", "normal") and value == "huge vector")
    if value in ("inf", "-inf"):
        return value == "inf" and (call.title, name) in ENDLESS
    if value == "empty text" and default == "":
        return True
    if value in ("text", "empty text"):
        return ("str" in words and not words & {"Body", "JointElement"} and value == "text") or (value == "text" and bool(words & {"Path", "FilePath"}))
    if value in ("-1", "-1.5", "half", "two"):
        numeric = bool(words & {"float", "int", "ArrayLike", "np.ndarray", "Input", "Given", "Target", "Any", "Vector"})
        fine = value == "two" or value == "half" or name in SIGNED or (call.title.startswith("zoo.") and name in ZOO_SIGNED)
        return numeric and fine and not (words >= {"int"} and not words & {"float"} and value in ("half", "-1.5"))
    if value == "dict":
        return bool(words & {"Mapping", "dict"})
    if value in ("list", "texts"):
        return bool(words & {"Sequence", "Iterable", "tuple", "Any", "ArrayLike", "np.ndarray"}) and not (value == "texts" and words & {"float", "ArrayLike"} and not words & {"str"})
    if value == "class":  # a controller may raise what it likes
        return bool(words & {"Callable", "Control", "ControlDerivative", "Law", "Energy", "Input", "Given", "Target"})
    if value == "matrix":
        return bool(words & {"ArrayLike", "np.ndarray", "Any"}) and name in ("heights", "time", "points", "position", "x")
    return False


#: what calls are made on, and how it looks, until one goes through
_kept: dict[Any, tuple[Any, Any]] = {}


def try_bad(call: Call, name: str, value: str) -> str:
    """What is wrong with how a call answers a bad value; empty where nothing is."""
    given = {key: call.later() if item is LATER and call.later is not None else item for key, item in call.arguments.items()}
    arguments = {**given, name: BAD[value]}
    if call.of is not None and call.of not in _kept:
        owner = call.of()
        _kept[call.of] = owner, call.look(owner)
    owner, before = _kept[call.of] if call.of is not None else (None, None)
    what = f"{call.title}({name}={value})"
    try:
        call.function(*([] if owner is None else [owner]), **arguments)
    except da.DalembertError:
        problem = ""
    except TypeError as error:
        named = name in str(error) and "argument" in str(error)
        problem = "" if named or (name == "control" and value == "class") else f"{what}: foreign TypeError: {error}"
    except FileNotFoundError:
        problem = "" if name != "path" or value == "text" else f"{what}: FileNotFoundError"
    except Exception as error:
        problem = f"{what}: foreign {type(error).__name__}: {error}"
    else:
        _kept.clear()
        return "" if may_take(call, name, value) else f"{what}: silent"
    if not problem and owner is not None:
        after = call.look(owner)
        if not (same(after, before) if isinstance(after, da.State) and isinstance(before, da.State) else after == before):
            problem = f"{what}: refused, but something changed"
            _kept.clear()
    return problem
