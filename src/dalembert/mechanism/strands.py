"""Deformable strands (RedMax 2.7): point masses in a row with springs between them, free or attached to bodies."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.checks import NAME, POSITIVE, checked, coefficient, numbers, vector
from dalembert.errors import ModelError
from dalembert.mechanism.forces import Path
from dalembert.mechanism.joints import Cartesian
from dalembert.mechanism.shapes import Sphere, check_mass
from dalembert.mechanism.visuals import Colour

if TYPE_CHECKING:
    from dalembert.mechanism.mechanism import Body

#: colour of a strand that was given none
HEMP: Colour = (0.76, 0.57, 0.29, 1.0)


@dataclass(frozen=True, eq=False)
class Strand:
    """A row of points: ``points`` (n, 3) on ``bodies`` (in body coordinates), with a path from each to the next one.

    Free points are bodies of their own, point masses that slide and do not turn. ``radius`` (m) and ``colour``: its looks.
    """

    name: str
    bodies: tuple[Body, ...]
    points: np.ndarray
    paths: tuple[Path, ...]
    radius: float
    colour: Colour

    def __repr__(self) -> str:
        return f"<strand {self.name!r} of {len(self.bodies)} points>"


class StrandBuilder:
    """The part of ``Mechanism`` that adds strands."""

    strands: list[Strand]
    world: Body
    _names: dict[str, Any]

    def _take_name(self, name: str, what: str) -> str:
        raise NotImplementedError

    def _body(self, body: Body | str, what: str) -> Body:
        raise NotImplementedError

    @checked(name=NAME)
    def strand(
        self, name: str, points: ArrayLike, *, mass: float, stiffness: float, damping: float = 0.0, length: float | None = None,
        attach: Mapping[int, Body | str] | None = None, pulls: bool = False, radius: float | None = None, colour: Colour = HEMP,
    ) -> Strand:
        """A rope, tendon or hair through world points (n, 3) of the reference pose, a spring between each and the next.

        ``mass`` (kg) of the whole, shared by the free points as the lengths beside them are; ``stiffness`` (N/m) and ``damping``
        (N s/m) of the whole between its ends, so that more points make the same strand finer; slack at ``length`` (m; by
        default the one it is built with). ``attach``: {number of a point: body}, -1 for the last one; other points are free.
        ``pulls``: its springs never push. ``radius`` (m; by default 1 % of its length) and ``colour`` are for pictures.

        Free point i is the body "name i" on the joint "name slide i", the spring from it the path "name stretch i".
        """
        from dalembert.mechanism.mechanism import rotation_matrix

        what = f"strand {name!r}"
        self._take_name(name, "strand")
        places = _places(points, what)
        spans = np.linalg.norm(np.diff(places, axis=0), axis=1)
        if not spans.min() > 1e-9 * spans.max():
            at = int(spans.argmin())
            raise ModelError(f"{what}: points {at} and {at + 1} coincide")
        total = float(spans.sum())
        rest = total if length is None else coefficient(length, f"{what}: length")
        weight, k, d = check_mass(mass, name), coefficient(stiffness, f"{what}: stiffness"), coefficient(damping, f"{what}: damping")
        held = self._attached(attach or {}, len(places), what)
        if len(held) == len(places):
            raise ModelError(f"{what} has no free point: leave one free, or use path() for a spring without mass")
        for i in range(len(spans)):
            if i in held and i + 1 in held and held[i] is held[i + 1]:
                raise ModelError(f"{what}: points {i} and {i + 1} are both on {held[i].name!r}, and nothing stretches between them")
        for i in range(len(places)):
            for taken in (f"{name} {i}", f"{name} slide {i}", f"{name} stretch {i}"):
                self._take_name(taken, what)
        thick = 0.01 * total if radius is None else POSITIVE(radius, f"{what}: radius")
        shade: Colour = tuple(vector(colour, 4, f"{what}: colour").tolist())  # type: ignore[assignment]
        beside = 0.5 * (np.append(spans, 0.0) + np.append(0.0, spans))
        share = weight * beside / sum(b for i, b in enumerate(beside) if i not in held)
        bodies = []
        for i, place in enumerate(places):
            bodies.append(held[i] if i in held else self._point_mass(name, i, share[i], float(beside[i]), place, thick, shade))
        paths = []
        for i, span in enumerate(spans):
            ends, part = [(bodies[i], places[i]), (bodies[i + 1], places[i + 1])], span / total
            make = self.cable if pulls else self.path  # type: ignore[attr-defined]
            paths.append(make(f"{name} stretch {i}", ends, stiffness=k / part, damping=d / part, length=rest * part))
        local = np.array([rotation_matrix(b.orientation).T @ (p - b.position) for b, p in zip(bodies, places)])
        return self._append_strand(Strand(name, tuple(bodies), local, tuple(paths), thick, shade))

    def _append_strand(self, strand: Strand) -> Strand:
        strand.points.flags.writeable = False
        self.strands.append(strand)
        self._names[self._take_name(strand.name, "strand")] = strand
        return strand

    def _attached(self, attach: Any, count: int, what: str) -> dict[int, Body]:
        """The bodies that hold points, by the points' numbers."""
        if not isinstance(attach, Mapping):
            raise ModelError(f"{what}: attach must be {{number of a point: body}}, got {attach!r}")
        held: dict[int, Body] = {}
        for number, body in attach.items():
            if not isinstance(number, int | np.integer) or not -count <= number < count:
                raise ModelError(f"{what} has points 0 to {count - 1}, and no point {number!r} to attach")
            if number % count in held:
                raise ModelError(f"{what}: point {number % count} is attached twice")
            held[int(number % count)] = self._body(body, what)
        return held

    def _point_mass(self, name: str, number: int, mass: float, span: float, place: np.ndarray, radius: float, colour: Colour) -> Body:
        """A body that slides along the world's axes; its inertia is never felt."""
        body = self.body(f"{name} {number}", mass=mass, inertia=0.1 * mass * span**2 * np.eye(3), position=place)  # type: ignore[attr-defined]
        self.joint(f"{name} slide {number}", Cartesian(), self.world, body, at=place)  # type: ignore[attr-defined]
        self.visual(body, Sphere(radius=radius, mass=1.0), colour=colour)  # type: ignore[attr-defined]
        return body


def _places(points: ArrayLike, what: str) -> np.ndarray:
    places = numbers(None, 3)(points, f"{what}: points")
    if len(places) < 2:
        raise ModelError(f"points of {what} must be two or more finite points (n, 3), got shape {places.shape}")
    return places
