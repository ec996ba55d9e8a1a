"""The start of a run backwards: cotangents of its pose and velocities as those of coordinates, rates and geometry, each linear system solved once.

Poses of joints that were not set close the rows with the smallest move, s = S a with the rows' changes a (of others ``placing_pull``); velocities v = wished + S (right - G wished) in the metric W of
masses. For a cotangent b, W h + G^T n = b and G h = 0 give n = S^T b and h. Rows and wishes change with the pose by dG, which adds
-n^T dG v - h^T dG^T l with l the multipliers of the settled velocities: pulls of rates. A joint that was not asked for adds rows g of its own,
with k = (g H g^T)^-1 g h in place of n.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.formulations.maximal.bars import Bars, new_bars
from dalembert.formulations.maximal.pull_knot import pull_row_rates, pull_twist
from dalembert.gradients.moving_pull import MovingPull, twist_in_world
from dalembert.gradients.placing_pull import PlacingPull
from dalembert.model.assembly import Saddle, pose_saddle
from dalembert.model.pose import direction_rows
from dalembert.model.topology import spanning_tree, tree_holds_all, tree_order
from dalembert.simulation.setup import cross

#: changes of rows (relative) below which a joint's motion is taken to open none
CLOSED = 1e-11
#: mobility (relative) of a joint that what was asked for holds
HELD = 1e-9


@dataclass
class Solved:
    """A saddle system with a cotangent pulled through it: its rows, what was asked of joints, weights n, motion h, and b - G^T n."""

    saddle: Saddle
    G: Any
    asked: Mapping[str, np.ndarray]
    bar: np.ndarray
    weights: np.ndarray
    motion: np.ndarray

    @cached_property
    def left(self) -> np.ndarray:
        """(n, 6) the cotangent of what was moved or wished before."""
        return (self.bar - self.G.T @ self.weights).reshape(-1, 6)


class StartPull:
    """Cotangents of pose (n, 6) and velocities (n, 6) of a start, pulled back once; ``beginning``: the start; ``joints``: those to be pulled to."""

    def __init__(self, beginning: Any, pose: np.ndarray, velocity: np.ndarray, joints: Iterable[str]) -> None:
        self.beginning, self.mechanism, self.model = beginning, beginning.mechanism, beginning.model
        self.pose, self.velocity, self.joints = pose, velocity, sorted(set(joints))
        self.bars: Bars = new_bars(self.model)
        #: (joints, 6) bars of coordinates that no pose tells, from settled velocities
        self.unseen = np.zeros((len(self.model.joints), 6))

    # ---- the two systems

    @cached_property
    def settlings(self) -> tuple[Solved, ...]:
        """Of velocities, projection by projection."""
        rates, bar, found = dict(self.beginning._rest().rates), self.velocity.ravel(), []
        for _, saddle, G, _ in reversed(self.beginning.stages):
            weights, motion = saddle.pull(bar)
            found.append(Solved(saddle, G, rates, bar, weights, motion))
            bar = found[-1].left.ravel()
        return tuple(reversed(found))

    @property
    def settled(self) -> Solved:
        """The first of them, from the wished velocities."""
        return self.settlings[0]

    @cached_property
    def total(self) -> np.ndarray:
        """(n, 6) the cotangent of the pose, with what velocities have to say of it; of geometry, in ``bars``."""
        return self.pose + (0.0 if self.beginning.at_rest or not np.any(self.velocity) else self._pull_motion())

    @cached_property
    def placed(self) -> Solved:
        """Of poses."""
        total = self.total
        setup = self.beginning._rest()
        setup.placement.evaluate()
        saddle, G = pose_saddle(setup.placement, setup.wishes)
        weights, motion = saddle.pull(total.ravel())
        return Solved(saddle, G, dict(setup.wishes), total.ravel(), weights, motion)

    @cached_property
    def placings(self) -> PlacingPull:
        return PlacingPull(self.beginning, self.bars, self.is_tree)

    @property
    def sizes(self) -> np.ndarray:
        """(n,) the cotangents of squared radii of gyration, by which bodies weigh while loops are closed."""
        _ = self.reshaped
        return self.placings.sizes

    def wish(self, name: str) -> np.ndarray:
        """(freedom,) the cotangent of the coordinate that a joint was set to, as a rate."""
        _ = self.reshaped
        element = self.mechanism[name]
        return self.placings.wishes_since(name)[element.index, : element.type.freedom]

    @cached_property
    def reshaped(self) -> tuple[np.ndarray, np.ndarray]:
        """(n, 6) the cotangent of the pose that bodies were first given, and (n, 3, 3) its orientations; geometry ends in ``bars``."""
        placings = self.placings
        return placings.pull(self.total), Rotation.from_quat(self.beginning.placings[0].before[1], scalar_first=True).as_matrix()

    def _pull_motion(self) -> np.ndarray:
        """(n, 6) how the settled velocities, weighted, change with the pose; with geometry, in ``bars``."""
        settled, beginning, bars = self.settled, self.beginning, self.bars
        setup = beginning._rest()
        setup.placement.evaluate()
        work = setup.placement.work
        for (stage, saddle, _, metric), solved in zip(beginning.stages, self.settlings):
            forces, _ = saddle.pull(metric @ (stage.before - stage.after))
            for moving, weights in ((stage.after, solved.weights), (solved.motion, forces)):
                motion = np.ascontiguousarray(moving.reshape(-1, 6))
                pull_row_rates(self.model, work, bars, motion, *beginning._by_element(-weights, settled.asked, rates=True))
                for element, weight in beginning.moving_weights(-weights, settled.asked):
                    self.unseen[element.index, : element.type.freedom] += MovingPull(setup.placement, element, bars).moving(weight, motion)
        self._pull_carry(settled.left.copy())
        found = np.concatenate([bars.bodies["x"][:-1], bars.bodies["phi"][:-1]], axis=1)
        bars.bodies["x"], bars.bodies["phi"] = 0.0, 0.0
        return found

    def _pull_carry(self, bar: np.ndarray) -> None:
        """Wished velocities of bodies that are carried along (``Setup._carry``), weighted with ``bar`` (n, 6), by pose and geometry."""
        setup, bars = self.beginning._rest(), self.bars
        wished, held = setup.wished()
        order = tree_order(self.mechanism, spanning_tree(self.mechanism, setup.rates))
        moving = {int(i) for i in np.flatnonzero(held.any(axis=1))}
        visited = []
        for index, here, there in order:
            if not held[there].any() and (here in moving or self.mechanism.joints[index].name in setup.rates):
                moving.add(there)
                visited.append((index, here, there))
        x, R = self.beginning.position, self.beginning.matrices
        at = bars.bodies
        for index, here, there in reversed(visited):
            joint = self.mechanism.joints[index]
            linear, angular = bar[there, :3].copy(), bar[there, 3:].copy()
            bar[there] = 0.0
            at["phi"][there] += np.cross(angular, wished[there, 3:])
            spin_bar = R[there] @ angular
            arm = x[there] - (x[here] if here >= 0 else 0.0)
            spin = R[here] @ wished[here, 3:] if here >= 0 else np.zeros(3)
            moved = np.cross(linear, spin)
            at["x"][there] += moved
            if here >= 0:
                at["x"][here] -= moved
                local = R[here].T @ (spin_bar + np.cross(arm, linear))
                bar[here, :3] += linear
                bar[here, 3:] += local
                at["phi"][here] += np.cross(wished[here, 3:], local)
            if joint.name in setup.rates:
                sign, child = (1.0 if there == joint.child.index else -1.0), joint.child.index
                _, turn, point = setup._twist(joint)
                by_point = -sign * np.cross(linear, turn)
                at["x"][there] -= by_point
                line_bar, turn_bar = sign * linear, sign * (spin_bar + np.cross(x[there] - point, linear))
                if child >= 0:
                    local = R[child].T @ by_point
                    at["x"][child] += by_point
                    at["phi"][child] += np.cross(self.model.joints["point_child"][index], local)
                    bars.joints["point_child"][index] += local
                if not joint.type.has_rows:
                    self.unseen[index, : joint.type.freedom] += MovingPull(setup.placement, joint, bars).own_twist(setup.rates[joint.name], line_bar, turn_bar)
                    continue
                turn_body = R[child].T @ (turn_bar + joint.type.lead * line_bar)
                if joint.type.lead != 0.0:
                    bars.joints["pitch"][index] += line_bar @ turn / (2.0 * np.pi)
                rates = np.zeros(6)
                rates[: joint.type.freedom] = setup.rates[joint.name]
                pull_twist(self.model, setup.placement.work, bars, index, rates, line_bar, turn_body)

    # ---- coordinates and rates of joints

    @cached_property
    def is_tree(self) -> bool:
        return tree_holds_all(self.mechanism)

    def along_tree(self, name: str, change: np.ndarray, of_pose: bool) -> np.ndarray:
        """(directions,) as ``of_joint`` where that is all: the products of a joint's motions with what the cotangents of its subtree add up to."""
        known = self.__dict__.setdefault("_wrenches", {})
        tree, element = self._tree(()), self.mechanism[name]
        if of_pose not in known:
            bar = self.total if of_pose else self.velocity
            force = bar[:, :3].copy()
            moment = np.cross(self.beginning.position, force) + np.einsum("nij,nj->ni", self.beginning.matrices, bar[:, 3:])
            for _, here, there in reversed(tree.order):
                if here >= 0:
                    force[here] += force[there]
                    moment[here] += moment[there]
            known[of_pose] = force, moment
        force, moment = known[of_pose]
        there = tree.there[element.index]
        sign = 1.0 if there == element.child.index else -1.0
        lines, turns, point = self._axes(element)
        return sign * (change @ (lines @ force[there] + turns @ (moment[there] - cross(point, force[there]))))

    def _axes(self, element: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Linear and angular rates (freedom, 3) of a joint's child in the world, by one of each direction, and the child's joint point."""
        known = self.__dict__.setdefault("_twists", {})
        if element.index not in known:
            kind, joint = element.type, self.model.joints[element.index]
            matrix = self.beginning.matrices[element.child.index]
            point = self.beginning.position[element.child.index] + matrix @ joint["point_child"]
            if not kind.has_rows:
                known[element.index] = *twist_in_world(self.beginning.setup.placement, element), point
                return known[element.index]
            gradients = np.zeros((kind.freedom, 12))
            direction_rows(self.model, self.beginning.setup.placement.work, element.index, gradients)
            slides = np.array([kind_of in ("slide", "distance") for kind_of, _ in kind.directions], dtype=float)[:, None]
            turns = (1.0 - slides) * (gradients[:, 9:] @ matrix.T)
            lines = slides * gradients[:, 6:9] + kind.lead * turns
            known[element.index] = lines, turns, point
        return known[element.index]

    def of_joint(self, name: str, solved: Solved, change: np.ndarray, first: Mapping[str, Any], held: bool = True) -> np.ndarray:
        """(directions,) the bar of what a joint is asked for. ``change`` (directions, freedom): coordinates or rates by one of each;
        ``first``: joints that the tree prefers; ``held``: bodies whose velocities were asked for are not carried along.
        """
        element = self.mechanism[name]
        tree = self._tree(tuple(sorted(first)))
        bars, (wished, driven) = np.zeros(len(change)), self._places(solved, name)
        asked = [*wished.items(), *driven.items()]
        stops = frozenset(self.mechanism[body].index for body in self.beginning.kept[3]) if held else frozenset()
        for number, rate in enumerate(change):
            carried = self._carried(tree, element, rate, stops)
            bars[number] = np.sum(solved.left * carried) + sum(solved.weights[row] * rate[i] for i, row in asked)
            if len(asked) == element.type.freedom:
                continue
            opened = solved.G @ carried.ravel()
            for i, row in asked:
                opened[row] -= rate[i]
            free, g, weights, mobility, moved, stiff = self._freed(solved)[name]
            missed = rate[free] - g @ carried.ravel()
            if max(np.abs(opened).max(initial=0.0), np.abs(missed).max()) > CLOSED * max(1.0, np.abs(carried).max()) and not stiff:
                share = moved / mobility[0] if len(free) == 1 else np.linalg.pinv(mobility, rcond=0.0) @ moved
                bars[number] += share @ missed + (weights @ share) @ opened
        return bars

    def _freed(self, solved: Solved) -> dict[str, tuple[list[int], np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]]:
        """Per joint: directions that were not asked for, their rows g, those pulled through the system, their mobility, what they are moved by, and
        whether what was asked for before leaves them no freedom: then they cannot be asked for anything else.
        """
        known = self.__dict__.setdefault("_freed_rows", {})
        if id(solved) not in known:
            parts = []
            for name in self.joints:
                element, asked = self.mechanism[name], self._places(solved, name)
                free = [i for i in range(element.type.freedom) if i not in asked[0] and i not in asked[1]]
                gradients = np.zeros((element.type.freedom, 12))
                direction_rows(self.model, self.beginning.setup.placement.work, element.index, gradients)
                parts.append((free, self._sparse(element, gradients[free])))
            every = np.concatenate([g for _, g in parts])
            weights, motions = solved.saddle.pull(np.ascontiguousarray(every.T))
            known[id(solved)], at = {}, 0
            for name, (free, g) in zip(self.joints, parts):
                which = slice(at, at + len(free))
                mobility, at = g @ motions[:, which], at + len(free)
                stiff = not np.abs(mobility).max(initial=0.0) > HELD * np.abs(motions[:, which]).max(initial=1.0)
                known[id(solved)][name] = free, g, weights[:, which], mobility, g @ solved.motion, stiff
        return known[id(solved)]

    def _sparse(self, element: Any, gradients: np.ndarray) -> np.ndarray:
        """Gradients (rows, 12) of a joint by all bodies (rows, 6 n)."""
        whole = np.zeros((len(gradients), 6 * len(self.mechanism.bodies)))
        for body, part in ((element.parent.index, gradients[:, :6]), (element.child.index, gradients[:, 6:])):
            if body >= 0:
                whole[:, 6 * body : 6 * body + 6] += part
        return whole

    def _places(self, solved: Solved, name: str) -> tuple[dict[int, int], dict[int, int]]:
        """Rows of a joint's directions: those asked for, and those of drives."""
        return self._rows_of(solved)[name]

    def _rows_of(self, solved: Solved) -> dict[str, tuple[dict[int, int], dict[int, int]]]:
        known = self.__dict__.setdefault("_row_places", {})
        if id(solved) not in known:
            found: dict[str, tuple[dict[int, int], dict[int, int]]] = {}
            row = 0
            for element, joint in zip(self.mechanism.joints, self.model.joints):
                driven = {}
                for k in range(int(joint["locks"])):
                    if joint["row_direction"][k] >= 0:
                        driven[int(joint["row_direction"][k])] = row
                    row += 1
                found[element.name] = {}, driven
            row += int(np.count_nonzero(self.model.couplings["law"] == 0))
            for name, value in solved.asked.items():
                for i in range(len(value)):
                    if i not in found[name][1] and not np.isnan(value[i]):
                        found[name][0][i] = row
                        row += 1
            known[id(solved)] = found
        return known[id(solved)]

    def _tree(self, first: tuple[str, ...]) -> _Carrying:
        """The tree that prefers some joints."""
        known = self.__dict__.setdefault("_trees", {})
        if first not in known:
            known[first] = _Carrying(self.mechanism, first)
        return known[first]

    def _carried(self, tree: Any, element: Any, rate: np.ndarray, stops: frozenset) -> np.ndarray:
        """(n, 6) motion of all bodies that a joint carries along at a rate."""
        beginning, found = self.beginning, np.zeros_like(self.pose)
        bodies, sign = tree.carries(element, stops)
        if not bodies or not np.any(rate):
            return found
        lines, turns, point = self._axes(element)
        line, turn = rate @ lines, rate @ turns
        found[bodies, :3] = sign * (line + np.cross(turn, beginning.position[bodies] - point))
        found[bodies, 3:] = sign * np.einsum("nij,i->nj", beginning.matrices[bodies], turn)
        return found


class _Carrying:
    """A spanning tree: the first body beyond each of its joints, and all bodies beyond a body."""

    def __init__(self, mechanism: Any, first: tuple[str, ...]) -> None:
        self.mechanism, self.first = mechanism, first
        self.order = tree_order(mechanism, spanning_tree(mechanism, first))
        self.there = {index: there for index, _, there in self.order}
        self.up = {there: (index, here) for index, here, there in self.order}
        self.children: dict[int, list[int]] = {}
        for _, here, there in self.order:
            self.children.setdefault(here, []).append(there)
        self._known: dict[tuple[int, frozenset], list[int]] = {}

    def carries(self, element: Any, stops: frozenset) -> tuple[list[int], float]:
        """Bodies that move with a joint, and the sign of its motion.

        A joint that is not in the tree takes the place of the last one of its loop in the order in which the tree was made, as in the
        tree that prefers it.
        """
        index = element.index
        if index in self.there:
            there = self.there[index]
            return self.below(there, stops), 1.0 if there == element.child.index else -1.0
        if not element.type.places:
            return [], 1.0
        ways = []
        for body in (element.parent.index, element.child.index):
            way: list[int] = []
            while body in self.up:
                joint, body = self.up[body]
                way.append(joint)
            ways.append(way)
        loop = set(ways[0]) ^ set(ways[1])
        joints = self.mechanism.joints
        last = max(loop, key=lambda i: (joints[i].type.has_rows, joints[i].name not in self.first, joints[i].type.freedom == 6, i))
        bodies = self.below(self.there[last], stops)
        return bodies, 1.0 if element.child.index in self.below(self.there[last], frozenset()) else -1.0

    def below(self, body: int, stops: frozenset) -> list[int]:
        """Bodies that a body carries, itself among them, but for those that are held and what they carry."""
        if (body, stops) not in self._known:
            found, todo = [], [body]
            while todo:
                here = todo.pop()
                if here in stops:
                    continue
                found.append(here)
                todo += self.children.get(here, [])
            self._known[body, stops] = sorted(found)
        return self._known[body, stops]
