"""Actuators of an MJCF model: those whose force is a straight line in control, length and speed, on joints or tendons.

Where a joint's one actuator holds it at a position, its gains become the joint's servo.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dalembert.io.mjcf.source import Source
from dalembert.io.mjcf.tendons import joint_weights
from dalembert.mechanism.actuators import Actuator
from dalembert.mechanism.forces import Servo

#: fields of actuators that only some versions of MuJoCo have, and what they ask for
NEWER = {"actuator_armature": "armature", "actuator_damping": "damping", "actuator_dampingpoly": "damping", "actuator_delay": "delay"}


def count(source: Source) -> int:
    return len(source.model.actuator_trntype)


def pulled_joints(source: Source) -> set[int]:
    """Joints of the file that some actuator pulls on."""
    return {j for k in range(count(source)) for j in _joint_arms(source, k)}


def pulled_tendons(source: Source) -> set[int]:
    """Tendons that some actuator pulls on."""
    return {int(source.model.actuator_trnid[k, 0]) for k in range(count(source)) if _kind(source, k) == "tendon" and _why_not(source, k) == ""}


def _kind(source: Source, k: int) -> str:
    return source.mj.mjtTrn(int(source.model.actuator_trntype[k])).name.removeprefix("mjTRN_").lower()


def _why_not(source: Source, k: int) -> str:
    """Why an actuator is left out altogether; empty when it is not."""
    model, mj = source.model, source.mj
    if not source.options.actuators:
        return "actuators=False"
    if model.opt.disableactuator & (1 << int(model.actuator_group[k])) if 0 <= model.actuator_group[k] < 31 else False:
        return "its group is switched off"
    if source.disabled("ACTUATION"):
        return "the file switches actuation off"
    if mj.mjtDyn(int(model.actuator_dyntype[k])) not in (mj.mjtDyn.mjDYN_NONE, mj.mjtDyn.mjDYN_FILTER, mj.mjtDyn.mjDYN_FILTEREXACT):
        return "its activation has dynamics of its own"
    if mj.mjtGain(int(model.actuator_gaintype[k])) != mj.mjtGain.mjGAIN_FIXED:
        return "its gain is not constant"
    if mj.mjtBias(int(model.actuator_biastype[k])) not in (mj.mjtBias.mjBIAS_NONE, mj.mjtBias.mjBIAS_AFFINE):
        return "its force is no straight line in length and speed"
    if source.extra("actuator_ctrlnum", k) > 1:
        return "it has several controls"
    return ""


def _joint_arms(source: Source, k: int) -> dict[int, float]:
    """Hinges and slides that an actuator pulls on, by index, with the arm of each."""
    model, mj = source.model, source.mj
    if _why_not(source, k):
        return {}
    target, gear = int(model.actuator_trnid[k, 0]), float(model.actuator_gear[k, 0])
    if _kind(source, k) in ("joint", "jointinparent"):
        single = mj.mjtJoint(int(model.jnt_type[target])) in (mj.mjtJoint.mjJNT_HINGE, mj.mjtJoint.mjJNT_SLIDE)
        return {target: gear} if single else {}
    if _kind(source, k) == "tendon":
        return {j: gear * weight for j, weight in joint_weights(source, target).items()}
    return {}


def servos(source: Source) -> dict[int, Servo]:
    """Joints of the file whose one actuator is a servo, with that servo."""
    found: dict[int, Servo] = {}
    for k in range(count(source)):
        joints = _joint_arms(source, k)
        if len(joints) == 1 and (servo := _record(source, k, {"": joints[next(iter(joints))]}, joints).as_servo()) is not None:
            j = next(iter(joints))
            if sum(j in _joint_arms(source, i) for i in range(count(source))) == 1:
                found[j] = servo
    return found


def add_actuators(source: Source) -> None:
    for k in range(count(source) if source.options.actuators else 0):
        _add(source, k)


def _add(source: Source, k: int) -> None:
    model, name, why = source.model, source.name("actuator", k), _why_not(source, k)
    joints, target = _joint_arms(source, k), int(model.actuator_trnid[k, 0])
    arms = {source.joint(j): arm for j, arm in joints.items() if j in source.joints}
    if not why and _kind(source, k) == "tendon" and target in source.tendons:
        arms = {source.tendons[target]: float(model.actuator_gear[k, 0])}
    if why or not arms:
        source.report.append(f"actuator {name!r} is not simulated: {why or f'it acts on a {_kind(source, k)} that no single coordinate stands for'}")
        return
    if model.actuator_dyntype[k] != source.mj.mjtDyn.mjDYN_NONE:
        source.report.append(f"actuator {name!r}: its control acts at once, without the filter of {model.actuator_dynprm[k, 0]:g} s")
    for field, what in NEWER.items():
        if source.extra(field, k):
            source.report.append(f"actuator {name!r}: its {what} is not simulated")
    follows = any(j in source.joints and source.joints[j].servo is not None for j in joints)
    source.mechanism.actuators[name] = replace(_record(source, k, arms, joints), servo=follows)


def _record(source: Source, k: int, arms: dict[str, float], joints: dict[int, float]) -> Actuator:
    """An actuator that pulls with ``arms``; ``joints``: the same by the file's indices, empty for a path."""
    model = source.model
    affine = model.actuator_biastype[k] == source.mj.mjtBias.mjBIAS_AFFINE
    control = int(getattr(model, "actuator_ctrladr", range(count(source)))[k])
    return Actuator(
        name=source.name("actuator", k), arms=arms, gain=float(model.actuator_gainprm[k, 0]),
        bias=tuple(float(v) for v in (model.actuator_biasprm[k, :3] if affine else np.zeros(3))),  # type: ignore[arg-type]
        control_range=_range(model.actuator_ctrllimited[control], model.actuator_ctrlrange[control]) if not source.disabled("CLAMPCTRL") else None,
        force_range=_force_range(source, k, list(joints)),
        reference=sum(arm * float(model.qpos0[model.jnt_qposadr[j]]) for j, arm in joints.items()),
        control=0.0 if source.key is None else float(model.key_ctrl[source.key, control]),
    )


def _range(limited: Any, values: np.ndarray) -> tuple[float, float] | None:
    return (float(values[0]), float(values[1])) if limited else None


def _force_range(source: Source, k: int, joints: list[int]) -> tuple[float, float] | None:
    """The bounds of an actuator's force: its own, and those of the joint that it alone pulls on."""
    model = source.model
    own = _range(model.actuator_forcelimited[k], model.actuator_forcerange[k])
    bounded = [j for j in joints if model.jnt_actfrclimited[j]]
    if not bounded:
        return own
    if len(joints) > 1 or sum(joints[0] in _joint_arms(source, i) for i in range(count(source))) > 1:
        source.report += [f"joint {source.name('joint', j)!r}: the bounds of what all its actuators do together are not enforced" for j in bounded]
        return own
    arm = _joint_arms(source, k)[joints[0]]
    if not arm:
        return own
    low, high = sorted(float(v) / arm for v in model.jnt_actfrcrange[joints[0]])
    return (low, high) if own is None else (max(low, own[0]), min(high, own[1]))
