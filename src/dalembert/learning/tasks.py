"""The tasks of the registered environments: a mechanism of the zoo each, with actions, observations, rewards and ends.

A task is a function that gives the arguments of ``MechanismEnv``. Rewards and ends are written for one simulation or many, so that single and
vector environments share them.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.formulations.variational import Variational
from dalembert.learning.sight import Sight

Options = dict[str, Any]


def effort(now: Sight) -> Any:
    """The mean of the squares of the action."""
    return np.mean(now.action**2, axis=-1)


# ---- carts with poles


def cart_pole() -> Options:
    """Keep a pole upright on a cart: one for every step until it falls or the cart is 2.4 m from the middle."""
    from dalembert.zoo import cart_pole

    def fallen(now: Sight) -> Any:
        return (np.abs(now.coordinates("hinge")[..., 0]) > 0.25) | (np.abs(now.coordinates("rail")[..., 0]) > 2.4)

    return dict(
        mechanism=cart_pole(), formulation=Variational(dt=0.02), actions={"rail": 10.0}, reward=lambda now: 1.0 - fallen(now), terminated=fallen,
        noise={"rail": 0.05, "rail.rate": 0.05, "hinge": 0.05, "hinge.rate": 0.05}, camera={"target": (0.0, 0.0, 0.4), "distance": 3.2},
    )


def cart_pole_swing_up() -> Options:
    """Swing a hanging pole up and keep it there: how high it is, less what it takes and how fast it turns."""
    from dalembert.zoo import cart_pole

    def reward(now: Sight) -> Any:
        x, turning = now.coordinates("rail")[..., 0], now.rates("hinge")[..., 0]
        return 0.5 + 0.5 * np.cos(now.coordinates("hinge")[..., 0]) - 0.05 * x**2 - 0.005 * turning**2 - 0.01 * effort(now)

    return dict(
        mechanism=cart_pole(angle=np.pi, damping=0.002), formulation=Variational(dt=0.02), actions={"rail": 15.0}, reward=reward, sin_cos=True,
        terminated=lambda now: np.abs(now.coordinates("rail")[..., 0]) > 4.0, noise={"hinge": 0.1, "hinge.rate": 0.1},
        camera={"target": (0.0, 0.0, 0.0), "distance": 4.5},
    )


def cart_double_pole() -> Options:
    """Keep a double pendulum upright on a cart, until its tip is below 1.6 m or the cart is 2.4 m from the middle."""
    from dalembert.zoo import cart_pole

    def tip(now: Sight) -> Any:
        first, second = now.coordinates("hinge")[..., 0], now.coordinates("hinge 2")[..., 0]
        return np.cos(first) + np.cos(first + second)

    def fallen(now: Sight) -> Any:
        return (tip(now) < 1.6) | (np.abs(now.coordinates("rail")[..., 0]) > 2.4)

    def reward(now: Sight) -> Any:
        return (1.0 - fallen(now)) * (tip(now) - 1.0) - 0.001 * effort(now)

    return dict(
        mechanism=cart_pole(2), formulation=Variational(dt=0.01), frame_skip=2, actions={"rail": 20.0}, reward=reward, terminated=fallen, sin_cos=True,
        noise={"rail": 0.05, "hinge": 0.03, "hinge 2": 0.03, "hinge.rate": 0.03}, camera={"target": (0.0, 0.0, 0.9), "distance": 4.5},
    )


# ---- on legs


def hopper() -> Options:
    """Hop forward on a leg that stretches, upright by torques on the ball: its speed along x up to 1 m/s, and one for staying up.

    The action zero carries the ball's weight, nearly.
    """
    from dalembert.zoo import hopper

    def fallen(now: Sight) -> Any:
        return (now.up("ball")[..., 2] < 0.7) | (now.position[..., 0, 2] < 0.3)

    def reward(now: Sight) -> Any:
        return (1.0 - fallen(now)) * (1.0 + np.minimum(now.velocity[..., 0, 0], 1.0)) - 0.1 * effort(now)

    return dict(
        mechanism=hopper(friction=0.8), formulation=Variational(dt=0.005), frame_skip=4, actions={"leg": (-70.0, 50.0), "ball.torque": 3.0}, reward=reward, terminated=fallen,
        observation=["leg", "ball.height", "ball.orientation", "ball.velocity", "ball.angular_velocity"],
        noise={"ball.velocity": (0.05, 0.05, 0.0), "ball.angular_velocity": 0.1}, camera={"follow": "ball", "distance": 2.6},
    )


def quadruped() -> Options:
    """Walk forward: the trunk's speed along x up to 1 m/s, and one for staying up. Actions move the targets of the legs' springs."""
    from dalembert.zoo import quadruped
    from dalembert.zoo.quadruped import GAINS, LEGS, STANDING

    reach = {"hip": 0.3, "thigh": 0.6, "calf": 0.6}
    stance = STANDING.angles(0.0, 0.0)
    joints = {f"{leg} {part} joint": part for leg in LEGS for part in GAINS}
    actions = {name: (GAINS[part][0] * (stance[part] - reach[part]), GAINS[part][0] * (stance[part] + reach[part])) for name, part in joints.items()}
    return dict(
        mechanism=quadruped(clearance=0.01), formulation=Variational(dt=0.005), frame_skip=4, actions=actions,
        observation=[*(f"{name}.coordinate" for name in joints), *(f"{name}.rate" for name in joints), *_trunk("trunk")],
        noise=dict.fromkeys(joints, 0.03) | {"trunk.velocity": 0.05}, camera={"follow": "trunk", "distance": 1.8}, **_walking("trunk", 0.16),
    )


def biped() -> Options:
    """Walk forward on two closed legs: the pelvis' speed along x up to 1 m/s, and one for staying up. Actions move the motors' targets."""
    from dalembert.zoo import biped

    mechanism = biped(clearance=0.002)
    motors = {joint.name: joint.type.servo[0].target for joint in mechanism.joints if joint.type.freedom == 1 and joint.type.servo[0] is not None}
    sprung = [f"{side} {name}" for side in ("left", "right") for name in ("shin flex", "ankle", "heel flex")]
    reach = {"roll": 0.2, "yaw": 0.2, "pitch": 0.5, "knee": 0.5, "toe": 0.4}
    actions = {name: (target - reach[name.split()[-1]], target + reach[name.split()[-1]]) for name, target in motors.items()}
    seen = [*motors, *sprung]
    return dict(
        mechanism=mechanism, formulation=Variational(dt=0.005), frame_skip=4, actions=actions,
        observation=[*(f"{name}.coordinate" for name in seen), *(f"{name}.rate" for name in seen), *_trunk("pelvis")],
        noise={"pelvis.velocity": 0.05, "pelvis.angular_velocity": 0.05}, camera={"follow": "pelvis", "distance": 3.2}, **_walking("pelvis", 0.75),
    )


def _trunk(body: str) -> list[str]:
    return [f"{body}.{part}" for part in ("height", "orientation", "velocity", "angular_velocity")]


def _walking(body: str, lowest: float) -> Options:
    """Reward and end of what shall walk along x with a body upright and above a height (m)."""
    def fallen(now: Sight) -> Any:
        return (now.up(body)[..., 2] < 0.7) | (now.point(body)[..., 2] < lowest)

    def reward(now: Sight) -> Any:
        forward = now.velocity[..., now.mechanism[body].index, 0]
        return (1.0 - fallen(now)) * (1.0 + np.clip(forward, -1.0, 1.0)) - 0.1 * effort(now)

    return dict(reward=reward, terminated=fallen)


# ---- arms


def five_bar_reacher() -> Options:
    """Bring the tip of a five-bar linkage to a goal that each reset draws, and hold it there: minus the distance in metres."""
    from dalembert.zoo import five_bar

    def goal(rng: np.random.Generator) -> np.ndarray:
        return np.array([rng.uniform(-0.15, 0.15), rng.uniform(0.3, 0.5)])

    mechanism = five_bar()
    tip = mechanism["tip"].point_parent

    def reward(now: Sight) -> Any:
        return -np.linalg.norm(now.point("left forearm", tip)[..., :2] - now.goal["goal"], axis=-1) - 0.01 * effort(now)

    def seen(now: Sight) -> Any:
        at = now.point("left forearm", tip)[..., :2]
        turns = [now.coordinates(f"{side} motor")[..., :1] for side in ("left", "right")]
        rates = [now.rates(f"{side} motor")[..., :1] for side in ("left", "right")]
        return np.concatenate([*turns, *rates, at, now.goal["goal"] - at], axis=-1)

    return dict(
        mechanism=mechanism, formulation=Variational(dt=0.01), frame_skip=2, actions={"left motor": 0.5, "right motor": 0.5}, observation=seen, reward=reward,
        goals={"goal": goal}, noise={"left motor": 0.2, "right motor": 0.2}, camera={"target": (0.0, 0.25, 0.0), "distance": 1.2, "elevation": 60.0},
    )


def exoskeleton() -> Options:
    """Bring an arm to a pose that each reset draws by the motors of its exoskeleton, without pulling at the cuffs; how stiff the elbow is changes too."""
    from dalembert.zoo import exoskeleton
    from dalembert.zoo.exoskeleton import GAINS

    mechanism = exoskeleton()
    centre, reach = {"flexion": 0.25 * np.pi, "elbow": -0.25 * np.pi}, 0.3 * np.pi
    for motor, angle in centre.items():
        mechanism.start(motor, angle)
    mechanism.start("arm shoulder", (0.0, -centre["flexion"], 0.0))
    mechanism.start("arm elbow", centre["elbow"])
    motors = ("rotation", "abduction", "flexion", "elbow")

    def goal(rng: np.random.Generator) -> np.ndarray:
        return np.array(list(centre.values())) + rng.uniform(-0.6, 0.6, 2)

    def error(now: Sight) -> Any:
        return np.concatenate([now.coordinates(motor) for motor in centre], axis=-1) - now.goal["goal"]

    def reward(now: Sight) -> Any:
        cuffs = [np.sum(now.coordinates(f"{part} cuff")[..., :2] ** 2, axis=-1) for part in ("upper", "fore")]
        return -np.linalg.norm(error(now), axis=-1) - 100.0 * sum(cuffs) - 0.01 * effort(now)

    return dict(
        mechanism=mechanism, formulation=Variational(dt=0.01), frame_skip=2, reward=reward, goals={"goal": goal}, randomise={"arm elbow.stiffness": (0.0, 1.5)},
        actions={motor: (GAINS[motor][0] * (angle - reach), GAINS[motor][0] * (angle + reach)) for motor, angle in centre.items()},
        observation=[f"{joint}.{part}" for part in ("coordinate", "rate") for joint in (*motors, "upper cuff", "fore cuff")] + ["goal"],
        camera={"distance": 2.0, "target": (0.1, 0.0, -0.25)},
    )


#: how many different starts there are where parameters stay as they are
STARTS = 256
#: by name of the environment: the task, and how many steps an episode has
TASKS: dict[str, tuple[Callable[[], Options], int]] = {
    "CartPole": (cart_pole, 500), "CartPoleSwingUp": (cart_pole_swing_up, 500), "CartDoublePole": (cart_double_pole, 500), "Hopper": (hopper, 500),
    "Quadruped": (quadruped, 500), "Biped": (biped, 500), "FiveBarReacher": (five_bar_reacher, 150), "Exoskeleton": (exoskeleton, 150),
}


def options(task: str, **changes: Any) -> Options:
    """Arguments of ``MechanismEnv`` for a task, some of them changed."""
    found = {**TASKS[task][0](), **changes}
    found.setdefault("starts", None if found.get("randomise") else STARTS)
    return found
