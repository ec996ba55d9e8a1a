"""Cost of gradients of chains of n revolute links in joint coordinates; and A and B of a 10-link chain against MuJoCo's in the same run, with both errors.

Times are of the processor, so that other work on the machine counts less.
"""
from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dalembert as da
from dalembert import zoo
from dalembert.gradients.names import all_names

DT = 0.005


def least(function: Callable[[], Any], repeats: int = 5) -> float:
    """Processor seconds of a function, the least of some calls."""
    spent = []
    for _ in range(repeats):
        tick = time.thread_time()
        function()
        spent.append(time.thread_time() - tick)
    return min(spent)


def gradient_cost(n: int, steps: int) -> tuple[float, float, float]:
    """Seconds of a run, of a run with a tape, and of the gradient of the tip's height at its end by all parameters of the chain."""
    mechanism, formulation = zoo.pendulum(n), da.Reduced(dt=DT)
    sim = da.Simulation(mechanism, formulation, energy_bound=None)
    sim.set_joint("joint 1", 0.5)
    start = sim.state

    def run(tape: bool) -> da.Trajectory:
        sim.restore(start)
        return sim.run(steps * DT, tape=tape)

    taped, names = run(True), all_names(mechanism, inputs=True)
    weights = np.zeros_like(taped.position)
    weights[-1, -1] = 0.0, 0.0, 1.0
    taped.vjp({"position": weights}, names)
    return least(lambda: run(False)), least(lambda: run(True)), least(lambda: taped.vjp({"position": weights}, names))


def gradient_rows() -> list[dict]:
    """A gradient with the run that it is of, in runs; and how its cost grows."""
    rows, per_step = [], {}
    for n, steps in ((10, 2000), (100, 750)):
        plain, taped, pulled = gradient_cost(n, steps)
        ratio = (taped + pulled) / plain
        per_step[n] = pulled / steps
        rows.append(dict(
            what=f"run and gradient by all {len(all_names(zoo.pendulum(n)))} parameters / run, n = {n}",
            figure=f"{ratio:.2f} ({1e6 * plain / steps:.0f}, {1e6 * taped / steps:.0f}, {1e6 * pulled / steps:.0f} us per step)", bar="below 2.5", met=ratio < 2.5,
        ))
    exponent = float(np.log10(per_step[100] / per_step[10]))
    rows.append(dict(what="cost exponent of the gradient, n = 10 to 100", figure=f"{exponent:.2f}", bar="below 1.1", met=exponent < 1.1))
    return rows


# ---- A and B


def our_matrices(n: int, method: str, steps: int = 200) -> tuple[float, float]:
    """Seconds per step for A and B along a run, beside the run itself, and their error: against the adjoint of single steps."""
    sim = da.Simulation(zoo.pendulum(n), da.Reduced(dt=DT, method=method, tolerance=1e-12), energy_bound=None)
    sim.set_joint("joint 1", 0.5, rate=1.0)
    start = sim.state
    run = sim.run(steps * DT, tape=True)
    found = run.step_jacobians()
    sim.restore(start)
    sim.run(10 * DT)
    single = sim.step_jacobian()
    return least(run.step_jacobians, 9) / steps, float(np.abs(found.state[10] - single.state).max())


def mujoco_matrices(n: int, centred: bool) -> tuple[float, float]:
    """The same of MuJoCo's ``mjd_transitionFD`` for its own Euler step, its error against sixth-order differences of that step."""
    mujoco: Any = importlib.import_module("mujoco")
    links = "".join(
        f'<body pos="0 0 {0 if k == 0 else -1}"><joint name="j{k}" type="hinge" axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05" mass="1" contype="0" conaffinity="0"/>' for k in range(n)
    )
    motors = "".join(f'<motor joint="j{k}"/>' for k in range(n))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{DT}"><flag eulerdamp="disable"/></option><worldbody>{links}{"</body>" * n}</worldbody><actuator>{motors}</actuator></mujoco>'
    )
    data = mujoco.MjData(model)
    data.qpos[0], data.qvel[0] = 0.5, 1.0
    for _ in range(10):
        mujoco.mj_step(model, data)
    q, v = data.qpos.copy(), data.qvel.copy()
    A, B = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, n))

    def stepped(numbers: np.ndarray) -> np.ndarray:
        data.qpos[:], data.qvel[:] = numbers[:n], numbers[n:]
        mujoco.mj_step(model, data)
        return np.concatenate([data.qpos, data.qvel])

    here, size = np.concatenate([q, v]), 3e-3
    stencil = ((1.0, 0.75), (2.0, -0.15), (3.0, 1.0 / 60.0))
    exact = np.array([sum(w / size * (stepped(here + k * size * e) - stepped(here - k * size * e)) for k, w in stencil) for e in np.eye(2 * n)]).T
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    spent = least(lambda: [mujoco.mjd_transitionFD(model, data, 1e-6, centred, A, B, None, None) for _ in range(20)], 15) / 20
    return spent, float(np.abs(A - exact).max())


def matrix_rows(n: int = 10) -> list[dict]:
    """A and B of a chain, ours by each method, beside MuJoCo's."""
    theirs = {centred: mujoco_matrices(n, centred) for centred in (False, True)}
    rows = [
        dict(what=f"A, B, n = {n}: mjd_transitionFD, {'centred' if centred else 'one-sided'}", figure=f"{1e6 * spent:.1f} us, error {error:.0e}", bar="", met=True)
        for centred, (spent, error) in theirs.items()
    ]
    for method in ("bdf1", "bdf2"):
        spent, error = our_matrices(n, method)
        for centred, (their_spent, _) in theirs.items():
            ratio = spent / their_spent
            rows.append(dict(
                what=f"  {method} / MuJoCo's, {'centred' if centred else 'one-sided'}", figure=f"{ratio:.2f} ({1e6 * spent:.1f} us, error {error:.0e})",
                bar="at most 0.4", met=ratio <= 0.4,
            ))
    return rows


def main() -> list[dict]:
    """Rows: what, figure, bar."""
    return gradient_rows() + matrix_rows()


if __name__ == "__main__":
    for row in main():
        print(f"{row['what']:60s} {row['figure']:55s} {row['bar']:14s} {'met' if row['met'] else 'MISSED'}")
