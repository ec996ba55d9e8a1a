"""An environment of Gymnasium for any mechanism."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dalembert.checks import ANYTHING, checked, one_of
from dalembert.errors import ControlError, StepFailure
from dalembert.formulations.engine import Formulation
from dalembert.learning.extra import gymnasium
from dalembert.learning.pictures import Pictures
from dalembert.learning.sight import Sight
from dalembert.learning.task import Play, Task
from dalembert.mechanism.mechanism import Mechanism
from dalembert.simulation.simulation import Simulation


class MechanismEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A mechanism as an environment of Gymnasium: ``step`` holds an action over ``frame_skip`` steps of the formulation.

    ``actions``: {name: bound}, in N, N m, m or rad: joints with a drive or a servo, driven paths, "body.force", "body.torque"; a bound is a
    number b for -b to b, a pair (low, high), or one pair per direction. The action space is -1 to 1 for each; what lies beyond is cut off.

    ``observation``: a list of joints, bodies, sensors and goals, or parts of them ("hinge.rate", "hinge.direction" for its sine and cosine;
    "torso.position", "height", "orientation", "up", "velocity", "angular_velocity"); a function of a ``Sight``; None for coordinates and rates of
    all joints, the motion of bodies that float, and the goals. ``sin_cos``: angles without limits as sine and cosine.
    ``reward`` and ``terminated``: functions of the ``Sight`` after the step; without them, zero and never.

    ``noise``: half-widths of uniform distributions about the start: {"hinge": 0.1, "hinge.rate": 0.2, "ball.velocity": 0.1}.
    ``starts``: so many different starts are made and kept, of which each reset takes one: resets are then quick (0.05 ms, not some ms).
    ``randomise``: {parameter: (low, high), or a function of the generator}, drawn at every reset. ``goals``: {name: function of the
    generator}, drawn at every reset. ``max_episode_steps``: steps of the environment until an episode is truncated.

    A step that has no solution ends the episode: terminated, with ``info["failure"]`` and the reward ``failure_reward``; the
    observation is the last good one. ``render_mode``: "rgb_array" for pictures from ``render``, "human" for a page that a browser shows, as
    fast as the clock. ``camera``: ``size``, ``azimuth``, ``elevation``, ``distance``, ``target``, ``follow`` as for ``Trajectory.snapshot``.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"], "render_fps": 50}  # noqa: RUF012, as Gymnasium has it

    @checked(
        mechanism=ANYTHING, actions=ANYTHING, observation=ANYTHING, reward=ANYTHING, terminated=ANYTHING, goals=ANYTHING, noise=ANYTHING, randomise=ANYTHING,
        starts=ANYTHING, frame_skip=ANYTHING, max_episode_steps=ANYTHING, camera=ANYTHING, render_mode=one_of(None, "rgb_array", "human"),
    )
    def __init__(
        self, mechanism: Mechanism, formulation: Formulation, *, actions: Mapping[str, Any], observation: Sequence[str] | Callable[[Sight], Any] | None = None,
        reward: Callable[[Sight], Any] | None = None, terminated: Callable[[Sight], Any] | None = None, goals: Mapping[str, Callable[[np.random.Generator], Any]] | None = None,
        noise: Mapping[str, Any] | None = None, randomise: Mapping[str, Any] | None = None, starts: int | None = None, frame_skip: int = 1, max_episode_steps: int | None = None,
        sin_cos: bool = False, failure_reward: float = 0.0, render_mode: str | None = None, camera: Mapping[str, Any] | None = None,
    ) -> None:
        task = Task.of(dict(
            actions=actions, observation=observation, reward=reward, terminated=terminated, goals=goals, noise=noise, randomise=randomise,
            starts=starts, frame_skip=frame_skip, max_episode_steps=max_episode_steps, sin_cos=sin_cos, failure_reward=failure_reward, camera=camera,
        ))
        self._play = play = Play(mechanism, formulation, task)
        self.metadata, self.render_mode = play.metadata, render_mode
        self.action_space, self.observation_space = play.action_space, play.observation_space
        self._pictures = Pictures(play.simulation, render_mode, play.step, dict(task.camera))
        self._steps: int | None = None

    @property
    def simulation(self) -> Simulation:
        """The simulation inside, at the last state."""
        return self._play.simulation

    @property
    def observation_names(self) -> tuple[str, ...]:
        """What each number of an observation is."""
        return self._play.observation.names

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Draw a new start. Returns the observation there, and {"parameters": those drawn} where some are."""
        super().reset(seed=seed)
        play = self._play
        drawn = play.starts.draw(play.simulation, self.np_random)
        play.simulation.restore(drawn.state)
        play.sight.goal, play.sight.action = drawn.goals, np.zeros(play.actions.count)
        play.sight.refresh()
        self._steps = 0
        if self.render_mode == "human":
            self._pictures.show(play.simulation.position, play.simulation.orientation)
        return play.observation(play.sight), {"parameters": drawn.parameters} if drawn.parameters else {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Observation, reward, terminated, truncated and info after ``frame_skip`` steps under an action between -1 and 1."""
        if self._steps is None:
            raise ControlError("call reset() before the first step() of an environment")
        play, info = self._play, {}
        simulation, now, task = play.simulation, play.sight, play.task
        now.action = play.actions.read(action)
        inputs = play.actions.inputs(now.action)
        try:
            for _ in range(task.frame_skip):
                simulation.step(inputs)
        except StepFailure as error:
            info["failure"] = str(error)
        now.refresh()
        self._steps += 1
        failed = "failure" in info
        reward = task.failure_reward if failed else float(play.reward(now))
        ended = failed or bool(play.terminated(now))
        truncated = task.max_episode_steps is not None and self._steps >= task.max_episode_steps
        if self.render_mode == "human":
            self._pictures.show(simulation.position, simulation.orientation)
        return play.observation(now), reward, ended, truncated, info

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """A picture (height, width, 3) uint8 with ``render_mode="rgb_array"``; with "human", every step is shown by itself."""
        if self.render_mode == "rgb_array":
            return self._pictures.picture(self.simulation.position, self.simulation.orientation)
        return None

    def close(self) -> None:
        """End the page, if there is one."""
        self._pictures.close()
