"""The exceptions of dalembert. Each says which body, joint or row, what was found and what to do."""
from __future__ import annotations

import pickle
from typing import Any


class DalembertError(Exception):
    """Base of every error that dalembert raises on purpose. It comes back from other processes with all that it holds."""

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.args, {name: value for name, value in self.__dict__.items() if _travels(value)})


def _rebuild(kind: type[DalembertError], arguments: tuple, details: dict[str, Any]) -> DalembertError:
    """An error without its ``__init__``, whatever that takes."""
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(details)
    return error


def _travels(value: Any) -> bool:
    """Whether another process can have it: an error that could not be pickled would leave a pool waiting for ever."""
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True


class ModelError(DalembertError, ValueError):
    """A mechanism, one of its elements or an option makes no sense as given."""


class AssemblyError(DalembertError):
    """No pose or velocity satisfies the joints: a loop cannot be closed."""


class ControlError(DalembertError, ValueError):
    """A controller returned an unknown name, a wrong shape or a number that is not finite."""


class StepFailure(DalembertError):
    """A step had no solution even after substepping; the simulation keeps its last good state."""


class LinearisationError(DalembertError):
    """The motion has no linear part at this state: a contact, a limit or dry friction acts there, or the pose is a dead centre."""


class EquilibriumError(DalembertError):
    """No pose was found in which all forces are in balance."""


class GradientError(DalembertError, ValueError):
    """A derivative was asked for that a run cannot give: an unknown name, a cotangent of another shape, a run without tape."""


class GradientWarning(UserWarning):
    """A derivative was taken at a point where the motion has a kink; the message says which event, and what was returned."""


class TurnWarning(UserWarning):
    """A body turns so far within a step that its angle is no longer exact."""


class EnergyWarning(UserWarning):
    """The energy of a run rose although nothing put any in: the step is too long for the motion."""


class OverlapError(DalembertError):
    """Bodies overlap at the start; ``overlaps`` lists the pairs and their depths (m), deepest first."""

    def __init__(self, message: str, overlaps: list[tuple[str, float]]) -> None:
        super().__init__(message)
        self.overlaps = overlaps


class LimitError(DalembertError):
    """Joints are beyond their limits at the start; ``beyond`` lists them and by how much (m or rad), the farthest first."""

    def __init__(self, message: str, beyond: list[tuple[str, float]]) -> None:
        super().__init__(message)
        self.beyond = beyond


class SingularBlockError(DalembertError, ArithmeticError):
    """A pivot block of the graph solver has no inverse; ``node`` is its index."""

    def __init__(self, message: str, node: int) -> None:
        super().__init__(message)
        self.node = node


class MissingExtraError(DalembertError, ImportError):
    """An optional library is needed for this call; the message names the extra to install."""


class Terminated(SystemExit):
    """The process was asked to end (SIGTERM, SIGHUP) during a run; ``trajectory`` holds what was computed until then.

    Where nobody catches it, the program ends with the signal's exit code, 143 for SIGTERM, after its ``finally`` clauses.
    """

    def __init__(self, signal: int) -> None:
        super().__init__(128 + int(signal))
        self.signal = int(signal)


class SaveError(DalembertError, OSError):
    """A file could not be written: the disk is full, the folder is read-only. What was there before is as it was."""


class BudgetError(ModelError):
    """A file asks for more than a reader's `Budget` allows; the message says of what, and how to allow more."""
