"""Random scenes: one to six bodies of all shapes on all joints, with limits, motors, friction and restitution, judged by an oracle in all formulations."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mechanisms import Recipe
from scenes import METHODS, judge, random_scene

import dalembert as da

#: scenes of each method
COUNT = 100


def scene(method: int, number: int) -> Recipe:
    return random_scene(np.random.default_rng([1, number * len(METHODS) + method]), *METHODS[method])


@pytest.mark.parametrize("method", range(len(METHODS)), ids=["variational", "implicit", "reduced", "linear cone", "events"])
@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate])
@given(number=st.integers(10, 80))
def test_some_scenes(method, number):
    recipe = scene(method, number)
    assert judge(recipe) is None, recipe.program()


@pytest.mark.slow
@pytest.mark.parametrize("method", range(len(METHODS)), ids=["variational", "implicit", "reduced", "linear cone", "events"])
def test_many_scenes(method):
    """Of all 500 two have a step without a solution, both in `Implicit`, beside one whose bearing jams and is named."""
    wrong, failed = [], []
    for number in range(COUNT):
        try:
            found = judge(scene(method, number))
        except da.StepFailure as failure:
            failed.append(f"{number}: {failure}")
        else:
            wrong += [f"{number}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)
    assert len([said for said in failed if "can jam" not in said]) <= (2 if METHODS[method][0] == "Implicit" else 0), "\n".join(failed)
