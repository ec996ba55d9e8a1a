"""Robots with all the contacts of their files against MuJoCo, in one run: standing on servos, fallen, closed hands; parts of a robot touch one another too.

    python benchmarks/robots.py [name ...] [--profile]

MuJoCo has the same bodies, limits, servos, hulls and pairs, made from our mechanism. Both take steps of the same length.
"""
from __future__ import annotations

import cProfile
import pstats
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

import dalembert as da
from benchmarks.comparison.problems import ROBOT_DATA, on_servos, robot_file
from benchmarks.comparison.scene import describe
from benchmarks.peers.mujoco import MujocoModel

DT = 0.005
#: s that a scene is left to itself before it is measured, and s of each of the parts of which the fastest counts
SETTLE, PART, PARTS = 1.5, 0.25, 3
#: a step is divided into so many halves of halves before a scene counts as failed
HALVINGS = 6
#: bars: our time over MuJoCo's, and over the time that passes
RATIO, REAL = 5.0, 1.0


def loaded(relative: str, base: str, srdf: str | None = None, **options: object) -> da.Mechanism:
    """A robot all of whose parts touch one another, but for those that its SRDF file, or overlaps at the start, keep apart."""
    given = dict(self_collisions=True) if srdf is None else dict(srdf=robot_file(f"{ROBOT_DATA}/{srdf}"))
    return da.load(robot_file(f"{ROBOT_DATA}/{relative}"), base=base, merge_fixed=True, **given, **options)  # type: ignore[arg-type]


def parted(robot: da.Mechanism) -> da.Mechanism:
    """The robot, whose parts that overlap at the start do not touch."""
    while True:
        try:
            da.Simulation(robot, da.Variational(dt=DT)).run(DT)
            return robot
        except da.OverlapError as error:
            for label, _ in error.overlaps:
                robot.contact_pair(*label.split(" / "), collide=False)


def on_ground(robot: da.Mechanism, pose: Callable[[str], float], gains: tuple[float, float], limp: bool) -> da.Mechanism:
    """A robot above the ground, in a pose that its servos hold, or falling without them."""
    on_servos(robot, {joint.name: pose(joint.name) for joint in robot.joints if joint.type.freedom == 1}, gains)
    if limp:
        for joint in robot.joints:
            if joint.type.freedom == 1:
                robot.change(joint.name, servo=None)
    return parted(robot)


def go1(limp: bool) -> da.Mechanism:
    robot = loaded("go1_description/urdf/go1.urdf", "free", "go1_description/srdf/go1.srdf")
    return on_ground(robot, lambda name: {"hip": 0.0, "thigh": 0.8, "calf": -1.6}[name.split("_")[1]], (100.0, 5.0), limp)


def g1(limp: bool) -> da.Mechanism:
    robot = loaded("g1_description/urdf/g1_29dof_rev_1_0.urdf", "free")
    return on_ground(robot, lambda name: 0.6 if "knee" in name else -0.3 if "hip_pitch" in name or "ankle_pitch" in name else 0.0, (400.0, 20.0), limp)


def anymal(limp: bool) -> da.Mechanism:
    robot = loaded("anymal_c_simple_description/urdf/anymal.urdf", "free", "anymal_c_simple_description/srdf/anymal.srdf")

    def angle(name: str) -> float:
        front = 1.0 if "F_" in name[:3] else -1.0
        return {"HAA": 0.0, "HFE": 0.4 * front, "KFE": -0.8 * front}[name.split("_")[1][:3]]

    return on_ground(robot, angle, (300.0, 15.0), limp)


def hand() -> da.Mechanism:
    """Allegro's hand, closed to a fist as far as its fingers let one another; with the friction of motors that can move it: its file has 5 to 10 N m."""
    robot = loaded("allegro_hand_description/urdf/allegro_right_hand.urdf", "fixed")
    parted(robot)
    for joint in robot.joints:
        if joint.type.freedom == 1:
            low, high = joint.type.limits[0]  # type: ignore[index]
            target = 0.0 if low < 0.0 and high < 0.5 else high
            robot.change(joint.name, drive=None, friction=0.02, damping=0.05, servo=da.Servo(stiffness=3.0, damping=0.1, target=target))
    return robot


def gripper() -> da.Mechanism:
    """Panda's fingers hold a loose block, with its arm on servos."""
    robot = loaded("panda_description/urdf/panda.urdf", "fixed", "panda_description/srdf/panda.srdf")
    for joint in robot.joints:
        if joint.type.freedom == 1 and "finger" not in joint.name:
            low, high = joint.type.limits[0]  # type: ignore[index]
            angle = float(np.clip(0.0, low + 0.01, high - 0.01))
            robot.change(joint.name, drive=None, servo=da.Servo(stiffness=2000.0, damping=100.0, target=angle))
            robot.start(joint.name, angle)
    robot.change("panda_finger_joint1", drive=None, servo=da.Servo(stiffness=1000.0, damping=20.0, target=0.0))
    robot.start("panda_finger_joint1", 0.016)
    sim = da.Simulation(robot, da.Variational(dt=DT))
    between = 0.5 * sum(tip_of(robot, sim, name) for name in ("panda_leftfinger", "panda_rightfinger"))
    turn = sim.orientation[robot["panda_leftfinger"].index]
    robot.body("block", da.Box(size=(0.02, 0.03, 0.02), mass=0.05), position=between, orientation=turn, collide=True)
    return parted(robot)


def tip_of(robot: da.Mechanism, sim: da.Simulation, name: str) -> np.ndarray:
    """Centre of the shape of a body that lies furthest from it."""
    from scipy.spatial.transform import Rotation

    body = robot[name]
    places = np.array([part.position for part in robot.colliders if part.body is body])
    turn = Rotation.from_quat(sim.orientation[body.index], scalar_first=True)
    return sim.position[body.index] + turn.apply(places[np.argmin(np.abs(places[:, 1]))])


SCENES: dict[str, Callable[[], da.Mechanism]] = {
    "go1 standing": lambda: go1(False), "go1 fallen": lambda: go1(True), "g1 standing": lambda: g1(False), "g1 fallen": lambda: g1(True),
    "anymal standing": lambda: anymal(False), "anymal fallen": lambda: anymal(True), "hand closed": hand, "gripper with a block": gripper,
}


def measure(name: str, profile: bool) -> str:
    """One line of the table."""
    mechanism = SCENES[name]()
    sim = da.Simulation(mechanism, da.Variational(dt=DT, max_halvings=HALVINGS), energy_bound=None)
    theirs = MujocoModel(describe(mechanism), "implicitfast", DT)
    sim.run(SETTLE, progress=False)
    theirs.run(round(SETTLE / DT))
    count, ours, other, gap, deepest = round(PART / DT), np.inf, np.inf, np.inf, np.inf
    for _ in range(PARTS):
        start = time.process_time()
        trajectory = sim.run(PART, progress=False)
        ours = min(ours, (time.process_time() - start) / count)
        gap = min(gap, float(trajectory.contacts().least_gap().min()))
        start = time.process_time()
        theirs.run(count)
        other = min(other, (time.process_time() - start) / count)
    touching = len(trajectory.contacts().at(-1).point)
    for _ in range(count):
        theirs.run(1)
        if theirs.data.ncon:
            deepest = min(deepest, float(theirs.data.contact.dist.min()))
    marks = f"{'' if ours < RATIO * other else ' (bar: 5)'}{'' if ours < REAL * DT else ' slower than real time'}"
    line = (f"{name:<22}{1e6 * ours:>9.0f}{1e6 * other:>9.0f}{ours / other:>8.1f}{DT / ours:>9.1f}{trajectory.iterations.mean():>8.1f}"
            f"{touching:>8d}{theirs.data.ncon:>8d}{gap:>12.1e}{deepest:>12.1e}{marks}")
    return line + (f"\n{share_of_python(sim)}" if profile else "")


def share_of_python(sim: da.Simulation) -> str:
    """How much of a run is not the compiled loop over steps, and what of it takes most."""
    watched = cProfile.Profile()
    watched.enable()
    sim.run(PART, progress=False)
    watched.disable()
    stats = pstats.Stats(watched).stats  # type: ignore[attr-defined]
    whole = sum(own for _, _, own, _, _ in stats.values())
    loop = sum(own for (_, _, function), (_, _, own, _, _) in stats.items() if function.startswith("run_contact_steps"))
    calls = sum(count for _, count, *_ in stats.values())
    rest = sorted(((own, function) for (_, _, function), (_, _, own, _, _) in stats.items() if not function.startswith("run_contact_steps")), reverse=True)
    listed = ", ".join(f"{function} {100 * own / whole:.0f} %" for own, function in rest[:3])
    return f"    Python: {100 * (1 - loop / whole):.0f} % of the time, {calls / round(PART / DT):.0f} calls per step; most: {listed}"


def main() -> None:
    warnings.simplefilter("ignore")
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    chosen = [name for name in SCENES if not names or any(name.startswith(word) for word in names)]
    print(f"{'':<22}{'us/step':>9}{'MuJoCo':>9}{'ratio':>8}{'x real':>9}{'solves':>8}{'points':>8}{'theirs':>8}{'least gap':>12}{'theirs':>12}")
    for name in chosen:
        try:
            print(measure(name, "--profile" in sys.argv), flush=True)
        except da.DalembertError as error:
            print(f"{name:<22}{type(error).__name__}: {str(error)[:200]}", flush=True)


if __name__ == "__main__":
    main()
