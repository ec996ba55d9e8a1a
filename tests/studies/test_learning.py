"""The learning quadruped: what it learns follows from the seed alone, and only what it walked on its feet counts."""
from __future__ import annotations

import numpy as np

from dalembert.studies.variational.quadruped_learning import STANDING, learn, walk


def test_the_same_seed_gives_the_same_gait():
    first, again, other = (learn(range(4), 0.3, 0.01, seed) for seed in (1, 1, 2))
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a.numbers, b.numbers)
        assert a.distance == b.distance
    assert not np.array_equal(first[-1].numbers, other[-1].numbers)


def test_a_trot_goes_forwards_and_standing_does_not():
    trot = np.array([0.2, 0.25, -0.3, 0.8, -1.5])
    assert walk(trot, 2.0, 0.01).distance > 0.5
    assert abs(walk(STANDING, 1.0, 0.01).distance) < 0.1


def test_a_fall_ends_the_walk():
    lying = STANDING + np.array([0.0, 0.0, 0.0, 0.6, -1.2])  # folded legs: the trunk is on the ground
    found = walk(lying, 0.5, 0.01)
    assert found.run is not None
    assert found.run.body("trunk").position[:, 2].min() < 0.1
    assert abs(found.distance) < 0.05
