"""The live view: what it shows, what its controls do, in a browser where there is one."""
from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from browser import browser

import dalembert as da

pytest.importorskip("viser")


def test_a_run_is_played_and_scrubbed(short_run):
    viewer = short_run.view(port=18101, block=False)
    try:
        viewer.playing.value = False
        viewer.time.value = 0.1
        viewer.axes.value = viewer.forces.value = viewer.body_frames.value = True
        viewer.follow.value = "bob"
        time.sleep(0.3)
        assert viewer.knot == 10
        np.testing.assert_allclose(viewer.stage.frames[3].position, short_run.position[10, 3])
        viewer.playing.value = True
        time.sleep(0.5)
        assert viewer.knot != 10 or viewer.time.value != 0.1
    finally:
        viewer.stop()


def test_a_simulation_is_pulled_and_driven():
    mechanism = da.Mechanism("arm")
    rod = mechanism.body("rod", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -0.5))
    tip = mechanism.body("tip", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, -1.2))
    mechanism.joint("motor", da.Revolute(axis="x", drive="position"), mechanism.world, rod)
    mechanism.joint("ball", da.Spherical(), rod, tip, at=(0, 0, -1))
    simulation = da.Simulation(mechanism, da.Variational(dt=0.005))
    simulation.step()  # compiled before the clock counts
    viewer = simulation.view(port=18102, block=False)
    try:
        viewer.sliders["motor"].value = 0.5
        viewer.pulled.value = "tip"
        viewer._grab()
        viewer.handle.position = np.array([1.0, 0.0, -1.0])
        end = time.monotonic() + 20
        while simulation.time < 1.0 and time.monotonic() < end:
            time.sleep(0.1)
        assert viewer.failure is None
        assert simulation.coordinates("motor")[0] == pytest.approx(0.5, abs=1e-6)
        assert simulation.position[1, 0] > 0.05
    finally:
        viewer.stop()


@pytest.mark.slow
def test_a_browser_shows_it(short_run, tmp_path):
    viewer = short_run.view(port=18103, block=False)
    try:
        with browser(tmp_path / "profile") as page:
            page.open(viewer.url)
            page.wait("!!document.querySelector('canvas') && document.body.innerText.includes('joint forces')", 60)
            time.sleep(2.0)
            first = page.picture()
            page.wait("true")
            time.sleep(1.0)
            assert page.picture() != first
    finally:
        viewer.stop()


def test_without_viser(short_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(da.MissingExtraError, match=r"dalembert\[view\]"):
        short_run.view()
