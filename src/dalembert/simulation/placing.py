"""Where a mechanism starts: bodies along a spanning tree at wished coordinates, loops closed, joints within their limits."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import AssemblyError, ModelError
from dalembert.model.assembly import Closing, close_loops
from dalembert.model.placement import Placement
from dalembert.model.topology import place, tree_holds_all

Wishes = Mapping[str, np.ndarray]

#: m or rad by which a coordinate may lie beyond its limits
ROUNDING = 1e-9
#: placings of a loop that are remembered one by one
MANY = 16


@dataclass(frozen=True)
class Placed:
    """One placing of bodies: joints ``moved`` from a pose, subtrees carried along, then loops closed with the coordinates ``held``.

    ``before``: positions (n, 3) and orientations (n, 4); ``after``: the same with coordinates and targets (joints, 6); ``way``: the steps that closed
    the loops.
    """

    before: tuple[np.ndarray, np.ndarray]
    after: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    moved: Wishes
    held: Wishes
    way: tuple[Closing, ...] = ()


def remember(history: tuple[Placed, ...], placed: Placed, placement: Placement) -> tuple[Placed, ...]:
    """A history of placings with one more, as short as says the same.

    In a tree, joints that were moved one after the other were as well moved at once. In a loop, a joint that is moved again and again is so from where
    it was first, but for ``MANY`` placings, whose ways are kept.
    """
    if not history:
        return (placed,)
    last = history[-1]
    again = len(history) >= MANY and last.moved.keys() == placed.moved.keys() and last.held.keys() == placed.held.keys()
    if again or (last.moved and tree_holds_all(placement.mechanism)):
        placed = replace(placed, before=last.before, moved={**last.moved, **placed.moved}, held={**last.held, **placed.held}, way=())
        history = history[:-1]
    return (*history, placed)


def put(placement: Placement, wishes: Wishes, moved: Iterable[str]) -> tuple[Placed, ...]:
    """Move the joints ``moved`` to their wished coordinates, subtrees carried along; close the loops with all wishes kept. Returns the placings that it took.

    Joints beyond their limits, but not those wished for, go to the nearest end. Raises AssemblyError, with the placement as
    it was, when a loop cannot follow.
    """
    moved = tuple(moved)
    mechanism = placement.mechanism
    for name, wish in wishes.items():
        ends = np.array(mechanism[name].type.limits).reshape(-1, 2)
        if np.any(wish < ends[:, 0] - ROUNDING) or np.any(wish > ends[:, 1] + ROUNDING):
            raise ModelError(f"joint {name!r} cannot be at {wish.tolist()}: its limits are {ends.tolist()}")
    before = placement.keep()
    try:
        return _move(placement, {name: wishes[name] for name in moved}, wishes), *_enter_limits(placement, wishes)
    except AssemblyError:
        placement.restore(before)
        raise


def _move(placement: Placement, moved: Wishes, held: Wishes) -> Placed:
    """Move joints along the tree, then close the loops with others held."""
    mechanism, bodies, joints = placement.mechanism, placement.work.bodies, placement.work.joints
    before = bodies["x"][:-1].copy(), bodies["q"][:-1].copy()
    poses = [(x, Rotation.from_quat(q, scalar_first=True)) for x, q in zip(bodies["x"][:-1].copy(), bodies["q"][:-1].copy())]
    for i, (x, turn) in enumerate(place(mechanism, poses, moved)):
        bodies["x"][i], bodies["q"][i] = x, turn.as_quat(scalar_first=True)
    for name, value in {**moved, **held}.items():
        joints["coordinate"][mechanism[name].index, : value.size] = value
    for name, value in held.items():
        index = mechanism[name].index
        driven = placement.model.joints["driven"][index, : value.size] != 0
        joints["target"][index, : value.size][driven] = value[driven]
    way = close_loops(placement, held)
    after = bodies["x"][:-1].copy(), bodies["q"][:-1].copy(), joints["coordinate"].copy(), joints["target"].copy()
    return Placed(before, after, moved, held, way)


def again(placement: Placement, placed: Placed, name: str, value: np.ndarray) -> Placed:
    """A placing made again, with another coordinate of a joint, from where the placement is."""
    moved, held = ({key: value if key == name else wish for key, wish in wishes.items()} for wishes in (placed.moved, placed.held))
    return _move(placement, moved, held)


def _beyond(placement: Placement) -> dict[str, np.ndarray]:
    """Joints beyond their limits with the nearest coordinates within, the farthest first."""
    placement.evaluate()
    found = {}
    for element in placement.mechanism.joints:
        if element.type.bounded:
            here = placement.work.joints["coordinate"][element.index, : element.type.freedom]
            inside = np.clip(here, *np.array(element.type.limits).T)
            if (distance := float(np.abs(here - inside).max())) > ROUNDING:
                found[element.name] = distance, inside
    return {name: inside for name, (_, inside) in sorted(found.items(), key=lambda item: -item[1][0])}


def _enter_limits(placement: Placement, wishes: Wishes) -> tuple[Placed, ...]:
    """Move joints into their limits: all at once, and where loops do not allow that, one after the other. Returns how they were."""
    mechanism = placement.mechanism
    bounded = sum(element.type.bounded for element in mechanism.joints)
    ends: Wishes = {}
    placings: tuple[Placed, ...] = ()
    for attempt in range(2 * bounded + 2):
        beyond = _beyond(placement)
        if not beyond:
            return placings
        worst = next(iter(beyond))
        moved = {name: inside for name, inside in beyond.items() if name not in wishes}
        # Of two joints of a loop, the end of one may lead the other inside, but not the other way round.
        trials = [{**ends, **beyond}] * (attempt == 0) + [{**ends, worst: beyond[worst]}, {worst: beyond[worst]}]
        for trial in trials:
            before = placement.keep()
            try:
                placings = *placings, _move(placement, moved, {**trial, **wishes})
                ends = trial
                break
            except AssemblyError:
                placement.restore(before)
        else:
            break
    names = ", ".join(f"{name!r}" for name in _beyond(placement))
    raise AssemblyError(f"no pose of {mechanism.name!r} was found within the limits of its joints: {names} lie beyond; set a pose within them with start()")
