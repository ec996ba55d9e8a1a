"""Which things of a mechanism may touch one another, and by which law."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain, combinations, product
from typing import TYPE_CHECKING

import numpy as np

from dalembert.mechanism.environment import (
    DEFAULT_FRICTION,
    DEFAULT_RESTITUTION,
    Collider,
    Ground,
    HeightField,
    Obstacle,
    PairLaw,
)
from dalembert.mechanism.roughness import Rough
from dalembert.mechanism.shapes import Shape

if TYPE_CHECKING:
    from dalembert.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Surface(Rough):
    """Something that touches: a shape on a body (index; -1 for the world), or a part of the environment.

    ``owner`` is the name by which its contacts are known; ``names`` are those that a pair may mean it by, own name first.
    """

    owner: str
    body: int
    names: tuple[str, ...]
    friction: float | None = None
    restitution: float | None = None
    layer: int = 1
    mask: int = 1
    shape: Shape | None = None
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    orientation: np.ndarray = field(default_factory=lambda: np.array([1.0, 0.0, 0.0, 0.0]))


def environment_surface(element: Ground | HeightField | Obstacle) -> Surface:
    """What the bodies touch."""
    shape = dict(shape=element.shape, position=element.position, orientation=element.orientation) if isinstance(element, Obstacle) else {}
    rough = {} if isinstance(element, HeightField) else element.rough
    return Surface(element.name, -1, (element.name,), element.friction, element.restitution, element.layer, element.mask, **shape, **rough)  # type: ignore[arg-type]


def collider_surface(collider: Collider) -> Surface:
    return Surface(
        collider.body.name, collider.body.index, (collider.name, collider.body.name), collider.friction, collider.restitution,
        collider.layer, collider.mask, collider.shape, collider.position, collider.orientation,
    )


class Touching:
    """The surfaces of a mechanism and the law of every pair of them.

    Bodies that a joint connects do not touch, nor do those fixed to one another; rigidly joined bodies count as one.
    Bodies fixed to the world do not touch the environment. A pair that was declared does as was said.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.laws = mechanism.pair_laws
        self.moving = [Surface(b.name, b.index, (b.name,), shape=b.shape) for b in mechanism.bodies if b.collide]
        self.moving += [collider_surface(c) for c in mechanism.colliders]
        self.obstacles = [environment_surface(o) for o in mechanism.obstacles]
        self.around = [environment_surface(e) for e in (*mechanism.grounds, *mechanism.terrains)]
        self.group, self.still = _rigid_groups(mechanism)
        self.joined = {
            frozenset((self.group[j.parent.index], self.group[j.child.index]))
            for j in mechanism.joints if j.parent.index >= 0 and j.type.holds
        }

    def law(self, a: Surface, b: Surface) -> PairLaw | None:
        """How two surfaces touch; None: they do not."""
        if a.body == b.body:
            return None
        said = self._said(a, b)
        if said is not None:
            return said if said.collide else None
        if not (a.layer & b.mask or b.layer & a.mask) or self._held(a.body, b.body):
            return None
        friction, restitution = _larger(a.friction, b.friction, DEFAULT_FRICTION), _larger(a.restitution, b.restitution, DEFAULT_RESTITUTION)
        rough = next((s for s in (a, b) if s.body < 0), None)  # the environment: of two bodies, pairs alone say more than this
        if rough is None:
            return PairLaw(friction, restitution, True)
        law = PairLaw(friction, restitution, True, **rough.rough)
        if rough.friction_direction is None:
            return law
        other = b if rough is a else a
        return replace(law, direction_of=rough.names[0], friction_across=_larger(rough.friction_across, other.friction, DEFAULT_FRICTION))

    def _said(self, a: Surface, b: Surface) -> PairLaw | None:
        if not self.laws:
            return None
        return next((law for names in product(a.names, b.names) if (law := self.laws.get(frozenset(names))) is not None), None)

    def _held(self, a: int, b: int) -> bool:
        """True when two bodies cannot move relative to one another but by a joint between them."""
        if a < 0 or b < 0:
            return self.group[max(a, b)] in self.still
        return frozenset((self.group[a], self.group[b])) in self.joined or self.group[a] == self.group[b]

    @property
    def any(self) -> bool:
        """True when some pair may touch."""
        pairs = chain(product(self.moving, (*self.around, *self.obstacles)), combinations(self.moving, 2))
        return any(self.law(a, b) is not None for a, b in pairs)

    @property
    def paired(self) -> list[Surface]:
        """The surfaces with a shape that may touch another such surface."""
        shaped = [*self.moving, *self.obstacles]
        return [a for a in shaped if any(self.law(a, b) is not None for b in shaped)]


def _larger(a: float | None, b: float | None, neither: float) -> float:
    return max((value for value in (a, b) if value is not None), default=neither)


def _rigid_groups(mechanism: Mechanism) -> tuple[list[int], set[int]]:
    """The group of every body, the same for bodies fixed to one another, and the groups fixed to the world."""
    group = list(range(len(mechanism.bodies)))
    fixed = [j for j in mechanism.joints if j.type.freedom == 0 and j.type.places]
    for joint in fixed:
        if joint.parent.index >= 0:
            old, new = group[joint.child.index], group[joint.parent.index]
            group = [new if g == old else g for g in group]
    return group, {group[j.child.index] for j in fixed if j.parent.index < 0}
