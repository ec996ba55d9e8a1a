"""The problems that all simulators get: mechanisms, with the step and the duration that they are timed at."""
from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import dalembert as da
from benchmarks.comparison.scene import Poses, Scene, describe
from dalembert import zoo
from dalembert.errors import DalembertError
from dalembert.zoo.links import slender_rod_between

A1 = "a1_description/urdf/a1.urdf"
ROBOT_DATA = "cmeel.prefix/share/example-robot-data/robots"
#: gains of the servos on which robots stand, N m/rad and N m s/rad
GAINS = {"a1": (100.0, 2.0), "ant": (200.0, 10.0)}


class NotInstalled(DalembertError):
    """A robot whose package is not there."""


@dataclass(frozen=True)
class Problem:
    """``dt`` and ``duration`` (s) of a timed run; ``about``: a line for readers."""

    name: str
    about: str
    make: Callable[[], da.Mechanism]
    dt: float
    duration: float

    def scene(self) -> Scene:
        return describe(self.make())

    @property
    def steps(self) -> int:
        return round(self.duration / self.dt)


def five_bar() -> da.Mechanism:
    """Two cranks on the world and two couplers that meet: two degrees of freedom, in the x-z plane, released from an upright pose."""
    mechanism = da.Mechanism("five-bar")
    left, right, tip = np.array([-0.5, 0, 0]), np.array([0.5, 0, 0]), np.array([0.3, 0, 1.6])
    knee_left, knee_right = np.array([-0.9, 0, 0.9]), np.array([1.1, 0, 0.8])
    hinge = da.Revolute(axis="y")
    links = [
        slender_rod_between(mechanism, name, start, end, mass=1.0)
        for name, start, end in (("left crank", left, knee_left), ("left coupler", knee_left, tip), ("right crank", right, knee_right), ("right coupler", knee_right, tip))
    ]
    mechanism.joint("left pivot", hinge, mechanism.world, links[0], at=left)
    mechanism.joint("left knee", hinge, links[0], links[1], at=knee_left)
    mechanism.joint("right pivot", hinge, mechanism.world, links[2], at=right)
    mechanism.joint("right knee", hinge, links[2], links[3], at=knee_right)
    mechanism.joint("tip", hinge, links[1], links[3], at=tip)
    return mechanism


def heap(count: int = 20) -> da.Mechanism:
    """Balls that fall on one another and on the ground."""
    rng = np.random.default_rng(1)
    mechanism = da.Mechanism("heap")
    mechanism.ground(friction=0.5)
    for i in range(count):
        place = (*rng.uniform(-0.12, 0.12, 2), 0.15 + 0.22 * i)
        mechanism.body(f"ball {i}", da.Sphere(radius=0.1, mass=1.0), position=place, collide=True)
    return mechanism


def sliding_box(speed: float = 2.0) -> da.Mechanism:
    """A flat box that slides over the ground and is stopped by friction after v^2 / (2 mu g)."""
    mechanism = da.Mechanism("sliding box")
    mechanism.ground(friction=0.3)
    mechanism.body("box", da.Box(size=(0.4, 0.4, 0.1), mass=1.0), position=(0, 0, 0.05), collide=True)
    mechanism.start("box", linear=(speed, 0, 0))
    return mechanism


def robot_file(relative: str) -> Path:
    """A model file of an installed package."""
    for folder in sys.path:
        if (Path(folder) / relative).is_file():
            return Path(folder) / relative
    raise NotInstalled(f"{relative} is in no installed package: pip install example-robot-data gymnasium")


def robot_in_the_air(relative: str) -> da.Mechanism:
    """A robot with a free base, nothing of it touching."""
    return da.load(robot_file(f"{ROBOT_DATA}/{relative}"), base="free", merge_fixed=True, limits=False, contacts=False)


def a1_in_the_air() -> da.Mechanism:
    """Unitree's A1, falling with moving legs."""
    robot = robot_in_the_air(A1)
    for k, joint in enumerate(robot.joints):
        robot.start(joint.name, 0.3 * np.sin(1.0 + k), rate=3.0 * np.cos(2.0 + k))
    return robot


def talos_in_the_air() -> da.Mechanism:
    """PAL's TALOS, falling with moving limbs."""
    robot = robot_in_the_air("talos_data/robots/talos_reduced.urdf")
    for k, joint in enumerate(robot.joints):
        robot.start(joint.name, 0.3 * np.sin(1.0 + k), rate=np.cos(2.0 + k))
    return robot


def a1_standing() -> da.Mechanism:
    """On servos, its feet alone touching."""
    robot, whole = robot_in_the_air(A1), da.load(robot_file(f"{ROBOT_DATA}/{A1}"), base="free", merge_fixed=True, limits=False)
    for part in whole.colliders:
        if isinstance(part.shape, da.Sphere):
            robot.collider(part.name, part.body.name, part.shape, position=part.position, mask=0)
    return on_servos(robot, {joint.name: {"hip": 0.0, "thigh": 0.8, "calf": -1.6}[joint.name.split("_")[1]] for joint in robot.joints}, GAINS["a1"])


def ant_standing() -> da.Mechanism:
    """Gymnasium's ant on servos, all its capsules touching the ground."""
    file = robot_file("gymnasium/envs/mujoco/assets/ant.xml")
    middle = {joint.name: float(np.mean(joint.type.limits[0])) for joint in da.load(file, merge_fixed=True).joints}  # type: ignore[index]
    return on_servos(da.load(file, merge_fixed=True, limits=False, actuators=False), middle, GAINS["ant"])


def on_servos(robot: da.Mechanism, pose: dict[str, float], gains: tuple[float, float]) -> da.Mechanism:
    """A robot that holds a pose, with the ground a millimetre below its lowest point."""
    for name, angle in pose.items():
        robot.change(name, drive=None, servo=da.Servo(stiffness=gains[0], damping=gains[1], target=angle))
        robot.start(name, angle)
    if not robot.grounds:
        robot.ground(friction=0.8)
    robot.change(robot.grounds[0].name, offset=-100.0)
    scene = describe(robot)
    robot.change(robot.grounds[0].name, offset=scene.lowest(scene.start) - 1e-3)
    return robot


def exact(name: str, scene: Scene, duration: float) -> Poses | None:
    """Where all bodies are in truth: a closed form, or a converged solution in joint coordinates; None for what falls and rolls."""
    if name == "double four-bar":
        return four_bar_exact(scene, duration)
    if name == "sliding box":
        return sliding_exact(scene, duration)
    if scene.ground is not None:
        return None
    sim = da.Simulation(scene.mechanism, da.Reduced(dt=duration / 10, method="DOP853", rtol=1e-12, atol=1e-13), energy_bound=None)
    sim.run(duration, progress=False)
    return Poses(sim.position.copy(), Rotation.from_quat(sim.orientation, scalar_first=True).as_matrix())


def four_bar_exact(scene: Scene, duration: float) -> Poses:
    """Parallelograms of links of 1 m and 1 kg: one angle, theta'' = -g cos(theta) (potential) / (inertia)."""
    cranks = sum(link.name.startswith("crank") for link in scene.links)
    couplers = cranks - 1
    pull = 9.81 * (0.5 * cranks + couplers) / (cranks / 3.0 + couplers)
    solved = solve_ivp(lambda t, x: (x[1], -pull * np.cos(x[0])), (0.0, duration), (0.5 * np.pi, -1.0), method="DOP853", rtol=1e-13, atol=1e-13)
    angle = solved.y[0, -1]
    along = np.array([np.cos(angle), np.sin(angle), 0.0])
    turn = Rotation.from_rotvec((0.0, 0.0, angle - 0.5 * np.pi)).as_matrix()
    position, rotation = [], []
    for link in scene.links:
        foot = float(link.name.split()[1])
        crank = link.name.startswith("crank")
        position.append(np.array([foot, 0.0, 0.0]) + (0.5 * along if crank else along + np.array([0.5, 0.0, 0.0])))
        rotation.append(turn @ link.rotation if crank else link.rotation)
    return Poses(np.array(position), np.array(rotation))


def sliding_exact(scene: Scene, duration: float) -> Poses:
    """Coulomb's friction brakes the box by mu g until it stands."""
    assert scene.ground is not None
    brake, speed = 9.81 * scene.ground.friction, scene.links[0].velocity[0]
    time = min(duration, speed / brake)
    way = np.array([speed * time - 0.5 * brake * time**2, 0.0, 0.0])
    return Poses(scene.start.position + way, scene.start.rotation)


def _problems() -> dict[str, Problem]:
    rows = [
        Problem("chain 10", "10 hinged rods swing from the horizontal", lambda: zoo.pendulum(10), 0.002, 1.0),
        Problem("chain 100", "100 hinged rods", lambda: zoo.pendulum(100), 0.002, 0.4),
        Problem("ball chain 10", "10 rods on ball joints", lambda: zoo.pendulum(10, "spherical"), 0.002, 1.0),
        Problem("ball chain 100", "100 rods on ball joints", lambda: zoo.pendulum(100, "spherical"), 0.002, 0.2),
        Problem("four-bar chain 4", "4 rhombi in a row: 16 bodies, 4 loops", lambda: zoo.four_bar_chain(4), 0.002, 0.5),
        Problem("four-bar chain 16", "16 rhombi: 64 bodies, 16 loops", lambda: zoo.four_bar_chain(16), 0.002, 0.2),
        Problem("five-bar", "a planar linkage with two degrees of freedom", five_bar, 0.002, 1.0),
        Problem("double four-bar", "two parallelograms, through a singular pose", zoo.double_four_bar, 0.002, 1.0),
        Problem("heavy top", "150 rad/s, one point held", zoo.heavy_top, 0.0005, 0.5),
        Problem("T-handle", "free, flips over", zoo.t_handle, 0.001, 2.0),
        Problem("A1 in the air", "Unitree A1, free base, 12 hinges", a1_in_the_air, 0.002, 1.0),
        Problem("TALOS in the air", "PAL TALOS, free base, 32 hinges", talos_in_the_air, 0.002, 0.5),
        Problem("sliding box", "a flat box that friction stops", sliding_box, 0.005, 1.0),
        Problem("box drop", "a cube falls flat on the ground", zoo.box_drop, 0.005, 2.0),
        Problem("sphere chain 10", "10 balls on ball joints fall on the ground and roll", lambda: zoo.sphere_chain(10), 0.005, 2.0),
        Problem("sphere chain 40", "40 of them", lambda: zoo.sphere_chain(40), 0.005, 1.0),
        Problem("heap", "20 balls fall on one another", heap, 0.005, 1.0),
        Problem("A1 standing", "on servos, four ball feet", a1_standing, 0.002, 0.5),
        Problem("ant standing", "Gymnasium's ant on servos, all its capsules touching", ant_standing, 0.002, 0.5),
    ]
    return {row.name: row for row in rows}


PROBLEMS = _problems()
