"""What an environment asks of a mechanism: actions, observations, rewards, ends of episodes and starts. Single and vector environments share it."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from dalembert.checks import ANYTHING, BY_NAME, FUNCTION, NAMES, NOTHING, check_fields, choices, whole
from dalembert.errors import ModelError, StepFailure
from dalembert.formulations.engine import Formulation
from dalembert.learning.actions import Actions
from dalembert.learning.extra import gymnasium
from dalembert.learning.observations import Observation
from dalembert.learning.sight import OneSight, Sight
from dalembert.learning.starts import Starts
from dalembert.mechanism.mechanism import Mechanism
from dalembert.simulation.simulation import Simulation

COUNT = whole("a whole number from 1", least=1, most=10**9)


@dataclass(frozen=True, kw_only=True)
class Task:
    """What ``MechanismEnv`` and ``MechanismVectorEnv`` take besides a mechanism and a formulation."""

    actions: Mapping[str, Any]
    observation: Any = None
    reward: Callable[[Sight], Any] | None = None
    terminated: Callable[[Sight], Any] | None = None
    goals: Mapping[str, Callable[[np.random.Generator], Any]] = field(default_factory=dict)
    noise: Mapping[str, Any] = field(default_factory=dict)
    randomise: Mapping[str, Any] = field(default_factory=dict)
    starts: int | None = None
    frame_skip: int = 1
    max_episode_steps: int | None = None
    sin_cos: bool = False
    failure_reward: float = 0.0
    camera: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Task:
        """From what a user gave; None stands for what is usual."""
        known = [entry.name for entry in fields(cls)]
        wrong = [name for name in options if name not in known]
        if wrong or "actions" not in options:
            raise ModelError(f"an environment takes {', '.join(known)}, and actions= is needed" + (f"; got {wrong[0]!r}: {choices(wrong[0], known)}" if wrong else ""))
        return cls(**{name: value for name, value in options.items() if value is not None})

    def __post_init__(self) -> None:
        check_fields(
            self, actions=BY_NAME, observation=NOTHING | FUNCTION | NAMES, reward=FUNCTION | NOTHING, terminated=FUNCTION | NOTHING, goals=BY_NAME,
            noise=BY_NAME, randomise=BY_NAME, camera=BY_NAME | ANYTHING, starts=COUNT | NOTHING, frame_skip=COUNT, max_episode_steps=COUNT | NOTHING,
        )


class Play:
    """A task on a mechanism: its parts made, its spaces known. ``simulation`` is one at the start of the task."""

    def __init__(self, mechanism: Mechanism, formulation: Formulation, task: Task) -> None:
        self.task = task
        self.simulation = _at_its_start(Simulation(mechanism, formulation))
        self.actions = Actions(self.simulation.mechanism, task.actions)
        self.starts = Starts(self.simulation, task.noise, task.randomise, task.goals, task.starts)
        self.observation = Observation(self.simulation.mechanism, task.observation, self.starts.goal_sizes(), sin_cos=task.sin_cos)
        self.sight = OneSight(self.simulation)
        self.sight.goal = {name: np.zeros(size) for name, size in self.starts.goal_sizes().items()}
        self.sight.action = np.zeros(self.actions.count)
        self.observation.measure(self.sight)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.actions.count,), np.float32)
        self.observation_space = gymnasium.spaces.Box(self.observation.low, self.observation.high, dtype=np.float64)
        self.step = task.frame_skip * formulation.dt

    @property
    def metadata(self) -> dict[str, Any]:
        """What Gymnasium wants to know of an environment."""
        return {"render_modes": ["rgb_array", "human"], "render_fps": max(1, round(1.0 / self.step))}

    def reward(self, now: Sight, *lead: int) -> np.ndarray:
        """(*lead,) what the last step was worth; zero where nobody says."""
        return _answers("reward", self.task.reward, now, lead, float)

    def terminated(self, now: Sight, *lead: int) -> np.ndarray:
        """(*lead,) whether the episode has come to its end."""
        return _answers("terminated", self.task.terminated, now, lead, bool)


def _at_its_start(simulation: Simulation) -> Simulation:
    """One that knows its start, which is where its first step began: resets go back to it, whatever was set since."""
    with suppress(StepFailure):
        simulation.step()
    simulation.reset()
    return simulation


def _answers(what: str, function: Callable[[Sight], Any] | None, now: Sight, lead: Sequence[int], kind: type) -> np.ndarray:
    if function is None:
        return np.zeros(lead, kind)
    found = np.asarray(function(now), dtype=kind)
    if found.shape != tuple(lead):
        wanted = f"one number per environment, shape {tuple(lead)}" if lead else "one number"
        raise ModelError(f"the function {what} must give {wanted}, got shape {found.shape}: write now.coordinates('hinge')[..., 0], and sum along the last axis")
    return found
