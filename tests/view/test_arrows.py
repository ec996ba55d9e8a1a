"""Arrows of joint and contact forces: where they stand, and that they carry what they should."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.view.arrows import Arrows

WEIGHT = 9.81


@pytest.fixture(scope="module")
def box_run() -> da.Trajectory:
    """A cube of 1 kg that falls on a corner and comes to rest."""
    mechanism = da.zoo.box_drop(orientation=(0.95, 0.2, 0.1, 0.0))
    return da.Simulation(mechanism, da.Variational(dt=0.01)).run(2.0)


def test_a_box_at_rest_is_carried(box_run):
    arrows = Arrows(box_run, 1.0)
    assert arrows.touching
    rows = arrows.contacts(len(box_run) - 2)
    np.testing.assert_allclose(rows[:, 3:].sum(axis=0), (0, 0, WEIGHT), atol=1e-3)
    np.testing.assert_allclose(rows[:, 2], 0.0, atol=1e-3)
    assert len(arrows.contacts(0)) == 0
    np.testing.assert_array_equal(arrows.contacts(len(box_run) - 1), rows)  # no step begins there


def test_arrows_are_all_of_the_force_at_every_knot(box_run):
    arrows = Arrows(box_run, 1.0)
    acting = box_run._values["contact_wrench"][:, 0, :3]
    for knot in range(len(box_run) - 1):
        np.testing.assert_allclose(arrows.contacts(knot)[:, 3:].sum(axis=0), acting[knot], atol=1e-6 * np.abs(acting).max(), err_msg=str(knot))


def test_joint_forces_are_turned_into_the_world():
    mechanism = da.Mechanism("hanging")
    body = mechanism.body("body", da.Sphere(radius=0.1, mass=2.0), position=(0, 0, -1))
    leaf = mechanism.body("leaf", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, -2))
    mechanism.joint("above", da.Revolute(axis="x"), mechanism.world, body, at=(0, 0, 0), frame=(1, 1, 0, 0))
    mechanism.joint("below", da.Spherical(), body, leaf, at=(0, 0, -1.5))
    run = da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.1)
    arrows = Arrows(run, 1.0)
    rows = arrows.joints(np.array([0, 5]))
    assert rows.shape == (2, 2, 9)
    np.testing.assert_allclose(rows[:, 0, :3], 0.0, atol=1e-9)
    np.testing.assert_allclose(rows[:, 1, :3], [(0, 0, -1.5)] * 2, atol=1e-9)
    np.testing.assert_allclose(np.abs(rows[:, 0, 3:6]), [(1, 0, 0)] * 2, atol=1e-9)
    np.testing.assert_array_equal(rows[:, 1, 3:6], 0.0)  # a ball has no axis
    np.testing.assert_allclose(rows[:, :, 6:], [[(0, 0, 3 * WEIGHT), (0, 0, WEIGHT)]] * 2, atol=1e-6)
    tip = arrows.tips(rows[0, 0, :3], rows[0, 0, 6:])
    np.testing.assert_allclose(tip, (0, 0, 0.35), atol=1e-6)  # the largest force is a third of the mechanism's size
    assert np.linalg.norm(arrows.tips(np.zeros(3), np.array([0, 0, 1e6]))) == pytest.approx(2.0)


def test_runs_without_contacts_or_model(short_run):
    assert not Arrows(short_run, 1.0).touching
    assert Arrows(short_run, 1.0).joints(np.array([3])).shape == (1, 5, 9)


def test_snapshots_have_room_for_their_arrows(tmp_path):
    """Long arrows end within the picture."""
    image = pytest.importorskip("PIL.Image")
    run = da.Simulation(da.zoo.four_bar_chain(3), da.Variational(dt=0.01)).run(0.5)
    pixels = np.asarray(image.open(run.snapshot(tmp_path / "run.png", show="forces"))).astype(int)
    orange = (pixels[..., 0] > pixels[..., 2] + 80) & (pixels[..., 0] > pixels[..., 1] + 50) & (pixels[..., 1] > pixels[..., 2] + 10)
    assert orange.sum() > 500
    assert not orange[:4].any()
    assert not orange[-4:].any()
    assert not orange[:, :4].any()
    assert not orange[:, -4:].any()
