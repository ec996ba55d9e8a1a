"""Friction, damping and a load of an arm found from a noisy recording by ensembles, without any derivative.

Forty guesses are run at once, and moved by the covariance between numbers and recordings towards what was measured (ensemble Kalman inversion);
four times, each time trusting the recording by another quarter. What is left of the spread says how well each number is known. Draws
out/ensemble_fit.png.
"""
from pathlib import Path

import numpy as np

import dalembert as da
from dalembert.view.plots import COLOURS, INK, finish_axis, finished, new_figure

TIME, NOISE, ROUNDS, MEMBERS = 1.5, 0.003, 4, 40  # s, rad
TRUE = {"shoulder.damping": 0.08, "shoulder.friction": 0.25, "lower.mass": 0.7}
GUESS = {"shoulder.damping": 0.15, "shoulder.friction": 0.15, "lower.mass": 0.45}
arm = da.Mechanism("arm")
arm.body("upper", da.Rod(length=0.5, mass=1.0, radius=0.03), position=(0, 0, -0.25))
arm.body("lower", da.Rod(length=0.4, mass=0.4, radius=0.03), position=(0, 0, -0.7))
arm.joint("shoulder", da.Revolute(axis="y", friction=0.1), arm.world, "upper", at=(0, 0, 0))
arm.joint("elbow", da.Revolute(axis="y", damping=0.03), "upper", "lower", at=(0, 0, -0.5))
arm.start("shoulder", 1.2)


def angles(run: da.Trajectory) -> np.ndarray:
    """Both angles, twenty times a second."""
    return np.concatenate([run.joint(name).coordinates[::5] for name in ("shoulder", "elbow")])


rng = np.random.default_rng(1)
real = da.Simulation(arm, da.Variational(dt=0.01))
real.set_parameters(TRUE)
recording = angles(real.run(TIME))
recording += NOISE * rng.normal(size=recording.shape)

x = np.log(list(GUESS.values()))[:, None] + 0.6 * rng.normal(size=(3, MEMBERS))  # logarithms: no number becomes negative
history = [np.exp(x)]
for _ in range(ROUNDS):
    ensemble = da.run_many(arm, da.Variational(dt=0.01), TIME, parameters=dict(zip(TRUE, np.exp(x))), grid=False, reduce=angles)
    good = ensemble.successful
    y, x = ensemble.results["value"][good].T, x[:, good]
    dx, dy = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    weight = ROUNDS * NOISE**2
    gain = dx @ dy.T @ np.linalg.inv(dy @ dy.T + (len(dx.T) - 1) * weight * np.eye(len(y)))
    x = x + gain @ (recording[:, None] + np.sqrt(weight) * rng.normal(size=y.shape) - y)
    history.append(np.exp(x))

true, found = np.array(list(TRUE.values())), history[-1]
for name, value, members in zip(TRUE, true, found):
    print(f"{name:20} true {value:.3f}, found {members.mean():.4f} +- {members.std():.4f}, guessed {GUESS[name]:.2f}")

Path("out").mkdir(exist_ok=True)
figure = new_figure("out/ensemble_fit.png", height=3.0)
for axis, k in zip(figure.subplots(1, 3), range(3)):
    for number, members in enumerate(history):
        axis.plot(number + 0.15 * rng.uniform(-1, 1, len(members[k])), members[k], ".", color=COLOURS[0], markersize=3, alpha=0.6)
    axis.axhline(true[k], color=COLOURS[1])
    axis.set_xlabel("round", color=INK)
    axis.set_yscale("log")
    finish_axis(axis, list(TRUE)[k])
finished(figure, "numbers of an arm, from forty guesses to what was measured", "out/ensemble_fit.png")
if not np.all(np.abs(found.mean(axis=1) / true - 1) < 0.05):
    raise SystemExit("the numbers were not found")
