"""Trajectories in HDF5 files: what a run holds, bit for bit, in a file that appears whole or not at all.

Layout, for readers in other languages: names, masses and units at the root (the units of all joints in one list,
``freedom`` of them for each joint), the mechanism as a JSON model file in ``model``, one dataset per series in the group ``series`` (first axis: time), the kind of file,
its format and the version that wrote it in the root's attributes. Numbers are float64 and int64; text is UTF-8.
"""
from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import dalembert
from dalembert.errors import MissingExtraError, ModelError
from dalembert.io.whole import write_whole
from dalembert.simulation.trajectory import Trajectory

KIND = "dalembert trajectory"
#: raised when a file of the new layout cannot be read by the code of the old one
FORMAT = 1

NAMES = ("bodies", "joints", "couplings")
#: names that only runs with contacts, with paths or with events have
SELDOM = ("touching", "paths", "happenings")
NEEDED = ("time", "position", "orientation")


def save_trajectory(trajectory: Trajectory, path: Path) -> None:
    """Write a trajectory; a file that was there before stays as it was until the new one is complete."""
    h5py = _h5py()
    with write_whole(path) as temporary, h5py.File(temporary, "x") as file:
        file.attrs.update(
            kind=KIND, format=FORMAT, dalembert=dalembert.__version__,
            mechanism=_text(trajectory.mechanism), formulation=trajectory.formulation,
        )
        units = [unit for joint in trajectory.coordinate_units for unit in joint]
        seldom = [(n, getattr(trajectory, n)) for n in SELDOM if getattr(trajectory, n)]
        for name, words in [*((n, getattr(trajectory, n)) for n in NAMES), ("coordinate_units", units), *seldom]:
            file.create_dataset(name, data=np.array([_text(w) for w in words], dtype=object), dtype=h5py.string_dtype())
        file["freedom"] = np.array([len(joint) for joint in trajectory.coordinate_units], dtype=np.int64)
        file["mass"], file["inertia"] = trajectory.mass, trajectory.inertia
        if trajectory.armature is not None:
            file["armature"] = trajectory.armature
        text = _model_text(trajectory)
        if text:
            file.create_dataset("model", data=np.frombuffer(text, dtype=np.uint8), compression="gzip")
        series = file.create_group("series")
        for name, values in trajectory._values.items():
            series[name] = values


def load_trajectory(path: Path) -> Trajectory:
    """Read a trajectory into memory. ModelError when the file is damaged or holds something else."""
    h5py = _h5py()
    with open(path, "rb"):  # a file that is missing or forbidden says so in Python's own words
        pass
    try:
        with h5py.File(path, "r") as file:
            _check_kind(file, path)
            return _read(file)
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path} cannot be read as a trajectory: {_reason(path, error)}") from error


def _read(file: Any) -> Trajectory:
    names: dict[str, Any] = {name: tuple(file[name].asstr()[()]) for name in (*NAMES, *(n for n in SELDOM if n in file))}
    values = {name: dataset[()] for name, dataset in file["series"].items()}
    units = np.split(file["coordinate_units"].asstr()[()], np.cumsum(file["freedom"][()])[:-1]) if names["joints"] else []
    knots = {name: len(values[name]) for name in NEEDED}
    if len(set(knots.values())) != 1:
        raise ValueError(f"its series differ in length: {knots}")
    return Trajectory(
        mechanism=str(file.attrs["mechanism"]), formulation=str(file.attrs["formulation"]), **names,
        coordinate_units=tuple(tuple(joint) for joint in units), mass=file["mass"][()], inertia=file["inertia"][()], _values=values,
        armature=file["armature"][()] if "armature" in file else None, model=_read_model(file),
    )


def _model_text(trajectory: Trajectory) -> bytes:
    """The mechanism as a model file, empty where it has none or no file can hold it: the series do not depend on it."""
    from dalembert.io.native import dumps

    try:
        return b"" if trajectory.model is None else dumps(trajectory.model)
    except (ModelError, MissingExtraError):
        return b""


def _read_model(file: Any) -> Any:
    from dalembert.io.native import loads

    try:
        return loads(file["model"][()].tobytes(), ".json", "its model") if "model" in file else None
    except MissingExtraError:
        return None
    except ModelError as error:  # of another version: the series do not depend on it
        warnings.warn(f"{file.filename} is read without the mechanism that ran: {error}", RuntimeWarning, stacklevel=4)
        return None


def _check_kind(file: Any, path: Path) -> None:
    kind, number, version = (file.attrs.get(name) for name in ("kind", "format", "dalembert"))
    if kind != KIND:
        found = f"it says {kind!r}" if kind is not None else f"its root holds {', '.join(sorted(file)) or 'nothing'}"
        raise ModelError(f"{path} is an HDF5 file, but not a {KIND}: {found}")
    if number != FORMAT:
        raise ModelError(
            f"{path} has format {number}, written by dalembert {version}; dalembert {dalembert.__version__} reads format {FORMAT}. "
            "Install the version that wrote it, or a later one."
        )


def _reason(path: Path, error: Exception) -> str:
    with open(path, "rb") as file:
        start = file.read(8)
    if start != b"\x89HDF\r\n\x1a\n":
        return f"it is no HDF5 file (it begins with {start!r})" if start else "it is empty"
    return f"the file is damaged or incomplete ({error})"


def _text(word: str) -> str:
    """``word``, if a file can hold it."""
    if "\0" in word or word != word.encode(errors="replace").decode():
        raise ModelError(f"the name {word!r} cannot be saved: HDF5 takes neither zero characters nor half surrogates")
    return word


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise MissingExtraError("saving and loading trajectories needs h5py: pip install dalembert[files]") from None
    return h5py
