"""Forces that are no part of a joint: on points and bodies, along paths, by laws and potentials of the user; and user constraints."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.checks import (
    ANYTHING,
    NAME,
    NOT_NEGATIVE,
    POSITIVE_OR_INFINITE,
    check_fields,
    checked,
    coefficient,
    one_of,
    vector,
    whole,
)
from dalembert.errors import ModelError
from dalembert.mechanism.shapes import as_axis

if TYPE_CHECKING:
    from dalembert.mechanism.mechanism import Body

#: force (N) of a length (m) and its rate (m/s), or (force, K, D, energy): positive stretches, K and D its derivatives, J
Law = Callable[[float, float], Any]


@dataclass(frozen=True, kw_only=True)
class Servo:
    """A motor with gains along a free direction of a joint: ``stiffness`` times (target - coordinate) minus ``damping`` times the
    rate, never more than ``bound`` (N or N m).

    ``target`` in m or rad, until ``Simulation.set_target`` or a controller gives another. It is taken at the end of each step,
    so that high gains are stable. ``follows="rate"`` (or ``Servo.velocity``): the target is a rate, in m/s or rad/s, and the force is
    ``damping`` times (target - rate).
    """

    stiffness: float
    damping: float = 0.0
    target: float = 0.0
    bound: float = np.inf
    follows: str = "position"

    def __post_init__(self) -> None:
        check_fields(self, stiffness=NOT_NEGATIVE, damping=NOT_NEGATIVE, bound=POSITIVE_OR_INFINITE, follows=one_of("position", "rate"))
        if self.follows == "rate" and (self.stiffness != 0.0 or self.damping == 0.0):
            raise ModelError(f"Servo: one that follows a rate has damping alone, got stiffness={self.stiffness!r}, damping={self.damping!r}")

    @classmethod
    @checked(damping=NOT_NEGATIVE, bound=POSITIVE_OR_INFINITE)
    def velocity(cls, *, damping: float, target: float = 0.0, bound: float = np.inf) -> Servo:
        """A velocity servo: ``damping`` (N s/m or N m s/rad) times (``target`` - rate), never more than ``bound`` (N or N m).

        ``target`` in m/s or rad/s, until ``Simulation.set_target`` or a controller gives another rate.
        """
        return cls(stiffness=0.0, damping=damping, target=target, bound=bound, follows="rate")


@dataclass(frozen=True, eq=False)
class Path:
    """A line through points on bodies, in body coordinates, that carries one tension.

    The tension is ``stiffness`` times (length - ``rest``) plus ``damping`` times the rate of the length, or what ``law`` says
    (which then counts instead); a cable (``pulls``) is slack below its rest length and never pushes. ``drive``: "force" when a
    controller may add to the tension.
    """

    name: str
    index: int
    bodies: tuple[Body, ...]
    points: np.ndarray
    stiffness: float
    damping: float
    rest: float
    pulls: bool
    law: Law | None = None
    drive: str | None = None

    def __repr__(self) -> str:
        return f"<{'cable' if self.pulls else 'path'} {self.name!r} through {len(self.points)} points>"


@dataclass(frozen=True, eq=False)
class PointForce:
    """A constant ``force`` (N) at a point of a body (body coordinates), along axes of the world or, with ``follows``, of the body."""

    name: str
    body: Body
    point: np.ndarray
    force: np.ndarray
    follows: bool

    def __repr__(self) -> str:
        return f"<force {self.name!r} on {self.body.name!r}>"


@dataclass(frozen=True, eq=False)
class Drag:
    """Viscous drag on a body: -``linear`` (N s/m) times its velocity, -``angular`` (N m s/rad) times its angular velocity."""

    name: str
    body: Body
    linear: float
    angular: float

    def __repr__(self) -> str:
        return f"<drag {self.name!r} on {self.body.name!r}>"


@dataclass(frozen=True, eq=False)
class Penalty:
    """A point of a body against a plane that gives way (RedMax 1.9.6): pushed back by ``stiffness`` (N/m) and ``damping`` (N s/m)
    while it is below, held by ``tangential`` (N s/m) until friction, ``friction`` times the spring's force, is exceeded.
    """

    name: str
    body: Body
    point: np.ndarray
    normal: np.ndarray
    offset: float
    stiffness: float
    damping: float
    friction: float
    tangential: float

    def __repr__(self) -> str:
        return f"<penalty {self.name!r} on {self.body.name!r}>"


@dataclass(frozen=True, eq=False)
class ForceLaw:
    """A user's law over bodies: wrenches from poses and velocities, or a potential energy of poses alone."""

    name: str
    bodies: tuple[Body, ...]
    function: Callable[..., Any] | None
    energy: Callable[..., Any] | None

    def __repr__(self) -> str:
        return f"<force law {self.name!r} on {', '.join(b.name for b in self.bodies)}>"


@dataclass(frozen=True, eq=False)
class Constraint:
    """A user's constraint over bodies: ``rows`` numbers of their poses that stay zero (Variational's g)."""

    name: str
    index: int
    bodies: tuple[Body, ...]
    function: Callable[..., Any]
    gradient: Callable[..., Any] | None
    rows: int

    def __repr__(self) -> str:
        return f"<constraint {self.name!r} on {', '.join(b.name for b in self.bodies)}>"


class ForceBuilder:
    """The part of ``Mechanism`` that adds forces and user constraints."""

    name: str
    world: Body
    paths: list[Path]
    point_forces: list[PointForce]
    drags: list[Drag]
    penalties: list[Penalty]
    force_laws: list[ForceLaw]
    constraints: list[Constraint]
    _names: dict[str, Any]

    def _take_name(self, name: str, what: str) -> str:
        raise NotImplementedError

    def _body(self, body: Body | str, what: str) -> Body:
        raise NotImplementedError

    @checked(name=NAME, points=ANYTHING)
    def path(
        self, name: str, points: Sequence[tuple[Body | str, ArrayLike]], *, stiffness: float = 0.0, damping: float = 0.0,
        length: float | None = None, law: Law | None = None, drive: str | None = None,
    ) -> Path:
        """A spring (N/m) and damper (N s/m) along a line through ``points``: (body, world point of the reference pose) each.

        Slack at ``length`` (m; by default the one it is built with). ``law(length, rate)``: the tension instead, a number or
        (tension, K, D, energy) with its derivatives, in Python or compiled by Numba; positive pulls its points together.
        ``drive="force"``: a controller may add a tension.
        """
        return self._add_path(name, points, stiffness, damping, length, False, law, drive)

    @checked(name=NAME, points=ANYTHING)
    def cable(
        self, name: str, points: Sequence[tuple[Body | str, ArrayLike]], *, stiffness: float, damping: float = 0.0,
        length: float | None = None, drive: str | None = None,
    ) -> Path:
        """A path that only pulls: slack below its rest ``length``, and its damper never makes it push."""
        return self._add_path(name, points, stiffness, damping, length, True, None, drive)

    def _add_path(self, name: str, points: Any, stiffness: Any, damping: Any, length: Any, pulls: bool, law: Any, drive: Any) -> Path:
        from dalembert.mechanism.mechanism import rotation_matrix

        what = f"{'cable' if pulls else 'path'} {name!r}"
        self._take_name(name, "path")
        try:
            given = [(body, point) for body, point in points]
        except (TypeError, ValueError):
            raise ModelError(f"{what} needs points as pairs (body, world point), got {points!r}") from None
        if len(given) < 2:
            raise ModelError(f"{what} needs two points or more, got {len(given)}")
        bodies = tuple(self._body(body, what) for body, _ in given)
        places = np.array([vector(point, 3, f"point {i} of {what}") for i, (_, point) in enumerate(given)])
        steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
        if np.any(steps < 1e-9):
            raise ModelError(f"{what}: its points {int(np.argmin(steps))} and {int(np.argmin(steps)) + 1} coincide")
        if all(body is bodies[0] for body in bodies):
            raise ModelError(f"{what} runs on {bodies[0].name!r} alone and pulls on nothing")
        if law is not None and not callable(law):
            raise ModelError(f"{what}: law must be a function of length and rate, got {law!r}")
        if drive not in (None, "force"):
            raise ModelError(f"{what}: drive must be None or 'force', got {drive!r}")
        rest = float(steps.sum()) if length is None else coefficient(length, f"{what}: length")
        local = np.array([rotation_matrix(b.orientation).T @ (p - b.position) for b, p in zip(bodies, places)])
        element = Path(
            name, len(self.paths), bodies, local, coefficient(stiffness, f"{what}: stiffness"), coefficient(damping, f"{what}: damping"),
            rest, pulls, law, drive,
        )
        self.paths.append(element)
        self._names[name] = element
        return element

    @checked(name=NAME)
    def force(
        self, name: str, body: Body | str, force: ArrayLike, *, at: ArrayLike | None = None, follows: bool = False,
    ) -> PointForce:
        """A constant force (N) on a body at a world point of the reference pose (its centre of mass by default).

        Its direction stays in the world, or turns with the body (``follows``; then ``force`` is in body axes).
        """
        from dalembert.mechanism.mechanism import rotation_matrix

        owner = self._moving(name, body, "force")
        point = np.zeros(3) if at is None else rotation_matrix(owner.orientation).T @ (vector(at, 3, f"force {name!r}: at") - owner.position)
        return self._keep(self.point_forces, PointForce(name, owner, point, vector(force, 3, f"force {name!r}: force"), bool(follows)))

    @checked(name=NAME)
    def drag(self, name: str, body: Body | str, *, linear: float = 0.0, angular: float = 0.0) -> Drag:
        """Viscous drag on a body's velocity (N s/m) and angular velocity (N m s/rad)."""
        owner = self._moving(name, body, "drag")
        return self._keep(self.drags, Drag(name, owner, coefficient(linear, f"drag {name!r}: linear"), coefficient(angular, f"drag {name!r}: angular")))

    @checked(name=NAME)
    def penalty(
        self, name: str, body: Body | str, *, point: ArrayLike = (0.0, 0.0, 0.0), normal: ArrayLike | str = (0.0, 0.0, 1.0), offset: float = 0.0,
        stiffness: float, damping: float = 0.0, friction: float = 0.0, tangential: float = 0.0,
    ) -> Penalty:
        """Push a point of a body (body coordinates) out of the half-space ``normal . x < offset`` (m) by a stiff spring.

        The way of soft simulators; ``ground`` with ``contact_point`` is the rigid one.
        """
        owner, what = self._moving(name, body, "penalty"), f"penalty {name!r}"
        numbers = (coefficient(value, f"{what}: {which}") for value, which in (
            (stiffness, "stiffness"), (damping, "damping"), (friction, "friction"), (tangential, "tangential")))
        return self._keep(self.penalties, Penalty(
            name, owner, vector(point, 3, f"{what}: point"), as_axis(normal, f"{what}: normal"), offset, *numbers))

    @checked(name=NAME)
    def force_law(
        self, name: str, bodies: Body | str | Sequence[Body | str], function: Callable[..., Any] | None = None, *,
        energy: Callable[..., Any] | None = None,
    ) -> ForceLaw:
        """A law of the user over any number of bodies.

        ``function(position (k, 3), orientation (k, 4), velocity (k, 6))`` gives wrenches (k, 6): force (world) and torque (body
        axes); velocities are linear (world) and angular (body frame). ``energy(position, orientation)`` is a potential (J), whose
        negative gradient acts where no function is given. In Python, or compiled by Numba.
        """
        owners = self._several(name, bodies, "force law")
        if (function is None and energy is None) or not all(f is None or callable(f) for f in (function, energy)):
            raise ModelError(f"force law {name!r} needs a function that gives wrenches, or an energy")
        return self._keep(self.force_laws, ForceLaw(name, owners, function, energy))

    @checked(name=NAME, rows=whole("a whole number from 1 to 1000", least=1, most=1000))
    def constraint(
        self, name: str, bodies: Body | str | Sequence[Body | str], function: Callable[..., Any], *,
        gradient: Callable[..., Any] | None = None, rows: int = 1,
    ) -> Constraint:
        """Keep ``rows`` numbers of the poses of some bodies at zero.

        ``function(position (k, 3), orientation (k, 4))`` gives a number (m or rad), or (rows,). ``gradient`` of the same gives
        (rows, k, 6) by position (world) and rotation (body axes), or (k, 6) for one row; without it, it is differenced.
        """
        owners = self._several(name, bodies, "constraint")
        if not callable(function) or not (gradient is None or callable(gradient)):
            raise ModelError(f"constraint {name!r}: function and gradient must be functions of positions and orientations")
        return self._keep(self.constraints, Constraint(name, len(self.constraints), owners, function, gradient, rows))

    def _moving(self, name: str, body: Body | str, what: str) -> Body:
        self._take_name(name, what)
        owner = self._body(body, f"{what} {name!r}")
        if owner is self.world:
            raise ModelError(f"{what} {name!r} on the world moves nothing; name a body")
        return owner

    def _several(self, name: str, bodies: Any, what: str) -> tuple[Body, ...]:
        from dalembert.mechanism.mechanism import Body

        self._take_name(name, what)
        given = [bodies] if isinstance(bodies, str | Body) else list(bodies)
        owners = tuple(self._body(body, f"{what} {name!r}") for body in given)
        if not owners or any(owner is self.world for owner in owners) or len(set(owners)) < len(owners):
            raise ModelError(f"{what} {name!r} needs different bodies that move, got {given!r}")
        return owners

    def _keep(self, elements: list[Any], element: Any) -> Any:
        elements.append(element)
        self._names[element.name] = element
        return element
