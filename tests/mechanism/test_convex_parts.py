"""Meshes that are not convex, as convex parts."""
from __future__ import annotations

import sys

import numpy as np
import pytest

import dalembert as da

pytest.importorskip("coacd")
trimesh = pytest.importorskip("trimesh")

OUTLINE = 0.1 * np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], dtype=float)


def angle() -> tuple[np.ndarray, np.ndarray]:
    """An L of 0.2 x 0.2 m, 0.1 m thick."""
    corners = np.concatenate([np.column_stack([OUTLINE, np.full(6, z)]) for z in (0.0, 0.1)])
    faces = []
    for a, b, c in ((0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)):
        faces += [(c, b, a), (6 + a, 6 + b, 6 + c)]
    for i in range(6):
        j = (i + 1) % 6
        faces += [(i, j, 6 + j), (i, 6 + j, 6 + i)]
    return corners, np.array(faces)


def test_an_angle_is_two_boxes():
    corners, faces = angle()
    shape = da.convex_parts(corners, faces, density=1000.0)
    solid = trimesh.Trimesh(corners, faces, process=False)
    assert isinstance(shape, da.Composite)
    assert len(shape.parts) == 2
    assert shape.mass == pytest.approx(3.0, rel=1e-3)
    np.testing.assert_allclose(shape.center_of_mass, solid.center_mass, atol=1e-5)
    np.testing.assert_allclose(shape.inertia, 1000.0 * solid.moment_inertia, atol=2e-5)
    assert da.convex_parts(corners, faces, mass=2.0).mass == pytest.approx(2.0)
    again = da.convex_parts(corners, faces, density=1000.0)
    for (one, place, _), (other, elsewhere, _) in zip(shape.parts, again.parts):
        np.testing.assert_array_equal(one.points, other.points)
        assert place == elsewhere


def test_a_ball_falls_into_the_corner_that_a_hull_would_fill():
    corners, faces = angle()
    shape = da.convex_parts(corners, faces, mass=1.0)
    mechanism = da.Mechanism("corner")
    mechanism.obstacle("angle", shape, position=shape.center_of_mass[[0, 2, 1]] * (1, -1, 1), orientation=(np.sqrt(0.5), np.sqrt(0.5), 0, 0))  # upright: y becomes z
    mechanism.body("ball", da.Sphere(radius=0.03, mass=1.0), position=(0.15, -0.05, 0.2), collide=True)
    run = da.Simulation(mechanism, da.Variational(dt=0.005)).run(1.0)
    assert run.position[-1, 0, 2] == pytest.approx(0.1 + 0.03, abs=1e-4)  # on the leg, not on the slope of a hull


def test_robots_touch_by_parts_of_their_meshes(tmp_path):
    corners, faces = angle()
    trimesh.Trimesh(corners, faces, process=False).export(tmp_path / "angle.stl")
    (tmp_path / "robot.urdf").write_text(
        '<robot name="r"><link name="base"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<collision><geometry><mesh filename="angle.stl"/></geometry></collision></link></robot>', encoding="utf-8")
    plain = da.load(tmp_path / "robot.urdf", base="free")
    divided = da.load(tmp_path / "robot.urdf", base="free", decompose=True)
    assert isinstance(plain.colliders[0].shape, da.Convex)
    shape = divided.colliders[0].shape
    assert isinstance(shape, da.Composite)
    assert len(shape.parts) == 2
    np.testing.assert_allclose(divided.colliders[0].position, divided.colliders[0].shape.center_of_mass, atol=1e-12)
    assert any("2 convex parts" in line for line in divided.report)
    divided.save(tmp_path / "robot.toml")
    assert len(da.load(tmp_path / "robot.toml").colliders[0].shape.parts) == 2  # type: ignore[attr-defined]


def test_meshes_of_mjcf_files_touch_by_their_parts(tmp_path):
    """MuJoCo moves a mesh to its own centre and turns it: the parts lie where its points are, and a ball falls into the corner."""
    mujoco = pytest.importorskip("mujoco")
    corners, faces = angle()
    turned = np.stack([corners[:, 0], -corners[:, 2], corners[:, 1]], axis=1)  # upright: y becomes z
    trimesh.Trimesh(turned, faces, process=False).export(tmp_path / "angle.stl")
    text = ('<mujoco><asset><mesh name="angle" file="angle.stl"/></asset><worldbody><geom name="angle" type="mesh" mesh="angle" pos="0.3 0.2 0.1"/>'
            '<body name="ball" pos="0.45 0.15 0.3"><freejoint/><geom name="ball" size="0.03" mass="1"/></body></worldbody></mujoco>')
    (tmp_path / "corner.xml").write_text(text, encoding="utf-8")
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "corner.xml")).ngeom == 2
    mechanism = da.load(tmp_path / "corner.xml", decompose=True)
    shape = mechanism.obstacles[0].shape
    assert isinstance(shape, da.Composite)
    assert len(shape.parts) == 2
    run = da.Simulation(mechanism, da.Variational(dt=0.005)).run(1.0)
    assert run.position[-1, 0, 2] == pytest.approx(0.1 + 0.1 + 0.03, abs=1e-4)  # on the leg, not on the slope of a hull


def test_a_convex_mesh_stays_one(tmp_path):
    box = trimesh.creation.box((0.1, 0.2, 0.3))
    shape = da.convex_parts(box.vertices, box.faces, density=1000.0)
    assert len(shape.parts) == 1
    assert shape.mass == pytest.approx(6.0, rel=1e-4)


def test_what_cannot_be_divided_is_said(monkeypatch):
    corners, faces = angle()
    with pytest.raises(da.ModelError, match="either density or mass"):
        da.convex_parts(corners, faces)
    with pytest.raises(da.ModelError, match="triangles"):
        da.convex_parts(corners, [[0, 1, 99]], mass=1.0)
    with pytest.raises(da.ModelError, match="triangles"):
        da.convex_parts(corners, np.zeros((0, 3)), mass=1.0)
    monkeypatch.setitem(sys.modules, "coacd", None)
    with pytest.raises(da.MissingExtraError, match=r"pip install dalembert\[convex\]"):
        da.convex_parts(corners, faces, mass=1.0)
