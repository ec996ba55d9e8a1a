"""Kernels that come with the package: used without compiling, and left alone wherever something is other than it was."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding as llvm

import dalembert
from dalembert.kernels import shipped

SOURCE = Path(dalembert.__file__).parent
V3 = {"NUMBA_CPU_NAME": shipped.PROCESSOR, "NUMBA_CPU_FEATURES": shipped.FEATURES}
PROGRAM = """
import numpy as np
from dalembert.contact.terrain import height
print(repr(height(np.arange(16.0).reshape(4, 4) ** 2, np.array([0.0, 0.0, 1.0, 1.0]), 1.3, 1.7)[0]))
"""

pytestmark = pytest.mark.skipif(
    not llvm.get_process_triple().startswith("x86_64") or not all(llvm.get_host_cpu_features().get(name, False) for name in shipped.NEEDED),
    reason="this processor is not one that kernels are shipped for",
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one kernel that came compiled."""
    home = tmp_path_factory.mktemp("shipped")
    shutil.copytree(SOURCE, home / "dalembert", ignore=shutil.ignore_patterns("__pycache__", "_kernels"))
    (home / "cache").mkdir(mode=0o700)
    run(home, "cache", **V3)
    pack = "from pathlib import Path; from dalembert.kernels import shipped; print(len(shipped.pack(Path('cache'), shipped.FOLDER)))"
    done = subprocess.run([sys.executable, "-c", pack], cwd=home, env={**os.environ, "PYTHONPATH": str(home)}, capture_output=True, text=True, check=True)
    assert int(done.stdout) == 1
    return home


def run(home: Path, cache: str, **environment: str) -> tuple[str, str]:
    """What the program says, and what is said about compiling."""
    path = home / cache
    path.mkdir(mode=0o700, exist_ok=True)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_CPU", "DALEMBERT"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=home, env={**clean, "PYTHONPATH": str(home), "DALEMBERT_CACHE": str(path), **environment},
        capture_output=True, text=True, check=True,
    )
    return done.stdout, done.stderr


def test_no_compiling_and_no_cache(package: Path):
    answer, said = run(package, "untouched")
    assert said == ""
    assert list((package / "untouched").iterdir()) == []
    compiled, said = run(package, "own", DALEMBERT_SHIPPED="0")
    assert "compiling" in said
    assert float(compiled) == pytest.approx(float(answer), rel=1e-14)


@pytest.mark.parametrize("harm", ["flip", "cut", "missing", "source", "processor"])
def test_whatever_is_other_is_compiled(package: Path, tmp_path: Path, harm: str):
    home, environment = tmp_path / "home", {}
    shutil.copytree(package / "dalembert", home / "dalembert", ignore=shutil.ignore_patterns("__pycache__"))
    entry = next((home / "dalembert" / "_kernels").rglob("*.kernel"))
    if harm == "flip":
        data = bytearray(entry.read_bytes())
        data[len(data) // 2] ^= 1
        entry.write_bytes(bytes(data))
    elif harm == "cut":
        entry.write_bytes(entry.read_bytes()[:-100])
    elif harm == "missing":
        entry.unlink()
    elif harm == "source":
        with (home / "dalembert" / "contact" / "terrain.py").open("a") as file:
            file.write("\n# another line\n")
    else:
        environment["NUMBA_CPU_NAME"] = "generic"
    answer, said = run(home, "cache", **environment)
    assert "compiling" in said
    assert ("cannot be used" in said) == (harm in ("flip", "cut"))
    assert float(answer) == pytest.approx(float(run(package, "untouched")[0]), rel=1e-14)
