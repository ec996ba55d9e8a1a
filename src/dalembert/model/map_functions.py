"""Coordinate maps as kernels call them: q = phi(y) with first and second derivatives, or one coordinate as a function of others."""
from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]

from dalembert.errors import ModelError
from dalembert.kernels.calls import ENTRY, Callback, is_compiled
from dalembert.mechanism.maps import SLOPE_WEIGHTS, STEP, CoordinateMap


def map_size(joints: int, count: int) -> int:
    """Numbers that a map gives for (count,) y: q (n), slopes (n, count), curvatures (n, count, count)."""
    return joints * (1 + count + count * count)


def stage_entry(element: CoordinateMap) -> Any:
    """Given y, found q, its slopes and curvatures, one after the other."""
    if is_compiled(element.function) and (element.jacobian is None or is_compiled(element.jacobian)):
        return _compiled(element)
    joints, count = len(element.joints), element.count

    def enter(given: np.ndarray, found: np.ndarray) -> None:
        y = given.copy()
        found[:joints] = element.values(y)
        found[joints : joints * (1 + count)] = element.slopes(y).ravel()
        found[joints * (1 + count) :] = element.curvatures(y).ravel()

    return Callback(enter)


def _compiled(element: CoordinateMap) -> Any:
    """The same for functions that Numba has compiled: derivatives are differenced inside the kernel."""
    function, n, m = element.function, len(element.joints), element.count
    first, second, third = SLOPE_WEIGHTS

    @numba.njit
    def differenced(y):
        slopes = np.empty((n, m))
        for k in range(m):
            total = np.zeros(n)
            for i, weight in ((1, first), (2, second), (3, third)):
                for sign in (1.0, -1.0):
                    moved = y.copy()
                    moved[k] += sign * i * STEP
                    total += sign * weight * np.asarray(function(moved)).reshape(n)  # pyright: ignore[reportOptionalCall]
            slopes[:, k] = total / STEP
        return slopes

    slopes_of = differenced if element.jacobian is None else element.jacobian

    @numba.cfunc(ENTRY)
    def enter(given_at, found_at, size, room):
        y, found = carray(given_at, (size,)), carray(found_at, (room,))
        found[:n] = np.asarray(function(y.copy())).reshape(n)  # pyright: ignore[reportOptionalCall]
        found[n : n + n * m] = np.ascontiguousarray(slopes_of(y.copy())).reshape(n * m)
        for k in range(m):
            total = np.zeros((n, m))
            for i, weight in ((1, first), (2, second), (3, third)):
                for sign in (1.0, -1.0):
                    moved = y.copy()
                    moved[k] += sign * i * STEP
                    total += sign * weight * np.ascontiguousarray(slopes_of(moved)).reshape((n, m))
            for j in range(n):
                for i in range(m):
                    found[n + n * m + (j * m + i) * m + k] = total[j, i] / STEP

    return enter


def row_entry(element: CoordinateMap) -> Any:
    """Given the row and the coordinates that y is read from, found its coordinate and the slopes by those (a constraint's form)."""
    pilots = list(element.pilots)

    def enter(given: np.ndarray, found: np.ndarray) -> None:
        row, q, y = int(given[0]), given[1:].copy(), element.near.copy()
        for _ in range(50):
            step = _solved(element, element.slopes(y)[pilots], q - element.values(y)[pilots], y)
            y = y + step
            if np.abs(step).max() <= 1e-13 * (1.0 + np.abs(y).max()):
                break
        else:
            raise ModelError(f"{element!r}: no y was found for {_named(element)} = {q.tolist()}; step y itself, with Reduced")
        slopes = element.slopes(y)
        found[0] = element.values(y)[row]
        found[1:] = _solved(element, slopes[pilots].T, slopes[row], y)

    return Callback(enter)


def _solved(element: CoordinateMap, matrix: np.ndarray, right: np.ndarray, y: np.ndarray) -> np.ndarray:
    try:
        answer = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        answer = np.full(len(right), np.inf)
    if not np.abs(answer).max() < 1e8:
        raise ModelError(f"{element!r}: at y = {y.tolist()} the coordinates of {_named(element)} do not say what y is; step y itself, with Reduced")
    return answer


def _named(element: CoordinateMap) -> str:
    return ", ".join(repr(element.joints[i].name) for i in element.pilots)
