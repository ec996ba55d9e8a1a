"""Environments: what Gymnasium's own checker says, spaces, starts, ends, failures and pictures."""
from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import dalembert as da
import dalembert.learning.environments as environments
from dalembert import zoo
from dalembert.learning import MechanismEnv
from dalembert.learning.observations import FAR
from dalembert.learning.tasks import TASKS

#: numbers of an observation and of an action
SIZES = {"CartPole": (4, 1), "CartPoleSwingUp": (5, 1), "CartDoublePole": (8, 1), "Hopper": (13, 4), "Quadruped": (35, 12), "Biped": (43, 10), "FiveBarReacher": (8, 2), "Exoskeleton": (22, 2)}
#: environments that stand for a second under the action zero
STANDING = ("Quadruped", "Biped")
STEP = da.Variational(dt=0.02)


def cart(**options: Any) -> MechanismEnv:
    return MechanismEnv(zoo.cart_pole(), STEP, **{"actions": {"rail": 10.0}, **options})


@pytest.mark.parametrize("name", TASKS)
def test_the_checker_of_gymnasium_has_nothing_to_say(name, capsys):
    env = gymnasium.make(f"dalembert/{name}-v0", disable_env_checker=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    assert (env.observation_space.shape, env.action_space.shape) == tuple((size,) for size in SIZES[name])
    assert env.spec is not None
    assert env.spec.max_episode_steps == TASKS[name][1]
    assert len(env.unwrapped.observation_names) == SIZES[name][0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", STANDING)
def test_what_stands_goes_on_standing(name):
    env, total = environments.single(name), 0.0
    env.reset(seed=3)
    for _ in range(50):
        _, reward, ended, _, _ = env.step(np.zeros(SIZES[name][1]))
        total += reward
        assert not ended
    assert total > 45.0


def test_a_step_is_that_of_the_simulation():
    env, sim = cart(frame_skip=3, observation=["rail", "hinge"]), da.Simulation(zoo.cart_pole(), STEP)
    env.reset(seed=1)
    for action in (0.5, -0.25, 2.0):
        seen, *_ = env.step([action])
        for _ in range(3):
            sim.step({"rail": 10.0 * min(action, 1.0)})
    expected = [sim.coordinates("rail")[0], sim.rates("rail")[0], sim.coordinates("hinge")[0], sim.rates("hinge")[0]]
    np.testing.assert_array_equal(seen, expected)


def test_observations_by_name():
    mechanism = zoo.hopper()
    mechanism.sensor("tilt", da.Attitude(), "ball")
    names = ["leg.rate", "ball.height", "tilt", "ball.up", "ball.position", "leg"]
    env = MechanismEnv(mechanism, da.Variational(dt=0.005), actions={"leg": 60.0, "ball.torque": [(-1, 1), (-2, 2), (0, 3)]}, observation=names)
    env.reset(seed=0)
    seen, *_ = env.step([0.5, 1.0, -1.0, 0.0])
    sim = env.simulation
    up = [0.0, 0.0, 1.0] @ _matrix(sim.orientation[0])
    expected = [sim.rates("leg"), sim.position[0, 2:], sim.sensor("tilt"), up, sim.position[0], sim.coordinates("leg"), sim.rates("leg")]
    np.testing.assert_allclose(seen, np.concatenate(expected), atol=1e-12)
    assert env.observation_names[:3] == ("leg.rate", "ball.height", "tilt:0")
    assert isinstance(env.observation_space, gymnasium.spaces.Box)
    np.testing.assert_array_equal(env.observation_space.high[6:10], [1.0, 1.0, 1.0, FAR])


def _matrix(q: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(q, scalar_first=True).as_matrix()


def test_torques_on_bodies_act_within_their_bounds():
    env = MechanismEnv(zoo.free_body(), STEP, actions={"body.torque": [(-1, 1), (-2, 2), (0, 3)], "body.force": 5.0}, observation=["body.velocity"])
    sim = da.Simulation(zoo.free_body(), STEP)
    env.reset()
    env.step([1.0, -1.0, 0.0, 0.0, 0.2, 0.0])
    sim.step({"body": [0.0, 1.0, 0.0, 1.0, -2.0, 1.5]})
    np.testing.assert_array_equal(env.simulation.angular_velocity, sim.angular_velocity)
    np.testing.assert_array_equal(env.simulation.velocity, sim.velocity)


def test_sines_and_cosines_of_turning_joints():
    env = cart(sin_cos=True, noise={"hinge": 3.0})
    seen, _ = env.reset(seed=5)
    angle = env.simulation.coordinates("hinge")[0]
    np.testing.assert_allclose(seen, [0.0, np.sin(angle), np.cos(angle), 0.0, 0.0], atol=1e-15)
    assert env.observation_names == ("rail.coordinate", "hinge.direction:0", "hinge.direction:1", "rail.rate", "hinge.rate")


def test_bodies_that_float_are_seen_by_default():
    env = MechanismEnv(zoo.hopper(), da.Variational(dt=0.005), actions={"leg": 1.0})
    assert env.observation_space.shape == (2 + 13,)
    assert cart().observation_space.shape == (4,)


def test_noise_is_drawn_within_its_width_and_by_the_seed():
    env = cart(noise={"hinge": 0.1, "rail.rate": 0.5})
    starts = np.array([env.reset(seed=k)[0] for k in range(20)])
    assert (np.abs(starts[:, 1]) < 0.1).all()
    assert (np.abs(starts[:, 2]) < 0.5).all()
    assert np.ptp(starts[:, 1]) > 0.1
    assert np.ptp(starts[:, 2]) > 0.5
    np.testing.assert_array_equal(starts[:, [0]], 0.0)
    for _ in range(3):
        env.step([1.0])
    np.testing.assert_array_equal(env.reset(seed=7)[0], starts[7])


def test_noise_in_loops_keeps_them_closed():
    env = environments.single("FiveBarReacher")
    for seed in range(3):
        env.reset(seed=seed)
        assert env.simulation.run(0.05).constraint_violation().max() < 1e-9


def test_parameters_are_drawn_at_every_reset():
    env = cart(randomise={"pole.mass": (0.05, 0.5), "hinge.damping": lambda rng: rng.choice([0.0, 0.1])})
    drawn = []
    for _ in range(4):
        _, info = env.reset(seed=None if drawn else 2)
        drawn.append(float(info["parameters"]["pole.mass"]))
        assert env.simulation.parameters()["pole.mass"].value == drawn[-1]
        env.step([0.3])
    assert len(set(drawn)) == 4
    assert all(0.05 <= mass <= 0.5 for mass in drawn)
    assert float(env.reset(seed=2)[1]["parameters"]["pole.mass"]) == drawn[0]


def test_goals_are_drawn_and_seen():
    env = cart(goals={"goal": lambda rng: rng.uniform(-1.0, 1.0)}, reward=lambda now: -abs(float(now.goal["goal"][0]) - now.coordinates("rail")[..., 0]))
    goals = {float(env.reset(seed=k)[0][-1]) for k in range(3)}
    assert len(goals) == 3
    seen, reward, *_ = env.step([0.0])
    assert reward == pytest.approx(-abs(seen[-1] - seen[0]))


def test_rewards_and_ends_are_functions_of_what_is_seen():
    env = cart(reward=lambda now: now.action[..., 0] + now.time, terminated=lambda now: now.coordinates("hinge")[..., 0] > 0.5, noise={"hinge": 0.3}, max_episode_steps=60)
    env.reset(seed=11)
    assert env.step([0.25])[1:4] == (0.27, False, False)
    ends = [env.step([-1.0])[2:4] for _ in range(59)]
    assert ends[-1][1]
    assert not any(truncated for _, truncated in ends[:-1])
    assert any(ended for ended, _ in ends)


def test_a_step_without_a_solution_ends_the_episode():
    mechanism = zoo.pendulum()
    mechanism.change(mechanism.joints[0].name, type=da.Revolute(axis="y", drive="motion"))
    joint = mechanism.joints[0].name
    mechanism.joint("second", da.Revolute(axis="y", drive="motion"), mechanism.world, mechanism.bodies[0].name, at=(0, 0, 0))
    env = MechanismEnv(mechanism, da.Variational(dt=0.01), actions={joint: 1.0, "second": 1.0}, reward=lambda now: 1.0, failure_reward=-5.0)
    start, _ = env.reset(seed=0)
    seen, reward, ended, truncated, info = env.step([1.0, -1.0])
    assert (reward, ended, truncated) == (-5.0, True, False)
    assert joint in info["failure"] or "second" in info["failure"]
    np.testing.assert_array_equal(seen[:2], start[:2])
    again, info = env.reset(seed=0)
    np.testing.assert_array_equal(again, start)
    assert not info


def test_pictures(tmp_path):
    env = cart(render_mode="rgb_array", camera={"size": (64, 48), "follow": "cart"})
    env.reset(seed=0)
    first = env.render()
    assert first is not None
    assert (first.shape, first.dtype) == ((48, 64, 3), np.uint8)
    for _ in range(30):
        env.step([1.0])
    later = env.render()
    assert later is not None
    assert np.abs(first.astype(int) - later).max() > 50
    assert cart().render() is None
    with pytest.raises(da.ModelError, match="size"):
        cart(render_mode="rgb_array", camera={"size": (1, 1)})


def test_a_page_that_is_shown_as_fast_as_the_clock(capsys):
    from time import perf_counter
    from urllib.request import urlopen

    env = cart(render_mode="human")
    env.reset(seed=0)
    tick = perf_counter()
    for _ in range(10):
        env.step([0.0])
    assert perf_counter() - tick > 0.15
    url = capsys.readouterr().out.split()[-1]
    assert urlopen(url).status == 200
    env.close()
    env.close()
    with pytest.raises(OSError, match=r"refused|reset|timed out"):
        urlopen(url, timeout=2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(actions={}), "needs actions.*rail"), (dict(actions={"hinge": 1.0}), "takes no action"), (dict(actions={"rale": 1.0}), "did you mean 'rail'"),
        (dict(actions={"rail": (1.0, -1.0)}), "low end"), (dict(actions={"rail": 0.0}), "low end"), (dict(actions={"rail": "much"}), "bound of action 'rail'"),
        (dict(actions={"rail": np.nan}), "finite"), (dict(actions=["rail"]), "actions"), (dict(observation=[]), "observation"), (dict(observation="rail"), "observation"),
        (dict(observation=["hinge.speed"]), "a part is one of"), (dict(observation=["hing"]), "did you mean 'hinge'"), (dict(observation=["rail.direction"]), "no single angle"),
        (dict(observation=lambda now: 1.0), "shape"), (dict(noise={"pole": 0.1}), "noise"), (dict(noise={"hinge": "x"}), "noise of 'hinge'"), (dict(noise=0.1), "noise"),
        (dict(randomise={"pole.weight": (1, 2)}), "no parameter"), (dict(randomise={"pole.mass": (2, 1)}), "range"), (dict(goals={"goal": 1.0}), "function"),
        (dict(frame_skip=0), "frame_skip"), (dict(max_episode_steps=1.5), "max_episode_steps"), (dict(render_mode="ascii"), "render_mode"), (dict(reward=1.0), "reward"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(da.ModelError, match=message):
        cart(**options)


def test_actions_of_other_shapes_and_steps_before_a_reset_are_refused():
    env = cart()
    with pytest.raises(da.ControlError, match="reset"):
        env.step([0.0])
    env.reset()
    for action in ([0.0, 1.0], 0.5, [np.nan], [[0.0]]):
        with pytest.raises(da.ControlError, match="action"):
            env.step(action)
    env.step([0.0])


def test_starts_that_no_loop_allows_are_drawn_again():
    env = MechanismEnv(zoo.five_bar(), STEP, actions={"left motor": 1.0}, noise={"left motor": 3.0, "right motor": 3.0})
    for seed in range(5):
        seen, _ = env.reset(seed=seed)
        assert np.isfinite(seen).all()
        np.testing.assert_array_equal(env.reset(seed=seed)[0], seen)


def test_many_joints_are_set_at_once():
    one, many = (da.Simulation(zoo.cart_pole(2), STEP) for _ in range(2))
    one.set_joint("hinge", 0.3, rate=0.5)
    one.set_joint("hinge 2", -0.2)
    one.set_joint("rail", 0.1, rate=-1.0)
    many.set_joints({"hinge": 0.3, "hinge 2": -0.2, "rail": 0.1}, rates={"hinge": 0.5, "rail": -1.0, "hinge 2": 0.0})
    np.testing.assert_allclose(many.coordinates(), one.coordinates(), atol=1e-14)
    np.testing.assert_allclose(many.rates(), one.rates(), atol=1e-12)
    np.testing.assert_allclose(many.coordinates(), [0.1, 0.3, -0.2], atol=1e-14)
    before = many.state
    with pytest.raises(da.ModelError, match="elbow"):
        many.set_joints({"hinge": 0.0, "elbow": 1.0})
    assert many.state == before
