"""``da.load``: a mechanism from a model file of any format that we read, told apart by ending and content."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from dalembert.checks import NOTHING, POSITIVE, checked
from dalembert.errors import ModelError
from dalembert.io.budget import Budget, Meter
from dalembert.io.options import Options
from dalembert.io.safety import read_model, scan_xml
from dalembert.mechanism.mechanism import Mechanism


@checked(mesh_density=POSITIVE | NOTHING)
def load(
    path: str | Path,
    *,
    strict: bool = False,
    merge_fixed: bool = False,
    base: str | None = None,
    root: str | Path | None = None,
    mesh_density: float | None = None,
    contacts: bool = True,
    self_collisions: bool | None = None,
    limits: bool = True,
    actuators: bool = True,
    keyframe: str | int | None = None,
    srdf: str | Path | None = None,
    position: ArrayLike = (0.0, 0.0, 0.0),
    orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    decompose: bool = False,
    budget: Budget | None = None,
) -> Mechanism:
    """A ``Mechanism`` from a URDF, SDF, USD, MJCF or native (TOML, JSON) file.

    What the file asks for and dalembert does not simulate is listed in ``mechanism.report``; ``strict`` makes that a
    ModelError. ``merge_fixed``: links fixed to another become part of it. ``base``: "fixed" holds a robot's root on the
    world, "free" lets it float; None is "fixed" for URDF and what the file says for SDF and MJCF. ``root``: the folder that
    meshes and included files may come from (by default the model's own folder, or its package). ``mesh_density``
    (kg/m^3): mass of URDF links that have none.

    ``contacts=False`` leaves out everything that touches, ``limits=False`` the limits and the dry friction of joints:
    formulations without contact need both. ``self_collisions``: whether the parts of a robot touch one another; None is
    no for URDF without ``srdf`` and what the file says for SDF and MJCF. ``actuators=False`` leaves out those of an MJCF file, servos that hold its
    joints among them. ``keyframe``: the one of an MJCF file, by name or number, or the pose of an SRDF file by name, to start from.
    ``srdf``: the SRDF file of a URDF robot: the pairs of links that it disables do not collide, all others do.
    ``position`` (m) and ``orientation`` (a quaternion): where the root of a URDF robot is. ``decompose``: meshes touch by convex parts (extra ``convex``),
    not by their hulls. ``budget``: what reading may cost,
    a larger one for a large file that you trust.
    """
    path = Path(path)
    if root is not None and not Path(root).is_dir():
        raise ModelError(f"load {str(path)!r}: root must be a folder, and there is none at {str(root)!r}")
    options = Options(
        merge_fixed=merge_fixed, base=base, root=None if root is None else Path(root), mesh_density=mesh_density, contacts=contacts,
        self_collisions=self_collisions, limits=limits, actuators=actuators, keyframe=keyframe, srdf=None if srdf is None else Path(srdf),
        position=position, orientation=orientation, decompose=decompose,
    )
    mechanism = guarded(path, lambda: _read(path, options, Meter(path, budget)))
    if strict and mechanism.report:
        more = f" (and {len(mechanism.report) - 1} more)" if len(mechanism.report) > 1 else ""
        raise ModelError(f"{path} asks for what is not supported, and strict=True: {mechanism.report[0]}{more}")
    return mechanism


def _read(path: Path, options: Options, meter: Meter) -> Mechanism:
    kind = _reader(path, meter)
    if kind == "urdf":
        from dalembert.io.urdf import load_urdf

        return load_urdf(path, options, meter)
    if kind == "mjcf":
        from dalembert.io.mjcf import load_mjcf

        return load_mjcf(path, options, meter)
    if kind == "sdf":
        from dalembert.io.sdf import load_sdf

        return load_sdf(path, options, meter)
    if kind == "usd":
        from dalembert.io.usd import load_usd

        return load_usd(path, options, meter)
    from dalembert.io.native import read_native

    return read_native(path, options, meter)


def _reader(path: Path, meter: Meter) -> str:
    """Which importer a file is for."""
    ending = path.suffix.lower()
    if ending == ".urdf":
        return "urdf"
    if ending in (".sdf", ".world"):
        return "sdf"
    if ending in (".usda", ".usdc", ".usd"):
        return "usd"
    if ending in (".toml", ".json"):
        return "native"
    if ending in (".xml", ".mjcf"):
        fresh = Meter(path, meter.budget)  # the importer looks through the file again
        elements = scan_xml(read_model(path, fresh), path, fresh)
        tag = elements[0].tag if elements else ""
        kinds = {"mujoco": "mjcf", "mujocoinclude": "mjcf", "robot": "urdf", "sdf": "sdf"}
        if tag not in kinds:
            raise ModelError(f"{path} is an XML file with the root <{tag}>; dalembert reads <mujoco> (MJCF), <robot> (URDF) and <sdf>")
        return kinds[tag]
    raise ModelError(f"cannot tell what {path} is by its ending {ending!r}; dalembert reads .urdf, .sdf, .world, .usda, .usdc, .usd, .xml (MJCF, URDF or SDF), .toml and .json")


def guarded(path: Path | str, read: Callable[[], Mechanism]) -> Mechanism:
    """Any mistake of a file that no check foresaw is still a ModelError that names the file."""
    try:
        return read()
    except (ModelError, ImportError):
        raise
    except MemoryError:
        raise ModelError(f"{path} asks for more memory than there is") from None
    except (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
        reason: Any = " ".join(_said(error).split())[:300]
        raise ModelError(f"{path} cannot be loaded: {type(error).__name__}: {reason}") from error


def _said(error: Exception) -> str:
    """What an error says; messages of libraries may hold bytes of the file that are no text."""
    try:
        return str(error)
    except UnicodeError:
        return "what it says is no text"
