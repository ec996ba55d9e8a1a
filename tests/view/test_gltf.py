"""glTF files: read by another library, bodies are where the run says at every frame."""
from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

import dalembert as da


@pytest.fixture(scope="module")
def run() -> da.Trajectory:
    m = da.Mechanism("pendulum on a spring")
    m.body("bob", da.Box(size=(0.1, 0.2, 0.3), mass=1.0), position=(0.5, 0, 0))
    m.joint("pivot", da.Revolute(axis="y"), "world", "bob")
    m.spring("spring", "world", "bob", at=((1, 0, 0.5), (0.5, 0, 0)), stiffness=20.0)
    m.ground(offset=-2.0)
    m.obstacle("post", da.Cylinder(radius=0.1, length=1.0, mass=1.0), position=(2, 0, -1.5))
    return da.Simulation(m, da.Variational(dt=0.01)).run(1.0)


def parts(path: Path) -> tuple[dict, bytes]:
    """The two parts of a file, by the format's own words."""
    data = path.read_bytes()
    magic, version, length = struct.unpack("<4sII", data[:12])
    assert (magic, version, length) == (b"glTF", 2, len(data))
    size, kind = struct.unpack("<I4s", data[12:20])
    assert kind == b"JSON"
    return json.loads(data[20 : 20 + size]), data[28 + size :]


def numbers(content: dict, binary: bytes, accessor: int) -> np.ndarray:
    about = content["accessors"][accessor]
    view, width = content["bufferViews"][about["bufferView"]], {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[about["type"]]
    return np.frombuffer(binary, "<f4", about["count"] * width, view["byteOffset"]).reshape(about["count"], width)


def test_animation(run: da.Trajectory, tmp_path: Path):
    content, binary = parts(run.to_gltf(tmp_path / "run.glb"))
    node = next(k for k, node in enumerate(content["nodes"]) if node["name"] == "bob")
    animation = content["animations"][0]
    tracks = {c["target"]["path"]: animation["samplers"][c["sampler"]] for c in animation["channels"] if c["target"]["node"] == node}
    time = numbers(content, binary, tracks["translation"]["input"])[:, 0]
    knots = np.round(time / 0.01).astype(int)
    assert time[0] == 0.0
    assert time[-1] == pytest.approx(1.0)
    assert np.allclose(numbers(content, binary, tracks["translation"]["output"]), run.position[knots, 0], atol=1e-6)
    turn = numbers(content, binary, tracks["rotation"]["output"])[:, [3, 0, 1, 2]]
    assert np.allclose(np.abs(np.sum(turn * run.orientation[knots, 0], axis=1)), 1.0, atol=1e-6)
    assert np.all(np.sum(turn[1:] * turn[:-1], axis=1) > 0.0)


def test_another_library_reads_it(run: da.Trajectory, tmp_path: Path):
    trimesh = pytest.importorskip("trimesh")
    scene = trimesh.load(run.to_gltf(tmp_path / "run.glb"))
    names = set(scene.graph.nodes)
    assert {"bob", "spring 1", "world"} <= names
    where = np.array(scene.graph.get("bob")[0])
    up = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    assert np.allclose(where[:3, 3], up @ run.position[0, 0], atol=1e-6)
    assert np.allclose(where[:3, :3], up @ np.eye(3), atol=1e-6)


def test_other_endings_are_refused(run: da.Trajectory, tmp_path: Path):
    with pytest.raises(da.ModelError, match=r"\.glb"):
        run.to_gltf(tmp_path / "run.obj")
    assert not list(tmp_path.iterdir())
