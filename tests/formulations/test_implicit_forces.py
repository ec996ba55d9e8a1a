"""Forces of the implicit methods at every knot, whatever stages, starts, changes of the step or divided steps made it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert import zoo


def driven_four_bar() -> da.Mechanism:
    """A motor with a light crank that swings a rocker a million times as heavy."""
    mechanism = da.Mechanism("heavy rocker")
    ends = {"crank": ((0, 0, 0), (0, 0, 0.3), 1.0), "coupler": ((0, 0, 0.3), (1.0, 0, 0.8), 1.0), "rocker": ((1.2, 0, 0), (1.0, 0, 0.8), 1e6)}
    for name, (first, last, mass) in ends.items():
        along = np.subtract(last, first)
        length = float(np.linalg.norm(along))
        angle = np.arctan2(along[0], along[2])
        mechanism.body(
            name, da.Rod(length=length, mass=mass, radius=0.02, axis="z"), position=np.add(first, last) / 2,
            orientation=(np.cos(angle / 2), 0, np.sin(angle / 2), 0),
        )
    mechanism.joint("motor", da.Revolute(axis="y", drive="motion"), mechanism.world, "crank", at=(0, 0, 0))
    mechanism.joint("pin", da.Revolute(axis="y"), "crank", "coupler", at=(0, 0, 0.3))
    mechanism.joint("knuckle", da.Revolute(axis="y"), "rocker", "coupler", at=(1.0, 0, 0.8))
    mechanism.joint("pivot", da.Revolute(axis="y"), mechanism.world, "rocker", at=(1.2, 0, 0))
    return mechanism


def turn(time: float) -> float:
    """From rest, but not from zero acceleration."""
    return 2.0 * time**2 + 0.3 * np.sin(3.0 * time) ** 2


def driven_head() -> da.Mechanism:
    """An off-centre body on a ball joint, with a pendulum on it that moves as it likes."""
    mechanism = da.Mechanism("head")
    mechanism.body("head", da.Ellipsoid(semi_axes=(0.1, 0.12, 0.15), mass=3.0), position=(0, 0, 0.2))
    mechanism.body("lobe", da.Rod(length=0.1, mass=0.5, radius=0.01, axis="z"), position=(0.1, 0, 0.15))
    mechanism.joint("neck", da.Spherical(drive="motion"), mechanism.world, "head", at=(0, 0, 0))
    mechanism.joint("ear", da.Revolute(axis="y"), "head", "lobe", at=(0.1, 0, 0.2))
    return mechanism


def nod(time: float) -> tuple[float, float, float]:
    """A rotation vector about no fixed axis."""
    return 3.0 * time**2, 0.4 * np.sin(4.0 * time) ** 2, -2.0 * time**2


CASES: dict[str, tuple[Callable[[], da.Mechanism], dict[str, Callable], float, float]] = {
    # machine, targets, largest step, duration
    "pendulum": (zoo.pendulum, {}, 4e-3, 0.4),
    "driven four-bar": (driven_four_bar, {"motor": turn}, 0.01, 0.4),
    "driven head": (driven_head, {"neck": nod}, 0.01, 0.4),
    "heavy top": (zoo.heavy_top, {}, 1e-4, 0.01),
    "squeezer": (zoo.andrews_squeezer, {}, 4e-5, 0.004),
}
#: order of the velocities on index-3 problems
METHODS: dict[str, tuple[dict[str, Any], float]] = {
    "bdf1": (dict(method="bdf1"), 1.0), "bdf2": (dict(method="bdf2"), 2.0), "general bdf1": (dict(method="bdf1", solver="general"), 1.0),
    "general bdf2": (dict(method="bdf2", solver="general"), 2.0), "sdirk2": (dict(method="sdirk2"), 1.0),
    "pareschi_russo": (dict(method="pareschi_russo"), 1.0), "semi_implicit": (dict(method="semi_implicit"), 1.0),
}
#: steps of the reference in the largest step, and its error over the largest force
FINE, FLOOR = 40, 5e-6


def prepared(name: str, formulation) -> da.Simulation:
    make, targets, *_ = CASES[name]
    sim = da.Simulation(make(), formulation)
    for joint, target in targets.items():
        sim.set_target(joint, target)
    return sim


def forces(*runs: da.Trajectory) -> np.ndarray:
    """(knots, joints, 3) of runs that follow one another; where they meet, those of the later one."""
    parts = [np.stack([run.joint(j).force for j in run.joints], axis=1) for run in runs]
    return np.concatenate([*(part[:-1] for part in parts[:-1]), parts[-1]])


@pytest.fixture(scope="module")
def exact() -> dict[str, np.ndarray]:
    """Of the variational integrator with a fraction of the largest step."""
    return {
        name: forces(prepared(name, da.Variational(dt=dt / FINE, tolerance=1e-12)).run(duration)) for name, (_, _, dt, duration) in CASES.items()
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CASES)
def test_forces_converge_at_every_knot(exact, name, method):
    """The largest error of all knots, those after the start among them."""
    (options, order), (_, targets, dt, duration) = METHODS[method], CASES[name]
    if method.startswith("general") and not targets:
        pytest.skip("nothing is driven: the solver is the general one anyway")
    errors = []
    for parts in (1, 2, 4):
        found = forces(prepared(name, da.Implicit(dt=dt / parts, tolerance=1e-11, **options)).run(duration))
        errors.append(np.abs(found - exact[name][:: FINE // parts]).max())
    floor = FLOOR * np.abs(exact[name]).max()
    assert errors[0] < 0.02 * np.abs(exact[name]).max()
    assert errors[1] < max(errors[0] / 2 ** (order - 0.2), floor), errors
    assert errors[2] < max(errors[1] / 2 ** (order - 0.2), floor), errors


@pytest.mark.parametrize("method", METHODS)
def test_small_steps(method):
    """At 0.1 ms, where impulses are small and differences of velocities are noise, no knot stands out."""
    runs = [da.Simulation(zoo.pendulum(), f(dt=1e-4)).run(0.02) for f in (da.Variational, lambda dt: da.Implicit(dt=dt, **METHODS[method][0]))]
    np.testing.assert_allclose(forces(runs[1]), forces(runs[0]), atol=3e-4)


@pytest.mark.parametrize(("name", "method", "iterations"), [
    ("pendulum", "bdf1", 2), ("pendulum", "bdf2", 2), ("pendulum", "sdirk2", 2), ("pendulum", "pareschi_russo", 2), ("driven four-bar", "bdf2", 2),
    ("driven four-bar", "general bdf2", 4), ("driven head", "bdf2", 3), ("heavy top", "sdirk2", 2), ("squeezer", "bdf2", 2),
])
def test_divided_steps(exact, name, method, iterations):
    """Steps that are divided, because they may not take more iterations, are followed by a new start of BDF2: no knot is worse for it."""
    _, _, dt, duration = CASES[name]
    whole, divided = (prepared(name, da.Implicit(dt=dt, **METHODS[method][0], **more)).run(duration) for more in ({}, {"max_iterations": iterations}))
    assert divided.substeps.max() > 1
    errors = [np.abs(forces(run) - exact[name][::FINE]).max() for run in (whole, divided)]
    assert errors[1] < 1.3 * errors[0]


@pytest.mark.parametrize("name", ["pendulum", "driven head", "squeezer"])
def test_another_step_in_between(exact, name):
    """BDF2 starts anew where the step changes, and keeps its order in poses and forces."""
    _, _, dt, duration = CASES[name]
    reference = prepared(name, da.Variational(dt=dt / FINE, tolerance=1e-12)).run(duration).position[-1]
    errors = []
    for parts in (1, 2):
        sim = prepared(name, da.Implicit(dt=dt / parts, tolerance=1e-11))
        runs = [sim.run(duration / 4), sim.run(duration / 2, dt=dt / parts / 2), sim.run(duration / 4)]
        knots = np.rint(np.concatenate([*(run.time[:-1] for run in runs[:-1]), runs[-1].time]) / dt * FINE).astype(int)
        errors.append((np.abs(runs[-1].position[-1] - reference).max(), np.abs(forces(*runs) - exact[name][knots]).max()))
    assert np.all(np.log2(np.divide(*errors)) > 1.8), errors


@pytest.mark.parametrize("method", ["bdf1", "bdf2", "general bdf2", "sdirk2"])
def test_runs_of_few_steps(exact, method):
    """Forces of runs of one, two and three steps: what accelerates the drives is told from what is there."""
    name = "driven four-bar"
    dt = CASES[name][2] / 10
    sim = prepared(name, da.Implicit(dt=dt, **METHODS[method][0]))
    sim.run(0.1)
    for steps in (1, 2, 3):
        first = round(sim.time / dt * FINE / 10)
        error = forces(sim.run(steps * dt)) - exact[name][first : first + steps * FINE // 10 + 1 : FINE // 10]
        assert np.abs(error).max() < 0.01 * np.abs(exact[name]).max()
