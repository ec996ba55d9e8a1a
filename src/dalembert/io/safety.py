"""Model files come from anywhere: what they may ask for before any parser acts on it.

No document types and entities, no file outside the model's folder, no absurd size, depth or counts.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from dalembert.errors import ModelError

LARGEST_FILE = 32 * 2**20  # bytes of a model file
LARGEST_MESH = 256 * 2**20  # bytes of a mesh or picture
DEEPEST = 250  # nested elements
MOST_ELEMENTS = 200_000
LARGEST_COUNT = 20_000  # copies, rows, columns, pixels along an edge
LONGEST_NUMBER = 4096  # characters of an attribute that is no name or list

COUNTS = dict.fromkeys(("count", "width", "height", "nrow", "ncol", "gridsize"), LARGEST_COUNT)
COUNTS |= dict.fromkeys(("nconmax", "njmax", "nstack", "nkey", "nuserdata", "nuser_body", "nuser_geom", "nuser_site"), 10000000)


@dataclass(frozen=True)
class Element:
    """One start tag: its name, its attributes, and how many elements it is inside."""

    tag: str
    attributes: dict[str, str]
    depth: int


def read_model(path: Path) -> bytes:
    """The bytes of a model file of sensible size."""
    try:
        if not path.is_file():
            raise ModelError(f"cannot load {path}: there is no such file")
        if path.stat().st_size > LARGEST_FILE:
            raise ModelError(f"{path} has {path.stat().st_size / 2**20:.0f} MB; model files may have {LARGEST_FILE // 2**20} MB")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"cannot read {path}: {error}") from error


def scan_xml(text: bytes, path: Path) -> list[Element]:
    """All elements of an XML file in order, or a ModelError for anything that a model file has no need of."""
    elements: list[Element] = []
    depth = 0

    def refuse(*_: object) -> None:
        raise ModelError(f"{path} declares a document type or entities; model files have no need of them: remove the <!DOCTYPE ...>")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        elements.append(Element(tag, attributes, depth))
        if depth > DEEPEST:
            raise ModelError(f"{path} nests elements deeper than {DEEPEST} (at <{tag}>, line {parser.CurrentLineNumber})")
        if len(elements) > MOST_ELEMENTS:
            raise ModelError(f"{path} has more than {MOST_ELEMENTS} elements")

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


def check_counts(elements: list[Element], path: Path) -> None:
    """Refuse numbers of copies, rows or pixels that would fill the memory."""
    copies: list[tuple[int, float]] = []
    for element in elements:
        while copies and copies[-1][0] >= element.depth:
            copies.pop()
        for name, most in COUNTS.items():
            for word in element.attributes.get(name, "").split():
                try:
                    number = abs(float(word))
                except ValueError:
                    continue
                if element.tag == "replicate":
                    copies.append((element.depth, number * (copies[-1][1] if copies else 1.0)))
                    number = copies[-1][1]
                if not number <= most:
                    raise ModelError(f"{path}: <{element.tag} {name}={element.attributes[name]!r}> asks for more than {most}")
        if element.tag == "size" and "memory" in element.attributes:
            raise ModelError(f"{path}: <size memory=...> is not needed for loading a model; remove it")


def inside(root: Path, base: Path, name: str, model: Path) -> Path:
    """The file ``name``, relative to ``base``, if it lies within ``root``; symbolic links are followed first."""
    if "\0" in name or len(name) > LONGEST_NUMBER:
        raise ModelError(f"{model} names a file that cannot exist: {name[:60]!r}")
    try:
        target, root = (base / name).resolve(), root.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise ModelError(f"{model} names the file {name!r}, which cannot be resolved: {error}") from error
    if not target.is_relative_to(root):
        raise ModelError(f"{model} names the file {name!r}, which lies outside of {root}; allow it with root=, if you trust the file")
    try:
        if target.is_file() and target.stat().st_size > LARGEST_MESH:
            raise ModelError(f"{model} names the file {name!r} of {target.stat().st_size / 2**20:.0f} MB; {LARGEST_MESH // 2**20} MB are allowed")
    except OSError as error:
        raise ModelError(f"{model} names the file {name!r}, which cannot be read: {error}") from error
    return target
