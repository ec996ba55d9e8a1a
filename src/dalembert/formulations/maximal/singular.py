"""Steps that have no derivative."""
from __future__ import annotations

from dalembert.errors import GradientError
from dalembert.mechanism.mechanism import Mechanism


def singular_step(mechanism: Mechanism, residual: float) -> GradientError:
    """A step whose adjoint equations were left with a residual, relative to what they were asked for."""
    return GradientError(
        f"a step of {mechanism.name!r} cannot be differentiated: its equations are singular there (residual {residual:.2g}); "
        "does it pass a dead centre or a pose in which it is pulled taut? End the run before that, or start it so that it passes elsewhere"
    )
