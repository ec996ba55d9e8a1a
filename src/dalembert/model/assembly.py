"""Assembly: a pose and velocities that satisfy every joint, near to what was asked for.

Positions by damped Gauss-Newton on all rows, in a metric of lengths; velocities by one projection in the mass metric. Both solve
sparse saddle-point systems with SciPy: this happens once, before a run.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse.linalg import splu
from scipy.spatial.transform import Rotation

from dalembert.errors import AssemblyError
from dalembert.mechanism.mechanism import JointElement, Mechanism
from dalembert.model.compile_forces import coupling_names
from dalembert.model.moving import asked_rates, held_rows, rate_rows
from dalembert.model.placement import Placement
from dalembert.model.pose import direction_rows
from dalembert.model.records import CONSTRAINT, Model
from dalembert.model.topology import loop_of

CLOSED = 1e-11  # m or rad
LEAST = 1e-10  # damping of least-norm corrections, relative to the rows' own scale
FEASIBLE = 1e-8  # by how much velocities may miss what was asked for, relative to their size
STIFF = 1e6  # weight of a body whose velocity was asked for, relative to its mass
DENSE = 200  # size of a system that is solved with all its zeros
HEAVY = 1e3  # that weight where it only decides what closes the last of the rows
LARGEST, BOLD = 0.5, 0.3  # rad by which bodies turn at most in a step that closes loops, and in one that may open them first
SMALLEST = 0.1  # part of the levers of a body's joints below which no radius of gyration counts when loops are closed


@dataclass
class Rows:
    """Open amounts and gradients of a set of rows, with the element each belongs to."""

    world: int
    values: list[float] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    #: rows, bodies and gradients (..., 6)
    entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)

    def add(self, owner: str, value: float, gradients: list[tuple[Any, np.ndarray]]) -> None:
        for body, gradient in gradients:
            self.entries.append((np.array([len(self.values)]), np.array([body]), gradient[None]))
        self.values.append(float(value))
        self.owners.append(owner)

    def add_all(self, owners: list[str], values: np.ndarray, parents: np.ndarray, children: np.ndarray, Gp: np.ndarray, Gc: np.ndarray) -> None:
        """Rows of joints at once: their gradients (n, 6) by the two bodies."""
        rows = len(self.values) + np.arange(len(values))
        self.entries += [(rows, parents, Gp), (rows, children, Gc)]
        self.values.extend(values.tolist())
        self.owners.extend(owners)

    def matrix(self) -> Any:
        shape = len(self.values), 6 * self.world
        if not self.entries:
            return sparse.csr_matrix(shape)
        rows, bodies, data = (np.concatenate(parts) for parts in zip(*self.entries))
        inside = bodies != self.world
        columns = 6 * bodies[inside, None] + np.arange(6)
        return sparse.csr_matrix((data[inside].ravel(), (np.repeat(rows[inside], 6), columns.ravel())), shape=shape)


def _rows(
    placement: Placement, wishes: Mapping[str, np.ndarray], rates: Mapping[str, np.ndarray] | None, drives: bool = True,
) -> Rows:
    """All constraint rows (without those of motion drives, if asked), then the wished directions.

    Values are open amounts, or G v's right-hand side for ``rates``.
    """
    mechanism, model, work = placement.mechanism, placement.model, placement.work
    rows = Rows(placement.sizes[0])
    placement.evaluate()
    opened, gaps = placement.opened()
    held = np.arange(opened.shape[1]) < model.joints["locks"][:, None]
    direction = model.joints["row_direction"][:, : opened.shape[1]]
    if not drives:
        held &= direction < 0
    values = opened
    if rates is not None:
        values = np.where(direction >= 0, np.take_along_axis(work.joints["rate"], np.maximum(direction, 0), axis=1), 0.0)
    first = 0
    for last in [j.index for j in mechanism.joints if not j.type.has_rows] + [len(mechanism.joints)]:
        _add_held(rows, placement, held, values, slice(first, last + 1))
        if last < len(mechanism.joints):
            _add_moving(rows, placement, mechanism.joints[last], rates)
        first = last + 1
    for index, (name, coupling) in enumerate(zip(coupling_names(mechanism), model.couplings)):
        if coupling["law"] == CONSTRAINT:
            ends = [(model.ends[e], work.ends["G"][e]) for e in range(int(coupling["first"]), int(coupling["first"] + coupling["ends"]))]
            rows.add(name, gaps[index] if rates is None else 0.0, ends)
    for name, wish in (wishes if rates is None else rates).items():
        element = mechanism[name]
        if not element.type.has_rows:
            continue
        joint = model.joints[element.index]
        gradients = np.zeros((int(joint["free"]), 12))
        direction_rows(model, work, element.index, gradients)
        errors = coordinate_errors(placement, element, wish) if rates is None else wish
        for i, error in enumerate(errors):
            if not (drives and joint["driven"][i]) and not np.isnan(error):
                rows.add(name, error, [(joint["parent"], gradients[i, :6]), (joint["child"], gradients[i, 6:])])
    return rows


def _add_held(rows: Rows, placement: Placement, held: np.ndarray, values: np.ndarray, which: slice) -> None:
    """The rows that some joints hold, joint by joint."""
    joint, k = np.nonzero(held[which])
    if len(joint):
        joint = joint + which.start
        model, work, names = placement.model.joints, placement.work.joints, placement.mechanism.joints
        rows.add_all([names[j].name for j in joint], values[joint, k], model["parent"][joint], model["child"][joint], work["Gp"][joint, k], work["Gc"][joint, k])


def _add_moving(rows: Rows, placement: Placement, element: JointElement, rates: Mapping[str, np.ndarray] | None) -> None:
    """Rows of a joint that has none of its own: it stays where it is, or moves as it can, at wished rates and those of its drives."""
    joint = placement.model.joints[element.index]
    if rates is None:
        values, gradients = held_rows(placement, element)
    else:
        values, gradients = rate_rows(placement, element, asked_rates(placement, element, rates))
    for value, gradient in zip(values, gradients):
        rows.add(element.name, value, [(joint["parent"], gradient[:6]), (joint["child"], gradient[6:])])


def constraint_rows(placement: Placement) -> Rows:
    """All constraint rows at the placement's pose; values are their prescribed rates."""
    return _rows(placement, {}, {})


def coordinate_errors(placement: Placement, element: JointElement, wish: np.ndarray) -> np.ndarray:
    """Coordinates minus wishes, along the free directions; angles by the shorter way. NaN: nothing is wished."""
    kind = element.type
    actual = placement.work.joints["coordinate"][element.index, : kind.freedom].copy()
    errors = actual - wish
    balls = [i for i, (name, _) in enumerate(kind.directions) if name == "ball"]
    for i, (name, _) in enumerate(kind.directions):
        if name in ("turn", "first", "second") and kind.lead == 0.0:
            errors[i] = (errors[i] + np.pi) % (2.0 * np.pi) - np.pi
    if balls:
        errors[balls] = (Rotation.from_rotvec(actual[balls]) * Rotation.from_rotvec(wish[balls]).inv()).as_rotvec()
    return errors


class _Dense:
    """Factors of a small matrix: those of a sparse one take longer to set up than to find."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.factors = lu_factor(matrix, check_finite=False)

    def solve(self, right: np.ndarray) -> np.ndarray:
        return lu_solve(self.factors, right, check_finite=False)


class Saddle:
    """Least-norm corrections: the smallest step in a metric that changes rows by what is asked, damped where that is too much.

    [[W, G^T], [G, -damping]] with the rows scaled to G W^-1 G^T = 1, so that neither units nor masses decide; refinement
    removes the effect of a small damping (the proximal method), also where rows are redundant.
    """

    def __init__(self, weight: Any, G: Any, damping: float) -> None:
        rows, self.count = np.repeat(np.arange(G.shape[0]), np.diff(G.indptr)), weight.shape[0]
        sizes = np.sqrt(np.maximum(np.bincount(rows, G.data**2 / weight.diagonal()[G.indices], G.shape[0]), 1e-300))
        self.scale = 1.0 / sizes
        self.G: Any = sparse.csr_matrix((G.data * self.scale[rows], G.indices, G.indptr), G.shape)
        if sum(G.shape) <= DENSE:
            self.G = self.G.toarray()
            self.lu = _Dense(np.block([[weight.toarray(), self.G.T], [self.G, -damping * np.eye(G.shape[0])]]))
        else:
            self.lu = splu(sparse.bmat([[weight, self.G.T], [self.G, -damping * sparse.identity(G.shape[0])]], format="csc"))

    def step(self, change: np.ndarray, rounds: int = 1) -> np.ndarray:
        """The correction for which the rows change by ``change``; ``rounds`` of refinement."""
        step, left = np.zeros(self.count), self.scale * change
        for _ in range(rounds):
            before = np.abs(left).max(initial=0.0)
            step = step + self.lu.solve(np.concatenate([np.zeros(self.count), left]))[: self.count]
            left = self.scale * change - self.G @ step
            if not np.abs(left).max(initial=0.0) < 0.9 * before:
                break
        return step

    def solve(self, force: np.ndarray, change: np.ndarray, rounds: int = 50) -> tuple[np.ndarray, np.ndarray]:
        """x and multipliers of W x + G^T multipliers = force, G x = change."""
        x, multipliers, left = np.zeros(self.count), np.zeros(self.G.shape[0]), self.scale * change
        for attempt in range(rounds):
            before = np.abs(left).max(initial=0.0)
            parts = self.lu.solve(np.concatenate([force if attempt == 0 else np.zeros(self.count), left]))
            x, multipliers = x + parts[: self.count], multipliers + parts[self.count :]
            left = self.scale * change - self.G @ x
            if attempt > 0 and not np.abs(left).max(initial=0.0) < 0.9 * before:
                break
        return x, self.scale * multipliers

    def pull(self, bar: np.ndarray, rounds: int = 50) -> tuple[np.ndarray, np.ndarray]:
        """The transposed of ``step`` on a cotangent of it (or on some, as columns): that of ``change``, and the step nearest to W^-1 bar that keeps the rows."""
        rest = bar.shape[1:]
        change, held, moved = (np.zeros((size, *rest)) for size in (self.G.shape[0], self.count, self.G.shape[0]))
        for attempt in range(rounds):
            before = np.abs(moved).max(initial=0.0)
            parts = self.lu.solve(np.concatenate([bar if attempt == 0 else np.zeros_like(bar), -moved]))
            held, change = held + parts[: self.count], change + parts[self.count :]
            moved = self.G @ held
            if attempt > 0 and not np.abs(moved).max(initial=0.0) < 0.9 * before:
                break
        return self.scale.reshape(-1, *[1] * len(rest)) * change, held


def row_values(placement: Placement, wishes: Mapping[str, np.ndarray]) -> np.ndarray:
    """How far the rows that ``close_loops`` closes are open, wished directions last."""
    return np.array(_rows(placement, wishes, None).values)


def pose_saddle(placement: Placement, wishes: Mapping[str, np.ndarray], damping: float = LEAST) -> tuple[Saddle, Any]:
    """The correction of poses that ``close_loops`` would make at a closed pose, and the rows that it closes."""
    G = _rows(placement, wishes, None).matrix()
    return Saddle(_size_matrix(placement.model), G, damping), G


def pose_equations(
    placement: Placement, wishes: Mapping[str, np.ndarray], step: np.ndarray, multipliers: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """What a step (6 n,) of ``close_loops`` makes zero: W step + G^T multipliers, and the rows' values plus G step (but for the damping)."""
    rows = _rows(placement, wishes, None)
    G = rows.matrix()
    return _size_matrix(placement.model) @ step + G.T @ multipliers, np.array(rows.values) + G @ step


def velocity_saddle(placement: Placement, held: np.ndarray, rates: Mapping[str, np.ndarray]) -> tuple[Saddle, Any, np.ndarray]:
    """The correction of velocities that ``settle_velocities`` makes, its rows, and factors (n, 2) of the bodies' masses in its metric."""
    loose = np.where(held.any(axis=1, keepdims=True), 1.0 / STIFF, 1.0)
    factors = np.where(held, STIFF, loose)
    G = _rows(placement, {}, rates).matrix()
    return Saddle(_mass_matrix(placement.model, factors), G, LEAST), G, factors


class Settling(NamedTuple):
    """One projection of velocities (6 n,), from ``before`` to ``after``: to the nearest that rows allow, in the metric of masses times ``factors`` (n, 2).

    ``asked``: places among them that keep what was wished, by rows that come after those of joints and couplings.
    """

    before: np.ndarray
    after: np.ndarray
    factors: np.ndarray
    asked: np.ndarray

    def metric(self, model: Model) -> Any:
        """W."""
        return _mass_matrix(model, self.factors)

    def rows(self, placement: Placement, wished: np.ndarray, rates: Mapping[str, np.ndarray]) -> tuple[Any, np.ndarray]:
        """The rows G and what they shall be, where the placement is."""
        rows = _rows(placement, {}, rates)
        return _with_asked(rows.matrix(), np.array(rows.values), self.asked, wished.ravel())

    def saddle(self, placement: Placement, wished: np.ndarray, rates: Mapping[str, np.ndarray]) -> tuple[Saddle, Any]:
        """The correction, and its rows."""
        G, _ = self.rows(placement, wished, rates)
        return Saddle(self.metric(placement.model), G, LEAST), G

    def equations(
        self, placement: Placement, before: np.ndarray, wished: np.ndarray, rates: Mapping[str, np.ndarray], multipliers: np.ndarray,
    ) -> np.ndarray:
        """What ``after`` makes zero: W (after - before) + G^T multipliers, and G after minus what it shall be."""
        G, right = self.rows(placement, wished, rates)
        return np.concatenate([self.metric(placement.model) @ (self.after - before) + G.T @ multipliers, G @ self.after - right])


def _with_asked(G: Any, right: np.ndarray, asked: np.ndarray, wished: np.ndarray) -> tuple[Any, np.ndarray]:
    """Rows, and further ones that keep velocities at some places as they are wished."""
    if not len(asked):
        return G, right
    keep = sparse.csr_matrix((np.ones(len(asked)), (np.arange(len(asked)), asked)), shape=(len(asked), wished.size))
    return sparse.vstack([G, keep], format="csr"), np.concatenate([right, wished[asked]])


def mass_blocks(model: Model) -> np.ndarray:
    """(n, 6, 6) mass and inertia of each body."""
    bodies = model.bodies[:-1]
    blocks = np.zeros((len(bodies), 6, 6))
    blocks[:, :3, :3] = bodies["mass"][:, None, None] * np.eye(3)
    blocks[:, 3:, 3:] = bodies["inertia"].reshape(-1, 3, 3)
    return blocks


def _block_diagonal(blocks: np.ndarray) -> Any:
    return sparse.csr_matrix(sparse.block_diag(list(blocks)))


def _size_matrix(model: Model) -> Any:
    """The metric of poses: metres, and radians times the radius of gyration. Masses do not matter to it.

    Points in place of bodies turn as if they had a part ``SMALLEST`` of the levers of their joints: for nothing they would be turned anywhere.
    """
    joints, length = model.joints, model.bodies["length"]
    lever = np.zeros(len(length))
    for end, point in (("parent", "point_parent"), ("child", "point_child")):
        np.maximum.at(lever, joints[end], np.linalg.norm(joints[point], axis=1))
    size = np.ones((len(length) - 1, 6))
    size[:, 3:] = np.maximum(length, SMALLEST * lever)[:-1, None] ** 2
    return sparse.csr_matrix((size.ravel(), np.arange(size.size), np.arange(size.size + 1)))


def _mass_matrix(model: Model, factors: np.ndarray | None = None) -> Any:
    blocks = mass_blocks(model)
    if factors is not None:  # (n, 2) of the linear and the angular part
        blocks[:, :3] *= factors[:, :1, None]
        blocks[:, 3:] *= factors[:, 1:, None]
    return _block_diagonal(blocks)


def direction_inertias(placement: Placement, directions: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Inertias (kg or kg m^2) that a force along each direction (joint, number) moves at the knot.

    Of its two bodies alone, 1 / (g M^-1 g^T) with the row g of the direction; and with all joints holding, 1 / (g P g^T) with
    P = M^-1 - M^-1 G^T (G M^-1 G^T)^-1 G M^-1 and the rows G that hold.
    """
    model = placement.model
    holding, wanted = constraint_rows(placement), Rows(placement.sizes[0])
    for index, i in directions:
        joint = model.joints[index]
        gradients = np.zeros((int(joint["free"]), 12))
        direction_rows(model, placement.work, index, gradients)
        wanted.add("", 0.0, [(joint["parent"], gradients[i, :6]), (joint["child"], gradients[i, 6:])])
    G, g, blocks = holding.matrix(), wanted.matrix(), mass_blocks(model)
    mass, inverse = _block_diagonal(blocks), _block_diagonal(np.linalg.inv(blocks))

    def alone(rows: Any) -> np.ndarray:
        return np.asarray((rows @ inverse).multiply(rows).sum(axis=1)).ravel()

    system = sparse.bmat([[mass, G.T], [G, sparse.diags(-1e-9 * alone(G))]], format="csc") if G.shape[0] else mass.tocsc()
    moved = splu(system).solve(np.vstack([g.T.toarray(), np.zeros((G.shape[0], len(directions)))]))[: mass.shape[0]]
    mobility = np.maximum(np.einsum("in,ni->i", g.toarray(), moved), 1e-9 * alone(g))
    rotor = np.array([model.joints["armature"][index, i] for index, i in directions])
    return 1.0 / alone(g) + rotor, 1.0 / mobility + rotor


class Closing(NamedTuple):
    """A step that closed loops a bit: positions (n, 3) and orientations (n, 4) where it began, the whole step (n, 6), how much of it was taken, its damping."""

    position: np.ndarray
    orientation: np.ndarray
    step: np.ndarray
    part: float
    damping: float


def _move(bodies: np.ndarray, step: np.ndarray, largest: float) -> float:
    """Move all bodies by a step (n, 6), shortened so that none turns by more than ``largest`` (rad). Returns its largest entry."""
    size = float(np.abs(step).max(initial=0.0))
    step = _part(step, largest) * step
    bodies["x"][:-1] += step[:, :3]
    turned = Rotation.from_quat(bodies["q"][:-1], scalar_first=True) * Rotation.from_rotvec(step[:, 3:])
    bodies["q"][:-1] = turned.as_quat(scalar_first=True)
    return size


def _part(step: np.ndarray, largest: float) -> float:
    """How much of a step (n, 6) is taken."""
    return float(min(1.0, largest / max(np.abs(step[:, 3:]).max(initial=0.0), 1e-12)))


def close_loops(placement: Placement, wishes: Mapping[str, np.ndarray]) -> tuple[Closing, ...]:
    """Move all bodies as little as possible until every row and every wished coordinate holds (the placement is changed).

    Returns the steps by which it did. Raises AssemblyError, with the placement as it was, when some loop stays open.
    """
    mechanism, bodies = placement.mechanism, placement.work.bodies
    before = bodies.copy()
    rows = _rows(placement, wishes, None)
    size = _size(rows.values)
    damping, way = LEAST, []
    weight = _size_matrix(placement.model)
    for _ in range(200):
        if size < CLOSED:
            return tuple(way)
        G, here = rows.matrix(), bodies.copy()
        step = Saddle(weight, G, damping).step(-np.array(rows.values)).reshape(-1, 6)
        _move(bodies, step, LARGEST)
        rows = _rows(placement, wishes, None)
        new = _size(rows.values)
        if new < size:
            way.append(_closing(here, step, LARGEST, damping))
            damping = max(LEAST, damping * 0.1)
            size = new
            continue
        bodies[:] = here
        rows = _rows(placement, wishes, None)
        damping *= 10.0
        if damping > 1e6:
            break
    if size < 1e-9:
        return tuple(way)
    failed = bodies.copy()
    bodies[:] = before
    bold = _close_boldly(placement, wishes, weight)
    if bold is not None:
        return bold
    bodies[:] = failed
    worst = int(np.argmax(np.abs(rows.values)))
    message = _open_loop(mechanism, rows.owners[worst], abs(rows.values[worst]), wishes)
    bodies[:] = before
    placement.evaluate()
    raise AssemblyError(message)


def _closing(before: np.ndarray, step: np.ndarray, largest: float, damping: float) -> Closing:
    return Closing(before["x"][:-1].copy(), before["q"][:-1].copy(), step, _part(step, largest), damping)


def _close_boldly(placement: Placement, wishes: Mapping[str, np.ndarray], weight: Any) -> tuple[Closing, ...] | None:
    """Full steps, whether or not the first ones open the rows further, as in mechanisms with many loops. None if they do not close them."""
    way = []
    for _ in range(20):
        rows = _rows(placement, wishes, None)
        size = _size(rows.values)
        if size < CLOSED:
            return tuple(way)
        if not np.isfinite(size):
            return None
        step = Saddle(weight, rows.matrix(), LEAST).step(-np.array(rows.values)).reshape(-1, 6)
        way.append(_closing(placement.work.bodies, step, BOLD, LEAST))
        _move(placement.work.bodies, step, BOLD)
    return None


def _size(values: list[float]) -> float:
    return float(np.linalg.norm(values)) if values else 0.0


def _open_loop(mechanism: Mechanism, owner: str, gap: float, wishes: Mapping[str, np.ndarray]) -> str:
    joint = next((j for j in mechanism.joints if j.name == owner), None)
    loop = [owner] if joint is None else loop_of(mechanism, joint)
    asked = f"; asked for: {', '.join(f'{n} = {np.round(w, 6)}' for n, w in wishes.items())}" if wishes else ""
    return (
        f"the loop {' - '.join(loop)} of {mechanism.name!r} cannot be closed: {owner!r} stays open by {gap:.3g} (m or rad){asked}. "
        "Check the lengths, or ask for coordinates that the loop can reach."
    )


def settle_velocities(placement: Placement, wished: np.ndarray, held: np.ndarray, rates: Mapping[str, np.ndarray]) -> np.ndarray:
    """Velocities (n, 6) that satisfy every row and the wished joint rates, nearest to ``wished``.

    Where ``held`` (n, 2) says so, a body's linear or angular velocity weighs more, so that what was asked for is kept where
    the joints allow it.
    """
    mechanism = placement.mechanism
    rows = _rows(placement, {}, rates)
    if not rows.values:
        return wished.copy()
    G, right = rows.matrix(), np.array(rows.values)
    velocity = _settle(placement, wished.ravel(), held, G, right)[-1].after
    miss = np.abs(right - G @ velocity)
    if miss.max() > FEASIBLE * (1.0 + np.max(np.abs(velocity))):
        owner = rows.owners[int(np.argmax(miss))]
        raise AssemblyError(
            f"no velocities of {mechanism.name!r} satisfy its joints and the rates asked for ({', '.join(rates) or 'none'}): "
            f"{owner!r} is missed by {miss.max():.3g} (m/s or rad/s)"
        )
    return velocity.reshape(-1, 6)


def settlings(placement: Placement, wished: np.ndarray, held: np.ndarray, rates: Mapping[str, np.ndarray]) -> tuple[Settling, ...]:
    """The projections by which ``settle_velocities`` comes to what it returns."""
    rows = _rows(placement, {}, rates)
    return _settle(placement, wished.ravel(), held, rows.matrix(), np.array(rows.values))


def _settle(placement: Placement, wished: np.ndarray, held: np.ndarray, G: Any, right: np.ndarray) -> tuple[Settling, ...]:
    """Velocities (6 n,) by weights of what was asked for; then with that as it is, if the rows allow it, in any case such as the rows ask for.

    Weights that are far apart cannot say so: they leave rows open that only heavy bodies can close, and hold light bodies loosely.
    """
    loose = np.where(held.any(axis=1, keepdims=True), 1.0 / STIFF, 1.0)  # the part that follows from the one asked for
    nothing = np.zeros(0, dtype=np.int64)

    def nearest(before: np.ndarray, factors: np.ndarray, asked: np.ndarray) -> tuple[Settling, float]:
        both, wanted = _with_asked(G, right, asked, wished)
        after = before + Saddle(_mass_matrix(placement.model, factors), both, LEAST).step(wanted - both @ before, rounds=50)
        return Settling(before, after, factors, asked), float(np.abs(wanted - both @ after).max(initial=0.0))

    weighed, _ = nearest(wished, np.where(held, STIFF, loose), nothing)
    if not held.any():
        return (weighed,)
    kept, miss = nearest(weighed.after, np.ones(held.shape), np.flatnonzero(np.repeat(held.ravel(), 3)))
    if not miss < FEASIBLE * (1.0 + np.abs(kept.after).max()):
        kept, _ = nearest(weighed.after, np.where(held, HEAVY, 1.0), nothing)
    return weighed, kept


class Aiming(NamedTuple):
    """One number of a body's pose that shall become zero: the body's name and index, its value (m or rad), gradient (6,) and weight."""

    name: str
    body: int
    value: float
    gradient: np.ndarray
    weight: float


#: what is aimed at from a placement's pose
Aims = Callable[[Placement], Sequence[Aiming]]


def nearest_pose(placement: Placement, wishes: Mapping[str, np.ndarray], weights: Mapping[str, float], aims: Aims = lambda _: ()) -> float:
    """Move all bodies to a pose that the passive joints allow and that comes nearest to wished coordinates and to what is aimed at.

    Drives are free. Minimises the weighted sum of squares of coordinates minus wishes and of aims, by damped Gauss-Newton steps that
    lower it plus a multiple of what is open in the joints; returns its root. The placement is changed. Raises
    AssemblyError, with the placement as it was, when the passive joints cannot be closed.
    """
    mechanism, bodies = placement.mechanism, placement.work.bodies
    before = bodies.copy()
    mass = _size_matrix(placement.model)
    mass = mass / mass.diagonal().mean()
    count = _wish_count(wishes) + len(aims(placement))
    rows, g, e, w = _wished_rows(placement, wishes, weights, count, aims)
    damping, penalty, first = 1e-6, max(1e-3, 2.0 * float(np.abs(w * e).sum())), np.inf
    for _ in range(100):
        matrix = rows.matrix()
        G, J = matrix[: len(g)], matrix[len(g) :]
        normal = J.T @ sparse.diags(w) @ J + damping * mass
        system = splu(sparse.bmat([[normal, G.T], [G, -1e-10 * sparse.identity(len(g))]], format="csc"))
        here, merit = bodies.copy(), _merit(g, e, w, penalty)
        pull = -(J.T @ (w * e))
        for correction in range(4):  # the first is the step, the others close what it opened
            solution = system.solve(np.concatenate([pull if correction == 0 else 0.0 * pull, -g]))
            size = _move(bodies, solution[: mass.shape[0]].reshape(-1, 6), 0.3)
            if correction == 0:
                first, penalty = size, max(penalty, 2.0 * float(np.abs(solution[mass.shape[0] :]).max(initial=0.0)))
            rows, g, e, w = _wished_rows(placement, wishes, weights, count, aims)
            if np.abs(g).max(initial=0.0) < CLOSED:
                break
        if first < 1e-11 and np.abs(g).max(initial=0.0) < CLOSED:
            break
        if _merit(g, e, w, penalty) <= merit:
            damping = max(1e-6, 0.1 * damping)
        else:
            bodies[:] = here
            rows, g, e, w = _wished_rows(placement, wishes, weights, count, aims)
            damping *= 10.0
            if damping > 1e9:
                break
    opened = np.abs(g)
    if opened.max(initial=0.0) < 1e-9:
        return float(np.sqrt(np.sum(w * e * e)))
    message = _open_loop(mechanism, rows.owners[int(np.argmax(opened))], float(opened.max()), wishes)
    bodies[:] = before
    placement.evaluate()
    raise AssemblyError(message)


def _wished_rows(
    placement: Placement, wishes: Mapping[str, np.ndarray], weights: Mapping[str, float], count: int, aims: Aims,
) -> tuple[Rows, np.ndarray, np.ndarray, np.ndarray]:
    """Passive rows, then wished coordinates and aims, with what is open of the first, what is missed of the others, and its weights."""
    rows, aimed = _rows(placement, wishes, None, drives=False), aims(placement)
    first = len(rows.values) + len(aimed) - count
    weighed = [float(weights.get(name, 1.0)) for name in rows.owners[first:]] + [aim.weight for aim in aimed]
    for aim in aimed:
        rows.add(aim.name, aim.value, [(aim.body, aim.gradient)])
    values = np.array(rows.values)
    return rows, values[:first], values[first:], np.array(weighed)


def _merit(g: np.ndarray, e: np.ndarray, w: np.ndarray, penalty: float) -> float:
    return float(0.5 * np.sum(w * e * e) + penalty * np.sum(np.maximum(np.abs(g) - CLOSED, 0.0)))


def _wish_count(wishes: Mapping[str, np.ndarray]) -> int:
    return sum(int(np.count_nonzero(~np.isnan(wish))) for wish in wishes.values())
