"""Tendons of an MJCF model: spatial ones through sites become paths; fixed ones only carry actuators and couplings.

A straight one between two sites with a range or dry friction becomes a point spring, whose one coordinate takes both.
"""
from __future__ import annotations

from typing import Any

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
    """Springs, dampers and ranges of spatial tendons. ``pulled``: those that take a force."""
    for k in range(source.model.ntendon):
        if all(kind == "site" for kind, *_ in wraps(source, k)):
            _add(source, k, k in pulled)
        else:
            _report(source, k, _laws(source, k), _limits(source, k))


def _laws(source: Source, k: int) -> dict[str, Any]:
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
    """A spatial tendon through sites: its own element with damper, drive and spring, or a cable for the spring beside it."""
    model, laws, limits = source.model, _laws(source, k), _limits(source, k)
    _report_newer(source, k)
    if not (any(laws.values()) or limits is not None or pulled):
        return
    sites = [site for _, site, _ in wraps(source, k)]
    bodies, points = [source.body(int(model.site_bodyid[s])) for s in sites], [np.array(source.data.site_xpos[s]) for s in sites]
    if len(set(bodies)) == 1 or np.linalg.norm(np.diff(points, axis=0), axis=1).min() < 1e-9:
        what = "runs on one body" if len(set(bodies)) == 1 else "has neighbouring sites that coincide at the reference pose"
        source.report.append(f"tendon {source.name('tendon', k)!r} {what}: it is left out")
        return
    spring, cable = _springs(source, k, laws.pop("stiffness"))
    title = source.tendons[k] = source.free_name(source.name("tendon", k))
    line, drive = list(zip(bodies, points)), "force" if pulled else None
    if is_straight(source, k) and (laws["friction"] or limits is not None):
        _point_spring(source, k, title, PointSpring(**spring, **laws, limits=limits, drive=drive))
    else:
        _report(source, k, {"friction": laws["friction"]}, limits)
        if cable and not laws["damping"]:
            source.mechanism.cable(title, line, stiffness=cable["stiffness"], length=cable["rest"], drive=drive)
            return
        source.mechanism.path(title, line, stiffness=spring["stiffness"], length=spring["rest"], damping=laws["damping"], drive=drive)
    if cable:
        source.mechanism.cable(source.free_name(f"{title} spring"), line, stiffness=cable["stiffness"], length=cable["rest"])


def _springs(source: Source, k: int, stiffness: float) -> tuple[dict[str, float], dict[str, float]]:
    """The spring of a tendon as that of a path, and as a cable where it pulls alone: MuJoCo's is slack between two lengths."""
    low, high = (float(v) for v in source.model.tendon_lengthspring[k])
    nothing = dict(stiffness=0.0, rest=0.0)
    if not stiffness or low == high:
        return dict(stiffness=stiffness, rest=low if stiffness else 0.0), {}
    if low <= 0.0:
        return nothing, dict(stiffness=stiffness, rest=high)
    source.report.append(f"tendon {source.name('tendon', k)!r}: a spring that is slack between {low:g} and {high:g} m is not simulated")
    return nothing, {}


def _point_spring(source: Source, k: int, title: str, spring: PointSpring) -> None:
    model = source.model
    soft = softened(model.tendon_solref_lim[k], model.tendon_solimp_lim[k]) or model.tendon_margin[k]
    if soft and np.isfinite(np.array(spring.limits)).any():
        source.report.append(f"tendon {source.name('tendon', k)!r}: its range is rigid; solreflimit, solimplimit and margin are not used")
    bodies, points = ends(source, k)
    source.mechanism.joint(title, spring, *bodies, at=(points[0], points[1]))


def _report(source: Source, k: int, laws: dict[str, float], limits: tuple[float, float] | None) -> None:
    """What a tendon over several joints, pulleys or surfaces, or through several sites, does not do to the motion by itself."""
    what = [word for word, value in laws.items() if value] + (["range"] if limits is not None else [])
    if what:
        source.report.append(
            f"tendon {source.name('tendon', k)!r} runs over {_described(source, k)}: its {' and '.join(what)} {'is' if len(what) == 1 else 'are'} not simulated")


def _described(source: Source, k: int) -> str:
    """What a tendon runs over, in words: "3 sites and a pulley"."""
    kinds = [kind for kind, *_ in wraps(source, k)]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return " and ".join(f"a {kind}" if count == 1 else f"{count} {kind}s" for kind, count in counts.items())


def _report_newer(source: Source, k: int) -> None:
    for field, what in (
        ("tendon_armature", "armature"), ("tendon_stiffnesspoly", "stiffness beyond the linear part"), ("tendon_dampingpoly", "damping beyond the linear part"),
        ("tendon_springyield", "yielding of the spring"), ("tendon_actfrclimited", "bound of the actuators' force"),
    ):
        if source.extra(field, k):
            source.report.append(f"tendon {source.name('tendon', k)!r}: {what} is not simulated")
