"""Contact and friction programs: optimality conditions, closed forms, agreement of the two where both are right."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.contact.projections import (
    ContactProblem,
    bounded_program,
    nonnegative_program,
    single_program,
    staggered_projections,
)


def definite(rng: np.random.Generator, size: int) -> np.ndarray:
    root = rng.normal(size=(size, size))
    return root @ root.T + np.eye(size)


def random_problem(seed: int, friction: float = 0.3) -> tuple[ContactProblem, np.ndarray]:
    """Five contacts and a direction with dry friction over eight velocities, and the inertia."""
    rng = np.random.default_rng(seed)
    inertia = definite(rng, 8)
    problem = ContactProblem(
        free=rng.normal(size=8), inverse=lambda columns: np.linalg.solve(inertia, columns), normal=rng.normal(size=(5, 8)),
        bound=0.2 * rng.normal(size=5), tangent=rng.normal(size=(5, 2, 8)), friction=np.full(5, friction),
        dry=rng.normal(size=(1, 8)), dry_bound=np.array([0.1]),
    )
    return problem, inertia


def block(velocity: tuple[float, float, float], friction: float = 0.3) -> ContactProblem:
    """A point of 2 kg on the ground."""
    return ContactProblem(
        free=np.array(velocity), inverse=lambda columns: columns / 2.0, normal=np.array([[0.0, 0, 1]]), bound=np.zeros(1),
        tangent=np.array([[[1.0, 0, 0], [0, 1, 0]]]), friction=np.array([friction]),
    )


@pytest.mark.parametrize("seed", range(5))
def test_programs_meet_their_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    A, c = definite(rng, 6), rng.normal(size=6)
    x = nonnegative_program(A, c)
    slope = A @ x + c
    assert x.min() >= 0.0
    assert slope.min() > -1e-12
    assert abs(x @ slope) < 1e-12
    lower, upper = -rng.uniform(0, 0.2, 6), rng.uniform(0, 0.2, 6)
    upper[0] = lower[0] = 0.05
    x = bounded_program(A, c, lower, upper)
    slope = A @ x + c
    inside = (x > lower + 1e-12) & (x < upper - 1e-12)
    assert np.abs(slope[inside]).max(initial=0.0) < 1e-11
    assert np.all(slope[1:][x[1:] == lower[1:]] > -1e-11)
    assert np.all(slope[1:][x[1:] == upper[1:]] < 1e-11)


def test_redundant_contacts_share_their_load():
    """Four corners under a plate: one too many."""
    corners = np.array([(x, y) for x in (-1.0, 1.0) for y in (-1.0, 1.0)])
    normal = np.column_stack([np.ones(4), corners[:, 1], -corners[:, 0]])  # velocity up, rates about x and y
    problem = ContactProblem(
        free=np.array([-1.0, 0, 0]), inverse=lambda columns: columns, normal=normal, bound=np.zeros(4), tangent=np.zeros((4, 2, 3)), friction=np.zeros(4),
    )
    assert staggered_projections(problem).normal == pytest.approx(np.full(4, 0.25), abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_staggered_projections_end_where_both_programs_agree(seed):
    problem, inertia = random_problem(seed)
    found = staggered_projections(problem, max_iterations=2000)
    assert found.converged
    rate = problem.normal @ found.velocity - problem.bound
    assert rate.min() > -1e-9
    assert abs(found.normal @ rate) < 1e-8
    push = problem.normal.T @ found.normal + np.einsum("ckn,ck->n", problem.tangent, found.tangential) + problem.dry.T @ found.dry
    assert np.abs(inertia @ (found.velocity - problem.free) - push).max() < 1e-10
    assert np.all(np.linalg.norm(found.tangential, axis=1) <= np.sqrt(2) * 0.3 * found.normal + 1e-9)
    slip = float((problem.dry @ found.velocity)[0])
    assert abs(found.dry[0]) <= 0.1 + 1e-12
    assert abs(slip) < 1e-8 or found.dry[0] == pytest.approx(-0.1 * np.sign(slip))


@pytest.mark.parametrize("seed", range(6))
def test_without_friction_the_two_are_one_projection(seed):
    problem, _ = random_problem(seed, friction=0.0)
    one, other = single_program(problem), staggered_projections(problem, max_iterations=3000)
    assert np.abs(one.velocity - other.velocity).max() < 1e-6


@pytest.mark.parametrize("heading", [0.0, 0.3, np.pi / 4, 2.0])
def test_sliding_is_held_back_by_mu_times_the_load_in_every_direction(heading):
    push = np.array([np.cos(heading), np.sin(heading)])
    found = staggered_projections(block((*(3.0 * push), -0.5)))
    assert found.normal[0] == pytest.approx(1.0)
    assert found.tangential[0] == pytest.approx(-0.3 * push)
    assert abs(found.velocity[2]) < 1e-12


def test_a_single_program_lifts_what_slides_and_holds_what_sticks():
    lifted = single_program(block((3.0, 0.0, -0.5)))
    assert lifted.velocity[2] == pytest.approx(0.3 * lifted.velocity[0])
    for solve in (single_program, staggered_projections):
        assert np.abs(solve(block((0.1, -0.02, -0.5))).velocity).max() < 1e-10


def test_a_warm_start_saves_programs():
    problem, _ = random_problem(1)
    first = staggered_projections(problem, max_iterations=2000)
    again = staggered_projections(problem, start=np.concatenate([first.tangential.ravel(), first.dry]))
    assert again.iterations < first.iterations
    assert np.abs(again.velocity - first.velocity).max() < 1e-8


def test_wrong_shapes_are_named():
    with pytest.raises(da.ModelError, match="bound must have the shape"):
        ContactProblem(
            free=np.zeros(3), inverse=lambda columns: columns, normal=np.zeros((1, 3)), bound=np.zeros(2), tangent=np.zeros((1, 2, 3)), friction=np.zeros(1),
        )
    with pytest.raises(da.ModelError, match="friction must not be negative"):
        block((0.0, 0.0, 0.0), friction=-0.1)
    with pytest.raises(da.ModelError, match="three edges"):
        single_program(block((0.0, 0.0, 0.0)), edges=2)
