"""What differs from run to run: values in lists and grids, and numbers that are drawn, each from the seed, its run and its name alone."""
from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from dalembert.checks import numbers, shown
from dalembert.errors import ModelError

#: runs of one ensemble
MOST = 10_000_000
FINITE = numbers()


@dataclass(frozen=True, eq=False)
class Plan:
    """The runs of an ensemble: ``parameters`` and ``starts`` by name, each an array whose first axis counts the runs.

    ``shape``: the lengths of the axes of the grid, and how many samples lie at each of its points; ``axes``: the values along each by name.
    """

    runs: int
    shape: tuple[int, ...]
    axes: dict[str, np.ndarray]
    parameters: dict[str, np.ndarray]
    starts: dict[str, np.ndarray]
    seed: int

    def row(self, index: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Parameters and starts of a run: numbers, and arrays where they are several."""
        return _row(self.parameters, index), _row(self.starts, index)


def _row(table: Mapping[str, np.ndarray], index: int) -> dict[str, Any]:
    return {name: float(values[index]) if values.ndim == 1 else values[index].copy() for name, values in table.items()}


def generator(seed: int, index: int, name: str = "") -> np.random.Generator:
    """The source of chance of one run, and of one name in it: whatever else is drawn, and wherever it runs, it gives the same numbers."""
    word = int.from_bytes(hashlib.sha256(name.encode(errors="surrogatepass")).digest()[:8], "little")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index, word)))


Draw = Callable[[np.random.Generator], Any]


def lay_out(parameters: Mapping[str, Any], starts: Mapping[str, Any], samples: int | None, seed: int, grid: bool, chance: bool) -> Plan:
    """The plan of an ensemble. ``grid``: lists are axes of a grid, otherwise columns of a table; ``chance``: something else is drawn in each run."""
    values: dict[tuple[str, str], np.ndarray] = {}
    draws: dict[tuple[str, str], Draw] = {}
    fixed: dict[tuple[str, str], np.ndarray] = {}
    for kind, given in (("parameter", parameters), ("start", starts)):
        for name, item in given.items():
            what, found = (kind, name), _read(item, f"{kind} {name!r}")
            if callable(found):
                draws[what] = found
            else:
                (fixed if found.shape[:1] == (1,) and not isinstance(item, list | np.ndarray) else values)[what] = found
    shape, places = _places(values, grid)
    if draws and samples is None and not values:
        raise ModelError(f"{' and '.join(name for _, name in draws)} are drawn at random: say how often with samples=...")
    if samples is not None and not draws and not chance:
        raise ModelError("samples=... needs something to draw: give a parameter or start as (low, high) or as a distribution, or a controls=... that makes controllers")
    each = samples or 1
    runs = prod(shape) * each
    if runs > MOST:
        raise ModelError(f"an ensemble of {runs:.6g} runs is too large: at most {MOST:.6g}")
    table = {what: np.repeat(column[places[what]], each, axis=0) for what, column in values.items()}
    table |= {what: np.repeat(column, runs, axis=0) for what, column in fixed.items()}
    table |= {what: _drawn(draw, what, runs, seed) for what, draw in draws.items()}
    order = [("parameter", name) for name in parameters], [("start", name) for name in starts]
    named, begun = ({name: table[kind, name] for kind, name in names} for names in order)
    axes = {name: column for (_, name), column in values.items()} if grid else {}
    return Plan(runs, (*shape, each) if samples is not None else shape, axes, named, begun, seed)


def _read(item: Any, what: str) -> np.ndarray | Draw:
    """Values along the first axis, or what draws one."""
    if hasattr(item, "rvs"):
        return lambda rng: item.rvs(random_state=rng)
    if callable(item):
        return item
    if isinstance(item, tuple):
        if len(item) != 2:
            raise ModelError(f"{what}: a tuple is a range (low, high) to draw from, and values stand in a list; got {shown(item)}")
        low, high = (FINITE(end, f"{what}: its {word} end") for end, word in zip(item, ("lower", "upper")))
        if low.shape != high.shape or np.any(low > high):
            raise ModelError(f"{what}: a range is (low, high), with low below high, got {shown(item)}")
        return lambda rng: rng.uniform(low, high)
    found = FINITE(list(item) if isinstance(item, range) else item, what)
    if found.size == 0:
        raise ModelError(f"{what} has no values: its list is empty")
    return found if found.ndim else found[None]


def _places(values: Mapping[tuple[str, str], np.ndarray], grid: bool) -> tuple[tuple[int, ...], dict[tuple[str, str], np.ndarray]]:
    """The shape of the grid, or of the table, and which value of each list stands in each of its rows."""
    lengths = [len(column) for column in values.values()]
    if not grid:
        if len(set(lengths)) > 1:
            said = ", ".join(f"{name!r} has {len(column)}" for (_, name), column in values.items())
            raise ModelError(f"with grid=False lists go together, row by row, and must be of one length: {said}")
        return tuple(lengths[:1]), {what: np.arange(lengths[0]) for what in values}
    if prod(lengths) > MOST:
        raise ModelError(f"a grid of {' x '.join(map(str, lengths))} runs is too large: at most {MOST:.6g}")
    places = np.indices(lengths).reshape(len(lengths), prod(lengths))
    return tuple(lengths), dict(zip(values, places))


def _drawn(draw: Draw, what: tuple[str, str], runs: int, seed: int) -> np.ndarray:
    kind, name = what
    found = [FINITE(draw(generator(seed, index, f"{kind} {name}")), f"{kind} {name!r} as drawn") for index in range(runs)]
    if len({value.shape for value in found}) > 1:
        raise ModelError(f"{kind} {name!r} is drawn with different shapes from run to run")
    return np.array(found)
