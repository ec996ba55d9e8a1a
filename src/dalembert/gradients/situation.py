"""Where an analysis starts: a simulation at one knot, its inputs by name, and whether its motion is smooth there."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dalembert.errors import LinearisationError, ModelError
from dalembert.formulations.engine import Engine, Inputs, Start
from dalembert.gradients.coordinates import coordinate_rows, coordinates_of
from dalembert.mechanism.forces import Path
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.model.compile import new_work
from dalembert.model.placement import Placement
from dalembert.model.records import Model

if TYPE_CHECKING:
    from dalembert.simulation.controls import InputTables

#: m, by which things may be apart and still touch
TOUCHING = 1e-6
#: m or rad, by which a joint may be off its limit and still stand at it
AT_LIMIT = 1e-9
#: m, by which a cable may be off its rest length, or a point off a soft plane, and still be at it
KINK = 1e-9
#: m/s or rad/s below which dry friction holds
HELD = 1e-9


@dataclass(frozen=True)
class Situation:
    """A simulation at one knot: its mechanism and engine, where it is, and the inputs and targets there.

    ``prescribed`` (joints, 6): accelerations of targets, NaN where they are not known (free rotations that follow functions of time).
    ``tables``: inputs of the step that begins there, anew at each call. ``gaps``: what can touch, with its distance (m).
    """

    mechanism: Mechanism
    model: Model
    engine: Engine
    start: Start
    inputs: Inputs
    prescribed: np.ndarray
    dt: float
    time: float
    tables: Callable[[], InputTables]
    gaps: Callable[[], list[tuple[str, float]]]

    def placement(self) -> Placement:
        """A placement of its own. Raises LinearisationError for joints without rows, which it does not know."""
        rowless = [joint.name for joint in self.mechanism.joints if not joint.type.has_rows]
        if rowless:
            raise LinearisationError(
                f"joint {rowless[0]!r} of {self.mechanism.name!r} is given by how it moves, and analyses know joints by what they lock: "
                "they do not take composite and spline joints yet"
            )
        placement = Placement(self.mechanism, self.model, new_work(self.model))
        placement.work.joints["target"] = self.start.target
        placement.put(self.start.position, self.start.orientation, self.start.coordinate)
        return placement


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


def check_smooth(situation: Situation, placement: Placement) -> None:
    """Raise LinearisationError where a contact closes, or where a cable or a soft plane begins to act."""
    mechanism = situation.mechanism
    closed = [(name, gap) for name, gap in situation.gaps() if gap < TOUCHING]
    if closed:
        raise LinearisationError(
            f"{closed[0][0]} touch (gap {closed[0][1]:.3g} m): a motion that a contact stops on one side has no linear part. "
            "Lift it off, or hold it by joints or springs."
        )
    lengths = placement.work.couplings["value"][len(placement.work.couplings) - len(mechanism.paths) :]
    for path, length in zip(mechanism.paths, lengths):
        if path.pulls and path.law is None and (path.stiffness > 0.0 or path.damping > 0.0) and abs(length - path.rest) < KINK:
            raise LinearisationError(f"{path!r} is just slack, at its length of {path.rest:g} m: pulled it acts, pushed it does not, and that is not linear")
    bodies = placement.work.bodies
    for penalty in mechanism.penalties:
        body = bodies[penalty.body.index]
        depth = penalty.normal @ (body["x"] + body["R"].reshape(3, 3) @ penalty.point) - penalty.offset
        if abs(depth) < KINK:
            raise LinearisationError(f"{penalty!r} just touches its plane: pressed it acts, lifted it does not, and that is not linear")


def sliding_friction(situation: Situation, placement: Placement) -> np.ndarray:
    """(directions,) forces of dry friction where joints slide; raises LinearisationError where it holds them, and at limits."""
    forces = []
    velocity = situation.start.velocity.ravel()
    for element in situation.mechanism.joints:
        kind = element.type
        if not kind.bounded:
            forces += [0.0] * kind.freedom
            continue
        if kind.bearing is not None and kind.bearing.friction > 0.0:
            raise LinearisationError(
                f"joint {element.name!r} has a bearing, whose friction depends on the load that it carries and is not linearised. "
                f"Set it to zero (set_parameters({{'{element.name}.bearing_friction': 0}}))."
            )
        values = placement.work.joints["coordinate"][element.index, : kind.freedom]
        rates = coordinate_rows(placement, coordinates_of(element)) @ velocity
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
