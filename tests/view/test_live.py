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
        viewer.axes.value = viewer.forces.value = viewer.body_frames.value = viewer.names.value = True
        viewer.follow.value = "bob"
        time.sleep(0.3)
        assert viewer.knot == 10
        np.testing.assert_allclose(viewer.stage.owners[3].position, short_run.position[10, 3])
        assert viewer.stage.owners[3].show_axes
        assert viewer.stage.labels[3].visible
        assert len(viewer.stage._arrows["forces"].points) == 5
        times, *_, line = viewer.energy.data
        assert times[np.isfinite(line)] == pytest.approx([0.1, 0.1])  # the cursor stands at the time
        assert not viewer.contacts.visible
        viewer.playing.value = True
        time.sleep(0.5)
        assert viewer.knot != 10 or viewer.time.value != 0.1
    finally:
        viewer.stop()


def test_contacts_are_shown():
    run = da.Simulation(da.zoo.box_drop(height=0.01), da.Variational(dt=0.01)).run(0.3)
    viewer = run.view(port=18104, block=False)
    try:
        viewer.playing.value, viewer.time.value = False, 0.25
        viewer.contacts.value = True
        time.sleep(0.3)
        points = viewer.stage._arrows["contacts"].points
        assert len(points) == 4
        assert (points[:, 1, 2] > points[:, 0, 2]).all()  # the ground pushes up
        viewer.contacts.value = False
        time.sleep(0.2)
        assert not viewer.stage._arrows["contacts"].visible
    finally:
        viewer.stop()


def arm() -> da.Simulation:
    """A motor turns a rod with a ball on it."""
    mechanism = da.Mechanism("arm")
    rod = mechanism.body("rod", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -0.5))
    tip = mechanism.body("tip", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, -1.2))
    mechanism.joint("motor", da.Revolute(axis="x", drive="motion"), mechanism.world, rod)
    mechanism.joint("ball", da.Spherical(), rod, tip, at=(0, 0, -1))
    simulation = da.Simulation(mechanism, da.Variational(dt=0.005))
    simulation.step()  # compiled before the clock counts
    return simulation


def wait_for(simulation: da.Simulation, time_reached: float) -> None:
    end = time.monotonic() + 20
    while simulation.time < time_reached and time.monotonic() < end:
        time.sleep(0.1)


def test_a_simulation_is_pulled_and_driven():
    simulation = arm()
    viewer = simulation.view(port=18102, block=False, ranges={"motor": (-1.0, 1.5)})
    try:
        slider = viewer.sliders["motor", 0]
        assert (slider.min, slider.max, slider.value) == (-1.0, 1.5, 0.0)
        slider.value = 0.5
        viewer.pull("tip", at=(0.1, 0, -1.2), to=(1.0, 0.0, -1.0))
        wait_for(simulation, 1.0)
        assert viewer.failure is None
        assert simulation.coordinates("motor")[0] == pytest.approx(0.5, abs=1e-6)
        assert simulation.position[1, 0] > 0.05
        viewer.forces.value = True
        end = time.monotonic() + 20
        while "forces" not in viewer.stage._arrows and time.monotonic() < end:
            time.sleep(0.1)
        assert len(viewer.stage._arrows["forces"].points) == 2
        assert viewer.stage._arrows["pull"].visible
        viewer.grip = None
        viewer.running.value = False
        time.sleep(0.2)
        stopped = simulation.time
        time.sleep(0.2)
        assert simulation.time == stopped
        assert not viewer.stage._arrows["pull"].visible
    finally:
        viewer.stop()


def test_a_controller_takes_the_place_of_sliders():
    simulation = arm()
    simulation.set_target("motor", lambda t: 0.1 * t)
    assert simulation.commanded == {"motor"}
    viewer = simulation.view(port=18108, block=False, control=lambda sim: {"tip": [0.5, 0.0, 0.0, 0.0, 0.0, 0.0]})
    try:
        assert not viewer.sliders
        viewer.pull("tip", at=(0.1, 0, -1.2), to=(0.1, 0.0, -1.2))
        assert viewer.inputs()["tip"][0] == pytest.approx(0.5 + viewer._hold(viewer.grip)[1][0], abs=0.2)
        viewer.grip = None
        wait_for(simulation, 0.5)
        assert viewer.failure is None
        assert simulation.coordinates("motor")[0] == pytest.approx(0.1 * simulation.time, abs=0.01)
        assert simulation.position[1, 0] > 0.01
    finally:
        viewer.stop()


def test_reset_single_steps_and_kept_states():
    simulation = arm()
    begun = simulation.time
    viewer = simulation.view(port=18107, block=False)

    def done(condition) -> None:
        end = time.monotonic() + 20
        while not condition() and time.monotonic() < end:
            time.sleep(0.05)
        assert condition()

    try:
        viewer.sliders["motor", 0].value = 0.3
        done(lambda: simulation.time > begun + 0.3)
        viewer.ask("step")
        done(lambda: not viewer.running.value)
        stopped = simulation.time
        viewer.ask("step")
        done(lambda: simulation.time > stopped)
        assert simulation.time == pytest.approx(stopped + 0.005)
        viewer.ask("keep")
        done(lambda: len(viewer.states) == 2)
        kept = simulation.state
        assert len(viewer._curve.data[0]) > 1
        viewer.ask("reset")
        done(lambda: simulation.time == begun)
        assert viewer.sliders["motor", 0].value == pytest.approx(simulation.coordinates("motor")[0])
        viewer.kept.value = list(viewer.states)[1]
        viewer.ask("back")
        done(lambda: simulation.state == kept)
        assert viewer.failure is None
    finally:
        viewer.stop()


def test_light_bodies_survive_a_strong_pull():
    mechanism = da.Mechanism("heavy and light")
    mechanism.body("heavy", da.Box(size=(1, 1, 1), mass=1000.0))
    mechanism.body("light", da.Box(size=(0.5, 0.01, 0.01), mass=0.01), position=(2, 0, 0))
    simulation = da.Simulation(mechanism, da.Variational(dt=0.01))
    viewer = simulation.view(port=18105, block=False)
    try:
        viewer.pull("light", at=(2.25, 0, 0), to=(2.25, 1.0, 0.0))
        wait_for(simulation, 3.0)
        assert viewer.failure is None
        held = simulation.position[1] + 0.0
        assert np.linalg.norm(held - (2.25, 1.0, 0.0)) < 1.0
        assert np.linalg.norm(simulation.velocity[1]) < 5.0
    finally:
        viewer.stop()


def test_ranges_are_for_joints():
    with pytest.raises(da.ModelError, match="is for joints"):
        arm().view(port=18106, block=False, ranges={"rod": (0.0, 1.0)})


@pytest.mark.slow
def test_a_browser_shows_a_run(short_run, tmp_path):
    viewer = short_run.view(port=18103, block=False)
    try:
        with browser(tmp_path / "profile") as page:
            page.open(viewer.url)
            page.wait("!!document.querySelector('canvas') && document.body.innerText.includes('joint forces')", 60)
            viewer.playing.value = False
            pictures = []
            for moment in (0.0, 0.2):  # the slider moves the bodies
                viewer.time.value = moment
                time.sleep(3.0)
                pictures.append(imread(page.picture()))
            stage = np.s_[160:, :640]
            assert len(np.unique(pictures[0][stage].reshape(-1, 3), axis=0)) > 50
            assert (pictures[0][stage] != pictures[1][stage]).any()
            assert page.errors == []
            assert {url.split(":")[0] for url in page.requests if not url.startswith(viewer.url)} <= {"data", "blob"}
    finally:
        viewer.stop()


@pytest.mark.slow
def test_a_body_is_pulled_with_the_mouse(tmp_path):
    simulation = arm()
    viewer = simulation.view(port=18107, block=False)
    try:
        with browser(tmp_path / "profile") as page:
            page.open(viewer.url)
            page.wait("!!document.querySelector('canvas') && document.body.innerText.includes('motor')", 60)
            time.sleep(3.0)
            red = np.argwhere((imread(page.picture())[160:, :640].astype(int) @ (1, -1, 0)) > 60)  # the ball
            y, x = red.mean(axis=0) + np.array([160, 0])
            move = {"button": "left", "buttons": 1}
            page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
            page.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, clickCount=1, **move)
            for k in range(10):
                page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + 12 * k, y=y, **move)
                time.sleep(0.2)
            furthest = 0.0
            for _ in range(100):  # on a busy machine the arm swings as slowly as pictures come
                time.sleep(0.1)
                furthest = max(furthest, np.abs(simulation.position[1] - (0, 0, -1.2)).max())
                if furthest > 0.02:
                    break
            assert viewer.grip is not None
            assert viewer.grip.body == 1
            assert furthest > 0.02
            page.call("Input.dispatchMouseEvent", type="mouseReleased", x=x + 120, y=y, clickCount=1, button="left")
            time.sleep(1.0)
            assert viewer.grip is None
            assert viewer.failure is None
    finally:
        viewer.stop()


def imread(png: bytes) -> np.ndarray:
    return pytest.importorskip("imageio.v2").imread(png)[..., :3]


def test_without_viser(short_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(da.MissingExtraError, match=r"dalembert\[view\]"):
        short_run.view()
