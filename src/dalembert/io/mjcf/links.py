"""Bodies and joints of an MJCF model."""
from __future__ import annotations

import numpy as np

from dalembert.io.mjcf.source import Source, listed, rotation, softened
from dalembert.io.robot import Link, LinkJoint
from dalembert.mechanism.forces import Servo


def read_links(source: Source, pulled: set[int], servos: dict[int, Servo]) -> None:
    """All bodies as links. ``pulled``: joints that take a force; ``servos``: those of joints that follow a target."""
    for b in range(1, source.model.nbody):
        source.robot.links.append(_link(source, b, pulled, servos))
    if source.options.base == "free":
        _release(source)
    if source.options.limits:
        _report_softness(source)


def _link(source: Source, b: int, pulled: set[int], servos: dict[int, Servo]) -> Link:
    model, data = source.model, source.data
    turn = rotation(model.body_iquat[b]).as_matrix()
    link = Link(
        name=source.name("body", b), parent=int(model.body_parentid[b]) - 1, mass=float(model.body_mass[b]),
        center=np.array(data.xipos[b]), inertia=turn @ np.diag(model.body_inertia[b]) @ turn.T,
        rotation=rotation(data.xquat[b]), origin=np.array(data.xpos[b]),
    )
    for j in range(model.body_jntadr[b], model.body_jntadr[b] + model.body_jntnum[b]):
        if model.jnt_type[j] == source.mj.mjtJoint.mjJNT_FREE:
            _float(source, link, j)
        else:
            link.joints.append(_joint(source, link, j, j in pulled, servos.get(j)))
    if model.body_mocapid[b] >= 0:
        source.report.append(f"body {link.name!r} is a mocap body: it stays where it is")
    return link


def _release(source: Source) -> None:
    """Let the robots that stand on the world float: fixed bodies that carry joints."""
    links = source.robot.links
    carrying = {link.parent for link in links if link.joints}
    for i, link in reversed(list(enumerate(links))):
        if link.fixed and link.parent >= 0 and i in carrying:
            carrying.add(link.parent)
        link.floating |= link.fixed and link.parent < 0 and link.mass > 0.0 and i in carrying


def _passive(source: Source, j: int) -> tuple[float, float]:
    """Stiffness and damping of a joint."""
    model = source.model
    stiffness, damping = float(model.jnt_stiffness[j]), float(model.dof_damping[model.jnt_dofadr[j]])
    return 0.0 if source.disabled("SPRING", "PASSIVE") else stiffness, 0.0 if source.disabled("DAMPER", "PASSIVE") else damping


def _float(source: Source, link: Link, j: int) -> None:
    """A free joint: the link floats, and its springs and dampers hang on a joint that holds nothing."""
    model, name = source.model, source.name("joint", j)
    if source.options.base == "fixed":
        return
    link.floating = True
    v = int(model.jnt_dofadr[j])
    if source.key is not None and np.any(model.key_qvel[source.key, v : v + 6]):
        link.velocity = np.array(model.key_qvel[source.key, v : v + 6])
    stiffness, damping = _passive(source, j)
    if stiffness or damping:
        joint = LinkJoint(name, "free", np.array(source.data.xanchor[j]), np.array(source.data.xaxis[j]), stiffness=stiffness, damping=damping)
        link.joints.append(joint)
        source.joints[j] = joint
    _report_losses(source, j)


def _joint(source: Source, link: Link, j: int, pulled: bool, servo: Servo | None) -> LinkJoint:
    model, kinds = source.model, source.mj.mjtJoint
    kind, dof, q = int(model.jnt_type[j]), int(model.jnt_dofadr[j]), int(model.jnt_qposadr[j])
    joint = LinkJoint(
        source.name("joint", j), {kinds.mjJNT_HINGE: "hinge", kinds.mjJNT_SLIDE: "slide", kinds.mjJNT_BALL: "ball"}[kind],
        np.array(source.data.xanchor[j]), np.array(source.data.xaxis[j]),
    )
    joint.stiffness, joint.damping = _passive(source, j)
    if joint.kind == "ball":
        if joint.stiffness and not np.allclose(model.qpos_spring[q : q + 4], model.qpos0[q : q + 4]):
            source.report.append(f"joint {joint.name!r}: its spring rests at the reference pose, not at springref")
        _start_ball(source, link, joint, j)
    else:
        joint.rest, joint.armature = float(model.qpos_spring[q] - model.qpos0[q]), float(model.dof_armature[dof])
        joint.servo = servo
        joint.drive = "force" if pulled and servo is None else None
        if source.options.limits and not source.disabled("FRICTIONLOSS", "CONSTRAINT"):
            joint.friction = float(model.dof_frictionloss[dof])
        if source.options.limits and model.jnt_limited[j] and not source.disabled("LIMIT", "CONSTRAINT"):
            joint.limits = tuple(float(v) for v in model.jnt_range[j] - model.qpos0[q])  # type: ignore[assignment]
        if source.key is not None:
            joint.start = float(model.key_qpos[source.key, q] - model.qpos0[q])
            joint.rate = float(model.key_qvel[source.key, dof])
    _report_losses(source, j)
    source.joints[j] = joint
    return joint


def _start_ball(source: Source, link: Link, joint: LinkJoint, j: int) -> None:
    """A keyframe's quaternion as a rotation vector from the reference pose, its rates in the parent's axes."""
    if source.key is None:
        return
    model, q, v = source.model, int(source.model.jnt_qposadr[j]), int(source.model.jnt_dofadr[j])
    turn = rotation(model.qpos0[q : q + 4]).inv() * rotation(model.key_qpos[source.key, q : q + 4])
    joint.start = link.rotation.apply(turn.as_rotvec())
    joint.rate = (link.rotation * turn).apply(model.key_qvel[source.key, v : v + 3])


def _report_losses(source: Source, j: int) -> None:
    """What a joint asks for and does not get."""
    model, name = source.model, source.name("joint", j)
    kind, dof = int(model.jnt_type[j]), int(model.jnt_dofadr[j])
    if kind in (source.mj.mjtJoint.mjJNT_BALL, source.mj.mjtJoint.mjJNT_FREE):
        if model.dof_armature[dof] > 0.0:
            source.report.append(f"joint {name!r}: armature of a ball or free joint is not simulated")
        if model.dof_frictionloss[dof] > 0.0 and source.options.limits:
            source.report.append(f"joint {name!r}: frictionloss {model.dof_frictionloss[dof]:g} of a ball or free joint is not simulated")
        if model.jnt_limited[j] and source.options.limits:
            source.report.append(f"joint {name!r}: its range, a cone of {model.jnt_range[j, 1]:.6g} rad about the reference pose, is not enforced")
    for what, law, index in (("stiffness", "jnt_stiffnesspoly", j), ("damping", "dof_dampingpoly", dof)):
        if source.extra(law, index):
            source.report.append(f"joint {name!r}: only the linear part of its {what} is simulated")
    if source.extra("jnt_springyield", j):
        source.report.append(f"joint {name!r}: the yielding of its spring is not simulated")
    if source.extra("jnt_actgravcomp", j):
        source.report.append(f"joint {name!r}: gravity compensation acts on its bodies, not through its actuator")


def _report_softness(source: Source) -> None:
    """Limits are rigid here: what the file says about their softness has no use."""
    model = source.model
    limited = [j for j in range(model.njnt) if model.jnt_limited[j] and j in source.joints]
    soft = [j for j in limited if softened(model.jnt_solref[j], model.jnt_solimp[j])]
    if soft:
        source.report.append(f"limits are rigid: solreflimit and solimplimit are not used, of {listed([source.name('joint', j) for j in soft])}")
    if early := [source.name("joint", j) for j in limited if model.jnt_margin[j] != 0.0]:
        source.report.append(f"limits act where they are: their margins are not used, of {listed(early)}")


def add_gravity_compensation(source: Source) -> None:
    """Bodies that carry a share of their own weight."""
    for b in range(1, source.model.nbody):
        for body, mass in source.robot.masses.get(source.name("body", b), {}).items():
            if share := float(source.model.body_gravcomp[b]):
                source.mechanism.wrench(body, force=-share * mass * source.robot.gravity)
