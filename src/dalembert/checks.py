"""The one room for checks: rules that arguments and options keep, taken from their annotations or said beside them.

``@checked`` on a function and ``check_fields(self)`` in a dataclass take ``float``, ``ArrayLike``, ``str | None``, ... at their word;
``@checked(duration=POSITIVE)`` says more than the annotation does. What breaks a rule is a ``ModelError`` before anything has changed:
``Simulation.run: duration must be a number, got 'long'``.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache, wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import Any, TypeVar, cast, overload

import numpy as np

from dalembert.errors import DalembertError, ModelError

#: numbers beyond this are mistakes: their squares and products would leave the range of floats
HUGE = 1e100

#: names that a message lists
MOST_NAMES = 30

#: arguments that say what a call is about, for its messages
SUBJECTS = ("name", "element", "joint", "body", "path")

F = TypeVar("F", bound=Callable[..., Any])


class Refused(Exception):
    """What a rule says to a value that breaks it: in ``args`` what it must do ("not be negative"), where that is more than the rule's own words."""


@dataclass(frozen=True)
class Rule:
    """What a value must be, in ``words`` that follow "must be", and ``take``, which returns it in its final form or raises Refused."""

    words: str
    take: Callable[[Any], Any]

    def __call__(self, value: Any, what: str, error: type[DalembertError] = ModelError) -> Any:
        """The value as it is to be used, or an error that says what of what."""
        try:
            return self.take(value)
        except Refused as refusal:
            words = refusal.args[0] if refusal.args else f"be {self.words}"
        raise error(f"{what} must {words}, got {shown(value)}")

    def __or__(self, other: Rule) -> Rule:
        """Either of the two."""
        def take(value: Any) -> Any:
            words = []
            for rule in (self, other):
                try:
                    return rule.take(value)
                except Refused as refusal:
                    words += refusal.args
            raise Refused(*words[:1])

        return Rule(f"{self.words} or {other.words}", take)


def shown(value: Any) -> str:
    """A value in a message: short, whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 160 else f"{text[:150]}... ({type(value).__name__})"


def counted(count: int, one: str, many: str | None = None) -> str:
    """ "1 joint", "2 joints"."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def choices(wrong: Any, known: Iterable[str]) -> str:
    """What a wrong name may have meant, for the end of a message: the names like it, or all if they are few."""
    names = list(dict.fromkeys(known))
    alike = get_close_matches(wrong, names, n=3, cutoff=0.6) if isinstance(wrong, str) else []
    if alike:
        return f"did you mean {' or '.join(repr(name) for name in alike)}?"
    return f"it has: {', '.join(sorted(names))}" if len(names) <= MOST_NAMES else f"it has {len(names)} others, such as {', '.join(sorted(names)[:5])}"


# ---- numbers


def _number(value: Any) -> float:
    """A real number; no text, no truth value, no array of one."""
    if type(value) is float:
        return value
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise Refused(f"be below {HUGE:g} in size") from None
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
        array = _array(value)
        if array.shape == ():
            return float(array)
    raise Refused


def number(words: str = "", *, least: float = -HUGE, most: float = HUGE, above: float = -np.inf, infinite: bool = False) -> Rule:
    """A number from ``least`` to ``most``, larger than ``above``: "be positive", in ``words``. ``infinite``: or without end."""
    def take(value: Any) -> float:
        found = _number(value)
        if least <= found <= most and found > above:
            return found
        if infinite and found == (np.inf if above > -np.inf else np.copysign(np.inf, found)):
            return found
        if not np.isfinite(found):
            raise Refused("be a number" if infinite else "be finite")
        raise Refused(words if words and abs(found) <= HUGE else f"be below {HUGE:g} in size")

    return Rule("a number", take)


def whole(words: str = "a whole number", *, least: int = -(2**62), most: int = 2**62) -> Rule:
    """A whole number from ``least`` to ``most``."""
    def take(value: Any) -> int:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or not least <= int(value) <= most:
            raise Refused
        return int(value)

    return Rule(words, take)


def _array(value: Any) -> np.ndarray:
    """Numbers of any shape; no text, no truth values."""
    try:
        raw = np.asarray(value)
    except Exception:  # ragged, or what a foreign array says
        raise Refused from None
    if raw.dtype.kind == "O" and raw.size and all(isinstance(entry, Real) and not isinstance(entry, bool) for entry in raw.flat):
        try:
            raw = raw.astype(float)
        except (OverflowError, TypeError, ValueError):
            raise Refused from None
    if raw.dtype.kind not in "iuf":
        raise Refused
    return raw.astype(float)


def numbers(*shape: int | None, words: str = "", infinite: bool = False, nan: bool = False, largest: float = HUGE) -> Rule:
    """A new float array of finite numbers of a shape, None standing for any length; without a shape, of any. ``infinite``, ``nan``: or these."""
    if not words:
        words = "numbers" if not shape else f"{'x'.join('n' if n is None else str(n) for n in shape)} numbers"

    def take(value: Any) -> np.ndarray:
        array = _array(value)
        if shape and (array.ndim != len(shape) or any(want is not None and want != have for want, have in zip(shape, array.shape))):
            raise Refused
        size = np.abs(array)
        if infinite or nan:
            size = size[~((infinite & (size == np.inf)) | (nan & np.isnan(size)))]
        if size.size and not size.max() <= largest:
            raise Refused(f"be below {largest:g} in size" if np.isfinite(size).all() else "be finite")
        return array

    return Rule(words, take)


def as_given(rule: Rule) -> Rule:
    """The same, but the value goes on as it came: what it becomes is the business of those who know its shape."""
    def take(value: Any) -> Any:
        rule.take(value)
        return value

    return Rule(rule.words, take)


NUMBER = number()
POSITIVE = number("be positive", above=0.0)
POSITIVE_OR_INFINITE = number("be positive", above=0.0, infinite=True)
STEP = number("be positive, between 1e-30 and 1e30 s", least=1e-30, most=1e30)
NOT_NEGATIVE = number("not be negative", least=0.0)
SHARE = number("lie between 0 and 1", least=0.0, most=1.0)
WHOLE = whole()
NUMBERS = as_given(numbers())
PORT = whole("a whole number from 0 to 65535", least=0, most=65535)


def vector(value: Any, size: int, what: str) -> np.ndarray:
    """A finite float vector of the given size, or a ModelError that says what was wrong."""
    return numbers(size)(value, what)


def spread(value: Any, count: int, what: str) -> np.ndarray:
    """``count`` finite numbers, from as many or from one for all of them."""
    found = numbers()(value, what)
    if found.shape not in ((), (count,)):
        raise ModelError(f"{what} must be a number or {count} numbers, got {shown(value)}")
    return np.array(np.broadcast_to(found, (count,)))


def indices(value: Any, count: int, what: str) -> np.ndarray:
    """Triangles (n, 3) as whole numbers below ``count``."""
    rule = numbers(None, 3, words=f"nx3 whole numbers from 0 to {count - 1}")
    found = np.zeros((0, 3)) if np.size(NUMBERS(value, what)) == 0 else rule(value, what)
    if np.any((found != np.floor(found)) | (found < 0) | (found >= count)):
        raise ModelError(f"{what} must be {rule.words}, got {shown(value)}")
    return found.astype(np.int64)


def unit_quaternion(value: Any, what: str) -> np.ndarray:
    """A unit quaternion, scalar first, from four numbers of any non-zero length."""
    q = vector(value, 4, what)
    norm = np.linalg.norm(q)
    if norm < 1e-12:
        raise ModelError(f"{what} must not be the zero quaternion: (1, 0, 0, 0) is no turn")
    return q / norm


def coefficient(value: Any, what: str, most: float = np.inf) -> float:
    """A finite number from 0 to ``most``, or a ModelError."""
    return (NOT_NEGATIVE if most == np.inf else number(f"lie between 0 and {most:g}", least=0.0, most=most))(value, what)


# ---- everything else


def kind_of(words: str, fits: Callable[[Any], bool]) -> Rule:
    """A value for which ``fits`` is true."""
    def take(value: Any) -> Any:
        if not fits(value):
            raise Refused
        return value

    return Rule(words, take)


def one_of(*choices: Any) -> Rule:
    """One of some values, text or None."""
    return kind_of(", ".join(repr(c) for c in choices[:-1]) + f" or {choices[-1]!r}", lambda value: any(value is c or (isinstance(value, str) and value == c) for c in choices))


def _flag(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or (isinstance(value, Integral) and value in (0, 1)):
        return bool(value)
    raise Refused


def _path(value: Any) -> Any:
    try:
        text = os.fspath(value)
    except TypeError:
        raise Refused from None
    if not isinstance(text, str) or not text or "\0" in text:
        raise Refused
    return value


def _called(name: str) -> Rule:
    """An instance of the class of that name, which is not imported for it."""
    words = {"Joint": "a joint such as dalembert.Revolute()", "Shape": "one of dalembert's shapes", "Bearing": "a dalembert.Bearing"}
    article = "an" if name[0] in "AEIOU" else "a"
    return kind_of(words.get(name, f"{article} {name}"), lambda value: any(kind.__name__ == name for kind in type(value).__mro__))


def items(rule: Rule, words: str, count: int | None = None) -> Rule:
    """Several of a kind, ``count`` of them if given, as a tuple; a word is not a list of its letters."""
    def take(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise Refused
        try:
            entries = tuple(value)
        except TypeError:  # an array without axes
            raise Refused from None
        if count is not None and len(entries) != count:
            raise Refused
        return tuple(rule.take(entry) for entry in entries)

    return Rule(words, take)


def _by_key(key: Rule, value: Rule, words: str) -> Rule:
    def take(given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise Refused
        for name, item in given.items():
            key.take(name)
            try:
                value.take(item)
            except Refused as refusal:
                raise Refused(f"be {words}, in which {name!r} must {refusal.args[0] if refusal.args else f'be {value.words}'}") from None
        return given

    return Rule(words, take)


ANYTHING = Rule("anything", lambda value: value)
NOTHING = kind_of("None", lambda value: value is None)
TEXT = kind_of("text", lambda value: isinstance(value, str))
NAME = kind_of("a name, a non-empty text", lambda value: isinstance(value, str) and bool(value))
FLAG = Rule("True or False", _flag)
FUNCTION = kind_of("a function", callable)
PATH = Rule("the path of a file", _path)
BY_NAME = _by_key(TEXT, ANYTHING, "a dict {name: value}")
NAMES = items(TEXT, "a list of names")
SIZE = items(whole("be whole numbers from 1 to 16384", least=1, most=16384), "two whole numbers from 1 to 16384, width and height", 2)
FORMULATION = kind_of(
    "a formulation such as Variational(dt=0.01)", lambda value: hasattr(value, "engine") and hasattr(value, "dt") and not isinstance(value, type))

#: rules of words in annotations; other words with a capital are names of classes
_WORDS = {
    "float": NUMBER, "int": WHOLE, "bool": FLAG, "str": TEXT, "None": NOTHING, "ArrayLike": NUMBERS, "np.ndarray": NUMBERS,
    "Path": PATH, "FilePath": PATH, "Formulation": FORMULATION, "Callable": FUNCTION, "Control": FUNCTION, "Law": FUNCTION, "Energy": FUNCTION,
    "Colour": as_given(numbers(4)), "Input": NUMBERS | FUNCTION, "Given": NUMBERS | FUNCTION,
}
_FREE = ("Any", "Drive", "Vector", "Target")


def _parts(annotation: str, mark: str) -> list[str]:
    """An annotation split where ``mark`` stands outside of all brackets."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(annotation):
        depth += (letter == "[") - (letter == "]")
        if depth == 0 and letter == mark:
            parts.append(annotation[begin:at])
            begin = at + 1
    return [part.strip() for part in (*parts, annotation[begin:])]


@cache
def rule_of(annotation: str) -> Rule:
    """What an annotation asks of a value."""
    ways = _parts(annotation, "|")
    if "str" in ways and ("Path" in ways or "FilePath" in ways):
        ways.remove("str")
    if any(way in _FREE for way in ways):
        return ANYTHING
    rule = _rule_of_word(ways[0])
    for way in ways[1:]:
        rule = rule | _rule_of_word(way)
    return rule


def _rule_of_word(word: str) -> Rule:
    head, bracket, rest = word.partition("[")
    inner = _parts(rest.removesuffix("]"), ",") if bracket else []
    if head in ("Sequence", "Iterable", "Collection", "tuple", "list"):
        if set(inner) <= {"float", "..."}:
            return as_given(numbers(None if head != "tuple" or "..." in inner else len(inner)))
        if set(inner) <= {"str", "..."}:
            return NAMES
        return items(ANYTHING if len(set(inner) - {"..."}) > 1 else rule_of(inner[0]), "a list")
    if head in ("Mapping", "dict"):
        return _by_key(rule_of(inner[0]), rule_of(inner[1]), "a dict {name: value}" if inner[0] == "str" else "a dict")
    if head in _WORDS:
        return _WORDS[head]
    return _called(head) if head.isidentifier() and head[:1].isupper() else ANYTHING


# ---- where rules are applied


@overload
def checked(function: F, /) -> F: ...
@overload
def checked(**rules: Rule) -> Callable[[F], F]: ...
def checked(function: Any = None, /, **rules: Rule) -> Any:
    """Let a function look at its arguments before it begins: by their annotations, or by the rules given here."""
    return checked_as(ModelError, **rules) if function is None else checked_by(function, {}, ModelError)


def checked_as(error_type: type[DalembertError], /, **rules: Rule) -> Callable[[F], F]:
    """The same with another kind of error."""
    return lambda function: checked_by(function, rules, error_type)


def checked_by(function: F, given: Mapping[str, Rule], error_type: type[DalembertError]) -> F:
    """The function with its arguments checked; defaults are taken as they are."""
    names: list[str] = []
    rules: dict[str, Rule] = {}

    def learn() -> None:  # at the first call: importing stays quick
        for parameter in signature(function).parameters.values():
            if parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
                names.append(parameter.name)
            note = parameter.annotation
            rule = given.get(parameter.name) or (rule_of(note) if isinstance(note, str) else ANYTHING)
            if rule is not ANYTHING and parameter.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL):
                rules[parameter.name] = rule
        rules.update((name, rule) for name, rule in given.items() if rule is not ANYTHING)

    def title(arguments: Any, named: Any) -> str:
        method = names[:1] == ["self"]
        if function.__name__ == "__init__":
            return type(arguments[0]).__name__
        subject = dict(zip(names, arguments), **named).get(next((name for name in names if name in SUBJECTS), ""))
        if isinstance(subject, str):
            return f"{function.__name__.replace('_', ' ')} {subject!r}"
        return f"{type(arguments[0]).__name__}.{function.__name__}" if method else function.__qualname__

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if not names and not rules:
            learn()
        fine = list(arguments)
        for place, (name, value) in enumerate(zip(names, arguments)):
            if name in rules:
                try:
                    fine[place] = rules[name].take(value)
                except Refused:
                    rules[name](value, f"{title(arguments, named)}: {name}", error_type)
        for name, value in named.items():
            if name in rules:
                try:
                    named[name] = rules[name].take(value)
                except Refused:
                    rules[name](value, f"{title(arguments, named)}: {name}", error_type)
        return function(*fine, **named)

    return cast(F, call)


def check_fields(element: Any, **rules: Rule) -> None:
    """Check what a dataclass was made with, frozen or not, and put it into its final form; called first in ``__post_init__``."""
    kind = type(element).__name__
    for entry in fields(element):
        if entry.init:
            rule = rules.get(entry.name) or (rule_of(entry.type) if isinstance(entry.type, str) else ANYTHING)
            if rule is not ANYTHING:
                object.__setattr__(element, entry.name, rule(getattr(element, entry.name), f"{kind}: {entry.name}"))
