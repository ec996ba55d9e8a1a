"""Compiling in a second process: it does its jobs, ends with the first, and its failure is nobody's."""
from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

import dalembert as da
from dalembert.formulations.implicit import contact_engine as implicit_contact
from dalembert.formulations.implicit import engine as implicit
from dalembert.formulations.variational import contact_engine as contact
from dalembert.formulations.variational import engine as variational
from dalembert.kernels.cache import can_wait
from dalembert.kernels.compiler import signature_of

pytestmark = pytest.mark.skipif(not can_wait(), reason="no locks on this system, so no second process")

JOBS = """
import os, time
from dalembert.kernels import kernel

@kernel
def double(x):
    return 2.0 * x

@kernel
def triple(x):
    return 3.0 * x

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
some_jobs.triple(1.0)
while not some_jobs.double.is_cached(1.0):
    time.sleep(0.05)
ahead.prepare(some_jobs.jobs)
print(some_jobs.double(4.0))
""")
    out, err = process.communicate(timeout=60)
    assert out == "8.0\n"
    assert err.count("compiling kernels") == 1
    assert len(err.splitlines()) == 1


def test_a_full_cache_needs_no_second_process(run):
    """Nothing is said either, whatever jobs the cache does not hold: what is said is that something is compiled now."""
    program = """
ahead._start = lambda name: print("started", name)
ahead.prepare(some_jobs.broken)
some_jobs.triple(1.0)
"""
    out, err = run(program).communicate(timeout=60)
    assert out == "started some_jobs:broken\n"
    assert err.count("compiling kernels") == 1
    assert run(program).communicate(timeout=60) == ("", "")


def test_jobs_that_are_cached_need_no_second_process(run):
    process = run("""
some_jobs.double(1.0)
ahead._start = lambda name: print("started", name)
ahead.prepare(some_jobs.jobs)
some_jobs.triple(1.0)
""")
    out, err = process.communicate(timeout=60)
    assert out == ""
    assert len(err.splitlines()) == 1


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


@pytest.mark.slow
def test_a_run_says_once_that_it_compiles(tmp_path):
    """With an empty cache; with a full one it says nothing, also where the first run ended before its second process."""
    program = "import dalembert as da; da.Simulation(da.zoo.pendulum(), da.Variational(dt=0.01)).run(0.02)"
    environment = {**os.environ, "DALEMBERT_CACHE": str(tmp_path), "DALEMBERT_AHEAD": "1"}
    said = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True).stderr.splitlines()
        for _ in range(2)
    ]
    assert len(said[0]) == 1
    assert "compiling" in said[0][0]
    assert said[1] == []


@pytest.mark.parametrize(("jobs", "make", "formulation"), [
    (variational.ahead, da.zoo.three_link_loop, da.Variational(dt=0.01)),
    (implicit.ahead, da.zoo.three_link_loop, da.Implicit(dt=0.01)),
    (contact.ahead, da.zoo.box_drop, da.Variational(dt=0.01)),
    (implicit_contact.ahead, da.zoo.box_drop, da.Implicit(dt=0.01)),
])
def test_jobs_are_what_a_run_asks_for(jobs, make, formulation):
    """A job for other types than those of a run would be of no use: where the run found its kernels, it is cached."""
    da.Simulation(make(), formulation).run(0.02).energy()
    for kernel, arguments in jobs():
        assert kernel.is_cached(*arguments), kernel.__name__
        assert all(signature == signature_of(*arguments) for signature in kernel.overloads), kernel.__name__
