"""Whether a run fits into memory, asked before it begins."""
from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.formulations.engine import Engine
from dalembert.mechanism.mechanism import Mechanism

#: bytes that are always taken to be there
SMALL = 50_000_000
#: share of the free memory that a run may take
SHARE = 0.9
#: numbers per knot of all series of a trajectory: of a body, a joint, a coupling
SERIES = (13, 72, 4)
#: numbers per knot that inputs take
GIVEN = (6, 12, 1)


def bytes_of(held: Any) -> int:
    """Bytes of the arrays in tuples, lists and records."""
    if isinstance(held, np.ndarray):
        return held.nbytes
    if isinstance(held, tuple | list):
        return sum(bytes_of(item) for item in held)
    return sum(bytes_of(item) for item in vars(held).values()) if hasattr(held, "__dict__") else 0


def run_bytes(engine: Engine, mechanism: Mechanism) -> int:
    """Bytes that a knot of a run takes, with its inputs."""
    return bytes_of(engine.new_recording(3)) - bytes_of(engine.new_recording(2)) + _bytes(mechanism, GIVEN)


def series_bytes(mechanism: Mechanism) -> int:
    """Bytes that a knot of a trajectory takes once all its series were computed, as for a file."""
    return _bytes(mechanism, SERIES)


def _bytes(mechanism: Mechanism, numbers: tuple[int, int, int]) -> int:
    counts = len(mechanism.bodies), len(mechanism.joints), len(mechanism.couplings) + len(mechanism.paths) + len(mechanism.constraints)
    return 8 * sum(count * per for count, per in zip(counts, numbers))


def check_run(engine: Engine, mechanism: Mechanism, steps: int) -> None:
    """A ModelError for a run that would not fit into the memory that is free now."""
    if steps * (len(mechanism.bodies) + len(mechanism.joints)) * 1000 >= SMALL:
        check_room(mechanism, steps, run_bytes(engine, mechanism))


def check_room(mechanism: Mechanism, steps: int, each: int) -> None:
    """A ModelError where so many steps, of so many bytes each, would not fit into the memory that is free now."""
    needed, free = steps * each, free_memory()
    if needed > SMALL and needed > SHARE * free:
        raise ModelError(
            f"a run of {steps:.6g} steps of {mechanism.name!r} would not fit into memory: it takes {_size(needed)}, and {_size(free)} are free. Run it in parts, "
            "choose a larger dt or a shorter duration, or write it to files as it goes (Simulation.stream)"
        )


def _size(count: float) -> str:
    return f"{count / 1e9:.3g} GB" if count >= 1e8 else f"{count / 1e6:.3g} MB"


def free_memory() -> float:
    """Bytes that the process may still take: of the machine, of its container and by its own limit; infinite where nobody knows."""
    return max(0.0, min((*_machine(), *_container(), *_own_limit()), default=np.inf))


def _number(path: str) -> float | None:
    try:
        return float(Path(path).read_text())
    except (OSError, ValueError):
        return None


def _machine() -> Iterable[float]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        yield next(1024.0 * float(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        try:
            yield float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, OSError, ValueError):
            return


def _container() -> Iterable[float]:
    for most, used in (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        limit, taken = _number(f"/sys/fs/cgroup/{most}"), _number(f"/sys/fs/cgroup/{used}")
        if limit is not None and taken is not None:
            yield limit - taken


def _own_limit() -> Iterable[float]:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = float(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError, ValueError):
        return
    if limit != resource.RLIM_INFINITY:
        yield limit - pages * os.sysconf("SC_PAGE_SIZE")
