"""A self-test of a mechanism in its formulation: what ``Simulation.check`` runs and says."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import DalembertError, StepFailure
from dalembert.simulation.energy import is_passive
from dalembert.simulation.trajectory import Trajectory

if TYPE_CHECKING:
    from dalembert.simulation.simulation import Simulation

#: m or rad, by which joints may be open
JOINTS = 1e-7
#: rise of the energy that counts as one, as a part of what moves about
ENERGY = 0.02
#: part of the rates' spread around a knot by which rates may miss the differences of coordinates, and of their size
SPREAD, RATES = 1.0, 1e-3
#: relative, of derivatives of a step against differences
DERIVATIVES = 1e-4
#: part of the way that two formulations may be apart; or what a step of half the length must leave of it
APART, HALVED = 1e-3, 0.75


@dataclass(frozen=True)
class CheckLine:
    """One thing that was looked at: ``ok`` is None where there was nothing to compare, and ``found`` says why."""

    name: str
    ok: bool | None
    found: str


@dataclass(frozen=True)
class Check:
    """What a self-test found; ``print`` it."""

    title: str
    lines: tuple[CheckLine, ...]

    @property
    def ok(self) -> bool:
        """True when nothing was wrong."""
        return all(line.ok is not False for line in self.lines)

    def __str__(self) -> str:
        words = {True: "ok", False: "WRONG", None: "-"}
        width = max(len(line.name) for line in self.lines)
        return "\n".join([self.title, *(f"  {words[line.ok]:5}  {line.name:{width}}  {line.found}" for line in self.lines)])


def check_simulation(sim: Simulation, steps: int) -> Check:
    """Run copies of a simulation for so many steps, with whole and with half steps, in its own formulation and in others."""
    name = type(sim.formulation).__name__
    title = f"{sim.mechanism.name!r} in {sim.formulation!r}, {steps} steps from t = {sim.time:.6g} s"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            whole, half = run_copy(sim, sim.formulation, steps, 1), run_copy(sim, sim.formulation, steps, 2)
        except DalembertError as error:
            return Check(title, (CheckLine("steps", False, f"{type(error).__name__}: {error}"),))
        lines = [CheckLine("steps", True, f"{steps} and {2 * steps} of half the length; substeps: {int(whole.substeps.max())} at most")]
        lines += [check_joints(whole), check_energy(sim, whole, half), check_rates(sim, whole), *check_elements(sim), check_derivatives(sim)]
        lines += check_agreement(sim, name, steps, whole, half)
    return Check(title, tuple(lines))


def run_copy(sim: Simulation, formulation: Any, steps: int, parts: int) -> Trajectory:
    """A run from the current knot, with the same targets and inputs, by a formulation with a part of its step."""
    from dalembert.simulation.simulation import Simulation

    copy = Simulation(sim.mechanism, replace(formulation, dt=formulation.dt / parts), energy_bound=None)
    put_at(sim, copy)
    return copy.run(steps * formulation.dt, progress=False)


def put_at(sim: Simulation, other: Simulation) -> None:
    """Let another simulation of the mechanism go on where this one is, with its targets and inputs."""
    other._follow_on(sim)


def check_joints(run: Trajectory) -> CheckLine:
    worst = float(run.constraint_violation().max(initial=0.0))
    return CheckLine("joints", worst < JOINTS, f"open by {worst:.2g} m or rad")


def check_energy(sim: Simulation, whole: Trajectory, half: Trajectory) -> CheckLine:
    """Where nothing puts energy in it must not rise, or only by what goes with the step."""
    if sim.pushed or not is_passive(sim.mechanism):
        return CheckLine("energy", None, "something puts energy in")
    rises = []
    for run in (whole, half):
        energy = run.energy()
        moves = max(float(energy.kinetic.max()), float(np.ptp(energy.potential)), 1e-9 * sim.mechanism.mass)
        rises.append(float((energy.total - energy.total[0]).max()) / moves)
    fine = rises[0] < ENERGY or rises[1] < 0.5 * rises[0]
    return CheckLine("energy", fine, f"rises by {rises[0]:.2g} of what moves about, by {rises[1]:.2g} with half the step")


def check_rates(sim: Simulation, run: Trajectory) -> CheckLine:
    """Rates lie among the differences of the coordinates around them."""
    worst, where = 0.0, ""
    for element in sim.mechanism.joints:
        if not element.type.freedom or len(run) < 6:
            continue
        series = run.joint(element.name)
        coordinates, rates = (np.reshape(values, (len(run), -1)) for values in (series.coordinates, series.rates))
        for i, (kind, _) in enumerate(element.type.directions):
            if kind == "ball":
                continue
            change = np.diff(coordinates[:, i]) / sim.formulation.dt
            around = np.stack([change[:-3], change[1:-2], change[2:-1], change[3:]])
            off = np.maximum(around.min(axis=0) - rates[2:-2, i], rates[2:-2, i] - around.max(axis=0))
            speed = float(np.abs(run.velocity).max() + np.abs(run.angular_velocity).max())
            excess = float((off - SPREAD * np.ptp(around, axis=0)).max()) / (speed * (1.0 + sim.formulation.dt * speed / RATES) + 1e-6)
            if excess > worst:
                worst, where = excess, f" ({element.name!r})"
    return CheckLine("rates", worst < RATES, f"miss the changes of coordinates by {worst:.2g} of the speed{where}")


def check_elements(sim: Simulation) -> list[CheckLine]:
    """Rows and laws, each against differences: those that are wrong by name, the others in one line."""
    from dalembert.gradients.element_check import RIGHT, element_errors

    found = dict(element_errors(sim))
    wrong = [CheckLine(name, False, f"derivatives miss differences by {off:.2g}") for name, off in found.items() if not off < RIGHT]
    right = [off for off in found.values() if off < RIGHT]
    said = f"derivatives of {len(right)} elements, each alone, agree with differences to {max(right, default=0.0):.2g}"
    return [CheckLine("rows and laws", True if right else None, said if right else "there are none"), *wrong]


def check_derivatives(sim: Simulation) -> CheckLine:
    """The derivative of a step by its state, along one direction, against differences of the step."""
    from dalembert.formulations.derivatives import Differentiable

    if not isinstance(sim._engine, Differentiable):
        return CheckLine("derivatives", None, f"{type(sim.formulation).__name__} has none of this mechanism")
    from dalembert.errors import GradientError
    from dalembert.gradients.validate import validate_gradients

    try:
        found = validate_gradients(sim.mechanism, sim.formulation, some_parameters(sim), steps=3, setup=lambda other: put_at(sim, other))
    except (GradientError, StepFailure) as error:
        return CheckLine("derivatives", None, str(error))
    off = max(found.forward_error, found.difference_error)
    names = ", ".join(row.name for row in found.rows)
    return CheckLine("derivatives", off < DERIVATIVES, f"adjoint, forward and differences of three steps by {names} agree to {off:.2g}")


def some_parameters(sim: Simulation) -> list[str]:
    """Gravity, and the first mass, stiffness and damping that are not zero."""
    given, found = sim.parameters(), ["gravity"]
    for ending in (".mass", ".stiffness", ".damping"):
        found += [name for name, parameter in given.items() if name.endswith(ending) and np.any(np.asarray(parameter.value) != 0.0)][:1]
    return found


def others(formulation: Any) -> Iterator[tuple[str, Callable[[float], Any]]]:
    """One method of each other formulation."""
    from dalembert.formulations.implicit import Implicit
    from dalembert.formulations.reduced import Reduced
    from dalembert.formulations.variational import Variational

    for name, make in (
        ("Variational", lambda dt: Variational(dt=dt)), ("Implicit", lambda dt: Implicit(dt=dt)), ("Reduced", lambda dt: Reduced(dt=dt)),
    ):
        if name != type(formulation).__name__:
            yield name, make


def check_agreement(sim: Simulation, name: str, steps: int, whole: Trajectory, half: Trajectory) -> list[CheckLine]:
    """Others come to the same poses, and nearer with half the step."""
    lines = []
    way = float(np.abs(whole.position - whole.position[0]).max()) + 1e-6
    for other, make in others(sim.formulation):
        try:
            twins = [run_copy(sim, make(sim.formulation.dt), steps, parts) for parts in (1, 2)]
        except DalembertError as error:
            lines.append(CheckLine(f"against {other}", None, f"it does not run: {error}"))
            continue
        first = float(np.abs(whole.position - twins[0].position).max()) / way
        second = float(np.abs(half.position[::2] - twins[1].position[::2]).max()) / way
        fine = first < APART or second < max(HALVED * first, APART)
        lines.append(CheckLine(f"against {other}", fine, f"apart by {first:.2g} of the way, by {second:.2g} with half the step"))
    return lines
