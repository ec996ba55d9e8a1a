"""Reads the reference problems beside this file and runs simulations up to the times that they give numbers for."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import dalembert as da

#: steps of a run whose trajectory is thrown away: bounds the memory of long runs
PIECE = 100_000


def problem(name: str) -> dict[str, Any]:
    """A reference problem: parameters, reference numbers, tolerances."""
    return json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))


def simulate(mechanism: da.Mechanism, dt: float, duration: float, *, tolerance: float = 1e-12) -> da.Trajectory:
    """A run with a tolerance that leaves the step's own error visible alone."""
    return da.Simulation(mechanism, da.Variational(dt=dt, tolerance=tolerance)).run(duration)


def run_to(sim: da.Simulation, time: float) -> da.Simulation:
    """Advance to a time, keeping no trajectory."""
    while (left := round((time - sim.time) / sim.formulation.dt)) > 0:
        sim.run(min(left, PIECE) * sim.formulation.dt)
    return sim


def knots(trajectory: da.Trajectory, times: Any) -> np.ndarray:
    """Indices of the knots at given times, which must be knots."""
    index = np.rint(np.asarray(times, dtype=float) / (trajectory.time[1] - trajectory.time[0])).astype(int)
    np.testing.assert_allclose(trajectory.time[index], times, atol=1e-9)
    return index


def observed_order(errors: list[float], steps: list[float]) -> float:
    """Slope of log(error) over log(step)."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])
