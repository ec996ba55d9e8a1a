"""SDF files (Gazebo): worlds and models with links, joints in any arrangement, pictures, collision shapes and sensors."""
from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from dalembert.errors import ModelError
from dalembert.io.budget import Meter
from dalembert.io.options import Options
from dalembert.io.safety import read_model, scan_xml
from dalembert.io.sdf.reader import Reader
from dalembert.mechanism.mechanism import Mechanism


def load_sdf(path: Path, options: Options, meter: Meter) -> Mechanism:
    """A mechanism from an SDF file: its first world, or all of its models."""
    options.refuse("SDF", "srdf", "keyframe", "actuators", "mesh_density", "merge_fixed")
    text = read_model(path, meter)
    scan_xml(text, path, meter)
    root = ElementTree.fromstring(text)
    if root.tag != "sdf":
        raise ModelError(f"{path} is no SDF file: its root is <{root.tag}>")
    return Reader(root, path, options, meter).mechanism()
