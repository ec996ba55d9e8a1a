"""What a gradient by all parameters costs, in runs: chains, loops, and through contact the quadruped on its feet and snakes of more and more links."""
from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import dalembert as da
from dalembert import zoo
from dalembert.gradients.names import all_names
from dalembert.zoo.quadruped import GAINS, LEGS, STANDING

#: a run with its tape and the gradient may take this many runs without
BAR = 2.5
#: seconds of chains that swing: what names cost does not depend on it
LONG = 10.0


def least(function: Callable[[], object], repeats: int = 5) -> float:
    """Processor time (s) of the fastest of some calls."""
    spent = []
    for _ in range(repeats):
        tick = time.thread_time()
        function()
        spent.append(time.thread_time() - tick)
    return min(spent)


def standing(sim: da.Simulation) -> None:
    """Torques that hold the quadruped up."""
    for leg in LEGS:
        for part, angle in STANDING.angles(0.0, 0.0).items():
            sim.set_input(f"{leg} {part} joint", GAINS[part][0] * angle)


def cost(mechanism: da.Mechanism, formulation, duration: float, setup: Callable[[da.Simulation], None] | None = None) -> tuple[float, float, int]:
    """(runs that a taped run and its gradient by all parameters take, that the gradient alone takes, number of parameters)."""
    def simulation() -> da.Simulation:
        sim = da.Simulation(mechanism, formulation, energy_bound=None)
        if setup is not None:
            setup(sim)
        return sim

    names = all_names(mechanism, inputs=True)
    run = simulation().run(duration, tape=True)
    weights = np.zeros_like(run.position)
    weights[-1, 0] = (1.0, 0.5, 0.2)
    run.vjp({"position": weights}, names)
    plain, taped = ([simulation() for _ in range(5)] for _ in range(2))
    alone = least(lambda: plain.pop().run(duration))
    with_tape = least(lambda: taped.pop().run(duration, tape=True))
    back = least(lambda: run.vjp({"position": weights}, names))
    return (with_tape + back) / alone, back / alone, len(names)


def main() -> list[dict]:
    """Rows: what, figure, bar."""
    rows = []
    variational = da.Variational(dt=0.005)
    for name, mechanism, formulation, setup in (
        ("10 links", zoo.pendulum(10), da.Variational(dt=0.01), None), ("100 links", zoo.pendulum(100), da.Variational(dt=0.01), None),
        ("chain of 10 four-bars", zoo.four_bar_chain(10), da.Variational(dt=0.01), None),
        ("10 links, BDF2", zoo.pendulum(10), da.Implicit(dt=0.01), None), ("100 links, BDF2", zoo.pendulum(100), da.Implicit(dt=0.01), None),
        ("quadruped on its feet", zoo.quadruped(), variational, standing),
        ("snake of 10 on the ground", zoo.snake(10), variational, None), ("snake of 100 on the ground", zoo.snake(100), variational, None),
        ("quadruped on its feet, BDF2", zoo.quadruped(), da.Implicit(dt=0.005), standing),
    ):
        whole, back, count = cost(mechanism, formulation, 2.0 if setup or mechanism.grounds else LONG, setup)
        figure = f"{whole:.2f} runs, of which the gradient by {count} parameters {back:.2f}"
        rows.append(dict(what=name, figure=figure, bar=f"at most {BAR:g}", met=whole <= BAR))
    return rows


if __name__ == "__main__":
    for row in main():
        print(f"{row['what']:30s} {row['figure']}; {row['bar']}: {'met' if row['met'] else 'MISSED'}")
