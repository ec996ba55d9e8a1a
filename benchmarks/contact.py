"""Contacts: time per step against MuJoCo in the same run, with both sides' penetration, and cost against size.

    python -m benchmarks.contact
"""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dalembert as da
from benchmarks.comparison.problems import heap
from dalembert import zoo
from dalembert.zoo.quadruped import GAINS, LEGS, WALKING


def measure(mechanism: da.Mechanism, dt: float, duration: float, control=None, repeats: int = 3) -> tuple[float, float]:
    """(best time per step in us, smallest gap in m); the first run, which compiles, does not count."""
    formulation = da.Variational(dt=dt)
    da.Simulation(mechanism, formulation).run(5 * dt, control=control)
    best, gap = np.inf, np.inf
    for _ in range(repeats):
        sim = da.Simulation(mechanism, formulation)
        start = time.perf_counter()
        trajectory = sim.run(duration, control=control)
        best = min(best, (time.perf_counter() - start) / (len(trajectory) - 1))
        gap = min(gap, float(trajectory.contacts().gap.min()))
    return 1e6 * best, gap


def mujoco_model(mechanism: da.Mechanism, dt: float) -> str:
    """The same bodies, ball joints and ground in MJCF, default solver parameters."""
    ground = mechanism.grounds[0]
    children: dict[str, list] = {}
    for joint in mechanism.joints:
        children.setdefault(joint.parent.name, []).append(joint)
    roots = [b for b in mechanism.bodies if not any(j.child is b for j in mechanism.joints)]

    def body(b, origin: np.ndarray, joint: str) -> str:
        here = b.position
        geometry = {"Sphere": lambda s: f'type="sphere" size="{s.radius}"', "Box": lambda s: 'type="box" size="{} {} {}"'.format(*(0.5 * np.array(s.size)))}
        text = f'<body pos="{_text(here - origin)}">{joint}<geom {geometry[type(b.shape).__name__](b.shape)} mass="{b.mass}" friction="{ground.friction} 0 0"/>'
        for j in children.get(b.name, []):
            at = j.parent.position + j.point_parent - j.child.position
            text += body(j.child, here, f'<joint type="ball" pos="{_text(at)}"/>')
        return text + "</body>"

    bodies = "".join(body(b, np.zeros(3), "<freejoint/>") for b in roots)
    return (f'<mujoco><option timestep="{dt}"/><worldbody><geom type="plane" size="0 0 1" friction="{ground.friction} 0 0"/>{bodies}</worldbody></mujoco>')


def _text(v: np.ndarray) -> str:
    return " ".join(f"{x:.12g}" for x in v)


def measure_mujoco(mechanism: da.Mechanism, dt: float, duration: float) -> tuple[float, float]:
    """(time per step in us, smallest distance of any contact in m), or NaN when MuJoCo's state diverges."""
    import mujoco as library

    mujoco: Any = library

    model = mujoco.MjModel.from_xml_string(mujoco_model(mechanism, dt))
    data = mujoco.MjData(model)
    steps, gap, spent = round(duration / dt), np.inf, 0.0
    for _ in range(steps):
        start = time.perf_counter()
        mujoco.mj_step(model, data)
        spent += time.perf_counter() - start
        gap = min(gap, float(data.contact.dist.min())) if data.ncon else gap
        if data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number:
            return float("nan"), gap
    return 1e6 * spent / steps, gap


def quadruped_model(dt: float) -> str:
    """The walking quadruped in MJCF: the same bodies, hinges, joint springs and dampers, feet and ground."""
    mechanism = zoo.quadruped(gait=WALKING)
    ground, feet = mechanism.grounds[0], {p.body.name: p for p in mechanism.contact_points}
    below: dict[str, list] = {}
    for joint in mechanism.joints:
        below.setdefault(joint.parent.name, []).append(joint)

    def body(b: Any, origin: np.ndarray, joint: str) -> str:
        text = f'<body pos="{_text(b.position - origin)}">{joint}<inertial pos="0 0 0" mass="{b.mass}" diaginertia="{_text(np.diag(b.inertia))}"/>'
        if b.name in feet:
            foot = feet[b.name]
            text += f'<geom type="sphere" pos="{_text(foot.point)}" size="{foot.radius}" friction="{ground.friction} 0 0" mass="0"/>'
        for j in below.get(b.name, []):
            hinge = f'<joint name="{j.name}" axis="{_text(j.type.basis[:, 0])}" pos="{_text(j.point_child)}" stiffness="{j.type.stiffness[0]}" damping="{j.type.damping[0]}"/>'
            text += body(j.child, b.position, hinge)
        return text + "</body>"

    trunk = body(mechanism["trunk"], np.zeros(3), "<freejoint/>")
    motors = "".join(f'<motor joint="{j.name}"/>' for j in mechanism.joints)
    return (f'<mujoco><option timestep="{dt}"/><worldbody><geom type="plane" size="0 0 1" friction="{ground.friction} 0 0"/>{trunk}</worldbody>'
            f"<actuator>{motors}</actuator></mujoco>")


def measure_mujoco_quadruped(dt: float, duration: float) -> tuple[float, float, float]:
    """(time per step in us, smallest distance of any contact in m, way walked in m) of the same gait in MuJoCo."""
    import mujoco as library

    mujoco: Any = library
    model = mujoco.MjModel.from_xml_string(quadruped_model(dt))
    data = mujoco.MjData(model)
    names = [model.joint(i).name for i in range(1, model.njnt)]
    places = [(leg, part) for leg in LEGS for part in GAINS if f"{leg} {part} joint" in names]
    for leg, part in places:
        data.joint(f"{leg} {part} joint").qpos[0] = WALKING.angles(0.0, LEGS[leg][2])[part]
    steps, gap, spent = round(duration / dt), np.inf, 0.0
    for k in range(steps):
        for i, name in enumerate(names):
            leg, part = name.removesuffix(" joint").rsplit(" ", 1)
            data.ctrl[i] = GAINS[part][0] * WALKING.angles(k * dt, LEGS[leg][2])[part]
        start = time.perf_counter()
        mujoco.mj_step(model, data)
        spent += time.perf_counter() - start
        gap = min(gap, float(data.contact.dist.min())) if data.ncon else gap
    return 1e6 * spent / steps, gap, float(np.hypot(data.qpos[0], data.qpos[1]))


def tumbling_boxes(count: int) -> da.Mechanism:
    """Boxes of any orientation above one another, which fall into a heap."""
    rng = np.random.default_rng(3)
    mechanism = da.Mechanism("tumbling boxes")
    mechanism.ground(friction=0.5)
    for i in range(count):
        layer, k = divmod(i, 9)
        turn = rng.normal(size=4)
        place = 0.2 * (k % 3) - 0.2 + rng.uniform(-0.02, 0.02), 0.2 * (k // 3) - 0.2 + rng.uniform(-0.02, 0.02), 0.15 + 0.2 * layer
        box = da.Box(size=(0.1, 0.12, 0.08), mass=1.0)
        mechanism.body(f"box {i}", box, position=place, orientation=turn / np.linalg.norm(turn), collide=True)
    return mechanism


def phases(name: str, mechanism: da.Mechanism, dt: float, lengths: tuple[float, ...]) -> None:
    """Processor time per step in one part of a run after the other, with iterations, parts of steps and the least gap."""
    sim = da.Simulation(mechanism, da.Variational(dt=dt))
    sim.run(2 * dt)
    for length in lengths:
        start = time.process_time()
        run = sim.run(length)
        spent = (time.process_time() - start) / (len(run) - 1)
        print(
            f"{name}, until {sim.time:.2f} s: {1e3 * spent:.2f} ms/step, {run.iterations[1:].mean():.1f} iterations, "
            f"{run.substeps[1:].mean():.2f} parts, least gap {run.contacts().gap.min():.1e} m"
        )


def quadruped_kernel(dt: float, duration: float) -> float:
    """Time per step in us of a walk's kernels alone, without the controller in Python beside which they run."""
    sim = da.Simulation(zoo.quadruped(gait=WALKING), da.Variational(dt=dt))
    sim.run(5 * dt, control=zoo.leg_controller())
    engine: Any = sim.engine
    steps, spent = engine._run_steps, 0.0

    def timed(*arguments: Any) -> Any:
        nonlocal spent
        start = time.perf_counter()
        outcome = steps(*arguments)
        spent += time.perf_counter() - start
        return outcome

    engine._run_steps = timed
    run = sim.run(duration, control=zoo.leg_controller())
    return 1e6 * spent / (len(run) - 1)


def compare(name: str, make: Callable[[], da.Mechanism], dt: float, duration: float) -> None:
    ours, our_gap = measure(make(), dt, duration)
    theirs, their_gap = measure_mujoco(make(), dt, duration)
    print(f"{name:18s} {ours:9.1f} {theirs:9.1f} {ours / theirs:7.1f}   {our_gap:10.1e} {their_gap:10.1e}")


def main() -> None:
    print(f"{'':18s} {'us/step':>9s} {'MuJoCo':>9s} {'ratio':>7s}   {'least gap':>10s} {'MuJoCo':>10s}  (m)")
    compare("box drop", zoo.box_drop, 0.01, 2.0)
    for n in (10, 40, 100):
        compare(f"sphere chain {n}", lambda n=n: zoo.sphere_chain(n), 0.01, 5.0)
    phases("heap of 30 spheres", heap(30), 0.005, (1.0, 1.0, 1.0))
    for count in (30, 100):
        phases(f"heap of {count} boxes", tumbling_boxes(count), 0.005, (0.5, 0.5, 0.5, 1.0))
    for dt in (0.005, 0.001):
        print(f"quadruped walking, dt = {dt}, kernels alone: {quadruped_kernel(dt, 2.0):.1f} us/step")
        spent, gap = measure(zoo.quadruped(gait=WALKING), dt, 5.0, zoo.leg_controller())
        theirs, their_gap, way = measure_mujoco_quadruped(dt, 5.0)
        print(
            f"quadruped walking, dt = {dt}: {spent:.1f} us/step with its Python controller, {1e6 * dt / spent:.1f} times real time, least gap "
            f"{gap:.1e} m; MuJoCo {theirs:.1f} us/step without its controller (ratio {spent / theirs:.1f}), least gap {their_gap:.1e} m, walks {way:.2f} m"
        )
    for name, make in (("cylinder, contacts", zoo.contact_cylinder), ("snake, links", zoo.snake)):
        costs = {n: measure(make(n), 0.01, 2.0, repeats=5)[0] / n for n in (2, 10, 30, 100)}
        print(f"{name}: us per step and unit " + ", ".join(f"{n}: {c:.2f}" for n, c in costs.items()) + f"; 100 against 10: {costs[100] / costs[10]:.2f}")


if __name__ == "__main__":
    main()
