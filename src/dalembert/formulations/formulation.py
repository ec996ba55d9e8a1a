"""What a formulation is to the rest: options with a step, that make engines to run a mechanism and to read its runs."""
from __future__ import annotations

from typing import Any, Protocol

from dalembert.mechanism.mechanism import Mechanism


class Formulation(Protocol):
    """``Variational``, ``Implicit`` and those to come."""

    @property
    def dt(self) -> float:
        """Step in seconds."""
        ...

    def engine(self, mechanism: Mechanism) -> Any:
        """What runs a mechanism."""
        ...

    def reader(self, mechanism: Mechanism) -> Any:
        """What reads a recorded run."""
        ...
