"""Trajectories in HDF5 files: what a run holds, bit for bit, in a file that appears whole or not at all.

Layout, for readers in other languages: names, masses and units at the root (the units of all joints in one list,
``freedom`` of them for each joint), the mechanism as a JSON model file in ``model``, one dataset per series in the group ``series`` (first axis: time), the kind of file,
its format and the version that wrote it in the root's attributes. Numbers are float64 and int64; text is UTF-8. The first 512 bytes, which
HDF5 leaves to users, are text with a checksum of the rest: the HDF5 library never sees a file that is damaged, which it might not survive.
"""
from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import dalembert
from dalembert.errors import BudgetError, MissingExtraError, ModelError
from dalembert.io.budget import Budget, Meter
from dalembert.io.shapes import check_shapes
from dalembert.io.whole import reserve, write_whole
from dalembert.simulation.trajectory import Trajectory

KIND = "dalembert trajectory"
#: raised when a file of the new layout cannot be read by the code of the old one
FORMAT = 2
#: formats that can be read; the first one has no checksum
READABLE = (1, FORMAT)
#: what a file begins with, and bytes before HDF5's own part
SEAL, BLOCK = "dalembert trajectory, an HDF5 file", 512

NAMES = ("bodies", "joints", "couplings")
#: names that only runs with contacts, with paths or with events have
SELDOM = ("touching", "paths", "happenings")
NUMBERS = ("freedom", "mass", "inertia")
#: numbers that not every run has
OPTIONAL = ("armature", "model")
#: attributes of the root, and the type of each
ATTRIBUTES = {"kind": str, "format": int, "dalembert": str, "mechanism": str, "formulation": str}

#: bytes up to which a file is put together in memory, and beyond which room on the disk is asked for first
IN_MEMORY = 32 * 2**20

#: what a file holds, by path: numbers or words
Content = dict[str, Any]


def save_trajectory(trajectory: Trajectory, path: Path) -> None:
    """Write a trajectory; a file that was there before stays as it was until the new one is complete."""
    content, attributes = content_of(trajectory), attributes_of(trajectory)
    size = sum(values.nbytes for values in content.values() if not isinstance(values, list))
    write_sealed(path, size, SEAL, lambda file: write_group(file, attributes, content))


def write_sealed(path: Path, size: int, title: str, fill: Callable[[Any], None]) -> None:
    """Write an HDF5 file of about ``size`` bytes, which ``fill`` fills, with a title and a checksum; it appears whole or not at all."""
    h5py = h5py_module()
    with write_whole(path) as temporary:
        if size <= IN_MEMORY:  # HDF5 does not survive a disk that is full
            with h5py.File(temporary, "w", driver="core", backing_store=False, userblock_size=BLOCK) as file:
                fill(file)
                file.flush()
                image = file.id.get_file_image()
            temporary.write_bytes(bytes(BLOCK) + image)  # which is without that block
        else:
            reserve(temporary, size + IN_MEMORY)
            with h5py.File(temporary, "w", userblock_size=BLOCK) as file:
                fill(file)
        seal(temporary, title)


def seal(path: Path, title: str = SEAL) -> None:
    """Write the checksum of a file into its first bytes."""
    with open(path, "rb+") as file:
        text = f"{title}\nsha256 of what follows byte {BLOCK}: {_checksum(file)}\n"
        file.seek(0)
        file.write(text.ljust(BLOCK - 1).encode() + b"\n")


def _checksum(file: Any) -> str:
    digest = hashlib.sha256()
    file.seek(BLOCK)
    while part := file.read(2**20):
        digest.update(part)
    return digest.hexdigest()


def check_seal(file: Any, title: str, what: str) -> bool:
    """Whether an open file is sealed; a ModelError where it is, and has changed."""
    start = file.read(BLOCK)
    if not start.startswith(title.encode()):
        return False
    found = re.search(rb"sha256 [\w ]+: ([0-9a-f]{64})\n", start)
    if found is None or found.group(1).decode() != _checksum(file):
        raise ModelError(f"{file.name} cannot be read as {what}: the file is damaged or incomplete (it is not what was written: its checksum is another one)")
    return True


def write_group(file: Any, attributes: Mapping[str, Any], content: Content) -> None:
    """Write attributes and content into a file, or into a group of one."""
    file.attrs.update(**attributes)
    for name, values in content.items():
        if isinstance(values, list):
            file.create_dataset(name, data=np.array(values, dtype=object), dtype=h5py_module().string_dtype())
        elif name == "model":
            file.create_dataset(name, data=values, compression="gzip")
        else:
            file[name] = values


def load_trajectory(path: Path, budget: Budget | None = None) -> Trajectory:
    """Read a trajectory into memory. ModelError when the file is damaged or holds something else."""
    h5py = h5py_module()
    meter = Meter(path, budget)
    with open(path, "rb") as opened:  # a file that is missing or forbidden says so in Python's own words
        held = on_disk(opened.fileno())
        meter.bytes(os.fstat(opened.fileno()).st_size - held, "a file with holes")
        sealed = check_seal(opened, SEAL, "a trajectory")
    try:
        with h5py.File(path, "r") as file:
            _check_kind(file, path)
            attributes, content = read_group(h5py, file, held, meter)
        if not sealed and attributes["format"] != 1:
            raise ValueError("its checksum is lost")
        check_shapes(content)
    except BudgetError:
        raise
    except (OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, ArithmeticError, MemoryError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path} cannot be read as a trajectory: {_reason(path, error)}") from error
    if not sealed:
        warnings.warn(f"{path} is of a version that wrote no checksums: whether it is damaged cannot be said. Save it again to have one.", RuntimeWarning, stacklevel=3)
    return trajectory_of(attributes, content, path, meter)


def attributes_of(trajectory: Trajectory) -> dict[str, Any]:
    """What is written of a trajectory as a whole."""
    return dict(kind=KIND, format=FORMAT, dalembert=dalembert.__version__, mechanism=_text(trajectory.mechanism), formulation=trajectory.formulation)


def content_of(trajectory: Trajectory) -> Content:
    """What is written of a trajectory."""
    units = [unit for joint in trajectory.coordinate_units for unit in joint]
    seldom = [(n, getattr(trajectory, n)) for n in SELDOM if getattr(trajectory, n)]
    content: Content = {}
    for name, words in [*((n, getattr(trajectory, n)) for n in NAMES), ("coordinate_units", units), *seldom]:
        content[name] = [_text(word) for word in words]
    content["freedom"] = np.array([len(joint) for joint in trajectory.coordinate_units], dtype=np.int64)
    content["mass"], content["inertia"] = trajectory.mass, trajectory.inertia
    if trajectory.armature is not None:
        content["armature"] = trajectory.armature
    text = _model_text(trajectory)
    if text:
        content["model"] = np.frombuffer(text, dtype=np.uint8)
    return content | {f"series/{name}": values for name, values in trajectory._values.items()}


def read_group(h5py: Any, file: Any, held: int, meter: Meter) -> tuple[dict[str, Any], Content]:
    """Attributes and content of a trajectory in a file, or in a group of one. ``held``: bytes that it takes on the disk; beyond these the budget is spent."""
    attributes = {name: kind(file.attrs[name]) for name, kind in ATTRIBUTES.items()}
    series = own(h5py, file, "series")
    names = [*NAMES, "coordinate_units", *(n for n in SELDOM if n in file), *NUMBERS, *(n for n in OPTIONAL if n in file)]
    datasets = {name: own(h5py, file, name) for name in names}
    meter.elements(len(series), "its series")
    datasets |= {f"series/{name}": own(h5py, series, name) for name in series}
    needed = sum(float(np.prod(np.array(d.shape, dtype=float))) * d.dtype.itemsize for d in datasets.values())
    meter.bytes(max(0.0, needed - held), "its content")
    return attributes, {name: _read(h5py, dataset, name, held, meter) for name, dataset in datasets.items()}


def own(h5py: Any, group: Any, name: str) -> Any:
    """A member of a group that lies in this file: links to other files, and data that lie in other files, are refused."""
    link = group.get(name, getlink=True)
    if link is None:
        raise KeyError(f"it has no {name!r}")
    found = group[name] if isinstance(link, h5py.HardLink) else None
    if found is None or (isinstance(found, h5py.Dataset) and (found.external or found.is_virtual)):
        raise ModelError(f"{group.file.filename} has {name!r} in another file; everything must lie in this one")
    return found


def _read(h5py: Any, dataset: Any, name: str, held: int, meter: Meter) -> Any:
    """The numbers or words of a dataset."""
    words = name in (*NAMES, *SELDOM, "coordinate_units")
    if not words:
        if not plain(dataset.dtype):
            raise ValueError(f"{name!r} holds no numbers")
        return dataset[()]
    if h5py.check_string_dtype(dataset.dtype) is None or dataset.ndim != 1:
        raise ValueError(f"{name!r} is no list of names")
    meter.elements(len(dataset), f"{name!r}")
    if len(dataset) * held <= meter.left["bytes"]:
        return [str(word) for word in dataset.asstr()[()]]
    found = []
    for k in range(len(dataset)):  # one by one: all might be one long text
        found.append(str(dataset.asstr()[k]))
        meter.bytes(len(found[-1]), f"{name!r}")
    return found


def plain(dtype: np.dtype) -> bool:
    """Whether numbers, or records of numbers, have this type."""
    if dtype.names is not None:
        return all(plain(dtype[name]) for name in dtype.names)
    return dtype.base.kind in "fiu" and dtype.metadata is None


def trajectory_of(attributes: Mapping[str, Any], content: Content, path: Path | str, meter: Meter | None = None) -> Trajectory:
    """The trajectory that a file's content is one of."""
    meter = meter or Meter(path)
    names: dict[str, Any] = {name: tuple(content[name]) for name in (*NAMES, *SELDOM) if name in content}
    units, ends = content["coordinate_units"], np.cumsum(content["freedom"]).tolist()
    return Trajectory(
        mechanism=attributes["mechanism"], formulation=attributes["formulation"], **names,
        coordinate_units=tuple(tuple(units[start:end]) for start, end in zip([0, *ends], ends)), mass=content["mass"], inertia=content["inertia"],
        _values={name.removeprefix("series/"): values for name, values in content.items() if name.startswith("series/")},
        armature=content.get("armature"), model=_read_model(content, path, meter),
    )


def _model_text(trajectory: Trajectory) -> bytes:
    """The mechanism as a model file, empty where it has none or no file can hold it: the series do not depend on it."""
    from dalembert.io.native import dumps

    try:
        return b"" if trajectory.model is None else dumps(trajectory.model)
    except (ModelError, MissingExtraError):
        return b""


def _read_model(content: Content, path: Path | str, meter: Meter) -> Any:
    from dalembert.io.load import guarded
    from dalembert.io.native import loads

    try:
        return guarded(path, lambda: loads(content["model"].tobytes(), ".json", "its model", meter=meter)) if "model" in content else None
    except MissingExtraError:
        return None
    except BudgetError:
        raise
    except ModelError as error:  # of another version: the series do not depend on it
        warnings.warn(f"{path} is read without the mechanism that ran: {error}", RuntimeWarning, stacklevel=4)
        return None


def _check_kind(file: Any, path: Path) -> None:
    kind, number, version = (file.attrs.get(name) for name in ("kind", "format", "dalembert"))
    if kind != KIND:
        found = f"it says {kind!r}" if kind is not None else f"its root holds {', '.join(sorted(file)[:20]) or 'nothing'}"
        raise ModelError(f"{path} is an HDF5 file, but not a {KIND}: {found}")
    if not any(number == known for known in READABLE):
        raise ModelError(
            f"{path} has format {number}, written by dalembert {version}; dalembert {dalembert.__version__} reads format {FORMAT}. "
            "Install the version that wrote it, or a later one."
        )


def on_disk(handle: int) -> int:
    """Bytes that an open file takes: of one with holes, less than its length."""
    found = os.fstat(handle)
    return min(found.st_size, 512 * found.st_blocks) if hasattr(found, "st_blocks") else found.st_size


def _reason(path: Path, error: Exception) -> str:
    with open(path, "rb") as file:
        start = file.read(8)
    if start != b"\x89HDF\r\n\x1a\n" and not (start and SEAL.encode().startswith(start)):
        return f"it is no HDF5 file (it begins with {start!r})" if start else "it is empty"
    return f"the file is damaged or incomplete ({error})"


def _text(word: str) -> str:
    """``word``, if a file can hold it."""
    if "\0" in word or word != word.encode(errors="replace").decode():
        raise ModelError(f"the name {word!r} cannot be saved: HDF5 takes neither zero characters nor half surrogates")
    return word


def h5py_module() -> Any:
    """h5py, which is an extra."""
    try:
        import h5py
    except ImportError:
        raise MissingExtraError("saving and loading HDF5 files needs h5py: pip install dalembert[files]") from None
    return h5py
