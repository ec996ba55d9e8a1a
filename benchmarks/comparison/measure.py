"""Where time is taken: on one core; and what the machine is."""
from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np


def pin() -> int | None:
    """Stay on one core, where the system can do that; which one."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def machine() -> dict[str, str]:
    """What ran."""
    model = platform.machine()
    if Path("/proc/cpuinfo").is_file():
        lines = [line for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    found = {"processor": model, "system": f"{platform.system()} {platform.machine()}", "Python": platform.python_version()}
    for package in ("numpy", "scipy", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found


def quartiles(seconds: list[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    low, median, high = np.percentile(seconds, (25, 50, 75))
    return float(low), float(median), float(high)
