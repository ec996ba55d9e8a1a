"""Meshes as convex hulls with few corners, or as several of them: what a contact costs grows with every corner that may touch."""
from __future__ import annotations

from itertools import product

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from dalembert.errors import ModelError
from dalembert.io.budget import Meter
from dalembert.mechanism.convex import Convex
from dalembert.mechanism.convex_parts import decompose
from dalembert.mechanism.shapes import Composite, Shape
from dalembert.mechanism.visuals import Mesh

#: corners that a hull keeps at most
MOST_CORNERS = 64
#: part of its size by which a hull may be smaller than its mesh without further corners
FINE = 2e-3
#: elements that a point counts as, and one of a mesh that is divided into convex parts
PER_POINT, PER_PART = 5, 500
#: by how much of its size a part's hull may stand off a mesh, and how many parts a mesh may have
CONCAVITY, MOST_PARTS = 0.05, 32


def hull(vertices: np.ndarray, meter: Meter, name: str, report: list[str]) -> Convex | None:
    """The hull of a mesh's ``vertices`` (n, 3), m; None, with a line in the report, where they span no volume."""
    meter.elements(PER_POINT * len(vertices), f"the convex hull of {name}")
    points = np.unique(np.asarray(vertices, dtype=float), axis=0)
    try:
        corners = points[ConvexHull(points).vertices]
        kept, depth = _fewest(corners)
        shape = Convex(points=kept, mass=1.0)
    except (QhullError, ValueError, ModelError):
        report.append(f"{name}: its mesh spans no volume, and its contacts are left out")
        return None
    fewer = f", with {len(kept)} of {len(corners)} corners, up to {depth * 1e3:.2g} mm inside it" if len(kept) < len(corners) else ""
    report.append(f"{name}: its mesh touches by its convex hull{fewer}")
    return shape


def touching_shape(mesh: Mesh, divide: bool, meter: Meter, name: str, report: list[str]) -> Shape | None:
    """What a mesh touches by: its hull, or with ``divide`` its convex parts, where it has several."""
    if not divide:
        return hull(mesh.vertices, meter, name, report)
    meter.elements(PER_PART * len(mesh.vertices), f"the convex parts of {name}")
    parts: list[Convex] = []
    try:
        for corners in decompose(np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces), CONCAVITY, MOST_PARTS):
            parts.append(Convex(points=_fewest(corners[ConvexHull(corners).vertices])[0], mass=1.0))
    except (QhullError, ValueError, ModelError, RuntimeError):
        parts = []
    meter.look_at_clock()
    if len(parts) < 2:
        return hull(mesh.vertices, meter, name, report)
    report.append(f"{name}: its mesh touches by {len(parts)} convex parts")
    density = 1.0 / sum(part.volume for part in parts)
    solid = [Convex(points=part.points, density=density) for part in parts]
    return Composite(parts=[(part, part.center_of_mass) for part in solid])


def _fewest(corners: np.ndarray) -> tuple[np.ndarray, float]:
    """Corners whose hull comes within FINE of all, or as many as there may be, farthest first; and how far the others stand out."""
    size = float(np.ptp(corners, axis=0).max())
    directions = np.array([d for d in product((-1, 0, 1), repeat=3) if any(d)], dtype=float)
    directions = np.concatenate([directions, np.linalg.svd(corners - corners.mean(axis=0), full_matrices=False)[2]])
    chosen = sorted({int(i) for d in directions for i in ((corners @ d).argmax(), (corners @ d).argmin())})[:MOST_CORNERS]
    while True:
        planes = ConvexHull(corners[chosen]).equations
        heights = (corners @ planes[:, :3].T + planes[:, 3]).max(axis=1)
        worst = int(heights.argmax())
        depth = max(float(heights[worst]), 0.0)
        if len(chosen) >= min(MOST_CORNERS, len(corners)) or depth <= FINE * size or worst in chosen:
            return corners[chosen], depth
        chosen.append(worst)
