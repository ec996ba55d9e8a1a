"""What a user does with a page: turn, zoom, choose curves, read values, follow, on a phone and at night. Pixels and values are looked at."""
from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Page, browser

import dalembert as da

TRAVELS = "travelling ball"


@pytest.fixture(scope="module")
def run() -> da.Trajectory:
    """A ball that rolls far, with an arm that has a collider and a look of its own."""
    m = da.Mechanism(TRAVELS)
    m.ground()
    m.body("arm", da.Box(size=(0.3, 0.03, 0.03), mass=0.2), position=(0.15, 0, 0.1))
    m.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 0.1), collide=True)
    m.joint("hinge", da.Revolute(axis="y", damping=0.01), "ball", "arm", at=(0, 0, 0.1))
    m.visual("arm", da.Box(size=(0.3, 0.03, 0.03), mass=1.0))
    m.collider("shell", "arm", da.Box(size=(0.34, 0.08, 0.08), mass=1.0))
    m.sensor("imu", da.IMU(), "ball")
    sim = da.Simulation(m, da.Variational(dt=0.005))
    sim.set_velocity("ball", linear=(2, 0, 0), angular=(0, 20, 0))
    return sim.run(2.0)


@pytest.fixture(scope="module")
def page(run: da.Trajectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("page")
    with browser(folder / "profile") as opened:
        opened.open(run.to_html(folder / "run.html").as_uri())
        opened.wait("!!window.dalembert")
        opened.evaluate("window.dalembert.pause(); window.dalembert.show(50)")
        yield opened
        assert opened.errors == []


def mouse(page: Page, kind: str, x: float, y: float, **more: object) -> None:
    page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **{"button": "left" if kind != "mouseMoved" or more.get("buttons") else "none", "clickCount": 1, **more})


def pixels(page: Page) -> np.ndarray:
    from PIL import Image

    data = page.call("Page.captureScreenshot", format="png")["data"]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")).astype(int)


def test_drag_and_wheel_in_the_middle_of_the_window(page: Page):
    assert page.evaluate("document.elementFromPoint(400, 320).id") == "scene"
    before, picture = page.evaluate("window.dalembert.camera()"), pixels(page)
    mouse(page, "mousePressed", 400, 320, buttons=1)
    mouse(page, "mouseMoved", 500, 300, buttons=1)
    mouse(page, "mouseReleased", 500, 300)
    turned = page.evaluate("window.dalembert.camera()")
    assert turned[0] == pytest.approx(before[0] - 0.6, abs=0.01)
    assert np.abs(pixels(page) - picture).max() > 30
    mouse(page, "mouseWheel", 400, 320, deltaX=0, deltaY=-300)
    page.wait(f"window.dalembert.camera()[2] < {0.9 * turned[2]}")


def test_curves_and_values_under_the_pointer(page: Page, run: da.Trajectory):
    titles = page.evaluate("Array.from(document.getElementById('curve').options).map(o => o.text)")
    assert titles[0] == "energy, J"
    assert {"hinge: coordinate, rad", "hinge: rate, rad/s", "imu (IMU), m/s^2", "ball / ground: contact force, N", "hinge: force in the joint, N"} <= set(titles)
    page.evaluate(f"document.getElementById('curve').value = {titles.index('hinge: coordinate, rad')}; document.getElementById('curve').onchange()")
    times = page.evaluate("JSON.parse(document.getElementById('data').textContent).times")
    coordinates = run.joint("hinge").coordinates

    def told() -> float:
        return float(page.evaluate("document.getElementById('values').children[0].lastChild.textContent").split()[0])

    assert told() == pytest.approx(coordinates[np.argmin(np.abs(run.time - times[50]))], abs=6e-3)
    box = page.evaluate("(() => { const b = document.getElementById('plot').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
    mouse(page, "mouseMoved", box[0] + 0.25 * box[2], box[1] + 0.5 * box[3])
    assert "at 0.5" in page.wait("document.getElementById('at').textContent")
    assert told() == pytest.approx(np.interp(0.5, run.time, coordinates), abs=0.02)
    mouse(page, "mouseMoved", 300, 300)
    page.wait("document.getElementById('at').textContent === ''")


def test_follow_by_default_and_traces(page: Page, run: da.Trajectory):
    assert page.evaluate("document.getElementById('follow').selectedOptions[0].text") == "ball"
    assert page.evaluate("window.dalembert.arrows()") == 0
    page.evaluate("document.getElementById('trace').value = 1; document.getElementById('trace').onchange()")
    assert page.evaluate("window.dalembert.arrows()") == 50
    page.evaluate("document.getElementById('trace').value = -1; document.getElementById('trace').onchange()")


def test_collision_shapes_by_a_switch(page: Page):
    assert not page.evaluate("document.getElementById('collisions').parentElement.hidden")
    before = pixels(page)
    page.evaluate("document.getElementById('collisions').click()")
    assert np.abs(pixels(page) - before).max() > 20
    page.evaluate("document.getElementById('collisions').click()")
    assert np.abs(pixels(page) - before).max() < 20


def test_at_night(page: Page):
    page.evaluate("document.getElementById('home').onclick()")
    day = pixels(page)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.evaluate("window.dalembert.show(50)")
    night = pixels(page)
    page.call("Emulation.setEmulatedMedia", features=[])
    page.evaluate("window.dalembert.show(50)")
    assert day[5, 5].min() > 200
    assert night[5, 5].max() < 60
    assert np.median(night) < 90
    assert np.median(day) > 180


def test_on_a_phone(run: da.Trajectory, tmp_path: Path):
    with browser(tmp_path / "profile") as page:
        page.call("Emulation.setDeviceMetricsOverride", width=390, height=760, deviceScaleFactor=2, mobile=True)
        page.open(run.to_html(tmp_path / "run.html").as_uri())
        page.wait("!!window.dalembert")
        assert not page.evaluate("document.getElementById('side').open")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        for name in ("play", "time", "speed", "home", "clock"):
            left, right, top, bottom = page.evaluate(f"(() => {{ const b = document.getElementById('{name}').getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]; }})()")
            assert left >= 0
            assert right <= 390
            assert bottom <= 760
            assert bottom - top >= 17
        page.evaluate("document.getElementById('side').open = true")
        box = page.evaluate("(() => { const b = document.getElementById('side').getBoundingClientRect(); return [b.left, b.right, b.bottom]; })()")
        assert box[0] >= 0
        assert box[1] <= 390
        assert box[2] <= 700
