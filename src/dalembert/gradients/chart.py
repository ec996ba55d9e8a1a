"""Independent coordinates of a mechanism near a pose: which ones, the motions that they allow, and poses and velocities from them."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import qr
from scipy.sparse.linalg import splu
from scipy.spatial.transform import Rotation

from dalembert.errors import AssemblyError, LinearisationError, ModelError
from dalembert.formulations.engine import Start
from dalembert.gradients.curved import Bundle, Curved, Numbers, body_columns, reaches, turned
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.model.compile import new_work
from dalembert.model.placement import Placement
from dalembert.model.pose import direction_rows
from dalembert.model.records import CONSTRAINT
from dalembert.model.redundancy import row_set, tree_motions
from dalembert.model.topology import place as place_along_tree
from dalembert.model.topology import spanning_tree

#: pivots below this part of the largest count as none
RANK = 1e-9
#: independent coordinates must answer a motion by at least this part of what the best one does
DISTINCT = 1e-7
#: rad, or part of a body's reach, by which a pose is moved to see whether rows become independent
NUDGE = 1e-3
#: m or rad, of joints that are closed
CLOSED = 1e-13
#: rounds in which poses and velocities are corrected
ROUNDS = 30


class Coordinate(NamedTuple):
    """One coordinate: a free direction of a joint, or a motion (0 to 5: position in the world, rotation about body axes) of a body."""

    name: str
    element: JointElement | Body
    index: int

    @property
    def turns(self) -> bool:
        """Whether it is an angle."""
        if isinstance(self.element, Body):
            return self.index >= 3
        return self.element.type.directions[self.index][0] not in ("slide", "distance")

    @property
    def unit(self) -> str:
        return "rad" if self.turns else "m"


def label(element: JointElement | Body, index: int) -> str:
    """Name of a coordinate: its joint's where that has one only, else with its number."""
    alone = isinstance(element, JointElement) and element.type.freedom == 1
    return element.name if alone else f"{element.name}[{index}]"


def coordinates_of(element: JointElement | Body) -> list[Coordinate]:
    """All coordinates of a joint or body."""
    count = 6 if isinstance(element, Body) else element.type.freedom
    return [Coordinate(label(element, i), element, i) for i in range(count)]


def named_coordinates(mechanism: Mechanism, names: Iterable[str]) -> list[Coordinate]:
    """Coordinates by name: "elbow" (all directions of a joint, all motions of a body), "ball[1]"."""
    if isinstance(names, str):
        raise ModelError(f"coordinates must be a list of names, got {names!r}: say [{names!r}]")
    found: list[Coordinate] = []
    for name in names:
        owner = name.split("[")[0] if isinstance(name, str) and name not in mechanism else name
        element = mechanism[owner]
        if not isinstance(element, JointElement | Body) or element is mechanism.world:
            raise ModelError(f"coordinates are those of joints and bodies, and {name!r} is {element!r}")
        own = coordinates_of(element)
        chosen = own if owner == name else [c for c in own if c.name == name or f"{owner}[{c.index}]" == name]
        if not chosen:
            raise ModelError(f"{element!r} has no coordinate {name!r}; it has: {', '.join(c.name for c in own) or 'none'}")
        found += [c for c in chosen if not (isinstance(element, JointElement) and element.type.drive[c.index] == "motion")]  # type: ignore[index]
    doubles = {c.name for c in found if sum(c.name == other.name for other in found) > 1}
    if doubles:
        raise ModelError(f"coordinates are named twice: {', '.join(sorted(doubles))}")
    return found


@dataclass(frozen=True)
class Space:
    """Motions that the rows of a mechanism leave free at a pose.

    ``motions`` (6 n, freedom): orthonormal when rotations are scaled to metres. ``rows``: numbers of rows that are independent;
    ``owners``: names of all rows' elements. ``pivots``: of the rows that close loops or drive, in the order of their choice.
    """

    motions: np.ndarray
    rows: np.ndarray
    owners: tuple[str, ...]
    pivots: np.ndarray
    _sizes: np.ndarray
    _saddle: Any

    @property
    def freedom(self) -> int:
        return self.motions.shape[1]

    def least(self, amounts: np.ndarray) -> np.ndarray:
        """Smallest motions (6 n, ...) that change the independent rows by ``amounts`` (rows, ...)."""
        count = len(self.motions)
        if not len(self.rows):
            return np.zeros((count, *amounts.shape[1:]))
        wanted = (amounts[self.rows].T / self._sizes).T
        return self._saddle.solve(np.concatenate([np.zeros((count, *amounts.shape[1:])), wanted]))[:count]

    def forces(self, wrench: np.ndarray) -> np.ndarray:
        """(rows,) forces of the rows that act as a wrench (6 n,), which leaves the free motions alone, does; redundant rows get none."""
        forces = np.zeros(len(self.owners))
        if len(self.rows):
            forces[self.rows] = self._saddle.solve(np.concatenate([wrench, np.zeros(len(self.rows))]))[len(wrench) :] / self._sizes
        return forces


def free_space(placement: Placement) -> Space:
    """What the rows leave free at the placement's pose: the motions of a spanning tree less what the other rows hold."""
    rows = row_set(placement)
    tree, motions = tree_motions(placement, rows)
    others = np.flatnonzero(~tree)
    scale = np.repeat(np.stack([np.ones(placement.sizes[0]), reaches(placement.model)], axis=1), 3, axis=1).ravel()
    independent, pivots = np.flatnonzero(tree), np.zeros(0)
    if len(others) and motions.shape[1]:
        held = rows.matrix[others]
        parts = (held @ motions) / np.sqrt(np.asarray(held.multiply(held).sum(axis=1)).reshape(-1, 1))
        Q, R, order = qr(parts.T, pivoting=True)  # type: ignore[misc]
        pivots = np.abs(np.diag(R))
        rank = int(np.count_nonzero(pivots > RANK))
        motions = motions @ Q[:, rank:]
        independent = np.sort(np.concatenate([independent, others[order[:rank]]]))
    motions = np.linalg.qr(scale[:, None] * motions)[0] / scale[:, None]
    G = rows.matrix[independent]
    sizes = np.sqrt(np.asarray(G.multiply(G @ sparse.diags(scale**-2.0)).sum(axis=1)).ravel())
    G = sparse.diags(1.0 / sizes) @ G
    saddle = splu(sparse.bmat([[sparse.diags(scale**2.0), G.T], [G, None]], format="csc")) if len(independent) else None
    return Space(motions, independent, tuple(name for name, _ in rows.owners), pivots, sizes, saddle)


def check_regular(placement: Placement, space: Space) -> None:
    """Raise LinearisationError at a dead centre: where rows are dependent that are independent a little further on."""
    dropped = len(space.owners) - len(space.rows)
    if not dropped or not space.freedom:
        return
    kept = placement.keep()
    motion = space.motions @ np.random.default_rng(0).choice([-1.0, 1.0], space.freedom)
    move_bodies(placement, NUDGE / np.abs(motion.reshape(-1, 6)[:, 3:]).max(initial=1e-12) * motion)
    try:
        Closer(placement).close()
        beside = free_space(placement)
    finally:
        placement.restore(kept)
        placement.evaluate()
    if len(beside.rows) > len(space.rows):
        owners = dict.fromkeys(space.owners[i] for i in beside.rows if i not in set(space.rows))
        raise LinearisationError(
            f"{placement.mechanism.name!r} stands at a dead centre: rows of {', '.join(map(repr, owners))} depend on the others here and not "
            "beside it, so that its motion has no unique linear part. Move it off this pose (set_joint)."
        )


def follow_motion(placement: Placement, motion: np.ndarray) -> None:
    """Move all bodies by a large motion (6 n,): joints of a spanning tree by their coordinates, so that these stay closed."""
    mechanism, joints = placement.mechanism, placement.work.joints
    tree = [mechanism.joints[i] for i in sorted(spanning_tree(mechanism))]
    moved = [c for j in tree for c in coordinates_of(j)]
    changes = iter(coordinate_rows(placement, moved) @ motion)
    values = {}
    for joint in tree:
        before = joints["coordinate"][joint.index, : joint.type.freedom]
        change = np.array([next(changes) for _ in before])
        values[joint.name] = before + change
        balls = [i for i, (kind, _) in enumerate(joint.type.directions) if kind == "ball"]
        if balls:
            values[joint.name][balls] = (Rotation.from_rotvec(change[balls]) * Rotation.from_rotvec(before[balls])).as_rotvec()
    move_bodies(placement, motion)
    bodies = placement.work.bodies
    poses = [(x, Rotation.from_quat(q, scalar_first=True)) for x, q in zip(bodies["x"][:-1].copy(), bodies["q"][:-1].copy())]
    for i, (x, turn) in enumerate(place_along_tree(mechanism, poses, values)):
        bodies["x"][i], bodies["q"][i] = x, turn.as_quat(scalar_first=True)
    placement.evaluate()


def move_bodies(placement: Placement, motion: np.ndarray) -> None:
    """Move all bodies by a motion (6 n,), and evaluate the pose."""
    bodies, step = placement.work.bodies, motion.reshape(-1, 6)
    bodies["x"][:-1] += step[:, :3]
    bodies["q"][:-1] = turned(bodies["q"][:-1], step[:, 3:])
    placement.evaluate()


class Closer:
    """Closes what a motion opened in the joints, by Newton's method with a matrix that is renewed when it no longer serves."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self._space: Space | None = None

    def close(self) -> None:
        """Move the bodies as little as possible until the joints are closed. Raises AssemblyError where that does not work."""
        placement = self.placement
        size, fresh = np.inf, False
        for _ in range(ROUNDS):
            opened = open_rows(placement)
            new = float(np.abs(opened).max(initial=0.0))
            if new < CLOSED or (fresh and size < 1e-9 and new >= 0.5 * size):
                return
            if not new < 1e3 and np.isfinite(size):
                break
            fresh = self._space is None or new > 0.2 * size
            if self._space is None or fresh:
                self._space = free_space(placement)
            size = new
            move_bodies(placement, self._space.least(-opened))
        raise AssemblyError(f"the joints of {placement.mechanism.name!r} cannot be closed near this pose: they stay open by {size:.3g} (m or rad)")


def open_rows(placement: Placement) -> np.ndarray:
    """(rows,) how far the rows are open, in the order of ``Numbers.rows``."""
    rows, gaps = placement.opened()
    locked = np.arange(6) < placement.model.joints["locks"][:, None]
    return np.concatenate([rows[locked], gaps[placement.model.couplings["law"] == CONSTRAINT]])


class Chart:
    """Independent coordinates about a pose.

    ``motions`` (6 n, d): N with G N = 0 and J N = 1, for rows G and the coordinates' gradients J; ``curved``: the coordinates with
    their derivatives.
    """

    def __init__(self, placement: Placement, numbers: Numbers, names: Iterable[str] | None = None) -> None:
        self.placement, self.mechanism = placement, placement.mechanism
        self.G = numbers.rows.gradient()
        self.space = free_space(placement)
        given = None if names is None else named_coordinates(self.mechanism, names)
        self.coordinates = tuple(self._choose(numbers) if given is None else given)
        self.curved = curved_coordinates(placement, numbers, self.coordinates)
        self.J = self.curved.gradient()
        self.motions = self._invert(given is not None)
        self.reference = placement.keep()

    def _choose(self, numbers: Numbers) -> list[Coordinate]:
        """The coordinates that tell the free motions apart best: those of joints first, of bodies where these do not suffice."""
        candidates = [c for j in self.mechanism.joints if j.type.places for c in coordinates_of(j) if j.type.drive[c.index] != "motion"]  # type: ignore[index]
        chosen: list[Coordinate] = []
        left = self.space.motions
        length = float(reaches(self.placement.model).mean())
        for group in (candidates, [c for b in self.mechanism.bodies for c in coordinates_of(b)]):
            if not left.shape[1] or not group:
                continue
            parts = curved_coordinates(self.placement, numbers, group).gradient() @ left
            parts *= np.array([length if c.turns else 1.0 for c in group])[:, None]
            Q, R, order = qr(parts.T, pivoting=True)  # type: ignore[misc]
            pivots = np.abs(np.diag(R))
            rank = int(np.count_nonzero(pivots > DISTINCT * max(pivots.max(), 1e-300)))
            chosen += [group[i] for i in sorted(order[:rank])]
            left = left @ Q[:, rank:]
        return chosen

    def _invert(self, given: bool) -> np.ndarray:
        names, freedom = ", ".join(c.name for c in self.coordinates), self.space.freedom
        if len(self.coordinates) != freedom:
            raise ModelError(f"{self.mechanism.name!r} has {freedom} independent coordinates at this pose, got {len(self.coordinates)}: {names or 'none'}")
        if not freedom:
            raise LinearisationError(f"{self.mechanism.name!r} cannot move: its joints and drives leave no coordinate free at this pose")
        parts = self.J @ self.space.motions
        sizes = np.linalg.svd(parts / np.maximum(np.linalg.norm(parts, axis=1, keepdims=True), 1e-300), compute_uv=False)
        if not sizes[-1] > DISTINCT * sizes[0]:
            raise ModelError(
                f"the coordinates {names} do not determine the motion of {self.mechanism.name!r} at this pose"
                + (": choose others, or leave the choice to linearise" if given else "")
            )
        return self.space.motions @ np.linalg.inv(parts)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.coordinates)

    def solve(self, rows: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
        """Motions (6 n, ...) that change rows and coordinates by given amounts."""
        least = self.space.least(rows)
        return least + self.motions @ (coordinates - self.J @ least)

    # ---- poses and velocities near the reference

    def deviation(self) -> np.ndarray:
        """(d,) coordinates of the placement's pose less those of the reference."""
        bodies, joints = self.placement.work.bodies, self.placement.work.joints
        return deviations(self.coordinates, (bodies, joints), self.reference)

    def move(self, coordinates: np.ndarray) -> None:
        """Put the placement where the coordinates (d,) differ by these amounts from the reference, rows open as little as there."""
        self.placement.restore(self.reference)
        move_bodies(self.placement, self.motions @ coordinates)
        for _ in range(ROUNDS):
            opened = open_rows(self.placement)
            missing = coordinates - self.deviation()
            size = max(np.abs(opened).max(initial=0.0), np.abs(missing).max())
            if size < 1e-15:
                return
            before = self.placement.keep()
            move_bodies(self.placement, self.solve(-opened, missing))
            if max(np.abs(open_rows(self.placement)).max(initial=0.0), np.abs(coordinates - self.deviation()).max()) >= size:
                self.placement.restore(before)
                self.placement.evaluate()
                return

    def velocity(self, velocity: np.ndarray, rows: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """(6 n,) velocities at the placement's pose, near to some, with given rates of rows and coordinates."""
        G = row_set(self.placement).matrix
        J = coordinate_rows(self.placement, self.coordinates)
        size = np.inf
        for _ in range(ROUNDS):
            open_rows, missing = rows - G @ velocity, rates - J @ velocity
            new = max(np.abs(open_rows).max(initial=0.0), np.abs(missing).max())
            if not new < size or new == 0.0:
                break
            size, velocity = new, velocity + self.solve(open_rows, missing)
        return velocity


def curved_coordinates(placement: Placement, numbers: Numbers, coordinates: Sequence[Coordinate]) -> Curved:
    """Coordinates with their derivatives at the placement's pose."""
    first = np.concatenate([[0], np.cumsum(placement.model.joints["free"])])
    joints = [k for k, c in enumerate(coordinates) if isinstance(c.element, JointElement)]
    places = np.array([first[coordinates[k].element.index] + coordinates[k].index for k in joints], dtype=int)
    bundles = [b._replace(number=np.array(joints, dtype=int)[b.number]) for b in numbers.directions.chosen(places).bundles]
    bodies = [k for k, c in enumerate(coordinates) if isinstance(c.element, Body)]
    if bodies:
        columns = body_columns(np.array([[coordinates[k].element.index] for k in bodies]))
        gradient = np.eye(6)[[coordinates[k].index for k in bodies]]
        bundles.append(Bundle(np.array(bodies), columns, gradient, np.zeros((len(bodies), 6, 6))))
    return Curved(len(coordinates), placement.sizes[0], tuple(bundles))


def coordinate_rows(placement: Placement, coordinates: Sequence[Coordinate]) -> np.ndarray:
    """(d, 6 n) gradients of coordinates at the placement's pose."""
    count = placement.sizes[0]
    matrix = np.zeros((len(coordinates), 6 * count + 6))
    for row, coordinate in zip(matrix, coordinates):
        index = coordinate.element.index
        if isinstance(coordinate.element, Body):
            row[6 * index + coordinate.index] = 1.0
            continue
        joint = placement.model.joints[index]
        gradients = np.zeros((int(joint["free"]), 12))
        direction_rows(placement.model, placement.work, index, gradients)
        for body, part in ((joint["parent"], gradients[coordinate.index, :6]), (joint["child"], gradients[coordinate.index, 6:])):
            row[6 * body : 6 * body + 6] += part
    return matrix[:, : 6 * count]


def deviations(coordinates: Sequence[Coordinate], here: tuple[Any, Any], there: tuple[Any, Any]) -> np.ndarray:
    """(d,) by how much coordinates differ between two records of bodies and joints; rotations as rotation vectors from there.

    Those of joints in the parent's axes, those of bodies in body axes.
    """
    values = np.zeros(len(coordinates))
    for k, (_, element, index) in enumerate(coordinates):
        if isinstance(element, Body):
            if index < 3:
                values[k] = here[0]["x"][element.index, index] - there[0]["x"][element.index, index]
            else:
                now, then = (Rotation.from_quat(bodies["q"][element.index], scalar_first=True) for bodies in (here[0], there[0]))
                values[k] = (then.inv() * now).as_rotvec()[index - 3]
            continue
        now, then = here[1]["coordinate"][element.index], there[1]["coordinate"][element.index]
        if element.type.directions[index][0] == "ball":
            balls = slice(index - element.type.directions[index][1], index - element.type.directions[index][1] + 3)
            values[k] = (Rotation.from_rotvec(now[balls]) * Rotation.from_rotvec(then[balls]).inv()).as_rotvec()[element.type.directions[index][1]]
        else:
            values[k] = now[index] - then[index]
    return values


def place(mechanism: Mechanism, model: Any, start: Start) -> Placement:
    """A placement of its own at a start."""
    placement = Placement(mechanism, model, new_work(model))
    placement.work.joints["target"] = start.target
    placement.put(start.position, start.orientation, start.coordinate)
    return placement
