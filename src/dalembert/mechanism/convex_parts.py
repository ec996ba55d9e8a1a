"""Meshes that are not convex, as convex parts that together fill about the same room (``coacd``, extra ``convex``)."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.checks import NOTHING, POSITIVE, checked, indices, numbers, whole
from dalembert.errors import MissingExtraError, ModelError
from dalembert.mechanism.convex import Convex
from dalembert.mechanism.shapes import Composite

#: corners that a part keeps at most: what a contact costs grows with every corner that may touch
CORNERS = 32


@checked(density=POSITIVE | NOTHING, mass=POSITIVE | NOTHING, concavity=POSITIVE, most=whole("a whole number from 1 to 1000", least=1, most=1000) | NOTHING, seed=whole("a whole number", least=0))
def convex_parts(
    points: ArrayLike, triangles: ArrayLike, *, density: float | None = None, mass: float | None = None, concavity: float = 0.05, most: int | None = None,
    seed: int = 0,
) -> Composite:
    """A mesh, corners (n, 3) in m and triangles (k, 3), as a ``Composite`` of ``Convex`` parts in the frame of its points.

    ``concavity``: by how much of its size the hull of a part may stand off the mesh (0.01 to 1), less for more and finer parts; ``most``: how many parts at
    most. Mass, by ``mass`` (kg) or ``density`` (kg/m^3), is spread evenly over the parts. The same arguments give the same parts.
    """
    if (density is None) == (mass is None):
        raise ModelError("convex_parts: give either density or mass")
    corners = numbers(None, 3)(points, "convex_parts: points")
    faces = indices(triangles, len(corners), "convex_parts: triangles")
    if len(faces) == 0:
        raise ModelError("convex_parts: triangles must not be empty")
    hulls = decompose(corners, faces, concavity, most, seed)
    if density is None:
        density = float(mass) / sum(Convex(points=hull, density=1.0).volume for hull in hulls)  # type: ignore[arg-type]
    parts = [Convex(points=hull, density=density) for hull in hulls]
    return Composite(parts=[(part, part.center_of_mass) for part in parts])


def decompose(corners: np.ndarray, faces: np.ndarray, concavity: float, most: int | None, seed: int = 0) -> list[np.ndarray]:
    """Corners (c, 3) of convex parts of a mesh that span a volume."""
    coacd = _library()
    mesh = coacd.Mesh(np.ascontiguousarray(corners), np.ascontiguousarray(faces, dtype=np.int32))
    size = float(np.ptp(corners, axis=0).max())
    found = coacd.run_coacd(
        mesh, threshold=min(max(concavity, 0.01), 1.0), max_convex_hull=-1 if most is None else most, decimate=True, max_ch_vertex=CORNERS, seed=seed)
    hulls = []
    for vertices, _ in found:
        own = np.unique(np.asarray(vertices, dtype=float), axis=0)
        if len(own) >= 4 and np.linalg.svd(own - own.mean(axis=0), compute_uv=False)[2] > 1e-6 * size:
            hulls.append(own)
    if not hulls:
        raise ModelError("convex_parts: the mesh spans no volume")
    return hulls


def _library() -> Any:
    try:
        import coacd  # type: ignore[import-not-found]
    except ImportError as error:
        raise MissingExtraError(f"convex parts of meshes need coacd: pip install dalembert[convex] ({error})") from None
    coacd.set_log_level("error")
    return coacd
