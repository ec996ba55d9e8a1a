"""Rounds of the fuzzer with faults: processes that are killed, caches that are damaged, disks that are full.

What was said to be written is there, nothing is half there, and the next start works.
"""
from __future__ import annotations

import csv
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from fuzzing import Failure
from sandbox import measured

import dalembert as da
from dalembert.kernels import cache as kernel_cache

#: of Linux: what children leave behind when they die become our own, which we can wait for
PR_SET_CHILD_SUBREAPER = 36


@cache
def run() -> da.Trajectory:
    return da.Simulation(da.zoo.double_pendulum(), da.Variational(dt=0.01)).run(0.1)


def killed(work: Callable[[Callable[[int], object]], object], seconds: float) -> int:
    """Fork, let the child work and say how far it is, and kill it. The last that it said, or -1."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(reading)
        try:
            work(lambda number: os.write(writing, number.to_bytes(4, "big")))
        finally:
            os._exit(0)
    os.close(writing)
    time.sleep(seconds)
    try:
        os.killpg(child, signal.SIGKILL)  # with all that it started
    except ProcessLookupError:  # it had not begun, or was done
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with suppress(ChildProcessError):  # and what it started, which is ours then: while that is dying it may be writing still
        while True:
            os.waitpid(-child, 0)
    data = b""
    while select.select([reading], [], [], 0.0)[0] and (part := os.read(reading, 2**16)):
        data += part
    os.close(reading)
    return int.from_bytes(data[-4:], "big") if data else -1


# ---- writers that are killed


def _named(number: int) -> da.Trajectory:
    return replace(run(), mechanism=f"version {number}")


def _number_of_page(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    if not text.endswith("</html>\n"):
        raise ValueError("the page ends too early")
    data = text.partition('type="application/json">')[2].partition("</script>")[0]
    return int(json.loads(data)["title"].split()[1])


def _number_of_table(path: Path) -> int:
    rows = list(csv.reader(path.read_text().splitlines()))
    if len(rows) != len(run()) + 1 or {len(row) for row in rows} != {len(rows[0])}:
        raise ValueError("the table is not whole")
    return -1


def _model(number: int) -> da.Mechanism:
    mechanism = da.zoo.double_pendulum()
    mechanism.name = f"version {number}"
    return mechanism


#: by ending: how to write version k, and how to read its number (-1: it has none)
WRITERS: dict[str, tuple[Callable[[int, Path], Any], Callable[[Path], int]]] = {
    ".h5": (lambda k, path: _named(k).save(path), lambda path: int(da.Trajectory.load(path).mechanism.split()[1])),
    ".html": (lambda k, path: _named(k).to_html(path), _number_of_page),
    ".csv": (lambda k, path: _named(k).save(path), _number_of_table),
    ".npz": (lambda k, path: da.State(f"version {k}", (0.0, 1, 0.1), np.full(2000, float(k)), np.zeros(1)).save(path), lambda path: int(da.State.load(path).kind.split()[1])),
    ".json": (lambda k, path: _model(k).save(path), lambda path: int(da.load(path).name.split()[1])),
    ".toml": (lambda k, path: _model(k).save(path), lambda path: int(da.load(path).name.split()[1])),
    ".png": (lambda k, path: _named(k).plot("energy", path=path), lambda path: -1 if path.read_bytes().endswith(b"IEND\xaeB`\x82") else int("no end")),
}


def kill_writer(random: np.random.Generator, folder: Path, trial: int) -> None:
    """A process that writes one file again and again is killed: the file is the last one that was said to be written, or the next."""
    ending = list(WRITERS)[trial % len(WRITERS)]
    write, read = WRITERS[ending]
    folder.mkdir()
    path = folder / f"file{ending}"

    def work(say: Callable[[int], object]) -> None:
        for k in range(10_000):
            write(k, path)
            say(k)

    said = killed(work, float(random.uniform(0.0, 0.15)))
    program = f"# a process that wrote {path.name} was killed; see kill_writer in tests/fuzz/rounds_faults.py"
    if not path.exists():
        if said >= 0:
            raise Failure(f"version {said} of {path.name} was said to be written, and there is no file", program)
    else:
        try:
            found = read(path)
        except Exception as error:
            raise Failure(f"{path.name} cannot be read after a kill: {type(error).__name__}: {error}", program) from error
        if found >= 0 and not said <= found <= said + 1:
            raise Failure(f"version {said} of {path.name} was said to be written, and {found} is there", program)
    write(0, path)
    if [item.name for item in folder.iterdir()] != [path.name]:
        raise Failure(f"something is left after the next save: {sorted(item.name for item in folder.iterdir())}", program)


# ---- runs that are killed


def _member(number: int) -> da.Simulation:
    sim = da.Simulation(da.zoo.double_pendulum(), da.Variational(dt=0.01))
    sim.set_joint("joint 1", rate=float(number % 7))
    return sim


@cache
def _whole(number: int) -> np.ndarray:
    return _member(number).run(4.0).position


def _check_parts(files: list[Path], number: int, program: str) -> None:
    """The files are whole, follow one another, and hold what the run gives without a kill, to the bit."""
    begin = 0
    for file in files:
        try:
            found = da.Trajectory.load(file).position
        except Exception as error:
            raise Failure(f"{file.name} cannot be read after a kill: {type(error).__name__}: {error}", program) from error
        if not np.array_equal(found, _whole(number)[begin : begin + len(found)]):
            raise Failure(f"{file.name} does not hold what the run gives", program)
        begin += len(found) - 1


def _check_leftovers(folder: Path, program: str) -> None:
    known = {item.name for item in folder.glob("*.h5")} | {"next.h5"}
    run().save(folder / "next.h5")
    if {item.name for item in folder.iterdir()} != known:
        raise Failure(f"something is left after the next save: {sorted(item.name for item in folder.iterdir())}", program)


def kill_run(random: np.random.Generator, folder: Path, trial: int) -> None:
    """A process that streams a run into a folder is killed: the parts in it are whole and those of the run."""
    folder.mkdir()
    program = "# a process that streamed a run was killed; see kill_run in tests/fuzz/rounds_faults.py"
    _whole(trial % 7)
    killed(lambda say: _member(trial).stream(4.0, folder / "run", part=0.1), float(random.uniform(0.0, 0.5)))
    if (folder / "run").exists():
        _check_parts(sorted((folder / "run").glob("*.h5")), trial % 7, program)
        _check_leftovers(folder / "run", program)
    elif list(folder.iterdir()):
        raise Failure(f"something else is there: {sorted(item.name for item in folder.iterdir())}", program)
    files = _member(trial).stream(0.2, folder / "again", part=0.1)
    _check_parts(files, trial % 7, program)


def kill_ensemble(random: np.random.Generator, folder: Path, trial: int) -> None:
    """Two processes that run member after member and save each are killed: the members in the folder are whole."""
    folder.mkdir()
    program = "# two processes with runs were killed; see kill_ensemble in tests/fuzz/rounds_faults.py"
    for number in range(7):
        _whole(number)

    def work(say: Callable[[int], object]) -> None:
        mine = 0 if os.fork() == 0 else 1
        for number in range(mine, 10_000, 2):
            _member(number).run(4.0).save(folder / f"member-{number}.h5")

    killed(work, float(random.uniform(0.0, 0.4)))
    for file in folder.glob("*.h5"):
        _check_parts([file], int(file.stem.partition("-")[2]) % 7, program)
    _check_leftovers(folder, program)


def end_run(random: np.random.Generator, folder: Path, trial: int) -> None:
    """A process with a run is asked to end (SIGTERM): what was computed is on the exception, and in the file that it is saved to."""
    folder.mkdir()
    program, path = "# a run was ended; see end_run in tests/fuzz/rounds_faults.py", folder / "kept.h5"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            sim = da.Simulation(da.zoo.double_pendulum(), da.Variational(dt=0.01))
            sim.run(1e4, progress=False, control=lambda sim: {} if sim.time > 0.0 else (folder / "ready").touch() or {})
        except da.Terminated as error:
            error.trajectory.save(path)  # type: ignore[attr-defined]
            code = 7
        finally:
            os._exit(code)
    while not (folder / "ready").exists():
        time.sleep(0.001)
    time.sleep(float(random.uniform(0.0, 0.3)))
    os.kill(child, signal.SIGTERM)
    status = os.waitpid(child, 0)[1]
    if os.waitstatus_to_exitcode(status) != 7:
        raise Failure(f"a run that was asked to end left with {os.waitstatus_to_exitcode(status)}", program)
    kept = da.Trajectory.load(path)
    fresh = da.Simulation(da.zoo.double_pendulum(), da.Variational(dt=0.01)).run((len(kept) - 1) * 0.01, progress=False) if len(kept) > 1 else kept
    if not np.array_equal(fresh.position, kept.position):
        raise Failure("what was kept is not what the run gives", program)


# ---- compilers that are killed, caches that are damaged

KERNELS = """
from dalembert.kernels import inline, kernel

@inline
def pick(values, index):
    return values[index]

@kernel
def inner(x, index):
    return 2.0 * pick((x + 0.0, x + 1.0, x + 2.0), index)

@kernel
def outer(x):
    return inner(x, 0) + inner(x, 1) * inner(x, 2)
"""
EXPECTED = 2.0 * 1.5 + 2.0 * 2.5 * 2.0 * 3.5


def _compile(folder: Path) -> str:
    """What the kernels of a folder say, with the cache in that folder."""
    os.environ["DALEMBERT_CACHE"] = str(folder / "cache")
    for function in (kernel_cache._lock_file, kernel_cache._mark_used, kernel_cache._remove_leftovers, kernel_cache.remove_unused, kernel_cache.complain):
        function.cache_clear()
    file = folder / "one" / "two" / "fuzzed_kernels.py"  # the cache goes by the last words of its path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(KERNELS)
    spec = spec_from_file_location("fuzzed_kernels", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["fuzzed_kernels"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return repr(float(module.outer(1.5)))


def _check_next_start(folder: Path, what: str) -> None:
    for _ in range(2):
        found = measured(lambda: _compile(folder))
        if found.answer != repr(EXPECTED):
            raise Failure(f"after {what} the next start says {found.answer}", f"# see {what!r} in tests/fuzz/rounds_faults.py")


def kill_compiler(random: np.random.Generator, folder: Path, trial: int) -> None:
    """A process that compiles kernels is killed; the next one works."""
    folder.mkdir()
    killed(lambda say: _compile(folder), float(random.uniform(0.0, 1.5)))
    _check_next_start(folder, "a killed compiler")
    halves = [item.name for item in (folder / "cache").rglob("*") if item.is_file() and item.suffix in (".kernel", ".part") and item.stat().st_size < 100]
    if halves:
        raise Failure(f"half an entry is left: {halves}", "# see kill_compiler in tests/fuzz/rounds_faults.py")


@cache
def _full_cache() -> dict[str, bytes]:
    """A cache with everything in it, by the names of its files."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        measured(lambda: _compile(folder))
        return {str(path.relative_to(folder)): path.read_bytes() for path in (folder / "cache").rglob("*") if path.is_file()}


def damage_cache(random: np.random.Generator, folder: Path, trial: int) -> None:
    """Files of the cache are changed, cut, emptied or exchanged; the next process works."""
    folder.mkdir(mode=0o700)
    for name, data in _full_cache().items():
        changed = bytearray(data)
        if name.endswith((".kernel", ".part")) and random.random() < 0.7:
            for _ in range(random.integers(1, 4)):
                kind, place = random.integers(5), int(random.integers(max(1, len(changed))))
                if kind == 0 and changed:
                    changed[place % len(changed)] ^= 1 << int(random.integers(8))
                elif kind == 1:
                    del changed[place:]
                elif kind == 2:
                    changed += bytes(random.integers(0, 256, 50, dtype=np.uint8))
                elif kind == 3:
                    changed[place : place + 100] = bytes(min(100, max(0, len(changed) - place)))
                else:
                    changed = bytearray(next(d for n, d in _full_cache().items() if n != name and n.endswith((".kernel", ".part"))))
        path = folder / name
        for parent in reversed([p for p in path.parents if folder in p.parents]):
            parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(bytes(changed))
    _check_next_start(folder, "a damaged cache")


# ---- disks that are full


def fill_disk(random: np.random.Generator, folder: Path, trial: int) -> None:
    """Files may have so many bytes and no more: what cannot be written says so, and what was there stays."""
    ending = list(WRITERS)[trial % len(WRITERS)]
    write, read = WRITERS[ending]
    folder.mkdir()
    path = folder / f"file{ending}"
    write(7, path)
    before, room = path.read_bytes(), int(random.integers(0, 2 * path.stat().st_size))

    def work() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        try:
            write(8, path)
        except da.SaveError:
            return "said so"
        return "written"

    found = measured(work)
    program = f"# {path.name} with {room} bytes of room; see fill_disk in tests/fuzz/rounds_faults.py"
    if found.answer not in ("said so", "written"):
        raise Failure(f"writing {path.name} with {room} bytes of room ended with {found.answer}", program)
    if found.answer == "said so" and path.read_bytes() != before:
        raise Failure(f"{path.name} is not what it was", program)
    number = read(path)
    if number >= 0 and number != (8 if found.answer == "written" else 7):
        raise Failure(f"{path.name} holds version {number} although it was {found.answer}", program)
    if [item.name for item in folder.iterdir()] != [path.name]:
        raise Failure(f"something is left: {sorted(item.name for item in folder.iterdir())}", program)


def warm(folder: Path) -> None:
    """Every writer once, so that what they need is loaded."""
    folder.mkdir()
    for ending, (write, read) in WRITERS.items():
        write(0, folder / f"file{ending}")
        read(folder / f"file{ending}")


ROUNDS = {
    "kill a writer": kill_writer, "kill a run": kill_run, "kill an ensemble": kill_ensemble, "end a run": end_run,
    "kill a compiler": kill_compiler, "damage the cache": damage_cache, "fill the disk": fill_disk,
}
