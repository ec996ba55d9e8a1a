"""Gradients of a task by the adjoint method: against differences, against the numbers of the authors' task, and what they cost."""
from __future__ import annotations

import time as clock

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.studies.study import Report, study

#: the authors' task: torques in units of 1e5 dyn cm, objective and its gradient, verified by an independent simulation
TASK = {"p": (0.8, -0.5), "objective": 8149.820501996, "gradient": (5945.6447683, 20716.6266816)}
TARGET, TIP = np.array([10.0, 0.0, -10.0]), np.array([5.0, 0.0, 0.0])


def task(push: tuple[float, ...], gradient: bool = False) -> tuple[float, np.ndarray]:
    """Objective and gradient: the tip of two links on stiff joints shall be at the target in the end (RedMax eq. 3.82)."""
    sim = da.Simulation(da.zoo.redmax_scene(100, drive="force"), da.Reduced(dt=0.01, method="bdf1", tolerance=1e-12), energy_bound=None)
    names = ("joint 1", "joint 2")
    for name, value in zip(names, push):
        sim.set_input(name, 1e5 * value)
    run = sim.run(1.0, tape=gradient, progress=False)
    missed = run.point("body 2", TIP)[-1] - TARGET
    value = 0.005 * np.sum(np.square(push)) + 50.0 * missed @ missed
    if not gradient:
        return value, np.zeros(2)
    position, turn = np.zeros_like(run.position), np.zeros_like(run.position)
    position[-1, 1] = 100.0 * missed
    turn[-1, 1] = np.cross(TIP, Rotation.from_quat(run.orientation[-1, 1], scalar_first=True).inv().apply(100.0 * missed))
    found = run.vjp({"position": position, "orientation": turn}, [f"{name}.input" for name in names])
    return value, np.array([1e5 * found[f"{name}.input"].sum() + 0.01 * p for name, p in zip(names, push)])


def chain_gradient(n: int, method: str, checked: int) -> tuple[float, float, float]:
    """Error of a gradient by n stiffnesses along some directions; seconds for it, and for differences of as many runs as it has entries."""
    chain = da.zoo.pendulum(n, length=1.0 / n, mass=1.0 / n, radius=0.01)
    for joint in chain.joints:
        chain.change(joint.name, stiffness=0.05, damping=0.002)
    names = [f"{joint.name}.stiffness" for joint in chain.joints]

    def loss(run: da.Trajectory):
        weights = np.zeros_like(run.position)
        weights[-1, -1] = (0.0, 0.0, 1.0)
        return run.position[-1, -1, 2], {"position": weights}

    f = da.value_and_gradient(chain, da.Reduced(dt=0.005, method=method, tolerance=1e-12), 0.3, names, loss)
    f(f.x0)  # compiles what is not in the cache
    tick = clock.thread_time()
    gradient = f(f.x0)[1]
    adjoint = clock.thread_time() - tick
    tick, rng, error = clock.thread_time(), np.random.default_rng(n), 0.0
    for _ in range(checked):
        way = rng.normal(size=n)
        step = 1e-5 * way
        slope = (loss(f.run(f.x0 + step))[0] - loss(f.run(f.x0 - step))[0]) / 2e-5
        error = max(error, abs(slope - gradient @ way) / np.abs(gradient).sum())
    return error, adjoint, (clock.thread_time() - tick) / checked * n


@study("section 3.5", "gradients by the adjoint of BDF1 and BDF2 agree with differences, at a small part of their cost")
def adjoint_gradients(report: Report) -> None:
    value, gradient = task(TASK["p"], gradient=True)
    away = [np.eye(2)[k] * 1e-5 for k in range(2)]
    differences = [(task(TASK["p"] + step)[0] - task(TASK["p"] - step)[0]) / 2e-5 for step in away]
    rows = [("objective", value, TASK["objective"], "-")]
    rows += [(f"its derivative by torque {k + 1}", gradient[k], TASK["gradient"][k], differences[k]) for k in range(2)]
    report.table(("the authors' task", "adjoint", "reference", "differences"), rows, name="task")
    off = max(np.abs(gradient / TASK["gradient"] - 1.0).max(), abs(value / TASK["objective"] - 1.0))
    sizes, rows, errors, ratios = (5, 10) if report.quick else (5, 10, 20, 40), [], [], {}
    axis = report.axes("parameters", "processor time / s")
    for method in ("bdf1", "bdf2"):
        times = []
        for n in report.each(sizes, "size"):
            error, adjoint, differenced = chain_gradient(n, method, 2)
            rows.append((method.upper(), n, error, adjoint, differenced, differenced / adjoint))
            errors.append(error)
            times.append((adjoint, differenced))
            ratios[method, n] = differenced / adjoint
        axis.loglog(sizes, [a for a, _ in times], "o-", label=f"adjoint of {method.upper()}")
        axis.loglog(sizes, [d for _, d in times], "s--", label=f"differences, {method.upper()}")
    report.table(("method", "parameters", "error, relative", "adjoint / s", "differences / s", "ratio"), rows, name="chain")
    largest = min(ratios[method, sizes[-1]] for method in ("bdf1", "bdf2"))
    report.verdict(off < 1e-7 and max(errors) < 1e-5 and largest > 1.0, f"the authors' task to {off:.0e}; chains to {max(errors):.0e} of differences, which cost {largest:.1f} times as much at {sizes[-1]} parameters")
