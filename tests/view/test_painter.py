"""The painter of pictures: both of its ways show the same, what is nearer hides what is behind it, and shadows fall away from the light."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.view.painter import Camera, Painter
from dalembert.view.raster import looking
from dalembert.view.scene import arrow_parts, build_scene

SIZE = (160, 120)
RED, BLUE = (0.9, 0.1, 0.1, 1.0), (0.1, 0.1, 0.9, 1.0)


@pytest.fixture(scope="module")
def scene():
    """A red ball before a blue box, above a floor."""
    m = da.Mechanism("two")
    m.ground()
    for name, shape, place, colour in (("ball", da.Sphere(radius=0.2, mass=1.0), (0, -0.6, 0.6), RED), ("box", da.Box(size=(1.0, 0.2, 0.8), mass=1.0), (0, 0, 0.6), BLUE)):
        m.body(name, shape, position=place)
        m.visual(name, shape, colour=colour)
    sim = da.Simulation(m, da.Variational(dt=0.01))
    return build_scene(m, sim.position, sim.orientation), sim.position, sim.orientation


def picture(scene, extras=(), azimuth: float = -90.0) -> np.ndarray:
    built, position, orientation = scene
    aim, axes = np.array([0.0, 0.0, 0.5]), looking(azimuth, 20.0)
    return Painter(built).picture(built.placed(position, orientation), list(extras), Camera(aim + 3.0 * axes[2], axes, (2 * SIZE[0], 2 * SIZE[1])), aim).astype(int)


def of_colour(seen: np.ndarray, strong: int, weak: int) -> np.ndarray:
    return seen[..., strong] > seen[..., weak] + 60


def test_what_is_nearer_hides_what_is_behind(scene):
    front, back = picture(scene), picture(scene, azimuth=90.0)
    middle = (SIZE[1] // 2 + 6, SIZE[0] // 2)
    assert of_colour(front, 0, 2)[middle]
    assert of_colour(back, 2, 0)[middle]
    assert of_colour(front, 0, 2).sum() > 200
    assert of_colour(back, 0, 2).sum() == 0


def test_no_cracks_between_triangles(scene):
    """Pixels of the box are whole rows without holes."""
    for row in of_colour(picture(scene, azimuth=90.0), 2, 0):
        columns = np.flatnonzero(row)
        assert len(columns) == 0 or np.ptp(columns) + 1 == len(columns)


def test_layers_change_nothing_where_they_are_not(scene):
    """Pictures with arrows are drawn at twice the size and shrunk, others at once; an arrow behind the camera shows which."""
    behind = arrow_parts([(np.array([0.0, -9.0, 0.0]), np.array([0.0, -9.5, 0.0]), RED, True)], 0.02)
    assert np.abs(picture(scene, behind) - picture(scene)).max() <= 1


def test_hidden_arrows_are_faint(scene):
    arrow = arrow_parts([(np.array([-0.3, 0.3, 0.7]), np.array([0.3, 0.3, 0.7]), RED, True)], 0.03)
    change = np.abs(picture(scene, arrow) - picture(scene)).max(axis=2)
    seen = np.abs(picture(scene, arrow, azimuth=90.0) - picture(scene, azimuth=90.0)).max(axis=2)
    assert 10 < change.max() < 0.5 * seen.max()


def test_the_floor_lies_in_shadow_away_from_the_light(scene):
    built, position, orientation = scene
    lifted = built.placed(position + np.array([0.0, 0.0, 50.0]), orientation)
    aim, axes = np.array([0.0, 0.0, 0.5]), looking(0.0, 35.0)
    camera = Camera(aim + 6.0 * axes[2], axes, (2 * SIZE[0], 2 * SIZE[1]))
    painter = Painter(built)
    lit, shaded = (painter.picture(poses, [], camera, aim).astype(int) for poses in (lifted, built.placed(position, orientation)))
    darker = np.argwhere(((lit - shaded).min(axis=2) > 20) & ~of_colour(shaded, 0, 2) & ~of_colour(shaded, 2, 0))
    assert len(darker) > 50
    assert darker[:, 1].mean() > SIZE[0] / 2  # the light comes from negative y, which is left here
