"""Milliseconds per step of the paper's examples in each formulation, beside the figures of Quaternion table 6."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import dalembert as da
from dalembert import zoo

PAPER = {"Hoberman sphere": "1138", "satellite": "7.75", "walker": "3.55 general, 0.84 kinematic", "figure": "26.89 general, 4.19 kinematic"}


def step_milliseconds(mechanism: da.Mechanism, formulation, steps: int, motion: Mapping[str, Callable] | None = None) -> float:
    """Per step, in the second of two runs, without the time that the targets' own Python functions take."""
    sim = da.Simulation(mechanism, formulation)
    for name, target in (motion or {}).items():
        sim.set_target(name, target)
    sim.run(20 * formulation.dt)
    run, spent = sim._engine.run, []

    def timed(*arguments) -> int:
        tick = time.perf_counter()
        done = run(*arguments)
        spent.append(time.perf_counter() - tick)
        return done

    sim._engine.run = timed
    sim.run(steps * formulation.dt)
    return sum(spent) / steps * 1e3


def main() -> list[dict]:
    """Rows: what, figure, bar."""
    rows: list[dict] = []
    sphere = zoo.hoberman_sphere(opening=1.1, spin=3.0)
    for name, formulation, bar in (("Variational", da.Variational(dt=0.002), 100.0), ("Implicit, BDF2", da.Implicit(dt=0.002), 113.8)):
        spent = step_milliseconds(sphere, formulation, 150)
        rows.append(dict(what=f"Hoberman sphere, {name}", figure=f"{spent:.1f} ms", bar=f"at most {bar:g}; paper {PAPER['Hoberman sphere']}", met=spent < bar))
    spent = step_milliseconds(zoo.solar_panel_satellite(), da.Implicit(dt=0.01), 300, zoo.deployment())
    rows.append(dict(what="satellite, Implicit", figure=f"{spent:.2f} ms", bar=f"paper {PAPER['satellite']}", met=True))
    for name, mechanism, motion in (("walker", zoo.walker_legs(), zoo.walker_motion()), ("figure", zoo.animatronic_figure(), zoo.figure_motion())):
        fast = step_milliseconds(mechanism, da.Implicit(dt=0.01, solver="kinematic"), 300, motion)
        general = step_milliseconds(mechanism, da.Implicit(dt=0.01, solver="general"), 300, motion)
        rows.append(dict(what=f"{name}, Implicit, kinematic / general", figure=f"{fast:.2f} / {general:.2f} ms ({general / fast:.1f} times)",
                         bar=f"three times; paper {PAPER[name]}", met=general > 3 * fast))
    return rows


if __name__ == "__main__":
    for row in main():
        print(row)
