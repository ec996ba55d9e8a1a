"""What ends a run before its time, errors, signals, Ctrl-C, keeps what was computed; long runs go to files as they are made."""
from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert import cli
from dalembert.progress import Progress
from dalembert.simulation import room


class Stop(Exception):
    """What a controller raises."""


def pushed() -> da.Mechanism:
    mechanism = da.zoo.pendulum(2)
    mechanism.start("joint 1", 0.4)
    return mechanism


def simulation(**options: Any) -> da.Simulation:
    return da.Simulation(pushed(), da.Variational(dt=0.01, **options))


def ending(at: float, error: BaseException) -> Any:
    """A controller that raises at a time."""
    def control(sim: da.Simulation) -> dict[str, Any]:
        if sim.time > at - 1e-9:
            raise error
        return {}

    return control


def is_start_of(part: da.Trajectory, whole: da.Trajectory) -> bool:
    count = len(part)
    return all(np.array_equal(getattr(part, name), getattr(whole, name)[:count]) for name in ("time", "position", "orientation"))


@pytest.fixture(scope="module")
def whole() -> da.Trajectory:
    return simulation().run(0.5)


def test_a_controllers_error_brings_what_was_computed(whole: da.Trajectory) -> None:
    sim = simulation()
    with pytest.raises(Stop) as caught:
        sim.run(0.5, control=ending(0.2, Stop("enough")))
    kept = caught.value.trajectory  # type: ignore[attr-defined]
    assert len(kept) == 21
    assert is_start_of(kept, whole)
    assert sim.time == pytest.approx(0.2)
    assert any("t = 0.2 s" in note for note in caught.value.__notes__)
    assert is_start_of(pickle.loads(pickle.dumps(caught.value)).trajectory, whole)
    sim.run(0.3)
    assert np.array_equal(sim.position, whole.position[-1])


def test_a_failed_step_brings_what_was_computed(whole: da.Trajectory) -> None:
    sim = simulation(max_halvings=0)
    first, second = (b.name for b in sim.mechanism.bodies)
    with pytest.raises(da.StepFailure) as caught:
        sim.run(0.5, control=lambda s: {first: (0, 0, 0, 1e9, -1e9, 1e9), second: (1e12, 0, 0, 0, 0, 0)} if s.time > 0.1 - 1e-9 else {})
    kept = caught.value.trajectory  # type: ignore[attr-defined]
    assert len(kept) == 11
    assert is_start_of(kept, whole)
    assert np.isfinite(kept.energy().total).all()
    assert np.array_equal(sim.position, kept.position[-1])


def test_sigterm_brings_what_was_computed(whole: da.Trajectory) -> None:
    sim, before = simulation(), signal.getsignal(signal.SIGTERM)

    def control(sim: da.Simulation) -> dict[str, Any]:
        if sim.time > 0.3 - 1e-9:
            os.kill(os.getpid(), signal.SIGTERM)
        return {}

    with pytest.raises(da.Terminated) as caught:
        sim.run(0.5, control=control)
    assert caught.value.code == 143
    assert len(caught.value.trajectory) == 31  # type: ignore[attr-defined]
    assert is_start_of(caught.value.trajectory, whole)  # type: ignore[attr-defined]
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_program_that_handles_sigterm_keeps_its_handler() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        def control(sim: da.Simulation) -> dict[str, Any]:
            if sim.time < 0.005:
                os.kill(os.getpid(), signal.SIGTERM)
            return {}

        assert len(simulation().run(0.05, control=control)) == 6
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]


def test_a_loop_can_tell_that_ctrl_c_was_pressed(whole: da.Trajectory) -> None:
    sim = simulation()
    runs = []
    for _ in range(5):
        runs.append(sim.run(0.1, control=ending(0.15, KeyboardInterrupt())))
        if runs[-1].interrupted:
            break
    assert [len(run) for run in runs] == [11, 6]
    assert not whole.interrupted


class Clumsy:
    """A formulation that is interrupted inside a step, after its numbers have changed."""

    dt = 0.01

    def __init__(self, at: int) -> None:
        self.left = at

    def engine(self, mechanism: da.Mechanism) -> Any:
        engine: Any = da.Variational(dt=self.dt).engine(mechanism)
        advance = engine.advance

        def interrupted(*arguments: Any) -> int:
            made = advance(*arguments)
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return made

        engine.advance = interrupted
        return engine


def test_steps_are_made_as_a_whole(whole: da.Trajectory) -> None:
    sim = da.Simulation(pushed(), Clumsy(at=5))
    run = sim.run(0.5, control=lambda s: {})
    assert run.interrupted
    assert len(run) == 5
    assert is_start_of(run, whole)
    assert np.array_equal(sim.position, run.position[-1])
    sim.run(0.46)
    assert np.array_equal(sim.position, whole.position[-1])
    sim = da.Simulation(pushed(), Clumsy(at=3))
    sim.step()
    sim.step()
    with pytest.raises(KeyboardInterrupt):
        sim.step()
    assert np.array_equal(sim.position, whole.position[2])
    assert sim.time == pytest.approx(0.02)


def test_memory_is_looked_at_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = simulation()
    before = sim.state
    with pytest.raises(da.ModelError, match=r"would not fit into memory: it takes .* GB, and .* free.*Simulation.stream"):
        sim.run(1e12)
    monkeypatch.setattr(room, "free_memory", lambda: 1e8)
    with pytest.raises(da.ModelError, match=r"and 0\.1 GB are free"):
        sim.run(1000.0)
    assert sim.state == before
    assert room.free_memory() > 0.0


def test_the_estimate_of_memory_is_one(whole: da.Trajectory) -> None:
    whole.complete()
    series = sum(array.nbytes for name, array in whole._values.items()) / len(whole)
    assert series <= room.series_bytes(pushed()) + 40 < 1.5 * series
    assert 0.2 * series < room.run_bytes(da.Variational(dt=0.01).engine(pushed()), pushed()) < series


# ---- runs in parts


@pytest.mark.parametrize("make", [pushed, da.zoo.box_drop], ids=["joints", "contacts"])
def test_parts_are_the_run(make: Any, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    whole = da.Simulation(make(), da.Variational(dt=0.01)).run(0.5)
    files = da.Simulation(make(), da.Variational(dt=0.01)).stream(0.5, tmp_path / "run", part=0.2)
    assert [file.name for file in files] == ["part-000000.h5", "part-000001.h5", "part-000002.h5"]
    joined = da.Trajectory.load(tmp_path / "run")
    assert len(joined) == len(whole)
    assert is_start_of(joined, whole)
    assert np.allclose(joined.energy().total, whole.energy().total, rtol=0, atol=1e-9)
    if whole.touching:
        mine, its = joined.contacts(), whole.contacts()
        assert np.array_equal(mine.knot, its.knot)
        assert [mine.names[i] for i in mine.pair] == [its.names[i] for i in its.pair]
        assert np.array_equal(mine.gap, its.gap)
    with pytest.raises(da.ModelError, match="holds parts of a run already"):
        simulation().stream(0.1, tmp_path / "run")


@pytest.mark.parametrize("error", [Stop("enough"), da.Terminated(signal.SIGTERM)], ids=["error", "signal"])
def test_parts_stay_when_a_run_ends_early(error: BaseException, tmp_path: Path, whole: da.Trajectory) -> None:
    pytest.importorskip("h5py")
    with pytest.raises(type(error)):
        simulation().stream(0.5, tmp_path / "run", part=0.1, control=ending(0.25, error))
    kept = da.Trajectory.load(tmp_path / "run")
    assert len(kept) == 26
    assert is_start_of(kept, whole)
    files = simulation().stream(0.5, tmp_path / "interrupted", part=0.1, control=ending(0.25, KeyboardInterrupt()))
    assert len(files) == 3
    assert len(da.Trajectory.load(tmp_path / "interrupted")) == 26


@pytest.mark.parametrize(
    ("number", "ends"), [(signal.SIGTERM, da.Terminated), (signal.SIGINT, None), (0, da.SaveError)], ids=["SIGTERM", "Ctrl-C", "full disk"],
)
def test_a_part_that_is_being_written_is_not_lost(
    number: int, ends: type[BaseException] | None, tmp_path: Path, whole: da.Trajectory, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What ends the program in that moment waits until the part is written; where that cannot be, the error has it."""
    pytest.importorskip("h5py")
    save, saved = da.Trajectory.save, []

    def broken(self: da.Trajectory, path: Path) -> None:
        saved.append(path)
        if len(saved) == 2 and number == 0:
            raise da.SaveError("the disk is full")
        if len(saved) == 2:
            os.kill(os.getpid(), number)
        save(self, path)

    monkeypatch.setattr(da.Trajectory, "save", broken)
    sim = simulation()
    if ends is None:
        assert len(sim.stream(0.5, tmp_path / "run", part=0.1)) == 2
    else:
        with pytest.raises(ends) as caught:
            sim.stream(0.5, tmp_path / "run", part=0.1)
        assert caught.value.trajectory.time[-1] == pytest.approx(sim.time)  # type: ignore[attr-defined]
    kept = da.Trajectory.load(tmp_path / "run")
    assert sim.time == pytest.approx(0.2)
    assert len(kept) == (11 if number == 0 else 21)
    assert is_start_of(kept, whole)


def test_parts_of_different_runs_are_not_joined(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    sim = simulation()
    sim.run(0.05).save(tmp_path / "part-000000.h5")
    sim.run(0.05)
    sim.run(0.05).save(tmp_path / "part-000001.h5")
    with pytest.raises(da.ModelError, match=r"ends at 0\.05 s cannot be joined to one that begins at 0\.1 s"):
        da.Trajectory.load(tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(da.ModelError, match="holds no parts"):
        da.Trajectory.load(tmp_path / "none")


# ---- the command line


@pytest.mark.parametrize(("ends", "code"), [
    (lambda: os.kill(os.getpid(), signal.SIGTERM), 143), (lambda: (_ for _ in ()).throw(da.StepFailure("no solution")), 1),
], ids=["SIGTERM", "StepFailure"])
def test_the_files_that_were_asked_for_are_written(ends: Any, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def update(self: Progress, done: int) -> None:
        ends()

    monkeypatch.setattr(Progress, "update", update)
    out = tmp_path / "run.npz"
    try:
        found = cli.main(["run", "pendulum", "--duration", "100", "--out", str(out)])
    except SystemExit as exit:
        found = exit.code
    assert found == code
    with np.load(out) as data:
        assert len(data["time"]) > 1
    assert "what was asked for is written up to there" in capsys.readouterr().err
