"""USD files with UsdPhysics, through usd-core: rigid bodies, joints with limits and drives, collision shapes, pictures."""
from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from dalembert.errors import MissingExtraError, ModelError
from dalembert.io.budget import Meter
from dalembert.io.options import Options
from dalembert.io.safety import PER_TEXT, inside
from dalembert.io.usd.reader import Reader
from dalembert.io.usd.trial import try_crate
from dalembert.mechanism.mechanism import Mechanism

#: layers that one file may be composed of
MOST_LAYERS = 200


def load_usd(path: Path, options: Options, meter: Meter) -> Mechanism:
    """A mechanism from a .usda, .usdc or .usd file."""
    options.refuse("USD", "srdf", "keyframe", "actuators", "mesh_density", "merge_fixed", "base")
    try:
        Sdf, Usd = (import_module(f"pxr.{name}") for name in ("Sdf", "Usd"))
    except ImportError:
        raise MissingExtraError("reading USD files needs usd-core: pip install dalembert[usd]") from None
    if not path.is_file():
        raise ModelError(f"cannot load {path}: there is no such file")
    _check_layers(Sdf, path, path.resolve().parent if options.root is None else options.root, meter)
    stage = Usd.Stage.Open(str(path), Usd.Stage.LoadAll)
    return Reader(stage, path, options, meter).mechanism()


def _check_layers(Sdf: Any, path: Path, root: Path, meter: Meter) -> None:
    """Refuse, before a stage is composed, what lies outside of the model's folder and what is too much."""
    todo, seen = [path.resolve()], set()
    while todo:
        file = todo.pop()
        if file in seen:
            continue
        seen.add(file)
        if len(seen) > MOST_LAYERS:
            raise ModelError(f"{path} is composed of more than {MOST_LAYERS} files")
        meter.bytes(PER_TEXT * file.stat().st_size, f"the text of {file.name!r}")
        try_crate(file, meter)
        layer = Sdf.Layer.OpenAsAnonymous(str(file))
        if layer is None:
            raise ModelError(f"{file} cannot be read as a USD file")
        for name in layer.GetCompositionAssetDependencies():
            if "://" in name or name.lower().partition("[")[0].endswith(".usdz"):
                raise ModelError(f"{path} takes in {name!r}: only files in its own folder are read")
            target = inside(root, file.parent, name, path, meter)
            if target.is_file():
                todo.append(target)
