"""Gymnasium, where it is installed."""
from __future__ import annotations

from dalembert.errors import MissingExtraError

try:
    import gymnasium as gymnasium
    import gymnasium.vector  # noqa: F401
    from gymnasium.utils import seeding as seeding
except ImportError:
    raise MissingExtraError("environments need Gymnasium: pip install dalembert[learning]") from None
