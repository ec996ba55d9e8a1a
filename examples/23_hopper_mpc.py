"""A hopper finds its own hops: model-predictive control through contact.

Nobody tells the controller when the foot shall touch. Every tenth of a second it plans the leg's force and the ball's torque over the next
0.8 s, by a few iterations of BFGS on runs with rigid contact and friction, with gradients by the adjoint through landings and
take-offs, and uses the first tenth of the plan. The real ground is more slippery than that of the plans and the real leg softer, and the
ball is kicked on the way. After Brüdigam et al. (2021), section V. Draws out/hopper_mpc.png and writes out/hopper_mpc.html.
"""
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.view.plots import COLOURS, FAINT, add_legend, finish_axis, finished, new_figure

DT, STEPS, HELD = 0.02, 40, 5  # s; steps of a plan, and of its part that is used
GOAL, STRIDE = 1.0, 0.4  # m: where to, and how far ahead a plan aims at the most
KICK = {"at": 1.0, "force": (-10.0, 0.0, 0.0)}  # s, N for a tenth of a second
FORCE, TORQUE = 50.0, 2.0  # N, N m: units of the unknowns
UP = np.array([0.0, 0.0, 1.0])
LOW = 0.02  # weight of heights other than that of standing, all along
JUMP = np.concatenate([[-0.9, -0.9, -0.3], np.zeros(19)])
knots = np.linspace(0.0, STEPS - 1.0, 11)
HATS = np.stack([np.interp(np.arange(STEPS), knots, unit) for unit in np.eye(11)], axis=1)


def hopper(*, friction: float, stiffness: float) -> da.Mechanism:
    """A ball on a pole that slides through it on a spring, with a motor."""
    mechanism = da.Mechanism("hopper")
    mechanism.ground(friction=friction)
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 0.6))
    mechanism.body("pole", da.Cylinder(radius=0.03, length=0.8, mass=0.2), position=(0, 0, 0.4))
    leg = da.Prismatic(axis="z", drive="force", stiffness=stiffness, damping=8.0, limits=(-0.3, 0.3))
    mechanism.joint("leg", leg, "ball", "pole", at=(0, 0, 0.4))
    mechanism.contact_point("pole", point=(0, 0, -0.4))
    return mechanism


def inputs(unknown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The leg's force (STEPS,) and the wrench on the ball (STEPS, 6)."""
    wrench = np.zeros((STEPS, 6))
    wrench[:, 4] = TORQUE * HATS @ unknown[11:]
    return FORCE * HATS @ unknown[:11], wrench


def standing_at(x: float):
    """How far the hopper is from standing at a place at the end of a plan, and from being upright and not too low all along."""
    end, along = np.zeros(STEPS + 1), np.full(STEPS + 1, 0.05)
    end[[-6, -1]] = 1.0

    def loss(run: da.Trajectory):
        miss, speed, spin = run.position[:, 0] - (x, 0.0, 0.6), run.velocity, run.angular_velocity[:, 0]
        turn = Rotation.from_quat(run.orientation[:, 0], scalar_first=True)
        value = end @ (np.sum(miss**2, axis=1) + 0.05 * np.sum(speed**2, axis=(1, 2))) + LOW * np.sum(miss[:, 2] ** 2)
        value += (end + along) @ (0.01 * np.sum(spin**2, axis=1) + 1.0 - turn.apply(UP) @ UP)
        weights = {name: np.zeros((STEPS + 1, 2, 3)) for name in ("position", "orientation", "angular_velocity")}
        weights["position"][:, 0] = 2.0 * (end[:, None] + LOW * UP) * miss
        weights["orientation"][:, 0] = -(end + along)[:, None] * np.cross(UP, turn.inv().apply(UP))
        weights["angular_velocity"][:, 0] = 0.02 * (end + along)[:, None] * spin
        return value, {**weights, "velocity": 0.1 * end[:, None, None] * speed}

    return loss


def plan(state: da.State, place: float, guesses: list[np.ndarray]) -> np.ndarray:
    """The best of the inputs that some guesses lead to, from a state on."""
    loss = standing_at(min(GOAL, place + STRIDE))
    f = da.value_and_gradient(model, method, STEPS * DT, ["leg.input", "ball.input"], loss, setup=lambda sim: sim.restore(state))

    def objective(unknown: np.ndarray) -> tuple[float, np.ndarray]:
        force, wrench = inputs(unknown)
        value, gradient = f(np.concatenate([force, wrench.ravel()]))
        by_force, by_torque = gradient[:STEPS], gradient[STEPS:].reshape(STEPS, 6)[:, 4]
        return float(value + 3e-3 * unknown @ unknown), np.concatenate([FORCE * HATS.T @ by_force, TORQUE * HATS.T @ by_torque]) + 6e-3 * unknown

    options = {"maxiter": 12, "hess_inv0": 0.3 * np.eye(22)}
    return min((minimize(objective, guess, jac=True, method="BFGS", options=options) for guess in guesses), key=lambda found: found.fun).x


class Controller:
    """Plans anew every HELD steps: from what is left of the last plan, from a jump on the spot, and from no force at all."""

    def __init__(self) -> None:
        self.unknown, self.step = JUMP, 0
        later = np.vstack([HATS[HELD:], np.repeat(HATS[-1:], HELD, axis=0)])
        self.shift = np.kron(np.eye(2), np.linalg.lstsq(HATS, later)[0])

    def __call__(self, sim: da.Simulation) -> dict[str, np.ndarray]:
        if self.step % HELD == 0:
            self.unknown = plan(sim.state, sim.position[0, 0], [self.shift @ self.unknown, JUMP, 0.0 * JUMP])
        force, wrench = (part[self.step % HELD].copy() for part in inputs(self.unknown))
        self.step += 1
        if KICK["at"] <= sim.time < KICK["at"] + 0.1:
            wrench[:3] += KICK["force"]
        return {"leg": force, "ball": wrench}


warnings.simplefilter("ignore", da.GradientWarning)  # plans have kinks, where a contact just opens: BFGS takes them as they come
model, method = hopper(friction=0.8, stiffness=300.0), da.Variational(dt=DT)
run = da.Simulation(hopper(friction=0.6, stiffness=270.0), method).run(3.2, control=Controller())

turn = Rotation.from_quat(run.orientation[:, 1], scalar_first=True)
foot = run.position[:, 1] - 0.4 * turn.apply(UP)
flying = foot[:, 2] > 5e-3
hops = int(np.sum(flying[1:] & ~flying[:-1]))
upright, end = turn.apply(UP)[:, 2], run.position[-1, 0]
print(f"{hops} hops; at the end the ball is at x = {end[0]:.3f} m and moves at {np.linalg.norm(run.velocity[-1, 0]):.3f} m/s")
print(f"on its way it leans by {np.degrees(np.arccos(upright.min())):.0f} degrees at the most")

Path("out").mkdir(exist_ok=True)
figure = new_figure("out/hopper_mpc.png", height=3.4)
axis = figure.subplots()
for k in range(0, len(run), 5):
    axis.plot(*zip(foot[k, [0, 2]], run.position[k, 0, [0, 2]]), color=FAINT, linewidth=1.0)
axis.plot(run.position[:, 0, 0], run.position[:, 0, 2], color=COLOURS[0], label="ball")
axis.plot(foot[:, 0], foot[:, 2], color=COLOURS[1], label="foot")
kicked = int(np.searchsorted(run.time, KICK["at"]))
axis.plot(*run.position[kicked, 0, [0, 2]], "o", color=COLOURS[3], label="kick")
finish_axis(axis, "z / m")
axis.set_xlabel("x / m")
add_legend(axis)
finished(figure, "hops that nobody planned", "out/hopper_mpc.png")
run.to_html("out/hopper_mpc.html")
if not (abs(end[0] - GOAL) < 0.1 and upright[-1] > 0.99 and np.linalg.norm(run.velocity[-1, 0]) < 0.3 and hops >= 2 and run.position[:, 0, 2].min() > 0.2):
    raise SystemExit("the hopper did not arrive")
