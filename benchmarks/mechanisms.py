"""Milliseconds per step of the examples of Quaternion table 6 at its steps, general and kinematic solver, beside the paper's; and of linkages."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import dalembert as da
from benchmarks.comparison.problems import PROBLEMS
from dalembert import zoo
from dalembert.simulation.simulation import Control

#: milliseconds per step: general, and for fully constrained systems
PAPER = {
    "T-handle": "0.037", "spinning top": "0.045", "Hoberman sphere": "1138", "satellite": "7.75",
    "figure": "26.89 and 4.19, 6.4 times", "walker": "3.55 and 0.84, 4.2 times", "walker, force drives": "6.11",
}


def step_milliseconds(
    mechanism: da.Mechanism, formulation, steps: int, motion: Mapping[str, Callable] | None = None, control: Control | None = None,
) -> float:
    """Processor time per step, in the second of two runs, without what targets and controllers in Python take."""
    sim = da.Simulation(mechanism, formulation)
    for name, target in (motion or {}).items():
        sim.set_target(name, target)
    engine: Any = sim._engine
    run, spent = engine.run, []

    def timed(*arguments) -> int:
        tick = time.thread_time()
        done = run(*arguments)
        spent.append(time.thread_time() - tick)
        return done

    engine.run = timed
    sim.run(20 * formulation.dt, control=control)
    spent.clear()
    sim.run(steps * formulation.dt, control=control)
    return sum(spent) / steps * 1e3


def both_solvers(mechanism: da.Mechanism, dt: float, steps: int, motion: Mapping[str, Callable]) -> tuple[float, float]:
    """General and kinematic, each the least of four runs in turn."""
    runs = [[step_milliseconds(mechanism, da.Implicit(dt=dt, solver=s), steps, motion) for s in ("general", "kinematic")] for _ in range(4)]
    general, fast = np.min(runs, axis=0)
    return float(general), float(fast)


def replay(dt: float, duration: float) -> Control:
    """Torques that drive the walker's dance, with a PD correction."""
    motion = zoo.walker_motion()
    sim = da.Simulation(zoo.walker_legs(), da.Implicit(dt=dt))
    for name, target in motion.items():
        sim.set_target(name, target)
    dance = sim.run(duration + dt)
    drives = {name: (dance.joint(name), 4e4 if "knee" in name else 400.0) for name in motion}

    def control(sim: da.Simulation) -> dict[str, float]:
        k = round(sim.time / dt)
        return {
            name: ref.actuation[k + 1] + gain * (ref.coordinates[k] - sim.coordinates(name)[0] + 0.05 * (ref.rates[k] - sim.rates(name)[0]))
            for name, (ref, gain) in drives.items()
        }

    return control


def main() -> list[dict]:
    """Rows: what, figure, bar."""
    rows: list[dict] = []
    for name, mechanism, dt, steps in (("T-handle", zoo.t_handle(), 1e-3, 10_000), ("spinning top", zoo.spinning_top(), 1e-4, 10_000)):
        spent = step_milliseconds(mechanism, da.Implicit(dt=dt), steps)
        rows.append(dict(what=name, figure=f"{spent:.4f} ms", bar=f"paper {PAPER[name]}", met=True))
    for name in ("five-bar", "four-bar chain 16"):
        problem = PROBLEMS[name]
        for formulation in (da.Variational(dt=problem.dt), da.Implicit(dt=problem.dt)):
            spent = step_milliseconds(problem.make(), formulation, problem.steps)
            rows.append(dict(what=f"{name}, {type(formulation).__name__}", figure=f"{1e3 * spent:.1f} us", bar="", met=True))
    sphere = zoo.hoberman_sphere(opening=1.1, spin=3.0)
    for name, formulation, bar in (("Variational", da.Variational(dt=0.01), 100.0), ("BDF2", da.Implicit(dt=0.01), 113.8)):
        spent = step_milliseconds(sphere, formulation, 400)
        rows.append(dict(what=f"Hoberman sphere, {name}, 4 s", figure=f"{spent:.1f} ms", bar=f"at most {bar:g}; paper {PAPER['Hoberman sphere']}", met=spent < bar))
    tick = time.perf_counter()
    da.Simulation(sphere, da.Variational(dt=0.01)).redundancy()
    spent = time.perf_counter() - tick
    rows.append(dict(what="Hoberman sphere, start and redundancy of 1980 rows", figure=f"{spent:.2f} s", bar="a few seconds", met=spent < 5.0))
    spent = step_milliseconds(zoo.solar_panel_satellite(), da.Implicit(dt=0.033), 300, zoo.deployment())
    rows.append(dict(what="satellite", figure=f"{spent:.2f} ms", bar=f"paper {PAPER['satellite']}", met=True))
    for name, mechanism, dt, motion in (
        ("figure", zoo.animatronic_figure(), 0.033, zoo.figure_motion()), ("figure", zoo.animatronic_figure(), 0.01, zoo.figure_motion()),
        ("walker", zoo.walker_legs(), 0.01, zoo.walker_motion()),
    ):
        general, fast = both_solvers(mechanism, dt, 300, motion)
        rows.append(dict(what=f"{name}, {dt:g} s, general and kinematic", figure=f"{general:.2f} and {fast:.3f} ms, {general / fast:.1f} times",
                         bar=f"3 times; paper {PAPER[name]}", met=general > 3 * fast))
    spent = step_milliseconds(zoo.walker_legs(drive="force"), da.Implicit(dt=0.01), 300, control=replay(0.01, 3.2))
    rows.append(dict(what="walker, force drives", figure=f"{spent:.2f} ms", bar=f"paper {PAPER['walker, force drives']}", met=True))
    return rows


if __name__ == "__main__":
    for row in main():
        print(row)
