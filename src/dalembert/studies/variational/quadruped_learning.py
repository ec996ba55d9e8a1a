"""A quadruped learns to walk by sampling the five numbers of its gait (Algorithms 6 and 7).

Where the paper leaves it open: samples are drawn around the best gait so far, evenly between -1 and 1 in each number; a walk counts until the trunk
falls; friction is 0.8.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

import dalembert as da
from dalembert.studies.study import Report, study

#: b, a1, a2, d1, d2 of ``da.zoo.Gait`` for standing, and the paper's distance (m)
STANDING, PAPER = np.array([0.1, 0.0, 0.0, 1.0, -1.5]), 12.0
SEED = 0


@dataclass(frozen=True)
class Walk:
    """A gait's numbers, how far (m) it came before it fell, and the run, unless there was none."""

    numbers: np.ndarray
    distance: float
    run: da.Trajectory | None


def walk(numbers: np.ndarray, duration: float, dt: float) -> Walk:
    """The quadruped with a gait of given numbers for so many seconds."""
    b, a1, a2, d1, d2 = (float(number) for number in numbers)
    gait = da.zoo.Gait(b=b, a1=a1, a2=a2, d1=d1, d2=d2)
    sim = da.Simulation(da.zoo.quadruped(gait=gait), da.Variational(dt=dt), energy_bound=None)
    for joint, torque in da.zoo.leg_torques(gait).items():
        sim.set_input(joint, torque)
    try:
        run = sim.run(duration, progress=False)
    except da.StepFailure:
        return Walk(numbers, 0.0, None)
    trunk = run.body("trunk")
    upright = 1.0 - 2.0 * (trunk.orientation[:, 1] ** 2 + trunk.orientation[:, 2] ** 2)  # cosine of its tilt
    fallen = np.flatnonzero((trunk.position[:, 2] < 0.1) | (upright < 0.5))
    last = max(int(fallen[0]) - 1, 0) if len(fallen) else -1
    return Walk(numbers, float(trunk.position[last, 0] - trunk.position[0, 0]), run)


def learn(episodes: Iterable[int], duration: float, dt: float, seed: int) -> list[Walk]:
    """Algorithm 7: the walks of all episodes in turn, which follow from the seed alone."""
    rng = np.random.default_rng(seed)
    best, explore, bias, walks = Walk(STANDING, 0.0, None), 0.1, np.zeros(5), []
    for _ in episodes:
        chance = rng.uniform(-1.0, 1.0, 5)
        tried = walk(best.numbers + (0.002 * chance + 0.01 * bias if bias.any() else explore * chance), duration, dt)
        if tried.distance > best.distance:
            way = tried.numbers - best.numbers
            best, bias, explore = tried, way / np.linalg.norm(way), 0.1
        else:
            bias, explore = np.zeros(5), 0.9 * explore
        walks.append(Walk(tried.numbers, tried.distance, None))
    return walks


@study("figure 13", "sampling teaches a quadruped to walk more than 12 m in 10 s within 100 episodes")
def quadruped_learning(report: Report) -> None:
    count, duration, dt, again = (30, 3.0, 0.01, 0.005) if report.quick else (100, 10.0, 0.005, 0.001)
    walks = learn(report.each(range(count), "episode"), duration, dt, SEED)
    distances = np.array([each.distance for each in walks])
    best = walks[int(distances.argmax())]
    replay = walk(best.numbers, duration, again)
    assert replay.run is not None
    report.page(replay.run)
    report.table(("episode", "b", "a1", "a2", "d1", "d2", "distance / m", "best so far / m"), [(k + 1, *each.numbers, each.distance, distances[: k + 1].max()) for k, each in enumerate(walks)])
    contacts = replay.run.contacts()
    torque = max(float(np.abs(replay.run.joint(joint).actuation).max()) for joint in da.zoo.leg_torques())
    report.table(
        ("step / s", "distance / m", "speed / m/s", "paper's speed / m/s", "aside / m", "largest torque / N m", "least gap of the feet / m"),
        [(again, replay.distance, replay.distance / duration, PAPER / 10.0, np.ptp(replay.run.body("trunk").position[:, 1]), torque, contacts.least_gap().min())], name="best",
    )
    axis = report.axes("episode", f"distance walked in {duration:g} s / m")
    axis.plot(range(1, count + 1), distances, ".", label="tried")
    axis.plot(range(1, count + 1), np.maximum.accumulate(distances), label="best")
    axis.axhline(PAPER * duration / 10.0, color="0.6", linestyle=":", label="the paper's 12 m in 10 s")
    bar = 0.5 if report.quick else PAPER  # a small version learns to walk, not yet as fast
    report.verdict(
        min(replay.distance, best.distance) > bar,
        f"{best.distance:.1f} m in {duration:g} s after {count} episodes of seed {SEED}, {replay.distance:.1f} m with steps of {again:g} s; largest torque {torque:.0f} N m",
    )
