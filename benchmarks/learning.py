"""Vector environments: steps per second of one core, beside those of the kernels alone, with the resets of a random policy and without any.

"kernels" is ``Batch.step`` with the same inputs from the same starts, on one thread; a step of an environment is ``frame_skip`` of these.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import numpy as np

import dalembert.learning.environments as environments

COUNT, STEPS, REPEATS = 64, 30, 15


def race(jobs: dict[str, tuple[Callable[[], None], Callable[[], object]]]) -> dict[str, float]:
    """Seconds of the processor that each takes at best, all measured in turn; each with what comes before it."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(REPEATS):
        for name, (job, before) in jobs.items():
            before()
            tick = process_time()
            job()
            times[name].append(process_time() - tick)
    return {name: min(found) for name, found in times.items()}


def measure(name: str) -> None:
    lasting = environments.vector(name, COUNT, threads=1, terminated=None)
    ending = environments.vector(name, COUNT, threads=1)
    actions = 0.3 * np.random.default_rng(0).uniform(-1.0, 1.0, (STEPS, COUNT, *lasting.single_action_space.shape))  # type: ignore[misc]
    batch, play = lasting.batch, lasting._play
    inputs = [play.actions.inputs(action) for action in actions]

    def kernels() -> None:
        for one in inputs:
            batch.step(one, steps=play.task.frame_skip)

    def environment(env: environments.MechanismVectorEnv) -> None:
        for action in actions:
            env.step(action)

    kernels()
    times = race({
        "kernels": (kernels, lambda: lasting.reset(seed=0)), "environment": (lambda: environment(lasting), lambda: lasting.reset(seed=0)),
        "with resets": (lambda: environment(ending), lambda: ending.reset(seed=0)),
    })
    rates = {what: COUNT * STEPS / seconds for what, seconds in times.items()}
    shares = ", ".join(f"{what} {rate:8.0f}/s ({rate / rates['kernels']:.2f})" for what, rate in rates.items())
    print(f"{name:16} {shares}", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or ("Hopper", "CartPole", "Quadruped", "Biped"):
        measure(name)
