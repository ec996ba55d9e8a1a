"""Coordinates by name: free directions of joints and motions of bodies, with their derivatives and differences."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError
from dalembert.gradients.curved import Bundle, Curved, Numbers, body_columns
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.model.placement import Placement
from dalembert.model.pose import direction_rows


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
