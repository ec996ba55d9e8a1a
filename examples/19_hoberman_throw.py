"""A Hoberman sphere is thrown so that it arrives at a given pose at a given time: BFGS with the adjoint finds the throw.

240 rods, 420 joints, 547 redundant rows: rigid motions and one opening are all that is left of its freedom. Unknown are the six
initial velocities, the opening and its rate; the target is where all the rods shall be after half a second. After figure 13 of
Maloisel et al. (2025). Draws the objective by iteration for three targets, out/hoberman_throw.png, and writes the last throw,
at which the sphere nearly closes, to out/hoberman_throw.html.
"""
from pathlib import Path

import numpy as np
from scipy.optimize import OptimizeResult, minimize

import dalembert as da
from dalembert.view.plots import COLOURS, add_legend, finish_axis, finished, new_figure

DURATION, SIZE = 0.5, 0.9  # s; m, the sphere's diameter at its start
UNKNOWN = ["throw.start_rate", "outer 0.start", "outer 0.start_rate"]
#: throws that reach the targets, which the optimiser does not know: velocity (m/s), spin (rad/s), opening (rad) and its rate
THROWS = {
    "far": (2.0, 0.5, 2.5, 0.0, 1.0, 0.5, 0.10, 0.4),
    "spinning": (1.0, 0.0, 3.0, 0.5, -1.0, 2.0, -0.05, -0.5),
    "closing": (-0.5, 1.5, 2.6, 0.6, 0.3, -1.0, 0.20, 1.0),
}
#: how curved the objective is along each of the unknowns, roughly
CURVATURE = [0.5] * 3 + [0.125] * 3 + [1.0, 1.0]

sphere = da.zoo.hoberman_sphere(opening=0.9, gravity=(0, 0, -9.81))
sphere.joint("throw", da.Free(), sphere.world, "rod 0", at=(0, 0, 0))  # holds nothing: its rates are the velocities of the sphere


def arriving(target: np.ndarray):
    """The mean square of the rods' distances from where they shall be, as a function of the throw."""
    def loss(run: da.Trajectory):
        miss = run.position[-1] - target
        weights = np.zeros_like(run.position)
        weights[-1] = 2.0 * miss / len(miss)
        return np.mean(np.sum(miss**2, axis=1)), {"position": weights}

    method = da.Variational(dt=0.05, tolerance=1e-12)
    return da.value_and_gradient(sphere, method, DURATION, UNKNOWN, loss, setup=lambda sim: sim.set_joint("throw", np.zeros(6)))


def gradient_error(f, x: np.ndarray) -> float:
    """Relative, along the gradient itself, against a difference of runs."""
    gradient = f(x)[1]
    size = float(np.linalg.norm(gradient))
    ends = [f.loss(f.run(x + step * gradient / size))[0] for step in (1e-5, -1e-5)]
    return abs((ends[0] - ends[1]) / 2e-5 / size - 1.0)


def watch(intermediate_result: OptimizeResult) -> None:
    """Keeps the objective, and stops the optimiser when the rods are near enough."""
    history.append(intermediate_result.fun)
    if history[-1] < (2e-4 * SIZE) ** 2:
        raise StopIteration


figure = new_figure("out/hoberman_throw.png", height=3.2)
axis = figure.subplots()
history: list[float] = []
worst_miss = worst_error = 0.0
print("target      iterations   farthest rod from its place   error of the gradient at start and end")
for k, (name, throw) in enumerate(THROWS.items()):
    target = arriving(np.zeros((240, 3))).run(throw).position[-1]
    f = arriving(target)
    history[:] = [f.loss(f.run(f.x0))[0]]
    found = minimize(f, f.x0, jac=True, method="BFGS", callback=watch, options={"maxiter": 30, "hess_inv0": np.diag(1.0 / np.array(CURVATURE))})
    run = f.run(found.x)
    miss = np.linalg.norm(run.position[-1] - target, axis=1).max() / SIZE
    errors = [gradient_error(f, f.x0), gradient_error(f, found.x)]
    print(f"{name:12}{len(history) - 1:10d}{miss:20.1e} of the size{errors[0]:22.0e}{errors[1]:9.0e}")
    worst_miss, worst_error = max(worst_miss, miss), max(worst_error, *errors)
    axis.semilogy(history, "o-", markersize=3, color=COLOURS[k], label=name)

Path("out").mkdir(exist_ok=True)
finish_axis(axis, "objective / m$^2$")
axis.set_xlabel("iteration")
add_legend(axis)
finished(figure, "throws of a Hoberman sphere to three poses", "out/hoberman_throw.png")
run.to_html("out/hoberman_throw.html")
if not (worst_miss < 1e-3 and worst_error < 1e-4):
    raise SystemExit("a throw misses its target, or its gradient is wrong")
