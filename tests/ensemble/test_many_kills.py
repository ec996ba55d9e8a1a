"""Whatever is killed, every run is there once, and its numbers are those of a serial run."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import h5py
import numpy as np
import pytest
from killed import ensemble

import dalembert as da

HEAD = Path(__file__).with_name("killed.py")


def start(folder: Path, backend: str, runs: int) -> subprocess.Popen[str]:
    """A head in a process of its own, with its workers in its session."""
    return subprocess.Popen([sys.executable, str(HEAD), str(folder), backend, str(runs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def begun(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "begun").read_text().split()]


def made(folder: Path) -> np.ndarray:
    """Numbers of the runs that the file holds now."""
    try:
        return np.flatnonzero(da.Ensemble.load(folder / "runs.h5").successful)
    except FileNotFoundError:
        return np.zeros(0, dtype=int)


def kill(head: subprocess.Popen[str]) -> None:
    head.kill()
    head.wait()
    with suppress(ProcessLookupError):
        os.killpg(head.pid, signal.SIGKILL)  # its workers


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs POSIX signals")
@pytest.mark.parametrize(("backend", "runs"), [
    pytest.param("processes", 40, id="processes-40"),
    *(pytest.param(name, 1000, id=f"{name}-1000", marks=pytest.mark.slow) for name in ("processes", "dask", "ray")),
])
def test_a_worker_and_then_the_head_are_killed(backend: str, runs: int, tmp_path: Path) -> None:
    if backend in ("dask", "ray") and find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    head, until = start(tmp_path, backend, runs), time.monotonic() + 300
    try:
        while len(made(tmp_path)) < 0.3 * runs or not (tmp_path / "killed").exists():
            assert head.poll() is None, head.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)
    finally:
        kill(head)
    kept = made(tmp_path)
    assert 0.3 * runs <= len(kept) < runs
    assert (tmp_path / "runs.h5.journal").exists()
    earlier = len(begun(tmp_path))

    again = start(tmp_path, backend, runs)
    said = again.communicate(timeout=600)
    assert again.returncode == 0, said
    assert f"{runs} done" in said[0]
    assert not set(begun(tmp_path)[earlier:]) & set(kept.tolist())
    assert set(begun(tmp_path)[earlier:]) >= set(range(runs)) - set(kept.tolist())
    assert not (tmp_path / "runs.h5.journal").exists()

    ensemble(tmp_path, "threads", runs, "serial.h5", workers=1)
    assert (tmp_path / "runs.h5").read_bytes() == (tmp_path / "serial.h5").read_bytes()
    with h5py.File(tmp_path / "runs.h5") as file:
        assert np.asarray(file["status"]).tolist() == [1] * runs
        assert np.asarray(file["results/tip"]).shape == (runs, 3)
