"""A page that shows one pose after the other, as somebody else's loop comes to them."""
from __future__ import annotations

import webbrowser

import numpy as np

from dalembert.mechanism.mechanism import Mechanism
from dalembert.view.scene import build_scene
from dalembert.view.stage import Viewer, has_display, viser_module


class Watching(Viewer):
    """Shows what ``draw`` is given."""

    def __init__(self, mechanism: Mechanism, position: np.ndarray, orientation: np.ndarray, port: int) -> None:
        viser_module()
        super().__init__(build_scene(mechanism, position, orientation), mechanism.name, port)
        self.add_choices(False, False)


def watch(mechanism: Mechanism, position: np.ndarray, orientation: np.ndarray, *, port: int = 0, browser: bool | None = None) -> Watching:
    """Open a page at a free port (or ``port``) and say where. ``browser``: open one for it, by default where there is a display."""
    page = Watching(mechanism, position, orientation, port)
    print(f"showing {page.url}", flush=True)
    if browser or (browser is None and has_display()):
        webbrowser.open(page.url)
    return page
