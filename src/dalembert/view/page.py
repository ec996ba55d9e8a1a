"""A run as one HTML page that needs no network and no program but a browser."""
from __future__ import annotations

import base64
import html
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.io.hdf5 import _replacing
from dalembert.trajectory import Trajectory, rotate
from dalembert.view.scene import Part, build_scene

#: frames of a page at the most: longer runs are shown at fewer frames per second
MOST_FRAMES = 4000
PAGE_TRIANGLES = 50_000


def write_page(trajectory: Trajectory, path: Path, *, fps: float = 50.0) -> Path:
    """Write the page; returns its path."""
    if not (np.isfinite(fps) and fps > 0.0):
        raise ModelError(f"fps must be positive, got {fps}")
    data = page_data(trajectory, fps)
    template = files("dalembert.view").joinpath("page.html").read_text(encoding="utf-8")
    text = json.dumps(data, allow_nan=False).replace("</", "<\\/").replace("<!--", "<\\!--")
    page = template.replace("__TITLE__", html.escape(trajectory.mechanism)).replace("__DATA__", text)
    with _replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def page_data(trajectory: Trajectory, fps: float) -> dict[str, Any]:
    """What the page's script reads."""
    shown = frames_of(trajectory.time, fps, MOST_FRAMES)
    scene = build_scene(trajectory, PAGE_TRIANGLES)
    position, orientation = trajectory.position[shown], trajectory.orientation[shown]
    poses = np.concatenate([position, orientation], axis=2)
    joints = joint_arrows(trajectory, shown)
    energy = trajectory.energy()
    energies = np.stack([energy.kinetic[shown], energy.potential[shown] - energy.potential[shown].min()], axis=1)
    middle = 0.5 * (position.min(axis=(0, 1)) + position.max(axis=(0, 1)))
    radius = scene.extent(position)
    pushes = np.linalg.norm(joints[:, :, 6:], axis=2)
    typical = float(np.percentile(pushes[pushes > 0.0], 90)) if (pushes > 0.0).any() else 1.0
    return dict(
        title=trajectory.mechanism, bodies=list(trajectory.bodies), times=[round(float(t), 6) for t in trajectory.time[shown]],
        poses=_packed(poses, "<f4"), joints=_packed(joints, "<f4"), joint_count=joints.shape[1], energy=_packed(energies, "<f4"),
        parts=[_part(p) for p in scene.parts], middle=middle.tolist(), radius=radius, floor=float(min(middle[2] - radius, 0.0) if middle[2] > 0 else middle[2] - radius),
        force_scale=0.4 * radius / typical,
    )


def frames_of(time: np.ndarray, fps: float, most: int) -> np.ndarray:
    """Indices of knots, about ``fps`` of them per second and no more than ``most``, with the first and the last."""
    length = float(time[-1] - time[0])
    count = int(min(len(time), most, max(2, round(length * fps) + 1)))
    wanted = np.linspace(time[0], time[-1], count)
    return np.unique(np.clip(np.searchsorted(time, wanted - 1e-9), 0, len(time) - 1))


def joint_arrows(trajectory: Trajectory, shown: np.ndarray) -> np.ndarray:
    """(frames, joints, 9): where each joint is, along what it turns or slides, and the force on its child (N), in the world."""
    model = trajectory.model
    if model is None:
        return np.zeros((len(shown), 0, 9))
    arrows = np.zeros((len(shown), len(model.joints), 9))
    for k, joint in enumerate(model.joints):
        child = joint.child.index
        q = trajectory.orientation[shown, child]
        arrows[:, k, :3] = trajectory.position[shown, child] + rotate(q, np.broadcast_to(joint.point_child, (len(shown), 3)))
        if joint.type.freedom == 1 and joint.type.directions[0][0] in ("turn", "slide"):
            arrows[:, k, 3:6] = rotate(q, np.broadcast_to(joint.frame_child @ joint.type.basis[:, joint.type.directions[0][1]], (len(shown), 3)))
        local = trajectory.joint(joint.name).force[shown] @ joint.frame_parent.T
        parent = joint.parent.index
        arrows[:, k, 6:] = local if parent < 0 else rotate(trajectory.orientation[shown, parent], local)
    return np.nan_to_num(arrows)


def _part(part: Part) -> dict[str, Any]:
    low = part.vertices.min(axis=0)
    size = np.maximum(np.ptp(part.vertices, axis=0), 1e-9)
    vertices = np.zeros((len(part.vertices), 4), dtype="<u2")
    vertices[:, :3] = np.round((part.vertices - low) / size * 65535)
    normals = np.zeros((len(part.vertices), 4), dtype="i1")
    normals[:, :3] = np.round(part.normals * 127)
    wide = len(vertices) > 65535
    return dict(
        body=part.body, colour=[float(c) for c in part.colour], low=low.tolist(), size=size.tolist(), wide=wide,
        vertices=_packed(vertices, "<u2"), normals=_packed(normals, "i1"), faces=_packed(part.faces, "<u4" if wide else "<u2"),
    )


def _packed(array: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array).astype(kind).tobytes()).decode()
