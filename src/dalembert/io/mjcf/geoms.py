"""Geoms of an MJCF model as shapes and meshes, and how they look."""
from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.io.mjcf.source import Source
from dalembert.io.robot import Drawing
from dalembert.mechanism.shapes import Box, Capsule, Cylinder, Ellipsoid, Primitive, Sphere
from dalembert.mechanism.visuals import Mesh

#: groups of geoms that MuJoCo's viewer shows from the start
VISIBLE_GROUPS = 3


def kind(source: Source, g: int) -> str:
    """What a geom is, in lower case: "plane", "sphere", "mesh", ..."""
    return source.mj.mjtGeom(int(source.model.geom_type[g])).name.removeprefix("mjGEOM_").lower()


def primitive(source: Source, g: int) -> Primitive | None:
    """The shape of a geom that is neither plane nor mesh nor field."""
    a, b, c = (max(float(s), 1e-9) for s in source.model.geom_size[g])
    shapes = {
        "sphere": lambda: Sphere(radius=a, mass=1.0), "capsule": lambda: Capsule(radius=a, length=2 * b, mass=1.0),
        "ellipsoid": lambda: Ellipsoid(semi_axes=(a, b, c), mass=1.0), "cylinder": lambda: Cylinder(radius=a, length=2 * b, mass=1.0),
        "box": lambda: Box(size=(2 * a, 2 * b, 2 * c), mass=1.0),
    }
    return shapes[kind(source, g)]() if kind(source, g) in shapes else None


def mesh(source: Source, g: int) -> Mesh:
    """The triangles of a mesh geom, in its frame."""
    model, index = source.model, int(source.model.geom_dataid[g])
    source.meter.elements(int(model.mesh_vertnum[index]) + int(model.mesh_facenum[index]), "its meshes")
    vertex, face = int(model.mesh_vertadr[index]), int(model.mesh_faceadr[index])
    return Mesh(model.mesh_vert[vertex : vertex + model.mesh_vertnum[index]], model.mesh_face[face : face + model.mesh_facenum[index]])


def pose(source: Source, g: int) -> tuple[np.ndarray, Rotation]:
    """Where a geom is at the reference pose."""
    return np.array(source.data.geom_xpos[g]), Rotation.from_matrix(source.data.geom_xmat[g].reshape(3, 3))


def read_drawings(source: Source) -> None:
    """What the geoms look like that MuJoCo shows."""
    model = source.model
    for g in range(model.ngeom):
        geometry = mesh(source, g) if kind(source, g) == "mesh" else primitive(source, g)
        if geometry is None or model.geom_group[g] >= VISIBLE_GROUPS:
            continue
        material, colour = int(model.geom_matid[g]), model.geom_rgba[g]
        if material >= 0 and np.allclose(colour, (0.5, 0.5, 0.5, 1.0)):
            colour = model.mat_rgba[material]
        drawing = Drawing(geometry, *pose(source, g), tuple(float(v) for v in colour))  # type: ignore[arg-type]
        body = int(model.geom_bodyid[g])
        (source.robot.drawings if body == 0 else source.robot.links[body - 1].drawings).append(drawing)
