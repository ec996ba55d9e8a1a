"""Users' functions as kernels call them: constraints, laws of paths, force laws; their derivatives given or differenced.

Python functions are entered through ctypes. Functions that Numba has compiled are entered directly, with no Python between.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numba
import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]

from dalembert.errors import ModelError
from dalembert.kernels.calls import ENTRY, Callback, is_compiled
from dalembert.mechanism.forces import Constraint, ForceLaw, Path
from dalembert.mechanism.maps import CoordinateMap
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.map_functions import row_entry, stage_entry

DIFFERENCE = 1e-6  # step of numerical derivatives, m and rad
_kept: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
#: coordinate maps as steps in their own coordinates call them
_stages: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def address_of(element: Constraint | Path | ForceLaw | CoordinateMap) -> int:
    """Where kernels find an element's function. It lives as long as the element does, and copies of it with other parameters."""
    if element not in _kept:
        twin = next((entry for other, entry in _kept.items() if _functions(other) == _functions(element)), None)
        make = {Constraint: _constraint, Path: _law, ForceLaw: _force_law, CoordinateMap: row_entry}[type(element)]
        _kept[element] = make(element) if twin is None else twin  # type: ignore[operator]
    return _kept[element].address


def stage_address(element: CoordinateMap) -> int:
    """Where kernels find a map's coordinates with their derivatives; 0 for a linear map."""
    if element.function is None:
        return 0
    if element not in _stages:
        _stages[element] = stage_entry(element)
    return _stages[element].address


def _functions(element: Constraint | Path | ForceLaw | CoordinateMap) -> tuple[Any, ...]:
    """What an entry is made of: the element's name, its functions and how many numbers they give."""
    functions = [getattr(element, name, None) for name in ("function", "gradient", "energy", "law", "jacobian")]
    owners = element.joints if isinstance(element, CoordinateMap) else element.bodies
    return type(element), element.name, len(owners), getattr(element, "rows", 1), *functions


def raised(mechanism: Mechanism) -> ModelError | None:
    """What a Python function of the mechanism raised since the last call, if anything; it is forgotten then."""
    first = None
    entries = [(e, _kept.get(e)) for e in (*mechanism.constraints, *mechanism.paths, *mechanism.force_laws, *mechanism.maps)]
    for element, entry in [*entries, *((m, _stages.get(m)) for m in mechanism.maps)]:
        if not isinstance(entry, Callback) or entry.error is None:
            continue
        error, entry.error = entry.error, None
        found = error if isinstance(error, ModelError) else _said(repr(element), error)
        found.__cause__ = None if found is error else error
        first = first or found
    return first


@contextmanager
def watched(mechanism: Mechanism) -> Iterator[None]:
    """Raise what Python functions of the mechanism raise inside; kernels that call them only see NaN."""
    raised(mechanism)
    yield
    error = raised(mechanism)
    if error is not None:
        raise error


def try_functions(mechanism: Mechanism, position: np.ndarray, orientation: np.ndarray) -> ModelError | None:
    """What is wrong with the answers of constraints and force laws at a pose (n, 3), (n, 4) at rest, compiled ones too."""
    for element in (*mechanism.constraints, *mechanism.force_laws):
        of = [body.index for body in element.bodies]
        x, q, rest, title = position[of], orientation[of], np.zeros((len(of), 6)), repr(element)
        try:
            if isinstance(element, Constraint):
                _numbers(element.function(x, q), (element.rows,), f"the function of {title}")
            if isinstance(element, ForceLaw) and element.function is not None:
                _numbers(element.function(x, q, rest), rest.shape, f"the function of {title}")
            if isinstance(element, ForceLaw) and element.energy is not None:
                _numbers(element.energy(x, q), (), f"the energy of {title}")
        except ModelError as error:
            return error
        except Exception as error:
            return _said(title, error)
    return None


def _said(title: str, error: Exception) -> ModelError:
    return ModelError(f"the function of {title} raised {type(error).__name__}: {error}")


def _numbers(value: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """A function's answer as finite numbers of a shape."""
    wanted = f"numbers of shape {shape}" if shape not in ((), (1,)) else "one number"
    try:
        numbers = np.asarray(value, dtype=float).reshape(shape)
    except (TypeError, ValueError):
        raise ModelError(f"{what} gave {value!r}, and not {wanted}") from None
    if not np.all(np.isfinite(numbers)):
        raise ModelError(f"{what} gave {value!r}, which is not finite")
    return numbers


def difference(function: Callable[..., np.ndarray], position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
    """(..., k, 6) central differences of a function of poses, by positions (world) and rotations (body axes)."""
    columns = []
    for body in range(len(position)):
        for c in range(6):
            ends = []
            for sign in (1.0, -1.0):
                x, q = position.copy(), orientation.copy()
                if c < 3:
                    x[body, c] += sign * DIFFERENCE
                else:
                    q[body] = turned(orientation[body], c - 3, sign * DIFFERENCE)
                ends.append(np.asarray(function(x, q), dtype=float))
            columns.append((ends[0] - ends[1]) / (2.0 * DIFFERENCE))
    return np.stack(columns, axis=-1).reshape(*np.shape(columns[0]), len(position), 6)


def turned(q: np.ndarray, axis: int, angle: float) -> np.ndarray:
    """A unit quaternion turned about a body axis."""
    w, x, y, z = q
    cos, sin = np.cos(0.5 * angle), np.sin(0.5 * angle)
    across = ((-x, w, z, -y), (-y, -z, w, x), (-z, y, -x, w))[axis]
    return cos * q + sin * np.array(across)


# ---- constraints: given row and poses (7 each); found value and gradient (6 each)


def _constraint(element: Constraint) -> Any:
    if is_compiled(element.function) and (element.gradient is None or is_compiled(element.gradient)):
        return _compiled_constraint(element)
    function, slopes, rows, count, title = element.function, element.gradient, element.rows, len(element.bodies), repr(element)

    def value(position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
        return _numbers(function(position, orientation), (rows,), f"the function of {title}")

    def enter(given: np.ndarray, found: np.ndarray) -> None:
        row, poses = int(given[0]), given[1:].reshape(-1, 7)
        position, orientation = poses[:, :3].copy(), poses[:, 3:].copy()
        found[0] = value(position, orientation)[row]
        if slopes is not None:
            gradient = _numbers(slopes(position, orientation), (rows, count, 6), f"the gradient of {title}")
        else:
            gradient = difference(value, position, orientation)
        found[1:] = gradient[row].ravel()

    return Callback(enter)


def _compiled_constraint(element: Constraint) -> Any:
    """The same for functions that Numba has compiled."""
    function, gradient, one = element.function, element.gradient, element.rows == 1
    pick = numba.njit(lambda value, row: value) if one else numba.njit(lambda value, row: value[row])
    pick_gradient = numba.njit(lambda value, row: value) if one else numba.njit(lambda value, row: value[row])

    @numba.njit
    def differenced(position, orientation, row, found):
        for body in range(len(position)):
            for c in range(6):
                slope = 0.0
                for sign in (1.0, -1.0):
                    x, q = position.copy(), orientation.copy()
                    if c < 3:
                        x[body, c] += sign * DIFFERENCE
                    else:
                        turn_by(q[body], c - 3, sign * DIFFERENCE)
                    slope += sign * pick(function(x, q), row)
                found[1 + 6 * body + c] = slope / (2.0 * DIFFERENCE)

    @numba.njit
    def written(position, orientation, row, found):
        rows = pick_gradient(gradient(position, orientation), row)  # pyright: ignore[reportOptionalCall]
        for body in range(len(position)):
            for c in range(6):
                found[1 + 6 * body + c] = rows[body, c]

    slopes = differenced if gradient is None else written

    @numba.cfunc(ENTRY)
    def enter(given_at, found_at, size, room):
        given, found = carray(given_at, (size,)), carray(found_at, (room,))
        position, orientation = split_poses(given[1:])
        row = int(given[0])
        found[0] = pick(function(position, orientation), row)
        slopes(position, orientation, row, found)

    return enter


@numba.njit
def split_poses(numbers):
    """Positions (k, 3) and orientations (k, 4) from seven numbers per body."""
    count = len(numbers) // 7
    position, orientation = np.empty((count, 3)), np.empty((count, 4))
    for k in range(count):
        position[k] = numbers[7 * k : 7 * k + 3]
        orientation[k] = numbers[7 * k + 3 : 7 * k + 7]
    return position, orientation


@numba.njit
def turn_by(q, axis, angle):
    """Turn a unit quaternion about a body axis, in place."""
    s, c = np.sin(0.5 * angle), np.cos(0.5 * angle)
    v = np.zeros(3)
    v[axis] = s
    w, x, y, z = q[0], q[1], q[2], q[3]
    q[0] = w * c - x * v[0] - y * v[1] - z * v[2]
    q[1] = x * c + w * v[0] + y * v[2] - z * v[1]
    q[2] = y * c + w * v[1] + z * v[0] - x * v[2]
    q[3] = z * c + w * v[2] + x * v[1] - y * v[0]


# ---- laws of paths: given length and rate; found tension, its derivatives by both, energy


def _law(element: Path) -> Any:
    law, title = element.law, repr(element)
    assert law is not None

    def evaluate(length: float, rate: float) -> np.ndarray:
        answer = law(length, rate)
        return _numbers(answer, (4,) if np.size(answer) == 4 else (1,), f"the law of {title}")

    try:
        full = len(evaluate(element.rest, 0.0)) == 4
    except ModelError:
        raise
    except Exception as error:
        raise _said(title, error) from error
    if is_compiled(law):
        return _compiled_law(law, full)

    def enter(given: np.ndarray, found: np.ndarray) -> None:
        length, rate = float(given[0]), float(given[1])
        found[:] = evaluate(length, rate) if full else 0.0
        if not full:
            found[0] = evaluate(length, rate)[0]
            for k, step in enumerate(((DIFFERENCE, 0.0), (0.0, DIFFERENCE)), 1):
                ends = (evaluate(length + s * step[0], rate + s * step[1])[0] for s in (1.0, -1.0))
                found[k] = (next(ends) - next(ends)) / (2.0 * DIFFERENCE)

    return Callback(enter)


def _compiled_law(law: Any, full: bool) -> Any:
    @numba.njit
    def four(length, rate, found):
        found[0], found[1], found[2], found[3] = law(length, rate)

    @numba.njit
    def one(length, rate, found):
        found[0] = law(length, rate)
        found[1] = (law(length + DIFFERENCE, rate) - law(length - DIFFERENCE, rate)) / (2.0 * DIFFERENCE)
        found[2] = (law(length, rate + DIFFERENCE) - law(length, rate - DIFFERENCE)) / (2.0 * DIFFERENCE)
        found[3] = 0.0

    write = four if full else one

    @numba.cfunc(ENTRY)
    def enter(given_at, found_at, size, room):
        given, found = carray(given_at, (size,)), carray(found_at, (room,))
        write(given[0], given[1], found)

    return enter


# ---- force laws: given poses (7 each), then velocities (6 each); found wrenches (6 each), then the energy


def _force_law(element: ForceLaw) -> Any:
    if element.function is not None and is_compiled(element.function) and (element.energy is None or is_compiled(element.energy)):
        return _compiled_force_law(element)
    function, potential, count, title = element.function, element.energy, len(element.bodies), repr(element)

    def energy(position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
        assert potential is not None
        return _numbers(potential(position, orientation), (), f"the energy of {title}")

    def enter(given: np.ndarray, found: np.ndarray) -> None:
        poses, velocity = given[: 7 * count].reshape(-1, 7), given[7 * count :].reshape(-1, 6).copy()
        position, orientation = poses[:, :3].copy(), poses[:, 3:].copy()
        if function is not None:
            wrench = _numbers(function(position, orientation, velocity), (count, 6), f"the function of {title}")
        else:
            wrench = -difference(energy, position, orientation)
        found[: 6 * count] = wrench.ravel()
        found[6 * count] = energy(position, orientation) if potential is not None else 0.0

    return Callback(enter)


def _compiled_force_law(element: ForceLaw) -> Any:
    function, count = element.function, len(element.bodies)
    energy = numba.njit(lambda position, orientation: 0.0) if element.energy is None else element.energy

    @numba.cfunc(ENTRY)
    def enter(given_at, found_at, size, room):
        given, found = carray(given_at, (size,)), carray(found_at, (room,))
        position, orientation = split_poses(given[: 7 * count])
        velocity = given[7 * count :].copy().reshape(count, 6)
        wrench = function(position, orientation, velocity)  # pyright: ignore[reportOptionalCall]
        for k in range(count):
            for c in range(6):
                found[6 * k + c] = wrench[k, c]
        found[6 * count] = energy(position, orientation)

    return enter
