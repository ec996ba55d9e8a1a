"""Simulation, Trajectory, plots and pages know the engine protocol alone: a toy engine that shares no record with the others runs through all of them."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import dalembert as da
from dalembert.formulations.engine import Inputs, Knot, Readings, Source, Start

GRAVITY = np.array([0.0, 0.0, -9.81])


class Recording:
    def __init__(self, knots: int) -> None:
        self.position, self.velocity = np.zeros((knots, 3)), np.zeros((knots, 3))
        self.force = np.zeros((knots, 3))


class PointMass:
    """Exact flight of one point mass: its state is six numbers."""

    nodes: tuple[float, ...] = ()
    one_start = False
    input_node = 0.0

    def __init__(self, mechanism: da.Mechanism) -> None:
        self.mass = mechanism.bodies[0].mass
        self.steps_left = np.inf

    def start(self, start: Start) -> np.ndarray:
        return np.concatenate([start.position[0], start.velocity[0, :3]])

    def pose(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return numbers[None, :3].copy(), np.array([[1.0, 0.0, 0.0, 0.0]])

    def coordinates(self, numbers: np.ndarray) -> np.ndarray:
        return np.zeros((0, 6))

    targets = coordinates

    def knot(self, numbers: np.ndarray, inputs: Inputs, rates: np.ndarray) -> Knot:
        kinetic = 0.5 * self.mass * float(numbers[3:] @ numbers[3:])
        energy = kinetic - self.mass * float(GRAVITY @ numbers[:3])
        return Knot(np.concatenate([numbers[3:], np.zeros(3)])[None], np.zeros((0, 6)), energy, kinetic)

    def new_recording(self, knots: int) -> Recording:
        return Recording(knots)

    def record(self, numbers: np.ndarray, recording: Recording, knot: int) -> None:
        recording.position[knot], recording.velocity[knot] = numbers[:3], numbers[3:]

    def advance(self, numbers: np.ndarray, recording: Recording, source: Source, first: int, count: int, dt: float) -> int:
        for step in range(first, first + count):
            if self.steps_left <= 0:
                return step - first
            self.steps_left -= 1
            inputs = source.window(step, 1)
            push = inputs.wrench[0, 0, :3] if len(inputs.wrench) else np.zeros(3)
            acceleration = GRAVITY + push / self.mass
            numbers[:3] += dt * numbers[3:] + 0.5 * dt**2 * acceleration
            numbers[3:] += dt * acceleration
            self.record(numbers, recording, step + 1)
        return count

    def failure(self, time: float, dt: float) -> da.StepFailure:
        return da.StepFailure(f"the toy stopped at t = {time:g} s")

    def read(self, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinate: np.ndarray) -> Readings:
        position, velocity = recording.position[:knots, None], recording.velocity[:knots, None]
        values = dict(
            position=position, orientation=np.tile([1.0, 0.0, 0.0, 0.0], (knots, 1, 1)),
            substeps=np.ones(knots, np.int64), iterations=np.ones(knots, np.int64),
        )

        def derived():
            empty = dict(coordinate=6, rate=6, force=3, torque=3, actuation=6, violation=6)
            return dict(
                velocity=velocity, angular_velocity=np.zeros((knots, 1, 3)), potential=-self.mass * position[:, 0] @ GRAVITY,
                coupling_violation=np.zeros((knots, 0)), **{name: np.zeros((knots, 0, size)) for name, size in empty.items()},
            )

        return Readings(values, ((frozenset(derived()), derived),))


@dataclass(frozen=True, kw_only=True)
class Toy:
    dt: float

    def engine(self, mechanism: da.Mechanism) -> PointMass:
        return PointMass(mechanism)


@pytest.fixture
def ball() -> da.Mechanism:
    mechanism = da.Mechanism("thrown ball")
    mechanism.body("ball", da.Sphere(radius=0.1, mass=2.0))
    mechanism.start("ball", linear=(1.0, 0.0, 5.0))
    return mechanism


def test_a_toy_engine_runs_through_everything(ball, tmp_path):
    sim = da.Simulation(ball, Toy(dt=0.01))
    run = sim.run(1.0)
    assert sim.time == pytest.approx(1.0)
    np.testing.assert_allclose(run.position[-1, 0], [1.0, 0.0, 5.0 - 0.5 * 9.81], atol=1e-12)
    np.testing.assert_allclose(run.energy().total, sim.energy(), atol=1e-10)
    np.testing.assert_allclose(run.momentum().linear[-1], [2.0, 0.0, 2.0 * (5.0 - 9.81)], atol=1e-10)
    assert run.body("ball").velocity.shape == (101, 3)
    run.plot("energy", path=tmp_path / "energy.png")
    page = run.to_html(tmp_path / "run.html")
    assert page.stat().st_size > 10_000
    run.save(tmp_path / "run.h5")
    np.testing.assert_array_equal(da.Trajectory.load(tmp_path / "run.h5").position, run.position)


def test_control_states_and_failures_of_a_toy_engine(ball, tmp_path):
    sim = da.Simulation(ball, Toy(dt=0.01))
    sim.set_velocity("ball", linear=(0.0, 0.0, 0.0))
    lift = {"ball": (0.0, 0.0, 2.0 * 9.81, 0.0, 0.0, 0.0)}
    sim.run(0.5, control=lambda _: lift)
    np.testing.assert_allclose(sim.position[0], 0.0, atol=1e-12)
    sim.step(lift)
    state = sim.state
    state.save(tmp_path / "state.npz")
    first = sim.run(0.2, dt=0.05)
    assert len(first) == 5
    sim.restore(da.State.load(tmp_path / "state.npz"))
    np.testing.assert_array_equal(sim.run(0.2, dt=0.05).position, first.position)
    sim._engine.steps_left = 3  # type: ignore[attr-defined]
    with pytest.raises(da.StepFailure, match="the toy stopped"):
        sim.run(0.1)


def test_no_room_above_the_formulations_looks_into_them():
    import pathlib

    import dalembert

    for path in (pathlib.Path(dalembert.__file__).parent / "simulation").glob("*.py"):
        text = path.read_text()
        assert "formulations.maximal" not in text, path
        assert "formulations.variational" not in text, path
        assert "formulations.implicit" not in text, path
