"""The quick share of random mechanisms, and that the fuzzer finds what is wrong; ``make fuzz`` runs them for as long as one likes."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import rounds_mechanisms as rounds
from mechanisms import Recipe, random_recipe, shrink

import dalembert as da

#: methods of which the other tests compile the kernels anyway
QUICK = [index for index, (name, options, _) in enumerate(rounds.METHODS) if options.get("method") in (None, "bdf2", "rk4")]


@pytest.mark.parametrize("index", QUICK, ids=lambda index: f"{rounds.METHODS[index][0]} {rounds.METHODS[index][1].get('method', '')}")
def test_random_mechanisms(index):
    """No foreign error, open joint, silent energy or misreading; steps that fail fail with a sixteenth of the step too."""
    name, options, touching = rounds.METHODS[index]
    for trial in range(12):
        rng = np.random.default_rng([11, index, trial])
        recipe = random_recipe(rng, name, options, touching=touching and trial % 2 == 0)
        found = rounds.judge(recipe, trial % 4 == 1)
        assert found is None, f"{found}\n{recipe.program()}"


def test_a_program_does_the_same():
    recipe = random_recipe(np.random.default_rng(5), "Variational", {}, touching=False)
    scope: dict = {}
    exec(recipe.program(), scope)
    np.testing.assert_array_equal(scope["run"].position, rounds.run(recipe)[1].position)


def test_what_is_wrong_is_found_and_shrunk(monkeypatch):
    """Energies that are off by a hundredth disagree with velocities, and one body is enough to show it."""
    recipes = [random_recipe(np.random.default_rng(seed), "Variational", {}, touching=False, steps=12) for seed in range(12, 18)]
    assert not any(map(rounds.examine, recipes))
    honest = da.Trajectory.energy
    monkeypatch.setattr(da.Trajectory, "energy", lambda self: replace(honest(self), kinetic=1.01 * honest(self).kinetic))

    def fails(smaller: Recipe) -> bool:
        return rounds.examine(smaller) is not None

    found = [recipe for recipe in recipes if fails(recipe)]  # constant wrenches, for one, have energies of their own
    assert len(found) >= 3
    small = shrink(found[0], fails)
    assert len([call for call in small.build if call.method == "body"]) == 1
