"""Rounds of the fuzzer with random scenes that touch, in all formulations: nothing overlaps in silence, no energy out of nothing, a solution for every step."""
from __future__ import annotations

from pathlib import Path

import numpy as np
from fuzzing import Failure
from mechanisms import Recipe, shrink
from scenes import METHODS, judge, random_scene

import dalembert as da


def said(recipe: Recipe) -> str | None:
    """What is wrong with a scene; a failure that names a bearing that jams is right."""
    try:
        return judge(recipe)
    except da.StepFailure as failure:
        return None if "can jam" in str(failure) else f"step: {failure}"


def scene(rng: np.random.Generator, place: Path, trial: int) -> None:
    """One random scene in one formulation."""
    recipe = random_scene(rng, *METHODS[trial % len(METHODS)])
    found = said(recipe)
    if found is None:
        return
    kind = found.split(":")[0]
    small = shrink(recipe, lambda smaller: (said(smaller) or "").split(":")[0] == kind)
    raise Failure(said(small) or found, small.program())


ROUNDS = {"scene": scene}
