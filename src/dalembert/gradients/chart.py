"""Independent coordinates of a mechanism near a pose: which ones, the motions that they allow, and poses and velocities from them."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.spatial.transform import Rotation

from dalembert.errors import LinearisationError, ModelError
from dalembert.formulations.engine import Start
from dalembert.gradients.curved import Bundle, Curved, Numbers, body_columns, turned
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.model.compile_forces import coupling_names
from dalembert.model.placement import Placement
from dalembert.model.redundancy import row_set

#: pivots below this part of the largest count as none
RANK = 1e-9
#: independent coordinates must answer a motion by at least this part of what the best one does
DISTINCT = 1e-7
#: rad, or part of a radius of gyration, by which a pose is moved to see whether rows become independent
NUDGE = 1e-3
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

    With the bodies' motions scaled to metres (``scale`` (6 n,)), the rows' transposed matrix is Q R with its columns pivoted.
    """

    scale: np.ndarray
    order: np.ndarray
    rank: int
    Q: np.ndarray
    R: np.ndarray

    @property
    def freedom(self) -> int:
        return len(self.scale) - self.rank

    @property
    def motions(self) -> np.ndarray:
        """(6 n, freedom), orthonormal when scaled."""
        return self.Q[:, self.rank :] / self.scale[:, None]

    def least(self, amounts: np.ndarray) -> np.ndarray:
        """Smallest motions (6 n, ...) that change the independent rows by ``amounts`` (rows, ...)."""
        if not self.rank:
            return np.zeros((len(self.scale), *amounts.shape[1:]))
        inner = solve_triangular(self.R[: self.rank, : self.rank], amounts[self.order[: self.rank]], trans="T")
        motion = self.Q[:, : self.rank] @ inner
        return motion / (self.scale if motion.ndim == 1 else self.scale[:, None])

    def forces(self, wrench: np.ndarray) -> np.ndarray:
        """(rows,) forces of the rows that act as a wrench (6 n,) does; redundant rows get none."""
        forces = np.zeros(len(self.order))
        if self.rank:
            forces[self.order[: self.rank]] = solve_triangular(self.R[: self.rank, : self.rank], self.Q[:, : self.rank].T @ (wrench / self.scale))
        return forces


def free_space(placement: Placement, G: np.ndarray) -> Space:
    """What rows G (rows, 6 n) leave free at the placement's pose."""
    lengths = placement.model.bodies["length"][:-1]
    scale = np.repeat(np.stack([np.ones_like(lengths), lengths], axis=1), 3, axis=1).ravel()
    if not len(G):
        return Space(scale, np.zeros(0, dtype=int), 0, np.eye(len(scale)), np.zeros((len(scale), 0)))
    scaled = (G / scale).T
    sizes = np.linalg.norm(scaled, axis=0)
    sizes[sizes == 0.0] = 1.0
    Q, R, order = qr(scaled / sizes, pivoting=True)  # type: ignore[misc]
    pivots = np.abs(np.diag(R))
    rank = int(np.count_nonzero(pivots > RANK * pivots.max()))
    return Space(scale, order, rank, Q, R * sizes[order])


def check_regular(placement: Placement, space: Space, names: Sequence[str]) -> None:
    """Raise LinearisationError at a dead centre: where rows are dependent that are independent a little further on."""
    if space.rank == len(space.order) or not space.freedom:
        return
    kept = placement.keep()
    motion = space.motions @ np.random.default_rng(0).choice([-1.0, 1.0], space.freedom)
    motion *= NUDGE / np.abs(motion * space.scale).max() * float(np.max(placement.model.bodies["length"]))
    move_bodies(placement, motion)
    rows = row_set(placement)
    beside = free_space(placement, rows.matrix.toarray())
    placement.restore(kept)
    placement.evaluate()
    pivots = np.abs(np.diag(beside.R))[space.rank :]
    found = [k for k, pivot in enumerate(pivots) if pivot > 0.02 * NUDGE * np.abs(np.diag(beside.R)).max()]
    if found:
        owners = dict.fromkeys(rows.owners[beside.order[space.rank + k]][0] for k in found)
        raise LinearisationError(
            f"{placement.mechanism.name!r} stands at a dead centre: rows of {', '.join(map(repr, owners))} depend on the others here and not "
            "beside it, so that its motion has no unique linear part. Move it off this pose (set_joint)."
        )


def move_bodies(placement: Placement, motion: np.ndarray) -> None:
    """Move all bodies by a motion (6 n,), and evaluate the pose."""
    bodies, step = placement.work.bodies, motion.reshape(-1, 6)
    bodies["x"][:-1] += step[:, :3]
    bodies["q"][:-1] = turned(bodies["q"][:-1], step[:, 3:])
    placement.evaluate()


class Chart:
    """Independent coordinates about a pose.

    ``motions`` (6 n, d): N with G N = 0 and J N = 1, for rows G and the coordinates' gradients J; ``curved``: the coordinates with
    their derivatives.
    """

    def __init__(self, placement: Placement, numbers: Numbers, names: Iterable[str] | None = None) -> None:
        self.placement, self.mechanism = placement, placement.mechanism
        self.G = numbers.rows.gradient()
        self.space = free_space(placement, self.G)
        given = None if names is None else named_coordinates(self.mechanism, names)
        self.coordinates = tuple(self._choose(numbers) if given is None else given)
        self.curved = curved_coordinates(placement, numbers, self.coordinates)
        self.J = self.curved.gradient()
        self.motions = self._invert(given is not None)
        self.reference = placement.keep()
        self._offset = placement.opened()

    def _choose(self, numbers: Numbers) -> list[Coordinate]:
        """The coordinates that tell the free motions apart best: those of joints first, of bodies where these do not suffice."""
        candidates = [c for j in self.mechanism.joints if j.type.places for c in coordinates_of(j) if j.type.drive[c.index] != "motion"]  # type: ignore[index]
        chosen: list[Coordinate] = []
        left = self.space.motions
        length = float(np.mean(self.placement.model.bodies["length"][:-1]))
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
            opened = self._opened()
            missing = coordinates - self.deviation()
            size = max(np.abs(opened).max(initial=0.0), np.abs(missing).max())
            if size < 1e-15:
                return
            before = self.placement.keep()
            move_bodies(self.placement, self.solve(-opened, missing))
            if max(np.abs(self._opened()).max(initial=0.0), np.abs(coordinates - self.deviation()).max()) >= size:
                self.placement.restore(before)
                self.placement.evaluate()
                return

    def _opened(self) -> np.ndarray:
        """(rows,) how far rows are open."""
        rows, gaps = self.placement.opened()
        locked = np.arange(6) < self.placement.model.joints["locks"][:, None]
        held = self.placement.model.couplings["law"] == 0
        return np.concatenate([rows[locked], gaps[held]])

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
    from dalembert.model.pose import direction_rows

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
    from dalembert.model.compile import new_work

    placement = Placement(mechanism, model, new_work(model))
    placement.work.joints["target"] = start.target
    placement.put(start.position, start.orientation, start.coordinate)
    return placement


def row_names(placement: Placement) -> list[str]:
    """An element's name per row, in the order of ``Numbers.rows``."""
    joints = [j.name for j, record in zip(placement.mechanism.joints, placement.model.joints) for _ in range(int(record["locks"]))]
    held = placement.model.couplings["law"] == 0
    return joints + [name for name, holds in zip(coupling_names(placement.mechanism), held) if holds]
