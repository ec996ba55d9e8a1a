"""Cost per step of an n-link pendulum: against the hand-made yardstick and MuJoCo in the same run, its growth with n, and where it is chaotic."""
from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import dalembert as da
from benchmarks.comparison.work_precision import cost_at
from dalembert import zoo

STEPS, DT, TOLERANCE = 40, 0.01, 1e-10


def best(action, repeats: int) -> float:
    """Seconds of the fastest of several calls; ``action`` returns its own duration."""
    return min(action() for _ in range(repeats))


def our_seconds(n: int, joint: str = "revolute", repeats: int = 15, dt: float = DT) -> float:
    """Seconds per step of the compiled run, recording included."""
    mechanism = zoo.pendulum(n, joint=joint)
    sim = da.Simulation(mechanism, da.Variational(dt=dt, tolerance=TOLERANCE))
    engine: Any = sim._engine
    start, advance, spent = sim.state, engine.advance, []

    def timed(*arguments):
        tick = time.perf_counter()
        done = advance(*arguments)
        spent.append(time.perf_counter() - tick)
        return done

    engine.advance = timed  # the kernel alone: reading the run is paid by who reads it

    def once() -> float:
        spent.clear()
        sim.restore(start)
        sim.run(STEPS * dt)
        return sum(spent)

    return best(once, repeats) / STEPS


def yardstick() -> ModuleType | None:
    """The hand-made chain, where it lies beside the project."""
    path = Path(__file__).resolve().parents[2] / "shared" / "prototype" / "chain.py"
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location("chain", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["chain"] = module  # Numba looks for it there
    spec.loader.exec_module(module)
    return module


def yardstick_seconds(chain: ModuleType, n: int, repeats: int = 15) -> float:
    def once() -> float:
        bodies = chain.make(n)
        tick = time.perf_counter()
        chain.run(bodies, DT, 9.81, TOLERANCE, 20, STEPS)
        return time.perf_counter() - tick

    return best(once, repeats) / STEPS


def chaotic(formulation: da.Variational | da.Implicit, duration: float = 10.0) -> tuple[float, float]:
    """Seconds per step of 100 links until they have long been whipping about, the divided steps with all of their parts; share of those."""
    sim = da.Simulation(zoo.pendulum(100), formulation, energy_bound=None)
    start = sim.state
    sim.run(0.1 * duration, progress=False)

    def once() -> float:
        nonlocal divided
        sim.restore(start)
        tick = time.process_time()
        run = sim.run(duration, progress=False)
        divided = float(np.mean(run.substeps[1:] > 1))
        return time.process_time() - tick

    divided = 0.0
    return best(once, 3) / round(duration / formulation.dt), divided


def mujoco_chain(n: int, dt: float, integrator: str = "Euler") -> tuple[Any, Any, Any] | None:
    """The package, a model and its data: the same chain of hinges in MuJoCo, without contacts; None where it is not installed."""
    try:
        mujoco: Any = importlib.import_module("mujoco")
    except ImportError:
        return None
    spec = mujoco.MjSpec()
    spec.option.timestep = dt
    spec.option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    body = spec.worldbody
    for i in range(n):
        body = body.add_body(name=f"link {i}", pos=[float(i > 0), 0, 0])
        body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 1, 0])
        body.explicitinertial = True
        body.mass, body.ipos = 1.0, [0.5, 0, 0]
        body.inertia = [0.5 * 0.0025, (3 * 0.0025 + 1) / 12, (3 * 0.0025 + 1) / 12]
    model = spec.compile()
    return mujoco, model, mujoco.MjData(model)


def mujoco_seconds(n: int, repeats: int = 5, dt: float = DT, steps: int = STEPS, integrator: str = "Euler") -> float | None:
    """Seconds per step of that chain in MuJoCo."""
    chain = mujoco_chain(n, dt, integrator)
    if chain is None:
        return None
    mujoco, model, data = chain

    def once() -> float:
        mujoco.mj_resetData(model, data)
        tick = time.perf_counter()
        mujoco.mj_step(model, data, steps)
        return time.perf_counter() - tick

    return best(once, repeats) / steps


def at_equal_energy_error(n: int = 10, duration: float = 10.0) -> list[tuple[float, float, float]] | None:
    """Largest energy error (J) of some steps of ours, what they cost (s), and what an error as large costs with MuJoCo's RK4."""
    points = []
    for dt in (0.01, 0.005, 0.002, 0.001):
        chain = mujoco_chain(n, dt, "RK4")
        if chain is None:
            return None
        mujoco, model, data = chain
        model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        energies = []
        for _ in range(round(duration / dt)):
            mujoco.mj_step(model, data)
            energies.append(data.energy.sum())
        spent = mujoco_seconds(n, dt=dt, steps=len(energies), integrator="RK4")
        assert spent is not None
        points.append(dict(dt=dt, error=float(np.max(np.abs(np.array(energies) - energies[0]))), ms=1e3 * spent * len(energies)))
    found = []
    for dt in (0.01, 0.005, 0.002):
        sim = da.Simulation(zoo.pendulum(n), da.Variational(dt=dt, tolerance=TOLERANCE), energy_bound=None)
        start = sim.state
        energy = sim.run(duration, progress=False).energy().total
        error = float(np.max(np.abs(energy - energy[0])))

        def once(sim: da.Simulation = sim, start: da.State = start) -> float:
            sim.restore(start)
            tick = time.perf_counter()
            sim.run(duration, progress=False)
            return time.perf_counter() - tick

        theirs = cost_at(points, error)
        if theirs is not None:
            found.append((error, best(once, 5), 1e-3 * theirs["ms"]))
    return found


def main() -> list[dict]:
    """Rows: what, figure, bar."""
    sizes = (10, 100, 1000)
    ours = {n: our_seconds(n) for n in sizes}
    ball = {n: our_seconds(n, "spherical") for n in sizes}
    rows: list[dict] = [
        dict(what=f"pendulum({n}), revolute / spherical", figure=f"{ours[n] * 1e6:.0f} / {ball[n] * 1e6:.0f} us per step",
             bar="spherical cheaper", met=ball[n] < ours[n]) for n in sizes
    ]
    rows.append(dict(what="growth from n = 100 to n = 1000", figure=f"{ours[1000] / ours[100]:.1f} times", bar="below 12", met=ours[1000] / ours[100] < 12))
    chain = yardstick()
    if chain is not None:
        for n in sizes:
            ratio = ours[n] / yardstick_seconds(chain, n)
            rows.append(dict(what=f"pendulum({n}) / yardstick", figure=f"{ratio:.2f}", bar="1.5 at n = 100", met=n != 100 or ratio < 1.5))
    for n, dt, bar, good in (
        (10, 0.002, "at most 3 times slower", lambda r: r > 1 / 3), (100, DT, "", lambda r: True), (1000, DT, "at least 15 times faster", lambda r: r > 15),
    ):
        theirs = mujoco_seconds(n, dt=dt)
        if theirs is not None:
            ratio = theirs / (ours[n] if dt == DT else our_seconds(n, dt=dt))
            rows.append(dict(what=f"MuJoCo / dalembert, n = {n}, dt = {dt:g} s", figure=f"{ratio:.2f} ({theirs * 1e6:.1f} us in MuJoCo)", bar=bar, met=good(ratio)))
    for error, mine, theirs in at_equal_energy_error() or ():
        rows.append(dict(what=f"pendulum(10), 10 s with an energy error of {error:.2g} J, MuJoCo's RK4 / dalembert", figure=f"{theirs / mine:.2f}", bar="above 1", met=theirs > mine))
    for formulation in (da.Variational(dt=DT), da.Implicit(dt=DT)):
        spent, divided = chaotic(formulation)
        rows.append(dict(what=f"pendulum(100) over 10 s, {type(formulation).__name__}", figure=f"{spent * 1e6:.0f} us per step, {divided:.0%} of the steps divided", bar="", met=True))
    return rows


if __name__ == "__main__":
    np.set_printoptions(precision=3)
    for row in main():
        print(row)
