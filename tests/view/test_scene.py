"""What is drawn: closed surfaces of every shape, the environment, springs between their points, and a camera that sees it all."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.simulation.trajectory import rotate
from dalembert.view.raster import looking
from dalembert.view.scene import build_scene, fitting_eye
from dalembert.view.triangles import arrow, shaded, simplified, terrain, triangles

CUBE = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 2)]


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """Of what triangles enclose, positive when they are seen counter-clockwise from outside."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6.0


@pytest.mark.parametrize("shape", [
    da.Box(size=(1, 2, 3), mass=1), da.Sphere(radius=0.5, mass=1), da.Ellipsoid(semi_axes=(1, 2, 3), mass=1), da.Cylinder(radius=0.3, length=2, mass=1, axis=(1, 1, 0)),
    da.Capsule(radius=0.3, length=1, mass=1, axis="x"), da.Cone(radius=0.3, length=1, mass=1, axis="y"), da.Convex(points=CUBE, mass=1),
    da.Composite(parts=[(da.Sphere(radius=0.2, mass=1), (0, 0, 1)), (da.Box(size=(0.2, 0.2, 0.2), mass=1), (1, 0, 0), (1, 1, 0, 0))]),
], ids=lambda shape: type(shape).__name__)
def test_shapes_are_closed_and_seen_from_outside(shape):
    pieces = triangles(shape)
    exact = sum(part.volume for part, *_ in shape.parts) if isinstance(shape, da.Composite) else shape.volume
    assert sum(volume(*piece) for piece in pieces) == pytest.approx(exact, rel=0.03)
    for vertices, faces in pieces:
        corners, normals, smooth = shaded(vertices, faces)
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-12)
        assert volume(corners, smooth) == pytest.approx(volume(vertices, faces), rel=1e-6)


def test_arrows_reach_from_point_to_point():
    start, end = np.array([1.0, 2.0, 3.0]), np.array([1.0, -1.0, 7.0])
    for head in (True, False):
        vertices, faces = arrow(start, end, 0.05, head)
        along = (vertices - start) @ (end - start) / 5.0
        assert along.min() == pytest.approx(0.0, abs=1e-12)
        assert along.max() == pytest.approx(5.0)
        assert volume(vertices, faces) > 0.0


def test_meshes_lose_triangles_and_keep_their_form():
    vertices, faces = triangles(da.Sphere(radius=1.0, mass=1))[0]
    fewer = simplified(vertices, faces, 300)
    assert len(fewer[1]) <= 300 < len(faces)
    assert volume(*fewer) == pytest.approx(4.19, rel=0.15)


def scene_of(mechanism: da.Mechanism):
    return build_scene(mechanism, np.array([b.position for b in mechanism.bodies]), np.array([b.orientation for b in mechanism.bodies]))


def test_the_environment_is_drawn():
    mechanism = da.Mechanism("yard")
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 1))
    mechanism.obstacle("step", da.Box(size=(1, 1, 0.2), mass=1), position=(2, 0, 0.1))
    mechanism.ground(offset=-0.25)
    mechanism.ground(name="slope", normal=(1, 0, 1), offset=-1.0)
    heights = np.random.default_rng(1).normal(size=(5, 4))
    mechanism.height_field(heights, origin=(-3, 1), spacing=0.5)
    scene = scene_of(mechanism)
    assert scene.floor == -0.25
    still = [part for part in scene.parts if part.owner < 0]
    assert len(still) == 3
    step, field, slope = still
    np.testing.assert_allclose(step.vertices.max(axis=0), (2.5, 0.5, 0.2), atol=1e-6)
    np.testing.assert_allclose(slope.vertices @ np.sqrt([0.5, 0, 0.5]), -1.0, atol=1e-6)
    surface, _ = terrain(mechanism.terrains[0])
    for i in range(5):
        for j in range(4):
            at = np.linalg.norm(surface[:, :2] - (-3 + 0.5 * i, 1 + 0.5 * j), axis=1)
            assert surface[at.argmin(), 2] == pytest.approx(heights[i, j], abs=1e-12)
    assert len(field.vertices) >= 13 * 10


def test_floors():
    stand, hang, fly = da.Mechanism("stand"), da.Mechanism("hang"), da.Mechanism("fly", gravity=(0, 0, 0))
    for mechanism, height in ((stand, 0.2), (hang, -3.0), (fly, 1.0)):
        mechanism.body("ball", da.Sphere(radius=0.2, mass=1.0), position=(0, 0, height))
    assert scene_of(stand).floor == 0.0
    floor = scene_of(hang).floor
    assert floor is not None
    assert floor < -3.2
    assert scene_of(fly).floor is None


def test_springs_and_rods_reach_between_their_points():
    mechanism = da.Mechanism("ties")
    for name, x in (("left", -1.0), ("right", 1.0)):
        mechanism.body(name, da.Sphere(radius=0.1, mass=1.0), position=(x, 0.2, 0.3), orientation=(0.9, 0.1, x, 0.3))
    mechanism.spring("spring", "left", "right", at=((-1, 0, 0), (1.1, 0, 0.5)), stiffness=1.0)
    mechanism.joint("rod", da.Distance(), mechanism.world, "right", at=((0, 0, 5), (1, 0, 0)))
    mechanism.spring("down", mechanism.world, "left", at=((-1, 0, 2), (-1, 0, 1)), stiffness=1.0)
    scene = scene_of(mechanism)
    poses = scene.placed(np.array([b.position for b in mechanism.bodies]), np.array([b.orientation for b in mechanism.bodies]))
    assert poses.shape == (5, 8)
    ends = [((-1, 0, 0), (1.1, 0, 0.5)), ((0, 0, 5), (1, 0, 0)), ((-1, 0, 2), (-1, 0, 1))]
    for pose, (first, second) in zip(poses[2:], ends, strict=True):
        np.testing.assert_allclose(pose[:3], first, atol=1e-12)
        np.testing.assert_allclose(pose[:3] + rotate(pose[3:7], np.array([0, 0, pose[7]])), second, atol=1e-9)
    assert sorted(part.owner for part in scene.parts) == [0, 1, 2, 3, 4]
    assert scene.hull[:, 2].max() >= 5.0 - 1e-9  # the anchor is in the picture


def test_paths_are_lines_from_point_to_point():
    mechanism = da.Mechanism("line")
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(1, 0.2, 0.3), orientation=(0.9, 0.1, 0.2, 0.3))
    points = [("world", (0, 0, 0)), ("ball", (1, 0, 0.3)), ("ball", (1.1, 0.2, 0.3)), ("world", (0, 1, 1))]
    mechanism.cable("rope", points, stiffness=1.0)
    scene = scene_of(mechanism)
    poses = scene.placed(np.array([b.position for b in mechanism.bodies]), np.array([b.orientation for b in mechanism.bodies]))[1:]
    np.testing.assert_allclose(poses[:, :3], [p for _, p in points[:-1]], atol=1e-12)
    ends = [pose[:3] + rotate(pose[3:7], np.array([0, 0, pose[7]])) for pose in poses]
    np.testing.assert_allclose(ends, [p for _, p in points[1:]], atol=1e-9)
    assert sorted(part.owner for part in scene.parts) == [0, 1, 2, 3]


def test_balls_of_contact_points_are_drawn_and_the_mechanism_stays_as_it_was():
    mechanism = da.zoo.quadruped()
    before = {name: len(visuals) for name, visuals in mechanism.visuals.items()}
    first, second = scene_of(mechanism), scene_of(mechanism)
    assert [len(p.faces) for p in first.parts] == [len(p.faces) for p in second.parts]
    assert {name: len(visuals) for name, visuals in mechanism.visuals.items()} == before


@pytest.mark.parametrize(("azimuth", "elevation", "aspect"), [(-55, 18, 1.4), (100, -30, 0.5), (0, 89, 3.0)])
def test_the_camera_sees_all_and_no_more(azimuth, elevation, aspect):
    points = np.random.default_rng(3).normal(size=(200, 3)) * (3.0, 0.5, 1.0) + (5.0, 1.0, -2.0)
    axes = looking(azimuth, elevation)
    eye = fitting_eye(points, axes, 0.4 * aspect, 0.4)
    x, y, back = axes @ (points - eye).T
    inside = np.stack([np.abs(x) / (-back * 0.4 * aspect), np.abs(y) / (-back * 0.4)])
    assert (back < 0.0).all()
    assert inside.max() == pytest.approx(1.0, abs=1e-9)


def test_what_stands_far_away_does_not_move_the_camera():
    mechanism = da.Mechanism("plain")
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 1))
    mechanism.visual(mechanism.world, da.Box(size=(100, 100, 0.1), mass=1), position=(0, 0, -0.05))
    assert scene_of(mechanism).radius < 0.5
