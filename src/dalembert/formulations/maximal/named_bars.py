"""Bars of a model's numbers by the names that parameters have: "elbow.damping", "upper.mass", "gravity"."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import GradientError
from dalembert.formulations.maximal.bars import Bars
from dalembert.mechanism.forces import Drag, Path, Penalty, PointForce
from dalembert.mechanism.mechanism import Body, Coupling, JointElement, Mechanism
from dalembert.mechanism.parameters import ALONG, GEOMETRY, SERVO, owners
from dalembert.model.records import Model
from dalembert.spatial import so3

#: where numbers of loads stand in their records (forces/bodies.py)
LOADS = {
    PointForce: dict(force=slice(3, 6), point=slice(0, 3)), Drag: dict(linear=0, angular=1),
    Penalty: dict(offset=6, stiffness=7, damping=8, friction=9, tangential=10),
}


def named_bar(mechanism: Mechanism, model: Model, bars: Bars, name: str, known: Mapping[str, Any] | None = None) -> np.ndarray | None:
    """The bar of a parameter, shaped as its value; None where no equation takes it. ``known``: the mechanism's ``owners``."""
    if name == "gravity":
        return bars.gravity.copy()
    owner, _, what = name.rpartition(".")
    element = (owners(mechanism) if known is None else known).get(owner)
    if isinstance(element, Body):
        return _of_body(mechanism, model, bars, element, what)
    if isinstance(element, JointElement):
        return _of_joint(bars.joints[element.index], element, what)
    if isinstance(element, Coupling) and what in ("ratio", "offset"):
        return np.array(bars.couplings[what][element.index])
    if isinstance(element, Path):
        return _of_path(model, bars, element, len(model.couplings) - len(mechanism.paths) + mechanism.paths.index(element), what)
    if type(element) in LOADS and what in LOADS[type(element)]:
        loads: list[Any] = [*mechanism.point_forces, *mechanism.drags, *mechanism.penalties]
        return np.array(bars.loads["numbers"][loads.index(element)][LOADS[type(element)][what]])
    return None


def _of_body(mechanism: Mechanism, model: Model, bars: Bars, body: Body, what: str) -> np.ndarray | None:
    bar = bars.bodies[body.index]
    if what == "mass":
        return np.array(bar["mass"])
    if what == "inertia":
        both = bar["inertia"].reshape(3, 3)
        return 0.5 * (both + both.T)
    if what in ("force", "torque"):
        return bar["wrench"][:3].copy() if what == "force" else bar["wrench"][3:].copy()
    if what == "centre_of_mass":
        return -points_on(mechanism, model, bars, body.index)
    return None


def points_on(mechanism: Mechanism, model: Model, bars: Bars, body: int) -> np.ndarray:
    """Sum of the bars of all points that elements have on a body."""
    total = bars.joints["point_parent"][model.joints["parent"] == body].sum(axis=0)
    total += bars.joints["point_child"][model.joints["child"] == body].sum(axis=0)
    total += bars.points["point"][model.points["body"] == body].sum(axis=0)
    for number, load in enumerate((*mechanism.point_forces, *mechanism.drags, *mechanism.penalties)):
        if load.body.index == body and not isinstance(load, Drag):
            total += bars.loads["numbers"][number, :3]
    return total


def _of_joint(bar: Any, element: JointElement, what: str) -> np.ndarray | None:
    kind, free = element.type, element.type.freedom
    if what in GEOMETRY:
        return bar[what] + (_of_built_length(bar, element, what) if what.startswith("point") else 0.0)
    if what in ("pitch", "length"):
        return np.array(bar[what])
    if what in SERVO:
        return _squeezed(bar[what][[i for i, servo in enumerate(kind.servo) if servo is not None]])  # type: ignore[arg-type]
    if what not in ("stiffness", "damping", "rest", "armature") or what not in ALONG:
        return None
    if what == "armature" and any(a == 0.0 and kind.drive[i] != "motion" for i, a in enumerate(kind.armature)):  # type: ignore[index, arg-type]
        raise GradientError(
            f"the armature of joint {element.name!r} is {kind.armature}: where it is zero, its derivative is one-sided and no equation has it. "
            "Give every direction a small positive one."
        )
    values = bar[what][:free].copy()
    balls = [i for i, (name, _) in enumerate(kind.directions) if name == "ball"]
    if what == "rest" and balls:
        values[balls] = to_rotvec_bar(np.asarray(kind.rest)[balls], bar["rest_turn"])
    return _squeezed(values)


def _of_built_length(bar: Any, element: JointElement, what: str) -> np.ndarray:
    """What a point adds through the length of a rod that keeps the one it was built with."""
    if element.type.extra != "distance" or element.type.length is not None:  # type: ignore[attr-defined]
        return np.zeros(3)
    turns = [Rotation.from_quat(body.orientation, scalar_first=True) for body in (element.parent, element.child)]
    ends = [body.position + turn.apply(p) for body, turn, p in zip((element.parent, element.child), turns, (element.point_parent, element.point_child))]
    line = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    return float(bar["length"]) * (turns[1].inv().apply(line) if what == "point_child" else -turns[0].inv().apply(line))


def _of_path(model: Model, bars: Bars, path: Path, index: int, what: str) -> np.ndarray | None:
    if what in ("stiffness", "damping", "rest"):
        return np.array(bars.couplings[what][index])
    if what == "points":
        first = int(model.couplings["first_point"][index])
        return bars.points["point"][first : first + len(path.points)].copy()
    return None


def _squeezed(values: np.ndarray) -> np.ndarray:
    return values[0].copy() if len(values) == 1 else values.copy()


def to_rotvec_bar(vector: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Bar of a rotation vector from that of a turn in the axes it leads to: exp(v + dv) = exp(v) exp(J_r dv)."""
    return np.array(so3.right_jacobian(tuple(vector))).reshape(3, 3).T @ turn
