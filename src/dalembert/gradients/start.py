"""How the start of a run changes with coordinates, rates, velocities and numbers of the mechanism: through placing, assembly, settling.

Poses follow by the placings that made them, one after the other: bodies are carried along as set-up carries them, then moved step by step as assembly
closed the rows, each step by its own linear system. So gradients by geometry hold for changes that the loops allow. Velocities that are not zero change with
the pose too: forwards that part is differenced (sixth order), backwards (``start_pull``) it is not.
"""
from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dalembert.formulations.engine import Start
from dalembert.formulations.maximal.forward import OFFSETS, STEP
from dalembert.formulations.maximal.named_bars import named_bar
from dalembert.gradients.names import PLACING, STANDING, START_JOINT, WEIGHING, Name
from dalembert.gradients.placing_push import PlacingPush, put_at, turns_of
from dalembert.gradients.start_pull import StartPull
from dalembert.mechanism.mechanism import Body, JointElement
from dalembert.mechanism.parameters import list_parameters, owners, with_parameters
from dalembert.model.assembly import Saddle, Settling, pose_saddle, settlings, velocity_saddle
from dalembert.model.moving import asked_rates, columns, twist_rows
from dalembert.model.pose import joint_rates
from dalembert.model.topology import tree_holds_all
from dalembert.simulation.placing import Placed
from dalembert.simulation.record import Record
from dalembert.simulation.setup import Setup
from dalembert.spatial import so3

Tangent = tuple[np.ndarray, np.ndarray, np.ndarray]


class Stage(NamedTuple):
    """A projection that settled velocities, its correction, its rows and its metric."""

    settling: Settling
    saddle: Saddle
    G: Any
    metric: Any


class Beginning:
    """The start of a record's run. One parameter at a time moves; all else that was asked for stays asked for."""

    def __init__(self, record: Record) -> None:
        self.record, self.mechanism = record, record.mechanism
        self.setup = Setup(self.mechanism, getattr(record.engine, "model", None))
        engine, numbers = record.engine, record.states[0]
        self.velocity = engine.start_velocity(numbers)
        if record.setup is None:
            position, orientation = engine.pose(numbers)
            self.setup.resume(Start(position, orientation, self.velocity, engine.coordinates(numbers), engine.targets(numbers)))
        else:
            self.setup.restore(record.setup)
        self.kept = self.setup.keep()
        self.owners = owners(self.mechanism)
        self.model = self.setup.placement.model
        work = self.setup.placement.work
        self.position, self.orientation = work.bodies["x"][:-1].copy(), work.bodies["q"][:-1].copy()
        self.matrices = turns_of(self.orientation).as_matrix()
        self.coordinate, self.target = work.joints["coordinate"].copy(), work.joints["target"].copy()

    @property
    def at_rest(self) -> bool:
        return not np.any(self.velocity)

    def matters(self, name: Name) -> bool:
        """Whether the start depends on a parameter at all."""
        element = self.owners.get(name.owner)
        stands = isinstance(element, STANDING) or (isinstance(element, Body) and name.what != "centre_of_mass")
        return name.kind == "start" or (name.what in PLACING and not stands) or (name.what in WEIGHING and (self.closed or not self.at_rest))

    @property
    def moves_unseen(self) -> bool:
        """Whether there are joints that poses do not tell the coordinates of."""
        return not all(joint.type.has_rows for joint in self.mechanism.joints)

    @property
    def closed(self) -> bool:
        """Whether loops had to be closed: bodies weigh in their way by their sizes."""
        return any(placed.way for placed in self.placings)

    # ---- forwards

    def tangent(self, name: Name, direction: np.ndarray) -> Tangent:
        """Tangents of pose (n, 6), velocities (n, 6) and held targets (joints, 6) along a change of a parameter."""
        bodies, joints = len(self.position), len(self.mechanism.joints)
        pose, velocity, target = np.zeros((bodies, 6)), np.zeros((bodies, 6)), np.zeros((joints, 6))
        if name.what in WEIGHING and not self.closed:
            return pose, self._weighed(name, direction), target
        if name.what == "start":
            pose = self._placed(name.owner, np.atleast_1d(direction))
            element = self.mechanism[name.owner]
            driven = self.model.joints["driven"][element.index, : element.type.freedom] != 0
            target[element.index, : element.type.freedom][driven] = np.atleast_1d(direction)[driven]
        elif name.kind == "model":
            pose = self._reshaped(name, direction)
        if name.kind == "start" and name.what != "start":
            return pose, self._settled(name, direction), target
        if not self.at_rest:
            velocity = self._carried(name, direction, pose)
        return pose, velocity, target

    def _rest(self) -> Setup:
        self.setup.restore(self.kept)
        return self.setup

    def _as_rate(self, owner: str, change: np.ndarray) -> np.ndarray:
        """A change of coordinates as a rate: of a free rotation, the angular velocity in the parent's axes."""
        element = self.mechanism[owner]
        balls = [i for i, (kind, _) in enumerate(element.type.directions) if kind == "ball"]
        rate = np.array(change, dtype=float)
        if balls:
            phi = self.coordinate[element.index, balls]
            rate[balls] = np.array(so3.left_jacobian(tuple(phi))).reshape(3, 3) @ rate[balls]
        return rate

    def was_set(self, owner: str) -> bool:
        """Whether a joint of a loop was set: another coordinate goes the way that it went."""
        return any(owner in placed.moved for placed in self.placings) and not tree_holds_all(self.mechanism)

    def _placed(self, owner: str, change: np.ndarray) -> np.ndarray:
        """Bodies below a joint carried along with a change of its coordinates, then the loops closed."""
        if self.was_set(owner):
            step = STEP / max(float(np.abs(change).max(initial=0.0)), 1e-300)
            beside = Setup(self.mechanism, self.model)
            return PlacingPush(self, [beside] * len(OFFSETS), step, owner, change).push(np.zeros_like(self.velocity))
        setup, rate = self._rest(), self._as_rate(owner, change)
        wishes = {**setup.wishes, owner: self.coordinate[self.mechanism[owner].index, : len(rate)]}
        setup.rates, setup.held, setup.carried = {owner: rate}, {}, np.zeros_like(self.velocity)
        pose = setup.wished()[0]
        saddle, G = pose_saddle(setup.placement, wishes)
        wanted = self._wish_rows(wishes, owner, rate, G.shape[0])
        left = wanted - G @ pose.ravel()
        if np.abs(left).max(initial=0.0) > 1e-13 * max(1.0, np.abs(rate).max()):
            pose = pose + saddle.step(left, rounds=50).reshape(-1, 6)
        return pose

    def _wish_rows(self, wishes: dict, owner: str, rate: np.ndarray, rows: int) -> np.ndarray:
        """What the rows of assembly shall change by: those of wished directions stand last, in the order of the wishes."""
        wanted = np.zeros(rows)
        ends: list[float] = []
        for name, value in wishes.items():
            element = self.mechanism[name]
            if not element.type.has_rows:
                continue
            driven = self.model.joints["driven"][element.index, : len(value)] != 0
            ends += [float(r) for r, is_driven in zip(rate if name == owner else np.zeros(len(value)), driven) if not is_driven]
        if ends:
            wanted[rows - len(ends) :] = ends
        element = self.mechanism[owner]
        row = 0
        for joint, record in zip(self.mechanism.joints, self.model.joints):
            if not joint.type.has_rows:
                if joint is element:
                    wanted[row : row + 6] = columns(self.setup.placement, joint).T @ rate
                row += 6
                continue
            for k in range(int(record["locks"])):
                direction = int(record["row_direction"][k])
                if joint is element and direction >= 0:
                    wanted[row] = rate[direction]
                row += 1
        return wanted

    @cached_property
    def placings(self) -> tuple[Placed, ...]:
        """How the bodies came to stand where they do; for a pose that was given as such, that it closes the rows."""
        here = (self.position, self.orientation, self.coordinate, self.target)
        return self.kept[5] or (Placed(here[:2], here, {}, self.kept[1]),)

    def _reshaped(self, name: Name, direction: np.ndarray) -> np.ndarray:
        """(n, 6) how poses change with a number of the mechanism, placed and closed as this one was."""
        step = STEP / max(float(np.abs(direction).max(initial=0.0)), 1e-300)
        value = list_parameters(self.mechanism, shifts=True)[name.text].value
        beside = [Setup(with_parameters(self.mechanism, {name.text: value + offset * step * direction}, checked=False)) for offset, _ in OFFSETS]
        pose = np.zeros_like(self.velocity)
        if name.what == "centre_of_mass":
            index = self.mechanism[name.owner].index
            pose[index, :3] = turns_of(self.placings[0].before[1])[index].apply(direction)
        return PlacingPush(self, beside, step).push(pose)

    def _changed(self, name: Name, amount: np.ndarray, pose: np.ndarray) -> Setup:
        """The set-up of a mechanism with another number, at the pose of the start moved by a tangent."""
        value = list_parameters(self.mechanism, shifts=True)[name.text].value
        setup = Setup(with_parameters(self.mechanism, {name.text: value + amount}, checked=False))
        self._put(setup, pose)
        _, setup.wishes, setup.rates, setup.held, setup.carried, setup.history = self.kept
        return setup

    def _put(self, setup: Setup, pose: np.ndarray, coordinate: np.ndarray | None = None) -> None:
        put_at(setup.placement, self.position, self.orientation, self.coordinate if coordinate is None else coordinate, self.target, pose)

    def _known(self, name: Name, amount: np.ndarray) -> np.ndarray:
        """(joints, 6) coordinates beside the start's own, where a joint without rows starts elsewhere: no pose tells its."""
        coordinate = self.coordinate.copy()
        if name.what == "start" and not self.mechanism[name.owner].type.has_rows:
            index = self.mechanism[name.owner].index
            coordinate[index, : amount.size] += amount.ravel()
        return coordinate

    def _carried(self, name: Name, direction: np.ndarray, pose: np.ndarray) -> np.ndarray:
        """How settled velocities change with the pose, and with the geometry itself: their equations are differenced along both."""
        size = max(float(np.abs(pose).max(initial=0.0)), float(np.abs(direction).max(initial=0.0)), 1e-300)
        step = STEP / size

        def beside(offset: float) -> Setup:
            if name.kind == "model":
                setup = self._changed(name, offset * step * direction, offset * step * pose)
            else:
                setup = self._rest()
                self._put(setup, offset * step * pose, self._known(name, offset * step * direction))
            return setup

        def at(number: int, offset: float, multipliers: np.ndarray) -> np.ndarray:
            setup, stage = beside(offset), self.stages[number].settling
            wished = setup.wished()[0]
            return stage.equations(setup.placement, stage.before if number else wished.ravel(), wished, setup.rates, multipliers)

        moved = np.zeros(self.velocity.size)  # before each projection, but for what its equations say themselves
        for number, (stage, saddle, _, metric) in enumerate(self.stages):
            _, multipliers = saddle.solve(np.zeros(moved.size), saddle.G @ (stage.after - stage.before) / saddle.scale)
            change = np.asarray(sum(weight / step * at(number, offset, multipliers) for offset, weight in OFFSETS))
            moved = saddle.solve(metric @ moved - change[: moved.size], -change[moved.size :])[0]
        return moved.reshape(-1, 6)

    def _settled(self, name: Name, direction: np.ndarray) -> np.ndarray:
        """Velocities are linear in what was asked of them: a difference of any length is exact."""
        ends = [self._with_velocity(name, sign * direction) for sign in (1.0, -1.0)]
        return 0.5 * (ends[0] - ends[1])

    def _with_velocity(self, name: Name, amount: np.ndarray) -> np.ndarray:
        return self._asked(name, amount).settle().velocity

    def _asked(self, name: Name, amount: np.ndarray) -> Setup:
        """The set-up with a velocity that is asked for changed by an amount."""
        setup, element = self._rest(), self.mechanism[name.owner]
        if name.what == "start_rate":
            here = setup.rates[name.owner] if name.owner in setup.rates else self._rates()[element.index, : element.type.freedom]
            setup.rates = {**setup.rates, name.owner: here + np.atleast_1d(amount)}
        else:
            part = slice(0, 3) if name.what == "start_velocity" else slice(3, 6)
            held = setup.held.get(name.owner, np.full(6, np.nan)).copy()
            held[part] = np.where(np.isnan(held[part]), self.velocity[element.index, part], held[part]) + amount
            setup.held = {**setup.held, name.owner: held}
        return setup

    def _rates(self) -> np.ndarray:
        placement = self.setup.placement
        rates = np.zeros((len(self.mechanism.joints), 6))
        placement.evaluate()
        joint_rates(placement.model, placement.work, np.concatenate([self.velocity, np.zeros((1, 6))]), rates)
        return rates

    def _weighed(self, name: Name, direction: np.ndarray) -> np.ndarray:
        """Velocities nearest to others in another mass metric: dv = S (W dv' - dW (v - v')), S the projected inverse and v' those before."""
        index, moved = self.mechanism[name.owner].index, np.zeros(self.velocity.size)
        for stage, saddle, _, metric in self.stages:
            off, force = (stage.after - stage.before).reshape(-1, 6)[index], np.zeros_like(self.velocity)
            if name.what == "mass":
                force[index, :3] = stage.factors[index, 0] * direction * off[:3]
            else:
                force[index, 3:] = stage.factors[index, 1] * direction @ off[3:]
            moved = saddle.pull(metric @ moved - force.ravel())[1]
        return moved.reshape(-1, 6)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The projections that settled the velocities, from those wished on."""
        setup = self._rest()
        wished, held = setup.wished()
        steps = settlings(setup.placement, wished, held, setup.rates)
        steps = (*steps[:-1], steps[-1]._replace(after=self.velocity.ravel()))
        return tuple(Stage(one, *one.saddle(setup.placement, wished, setup.rates), one.metric(self.model)) for one in steps)

    # ---- backwards

    def pull(self, names: list[Name], pose: np.ndarray, velocity: np.ndarray, target: np.ndarray) -> dict[str, np.ndarray]:
        """The parts of gradients that come through the start, from its cotangents (n, 6), (n, 6), (joints, 6)."""
        pulled, found = StartPull(self, pose, velocity, [name.owner for name in names if name.what in START_JOINT]), {}
        self._rest().placement.evaluate()
        apart = self.moves_unseen and (self.closed or not pulled.is_tree or bool(self.kept[3]))
        for name in names:
            if apart:
                found[name.text] = self._pull_each(name, pose, velocity, target)
            elif name.what in WEIGHING:
                found[name.text] = self._pull_weighed(name, pulled)
            elif name.kind == "model":
                left, turns = pulled.reshaped
                gradient = named_bar(self.mechanism, self.model, pulled.bars, name.text, self.owners)
                found[name.text] = np.zeros(name.shape) if gradient is None else gradient
                if name.what == "centre_of_mass":
                    index = self.mechanism[name.owner].index
                    found[name.text] = found[name.text] + turns[index].T @ left[index, :3]
            elif name.what == "start":
                found[name.text] = self._pull_start(name, pulled, target)
            elif name.what == "start_rate":
                unit = np.eye(self.mechanism[name.owner].type.freedom)
                if self.kept[3]:  # what was asked of bodies is held by a projection of its own
                    found[name.text] = self._pull_each(name, pose, velocity, target)
                elif pulled.is_tree:
                    found[name.text] = pulled.along_tree(name.owner, unit, False).reshape(name.shape)
                else:
                    found[name.text] = pulled.of_joint(name.owner, pulled.settled, unit, pulled.settled.asked).reshape(name.shape)
            elif name.kind == "start":
                # in loops, what was asked of bodies is held exactly, on top of the metric that weighs them
                found[name.text] = self._pull_held(name, velocity) if pulled.is_tree else self._pull_each(name, pose, velocity, target)
            else:
                found[name.text] = self._pull_each(name, pose, velocity, target)
        return found

    def _pull_start(self, name: Name, pulled: StartPull, target: np.ndarray) -> np.ndarray:
        element = self.mechanism[name.owner]
        free = element.type.freedom
        change = np.array([self._as_rate(name.owner, unit) for unit in np.eye(free)])
        driven = self.model.joints["driven"][element.index, :free] != 0
        if self.was_set(name.owner):
            bars = change @ pulled.wish(name.owner)
        elif pulled.is_tree:
            bars = pulled.along_tree(name.owner, change, True) + pulled.unseen[element.index, :free]
        else:
            bars = pulled.of_joint(name.owner, pulled.placed, change, {}, held=False)
        bars = bars + target[element.index, :free] * driven
        return bars.reshape(name.shape)

    def _pull_held(self, name: Name, velocity: np.ndarray) -> np.ndarray:
        """By velocities of bodies that were asked for: settled ones are those wished plus the least change that the rows ask for, both linear."""
        def weighed(amount: np.ndarray) -> float:
            setup = self._asked(name, amount)
            wished, held = setup.wished()
            return float(self._pull_projection(setup, held, velocity) @ wished.ravel())

        gradient, here = np.zeros(name.shape), weighed(np.zeros(name.shape))
        for index in np.ndindex(*name.shape):
            direction = np.zeros(name.shape)
            direction[index] = 1.0
            gradient[index] = weighed(direction) - here
        return gradient

    def _pull_projection(self, setup: Setup, held: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """The cotangent of wished velocities from that of settled ones; kept for the next name."""
        key = (held.tobytes(), tuple(setup.rates))
        if getattr(self, "_projection_key", None) != key:
            self._projection_key = key
            saddle, G, _ = velocity_saddle(setup.placement, held, setup.rates)
            self._projection = velocity.ravel() - (G.T @ saddle.pull(velocity.ravel())[0] if G.shape[0] else 0.0)
        return self._projection

    def _pull_each(self, name: Name, pose: np.ndarray, velocity: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Component by component."""
        gradient = np.zeros(name.shape)
        for index in np.ndindex(*name.shape):
            direction = np.zeros(name.shape)
            direction[index] = 1.0
            gradient[index] = sum(np.sum(bar * part) for bar, part in zip((pose, velocity, target), self.tangent(name, direction)))
        return gradient

    def _pull_weighed(self, name: Name, pulled: StartPull) -> np.ndarray:
        index = self.mechanism[name.owner].index
        body = self.model.bodies[index]
        by_mass, by_inertia = 0.0, np.zeros((3, 3))
        if not self.at_rest:
            for (stage, *_), solved in zip(self.stages, pulled.settlings):
                off, held = (stage.after - stage.before).reshape(-1, 6)[index], solved.motion.reshape(-1, 6)[index]
                by_mass -= float(stage.factors[index, 0] * held[:3] @ off[:3])
                both = stage.factors[index, 1] * np.outer(held[3:], off[3:])
                by_inertia = by_inertia - 0.5 * (both + both.T)
        if self.closed:  # by the square of the radius of gyration, trace / (2 mass)
            size = float(pulled.sizes[index])
            by_mass -= size * body["length"] ** 2 / body["mass"]
            by_inertia = by_inertia + size * np.eye(3) / (2.0 * body["mass"])
        return np.array(by_mass) if name.what == "mass" else by_inertia

    def _by_element(self, weights: np.ndarray, wishes: dict, rates: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights of assembly's rows as those of joints' rows (joints, 6), couplings and wished directions (joints, 6); ``rates``: of velocities."""
        model = self.model
        rows, directions, ties = np.zeros((len(model.joints), 6)), np.zeros((len(model.joints), 6)), np.zeros(len(model.couplings))
        moving, count = self._moving_rows(wishes if rates else None)
        own = np.ones(count, dtype=bool)
        for _, places in moving:
            own[places] = False
        rows[np.arange(6) < model.joints["locks"][:, None]] = weights[:count][own]
        tied = model.couplings["law"] == 0
        ties[tied] = weights[count : count + int(tied.sum())]
        at = count + int(tied.sum())
        for name, value in wishes.items():
            element = self.mechanism[name]
            for i in range(len(value)):
                if element.type.has_rows and not model.joints["driven"][element.index, i]:
                    directions[element.index, i] = weights[at]
                    at += 1
        return rows, ties, directions

    def _moving_rows(self, rates: dict | None) -> tuple[list[tuple[JointElement, slice]], int]:
        """Where the rows of joints without rows of their own stand among those of joints, of which there are so many; ``rates``: wished ones, of velocities."""
        found, count, joints = [], int(self.model.joints["locks"].sum()), self.mechanism.joints
        if all(joint.type.has_rows for joint in joints):
            return [], count
        at = 0
        for joint, locks in zip(joints, self.model.joints["locks"]):
            size = int(locks)
            if not joint.type.has_rows:
                size = 6 if rates is None else len(self._twist_rows(joint, rates))
                found.append((joint, slice(at, at + size)))
            at += size
        return found, at

    def _twist_rows(self, joint: JointElement, rates: dict) -> np.ndarray:
        placement = self.setup.placement
        return twist_rows(placement, joint, ~np.isnan(asked_rates(placement, joint, rates)))

    def moving_weights(self, weights: np.ndarray, rates: dict | None = None) -> list[tuple[JointElement, np.ndarray]]:
        """Joints without rows of their own, with weights (6,) of their twists from those of assembly's rows; ``rates``: as asked, of velocities."""
        return [
            (joint, weights[places] if rates is None else self._twist_rows(joint, rates).T @ weights[places]) for joint, places in self._moving_rows(rates)[0]
        ]
