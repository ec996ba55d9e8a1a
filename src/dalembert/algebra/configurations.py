"""Configurations of a mechanism as vectors: their names, the tangent, moves along it, and where a simulation stands."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.algebra.motion import difference, integrate, put, tangent_blocks
from dalembert.checks import ANYTHING, HUGE, NOTHING, Refused, checked, kind_of, numbers, shown, whole
from dalembert.errors import ModelError
from dalembert.formulations.reduced.state import new_scratch
from dalembert.kernels import direct
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.model.compile import compile_model
from dalembert.model.placement import Placement
from dalembert.model.tree import LINE, POINT, SPLINE, build_tree
from dalembert.simulation.simulation import Simulation

#: numbers of any shape; that they are finite is said by name
REAL = numbers(infinite=True, nan=True)
#: arguments that are vectors: checked where their names are known
VECTORS = dict.fromkeys(("q", "v", "a", "tau", "q0", "q1", "x", "wrenches", "dq", "dv", "da"), ANYTHING)
#: of random numbers
SEED = whole("a whole number from 0", least=0) | NOTHING | kind_of("a NumPy generator", lambda value: isinstance(value, np.random.Generator))


class Configurations:
    """Vectors of a mechanism in the order of ``names``.

    Bodies without a joint come first, six numbers each (position of the centre of mass in the world, rotation vector), then the
    joints of the spanning tree in the mechanism's order, with the coordinates that ``Trajectory`` reports.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        if not isinstance(mechanism, Mechanism):
            raise ModelError(f"Algebra needs a Mechanism, got {mechanism!r}")
        if not mechanism.bodies:
            raise ModelError(f"{mechanism.name!r} has no bodies")
        #: the mechanism as it was when the algebra was made
        self.mechanism = mechanism.snapshot()
        self._model = compile_model(self.mechanism)
        self._placement = Placement.of(self.mechanism, self._model)
        tree = build_tree(self.mechanism, self._model)
        self._model = self._model._replace(splines=tree.splines)
        # nothing is prescribed but what a call says; coordinates are numbered in the order of the names
        nodes = tree.nodes.copy()
        nodes["driven"] = 0
        self.names, self._slots = _number(self.mechanism, nodes)
        self._forest = tree._replace(nodes=nodes)
        self._tree = nodes
        self._scratch = new_scratch(len(nodes), int(np.count_nonzero(nodes["kind"] == SPLINE)))
        self._nodes = self._scratch.nodes
        self._zero = np.zeros(self.size)
        self._entries: dict[Any, Any] = {}

    # ---- vectors

    @property
    def size(self) -> int:
        """How many numbers a vector has."""
        return len(self.names)

    @checked
    def slot(self, name: str) -> slice:
        """Where the numbers of a joint, or of a body without a joint, stand in a vector."""
        if name not in self._slots:
            if name in self.mechanism and isinstance(self.mechanism[name], JointElement):
                raise ModelError(f"joint {name!r} closes a loop of {self.mechanism.name!r}: it has no coordinates of its own")
            raise ModelError(f"{self.mechanism.name!r} has no coordinates of {name!r}; it has those of: {', '.join(self._slots)}")
        return self._slots[name]

    def _vector(self, value: ArrayLike, what: str) -> np.ndarray:
        """A vector (n,) as it was given, or a ModelError that says what was wrong."""
        try:
            vector = REAL.take(value)
        except Refused:
            raise ModelError(f"{what} must be {self.size} numbers, in the order of names, each below {HUGE:g} in size, got {shown(value)}") from None
        if vector.shape != (self.size,):
            raise ModelError(
                f"{what} must be {self.size} numbers, one for each of the names of {self.mechanism.name!r} ({_few(self.names)}), got shape {vector.shape}")
        if not np.all(np.isfinite(vector)):
            raise ModelError(f"{what} must be finite, got {vector[~np.isfinite(vector)][0]} for {self.names[int(np.argmin(np.isfinite(vector)))]!r}")
        return vector

    def _body(self, body: Body | str) -> int:
        """Index of a body."""
        name = body.name if isinstance(body, Body) else body
        found = next((b for b in self.mechanism.bodies if isinstance(name, str) and b.name == name), None)
        if found is None:
            raise ModelError(f"{self.mechanism.name!r} has no body {shown(name)}; it has: {_few([b.name for b in self.mechanism.bodies])}")
        return found.index

    def _put(self, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None) -> None:
        """Place all nodes."""
        vectors = self._vector(q, "q"), *(self._zero if x is None else self._vector(x, what) for x, what in ((v, "v"), (a, "a")))
        self._enter(put, self._model, self._tree, self._scratch, *vectors)

    def _enter(self, kernel: Any, *arguments: Any) -> None:
        """Call a kernel whose arguments have the same types at every call."""
        if kernel not in self._entries:
            self._entries[kernel] = direct(kernel, *arguments)
        self._entries[kernel](*arguments)

    # ---- configurations

    def neutral(self) -> np.ndarray:
        """All coordinates zero: joint frames on top of one another, bodies without a joint at the origin."""
        return np.zeros(self.size)

    def reference(self) -> np.ndarray:
        """The pose that the mechanism was built in."""
        bodies = self.mechanism.bodies
        return self._read([b.position for b in bodies], [b.orientation for b in bodies], self._placement.work.joints["coordinate"])

    @checked(seed=SEED)
    def random(self, seed: int | np.random.Generator | None = None) -> np.ndarray:
        """A configuration within the limits; otherwise distances within a metre, angles within half a turn, any rotation."""
        rng = np.random.default_rng(seed)
        q = np.zeros(self.size)
        for node in self._tree:
            k = int(node["dof"])
            if node["kind"] == POINT:
                q[k : k + 3] = Rotation.random(rng=rng).as_rotvec()
            elif node["count"]:
                for j in range(int(node["count"])):
                    lower, upper = self._range(node, j)
                    q[k + j] = rng.uniform(lower, upper)
        return q

    def _range(self, node: np.ndarray, j: int) -> tuple[float, float]:
        """Between which values a random coordinate of a node lies."""
        if node["kind"] == SPLINE:
            return 0.0, float(node["cells"][j])
        reach = 1.0 if node["kind"] == LINE else np.pi
        lower, upper = -np.inf, np.inf
        if node["joint"] >= 0:
            lower, upper = self.mechanism.joints[int(node["joint"])].type.limits[int(node["direction"]) + j]
        lower = lower if np.isfinite(lower) else min(-reach, upper - reach)
        return lower, upper if np.isfinite(upper) else max(reach, lower + reach)

    @checked(**VECTORS)
    def integrate(self, q: ArrayLike, v: ArrayLike, dt: float = 1.0) -> np.ndarray:
        """Where rates ``v`` lead from ``q`` in ``dt`` seconds: free rotations by exp(v dt) exp(q)."""
        after = np.zeros(self.size)
        integrate(self._tree, self._vector(q, "q"), self._vector(v, "v"), float(dt), after)
        return after

    @checked(**VECTORS)
    def integrate_derivatives(self, q: ArrayLike, v: ArrayLike, dt: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives (n, n) of ``integrate`` by the tangents of q and v."""
        self._vector(q, "q")
        rates = self._vector(v, "v")
        by_q, by_v = np.eye(self.size), dt * np.eye(self.size)
        for own in self._rotations():
            turn, left, _ = _blocks(dt * rates[own])
            by_q[own, own], by_v[own, own] = turn, dt * left
        return by_q, by_v

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> np.ndarray:
        """The rates that lead from ``q0`` to ``q1`` in one second: ``integrate(q0, difference(q0, q1))`` is ``q1``."""
        v = np.zeros(self.size)
        difference(self._tree, self._vector(q0, "q0"), self._vector(q1, "q1"), v)
        return v

    def difference_derivatives(self, q0: ArrayLike, q1: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives (n, n) of ``difference`` by the tangents of q0 and q1."""
        v = self.difference(q0, q1)
        by_q0, by_q1 = -np.eye(self.size), np.eye(self.size)
        for own in self._rotations():
            inverse = _blocks(v[own])[2]
            by_q0[own, own], by_q1[own, own] = -inverse.T, inverse
        return by_q0, by_q1

    @checked
    def state(self, simulation: Simulation) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and rates (q, v) at which a simulation of this mechanism stands."""
        theirs = [body.name for body in simulation.mechanism.bodies]
        if theirs != [body.name for body in self.mechanism.bodies]:
            raise ModelError(f"the simulation is one of {simulation.mechanism.name!r}, whose bodies are others than those of {self.mechanism.name!r}")
        orientation, v = simulation.orientation, np.zeros(self.size)
        coordinate = np.zeros((len(self.mechanism.joints), 6))
        for joint in self.mechanism.joints:
            coordinate[joint.index, : joint.type.freedom] = simulation.coordinates(joint.name)
            if joint.name in self._slots:
                v[self._slots[joint.name]] = simulation.rates(joint.name)
        for body in self.mechanism.bodies:
            if body.name in self._slots:
                turn = Rotation.from_quat(orientation[body.index], scalar_first=True)
                spin = turn.apply(simulation.angular_velocity[body.index])
                v[self._slots[body.name]] = np.concatenate([simulation.velocity[body.index], spin])
        return self._read(simulation.position, orientation, coordinate), v

    def _read(self, position: Any, orientation: Any, coordinate: np.ndarray) -> np.ndarray:
        """The configuration at poses of the bodies and coordinates (joints, 6) of the joints."""
        q = np.zeros(self.size)
        for node in self._tree:
            k, count, joint = int(node["dof"]), int(node["count"]), int(node["joint"])
            if joint >= 0:
                q[k : k + count] = coordinate[joint, int(node["direction"]) :][:count]
            elif node["kind"] == POINT:
                body = int(node["body"])
                q[k - 3 : k], q[k : k + 3] = position[body], Rotation.from_quat(orientation[body], scalar_first=True).as_rotvec()
        return q

    def _rotations(self) -> list[slice]:
        """Where free rotations stand in a vector."""
        return [slice(int(k), int(k) + 3) for k in self._tree["dof"][self._tree["kind"] == POINT]]


def _number(mechanism: Mechanism, nodes: np.ndarray) -> tuple[tuple[str, ...], dict[str, slice]]:
    """Give the nodes their places in vectors; the names of all numbers, and the places of joints and free bodies."""
    names: list[str] = []
    slots: dict[str, slice] = {}

    def take(owner: str, count: int) -> int:
        first = len(names)
        names.extend([owner] if count == 1 else [f"{owner}[{i}]" for i in range(count)])
        slots[owner] = slice(first, first + count)
        return first

    for body in mechanism.bodies:
        ends = np.flatnonzero((nodes["body"] == body.index) & (nodes["joint"] < 0) & (nodes["kind"] == POINT))
        for last in ends:
            first = take(body.name, 6)
            nodes["dof"][last - 3 : last + 1] = first + np.arange(4)
    for joint in mechanism.joints:
        own = np.flatnonzero((nodes["joint"] == joint.index) & (nodes["count"] > 0))
        if len(own):
            first = take(joint.name, int(nodes["count"][own].sum()))
            nodes["dof"][own] = first + nodes["direction"][own]
    return tuple(names), slots


def _few(names: Any) -> str:
    """The first names of a list."""
    return ", ".join(names) if len(names) <= 12 else ", ".join(names[:12]) + ", ..."


def _blocks(phi: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """exp(phi), J_l(phi) and its inverse, (3, 3)."""
    found = np.zeros((3, 9))
    tangent_blocks(np.ascontiguousarray(phi), found[0], found[1], found[2])
    return found[0].reshape(3, 3), found[1].reshape(3, 3), found[2].reshape(3, 3)
