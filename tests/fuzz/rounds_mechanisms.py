"""Random mechanisms in every formulation and method, against what must hold and against one another.

What must hold: no error but ``StepFailure``, and that one only where a sixteenth of the step fails too; joints closed; energy that does not rise in
silence; momentum that stays; rates as coordinates change, energies as masses, springs and velocities say, forces as velocities change; and
another formulation's answer, the nearer the smaller the step.
"""
from __future__ import annotations

import time
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from fuzzing import Failure
from mechanisms import Make, Recipe, random_recipe, shrink
from scipy.spatial.transform import Rotation

import dalembert as da

#: methods by how they are asked for; the second of a pair: whether they take limits, friction and contacts
METHODS: tuple[tuple[str, dict[str, Any], bool], ...] = (
    ("Variational", {}, True),
    ("Implicit", {"method": "bdf2"}, True),
    ("Implicit", {"method": "bdf1"}, True),
    ("Implicit", {"method": "sdirk2"}, True),
    ("Implicit", {"method": "pareschi_russo"}, True),
    ("Implicit", {"method": "semi_implicit"}, False),
    ("Reduced", {"method": "bdf2"}, True),
    ("Reduced", {"method": "bdf1"}, True),
    ("Reduced", {"method": "sdirk2"}, True),
    ("Reduced", {"method": "pareschi_russo"}, True),
    ("Reduced", {"method": "linearly_implicit"}, False),
    ("Reduced", {"method": "semi_implicit"}, False),
    ("Reduced", {"method": "rk4"}, False),
    ("Reduced", {"method": "RK45"}, False),
    ("Reduced", {"method": "Radau"}, False),
)
#: those whose rows drift by design, or that a stiff spring throws off at these steps
LOOSE = ("semi_implicit", "rk4", "RK45", "linearly_implicit")
#: whose velocities are of first order, with rows at least
FIRST = ("bdf1", "semi_implicit", "linearly_implicit", "sdirk2", "pareschi_russo")
#: that say themselves that a step is too long for them
EXPLICIT = ("semi_implicit", "rk4", "RK45")
#: m or rad, by which joints may be open
OPEN = 1e-7
#: what misses its bar with fewer steps is looked at with an eighth of the step
FINE = 1500
#: seconds that a run may take
LONG = 60.0
#: how runs ended that did not come to their end, by cause
TALLY: Counter[str] = Counter()


#: causes of failures that hold at every step, as the error says them
NAMED = ("no rigid motion exists", "can jam", "neither overlap nor pass")
#: whether failures that hold at a sixteenth of the step pass without such a cause; they are counted
UNNAMED = False


def cause(failure: da.StepFailure) -> str:
    """What an error says of its cause, in short."""
    said = str(failure)
    return next((words for words in NAMED if words in said), said.split(":")[-1].split(";")[0].strip()[:50])


def method_of(recipe: Recipe) -> str:
    return dict(recipe.method.arguments).get("method", "variational")


def run(recipe: Recipe) -> tuple[da.Simulation, da.Trajectory, list[str]]:
    """The run of a recipe and the warnings it gave."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        sim = recipe.simulation()
        trajectory = sim.run(recipe.steps * recipe.dt, progress=False)
    return sim, trajectory, [type(warning.message).__name__ for warning in said]


def rerun(recipe: Recipe) -> da.Trajectory:
    """The run of a recipe alone."""
    return run(recipe)[1]


def examine(recipe: Recipe) -> str | None:
    """What is wrong with a run, or nothing. Begins with the kind of failure."""
    begun = time.monotonic()
    try:
        sim, trajectory, said = run(recipe)
    except da.StepFailure as failure:
        if method_of(recipe) in EXPLICIT and any(word in str(failure) for word in ("an implicit method", "beyond")):
            return None
        try:
            run(recipe.with_dt(recipe.dt / 16.0, 16 * recipe.steps))
        except da.StepFailure as again:
            TALLY[cause(again)] += 1
            return None if cause(again) in NAMED or UNNAMED else f"cause: {again}"
        return f"step: {failure}"
    except da.AssemblyError as error:
        return None if {"loops", "shaped"} & recipe.flags else f"error: {type(error).__name__}: {error}"  # no pose or rates in a loop
    except da.OverlapError as error:
        return None if "touching" in recipe.flags else f"error: {type(error).__name__}: {error}"  # nor one that brings bodies apart
    except Exception as error:
        return f"error: {type(error).__name__}: {error}"
    if time.monotonic() - begun > LONG:  # a first run may have waited for kernels
        begun = time.monotonic()
        run(recipe)
        if time.monotonic() - begun > LONG:
            return f"hang: {time.monotonic() - begun:.0f} s"
    for check in (check_numbers, check_joints, check_energy, check_momentum, check_rates, check_energies, check_forces):
        found = check(recipe, sim.mechanism, trajectory, said)
        if found is not None:
            return f"{check.__name__.removeprefix('check_')}: {found}"
    return None


def check_numbers(recipe: Recipe, mechanism: da.Mechanism, run: da.Trajectory, said: list[str]) -> str | None:
    run.complete()
    for name in ("position", "orientation", "velocity", "angular_velocity"):
        if not np.isfinite(getattr(run, name)).all():
            return f"{name} is not finite"
    for joint in run.joints:
        series = run.joint(joint)
        for name in ("coordinates", "rates", "force", "torque", "actuation"):
            if not np.isfinite(getattr(series, name)).all():
                return f"{name} of {joint!r} are not finite"
    return None


def check_joints(recipe: Recipe, mechanism: da.Mechanism, run: da.Trajectory, said: list[str]) -> str | None:
    worst = float(run.constraint_violation().max(initial=0.0))
    allowed = OPEN
    turn = recipe.dt * float(np.abs(run.velocity).max() + np.abs(run.angular_velocity).max())
    if recipe.method.name == "Implicit" and method_of(recipe) == "semi_implicit":
        allowed += 5.0 * turn**2  # what a step opens, half of the turn squared, and its pull closes by a fifth
    elif method_of(recipe) == "pareschi_russo":
        # rows are met by its stages, and open by its error: a tenth of the square of the step times their acceleration, that of a target too
        change = max(float(np.abs(np.diff(values, axis=0)).max(initial=0.0)) for values in (run.velocity, run.angular_velocity))
        allowed += turn**2 + 0.25 * recipe.dt * change
    if worst > allowed:
        return f"open by {worst:.3g}, allowed {allowed:.3g}"
    return None


def check_energy(recipe: Recipe, mechanism: da.Mechanism, run: da.Trajectory, said: list[str]) -> str | None:
    """Nothing gains energy without a word."""
    if recipe.flags & {"driven", "force", "pushed"} or "EnergyWarning" in said:
        return None
    energy = run.energy()
    total, moves = energy.total - energy.total[0], max(float(np.ptp(energy.kinetic)), float(np.ptp(energy.potential)), float(energy.kinetic.max()))
    if total.max() > 0.12 * moves and total.max() > 1e-5 * mechanism.mass:
        return f"rose by {total.max():.3g} J of {moves:.3g} J in silence"
    return None


def check_momentum(recipe: Recipe, mechanism: da.Mechanism, run: da.Trajectory, said: list[str]) -> str | None:
    """Where nothing hangs on the world and nothing pulls, the momentum stays, by symplectic steps."""
    free = recipe.gravity == (0.0, 0.0, 0.0) and not (recipe.flags & {"pushed", "touching", "force"})
    on_world = any("world" in map(str, call.arguments) or "'world'" in repr(call.arguments) or call.method == "drag" for call in recipe.build)
    if not free or on_world:
        return None
    momentum = run.momentum()
    size = float(np.sum(run.mass[:, None] * np.abs(run.velocity).max(axis=0))) + 1e-9
    drift = float(np.abs(momentum.linear - momentum.linear[0]).max())
    if drift > 1e-6 * size and recipe.method.name in ("Variational", "Implicit") and method_of(recipe) not in LOOSE:
        return f"linear momentum changed by {drift:.3g} of {size:.3g} N s"
    if recipe.method.name == "Variational":
        turn = float(np.abs(momentum.angular - momentum.angular[0]).max())
        if turn > 1e-6 * (size + np.abs(momentum.angular).max()):
            return f"angular momentum changed by {turn:.3g} N m s"
    return None


def check_rates(recipe: Recipe, mechanism: da.Mechanism, run: da.Trajectory, said: list[str], before: float = np.inf) -> str | None:
    """Rates lie among the differences of the coordinates around them, but for as much as those differ; if not, then with an eighth of the step, or
    they miss them by less than a third of what they missed them ``before``."""
    if len(run) < 8 or method_of(recipe) in ("RK45", "Radau") or (recipe.method.name == "Implicit" and method_of(recipe) == "semi_implicit"):
        return None
    speed = float(np.abs(run.velocity).max() + np.abs(run.angular_velocity).max())
    slack = 1e-5 * speed + (0.5 if method_of(recipe) in FIRST else 0.1) * recipe.dt * speed**2 + 1e-7  # of coordinates in frames that turn
    # a knot at which something strikes has the mean of the velocities around the blow
    blow = np.concatenate([np.abs(np.diff(values, axis=0)).max(axis=(1, 2))[:, None] for values in (run.velocity, run.angular_velocity)], axis=1).sum(axis=1)
    slack = slack + (0.01 * np.maximum(blow[1:-2], blow[2:-1]) if "touching" in recipe.flags else 0.0)
    for element in mechanism.joints:
        series = run.joint(element.name)
        kinds = [kind for kind, _ in element.type.directions]
        coordinates, rates = (np.reshape(values, (len(run), -1)) for values in (series.coordinates, series.rates))
        for i, kind in enumerate(kinds):
            if kind == "ball":
                continue
            d = np.diff(coordinates[:, i]) / recipe.dt
            around = np.stack([d[:-3], d[1:-2], d[2:-1], d[3:]])
            wide = np.ptp(around, axis=0)
            off = np.maximum(around.min(axis=0) - rates[2:-2, i], rates[2:-2, i] - around.max(axis=0))
            excess = off - wide - slack
            if excess.max() > 0.0:
                k = int(excess.argmax())
                if recipe.steps < FINE:  # stiff dampers and springs: what falls away with the step is the error of the method
                    finer = recipe.with_dt(recipe.dt / 8.0, 8 * recipe.steps)
                    with suppress(da.StepFailure):
                        return check_rates(finer, mechanism, rerun(finer), said, float(off[k]))
                    return None
                if off[k] < 0.3 * before:
                    return None
                return f"{element.name!r} direction {i} at knot {k + 2}: {rates[k + 2, i]:.5g}, but coordinates change by {around[:, k]}"
    return None


def check_energies(recipe: Recipe, mechanism: da.Mechanism, run: da.Trajectory, said: list[str]) -> str | None:
    """Against sums over masses, velocities and springs."""
    kinetic = 0.5 * np.sum(run.mass * np.sum(run.velocity**2, axis=2), axis=1)
    kinetic += 0.5 * np.einsum("tni,nij,tnj->t", run.angular_velocity, run.inertia.reshape(-1, 3, 3), run.angular_velocity)
    potential = -np.einsum("n,tnc,c->t", run.mass, run.position, np.array(recipe.gravity))
    for element in mechanism.joints:
        series, type = run.joint(element.name), element.type
        coordinates, rates = (np.reshape(values, (len(run), type.freedom)) for values in (series.coordinates, series.rates))
        kinetic += 0.5 * np.sum(np.array(type.armature) * rates**2, axis=1)
        if any(kind == "ball" and k > 0.0 for (kind, _), k in zip(type.directions, np.ravel(type.stiffness))):
            return None
        potential += 0.5 * np.sum(np.array(type.stiffness) * (coordinates - np.array(type.rest)) ** 2, axis=1)
    for path in mechanism.paths:
        stretch = run.path(path.name).length - path.rest
        potential += 0.5 * path.stiffness * (np.maximum(stretch, 0.0) if path.pulls else stretch) ** 2
    if mechanism.wrenches:
        return None
    energy = run.energy()
    size = float(np.abs(kinetic).max() + np.ptp(potential) + 1e-9 * np.abs(potential).max()) + 1e-9 * mechanism.mass
    for name, mine, theirs in (("kinetic", kinetic, energy.kinetic), ("potential", potential - potential[0], energy.potential - energy.potential[0])):
        off = float(np.abs(mine - theirs).max())
        if off > 1e-6 * size:
            return f"{name} is off by {off:.3g} of {size:.3g} J"
    return None


def check_forces(recipe: Recipe, mechanism: da.Mechanism, run: da.Trajectory, said: list[str], before: float = np.inf) -> str | None:
    """What joints exert and gravity change the momentum of each body, but for as much as forces change from knot to knot; if not, then with an
    eighth of the step, or less than a third of what was missing ``before``: ``Reduced`` follows joint coordinates and not centres of mass, and stiff dampers act within a step."""
    drifts = recipe.method.name == "Implicit" and method_of(recipe) in LOOSE
    if mechanism.paths or mechanism.drags or mechanism.wrenches or mechanism.couplings or "touching" in recipe.flags or len(run) < 8 or drifts:
        return None
    force = run.mass[:, None] * np.array(recipe.gravity) + np.zeros_like(run.velocity)
    load = np.abs(force).sum(axis=2)
    for element in mechanism.joints:
        parent = np.eye(3) if element.parent.index < 0 else Rotation.from_quat(run.orientation[:, element.parent.index], scalar_first=True).as_matrix()
        world = np.einsum("...ij,tj->ti" if parent.ndim == 2 else "tij,tj->ti", parent @ element.frame_parent, run.joint(element.name).force)
        for index, sign in ((element.child.index, 1.0), (element.parent.index, -1.0)):
            if index >= 0:
                force[:, index] += sign * world
                load[:, index] += np.abs(world).sum(axis=1)
    change = run.mass[:, None] * (run.velocity[4:-2] - run.velocity[2:-4]) / (2.0 * recipe.dt)
    here = force[3:-3]
    wide = sum(np.abs(force[3 + s : len(force) - 3 + s] - here).sum(axis=2) for s in (-3, -2, -1, 1, 2, 3))
    speed = float(np.abs(run.velocity).max() + np.abs(run.angular_velocity).max())
    slack = 1e-6 + 1e-9 * run.mass / recipe.dt + run.mass * recipe.dt * speed**3 * (2.0 if method_of(recipe) in FIRST else 0.2)  # rounding; what frames that turn cost a step
    excess = np.abs(change - here).sum(axis=2) - 2.0 * wide - 0.02 * load[3:-3] - slack
    if excess.max(initial=-1.0) > 0.0:
        k, body = np.unravel_index(int(excess.argmax()), excess.shape)
        off = float(np.abs(change - here).sum(axis=2)[k, body])
        if recipe.steps < FINE:
            finer = recipe.with_dt(recipe.dt / 8.0, 8 * recipe.steps)
            with suppress(da.StepFailure):
                return check_forces(finer, mechanism, rerun(finer), said, off)
            return None
        if off < 0.3 * before:
            return None
        return f"on {run.bodies[body]!r} at knot {k + 3}: {here[k, body]} N, but the momentum changes by {change[k, body]} N"
    return None


def check_agreement(recipe: Recipe) -> str | None:
    """Another formulation comes to the same poses, and nearer with a smaller step."""
    other = Make("Reduced", (("dt", recipe.dt), ("method", "bdf2"))) if recipe.method.name == "Variational" else Make("Variational", (("dt", recipe.dt),))

    def apart(parts: int) -> float:
        fine = recipe.with_dt(recipe.dt / parts, parts * recipe.steps)
        twin = Recipe(fine.build, fine.begin, Make(other.name, tuple({**dict(other.arguments), "dt": fine.dt}.items())), fine.steps, fine.gravity, fine.flags)
        one, two = run(fine)[1], run(twin)[1]
        way = np.abs(one.position - one.position[0]).max() + 1e-9
        return float(np.abs(one.position[::parts] - two.position[::parts]).max() / way)

    try:
        first = apart(1)
        if first < 0.02:
            return None
        second = apart(4)
        if second < 0.02 or second < 0.6 * first:
            return None
        third = apart(16)
        if third < max(0.02, 0.5 * second):
            return None
        fourth = apart(64)
    except da.StepFailure:
        return None
    if fourth < max(0.02, 0.5 * third):
        return None
    return f"apart by {first:.3g}, {second:.3g}, {third:.3g}, {fourth:.3g} of the way with dt, dt/4, dt/16, dt/64 from {other!r}"


def judge(recipe: Recipe, agreement: bool) -> str | None:
    found = examine(recipe)
    if found is None and agreement and "touching" not in recipe.flags and method_of(recipe) not in LOOSE:
        found = check_agreement(recipe)
        found = None if found is None else f"agreement: {found}"
    return found


def mechanisms(rng: np.random.Generator, place: Path, trial: int) -> None:
    """One random mechanism in one method; every fifth also in another."""
    name, options, touching = METHODS[trial % len(METHODS)]
    recipe = random_recipe(rng, name, options, touching=touching and bool(rng.random() < 0.6))
    agreement = bool(rng.random() < 0.2)
    found = judge(recipe, agreement)
    if found is None:
        return
    kind = found.split(":")[0]

    def fails(smaller: Recipe) -> bool:
        try:
            said = judge(smaller, agreement)
        except Exception:
            return False
        return said is not None and said.split(":")[0] == kind

    small = shrink(recipe, fails)
    raise Failure(judge(small, agreement) or found, small.program())


def warm(place: Path) -> None:
    """Compile what the methods need, so that no run waits for it."""
    for name, options, touching in METHODS:
        for flag in {False, touching}:
            with suppress(da.DalembertError):
                run(random_recipe(np.random.default_rng(0), name, options, touching=flag, steps=2))


def told() -> str:
    """How many runs did not come to their end for a cause that holds at a sixteenth of the step, by cause."""
    return ", ".join(f"{count} without a solution ({cause})" for cause, count in TALLY.items())


ROUNDS = {"random mechanism": mechanisms}
