"""Kernels that came compiled with the package, so that nobody waits for a first run.

``prebuild`` compiles them for a processor that most have, x86-64-v3, and ``make wheel`` packs them beside the sources, in ``_kernels``. They are found by
the same digests as those in the cache: of the sources, of Python, Numba and llvmlite. Whatever is other than it was, and any damage, leads to compiling.
They are trusted as the package itself is, whose files lie beside them.

An entry is machine code, compressed, without the LLVM code that it was made of, since nothing is linked with it any more.
"""
from __future__ import annotations

import functools
import os
import pickle
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from llvmlite import binding as llvm
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from dalembert.kernels.cache import complain, seal, unseal
from dalembert.kernels.closure import SOURCE

FOLDER = SOURCE / "_kernels"
#: name and features of the processor that they are for, as Numba's environment variables give them, and what such a one can do
PROCESSOR, FEATURES = "x86-64-v3", ""
NEEDED = ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3")


@functools.cache
def usable() -> bool:
    """Whether there are kernels for this processor, and nobody asked for others."""
    if os.environ.get("NUMBA_CPU_NAME") or os.environ.get("NUMBA_CPU_FEATURES") or os.environ.get("DALEMBERT_SHIPPED", "1") == "0" or not FOLDER.is_dir():
        return False
    with suppress(RuntimeError):
        host = llvm.get_host_cpu_features()
        return llvm.get_process_triple().startswith("x86_64") and all(host.get(name, False) for name in NEEDED)
    return False


def magic(codegen: Any) -> tuple[str, str, str]:
    """What names the entries are made of, in place of the processor's own."""
    return codegen.magic_tuple()[0], PROCESSOR, FEATURES


def load(folder: str, name: str, target: Any) -> CompileResult | None:
    """A compiled kernel, or None: where there is none, or where it is damaged."""
    path = FOLDER / folder / name
    try:
        data = unseal(f"{folder}/{name}", path.read_bytes())
    except OSError:
        return None
    try:
        if data is None:
            raise ValueError("damaged")
        return _rebuilt(target, *pickle.loads(zlib.decompress(data)))
    except Exception as error:
        complain(f"a kernel that came with dalembert cannot be used, and is compiled: {path.name}: {error or type(error).__name__}")
        return None


def _rebuilt(target: Any, library: tuple[str, bytes, frozenset[str]], *rest: Any) -> CompileResult:
    """A compiled kernel from its parts; ``library``: its name, its machine code, and the symbols that this defines."""
    name, code, symbols = library
    codegen = target.codegen()
    codegen._engine._defined_symbols.update(symbols)
    return CompileResult._rebuild(_Target(target, _loaded(codegen, name, code)), None, *rest)._replace(target_context=target)


def _loaded(codegen: Any, name: str, code: bytes) -> Any:
    library = codegen.create_library(name)
    library.enable_object_caching()
    library._set_compiled_object(code)
    library._finalize_final_module()
    return library


class _Target:
    """A target whose code generator knows a library already: all else is the target's own."""

    def __init__(self, target: Any, library: Any) -> None:
        self._target, self._library = target, library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def codegen(self) -> Any:
        return self

    def unserialize_library(self, _: Any) -> Any:
        return self._library


def pack(source: Path, destination: Path) -> list[str]:
    """Copy compiled kernels from a cache folder, without their LLVM code. Returns their names; those that hold addresses of this process are left out."""
    packed = []
    for folder in sorted(source.glob("kernels-*")):
        for path in sorted(folder.glob("*.kernel")):
            data = unseal(f"{folder.name}/{path.name}", path.read_bytes())
            if data is None:
                continue
            (name, kind, (code, bitcode)), description, *rest = pickle.loads(data)
            if kind != "object":
                continue
            module = llvm.parse_bitcode(bitcode)
            symbols = frozenset(v.name for values in (module.functions, module.global_variables) for v in values if not v.is_declaration)
            *before, _, reload, referenced = rest
            entry = dumps(((name, code, symbols), description, *before, "", reload, referenced))
            (destination / folder.name).mkdir(parents=True, exist_ok=True)
            (destination / folder.name / path.name).write_bytes(seal(f"{folder.name}/{path.name}", zlib.compress(entry, 9)))
            packed.append(f"{folder.name}/{path.name}")
    return packed
