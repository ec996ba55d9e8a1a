"""Fingerprints of what an ensemble is made of: equal in every session and on every machine for what gives the same runs."""
from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def fingerprint(value: Any) -> str:
    """A fingerprint of numbers, texts, arrays, records, and functions: of those, by their code, defaults and what they enclose."""
    digest = hashlib.sha256()
    for word in _words(value, {}):
        digest.update(len(word).to_bytes(8, "little") + word)
    return digest.hexdigest()


def _words(value: Any, seen: dict[int, tuple[int, Any]]) -> Any:
    """A value as a row of texts; what was met before is named by its number, so that circles end."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.number | np.bool_):
        yield f"{type(value).__name__} {value!r}".encode(errors="surrogatepass")
        return
    if id(value) in seen:
        yield f"again {seen[id(value)][0]}".encode()
        return
    seen[id(value)] = len(seen), value  # which keeps it, so that no other takes its place in memory
    yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield f"{value.dtype.str} {value.shape}".encode() + np.ascontiguousarray(value).tobytes()
        return
    for part in _parts(value):
        yield from _words(part, seen)


def _parts(value: Any) -> list[Any]:
    """What a value consists of, in an order that is always the same."""
    if isinstance(value, np.random.Generator):
        return [repr(value.bit_generator.state)]
    if isinstance(value, Mapping):
        return [item for pair in value.items() for item in pair]
    if isinstance(value, set | frozenset):
        return sorted(fingerprint(item) for item in value)
    if isinstance(value, list | tuple | np.ndarray):
        return list(value)
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, types.CodeType):
        return [value.co_name, value.co_code, value.co_consts, value.co_names, value.co_varnames, value.co_freevars]
    if isinstance(value, types.FunctionType):
        cells = [getattr(cell, "cell_contents", None) for cell in value.__closure__ or () if cell != types.CellType()]  # those that are filled
        return [value.__qualname__, value.__code__, value.__defaults__, value.__kwdefaults__, cells]
    if hasattr(value, "py_func"):  # compiled by Numba
        return [value.py_func]
    if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType | np.ufunc | np.dtype):
        return [getattr(value, "__module__", None), getattr(value, "__qualname__", getattr(value, "__name__", str(value)))]
    if is_dataclass(value):
        return [item for entry in fields(value) for item in (entry.name, getattr(value, entry.name, None))]
    held = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = getattr(kind, "__slots__", ())
        held |= {name: getattr(value, name, None) for name in ((slots,) if isinstance(slots, str) else slots) if not name.startswith("__")}
    return [held]
