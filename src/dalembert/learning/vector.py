"""Many copies of an environment at once, on a batch: one call steps all of them, by all cores."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert.checks import ANYTHING, NOTHING, checked, one_of, shown
from dalembert.ensemble.batch import Batch
from dalembert.errors import ControlError, ModelError
from dalembert.formulations.engine import Formulation
from dalembert.learning.extra import gymnasium, seeding
from dalembert.learning.pictures import Pictures
from dalembert.learning.sight import ManySight
from dalembert.learning.task import COUNT, Play, Task
from dalembert.mechanism.mechanism import Mechanism

MODES = gymnasium.vector.AutoresetMode
Answer = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]


class MechanismVectorEnv(gymnasium.vector.VectorEnv):
    """``num_envs`` environments of one mechanism that are stepped together: each does what a ``MechanismEnv`` of the same options would, to the bit.

    ``options``: those of ``MechanismEnv``. Functions among them are called once for all environments, whose states are the first axis of what they
    see and give: ``now.coordinates("hinge")[..., 0]``. Sensors are not seen.

    ``reset(seed=s)`` seeds the environments with s, s + 1, ...; a list seeds each. ``autoreset_mode``: an episode that has ended begins anew with the
    next step ("NextStep", the default), within the same one ("SameStep": what was last seen is in ``info["final_obs"]``) or when
    ``reset(options={"reset_mask": mask})`` says so ("Disabled"). ``threads``: one per core by default.
    """

    @checked(mechanism=ANYTHING, num_envs=COUNT, threads=COUNT | NOTHING, render_mode=one_of(None, "rgb_array"), autoreset_mode=ANYTHING)
    def __init__(
        self, mechanism: Mechanism, formulation: Formulation, num_envs: int, *, threads: int | None = None, autoreset_mode: Any = MODES.NEXT_STEP,
        render_mode: str | None = None, **options: Any,
    ) -> None:
        words = [mode.value for mode in MODES]
        if not isinstance(autoreset_mode, MODES) and autoreset_mode not in words:
            raise ModelError(f"autoreset_mode must be one of {', '.join(words)}, got {shown(autoreset_mode)}")
        self.autoreset_mode = MODES(autoreset_mode)
        self._play = play = Play(mechanism, formulation, Task.of(options))
        if play.observation.sensors:
            raise ModelError(f"sensor {play.observation.sensors[0]!r} is seen in single environments only: say vectorization_mode='sync' to Gymnasium's make_vec")
        self.num_envs, self.render_mode, self.metadata = num_envs, render_mode, {**play.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_action_space, self.single_observation_space = play.action_space, play.observation_space
        self.action_space = gymnasium.vector.utils.batch_space(play.action_space, num_envs)
        self.observation_space = gymnasium.vector.utils.batch_space(play.observation_space, num_envs)
        self._batch = Batch(mechanism, formulation, num_envs, threads=threads)
        self._now = ManySight(self._batch)
        self._now.action = np.zeros((num_envs, play.actions.count))
        self._now.goal = {name: np.zeros((num_envs, size)) for name, size in play.starts.goal_sizes().items()}
        self._generators: list[np.random.Generator | None] = [None] * num_envs
        self._seeds: list[int] = [-1] * num_envs
        self._steps, self._ended, self._begun = np.zeros(num_envs, int), np.zeros(num_envs, bool), np.zeros(num_envs, bool)
        self._pictures: Pictures | None = None

    @property
    def batch(self) -> Batch:
        """The states, as they are now."""
        return self._batch

    @property
    def observation_names(self) -> tuple[str, ...]:
        """What each number of an observation is."""
        return self._play.observation.names

    @property
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The generators of the environments."""
        return tuple(self._generator(i, None) for i in range(self.num_envs))

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """What they were seeded with."""
        return tuple(self._seeds)

    def _generator(self, index: int, seed: int | None) -> np.random.Generator:
        found = self._generators[index]
        if seed is not None or found is None:
            found, self._seeds[index] = seeding.np_random(seed)
            self._generators[index] = found
        return found

    # ---- starts

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:  # type: ignore[override]
        """Draw new starts for all environments, or for those of ``options["reset_mask"]``."""
        n = self.num_envs
        seeds = [None] * n if seed is None else [int(seed) + i for i in range(n)] if isinstance(seed, int | np.integer) else list(seed)
        if len(seeds) != n:
            raise ModelError(f"seed must be a whole number or {n} of them, one per environment, got {shown(seed)}")
        mask = np.asarray((options or {}).get("reset_mask", np.ones(n, bool)))
        if mask.shape != (n,) or mask.dtype != bool or not mask.any():
            raise ModelError(f"reset_mask must be {n} truth values, some of them true, got {shown(mask)}")
        infos: dict[str, Any] = {}
        for i in np.flatnonzero(mask).tolist():
            infos = self._add_info(infos, self._begin(i, seeds[i]), i)
        return self._play.observation(self._now, n), infos

    def _begin(self, index: int, seed: int | None = None) -> dict[str, Any]:
        """Put one environment at a new start."""
        play = self._play
        drawn = play.starts.draw(play.simulation, self._generator(index, seed))
        if drawn.parameters:
            self._batch.set_parameters({name: np.asarray(value)[None] for name, value in drawn.parameters.items()}, [index])
        self._batch.restore(index, drawn.state)
        for name, goal in drawn.goals.items():
            self._now.goal[name][index] = goal
        self._now.action[index] = 0.0
        self._steps[index], self._ended[index], self._begun[index] = 0, False, True
        self._now.refresh()
        return {"parameters": drawn.parameters} if drawn.parameters else {}

    # ---- steps

    def step(self, actions: Any) -> Answer:  # type: ignore[override]
        """Observations, rewards, terminated, truncated and infos after one action (num_envs, actions), between -1 and 1, of each environment."""
        n, play, now, batch = self.num_envs, self._play, self._now, self._batch
        if not self._begun.all():
            raise ControlError("call reset() before the first step() of environments")
        if self.autoreset_mode is MODES.DISABLED and self._ended.any():
            raise ControlError(f"environments {np.flatnonzero(self._ended).tolist()} have ended: reset them with options={{'reset_mask': ...}} before the next step")
        anew = self._ended.copy() if self.autoreset_mode is MODES.NEXT_STEP else np.zeros(n, bool)
        now.action = play.actions.read(actions, n)
        batch.step(play.actions.inputs(now.action), steps=play.task.frame_skip)
        now.refresh()
        infos: dict[str, Any] = {}
        for i in np.flatnonzero(anew).tolist():
            infos = self._add_info(infos, self._begin(i), i)
        failed = batch.failed & ~anew
        reward = np.where(failed, play.task.failure_reward, play.reward(now, n))
        terminated = failed | play.terminated(now, n)
        self._steps += ~anew
        truncated = self._steps >= (play.task.max_episode_steps or np.inf)
        reward[anew], terminated[anew], truncated[anew] = 0.0, False, False
        for i in np.flatnonzero(failed).tolist():
            infos = self._add_info(infos, {"failure": str(batch.failure(i))}, i)
        self._ended = terminated | truncated
        seen = play.observation(now, n)
        if self.autoreset_mode is MODES.SAME_STEP and self._ended.any():
            seen, infos = self._begin_at_once(seen, infos, failed)
        return seen, reward, terminated, truncated, infos

    def _begin_at_once(self, seen: np.ndarray, infos: dict[str, Any], failed: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin episodes that have ended anew; what was seen and said last goes into infos."""
        reasons = {i: {"failure": str(self._batch.failure(i))} for i in np.flatnonzero(failed).tolist()}
        infos = {name: value for name, value in infos.items() if name not in ("failure", "_failure")}
        for i in np.flatnonzero(self._ended).tolist():
            infos = self._add_info(infos, {"final_obs": seen[i], "final_info": reasons.get(i, {})}, i)
            infos = self._add_info(infos, self._begin(i), i)
        return self._play.observation(self._now, self.num_envs), infos

    # ---- pictures

    def render(self) -> tuple[np.ndarray, ...] | None:  # type: ignore[override]
        """A picture (height, width, 3) uint8 of each environment with ``render_mode="rgb_array"``."""
        if self.render_mode != "rgb_array":
            return None
        if self._pictures is None:
            self._pictures = Pictures(self._play.simulation, self.render_mode, self._play.step, dict(self._play.task.camera))
        return tuple(self._pictures.picture(*pose) for pose in zip(self._batch.position, self._batch.orientation))

    def close_extras(self, **_: Any) -> None:
        """Nothing is open."""

