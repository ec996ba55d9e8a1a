"""An arm brings its hand to a point, and to rest there, with the least torque: the torques of its two motors over time are unknown.

The objective is equation 3.82 of the RedMax notes (Wang et al.): squares of what the hand misses its point and its rest by, and of
the torques. The adjoint gives the derivative by all of them in one backward pass, and SciPy's BFGS does the rest. It
finds that it pays to swing. Draws the torques and the way of the hand, out/reaching.png, and writes out/reaching.html.
"""
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.view.plots import COLOURS, add_legend, finish_axis, finished, new_figure

DT, STEPS = 0.03, 40
POINT, HAND = np.array([0.35, 0.0, 0.55]), np.array([0.0, 0.0, -0.25])  # m: where to; the hand in the frame of the lower arm
MOTORS = ["shoulder", "elbow"]

arm = da.Mechanism("arm")
arm.body("upper", da.Rod(length=0.5, mass=2.0, radius=0.03), position=(0, 0, -0.25))
arm.body("lower", da.Rod(length=0.5, mass=1.0, radius=0.025), position=(0, 0, -0.75))
arm.joint("shoulder", da.Revolute(axis="y", drive="force", damping=0.05), arm.world, "upper", at=(0, 0, 0))
arm.joint("elbow", da.Revolute(axis="y", drive="force", damping=0.05), "upper", "lower", at=(0, 0, -0.5))


def reach(run: da.Trajectory):
    """Squares of what the hand misses its point by, and of the last velocities, with their derivatives."""
    turn = Rotation.from_quat(run.orientation[-1, 1], scalar_first=True)
    miss = run.position[-1, 1] + turn.apply(HAND) - POINT
    weights = {name: np.zeros((len(run), 2, 3)) for name in ("position", "orientation", "velocity")}
    weights["position"][-1, 1] = 2.0 * miss
    weights["orientation"][-1, 1] = 2.0 * np.cross(HAND, turn.inv().apply(miss))  # the hand moves by R (tangent x HAND)
    weights["velocity"][-1] = 0.2 * run.velocity[-1]
    return miss @ miss + 0.1 * np.sum(run.velocity[-1] ** 2), weights


f = da.value_and_gradient(arm, da.Variational(dt=DT), STEPS * DT, [f"{name}.input" for name in MOTORS], reach)


knots = np.linspace(0.0, STEPS - 1.0, 13)
HATS = np.kron(np.eye(2), np.stack([np.interp(np.arange(STEPS), knots, unit) for unit in np.eye(13)], axis=1))  # straight lines between


def objective(unknown: np.ndarray, weight: float) -> tuple[float, np.ndarray]:
    """Equation 3.82, with the weight of reaching the point; the square of a torque in a step weighs 0.001."""
    torques = HATS @ unknown
    value, gradient = f(torques)
    return float(weight * value + 1e-3 * torques @ torques), HATS.T @ (weight * gradient + 2e-3 * torques)


unknown = np.zeros(HATS.shape[1])
way = np.random.default_rng(0).normal(size=len(unknown))
ends = [objective(unknown + step * way, 1000.0)[0] for step in (1e-5, -1e-5)]
error = abs((ends[0] - ends[1]) / 2e-5 / (objective(unknown, 1000.0)[1] @ way) - 1.0)
print(f"the gradient by {len(unknown)} numbers against a difference of runs: {error:.0e}")
for weight in (10.0, 1000.0):  # first roughly, then strictly from there
    found = minimize(objective, unknown, args=(weight,), jac=True, method="BFGS", options={"gtol": 1e-3})
    unknown, torques = found.x, HATS @ found.x
    missed = 1e3 * np.sqrt(f(torques)[0])
    print(f"reaching weighs {weight:6g}: {found.nit} iterations, the hand misses by {missed:.2f} mm, |torques| = {np.linalg.norm(torques):.2f} N m")

run = f.run(torques)
largest = np.abs(torques).max()
x = run.position[-1, :, 0]
holding = 9.81 * (2.0 * x[0] + 1.0 * x[1])
print(f"at the end the shoulder would need {holding:.1f} N m to hold the arm; no torque is larger than {largest:.1f} N m")

Path("out").mkdir(exist_ok=True)
figure = new_figure("out/reaching.png", height=3.2)
left, right = figure.subplots(1, 2, width_ratios=(1.6, 1))
for k, (name, part) in enumerate(zip(MOTORS, torques.reshape(2, -1))):
    left.step(run.time[:-1], part, where="post", color=COLOURS[k], label=name)
hand = run.position[:, 1] + Rotation.from_quat(run.orientation[:, 1], scalar_first=True).apply(HAND)
right.plot(hand[:, 0], hand[:, 2], color=COLOURS[2])
right.plot(*POINT[[0, 2]], "o", color=COLOURS[1], clip_on=False)
right.set_aspect("equal")
finish_axis(left, "torque / N m")
finish_axis(right, "z / m")
left.set_xlabel("time / s")
right.set_xlabel("x / m")
add_legend(left)
finished(figure, "an arm reaches a point with the least torque", "out/reaching.png")
run.to_html("out/reaching.html")
if not (f(torques)[0] < 1e-6 and np.abs(found.jac).max() < 1e-2 and largest < holding and error < 1e-6):
    raise SystemExit("the hand did not find its way")
