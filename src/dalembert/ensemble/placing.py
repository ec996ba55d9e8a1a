"""Starts of many states with joints elsewhere: by forward kinematics where joints are a tree, or else one by one as ``Simulation.set_joint`` does it."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.algebra import Algebra
from dalembert.errors import DalembertError, ModelError
from dalembert.formulations.engine import Start
from dalembert.mechanism.mechanism import JointElement, Mechanism
from dalembert.model.topology import spanning_tree, tree_holds_all
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.state import State

#: m or rad by which a coordinate may lie beyond its limits
ROUNDING = 1e-9

#: (k, freedom) coordinates and rates by joint, None where they are not given
Moves = Mapping[str, tuple[np.ndarray | None, np.ndarray | None]]


def is_plain_tree(mechanism: Mechanism) -> bool:
    """Whether all joints can be anywhere, whatever the others are at."""
    return tree_holds_all(mechanism) and len(spanning_tree(mechanism)) == len(mechanism.joints)


class Placer:
    """Moves joints of a start, of one mechanism."""

    def __init__(self, simulation: Simulation, start: State) -> None:
        self.simulation, self.start = simulation, start
        simulation.restore(start)
        self.mechanism, engine, numbers = simulation.mechanism, simulation.engine, start.numbers
        self._coordinate, self._target = engine.coordinates(numbers), engine.targets(numbers)
        still = not (np.any(simulation.velocity) or np.any(simulation.angular_velocity))
        self._algebra = Algebra(self.mechanism) if still and is_plain_tree(self.mechanism) else None
        self._q = None if self._algebra is None else self._algebra.state(simulation)[0]

    def place(self, moves: Moves, row: int) -> State:
        """The start with joints where one row of the moves says."""
        one = {name: tuple(None if values is None else values[row] for values in pair) for name, pair in moves.items()}
        return self._along_tree(one) if self._algebra is not None else self._one_by_one(one)

    def _one_by_one(self, moves: Mapping[str, tuple[Any, ...]]) -> State:
        self.simulation.restore(self.start)
        for name, (value, rate) in moves.items():
            self.simulation.set_joint(name, value, rate=rate)
        return self.simulation.state

    def _along_tree(self, moves: Mapping[str, tuple[Any, ...]]) -> State:
        assert self._algebra is not None
        assert self._q is not None
        q, v, coordinate, target = self._q.copy(), np.zeros(self._algebra.size), self._coordinate.copy(), self._target.copy()
        for name, (value, rate) in moves.items():
            element: JointElement = self.mechanism[name]
            if element.type.freedom == 0:
                continue
            slot, free = self._algebra.slot(name), slice(0, element.type.freedom)
            if value is not None:
                ends = np.array(element.type.limits).reshape(-1, 2)
                if np.any(value < ends[:, 0] - ROUNDING) or np.any(value > ends[:, 1] + ROUNDING):
                    raise ModelError(f"joint {name!r} cannot be at {value.tolist()}: its limits are {ends.tolist()}")
                q[slot] = coordinate[element.index, free] = value
                driven = np.array([drive == "motion" for drive in element.type.drive])  # type: ignore[union-attr]
                target[element.index, free][driven] = value[driven]
            if rate is not None:
                v[slot] = rate
        poses = self._algebra.forward_kinematics(q, v)
        velocity = poses.velocity.copy()
        velocity[:, 3:] = Rotation.from_quat(poses.orientation, scalar_first=True).inv().apply(velocity[:, 3:])
        numbers = self.simulation.engine.start(Start(poses.position, poses.orientation, velocity, coordinate, target))
        return State(self.start.kind, self.start.clock, numbers, np.zeros_like(self.start.inputs))


def placed(placer: Placer, index: int, moves: Moves, row: int) -> State:
    """``Placer.place`` of a state of a batch; an error says of which."""
    try:
        return placer.place(moves, row)
    except DalembertError as error:
        error.add_note(f"This was state {index} of the batch; none was reset.")
        raise
