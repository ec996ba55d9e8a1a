"""Sensors: live and recorded, against closed forms, MuJoCo and one another; errors that follow from seed and time alone."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dalembert as da

FORMULATIONS = [da.Variational(dt=1e-3), da.Implicit(dt=1e-3), da.Reduced(dt=1e-3)]
BY_NAME = pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: type(f).__name__)


def swinging_arm() -> da.Mechanism:
    """An arm with a motor above a ground, a ball that lies there, and every kind of sensor."""
    m = da.Mechanism("arm")
    m.body("upper", da.Box(size=(1, 0.05, 0.05), mass=1.0), position=(0.5, 0, 3))
    m.body("lower", da.Box(size=(1, 0.05, 0.05), mass=1.0), position=(1.5, 0, 3))
    m.body("ball", da.Sphere(radius=0.1, mass=2.0), position=(5, 0, 0.1), collide=True)
    m.joint("shoulder", da.Revolute(axis="y", drive="force"), "world", "upper", at=(0, 0, 3))
    m.joint("elbow", da.Revolute(axis="y"), "upper", "lower", at=(1, 0, 3))
    m.ground()
    m.sensor("imu", da.IMU(point=(0.3, 0, 0)), "lower")
    m.sensor("noisy", da.IMU(point=(0.3, 0, 0)), "lower", noise=0.01, bias=0.5, seed=3)
    m.sensor("acceleration", da.Accelerometer(), "ball")
    m.sensor("turning", da.Gyroscope(), "upper")
    m.sensor("speed", da.Velocimeter(frame=(0.0, 0.0, 0.0, 1.0)), "lower")
    m.sensor("tip", da.PointMotion(point=(0.5, 0, 0)), "lower")
    m.sensor("attitude", da.Attitude(), "lower")
    m.sensor("height", da.GroundDistance(point=(0.5, 0, 0), radius=0.1), "lower")
    m.sensor("weight", da.ContactForce(), "ball", other="ground")
    m.sensor("angle", da.Encoder(), "shoulder")
    m.sensor("motor", da.MotorForce(), "shoulder")
    m.sensor("wrist", da.ForceTorque(), "elbow")
    return m


@BY_NAME
def test_live_as_recorded(formulation):
    """What a controller reads at a knot is what the trajectory says there; forces as the inputs before the knot let them be."""
    m, read = swinging_arm(), []
    sim = da.Simulation(m, formulation)

    def control(s: da.Simulation) -> dict[str, float]:
        read.append({sensor.name: s.sensor(sensor.name) for sensor in m.sensors})
        return {"shoulder": 3.0 * np.sin(5.0 * s.time)}

    run = sim.run(0.05, control=control)
    read.append({sensor.name: sim.sensor(sensor.name) for sensor in m.sensors})
    for sensor in m.sensors:
        series = run.sensor(sensor.name)
        live = np.array([row[sensor.name] for row in read])
        assert live.shape == series.values.shape == (51, len(series.channels))
        assert len(series.units) == len(series.channels)
        bound = 0.02 if sensor.name in ("motor", "wrist") else 3e-3 if "imu" in sensor.name or sensor.name == "noisy" else 2e-5
        assert np.abs(live - series.values).max() < bound, sensor.name
    plain = da.Simulation(m, formulation).run(0.05, control=lambda s: {"shoulder": 3.0 * np.sin(5.0 * s.time)})
    assert np.array_equal(plain.position, run.position)


@BY_NAME
def test_closed_forms(formulation):
    """A pendulum let go from the horizontal: what its bearing and its end feel; a ball at rest feels g."""
    m = da.Mechanism("pendulum")
    m.body("bob", da.Box(size=(0.1, 0.1, 0.1), mass=2.0), position=(1.0, 0, 0))
    m.joint("pivot", da.Revolute(axis="y"), "world", "bob")
    for name, kind, on in (("feel", da.IMU(), "bob"), ("bearing", da.ForceTorque(), "pivot"), ("angle", da.Encoder(), "pivot"), ("end", da.PointMotion(point=(0.5, 0, 0)), "bob")):
        m.sensor(name, kind, on)
    sim = da.Simulation(m, formulation)
    run = sim.run(0.4)
    inertia = 2.0 * (1.0 + 0.01 / 6.0)
    angle, rate = run.sensor("angle").values.T
    assert np.allclose(0.5 * inertia * rate**2, 2.0 * 9.81 * np.sin(angle), atol=2e-3)
    falling = 2.0 * 9.81 * np.cos(angle) / inertia
    middle = slice(2, -1)
    late, fast = 0.5 * (angle[1:] + angle[:-1]), 0.5 * (rate[1:] + rate[:-1])  # accelerations are means over steps: half a step late
    felt = run.sensor("feel")
    assert np.allclose(felt["acceleration z"][1:][middle], (9.81 * np.cos(late) * (1.0 - 2.0 / inertia))[middle], atol=1e-3)
    assert np.allclose(felt["acceleration x"][1:][middle], (-(fast**2) - 9.81 * np.sin(late))[middle], atol=1e-3)
    assert np.allclose(felt["angular velocity y"], rate, atol=1e-9)
    force = run.sensor("bearing").values
    assert np.allclose(force[middle, 0], (2.0 * (-falling * np.sin(angle) - rate**2 * np.cos(angle)))[middle], atol=1e-3)
    end = run.sensor("end").values
    assert np.allclose(end[:, :3], 1.5 * np.stack([np.cos(angle), 0 * angle, -np.sin(angle)], axis=1), atol=1e-9)
    assert np.allclose(np.linalg.norm(end[:, 3:], axis=1), 1.5 * np.abs(rate), atol=1e-9)


@BY_NAME
def test_what_lies_on_the_ground(formulation):
    m = swinging_arm()
    sim = da.Simulation(m, formulation)
    assert np.allclose(sim.sensor("acceleration"), (0, 0, 9.81))
    assert np.array_equal(sim.sensor("weight"), np.zeros(4))
    for _ in range(5):
        sim.step()
    assert np.allclose(sim.sensor("weight"), (19.62, 0, 0, 19.62), atol=1e-5)
    assert np.allclose(sim.sensor("acceleration"), (0, 0, 9.81), atol=1e-5)
    latest = sim.latest()
    assert len(latest) == 2
    assert np.allclose(latest.contacts().at(-1).normal_force.sum(), 19.62, atol=1e-5)
    sim.reset()
    assert np.array_equal(sim.sensor("weight"), np.zeros(4))
    assert len(sim.latest()) == 1


def test_errors_follow_from_seed_name_and_time():
    """Noise is the same in one run, in parts, live and after a file; other seeds and names give other noise; it has its own size."""
    m = swinging_arm()
    m.sensor("same seed", da.IMU(point=(0.3, 0, 0)), "lower", noise=0.01, bias=0.5, seed=3)
    sim = da.Simulation(m, da.Variational(dt=1e-3))
    run = sim.run(0.5)
    error = run.sensor("noisy").values - run.sensor("imu").values
    assert np.allclose(error.mean(axis=0), 0.5, atol=3e-3)
    assert np.allclose(error.std(axis=0), 0.01, rtol=0.15)
    assert not np.array_equal(run.sensor("noisy").values, run.sensor("same seed").values)
    again = da.Simulation(m, da.Variational(dt=1e-3))
    parts = [again.run(0.2), again.run(0.3)]
    assert np.array_equal(parts[1].sensor("noisy")["angular velocity y"], run.sensor("noisy")["angular velocity y"][200:])
    assert np.allclose(sim.sensor("noisy"), run.sensor("noisy").values[-1], atol=1e-12)
    m.change("noisy", seed=4, noise=0.02)
    other = da.Simulation(m, da.Variational(dt=1e-3)).run(0.5)
    assert np.allclose((other.sensor("noisy").values - run.sensor("imu").values).std(axis=0), 0.02, rtol=0.15)


def test_files_copies_and_attached_mechanisms(tmp_path: Path):
    m = swinging_arm()
    m.save(tmp_path / "arm.toml")
    twin = da.load(tmp_path / "arm.toml")
    assert [(s.name, s.kind, s.on.name, s.seed) for s in twin.sensors] == [(s.name, s.kind, s.on.name, s.seed) for s in m.sensors]
    assert all(np.array_equal(a.noise, b.noise) and np.array_equal(a.bias, b.bias) for a, b in zip(twin.sensors, m.sensors))
    run = da.Simulation(twin, da.Variational(dt=1e-3)).run(0.02)
    run.save(tmp_path / "run.h5")
    for name in ("noisy", "weight", "wrist"):
        assert np.array_equal(da.Trajectory.load(tmp_path / "run.h5").sensor(name).values, run.sensor(name).values)
    pair = da.Mechanism("pair")
    pair.attach(m.without_contacts(), prefix="left ")
    assert "left imu" in pair
    assert "left weight" not in pair
    assert pair["left wrist"].on is pair["left elbow"]
    m.change("lower", mass=3.0)
    assert m["imu"].on is m["lower"]


def test_terrain():
    m = da.Mechanism("ball over hills")
    m.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0.5, 0.5, 2.0))
    m.height_field(0.5 * np.ones((4, 4)))
    m.sensor("height", da.GroundDistance(), "ball")
    assert da.Simulation(m, da.Variational(dt=1e-3)).sensor("height") == pytest.approx([1.5])


def test_as_mujoco_says(tmp_path: Path):
    """Sensors of a file, against MuJoCo's own numbers at a moving pose."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><option timestep="1e-4" integrator="RK4"/><worldbody><body name="arm" pos="0 0 1"><joint name="hinge" axis="0 1 0"/>
    <geom type="box" size=".3 .02 .02" pos=".3 0 0" mass="1"/><site name="end" pos=".5 .1 0" euler="20 30 40"/>
    <body name="hand" pos=".6 0 0"><joint name="wrist" axis="0 0 1"/><geom type="box" size=".1 .03 .02" pos=".1 0 0" mass=".3"/></body></body></worldbody>
    <sensor><accelerometer name="a" site="end"/><gyro name="g" site="end"/><velocimeter name="v" site="end"/><framepos name="p" objtype="site" objname="end"/>
    <framequat name="q" objtype="site" objname="end"/><jointpos name="j" joint="hinge"/><jointvel name="jv" joint="wrist" noise="0.1"/><clock name="c"/></sensor></mujoco>"""
    (tmp_path / "arm.xml").write_text(text)
    m = da.load(tmp_path / "arm.xml")
    assert sum("clock" in line for line in m.report) == 1
    assert any("noise of 0.1" in line for line in m.report)
    m.start("hinge", 0.0, rate=2.0)
    m.start("wrist", 0.0, rate=-3.0)
    sim = da.Simulation(m, da.Variational(dt=1e-4))
    run = sim.run(0.1)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qvel[:] = 2.0, -3.0
    for _ in range(1000):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    for ours, theirs, bound in (("a", data.sensor("a").data, 2e-2), ("g", data.sensor("g").data, 1e-5), ("v", data.sensor("v").data, 1e-5)):
        assert np.allclose(run.sensor(ours).values[-1], theirs, atol=bound), ours
    assert np.allclose(run.sensor("p").values[-1, :3], data.sensor("p").data, atol=1e-6)
    q = run.sensor("q").values[-1]
    assert np.allclose(q * np.sign(q @ data.sensor("q").data), data.sensor("q").data, atol=1e-6)
    assert run.sensor("j")["coordinate"][-1] == pytest.approx(data.sensor("j").data[0], abs=1e-6)
    assert run.sensor("jv")["rate"][-1] == pytest.approx(data.sensor("jv").data[0], abs=1e-5)


def test_bad_sensors():
    m = swinging_arm()
    with pytest.raises(da.ModelError, match="sits on a joint"):
        m.sensor("new", da.Encoder(), "upper")
    with pytest.raises(da.ModelError, match="sits on a body that moves"):
        m.sensor("new", da.IMU(), "world")
    with pytest.raises(da.ModelError, match="taken"):
        m.sensor("imu", da.IMU(), "upper")
    with pytest.raises(da.ModelError, match="contacts with"):
        m.sensor("new", da.IMU(), "upper", other="ground")
    with pytest.raises(da.ModelError, match="negative"):
        m.sensor("new", da.IMU(), "upper", noise=-1.0)
    with pytest.raises(da.ModelError, match="did you mean 'noisy'"):
        da.Simulation(m, da.Variational(dt=1e-3)).sensor("nosy")
    with pytest.raises(da.ModelError, match="no channel"):
        da.Simulation(m, da.Variational(dt=1e-3)).run(0.002).sensor("imu")["force x"]
    bare = da.Mechanism("bare")
    bare.body("ball", da.Sphere(radius=0.1, mass=1.0))
    bare.sensor("height", da.GroundDistance(), "ball")
    with pytest.raises(da.ModelError, match="has none"):
        da.Simulation(bare, da.Variational(dt=1e-3)).sensor("height")
