"""``dalembert doctor``: what a bug report needs, and whether a small run is right on this machine."""
from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

import numpy as np

NEEDED = ("numpy", "scipy", "numba", "llvmlite")
EXTRAS = ("matplotlib", "h5py", "tqdm", "msgspec", "tomli_w", "yourdfpy", "trimesh", "pycollada", "mujoco", "coacd", "viser", "imageio")
#: energy (part of the largest) and joints (m or rad) by which a small run may be off
ENERGY, JOINTS = 1e-3, 1e-8


def report() -> Iterator[tuple[str, str, bool]]:
    """Lines of the report: what, how it is, and whether that is well."""
    import dalembert

    yield "dalembert", f"{dalembert.__version__} in {Path(dalembert.__file__).parent}", True
    yield "python", f"{platform.python_version()} ({platform.python_implementation()}) at {sys.executable or 'an unknown place'}", sys.version_info >= (3, 11)
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}", True
    yield "processor", _processor(), True
    for name in NEEDED:
        yield name, _version(name) or "missing", _version(name) is not None
    found = {name: _version(name) for name in EXTRAS}
    yield "extras", ", ".join(f"{name} {number}" for name, number in found.items() if number) or "none", True
    missing = [name for name, number in found.items() if number is None]
    if missing:
        yield "extras missing", ", ".join(missing) + " (pip install dalembert[all])", True
    yield from _kernels()
    yield from _small_run()


def _version(name: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(name)
    return None


def _processor() -> str:
    import llvmlite.binding as llvm

    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = ""
    with suppress(AttributeError, ValueError, OSError):
        memory = f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.3g} GB of memory"
    return f"{llvm.get_host_cpu_name()}, {count} cores for this process{memory}"


def _kernels() -> Iterator[tuple[str, str, bool]]:
    from dalembert import kernels
    from dalembert.kernels.cache import Folder, cache_root, can_wait, is_ours
    from dalembert.kernels.plain import plain

    ways = {"interpreted": "as Python, since NUMBA_DISABLE_JIT is set", "plain": "by plain Numba"}
    way = "interpreted" if not kernels.COMPILED else "plain" if kernels._declare is plain else "compiled"
    yield "kernels", ways.get(way, "compiled by dalembert's own way"), True
    root = cache_root()
    if root is None:
        yield "cache", "none: there is no home folder; name one with DALEMBERT_CACHE", False
        return
    try:
        Folder(Path(kernels.__file__).with_name("calls.py")).make()
        reason = ""
    except OSError as error:
        reason = str(error)
    folders = [folder for folder in root.iterdir() if is_ours(folder)] if root.is_dir() else []
    size = sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())
    waits = "" if can_wait() else ", without locks"
    yield "cache", f"{root}: {len(folders)} folders, {size / 2**20:.0f} MB{waits}" + (f"; it is not used: {reason}" if reason else ""), not reason


def _small_run() -> Iterator[tuple[str, str, bool]]:
    """A double pendulum in the two formulations that compile quickly: energy, joints, and whether they agree."""
    import dalembert as da

    ends = {}
    for name, formulation in (("Variational", da.Variational(dt=0.002)), ("Implicit", da.Implicit(dt=0.002))):
        tick = perf_counter()
        try:
            run = da.Simulation(da.zoo.double_pendulum(), formulation).run(0.2, progress=False)
        except Exception as error:
            yield f"run, {name}", f"{type(error).__name__}: {' '.join(str(error).split())}", False
            continue
        energy, violation = run.energy(), float(run.constraint_violation().max())
        drift = float(np.ptp(energy.total) / max(np.ptp(energy.kinetic), 1e-12))
        ends[name] = run.position[-1]
        words = f"{len(run) - 1} steps in {perf_counter() - tick:.2f} s, energy within {drift:.1e}, joints within {violation:.1e} m or rad"
        yield f"run, {name}", words, drift < ENERGY and violation < JOINTS
    if len(ends) == 2:
        apart = float(np.abs(ends["Implicit"] - ends["Variational"]).max())
        yield "agreement", f"positions within {apart:.1e} m after 0.2 s", apart < 1e-3
