"""What a caller of ``load`` may choose."""
from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from numpy.typing import ArrayLike

from dalembert.checks import unit_quaternion, vector
from dalembert.errors import ModelError

BASES = (None, "fixed", "free")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of ``load``, which says what they mean; checked when made."""

    merge_fixed: bool = False
    base: str | None = None
    root: Path | None = None
    mesh_density: float | None = None
    contacts: bool = True
    self_collisions: bool | None = None
    limits: bool = True
    actuators: bool = True
    keyframe: str | int | None = None
    srdf: Path | None = None
    position: ArrayLike = (0.0, 0.0, 0.0)
    orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    decompose: bool = False

    def __post_init__(self) -> None:
        if self.base not in BASES:
            raise ModelError(f"base must be None, 'fixed' or 'free', got {self.base!r}")
        if self.mesh_density is not None and not 0.0 < self.mesh_density < float("inf"):
            raise ModelError(f"mesh_density must be positive, got {self.mesh_density}")
        object.__setattr__(self, "position", tuple(vector(self.position, 3, "position").tolist()))
        object.__setattr__(self, "orientation", tuple(unit_quaternion(self.orientation, "orientation").tolist()))

    def refuse(self, kind: str, *names: str) -> None:
        """A ModelError when an option was given that files of this kind have no use for."""
        for field in fields(self):
            if field.name in names and getattr(self, field.name) != field.default:
                raise ModelError(f"{field.name}= says nothing about {kind} files: leave it out")
