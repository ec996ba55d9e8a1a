"""Contact and friction as quadratic programs (RedMax 1.11, 1.13, 2.11): one for both, or two in turn until they agree.

With ``bearing``, which says what the joints' loads of a motion allow, the latter is also Algorithm 8 (bilateral staggered
projections) with all its external constraints: loops in W, contacts beside the joints.

Any formulation's: velocities v (n,) follow from impulses by the products of an inverse inertia, W, with joints and loops
eliminated where there are any,

    v = free + W (N^T alpha + T^T beta + S^T delta),       N v >= bound,  alpha >= 0,  |beta| <= mu alpha,  |delta| <= dry.

A program min x.Ax/2 + c.x with bounds on x is a bounded least-squares problem in the square root of A.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import lsq_linear, nnls

from dalembert.errors import ModelError

#: eigenvalues below this part of the largest one count as this: of all impulses that do the same, the smallest
FLOOR = 1e-13
#: parts of c below this, where A has none, come from rounding
NOISE = 1e-11
#: programs at most, and how many until less is asked of the bounds of bearings
MOST, PATIENT = 200, 20
#: a sliding speed (m/s) below which tangents are not turned along it
STILL = 1e-9


@dataclass(frozen=True, kw_only=True)
class ContactProblem:
    """What two programs need of a step: ``free`` (n,) velocities without contacts, ``inverse`` (n, k) -> (n, k) products with W.

    ``normal`` (c, n): rows N; ``bound`` (c,): lowest rates along them (m/s); ``tangent`` (c, 2, n): two directions across each
    normal; ``friction`` (c,): mu. ``dry`` (d, n): rows with friction of a given ``dry_bound`` (d,), N s or N m s, and of bearings:
    ``bearing`` (a solution so far, how often it was asked) -> bounds that are added to ``dry_bound`` (d,), and how many of the last
    ones were wrong.
    """

    free: np.ndarray
    inverse: Callable[[np.ndarray], np.ndarray]
    normal: np.ndarray
    bound: np.ndarray
    tangent: np.ndarray
    friction: np.ndarray
    dry: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    dry_bound: np.ndarray = field(default_factory=lambda: np.zeros(0))
    bearing: Callable[[ContactSolution, int], tuple[np.ndarray, int]] | None = None

    def __post_init__(self) -> None:
        size, contacts = len(self.free), len(self.normal)
        if not len(self.dry_bound):
            object.__setattr__(self, "dry", np.zeros((0, size)))
        shapes = dict(normal=(contacts, size), bound=(contacts,), tangent=(contacts, 2, size), friction=(contacts,), dry=(len(self.dry_bound), size))
        for name, shape in shapes.items():
            found = np.shape(getattr(self, name))
            if found != shape:
                raise ModelError(f"ContactProblem: {name} must have the shape {shape}, got {found}")
        for name in ("friction", "dry_bound"):
            if np.any(getattr(self, name) < 0.0):
                raise ModelError(f"ContactProblem: {name} must not be negative, got {getattr(self, name)}")


@dataclass(frozen=True)
class ContactSolution:
    """Velocities with contacts, and impulses: ``normal`` (c,), ``tangential`` (c, 2) along the problem's tangents, ``dry`` (d,).

    ``change``: by how much the velocities still changed (sqrt(J)) when the programs had been solved ``iterations`` times.
    """

    velocity: np.ndarray
    normal: np.ndarray
    tangential: np.ndarray
    dry: np.ndarray
    iterations: int
    converged: bool
    change: float = 0.0


def square_root(A: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """F and d with F^T F = A and F^T d = c for a positive semidefinite A, made definite by ``FLOOR``."""
    values, vectors = np.linalg.eigh(0.5 * (A + A.T))
    least = FLOOR * max(float(values[-1]), np.finfo(float).tiny)
    root, along = np.sqrt(np.maximum(values, least)), vectors.T @ c
    along[(values <= 100.0 * least) & (np.abs(along) < NOISE * np.abs(c).max())] = 0.0
    return root[:, None] * vectors.T, along / root


def nonnegative_program(A: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The x >= 0 with the least x.Ax/2 + c.x (eq. 1.98, 2.120)."""
    if not len(c):
        return np.zeros(0)
    F, d = square_root(A, c)
    return nnls(F, -d, maxiter=50 * len(c))[0]


def bounded_program(A: np.ndarray, c: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The x between bounds with the least x.Ax/2 + c.x (eq. 2.121)."""
    x = lower.copy()
    open_ = np.flatnonzero(upper > lower)
    if len(open_):
        F, d = square_root(A[np.ix_(open_, open_)], c[open_] + A[np.ix_(open_, np.flatnonzero(upper <= lower))] @ x[upper <= lower])
        x[open_] = lsq_linear(F, -d, bounds=(lower[open_], upper[open_]), method="bvls", max_iter=50 * len(open_), tol=1e-14).x
    return x


def single_program(problem: ContactProblem, edges: int = 4) -> ContactSolution:
    """Normal impulses and friction in one program with a pyramid of ``edges`` sides (Anitescu and Hart; eq. 1.103).

    The pyramid lambda >= 0, E lambda >= 0 is what its edges span: the impulse of a contact is a sum of
    (N + mu T_k)^T rho_k with rho >= 0, and its dual is N v + mu T_k v >= bound. What slides is therefore lifted by
    mu times its sliding speed: a known artefact of this model, absent from ``staggered_projections``. With bearings it is
    solved again until their bounds are right.
    """
    if edges < 3:
        raise ModelError(f"single_program: a pyramid needs three edges or more, got {edges}")
    angles = 2.0 * np.pi * np.arange(edges) / edges
    around = np.column_stack([np.cos(angles), np.sin(angles)])
    contacts, size = problem.normal.shape
    sliding = np.einsum("c,ek,ckn->cen", problem.friction, around, problem.tangent)
    rays = (problem.normal[:, None] + sliding).reshape(-1, size)
    rows = np.concatenate([rays, problem.dry])
    spread = problem.inverse(rows.T)
    lowest = np.concatenate([np.repeat(problem.bound, edges), np.zeros(len(problem.dry))])
    c = rows @ problem.free - lowest
    A, limit, wrong, count = rows @ spread, problem.dry_bound, 1, 0
    while True:
        count += 1
        if len(limit):
            lower, upper = np.concatenate([np.zeros(len(rays)), -limit]), np.concatenate([np.full(len(rays), np.inf), limit])
            x = bounded_program(A, c, lower, upper)
        else:
            x = nonnegative_program(A, c)
        rho = x[: len(rays)].reshape(contacts, edges)
        tangential = problem.friction[:, None] * (rho @ around)
        found = ContactSolution(problem.free + spread @ x, rho.sum(axis=1), tangential, x[len(rays) :], count, wrong == 0)
        if problem.bearing is None:
            return replace(found, converged=True)
        more, wrong = problem.bearing(found, count // PATIENT)
        limit = problem.dry_bound + more
        if wrong == 0 or count >= MOST:
            return replace(found, converged=wrong == 0)


def staggered_projections(
    problem: ContactProblem, *, start: np.ndarray | None = None, tolerance: float = 1e-10, max_iterations: int = MOST,
) -> ContactSolution:
    """Contact program and friction program in turn until the contact impulses stay (Kaufman et al.; RedMax Algorithm 7).

    Friction has a box of four sides per contact (eq. 2.121), whose first axis lies along the sliding velocity, so that what
    slides is held back by mu alpha whatever its direction. ``start``: friction impulses (2 c + d,) to begin with, along the
    problem's tangents, such as those of the last step; ``tolerance`` in sqrt(J). The last program is that of contact: no
    contact gives way, however far the iteration came.
    """
    contacts, size = problem.normal.shape
    turn = _along_sliding(problem)
    tangent = np.einsum("cij,cjn->cin", turn, problem.tangent)
    rows = np.concatenate([tangent.reshape(-1, size), problem.dry])
    normal_spread, spread = problem.inverse(problem.normal.T), problem.inverse(rows.T)
    A, B, cross = problem.normal @ normal_spread, rows @ spread, problem.normal @ spread
    rest, slip = problem.normal @ problem.free - problem.bound, rows @ problem.free
    alpha, beta = np.zeros(contacts), np.zeros(len(rows))
    if start is not None:
        beta = np.concatenate([np.einsum("cij,cj->ci", turn, start[: 2 * contacts].reshape(-1, 2)).ravel(), start[2 * contacts :]])
    dry = problem.dry_bound
    count, wrong = 0, 0
    while True:
        count += 1
        before, alpha = alpha, nonnegative_program(A, rest + cross @ beta)
        step = alpha - before
        change = float(np.sqrt(max(step @ A @ step, 0.0)))
        tangential = np.einsum("cij,ci->cj", turn, beta[: 2 * contacts].reshape(-1, 2))
        velocity = problem.free + normal_spread @ alpha + spread @ beta
        found = ContactSolution(velocity, alpha, tangential, beta[2 * contacts :], count, change <= tolerance, change)
        if problem.bearing is not None:
            more, wrong = problem.bearing(found, count // PATIENT)
            dry = problem.dry_bound + more
        if (change <= tolerance and wrong == 0 and count > 1) or count >= max_iterations:
            return replace(found, converged=change <= tolerance and wrong == 0)
        limit = np.concatenate([np.repeat(problem.friction * alpha, 2), dry])
        beta = bounded_program(B, slip + cross.T @ alpha, -limit, limit)


def _along_sliding(problem: ContactProblem) -> np.ndarray:
    """(c, 2, 2) rotations that lay the first tangent of each contact along its sliding velocity without contacts."""
    slip = problem.tangent @ problem.free
    speed = np.linalg.norm(slip, axis=1)
    unit = np.where((speed > STILL)[:, None], slip / np.maximum(speed, STILL)[:, None], [1.0, 0.0])
    return np.stack([unit, np.column_stack([-unit[:, 1], unit[:, 0]])], axis=1)
