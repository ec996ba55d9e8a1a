"""Poses in which all forces are in balance, by Newton's method on what the joints leave free; and whether they are stable.

With f the forces on the bodies, G the rows and J the gradients of independent coordinates, f + G^T lam = J^T rho: rho are the
forces along the coordinates, which shall be zero. Its change is N^T (K + H_G(lam) - H_J(rho)) N, exact away from balance too.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from dalembert.errors import AssemblyError, EquilibriumError, LinearisationError, ModelError
from dalembert.formulations.engine import Start
from dalembert.gradients.chart import Chart
from dalembert.gradients.curved import reaches
from dalembert.gradients.local import local_at
from dalembert.gradients.situation import Situation
from dalembert.gradients.space import Closer, check_regular, follow_motion
from dalembert.model.assembly import mass_blocks
from dalembert.model.functions import watched
from dalembert.model.placement import Placement

#: forces in balance, as a part of all forces that act
BALANCED = 1e-9
#: and as a part of which they may be rounding, so that a step that does not help is the last
ROUNDING = 1e-11
#: parts of the largest stiffness over mass that count as none
NEUTRAL = 1e-9
#: rad, or part of the size of the mechanism, that a step may move
LARGEST = 0.3
#: the same from which on an equilibrium that Newton's method sees is none of this branch
FAR = 10.0
#: steps of each kind, and how often one is halved
STEPS, HALVINGS = 100, 12
#: m, by which things may overlap
OVERLAP = 1e-7


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A pose in which all forces are in balance.

    ``position`` (n, 3), ``orientation`` (n, 4): of the bodies; ``joints``: coordinates of all joints by name. ``stability``:
    "stable", "neutral" or "unstable", from ``stiffness`` (d,): eigenvalues of the projected stiffness over the projected mass,
    1/s^2 (the squares of the angular frequencies of vibrations), least first; complex where forces follow the motion.
    ``residual``: what is left of the forces, as a part of all that act. ``steps``: of Newton's method. ``start``: the pose as engines
    begin from it.
    """

    position: np.ndarray
    orientation: np.ndarray
    joints: dict[str, np.ndarray]
    stability: str
    stiffness: np.ndarray
    residual: float
    steps: int
    start: Start

    @property
    def stable(self) -> bool:
        return self.stability == "stable"


class Balance(NamedTuple):
    """Forces at a pose: along the coordinates (d,), their negative change with them (d, d), the projected mass (d, d).

    ``size``: of the forces, measured by the accelerations that they give; ``scale``: the same of all forces without the joints.
    """

    chart: Chart
    force: np.ndarray
    stiffness: np.ndarray
    mass: np.ndarray
    size: float
    scale: float


def balance_at(placement: Placement, situation: Situation) -> Balance:
    """Forces along independent coordinates at the placement's pose, at rest."""
    count = placement.sizes[0]
    local = local_at(placement, np.zeros(6 * count), situation.inputs)
    chart = Chart(placement, local.numbers)
    N = chart.motions
    force = N.T @ local.force
    rest = chart.J.T @ force - local.force
    stiffness = -N.T @ (local.K + local.numbers.rows.contract(chart.space.forces(rest)) - chart.curved.contract(force)) @ N
    mass = N.T @ local.inertia @ N
    size = float(np.sqrt(max(force @ np.linalg.solve(mass, force), 0.0)))
    gross = np.abs(local.force) + np.abs(local.numbers.directions.gradient()).T @ np.abs(local.laws.directions[:, 0])
    gross += np.abs(local.numbers.paths.gradient()).T @ np.abs(local.laws.paths[:, 0])
    blocks = np.linalg.inv(mass_blocks(placement.model))
    scale = float(np.sqrt(np.einsum("ni,nij,nj->", gross.reshape(-1, 6), np.abs(blocks), gross.reshape(-1, 6))))
    return Balance(chart, force, stiffness, mass, size, scale)


def find_equilibrium(situation: Situation, stable: bool) -> Equilibrium:
    """The equilibrium near a situation's pose."""
    placement = situation.placement()
    try:
        Closer(placement).close()
    except AssemblyError as error:
        raise EquilibriumError(f"the joints cannot be closed with the targets of the drives: {error}") from None
    begun = placement.keep()
    with watched(situation.mechanism):
        try:
            steps, balance = (0, None) if stable else _newton(placement, situation, False)
            if balance is None:
                placement.restore(begun)
                placement.evaluate()
                more, balance = _newton(placement, situation, True)
                steps += more
            if balance is None:
                raise EquilibriumError(_unbalanced(placement, situation))
            check_regular(placement, balance.chart.space)
        except LinearisationError as error:
            raise EquilibriumError(str(error)) from None
    work = placement.work
    start = Start(
        work.bodies["x"][:-1].copy(), work.bodies["q"][:-1].copy(), np.zeros((placement.sizes[0], 6)), work.joints["coordinate"].copy(), situation.start.target,
    )
    _check_bounds(situation, start)
    stiffness, stability = stability_of(balance.stiffness, balance.mass)
    return Equilibrium(
        start.position, start.orientation,
        {j.name: start.coordinate[j.index, : j.type.freedom].copy() for j in situation.mechanism.joints},
        stability, stiffness, balance.size / max(balance.scale, 1e-300), steps, start,
    )


def stability_of(stiffness: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, str]:
    """(d,) eigenvalues of a stiffness over a mass, and what they say of the stability."""
    scaled = _scaled(stiffness, mass)[0]
    values = np.linalg.eigvals(scaled)
    symmetric = np.abs(scaled - scaled.T).max() <= 1e-7 * np.abs(scaled).max(initial=1e-300)
    if symmetric:
        values = np.linalg.eigvalsh(0.5 * (scaled + scaled.T))
    values = values[np.argsort(values.real)]
    nothing = NEUTRAL * np.abs(values).max(initial=0.0)
    if np.any(values.real < -nothing) or np.any(np.abs(values.imag) > 1e-6 * np.abs(values).max(initial=0.0)):
        return values, "unstable"
    return values, "stable" if np.all(values.real > nothing) else "neutral"


def _scaled(stiffness: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L^-1 K L^-T with M = L L^T, and L."""
    L = cholesky(mass, lower=True)
    return solve_triangular(L, solve_triangular(L, stiffness, lower=True).T, lower=True).T, L


def _newton(placement: Placement, situation: Situation, downhill: bool) -> tuple[int, Balance | None]:
    """Steps towards balance, kept short; ``downhill``: along the forces, also where the stiffness is negative.

    Returns the number of steps, and None for the balance when there was no way on.
    """
    balance = balance_at(placement, situation)
    for step in range(STEPS):
        if balance.size <= 1e-14 * balance.scale:
            return step, balance
        motion = balance.chart.motions @ _step(balance, downhill)
        extent = _extent(placement, motion)
        if extent > FAR and not downhill:  # hardly any stiffness: not even the direction is to be trusted
            return step, None
        motion = motion * min(1.0, LARGEST / extent)
        kept, found = placement.keep(), None
        for _ in range(HALVINGS if balance.size > ROUNDING * balance.scale else 1):
            found = _after(placement, situation, motion)
            if found is not None and _better(balance, found, motion, downhill):
                break
            found = None
            placement.restore(kept)
            placement.evaluate()
            motion = 0.5 * motion
        if found is None:
            return step, balance if balance.size <= BALANCED * balance.scale else None
        balance = found
    return STEPS, balance if balance.size <= BALANCED * balance.scale else None


def _step(balance: Balance, downhill: bool) -> np.ndarray:
    """(d,) change of the coordinates; nothing along what no force answers."""
    scaled, L = _scaled(balance.stiffness, balance.mass)
    force = solve_triangular(L, balance.force, lower=True)
    if downhill:
        values, vectors = eigh(0.5 * (scaled + scaled.T))
        sizes = np.maximum(np.abs(values), 1e-6 * max(np.abs(values).max(), 1e-300))
        answer = vectors @ ((vectors.T @ force) / sizes)
    else:
        answer = np.linalg.lstsq(scaled, force, rcond=NEUTRAL)[0]
    return solve_triangular(L, answer, lower=True, trans=1)


def _extent(placement: Placement, motion: np.ndarray) -> float:
    """Size of a motion (6 n,): rad, or parts of the size of the mechanism."""
    x = placement.work.bodies["x"][:-1]
    size = max(float(np.ptp(x, axis=0).max()), float(reaches(placement.model).max()))
    step = motion.reshape(-1, 6)
    return max(float(np.abs(step[:, :3]).max()) / size, float(np.abs(step[:, 3:]).max()), 1e-300)


def _after(placement: Placement, situation: Situation, motion: np.ndarray) -> Balance | None:
    """Forces after a motion with the joints closed again; None where that cannot be."""
    try:
        follow_motion(placement, motion)
        Closer(placement).close()
        return balance_at(placement, situation)
    except (AssemblyError, LinearisationError, ModelError):
        return None


def _better(before: Balance, after: Balance, motion: np.ndarray, downhill: bool) -> bool:
    """Less force is left, or (downhill) the forces did work along the motion."""
    if after.size < (1.0 - 1e-4) * before.size:
        return not downhill or after.size < 1e-6 * after.scale or _work(before, after, motion) > 0.0
    return downhill and after.size > 1e-6 * after.scale and _work(before, after, motion) > 0.0


def _work(before: Balance, after: Balance, motion: np.ndarray) -> float:
    return float(before.force @ (before.chart.J @ motion) + after.force @ (after.chart.J @ motion))


def _unbalanced(placement: Placement, situation: Situation) -> str:
    """Why there is no equilibrium: the coordinates along which a force stays."""
    balance = balance_at(placement, situation)
    answer = np.abs(np.linalg.solve(balance.mass, balance.force))
    worst = [balance.chart.coordinates[i] for i in np.argsort(-answer)[:3] if answer[i] > 1e-3 * answer.max()]
    names = ", ".join(f"{c.name} ({answer[list(balance.chart.coordinates).index(c)]:.3g} {c.unit}/s^2)" for c in worst)
    return (
        f"no equilibrium of {situation.mechanism.name!r} was found: where the search ended, forces still accelerate {names}. "
        "Hold these by springs, joints or inputs, or start nearer to the pose."
    )


def _check_bounds(situation: Situation, start: Start) -> None:
    """Raise EquilibriumError where the pose lies beyond limits or within other bodies: what would rest there rests on a contact."""
    for element in situation.mechanism.joints:
        values = start.coordinate[element.index, : element.type.freedom]
        for value, (lower, upper) in zip(values, element.type.limits):
            if not lower <= value <= upper:
                raise EquilibriumError(
                    f"the forces of {situation.mechanism.name!r} balance only beyond a limit of joint {element.name!r} ({value:.6g}, limits {lower:g} to {upper:g}): "
                    "it rests at the limit. Run it with damping to find that pose."
                )
    gaps = getattr(situation.engine, "gaps", None)
    closed = [] if gaps is None else [(name, gap) for name, gap in gaps(situation.engine.start(start)) if gap < -OVERLAP]
    if closed:
        raise EquilibriumError(
            f"the forces of {situation.mechanism.name!r} balance only where {closed[0][0]} overlap by {-closed[0][1]:.3g} m: "
            "it rests on a contact. Run it with damping to find that pose."
        )
