"""Same input, same bits: in one go, in parts, step by step, from a saved state, in threads, in other processes, on a busy machine."""
from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import dalembert as da

FORMULATIONS = {"variational": da.Variational(dt=0.004), "implicit": da.Implicit(dt=0.004), "reduced": da.Reduced(dt=0.004)}


def pile(bodies: int) -> da.Mechanism:
    """Boxes and balls that fall on one another, some of them joined."""
    rng = np.random.default_rng(5)
    mechanism = da.Mechanism("pile")
    mechanism.ground(friction=0.6)
    before = None
    for i in range(bodies):
        shape = da.Box(size=(0.2, 0.15, 0.1), mass=1.0) if i % 3 else da.Sphere(radius=0.08, mass=0.7)
        place = np.array([0.25 * (i % 3), 0.25 * (i // 3 % 3), 0.12 + 0.22 * (i // 9)]) + 0.01 * rng.normal(size=3)
        body = mechanism.body(f"body {i}", shape, position=place, collide=True)
        if before is not None and i % 4 == 3:
            mechanism.joint(f"joint {i}", da.Spherical(), before, body, at=0.5 * (before.position + place))
        before = body
    return mechanism


def begin(name: str, bodies: int) -> da.Simulation:
    sim = da.Simulation(pile(bodies), FORMULATIONS[name], energy_bound=None)
    sim.set_velocity("body 0", linear=(0.4, 0.3, 0.0))
    return sim


def print_of(position: np.ndarray, orientation: np.ndarray, velocity: np.ndarray) -> str:
    """A hash of all bits."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in (position, orientation, velocity))).hexdigest()


def whole(name: str, bodies: int, steps: int) -> str:
    run = begin(name, bodies).run(0.004 * steps, progress=False)
    return print_of(run.position, run.orientation, run.velocity[:-1])


def in_parts(name: str, bodies: int, steps: int, *lengths: int) -> str:
    """Runs of so many steps one after the other; velocities inside of runs alone, since the last of each has no step after it."""
    sim, position, orientation = begin(name, bodies), [], []
    position.append(sim.position)
    orientation.append(sim.orientation)
    done = 0
    while done < steps:
        count = min(lengths[done % len(lengths)], steps - done)
        run = sim.run(0.004 * count, progress=False)
        position += list(run.position[1:])
        orientation += list(run.orientation[1:])
        done += count
    return print_of(np.array(position), np.array(orientation), np.zeros(0))


def step_by_step(name: str, bodies: int, steps: int) -> str:
    sim = begin(name, bodies)
    position, orientation = [sim.position], [sim.orientation]
    for _ in range(steps):
        sim.step()
        position.append(sim.position)
        orientation.append(sim.orientation)
    return print_of(np.array(position), np.array(orientation), np.zeros(0))


def saved(name: str, bodies: int, steps: int, path: Path) -> str:
    sim = begin(name, bodies)
    first = sim.run(0.004 * (steps // 2), progress=False)
    sim.state.save(path)
    sim = begin(name, bodies)
    sim.restore(da.State.load(path))
    second = sim.run(0.004 * (steps - steps // 2), progress=False)
    return print_of(np.concatenate([first.position, second.position[1:]]), np.concatenate([first.orientation, second.orientation[1:]]), np.zeros(0))


def elsewhere(name: str, bodies: int, steps: int) -> str:
    """In another process."""
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_same_bits as t; print(t.whole({name!r}, {bodies}, {steps}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ), check=True)
    return done.stdout.split()[-1]


def in_thread(name: str, bodies: int, steps: int) -> str:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(whole(name, bodies, steps)))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("name", FORMULATIONS)
def test_the_same_bits(name, tmp_path):
    bodies, steps = 9, 40
    run = begin(name, bodies).run(0.004 * steps, progress=False)
    assert len(run.contacts().gap) > 10
    poses = print_of(run.position, run.orientation, np.zeros(0))
    all_bits = print_of(run.position, run.orientation, run.velocity[:-1])
    assert whole(name, bodies, steps) == all_bits
    assert in_thread(name, bodies, steps) == all_bits
    assert in_parts(name, bodies, steps, 7, 1, 20, 3) == poses
    assert step_by_step(name, bodies, steps) == poses
    assert saved(name, bodies, steps, tmp_path / "state.npz") == poses
    assert elsewhere(name, bodies, steps) == all_bits


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMULATIONS)
def test_the_same_bits_of_many_bodies_ten_times_under_load(name, tmp_path):
    bodies, steps = 45, 60
    first = whole(name, bodies, steps)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: sum(range(100000))"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        assert {whole(name, bodies, steps) for _ in range(5)} == {first}
        assert elsewhere(name, bodies, steps) == first
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert {whole(name, bodies, steps) for _ in range(3)} == {first}
    poses = {in_parts(name, bodies, steps, *lengths) for lengths in ((60,), (1,), (13, 2, 30))}
    assert poses == {step_by_step(name, bodies, steps), saved(name, bodies, steps, tmp_path / "state.npz")}
    assert len(poses) == 1
