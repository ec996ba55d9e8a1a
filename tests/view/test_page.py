"""The self-contained page: its size, what a browser makes of it, and that it asks no network for anything."""
from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from browser import browser

import dalembert as da
from dalembert.view.arrows import Arrows

sys.path.insert(0, str(Path(__file__).parents[1] / "io"))
from robots import find  # pyright: ignore[reportMissingImports]

PIXELS = """(() => { const c = document.getElementById('scene'), g = c.getContext('webgl2'), p = new Uint8Array(4 * c.width * c.height);
 g.readPixels(0, 0, c.width, c.height, g.RGBA, g.UNSIGNED_BYTE, p); const seen = new Set(); for (let i = 0; i < p.length; i += 4) seen.add(p[i] * 65536 + p[i+1] * 256 + p[i+2]); return seen.size; })()"""


@pytest.fixture(scope="module")
def robot_run() -> da.Trajectory:
    """10 s of a robot of 13 bodies."""
    pytest.importorskip("yourdfpy")
    pytest.importorskip("trimesh")
    mechanism = da.load(find("a1"), merge_fixed=True)
    assert len(mechanism.bodies) == 13
    return da.Simulation(mechanism, da.Variational(dt=0.005)).run(10.0)


def test_the_page_of_a_robot_plays_in_a_browser(robot_run, tmp_path):
    page_file = robot_run.to_html(tmp_path / "run.html")
    assert page_file.stat().st_size < 5e6
    with browser(tmp_path / "profile") as page:
        page.open(page_file.as_uri())
        page.wait("!!window.dalembert")
        assert page.evaluate("document.title") == robot_run.mechanism
        first = page.evaluate("window.dalembert.frame()")
        page.wait(f"window.dalembert.frame() != {first}")  # it plays by itself
        page.evaluate("document.getElementById('time').value = 0; document.getElementById('time').oninput()")
        start = np.array(page.evaluate("window.dalembert.bodies()"))
        assert page.evaluate(PIXELS) > 50
        before = page.picture()
        page.evaluate("document.getElementById('time').value = 40; document.getElementById('time').oninput()")
        moved = np.array(page.evaluate("window.dalembert.bodies()"))
        after = page.picture()
        assert page.evaluate("window.dalembert.frame()") == 40
        for box in ("frames", "axes", "forces"):
            page.evaluate(f"document.getElementById('{box}').click()")
        page.evaluate("document.getElementById('follow').value = 3; document.getElementById('follow').onchange()")
        assert page.picture() != after
        assert page.errors == []
        assert [url for url in page.requests if not url.startswith(("file:", "data:", "about:"))] == []
    assert before != after
    assert np.abs(start - moved).max() > 1e-3
    shown = moved.reshape(13, 7)
    knot = int(np.argmin(np.abs(robot_run.time - 40 / 50)))
    np.testing.assert_allclose(shown[:, :3], robot_run.position[knot], atol=1e-6)


def test_contact_forces_in_the_page(tmp_path):
    scene = da.Mechanism("box and ball")
    scene.ground(friction=0.6)
    scene.body("box", da.Box(size=(0.2, 0.2, 0.2), mass=1.0), position=(0, 0, 0.1), collide=True)
    scene.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 0.31), collide=True)
    run = da.Simulation(scene, da.Variational(dt=0.01)).run(0.5)
    with browser(tmp_path / "profile") as page:
        page.open(run.to_html(tmp_path / "run.html").as_uri())
        page.wait("!!window.dalembert")
        page.evaluate("window.dalembert.pause(); window.dalembert.show(20)")  # a short run: every knot is a frame
        assert page.evaluate("[+document.getElementById('time').max, +document.getElementById('speed').value]") == [50, 0.2]
        assert page.evaluate("window.dalembert.arrows()") == 0
        bare = page.picture()
        page.evaluate("document.getElementById('contacts').click()")
        assert page.evaluate("window.dalembert.arrows()") == len(Arrows(run, 1.0).contacts(20)) > 0
        assert page.picture() != bare
        assert "N" in page.evaluate("document.getElementById('scale').textContent")
        assert page.evaluate("document.getElementById('forces').parentElement.hidden")  # there are no joints
        page.evaluate("document.getElementById('names').click()")
        assert page.evaluate("document.getElementById('labels').textContent") == "boxball"
        page.evaluate("window.dalembert.show(3.5)")  # between frames, for slow motion
        drop = np.array(page.evaluate("window.dalembert.bodies()")).reshape(2, 7)
        np.testing.assert_allclose(drop[1, :3], run.position[3:5, 1].mean(axis=0), atol=1e-6)
        assert page.errors == []


def test_names_do_no_harm(tmp_path):
    mechanism = da.Mechanism("</script><script>window.broken = 1</script>")
    body = mechanism.body("<b>\"'&", da.Sphere(radius=0.1, mass=1.0))
    mechanism.joint("</script>", da.Revolute(axis="x"), mechanism.world, body, at=(0, 0, 1))
    run = da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.1)
    with browser(tmp_path / "profile") as page:
        page.open(run.to_html(tmp_path / "run.html").as_uri())
        page.wait("!!window.dalembert")
        assert page.evaluate("window.broken") is None
        assert page.evaluate("document.getElementById('title').textContent") == mechanism.name


HARD_NAMES = ["<!--", "<!--<script>", "</script>", "<script", "]]>", "__DATA__", "__SCRIPT__", "__TITLE__", "a\u2028b", "\\", '"', "\ud800", "-->", "\0", "&lt;"]


def test_hard_names_leave_the_page_alive(tmp_path):
    """What stands in the page's script is JSON, whatever bodies are called, and ends where it should."""
    mechanism = da.Mechanism("__DATA__ <!-- \ud800 __SCRIPT__ </title><script>")
    for k, name in enumerate(HARD_NAMES):
        mechanism.body(name, da.Sphere(radius=0.1, mass=1.0), position=(k, 0, 0))
    run = da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.02)
    text = run.to_html(tmp_path / "run.html").read_text(encoding="utf-8")
    _, _, rest = text.partition('<script id="data" type="application/json">')
    data, _, after = rest.partition("</script>")
    assert "<" not in data  # no tag, comment or end of the script can begin
    found = json.loads(data)
    assert found["bodies"] == HARD_NAMES
    assert found["title"] == mechanism.name
    assert after.startswith('\n<script>\n"use strict";')
    assert text.count("<script") == 2
    assert text.count("<!--") == 0
    title = text.partition("<title>")[2].partition("</title>")[0]
    assert "<" not in title
    assert "__DATA__" in title


def test_a_page_of_a_saved_run(short_run, tmp_path):
    pytest.importorskip("h5py")
    pytest.importorskip("msgspec")
    short_run.save(tmp_path / "run.h5")
    loaded = da.Trajectory.load(tmp_path / "run.h5")
    assert loaded.model is not None
    assert loaded.to_html(tmp_path / "a.html").read_bytes() == short_run.to_html(tmp_path / "b.html").read_bytes()
    loaded.model = None
    assert loaded.to_html(tmp_path / "c.html").stat().st_size > 10_000


def test_pages_of_a_long_run_stay_small(tmp_path):
    run = da.Simulation(da.zoo.pendulum(), da.Variational(dt=0.01)).run(200.0)
    assert run.to_html(tmp_path / "long.html").stat().st_size < 1e6


def test_bad_wishes(short_run, tmp_path):
    with pytest.raises(da.ModelError, match="fps"):
        short_run.to_html(tmp_path / "run.html", fps=0.0)
    with pytest.raises(FileNotFoundError):
        short_run.to_html(tmp_path / "none" / "run.html")
    with pytest.raises(da.ModelError, match=r"\.png"):
        short_run.snapshot(tmp_path / "run.jpg")
    with pytest.raises(da.ModelError, match="no time 7"):
        short_run.snapshot(tmp_path / "run.png", time=7.0)
    with pytest.raises(da.ModelError, match="size"):
        short_run.snapshot(tmp_path / "run.png", size=(1, 100000))
    with pytest.raises(da.ModelError, match="distance"):
        short_run.snapshot(tmp_path / "run.png", distance=-1.0)
    with pytest.raises(da.ModelError, match="frames, axes, forces, contacts"):
        short_run.snapshot(tmp_path / "run.png", show="torques")
    with pytest.raises(da.ModelError, match=r"\.mp4 or \.gif"):
        short_run.to_video(tmp_path / "run.avi")
    with pytest.raises(da.ModelError, match="speed must be positive"):
        short_run.to_video(tmp_path / "run.gif", speed=0.0)
    assert not list(tmp_path.iterdir())


def test_snapshots_and_films(short_run, tmp_path):
    imageio = pytest.importorskip("imageio.v2")
    start = imageio.imread(short_run.snapshot(tmp_path / "a.png", time=0.0, size=(320, 240)))
    end = imageio.imread(short_run.snapshot(tmp_path / "b.png", size=(320, 240)))
    assert start.shape == (240, 320, 3)
    assert len(np.unique(start.reshape(-1, 3), axis=0)) > 20
    assert (start != end).any()
    film = imageio.mimread(short_run.to_video(tmp_path / "run.gif", fps=20, speed=0.5, size=(160, 120)))
    assert len(film) == 8
    pytest.importorskip("imageio_ffmpeg")
    assert short_run.to_video(tmp_path / "run.mp4", fps=20, size=(161, 120)).stat().st_size > 1000
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "b.png", "run.gif", "run.mp4"]


def test_films_without_imageio(short_run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio", None)
    monkeypatch.setitem(sys.modules, "imageio.v2", None)
    with pytest.raises(da.MissingExtraError, match=r"dalembert\[video\]"):
        short_run.to_video(tmp_path / "run.mp4")


def test_picture_is_a_picture(short_run):
    imageio = pytest.importorskip("imageio.v2")
    from dalembert.view.raster import png

    pixels = np.random.default_rng(1).integers(0, 255, (5, 7, 3), dtype=np.uint8)
    np.testing.assert_array_equal(imageio.imread(io.BytesIO(png(pixels)), format="png"), pixels)
