"""What the kernels of a source file are made of: that file and every dalembert file that it imports, directly or not.

Code that is compiled from a file can be used again as long as the digest of this closure stays the same.

A package's ``__init__.py`` belongs to the closure where a name is taken from it. Python also runs it on the way to a
submodule, but nothing that a kernel sees comes from there; and since ``dalembert/__init__.py`` imports everything,
counting it would compile every kernel again after any change. Nor do imports count that are inside functions, since
compiled code cannot import, or for type checkers only: they are the ways from low files up to high ones. The tests
compare closures with what Python does import.
"""
from __future__ import annotations

import ast
import functools
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import llvmlite
import numba

SOURCE = Path(__file__).parent.parent
#: where a statement begins that may import from dalembert; parsing whole files would take most of the time of an import
_BEGIN = re.compile(r"(?:^|[;:])[ \t]*(?=from[ \t]*\.|from[ \t]+dalembert\b|import[ \t][^\n#]*\bdalembert\b)", re.MULTILINE)
#: the head of a block that does not run when its file is imported
_LATER = re.compile(r"[ \t]*(?:async[ \t]+)?def\b|[ \t]*if[ \t]+(?:typing\.)?TYPE_CHECKING\b")


@functools.cache
def source_digest(path: Path) -> str:
    """A digest of ``path`` with its closure, and of what compiles it."""
    place = path.parts[-3:]  # files that import one another have the same closure
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__} {sys.version_info[:2]} {place}".encode())
    for file in sorted(closure(path)):
        digest.update(_content(file))
    return digest.hexdigest()[:16]


def closure(path: Path) -> set[Path]:
    """``path`` and all dalembert files that it imports, transitively."""
    seen: set[Path] = set()
    todo = [path]
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo.extend(imports(file))
    return seen


@functools.cache
def imports(path: Path) -> frozenset[Path]:
    """The dalembert files that ``path`` imports."""
    found: set[Path | None] = set()
    for node in _import_statements(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.Import):
            for name in (alias.name.split(".") for alias in node.names):
                if name[0] == "dalembert":  # binds the package, by which all that lies on the way can be reached
                    found.update(_file_of(SOURCE.joinpath(*name[1:end])) for end in range(1, len(name) + 1))
        elif node.level or (node.module or "").split(".")[0] == "dalembert":
            words = node.module.split(".") if node.module else []
            stem = path.parents[node.level - 1].joinpath(*words) if node.level else SOURCE.joinpath(*words[1:])
            found.update(_file_of(stem / alias.name) or _file_of(stem) for alias in node.names)
    return frozenset(file for file in found if file is not None)


def _import_statements(text: str) -> Iterator[ast.Import | ast.ImportFrom]:
    for match in _BEGIN.finditer(text):
        if not _runs_at_once(text[: match.end()]):
            continue
        end = text.find("\n", match.end())
        while True:
            statement = text[match.end() : end if end >= 0 else None]
            try:
                yield from (node for node in ast.parse(statement).body if isinstance(node, ast.Import | ast.ImportFrom))
                break
            except SyntaxError:
                # It goes on in the next line; without a bracket or a backslash it is prose that looks like an import.
                if end < 0 or not ("(" in statement or statement.endswith("\\")):
                    break
            end = text.find("\n", end + 1)


def _runs_at_once(text: str) -> bool:
    """Whether a statement that follows ``text`` runs when its file is imported, from the heads of the blocks around it."""
    before, _, line = text.rpartition("\n")
    if _LATER.match(line):
        return False
    indent = _indent(line)
    for head in reversed(before.split("\n")) if indent else ():
        if head.strip() and _indent(head) < indent:
            if _LATER.match(head):
                return False
            indent = _indent(head) + head.lstrip().startswith(")")  # a head of several lines began at the same depth
    return True


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@functools.cache
def _file_of(stem: Path) -> Path | None:
    """The file of a module or package."""
    for candidate in (stem / "__init__.py", stem.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None


@functools.cache
def _content(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()
