"""Learning: rollouts as differentiable functions for PyTorch and JAX, and environments for Gymnasium; each is imported when it is needed."""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dalembert.learning.environment import MechanismEnv as MechanismEnv
    from dalembert.learning.sight import Sight as Sight
    from dalembert.learning.vector import MechanismVectorEnv as MechanismVectorEnv

#: what environments need, and where it is
_LATE = {"MechanismEnv": "environment", "MechanismVectorEnv": "vector", "Sight": "sight"}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
