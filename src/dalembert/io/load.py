"""``da.load``: a mechanism from a model file of any format that we read, told apart by ending and content."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dalembert.errors import ModelError
from dalembert.io.safety import read_model, scan_xml
from dalembert.mechanism.mechanism import Mechanism

BASES = (None, "fixed", "free")


def load(
    path: str | Path,
    *,
    strict: bool = False,
    merge_fixed: bool = False,
    base: str | None = None,
    root: str | Path | None = None,
    mesh_density: float | None = None,
) -> Mechanism:
    """A ``Mechanism`` from a URDF, MJCF or native (TOML, JSON) file.

    What the file asks for and dalembert does not simulate is listed in ``mechanism.report``; ``strict`` makes that a
    ModelError. ``merge_fixed``: links fixed to another become part of it. ``base``: "fixed" holds a robot's root on the
    world, "free" lets it float; None is "fixed" for URDF and what the file says for MJCF. ``root``: the folder that
    meshes and included files may come from (by default the model's own folder, or its package). ``mesh_density``
    (kg/m^3): mass of URDF links that have none.
    """
    path = Path(path)
    if base not in BASES:
        raise ModelError(f"base must be None, 'fixed' or 'free', got {base!r}")
    if mesh_density is not None and not 0.0 < mesh_density < float("inf"):
        raise ModelError(f"mesh_density must be positive, got {mesh_density}")
    folder = None if root is None else Path(root)
    reader = _reader(path)
    if reader == "urdf":
        from dalembert.io.urdf import load_urdf

        mechanism = _guarded(path, lambda: load_urdf(path, merge_fixed=merge_fixed, base=base, root=folder, mesh_density=mesh_density))
    elif reader == "mjcf":
        from dalembert.io.mjcf import load_mjcf

        mechanism = _guarded(path, lambda: load_mjcf(path, merge_fixed=merge_fixed, base=base, root=folder))
    else:
        from dalembert.io.native import read_native

        mechanism = _guarded(path, lambda: read_native(path))
    if strict and mechanism.report:
        more = f" (and {len(mechanism.report) - 1} more)" if len(mechanism.report) > 1 else ""
        raise ModelError(f"{path} asks for what is not supported, and strict=True: {mechanism.report[0]}{more}")
    return mechanism


def _reader(path: Path) -> str:
    """Which importer a file is for."""
    ending = path.suffix.lower()
    if ending == ".urdf":
        return "urdf"
    if ending in (".toml", ".json"):
        return "native"
    if ending in (".xml", ".mjcf"):
        elements = scan_xml(read_model(path), path)
        tag = elements[0].tag if elements else ""
        kinds = {"mujoco": "mjcf", "mujocoinclude": "mjcf", "robot": "urdf"}
        if tag not in kinds:
            raise ModelError(f"{path} is an XML file with the root <{tag}>; dalembert reads <mujoco> (MJCF) and <robot> (URDF)")
        return kinds[tag]
    raise ModelError(f"cannot tell what {path} is by its ending {ending!r}; dalembert reads .urdf, .xml (MJCF or URDF), .toml and .json")


def _guarded(path: Path, read: Callable[[], Mechanism]) -> Mechanism:
    """Any mistake of a file that no check foresaw is still a ModelError that names the file."""
    try:
        return read()
    except (ModelError, ImportError):
        raise
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        reason: Any = " ".join(str(error).split())[:300]
        raise ModelError(f"{path} cannot be loaded: {type(error).__name__}: {reason}") from error
