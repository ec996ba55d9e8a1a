"""Imported robots have the numbers that Pinocchio and MuJoCo give: masses, poses, inertia and energy to 1e-9."""
from __future__ import annotations

import numpy as np
import pytest
from robots import CASSIE, MJCF, URDF, composite, find, moving, slow_unless, whole
from scipy.spatial.transform import Rotation

import dalembert as da

QUICK = ("a1", "go2", "panda", "ur5", "talos", "ant", "humanoid")


def compare_links(simulation, reference_poses, poses, tolerance=1e-9):
    """Link frames (name -> rotation matrix, position) at the reference pose and now, against the bodies."""
    mechanism = simulation.mechanism
    checked = 0
    for name, (turn, origin) in poses.items():
        if name not in mechanism or name == "world":
            continue
        body = mechanism[name]
        if not isinstance(body, type(mechanism.world)):
            continue
        reference_turn, reference_origin = reference_poses[name]
        R = Rotation.from_quat(body.orientation, scalar_first=True).as_matrix()
        np.testing.assert_allclose(R, reference_turn, atol=tolerance)
        offset = R.T @ (reference_origin - body.position)
        R = Rotation.from_quat(simulation.orientation[body.index], scalar_first=True).as_matrix()
        np.testing.assert_allclose(R, turn, atol=tolerance)
        np.testing.assert_allclose(simulation.position[body.index] + R @ offset, origin, atol=tolerance)
        checked += 1
    assert checked > 0


@pytest.mark.parametrize("name", [slow_unless(n, QUICK) for n in URDF])
def test_urdf_against_pinocchio(name):
    pinocchio = pytest.importorskip("pinocchio")
    path = find(name)
    mechanism = da.load(path, contacts=False, limits=False)
    model = pinocchio.buildModelFromUrdf(str(path), mimic=False)
    data = model.createData()
    random = np.random.default_rng(7)
    q, v = pinocchio.neutral(model), np.zeros(model.nv)
    values, rates = {}, {}
    for joint in list(model.joints)[1:]:
        title = model.names[joint.id]
        title = f"{title} joint" if f"{title} joint" in mechanism else title
        angle, speed = random.uniform(-1.5, 1.5), random.uniform(-1, 1)
        q[joint.idx_q : joint.idx_q + joint.nq] = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
        v[joint.idx_v] = speed
        values[title], rates[title] = angle, speed

    def frames(at):
        pinocchio.forwardKinematics(model, data, at)
        pinocchio.updateFramePlacements(model, data)
        return {f.name: (data.oMf[i].rotation.copy(), data.oMf[i].translation.copy())
                for i, f in enumerate(model.frames) if f.type == pinocchio.FrameType.BODY}

    reference_poses, poses = frames(pinocchio.neutral(model)), frames(q)
    mechanism.couplings.clear()  # mimics hold only on the way that they prescribe
    simulation = moving(mechanism, values, rates)
    compare_links(simulation, reference_poses, poses)
    found = whole(simulation)
    on_base = model.inertias[0]  # links fixed to the world
    assert found.mass == pytest.approx(pinocchio.computeTotalMass(model) + on_base.mass, rel=1e-9)
    pinocchio.computeCentroidalMap(model, data, q)
    pinocchio.ccrba(model, data, q, v)
    moving_mass, com = data.Ig.mass, np.array(data.com[0])
    masses = np.array([moving_mass, on_base.mass])
    centers = np.array([com, on_base.lever])
    center = masses @ centers / masses.sum()
    inertia = composite(masses, centers - center, np.array([np.eye(3)] * 2), np.array([data.Ig.inertia, on_base.inertia]))
    np.testing.assert_allclose(found.center, center, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.inertia, inertia, atol=1e-9 * np.abs(inertia).max())
    assert found.kinetic == pytest.approx(pinocchio.computeKineticEnergy(model, data, q, v), rel=1e-9)


@pytest.mark.parametrize("name", [slow_unless(n, QUICK) for n in MJCF if n != "half cheetah"] + ["cassie"])
def test_mjcf_against_mujoco(name):
    mujoco = pytest.importorskip("mujoco")
    if name == "cassie" and not CASSIE.is_file():
        pytest.skip("the model of Cassie is not there")
    path = CASSIE if name == "cassie" else find(name)
    mechanism = da.load(path, base="fixed", contacts=False, limits=False)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mechanism.couplings.clear()
    for joint in [j for j in mechanism.joints if j.name.startswith("equality")]:
        mechanism.joints.remove(joint)  # at random coordinates loops are open

    def poses():
        mujoco.mj_forward(model, data)
        return {model.body(b).name: (data.xmat[b].reshape(3, 3).copy(), data.xpos[b].copy()) for b in range(1, model.nbody)}

    data.qpos[:] = model.qpos0
    reference_poses = poses()
    random = np.random.default_rng(3)
    values, rates = {}, {}
    for j in range(model.njnt):
        if model.jnt_type[j] in (2, 3):  # slide, hinge
            title = model.joint(j).name
            title = f"{title} joint" if f"{title} joint" in mechanism else title
            values[title], rates[title] = random.uniform(-1, 1), random.uniform(-1, 1)
            data.qpos[model.jnt_qposadr[j]] += values[title]
            data.qvel[model.jnt_dofadr[j]] = rates[title]
    simulation = moving(mechanism, values, rates)
    compare_links(simulation, reference_poses, poses())
    found = whole(simulation)
    assert found.mass == pytest.approx(model.body_mass.sum(), rel=1e-9)
    center = model.body_mass @ data.xipos / model.body_mass.sum()
    np.testing.assert_allclose(found.center, center, rtol=1e-9, atol=1e-9)
    inertia = composite(model.body_mass, data.xipos - center, data.ximat.reshape(-1, 3, 3), np.array([np.diag(i) for i in model.body_inertia]))
    np.testing.assert_allclose(found.inertia, inertia, atol=1e-9 * np.abs(inertia).max())
    mujoco.mj_energyVel(model, data)
    assert found.kinetic == pytest.approx(data.energy[1], rel=1e-9)
