"""Rounds of the fuzzer with bodies that are thrown at each other, of all shapes and in all formulations, judged by coal."""
from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from fuzzing import Failure

import dalembert as da

sys.path.insert(0, str(Path(__file__).parents[1] / "contact"))

from convex_oracle import KINDS  # pyright: ignore[reportMissingImports]
from thrown import Throw  # pyright: ignore[reportMissingImports]

FORMULATIONS = (da.Variational, da.Implicit, da.Reduced)


def throw(random: np.random.Generator, folder: Path, trial: int) -> None:
    """Two bodies meet: no overlap at a knot, nothing passes through, no impulse that is not due, no energy out of nothing."""
    one = Throw.random(random, KINDS)
    formulation = FORMULATIONS[trial % len(FORMULATIONS)]
    program = "\n".join([
        f"# {one.steps} steps of {formulation.__name__}(dt={one.dt}); see Throw in tests/contact/thrown.py",
        *(f"# {body.name}: {body.shape}" for body in one.mechanism.bodies),
    ])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", da.EnergyWarning)
            trajectory = da.Simulation(one.mechanism, formulation(dt=one.dt)).run(one.steps * one.dt)
    except da.StepFailure as failure:
        raise Failure(str(failure), program) from None
    found = one.complaints(trajectory)
    if found:
        raise Failure("; ".join(found), program)


ROUNDS = {"throw": throw}
