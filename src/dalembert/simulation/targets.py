"""Targets that joints follow: values, functions of time and tables, given as positions, rates or accelerations."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation, RotationSpline

from dalembert.checks import NUMBERS, shown
from dalembert.errors import DalembertError, ModelError
from dalembert.mechanism.mechanism import JointElement, Mechanism

#: coordinates to follow, a function of time that gives them, or a table (times, values)
Target = ArrayLike | Callable[[float], ArrayLike] | tuple[ArrayLike, ArrayLike]
Given = ArrayLike | Callable[[float], ArrayLike]
#: s, by which a target is looked at before and after to see how fast it moves
MOMENT = 1e-5
#: steps (s) and weights of differences of sixth order, for rates and accelerations
DIFFERENCES = {
    1: (1e-3, np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0),
    2: (5e-3, np.array([2.0, -27.0, 270.0, -490.0, 270.0, -27.0, 2.0]) / 180.0),
}
#: the same looking forward only, of second order, for functions that have no past
FORWARD = {1: (1e-5, np.array([-1.5, 2.0, -0.5])), 2: (1e-4, np.array([2.0, -5.0, 4.0, -1.0]))}
#: s, over which given rates and accelerations are integrated at a time, and points and weights for that
PANEL = 0.01
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(8)


class Table:
    """A smooth function through targets (times, values); free rotations are interpolated as rotations."""

    def __init__(self, element: JointElement, times: ArrayLike, values: ArrayLike) -> None:
        what = f"of a table of targets of joint {element.name!r}"
        t, v = (np.asarray(NUMBERS(given, f"{which} {what}"), dtype=float) for given, which in ((times, "times"), (values, "values")))
        if t.ndim != 1 or len(t) < 2 or v.ndim == 0 or len(v) != len(t) or not np.all(np.diff(t) > 0.0):
            raise ModelError(f"a table of targets of joint {element.name!r} needs two or more ascending times and as many finite values")
        self.start, self.end = float(t[0]), float(t[-1])
        rows = np.array([target_coordinates(element, row, time) for row, time in zip(v, t)])
        straight = element.type.freedom - (3 if turns_freely(element) else 0)
        from scipy.interpolate import CubicSpline  # takes long to import, and is seldom needed

        self.times, self.shape = t, v.shape
        self._spline = CubicSpline(t, rows[:, :straight])
        self._rotation = RotationSpline(t, Rotation.from_rotvec(rows[:, straight:])) if turns_freely(element) else None

    def __call__(self, time: float) -> np.ndarray:
        time = min(max(time, self.start), self.end)
        return self._spline(time) if self._rotation is None else np.concatenate([self._spline(time), self._rotation(time).as_rotvec()])

    def basis(self, times: ArrayLike, order: int = 0) -> np.ndarray:
        """(times, points) how much each point of the table counts at some times (s), but in free rotations; in rates or accelerations with order 1 or 2."""
        from scipy.interpolate import CubicSpline

        return CubicSpline(self.times, np.eye(len(self.times)))(np.clip(times, self.start, self.end), order)

    def derivative(self, time: float, order: int) -> np.ndarray | None:
        """Rate or acceleration, order 1 or 2; None where rotations are differenced."""
        return self._spline(min(max(time, self.start), self.end), order) if self._rotation is None else None


class Motion:
    """A target given by its rate or acceleration, or with them: what is missing is integrated from where the joint is, or differenced."""

    def __init__(
        self, element: JointElement, given: tuple[Given | None, Given | None, Given | None], time: float, start: np.ndarray, rate: np.ndarray,
    ) -> None:
        """``given``: position, rate and acceleration; ``start`` and ``rate`` (freedom,) at ``time``."""
        if turns_freely(element):
            raise ModelError(f"joint {element.name!r} turns freely: its rotation has no rates to follow; give the rotations themselves")
        self.element, self.time = element, time
        self.given = tuple(None if item is None else self._function(item) for item in given)
        for item, name in zip(self.given, ("target", "rate", "acceleration")):
            if item is not None:
                asked(item, time, f"the {name} of joint {element.name!r}")
        #: the lowest derivative that is given, and position and rate at the ends of the panels so far, forwards from ``time``
        self.lowest = next(order for order, item in enumerate(self.given) if item is not None)
        self.panels = [np.array([start, rate], dtype=float)]

    def _function(self, given: Given) -> Callable[[float], np.ndarray]:
        if callable(given):
            return lambda time: target_coordinates(self.element, given(time), time)
        value = target_coordinates(self.element, given, self.time)
        return lambda time: value

    def __call__(self, time: float) -> np.ndarray:
        return self._at(time, 0)

    def derivative(self, time: float, order: int) -> np.ndarray:
        """Rate or acceleration, order 1 or 2."""
        return self._at(time, order)

    def _at(self, time: float, order: int) -> np.ndarray:
        function = self.given[order]
        if function is not None:
            return function(time)
        if order < self.lowest:
            return self._integrated(time)[order]
        below, known = next((k, self.given[k]) for k in range(order - 1, -1, -1) if self.given[k] is not None)
        assert known is not None
        return difference(known, time, order - below)

    def _integrated(self, time: float) -> np.ndarray:
        """Position and rate (2, freedom)."""
        panel = max(int((time - self.time) / PANEL), 0)
        while len(self.panels) <= panel:
            end = len(self.panels)
            self.panels.append(self._across(self.panels[-1], self.time + (end - 1) * PANEL, PANEL))
        begin = self.time + panel * PANEL
        return self._across(self.panels[panel], begin, time - begin)

    def _across(self, state: np.ndarray, begin: float, length: float) -> np.ndarray:
        """Position and rate (2, freedom) after ``length`` seconds, by Gauss quadrature."""
        times = begin + 0.5 * length * (POINTS + 1.0)
        values = np.array([self.given[self.lowest](t) for t in times])  # type: ignore[misc]
        weights = 0.5 * length * WEIGHTS
        if self.lowest == 1:
            return np.array([state[0] + weights @ values, self.given[1](begin + length)])  # type: ignore[misc]
        return np.array([state[0] + length * state[1] + (weights * (begin + length - times)) @ values, state[1] + weights @ values])


def difference(function: Callable[[float], ArrayLike], time: float, order: int) -> np.ndarray:
    """A derivative of a function of time by differences of sixth order; forward ones where it has no past."""
    step, weights = DIFFERENCES[order]
    with np.errstate(all="ignore"):
        values = np.array([function(time + k * step) for k in range(-3, 4)], dtype=float)
    if not np.all(np.isfinite(values)):
        step, weights = FORWARD[order]
        values = np.array([function(time + k * step) for k in range(len(weights))], dtype=float)
    return weights @ values / step**order


def target_derivative(element: JointElement, target: Callable[[float], ArrayLike], time: float, order: int) -> np.ndarray:
    """Rate or acceleration (freedom,) of the coordinates of a target that is a function of time, order 1 or 2."""
    known = getattr(target, "derivative", lambda time, order: None)(time, order)
    if known is not None:
        return known
    step, weights = DIFFERENCES[order]
    if not turns_freely(element):
        return difference(lambda t: np.atleast_1d(np.asarray(target(t), dtype=float)), time, order)
    values = np.array([target_coordinates(element, target(time + k * step), time) for k in range(-3, 4)])
    values[:, -3:] = follow_turns(values[:, -3:])
    return weights @ values / step**order


def read_target(element: JointElement, target: Target, time: float) -> Target:
    """A checked target: a value, or a function of time."""
    if isinstance(target, tuple) and len(target) == 2 and np.ndim(target[0]) == 1 and np.size(target[0]) > 1:
        return Table(element, *target)
    if callable(target):
        target_coordinates(element, asked(target, time, f"the target of joint {element.name!r}"), time)
        return target
    return target_coordinates(element, target, time)


def asked(function: Callable[[float], Any], time: float, what: str) -> Any:
    """What a user's function of time says when it is given; that it says nothing is a ModelError with its own words."""
    try:
        return function(time)
    except DalembertError:
        raise
    except Exception as error:
        raise ModelError(f"{what} is no function of time (s): at t = {time:.6g} s it raised {type(error).__name__}: {error}") from error


def target_rates(mechanism: Mechanism, targets: Mapping[str, Target], time: float) -> np.ndarray:
    """(joints, 6) rates of targets that are functions of time, NaN where there is none or where it is a free rotation."""
    rates = np.full((len(mechanism.joints), 6), np.nan)
    for name, target in targets.items():
        element = mechanism[name]
        if callable(target) and not turns_freely(element):
            ends = [target_coordinates(element, target(time + sign * MOMENT), time) for sign in (1.0, -1.0)]
            rates[element.index, : element.type.freedom] = (ends[0] - ends[1]) / (2.0 * MOMENT)
    return rates


def target_accelerations(mechanism: Mechanism, targets: Mapping[str, Target], time: float) -> np.ndarray:
    """(joints, 6) accelerations of targets: zero for values, NaN for free rotations that are functions of time."""
    found = np.zeros((len(mechanism.joints), 6))
    for name, target in targets.items():
        element = mechanism[name]
        if callable(target):
            found[element.index, : element.type.freedom] = np.nan if turns_freely(element) else target_derivative(element, target, time, 2)
    return found


def turns_freely(element: JointElement) -> bool:
    """True when the last three coordinates of a joint are a rotation vector."""
    return any(kind == "ball" for kind, _ in element.type.directions)


def follow_turns(vectors: np.ndarray) -> np.ndarray:
    """The same rotations (N, 3) by vectors that go on smoothly beyond half a turn."""
    smooth = vectors.copy()
    for before, now in pairwise(smooth):
        angle = np.linalg.norm(now)
        axis = now / angle if angle > 0.0 else before / max(float(np.linalg.norm(before)), 1e-300)
        now += 2.0 * np.pi * np.round((axis @ before - angle) / (2.0 * np.pi)) * axis
    return smooth


def target_coordinates(element: JointElement, value: Any, time: float) -> np.ndarray:
    """Coordinates of a target; a unit quaternion may stand for the rotation vector of a free rotation."""
    free, what = element.type.freedom, f"target of joint {element.name!r} at t = {time:.6g} s"
    numbers = np.atleast_1d(np.asarray(NUMBERS(value, what), dtype=float))
    if turns_freely(element) and numbers.shape == (free + 1,) and np.all(np.isfinite(numbers)) and abs(np.linalg.norm(numbers[-4:]) - 1.0) < 1e-6:
        numbers = np.concatenate([numbers[:-4], Rotation.from_quat(numbers[-4:], scalar_first=True).as_rotvec()])
    if numbers.shape != (free,):
        raise ModelError(f"{what} must be {free} finite numbers, got {shown(value)}")
    return numbers
