"""What an MJCF file and those that it names may open and ask for, looked through before MuJoCo does.

MuJoCo looks for a file in the folder of the model, of the file that names it and of those that include that one, below folders
that any of them may declare, and takes backslashes for slashes. Every place that it might look in has to be allowed.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath

from dalembert.errors import ModelError
from dalembert.io.budget import PER_LINK, PER_TAG, Meter
from dalembert.io.safety import Element, inside_all, read_model, scan_xml

FOLDERS = {"mesh": "meshdir", "hfield": "meshdir", "skin": "meshdir", "flexcomp": "meshdir", "texture": "texturedir"}
#: files within files: those included, and models that a model consists of
DEEPEST_INCLUDE = 8
#: attributes of which each is a number of things, or several that are multiplied; of <size> the numbers per thing
COUNTS = ("count", "width", "height", "nrow", "ncol", "cellcount")
SIZES = ("nconmax", "njmax", "nstack", "nkey", "nuserdata", "nuser_body", "nuser_jnt", "nuser_geom", "nuser_site", "nuser_cam", "nuser_tendon", "nuser_actuator", "nuser_sensor")
#: the largest parameter of a mesh that MuJoCo makes, and the deepest tree of boxes around one
LARGEST_PARAMETER, DEEPEST_TREE = 200, 8
#: elements by which a mesh grows when MuJoCo makes it by itself
PER_MESH = 100_000
#: bytes of a mesh, a field or a picture that an element has room in
PER_ELEMENT = 32
#: bytes of a pixel
PIXEL = 4


@dataclass
class Model:
    """A model with the files that it includes: folders that names may count from, and those that it declares below them."""

    home: Path
    bases: list[Path]
    declared: dict[str, list[str]] = field(default_factory=lambda: {"meshdir": [], "texturedir": []})
    #: elements that name files, with the file they stand in
    naming: list[tuple[Element, Path]] = field(default_factory=list)
    #: bodies and other elements, with copies
    tags: float = 0.0


def check_files(path: Path, root: Path, meter: Meter, depth: int = 0) -> None:
    """Refuse files outside of ``root`` and what the budget does not allow."""
    if depth > DEEPEST_INCLUDE:
        raise ModelError(f"{path} consists of models more than {DEEPEST_INCLUDE} deep, or in a circle")
    model = Model(path.parent, [path.parent])
    _look(path, model, root, meter, 0)
    for element, file in model.naming:
        for name in (value for key, value in element.attributes.items() if key.startswith("file") and value):
            for target in _targets(name, element.tag, model, root, file, meter):
                if not target.is_file():
                    continue
                if element.tag == "model":
                    check_files(target, root, meter, depth + 1)
                else:
                    _weigh(target, meter)


def _look(path: Path, model: Model, root: Path, meter: Meter, depth: int) -> None:
    """Look through a file and those that it includes."""
    elements = scan_xml(read_model(path, meter), path, meter)
    _check_counts(elements, model, path, meter)
    if path.parent not in model.bases:
        model.bases.append(path.parent)
    for element in elements:
        if element.tag == "compiler":
            for kind, folders in model.declared.items():
                folders += [value for key in (kind, "assetdir") if (value := element.attributes.get(key))]
    for element in elements:
        name = element.attributes.get("file")
        if element.tag == "include" and name:
            if depth >= DEEPEST_INCLUDE:
                raise ModelError(f"{path} includes files more than {DEEPEST_INCLUDE} deep, or in a circle")
            found = [target for target in _targets(name, "include", model, root, path, meter) if target.is_file()]
            for target in found:
                _look(target, model, root, meter, depth + 1)
        elif any(key.startswith("file") for key in element.attributes):
            model.naming.append((element, path))


def _targets(name: str, tag: str, model: Model, root: Path, file: Path, meter: Meter) -> list[Path]:
    """The files that a name may mean, all within ``root``."""
    folders = ["", *model.declared.get(FOLDERS.get(tag, ""), [])]
    if len(folders) > 1 and tag in FOLDERS:
        folders = folders[1:]  # names count from there
    bases = [base / folder.replace("\\", "/") for base in model.bases for folder in folders]
    slashed = name.replace("\\", "/")
    found: dict[Path, None] = {}
    for variant in dict.fromkeys((slashed, PureWindowsPath(slashed).name or slashed)):  # with strippath the last part alone counts
        try:
            found |= dict.fromkeys(inside_all(root, bases, variant, file, meter))
        except ModelError:
            if variant == slashed or any((base / variant).exists() for base in bases):
                raise
    return list(found)


def _weigh(path: Path, meter: Meter) -> None:
    """Spend what a mesh, a field or a picture will take; a picture unpacks to its pixels."""
    with path.open("rb") as file:
        head = file.read(32)
    meter.elements(path.stat().st_size / PER_ELEMENT, f"the file {path.name!r}")
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        width, height = struct.unpack(">II", head[16:24])
        meter.elements(PIXEL * width * height / PER_ELEMENT, f"the picture {path.name!r}")


def _check_counts(elements: list[Element], model: Model, path: Path, meter: Meter) -> None:
    """Spend what copies, rows, pixels and sizes will take."""
    copies: list[tuple[int, float]] = []
    sizes: dict[str, float] = {}
    before = model.tags
    for element in elements:
        while copies and copies[-1][0] >= element.depth:
            copies.pop()
        times = copies[-1][1] if copies else 1.0
        if element.tag == "replicate":
            times *= max(_product(element, ("count",)), 1.0)
            copies.append((element.depth, times))
            _refuse_beyond(times, meter, path, element)
        what = f"<{element.tag}>"
        here = 1.0 if element.tag == "replicate" else max(_product(element, COUNTS), 1.0)
        if element.tag == "flexcomp":
            here *= PER_TAG
        model.tags += (PER_LINK if element.tag == "body" else PER_TAG) * times
        meter.elements(times * here + (PER_LINK * times if element.tag == "body" else 0.0), what)
        for name in ("gridsize",):
            _refuse_beyond(_product(element, (name,)), meter, path, element)
        if element.tag == "mesh" and "builtin" in element.attributes:
            meter.elements(PER_MESH, what)
            if any(abs(number) > LARGEST_PARAMETER for number in _numbers(element.attributes.get("params", ""))):
                raise ModelError(f"{path}: <mesh params={element.attributes['params']!r}> asks for more than {LARGEST_PARAMETER}")
        for name in ("octree_maxdepth", "octree_depth"):
            if any(number > DEEPEST_TREE for number in _numbers(element.attributes.get(name, ""))):
                raise ModelError(f"{path}: <{element.tag} {name}={element.attributes[name]!r}> is deeper than {DEEPEST_TREE}")
        if element.tag == "size":
            if "memory" in element.attributes:
                raise ModelError(f"{path}: <size memory=...> is not needed for loading a model; remove it")
            sizes |= {name: max([0.0, *map(abs, _numbers(element.attributes.get(name, "")))]) for name in SIZES}
    for name, number in sizes.items():  # each may come with every element
        each = max((model.tags - before) / PER_TAG, 1.0) if name.startswith("nuser_") or name == "nkey" else 1.0
        meter.elements(number * each, f"<size {name}>")


def _refuse_beyond(number: float, meter: Meter, path: Path, element: Element) -> None:
    if not number <= meter.budget.elements:
        raise ModelError(f"{path}: <{element.tag}> asks for more than {meter.budget.elements} things")


def _product(element: Element, names: tuple[str, ...]) -> float:
    """How many things attributes ask for together: all their numbers, multiplied."""
    product = 1.0
    for name in names:
        for number in _numbers(element.attributes.get(name, "")):
            product *= max(abs(number), 1.0) if number == number else float("inf")
    return product


def _numbers(text: str) -> list[float]:
    numbers = []
    for word in text.split():
        try:
            numbers.append(float(word))
        except ValueError:
            continue
    return numbers
