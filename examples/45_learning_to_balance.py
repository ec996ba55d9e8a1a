"""A cart learns to keep a double pendulum upright: random search in the space of linear policies, on sixty-four environments at once.

The environment is Gymnasium's `dalembert/CartDoublePole-v0`; a step of it is 20 ms, and an episode 10 s. A policy is a row of numbers, from what is seen to the force on the cart. In every
round, 32 random changes of it are tried, each in both directions and from the same start, and it moves along those that tell most (augmented random search:
Mania, Guy and Recht 2018). Draws the returns by round, and how high the tip is before and after, out/learning_to_balance.png.
"""
from pathlib import Path
from time import perf_counter, process_time

import gymnasium
import numpy as np

import dalembert as da
import dalembert.learning.environments  # tells Gymnasium of them
from dalembert.view.plots import COLOURS, INK, finish_axis, finished, new_figure

NAME, STEPS, FORCE, SKIP = "dalembert/CartDoublePole-v0", 500, 20.0, 2  # the environment, its steps in an episode, its bound (N), its steps of the formulation in each
CHANGES, ROUNDS, WIDTH, RATE = 32, 30, 0.3, 0.3


class Normal:
    """Mean and spread of all that was seen: policies see how far from usual it is."""

    def __init__(self, count: int) -> None:
        self.seen, self.sum, self.squares = 0, np.zeros(count), np.zeros(count)

    def add(self, rows: np.ndarray) -> None:
        self.seen, self.sum, self.squares = self.seen + len(rows), self.sum + rows.sum(axis=0), self.squares + (rows**2).sum(axis=0)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        if not self.seen:
            return rows
        mean = self.sum / self.seen
        return (rows - mean) / np.sqrt(np.maximum(self.squares / self.seen - mean**2, 1e-4))


def play(envs: gymnasium.vector.VectorEnv, policies: np.ndarray, normal: Normal, seeds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One episode with a policy (observations,) in each environment: returns (environments,), which of them stood to the end, and all that was seen."""
    seen, _ = envs.reset(seed=[int(seed) for seed in seeds])  # type: ignore[arg-type]
    up, returns, rows = np.ones(len(policies), bool), np.zeros(len(policies)), []
    for _ in range(STEPS):
        rows.append(seen[up])
        force = np.sum(policies * normal(seen), axis=1, keepdims=True)
        seen, rewards, terminated, _, _ = envs.step(np.clip(force, -1.0, 1.0))
        returns += np.where(up, rewards, 0.0)
        up &= ~terminated
        if not up.any():
            break
    return returns, up, np.concatenate(rows)


def episode(policy: np.ndarray, normal: Normal, seed: int) -> da.Trajectory:
    """An episode of a single environment, played again by a simulation of its own from the same start: they agree to the bit."""
    env = gymnasium.make(NAME)
    seen, _ = env.reset(seed=seed)
    inside: da.Simulation = env.unwrapped.simulation  # type: ignore[attr-defined]
    simulation = da.Simulation(inside.mechanism, inside.formulation)
    simulation.restore(inside.state)
    forces, ended = [], False
    while not ended and len(forces) < STEPS:
        forces.append(float(np.clip(policy @ normal(seen), -1.0, 1.0)))
        seen, _, ended, _, _ = env.step(np.array(forces[-1:]))
    run = simulation.run(
        SKIP * simulation.formulation.dt * len(forces), control=lambda sim: {"rail": FORCE * forces[round(sim.time / sim.formulation.dt) // SKIP]}
    )
    if not np.array_equal(run.position[-1], inside.position):
        raise SystemExit("the simulation is not the environment")
    return run


def tip(run: da.Trajectory) -> np.ndarray:
    """(N,) how high the pendulum's end is above the cart, in parts of its length."""
    first, second = run.joint("hinge").coordinates, run.joint("hinge 2").coordinates
    return 0.5 * (np.cos(first) + np.cos(first + second))


if __name__ == "__main__":
    envs = gymnasium.make_vec(NAME, num_envs=2 * CHANGES)
    (observations,) = envs.single_observation_space.shape  # type: ignore[misc]
    rng, normal, policy = np.random.default_rng(1), Normal(observations), np.zeros(observations)
    clock, processor, history = perf_counter(), process_time(), []
    before = episode(policy, normal, seed=1)
    for number in range(ROUNDS):
        changes, starts = rng.standard_normal((CHANGES, observations)), rng.integers(0, 2**31, CHANGES)
        tried = np.concatenate([policy + WIDTH * changes, policy - WIDTH * changes])
        returns, _, rows = play(envs, tried, normal, np.tile(starts, 2))
        there, back = np.split(returns, 2)
        best = np.argsort(-np.maximum(there, back))[: CHANGES // 2]
        spread = returns.reshape(2, -1)[:, best].std()
        policy = policy + RATE / (len(best) * spread) * (there - back)[best] @ changes[best]
        normal.add(rows)
        history.append(np.percentile(returns, [10, 50, 90]))
        if number % 10 == 9:
            print(f"round {number + 1:2d}: mean return {returns.mean():6.1f}, best {returns.max():6.1f}")
    after = episode(policy, normal, seed=1)
    new = 10_000 + np.arange(2 * CHANGES)  # starts that it has not seen
    everywhere = np.tile(policy, (2 * CHANGES, 1))
    (untrained, fallen, _), (trained, stood, _) = play(envs, 0.0 * everywhere, normal, new), play(envs, everywhere, normal, new)
    print(f"mean return {untrained.mean():.0f} before and {trained.mean():.0f} after {ROUNDS} rounds, of {STEPS} at most; {fallen.sum()} and {stood.sum()} of {len(new)} stand for 10 s")
    print(f"learned in {perf_counter() - clock:.0f} s, {process_time() - processor:.0f} s of the processor")

    Path("out").mkdir(exist_ok=True)
    figure = new_figure("out/learning_to_balance.png", height=3.2)
    left, right = figure.subplots(1, 2)
    low, middle, high = np.transpose(history)
    left.fill_between(range(ROUNDS), low, high, color=COLOURS[0], alpha=0.25, linewidth=0, label="10 to 90 %")
    left.plot(middle, color=COLOURS[0], label="median")
    left.set_xlabel("round", color=INK)
    finish_axis(left, "return")
    for run, colour, name in ((before, COLOURS[1], "before"), (after, COLOURS[0], "after")):
        right.plot(run.time, tip(run), color=colour, label=name)
    right.set_xlabel("time / s", color=INK)
    finish_axis(right, "height of the tip / length")
    for axis in (left, right):
        axis.legend(frameon=False, labelcolor=INK)
    finished(figure, "a cart learns to balance a double pendulum", "out/learning_to_balance.png")
    after.to_html("out/learning_to_balance.html")
    if not (stood.mean() > 0.9 and not fallen.any()):
        raise SystemExit("it has not learned to balance")
