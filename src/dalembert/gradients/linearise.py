"""The linear part of a mechanism's motion about a state, in independent coordinates: of continuous time, and of one step.

Bodies move by M a = f + G^T lam with G a = -G' v. With the pose moved by N dc along what the rows G allow, every term of these
equations changes by known amounts: forces by their K and D, rows by their second derivatives (with the multipliers lam and with
the accelerations a held), and G' v by differences of the second derivatives where anything moves. The motion in the
independent coordinates c follows by a projection with N, however many rows are redundant.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dalembert.errors import LinearisationError
from dalembert.forces.laws import servo
from dalembert.gradients.chart import Chart
from dalembert.gradients.coordinates import (
    curved_coordinates,
    deviations,
    named_coordinates,
)
from dalembert.gradients.curved import STENCIL, Curved, numbers_at, reaches
from dalembert.gradients.local import Local, cross_matrix, local_at
from dalembert.gradients.situation import InputPlace, Situation, check_smooth, input_places, sliding_friction
from dalembert.gradients.space import check_regular, move_bodies
from dalembert.mechanism.mechanism import Body, JointElement
from dalembert.model.functions import watched
from dalembert.model.placement import Placement
from dalembert.model.records import CONSTRAINT

if TYPE_CHECKING:
    from dalembert.simulation.simulation import Simulation

#: displacement of third derivatives of rows, rad or part of a body's reach
STEP = 1e-3
#: m or rad, by which an equilibrium may move in a step
SETTLED = 1e-9


@dataclass(frozen=True, eq=False)
class Linearisation:
    """d(dz)/dt = A dz + B du about a state, with z = (coordinates, their rates): 2 d numbers; and the same of one step.

    ``coordinates`` and ``inputs``: names, in the order of the columns; ``units``: of the coordinates. ``acceleration`` (d,): that
    of the coordinates at the state itself, zero at an equilibrium. ``mass``, ``damping``, ``stiffness`` (d, d): of
    M c'' + D c' + K c = F du; ``forcing`` (d, inputs): F. ``motions`` (6 n, d): how bodies move with the coordinates, position
    (world) and rotation (body axes). ``dt`` (s): of a step.

    Coordinates of a free rotation are small rotations about the parent's axes, their rates the angular velocity there.
    """

    coordinates: tuple[str, ...]
    units: tuple[str, ...]
    inputs: tuple[str, ...]
    A: np.ndarray
    B: np.ndarray
    acceleration: np.ndarray
    mass: np.ndarray
    damping: np.ndarray
    stiffness: np.ndarray
    forcing: np.ndarray
    motions: np.ndarray
    dt: float
    _situation: Situation = field(repr=False)
    _chart: Chart = field(repr=False)
    _places: tuple[InputPlace, ...] = field(repr=False)

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """(2 d,) of A, 1/s, the slowest first."""
        values = np.linalg.eigvals(self.A)
        sizes = np.abs(values)
        return values[np.lexsort((values.imag, values.real, np.round(sizes / max(sizes.max(), 1e-300), 9)))]

    @cached_property
    def _step(self) -> tuple[np.ndarray, np.ndarray]:
        from dalembert.gradients.step_adjoint import adjoint_step
        from dalembert.gradients.step_differences import difference_step

        settled = bool(not self._situation.start.velocity.any() and np.abs(self.acceleration).max() * self.dt**2 < SETTLED)
        with watched(self._situation.mechanism):
            found = adjoint_step(self._situation, self._chart, self._places, settled)
        return difference_step(self._situation, self._chart, self._places, settled) if found is None else found

    @property
    def A_step(self) -> np.ndarray:
        """(2 d, 2 d): dz at the end of a step by dz at its start, computed when asked for. See ``B_step``."""
        return self._step[0]

    @property
    def B_step(self) -> np.ndarray:
        """(2 d, inputs): dz at the end of a step by inputs held over it.

        Exact, by the adjoint of the step, where the formulation has one; otherwise by its differences. About an equilibrium, of a
        step within a run; elsewhere, of one that starts from a knot with nothing before it.
        """
        return self._step[1]

    def deviation(self, simulation: Simulation) -> np.ndarray:
        """(2 d,) what a simulation of the same mechanism has for dz now: for a controller that returns -gain @ dz."""
        chart = self._chart
        joints = {c.element.name for c in chart.coordinates if isinstance(c.element, JointElement)}
        bodies, records = chart.reference[0].copy(), chart.reference[1].copy()
        bodies["x"][:-1], bodies["q"][:-1] = simulation.position, simulation.orientation
        for name in joints:
            value = simulation.coordinates(name)
            records["coordinate"][simulation.mechanism[name].index, : len(value)] = value
        rates = {name: simulation.rates(name) for name in joints}
        velocity = np.concatenate([simulation.velocity, simulation.angular_velocity], axis=1)
        now = [
            velocity[c.element.index, c.index] if isinstance(c.element, Body) else rates[c.element.name][c.index] for c in chart.coordinates
        ]
        values = deviations(chart.coordinates, (bodies, records), chart.reference)
        return np.concatenate([values, np.array(now) - self._rates])

    @cached_property
    def _rates(self) -> np.ndarray:
        """(d,) of the coordinates at the state itself."""
        return self._chart.J @ self._situation.start.velocity.ravel()


class Motion(NamedTuple):
    """A mechanism at a state with its accelerations (6 n,) and the forces of its rows."""

    local: Local
    chart: Chart
    acceleration: np.ndarray
    multipliers: np.ndarray


def linearise(situation: Situation, inputs: Iterable[str] | None, coordinates: Iterable[str] | None) -> Linearisation:
    """The linear part of the motion about a situation."""
    places = input_places(situation.mechanism, inputs)
    placement = situation.placement()
    if coordinates is not None:
        coordinates = [c.name for c in named_coordinates(situation.mechanism, coordinates)]
    check_smooth(situation, placement)
    friction = sliding_friction(situation, placement)
    with watched(situation.mechanism):
        motion = motion_at(placement, situation, coordinates, friction)
        check_regular(placement, motion.chart.space)
        return _project(situation, placement, motion, places)


def motion_at(placement: Placement, situation: Situation, coordinates: Iterable[str] | None, friction: np.ndarray) -> Motion:
    """Accelerations and multipliers at a situation; ``friction`` (directions,): constant forces of dry friction."""
    velocity = situation.start.velocity.ravel()
    local = _with_friction(local_at(placement, velocity, situation.inputs), friction)
    chart = Chart(placement, local.numbers, coordinates)
    N, M = chart.motions, local.inertia
    held = chart.space.least(_prescribed(situation) - local.numbers.rows.bending(velocity))
    inner = np.linalg.solve(N.T @ M @ N, N.T @ (local.force - M @ held))
    acceleration = held + N @ inner
    return Motion(local, chart, acceleration, chart.space.forces(M @ acceleration - local.force))


def _prescribed(situation: Situation) -> np.ndarray:
    """(rows,) accelerations that motion drives ask for, zero for other rows."""
    joints = situation.model.joints
    locked = np.arange(6) < joints["locks"][:, None]
    direction = joints["row_direction"]
    asked = np.where(direction >= 0, np.take_along_axis(situation.prescribed, np.maximum(direction, 0), axis=1), 0.0)[locked]
    if np.isnan(asked).any():
        name = situation.mechanism.joints[int(np.flatnonzero((np.isnan(situation.prescribed)).any(axis=1))[0])].name
        raise LinearisationError(f"joint {name!r}, a free rotation, follows a function of time: linearise where its target stands still")
    return np.concatenate([asked, np.zeros(int(np.count_nonzero(situation.model.couplings["law"] == CONSTRAINT)))])


def _with_friction(local: Local, friction: np.ndarray) -> Local:
    directions = local.numbers.directions
    return local._replace(force=local.force + directions.gradient().T @ friction, K=local.K + directions.contract(friction))


def _project(situation: Situation, placement: Placement, motion: Motion, places: Sequence[InputPlace]) -> Linearisation:
    """A and B from what changes with the pose and with the velocities."""
    local, chart, a, multipliers = motion
    rows, directions, own = local.numbers.rows, local.numbers.directions, chart.curved
    u, N, M, J, space = local.velocity, chart.motions, local.inertia, chart.J, chart.space
    count = N.shape[1]
    moving = bool(np.abs(u).max(initial=0.0) > 0.0)
    # Along the columns: the coordinates moved at constant rates, then the rates changed at a constant pose.
    dy = np.hstack([N, np.zeros_like(N)])
    held = space.least(-rows.left(u) @ N)
    du = np.hstack([held - N @ (own.left(u) @ N + J @ held), N])
    third = _third_derivatives(placement, N, u, (rows, directions, own), chart) if moving else [np.zeros((c.count, 2 * count)) for c in (rows, directions, own)]

    def bend(curved: Curved, third_part: np.ndarray) -> np.ndarray:
        """Change of g . a + v^T H v with accelerations held."""
        return curved.left(a) @ dy + (curved.left(u) + curved.right(u)) @ du + third_part

    rotor = local.armature * (directions.gradient() @ a + directions.bending(u))
    force = (local.K + rows.contract(multipliers) - directions.contract(rotor)) @ dy + local.D @ du
    force -= directions.gradient().T @ (local.armature[:, None] * bend(directions, third[1]))
    answer = space.least(-bend(rows, third[0]))
    reduced = N.T @ M @ N
    generalised = N.T @ (force - M @ answer)
    changes = answer + N @ np.linalg.solve(reduced, generalised)
    below = J @ changes + bend(own, third[2])
    spin = np.zeros_like(M)
    for body, part in enumerate(cross_matrix(u.reshape(-1, 6)[:, 3:])):
        spin[6 * body + 3 : 6 * body + 6, 6 * body + 3 : 6 * body + 6] = -part
    turning = (own.right(u) - own.left(u) + J @ spin) @ N if moving else np.zeros((count, count))
    forcing = N.T @ _input_matrix(placement, local, places)
    upper = np.hstack([turning, np.eye(count)])
    return Linearisation(
        coordinates=chart.names, units=tuple(c.unit for c in chart.coordinates), inputs=tuple(p.name for p in places),
        A=np.vstack([upper, below]), B=np.vstack([np.zeros_like(forcing), np.linalg.solve(reduced, forcing)]),
        acceleration=J @ a + own.bending(u), mass=reduced, damping=-generalised[:, count:], stiffness=-generalised[:, :count],
        forcing=forcing, motions=N, dt=situation.dt, _situation=situation, _chart=chart, _places=tuple(places),
    )


def _third_derivatives(placement: Placement, N: np.ndarray, u: np.ndarray, families: Sequence[Curved], chart: Chart) -> list[np.ndarray]:
    """(count, 2 d) changes of v^T H v with the pose at constant velocities, by fourth-order differences along N."""
    found = [np.zeros((curved.count, 2 * N.shape[1])) for curved in families]
    lengths = np.where(np.arange(len(u)) % 6 < 3, np.repeat(reaches(placement.model), 6), 1.0)
    kept = placement.keep()
    for column, direction in enumerate(N.T):
        size = STEP / np.abs(direction / lengths).max()
        for steps, weight in STENCIL:
            placement.restore(kept)
            move_bodies(placement, steps * size * direction)
            numbers = numbers_at(placement)
            own = curved_coordinates(placement, numbers, chart.coordinates)
            for values, curved in zip(found, (numbers.rows, numbers.directions, own)):
                values[:, column] += weight / size * curved.bending(u)
    placement.restore(kept)
    placement.evaluate()
    return found


def _input_matrix(placement: Placement, local: Local, places: Sequence[InputPlace]) -> np.ndarray:
    """(6 n, inputs) what a unit of each input does on the bodies."""
    model = placement.model
    first = np.concatenate([[0], np.cumsum(model.joints["free"])])
    directions, paths = local.numbers.directions.gradient(), local.numbers.paths.gradient()
    matrix = np.zeros((local.velocity.size, len(places)))
    for column, (_, kind, element, direction) in zip(matrix.T, places):
        if kind == "wrench":
            column[6 * element + direction] = 1.0
        elif kind == "tension":
            column[:] = -paths[len(paths) + element]
        else:
            index = first[element] + direction
            column[:] = directions[index]
            if kind == "target":
                at, joint = placement.work.joints[element], model.joints[element]
                column *= servo(joint, direction, at["target"][direction], at["coordinate"][direction], float(directions[index] @ local.velocity))[3]
    return matrix
