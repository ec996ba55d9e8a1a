"""Poses from which no rigid motion goes on are named in all formulations."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

FORMULATIONS = [da.Variational(dt=0.005), da.Implicit(dt=0.005), da.Implicit(dt=0.005, method="bdf1"), da.Reduced(dt=0.005)]


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: f"{type(f).__name__} {getattr(f, 'method', '')}")
@pytest.mark.parametrize("span", [3.0, 2.9])
def test_links_that_are_pulled_taut(formulation, span):
    """Three links of a metre between pivots that are three metres apart cannot fall; between nearer ones they do."""
    mechanism = da.Mechanism("links")
    ends, heights = np.linspace(0.0, span, 4), (0.0, *(2 * [-np.sqrt(1.0 - (span / 3.0) ** 2)]), 0.0)
    links = [
        mechanism.body(f"link {i}", mass=1.0, inertia=0.1 * np.eye(3), position=(0.5 * (ends[i] + ends[i + 1]), 0.0, 0.5 * (heights[i] + heights[i + 1])))
        for i in range(3)
    ]
    pairs = [(mechanism.world, links[0]), (links[0], links[1]), (links[1], links[2]), (mechanism.world, links[2])]
    for i, (parent, child) in enumerate(pairs):
        mechanism.joint(f"joint {i}", da.Revolute(axis="y"), parent, child, at=(ends[i], 0.0, heights[i]))
    sim = da.Simulation(mechanism, formulation)
    if span < 3.0:
        assert len(sim.run(0.05)) == 11
        return
    with pytest.raises(da.StepFailure, match=r"no rigid motion exists at this pose\. 'joint 0', 'joint 1', 'joint 2', 'joint 3' let bodies begin to move but not go on"):
        sim.run(0.05)
