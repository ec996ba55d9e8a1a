"""Vector environments: the same as single ones to the bit, resets, failures, and what they refuse."""
from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import dalembert as da
import dalembert.learning.environments as environments
from dalembert import zoo
from dalembert.learning import MechanismVectorEnv
from dalembert.learning.tasks import TASKS

STEP = da.Variational(dt=0.02)


def carts(n: int = 3, **options: Any) -> MechanismVectorEnv:
    return MechanismVectorEnv(zoo.cart_pole(), STEP, n, **{"actions": {"rail": 10.0}, **options})


def fallen(now: Any) -> Any:
    return np.abs(now.coordinates("hinge")[..., 0]) > 0.25


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("threads", [1, 2])
def test_bits_are_those_of_single_environments(name, threads):
    """With resets by the way: episodes are cut short."""
    many, ones = environments.vector(name, 3, max_episode_steps=5, threads=threads), [environments.single(name, max_episode_steps=5) for _ in range(3)]
    seen, _ = many.reset(seed=5)
    np.testing.assert_array_equal(seen, [one.reset(seed=5 + i)[0] for i, one in enumerate(ones)])
    actions, ended = np.random.default_rng(0).uniform(-1.0, 1.0, (8, 3, *many.single_action_space.shape)), [False] * 3  # type: ignore[misc]
    for action in actions:
        seen, reward, terminated, truncated, _ = many.step(action)
        for i, one in enumerate(ones):
            again, *rest = (one.reset()[0], 0.0, False, False) if ended[i] else one.step(action[i])[:4]
            np.testing.assert_array_equal(seen[i], again)
            assert (reward[i], terminated[i], truncated[i]) == tuple(rest)
            ended[i] = bool(rest[1] or rest[2])


def test_gymnasium_makes_them():
    env = gymnasium.make_vec("dalembert/Hopper-v0", num_envs=4, frame_skip=2)
    assert isinstance(env, MechanismVectorEnv)
    assert (env.num_envs, env.observation_space.shape, env.action_space.shape) == (4, (4, 13), (4, 4))
    assert env.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
    seen, _ = env.reset(seed=[3, 1, 4, 1])
    assert env.observation_space.contains(seen)
    np.testing.assert_array_equal(seen[1], seen[3])
    assert env.np_random_seed == (3, 1, 4, 1)
    env.close()
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(environments.vector("CartPole", 2, max_episode_steps=3))
    wrapped.reset(seed=0)
    infos = [wrapped.step(np.zeros((2, 1)))[-1] for _ in range(3)]
    np.testing.assert_allclose(infos[-1]["episode"]["r"], 3.0)


def test_episodes_that_end_begin_anew():
    options: dict[str, Any] = dict(noise={"hinge": 0.2}, terminated=fallen, max_episode_steps=40)
    later, at_once = carts(autoreset_mode="NextStep", **options), carts(autoreset_mode="SameStep", **options)
    np.testing.assert_array_equal(later.reset(seed=1)[0], at_once.reset(seed=1)[0])
    for _ in range(30):
        seen, _, ended, cut, _ = later.step(np.zeros((3, 1)))
        again, _, ended_too, _, infos = at_once.step(np.zeros((3, 1)))
        if ended.any():
            break
    np.testing.assert_array_equal(ended, ended_too)
    np.testing.assert_array_equal(infos["_final_obs"], ended)
    assert not ended.all()
    assert not cut.any()
    assert (np.abs(seen[ended][:, 1]) > 0.25).all()
    for i in np.flatnonzero(ended):
        np.testing.assert_array_equal(infos["final_obs"][i], seen[i])
    assert (np.abs(again[ended][:, 1]) < 0.2).all()
    following, reward, over, _, _ = later.step(np.ones((3, 1)))
    np.testing.assert_array_equal(following[ended], again[ended])
    assert not over[ended].any()
    assert (reward[ended] == 0.0).all()


def test_without_autoreset_a_mask_resets():
    env = carts(autoreset_mode="Disabled", noise={"hinge": 0.2}, max_episode_steps=2)
    env.reset(seed=1)
    env.step(np.zeros((3, 1)))
    env.reset(options={"reset_mask": np.array([True, False, False])})
    cut = env.step(np.zeros((3, 1)))[3]
    assert cut.tolist() == [False, True, True]
    with pytest.raises(da.ControlError, match=r"\[1, 2\] have ended"):
        env.step(np.zeros((3, 1)))
    env.reset(options={"reset_mask": cut})
    env.step(np.zeros((3, 1)))


def test_parameters_and_goals_are_each_environments_own():
    env = carts(randomise={"pole.mass": (0.05, 0.5)}, goals={"goal": lambda rng: rng.uniform(-1.0, 1.0)}, reward=lambda now: now.goal["goal"][..., 0])
    seen, info = env.reset(seed=2)
    masses = [info["parameters"]["pole.mass"][i] for i in range(3)]
    assert len(set(masses)) == 3
    assert [env.batch.parameters(i)["pole.mass"].value for i in range(3)] == masses
    _, reward, *_ = env.step(np.zeros((3, 1)))
    np.testing.assert_array_equal(reward, seen[:, -1])


def test_one_failure_ends_one_episode():
    mechanism = zoo.pendulum()
    joint, body = mechanism.joints[0].name, mechanism.bodies[0].name
    mechanism.change(joint, type=da.Revolute(axis="y", drive="motion"))
    mechanism.joint("second", da.Revolute(axis="y", drive="motion"), mechanism.world, body, at=(0, 0, 0))
    env = MechanismVectorEnv(mechanism, da.Variational(dt=0.01), 3, actions={joint: 0.01, "second": 0.01}, reward=lambda now: np.ones(len(now.time)), failure_reward=-5.0)
    env.reset(seed=0)
    _, reward, ended, _, info = env.step([[1.0, 1.0], [1.0, -1.0], [0.5, 0.5]])
    assert ended.tolist() == [False, True, False]
    assert reward.tolist() == [1.0, -5.0, 1.0]
    assert isinstance(info["failure"][1], str)
    assert info["_failure"].tolist() == [False, True, False]
    _, reward, ended, _, info = env.step(np.zeros((3, 2)))
    assert not ended[1]
    assert "failure" not in info or not info["_failure"][1]


def test_pictures_of_all():
    env = carts(2, render_mode="rgb_array", camera={"size": (48, 32)}, noise={"hinge": 1.0})
    env.reset(seed=0)
    first, second = env.render() or (None, None)
    assert first is not None
    assert first.shape == (32, 48, 3)
    assert (first != second).any()
    assert carts().render() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(n=0), "num_envs"), (dict(threads=0), "threads"), (dict(autoreset_mode="never"), "autoreset_mode"), (dict(actions={}), "needs actions"),
        (dict(render_mode="human"), "render_mode"), (dict(observations=["rail"]), "did you mean 'observation'"), (dict(observation=["bearing"]), "single environments only"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    mechanism = zoo.cart_pole()
    mechanism.sensor("bearing", da.ForceTorque(), "hinge")
    given = {"n": 2, "actions": {"rail": 1.0}, **options}
    with pytest.raises(da.ModelError, match=message):
        MechanismVectorEnv(mechanism, STEP, given.pop("n"), **given)


def test_functions_of_one_environment_are_told_how_to_be_written():
    env = carts(reward=lambda now: float(now.time[0]))
    env.reset()
    with pytest.raises(da.ModelError, match=r"reward must give one number per environment, shape \(3,\)"):
        env.step(np.zeros((3, 1)))
    with pytest.raises(da.ModelError, match="shape"):
        carts(observation=lambda now: now.coordinates("rail")[0]).reset()


def test_wrong_seeds_masks_actions_and_steps_are_refused():
    env = carts()
    with pytest.raises(da.ControlError, match="reset"):
        env.step(np.zeros((3, 1)))
    with pytest.raises(da.ModelError, match="seed"):
        env.reset(seed=[1, 2])
    for mask in (np.zeros(3, bool), [True], np.ones(3)):
        with pytest.raises(da.ModelError, match="reset_mask"):
            env.reset(options={"reset_mask": mask})
    env.reset()
    for action in (np.zeros(3), np.zeros((2, 1)), np.full((3, 1), np.nan)):
        with pytest.raises(da.ControlError, match="action"):
            env.step(action)
