"""Gradients of random mechanisms that touch the ground, one another or the ends of their joints: the validator finds nothing, away from events."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pairs import TYPES, with_laws

import dalembert as da
from dalembert.gradients.names import all_names

METHODS = {
    "variational": da.Variational(dt=0.01, tolerance=1e-13),
    **{m: da.Implicit(dt=0.01, method=m, tolerance=1e-13, solver="general") for m in ("bdf1", "bdf2", "sdirk2")},
}
#: adjoint against forward, and against differences of the run, relative to the largest derivative by relative changes; where dry friction and a stop both hold a joint, how they
#: share what it takes follows products, which are held. Differences are taken with smaller and smaller steps, as one may reach across an event; where rounding moves that of the
#: smallest one by more than SEEN, events are nearer than can be seen
EXACT, NEAR, STEPS, SEEN = 5e-9, {"ground": 1e-4, "pairs": 1e-4, "limits": 5e-4}, (1e-2, 1e-3, 1e-4, 1e-5, 1e-6), 1e-2


def inertia(rng: np.random.Generator, size: float) -> np.ndarray:
    A = rng.normal(size=(3, 3))
    return size * (np.trace(A @ A.T) * np.eye(3) - A @ A.T)


def on_ground(draw, rng: np.random.Generator) -> tuple[da.Mechanism, Any]:
    """A body with one or two feet that lands and slides, perhaps with another one on a joint."""
    mechanism = da.Mechanism("random feet")
    mechanism.ground(friction=float(rng.uniform(0.1, 0.8)), restitution=float(rng.uniform(0.1, 0.6)))
    mechanism.body("base", mass=1.0, inertia=inertia(rng, 0.005), position=(0, 0, 0.3))
    for k in range(draw(st.integers(1, 2))):
        mechanism.contact_point("base", point=(0.15 * (2 * k - 1), 0.02 * rng.normal(), -0.28 + 0.02 * k), radius=0.01)
    if draw(st.booleans()):
        mechanism.body("tail", mass=0.4, inertia=inertia(rng, 0.002), position=(0.3, 0.05, 0.4))
        kind = TYPES[draw(st.sampled_from(["revolute", "universal", "spherical", "prismatic", "cylindrical"]))]
        mechanism.joint("hinge", with_laws(kind, damping=0.1, stiffness=1.0), "base", "tail", at=(0.15, 0.02, 0.35), frame=rng.normal(size=4))
    linear, angular = np.array([*rng.normal(size=2), -rng.uniform(0.6, 1.5)]), rng.normal(size=3)

    def setup(sim: da.Simulation) -> None:
        sim.set_velocity("base", linear=linear, angular=angular)

    return mechanism, setup


def in_pairs(draw, rng: np.random.Generator) -> tuple[da.Mechanism, Any]:
    """Two bodies that meet in flight."""
    mechanism = da.Mechanism("random pair")
    shapes = {
        "ball": lambda: da.Sphere(radius=0.1, mass=float(rng.uniform(0.4, 1.5))),
        "capsule": lambda: da.Capsule(radius=0.1, length=0.4, mass=float(rng.uniform(0.4, 1.5)), axis="z"),
        "box": lambda: da.Box(size=(0.2, 0.5, 0.6), mass=float(rng.uniform(0.4, 1.5))),
    }
    mechanism.body("a", shapes[draw(st.sampled_from(["ball", "capsule"]))](), position=(0, 0, 0), collide=True)
    mechanism.body("b", shapes[draw(st.sampled_from(["ball", "capsule", "box"]))](), position=(0.215, *(0.03 * rng.normal(size=2))), collide=True)
    mechanism.contact_pair("a", "b", friction=float(rng.uniform(0.1, 0.6)), restitution=float(rng.uniform(0.1, 0.7)))
    speeds = 0.3 * rng.normal(size=(2, 2, 3)) + [[[0.6, 0, 0], [0, 0, 0]], [[-0.6, 0, 0], [0, 0, 0]]]

    def setup(sim: da.Simulation) -> None:
        for name, (linear, angular) in zip("ab", speeds):
            sim.set_velocity(name, linear=linear, angular=angular)

    return mechanism, setup


def at_limits(draw, rng: np.random.Generator) -> tuple[da.Mechanism, Any]:
    """A chain whose joints meet their stops and rub."""
    mechanism = da.Mechanism("random stops")
    before, at = mechanism.world, np.zeros(3)
    rates = {}
    for k in range(draw(st.integers(1, 3))):
        here = at + np.array([0.2, 0.05 * rng.normal(), 0.05 * rng.normal()])
        new = mechanism.body(f"b{k}", mass=float(rng.uniform(0.5, 1.5)), inertia=inertia(rng, 0.01), position=here)
        kind = TYPES[draw(st.sampled_from(["revolute", "prismatic"]))]
        laws = dict(limits=(-0.2, float(rng.uniform(0.005, 0.03))), restitution=float(rng.uniform(0.0, 0.6)), friction=float(rng.uniform(0.05, 0.3)))
        mechanism.joint(f"j{k}", with_laws(kind, **(laws if draw(st.booleans()) or k == 0 else {}), damping=0.1), before, new, at=at, frame=rng.normal(size=4))
        rates[f"j{k}"] = float(rng.uniform(0.3, 1.0))
        before, at = new, here + np.array([0.2, 0.0, 0.0])

    def setup(sim: da.Simulation) -> None:
        for name, rate in rates.items():
            sim.set_joint(name, rate=rate)

    return mechanism, setup


SCENES = {"ground": on_ground, "pairs": in_pairs, "limits": at_limits}


def is_right(rows, bar: float, last: bool) -> bool:
    """Whether a derivative is that of the run to ``bar``, as far as differences say; rows: of smaller and smaller steps, the last one being the smallest of all."""
    agree = (row.agrees(EXACT, max(bar / row.scale, NEAR["ground"])) for row in rows)
    return any(agree) or (last and rows[-1].difference_rounding > SEEN)


def check(data, scene: str, methods: list[str], count: int, steps: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    mechanism, setup = SCENES[scene](data.draw, rng)
    method = data.draw(st.sampled_from(methods))
    names = all_names(mechanism)
    chosen = [names[i] for i in sorted(rng.choice(len(names), size=min(count, len(names)), replace=False))]
    found, right = [], [False]
    with warnings.catch_warnings():
        warnings.simplefilter("error", da.GradientWarning)
        try:
            for step in STEPS:
                try:
                    found.append(da.validate_gradients(mechanism, METHODS[method], chosen, steps=steps, setup=setup, step=step, forward=not found, rounding=True))
                except da.OverlapError:  # a step that begins inside the ground
                    continue
                bar = NEAR[scene] * max(abs(row.adjoint) for row in found[0].rows)
                right = [is_right(rows, bar, step == STEPS[-1]) for rows in zip(*(one.rows for one in found))]
                if all(right):
                    break
        except da.GradientWarning:
            assume(False)  # something just opens or closes, or is limited
    assert found[0].agrees(EXACT, np.inf), f"{method}\n{found[0]}"
    assert all(right), "\n".join([method, *(str(one) for one in found)])


@pytest.mark.parametrize("scene", list(SCENES))
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large], derandomize=True)
@given(data=st.data())
def test_some_random_scenes(scene, data):
    check(data, scene, ["variational", "bdf2"], 4, 5)


@pytest.mark.slow
@pytest.mark.parametrize("scene", list(SCENES))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large], derandomize=True,
    phases=[Phase.generate],
)
@given(data=st.data())
def test_many_random_scenes(scene, data):
    check(data, scene, list(METHODS), 12, 10)
