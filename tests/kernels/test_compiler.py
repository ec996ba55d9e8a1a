"""Kernels and their parts: what is compiled, that it is right, and that the next process finds it."""
from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

MODULE = """
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


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Three kernels that call one another, with an empty cache."""
    monkeypatch.setenv("DALEMBERT_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "three_kernels.py"
    file.write_text(MODULE)
    spec = importlib.util.spec_from_file_location("three_kernels", file)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "three_kernels", found)
    spec.loader.exec_module(found)
    return found


def expected(x: float) -> float:
    return 2.0 * x + 2.0 * (x + 1.0) * 2.0 * (x + 2.0)


def entries(module) -> list[str]:
    """Kernels and parts in the cache."""
    files = Path(module.outer._cache.folder.path).glob("*-*.*")
    return sorted(f"{file.name.split('-')[0]}.{file.suffix[1:]}" for file in files)


def test_parts_are_not_compiled_by_themselves(module):
    assert module.outer(1.5) == expected(1.5)
    assert entries(module) == ["inner.part", "outer.kernel", "pick.part"]
    assert not module.inner.overloads
    assert len(module.inner.part.overloads) == 1, "one for all literal numbers"
    assert module.inner(1.5, 1) == 5.0
    assert entries(module) == ["inner.kernel", "inner.part", "outer.kernel", "pick.part"]


def test_signatures_are_kept_apart(module):
    assert module.inner(1.5, 1) == 5.0
    assert module.inner(2, 1) == 6.0
    assert module.inner(1.5, 1) == 5.0
    assert entries(module).count("inner.kernel") == 2


def test_kernels_work_in_other_compiled_functions(module):
    assert numba.njit(lambda x: module.inner(x, 2))(1.5) == 7.0


def test_compiling_without_a_call(module):
    assert not module.outer.is_cached(1.5)
    module.outer.compile_for(2.5)
    assert module.outer.is_cached(1.5)
    assert not module.outer.is_cached(1)


SECOND = """
import sys
sys.path.insert(0, sys.argv[1])
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, found):
        compiled.append(found.data["dispatcher"].__name__)
    def on_end(self, found):
        pass
event.register("numba:compile", Listener())
import three_kernels
print(three_kernels.outer(1.5), three_kernels.inner(1.5, 1), *compiled)
"""


def test_the_next_process_finds_them(module, tmp_path):
    module.outer(1.5)
    found = subprocess.run([sys.executable, "-c", SECOND, str(tmp_path)], capture_output=True, text=True, check=True).stdout.split()
    assert [float(found[0]), float(found[1])] == [expected(1.5), 5.0]
    assert found[2:] == ["inner"], "only the part had to become a kernel"


#: what may become of the files of a cache
DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "a bit": lambda data: data[: 3 * len(data) // 4] + bytes([data[3 * len(data) // 4] ^ 4]) + data[3 * len(data) // 4 + 1 :],
}


def _second(tmp_path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", SECOND, str(tmp_path)], capture_output=True, text=True, check=True, env={**os.environ, **environment})


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_kernels_are_compiled_again(module, tmp_path, how):
    module.outer(1.5)
    files = list(Path(module.outer._cache.folder.path).glob("*-*.*"))
    for file in files:
        file.write_bytes(DAMAGE[how](file.read_bytes()))
    found = _second(tmp_path)
    assert [float(x) for x in found.stdout.split()[:2]] == [expected(1.5), 5.0]
    assert "is damaged, and is compiled again" in found.stderr
    assert "damaged" not in _second(tmp_path).stderr


def test_what_is_whole_but_no_kernel_is_compiled_again(module, tmp_path):
    module.outer(1.5)
    folder = module.outer._cache.folder
    for file in Path(folder.path).glob("*-*.*"):
        folder.save(file.name, b"\x80\x04N.")  # None as a pickle
    found = _second(tmp_path)
    assert [float(x) for x in found.stdout.split()[:2]] == [expected(1.5), 5.0]
    assert "cannot be used, and is compiled again" in found.stderr


@pytest.mark.parametrize("case", ["no home", "a file in its place", "a folder that cannot be made", "others can write"])
def test_kernels_run_without_a_cache(module, tmp_path, case):
    """No HOME and no entry in the list of users, as in some containers; a cache that cannot be written, or not be trusted."""
    environment = {}
    if case == "no home":
        (tmp_path / "sitecustomize.py").write_text("import pwd\ndef unknown(_): raise KeyError\npwd.getpwuid = unknown\n")
        environment = {"DALEMBERT_CACHE": "", "XDG_CACHE_HOME": "", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
        without = {name: value for name, value in os.environ.items() if name != "HOME"}
        found = subprocess.run([sys.executable, "-c", SECOND, str(tmp_path)], capture_output=True, text=True, check=True, env={**without, **environment})
    else:
        place = {"a file in its place": tmp_path / "file", "a folder that cannot be made": Path("/proc/cache"), "others can write": tmp_path / "open"}[case]
        (tmp_path / "file").touch()
        (tmp_path / "open").mkdir()
        (tmp_path / "open").chmod(0o777)
        found = _second(tmp_path, DALEMBERT_CACHE=str(place))
    assert [float(x) for x in found.stdout.split()[:2]] == [expected(1.5), 5.0]
    assert "cannot keep compiled kernels" in found.stderr
