"""Mesh files, through trimesh: only formats that stand by themselves, looked through before it reads them.

trimesh would unpack archives and open what a file names besides; here it gets the bytes of one file.
"""
from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError
from dalembert.io.budget import Meter
from dalembert.io.safety import scan_xml
from dalembert.mechanism.visuals import Colour

#: what can be read; archives and files that consist of several are not
ENDINGS = (".stl", ".obj", ".dae", ".ply", ".off", ".glb")
#: bytes of a file in which a corner or a triangle has room
PER_ELEMENT = 32
#: numbers in a file that say how much is to come
_COUNTS = {".ply": re.compile(rb"^element +\S+ +(\d+)", re.MULTILINE), ".glb": re.compile(rb'"count" *: *(\d+)'), ".off": re.compile(rb"\A\s*\S*OFF\s+(?:#.*\s+)*(\d+)\s+(\d+)")}


def read_mesh(path: Path, meter: Meter) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3) and triangles (m, 3) of a file whose place was checked. Raises whatever is wrong with it."""
    return _read(path, meter, lambda mesh: _triangles([mesh]), force="mesh", skip_materials=True)[0]


def read_colours(path: Path, meter: Meter) -> list[tuple[np.ndarray, np.ndarray, Colour | None]]:
    """The same in pieces of one colour each, by the materials of a .dae file; None where it has pictures or nothing instead, and for other files.

    Pictures are not opened.
    """
    if path.suffix.lower() != ".dae":
        return [(*read_mesh(path, meter), None)]

    def by_colour(scene: Any) -> Any:
        groups: dict[Colour | None, list[Any]] = {}
        for piece in scene.dump():
            if len(getattr(piece, "faces", ())):
                groups.setdefault(_colour(piece), []).append(piece)
        return [(*_triangles(pieces)[0], colour) for colour, pieces in groups.items()]

    return _read(path, meter, by_colour, force="scene")


def _colour(mesh: Any) -> Colour | None:
    """RGBA from 0 to 1 of a mesh's material."""
    material = getattr(mesh.visual, "material", None)
    if material is None or getattr(material, "baseColorTexture", None) is not None or material.baseColorFactor is None:
        return None
    return tuple(float(c) / 255.0 for c in material.baseColorFactor)  # type: ignore[return-value]


def _triangles(meshes: Sequence[Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Corners and triangles of meshes as one."""
    offsets = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    vertices = np.concatenate([np.asarray(mesh.vertices, dtype=float) for mesh in meshes])
    return [(vertices, np.concatenate([np.asarray(mesh.faces, dtype=int) + offset for mesh, offset in zip(meshes, offsets)]))]


def _read(path: Path, meter: Meter, made_of: Callable[[Any], list[Any]], **options: Any) -> list[Any]:
    """What is made of what trimesh reads: tuples that begin with corners and triangles."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ModelError(f"meshes are read from {', '.join(ENDINGS)}")
    data = path.read_bytes()
    meter.elements(len(data) / PER_ELEMENT, f"the mesh {path.name!r}")
    if ending == ".dae":
        scan_xml(data, path, meter)
    if ending in _COUNTS:
        found = [int(number) for match in _COUNTS[ending].finditer(data) for number in match.groups()]
        if sum(found) > len(data):  # each takes a byte at the least
            raise ModelError(f"it says that it has {sum(found)} numbers, and has room for {len(data)} at the most")
    logging.getLogger("trimesh").setLevel(logging.CRITICAL)
    found = made_of(trimesh_module().load(io.BytesIO(data), file_type=ending[1:], resolver=None, **options))
    meter.elements(max(0.0, sum(len(piece[0]) + len(piece[1]) for piece in found) - len(data) / PER_ELEMENT), f"the mesh {path.name!r}")
    return found


def trimesh_module() -> Any:
    try:
        import trimesh
    except ImportError:
        raise MissingExtraError("meshes need trimesh: pip install dalembert[urdf]") from None
    return trimesh
