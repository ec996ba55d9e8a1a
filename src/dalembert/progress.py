"""A progress bar with a rate and the time left, on long work in a terminal, where tqdm is installed."""
from __future__ import annotations

import sys
import time as clock
from typing import Any

#: s that work may take before a bar appears
PATIENCE = 2.0


class Progress:
    """Counts ``total`` pieces of work. ``wanted``: show a bar (by default on long work in a terminal)."""

    def __init__(self, total: int, name: str, unit: str, wanted: bool | None = None) -> None:
        self.total, self.name, self.unit, self.begun = total, name, unit, clock.monotonic()
        self.bar: Any = None
        self.wanted = sys.stderr.isatty() if wanted is None else wanted
        self.patience = PATIENCE if wanted is None else 0.0

    def update(self, done: int) -> None:
        """Say how many pieces are done."""
        if not self.wanted:
            return
        if self.bar is None and clock.monotonic() - self.begun >= self.patience:
            try:
                from tqdm import tqdm
            except ImportError:
                self.wanted = False
                return
            self.bar = tqdm(total=self.total, initial=done, desc=self.name, unit=f" {self.unit}", file=sys.stderr, dynamic_ncols=True)
        if self.bar is not None:
            self.bar.update(done - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
