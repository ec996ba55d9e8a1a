"""Trajectories in files: nothing is lost, nothing is half written, and what is no trajectory is refused."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import dalembert as da
from dalembert.io import hdf5
from dalembert.io.hdf5 import FORMAT


@pytest.fixture
def saved(short_run: da.Trajectory, tmp_path: Path) -> Path:
    path = tmp_path / "run.h5"
    short_run.save(path)
    return path


def test_round_trip_is_bit_exact(short_run, saved):
    loaded = da.Trajectory.load(saved)
    for name in ("mechanism", "formulation", "bodies", "joints", "couplings", "coordinate_units"):
        assert getattr(loaded, name) == getattr(short_run, name), name
    for name in ("mass", "inertia"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(short_run, name))
    assert loaded._values.keys() == short_run._values.keys()
    for name, values in short_run._values.items():
        assert loaded._values[name].dtype == values.dtype
        assert loaded._values[name].tobytes() == np.ascontiguousarray(values).tobytes(), name


def test_everything_can_be_read_after_loading(short_run, saved):
    loaded = da.Trajectory.load(str(saved))
    assert len(loaded) == len(short_run)
    np.testing.assert_array_equal(loaded.energy().total, short_run.energy().total)
    np.testing.assert_array_equal(loaded.momentum().angular, short_run.momentum().angular)
    np.testing.assert_array_equal(loaded.constraint_violation(), short_run.constraint_violation())
    np.testing.assert_array_equal(loaded.coupling_force("gear"), short_run.coupling_force("gear"))
    np.testing.assert_array_equal(loaded.point("bob", (0, 0, 0.1)), short_run.point("bob", (0, 0, 0.1)))
    for joint in short_run.joints:
        for field in ("coordinates", "rates", "force", "torque", "actuation"):
            np.testing.assert_array_equal(getattr(loaded.joint(joint), field), getattr(short_run.joint(joint), field))
    assert (loaded.substeps[1:] >= 1).all()


def test_a_model_that_no_longer_reads_does_not_cost_the_run(short_run, saved):
    with h5py.File(saved, "r+") as file:
        text = file["model"][()].tobytes().replace(b'"gravity"', b'"loads": [], "gravity"')  # type: ignore[union-attr,index]
        del file["model"]
        file["model"] = np.frombuffer(text, dtype=np.uint8)
    hdf5.seal(saved)
    with pytest.warns(RuntimeWarning, match="without the mechanism that ran: .*'wrenches'"):
        loaded = da.Trajectory.load(saved)
    assert loaded.model is None
    np.testing.assert_array_equal(loaded.position, short_run.position)


def test_a_run_without_joints_can_be_saved(tmp_path):
    mechanism = da.Mechanism("fällt 落下")
    mechanism.body("Kugel", da.Sphere(radius=0.1, mass=1.0))
    run = da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.05)
    run.save(tmp_path / "fall.h5")
    loaded = da.Trajectory.load(tmp_path / "fall.h5")
    assert loaded.mechanism == "fällt 落下"
    assert loaded.joints == ()
    np.testing.assert_array_equal(loaded.energy().total, run.energy().total)


def test_saving_again_and_saving_what_was_loaded(saved, tmp_path):
    loaded = da.Trajectory.load(saved)
    loaded.save(saved)  # the file is closed after loading, so it can be replaced
    loaded.save(tmp_path / "copy.h5")
    np.testing.assert_array_equal(da.Trajectory.load(tmp_path / "copy.h5").position, loaded.position)


def test_a_link_stays_a_link(short_run, saved, tmp_path):
    link = tmp_path / "latest.h5"
    link.symlink_to(saved)
    short_run.save(link)
    assert link.is_symlink()
    assert len(da.Trajectory.load(saved)) == len(short_run)


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("where", ["first dataset", "last dataset", "flush", "replace"])
def test_a_crash_leaves_the_old_file_and_nothing_else(short_run, tmp_path, monkeypatch, where, error):
    path = tmp_path / "run.h5"
    path.write_bytes(b"what was there before")
    calls = iter(range(10_000))
    write = h5py.Group.__setitem__

    def fail(*_args, **_kwargs):
        raise error

    def fail_in_the_end(group, name, value):
        if next(calls) == len(short_run._values) + 2:
            raise error
        write(group, name, value)

    if where == "first dataset":
        monkeypatch.setattr(h5py.Group, "create_dataset", fail)
    elif where == "last dataset":
        monkeypatch.setattr(h5py.Group, "__setitem__", fail_in_the_end)
    else:
        monkeypatch.setattr("os.fsync" if where == "flush" else "os.replace", fail)
    with pytest.raises(type(error)):
        short_run.save(path)
    assert path.read_bytes() == b"what was there before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_no_file_can_hold(tmp_path):
    mechanism = da.Mechanism("zero \0 character")
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0))
    run = da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.01)
    with pytest.raises(da.ModelError, match="cannot be saved"):
        run.save(tmp_path / "run.h5")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there(short_run, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        short_run.save(tmp_path / "missing" / "run.h5")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        da.Trajectory.load(tmp_path / "missing.h5")


@pytest.mark.parametrize(("content", "message"), [(b"time,position\n0,1\n", "no HDF5 file"), (b"", "empty")])
def test_a_file_that_is_not_hdf5(tmp_path, content, message):
    path = tmp_path / "run.h5"
    path.write_bytes(content)
    with pytest.raises(da.ModelError, match=message):
        da.Trajectory.load(path)


@pytest.mark.parametrize("part", [0.01, 0.5, 0.99])
def test_a_truncated_file(saved, part):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(da.ModelError, match="damaged or incomplete"):
        da.Trajectory.load(saved)


def test_an_hdf5_file_of_another_kind(tmp_path):
    path = tmp_path / "other.h5"
    with h5py.File(path, "w") as file:
        file["temperature"] = [1.0, 2.0]
    with pytest.raises(da.ModelError, match="not a dalembert trajectory: its root holds temperature"):
        da.Trajectory.load(path)


def test_a_newer_format(saved):
    with h5py.File(saved, "r+") as file:
        file.attrs["format"] = FORMAT + 1
        file.attrs["dalembert"] = "9.0"
    hdf5.seal(saved)
    with pytest.raises(da.ModelError, match=f"format {FORMAT + 1}, written by dalembert 9.0"):
        da.Trajectory.load(saved)


@pytest.mark.parametrize("lost", ["series/position", "joints", "freedom", "coordinate_units"])
def test_a_file_with_a_part_missing(saved, lost):
    with h5py.File(saved, "r+") as file:
        del file[lost]
    hdf5.seal(saved)
    with pytest.raises(da.ModelError, match="damaged or incomplete"):
        da.Trajectory.load(saved)


def test_series_of_different_lengths(saved):
    with h5py.File(saved, "r+") as file:
        short = file["series/position"][:3]  # type: ignore[index]
        del file["series/position"]
        file["series/position"] = short
    hdf5.seal(saved)
    with pytest.raises(da.ModelError, match="differ in length"):
        da.Trajectory.load(saved)


@pytest.mark.parametrize("call", ["save", "load"])
def test_without_h5py(short_run, saved, monkeypatch, call):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(da.MissingExtraError, match=r"dalembert\[files\]"):
        short_run.save(saved) if call == "save" else da.Trajectory.load(saved)


# ---- what is damaged, and what does not fit


def test_flipped_bits_are_seen(saved, tmp_path):
    """Whatever bit of a file changes, the file is refused, or all of it is what was written."""
    whole, path = saved.read_bytes(), tmp_path / "flipped.h5"
    written = da.Trajectory.load(saved)
    random = np.random.default_rng(12)
    refused = 0
    for place in random.integers(0, 8 * len(whole), 150):
        data = bytearray(whole)
        data[place // 8] ^= 1 << place % 8
        path.write_bytes(data)
        try:
            found = da.Trajectory.load(path)
        except da.ModelError:
            refused += 1
            continue
        for name in ("mechanism", "bodies", "joints", "couplings", "coordinate_units"):
            assert getattr(found, name) == getattr(written, name)
        for name, values in written._values.items():
            assert found._values[name].tobytes() == values.tobytes()
    assert refused > 75


@pytest.mark.parametrize(("name", "values", "message"), [
    ("series/velocity", np.zeros((21, 3, 3)), "'velocity' has the shape"),
    ("series/coordinate", np.zeros((21, 5, 5)), "'coordinate' has the shape"),
    ("series/substeps", np.zeros(21), "'substeps' has the shape"),
    ("mass", np.zeros((4, 1)), "'mass' has the shape"),
    ("freedom", np.array([1, 1, 3, 1, -1]), "do not fit its joints"),
    ("freedom", np.array([9, 1, 3, 1, 0]), "do not fit its joints"),
    ("series/time", np.linspace(1.0, 0.0, 21), "times do not grow"),
    ("series/contact_log", np.zeros(3), "another form"),
    ("series/event_time", np.zeros(2), "lack event_kind"),
])
def test_what_does_not_fit_is_refused(saved, name, values, message):
    with h5py.File(saved, "r+") as file:
        if name in file:
            del file[name]
        file[name] = values
    hdf5.seal(saved)
    with pytest.raises(da.ModelError, match=message):
        da.Trajectory.load(saved)


def test_other_names_are_seen(saved):
    with h5py.File(saved, "r+") as file:
        dataset: Any = file["bodies"]
        names = dataset[()]
        names[0] = b"another"
        dataset[()] = names
    with pytest.raises(da.ModelError, match="checksum"):
        da.Trajectory.load(saved)


def test_files_without_a_checksum_say_so(short_run, saved):
    with h5py.File(saved, "r+") as file:
        file.attrs["format"] = 1
    saved.write_bytes(saved.read_bytes()[hdf5.BLOCK :])
    with pytest.warns(RuntimeWarning, match="wrote no checksums"):
        found = da.Trajectory.load(saved)
    np.testing.assert_array_equal(found.position, short_run.position)
    with h5py.File(saved, "r+") as file:
        file.attrs["format"] = FORMAT
    with pytest.raises(da.ModelError, match="checksum is lost"):
        da.Trajectory.load(saved)


def test_large_runs_are_written_in_place(short_run, tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5, "IN_MEMORY", 1000)
    short_run.save(tmp_path / "run.h5")
    np.testing.assert_array_equal(da.Trajectory.load(tmp_path / "run.h5").position, short_run.position)


def test_contacts_come_back(tmp_path):
    run = da.Simulation(da.zoo.box_drop(height=0.01), da.Variational(dt=0.01)).run(0.1)
    run.save(tmp_path / "run.h5")
    found = da.Trajectory.load(tmp_path / "run.h5").contacts()
    np.testing.assert_array_equal(found.gap, run.contacts().gap)
    with h5py.File(tmp_path / "run.h5", "r+") as file:
        dataset: Any = file["series/contact_log"]
        log = dataset[()]
        log["owner"] = 7
        dataset[()] = log
    hdf5.seal(tmp_path / "run.h5")
    with pytest.raises(da.ModelError, match="does not fit its knots and pairs"):
        da.Trajectory.load(tmp_path / "run.h5")
