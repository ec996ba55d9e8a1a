"""``da.Batch`` against ``mujoco.rollout`` in one run: steps per second of a chain and of a quadruped on its feet, with the errors of both.

All are measured in turn, and the best and the median of several rounds are given. Besides the clock on the wall there is the time of the processor, which says
the same on a machine that does other things too.
"""
from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dalembert as da
from dalembert import zoo
from dalembert.zoo.quadruped import FOOT, GAINS, LEGS, SEGMENT, STANDING

N, ROUNDS, THREADS = 64, 25, 2
CHAIN_DT, LEGS_DT = 0.01, 0.002
EVERYONE = np.arange(N)


class Clock:
    """What one contender took: seconds on the wall and of the processor, per round."""

    def __init__(self, action: Callable[[], None], steps: int) -> None:
        self.action, self.steps = action, steps
        self.wall: list[float] = []
        self.processor: list[float] = []
        self.thread: list[float] = []

    def round(self) -> None:
        wall, processor, thread = time.perf_counter(), time.process_time(), time.thread_time()
        self.action()
        self.wall.append(time.perf_counter() - wall)
        self.processor.append(time.process_time() - processor)
        self.thread.append(time.thread_time() - thread)

    def __str__(self) -> str:
        best, middle = self.steps / min(self.processor), self.steps / statistics.median(self.processor)
        return f"{best:9.0f} steps/s of one core (median {middle:.0f}); on the wall {self.steps / min(self.wall):9.0f}"


# ---- MuJoCo


def chain_model(mujoco: Any, integrator: str) -> Any:
    """The chain of ``zoo.pendulum(10)``."""
    spec = mujoco.MjSpec()
    spec.option.timestep = CHAIN_DT
    spec.option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    spec.option.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    body = spec.worldbody
    for i in range(10):
        body = body.add_body(name=f"link {i}", pos=[float(i > 0), 0, 0])
        body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 1, 0])
        body.explicitinertial = True
        body.mass, body.ipos = 1.0, [0.5, 0, 0]
        body.inertia = [0.5 * 0.0025, (3 * 0.0025 + 1) / 12, (3 * 0.0025 + 1) / 12]
    model = spec.compile()
    model.opt.enableflags = 0  # energies are asked for at the end
    return model


def legs_model(mujoco: Any) -> tuple[Any, np.ndarray]:
    """The quadruped of ``zoo.quadruped``, standing; and its coordinates at the start."""
    spec = mujoco.MjSpec()
    spec.option.timestep = LEGS_DT
    angles = STANDING.angles(0.0, 0.0)
    height = SEGMENT * (np.cos(angles["thigh"]) + np.cos(angles["thigh"] + angles["calf"])) + FOOT
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[10, 10, 1], friction=[0.8, 0.005, 0.0001])

    def body(parent: Any, place: list[float], mass: float, inertia: list[float], centre: float = 0.0) -> Any:
        new = parent.add_body(pos=place)
        new.explicitinertial, new.mass, new.inertia, new.ipos = True, mass, inertia, [0, 0, centre]
        return new

    trunk = body(spec.worldbody, [0, 0, height], 4.713, [0.01684, 0.05658, 0.06479])
    trunk.add_freejoint()
    start = [0, 0, height, 1, 0, 0, 0]
    for x, y, _ in LEGS.values():
        hip = body(trunk, [0.1805 * x, 0.047 * y, 0], 0.696, [0.000469, 0.000807, 0.000553])
        thigh = body(hip, [0, 0.0838 * y, 0], 1.013, [0.005529, 0.005139, 0.001368], -0.03)
        calf = body(thigh, [0, 0, -SEGMENT], 0.226, [0.0042, 0.0042, 0.00004], -0.12)
        for part, where, axis in (("hip", hip, [1, 0, 0]), ("thigh", thigh, [0, 1, 0]), ("calf", calf, [0, 1, 0])):
            stiffness, damping = GAINS[part]
            where.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=axis, stiffness=stiffness, damping=damping, springref=np.degrees(angles[part]))
            start.append(angles[part])
        calf.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[FOOT, 0, 0], pos=[0, 0, -SEGMENT], friction=[0.8, 0.005, 0.0001], mass=0.0)
    return spec.compile(), np.array(start, dtype=float)


class Rollout:
    """Steps of MuJoCo by its own threads, from states that go on from call to call."""

    def __init__(self, mujoco: Any, model: Any, start: np.ndarray, threads: int) -> None:
        from mujoco import rollout  # type: ignore[import-not-found]

        self.mujoco, self.model, self.rollout = mujoco, model, rollout
        self.data = [mujoco.MjData(model) for _ in range(threads)]
        self.state = np.concatenate([np.zeros((len(start), 1)), start, np.zeros((len(start), model.nv))], axis=1)

    def run(self, steps: int) -> None:
        found, _ = self.rollout.rollout(self.model, self.data, self.state, nstep=steps, persistent_pool=True)
        self.state = np.ascontiguousarray(found[:, -1])

    def look(self, index: int) -> Any:
        """Data of one state, with its energy and contacts."""
        data = self.mujoco.MjData(self.model)
        self.mujoco.mj_setState(self.model, data, self.state[index], self.mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self.mujoco.mj_forward(self.model, data)
        self.mujoco.mj_energyPos(self.model, data)
        self.mujoco.mj_energyVel(self.model, data)
        return data


# ---- what is compared


def chain(mujoco: Any, rounds: int, steps: int = 50) -> None:
    tilt = np.linspace(0.0, 0.5, N)[:, None]
    clocks, ours, theirs = {}, {}, {}
    for name, formulation in (("Variational", da.Variational(dt=CHAIN_DT)), ("Reduced bdf2", da.Reduced(dt=CHAIN_DT)), ("Reduced rk4", da.Reduced(dt=CHAIN_DT, method="rk4")),
                              ("Reduced semi_implicit", da.Reduced(dt=CHAIN_DT, method="semi_implicit"))):
        for threads in (1, THREADS):
            batch = ours[name, threads] = da.Batch(zoo.pendulum(10), formulation, N, threads=threads)
            batch.reset(coordinates={"joint 1": tilt})
            clocks[name, threads] = Clock(lambda batch=batch: batch.step(steps=steps), N * steps)
    for integrator in ("EULER", "RK4") if mujoco else ():
        for threads in (1, THREADS):
            start = np.concatenate([tilt, np.zeros((N, 9))], axis=1)
            runner = theirs[integrator, threads] = Rollout(mujoco, chain_model(mujoco, integrator), start, threads)
            clocks[f"MuJoCo {integrator}", threads] = Clock(lambda runner=runner: runner.run(steps), N * steps)
    before = {key: batch.energy() for key, batch in ours.items()}
    first = {key: [runner.look(i).energy.sum() for i in range(N)] for key, runner in theirs.items()}
    race(clocks, rounds)
    scale = 10 * 9.81 * 5.0
    seconds = (rounds + 1) * steps * CHAIN_DT
    for key, batch in ours.items():
        sim = da.Simulation(zoo.pendulum(10), batch.formulation)
        sim.restore(batch.state(N - 1))
        drift = np.median(np.abs(batch.energy() - before[key])) / scale
        print(f"  {key}: energy off by {drift:.1e} of {scale:.0f} J after {seconds:g} s, joints open by {sim.latest().constraint_violation().max():.0e} m")
    for key, runner in theirs.items():
        drift = np.median([abs(runner.look(i).energy.sum() - e) for i, e in enumerate(first[key])]) / scale
        print(f"  MuJoCo {key}: energy off by {drift:.1e} of {scale:.0f} J after {seconds:g} s")
    verdicts(clocks, {"EULER": 0.4, "RK4": 1.0})


def legs(mujoco: Any, rounds: int, steps: int = 25) -> None:
    mechanism, angles = zoo.quadruped(), STANDING.angles(0.0, 0.0)
    push = {f"{leg} {part} joint": GAINS[part][0] * angles[part] for leg in LEGS for part in GAINS}
    clocks, ours, theirs = {}, {}, {}
    for threads in (1, THREADS):
        batch = ours["Variational", threads] = da.Batch(mechanism, da.Variational(dt=LEGS_DT), N, threads=threads)
        clocks["Variational", threads] = Clock(lambda batch=batch: batch.step(push, steps=steps), N * steps)
    for threads in (1, THREADS) if mujoco else ():
        model, start = legs_model(mujoco)
        runner = theirs[threads] = Rollout(mujoco, model, np.tile(start, (N, 1)), threads)
        clocks["MuJoCo EULER", threads] = Clock(lambda runner=runner: runner.run(steps), N * steps)
    race(clocks, rounds)
    seconds = (rounds + 1) * steps * LEGS_DT
    for key, batch in ours.items():
        calves = [mechanism[f"{leg} calf"].index for leg in LEGS]
        sim = da.Simulation(mechanism, batch.formulation)
        sim.restore(batch.state(0))
        from scipy.spatial.transform import Rotation

        feet = batch.position[0, calves] + Rotation.from_quat(batch.orientation[0, calves], scalar_first=True).apply([0, 0, 0.12 - SEGMENT])
        share = batch.contact_wrench[0, :, 2].sum() / (9.81 * mechanism.mass)
        print(f"  {key}: lowest foot {feet[:, 2].min() - FOOT:+.1e} m above the ground after {seconds:g} s, which carries {share:.3f} of the weight; failed {batch.failed.sum()}")
    for key, runner in theirs.items():
        data = runner.look(0)
        gaps = [data.contact[i].dist for i in range(data.ncon)]
        print(f"  MuJoCo {key}: lowest foot {min(gaps, default=np.nan):+.1e} m above the ground after {seconds:g} s, {data.ncon} contacts")
    verdicts(clocks, {"EULER": 0.2})


def overhead(rounds: int) -> None:
    """What ``Batch.step`` takes beside the kernels, one step at a time, all inputs given: the kernels' part of each call is timed inside it."""
    push = {f"{leg} {part} joint": np.zeros((N, 1)) for leg in LEGS for part in GAINS}
    for name, mechanism, inputs in (("chain", zoo.pendulum(10), None), ("quadruped", zoo.quadruped(), push)):
        batch = da.Batch(mechanism, da.Variational(dt=LEGS_DT), N, threads=1)
        for _ in range(30):
            batch.step(inputs)
        many: Any = batch._steppers[1, inputs is not None]._many
        kernels = Clock(lambda chosen=EVERYONE, call=many.call: call(chosen), N)
        many.call = lambda _, kernels=kernels: kernels.round()
        whole = Clock(lambda batch=batch, inputs=inputs: batch.step(inputs), N)
        for _ in range(20 * rounds):
            whole.round()
        beside = [outer - inner for outer, inner in zip(whole.processor, kernels.processor)]
        middle = statistics.median(beside) / statistics.median(kernels.processor)
        print(f"{name}: Batch.step takes {100 * min(beside) / min(kernels.processor):.1f} % more than its kernels at n = {N} (median {100 * middle:.1f} %); bar 10 %")


def race(clocks: dict[Any, Clock], rounds: int) -> None:
    """Measure all in turn."""
    for clock in clocks.values():
        clock.action()
    for _ in range(rounds):
        for clock in clocks.values():
            clock.round()
    for key, clock in clocks.items():
        print(f"{key[0]:24} {key[1]} threads: {clock}")


def verdicts(clocks: dict[Any, Clock], bars: dict[str, float]) -> None:
    """Ratios to MuJoCo's with as many threads, and how much two threads help."""
    names = list(dict.fromkeys(name for name, _ in clocks if not name.startswith("MuJoCo")))
    for name in names:
        one, two = clocks[name, 1], clocks[name, THREADS]
        shared = min(one.processor) / min(two.thread)
        print(f"{name}: {THREADS} threads are {min(one.wall) / min(two.wall):.2f} times one on the wall; the busiest thread does 1/{shared:.2f} of the work (bar 1.8)")
        for integrator, bar in bars.items():
            theirs = clocks.get((f"MuJoCo {integrator}", THREADS))
            if theirs is not None:
                ratio, middle = min(theirs.processor) / min(two.processor), statistics.median(theirs.processor) / statistics.median(two.processor)
                print(f"{name}: {ratio:.2f} of MuJoCo's steps per second with {integrator} (median {middle:.2f}; on the wall {min(theirs.wall) / min(two.wall):.2f}); bar {bar}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    try:
        import mujoco  # type: ignore[import-not-found]
    except ImportError:
        mujoco = None
        print("MuJoCo is not installed: dalembert alone")
    print(f"chain of 10 links, dt = {CHAIN_DT:g} s, {N} states")
    chain(mujoco, rounds)
    print(f"\nquadruped on its feet, dt = {LEGS_DT:g} s, {N} states")
    legs(mujoco, rounds)
    print()
    overhead(rounds)


if __name__ == "__main__":
    main()
