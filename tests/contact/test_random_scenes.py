"""Random scenes: one to six bodies of all shapes on all joints, with limits, motors, friction and restitution, judged by an oracle in all formulations."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scenes import METHODS, judge, random_scene

import dalembert as da

NAMES = ["variational", "implicit", "reduced", "linear cone", "events"]


def scene(method: int, seed: int):
    return random_scene(np.random.default_rng([seed, method]), *METHODS[method])


@pytest.mark.parametrize("method", range(len(METHODS)), ids=NAMES)
@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate])
@given(seed=st.integers(0, 10**6))
def test_some_scenes(method, seed):
    recipe = scene(method, seed)
    assert judge(recipe) is None, recipe.program()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_scenes(part):
    """Of all 500 no more than one has a step without a solution."""
    wrong, failed = [], []
    for number in range(50 * part, 50 * part + 50):
        recipe = random_scene(np.random.default_rng([1, number]), *METHODS[number % len(METHODS)])
        try:
            found = judge(recipe)
        except da.StepFailure as failure:
            failed.append(f"{number}: {failure}")
        else:
            wrong += [f"{number}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)
    assert len([said for said in failed if "can jam" not in said]) <= ALLOWED[part], "\n".join(failed)
