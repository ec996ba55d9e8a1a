"""Errors travel between processes with all that they say and hold."""
from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import dalembert as da
from dalembert import errors
from dalembert.cli import UsageError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]


def make(kind: type[Exception]) -> Exception:
    """An error of a kind with all that it can hold."""
    more = {da.OverlapError: ([("a and b", -0.1)],), da.LimitError: ([("a", 0.1)],), da.SingularBlockError: (7,)}.get(kind, ())  # type: ignore[arg-type]
    return kind(f"what happened to {kind.__name__}", *more)


@pytest.mark.parametrize("kind", [*KINDS, UsageError], ids=lambda kind: kind.__name__)
def test_errors_can_be_pickled(kind):
    error = make(kind)
    for other in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(other) is kind
        assert str(other) == str(error)
        assert other.args == error.args
        assert vars(other) == vars(error)


def test_what_cannot_travel_stays_behind():
    error = da.StepFailure("no solution")
    error.run = lambda: None  # type: ignore[attr-defined]
    error.time = 1.5  # type: ignore[attr-defined]
    other = pickle.loads(pickle.dumps(error))
    assert (str(other), vars(other)) == ("no solution", {"time": 1.5})


def _fail(kind: type[Exception]) -> None:
    raise make(kind)


def test_a_pool_gets_them():
    with ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as pool:
        for kind in (da.OverlapError, da.SingularBlockError):
            with pytest.raises(kind, match="what happened"):
                pool.submit(_fail, kind).result(timeout=300)
