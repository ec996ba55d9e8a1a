"""Ensembles of whole runs: what varies, what is kept, what fails; the same numbers whoever makes them."""
from __future__ import annotations

import os
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy import stats

import dalembert as da

SHORT = da.Variational(dt=0.01)
LOCK = threading.Lock()


def pendulum(length: float = 1.0) -> da.Mechanism:
    """A rod on a hinge with a force-driven joint."""
    made = da.Mechanism("pendulum")
    made.body("rod", da.Rod(length=length, radius=0.02, mass=1.0), position=(0, 0, -length / 2))
    made.joint("hinge", da.Revolute(axis="x", drive="force", damping=0.1), made.world, "rod", at=(0, 0, 0))
    return made


def angle(run: da.Trajectory) -> float:
    return float(run.joint("hinge").coordinates[-1])


def many(**more) -> da.Ensemble:
    """A small ensemble."""
    settings: dict[str, Any] = dict(starts={"hinge": (-1.0, 1.0)}, parameters={"hinge.damping": [0.0, 0.1, 0.3]}, samples=4, seed=2, reduce=angle, workers=2)
    return da.run_many(pendulum(), SHORT, 0.1, **(settings | more))


def test_results_are_those_of_simulations_made_by_hand() -> None:
    ensemble = many(reduce="end")
    assert ensemble.shape == (3, 4)
    assert ensemble.successful.all()
    assert ensemble.complete
    for index in (0, 5, 11):
        simulation = da.Simulation(pendulum(), SHORT)
        simulation.set_parameters({"hinge.damping": ensemble.parameters["hinge.damping"][index]})
        simulation.set_joint("hinge", ensemble.starts["hinge"][index])
        run = simulation.run(0.1)
        result = ensemble[index].result
        assert np.array_equal(result["position"], run.position[-1])
        assert np.array_equal(result["velocity"], run.velocity[-1])
        assert np.array_equal(ensemble.results["coordinate"][index, 0, 0], run.joint("hinge").coordinates[-1])
    assert np.array_equal(ensemble.parameters["hinge.damping"].reshape(3, 4), np.repeat([[0.0], [0.1], [0.3]], 4, axis=1))
    assert np.array_equal(ensemble.axes["hinge.damping"], [0.0, 0.1, 0.3])


@pytest.mark.parametrize("backend", ["threads", "executor"])
def test_the_numbers_do_not_depend_on_who_makes_them(backend: str) -> None:
    serial = many(workers=1).results["value"]
    with ThreadPoolExecutor(3) as executor:
        assert np.array_equal(many(backend=executor if backend == "executor" else backend, workers=3).results["value"], serial)


def test_chance_comes_from_seed_number_and_name_alone() -> None:
    def drawn(**more):
        return da.run_many(pendulum(), SHORT, 0.01, reduce=angle, **{"seed": 3, "samples": 5, **more})

    first = drawn(starts={"hinge": (-1.0, 1.0)}).starts["hinge"]
    assert np.array_equal(drawn(starts={"hinge": (-1.0, 1.0)}, parameters={"hinge.damping": stats.uniform(0, 1)}).starts["hinge"], first)
    assert np.array_equal(drawn(starts={"hinge": lambda rng: rng.uniform(-1.0, 1.0)}, samples=7).starts["hinge"][:5], first)
    assert not np.array_equal(drawn(starts={"hinge": (-1.0, 1.0)}, seed=4).starts["hinge"], first)
    assert len(set(first)) == 5


def test_tables_go_row_by_row() -> None:
    ensemble = da.run_many(pendulum(), SHORT, 0.01, starts={"hinge": [0.1, 0.2], "hinge.rate": [1.0, 2.0]}, parameters={"gravity": [[0, 0, -9.81], [0, 0, -1.6]]}, grid=False)
    assert len(ensemble) == 2
    assert np.allclose(ensemble.results["rate"][:, 0, 0], [1.0, 2.0], atol=0.2)
    assert ensemble.parameters["gravity"].shape == (2, 3)
    with pytest.raises(da.ModelError, match="of one length"):
        da.run_many(pendulum(), SHORT, 0.01, starts={"hinge": [0.1, 0.2]}, parameters={"hinge.damping": [0.1]}, grid=False)


def test_one_number_of_several() -> None:
    ensemble = da.run_many(pendulum(), SHORT, 0.2, parameters={"gravity[2]": [-9.81, 0.0], "hinge.point_child[2]": [0.5, 0.4]}, starts={"hinge": 0.3}, reduce=angle)
    by_hand = da.Simulation(pendulum(), SHORT)
    by_hand.set_parameters({"hinge.point_child": [0.0, 0.0, 0.4]})
    by_hand.set_joint("hinge", 0.3)
    assert ensemble.results["value"][1] == angle(by_hand.run(0.2))
    assert np.allclose(ensemble.results["value"][2:], 0.3, atol=1e-9)


def test_a_function_may_make_the_mechanism() -> None:
    ensemble = da.run_many(pendulum, SHORT, 0.5, parameters={"length": [0.5, 1.0, 2.0], "hinge.damping": 0.0}, starts={"hinge": 0.3}, reduce=angle)
    assert ensemble.mechanism == "pendulum"
    by_hand = da.Simulation(pendulum(2.0), SHORT)
    by_hand.set_parameters({"hinge.damping": 0.0})
    by_hand.set_joint("hinge", 0.3)
    assert ensemble.results["value"][2] == angle(by_hand.run(0.5))


def test_each_run_has_a_controller_of_its_own() -> None:
    def controls(parameters, rng):
        push = parameters["gain"] * rng.uniform(0.5, 1.0)
        return lambda sim: {"hinge": push}

    settings: dict[str, Any] = dict(parameters={"gain": [0.0, 1.0]}, controls=controls, samples=3, reduce=angle)
    ensemble = da.run_many(pendulum(), SHORT, 0.2, **settings)
    assert np.all(ensemble.results["value"][:3] == 0.0)
    assert len(set(ensemble.results["value"][3:])) == 3
    assert np.array_equal(da.run_many(pendulum(), SHORT, 0.2, workers=1, **settings).results["value"], ensemble.results["value"])


class Counting:
    """A controller with a memory."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, sim: da.Simulation) -> dict[str, float]:
        self.calls += 1
        return {"hinge": 0.1 * self.calls}


def test_a_controller_with_a_memory_forgets_between_runs() -> None:
    control = Counting()
    results = da.run_many(pendulum(), SHORT, 0.1, starts={"hinge": [0.2, 0.2, 0.2]}, controls=control, reduce=angle).results["value"]
    assert results[0] == results[1] == results[2] != 0.2
    assert control.calls == 0


def test_what_is_kept_of_a_run(tmp_path: Path) -> None:
    def kept(run):
        return {"path": run.position[: 3 + int(run.position[0, 0, 1] > 0)], "turns": 3, "held": bool(angle(run) > 0), "a/b%.": 1.0}

    for out in (None, tmp_path / "kept.h5"):
        ensemble = many(reduce=kept, out=out)
        assert ensemble.results["turns"].dtype.kind == "i"
        assert ensemble.results["held"].dtype == bool
        assert ensemble.results["path"].dtype == object
        assert {len(path) for path in ensemble.results["path"]} == {3, 4}
        assert set(ensemble[0].result) == {"path", "turns", "held", "a/b%."}
        whole = many(reduce="trajectory", out=None if out is None else tmp_path / "whole.h5")
        assert isinstance(whole[3].result, da.Trajectory)
        assert np.array_equal(whole[3].result.position[:3], ensemble[3].result["path"][:3])
        assert whole[3].result.model is not None
        assert len(whole.results) == 0
        with pytest.raises(da.ModelError, match="trajectories are in"):
            whole.results["path"]
    assert np.array_equal(many(reduce=lambda run: run.position[-1]).results["value"].shape, (12, 1, 3))
    wrong = many(reduce=lambda run: "text").failures
    assert len(wrong) == 12
    assert "must be a number" in wrong[0].message


def test_runs_that_fail_are_listed_and_the_others_go_on(tmp_path: Path) -> None:
    masses = np.linspace(0.5, 1.5, 100)
    masses[[13, 50, 99]] = -1.0
    ensemble = da.run_many(pendulum(), SHORT, 0.05, parameters={"rod.mass": masses}, reduce=angle, out=tmp_path / "runs.h5")
    assert ensemble.successful.sum() == 97
    assert [failure.index for failure in ensemble.failures] == [13, 50, 99]
    failure = ensemble.failures[1]
    assert failure.error == "ModelError"
    assert "mass" in failure.message
    assert failure.parameters == {"rod.mass": -1.0}
    assert "rod.mass = -1" in str(failure)
    assert ensemble[50].failure == failure
    assert ensemble[50].result is None
    assert np.array_equal(np.isnan(ensemble.results["value"]), ~ensemble.successful)
    assert "97 done, 3 failed" in repr(ensemble)


def test_errors_of_users_and_of_steps_say_when() -> None:
    def control(sim):
        if sim.time > 0.045:
            raise RuntimeError("the sensor broke")
        return {"hinge": 0.0}

    failure = da.run_many(pendulum(), SHORT, 0.1, controls=control, starts={"hinge": [0.1]}).failures[0]
    assert (failure.error, failure.message) == ("RuntimeError", "the sensor broke")
    assert failure.time == pytest.approx(0.05)
    loop = da.zoo.n_four_bar()
    joint = loop.joints[0].name
    failures = da.run_many(loop, SHORT, 0.01, parameters={f"{joint}.point_parent": [[0, 0, 0], [0, 0, 50.0]]}).failures
    assert [failure.error for failure in failures][-1:] == ["AssemblyError"]


def test_functions_of_users_fail_in_the_runs_that_they_fail_in() -> None:
    made = pendulum()

    def law(position, orientation, velocity):
        if position[0, 1] > 0.3:
            raise ValueError("too far")
        return np.zeros((1, 6))

    made.force_law("wind", "rod", law)
    ensemble = da.run_many(made, SHORT, 0.1, starts={"hinge": np.linspace(-1.0, 1.0, 12)}, workers=3, reduce=angle)
    failed = [failure.index for failure in ensemble.failures]
    assert failed
    assert all("too far" in failure.message for failure in ensemble.failures)
    sides = np.sin(ensemble.starts["hinge"]) * 0.5
    assert set(failed) == set(np.flatnonzero(np.abs(sides) > 0.3)) & set(np.flatnonzero(sides > 0 if sides[failed[0]] > 0 else sides < 0))


# ---- files


class Stopping:
    """A reduction that dies once, after so many runs; what it counts is no part of what an ensemble is."""

    made: list[int] = []  # noqa: RUF012
    most = 0

    def __call__(self, run: da.Trajectory) -> float:
        if len(self.made) >= Stopping.most:
            raise KeyboardInterrupt  # which no run catches
        self.made.append(1)
        return angle(run)


def test_the_same_call_goes_on_and_another_is_refused(tmp_path: Path) -> None:
    out, begun = tmp_path / "runs.h5", Stopping.made
    counted, Stopping.most = Stopping(), 100
    begun.clear()
    first = many(reduce=counted, out=out)
    assert len(begun) == 12
    data = out.read_bytes()
    again = many(reduce=counted, out=out, workers=1)
    assert len(begun) == 12
    assert np.array_equal(first.results["value"], again.results["value"])
    assert out.read_bytes() == data
    assert [path.name for path in tmp_path.iterdir()] == ["runs.h5"]
    for change, word in (
        (dict(seed=9), "seed"), (dict(samples=5), "parameters"), (dict(parameters={"hinge.damping": [0.0, 0.1, 0.4]}), "parameters"),
        (dict(reduce=lambda run: 1.0), "reduce"), (dict(reduce="end"), "reduce"), (dict(controls=Counting()), "controls"),
    ):
        with pytest.raises(da.ModelError, match=f"another ensemble.*{word}"):
            many(**{"reduce": counted, "out": out, **change})
    with pytest.raises(da.ModelError, match="duration"):
        da.run_many(pendulum(), SHORT, 0.2, starts={"hinge": (-1.0, 1.0)}, parameters={"hinge.damping": [0.0, 0.1, 0.3]}, samples=4, seed=2, reduce=counted, out=out)
    assert out.read_bytes() == data


class Pressing:
    """A reduction that presses Ctrl-C once."""

    once = False

    def __call__(self, run: da.Trajectory) -> float:
        if Pressing.once and angle(run) > 0:
            Pressing.once = False
            os.kill(os.getpid(), signal.SIGINT)
        return angle(run)


def test_ctrl_c_keeps_what_is_going_and_the_same_call_goes_on(tmp_path: Path) -> None:
    out, Pressing.once = tmp_path / "runs.h5", True
    ensemble = many(reduce=Pressing(), out=out)
    assert ensemble.interrupted
    assert not ensemble.complete
    done = int(ensemble.successful.sum())
    assert 0 < done < 12
    (tmp_path / "copy.h5").write_bytes(out.read_bytes())  # without its journal
    for path in (out, tmp_path / "copy.h5"):
        ensemble = many(reduce=Pressing(), out=path)
        assert ensemble.complete
        assert not ensemble.interrupted
        assert np.array_equal(ensemble.results["value"], many().results["value"])
        assert not Path(f"{path}.journal").exists()


@pytest.mark.parametrize("damage", ["cut", "half a record", "a bit"])
def test_a_journal_that_was_cut_off(damage: str, tmp_path: Path) -> None:
    out, journal = tmp_path / "runs.h5", tmp_path / "runs.h5.journal"
    Stopping.made.clear()
    Stopping.most = 6
    assert many(reduce=Stopping(), out=out, workers=1).interrupted
    for thread in threading.enumerate():
        if thread.name.startswith("dalembert-"):
            thread.join(20)
    data = journal.read_bytes()
    assert da.Ensemble.load(out).successful.sum() == 6
    journal.write_bytes({"cut": data[:-10], "half a record": data + data[-50:], "a bit": data[:-30] + bytes([data[-30] ^ 1]) + data[-29:]}[damage])
    left = 6 if damage == "half a record" else 5
    assert da.Ensemble.load(out).successful.sum() == left
    Stopping.made.clear()
    Stopping.most = 100
    ensemble = many(reduce=Stopping(), out=out)
    assert len(Stopping.made) == 12 - left
    assert np.array_equal(ensemble.results["value"], many().results["value"])


@pytest.mark.parametrize("room", [60_000, 150_000], ids=["the journal", "the file"])
def test_a_full_disk_loses_nothing(room: int, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    out = tmp_path / "runs.h5"
    reference = many(reduce="trajectory", out=tmp_path / "reference.h5")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
        with pytest.raises(da.SaveError, match="the same call goes on"):
            many(reduce="trajectory", out=out)
        kept = int(da.Ensemble.load(out).successful.sum())
        assert 0 < kept < 12 if room == 60_000 else kept == 12
        with pytest.raises(da.SaveError, match="the same call goes on"):
            many(reduce="trajectory", out=out)
        assert da.Ensemble.load(out).successful.sum() == kept
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    ensemble = many(reduce="trajectory", out=out)
    assert ensemble.complete
    assert out.read_bytes() == (tmp_path / "reference.h5").read_bytes()
    assert len(reference) == 12


def test_files_of_others_are_refused_and_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "runs.h5"
    for data in (b"", b"something else", os.urandom(2000)):
        out.write_bytes(data)
        with pytest.raises(da.ModelError, match="no ensemble"):
            many(out=out)
        with pytest.raises(da.ModelError, match="no ensemble"):
            da.Ensemble.load(out)
        assert out.read_bytes() == data
    out.unlink()
    da.Simulation(pendulum(), SHORT).run(0.02).save(out)
    with pytest.raises(da.ModelError, match="no ensemble"):
        many(out=out)
    out.unlink()
    many(out=out)
    data = bytearray(out.read_bytes())
    data[len(data) // 2] ^= 4
    out.write_bytes(data)
    with pytest.raises(da.ModelError, match="damaged"):
        da.Ensemble.load(out)
    with pytest.raises(da.ModelError, match="damaged"):
        many(out=out)
    with pytest.raises(da.ModelError, match="must end in"):
        many(out=tmp_path / "runs.csv")
    with pytest.raises(FileNotFoundError, match="no folder"):
        many(out=tmp_path / "nowhere" / "runs.h5")


def test_only_one_writes_to_a_file(tmp_path: Path) -> None:
    out = tmp_path / "runs.h5"

    def reduce(run):
        with pytest.raises(da.SaveError, match="another run_many"):
            many(reduce=reduce, out=out)
        return angle(run)

    assert many(reduce=reduce, out=out, workers=1).successful.all()


def test_a_file_for_other_programs(tmp_path: Path) -> None:
    ensemble = many(out=tmp_path / "runs.h5")
    with h5py.File(tmp_path / "runs.h5") as file:
        assert np.array_equal(np.asarray(file["results/value"]), ensemble.results["value"])
        assert np.array_equal(np.asarray(file["parameters/hinge.damping"]), ensemble.parameters["hinge.damping"])
        assert np.array_equal(np.asarray(file["starts/hinge"]), ensemble.starts["hinge"])
    ensemble.to_csv(tmp_path / "runs.csv")
    table = np.genfromtxt(tmp_path / "runs.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    assert table.dtype.names is not None
    assert np.array_equal(table["value"], ensemble.results["value"])
    assert set(table["state"]) == {"done"}
    for kept in (pickle.loads(pickle.dumps(ensemble)), pickle.loads(pickle.dumps(many()))):
        assert np.array_equal(kept.results["value"], ensemble.results["value"])


# ---- mistakes


@pytest.mark.parametrize(("wrong", "word"), [
    (dict(parameters={"hinge.dampng": [0.1]}), "hinge.damping"), (dict(parameters={"lenght": [0.1]}), "nothing takes"), (dict(starts={"hinje": (0.0, 0.1)}), "hinge"),
    (dict(parameters={"gravity": [-9.81, -1.6]}), r"gravity\[0\]"), (dict(parameters={"gravity[3]": [-9.81]}), "has no number"), (dict(parameters={"hinge.dampng[0]": [1.0]}), "hinge.damping"),
    (dict(parameters={"hinge.damping": []}), "empty"), (dict(parameters={"hinge.damping": (1, 2, 3)}), "low, high"), (dict(parameters={"hinge.damping": (2, 1)}), "low below high"),
    (dict(parameters={"hinge.damping": [0.1, float("nan")]}), "finite"), (dict(parameters={"hinge.damping": [[1.0, 2.0], [3.0]]}), "numbers"),
    (dict(starts={"hinge": (0, 1)}, samples=None, parameters={}), "samples"), (dict(starts={"hinge": [0.0]}, parameters={}), "something to draw"),
    (dict(backend="nobody"), "nobody.*choose 'threads'"), (dict(backend=3), "backend"), (dict(samples=10**9), "too large"), (dict(reduce="all"), "reduce"),
    (dict(backend="processes", prepare=lambda sim, parameters, lock=LOCK: None), "cannot be sent"),
])
def test_mistakes_are_named_before_anything_runs(wrong: dict, word: str) -> None:
    with pytest.raises(da.ModelError, match=word):
        many(**wrong)


def test_one_run_is_an_ensemble_too() -> None:
    ensemble = da.run_many(pendulum(), SHORT, 0.01)
    assert len(ensemble) == 1
    assert ensemble[-1].index == 0
    with pytest.raises(da.ModelError, match="index"):
        ensemble[1]
