"""Coordinate maps in joint coordinates (RedMax 2.6): records of the numbers y that are stepped, and of the nodes that follow them."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.errors import ModelError
from dalembert.formulations.engine import Start
from dalembert.formulations.implicit.tableaus import MOST_STAGES
from dalembert.mechanism.maps import CoordinateMap
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.functions import stage_address
from dalembert.model.map_functions import map_size
from dalembert.model.records import F, I, fields
from dalembert.model.tree import AXIS, FOLLOWER, LINE, Tree

#: ``first`` and ``count``: its numbers y; ``first_entry`` and ``entries``: its nodes; ``first_number``: where its q, slopes and
#: curvatures are; ``function``: the address of its function, 0 for a linear map, whose numbers do not change
MAP = np.dtype(fields(I, first=0, count=0, first_entry=0, entries=0, first_number=0) + fields("i8", function=0))
#: a number y with its rate and acceleration, what they follow from, how low and how high it went, derivatives of stages
OWN = np.dtype(fields(F, y=0, v=0, a=0, ay=0, av=0, low=0, high=0, kept_y=0, kept_v=0, kq=MOST_STAGES, kv=MOST_STAGES))
#: y and its rate at the knot and at the knot before it
OWN_STATE = np.dtype(fields(F, y=0, v=0, y1=0, v1=0))


class Maps(NamedTuple):
    """Maps, their numbers y, the nodes that follow, what the maps give (``numbers``), the constant parts of linear ones, and room
    for what a user's function is given.
    """

    maps: np.ndarray
    own: np.ndarray
    nodes: np.ndarray
    numbers: np.ndarray
    offset: np.ndarray
    given: np.ndarray


def no_maps() -> Maps:
    """Of a mechanism without any."""
    return Maps(np.zeros(0, MAP), np.zeros(0, OWN), np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0))


def build_maps(mechanism: Mechanism, tree: Tree) -> Maps:
    """The maps of a mechanism; marks the nodes that follow them in the tree."""
    if not mechanism.maps:
        return no_maps()
    maps, nodes, numbers, offset = np.zeros(len(mechanism.maps), MAP), [], [], []
    first = 0
    for record, element in zip(maps, mechanism.maps):
        record["first"], record["count"], record["first_entry"], record["entries"] = first, element.count, len(nodes), len(element.joints)
        record["first_number"], record["function"] = sum(map(len, numbers)), stage_address(element)
        room = np.zeros(map_size(len(element.joints), element.count))
        if element.function is None:
            room[len(element.joints) :][: element.matrix.size] = element.matrix.ravel()
        numbers.append(room)
        offset += element.offset.tolist()
        nodes += [_node(mechanism, tree, element, k) for k in range(len(element.joints))]
        first += element.count
    tree.nodes["driven"][nodes] = FOLLOWER
    return Maps(maps, np.zeros(first, OWN), np.array(nodes, np.int64), np.concatenate(numbers), np.array(offset), np.zeros(first))


def _node(mechanism: Mechanism, tree: Tree, element: CoordinateMap, place: int) -> int:
    joint, direction = element.joints[place], element.directions[place]
    found = np.flatnonzero((tree.nodes["joint"] == joint.index) & (tree.nodes["direction"] == direction) & np.isin(tree.nodes["kind"], (LINE, AXIS)))
    if len(found) != 1:
        raise ModelError(f"Reduced: joint {joint.name!r} of {element!r} closes a loop, and cannot follow a map; cut the loop at another joint")
    return int(found[0])


def start_maps(mechanism: Mechanism, start: Start, rates: np.ndarray, state: np.ndarray) -> None:
    """Write the numbers y that belong to a start, and their rates."""
    first = 0
    for element in mechanism.maps:
        at = [j.index for j in element.joints], list(element.directions)
        q = start.coordinate[at]
        y = element.inverse(q)
        worst = int(np.argmax(np.abs(element.values(y) - q)))
        if not abs(element.values(y)[worst] - q[worst]) < 1e-7:
            raise ModelError(f"{element!r}: no y was found where joint {element.joints[worst].name!r} is at {q[worst]:g}; give near= a value of y close to the start")
        record = state[first : first + element.count]
        record["y"] = record["y1"] = y
        record["v"] = record["v1"] = np.linalg.lstsq(element.slopes(y), rates[at], rcond=None)[0]
        first += element.count


def begin_watch(maps: Maps, state: np.ndarray) -> None:
    """Note where the numbers are, to see between which values a run takes them."""
    maps.own["low"] = maps.own["high"] = state["y"]


def trouble(mechanism: Mechanism, maps: Maps) -> str | None:
    """What is wrong with a map at the numbers of the last try, if anything."""
    for record, element in zip(maps.maps, mechanism.maps):
        own = maps.own[record["first"] : record["first"] + record["count"]]
        if not np.all(np.isfinite(own["y"])):
            continue
        try:
            element.curvatures(own["y"])
            element.check_smooth(np.minimum(own["low"], own["y"]), np.maximum(own["high"], own["y"]))
        except ModelError as error:
            return str(error)
    return None


def check_maps(mechanism: Mechanism, maps: Maps) -> None:
    """Raise ModelError where a map that was used is not differentiable."""
    for record, element in zip(maps.maps, mechanism.maps):
        own = maps.own[record["first"] : record["first"] + record["count"]]
        element.check_smooth(own["low"], own["high"])
