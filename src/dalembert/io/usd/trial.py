"""Crate files are tried in another process first: the library takes the sizes that they state at their word, and may ask for any memory or crash."""
from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from dalembert.errors import BudgetError, ModelError
from dalembert.io.budget import Meter

#: what a crate file begins with
MAGIC = b"PXR-USDC"
#: bytes that the library itself takes
OWN = 256 * 2**20
#: how the other process ends where memory or time were not enough
SPENT = 3
#: reads every value of a layer within so many bytes and seconds
TRIAL = """
import sys
path, most, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
from pxr import Sdf
try:
    import resource
except ImportError:
    pass
else:
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
try:
    layer = Sdf.Layer.OpenAsAnonymous(path)
    def look(at):
        spec = layer.GetObjectAtPath(at)
        for key in spec.ListInfoKeys() if spec else ():
            spec.GetInfo(key)
    layer.Traverse(Sdf.Path.absoluteRootPath, look)
except MemoryError:
    sys.exit(int(sys.argv[4]))
"""


def try_crate(file: Path, meter: Meter) -> None:
    """Refuse a crate file that another process cannot read within the budget; other files pass."""
    with file.open("rb") as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            return
    seconds = min(max(int(meter.budget.seconds), 1), 10**6) if meter.budget.seconds < float("inf") else 10**6
    most = int(meter.left["bytes"]) + OWN
    # -P: no module of the folder in which we happen to be is imported
    words = [sys.executable, "-P", "-c", TRIAL, str(file), str(most), str(seconds), str(SPENT)]
    try:
        ended = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10 * seconds, check=False).returncode
    except subprocess.TimeoutExpired:
        ended = SPENT
    if ended in (SPENT, -getattr(signal, "SIGXCPU", -SPENT)):
        raise BudgetError(f"{file} takes more memory or time than reading a file may in all: if you trust it, load it with a larger Budget(bytes=..., seconds=...)")
    if ended != 0:
        raise ModelError(f"{file} cannot be read as a USD file: it is damaged")
