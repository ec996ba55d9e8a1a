"""What a gradient costs: the adjoint by all parameters against the run itself. Run it with ``python benchmarks/gradients.py``.

A function of all positions and of the velocities at the end; seconds of the processor, the least of some tries.
"""
from __future__ import annotations

import argparse
from time import process_time

import numpy as np

import dalembert as da
from dalembert.gradients.names import all_names


def seconds(function, tries: int) -> float:
    """Least time of some calls."""
    best = np.inf
    for _ in range(tries):
        start = process_time()
        function()
        best = min(best, process_time() - start)
    return best


def row(mechanism: da.Mechanism, formulation, duration: float, tries: int, setup=None) -> tuple[float, float, float, int]:
    """Seconds of a run, of one with a tape, of the gradient, and the number of parameters."""
    names = all_names(mechanism)

    def run(tape: bool) -> da.Trajectory:
        sim = da.Simulation(mechanism, formulation, energy_bound=None)
        if setup is not None:
            setup(sim)
        return sim, lambda: sim.run(duration, tape=tape)

    def timed(tape: bool) -> float:
        best = np.inf
        for _ in range(tries):
            _, call = run(tape)
            best = min(best, seconds(call, 1))
        return best

    _, call = run(True)
    taped = call()
    weights = np.zeros_like(taped.velocity)
    weights[-1] = 1.0
    cotangents = {"position": np.ones_like(taped.position), "velocity": weights}
    taped.vjp(cotangents, names)
    timed(False)
    return timed(False), timed(True), seconds(lambda: taped.vjp(cotangents, names), tries), len(names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--duration", type=float, default=10.0)
    options = parser.parse_args()
    mechanisms = {"10 links": da.zoo.pendulum(10), "100 links": da.zoo.pendulum(100), "chain of 10 four-bars": da.zoo.four_bar_chain(10)}
    print(f"{'':12} {'':22} {'run, ms':>9} {'with tape':>10} {'gradient':>9} {'whole':>6} {'parameters':>11}")
    for kind, formulation in (("Variational", da.Variational(dt=0.01)), ("Implicit", da.Implicit(dt=0.01))):
        for name, mechanism in mechanisms.items():
            plain, taped, back, count = row(mechanism, formulation, options.duration, options.tries)
            print(f"{kind:12} {name:22} {1e3 * plain:9.1f} {taped / plain:10.2f} {back / plain:9.2f} {(taped + back) / plain:6.2f} {count:11d}", flush=True)


if __name__ == "__main__":
    main()
