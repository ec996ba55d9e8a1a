"""Signed distances of convex shapes against coal, and against planes that separate them."""
from __future__ import annotations

import numpy as np
import pytest
from convex_oracle import KINDS, Placed, by_coal, half_thickness, random_shape, separation
from scipy.spatial.transform import Rotation

from dalembert.contact.features import Geometry
from dalembert.contact.narrow import measure_pair
from dalembert.contact.records import PAIR
from dalembert.contact.shapes import compile_shapes
from dalembert.mechanism.touching import Surface
from dalembert.model.records import BODY_WORK

PAIRS = [(a, b) for i, a in enumerate(KINDS) for b in KINDS[i:]]
#: shapes whose distance coal knows to rounding
EXACT = {"sphere", "capsule", "box", "hull"}


def measured(a: Placed, b: Placed) -> tuple[float, np.ndarray]:
    """(signed distance, direction from b to a) of two shapes."""
    shapes = [Geometry(Surface(name, i, (name,)), placed[2], np.zeros(3), np.eye(3)) for i, (name, placed) in enumerate(zip("ab", (a, b)))]
    compiled = compile_shapes(shapes, 2)._replace(pairs=np.zeros(1, PAIR))
    pair = compiled.pairs[0]
    pair["i"], pair["j"], pair["n"] = 0, 1, (0.0, 0.0, 1.0)
    bodies = np.zeros(3, BODY_WORK)
    for body, (x, R, _) in zip(bodies, (a, b)):
        body["x"], body["R"] = x, R.ravel()
    measure_pair(bodies, pair, compiled)
    return float(pair["gap"]), pair["n"].copy()


def random_pair(kinds: tuple[str, str], random: np.random.Generator, number: int) -> tuple[Placed, Placed]:
    """Two shapes apart or overlapping; a third of them with axes along each other's; a third as good as touching."""
    first, second = (random_shape(kind, random) for kind in kinds)
    turns = Rotation.random(2, rng=random).as_matrix()
    if number % 3 == 0:
        turns[1] = turns[0] @ Rotation.from_euler("xyz", random.integers(0, 4, size=3) * np.pi / 2).as_matrix()
    way = random.normal(size=3)
    b = random.normal(size=3), turns[1], second
    a = b[0] + random.uniform(0.0, 0.4) * way / np.linalg.norm(way), turns[0], first
    if number % 3 == 1:
        gap, n = measured(a, b)
        a = a[0] + (random.choice([1e-3, 1e-5, 1e-7, 0.0, -1e-7, -1e-5, -1e-3]) - gap) * n, turns[0], first
    return a, b


def check(kinds: tuple[str, str], random: np.random.Generator, count: int) -> None:
    for number in range(count):
        a, b = random_pair(kinds, random, number)
        gap, n = measured(a, b)
        assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-12)
        # a plane shows that they are so far apart, or no deeper
        assert separation(a, b, n) == pytest.approx(gap, abs=1e-12)
        distance, m = by_coal(a, b)
        if not np.isfinite(distance):
            continue
        shallow = gap > -0.2 * min(half_thickness(a[2]), half_thickness(b[2]))
        if shallow:
            assert gap > separation(a, b, m) - 1e-9
        if set(kinds) <= EXACT:
            assert gap > distance - 1e-9
            if abs(gap) > 1e-5:  # coal counts some that hardly touch as touching
                assert gap == pytest.approx(distance, abs=1e-9)
            if gap > 1e-4:
                assert n == pytest.approx(m, abs=1e-7)


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_distances(kinds):
    check(kinds, np.random.default_rng(1), 90)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_many_distances(kinds):
    check(kinds, np.random.default_rng(2), 5000)
