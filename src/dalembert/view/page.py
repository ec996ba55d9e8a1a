"""A run as one HTML page that needs no network and no program but a browser."""
from __future__ import annotations

import base64
import html
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.io.whole import write_whole
from dalembert.simulation.trajectory import Trajectory
from dalembert.view.arrows import Arrows
from dalembert.view.curves import plots
from dalembert.view.scene import (
    AXES,
    BACKGROUND,
    INK,
    LIGHT,
    MAGENTA,
    ORANGE,
    Part,
    Scene,
    build_scene,
    collision_parts,
    ordinary_speed,
)

#: frames of a page at the most: longer runs are shown at fewer frames per second
MOST_FRAMES = 4000
PAGE_TRIANGLES = 50_000
#: a motion that takes this many times the room of what moves is followed by the camera
FAR = 3.0


def write_page(trajectory: Trajectory, path: Path, *, fps: float = 50.0) -> Path:
    """Write the page; returns its path."""
    page = page_text(trajectory, fps)
    with write_whole(path) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="xmlcharrefreplace")
    return path


def page_text(trajectory: Trajectory, fps: float) -> str:
    """The page, whole."""
    if not (np.isfinite(fps) and fps > 0.0):
        raise ModelError(f"fps must be positive, got {fps}")
    text = json.dumps(page_data(trajectory, fps), allow_nan=False).replace("<", "\\u003c")  # no tag and no comment begins in it
    template, *scripts = (files("dalembert.view").joinpath(name).read_text(encoding="utf-8") for name in ("page.html", "stage.js", "page.js"))
    parts = {"__TITLE__": html.escape(trajectory.mechanism), "__SCRIPT__": "\n".join(scripts), "__DATA__": text}
    return re.sub("|".join(parts), lambda found: parts[found.group()], template)  # once: a name may be one of these words


def page_data(trajectory: Trajectory, fps: float) -> dict[str, Any]:
    """What the page's script reads."""
    shown = frames_of(trajectory.time, fps / ordinary_speed(float(trajectory.time[-1] - trajectory.time[0])), MOST_FRAMES)
    scene = build_scene(trajectory, most_triangles=PAGE_TRIANGLES)
    arrows = Arrows(trajectory, scene.size)
    joints, contacts = arrows.joints(shown), [arrows.contacts(int(knot)) for knot in shown]
    energy = trajectory.energy()
    curves, left = plots(trajectory, shown)
    follow = _followed(trajectory, scene)
    energies = np.stack([energy.kinetic[shown], energy.potential[shown] - energy.potential[shown].min()], axis=1)
    return dict(
        title=trajectory.mechanism, bodies=list(trajectory.bodies), ties=len(scene.ties), times=[round(float(t), 6) for t in trajectory.time[shown]],
        poses=_packed(scene.placed(trajectory.position[shown], trajectory.orientation[shown]), "<f4"), energy=_packed(energies, "<f4"),
        joints=_packed(joints, "<f4"), joint_count=joints.shape[1],
        contacts=_packed(np.concatenate(contacts), "<f4"), contact_start=np.cumsum([0, *(len(c) for c in contacts)]).tolist(),
        force_scale=arrows.scale, longest=arrows.longest, speed=ordinary_speed(float(trajectory.time[-1] - trajectory.time[0])),
        curves=[dict(title=c.title, unit=c.unit, labels=list(c.labels), values=_packed(c.values, "<f4")) for c in curves], curves_left=left,
        follow=follow, start_hull=np.round(scene.hull_of(trajectory.position[:1], trajectory.orientation[:1]), 6).tolist(),
        parts=[*(_part(p) for p in scene.parts), *(dict(**_part(p), collision=True) for p in collision_parts(trajectory.model))], hull=np.round(scene.hull, 6).tolist(), middle=scene.middle.tolist(), radius=scene.radius, size=scene.size, axis=scene.axis,
        floor=scene.floor, spacing=scene.spacing, light=LIGHT.tolist(), background=BACKGROUND, azimuth=scene.look[0], elevation=scene.look[1],
        colours=dict(frame=AXES, axis=INK, force=ORANGE, contact=MAGENTA),
    )


def _followed(trajectory: Trajectory, scene: Scene) -> int:
    """The heaviest body of a mechanism that travels, or -1."""
    return int(np.argmax(trajectory.mass)) if scene.radius > FAR * scene.size else -1


def frames_of(time: np.ndarray, fps: float, most: int) -> np.ndarray:
    """Indices of knots, about ``fps`` of them per second and no more than ``most``, with the first and the last."""
    length = float(time[-1] - time[0])
    count = int(min(len(time), most, max(2, round(length * fps) + 1)))
    wanted = np.linspace(time[0], time[-1], count)
    return np.unique(np.clip(np.searchsorted(time, wanted - 1e-9), 0, len(time) - 1))


def _part(part: Part) -> dict[str, Any]:
    low = part.vertices.min(axis=0)
    size = np.maximum(np.ptp(part.vertices, axis=0), 1e-9)
    vertices = np.zeros((len(part.vertices), 4), dtype="<u2")
    vertices[:, :3] = np.round((part.vertices - low) / size * 65535)
    normals = np.zeros((len(part.vertices), 4), dtype="i1")
    normals[:, :3] = np.round(part.normals * 127)
    wide = len(vertices) > 65535
    return dict(
        owner=part.owner, colour=[float(c) for c in part.colour], low=low.tolist(), size=size.tolist(), wide=wide,
        vertices=_packed(vertices, "<u2"), normals=_packed(normals, "i1"), faces=_packed(part.faces, "<u4" if wide else "<u2"),
    )


def _packed(array: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array).astype(kind).tobytes()).decode()
