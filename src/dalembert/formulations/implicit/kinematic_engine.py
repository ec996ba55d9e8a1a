"""What steps a fully constrained mechanism: poses from the drives, then velocities, then forces."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dalembert.errors import StepFailure
from dalembert.formulations.derivatives import Adjoint, Cotangents, Forward, InputBars
from dalembert.formulations.engine import Inputs, KernelCall, Source
from dalembert.formulations.implicit.engine import ImplicitEngine
from dalembert.formulations.implicit.kinematic import (
    ORDERS,
    PATH,
    KinematicScratch,
    KinematicState,
    Normal,
    extend_path,
    run_steps,
)
from dalembert.formulations.implicit.options import Implicit
from dalembert.formulations.implicit.state import ImplicitState
from dalembert.formulations.implicit.step import bdf_gamma
from dalembert.formulations.maximal import examples
from dalembert.formulations.maximal.reading import Reader
from dalembert.formulations.maximal.recording import Recording
from dalembert.linalg import WIDTH, analyse
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.placement import Placement
from dalembert.model.records import Model
from dalembert.model.redundancy import analyse_redundancy
from dalembert.solvers.outcomes import SINGULAR


@dataclass
class SharingReader(Reader):
    """Shares out the forces that no step recorded as the steps do theirs: drives against joints by ``drive_weight``."""

    drive_weight: float = 1.0

    def motion(self) -> Mapping[str, np.ndarray]:
        series = dict(super().motion())
        knots = np.flatnonzero(~self.trusted)
        for name, values in self.share(series["rate"], None, self.drive_weight, knots).items():
            series[name][knots] = values
        return series


class KinematicEngine(ImplicitEngine):
    """A fully constrained mechanism. With solver "auto" it takes the general step where the rows hardly hold a body."""

    state_type = KinematicState
    lingers = False
    jobs = staticmethod(examples.reading)
    def __init__(self, mechanism: Mechanism, options: Implicit) -> None:
        super().__init__(mechanism, options)
        self.freedom = analyse_redundancy(Placement.of(mechanism, self.model)).freedom
        self.scratch = KinematicScratch(self.own, self._normal())

    def _normal(self) -> Normal:
        """Rows' weights and the graph of the bodies."""
        world, joints = self.sizes[0], self.model.joints
        pairs = [(int(j["parent"]), int(j["child"])) for j in joints]
        structure = analyse([6] * world, np.array([p for p in pairs if world not in p], dtype=np.int64).reshape(-1, 2))
        between = [[-1, -1] if world in (a, b) else [structure.block(a, b), structure.block(b, a)] for a, b in pairs]
        return Normal(
            soft=np.where(joints["row_direction"] >= 0, 1.0 / self.options.drive_weight, 1.0),
            blocks=structure.new_blocks(), schedule=structure.schedule, vector=structure.new_vector(), diagonal=structure.diagonal,
            between=np.array(between), pulled=np.zeros((len(joints), 6)), sizes=np.zeros((ORDERS + 1, WIDTH)),
        )

    @property
    def applies(self) -> bool:
        """True when the drives determine the pose."""
        return self.freedom == 0 and len(self.model.couplings) == 0

    def _layout(self) -> tuple[tuple[np.dtype, int], ...]:
        bodies, joints, clock = super()._layout()
        return bodies, joints, (PATH, self.sizes[0]), clock

    def _general(self, numbers: np.ndarray) -> ImplicitState:
        state = self.view(numbers)
        return ImplicitState(state.bodies, state.joints, state.clock)

    def _kinematic_arguments(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> Any:
        return self.model, self.view(numbers), inputs, self.step_options, self.graph.work, self.scratch, recording, first, count, dt

    def kernel_call(self, numbers: np.ndarray, recording: Recording, source: Source, count: int, dt: float) -> KernelCall | None:
        return KernelCall(run_steps, self._kinematic_arguments(numbers, recording, source.window(0, count), 0, count, dt), 1)

    def run(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        done = 0
        while True:
            outcome, more, size = self._kinematic_steps(*self._kinematic_arguments(numbers, recording, _from(inputs, done), first + done, count - done, dt))
            done += int(more)
            if outcome != SINGULAR or self.options.solver != "auto" or not self._general_step(numbers, recording, _from(inputs, done), first + done, dt):
                return self._note(numbers, outcome, done, size, inputs, dt)
            done += 1

    def _kinematic_steps(self, *arguments: Any) -> Any:
        if self.tape is None:
            return run_steps(*arguments)
        from dalembert.formulations.implicit.kinematic_tape import tape_steps

        self.tape.reserve(arguments[-2])
        outcome, done, size = tape_steps(*arguments, *self.tape.place)
        self.tape.count += int(done)
        return outcome, done, size

    @property
    def drive_weight(self) -> float:
        return self.options.drive_weight

    def adjoint(self, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> Adjoint:
        """A backward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.implicit.kinematic_derivative import KinematicAdjoint

        return KinematicAdjoint(self, recording, inputs, knots, dt, coordinates, cotangents)

    def forward(
        self, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Model], step: float,
        change: InputBars,
    ) -> Forward:
        """A forward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.implicit.kinematic_derivative import KinematicForward

        return KinematicForward(self, recording, inputs, knots, dt, coordinates, models, step, change)

    def _general_step(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, knot: int, dt: float) -> bool:
        """One step of the general solver; returns whether it has a solution."""
        if super().run(numbers, recording, inputs, knot, 1, dt) == 0:
            return False
        extend_path(self.view(numbers))
        gamma = bdf_gamma(self.step_options.multistep, dt)
        recording.row_force[knot + 1] = self.graph.work.joints["mu"] / gamma
        return True

    def trusted(self, recording: Recording) -> np.ndarray:
        """Knots of whole steps, beyond the reach of the last start: acceleration there is a difference of two or four steps."""
        knots = np.arange(len(recording.step_before))
        starts = np.where((knots == 0) | (recording.substeps != 1), knots, 0)
        return knots - np.maximum.accumulate(starts) >= 2 * self.step_options.multistep

    def _reader(self, *arguments: Any) -> Reader:
        plain = super()._reader(*arguments)
        given = {f.name: getattr(plain, f.name) for f in fields(plain) if f.init and not f.name.startswith("_")}
        return SharingReader(**given, drive_weight=self.options.drive_weight)

    def failure(self, time: float, dt: float) -> StepFailure:
        """The error for targets that no pose can meet, or none within a step."""
        if self.outcome[0] == SINGULAR:
            reason = "the drives hardly hold it in that pose. Avoid the pose, or use solver='general'."
        else:
            reason = self.unmet() or f"none was found from the pose before{self._moves()}. Use smaller steps or smoother targets."
        return StepFailure(f"the step at t = {time:.6g} s of {self.mechanism.name!r} has no solution: {reason}")


def _from(inputs: Inputs, step: int) -> Inputs:
    """The inputs from a step on."""
    if step == 0:
        return inputs
    stage = inputs.stage[step:] if len(inputs.stage) > step else inputs.stage
    return Inputs(inputs.wrench[step:], inputs.joint[step:], inputs.target[step:], stage, inputs.tension[step:])
