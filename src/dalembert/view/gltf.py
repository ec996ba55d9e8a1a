"""A run as a binary glTF file (.glb) with its animation, for Blender, game engines and the web.

One node per body and tie, in a root node that turns z up into glTF's y up; translations, rotations and, of ties, stretches are sampled at frames.
"""
from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.io.whole import write_whole
from dalembert.simulation.trajectory import Trajectory
from dalembert.view.scene import Colour, Part, Scene, build_scene

#: frames and triangles of a file at the most
MOST_FRAMES, MOST_TRIANGLES = 20_000, 400_000
FLOAT, UNSIGNED, ARRAY, INDICES = 5126, 5125, 34962, 34963
#: z up to y up, (x, y, z, w)
UPRIGHT = [-(0.5**0.5), 0.0, 0.0, 0.5**0.5]


def write_gltf(trajectory: Trajectory, path: Path, *, fps: float = 60.0) -> Path:
    """Write the file; returns its path."""
    from dalembert.view.page import frames_of

    shown = frames_of(trajectory.time, fps, MOST_FRAMES)
    scene = build_scene(trajectory, most_triangles=MOST_TRIANGLES)
    time = trajectory.time[shown] - trajectory.time[0]
    content = _file(scene, trajectory.mechanism, time, scene.placed(trajectory.position[shown], trajectory.orientation[shown]))
    with write_whole(path) as temporary:
        temporary.write_bytes(content)
    return path


class _Buffer:
    """The binary part of a file, and what says where each array in it is."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, array: np.ndarray, kind: str, component: int = FLOAT, target: int | None = None) -> int:
        """Append an array; returns the number of its accessor."""
        array = np.ascontiguousarray(array, dtype="<f4" if component == FLOAT else "<u4")
        view = dict(buffer=0, byteOffset=len(self.data), byteLength=array.nbytes)
        self.views.append(view if target is None else {**view, "target": target})
        self.data += array.tobytes()
        rows = array.reshape(len(array), -1)
        self.accessors.append(dict(
            bufferView=len(self.views) - 1, componentType=component, count=len(array), type=kind, min=rows.min(axis=0).tolist(), max=rows.max(axis=0).tolist(),
        ))
        return len(self.accessors) - 1


def _file(scene: Scene, title: str, time: np.ndarray, poses: np.ndarray) -> bytes:
    """All of a file. ``poses`` (frames, owners, 8): position, orientation, stretch along z."""
    buffer, materials, meshes = _Buffer(), _Materials(), []
    count = len(scene.bodies)
    names = [*scene.bodies, *(f"{tie.kind} {k + 1}" for k, tie in enumerate(scene.ties))]
    nodes: list[dict[str, Any]] = [dict(name=title, rotation=UPRIGHT, children=list(range(1, len(names) + 1)))]
    for owner, name in enumerate(names):
        x, q, stretch = np.split(poses[0, owner], [3, 7])
        node: dict[str, Any] = dict(name=name, translation=x.tolist(), rotation=[*q[1:].tolist(), float(q[0])])
        nodes.append(node | (dict(scale=[1.0, 1.0, float(stretch[0])]) if owner >= count else {}))
    for owner in (-1, *range(len(names))):
        parts = [part for part in scene.parts if part.owner == owner]
        if parts:
            if owner < 0:
                nodes[0]["children"].append(len(nodes))
                nodes.append(dict(name="world"))
            nodes[owner + 1 if owner >= 0 else -1]["mesh"] = len(meshes)
            meshes.append(dict(name=names[owner] if owner >= 0 else "world", primitives=[_primitive(buffer, part, materials) for part in parts]))
    clock = buffer.add(time, "SCALAR")
    samplers, channels = [], []
    for owner in range(len(names)):
        turn = _continuous(poses[:, owner, 3:7])
        tracks = [("translation", poses[:, owner, :3], "VEC3"), ("rotation", turn[:, [1, 2, 3, 0]], "VEC4")]
        if owner >= count:
            tracks.append(("scale", np.stack([np.ones(len(time)), np.ones(len(time)), poses[:, owner, 7]], axis=1), "VEC3"))
        for way, values, kind in tracks:
            channels.append(dict(sampler=len(samplers), target=dict(node=owner + 1, path=way)))
            samplers.append(dict(input=clock, output=buffer.add(values, kind), interpolation="LINEAR"))
    content = dict(
        asset=dict(version="2.0", generator="dalembert"), scene=0, scenes=[dict(name=title, nodes=[0])], nodes=nodes, meshes=meshes, materials=materials.list,
        animations=[dict(name="run", samplers=samplers, channels=channels)], accessors=buffer.accessors, bufferViews=buffer.views,
        buffers=[dict(byteLength=len(buffer.data))],
    )
    text = json.dumps({name: value for name, value in content.items() if value != []}, allow_nan=False).encode()
    chunks = [(b"JSON", text + b" " * (-len(text) % 4)), (b"BIN\0", bytes(buffer.data) + b"\0" * (-len(buffer.data) % 4))]
    body = b"".join(struct.pack("<I4s", len(data), kind) + data for kind, data in chunks)
    return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body


class _Materials:
    """One material per colour."""

    def __init__(self) -> None:
        self.list: list[dict[str, Any]] = []
        self._known: dict[Colour, int] = {}

    def number(self, colour: Colour) -> int:
        if colour not in self._known:
            linear = [float(((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92) for c in colour[:3]]
            look = dict(pbrMetallicRoughness=dict(baseColorFactor=[*linear, float(colour[3])], metallicFactor=0.0, roughnessFactor=0.6), doubleSided=True)
            self._known[colour] = len(self.list)
            self.list.append({**look, "alphaMode": "BLEND"} if colour[3] < 1.0 else look)
        return self._known[colour]


def _primitive(buffer: _Buffer, part: Part, materials: _Materials) -> dict[str, Any]:
    normals = part.normals / np.maximum(np.linalg.norm(part.normals, axis=1, keepdims=True), 1e-12)
    return dict(
        attributes=dict(POSITION=buffer.add(part.vertices, "VEC3", target=ARRAY), NORMAL=buffer.add(normals, "VEC3", target=ARRAY)),
        indices=buffer.add(part.faces.reshape(-1), "SCALAR", UNSIGNED, INDICES), material=materials.number(part.colour),
    )


def _continuous(q: np.ndarray) -> np.ndarray:
    """Quaternions (frames, 4) with signs such that neighbours are near: viewers interpolate between them."""
    flips = np.cumprod(np.where(np.sum(q[1:] * q[:-1], axis=1) < 0.0, -1.0, 1.0))
    return q * np.concatenate([[1.0], flips])[:, None]
