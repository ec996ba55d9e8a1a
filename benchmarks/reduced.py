"""Cost of a step in joint coordinates, n revolute links: against MuJoCo in the same run, at equal error of the energy, and its growth with n.

Times are of the processor, so that other work on the machine counts less.
"""
from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np

import dalembert as da
from dalembert import zoo

SECONDS, DT = 1.0, 0.002


class Timed:
    """A simulation that runs again and again from its start; the clock sees its kernels alone, recording included."""

    def __init__(self, n: int, method: str, dt: float) -> None:
        self.sim, self.dt, self.spent = da.Simulation(zoo.pendulum(n), da.Reduced(dt=dt, method=method), energy_bound=None), dt, 0.0
        self.start, self.engine = self.sim.state, self.sim._engine
        advance = self.engine.advance

        def timed(*arguments: Any) -> int:
            tick = time.thread_time()
            done = advance(*arguments)
            self.spent += time.thread_time() - tick
            return done

        self.engine.advance = timed  # type: ignore[method-assign]
        self.sim.run(4 * dt)

    def run(self, seconds: float) -> tuple[float, Any]:
        """Seconds per step, and the trajectory."""
        self.sim.restore(self.start)
        self.spent = 0.0
        run = self.sim.run(seconds)
        return self.spent / (len(run) - 1), run


def our_seconds(n: int, method: str, steps: int, repeats: int = 7) -> float:
    """Seconds per step."""
    timed = Timed(n, method, DT)
    return min(timed.run(steps * DT)[0] for _ in range(repeats))


def our_error(n: int, dt: float, seconds: float) -> tuple[float, float]:
    """Largest error of the energy (J), and seconds of computing, of rk4."""
    timed = Timed(n, "rk4", dt)
    spent, run = min((timed.run(seconds) for _ in range(5)), key=lambda found: found[0])
    energy = run.energy().total
    return float(np.abs(energy - energy[0]).max()), spent * (len(run) - 1)


def mujoco_chain(n: int, dt: float, method: str) -> tuple[Any, Any, Any]:
    """The same chain of hinges in MuJoCo, without contacts."""
    mujoco: Any = importlib.import_module("mujoco")
    spec = mujoco.MjSpec()
    spec.option.timestep = dt
    spec.option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{method}")
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    spec.option.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY) if method == "RK4" else 0
    body = spec.worldbody
    for i in range(n):
        body = body.add_body(name=f"link {i}", pos=[float(i > 0), 0, 0])
        body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 1, 0])
        body.explicitinertial = True
        body.mass, body.ipos = 1.0, [0.5, 0, 0]
        body.inertia = [0.5 * 0.0025, (3 * 0.0025 + 1) / 12, (3 * 0.0025 + 1) / 12]
    model = spec.compile()
    return mujoco, model, mujoco.MjData(model)


def mujoco_seconds(n: int, steps: int, repeats: int = 7) -> float:
    """Seconds per step of its Euler."""
    mujoco, model, data = mujoco_chain(n, DT, "EULER")

    def once() -> float:
        mujoco.mj_resetData(model, data)
        tick = time.thread_time()
        mujoco.mj_step(model, data, steps)
        return time.thread_time() - tick

    return min(once() for _ in range(repeats)) / steps


def mujoco_error(n: int, dt: float, seconds: float) -> tuple[float, float]:
    """Largest error of the energy (J), and seconds of computing, of its RK4; the clock runs without the energy."""
    mujoco, model, data = mujoco_chain(n, dt, "RK4")
    steps, energy = round(seconds / dt), []
    for _ in range(steps + 1):
        mujoco.mj_forward(model, data)  # the energy after a step is that of its last stage
        energy.append(float(data.energy.sum()))
        mujoco.mj_step(model, data)
    model.opt.enableflags = 0

    def once() -> float:
        mujoco.mj_resetData(model, data)
        tick = time.thread_time()
        mujoco.mj_step(model, data, steps)
        return time.thread_time() - tick

    return float(np.abs(np.array(energy) - energy[0]).max()), min(once() for _ in range(5))


def cable_through_a_chain(n: int = 30, stiffness: float = 1e6) -> da.Mechanism:
    """A chain of ``n`` links of 1 kg and 1 m that falls, with a cable (N/m) along it, off its axis, that only pulls."""
    mechanism = zoo.pendulum(n)
    points: list[tuple[Any, Any]] = [(mechanism.world, (0.0, 0.0, 0.1))]
    points += [(body, np.add(body.position, (0.0, 0.0, 0.1))) for body in mechanism.bodies]
    mechanism.cable("cable", points, stiffness=stiffness)
    return mechanism


def cable_figures(dt: float = 0.01, seconds: float = 5.0) -> tuple[float, float, float]:
    """Newton iterations per step, least tension (N), and the rise of the energy, as a part of the kinetic energy of the fall."""
    run = da.Simulation(cable_through_a_chain(), da.Reduced(dt=dt), energy_bound=None).run(seconds)
    energy = run.energy().total
    return float(run.iterations[1:].mean()), float(run.path("cable").tension.min()), float((energy - energy[0]).max() / run.energy().kinetic.max())


def main() -> list[dict]:
    """Rows: what, figure, bar."""
    steps = {10: 500, 100: 200, 1000: 50}
    ours = {n: our_seconds(n, "semi_implicit", count) for n, count in steps.items()}
    rows = [dict(what=f"semi_implicit, n = {n}", figure=f"{1e6 * ours[n]:.1f} us per step", bar="", met=True) for n in steps]
    exponent = float(np.log10(ours[1000] / ours[100]))
    rows.append(dict(what="cost exponent, n = 100 to 1000", figure=f"{exponent:.2f}", bar="below 1.1", met=exponent < 1.1))
    for n, most in ((10, 2.0), (100, 1.0)):
        theirs = mujoco_seconds(n, steps[n])
        ratio = ours[n] / theirs
        rows.append(dict(what=f"semi_implicit / MuJoCo's Euler, n = {n}", figure=f"{ratio:.2f} ({1e6 * theirs:.1f} us)", bar=f"below {most:g}", met=ratio < most))
    for n, dt, seconds in ((10, DT, SECONDS), (100, 0.001, 0.2)):
        (error, spent), (their_error, their_spent) = our_error(n, dt, seconds), mujoco_error(n, dt, seconds)
        # both are of fourth order: what we would take at MuJoCo's error
        ratio = spent * (error / their_error) ** 0.25 / their_spent
        rows.append(dict(
            what=f"rk4 / MuJoCo's RK4 at equal energy error, n = {n}", figure=f"{ratio:.2f} (errors {error:.1e} and {their_error:.1e} J)",
            bar="below 1", met=ratio < 1.0,
        ))
    return rows + implicit_rows(steps)


def implicit_rows(steps: dict[int, int]) -> list[dict]:
    """BDF2: cost of a step, and a stiff cable."""
    ours = {n: our_seconds(n, "bdf2", count) for n, count in steps.items()}
    rows = [dict(what=f"bdf2, n = {n}", figure=f"{1e6 * ours[n]:.1f} us per step", bar="", met=True) for n in steps]
    exponent = float(np.log10(ours[1000] / ours[100]))
    rows.append(dict(what="bdf2: cost exponent, n = 100 to 1000", figure=f"{exponent:.2f}", bar="below 1.1", met=exponent < 1.1))
    iterations, tension, rise = cable_figures()
    rows.append(dict(what="bdf2, 30 links, cable of 1e6 N/m: iterations per step", figure=f"{iterations:.2f}", bar="below 6", met=iterations < 6.0))
    rows.append(dict(what="  least tension", figure=f"{tension:.2g} N", bar="not below 0", met=tension >= 0.0))
    rows.append(dict(what="  rise of the energy", figure=f"{rise:.1%}", bar="below 1 %", met=rise < 0.01))
    return rows


if __name__ == "__main__":
    for row in main():
        print(f"{row['what']:55s} {row['figure']:45s} {row['bar']:20s} {'met' if row['met'] else 'MISSED'}")
