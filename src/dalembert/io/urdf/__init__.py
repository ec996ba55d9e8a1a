"""URDF files, through yourdfpy: links, joints, mimics, pictures and collision shapes; mesh inertia through trimesh where asked."""
from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

from dalembert.errors import MissingExtraError, ModelError
from dalembert.io.budget import Meter
from dalembert.io.options import Options
from dalembert.io.safety import read_model, scan_xml
from dalembert.io.urdf.extras import read_extras
from dalembert.io.urdf.reader import Reader
from dalembert.io.urdf.semantics import read_semantics
from dalembert.mechanism.mechanism import Mechanism


def load_urdf(path: Path, options: Options, meter: Meter) -> Mechanism:
    """A mechanism from a URDF file, all joints at zero, or at the end of their limits that is nearest to it; or in a pose of its SRDF file."""
    options.refuse("URDF", "actuators")
    if options.srdf is None:
        options.refuse("URDF", "keyframe")
    text = read_model(path, meter)
    elements = scan_xml(text, path, meter)
    if len(elements) == 1:
        raise ModelError(f"{path} is empty: its <{elements[0].tag}> holds no links")
    semantics = None if options.srdf is None else read_semantics(options.srdf, meter)
    return Reader(_parse(text, path), read_extras(text), semantics, path, options, meter).mechanism()


def _parse(text: bytes, path: Path) -> Any:
    try:
        import yourdfpy
    except ImportError:
        raise MissingExtraError("reading URDF files needs yourdfpy: pip install dalembert[urdf]") from None
    logging.getLogger("yourdfpy.urdf").setLevel(logging.CRITICAL)
    try:
        return yourdfpy.URDF.load(
            io.BytesIO(text), build_scene_graph=False, build_collision_scene_graph=False, load_meshes=False,  # type: ignore[arg-type]
        ).robot
    except Exception as error:
        raise ModelError(f"{path} cannot be read as a URDF file: {type(error).__name__}: {' '.join(str(error).split())[:300]}") from error
