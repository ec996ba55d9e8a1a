"""What bodies look like: shapes and meshes fastened to a body, for pictures only. They carry no mass."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.checks import indices, numbers
from dalembert.errors import ModelError
from dalembert.mechanism.shapes import Box, Composite, Cylinder, Shape, Sphere

if TYPE_CHECKING:
    from dalembert.mechanism.mechanism import Body, Mechanism

Colour = tuple[float, float, float, float]
#: m, for pictures, which are drawn in single precision
FARTHEST = 1e30


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles: ``vertices`` (n, 3) in m, ``faces`` (m, 3) indices into them."""

    vertices: np.ndarray
    faces: np.ndarray

    def __post_init__(self) -> None:
        vertices = numbers(None, 3)(self.vertices, "Mesh: vertices")
        if vertices.size and np.abs(vertices).max() > FARTHEST:
            raise ModelError(f"Mesh: vertices must lie within {FARTHEST:g} m, got {np.abs(vertices).max():g}")
        object.__setattr__(self, "vertices", vertices.astype(np.float32))
        object.__setattr__(self, "faces", indices(self.faces, len(vertices), "Mesh: faces").astype(np.int32))

    def __repr__(self) -> str:
        return f"Mesh({len(self.vertices)} vertices, {len(self.faces)} faces)"


@dataclass(frozen=True, eq=False)
class Visual:
    """A shape or mesh on a body: ``position`` (3,) from the centre of mass and ``orientation`` (4,) in body axes."""

    geometry: Shape | Mesh
    position: np.ndarray
    orientation: np.ndarray
    colour: Colour | None = None


def visuals_of(mechanism: Mechanism, body: Body) -> list[Visual]:
    """What to draw for a body: its visuals, or its shape, or the shapes that touch for it, or rods from its centre to its joints, or a box of its mass and inertia."""
    if body.name in mechanism.visuals:
        return mechanism.visuals[body.name]
    if body.index < 0:
        return []
    here, upright = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    if isinstance(body.shape, Composite):
        center = body.shape.center_of_mass
        return [Visual(shape, np.asarray(position) - center, np.asarray(turn)) for shape, position, turn in body.shape.parts]
    if body.shape is not None:
        return [Visual(body.shape, here, upright)]
    touching = [Visual(c.shape, c.position, c.orientation) for c in mechanism.colliders if c.body is body]
    return touching or _skeleton(mechanism, body) or [Visual(*inertia_box(body.mass, body.inertia))]


def _skeleton(mechanism: Mechanism, body: Body) -> list[Visual]:
    """Rods from the centre of mass to the joints, where they are apart, with a ball at the centre."""
    ends = [j.point_parent if j.parent is body else j.point_child for j in mechanism.joints if body in (j.parent, j.child)]
    reach = max((float(np.linalg.norm(end)) for end in ends), default=0.0)
    far = [end for end in ends if np.linalg.norm(end) > 0.05 * reach]
    upright = np.array([1.0, 0.0, 0.0, 0.0])
    rods = [Visual(Cylinder(radius=0.04 * reach, length=float(np.linalg.norm(end)), mass=1.0, axis=tuple(end)), 0.5 * end, upright) for end in far]
    return [*rods, Visual(Sphere(radius=0.06 * reach, mass=1.0), np.zeros(3), upright)] if reach > 1e-9 else []


def inertia_box(mass: float, inertia: np.ndarray) -> tuple[Box, np.ndarray, np.ndarray]:
    """A box of that mass and inertia, about its centre."""
    from dalembert.mechanism.shapes import principal_axes

    moments, turn = principal_axes(inertia)
    squares = 6.0 / mass * (moments.sum() - 2.0 * moments)
    size = np.sqrt(np.maximum(squares, 1e-4 * max(squares.max(), 1e-12)))
    return Box(size=size.tolist(), mass=mass), np.zeros(3), turn
