"""Tendons of an MJCF model: straight ones between two sites become springs, others only carry actuators and couplings."""
from __future__ import annotations

import numpy as np

from dalembert.io.mjcf.source import Source, softened
from dalembert.mechanism.joints import PointSpring


def wraps(source: Source, k: int) -> list[tuple[str, int, float]]:
    """What a tendon runs over: kind, index of the object, weight."""
    model = source.model
    steps = range(model.tendon_adr[k], model.tendon_adr[k] + model.tendon_num[k])
    kinds = [source.mj.mjtWrap(int(model.wrap_type[w])).name.removeprefix("mjWRAP_").lower() for w in steps]
    return [(kind, int(model.wrap_objid[w]), float(model.wrap_prm[w])) for kind, w in zip(kinds, steps)]


def joint_weights(source: Source, k: int) -> dict[int, float]:
    """Joints of a fixed tendon with their weights; empty for a spatial one."""
    weights: dict[int, float] = {}
    for kind, j, weight in wraps(source, k):
        if kind == "joint" and weight:
            weights[j] = weights.get(j, 0.0) + weight
    return weights


def is_straight(source: Source, k: int) -> bool:
    """True for a spatial tendon between two sites of different bodies."""
    parts = wraps(source, k)
    return len(parts) == 2 and all(kind == "site" for kind, *_ in parts) and len(set(ends(source, k)[0])) == 2


def ends(source: Source, k: int) -> tuple[list[str], list[np.ndarray]]:
    """Bodies and points of a straight tendon's two ends, the world first."""
    sites = [site for _, site, _ in wraps(source, k)]
    bodies = [source.body(int(source.model.site_bodyid[s])) for s in sites]
    points = [np.array(source.data.site_xpos[s]) for s in sites]
    return (bodies[::-1], points[::-1]) if bodies[-1] == "world" else (bodies, points)


def add_tendons(source: Source, pulled: set[int]) -> None:
    """Springs, dampers and ranges of straight tendons. ``pulled``: those that take a force."""
    for k in range(source.model.ntendon):
        if is_straight(source, k):
            _add(source, k, k in pulled)
        else:
            _report(source, k)


def _laws(source: Source, k: int) -> dict[str, float]:
    model = source.model
    return dict(
        stiffness=0.0 if source.disabled("SPRING", "PASSIVE") else float(model.tendon_stiffness[k]),
        damping=0.0 if source.disabled("DAMPER", "PASSIVE") else float(model.tendon_damping[k]),
        friction=float(model.tendon_frictionloss[k]) if source.options.limits and not source.disabled("FRICTIONLOSS", "CONSTRAINT") else 0.0,
    )


def _limits(source: Source, k: int) -> tuple[float, float] | None:
    model = source.model
    if not model.tendon_limited[k] or not source.options.limits or source.disabled("LIMIT", "CONSTRAINT"):
        return None
    low, high = (float(v) for v in model.tendon_range[k])
    return (low if low > 0.0 else -np.inf, high)


def _add(source: Source, k: int, pulled: bool) -> None:
    model, name, laws, limits = source.model, source.name("tendon", k), _laws(source, k), _limits(source, k)
    low, high = (float(v) for v in model.tendon_lengthspring[k])
    if laws["stiffness"] and low != high:
        source.report.append(f"tendon {name!r}: a spring that is slack between {low:g} and {high:g} m is not simulated")
        laws["stiffness"] = 0.0
    if limits is not None and (softened(model.tendon_solref_lim[k], model.tendon_solimp_lim[k]) or model.tendon_margin[k]):
        source.report.append(f"tendon {name!r}: its range is rigid; solreflimit, solimplimit and margin are not used")
    _report_newer(source, k)
    if not (any(laws.values()) or limits is not None or pulled):
        return
    bodies, points = ends(source, k)
    spring = PointSpring(
        stiffness=laws["stiffness"], damping=laws["damping"], rest=low if laws["stiffness"] else 0.0, friction=laws["friction"], limits=limits,
        drive="force" if pulled else None,
    )
    source.tendons[k] = source.free_name(name)
    source.mechanism.joint(source.tendons[k], spring, *bodies, at=(points[0], points[1]))


def _report(source: Source, k: int) -> None:
    """What a tendon over several joints, pulleys or surfaces does to the motion by itself."""
    name, laws = source.name("tendon", k), _laws(source, k)
    what = [word for word, value in laws.items() if value] + (["range"] if _limits(source, k) is not None else [])
    if what:
        source.report.append(f"tendon {name!r} runs over {len(wraps(source, k))} joints, sites or surfaces: its {' and '.join(what)} are not simulated")
    _report_newer(source, k)


def _report_newer(source: Source, k: int) -> None:
    for field, what in (
        ("tendon_armature", "armature"), ("tendon_stiffnesspoly", "stiffness beyond the linear part"), ("tendon_dampingpoly", "damping beyond the linear part"),
        ("tendon_springyield", "yielding of the spring"), ("tendon_actfrclimited", "bound of the actuators' force"),
    ):
        if source.extra(field, k):
            source.report.append(f"tendon {source.name('tendon', k)!r}: {what} is not simulated")
