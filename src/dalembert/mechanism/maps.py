"""Hyper-reduced coordinates (RedMax 2.6): a few numbers y that set the coordinates of several joints, q = phi(y)."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.checks import NAME, checked, spread, whole
from dalembert.checks import numbers as finite
from dalembert.errors import ModelError

if TYPE_CHECKING:
    from dalembert.mechanism.mechanism import JointElement

#: step of differences of sixth order, in the units of the map's own coordinates, and weights of their points 1, 2, 3 steps away
STEP = 2e-3
SLOPE_WEIGHTS = (45.0 / 60.0, -9.0 / 60.0, 1.0 / 60.0)


@dataclass(frozen=True, eq=False)
class CoordinateMap:
    """Joint coordinates q (n) = ``offset`` + ``matrix`` y, or = ``function(y)``, of ``count`` numbers y.

    ``joints`` and ``directions``: whose coordinates they are, one by one. ``near`` (count,): a value of y that can be reached.
    """

    name: str
    index: int
    joints: tuple[JointElement, ...]
    directions: tuple[int, ...]
    count: int
    matrix: np.ndarray
    offset: np.ndarray
    function: Callable[..., Any] | None
    jacobian: Callable[..., Any] | None
    near: np.ndarray

    def __repr__(self) -> str:
        return f"<coordinate map {self.name!r} of {', '.join(dict.fromkeys(j.name for j in self.joints))}>"

    def values(self, y: ArrayLike) -> np.ndarray:
        """(n,) joint coordinates, m or rad."""
        y = np.asarray(y, dtype=float).reshape(self.count)
        if self.function is None:
            return self.offset + self.matrix @ y
        return self._checked(self.function(y), (len(self.joints),), "function", y)

    def slopes(self, y: ArrayLike) -> np.ndarray:
        """(n, count) derivatives of the joint coordinates by y."""
        y = np.asarray(y, dtype=float).reshape(self.count)
        if self.function is None:
            return self.matrix.copy()
        if self.jacobian is not None:
            return self._checked(self.jacobian(y), (len(self.joints), self.count), "jacobian", y)
        return _differenced(self.values, y)

    def curvatures(self, y: ArrayLike) -> np.ndarray:
        """(n, count, count) second derivatives of the joint coordinates by y."""
        y = np.asarray(y, dtype=float).reshape(self.count)
        if self.function is None:
            return np.zeros((len(self.joints), self.count, self.count))
        second = _differenced(self.slopes, y)
        return 0.5 * (second + second.transpose(0, 2, 1))

    def inverse(self, coordinates: ArrayLike, y: ArrayLike | None = None) -> np.ndarray:
        """(count,) the y whose joint coordinates are nearest to some (n,), looked for from ``y``."""
        q = np.asarray(coordinates, dtype=float)
        y = (self.near if y is None else np.asarray(y, dtype=float)).reshape(self.count).copy()
        for _ in range(60):
            step = np.linalg.lstsq(self.slopes(y), q - self.values(y), rcond=None)[0]
            y = y + step
            if np.abs(step).max() < 1e-14 * (1.0 + np.abs(y).max()):
                break
        return y

    def joint_settings(self, value: ArrayLike | None, rate: ArrayLike | None) -> dict[str, tuple[list[float], list[float]]]:
        """Coordinates and rates of its joints by name, for a value of y (that of ``near`` by default) and its rate (none by default)."""
        y = self.near if value is None else spread(value, self.count, f"value of {self!r}")
        v = spread(0.0 if rate is None else rate, self.count, f"rate of {self!r}")
        settings = {j.name: ([0.0] * j.type.freedom, [0.0] * j.type.freedom) for j in self.joints}
        for joint, direction, q, u in zip(self.joints, self.directions, self.values(y), self.slopes(y) @ v):
            settings[joint.name][0][direction], settings[joint.name][1][direction] = float(q), float(u)
        return settings

    @property
    def pilots(self) -> tuple[int, ...]:
        """Places of ``count`` coordinates that y can be read from: the first ones whose slopes at ``near`` are independent enough."""
        slopes, chosen = self.slopes(self.near), []
        rest = slopes.copy()
        scale = float(np.linalg.norm(slopes, axis=1).max())
        for _ in range(self.count):
            sizes = np.linalg.norm(rest, axis=1)
            best = int(np.argmax(sizes >= 0.5 * sizes.max()))
            if not sizes[best] > 1e-9 * scale:
                raise ModelError(f"{self!r}: some of its coordinates y move no joint at y = {self.near.tolist()}, or two move them alike")
            chosen.append(best)
            along = rest[best] / sizes[best]
            rest = rest - np.outer(rest @ along, along)
        return tuple(chosen)

    def check_smooth(self, low: np.ndarray, high: np.ndarray) -> None:
        """Raise ModelError where a slope jumps between two values (count,) of y, which a run went through."""
        if self.function is None:
            return
        for k in range(self.count):
            a, b = np.array(low, dtype=float), np.array(high, dtype=float)
            others = np.arange(self.count) != k
            a[others] = b[others] = 0.5 * (low + high)[others]
            self._look_for_jump(a, b, k)

    def _look_for_jump(self, low: np.ndarray, high: np.ndarray, k: int) -> None:
        """Halve the interval between two points towards the largest change of slope along y_k until it is a jump, or none."""
        points = np.linspace(low, high, int(np.clip(np.ceil((high - low)[k] / 0.05), 1, 64)) + 1)
        slopes = [self._near_slope(y, k) for y in points]
        changes = [np.abs(b - a).max() for a, b in pairwise(slopes)]
        at = int(np.argmax(changes))
        (a, b), (left, right) = points[at : at + 2], slopes[at : at + 2]
        while True:
            worst = int(np.argmax(np.abs(right - left)))
            jump = abs(right[worst] - left[worst])
            if not jump > 1e-3 * (1.0 + abs(left[worst])):
                return
            if (b - a)[k] < 1e-6:
                raise ModelError(
                    f"{self!r} is not differentiable near y = {np.round(0.5 * (a + b), 6).tolist()}: the slope of joint {self.joints[worst].name!r} "
                    f"by y[{k}] jumps from {left[worst]:.4g} to {right[worst]:.4g}; use a smooth map"
                )
            middle = 0.5 * (a + b)
            slope = self._near_slope(middle, k)
            if np.abs(slope - left).max() > np.abs(right - slope).max():
                b, right = middle, slope
            else:
                a, left = middle, slope

    def _near_slope(self, y: np.ndarray, k: int) -> np.ndarray:
        """(n,) slope by y_k, differenced so closely that a kink is not smoothed over."""
        step = 1e-7 * np.eye(self.count)[k]
        return (self.values(y + step) - self.values(y - step)) / 2e-7

    def _checked(self, answer: Any, shape: tuple[int, ...], what: str, y: np.ndarray) -> np.ndarray:
        try:
            numbers = np.asarray(answer, dtype=float).reshape(shape)
        except (TypeError, ValueError):
            raise ModelError(f"the {what} of {self!r} gave {answer!r}, and not numbers of shape {shape}") from None
        if not np.all(np.isfinite(numbers)):
            raise ModelError(f"the {what} of {self!r} gave {numbers.tolist()} at y = {y.tolist()}, which is not finite: the map cannot be used there")
        return numbers


def _differenced(function: Callable[[np.ndarray], np.ndarray], y: np.ndarray) -> np.ndarray:
    """(..., len(y)) derivatives of a function by differences of sixth order."""
    columns = []
    for k in range(len(y)):
        step = STEP * np.eye(len(y))[k]
        columns.append(sum(w * (function(y + i * step) - function(y - i * step)) for i, w in enumerate(SLOPE_WEIGHTS, 1)) / STEP)
    return np.stack(columns, axis=-1)


class MapBuilder:
    """The part of ``Mechanism`` that ties joints to few coordinates."""

    maps: list[CoordinateMap]
    _names: dict[str, Any]

    def _take_name(self, name: str, what: str) -> str:
        raise NotImplementedError

    def _single_turn(self, joint: JointElement | str, direction: int, what: str) -> JointElement:
        raise NotImplementedError

    @checked(name=NAME, coordinates=whole("a whole number from 1", least=1))
    def coordinate_map(
        self, name: str, joints: Sequence[Any], *, matrix: ArrayLike | None = None, offset: ArrayLike = 0.0,
        function: Callable[..., Any] | None = None, jacobian: Callable[..., Any] | None = None, coordinates: int = 1, near: ArrayLike = 0.0,
    ) -> CoordinateMap:
        """Let few numbers y set the coordinates q of several joints: one angle bends a whole finger.

        ``joints``: those of q, each a joint or (joint, direction), slides and single turns. Linear: q = ``offset`` + ``matrix`` y, with
        a number per joint, or (joints, y). Or ``function(y)`` gives q (joints,) from y (``coordinates``,), and ``jacobian(y)`` its
        derivatives (joints, coordinates), which are differenced where it is not given; in Python, or compiled by Numba.
        ``near``: a value of y, where joints are chosen that y is read from. ``start(name, y, rate=...)`` sets where it starts.

        ``Reduced`` steps y itself; in the other formulations the map is a set of constraints between the joints.
        """
        what = f"coordinate map {name!r}"
        self._take_name(name, "coordinate map")
        places: list[Any] = [j if isinstance(j, tuple) and len(j) == 2 else (j, 0) for j in joints]
        elements = tuple(self._single_turn(joint, direction, what) for joint, direction in places)
        directions = tuple(int(direction) for _, direction in places)
        if not elements or len({(e, d) for e, d in zip(elements, directions)}) < len(elements):
            raise ModelError(f"{what} needs joints, each of their directions once, got {list(joints)!r}")
        taken = {(j, d): m for m in self.maps for j, d in zip(m.joints, m.directions)}
        for element, direction in zip(elements, directions):
            if (element, direction) in taken:
                raise ModelError(f"{what}: joint {element.name!r} is in {taken[element, direction]!r} already")
            if element.type.drive[direction] == "motion":  # type: ignore[index]
                raise ModelError(f"{what}: joint {element.name!r} follows a target, and cannot follow a map too")
        if (matrix is None) == (function is None):
            raise ModelError(f"{what} needs a matrix or a function")
        if function is not None and (not callable(function) or not (jacobian is None or callable(jacobian))):
            raise ModelError(f"{what}: function and jacobian must be functions of y")
        if function is None and jacobian is not None:
            raise ModelError(f"{what}: a matrix needs no jacobian")
        numbers = np.zeros((len(elements), 0)) if matrix is None else finite()(matrix, f"{what}: matrix")
        if numbers.ndim == 1:
            numbers = numbers[:, None]
        if numbers.ndim != 2 or len(numbers) != len(elements):
            raise ModelError(f"matrix of {what} must have one row per joint, {len(elements)}, got shape {numbers.shape}")
        count = numbers.shape[1] if matrix is not None else coordinates
        if not 1 <= count <= len(elements):
            raise ModelError(f"{what}: there must be from 1 to {len(elements)} coordinates y, as many as joints, got {count!r}")
        constant = spread(offset, len(elements), f"{what}: offset")
        if function is not None and np.any(constant):
            raise ModelError(f"{what}: put the offset into the function")
        start = spread(near, int(count), f"{what}: near")
        element = CoordinateMap(name, len(self.maps), elements, directions, int(count), numbers, constant, function, jacobian, start)
        try:
            element.pilots  # noqa: B018, raises where the map makes no sense
            element.check_smooth(start - 1e-3, start + 1e-3)
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"the function of {element!r} raised {type(error).__name__}: {error}") from error
        self.maps.append(element)
        self._names[name] = element
        return element
