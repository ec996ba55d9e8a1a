"""What a simulator has to offer to take part."""
from __future__ import annotations

from typing import Protocol

from benchmarks.comparison.scene import Poses, Scene


class Model(Protocol):
    """A scene in a simulator, with a method and a step."""

    def reset(self) -> None:
        """Back to the start. Not timed."""
        ...

    def run(self, steps: int) -> None:
        """Go on by some steps. This is what is timed."""
        ...

    def poses(self) -> Poses:
        """Where the bodies are now. Not timed."""
        ...


class Peer(Protocol):
    """A simulator: its ``methods`` by name, the first one its default."""

    name: str
    methods: tuple[str, ...]

    def version(self) -> str: ...

    def refuses(self, scene: Scene, method: str) -> str | None:
        """Why it does not take a scene, or None."""
        ...

    def build(self, scene: Scene, method: str, dt: float) -> Model: ...
