"""Random trees of hinges, slides, balls and free bodies from one MJCF text, against MuJoCo."""
import numpy as np
import pytest
from peers import skew
from scipy.spatial.transform import Rotation

import dalembert as da

mujoco = pytest.importorskip("mujoco")
BOUND = 1e-10


def random_model(rng: np.random.Generator, bodies: int) -> str:
    """An MJCF model; every body has one joint, the first one is free."""
    children: dict[int, list[int]] = {i: [] for i in range(-1, bodies)}
    for i in range(bodies):
        children[int(rng.integers(i)) if i else -1].append(i)

    def numbers(values) -> str:
        return " ".join(repr(float(x)) for x in values)

    def write(i: int) -> str:
        turn, own = Rotation.random(2, rng=rng).as_quat(scalar_first=True)
        axis = rng.normal(size=3)
        joint = ("hinge", "slide", "ball")[int(rng.integers(3))]
        inertia = np.sort(rng.uniform(0.1, 0.2, size=3))
        motion = "<freejoint name='j0'/>" if i == 0 else (
            f"<joint name='j{i}' type='{joint}' pos='{numbers(rng.normal(size=3))}'"
            + (f" axis='{numbers(axis / np.linalg.norm(axis))}' armature='{0.1 * (i % 2)}'" if joint != "ball" else "") + "/>")
        return (
            f"<body name='b{i}' pos='{numbers(rng.normal(size=3))}' quat='{numbers(turn)}'>{motion}"
            f"<inertial pos='{numbers(rng.normal(size=3))}' quat='{numbers(own)}' mass='{rng.uniform(1, 2)}' diaginertia='{numbers(inertia)}'/>"
            + "".join(write(k) for k in children[i]) + "</body>")

    return "<mujoco><option gravity='0.3 -0.2 -9.81'/><worldbody>" + "".join(write(i) for i in children[-1]) + "</worldbody></mujoco>"


def motion(model, mechanism, algebra, q, v):
    """Their configuration, with T and T' in their rates = T v."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    theirs = data.qpos.copy()
    T, T_rate = np.zeros((2, model.nv, len(q)))
    poses = algebra.forward_kinematics(q, v)
    for i in range(model.njnt):
        name, a, b = model.joint(i).name, model.jnt_qposadr[i], model.jnt_dofadr[i]
        body = mechanism[model.body(model.jnt_bodyid[i]).name]
        own = algebra.slot(name if name in mechanism else body.name)
        reference = Rotation.from_quat(body.orientation, scalar_first=True)
        offset = reference.inv() * Rotation.from_quat(data.xquat[model.jnt_bodyid[i]], scalar_first=True)
        R = Rotation.from_quat(poses.orientation[body.index], scalar_first=True)
        kind = mujoco.mjtJoint(int(model.jnt_type[i]))
        if kind in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            theirs[a], T[b, own.start] = q[own.start], 1.0
        elif kind == mujoco.mjtJoint.mjJNT_BALL:
            frame = Rotation.from_matrix(mechanism[name].frame_child)
            E = Rotation.from_rotvec(q[own])
            theirs[a : a + 4] = (offset.inv() * frame * E * frame.inv() * offset).as_quat(scalar_first=True)
            T[b : b + 3, own] = (offset.inv() * frame * E.inv()).as_matrix()
            T_rate[b : b + 3, own] = -skew(T[b : b + 3, own] @ v[own]) @ T[b : b + 3, own]
        else:
            arm = R.apply(reference.inv().apply(data.xpos[model.jnt_bodyid[i]] - body.position))
            turn, slide = slice(own.start + 3, own.stop), slice(own.start, own.start + 3)
            theirs[a : a + 7] = *(poses.position[body.index] + arm), *(R * offset).as_quat(scalar_first=True)
            T[b : b + 3, slide], T[b : b + 3, turn] = np.eye(3), -skew(arm)
            T_rate[b : b + 3, turn] = -skew(np.cross(v[turn], arm))
            T[b + 3 : b + 6, turn] = (R * offset).inv().as_matrix()
            T_rate[b + 3 : b + 6, turn] = -skew(T[b + 3 : b + 6, turn] @ v[turn]) @ T[b + 3 : b + 6, turn]
    return theirs, T, T_rate


@pytest.mark.parametrize("seed", range(4))
def test_random_trees(seed, tmp_path):
    rng = np.random.default_rng(seed)
    text = random_model(rng, 8)
    (tmp_path / "tree.xml").write_text(text)
    mechanism = da.load(tmp_path / "tree.xml")
    model = mujoco.MjModel.from_xml_string(text)
    algebra = da.Algebra(mechanism)
    q = algebra.random(rng)
    v, a = rng.normal(size=(2, algebra.size))
    theirs, T, T_rate = motion(model, mechanism, algebra, q, v)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = theirs, T @ v, T @ a + T_rate @ v
    mujoco.mj_inverse(model, data)
    tau = T.T @ data.qfrc_inverse
    assert np.abs(algebra.inverse_dynamics(q, v, a) - tau).max() < BOUND * np.abs(tau).max()
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    M = T.T @ M @ T
    assert np.abs(algebra.mass_matrix(q) - M).max() < BOUND * np.abs(M).max()
    data.qfrc_applied[:] = np.linalg.solve(T.T, tau)
    mujoco.mj_forward(model, data)
    assert np.abs(T @ algebra.forward_dynamics(q, v, tau) + T_rate @ v - data.qacc).max() < BOUND * np.abs(data.qacc).max()
