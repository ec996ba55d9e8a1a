"""Gradients of random mechanisms in joint coordinates: trees, loops, and trees that fall on the ground; the validator finds nothing."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from test_random_gradients import loop, throw, tree

import dalembert as da
from dalembert.gradients.names import all_names

STAGES = {m: da.Reduced(dt=0.02, method=m, tolerance=1e-13) for m in ("bdf2", "bdf1", "sdirk2", "pareschi_russo")}
METHODS = {**STAGES, **{m: da.Reduced(dt=0.02, method=m) for m in ("rk4", "semi_implicit", "linearly_implicit")}}
#: the bars: adjoint against forward, and against differences of the run
EXACT, SMOOTH = 5e-9, 1e-6
#: what is weighed
READ = ("position", "orientation", "velocity", "angular_velocity", "coordinate", "rate", "kinetic")


def some(names: list[str], count: int, rng: np.random.Generator) -> list[str]:
    return [names[i] for i in sorted(rng.choice(len(names), size=min(count, len(names)), replace=False))]


def check(data, most: int, methods: list[str], count: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    closed = data.draw(st.booleans())
    mechanism = loop(data.draw, rng) if closed else tree(data.draw, rng, most)
    formulation = METHODS[data.draw(st.sampled_from(methods))]
    # a loop allows few changes of its geometry, and its start moves with its inertias where it is not asked for
    names = [n for n in all_names(mechanism) if not closed or not n.rpartition(".")[2].startswith(("point", "turn", "centre", "start"))]
    setup = None if closed else throw(mechanism, rng)
    found = da.validate_gradients(mechanism, formulation, some(names, count, rng), steps=3, setup=setup, outputs=READ)
    assert found.forward_error < EXACT, f"{formulation}\n{found}"
    assert found.difference_error < SMOOTH, f"{formulation}\n{found}"


def check_falling(data, most: int, methods: list[str], count: int) -> None:
    """Impacts lie anywhere, so that differences say nothing: adjoint against forward."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    mechanism = tree(data.draw, rng, most)
    radius, places = 0.02, 0.1 * rng.normal(size=(len(mechanism.bodies), 3))
    for body, place in zip(mechanism.bodies, places):
        mechanism.contact_point(body, point=place, radius=radius)
    lowest = min(body.position[2] + place[2] for body, place in zip(mechanism.bodies, places))
    mechanism.ground(friction=float(rng.uniform(0.1, 0.8)), restitution=float(rng.choice([0.0, 0.3])), offset=float(lowest - radius - 0.005))
    formulation = METHODS[data.draw(st.sampled_from(methods))]
    names = some(all_names(mechanism), count, rng)
    try:
        found = da.validate_gradients(mechanism, formulation, names, steps=5, setup=throw(mechanism, rng), outputs=READ, differences=False)
    except da.StepFailure:  # with friction, a rod between a guide and the ground can jam: such a run ends in every formulation, at any step
        reject()
    assert found.forward_error < EXACT, f"{formulation}\n{found}"


QUICK = settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
LONG = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
IGNORE = pytest.mark.filterwarnings("ignore::dalembert.GradientWarning")


@QUICK
@given(data=st.data())
def test_some_random_mechanisms(data):
    check(data, 3, ["bdf2", "rk4"], 5)


@pytest.mark.slow
@LONG
@given(data=st.data())
def test_many_random_mechanisms(data):
    check(data, 5, list(METHODS), 15)


@IGNORE
@pytest.mark.slow
@LONG
@given(data=st.data())
def test_many_random_trees_that_fall(data):
    check_falling(data, 4, list(STAGES), 12)
