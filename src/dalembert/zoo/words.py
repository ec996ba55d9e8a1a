"""Mechanisms of the zoo as the command line names them: ``pendulum:n=100,joint=spherical``.

A value with commas is a list (``hoberman_sphere:velocity=0,0,3,spin=2``); the fields of a design are written with a point
(``solar_panel_satellite:design.panels=6``). What a value must be is read off the annotations of the mechanism's function.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from math import isfinite
from types import NoneType
from typing import Any, get_args, get_type_hints

from dalembert import zoo
from dalembert.checks import choices
from dalembert.errors import ModelError
from dalembert.mechanism.mechanism import Mechanism
from dalembert.zoo.driven import DRIVEN, Driven

#: shorter names
SHORT = {"figure": "animatronic_figure", "hoberman": "hoberman_sphere", "satellite": "solar_panel_satellite", "walker": "walker_legs"}
TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def mechanisms() -> dict[str, Callable[..., Mechanism]]:
    """The mechanisms of the zoo by name."""
    functions = {name: getattr(zoo, name) for name in zoo.__all__ if inspect.isfunction(getattr(zoo, name))}
    return {n: f for n, f in functions.items() if inspect.signature(f).return_annotation in ("Mechanism", Mechanism)}


@dataclass(frozen=True)
class Words:
    """A mechanism of the zoo and its arguments. ``driven``: what it does of itself, where it does anything."""

    name: str
    arguments: Mapping[str, Any]
    driven: Driven | None

    def make(self) -> Mechanism:
        """The mechanism, or a ModelError that names it."""
        try:
            return mechanisms()[self.name](**self.arguments)
        except ModelError as error:
            if self.name in str(error):
                raise
            raise ModelError(f"{self.name}: {error}") from error


def names_mechanism(text: str) -> bool:
    """Whether the part before a colon is a mechanism of the zoo."""
    name = text.partition(":")[0]
    return SHORT.get(name, name) in mechanisms()


def find_mechanism(name: str) -> str:
    """The whole name of a mechanism."""
    known = mechanisms()
    if SHORT.get(name, name) not in known:
        raise ModelError(f"the zoo has no {name!r}; {choices(name, [*known, *SHORT])}")
    return SHORT.get(name, name)


def read_words(text: str, *, driven: bool = False) -> Words:
    """NAME[:PARAMETER=VALUE,...]. ``driven``: with the arguments that its motion or its controller wants, where none are given."""
    word, _, rest = text.partition(":")
    name = find_mechanism(word)
    function = mechanisms()[name]
    hints, defaults = get_type_hints(function), _parameters(function)
    acts = DRIVEN.get(name) if driven else None
    arguments: dict[str, Any] = dict(acts.start) if acts else {}
    given: set[str] = set()
    for whole, values in _pairs(name, rest):
        parameter, point, part = whole.partition(".")
        if parameter not in defaults:
            raise ModelError(f"{name} has no parameter {parameter!r}; " + (choices(parameter, defaults) if defaults else "it has none"))
        if whole in given:
            raise ModelError(f"{name}: {whole} is given twice")
        given.add(whole)
        kinds = _kinds(hints[parameter])
        design = next((kind for kind in kinds if is_dataclass(kind)), None)
        if design is not None:
            inner = get_type_hints(design)
            known = {f"{parameter}.{field.name}": _kinds(inner[field.name]) for field in fields(design)}  # type: ignore[arg-type]
            if whole not in known:
                raise ModelError(f"{name}: {parameter} is set field by field, and there is no {whole!r}; {choices(whole, known)}")
            before = arguments.get(parameter) or defaults[parameter] or design()  # type: ignore[operator]
            arguments[parameter] = replace(before, **{part: _value(name, whole, values, known[whole])})
        elif point:
            raise ModelError(f"{name}: {parameter} has no fields, but {whole!r} names one")
        else:
            arguments[parameter] = _value(name, whole, values, kinds)
    return Words(name, arguments, acts)


def describe(name: str) -> list[str]:
    """Lines that say how a mechanism is asked for on the command line."""
    function, lines = mechanisms()[name], []
    hints = get_type_hints(function)
    settable = {p: v for p, v in _parameters(function).items() if _settable(_kinds(hints[p]))}
    example = next((f"{p}={_written(v)}" for p, v in settable.items() if v is not None and v != ()), None)
    lines += [f"dalembert run {name}" + (f":{example}" if example else "")]
    if name in DRIVEN:
        lines.append(f"of itself it {DRIVEN[name].what} (--passive: not)")
    designs = ((p, kind) for p in _parameters(function) for kind in _kinds(hints[p]) if is_dataclass(kind))
    lines += [f"{p} is set field by field: {', '.join(f'{p}.{field.name}' for field in fields(kind))}" for p, kind in designs]
    return lines


# ---- values


def _parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """Names with their default values; None where there is none."""
    signature = inspect.signature(function).parameters
    return {name: None if p.default in (inspect.Parameter.empty, MISSING) else p.default for name, p in signature.items()}


def _pairs(name: str, rest: str) -> list[tuple[str, list[str]]]:
    """Parameters with their values; words without an equals sign belong to the parameter before."""
    found: list[tuple[str, list[str]]] = []
    for word in rest.split(",") if rest else []:
        parameter, equals, value = word.partition("=")
        if equals and parameter.strip():
            found.append((parameter.strip(), [value.strip()]))
        elif found and not equals:
            found[-1][1].append(word.strip())
        else:
            raise ModelError(f"{name}: {word!r} is no PARAMETER=VALUE, as in pendulum:n=100,joint=spherical")
    return found


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """The types that a union is made of, or the one."""
    return get_args(annotation) if "|" in str(annotation) or "Union" in str(annotation) else (annotation,)


def _settable(kinds: tuple[Any, ...]) -> bool:
    return not any(is_dataclass(kind) or any(word in str(kind) for word in ("Callable", "Mapping", "tuple[tuple")) for kind in kinds)


def _written(value: Any) -> str:
    """As it is given on the command line."""
    if isinstance(value, (tuple, list)):
        return ",".join(map(_written, value))
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _value(name: str, parameter: str, values: list[str], kinds: tuple[Any, ...]) -> Any:
    """What was written, as what is asked for."""
    def wrong(wanted: str) -> ModelError:
        return ModelError(f"{name}: {parameter} must be {wanted}, got {','.join(values)!r}")

    def number(text: str, wanted: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not isfinite(value):
            raise wrong(wanted)
        return value

    if not _settable(kinds):
        raise ModelError(f"{name}: {parameter} can be given in Python only")
    if NoneType in kinds and values == ["none"]:
        return None
    if bool in kinds:
        if len(values) != 1 or values[0].lower() not in TRUTHS:
            raise wrong("true or false")
        return TRUTHS[values[0].lower()]
    described = " ".join(str(kind) for kind in kinds)
    if "Sequence[str]" in described:
        return tuple(value for value in values if value)
    if any(word in described for word in ("Sequence", "tuple", "list", "Array", "Buffer")):
        count = next((len(get_args(kind)) for kind in kinds if "tuple" in str(kind) and ... not in get_args(kind)), len(values))
        wanted = f"{count} numbers separated by commas" if count != len(values) else "numbers separated by commas"
        if count != len(values):
            raise wrong(wanted)
        return tuple(number(value, wanted) for value in values)
    if len(values) != 1:
        raise wrong("one value")
    if int in kinds:
        try:
            return int(values[0])
        except ValueError:
            raise wrong("a whole number") from None
    if float in kinds:
        return number(values[0], "a number")
    return values[0]
