"""What a step costs, measured so that other work on the machine disturbs it least, and how that grows."""
from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from dalembert.simulation.simulation import Simulation
from dalembert.studies.study import Report

Key = TypeVar("Key")


def step_costs(report: Report, make: Mapping[Key, Callable[[], Simulation]], steps: int, repeats: int, *, inside: bool = False) -> dict[Key, float]:
    """Seconds of processor time of a step, the least of ``repeats`` runs of ``steps`` each, taken in turn; a run before warms up.

    ``inside``: of the engine alone, without what functions of time in Python take.
    """
    simulations = {key: build() for key, build in make.items()}
    clocks = {key: _EngineClock(simulation) if inside else clock.thread_time for key, simulation in simulations.items()}
    for simulation in simulations.values():
        simulation.run(2 * simulation.formulation.dt, progress=False)
        simulation.reset()
    best = dict.fromkeys(simulations, np.inf)
    for _ in report.each(range(repeats), "round"):
        for key, simulation in simulations.items():
            tick = clocks[key]()
            simulation.run(steps * simulation.formulation.dt, progress=False)
            best[key] = min(best[key], (clocks[key]() - tick) / steps)
            simulation.reset()
    return best


class _EngineClock:
    """Processor time that a simulation's engine has spent in its steps."""

    def __init__(self, simulation: Simulation) -> None:
        engine: Any = simulation._engine
        self.spent, self.step = 0.0, engine.run
        engine.run = self.run

    def run(self, *arguments: Any) -> Any:
        """The engine's own, timed."""
        tick = clock.thread_time()
        done = self.step(*arguments)
        self.spent += clock.thread_time() - tick
        return done

    def __call__(self) -> float:
        return self.spent


def best_seconds(action: Callable[[], object], repeats: int = 5) -> float:
    """Processor time of the fastest of several calls, s; a call before warms up, and short ones are repeated within a measurement."""
    action()
    tick = clock.process_time()
    action()
    times = max(1, int(2e-3 / max(clock.process_time() - tick, 1e-6)))
    best = np.inf
    for _ in range(repeats):
        tick = clock.process_time()
        for _ in range(times):
            action()
        best = min(best, (clock.process_time() - tick) / times)
    return best


def exponent(costs: Mapping[int, float]) -> float:
    """The power with which costs grow with size, by a straight line through their logarithms."""
    return float(np.polyfit(np.log(list(costs)), np.log(list(costs.values())), 1)[0])
