"""Registers the environments: ``import dalembert.learning.environments``, then ``gymnasium.make("dalembert/Hopper-v0")``."""
from __future__ import annotations

from typing import Any

from dalembert.learning.environment import MechanismEnv
from dalembert.learning.extra import gymnasium
from dalembert.learning.tasks import TASKS, options
from dalembert.learning.vector import MechanismVectorEnv


def single(task: str, **changes: Any) -> MechanismEnv:
    """The environment of a task; ``changes``: other arguments of ``MechanismEnv`` than the task's own, such as ``randomise``."""
    return MechanismEnv(**options(task, **changes))


def vector(task: str, num_envs: int = 1, **changes: Any) -> MechanismVectorEnv:
    """``num_envs`` environments of a task, stepped together; ``changes``: other arguments of ``MechanismVectorEnv`` than the task's own."""
    return MechanismVectorEnv(num_envs=num_envs, **options(task, **changes))


def register() -> None:
    """Tell Gymnasium of all environments, once."""
    for name, (_, steps) in TASKS.items():
        if f"dalembert/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                id=f"dalembert/{name}-v0", entry_point=f"{__name__}:single", vector_entry_point=f"{__name__}:vector", max_episode_steps=steps, kwargs=dict(task=name),
            )


register()
