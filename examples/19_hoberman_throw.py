"""A Hoberman sphere is thrown so that it arrives at a given place, attitude and opening: BFGS with the adjoint finds the throw.

240 rods, 420 joints, 547 redundant rows: a rigid motion and one opening are all that is left of its freedom. Unknown are the six
initial velocities, the opening and its rate; the target is where all the rods shall be after half a second. After figure 13 of
Maloisel et al. (2025). Draws the objective by iteration for three targets, out/hoberman_objective.png, writes the third throw to
out/hoberman_throw.html and draws it, out/hoberman_throw.png.
"""
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import dalembert as da
from dalembert.view.plots import COLOURS, add_legend, finish_axis, finished, new_figure

DURATION, SIZE = 0.5, 1.0  # s; m, the diameter of the sphere, roughly
NAMES = ["throw.start_rate", "outer 0.start", "outer 0.start_rate"]
#: throws that reach the targets, which the optimiser does not know: velocity, spin (one rod's), opening and its rate
THROWS = {
    "far": (2.0, 0.5, 2.5, 0.0, 1.0, 0.5, 0.10, 0.4),
    "spinning": (1.0, 0.0, 3.0, 0.5, -1.0, 2.0, -0.05, -0.5),
    "wide open": (-0.5, 1.5, 2.6, 0.6, 0.3, -1.0, -0.20, -1.0),
}
sphere = da.zoo.hoberman_sphere(opening=0.9, gravity=(0, 0, -9.81))
sphere.joint("throw", da.Free(), sphere.world, "rod 0")  # holds nothing: its rates are the velocity of a rod
method = da.Variational(dt=0.05)


def reach(target: np.ndarray):
    """The mean square of the distances of the rods from their targets, with its derivative."""
    def loss(run: da.Trajectory):
        miss = run.position[-1] - target
        weights = np.zeros_like(run.position)
        weights[-1] = 2.0 * miss / len(miss)
        return np.mean(np.sum(miss**2, axis=1)), {"position": weights}

    return da.value_and_gradient(sphere, method, DURATION, NAMES, loss, setup=lambda sim: sim.set_joint("throw", np.zeros(6)))


def gradient_error(f, x: np.ndarray) -> float:
    """Of the adjoint along its own direction, against a difference of the runs."""
    value, gradient = f(x)
    along = gradient / np.linalg.norm(gradient)
    ends = [f.loss(f.run(x + step * along))[0] for step in (1e-5, -1e-5)]
    return abs((ends[0] - ends[1]) / 2e-5 - np.linalg.norm(gradient)) / np.linalg.norm(gradient)


import time
Path("out").mkdir(exist_ok=True)
figure = new_figure("out/hoberman_objective.png", height=3.2)
axis = figure.subplots()
print("target        iterations   miss / m  gradient's error at start, end")
best = None
for k, (name, throw) in enumerate(THROWS.items()):
    f = reach(np.zeros((240, 3)))
    f = reach(f.run(np.array(throw)).position[-1])
    t=time.time()
    values, cnt = [f(f.x0)[0]], [0]
    def g(x): cnt[0]+=1; return f(x)
    found = minimize(g, f.x0, jac=True, method="BFGS", callback=lambda intermediate_result: values.append(intermediate_result.fun), options={"maxiter": 30, "gtol": 1e-7})
    print(time.time()-t, cnt, values)
    miss = np.linalg.norm(f.run(found.x).position[-1] - f.run(np.array(throw)).position[-1], axis=1).max()
    print(name, found.nit, miss, found.x-np.array(throw), gradient_error(f, f.x0), gradient_error(f, found.x))
