"""From a mechanism to its model: one record per element, rows chosen by the joint table."""
from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.linalg.blocks import BLOCK, VECTOR, aligned_zeros
from dalembert.linalg.schedule import Schedule
from dalembert.mechanism.joints import Joint
from dalembert.mechanism.mechanism import JointElement, Mechanism
from dalembert.model.compile_forces import Shared, compile_couplings, compile_loads
from dalembert.model.functions import watched
from dalembert.model.own_rows import OWN_ROWS, build
from dalembert.model.pose import evaluate_pose
from dalembert.model.records import (
    BODY,
    BODY_WORK,
    COMPLIANT,
    COUPLING_WORK,
    DIRECTION_KINDS,
    END_WORK,
    JOINT,
    JOINT_WORK,
    MOVING,
    ROTATION,
    TRANSLATION,
    Model,
    Work,
)


def compile_model(mechanism: Mechanism) -> Model:
    """The model of a mechanism as it is now."""
    count = len(mechanism.bodies)
    bodies = np.zeros(count + 1, BODY)
    for body in mechanism.bodies:
        record = bodies[body.index]
        record["mass"] = body.mass
        record["inertia"] = body.inertia.ravel()
        record["inertia_inverse"] = np.linalg.inv(body.inertia).ravel()
        record["length"] = np.sqrt(np.trace(body.inertia) / (2.0 * body.mass))
        record["wrench"] = mechanism.wrenches.get(body.name, np.zeros(6))
    joints = np.zeros(len(mechanism.joints), JOINT)
    for element in mechanism.joints:
        _write_joint(joints[element.index], element, count)
    shared = Shared(count)
    couplings = compile_couplings(mechanism, shared)
    loads = compile_loads(mechanism, shared)
    follows, active = np.flatnonzero(joints["follows"].any(axis=1)), np.flatnonzero(joints["active"])
    model = Model(
        bodies, joints, couplings, np.array(mechanism.gravity, dtype=float), follows, active,
        np.array(shared.ends, dtype=np.int32), shared.point_records(), loads, shared.leg_records(), np.zeros(0),
    )
    with watched(mechanism):
        _set_softness(model, mechanism)
    return _read_only(model)


def _read_only(model: Model) -> Model:
    """The same numbers, and one type for all kernels."""
    model = Model(*(array.view() for array in model))
    for array in model:
        array.flags.writeable = False
    return model


def new_work(model: Model) -> Work:
    """Scratch for a model, without a graph: enough to evaluate poses."""
    bodies, joints, couplings = (np.zeros(len(a), d) for a, d in zip(model[:3], (BODY_WORK, JOINT_WORK, COUPLING_WORK)))
    ends, most = np.zeros(len(model.ends), END_WORK), max([1, *model.couplings["ends"], *model.loads["ends"]])
    bodies["q"][:, 0] = bodies["qn"][:, 0] = 1.0
    bodies["R"] = bodies["Rn"] = np.eye(3).ravel()
    for array in (bodies, joints, couplings):
        array["node"] = array["diagonal"] = -1
    empty = Schedule(*(np.zeros(0, np.int64) for _ in Schedule._fields))
    return Work(bodies, joints, couplings, ends, np.zeros((len(bodies), 6)), np.zeros((12, 12)), np.zeros((12, 12)), np.zeros(1 + 13 * most), np.zeros(4 + 6 * most), aligned_zeros(0, BLOCK), empty, aligned_zeros(0, VECTOR))


def reference_pose(mechanism: Mechanism, work: Work) -> None:
    """Put the bodies where the mechanism was built, with targets of servos as given."""
    for joint in mechanism.joints:
        for i, servo in enumerate(joint.type.servo):  # type: ignore[arg-type]
            if servo is not None:
                work.joints["target"][joint.index, i] = servo.target
    for body in mechanism.bodies:
        work.bodies["x"][body.index], work.bodies["q"][body.index] = body.position, body.orientation


def _set_softness(model: Model, mechanism: Mechanism) -> None:
    """Give every row the scale of its compliance: G M^-1 G^T, the inverse of the inertia that it feels.

    A mechanism may hold grams and tonnes: one scale for all rows would not do.
    """
    work = new_work(model)
    reference_pose(mechanism, work)
    evaluate_pose(_read_only(model), work)
    bodies, joints = model.bodies, model.joints
    inverse = np.zeros((len(bodies), 6, 6))
    inverse[:-1, :3, :3] = np.eye(3) / bodies["mass"][:-1, None, None]
    inverse[:-1, 3:, 3:] = bodies["inertia_inverse"][:-1].reshape(-1, 3, 3)
    for G, end in (("Gp", "parent"), ("Gc", "child")):
        joints["soft"] += np.einsum("jkc,jcd,jkd->jk", work.joints[G], inverse[joints[end]], work.joints[G])
    joints["soft"][np.arange(6) >= joints["locks"][:, None]] = 1.0
    for coupling in model.couplings:
        ends = range(int(coupling["first"]), int(coupling["first"] + coupling["ends"]))
        coupling["soft"] = sum(work.ends["G"][e] @ inverse[model.ends[e]] @ work.ends["G"][e] for e in ends)


def _write_joint(record: np.void, element: JointElement, world: int) -> None:
    kind = element.type
    parent = element.frame_parent @ kind.basis
    child = element.frame_child @ kind.basis
    record["parent"] = element.parent.index if element.parent.index >= 0 else world
    record["child"] = element.child.index
    record["point_parent"], record["point_child"] = element.point_parent, element.point_child
    record["frame_parent"], record["frame_child"] = parent.ravel(), child.ravel()
    record["report_frame"] = element.frame_parent.ravel()
    record["free"] = kind.freedom
    for i, (name, axis) in enumerate(kind.directions):
        record["free_kind"][i] = DIRECTION_KINDS.index(name) if kind.has_rows else MOVING
        record["free_axis"][i] = axis
        record["driven"][i] = kind.drive[i] == "motion"  # type: ignore[index]
    for name, value in (("stiffness", kind.stiffness), ("rest", kind.rest), ("damping", kind.damping), ("armature", kind.armature)):
        record[name][: kind.freedom] = value
    balls = [i for i, (name, _) in enumerate(kind.directions) if name == "ball"]
    rest = Rotation.from_rotvec(record["rest"][balls]).as_matrix() if balls else np.eye(3)
    record["rest_frame"] = rest.ravel()
    record["row_direction"] = -1
    for i, servo in enumerate(kind.servo):  # type: ignore[arg-type]
        if servo is not None:
            record["servo_stiffness"][i], record["servo_damping"][i], record["servo_bound"][i] = servo.stiffness, servo.damping, servo.bound
            record["servo_rate"][i] = servo.follows == "rate"
        record["follows"][i] = record["driven"][i] or servo is not None
    record["active"] = any(record["stiffness"] > 0.0) or "force" in kind.drive or kind.bounded  # type: ignore[operator]
    if kind.has_rows:
        _write_rows(record, element, parent, child)


def _write_rows(record: np.void, element: JointElement, parent: np.ndarray, child: np.ndarray) -> None:
    """Lock rows by mobility class (Quaternion table 7), then driven rows, then compliant ones."""
    kind = element.type
    rows: list[tuple[int, np.ndarray, np.ndarray, float, int]] = []
    nothing = np.zeros(3)
    for k in _missing(kind.slides):
        rows.append((TRANSLATION, parent[:, k], nothing, 0.0, -1))
    if kind.extra:
        constant, record["pitch"] = build(element)
        rows.append((OWN_ROWS[kind.extra], parent[:, 0], nothing, constant, -1))
    rows += [(ROTATION, a, b, 0.0, -1) for a, b in _rotation_locks(kind, parent, child)]
    guards = _guards(kind)
    driven = [i for i in range(kind.freedom) if record["driven"][i]]
    rows += [(TRANSLATION if kind.directions[i][0] == "slide" else ROTATION,
              parent[:, kind.directions[i][1]], nothing, 0.0, i) for i in driven]
    locks = len(rows)
    rows += [(COMPLIANT, nothing, nothing, 0.0, i) for i in range(kind.freedom)
             if (record["damping"][i] > 0.0 or record["armature"][i] > 0.0 or record["follows"][i]) and i not in driven]
    for k, (row, a, b, offset, direction) in enumerate(rows):
        record["row_kind"][k], record["row_direction"][k], record["row_offset"][k] = row, direction, offset
        record["row_a"][k], record["row_b"][k] = a, b
    for g, k in enumerate(guards):
        record["guard_a"][g], record["guard_b"][g] = child[:, k], parent[:, k]
    record["locks"], record["rows"] = locks, len(rows)
    record["firm"] = len(guards)
    record["guards"] = len(guards) + sum(kind.directions[i][0] != "slide" for i in driven)


def _missing(axes: str) -> list[int]:
    return [k for k, axis in enumerate("xyz") if axis not in axes]


def _rotation_locks(kind: Joint, parent: np.ndarray, child: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs (axis on the child, axis on the parent) that stay orthogonal; each holds a torque about a x b."""
    if len(kind.turns) == 0:
        return [(child[:, 1], parent[:, 2]), (child[:, 2], parent[:, 0]), (child[:, 0], parent[:, 1])]
    i = "xyz".index(kind.turns[0])
    j, k = (i + 1) % 3, (i + 2) % 3
    if len(kind.turns) == 1:
        return [(-child[:, i], parent[:, k]), (child[:, i], parent[:, j])]
    if len(kind.turns) == 2:
        return [(-child[:, j], parent[:, i])]
    return []


def _guards(kind: Joint) -> list[int]:
    """Axes that must not flip: all three of a locked rotation, the axis of a single turn."""
    return {0: [0, 1, 2], 1: ["xyz".index(kind.turns[0])] if kind.turns else []}.get(len(kind.turns), [])
