"""Forces of the implicit methods at every knot, whatever stages, starts, changes of the step or divided steps made it."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dalembert as da
from dalembert import zoo

#: order of the velocities on index-3 problems
ORDERS = {"bdf1": 1.0, "bdf2": 2.0, "sdirk2": 1.0, "pareschi_russo": 1.0, "semi_implicit": 1.0}


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


CASES: dict[str, tuple[Callable[[], da.Mechanism], dict[str, Callable], float, float]] = {
    # machine, targets, largest step, duration
    "pendulum": (zoo.pendulum, {}, 4e-3, 0.4),
    "driven four-bar": (driven_four_bar, {"motor": turn}, 0.01, 0.4),
    "heavy top": (zoo.heavy_top, {}, 1e-4, 0.01),
    "squeezer": (zoo.andrews_squeezer, {}, 4e-5, 0.004),
}
FINE = 40


def forces(name: str, formulation) -> np.ndarray:
    """(knots, joints, 3)"""
    make, targets, _, duration = CASES[name]
    sim = da.Simulation(make(), formulation)
    for joint, target in targets.items():
        sim.set_target(joint, target)
    trajectory = sim.run(duration)
    return np.stack([trajectory.joint(j).force for j in trajectory.joints], axis=1)


@pytest.fixture(scope="module")
def exact() -> dict[str, np.ndarray]:
    """Of the variational integrator with a fraction of the largest step."""
    return {name: forces(name, da.Variational(dt=dt / FINE, tolerance=1e-12)) for name, (_, _, dt, _) in CASES.items()}


@pytest.mark.parametrize("method", ORDERS)
@pytest.mark.parametrize("name", CASES)
def test_forces_converge_at_every_knot(exact, name, method):
    dt, errors = CASES[name][2], []
    for parts in (1, 2, 4):
        found = forces(name, da.Implicit(dt=dt / parts, method=method, tolerance=1e-11))
        errors.append(np.abs(found - exact[name][:: FINE // parts]).max(axis=(1, 2)))
    print(name, method, ["%.3g"%e.max() for e in errors], [e.argmax() for e in errors], [np.array2string(e[:5],precision=2) for e in errors], np.abs(exact[name]).max())
