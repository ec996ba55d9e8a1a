"""Workers of other processes: runs that kill them, clusters of the user's, endings from outside."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from killed import ensemble

import dalembert as da

HEAD = Path(__file__).with_name("killed.py")


def deadly(simulation: da.Simulation, parameters: dict[str, float]) -> None:
    if parameters["number"] == 3:
        os._exit(1)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["processes", "loky", "dask", "ray"])
def test_a_run_that_always_kills_its_worker_is_a_failure(backend: str, tmp_path: Path) -> None:
    pytest.importorskip("joblib" if backend in ("processes", "loky") else backend)
    settings = dict(parameters={"number": list(range(8))}, starts={"joint 1": 0.5}, reduce="end")
    found = da.run_many(da.zoo.double_pendulum(), da.Variational(dt=0.01), 0.1, prepare=deadly, backend=backend, workers=2, out=tmp_path / "runs.h5", **settings)  # type: ignore[arg-type]
    assert [(failure.index, failure.error) for failure in found.failures] == [(3, "WorkerDied")]
    assert found.successful.sum() == 7
    assert len({position.tobytes() for position in found.results["position"][found.successful]}) == 1


@pytest.mark.slow
def test_a_client_of_the_users_is_left_alone(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None, processes=False) as cluster, distributed.Client(cluster) as client:
        (tmp_path / "killed").touch()
        for backend in (client, "dask"):  # which takes the current one
            found = ensemble(tmp_path, backend, 10, f"{type(backend).__name__}.h5")
            assert found.successful.all()
        assert client.status == "running"
        assert client.submit(sum, [1, 2]).result() == 3
    serial = ensemble(tmp_path, "threads", 10, "serial.h5")
    assert np.array_equal(serial.results["tip"], found.results["tip"])


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_a_program_that_is_asked_to_end(number: signal.Signals, backend: str, tmp_path: Path) -> None:
    (tmp_path / "killed").touch()
    head, until = subprocess.Popen([sys.executable, str(HEAD), str(tmp_path), backend, "400"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), time.monotonic() + 200
    while not (tmp_path / "begun").exists() or len((tmp_path / "begun").read_text().split()) < 40:
        assert head.poll() is None, head.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    head.send_signal(number)
    out, err = head.communicate(timeout=100)
    assert head.returncode == (143 if number == signal.SIGTERM else 0), err
    assert ("runs that are going are finished" in err and "to do" in out) == (number == signal.SIGINT)
    found = da.Ensemble.load(tmp_path / "runs.h5")
    assert 20 < found.successful.sum() < 400
    assert not found.failures
    (tmp_path / "runs.h5.journal").unlink()  # the HDF5 file has them, too
    assert np.array_equal(da.Ensemble.load(tmp_path / "runs.h5").successful, found.successful)
