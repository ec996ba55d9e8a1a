"""Model files come from anywhere: what they may ask for before any parser acts on it.

No document types and entities, no file outside the model's folder, nothing beyond the budget.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from dalembert.errors import ModelError
from dalembert.io.budget import PER_TAG, Meter

LONGEST_NAME = 4096  # characters of a file's name
#: text counts more than once: parsers hold it several times over
PER_TEXT = 16


@dataclass(frozen=True)
class Element:
    """One start tag: its name, its attributes, and how many elements it is inside."""

    tag: str
    attributes: dict[str, str]
    depth: int


def read_model(path: Path, meter: Meter) -> bytes:
    """The bytes of a model file."""
    try:
        if not path.is_file():
            raise ModelError(f"cannot load {path}: there is no such file")
        meter.bytes(PER_TEXT * path.stat().st_size, f"the text of {path.name!r}")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"cannot read {path}: {error}") from error


def scan_xml(text: bytes, path: Path, meter: Meter) -> list[Element]:
    """All elements of an XML file in order, or a ModelError for anything that a model file has no need of."""
    elements: list[Element] = []
    depth = 0

    def refuse(*_: object) -> None:
        raise ModelError(f"{path} declares a document type or entities; model files have no need of them: remove the <!DOCTYPE ...>")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        elements.append(Element(tag, attributes, depth))
        meter.depth(depth, "elements")
        if len(elements) % 1000 == 0:
            meter.elements(1000 * PER_TAG, "its XML")

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = parser.ExternalEntityRefHandler = refuse  # type: ignore[assignment]
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError, UnicodeError, LookupError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path} is no valid XML: {error}") from error
    return elements


def inside(root: Path, base: Path, name: str, model: Path, meter: Meter) -> Path:
    """The file ``name``, relative to ``base``, if it lies within ``root``; symbolic links are followed first."""
    return inside_all(root, [base], name, model, meter)[0]


def inside_all(root: Path, bases: Iterable[Path], name: str, model: Path, meter: Meter) -> list[Path]:
    """The files that ``name`` may mean to a reader that looks for it in several places: all that exist lie within ``root``.

    Those that exist come first, and their sizes are counted. A name that means nothing within ``root`` is refused where it points outside.
    """
    if "\0" in name or len(name) > LONGEST_NAME:
        raise ModelError(f"{model} names a file that cannot exist: {name[:60]!r}")
    try:
        root = root.resolve()
        targets = list(dict.fromkeys((base / name).resolve() for base in bases))
        there = [target for target in targets if target.exists()]
        beyond = [target for target in there or targets if not target.is_relative_to(root)]
        sizes = [target.stat().st_size for target in there]
        strange = [target for target in there if not target.is_file() and not target.is_dir()]
    except (OSError, RuntimeError, ValueError) as error:
        raise ModelError(f"{model} names the file {name!r}, which cannot be resolved: {error}") from error
    if beyond:
        raise ModelError(f"{model} names the file {name!r}, which lies outside of {root}; allow it with root=, if you trust the file")
    if strange:
        raise ModelError(f"{model} names the file {name!r}, which is a pipe or a device")
    meter.bytes(max(sizes, default=0), f"the file {name!r}")
    return [*there, *(target for target in targets if target not in there)]
