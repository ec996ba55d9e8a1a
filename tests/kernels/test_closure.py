"""What kernels are made of: the digest sees every change that matters, and no file is left out."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dalembert.kernels import closure

FILES = {
    "__init__.py": "from dalembert.high import everything\n",
    "high.py": "import numpy\n",
    "first.py": "from dalembert.second import f\nfrom dalembert.third import g\nfrom dalembert.fourth import h\n",
    "second.py": "",
    "third.py": "",
    "fourth.py": "from dalembert.box import (  # (a bracket in a comment)\n    lid,\n    key,  # another :-)\n)\nfrom dalembert import fifth as number\n",
    "fifth.py": "import os; from .sixth import f\n",
    "sixth.py": "try:\n    from . import seventh\nexcept ImportError:\n    from dalembert.second import f\n",
    "seventh.py": "from dalembert.eighth import f, \\\n    g\nimport numpy, dalembert.box.side as side\n",
    "eighth.py": "'''What comes\nfrom dalembert (as it says here)\n'''\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dalembert.high import T\ndef late(\n    x,\n) -> None:\n    if x:\n        from dalembert import high\nclass A:\n    def f(self): import dalembert.high\n",
    "box/__init__.py": "from .lock import key\n",
    "box/lid.py": "from ..second import f\n",
    "box/lock.py": "",
    "box/side.py": "",
    "box/bottom.py": "from dalembert.box.side import f\n",
}
IMPORTS = {
    "first": {"second", "third", "fourth"},
    "fourth": {"box/__init__", "box/lid", "fifth"},
    "fifth": {"sixth"},
    "sixth": {"seventh", "second"},
    "eighth": set(),
    "seventh": {"eighth", "__init__", "box/__init__", "box/side"},
    "box/__init__": {"box/lock"},
    "box/lid": {"second"},
    "box/bottom": {"box/side"},
}


def _forget() -> None:
    for function in (closure.source_digest, closure.imports, closure._file_of, closure._content):
        function.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with imports of all forms."""
    root = tmp_path / "dalembert"
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / name).write_text(text)
    monkeypatch.setattr(closure, "SOURCE", root)
    _forget()
    yield root
    _forget()


@pytest.mark.parametrize("name", IMPORTS)
def test_every_form_of_import_is_read(package, name):
    found = {file.relative_to(package).with_suffix("").as_posix() for file in closure.imports(package / f"{name}.py")}
    assert found == IMPORTS[name]


def test_digest_follows_imports(package):
    def digest() -> str:
        _forget()
        return closure.source_digest(package / "first.py")

    before = digest()
    assert digest() == before
    (package / "box" / "bottom.py").write_text("value = 2\n")
    assert digest() == before
    for name in ("first", "second", "third", "fourth", "box/lid", "box/lock", "seventh", "eighth"):
        text = (package / f"{name}.py").read_text()
        (package / f"{name}.py").write_text(f"{text}\nvalue = 2\n")
        changed = digest()
        assert changed != before, name
        before = changed


def test_files_that_import_one_another_differ(package):
    (package / "second.py").write_text("from dalembert.third import f\n")
    (package / "third.py").write_text("from dalembert.second import f\n")
    assert closure.source_digest(package / "second.py") != closure.source_digest(package / "third.py")


#: imports every module and notes which import statements Python ran, where, and what they named
WATCH = """
import builtins, importlib, importlib.util, json, pkgutil, sys
edges = set()
original = builtins.__import__

def watched(name, globals=None, locals=None, fromlist=(), level=0):
    result = original(name, globals, locals, fromlist, level)
    importer = (globals or {}).get("__name__", "")
    if level:
        name = importlib.util.resolve_name("." * level + name, globals["__package__"])
    if importer.split(".")[0] == "dalembert" == name.split(".")[0]:
        if fromlist:
            for part in fromlist:
                edges.add((importer, f"{name}.{part}" if f"{name}.{part}" in sys.modules else name))
        else:
            words = name.split(".")
            edges.update((importer, ".".join(words[:end])) for end in range(1, len(words) + 1))
    return result

builtins.__import__ = watched
import dalembert
for module in pkgutil.walk_packages(dalembert.__path__, "dalembert."):
    importlib.import_module(module.name)
files = {name: module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "dalembert"}
print(json.dumps([files, sorted(edges)]))
"""


def test_closures_are_what_python_imports():
    """For every file: what Python imports is compared with what is read from the text."""
    files, edges = json.loads(subprocess.run([sys.executable, "-c", WATCH], capture_output=True, text=True, check=True).stdout)
    after: dict[str, set[str]] = {name: set() for name in files}
    for importer, imported in edges:
        after[importer].add(imported)
    assert {Path(file) for file in files.values()} == set(closure.SOURCE.rglob("*.py"))
    for name, file in files.items():
        seen, todo = set(), [name]
        while todo:
            here = todo.pop()
            if here not in seen:
                seen.add(here)
                todo.extend(after[here])
        assert closure.closure(Path(file)) == {Path(files[n]) for n in seen}, name
