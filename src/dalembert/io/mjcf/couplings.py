"""Equality constraints of an MJCF model: loops by joints, straight lines between two joints by gears."""
from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.io.mjcf.source import Source, listed, rotation, softened
from dalembert.io.mjcf.tendons import ends, is_straight, joint_weights
from dalembert.mechanism.joints import Distance, Fixed, Spherical


def add_equalities(source: Source) -> None:
    model, kinds = source.model, source.mj.mjtEq
    if source.disabled("EQUALITY", "CONSTRAINT"):
        return
    soft = []
    for k in range(model.neq):
        name = source.mj.mj_id2name(model, source.mj.mjtObj.mjOBJ_EQUALITY, k) or f"equality {k}"
        if not model.eq_active0[k]:
            source.report.append(f"{name!r} is not active in the file and is left out")
            continue
        if softened(model.eq_solref[k], model.eq_solimp[k]):
            soft.append(name)
        add = {kinds.mjEQ_CONNECT: _connect, kinds.mjEQ_WELD: _weld, kinds.mjEQ_JOINT: _joint, kinds.mjEQ_TENDON: _tendon}.get(kinds(int(model.eq_type[k])))
        why = f"it is of the kind {kinds(int(model.eq_type[k])).name.removeprefix('mjEQ_').lower()}" if add is None else add(source, k, source.free_name(name))
        if why:
            source.report.append(f"{name!r} is not simulated: {why}")
    if soft:
        source.report.append(f"equalities are rigid: solref and solimp are not used, of {listed(soft)}")


def _sites(source: Source, k: int) -> bool:
    return source.model.eq_objtype[k] == source.mj.mjtObj.mjOBJ_SITE


def _bodies(source: Source, k: int) -> list[int]:
    objects = [int(source.model.eq_obj1id[k]), int(source.model.eq_obj2id[k])]
    return [int(source.model.site_bodyid[s]) for s in objects] if _sites(source, k) else objects


def _tie(source: Source, name: str, kind: Fixed | Spherical, bodies: list[int], points: list[np.ndarray], turns: list[Rotation]) -> str:
    """A joint between two bodies of the file, the world as its parent; returns why there is none."""
    names = [source.body(b) for b in bodies]
    if names[1] == "world":
        names, points, turns = names[::-1], points[::-1], turns[::-1]
    if names[0] == names[1]:
        return f"it ties {names[0]!r} to itself"
    source.mechanism.joint(name, kind, *names, at=(points[0], points[1]), frame=tuple(t.as_quat(scalar_first=True) for t in turns))  # type: ignore[arg-type]
    source.ties.append((name, names[0], names[1]))
    return ""


def _connect(source: Source, k: int, name: str) -> str:
    data, bodies = source.model.eq_data[k], _bodies(source, k)
    if _sites(source, k):
        points = [np.array(source.data.site_xpos[int(s)]) for s in (source.model.eq_obj1id[k], source.model.eq_obj2id[k])]
    else:
        points = [source.point(bodies[0], data[:3]), source.point(bodies[1], data[3:6])]
    return _tie(source, name, Spherical(), bodies, points, [Rotation.identity()] * 2)


def _weld(source: Source, k: int, name: str) -> str:
    """Body 2 keeps its pose in body 1: an anchor of body 2 stays at a point of body 1, and its turn from body 1 stays."""
    data, bodies = source.model.eq_data[k], _bodies(source, k)
    if _sites(source, k):
        sites = [int(source.model.eq_obj1id[k]), int(source.model.eq_obj2id[k])]
        points = [np.array(source.data.site_xpos[s]) for s in sites]
        turns = [Rotation.from_matrix(source.data.site_xmat[s].reshape(3, 3)) for s in sites]
    else:
        points = [source.point(bodies[0], data[3:6]), source.point(bodies[1], data[:3])]
        here, there = (rotation(source.data.xquat[b]) for b in bodies)
        turns = [here * rotation(data[6:10]), there]
        if not np.any(data[6:10]):  # no pose given: that of the reference
            points, turns = [source.point(bodies[1], data[:3])] * 2, [there, there]
    return _tie(source, name, Fixed(), bodies, points, turns)


def _joint(source: Source, k: int, name: str) -> str:
    """Coordinates, both counted from the reference pose, on a straight line."""
    model, data = source.model, source.model.eq_data[k]
    one, two = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    if two >= 0 and np.any(data[2:5]):
        return "only straight lines between two joints are"
    if one not in source.joints or (two >= 0 and two not in source.joints):
        return "one of its joints is not there"
    if two >= 0:
        source.mechanism.gear(name, source.joint(one), source.joint(two), ratio=float(data[1]), offset=float(data[0]))
        return ""
    held = source.mechanism[source.joint(one)]
    link = source.joints[one]
    shift = float(data[0]) * link.axis
    turn = Rotation.from_rotvec(shift) if link.kind == "hinge" else Rotation.identity()
    point = link.anchor + (shift if link.kind == "slide" else 0.0)
    source.mechanism.joint(
        name, Fixed(), held.parent, held.child, at=(point, link.anchor),
        frame=(turn.as_quat(scalar_first=True), Rotation.identity().as_quat(scalar_first=True)),
    )
    return ""


def _tendon(source: Source, k: int, name: str) -> str:
    """The length of a tendon, less that of the reference pose, as a number."""
    model, data = source.model, source.model.eq_data[k]
    one, two = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    if two >= 0:
        return "it ties two tendons"
    if is_straight(source, one):
        bodies, points = ends(source, one)
        source.mechanism.joint(name, Distance(length=float(model.tendon_length0[one] + data[0])), *bodies, at=(points[0], points[1]))
        return ""
    pair = [(j, weight) for j, weight in joint_weights(source, one).items() if j in source.joints]
    if len(pair) != 2:
        return f"its tendon runs over {len(pair) or 'no'} joints, and gears tie two"
    (first, a), (second, b) = pair
    source.mechanism.gear(name, source.joint(first), source.joint(second), ratio=-b / a, offset=float(data[0]) / a)
    return ""
