"""Imported robots move as MuJoCo moves them: a passive swing of one second, and Cassie's closed legs falling."""
from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robots import CASSIE, MJCF, URDF, find, slow_unless
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.contact.features import corners

QUICK = ("ur5", "a1", "ant", "humanoid")
REFERENCE_STEP = 1e-4
#: robots whose inertias MuJoCo does not take
REFUSED = ("go1", "anymal b", "anymal c", "pybullet laikago")
#: seconds after which the light wrists of a robot move chaotically
SHORT = {"g1": 0.5}


def mujoco_model(name: str, path: Path):
    """MuJoCo's model of a file, without anything that dalembert does not simulate, its free bodies held."""
    mujoco = pytest.importorskip("mujoco")
    if name in URDF:
        tree = ElementTree.parse(path)
        robot = tree.getroot()
        for link in robot.findall("link"):
            for element in [*link.findall("visual"), *link.findall("collision")]:
                link.remove(element)
        extension = ElementTree.SubElement(robot, "mujoco")
        ElementTree.SubElement(extension, "compiler", fusestatic="false", balanceinertia="false", boundmass="0", boundinertia="0")
        spec = mujoco.MjSpec.from_string(ElementTree.tostring(robot, encoding="unicode"))
    else:
        spec = mujoco.MjSpec.from_file(str(path))
        for joint in list(spec.joints):
            if joint.type == mujoco.mjtJoint.mjJNT_FREE:
                spec.delete(joint)
        for key in list(spec.keys):
            spec.delete(key)
    model = spec.compile()
    if name in MJCF:  # what the compiler derives from the inertia is that of the free robot
        whole = mujoco.MjModel.from_xml_path(str(path))
        for j in range(model.njnt):
            k = whole.joint(model.joint(j).name).id
            model.jnt_stiffness[j] = whole.jnt_stiffness[k]
            model.dof_damping[model.jnt_dofadr[j]] = whole.dof_damping[whole.jnt_dofadr[k]]
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= flags.mjDSBL_CONTACT | flags.mjDSBL_LIMIT | flags.mjDSBL_FRICTIONLOSS | flags.mjDSBL_EQUALITY | flags.mjDSBL_ACTUATION
    model.opt.timestep, model.opt.integrator = REFERENCE_STEP, mujoco.mjtIntegrator.mjINT_RK4
    model.tendon_stiffness[:], model.tendon_damping[:] = 0.0, 0.0
    return model


def start_values(model, mechanism):
    """Joint names here, indices there, random coordinates."""
    random = np.random.default_rng(11)
    names, indices = [], []
    for j in range(model.njnt):
        title = model.joint(j).name
        names.append(f"{title} joint" if f"{title} joint" in mechanism else title)
        indices.append(j)
    return names, indices, random.uniform(-0.3, 0.3, len(names))


def reference_swing(model, indices, values, seconds: float) -> np.ndarray:
    mujoco = pytest.importorskip("mujoco")
    data = mujoco.MjData(model)
    addresses = [model.jnt_qposadr[j] for j in indices]
    data.qpos[addresses] += values
    for _ in range(round(seconds / REFERENCE_STEP)):
        mujoco.mj_step(model, data)
    return data.qpos[addresses] - model.qpos0[addresses]


def pinocchio_swing(path: Path, seconds: float):
    """The same with Pinocchio and a Runge-Kutta method of order 4, for inertias that MuJoCo refuses."""
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromUrdf(str(path), mimic=False)
    data, h = model.createData(), 5e-4
    mechanism = da.load(path, base="fixed", merge_fixed=True, contacts=False, limits=False)
    names = [f"{n} joint" if f"{n} joint" in mechanism else n for n in list(model.names)[1:]]
    angles = np.random.default_rng(11).uniform(-0.3, 0.3, len(names))
    q, v = pinocchio.integrate(model, pinocchio.neutral(model), angles), np.zeros(model.nv)
    damping = np.array([mechanism[n].type.damping[0] for n in names])

    def rate(speed, shift):
        return speed, pinocchio.aba(model, data, pinocchio.integrate(model, q, shift), speed, -damping * speed)

    turned = angles.copy()
    for _ in range(round(seconds / h)):
        a1 = rate(v, np.zeros(model.nv))
        a2 = rate(v + h / 2 * a1[1], h / 2 * a1[0])
        a3 = rate(v + h / 2 * a2[1], h / 2 * a2[0])
        a4 = rate(v + h * a3[1], h * a3[0])
        step = h / 6 * (a1[0] + 2 * a2[0] + 2 * a3[0] + a4[0])
        v = v + h / 6 * (a1[1] + 2 * a2[1] + 2 * a3[1] + a4[1])
        q, turned = pinocchio.integrate(model, q, step), turned + step
    return names, angles, turned


def swing(path: Path, dt: float, names, values, seconds: float) -> np.ndarray:
    limp: dict[str, Any] = {} if path.suffix == ".urdf" else dict(actuators=False)
    mechanism = da.load(path, base="fixed", merge_fixed=True, contacts=False, limits=False, **limp)
    mechanism.couplings.clear()
    for title, value in zip(names, values):
        mechanism.start(title, value)
    trajectory = da.Simulation(mechanism, da.Variational(dt=dt)).run(seconds)
    assert trajectory.constraint_violation().max() < 1e-9
    return np.array([trajectory.joint(title).coordinates[-1] for title in names])


@pytest.mark.parametrize("name", [slow_unless(n, QUICK) for n in [*URDF, *MJCF] if n != "talos full"])
def test_passive_swing(name):
    path = find(name)
    seconds = SHORT.get(name, 1.0)
    if name in REFUSED:
        names, values, reference = pinocchio_swing(path, seconds)
    else:
        model = mujoco_model(name, path)
        names, indices, values = start_values(model, da.load(path, base="fixed", merge_fixed=True, contacts=False, limits=False))
        reference = reference_swing(model, indices, values, seconds)
    errors = [np.abs(swing(path, dt, names, values, seconds) - reference).max() for dt in (0.001, 0.0005)]
    print(name, errors)
    assert errors[1] < 2e-2 if name == "panda" else errors[1] < 1e-3
    assert errors[1] < 1e-8 or errors[0] / errors[1] > 3.0


@pytest.mark.skipif(not CASSIE.is_file(), reason="the model of Cassie is not there")
@pytest.mark.parametrize("seconds", [1.0, pytest.param(10.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("touching", [False, True])
def test_cassie_held_at_the_pelvis(seconds, touching):
    pytest.importorskip("mujoco")
    cassie = da.load(CASSIE, base="fixed", contacts=touching, limits=touching)
    simulation = da.Simulation(cassie, da.Variational(dt=0.002))
    trajectory = simulation.run(seconds)
    assert trajectory.constraint_violation().max() < 1e-9
    energy = trajectory.energy().total
    assert energy[-1] < energy[0]
    if not touching:
        assert np.abs(np.diff(energy)).max() < 0.05 * np.ptp(energy) + 0.1
    for joint in cassie.joints:
        coordinates = trajectory.joint(joint.name).coordinates.reshape(len(trajectory), -1)
        for values, (lower, upper) in zip(coordinates.T, joint.type.limits):
            assert lower - 1e-9 <= values.min() <= values.max() <= upper + 1e-9
    if touching and seconds > 5.0:  # the legs hang in their limits
        assert np.abs(trajectory.velocity[-1]).max() < 0.05


def test_ant_stands_on_its_floor():
    pytest.importorskip("mujoco")
    ant = da.load(find("ant"))
    trajectory = da.Simulation(ant, da.Variational(dt=0.005)).run(2.0)
    rests_on_the_ground(ant, trajectory)


@pytest.mark.parametrize("name", [slow_unless(n, ("a1",)) for n in ("a1", "go2", "pybullet laikago", "pybullet minitaur")])
def test_quadrupeds_dropped_on_a_plane(name):
    pytest.importorskip("yourdfpy")
    robot = da.load(find(name), base="free", position=(0, 0, 0.55))
    robot.ground(friction=0.8)
    trajectory = da.Simulation(robot, da.Variational(dt=0.005)).run(2.0)
    rests_on_the_ground(robot, trajectory)


def rests_on_the_ground(mechanism: da.Mechanism, trajectory: da.Trajectory) -> None:
    """Nothing sinks in, nothing moves any more, and the ground carries the weight."""
    contacts = trajectory.contacts()
    assert contacts.least_gap().min() >= -1e-8
    assert trajectory.constraint_violation().max() < 1e-9
    assert np.abs(trajectory.velocity[-1]).max() < 0.02
    force = contacts.total_force()[-20:].mean(axis=0)
    assert force[2] == pytest.approx(9.81 * mechanism.mass, rel=0.02)
    assert lowest_point(mechanism, trajectory) >= -1e-8


def lowest_point(mechanism: da.Mechanism, trajectory: da.Trajectory) -> float:
    """Height of the lowest ball or corner of all colliders in all frames, from the poses alone."""
    lowest = np.inf
    for collider in mechanism.colliders:
        R = Rotation.from_quat(trajectory.orientation[:, collider.body.index], scalar_first=True)
        turn = Rotation.from_quat(collider.orientation, scalar_first=True)
        shape = collider.shape
        if isinstance(shape, da.Sphere | da.Capsule):
            half = 0.5 * getattr(shape, "length", 0.0) * np.asarray(getattr(shape, "axis", (0, 0, 1)), dtype=float)
            points, radius = np.array([half, -half]), shape.radius
        elif isinstance(shape, da.Box | da.Convex):
            points, radius = corners(shape), 0.0
        else:
            continue
        for point in points:
            z = R.apply(collider.position + turn.apply(point))[:, 2] + trajectory.position[:, collider.body.index, 2]
            lowest = min(lowest, float(z.min()) - radius)
    return lowest
