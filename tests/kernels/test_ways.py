"""The three ways to run kernels: compiled by our compiler, by plain Numba, or not at all. They agree."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from dalembert.kernels import cache
from dalembert.kernels.interpreted import interpreted
from dalembert.kernels.plain import plain

RUN = """
import dalembert as da
run = da.Simulation(da.zoo.double_pendulum(), da.{}(dt=0.01)).run(0.05)
results = [run.position, run.energy().kinetic, run.energy().potential, run.joint("joint 1").force]
"""
SAY = "\nimport json\nprint(json.dumps([result.tolist() for result in results]))"
#: as a later Numba might be
BREAK = {
    "a name is gone": "import numba.core.codegen as n; del n.JITCodeLibrary",
    "a class takes other arguments": "import numba.core.registry as n\nclass Other(n.CPUDispatcher):\n    def __init__(self): pass\nn.CPUDispatcher = Other",
    "another version": "import numba; numba.version_info = numba.version_info._replace(short=(1, 0))",
}
KERNEL = """
import numpy as np
from dalembert.kernels import kernel
from dalembert.kernels.ahead import prepare
@kernel
def first(x): return x[0]
def jobs(): yield first.part, (np.ones(1),)
prepare(jobs)
print(first(np.ones(1)), type(first).__module__)
"""


def _python(program: str, folder: Any, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program from a file, which a cache of kernels needs."""
    file = folder / "program.py"
    file.write_text(program)
    return subprocess.run([sys.executable, str(file)], env={**os.environ, **environment}, capture_output=True, text=True, check=True)


@pytest.mark.parametrize(("formulation", "before", "environment"), [
    pytest.param("Variational", BREAK["a name is gone"], {}, marks=pytest.mark.slow, id="plain"),
    ("Variational", "", {"NUMBA_DISABLE_JIT": "1"}),
    ("Implicit", "", {"NUMBA_DISABLE_JIT": "1"}),
])
def test_runs_agree(formulation, before, environment, tmp_path):
    run = RUN.format(formulation)
    found = json.loads(_python(f"{before}\n{run}{SAY}", tmp_path, **environment).stdout)
    names: dict[str, Any] = {}
    exec(run, names)
    assert len(found) == 4
    for other, ours in zip(found, names["results"]):
        np.testing.assert_allclose(other, ours, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("how", BREAK)
def test_another_numba_is_used_the_plain_way(how, tmp_path):
    found = _python(f"{BREAK[how]}\n{KERNEL}", tmp_path)
    assert found.stdout == "1.0 numba.core.registry\n"
    assert "the plain way" in found.stderr


@pytest.mark.parametrize(("environment", "module"), [
    ({}, "dalembert.kernels.compiler"),
    ({"DALEMBERT_COMPILER": "plain"}, "numba.core.registry"),
    ({"NUMBA_DISABLE_JIT": "1"}, "builtins"),
])
def test_the_way_can_be_chosen(environment, module, tmp_path):
    found = _python(KERNEL, tmp_path, DALEMBERT_AHEAD="0", **environment)
    assert found.stdout == f"1.0 {module}\n"
    assert "plain" not in found.stderr


def double(x):
    return 2.0 * x


def test_plain_kernels_are_kept_by_what_they_are_made_of(tmp_path, monkeypatch):
    """Numba's own cache looks at the file of the function alone."""
    monkeypatch.setenv("DALEMBERT_CACHE", str(tmp_path))
    for digest in ("0" * 16, "1" * 16):
        monkeypatch.setattr(cache, "source_digest", lambda _, digest=digest: digest)
        kernel: Any = plain(double)
        assert Path(kernel.stats.cache_path).is_relative_to(tmp_path / f"kernels-{digest}")
        assert cache.is_ours(tmp_path / f"kernels-{digest}")
    assert str(tmp_path) not in numba.config.CACHE_DIR  # type: ignore[attr-defined]


def test_plain_kernels_that_close_over_others_do_not_fill_the_cache():
    def twice(inner: Any) -> Any:
        return plain(lambda x: inner(inner(x)))

    kernel = twice(plain(double))
    assert kernel(2.0) == 8.0
    assert kernel.stats.cache_path is None


def test_plain_kernels_do_without_a_cache(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("not a folder")
    monkeypatch.setenv("DALEMBERT_CACHE", str(tmp_path / "cache"))
    kernel: Any = plain(double)
    assert kernel.stats.cache_path is None
    assert kernel(2.0) == 4.0


PLAIN = """
from dalembert.kernels import kernel
@kernel
def triple(x): return 3.0 * x
print(triple(2.0), sum(triple.stats.cache_hits.values()))
"""


def test_damaged_plain_kernels_are_compiled_again(tmp_path):
    chosen = {"DALEMBERT_COMPILER": "plain", "DALEMBERT_CACHE": str(tmp_path / "cache")}
    assert [_python(PLAIN, tmp_path, **chosen).stdout for _ in range(2)] == ["6.0 0\n", "6.0 1\n"]
    for file in (tmp_path / "cache").rglob("*.nb?"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 255
        file.write_bytes(data)
    assert [_python(PLAIN, tmp_path, **chosen).stdout for _ in range(2)] == ["6.0 0\n", "6.0 1\n"]


PART = np.dtype([("length", "f8"), ("diagonal", "f8", 2)])
WHOLE = np.dtype([("x", "f8", 3), ("size", "i4"), ("part", PART), ("parts", PART, 2)])


class Both(NamedTuple):
    many: np.ndarray
    number: float


@interpreted
def fill(one, both):
    """Writes into records as compiled code does."""
    one.size = 3
    for i in range(both.many.shape[0]):
        record = both.many[i]
        record.x[1] = both.number
        record.size += i
        record.part.length = 0.5
        record.parts[1].diagonal[0] = 1.0 / record.x[0]
    return fill_again(both.many)


@interpreted
def fill_again(many):
    many[0].part.diagonal[1] = 4.0
    return many[0].part.diagonal[1]


def test_interpreted_kernels_write_to_the_records_of_the_caller():
    many = np.zeros(2, WHOLE)
    before = many[1]
    assert fill(before, Both(many, 2.0)) == 4.0
    assert many["x"][:, 1].tolist() == [2.0, 2.0]
    assert many["size"].tolist() == [0, 4]
    assert many["part"]["length"].tolist() == [0.5, 0.5]
    assert many["part"]["diagonal"][0, 1] == 4.0
    assert np.isinf(many["parts"]["diagonal"][:, 1, 0]).all(), "a division by zero goes on, as in compiled code"
    assert type(many[0]) is np.void, "the caller's own array is as it was"
