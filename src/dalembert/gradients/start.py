"""How the start of a run changes with coordinates, rates, velocities and numbers of the mechanism: through placing, assembly, settling.

All of it is differenced (fourth order) from the pose of the start itself, which assembly closes again.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.formulations.engine import Start
from dalembert.gradients.names import PLACING, WEIGHING, Name
from dalembert.mechanism.parameters import list_parameters, with_parameters
from dalembert.simulation.record import Record
from dalembert.simulation.setup import Setup

#: step of fourth-order differences: m, rad, m/s, or relative to masses
STEP = 1e-3
#: where and with which weight values are taken
OFFSETS = ((1.0, 8.0 / 12.0), (-1.0, -8.0 / 12.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0))


class Beginning:
    """The start of a record's run, to be made again with other numbers."""

    def __init__(self, record: Record, names: list[Name]) -> None:
        self.record, self.mechanism = record, record.mechanism
        self.setup = Setup(self.mechanism)
        if record.setup is None:
            self.setup.resume(self._first())
        else:
            self.setup.restore(record.setup)
        self.base = self.setup.keep()
        for name in names:  # what is differentiated by is held, as if it had been set where it is
            if name.kind == "start" and name.what == "start" and name.owner not in self.setup.wishes:
                element = self.mechanism[name.owner]
                here = self.setup.placement.work.joints["coordinate"][element.index, : element.type.freedom].copy()
                self.setup.wishes = {**self.setup.wishes, name.owner: here}
            elif name.kind == "start" and name.what == "start_rate" and name.owner not in self.setup.rates:
                rate = self._rates()[self.mechanism[name.owner].index, : self.mechanism[name.owner].type.freedom]
                self.setup.rates = {**self.setup.rates, name.owner: rate.copy()}
            elif name.kind == "start" and name.what.endswith("velocity") and name.owner not in self.setup.held:
                self.setup.held = {**self.setup.held, name.owner: np.full(6, np.nan)}
        self.kept = self.setup.keep()
        self.origin = self._start(self.setup)

    def _first(self) -> Start:
        record = self.record
        engine, numbers = record.engine, record.states[0]
        position, orientation = engine.pose(numbers)
        velocity = self._velocity()
        return Start(position, orientation, velocity, engine.coordinates(numbers), engine.targets(numbers))

    def _velocity(self) -> np.ndarray:
        """(n, 6) velocities that the run started with."""
        return self.record.engine.start_velocity(self.record.states[0])

    def _rates(self) -> np.ndarray:
        from dalembert.model.pose import joint_rates

        placement = self.setup.placement
        rates = np.zeros((len(self.mechanism.joints), 6))
        placement.evaluate()
        joint_rates(placement.model, placement.work, np.concatenate([self._velocity(), np.zeros((1, 6))]), rates)
        return rates

    @staticmethod
    def _start(setup: Setup) -> Start:
        return setup.settle()

    @property
    def at_rest(self) -> bool:
        return not np.any(self.origin.velocity)

    def matters(self, name: Name) -> bool:
        """Whether the start depends on a parameter at all."""
        return name.kind == "start" or name.what in PLACING or (name.what in WEIGHING and not self.at_rest)

    def with_values(self, changes: Mapping[str, np.ndarray], names: Mapping[str, Name]) -> Start:
        """The start with parameters moved by some amounts."""
        model = {text: amount for text, amount in changes.items() if names[text].kind == "model"}
        setup = self.setup
        setup.restore(self.kept)
        if model:
            setup = self._changed(model)
        wishes, rates, held = dict(setup.wishes), dict(setup.rates), dict(setup.held)
        moved = []
        for text, amount in changes.items():
            name = names[text]
            if name.kind != "start":
                continue
            if name.what == "start":
                wishes[name.owner] = wishes[name.owner] + np.atleast_1d(amount)
                moved.append(name.owner)
            elif name.what == "start_rate":
                rates[name.owner] = rates[name.owner] + np.atleast_1d(amount)
            else:
                held[name.owner] = self._held(held[name.owner], name, amount)
        setup.rates, setup.held = rates, held
        if moved or model:
            setup.place(wishes, tuple(moved))
        return self._start(setup)

    def _held(self, velocity: np.ndarray, name: Name, amount: np.ndarray) -> np.ndarray:
        part = slice(0, 3) if name.what == "start_velocity" else slice(3, 6)
        velocity = velocity.copy()
        here = self._velocity()[self.mechanism[name.owner].index, part]
        velocity[part] = np.where(np.isnan(velocity[part]), here, velocity[part]) + amount
        return velocity

    def _changed(self, amounts: Mapping[str, np.ndarray]) -> Setup:
        """The set-up of a mechanism with other numbers, at the pose of the start."""
        known = list_parameters(self.mechanism)
        mechanism = with_parameters(self.mechanism, {text: known[text].value + amount for text, amount in amounts.items()}, checked=False)
        setup = Setup(mechanism)
        setup.placement.work.joints["target"] = self.setup.placement.work.joints["target"]
        position = self.setup.placement.work.bodies["x"][:-1].copy()
        orientation = self.setup.placement.work.bodies["q"][:-1].copy()
        for text, amount in amounts.items():
            owner, _, what = text.rpartition(".")
            if what == "centre_of_mass":
                index = mechanism[owner].index
                position[index] += Rotation.from_quat(orientation[index], scalar_first=True).apply(amount)
        setup.placement.put(position, orientation, self.setup.placement.work.joints["coordinate"])
        _, setup.wishes, setup.rates, setup.held, setup.carried = self.kept
        setup.placement.work.joints["rate"] = self.setup.placement.work.joints["rate"]
        return setup

    def tangent(self, direction: Mapping[str, np.ndarray], names: Mapping[str, Name]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tangents of pose (n, 6), velocities (n, 6) and held targets (joints, 6) along a change of parameters."""
        step = min(STEP * self._scale(names[text]) / max(float(np.abs(d).max(initial=0.0)), 1e-300) for text, d in direction.items())
        base = self.origin
        turns = Rotation.from_quat(base.orientation, scalar_first=True).inv()

        def at(offset: float) -> np.ndarray:
            start = self.with_values({text: offset * step * np.asarray(d) for text, d in direction.items()}, names)
            turn = (turns * Rotation.from_quat(start.orientation, scalar_first=True)).as_rotvec()
            return np.concatenate([np.concatenate([start.position, turn], axis=1).ravel(), start.velocity.ravel(), start.target.ravel()])

        total = sum(weight / step * at(offset) for offset, weight in OFFSETS)
        n = base.position.shape[0]
        pose, velocity, target = np.split(np.asarray(total), [6 * n, 12 * n])
        self.setup.restore(self.base)
        return pose.reshape(n, 6), velocity.reshape(n, 6), target.reshape(-1, 6)

    def pull(self, name: Name, names: Mapping[str, Name], evaluate: Callable[[np.ndarray, np.ndarray, np.ndarray], float]) -> np.ndarray:
        """The part of a parameter's gradient that comes through the start; ``evaluate`` weighs tangents of pose, velocities and targets."""
        gradient = np.zeros(name.shape)
        for index in np.ndindex(*name.shape):
            direction = np.zeros(name.shape)
            direction[index] = 1.0
            if name.what == "inertia":
                direction = 0.5 * (direction + direction.T)
            gradient[index] = evaluate(*self.tangent({name.text: direction}, names))
        return gradient

    def _scale(self, name: Name) -> float:
        """The size beside which a change of a number is small."""
        if name.what not in WEIGHING:
            return 1.0
        value = list_parameters(self.mechanism)[name.text].value
        return float(np.linalg.eigvalsh(value).min()) if name.what == "inertia" else float(value)
