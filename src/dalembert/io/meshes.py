"""Mesh files, through trimesh: only formats that stand by themselves, looked through before it reads them.

trimesh would unpack archives and open what a file names besides; here it gets the bytes of one file.
"""
from __future__ import annotations

import io
import logging
import re
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError
from dalembert.io.budget import Meter
from dalembert.io.safety import scan_xml

#: what can be read; archives and files that consist of several are not
ENDINGS = (".stl", ".obj", ".dae", ".ply", ".off", ".glb")
#: bytes of a file in which a corner or a triangle has room
PER_ELEMENT = 32
#: numbers in a file that say how much is to come
_COUNTS = {".ply": re.compile(rb"^element +\S+ +(\d+)", re.MULTILINE), ".glb": re.compile(rb'"count" *: *(\d+)'), ".off": re.compile(rb"\A\s*\S*OFF\s+(?:#.*\s+)*(\d+)\s+(\d+)")}


def read_mesh(path: Path, meter: Meter) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3) and triangles (m, 3) of a file whose place was checked. Raises whatever is wrong with it."""
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
    mesh = trimesh_module().load(io.BytesIO(data), file_type=ending[1:], resolver=None, force="mesh", skip_materials=True)
    vertices, faces = np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=int)
    meter.elements(max(0.0, len(vertices) + len(faces) - len(data) / PER_ELEMENT), f"the mesh {path.name!r}")
    return vertices, faces


def trimesh_module() -> Any:
    try:
        import trimesh
    except ImportError:
        raise MissingExtraError("meshes need trimesh: pip install dalembert[urdf]") from None
    return trimesh
