"""Mechanisms to URDF and trajectories to tables, and back."""
from __future__ import annotations

import csv

import numpy as np
import pytest
from robots import find
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert import zoo
from dalembert.io.urdf_export import save_urdf
from dalembert.mechanism.actuators import Actuator


def arm() -> da.Mechanism:
    mechanism = da.Mechanism("arm")
    upper = mechanism.body("upper", da.Rod(length=1.0, mass=1.0, radius=0.05, axis=(0, 1, 1)), position=(0, 0.3, -0.5), orientation=(1, 0.2, 0, 0.1))
    lower = mechanism.body("lower", da.Box(size=(0.1, 0.2, 1.0), mass=2.0), position=(0, 0, -1.5))
    slider = mechanism.body("slider", da.Sphere(radius=0.1, mass=0.3), position=(0.4, 0, -1.5))
    mechanism.joint("shoulder", da.Revolute(axis=(1, 0.2, 0), damping=0.2), mechanism.world, upper, at=(0, 0, 0))
    mechanism.joint("elbow", da.Revolute(axis="y"), upper, lower, at=(0, 0, -1))
    mechanism.joint("slide", da.Prismatic(axis="x", damping=3.0), lower, slider, at=(0.2, 0, -1.5))
    mechanism.gear("tie", "elbow", "shoulder", ratio=0.5)
    return mechanism


def test_urdf_there_and_back(tmp_path):
    pytest.importorskip("yourdfpy")
    made = arm()
    made.save(tmp_path / "arm.urdf")
    read = da.load(tmp_path / "arm.urdf")
    assert read.mass == pytest.approx(made.mass, rel=1e-12)
    runs = []
    for mechanism in (made, read):
        mechanism.start("shoulder", 0.4)
        runs.append(da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.5))
    for name in ("shoulder", "elbow", "slide"):
        np.testing.assert_allclose(runs[0].joint(name).coordinates, runs[1].joint(name).coordinates, atol=1e-9)


def test_limits_and_shapes_there_and_back(tmp_path):
    pytest.importorskip("yourdfpy")
    made = da.Mechanism("hand")
    made.body("palm", da.Box(size=(0.1, 0.1, 0.02), mass=1.0), collide=True)
    made.body("finger", mass=0.1, inertia=np.diag([1e-3, 1e-3, 1e-4]), position=(0.05, 0, 0.1), orientation=(1, 0, 0.3, 0))
    made.body("nail", mass=0.1, inertia=np.eye(3) * 1e-4, position=(0.05, 0, 0.2))
    made.joint("knuckle", da.Revolute(axis="y", limits=(-0.2, 1.5), friction=0.01, drive="force"), "palm", "finger", at=(0.05, 0, 0))
    made.joint("click", da.Prismatic(axis="z", limits=(0.0, None), drive="force"), "finger", "nail", at=(0.05, 0, 0.2))
    made.collider("pad", "finger", da.Cylinder(radius=0.01, length=0.1, mass=1.0, axis="x"), position=(0, 0, 0.01), orientation=(1, 0.2, 0, 0))
    made.actuators["knuckle"] = Actuator(name="knuckle", arms={"knuckle": 1.0}, force_range=(-3.0, 3.0))
    made.save(tmp_path / "hand.urdf")
    read = da.load(tmp_path / "hand.urdf", base="free")
    assert read.report == []
    for name in ("knuckle", "click"):
        assert read[name].type.limits == made[name].type.limits
        assert read[name].type.friction == made[name].type.friction
    assert read.actuators == made.actuators
    box, pad = read.colliders
    assert (box.body.name, box.shape.size) == ("palm", (0.1, 0.1, 0.02))  # type: ignore[attr-defined]
    axis = Rotation.from_quat(pad.orientation, scalar_first=True).apply((0, 0, 1))
    np.testing.assert_allclose(axis, Rotation.from_quat((1, 0.2, 0, 0), scalar_first=True).apply((1, 0, 0)), atol=1e-12)
    np.testing.assert_allclose(pad.position, (0, 0, 0.01), atol=1e-12)
    made.ground()
    made.contact_pair("pad", "ground", friction=0.1)
    lost = save_urdf(made, tmp_path / "hand.urdf", lossy=True)
    assert lost == ["ground 'ground'", "how 'ground' and 'pad' touch"]


def test_a_robot_there_and_back(tmp_path):
    pytest.importorskip("yourdfpy")
    made = da.load(find("panda"))
    lost = save_urdf(made, tmp_path / "panda.urdf", lossy=True)
    assert any("mesh" in line for line in lost)
    read = da.load(tmp_path / "panda.urdf")
    assert [b.name for b in made.bodies] == [b.name for b in read.bodies]
    for a, b in zip(made.bodies, read.bodies):
        np.testing.assert_allclose(a.position, b.position, atol=1e-12)
        np.testing.assert_allclose(a.inertia, b.inertia, atol=1e-12)


def sprung() -> da.Mechanism:
    mechanism = da.Mechanism("sprung")
    rod = mechanism.body("rod", da.Rod(length=1.0, mass=1.0, radius=0.05))
    mechanism.joint("hinge", da.Revolute(axis="x", stiffness=3.0), mechanism.world, rod)
    return mechanism


@pytest.mark.parametrize(("mechanism", "message"), [
    (zoo.three_link_loop, "loop"),
    (zoo.heavy_top, "Spherical"),
    (zoo.mass_spring, "gravity"),
    (sprung, "stiffness"),
    (zoo.double_four_bar, "loop"),
])
def test_what_urdf_cannot_hold(mechanism, message, tmp_path):
    with pytest.raises(da.ModelError, match=message):
        mechanism().save(tmp_path / "model.urdf")
    assert not list(tmp_path.iterdir())


def test_forces_and_servos_are_said_to_be_lost(tmp_path):
    mechanism = sprung()
    mechanism.body("tip", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 1))
    mechanism.joint("motor", da.Revolute(axis="y", servo=da.Servo(stiffness=1.0)), "rod", "tip", at=(0, 0, 1))
    mechanism.cable("rope", [("world", (1, 0, 0)), ("rod", (0, 0, 0))], stiffness=1.0)
    mechanism.drag("air", "rod", linear=1.0)
    mechanism.potential("field", "rod", lambda x, q: 0.0)
    lost = save_urdf(mechanism, tmp_path / "model.urdf", lossy=True)
    assert lost == ["cable 'rope' through 2 points", "drag 'air' on 'rod'", "force law 'field' on rod", "stiffness of joint 'hinge'", "servo of joint 'motor'"]


def test_two_roots(tmp_path):
    mechanism = da.Mechanism("two")
    for name in "ab":
        mechanism.body(name, da.Sphere(radius=0.1, mass=1.0))
    with pytest.raises(da.ModelError, match="one root"):
        mechanism.save(tmp_path / "model.urdf")


def test_tables(short_run, tmp_path):
    short_run.save(tmp_path / "run.csv")
    with open(tmp_path / "run.csv", newline="") as file:
        header, *rows = list(csv.reader(file))
    assert len(rows) == len(short_run)
    column = [float(row[header.index("slide.coordinate.0 [m]")]) for row in rows]
    np.testing.assert_array_equal(column, short_run.joint("slide").coordinates)
    short_run.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as data:
        np.testing.assert_array_equal(data["position"], short_run.position)
        assert tuple(data["bodies"]) == short_run.bodies
    with pytest.raises(FileNotFoundError):
        short_run.save(tmp_path / "none" / "run.csv")
