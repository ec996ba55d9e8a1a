"""Geometry of links as URDF and SDF files give it: primitives, meshes with their files, and the mass that they would have."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import BudgetError, ModelError
from dalembert.io.budget import Meter
from dalembert.io.meshes import read_colours, read_mesh, trimesh_module
from dalembert.io.safety import inside
from dalembert.mechanism.shapes import Box, Cylinder, Sphere
from dalembert.mechanism.visuals import Colour, Mesh

Inertial = tuple[float, np.ndarray, np.ndarray]

#: folders of a package that models are in, where it has no package.xml
LAYOUT = ("urdf", "xacro")


class Shapes:
    """Reads geometry; each mesh file is opened once. What cannot be read goes into the report."""

    def __init__(self, path: Path, root: Path | None, report: list[str], meter: Meter) -> None:
        self.path, self.root, self.report, self.meter = path, root, report, meter
        self._meshes: dict[tuple, Mesh | None] = {}
        self._coloured: dict[tuple, list[tuple[Mesh, Colour | None]]] = {}

    def shape(self, geometry: Any, what: str) -> Box | Cylinder | Sphere | Mesh | None:
        """What a <geometry> describes; ``what`` names it in the report."""
        if geometry is None:
            self.report.append(f"{what} has no geometry")
            return None
        if geometry.mesh is not None:
            return self._mesh(geometry.mesh)
        try:
            if geometry.box is not None:
                return Box(size=[float(v) for v in geometry.box.size], mass=1.0)
            if geometry.cylinder is not None:
                return Cylinder(radius=float(geometry.cylinder.radius), length=float(geometry.cylinder.length), mass=1.0)
            return Sphere(radius=float(geometry.sphere.radius), mass=1.0)
        except (TypeError, AttributeError, ModelError) as error:
            self.report.append(f"{what} is left out: {error}")
            return None

    def inertial(self, elements: list[Any], density: float) -> Inertial:
        """Mass, centre and inertia about it of filled geometry at a ``density`` (kg/m^3), in the link's frame; mass zero for none."""
        trimesh = trimesh_module()
        parts: list[Inertial] = []
        for element in elements:
            mesh = self._solid(trimesh, element.geometry)
            if mesh is not None:
                mesh.apply_transform(np.eye(4) if element.origin is None else element.origin)
                mesh.density = density
                properties = mesh.mass_properties
                if properties["mass"] > 0.0:
                    parts.append((float(properties["mass"]), np.array(properties["center_mass"]), np.array(properties["inertia"])))
        if not parts:
            return 0.0, np.zeros(3), np.zeros((3, 3))
        mass = sum(p[0] for p in parts)
        center = sum(p[0] * p[1] for p in parts) / mass
        inertia = sum(p[2] + p[0] * ((p[1] - center) @ (p[1] - center) * np.eye(3) - np.outer(p[1] - center, p[1] - center)) for p in parts)
        return mass, np.asarray(center), np.asarray(inertia)

    def _solid(self, trimesh: Any, geometry: Any) -> Any:
        if geometry.box is not None:
            return trimesh.creation.box(geometry.box.size)
        if geometry.cylinder is not None:
            return trimesh.creation.cylinder(radius=geometry.cylinder.radius, height=geometry.cylinder.length)
        if geometry.sphere is not None:
            return trimesh.creation.icosphere(radius=geometry.sphere.radius)
        mesh = self._mesh(geometry.mesh)
        return None if mesh is None else trimesh.Trimesh(mesh.vertices.astype(float), mesh.faces)

    def _mesh(self, source: Any) -> Mesh | None:
        """The triangles of a mesh file, in m; None with a line in the report when there is no such file."""
        if source is None or not source.filename:
            return None
        scale = _scale(source)
        key = (source.filename, *scale)
        if key not in self._meshes:
            mesh = self._read(source.filename)
            self._meshes[key] = None if mesh is None else _scaled(mesh[0], mesh[1], scale)
        return self._meshes[key]

    def coloured(self, geometry: Any, what: str) -> list[tuple[Box | Cylinder | Sphere | Mesh, Colour | None]]:
        """What a <geometry> describes in pieces of one colour each, as far as its file tells colours."""
        source = None if geometry is None else geometry.mesh
        if source is None or not str(source.filename).lower().endswith(".dae"):
            shape = self.shape(geometry, what)
            return [] if shape is None else [(shape, None)]
        scale = _scale(source)
        key = (source.filename, *scale)
        if key not in self._coloured:
            pieces = self._read(source.filename, read_colours) or []
            self._coloured[key] = [(_scaled(vertices, faces, scale), colour) for vertices, faces, colour in pieces]
        return list(self._coloured[key])

    def _read(self, name: str, reader: Callable[[Path, Meter], Any] = read_mesh) -> Any:
        path = self._resolve(name)
        if path is None or not path.is_file():
            self.report.append(f"mesh {name!r} was not found: what it stands for is left out")
            return None
        trimesh_module()
        try:
            return reader(path, self.meter)
        except BudgetError:
            raise
        except Exception as error:
            self.report.append(f"mesh {name!r} cannot be read: {type(error).__name__}: {' '.join(str(error).split())[:120]}")
            return None

    def _resolve(self, name: str) -> Path | None:
        """The file that a URDF means, within the package that the URDF is part of (or within ``root``)."""
        home = self.path.resolve().parent
        package = next((p for p in [home, *home.parents][:6] if (p / "package.xml").is_file()), None)
        for scheme in ("package://", "model://"):
            if name.startswith(scheme):
                title, _, rest = name[len(scheme) :].lstrip("/").partition("/")
                folder = _package(title, home, package)
                if folder is None and self.root is not None:
                    folder = self.root / title if title not in ("", ".", "..") and (self.root / title).is_dir() else self.root
                return None if folder is None else inside(folder, folder, rest, self.path, self.meter)
        name = name.removeprefix("file://")
        if Path(name).is_absolute() and not Path(name).exists():  # a place on the machine of whoever wrote it
            return None
        return inside(self.root or package or home, home, name, self.path, self.meter)


def _scale(source: Any) -> np.ndarray:
    return np.ones(3) if source.scale is None else np.broadcast_to(np.asarray(source.scale, dtype=float), (3,))


def _scaled(vertices: np.ndarray, faces: np.ndarray, scale: np.ndarray) -> Mesh:
    """A mesh in other units, turned inside out where it is mirrored."""
    return Mesh(vertices * scale, faces if np.prod(scale) > 0 else faces[:, ::-1])


def _package(title: str, home: Path, package: Path | None) -> Path | None:
    """The folder of a ROS package by name: one around the model, or beside its package. What is none is not taken for one by its name."""
    if title in ("", ".", ".."):
        return None
    around = [p for p in [home, *home.parents] if p.name == title and (p == home or (p / "package.xml").is_file())]
    if home.name in LAYOUT and home.parent.name == title and home.parent != _user_folder() and len(home.parent.parts) > 2:
        around.append(home.parent)
    beside = [] if package is None else [package.parent / title]
    return next((p for p in (*around, *beside) if p in around or (p / "package.xml").is_file()), None)


def _user_folder() -> Path | None:
    try:
        return Path.home().resolve()
    except RuntimeError:
        return None
