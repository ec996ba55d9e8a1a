"""Bars of what touches by the names that parameters have: "ground.friction", "foot contact 0.radius", "elbow.upper"."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dalembert.contact.features import Geometry, ball_features, support_features
from dalembert.errors import GradientError
from dalembert.mechanism.environment import Collider, ContactPoint, Ground, HeightField, Obstacle, PairLaw
from dalembert.mechanism.mechanism import Body, JointElement
from dalembert.mechanism.parameters import BEARING, ENDS, SIZES, resized
from dalembert.mechanism.touching import Surface, Touching

#: of joints
LIMITED = (*ENDS, "friction", "restitution")
LAWS = ("friction", "restitution", "friction_across")
#: step, as part of a size, of central differences of features, which are linear in it
STEP = 1e-3
FEATURES = ("point", "radius", "axis", "semi")
#: what numbers of a shape are among those of geometries of pairs, and which part of them
IN_SHAPES = {"position": ("position", 1.0), "radius": ("radius", 1.0), "length": ("half", 0.5), "size": ("semi", 0.5), "semi_axes": ("semi", 1.0)}


class TouchingNames:
    """Gives bars of contacts, limits and pairs (``TouchingAdjoint``) to the numbers of a mechanism."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.mechanism = engine, engine.mechanism
        self.touching = Touching(engine.mechanism)

    def bar(self, element: Any, what: str, adjoint: Any) -> np.ndarray | None:
        """The bar of a number of an element, shaped as its value; None where nothing that touches takes it."""
        if isinstance(element, JointElement):
            if what in BEARING:
                return self._of_bearing(element, what, adjoint)
            return self._of_joint(element, what, adjoint) if what in LIMITED else None
        if what in LAWS:
            return np.array(self._of_law(element, what, adjoint))
        if isinstance(element, ContactPoint):
            at = [i for i, (source, _, _) in enumerate(self.engine.grounds.sources) if source is element]
            return np.array(adjoint.grounds[what][at].sum(axis=0))
        if isinstance(element, Ground):
            at = [i for i, (_, _, ground) in enumerate(self.engine.grounds.sources) if ground is element]
            return np.array(adjoint.grounds["belt"][at].sum(axis=0) if what == "velocity" else adjoint.grounds["offset"][at].sum())
        if isinstance(element, Collider | Body | Obstacle) and what in (*SIZES, "position"):
            return self._of_shape(element, what, adjoint)
        return None

    def centre_of_mass(self, body: Body, adjoint: Any) -> np.ndarray:
        """What a move of the centre of mass makes of points and colliders that stay where they are."""
        if body.collide:
            raise GradientError(f"the centre of mass of {body.name!r} cannot be moved by itself: the shape by which it touches is placed from it. Use a collider.")
        total = np.zeros(3)
        for point in self.mechanism.contact_points:
            if point.body is body:
                total -= np.asarray(self.bar(point, "point", adjoint))
        for collider in self.mechanism.colliders:
            if collider.body is body:
                total -= np.asarray(self.bar(collider, "position", adjoint))
        return total

    def _of_joint(self, element: JointElement, what: str, adjoint: Any) -> np.ndarray:
        limits, kind = self.engine.scene.limits, element.type
        own = (limits["joint"] == element.index) & (limits["bears"] == 0)
        if what == "restitution":
            return np.array(adjoint.limits["restitution"][own].sum())
        values = np.zeros(kind.freedom)
        known = limits["direction"][own]
        values[known] = adjoint.limits["end"][own][:, ENDS.index(what)] if what in ENDS else adjoint.limits["friction"][own]
        missing = np.setdiff1d(np.arange(kind.freedom), known)
        if what == "friction" and len(missing):
            raise GradientError(
                f"the friction of joint {element.name!r} is {kind.friction}: where it is zero and there are no limits, no equation has it. "
                "Give every direction a small positive one."
            )
        return values[0].copy() if kind.freedom == 1 else values

    def _of_bearing(self, element: JointElement, what: str, adjoint: Any) -> np.ndarray:
        limits = self.engine.scene.limits
        own = (limits["joint"] == element.index) & (limits["bears"] != 0)
        bar = adjoint.limits["bearing"][own][:, list(BEARING).index(what)].sum()
        if what == "bearing_length":  # records have its inverse
            bar = -bar * limits["bearing"][own][0, 2] ** 2
        return np.array(bar)

    # ---- laws of pairs

    def _of_law(self, element: Any, what: str, adjoint: Any) -> float:
        total, grounds = 0.0, self.engine.grounds
        for i, (source, _, ground) in enumerate(grounds.sources):
            row = grounds.contacts[i]
            bars = adjoint.grounds["friction"][i], adjoint.grounds["restitution"][i], *adjoint.grounds["share"][i]
            total += self._own_part(element, what, bars, row["friction"] * row["share"] if row["grain_of"] else None, *self._ends(source, ground))
        for (i, j), bars in adjoint.laws.items():
            law = self.engine.pairs._law(i, j)
            both = None if law.friction_across is None else np.array([law.friction, law.friction_across])
            total += self._own_part(element, what, bars, both, *(self.engine.pairs.found[k].surface for k in (i, j)))
        return total

    def _own_part(self, element: Any, what: str, bars: Any, both: np.ndarray | None, a: Surface | ContactPoint, b: Surface) -> float:
        """What bars of a contact's coefficient, its restitution and its two shares are for a number of an element.

        ``both`` (2,): coefficients along and across, None where there is but one.
        """
        if what == "restitution" or both is None:
            return float(bars[LAWS.index(what)]) if what != "friction_across" and bars[LAWS.index(what)] != 0.0 and self._decides(a, b, what) is element else 0.0
        if not both.any():
            return 0.0
        top, total = int(both[1] > both[0]), 0.0
        for k, word in enumerate(("friction", "friction_across")):
            bar = bars[3 - top] / both[top] if k != top else bars[0] - bars[3 - top] * both[1 - top] / both[top] ** 2
            decides = self._decides(a, b, word)
            own = word if getattr(decides, word, None) is not None else "friction"
            total += float(bar) if decides is element and own == what else 0.0
        return total

    def _ends(self, source: ContactPoint | Geometry, ground: Ground | HeightField) -> tuple[Surface | ContactPoint, Surface]:
        """What touches a ground, and the ground."""
        around = next(s for s, e in zip(self.touching.around, (*self.mechanism.grounds, *self.mechanism.terrains)) if e is ground)
        if not isinstance(source, ContactPoint):
            return source.surface, around
        alone = source.friction is not None or source.restitution is not None
        return source if alone else _surface(source), around

    def _decides(self, a: Surface | ContactPoint, b: Surface, what: str) -> Any:
        """The element whose coefficient two surfaces have: what was said of the pair, or the larger one."""
        if isinstance(a, ContactPoint):
            if getattr(a, what, None) is not None:
                return a
            a = _surface(a)
        said: PairLaw | None = self.touching._said(a, b)
        if said is not None:
            return said
        given = [(value, s) for s in (a, b) if (value := _coefficient(s, what)) is not None]
        return self.mechanism[max(given, key=lambda item: item[0])[1].names[0]] if given else None

    # ---- shapes

    def _of_shape(self, element: Collider | Body | Obstacle, what: str, adjoint: Any) -> np.ndarray:
        value = np.asarray(element.position if what == "position" else getattr(element.shape, what), dtype=float)
        total = np.zeros(value.shape)
        sources = self.engine.grounds.sources
        own = [(i, source, number, ground) for i, (source, number, ground) in enumerate(sources) if _is_of(source, element)]
        if own:
            for index in np.ndindex(*value.shape):
                ends = [self._features(element, what, value, index, sign * STEP, own) for sign in (1.0, -1.0)]
                step = 2.0 * STEP * _scale(value)
                total[index] = sum(float(np.sum(adjoint.grounds[name][[i for i, *_ in own]] * (ends[0][name] - ends[1][name]))) / step for name in FEATURES)
        for k, geometry in enumerate(self.engine.pairs.found):
            if _is_of(geometry, element):
                name, share = IN_SHAPES[what]
                total = total + share * adjoint.geometries[k][name]
        return total if value.shape else np.array(float(total))

    def _features(self, element: Any, what: str, value: np.ndarray, index: tuple, part: float, own: list) -> np.ndarray:
        """Features of an element's contacts with grounds, with one number changed."""
        moved = value.copy()
        moved[index] += part * _scale(value)
        rows = []
        for _, source, number, ground in own:
            if what == "position":
                changed = replace(source, position=source.position + moved - value)
            else:
                changed = replace(source, shape=resized(element.shape, what, moved if moved.shape else float(moved)))
            rows.append((support_features if isinstance(ground, Ground) else ball_features)(changed)[number])
        return np.array(rows)


def _surface(point: ContactPoint) -> Surface:
    return Surface(point.body.name, point.body.index, (point.body.name,))


def _coefficient(surface: Surface, what: str) -> float | None:
    """A coefficient of a surface by itself; without a direction, friction across is friction."""
    value = getattr(surface, what)
    return surface.friction if what == "friction_across" and value is None else value


def _scale(value: np.ndarray) -> float:
    """By what a number is moved, in m."""
    return max(float(np.abs(value).max(initial=0.0)), 1e-2)


def _is_of(source: Any, element: Any) -> bool:
    """Whether a contact's feature belongs to a body's own shape, a collider or an obstacle."""
    if not isinstance(source, Geometry):
        return False
    names = source.surface.names
    if isinstance(element, Body):
        return names == (element.name,)
    return names[0] == element.name
