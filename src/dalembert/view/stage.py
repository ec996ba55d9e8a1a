"""The stage of the live view: a viser server that shows a scene, its arrows and names, and follows a body."""
from __future__ import annotations

import os
import sys
import threading
import time as clock
import webbrowser
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from dalembert.errors import MissingExtraError
from dalembert.view.guard import Guard
from dalembert.view.raster import looking
from dalembert.view.scene import INK, LIGHT, MAGENTA, ORANGE, Colour, Scene, fitting_eye

RATE = 40.0  # pictures per second
ANGLE = np.radians(45.0)  # of view
BLUE = (68, 119, 170)


def viser_module() -> Any:
    """viser, or an error that says how to get it."""
    try:
        import viser
        import viser.uplot
    except ImportError:
        raise MissingExtraError("the live view needs viser: pip install dalembert[view]") from None
    return viser


class Stage:
    """A page with the bodies of a scene and the controls of what to show besides."""

    def __init__(self, scene: Scene, title: str, port: int) -> None:
        viser = viser_module()
        self.scene, self.guard = scene, Guard()
        with redirect_stdout(StringIO()), self.guard.watching():  # it would print a banner
            self.server = viser.ViserServer(host="127.0.0.1", port=port, label=title, verbose=False)
        try:
            self.guard.check()
        except MissingExtraError:
            self.server.stop()
            raise
        self.server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=BLUE)
        self.server.gui.set_panel_label(title)
        self.server.scene.set_up_direction("+z")
        self._add_lights()
        self._add_floor()
        self._add_parts()
        self._aim()
        self._arrows: dict[str, Any] = {}
        self._last: np.ndarray | None = None

    def _add_lights(self) -> None:
        """A sky, a lamp that throws shadows, and no reflections that wash out the colours."""
        api, lamp = self.server.scene, tuple(self.scene.middle + 6.0 * self.scene.radius * LIGHT)
        api.configure_default_lights(enabled=False)
        api.configure_environment_map(hdri=None)
        api.add_light_hemisphere("/light/sky", sky_color=(245, 248, 255), ground_color=(170, 165, 160), intensity=3.0)
        api.add_light_directional("/light/lamp", position=lamp, intensity=2.6, cast_shadow=True)

    def _add_floor(self) -> None:
        scene = self.scene
        if scene.floor is not None:
            self.server.scene.add_grid(
                "/floor", position=(*scene.middle[:2], scene.floor), cell_size=scene.spacing, section_size=5 * scene.spacing, infinite_grid=True,
                cell_color=(205, 210, 218), section_color=(180, 186, 196), fade_distance=16 * scene.radius, shadow_opacity=0.25,
            )

    def _add_parts(self) -> None:
        scene, api, count = self.scene, self.server.scene, len(self.scene.bodies)
        self.owners = [
            api.add_frame(f"/owners/{i}", show_axes=False, axes_length=scene.axis, axes_radius=0.04 * scene.axis, origin_radius=0.0)
            for i in range(count + len(scene.ties))
        ]
        #: mesh handles of each body
        self.meshes: dict[int, list[Any]] = {}
        for k, part in enumerate(scene.parts):
            parent = f"/owners/{part.owner}/stretch" if part.owner >= count else f"/owners/{part.owner}" if part.owner >= 0 else "/world"
            mesh = api.add_mesh_simple(
                f"{parent}/part{k}", part.vertices, part.faces, color=rgb(part.colour), opacity=part.colour[3] if part.colour[3] < 1.0 else None, side="double",
                receive_shadow=False,  # its own would be stripes
            )
            self.meshes.setdefault(part.owner, []).append(mesh)
        self.labels = [api.add_label(f"/owners/{i}/name", name, visible=False) for i, name in enumerate(scene.bodies)]

    def _aim(self) -> None:
        """A camera that sees all of the motion."""
        axes, high = looking(*self.scene.look), 0.8 * np.tan(0.5 * ANGLE)
        eye = fitting_eye(self.scene.hull, axes, 1.3 * high, high)
        camera = self.server.initial_camera
        camera.fov, camera.position, camera.up = ANGLE, tuple(eye), (0.0, 0.0, 1.0)
        camera.look_at = tuple(eye - ((eye - self.scene.middle) @ axes[2]) * axes[2])

    def show(self, position: np.ndarray, orientation: np.ndarray) -> None:
        """Put the bodies at their poses, all at once."""
        count = len(self.scene.bodies)
        with self.server.atomic():
            for i, (owner, pose) in enumerate(zip(self.owners, self.scene.placed(position, orientation))):
                owner.position, owner.wxyz = pose[:3], pose[3:7]
                if i >= count:
                    for mesh in self.meshes[i]:
                        mesh.scale = (1.0, 1.0, float(pose[7]))

    def arrows(self, name: str, points: np.ndarray, colour: Colour, *, head: bool = True) -> None:
        """Arrows (n, 2, 3) from point to point in place of those of the same name; rods without ``head``."""
        size, there = self.scene.axis, self._arrows.get(name)
        if not len(points):
            if there is not None:
                there.visible = False
            return
        points = np.asarray(points, dtype=np.float32)
        if there is None:
            api = self.server.scene
            self._arrows[name] = api.add_arrows(
                f"/{name}", points, rgb(colour), shaft_radius=0.05 * size, head_radius=0.13 * size, head_length=0.3 * size,
            ) if head else api.add_line_segments(f"/{name}", points, rgb(colour), thickness=0.07 * size)
        else:
            there.points, there.visible = points, True

    def follow(self, target: np.ndarray | None) -> None:
        """Move the cameras along with a point."""
        if target is not None and self._last is not None:
            for client in self.server.get_clients().values():
                client.camera.position = client.camera.position + (target - self._last)
                client.camera.look_at = client.camera.look_at + (target - self._last)
        self._last = None if target is None else target.copy()


class Viewer:
    """A page that is being served: what to show is chosen in it. ``stop`` ends it."""

    def __init__(self, scene: Scene, title: str, port: int) -> None:
        self.stage = Stage(scene, title, port)
        self.server = self.stage.server
        self.failure: Exception | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def add_choices(self, joints: bool, contacts: bool) -> None:
        """Controls of what to show."""
        gui = self.server.gui
        with gui.add_folder("show"):
            self.follow = gui.add_dropdown("follow", ("nothing", *self.stage.scene.bodies))
            self.names = gui.add_checkbox("names", False)
            self.body_frames = gui.add_checkbox("body frames", False)
            self.axes = gui.add_checkbox("joint axes", False, visible=joints)
            self.forces = gui.add_checkbox("joint forces", False, visible=joints)
            self.contacts = gui.add_checkbox("contact forces", False, visible=contacts)

    def draw(self, position: np.ndarray, orientation: np.ndarray) -> None:
        """Show bodies, names, frames; follow."""
        self.stage.show(position, orientation)
        for handle in self.stage.owners[: len(position)]:
            if handle.show_axes != self.body_frames.value:
                handle.show_axes = self.body_frames.value
        for label in self.stage.labels:
            if label.visible != self.names.value:
                label.visible = self.names.value
        self.stage.follow(None if self.follow.value == "nothing" else position[self.stage.scene.bodies.index(self.follow.value)])

    def draw_arrows(self, arrows: Any, knot: int) -> None:
        """Show joint axes and forces of a knot, those that are chosen. ``arrows``: an ``Arrows``."""
        nothing = np.zeros((0, 9))
        joints = arrows.joints(np.array([knot]))[0] if self.axes.value or self.forces.value else nothing
        hinged, pushed = joints[joints[:, 3:6].any(axis=1)], joints[joints[:, 6:].any(axis=1)]
        at, reach = hinged[:, :3], 0.8 * self.stage.scene.axis * hinged[:, 3:6]
        self.stage.arrows("axes", np.stack([at - reach, at + reach], axis=1) if self.axes.value else nothing, INK, head=False)
        rows = pushed[:, [0, 1, 2, 6, 7, 8]] if self.forces.value else nothing
        touching = arrows.contacts(knot) if self.contacts.value else nothing
        for name, forces, colour in (("forces", rows, ORANGE), ("contacts", touching, MAGENTA)):
            self.stage.arrows(name, np.stack([forces[:, :3], arrows.tips(forces[:, :3], forces[:, 3:6])], axis=1), colour)

    @property
    def url(self) -> str:
        """The address of the page, with the secret that it needs."""
        return f"http://127.0.0.1:{self.server.get_port()}/{self.stage.guard.token}/"

    def stop(self) -> None:
        """End the server and the thread that feeds it."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)
        with redirect_stdout(StringIO()):
            self.server.stop()

    def serve(self, block: bool, browser: bool | None) -> Viewer:
        """Feed the page until it is stopped (Ctrl-C when ``block``). ``browser``: open one; None: where there is a display, and ``block``."""
        print(f"showing {self.url}" + (" (Ctrl-C ends)" if block else ""), flush=True)
        if browser or (browser is None and block and has_display()):
            webbrowser.open(self.url)
        if not block:
            self._thread = threading.Thread(target=self._loop, daemon=True)
            self._thread.start()
            return self
        try:
            self._loop()
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()
        return self

    def _loop(self) -> None:
        last = clock.monotonic()
        while not self._ended.is_set():
            now = clock.monotonic()
            self.advance(now - last)
            last = now
            self._ended.wait(max(0.0, 1.0 / RATE - (clock.monotonic() - now)))

    def advance(self, seconds: float) -> None:
        """Show the next picture, ``seconds`` after the last one."""
        raise NotImplementedError


def has_display() -> bool:
    """True when a browser could open a window."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def literal(text: str) -> str:
    """Text that a page shows as it is: names in it are no Markdown and no HTML."""
    return "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in text)


def rgb(colour: Colour) -> tuple[int, int, int]:
    """Red, green and blue from 0 to 255."""
    red, green, blue = (round(255 * c) for c in colour[:3])
    return red, green, blue
