"""What a mechanism's bodies may touch: the environment, single contact points, and the laws of pairs."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.checks import NAME, checked, coefficient, numbers, shown, spread, unit_quaternion, vector, whole
from dalembert.errors import ModelError
from dalembert.mechanism.roughness import Rough, roughness
from dalembert.mechanism.shapes import Placed, Shape, as_axis, unplaced

if TYPE_CHECKING:
    from dalembert.mechanism.mechanism import Body

#: friction coefficient and restitution of pairs that nothing was said about
DEFAULT_FRICTION, DEFAULT_RESTITUTION = 0.5, 0.0


@dataclass(frozen=True, eq=False)
class Ground(Rough):
    """A half-space of the environment: everything with ``normal . x < offset`` is solid. ``velocity`` (3,): that of its surface, along itself."""

    name: str
    normal: np.ndarray
    offset: float
    friction: float
    restitution: float
    layer: int = 1
    mask: int = 1
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.friction_direction is not None and np.linalg.norm(np.cross(self.normal, self.friction_direction)) < 1e-6:
            raise ModelError(f"ground {self.name!r}: friction_direction {list(self.friction_direction)} is that of its normal, along which nothing slides")
        if abs(self.normal @ self.velocity) > 1e-9 * np.linalg.norm(self.velocity):
            raise ModelError(f"ground {self.name!r}: its surface moves along itself, and velocity {self.velocity.tolist()} has a part along the normal {self.normal.tolist()}")

    def __repr__(self) -> str:
        return f"<ground {self.name!r}>"


@dataclass(frozen=True, eq=False)
class Obstacle(Rough):
    """A shape that stands still in the world. ``position`` is that of its centre of mass."""

    name: str
    shape: Shape
    position: np.ndarray
    orientation: np.ndarray
    friction: float
    restitution: float
    layer: int = 1
    mask: int = 1

    def __repr__(self) -> str:
        return f"<obstacle {self.name!r}>"


@dataclass(frozen=True, eq=False)
class HeightField:
    """A terrain z = h(x, y), smooth through a grid of ``heights`` (nx, ny) from ``origin`` (x, y) in steps of ``spacing``."""

    name: str
    heights: np.ndarray
    origin: np.ndarray
    spacing: np.ndarray
    friction: float
    restitution: float
    layer: int = 1
    mask: int = 1

    def __repr__(self) -> str:
        return f"<height field {self.name!r}: {self.heights.shape[0]} x {self.heights.shape[1]}>"


@dataclass(frozen=True, eq=False)
class Collider:
    """A shape on a body that touches. ``position`` is that of its centre of mass, ``orientation`` its own, in the body's frame.

    Coefficients that are None leave the word to the other one.
    """

    name: str
    body: Body
    shape: Shape
    position: np.ndarray
    orientation: np.ndarray
    friction: float | None = None
    restitution: float | None = None
    layer: int = 1
    mask: int = 1

    def __repr__(self) -> str:
        return f"<collider {self.name!r} of {self.body.name!r}>"


@dataclass(frozen=True, eq=False)
class ContactPoint:
    """A point of a body, in its frame, that may touch the ground; None: the ground's own coefficient."""

    body: Body
    point: np.ndarray
    radius: float
    friction: float | None
    restitution: float | None


@dataclass(frozen=True)
class PairLaw(Rough):
    """Coefficients of one pair, or that it does not collide. ``direction_of``: in whose frame ``friction_direction`` is."""

    friction: float
    restitution: float
    collide: bool
    direction_of: str | None = None


#: what a pair may be made of, besides bodies
TOUCHING = (Ground, Obstacle, HeightField, Collider)
#: bits of layers and masks
BITS = whole("a whole number, whose bits count", least=-(2**63), most=2**63 - 1)


class EnvironmentBuilder:
    """The part of ``Mechanism`` that says what may touch what.

    Two things touch where the ``layer`` of one and the ``mask`` of the other have a bit in common; both are 1 unless
    given. Friction and restitution of a pair are the larger ones of the two, unless ``contact_pair`` says otherwise.
    """

    name: str
    world: Body
    bodies: list[Body]
    grounds: list[Ground]
    obstacles: list[Obstacle]
    terrains: list[HeightField]
    colliders: list[Collider]
    contact_points: list[ContactPoint]
    pair_laws: dict[frozenset[str], PairLaw]
    _names: dict[str, Any]

    def _take_name(self, name: str, what: str) -> str:
        raise NotImplementedError

    def _body(self, body: Body | str, what: str) -> Body:
        raise NotImplementedError

    @checked(name=NAME, layer=BITS, mask=BITS)
    def ground(
        self, *, normal: ArrayLike | str = (0.0, 0.0, 1.0), offset: float = 0.0, friction: ArrayLike = DEFAULT_FRICTION,
        restitution: float = DEFAULT_RESTITUTION, layer: int = 1, mask: int = 1, name: str = "ground", velocity: ArrayLike = (0.0, 0.0, 0.0),
        friction_direction: ArrayLike | None = None, spin_friction: float | None = None, rolling_friction: float | None = None,
        stiffness: float | None = None, damping: float | None = None,
    ) -> Ground:
        """Add a half-space: everything with ``normal . x < offset`` (m) is solid. ``friction`` is Coulomb's coefficient.

        ``velocity`` (m/s): that of a conveyor, whose surface moves along itself; friction acts against what slides on it.
        ``friction=(along, across)``: along ``friction_direction`` (world axes) and across it, so that its bound is an ellipse. ``spin_friction`` and
        ``rolling_friction`` (m): bounds of the torques about the normal and across it, over the normal force. With ``stiffness`` (N/m), and ``damping``
        (N s/m), each point of contact gives way: its force is the one times its penetration and the other times the rate of that, and never pulls.
        """
        towards = as_axis(normal, f"ground {name!r}: normal")
        along = vector(velocity, 3, f"ground {name!r}: velocity")
        self._take_name(name, "ground")
        first, rough = roughness(
            f"ground {name!r}", friction, friction_direction, spin_friction=spin_friction, rolling_friction=rolling_friction, stiffness=stiffness, damping=damping,
        )
        ground = Ground(name, towards, offset, *self._touch(name, first, restitution, layer, mask), along, **rough)
        self.grounds.append(ground)
        self._names[name] = ground
        return ground

    @checked(name=NAME, layer=BITS, mask=BITS)
    def obstacle(
        self, name: str, shape: Shape | Placed, *, position: ArrayLike | None = None, orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        friction: ArrayLike = DEFAULT_FRICTION, restitution: float = DEFAULT_RESTITUTION, layer: int = 1, mask: int = 1,
        friction_direction: ArrayLike | None = None, spin_friction: float | None = None, rolling_friction: float | None = None,
        stiffness: float | None = None, damping: float | None = None,
    ) -> Obstacle:
        """Add a shape that stands still in the world, at the origin by default or where it was placed; its mass says nothing.

        Friction as of ``ground``.
        """
        self._take_name(name, "obstacle")
        shape, position = unplaced(shape, position, f"obstacle {name!r}")
        if not isinstance(shape, Shape):
            raise ModelError(f"obstacle {name!r}: shape must be one of dalembert's shapes, got {shape!r}")
        first, rough = roughness(
            f"obstacle {name!r}", friction, friction_direction, spin_friction=spin_friction, rolling_friction=rolling_friction, stiffness=stiffness, damping=damping,
        )
        element = Obstacle(
            name, shape, vector(position, 3, f"obstacle {name!r}: position"),
            unit_quaternion(orientation, f"obstacle {name!r}: orientation"), *self._touch(name, first, restitution, layer, mask), **rough,
        )
        self.obstacles.append(element)
        self._names[name] = element
        return element

    @checked(name=NAME, layer=BITS, mask=BITS)
    def height_field(
        self, heights: ArrayLike, *, origin: ArrayLike = (0.0, 0.0), spacing: ArrayLike = 1.0, friction: float = DEFAULT_FRICTION,
        restitution: float = DEFAULT_RESTITUTION, layer: int = 1, mask: int = 1, name: str = "terrain",
    ) -> HeightField:
        """Add a terrain through a grid of ``heights`` (nx, ny), m: heights[i, j] stands at origin + (i, j) * spacing.

        Bodies touch it with the balls, ends and corners of their shapes.
        """
        self._take_name(name, "height field")
        grid = numbers(None, None)(heights, f"height field {name!r}: heights")
        if min(grid.shape) < 2:
            raise ModelError(f"height field {name!r} needs a grid of at least 2 x 2 finite heights, got shape {grid.shape}")
        if self.terrains:
            raise ModelError(f"{self.name!r} has the height field {self.terrains[0].name!r} already: put both into one grid")
        steps = spread(spacing, 2, f"height field {name!r}: spacing")
        if not np.all(steps > 0.0):
            raise ModelError(f"height field {name!r}: spacing must be positive, got {steps}")
        element = HeightField(
            name, np.ascontiguousarray(grid), vector(origin, 2, f"height field {name!r}: origin"), steps,
            *self._touch(name, friction, restitution, layer, mask),
        )
        self.terrains.append(element)
        self._names[name] = element
        return element

    @checked(name=NAME, layer=BITS, mask=BITS)
    def collider(
        self, name: str, body: Body | str, shape: Shape | Placed, *, position: ArrayLike | None = None,
        orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0), friction: float | None = None, restitution: float | None = None,
        layer: int = 1, mask: int = 1,
    ) -> Collider:
        """Let a shape on a body touch others, besides the shape that its mass may come from; the shape's own mass says nothing.

        ``position`` (m, of the shape's centre of mass; the body's own by default) and ``orientation`` are in the body's frame.
        """
        self._take_name(name, "collider")
        shape, position = unplaced(shape, position, f"collider {name!r}")
        owner = self._body(body, f"collider {name!r}")
        if owner is self.world:
            raise ModelError(f"collider {name!r} needs a body that moves, not the world: use obstacle")
        if not isinstance(shape, Shape):
            raise ModelError(f"collider {name!r}: shape must be one of dalembert's shapes, got {shape!r}")
        element = Collider(
            name, owner, shape, vector(position, 3, f"collider {name!r}: position"),
            unit_quaternion(orientation, f"collider {name!r}: orientation"), *self._touch(name, friction, restitution, layer, mask),
        )
        self.colliders.append(element)
        self._names[name] = element
        return element

    @checked
    def contact_point(
        self, body: Body | str, *, point: ArrayLike = (0.0, 0.0, 0.0), radius: float = 0.0, friction: float | None = None,
        restitution: float | None = None,
    ) -> ContactPoint:
        """Let a point of a body (body frame, m; with a ``radius``, a ball about it) touch the environment's grounds and terrain.

        Coefficients that are not given are those of the ground.
        """
        owner = self._body(body, "contact_point")
        if owner is self.world:
            raise ModelError("contact_point needs a body that moves, not the world")
        what = f"contact point {owner.name!r}"
        element = ContactPoint(
            owner, vector(point, 3, f"{what}: point"), coefficient(radius, f"{what}: radius"),
            None if friction is None else coefficient(friction, f"{what}: friction"),
            None if restitution is None else coefficient(restitution, f"{what}: restitution", 1.0),
        )
        self.contact_points.append(element)
        return element

    @checked
    def contact_pair(
        self, a: Any, b: Any, *, friction: ArrayLike = DEFAULT_FRICTION, restitution: float = DEFAULT_RESTITUTION, collide: bool = True,
        friction_direction: ArrayLike | None = None, spin_friction: float | None = None, rolling_friction: float | None = None,
        stiffness: float | None = None, damping: float | None = None,
    ) -> PairLaw:
        """Say how two bodies or colliders (or one and a ground, obstacle or terrain, by name) touch, or that they do not.

        What is said of colliders goes before what is said of their bodies. Bodies that a joint connects do not collide
        unless a pair says so. Friction as of ``ground``; ``friction_direction`` is fixed to the first of the two, in the axes of its body, or in those of
        the world where that stands still: ``contact_pair("skate", "ice", friction=(0.0, 0.8), friction_direction=(1, 0, 0))``.
        """
        names = []
        for end in (a, b):
            name = end if isinstance(end, str) else getattr(end, "name", None)
            if not isinstance(name, str) or name not in self._names:
                raise ModelError(f"contact_pair: {self.name!r} has nothing named {shown(end)}")
            if not isinstance(self._names[name], TOUCHING) and self._names[name] not in self.bodies:
                raise ModelError(f"contact_pair needs bodies, colliders, grounds, obstacles or a height field, got {self._names[name]!r}")
            names.append(name)
        if names[0] == names[1]:
            raise ModelError(f"contact_pair needs two different bodies, got {names[0]!r} twice")
        what = f"{names[0]} and {names[1]}"
        first, rough = roughness(
            repr(what), friction, friction_direction, spin_friction=spin_friction, rolling_friction=rolling_friction, stiffness=stiffness, damping=damping,
        )
        law = PairLaw(
            first, coefficient(restitution, f"restitution of {what!r}", 1.0), bool(collide), None if friction_direction is None else names[0], **rough,
        )
        self.pair_laws[frozenset(names)] = law
        return law

    @staticmethod
    def _touch(name: str, friction: Any, restitution: Any, layer: int, mask: int) -> tuple[Any, Any, int, int]:
        """Coefficients and bits of something that touches, checked."""
        return (
            None if friction is None else coefficient(friction, f"friction of {name!r}"),
            None if restitution is None else coefficient(restitution, f"restitution of {name!r}", 1.0), layer, mask,
        )

    @property
    def touches(self) -> bool:
        """True when something may touch something, or a joint has limits or dry friction."""
        from dalembert.mechanism.touching import Touching

        if self.contact_points or any(j.type.bounded for j in self.joints):  # type: ignore[attr-defined]
            return True
        return Touching(self).any  # type: ignore[arg-type]
