"""Bodies thrown at each other, judged by coal: nothing overlaps at a knot, nothing passes through, no impulse that is not due."""
from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from convex_oracle import KINDS, least_distance, random_shape
from scipy.spatial.transform import Rotation
from thrown import Throw

import dalembert as da


def thrown(formulation, seed: int, count: int, *kinds: Sequence[str]) -> tuple[int, list[str]]:
    """(how many steps have no solution, what is wrong) with so many throws of some kinds at others."""
    failures, found = 0, []
    for number in range(count):
        throw = Throw.random(np.random.default_rng([seed, number]), *kinds)
        try:
            trajectory = da.Simulation(throw.mechanism, formulation(dt=throw.dt)).run(throw.steps * throw.dt)
        except da.StepFailure as failure:
            failures += 1
            print(f"throw {number}: {failure}")
            continue
        found += [f"throw {number}: {what}" for what in throw.complaints(trajectory)]
    return failures, found


@pytest.mark.parametrize(("formulation", "count"), [(da.Variational, 24), (da.Implicit, 8), (da.Reduced, 8)], ids=["variational", "implicit", "reduced"])
def test_thrown_pairs(formulation, count):
    failures, found = thrown(formulation, 77, count)
    assert not found, "\n".join(found)
    assert failures == 0


@pytest.mark.slow
@pytest.mark.parametrize(("formulation", "count"), [(da.Variational, 1000), (da.Implicit, 300), (da.Reduced, 300)], ids=["variational", "implicit", "reduced"])
def test_many_thrown_pairs(formulation, count):
    failures, found = thrown(formulation, 2026, count)
    assert not found, "\n".join(found)
    assert failures <= 1e-3 * count


@pytest.mark.parametrize(("formulation", "count"), [(da.Variational, 14), (da.Implicit, 7), (da.Reduced, 7)], ids=["variational", "implicit", "reduced"])
def test_thrown_cones(formulation, count):
    failures, found = thrown(formulation, 11, count, ("cone",), KINDS)
    assert not found, "\n".join(found)
    assert failures == 0


@pytest.mark.slow
@pytest.mark.parametrize(("formulation", "count"), [(da.Variational, 600), (da.Implicit, 200), (da.Reduced, 200)], ids=["variational", "implicit", "reduced"])
def test_many_thrown_cones(formulation, count):
    """Two of the thousand have a step without a solution: one of two cones, one of a cone on a box."""
    failures, found = thrown(formulation, 12, count, ("cone",), KINDS)
    assert not found, "\n".join(found)
    assert failures <= 5e-3 * count


@pytest.mark.parametrize("number", [16, 51, 73, 104])
def test_thrown_hulls_with_many_edges(number):
    """Of so many that not all pairs of them are looked at: they meet with those across the direction between the two."""
    throw = Throw.random(np.random.default_rng([21, number]), ("large hull",))
    trajectory = da.Simulation(throw.mechanism, da.Variational(dt=throw.dt)).run(throw.steps * throw.dt)
    assert not throw.complaints(trajectory)
    assert trajectory.substeps.max() <= 4


@pytest.mark.parametrize(("formulation", "numbers"), [(da.Variational, (91, 377)), (da.Implicit, (91, 111, 238)), (da.Reduced, (31, 91, 214, 377))], ids=["variational", "implicit", "reduced"])
def test_impacts_put_no_energy_in(formulation, numbers):
    """Restitution beside spins that turn the normal far within a step, and edges of cylinders that roll into a face: such steps are divided."""
    for number in numbers:
        throw = Throw.random(np.random.default_rng([7, number]))
        found = throw.complaints(da.Simulation(throw.mechanism, formulation(dt=throw.dt)).run(throw.steps * throw.dt))
        assert not found, f"throw {number}: {found}"


@pytest.mark.parametrize(
    ("formulation", "seed", "number"), [(da.Variational, 2026, 247), (da.Variational, 2026, 385), (da.Implicit, 2029, 218), (da.Reduced, 2029, 218)],
    ids=["cylinder on a hull", "cylinder on a cylinder", "cylinder on a box, implicit", "cylinder on a box, reduced"],
)
def test_caps_that_land_flat(formulation, seed, number):
    """A cap that lies flat at one knot and tilts within the next step, one that slaps on another, and one that takes 256 parts of a step."""
    throw = Throw.random(np.random.default_rng([seed, number]))
    trajectory = da.Simulation(throw.mechanism, formulation(dt=throw.dt)).run(throw.steps * throw.dt)
    assert not throw.complaints(trajectory)


@pytest.mark.parametrize(
    ("formulation", "number"), [(da.Variational, 2808), (da.Variational, 2130), (da.Implicit, 982), (da.Reduced, 929)],
    ids=["cap on a hull", "ball from an edge to a face", "cap on a box", "cap on a hull, reduced"],
)
def test_features_that_change_within_a_step(formulation, number):
    """Caps that lie flat at both ends of a step, whose lowest point jumps about, and a ball on an edge whose nearest feature is a face at the end."""
    throw = Throw.random(np.random.default_rng([7302, zlib.crc32(b"throw"), number]))
    trajectory = da.Simulation(throw.mechanism, formulation(dt=throw.dt)).run(throw.steps * throw.dt)
    assert not throw.complaints(trajectory)
    assert trajectory.substeps.max() <= 16


def test_a_capsule_across_a_corner_of_a_box_is_seen():
    mechanism = da.Mechanism("across", gravity=(0, 0, 0))
    mechanism.body("box", da.Box(size=(0.2, 0.2, 0.2), mass=1.0), collide=True)
    # its axis lies across the corner (0.1, 0.1, 0.1), both ends far from the box
    mechanism.body("capsule", da.Capsule(radius=0.02, length=1.0, mass=1.0, axis=(1, -1, 0)), position=(0.105, 0.105, 0.105), collide=True)
    with pytest.raises(da.OverlapError, match="box / capsule by"):
        da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.01)


def test_starts_that_overlap_are_seen():
    """All pairs of shapes, 0.1 to 5 mm deep."""
    random, number = np.random.default_rng(3), 0
    for i, kind in enumerate(KINDS):
        for other in KINDS[i:]:
            first, second = random_shape(kind, random), random_shape(other, random)
            turns = Rotation.random(2, rng=random)
            way, depth = random.normal(size=3), 10.0 ** random.uniform(-4.0, -2.3)
            near, far = 0.0, 3.0
            for _ in range(50):
                middle = 0.5 * (near + far)
                apart = least_distance((middle * way, turns[0].as_matrix(), first), (np.zeros(3), turns[1].as_matrix(), second), worry=-0.1)
                near, far = (middle, far) if apart < -depth else (near, middle)
            mechanism = da.Mechanism("overlapping", gravity=(0, 0, 0))
            mechanism.body("a", first, position=near * way, orientation=turns[0].as_quat(scalar_first=True), collide=True)
            mechanism.body("b", second, orientation=turns[1].as_quat(scalar_first=True), collide=True)
            simulation = da.Simulation(mechanism, da.Variational(dt=0.01))
            with pytest.raises(da.OverlapError) as caught:
                simulation.run(0.01)
            assert caught.value.overlaps[0][1] == pytest.approx(depth, rel=1e-2, abs=1e-6), (kind, other)
            simulation.resolve_overlaps()
            simulation.run(0.01)
            number += 1
    assert number == len(KINDS) * (len(KINDS) + 1) // 2


def test_a_body_between_others_is_named_when_a_step_has_no_solution():
    """A ball that is driven through a wall cannot be stopped: the failure says where."""
    mechanism = da.Mechanism("driven", gravity=(0, 0, 0))
    mechanism.obstacle("wall", da.Cylinder(radius=0.5, length=0.1, mass=1.0, axis="x"), position=(0.5, 0, 0))
    ball = mechanism.body("ball", da.Ellipsoid(semi_axes=(0.1, 0.12, 0.14), mass=1.0), collide=True)
    mechanism.joint("rail", da.Prismatic(axis="x", drive="motion"), mechanism.world, ball)
    simulation = da.Simulation(mechanism, da.Variational(dt=0.01, max_halvings=2))
    simulation.set_target("rail", lambda t: t)
    with pytest.raises(da.StepFailure, match="ball / wall"):
        simulation.run(1.0)
    assert 0.3 < simulation.time < 0.36
