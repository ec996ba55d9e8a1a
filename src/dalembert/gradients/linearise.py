"""The linear part of a mechanism's motion about a state, in independent coordinates: of continuous time, and of one step.

Bodies move by M a = f + G^T lam with G a = -G' v. With the pose moved by N dc along what the rows G allow, every term of these
equations changes by known amounts: forces by their K and D, rows by their second derivatives (with the multipliers lam and with
the accelerations a held), and G' v by differences of the second derivatives where anything moves. The motion in the
independent coordinates c follows by a projection with N, however many rows are redundant.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dalembert.errors import LinearisationError, ModelError
from dalembert.formulations.engine import Engine, Inputs, Start
from dalembert.gradients.chart import Chart, Coordinate, check_regular, deviations, move_bodies, place
from dalembert.gradients.curved import STENCIL, Curved, numbers_at, reaches
from dalembert.gradients.local import Local, cross_matrix, local_at
from dalembert.mechanism.forces import Path
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.model.functions import watched
from dalembert.model.placement import Placement
from dalembert.model.records import Model

if TYPE_CHECKING:
    from dalembert.simulation.controls import InputTables
    from dalembert.simulation.simulation import Simulation

#: displacement of third derivatives of rows, rad or part of a body's reach
STEP = 1e-3
#: m, by which things may be apart and still touch
TOUCHING = 1e-6
#: m or rad, by which a joint may be off its limit and still stand at it
AT_LIMIT = 1e-9
#: m/s or rad/s below which dry friction holds
HELD = 1e-9


@dataclass(frozen=True)
class Situation:
    """A simulation at one knot: its mechanism and engine, where it is, and the inputs and targets there.

    ``tables``: inputs of the step that begins there, anew at each call. ``gaps``: what can touch, with its distance (m).
    """

    mechanism: Mechanism
    model: Model
    engine: Engine
    start: Start
    inputs: Inputs
    dt: float
    time: float
    tables: Callable[[], InputTables]
    gaps: Callable[[], list[tuple[str, float]]]

    def placement(self) -> Placement:
        """A placement of its own."""
        return place(self.mechanism, self.model, self.start)


class InputPlace(NamedTuple):
    """One input: "joint", "target", "wrench" or "tension", the place of its element in the tables, and its direction."""

    name: str
    kind: str
    element: int
    direction: int


def input_places(mechanism: Mechanism, names: Iterable[str] | None) -> tuple[InputPlace, ...]:
    """Inputs by name; None for all forces of joints and tensions of paths that can be driven."""
    if isinstance(names, str):
        raise ModelError(f"inputs must be a list of names, got {names!r}: say [{names!r}]")
    if names is None:
        names = [
            *(j.name for j in mechanism.joints if "force" in j.type.drive),  # type: ignore[operator]
            *(p.name for p in mechanism.paths if p.drive is not None),
        ]
    places: list[InputPlace] = []
    for name in names:
        places += _places(mechanism, name)
    doubles = {p.name for p in places if sum(p.name == other.name for other in places) > 1}
    if doubles:
        raise ModelError(f"inputs are named twice: {', '.join(sorted(doubles))}")
    return tuple(places)


def _places(mechanism: Mechanism, name: str) -> list[InputPlace]:
    element = mechanism[name]
    if isinstance(element, Body) and element is not mechanism.world:
        return [InputPlace(f"{name}[{c}]", "wrench", element.index, c) for c in range(6)]
    if isinstance(element, Path) and element.drive is not None:
        return [InputPlace(name, "tension", element.index - len(mechanism.paths), 0)]
    if not isinstance(element, JointElement):
        raise ModelError(f"{element!r} takes no input; inputs are force-driven joints, servos, bodies and driven paths")
    kind = element.type
    if "motion" in kind.drive:  # type: ignore[operator]
        raise ModelError(
            f"joint {name!r} follows a target exactly: its motion is given, and is no input of a linear system. Drive it by a force or a servo."
        )
    driven = [(i, "joint" if kind.drive[i] == "force" else "target") for i in range(kind.freedom) if kind.drive[i] == "force" or kind.servo[i] is not None]  # type: ignore[index]
    if not driven:
        raise ModelError(f"joint {name!r} takes no input; make it with drive='force' or a servo")
    return [InputPlace(name if kind.freedom == 1 else f"{name}[{i}]", what, element.index, i) for i, what in driven]


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
        return values[np.argsort(np.abs(values), kind="stable")]

    @cached_property
    def _step(self) -> tuple[np.ndarray, np.ndarray]:
        from dalembert.gradients.step_differences import difference_step

        return difference_step(self._situation, self._chart, self._places)

    @property
    def A_step(self) -> np.ndarray:
        """(2 d, 2 d): dz at the end of a step by dz at its start, computed when asked for. See ``B_step``."""
        return self._step[0]

    @property
    def B_step(self) -> np.ndarray:
        """(2 d, inputs): dz at the end of a step by inputs held over it.

        Both are those of a step that starts from a knot with nothing before it, by differences of the step itself.
        """
        return self._step[1]

    def deviation(self, simulation: Simulation) -> np.ndarray:
        """(2 d,) what a simulation of the same mechanism has for dz now: for a controller that returns -gain @ dz."""
        return self._chart_deviation(simulation.position, simulation.orientation, simulation)

    def _chart_deviation(self, position: np.ndarray, orientation: np.ndarray, simulation: Simulation) -> np.ndarray:
        chart = self._chart
        joints = {c.element.name for c in chart.coordinates if isinstance(c.element, JointElement)}
        bodies, records = chart.reference[0].copy(), chart.reference[1].copy()
        bodies["x"][:-1], bodies["q"][:-1] = position, orientation
        rates = {name: simulation.rates(name) for name in joints}
        for name in joints:
            value = simulation.coordinates(name)
            records["coordinate"][simulation.mechanism[name].index, : len(value)] = value
        values = deviations(chart.coordinates, (bodies, records), chart.reference)
        velocity = np.concatenate([simulation.velocity, simulation.angular_velocity], axis=1)
        now = [
            velocity[c.element.index, c.index] if isinstance(c.element, Body) else rates[c.element.name][c.index] for c in chart.coordinates
        ]
        return np.concatenate([values, np.array(now) - self._chart_rates])

    @cached_property
    def _chart_rates(self) -> np.ndarray:
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
    friction = smooth_friction(situation, placement)
    with watched(situation.mechanism):
        motion = motion_at(placement, situation.start.velocity.ravel(), situation.inputs, coordinates, friction)
        check_regular(placement, motion.chart.space)
        return _project(situation, placement, motion, places)


def motion_at(
    placement: Placement, velocity: np.ndarray, inputs: Inputs, coordinates: Iterable[str] | None, friction: np.ndarray | None = None,
) -> Motion:
    """Accelerations and multipliers at the placement's pose; ``friction`` (directions,): constant forces of dry friction."""
    local = local_at(placement, velocity, inputs)
    if friction is not None and friction.any():
        local = _with_friction(local, friction)
    chart = Chart(placement, local.numbers, coordinates)
    N, M = chart.motions, local.inertia
    held = chart.space.least(-local.numbers.rows.bending(velocity))
    inner = np.linalg.solve(N.T @ M @ N, N.T @ (local.force - M @ held))
    acceleration = held + N @ inner
    return Motion(local, chart, acceleration, chart.space.forces(M @ acceleration - local.force))


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
    from dalembert.gradients.chart import curved_coordinates

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
                column *= _servo_gain(joint, direction, float(at["target"][direction] - at["coordinate"][direction]), float(directions[index] @ local.velocity))
    return matrix


def _servo_gain(joint: np.void, i: int, error: float, rate: float) -> float:
    """Change of a servo's force with its target: its stiffness, or nothing beyond its bound."""
    force = joint["servo_stiffness"][i] * error - joint["servo_damping"][i] * rate
    return float(joint["servo_stiffness"][i]) if abs(force) <= joint["servo_bound"][i] else 0.0


def smooth_friction(situation: Situation, placement: Placement) -> np.ndarray:
    """(directions,) forces of dry friction where joints slide; raises LinearisationError where the motion has a kink."""
    closed = [(name, gap) for name, gap in situation.gaps() if gap < TOUCHING]
    if closed:
        raise LinearisationError(
            f"{closed[0][0]} touch (gap {closed[0][1]:.3g} m): a motion that a contact stops on one side has no linear part. "
            "Lift it off, or hold it by joints or springs."
        )
    forces = []
    velocity = situation.start.velocity.ravel()
    for element in situation.mechanism.joints:
        kind = element.type
        own = [Coordinate(element.name, element, i) for i in range(kind.freedom)]
        if not kind.bounded:
            forces += [0.0] * kind.freedom
            continue
        values = placement.work.joints["coordinate"][element.index, : kind.freedom]
        from dalembert.gradients.chart import coordinate_rows

        rates = coordinate_rows(placement, own) @ velocity
        for value, rate, (lower, upper), bound in zip(values, rates, kind.limits, kind.friction):  # type: ignore[arg-type]
            if not lower + AT_LIMIT < value < upper - AT_LIMIT:
                raise LinearisationError(f"joint {element.name!r} stands at a limit ({value:.6g} of {lower:g} to {upper:g}): its motion has no linear part there")
            if bound > 0.0 and abs(rate) < HELD:
                raise LinearisationError(
                    f"joint {element.name!r} is held by dry friction of {bound:g} N or N m: at rest its motion has no linear part. "
                    f"Set its friction to zero (set_parameters({{'{element.name}.friction': 0}})), or linearise while it slides."
                )
            forces.append(-bound * np.sign(rate) if bound > 0.0 else 0.0)
    return np.array(forces)
