"""Where a simulation starts: poses and velocities that satisfy every joint, near to what was asked for."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.checks import NUMBERS, POSITIVE, vector
from dalembert.errors import AssemblyError, ModelError
from dalembert.formulations.engine import Start
from dalembert.mechanism.maps import CoordinateMap
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.model.assembly import nearest_pose, settle_velocities
from dalembert.model.moving import columns
from dalembert.model.placement import Placement
from dalembert.model.pose import direction_rows
from dalembert.model.records import Model
from dalembert.model.targets import agreed_targets
from dalembert.model.topology import spanning_tree, tree_holds_all, tree_order
from dalembert.simulation.aims import Aim, aiming
from dalembert.simulation.placing import Placed, again, put, remember


class Setup:
    """A mechanism with what was asked of its start: coordinates and rates of joints, velocities of bodies.

    ``carried`` (n, 6): velocities that a new setting starts from; ``history``: how bodies came to stand where they do.
    """

    def __init__(self, mechanism: Mechanism, model: Model | None = None) -> None:
        """``model``: that of the mechanism, where it is known already."""
        self.mechanism = mechanism
        self.placement = Placement.of(mechanism, model)
        self.wishes: dict[str, np.ndarray] = {}
        self.rates: dict[str, np.ndarray] = {}
        self.held: dict[str, np.ndarray] = {}
        self.carried = np.zeros((len(mechanism.bodies), 6))
        self.history: tuple[Placed, ...] = ()

    def initial(self) -> Start:
        """The start that the mechanism itself asks for."""
        given = self.mechanism.initial_joints
        self.place({name: self.coordinates_of(name, value) for name, (value, _) in given.items() if value is not None})
        self.rates = {name: self.coordinates_of(name, rate) for name, (_, rate) in given.items() if rate is not None}
        for name, (linear, angular) in self.mechanism.initial_velocities.items():
            self.hold(name, linear, angular)
        return self.settle()

    def resume(self, start: Start) -> None:
        """Forget all wishes, and go on from a pose with velocities that a run has reached."""
        self.wishes, self.rates, self.held, self.history = {}, {}, {}, ()
        self.carried = start.velocity.copy()
        self.placement.work.joints["target"] = start.target
        self.placement.put(start.position, start.orientation, start.coordinate)

    def joint(self, name: str) -> JointElement:
        element = self.mechanism[name]
        if not isinstance(element, JointElement):
            raise ModelError(f"{name!r} is {element!r}, not a joint")
        return element

    def coordinates_of(self, name: str, value: ArrayLike) -> np.ndarray:
        """Checked coordinates, or rates, of a joint."""
        element = self.joint(name)
        return vector(np.atleast_1d(NUMBERS(value, f"coordinates of joint {name!r}")), element.type.freedom, f"coordinates of joint {name!r}")

    def move(self, name: str, value: ArrayLike | None, rate: ArrayLike | None) -> Start:
        """Move a joint, or the joints of a coordinate map, with its subtree, and give it a rate (none is zero)."""
        if isinstance(element := self.mechanism[name], CoordinateMap):
            return self._move_map(element, value, rate)
        freedom = self.joint(name).type.freedom
        self.rates = {**self.rates, name: np.zeros(freedom) if rate is None else self.coordinates_of(name, rate)}
        if value is not None:
            self.place({**self.wishes, name: self.coordinates_of(name, value)}, (name,))
        return self.settle()

    def move_all(self, values: Mapping[str, ArrayLike], rates: Mapping[str, ArrayLike]) -> Start:
        """Move joints with their subtrees, and give joints rates."""
        self.rates = {**self.rates, **{name: self.coordinates_of(name, rate) for name, rate in rates.items()}}
        if values:
            self.place({**self.wishes, **{name: self.coordinates_of(name, value) for name, value in values.items()}}, tuple(values))
        return self.settle()

    def _move_map(self, element: CoordinateMap, value: ArrayLike | None, rate: ArrayLike | None) -> Start:
        here = self.placement.work.joints["coordinate"]
        y = element.inverse([here[j.index, d] for j, d in zip(element.joints, element.directions)]) if value is None else value
        settings = element.joint_settings(y, rate)
        self.rates = {**self.rates, **{name: np.array(rates) for name, (_, rates) in settings.items()}}
        if value is not None:
            self.place({**self.wishes, **{name: np.array(values) for name, (values, _) in settings.items()}}, tuple(settings))
        return self.settle()

    def place(self, wishes: dict[str, np.ndarray], moved: tuple[str, ...] | None = None) -> None:
        """Put bodies where the wished coordinates say, close the loops, keep within limits."""
        placings = put(self.placement, wishes, wishes if moved is None else moved)
        self.wishes = wishes
        for placed in placings:
            self.history = remember(self.history, placed, self.placement)

    def place_again(self, name: str, value: np.ndarray) -> None:
        """Ask a joint for another coordinate as if it had been asked for when it was last set: what came after that is done again."""
        at = max((i for i, placed in enumerate(self.history) if name in placed.moved), default=-1)
        if at < 0 or tree_holds_all(self.mechanism):
            self.place({**self.wishes, name: value}, (name,))
            return
        before, self.history = self.history, self.history[:at]
        self.placement.put(*before[at].before)
        for placed in before[at:]:
            self.history = (*self.history, again(self.placement, placed, name, value))
        self.wishes = {**self.wishes, name: value}

    def enter_limits(self) -> None:
        """Move joints that lie beyond their limits to the nearest end."""
        put(self.placement, {}, ())

    def hold(self, name: str, linear: ArrayLike | None, angular: ArrayLike | None) -> None:
        """Ask for the velocity of a body; what is None stays as it was asked for, or free."""
        body = self.mechanism[name]
        if not isinstance(body, Body) or body is self.mechanism.world:
            raise ModelError(f"set_velocity needs a body of {self.mechanism.name!r}, got {name!r}")
        held = self.held.get(name, np.full(6, np.nan)).copy()
        if linear is not None:
            held[:3] = vector(linear, 3, f"linear velocity of {name!r}")
        if angular is not None:
            held[3:] = vector(angular, 3, f"angular velocity of {name!r}")
        self.held = {**self.held, name: held}

    def wished(self) -> tuple[np.ndarray, np.ndarray]:
        """Velocities (n, 6) asked for, bodies below carried along; and which bodies' (n, 2), linear and angular, were."""
        bodies = len(self.mechanism.bodies)
        wished, held = self.carried.copy(), np.zeros((bodies, 2), dtype=bool)
        for name, velocity in self.held.items():
            index = self.mechanism[name].index
            asked = ~np.isnan(velocity)
            wished[index, asked], held[index] = velocity[asked], asked[::3]
        self._carry(wished, held)
        return wished, held

    def settle(self) -> Start:
        """Consistent velocities near to those asked for."""
        wished, held = self.wished()
        work = self.placement.work
        for name, rate in self.rates.items():
            work.joints["rate"][self.joint(name).index, : rate.size] = rate
        velocity = settle_velocities(self.placement, wished, held, self.rates)
        return Start(
            work.bodies["x"][:-1].copy(), work.bodies["q"][:-1].copy(), velocity, work.joints["coordinate"].copy(), work.joints["target"].copy(),
        )

    def _carry(self, wished: np.ndarray, held: np.ndarray) -> None:
        """Let bodies below a held one, or below a joint with a rate, move along with it as if all other joints were locked."""
        tree = tree_order(self.mechanism, spanning_tree(self.mechanism, self.rates))
        bodies = self.placement.work.bodies
        matrices = Rotation.from_quat(bodies["q"], scalar_first=True).as_matrix()
        moving = {int(i) for i in np.flatnonzero(held.any(axis=1))}
        for index, here, there in tree:
            joint = self.mechanism.joints[index]
            if held[there].any() or not (here in moving or joint.name in self.rates):
                continue
            moving.add(there)
            spin = matrices[here] @ wished[here, 3:] if here >= 0 else np.zeros(3)
            speed = wished[here, :3] if here >= 0 else np.zeros(3)
            speed = speed + cross(spin, bodies["x"][there] - (bodies["x"][here] if here >= 0 else 0.0))
            if joint.name in self.rates:
                sign = 1.0 if there == joint.child.index else -1.0
                line, turn, point = self._twist(joint)
                spin = spin + sign * turn
                speed = speed + sign * (line + cross(turn, bodies["x"][there] - point))
            wished[there] = np.concatenate([speed, matrices[there].T @ spin])

    def _twist(self, element: JointElement) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Linear and angular rate of a joint's child against its parent in the world, and the child's joint point."""
        self.placement.evaluate()
        model, work = self.placement.model, self.placement.work
        joint, kind, child = model.joints[element.index], element.type, work.bodies[element.child.index]
        R = child["R"].reshape(3, 3)
        point = child["x"] + R @ joint["point_child"]
        if not kind.has_rows:
            twist = R @ element.frame_child @ (self.rates[element.name] @ columns(self.placement, element)).reshape(2, 3).T
            return twist[:, 1], twist[:, 0], point
        gradients = np.zeros((kind.freedom, 12))
        direction_rows(model, work, element.index, gradients)
        linear, angular = np.zeros(3), np.zeros(3)
        for (name, _), rate, gradient in zip(kind.directions, self.rates[element.name], gradients):
            if name in ("slide", "distance"):
                linear += rate * gradient[6:9]
            else:
                angular += rate * (R @ gradient[9:])
        linear += kind.lead * angular
        return linear, angular, point

    def solve_pose(self, wishes: Mapping[str, ArrayLike], weights: Mapping[str, float], aims: Sequence[Aim] = ()) -> dict[str, np.ndarray]:
        """Coordinates of all joints in the pose nearest to wished coordinates and to aims that the passive joints allow."""
        asked = {name: self.coordinates_of(name, value) for name, value in wishes.items()}
        for name, weight in weights.items():
            if name not in asked:
                raise ModelError(f"the weight of {name!r} belongs to no wish; there are wishes for: {', '.join(asked)}")
            POSITIVE(weight, f"the weight of {name!r}")
        before = self.keep()
        try:
            nearest_pose(self.placement, asked, weights, aiming(self.mechanism, aims))
            self.placement.evaluate()
            found = self.placement.work.joints["coordinate"]
            return {j.name: found[j.index, : j.type.freedom].copy() for j in self.mechanism.joints}
        finally:
            self.restore(before)

    def agree(self, targets: np.ndarray, tolerance: float) -> tuple[np.ndarray, float]:
        """Targets (joints, 6) that the passive joints allow, if they lie within ``tolerance`` (m or rad), and how far they do.

        The placement follows, so that the next ones are looked for from there.
        """
        before = self.placement.keep()
        try:
            agreed, correction = agreed_targets(self.placement, targets)
        except AssemblyError:
            agreed, correction = targets, np.inf
        if correction > tolerance:
            self.placement.restore(before)
            return targets, 0.0
        return agreed, correction

    def coordinates_at(self, element: JointElement, poses: Any) -> list[np.ndarray]:
        """Coordinates of a joint whose child takes one pose (position, orientation) after the other."""
        before, body = self.keep(), self.placement.work.bodies[element.child.index]
        values = []
        for position, orientation in poses:
            body["x"], body["q"] = position, orientation
            self.placement.evaluate()
            values.append(self.placement.work.joints["coordinate"][element.index, : element.type.freedom].copy())
        self.restore(before)
        return values

    def keep(self) -> tuple[Any, ...]:
        """Everything that was asked for and the pose, for ``restore``."""
        return self.placement.keep(), self.wishes, self.rates, self.held, self.carried, self.history

    def restore(self, kept: tuple[Any, ...]) -> None:
        """Go back to what was kept."""
        self.placement.restore(kept[0])
        self.wishes, self.rates, self.held, self.carried, self.history = kept[1:]


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of single vectors: many times quicker than NumPy's, and a mechanism may have many bodies."""
    (ax, ay, az), (bx, by, bz) = a.tolist(), b.tolist()
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])
