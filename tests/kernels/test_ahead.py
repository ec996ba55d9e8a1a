"""Compiling in a second process: it does its jobs, ends with the first, and its failure is nobody's."""
from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

import dalembert as da
from dalembert.formulations import implicit, variational
from dalembert.formulations.contact import engine as contact
from dalembert.kernels.cache import can_wait
from dalembert.kernels.compiler import signature_of

pytestmark = pytest.mark.skipif(not can_wait(), reason="no locks on this system, so no second process")

JOBS = """
import os, time
from dalembert.kernels import kernel

@kernel
def double(x):
    return 2.0 * x

def jobs():
    yield double, (1.0,)

def endless():
    time.sleep(1000.0)
    yield double, (1.0,)

def broken():
    if os.environ["DALEMBERT_AHEAD"] == "0":
        raise RuntimeError("here is the second process")
    yield double, (1.0,)
"""


@pytest.fixture
def run(tmp_path):
    """Runs a program that can import the jobs, with an empty cache."""
    (tmp_path / "some_jobs.py").write_text(JOBS)
    environment = {**os.environ, "DALEMBERT_CACHE": str(tmp_path / "cache"), "DALEMBERT_AHEAD": "1"}

    def start(program: str) -> subprocess.Popen:
        # a shell's background jobs, and what they start, do not hear Ctrl-C
        heard = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        program = f"{heard}import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport some_jobs, time\nfrom dalembert.kernels import ahead\n{program}"
        return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def test_the_second_process_compiles(run):
    process = run("""
ahead.prepare(some_jobs.jobs)
while not some_jobs.double.is_cached(1.0):
    time.sleep(0.05)
ahead.prepare(some_jobs.jobs)
print(some_jobs.double(4.0))
""")
    out, err = process.communicate(timeout=60)
    assert out == "8.0\n"
    assert err.count("compiling kernels for the first time") == 1
    assert len(err.splitlines()) == 1


def test_what_is_cached_needs_no_second_process(run):
    process = run("""
some_jobs.double(1.0)
ahead.prepare(some_jobs.jobs)
""")
    assert process.communicate(timeout=60) == ("", "")


def test_a_broken_second_process_does_no_harm(run):
    process = run("""
ahead.prepare(some_jobs.broken)
print(some_jobs.double(4.0))
""")
    out, err = process.communicate(timeout=60)
    assert out == "8.0\n"
    assert "Error" not in err


def _ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    try:  # a process that nobody waited for is still listed
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", ["done", "interrupted", "killed"])
def test_the_second_process_ends_with_the_first(run, how):
    process = run(f"""
second = ahead._start("some_jobs:endless")
time.sleep(1.0)
print(second.pid if second.poll() is None else "ended", flush=True)
time.sleep({0.0 if how == "done" else 1000.0})
""")
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    if how == "interrupted":
        process.send_signal(2)
    elif how == "killed":
        process.kill()
    process.communicate(timeout=60)
    patience = time.monotonic() + 20.0
    while not _ended(pid) and time.monotonic() < patience:
        time.sleep(0.05)
    assert _ended(pid)


@pytest.mark.parametrize(("jobs", "make", "formulation"), [
    (variational.ahead, da.zoo.three_link_loop, da.Variational(dt=0.01)),
    (implicit.ahead, da.zoo.three_link_loop, da.Implicit(dt=0.01)),
    (contact.ahead, da.zoo.box_drop, da.Variational(dt=0.01)),
])
def test_jobs_are_what_a_run_asks_for(jobs, make, formulation):
    """A job for other types than those of a run would be of no use: where the run found its kernels, it is cached."""
    da.Simulation(make(), formulation).run(0.02).energy()
    for kernel, arguments in jobs():
        assert kernel.is_cached(*arguments), kernel.__name__
        assert all(signature == signature_of(*arguments) for signature in kernel.overloads), kernel.__name__
