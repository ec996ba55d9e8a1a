"""Impacts at a knot: velocities jump, by Newton's law of restitution and Coulomb's law for impulses.

With velocities v (6n), the mass matrix M, joint rows J, and for every closed contact rows C of its normal and two tangents,

    v+ = v- + N C^T P,    J v+ = J v-,    N = M^-1 - M^-1 J^T (J M^-1 J^T)^-1 J M^-1,
    0 <= C_n v+ + c e C_n v-   orthogonal to   P_n >= 0,    |P_t| <= mu P_n against C_t v+,

where e counts for what closes faster than the resting speed. c = 1, unless the work P . C (v- + v+) / 2 would be positive: then the
part c of the restitutions is the one for which it is zero (see ``contact.impacts``), and where there are no impulses with it, it is zero itself. One after the other, what closes fastest first, each
contact strikes alone, as in a cradle.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from dalembert.errors import StepFailure

#: what a contact does in an impact
OPEN, STICK, SLIDE = range(3)
#: relative size of what counts as zero
ROUNDING = 1e-12
#: relative error that is let pass where contacts say nearly the same
LOOSE = 1e-6
#: sweeps over the contacts between tries to solve their equations; how often; iterations of these
SWEEPS, TRIES, ITERATIONS = 50, 40, 30
#: directions in which a contact may slide that are looked at first
ANGLES = 64
#: most strikes in a row at one knot
MOST = 10_000


class Closed(NamedTuple):
    """What is closed at a knot: m contacts and ends of limits (which have no friction)."""

    rows: np.ndarray  # (m, 3, 6n) normal, tangents
    restitution: np.ndarray  # (m,)
    friction: np.ndarray  # (m,)
    mass: np.ndarray  # (6n, 6n) M
    held: np.ndarray  # (h, 6n) J, rows of what joints hold

    def solved(self) -> tuple[np.ndarray, np.ndarray]:
        """N (6n, 6n), velocities per impulse, and B (6n, h), velocities per what the joints' rows should be: the upper half of the inverse of [[M, J^T], [J, 0]]."""
        N = np.linalg.inv(self.mass)
        B = N @ self.held.T
        if len(self.held):
            B = B @ np.linalg.pinv(self.held @ B, rcond=1e-12, hermitian=True)
            N = N - B @ self.held @ N
        return 0.5 * (N + N.T), B


class Blow(NamedTuple):
    """One impact of some of what is closed at once."""

    who: np.ndarray  # (k,) indices of the closed
    before: np.ndarray  # (6n,) velocities
    after: np.ndarray
    impulse: np.ndarray  # (k, 3)
    kind: np.ndarray  # (k,) OPEN, STICK or SLIDE
    bounced: np.ndarray  # (k,) 1 where restitution counts, else 0
    part: float  # of the restitutions
    limited: bool  # whether the part follows from the work


def _local(A: np.ndarray, q: np.ndarray, bound: float, mu: float) -> np.ndarray:
    """Impulses (3,) of one contact with the mobility A (3, 3), whose velocities without them are q."""
    if q[0] >= bound:
        return np.zeros(3)
    if mu == 0.0:
        return np.array([(bound - q[0]) / A[0, 0], 0.0, 0.0])
    stick = np.linalg.lstsq(A, np.array([bound, 0.0, 0.0]) - q, rcond=1e-13)[0]
    if stick[0] >= 0.0 and np.hypot(stick[1], stick[2]) <= mu * stick[0]:
        return stick
    return _slide(A, q, bound, mu) if mu * np.hypot(A[0, 1], A[0, 2]) > 0.0 or np.any(q[1:]) else stick


def _slide(A: np.ndarray, q: np.ndarray, bound: float, mu: float) -> np.ndarray:
    """Impulses of a contact that slides: along a direction d at its angle, the velocity after the impact must point along d."""

    def at(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        d = np.array([np.cos(angle), np.sin(angle)])
        push = (bound - q[0]) / (A[0, 0] - mu * A[0, 1:] @ d)
        slide = q[1:, None] + push * (A[1:, :1] - mu * A[1:, 1:] @ d)
        return d, push, d[0] * slide[1] - d[1] * slide[0], np.sum(d * slide, axis=0)

    angles = np.linspace(0.0, 2.0 * np.pi, ANGLES + 1)
    _, push, miss, _ = at(angles)
    for k in np.flatnonzero((miss[:-1] * miss[1:] <= 0.0) & (push[:-1] > 0.0) & (push[1:] > 0.0)):
        angle = brentq(lambda x: float(at(np.array([x]))[2][0]), angles[k], angles[k + 1], xtol=1e-15)  # type: ignore[arg-type]
        d, push, _, along = (value[..., 0] for value in at(np.array([angle])))
        if along >= 0.0 and push > 0.0:
            return np.array([push, *(-mu * push * d)])
    return np.linalg.lstsq(A, np.array([bound, 0.0, 0.0]) - q, rcond=1e-13)[0]


def laws(A: np.ndarray, u: np.ndarray, P: np.ndarray, kind: np.ndarray, bound: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (3k,) of impulses P (k, 3) at velocities u (k, 3) after the impact, and their derivative (3k, 3k) by P, of which u changes by A."""
    k = len(P)
    rows, slopes = np.zeros((k, 3)), np.zeros((k, 3, 3 * k))
    for i in range(k):
        own, at = np.zeros((3, 3 * k)), slice(3 * i, 3 * i + 3)
        own[:, at] = np.eye(3)
        if kind[i] == OPEN:
            rows[i], slopes[i] = P[i], own
            continue
        rows[i, 0], slopes[i, 0] = u[i, 0] - bound[i], A[3 * i]
        if mu[i] == 0.0:
            rows[i, 1:], slopes[i, 1:] = P[i, 1:], own[1:]
        elif kind[i] == STICK:
            rows[i, 1:], slopes[i, 1:] = u[i, 1:], A[3 * i + 1 : 3 * i + 3]
        else:
            speed = max(float(np.linalg.norm(u[i, 1:])), 1e-300)
            t = u[i, 1:] / speed
            rows[i, 1:] = P[i, 1:] + mu[i] * P[i, 0] * t
            turn = (np.eye(2) - np.outer(t, t)) / speed
            slopes[i, 1:] = own[1:] + mu[i] * (np.outer(t, own[0]) + P[i, 0] * turn @ A[3 * i + 1 : 3 * i + 3])
    return rows.ravel(), slopes.reshape(3 * k, 3 * k)


def strike(A: np.ndarray, free: np.ndarray, bound: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Impulses (k, 3) and kinds (k,) for velocities ``free`` (k, 3) without them and a mobility A (3k, 3k)."""
    k = len(free)
    P, speed = np.zeros((k, 3)), max(float(np.abs(free).max(initial=0.0)), float(bound.max(initial=0.0)), 1e-300)
    scale = np.array([max(A[3 * i, 3 * i], 1e-300) for i in range(k)])
    small = ROUNDING * speed
    for _ in range(TRIES):
        for _ in range(1 if k == 1 else SWEEPS):
            for i in range(k):
                at = slice(3 * i, 3 * i + 3)
                q = free[i] + A[at] @ P.ravel() - A[at, at] @ P[i]
                P[i] = _local(A[at, at], q, float(bound[i]), float(mu[i]))
        size = np.linalg.norm(P[:, 1:], axis=1)
        kind = np.where(P[:, 0] * scale <= small, OPEN, np.where(size < mu * P[:, 0] * (1.0 - 1e-9), STICK, SLIDE))
        found = np.where((kind == OPEN)[:, None], 0.0, P)
        for _ in range(ITERATIONS):
            u = free + (A @ found.ravel()).reshape(k, 3)
            rows, slopes = laws(A, u, found, kind, bound, mu)
            change = np.linalg.lstsq(slopes, rows, rcond=1e-13)[0].reshape(k, 3)
            found = found - change
            if np.all(np.abs(change) * scale[:, None] <= small):
                break
        u = free + (A @ found.ravel()).reshape(k, 3)
        rows = laws(A, u, found, kind, bound, mu)[0].reshape(k, 3)
        rows[kind == SLIDE, 1:] *= scale[kind == SLIDE, None]
        rows[kind == OPEN] = 0.0
        kept, push = 1e3 * small, found * scale[:, None]  # impulses as changes of velocity
        pushes, apart = push[:, 0] >= -kept, u[:, 0] - bound >= -kept
        cone = np.linalg.norm(push[:, 1:], axis=1) <= mu * push[:, 0] + kept
        against = np.sum(push[:, 1:] * u[:, 1:], axis=1) <= kept * speed
        if np.all(pushes & apart & cone & against) and np.abs(rows).max(initial=0.0) <= kept:
            return found, kind
    # many contacts that say nearly the same: the sweeps' own answer, if it is one
    u = free + (A @ P.ravel()).reshape(k, 3)
    if np.all(u[:, 0] - bound >= -LOOSE * speed) and np.all((P[:, 0] * scale <= small) | (u[:, 0] - bound <= LOOSE * speed)):
        return P, kind
    raise StepFailure("the impulses of an impact were not found: its contacts jam")


def _blow(closed: Closed, N: np.ndarray, who: np.ndarray, v: np.ndarray, resting: float, limited: bool) -> Blow:
    """One impact of some of the closed at once."""
    C, mu = closed.rows[who].reshape(-1, len(v)), closed.friction[who]
    A, u = C @ N @ C.T, (C @ v).reshape(-1, 3)
    bounced = (u[:, 0] < -resting).astype(float)
    rebound = -closed.restitution[who] * u[:, 0] * bounced

    def work(part: float) -> tuple[float, np.ndarray, np.ndarray]:
        P, kind = strike(A, u, part * rebound, mu)
        return float(P.ravel() @ (u.ravel() + 0.5 * A @ P.ravel())), P, kind

    part, cut = 1.0, False
    try:
        gain, P, kind = work(part)
    except StepFailure:  # where friction wedges in what would rise
        if not limited or not np.any(rebound > 0.0):
            raise
        part = 0.0
        gain, P, kind = work(part)
    if limited and gain > 1e-12 * float(np.abs(P).ravel() @ np.abs(u).ravel()) and np.any(rebound > 0.0) and work(0.0)[0] < 0.0:
        part, cut = float(brentq(lambda c: work(c)[0], 0.0, 1.0, xtol=1e-15)), True  # type: ignore[arg-type]
        _, P, kind = work(part)
    after = v + N @ (C.T @ P.ravel())
    return Blow(who, v, after, P, kind, bounced, part, cut)


def halt(closed: Closed, who: np.ndarray, v: np.ndarray) -> Blow:
    """Some of the closed, whose slides are at their end, no longer move: what is left of their velocities (rounding, and what a step leaves) is taken."""
    C, mu, N = closed.rows[who].reshape(-1, len(v)), closed.friction[who], closed.solved()[0]
    kind, none = np.full(len(who), STICK), np.zeros(len(who))
    rows, slopes = laws(C @ N @ C.T, (C @ v).reshape(-1, 3), np.zeros((len(who), 3)), kind, none, mu)
    P = -np.linalg.lstsq(slopes, rows, rcond=1e-13)[0]
    return Blow(who, v, v + N @ (C.T @ P), P.reshape(-1, 3), kind, none, 1.0, False)


def blows(closed: Closed, v: np.ndarray, resting: float, law: str) -> list[Blow]:
    """The impacts of all that closes faster than ``resting`` (m/s): at once, or for the law "sequential" one after the other."""
    found: list[Blow] = []
    everybody, N = np.arange(len(closed.rows)), closed.solved()[0]
    while len(found) < MOST:
        rates = closed.rows[:, 0] @ v
        if not np.any(rates < -resting):
            return found
        who = everybody if law != "sequential" else np.array([int(np.argmin(rates))])
        found.append(_blow(closed, N, who, v, resting, law != "newton"))
        v = found[-1].after
    raise StepFailure(f"more than {MOST} strikes follow one another at one moment: raise resting_speed, or choose another law of impacts")
