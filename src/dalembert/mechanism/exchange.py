"""One element in the place of another: elements never change, so a changed one is a new one that all others must refer to."""
from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any


def exchange(mechanism: Any, old: Any, new: Any) -> None:
    """Put ``new`` wherever the mechanism, or one of its elements, refers to ``old``."""
    if hasattr(new, "name"):
        mechanism._names[new.name] = new
    for entry in fields(mechanism):
        held = getattr(mechanism, entry.name)
        for i, item in enumerate(held) if isinstance(held, list) else ():
            if item is old:
                held[i] = new
                continue
            changed = referring(item, old, new)
            if changed is not item:
                exchange(mechanism, item, changed)


def referring(item: Any, old: Any, new: Any) -> Any:
    """An element that refers to ``new`` where it referred to ``old``, by itself or in a tuple; itself where it did not."""
    if not is_dataclass(item) or isinstance(item, type):
        return item
    changes: dict[str, Any] = {}
    for entry in fields(item):
        value = getattr(item, entry.name)
        if value is old:
            changes[entry.name] = new
        elif isinstance(value, tuple) and any(part is old for part in value):
            changes[entry.name] = tuple(new if part is old else part for part in value)
    return replace(item, **changes) if changes else item
