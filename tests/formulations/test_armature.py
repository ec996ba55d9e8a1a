"""Inertia reflected along a joint's direction: closed forms, energy, substeps, and MuJoCo's armature."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

MJCF = """
<mujoco><option timestep="1e-4" integrator="RK4"/><compiler angle="radian"/>
<worldbody>
 <body><joint name="a" axis="1 0 0" armature="0.3"/><geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05" mass="1"/>
  <body pos="0 0 -1"><joint name="b" axis="0 1 0" armature="0.2" damping="0.1"/><geom type="box" size="0.05 0.1 0.4" pos="0 0 -0.4" mass="0.7"/>
   <body pos="0 0 -0.8"><joint name="c" type="slide" axis="0 0 1" stiffness="50" armature="0.5"/><geom type="box" size="0.1 0.1 0.2" pos="0.1 0 0" mass="0.3"/>
</body></body></body></worldbody></mujoco>
"""


def arm() -> da.Mechanism:
    """The arm of ``MJCF``."""
    mechanism = da.Mechanism("arm with rotors")
    upper = mechanism.body("upper", da.Capsule(length=1.0, radius=0.05, mass=1.0), position=(0, 0, -0.5))
    lower = mechanism.body("lower", da.Box(size=(0.1, 0.2, 0.8), mass=0.7), position=(0, 0, -1.4))
    tip = mechanism.body("tip", da.Box(size=(0.2, 0.2, 0.4), mass=0.3), position=(0.1, 0, -1.8))
    mechanism.joint("a", da.Revolute(axis="x", armature=0.3), mechanism.world, upper)
    mechanism.joint("b", da.Revolute(axis="y", armature=0.2, damping=0.1), upper, lower, at=(0, 0, -1))
    mechanism.joint("c", da.Prismatic(axis="z", stiffness=50.0, armature=0.5), lower, tip, at=(0.1, 0, -1.8))
    return mechanism


def swing(formulation: da.Variational | da.Implicit) -> da.Trajectory:
    simulation = da.Simulation(arm(), formulation)
    simulation.set_joint("a", 1.2, rate=0.5)
    simulation.set_joint("b", -0.4, rate=1.0)
    simulation.set_joint("c", 0.05, rate=-0.3)
    return simulation.run(1.0)


def ends(trajectory: da.Trajectory) -> np.ndarray:
    return np.array([[trajectory.joint(n).coordinates[-1], trajectory.joint(n).rates[-1]] for n in "abc"])


def test_equals_mujocos_armature_to_second_order():
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (1.2, -0.4, 0.05), (0.5, 1.0, -0.3)
    for _ in range(10_000):
        mujoco.mj_step(model, data)
    reference = np.stack([data.qpos, data.qvel], axis=1)
    errors = [np.abs(ends(swing(da.Variational(dt=dt))) - reference).max() for dt in (0.004, 0.002, 0.001)]
    assert errors[-1] < 1e-5
    assert np.log2(errors[0] / errors[1]) > 1.9
    assert np.log2(errors[1] / errors[2]) > 1.9


def test_a_flywheel_on_a_hinge_slows_the_pendulum():
    """Small swings: omega^2 = m g l / (J + m l^2 + a)."""
    mechanism = da.Mechanism("pendulum with a rotor", gravity=(0, 0, -9.81))
    bob = mechanism.body("bob", da.Sphere(radius=0.1, mass=2.0), position=(0, 0, -0.7))
    mechanism.joint("hinge", da.Revolute(axis="x", armature=1.5), mechanism.world, bob)
    simulation = da.Simulation(mechanism, da.Variational(dt=1e-3))
    simulation.set_joint("hinge", 1e-4)
    omega = np.sqrt(2.0 * 9.81 * 0.7 / (0.4 * 2.0 * 0.01 + 2.0 * 0.49 + 1.5))
    trajectory = simulation.run(2.0)
    np.testing.assert_allclose(trajectory.joint("hinge").coordinates, 1e-4 * np.cos(omega * trajectory.time), atol=1e-9)


def test_energy_counts_the_rotors():
    mechanism = arm()
    simulation = da.Simulation(mechanism, da.Variational(dt=0.002))
    simulation.set_joint("a", 1.2, rate=2.0)
    start = simulation.energy()
    trajectory = simulation.run(1.0)
    energy = trajectory.energy()
    assert energy.total[0] == pytest.approx(start, abs=1e-9)
    damper = trajectory.joint("b").rates
    lost = np.trapezoid(0.1 * damper**2, trajectory.time)
    assert energy.total[0] - energy.total[-1] == pytest.approx(lost, abs=2e-4)


def test_universal_and_substeps_and_file(tmp_path):
    pytest.importorskip("h5py")
    mechanism = da.Mechanism("cross")
    body = mechanism.body("body", da.Box(size=(0.1, 0.2, 0.4), mass=1.0), position=(0, 0, -0.3))
    mechanism.joint("cross", da.Universal(armature=(0.01, 0.03)), mechanism.world, body)
    fast = da.Simulation(mechanism, da.Variational(dt=0.05))
    fast.set_joint("cross", (0.3, 0.2), rate=(30.0, 1.0))
    trajectory = fast.run(0.5)
    assert trajectory.substeps.max() > 1
    trajectory.save(tmp_path / "run.h5")
    loaded = da.Trajectory.load(tmp_path / "run.h5")
    np.testing.assert_array_equal(loaded.energy().total, trajectory.energy().total)
    fine = da.Simulation(mechanism, da.Variational(dt=0.0005))
    fine.set_joint("cross", (0.3, 0.2), rate=(30.0, 1.0))
    energy = fine.run(0.5).energy().total
    assert np.ptp(energy) < 2e-3 * abs(energy[0])


@pytest.mark.parametrize(("make", "message"), [
    (lambda: da.Revolute(armature=-1.0), "negative"),
    (lambda: da.Spherical(armature=0.1), "free rotation"),
    (lambda: da.Universal(armature=(1.0, 2.0, 3.0)), "one number or 2"),
])
def test_bad_armature(make, message):
    with pytest.raises(da.ModelError, match=message):
        make()


@pytest.mark.parametrize(("method", "order"), [("bdf1", 1), ("bdf2", 2), ("sdirk2", 1), ("pareschi_russo", 1), ("semi_implicit", 1)])
def test_the_implicit_methods_agree_at_their_orders(method, order):
    exact = ends(swing(da.Variational(dt=2e-4)))
    errors = [np.abs(ends(swing(da.Implicit(dt=dt, method=method, stabilization=0.0))) - exact).max() for dt in (0.002, 0.001)]
    assert errors[1] < 0.05 ** order
    assert np.log2(errors[0] / errors[1]) > order - 0.15


@pytest.mark.parametrize("formulation", [da.Variational(dt=0.002), da.Implicit(dt=0.002), da.Implicit(dt=0.002, solver="general")])
def test_a_motion_drive_turns_its_rotor_too(formulation):
    """tau = (J + a) phi'' for a wheel on a driven axle."""
    mechanism = da.Mechanism("wheel", gravity=(0, 0, 0))
    mechanism.body("wheel", da.Cylinder(radius=0.5, length=0.1, mass=8.0))
    mechanism.joint("axle", da.Revolute(axis="z", drive="motion", armature=0.7), mechanism.world, "wheel")
    sim = da.Simulation(mechanism, formulation)
    sim.set_target("axle", lambda t: 0.5 * t**3)
    trajectory = sim.run(0.5)
    torque = (0.5 * 8.0 * 0.5**2 + 0.7) * 3.0 * trajectory.time
    np.testing.assert_allclose(trajectory.joint("axle").actuation[10:-2], torque[10:-2], rtol=0.03)
    np.testing.assert_allclose(trajectory.least_norm(knots=[100])["axle"].actuation[0], torque[100], rtol=0.03)


@pytest.mark.parametrize("formulation", [da.Variational(dt=0.005), da.Implicit(dt=0.005), da.Reduced(dt=0.005)], ids=["variational", "implicit", "reduced"])
def test_a_tool_almost_without_mass_on_an_arm_at_its_limit(formulation):
    """A frame of 1e-9 kg behind a gearbox, as files of arms have: residuals of the rotor's row are measured by the rotor's inertia, not by the frame's."""
    mechanism = da.Mechanism("arm with a frame for tools")
    upper = mechanism.body("upper", da.Box(size=(0.4, 0.05, 0.05), mass=1.0), position=(0.2, 0, 0))
    frame = mechanism.body("frame", da.Cylinder(radius=0.035, length=0.018, mass=1e-9), position=(0.4, 0, 0))
    mechanism.joint("shoulder", da.Revolute(axis="y", limits=(-1.0, 0.0), armature=4.0, friction=2.0), mechanism.world, upper)
    mechanism.joint("wrist", da.Revolute(axis="x", armature=2.0, damping=0.01, friction=1.0), upper, frame, at=(0.4, 0, 0))
    simulation = da.Simulation(mechanism, formulation)
    simulation.set_joint("wrist", 0.0, rate=3.0)
    run = simulation.run(0.5)
    assert np.abs(run.joint("shoulder").coordinates).max() < 1e-9
    # J dw/dt = -d w - c: what is left of 3 rad/s
    left = (3.0 + 100.0) * np.exp(-0.01 * 0.5 / 2.0) - 100.0
    assert run.joint("wrist").rates[-1] == pytest.approx(left, rel=1e-4)
