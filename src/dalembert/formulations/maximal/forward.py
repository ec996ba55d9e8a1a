"""A forward pass in maximal coordinates: tangents of a run along a change of its start, its inputs and its model.

The linearised equations of a step, F_u du = -(F_y dy + F_p dp), have the step's own Newton matrix; their right-hand sides, and
what is read at the knots, are differences (sixth order) of the same kernels that run and read, which leaves about eleven digits.
A pass of refinement takes what the matrix leaves out. So it shares no formula with the adjoint.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import InputBars
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.graph import Graph
from dalembert.formulations.maximal.reading import Reader
from dalembert.formulations.maximal.recording import Recording
from dalembert.formulations.maximal.tape import Tape
from dalembert.linalg import solve
from dalembert.model.placement import Placement
from dalembert.model.pose import joint_rates
from dalembert.model.records import Model

#: where, in steps, and with which weight values of a sixth-order difference are taken
OFFSETS = ((1.0, 0.75), (-1.0, -0.75), (2.0, -0.15), (-2.0, 0.15), (3.0, 1.0 / 60.0), (-3.0, -1.0 / 60.0))
#: size of the steps: m, rad, and parts of a body's speed
STEP = 3e-3
#: passes of refinement
PASSES = 4


def turned(q: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Quaternions (..., 4) turned by body-frame tangents (..., 3)."""
    shape = np.shape(q)
    turn = Rotation.from_quat(np.reshape(q, (-1, 4)), scalar_first=True) * Rotation.from_rotvec(np.reshape(phi, (-1, 3)))
    return turn.as_quat(scalar_first=True).reshape(shape)


def turn_between(q: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Body-frame tangents (..., 3) from quaternions (..., 4) to others."""
    turn = Rotation.from_quat(np.reshape(q, (-1, 4)), scalar_first=True).inv() * Rotation.from_quat(np.reshape(p, (-1, 4)), scalar_first=True)
    return turn.as_rotvec().reshape(*np.shape(q)[:-1], 3)


class MaximalForward:
    """A forward pass; formulations say how a step is put into the work and what comes after it.

    ``models``: the model ``offset`` times ``step`` along its own change, per offset; none where it does not change.
    """

    def __init__(self, engine: Any, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray,
                 models: Sequence[Model], step: float, change: InputBars) -> None:
        self.engine, self.model, self.mechanism = engine, engine.model, engine.mechanism
        self.recording, self.given, self.knots, self.dt, self.coordinates = recording, inputs, knots, dt, coordinates
        self.models, self.step, self.change = models, step, change
        self.weights, self.drive_weight = None, engine.drive_weight
        #: targets between knots, of (knot, share), where these do not change on straight lines
        self.curve: Any = None
        #: what answers, if the controller of the run is differentiated (``gradients.controller.Controller``)
        self.controller: Any = None
        self.held = np.zeros_like(change.target[0])
        self.tangent = Recording(*(np.zeros((knots, *array.shape[1:])) for array in recording))
        self.orientation = np.zeros((knots, engine.sizes[0], 3))
        self.rows = np.arange(6) < self.model.joints["rows"][:, None]
        #: tangents of what contacts exert at the knots on bodies and along directions
        self.felt = np.zeros((knots, engine.sizes[0], 6)), np.zeros((knots, engine.sizes[1], 6))

    #: tangents of what lasts of the step before, on bodies and along directions
    lasting: tuple[Any, Any] = (0.0, 0.0)

    #: how far differences reach, as part of the usual
    reach: float = 1.0

    def weigh_forces(self, weights: Any, drive_weight: float | None) -> None:
        """The norm in which forces of redundant rows are least."""
        self.weights, self.drive_weight = weights, self.engine.drive_weight if drive_weight is None else drive_weight

    def difference(self, function: Any, size: float) -> np.ndarray:
        """Sixth-order difference of a function of (offset times a step, model), along the state's tangent and along the model's."""
        total = self.along(function, size) if size > 0.0 else np.zeros(())
        for (_, weight), model in zip(OFFSETS, self.models):
            total = total + weight / self.step * function(0.0, model)
        return np.asarray(total)

    def along(self, function: Any, size: float) -> np.ndarray:
        """``difference`` along the state's tangent alone."""
        step = self.reach * STEP / max(size, 1e-300)
        return np.asarray(sum(weight / step * function(offset * step, self.model) for offset, weight in OFFSETS))

    def rates_at(self, model: Model, position: np.ndarray, orientation: np.ndarray, coordinate: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """(joints, 6) rates along the free directions of a model at a pose with velocities (n, 6)."""
        placement = Placement(self.mechanism, model, self.engine.reading.work)
        placement.put(position, orientation, coordinate)
        rates = np.zeros((len(model.joints), 6))
        joint_rates(model, placement.work, np.concatenate([velocity, np.zeros((1, 6))]), rates)
        return rates

    def speeds(self, momentum: np.ndarray) -> np.ndarray:
        """(n, 6) velocities of momenta."""
        fixed = self.model.bodies[:-1]
        spin = np.einsum("nij,nj->ni", fixed["inertia_inverse"].reshape(-1, 3, 3), momentum[:, 3:])
        return np.concatenate([momentum[:, :3] / fixed["mass"][:, None], spin], axis=1)

    def momenta_at_start(self, pose: np.ndarray, velocity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tangents of momenta (n, 6) and of those of reflected inertias (joints, 6) at the start, from those of pose and velocities."""
        bodies, joints, _ = self.engine.sizes
        start, first = self.recording, self.coordinates[0]
        speeds = self.speeds(start.momentum[0])

        def momenta(step: float, model: Model) -> np.ndarray:
            moved = speeds + step * velocity
            spin = np.einsum("nij,nj->ni", model.bodies["inertia"][:-1].reshape(-1, 3, 3), moved[:, 3:])
            rates = self.rates_at(model, start.position[0] + step * pose[:, :3], turned(start.orientation[0], step * pose[:, 3:]), first, moved)
            momentum = np.concatenate([model.bodies["mass"][:-1, None] * moved[:, :3], spin], axis=1)
            return np.concatenate([momentum.ravel(), (model.joints["armature"] * rates).ravel()])

        size = max(np.abs(pose).max(initial=0.0), 0.1 * np.abs(velocity).max(initial=0.0))
        found = self.difference(momenta, size) * np.ones(6 * bodies + 6 * joints)
        return found[: 6 * bodies].reshape(-1, 6), found[6 * bodies :].reshape(-1, 6)

    # ---- the linear system of a step

    @property
    def graph(self) -> Graph:
        """The graph that a step is differentiated on."""
        return self.engine.graph

    #: indices of the solver's nodes of contacts and limits that are part of a step
    touching: np.ndarray = np.zeros(0, int)

    def solve(
        self, bodies: np.ndarray, joints: np.ndarray, couplings: np.ndarray, touching: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The factored matrix of the work against right-hand sides (n, k), (joints, 6), (couplings,), (contacts, 3)."""
        work, width = self.graph.work, bodies.shape[1]
        vector = work.vector["v"]
        held = self.model.joints["rows"] > 0
        nodes, rows, ties = work.bodies["node"][:-1], work.joints["node"], work.couplings["node"]
        vector[nodes, :width] = bodies
        vector[rows[held], :6] = np.where(self.rows, joints, 0.0)[held]
        vector[ties, 0] = couplings
        vector[self.graph.contacts :, :3] = 0.0
        vector[self.touching, :3] = touching
        solve(work.blocks, work.schedule, work.vector)
        found = np.zeros_like(joints)
        found[held] = np.where(self.rows[held], vector[rows[held], :6], 0.0)
        return vector[nodes, :width].copy(), found, vector[ties, 0].copy(), vector[self.touching, :3].copy()

    # ---- the run

    def segment(self, tape: Tape, first: int, last: int) -> None:
        """Go on from knot ``first`` to knot ``last``; ``tape.steps`` count knots from ``first``."""
        for index, step in enumerate(tape.steps):
            if self.controller is not None and step.start == 0.0:
                self._control(first + step.knot)
            self.advance(tape, index, step, first + step.knot)
            if step.start + step.length > 1.0 - 1e-12:
                self.note(first + step.knot + 1)

    def _control(self, knot: int) -> None:
        """Add the tangent of what a controller answers at a knot to those of the inputs of the step that begins there."""
        controller, change, recording = self.controller, self.change, self.recording
        before, rates = controller.felt(knot), controller.target_rates(knot)
        one = Recording(*(array[knot : knot + 1].copy() for array in recording))
        tangent = Recording(*(array[knot : knot + 1] for array in self.tangent))
        turning, moving = self.orientation[knot : knot + 1], self.momentum_at(knot)

        def values(step: float, model: Model) -> dict[str, np.ndarray]:
            momentum = moving(step, model)
            beside = one._replace(
                position=one.position + step * tangent.position, orientation=turned(one.orientation, step * turning), momentum=momentum[None],
                spin=one.spin + step * tangent.spin,
            )
            inputs = before
            if knot > 0:
                inputs = Inputs(
                    before.wrench + step * (change.wrench[knot - 1] + self.lasting[0]), before.joint + step * (change.joint[knot - 1] + self.lasting[1]),
                    before.target + step * change.target[knot], before.stage, before.tension + step * change.tension[knot - 1],
                )
            return self.engine.seen(beside, inputs, rates, self.coordinates[knot], model)

        sizes = [np.abs(part).max(initial=0.0) for part in (tangent.position, turning)]
        sizes.append(0.1 * np.abs(tangent.momentum).max(initial=0.0) / max(np.abs(one.momentum).max(initial=0.0), 1e-3))
        size = STEP / max(max(sizes), 1e-300) if max(sizes) > 0.0 else 0.0
        total = controller.push(knot, lambda step: values(step, self.model), size, OFFSETS) if size else np.zeros_like(controller.recorded(knot))
        if self.models:
            by = {offset * self.step: model for (offset, _), model in zip(OFFSETS, self.models)}
            total = total + controller.push(knot, lambda step: values(0.0, by.get(step) or self.model), self.step, OFFSETS)
        bodies, joints, couplings = self.engine.sizes
        wrench, joint, tension, target = np.split(total, np.cumsum([6 * bodies, 6 * joints, couplings]))
        change.wrench[knot] += wrench.reshape(-1, 6)
        change.joint[knot] += joint.reshape(-1, 6)
        change.tension[knot] += tension
        gave = controller.ask(knot, controller.seen(knot))[1][-6 * joints :].reshape(-1, 6)
        self.held = np.where(gave, target.reshape(-1, 6), self.held)
        change.target[knot + 1] += self.held

    def momentum_at(self, knot: int) -> Any:
        """A function of (step, model) that gives momenta (n, 6) of a run beside this one at a knot."""
        raise NotImplementedError

    def inputs_of(self, knot: int, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Tangents of wrenches, joint inputs, the targets at a fraction of a step, and tensions."""
        change = self.change
        target = change.target[knot] + share * (change.target[knot + 1] - change.target[knot])
        if self.curve is not None and 1e-12 < share < 1.0 - 1e-12:
            target = self.curve(knot, share)
        return change.wrench[knot], change.joint[knot], target, change.tension[knot]

    def advance(self, tape: Tape, index: int, step: Any, knot: int) -> None:
        """From the tangent of the state before a substep to that after it."""
        raise NotImplementedError

    def note(self, knot: int) -> None:
        """Write the tangent of the state into that of the recording."""
        raise NotImplementedError

    def momentum_beside(self, base: Recording, step: np.ndarray, model: Model) -> np.ndarray:
        """(N, n, 6) recorded momenta of a run beside this one, knot by knot, of another model."""
        return base.momentum + step[:, None, None] * self.tangent.momentum

    def begin(self, pose: np.ndarray, velocity: np.ndarray, target: np.ndarray) -> None:
        """Tangents of the start."""
        raise NotImplementedError

    # ---- what is read

    def outputs(self) -> dict[str, np.ndarray]:
        """Tangents of what a run gives, over its knots."""
        self.turn_felt()
        total = self._differences(self._read)
        total["position"], total["orientation"] = self.tangent.position.copy(), self.orientation.copy()
        total["energy"] = total["kinetic"] + total["potential"]
        return total

    def turn_felt(self) -> None:
        """Make tangents of what contacts exert those of what readings take."""

    def coordinate_tangents(self) -> np.ndarray:
        """(knots, joints, 6) tangents of coordinates."""
        return self._differences(lambda base, step, model: dict(coordinate=self._beside(base, step, model).pose()["coordinate"]))["coordinate"]

    def _differences(self, read: Callable[[Recording, np.ndarray, Model], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Sixth-order differences of what is read of runs beside this one, each knot by steps of its own."""
        base = Recording(*(array[: self.knots].copy() for array in self.recording))
        sizes = [np.abs(t).reshape(self.knots, -1).max(axis=1, initial=0.0) for t in (self.tangent.position, self.orientation)]
        scale = 0.1 * self.dt ** 0.5 / np.maximum(np.abs(base.momentum).reshape(self.knots, -1).max(axis=1, initial=0.0), 1e-3)
        sizes.append(scale * np.abs(self.tangent.momentum).reshape(self.knots, -1).max(axis=1, initial=0.0))
        sizes.append(0.1 * self.dt * self._jerk())
        size = np.max(sizes, axis=0)
        step = np.where(size > 0.0, STEP / np.maximum(size, 1e-300), 1.0)
        total: dict[str, np.ndarray] = {}
        for offset, weight in OFFSETS:
            self._add(total, read(base, offset * step, self.model), weight / step)
        for (_, weight), model in zip(OFFSETS, self.models):
            self._add(total, read(base, np.zeros(self.knots), model), np.full(self.knots, weight / self.step))
        return total

    def _jerk(self) -> np.ndarray:
        """(knots,) how fast, at most, what contacts exert besides would make a body alone speed up, m/s^2 or rad/s^2."""
        fixed, child = self.model.bodies[:-1], self.model.joints["child"]
        wrench, along = self.felt
        linear = np.abs(wrench[:, :, :3]).max(axis=2) / fixed["mass"]
        angular = np.abs(np.einsum("nij,knj->kni", fixed["inertia_inverse"].reshape(-1, 3, 3), wrench[:, :, 3:])).max(axis=2)
        light = fixed["mass"] * np.minimum(fixed["length"], 1.0) ** 2
        parts = linear, angular, np.abs(along).max(axis=2) / light[child]
        return np.max([part.max(axis=1, initial=0.0) for part in parts], axis=0)

    @staticmethod
    def _add(total: dict[str, np.ndarray], values: dict[str, np.ndarray], weight: np.ndarray) -> None:
        for name, value in values.items():
            share = weight.reshape(-1, *[1] * (value.ndim - 1)) * value
            total[name] = total[name] + share if name in total else share

    def _read(self, base: Recording, step: np.ndarray, model: Model) -> dict[str, np.ndarray]:
        """Everything that a run beside this one would give."""
        return self.values_of(self._beside(base, step, model), model)

    def _beside(self, base: Recording, step: np.ndarray, model: Model) -> Any:
        """What reads a run beside this one."""
        def beside(name: str) -> np.ndarray:
            array = getattr(base, name)
            return array + step.reshape(-1, *[1] * (array.ndim - 1)) * getattr(self.tangent, name)

        recording = base._replace(
            orientation=turned(base.orientation, step[:, None, None] * self.orientation),
            momentum=self.momentum_beside(base, step, model),
            **{name: beside(name) for name in ("position", "row_force", "coupling_force", "spin", "step_before", "coordinate", "rate")},
        )
        # inputs are those of the steps that begin at the knots; at the last one, those of the step before
        at = np.minimum(np.arange(self.knots), max(self.knots - 2, 0))
        change, given = self.change, self.given

        def pushed(table: np.ndarray, tangent: np.ndarray, felt: np.ndarray | float = 0.0) -> np.ndarray:
            if not len(table) and not np.any(tangent) and not np.any(felt):
                return table
            whole = np.zeros((self.knots, *tangent.shape[1:]))
            whole[:] = table[np.minimum(np.arange(self.knots), len(table) - 1)] if len(table) else 0.0
            return whole + step.reshape(-1, *[1] * (tangent.ndim - 1)) * (tangent[at] + felt)

        wrench, joint = pushed(given.wrench, change.wrench, self.felt[0]), pushed(given.joint, change.joint, self.felt[1])
        tension = pushed(given.tension, change.tension)
        moved = not np.any(change.target)
        target = given.target[: self.knots] if moved else given.target[: self.knots] + step[:, None, None] * change.target
        inputs = Inputs(wrench, joint, np.ascontiguousarray(target), given.stage, tension)
        reader = self.reader_beside(model, recording, inputs)
        if not moved:
            reader.known = self._prescribed(step)
        return reader

    def reader_beside(self, model: Model, recording: Recording, inputs: Inputs) -> Any:
        """A reader of such a run."""
        return BesideReader(
            self.mechanism, model, self.engine.compliance, recording, inputs, self.dt, self.coordinates[0], self.engine.exact, self.engine.trusted(recording),
            self.engine.reading,
        )

    def values_of(self, reader: Any, model: Model) -> dict[str, np.ndarray]:
        """What a run gives, by name, but for poses."""
        pose, motion = reader.pose(), dict(reader.motion())
        if self.engine.compliance > 0.0 or self.weights is not None:
            motion |= reader.share(motion["rate"], self.weights, self.drive_weight, np.arange(self.knots))
        fixed = model.bodies[:-1]
        v, w = motion["velocity"], motion["angular_velocity"]
        kinetic = 0.5 * np.einsum("b,nbi,nbi->n", fixed["mass"], v, v) + 0.5 * np.einsum("nbi,bij,nbj->n", w, fixed["inertia"].reshape(-1, 3, 3), w)
        kinetic = kinetic + 0.5 * np.einsum("jd,njd->n", model.joints["armature"], motion["rate"] ** 2)
        return dict(
            velocity=v, angular_velocity=w, rate=motion["rate"], force=motion["force"], torque=motion["torque"], kinetic=kinetic,
            coordinate=pose["coordinate"], potential=pose["potential"],
        )

    def _prescribed(self, step: np.ndarray) -> np.ndarray:
        """Rates and accelerations of driven directions beside those of the run: differences of targets are linear in these."""
        def of(target: np.ndarray) -> np.ndarray:
            inputs = self.given._replace(target=np.ascontiguousarray(target))
            return self.engine._reader(Recording(*(array[: self.knots] for array in self.recording)), inputs, self.dt, self.coordinates[0]).prescribed()

        base = of(self.given.target[: self.knots])
        slope = (of(self.given.target[: self.knots] + 1e-3 * self.change.target) - of(self.given.target[: self.knots] - 1e-3 * self.change.target)) / 2e-3
        return base + step[:, None, None] * slope


class VelocityForward(MaximalForward):
    """Of formulations that record momenta of velocities at the knots: ``velocity`` (N, n, 6) are their tangents."""

    velocity: np.ndarray

    def speeds(self, momentum: np.ndarray) -> np.ndarray:
        """Velocities (..., n, 6) of momenta."""
        fixed = self.model.bodies[:-1]
        spin = np.einsum("...nij,...nj->...ni", fixed["inertia_inverse"].reshape(-1, 3, 3), momentum[..., 3:])
        return np.concatenate([momentum[..., :3] / fixed["mass"][:, None], spin], axis=-1)

    def momentum_beside(self, base: Recording, step: np.ndarray, model: Model) -> np.ndarray:
        moving = self.speeds(base.momentum) + step[:, None, None] * self.velocity
        spin = np.einsum("nij,knj->kni", model.bodies["inertia"][:-1].reshape(-1, 3, 3), moving[..., 3:])
        return np.concatenate([model.bodies["mass"][:-1, None] * moving[..., :3], spin], axis=-1)

    def momentum_at(self, knot: int) -> Any:
        def momentum(step: float, model: Model) -> np.ndarray:
            moving = self.speeds(self.recording.momentum[knot]) + step * self.velocity[knot]
            spin = np.einsum("nij,nj->ni", model.bodies["inertia"][:-1].reshape(-1, 3, 3), moving[:, 3:])
            return np.concatenate([model.bodies["mass"][:-1, None] * moving[:, :3], spin], axis=-1)

        return momentum


class BesideReader(Reader):
    """A reader that is told the prescribed motion: each knot of its recording is beside the run by a step of its own."""

    known: np.ndarray | None = None

    def prescribed(self) -> np.ndarray:
        return super().prescribed() if self.known is None else self.known


def check_finite(values: np.ndarray, mechanism: str) -> np.ndarray:
    """Tangents that are numbers, or a GradientError."""
    if not np.all(np.isfinite(values)):
        raise GradientError(f"a step of {mechanism!r} cannot be differentiated: its equations are singular there")
    return values
