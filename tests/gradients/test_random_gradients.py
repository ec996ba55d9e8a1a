"""Gradients of random mechanisms: joints, loops, laws, gears, paths, starts and parameters at random; the validator finds nothing."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pairs import TYPES, with_laws

import dalembert as da
from dalembert.gradients.names import all_names
from dalembert.gradients.validate import SMOOTH

METHODS = {
    "variational": da.Variational(dt=0.02, tolerance=1e-13),
    **{m: da.Implicit(dt=0.02, method=m, tolerance=1e-13, solver="general") for m in ("bdf1", "bdf2", "sdirk2")},
}
KINDS = [name for name in TYPES if name not in ("free", "distance", "fixed")]


def body(mechanism: da.Mechanism, name: str, at: np.ndarray, rng: np.random.Generator) -> Any:
    A = rng.normal(size=(3, 3))
    return mechanism.body(name, mass=float(rng.uniform(0.5, 2.0)), inertia=0.05 * (np.trace(A @ A.T) * np.eye(3) - A @ A.T), position=at)


def tree(draw, rng: np.random.Generator, most: int) -> da.Mechanism:
    """A tree of any joints with springs and dampers, rotors, a servo, a cable, a drag."""
    mechanism = da.Mechanism("random tree")
    ends = [(mechanism.world, np.zeros(3))]
    for k in range(draw(st.integers(1, most))):
        before, at = ends[draw(st.integers(0, len(ends) - 1))]
        here = at + 0.3 * rng.normal(size=3)
        kind = TYPES[draw(st.sampled_from(KINDS))]
        laws = dict(stiffness=float(rng.uniform(0.5, 4.0)), damping=float(rng.uniform(0.1, 0.5)), rest=float(rng.uniform(-0.1, 0.1)))
        if draw(st.booleans()) and not any(name == "ball" for name, _ in kind.directions):
            laws["armature"] = float(rng.uniform(0.01, 0.1))
        new = body(mechanism, f"b{k}", here, rng)
        mechanism.joint(f"j{k}", with_laws(kind, **laws), before, new, at=at, frame=rng.normal(size=4))
        ends.append((new, here + 0.2 * rng.normal(size=3)))
    last = mechanism.bodies[-1]
    if draw(st.booleans()):
        mechanism.cable("cable", [(mechanism.world, (1.0, 1.0, 1.0)), (last, last.position + 0.1)], stiffness=20.0, damping=0.5, length=0.3)
    if draw(st.booleans()):
        mechanism.drag("drag", last, linear=0.3, angular=0.1)
    return mechanism


def loop(draw, rng: np.random.Generator) -> da.Mechanism:
    """A plane four-bar of any lengths on hinges, three of its rows redundant, perhaps with a pendulum on its coupler and a spring across."""
    mechanism = da.Mechanism("random loop")
    corners = np.array([[0.0, 0, 0], [0.0, 0, 0.5], [1.0, 0, 0.7], [1.0, 0, 0]]) + rng.uniform(-0.1, 0.1, size=(4, 3)) * [1.0, 0.0, 1.0]
    bars = [body(mechanism, name, 0.5 * (corners[i] + corners[i + 1]), rng) for i, name in enumerate(("left", "top", "right"))]
    chain = [mechanism.world, *bars, mechanism.world]
    for i, corner in enumerate(corners):
        law: dict[str, Any] = dict(damping=float(rng.uniform(0.05, 0.3)))
        if draw(st.booleans()):
            law["stiffness"] = float(rng.uniform(0.5, 3.0))
        mechanism.joint(f"h{i}", da.Revolute(axis="y", **law), *((chain[i], chain[i + 1]) if i < 3 else (chain[3], mechanism.world))[::1 if i < 3 else -1], at=corner)
    if draw(st.booleans()):
        hung = body(mechanism, "hung", corners[1] + [0.1, 0.0, -0.4], rng)
        mechanism.joint("hook", da.Revolute(axis="y", damping=0.1), bars[1], hung, at=corners[1] + [0.2, 0.0, 0.0])
    if draw(st.booleans()):
        mechanism.spring("spring", bars[0], bars[2], at=(corners[0] + [0, 0, 0.2], corners[3] + [0, 0, 0.2]), stiffness=10.0, damping=0.2, length=0.5)
    return mechanism


def throw(mechanism: da.Mechanism, rng: np.random.Generator):
    moves = {b.name: rng.normal(size=(2, 3)) for b in mechanism.bodies}

    def setup(sim: da.Simulation) -> None:
        for name, (linear, angular) in moves.items():
            sim.set_velocity(name, linear=0.3 * linear, angular=angular)

    return setup


def check(data, most: int, methods: list[str], count: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    closed = data.draw(st.booleans())
    mechanism = loop(data.draw, rng) if closed else tree(data.draw, rng, most)
    formulation = METHODS[data.draw(st.sampled_from(methods))]
    # a loop allows few changes of its geometry, and its start moves with its inertias where it is not asked for
    names = [n for n in all_names(mechanism) if not closed or not n.rpartition(".")[2].startswith(("point", "turn", "centre", "start"))]
    chosen = sorted(rng.choice(len(names), size=min(count, len(names)), replace=False))
    setup = None if closed else throw(mechanism, rng)
    outputs = (*SMOOTH, "force", "torque")
    found = da.validate_gradients(mechanism, formulation, [names[i] for i in chosen], steps=3, setup=setup, outputs=outputs)
    assert found.forward_error < 5e-9, str(found)
    assert found.difference_error < 1e-6, str(found)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(data=st.data())
def test_some_random_mechanisms(data):
    check(data, 3, ["variational", "bdf2"], 6)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(data=st.data())
def test_many_random_mechanisms(data):
    check(data, 5, list(METHODS), 25)
