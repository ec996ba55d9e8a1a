"""Pictures of an environment: of each state as an array, or on a page that a browser shows as fast as the clock."""
from __future__ import annotations

import time as clock
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.simulation.simulation import Simulation

if TYPE_CHECKING:
    from dalembert.view.stills import Stills
    from dalembert.view.watching import Watching


class Pictures:
    """Made when they are first asked for. ``step`` (s): between two pictures of the page; ``camera``: as for ``Stills``."""

    def __init__(self, simulation: Simulation, mode: str | None, step: float, camera: dict[str, Any]) -> None:
        self._simulation, self._step, self._camera = simulation, step, camera
        self._stills: Stills | None = self._make_stills() if mode == "rgb_array" else None
        self._page: Watching | None = None
        self._due = 0.0

    def _make_stills(self) -> Stills:
        from dalembert.view.stills import Stills

        simulation = self._simulation
        return Stills(simulation.mechanism, simulation.position, simulation.orientation, **self._camera)

    def picture(self, position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
        """(height, width, 3) uint8 of bodies at positions (bodies, 3) and orientations (bodies, 4)."""
        if self._stills is None:
            self._stills = self._make_stills()
        return self._stills.picture(position, orientation)

    def show(self, position: np.ndarray, orientation: np.ndarray) -> None:
        """Show them on the page, not before their time has come."""
        if self._page is None:
            from dalembert.view.watching import watch

            self._page = watch(self._simulation.mechanism, position, orientation)
        now = clock.monotonic()
        if now < self._due:
            clock.sleep(self._due - now)
        self._due = max(now, self._due) + self._step
        self._page.draw(position, orientation)

    def close(self) -> None:
        """End the page."""
        if self._page is not None:
            self._page.stop()
            self._page = None
