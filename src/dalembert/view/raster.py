"""Pictures and films of a run without a display: a small software renderer with a depth buffer."""
from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.errors import MissingExtraError, ModelError
from dalembert.io.hdf5 import _replacing
from dalembert.kernel import kernel
from dalembert.trajectory import Trajectory
from dalembert.view.scene import Scene, build_scene

BACKGROUND = np.array([0.957, 0.961, 0.969])
GRID = np.array([0.84, 0.85, 0.87])
LIGHT = np.array([0.4, -0.5, 0.9]) / np.linalg.norm([0.4, -0.5, 0.9])
FOCAL = 2.0  # of half the picture's height
FINER = 2  # pixels per pixel of the picture, each way: their mean has smooth edges
LARGEST = 8192  # pixels along an edge


@kernel
def fill(points, colours, faces, image, depth):
    """Draw triangles. points: (n, 3) pixel x, pixel y, distance; colours: (n, 3) at the points; image (h, w, 3), depth (h, w)."""
    height, width = depth.shape
    for f in range(faces.shape[0]):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        if points[a, 2] <= 0.0 or points[b, 2] <= 0.0 or points[c, 2] <= 0.0:
            continue
        ax, ay, bx, by, cx, cy = points[a, 0], points[a, 1], points[b, 0], points[b, 1], points[c, 0], points[c, 1]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if area == 0.0:
            continue
        first_row = max(0, int(np.ceil(min(ay, min(by, cy)))))
        last_row = min(height - 1, int(np.floor(max(ay, max(by, cy)))))
        first_column = max(0, int(np.ceil(min(ax, min(bx, cx)))))
        last_column = min(width - 1, int(np.floor(max(ax, max(bx, cx)))))
        for row in range(first_row, last_row + 1):
            for column in range(first_column, last_column + 1):
                u = ((bx - column) * (cy - row) - (by - row) * (cx - column)) / area
                v = ((cx - column) * (ay - row) - (cy - row) * (ax - column)) / area
                w = 1.0 - u - v
                if u < 0.0 or v < 0.0 or w < 0.0:
                    continue
                inverse = u / points[a, 2] + v / points[b, 2] + w / points[c, 2]
                if inverse > depth[row, column]:
                    depth[row, column] = inverse
                    for k in range(3):
                        image[row, column, k] = u * colours[a, k] + v * colours[b, k] + w * colours[c, k]


class Camera:
    """Looks at ``target`` from ``distance`` (m), turned by ``azimuth`` and raised by ``elevation`` (degrees)."""

    def __init__(self, target: np.ndarray, distance: float, azimuth: float, elevation: float, size: tuple[int, int]) -> None:
        a, e = np.radians(azimuth), np.radians(np.clip(elevation, -89.9, 89.9))
        back = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        right = np.cross([0.0, 0.0, 1.0], back)
        right /= np.linalg.norm(right)
        self.target, self.eye = target, target + distance * back
        self.axes = np.stack([right, np.cross(back, right), -back])
        self.size, self.near = size, 1e-3 * distance

    def project(self, points: np.ndarray) -> np.ndarray:
        """(n, 3): pixel column, pixel row, distance (zero or less: behind the camera)."""
        seen = (points - self.eye) @ self.axes.T
        width, height = self.size
        far = np.where(seen[:, 2] > self.near, seen[:, 2], -1.0)
        scale = 0.5 * FOCAL * height / np.where(far > 0.0, far, 1.0)
        return np.stack([0.5 * width + scale * seen[:, 0], 0.5 * height - scale * seen[:, 1], far], axis=1)


def render(scene: Scene, position: np.ndarray, orientation: np.ndarray, camera: Camera, floor: float, spacing: float) -> np.ndarray:
    """(height, width, 3) uint8: the scene with its bodies at given poses."""
    width, height = camera.size
    image = np.empty((height, width, 3))
    image[:] = BACKGROUND
    depth = np.zeros((height, width))
    _grid(image, depth, camera, floor, spacing)
    turns = Rotation.from_quat(orientation, scalar_first=True).as_matrix() if len(orientation) else np.zeros((0, 3, 3))
    for part in scene.parts:
        vertices, normals = part.vertices.astype(float), part.normals.astype(float)
        if part.body >= 0:
            vertices, normals = vertices @ turns[part.body].T + position[part.body], normals @ turns[part.body].T
        away = camera.eye - vertices
        away /= np.linalg.norm(away, axis=1, keepdims=True)
        facing = np.einsum("ij,ij->i", normals, away)
        normals = normals * np.where(facing < 0.0, -1.0, 1.0)[:, None]
        bright = 0.45 + 0.35 * np.maximum(normals @ LIGHT, 0.0) + 0.25 * np.abs(facing)
        colours = np.minimum(np.outer(bright, part.colour[:3]), 1.0)
        fill(camera.project(vertices), colours, part.faces.astype(np.int64), image, depth)
    small = image.reshape(height // FINER, FINER, width // FINER, FINER, 3).mean(axis=(1, 3))
    return np.round(255 * np.clip(small, 0.0, 1.0)).astype(np.uint8)


def _grid(image: np.ndarray, depth: np.ndarray, camera: Camera, floor: float, spacing: float) -> None:
    """Lines on the floor, behind everything that is nearer."""
    x, y = np.round(camera.target[:2] / spacing)
    points, faces = _strips(float(x), float(y), floor, spacing)
    fill(camera.project(points), np.repeat(GRID[None], len(points), axis=0), faces, image, depth)


@lru_cache(maxsize=16)
def _strips(x: float, y: float, floor: float, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Thin strips along the lines of a grid about (x, y) times ``spacing``: vertices and faces."""
    half, middle = 12, spacing * np.array([x, y])
    steps = np.linspace(-half * spacing, half * spacing, 49)
    thick = 0.006 * spacing
    vertices, faces = [], []
    for k in range(-half, half + 1):
        for along in (0, 1):
            for start, end in pairwise(steps):
                corners = np.zeros((4, 3))
                corners[:, 2] = floor
                corners[:, along] = middle[along] + np.array([start, end, end, start])
                corners[:, 1 - along] = middle[1 - along] + k * spacing + np.array([-thick, -thick, thick, thick])
                faces += [(len(vertices), len(vertices) + 1, len(vertices) + 2), (len(vertices), len(vertices) + 2, len(vertices) + 3)]
                vertices.extend(corners)
    return np.array(vertices), np.array(faces)


class Studio:
    """A trajectory in front of a camera that holds all of its motion, unless told otherwise."""

    def __init__(
        self, trajectory: Trajectory, size: tuple[int, int], *, azimuth: float = -50.0, elevation: float = 20.0,
        distance: float | None = None, target: ArrayLike | None = None, follow: str | None = None,
    ) -> None:
        if len(size) != 2 or not all(isinstance(s, int | np.integer) and 8 <= s <= LARGEST for s in size):
            raise ModelError(f"size must be two whole numbers of pixels between 8 and {LARGEST}, got {size}")
        position = trajectory.position
        self.trajectory, self.scene = trajectory, build_scene(trajectory)
        radius = self.scene.extent(position if follow is None else position[0])
        self.middle = 0.5 * (position.min(axis=(0, 1)) + position.max(axis=(0, 1))) if target is None else np.asarray(target, dtype=float)
        self.distance = 2.0 * radius if distance is None else float(distance)
        if self.middle.shape != (3,) or not np.isfinite([*self.middle, self.distance, azimuth, elevation]).all() or self.distance <= 0.0:
            raise ModelError("the camera needs a target of three finite numbers, finite angles and a positive distance")
        self.azimuth, self.elevation, self.size = azimuth, elevation, (FINER * size[0], FINER * size[1])
        self.follow = None if follow is None else trajectory.body(follow)
        self.floor = min(float(self.middle[2]) - radius, 0.0)
        self.spacing = float(10.0 ** np.round(np.log10(radius / 3.0)))

    def picture(self, knot: int) -> np.ndarray:
        """(height, width, 3) uint8 of one knot."""
        position = self.trajectory.position[knot]
        target = self.middle if self.follow is None else position[self.follow]
        camera = Camera(target, self.distance, self.azimuth, self.elevation, self.size)
        return render(self.scene, position, self.trajectory.orientation[knot], camera, self.floor, self.spacing)


def write_snapshot(trajectory: Trajectory, path: Path, *, time: float | None, size: tuple[int, int], **view: Any) -> Path:
    """Write the picture of one moment as PNG."""
    if path.suffix.lower() != ".png":
        raise ModelError(f"cannot write a picture to {path}: its ending must be .png")
    if time is not None and not trajectory.time[0] - 1e-9 <= time <= trajectory.time[-1] + 1e-9:
        raise ModelError(f"the run goes from {trajectory.time[0]:g} to {trajectory.time[-1]:g} s; there is no time {time}")
    knot = len(trajectory) - 1 if time is None else int(np.argmin(np.abs(trajectory.time - time)))
    picture = Studio(trajectory, size, **view).picture(knot)
    with _replacing(path) as temporary:
        temporary.write_bytes(png(picture))
    return path


def png(picture: np.ndarray) -> bytes:
    """An 8-bit RGB picture as PNG."""
    height, width, _ = picture.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)) + chunk(b"IEND", b"")


def write_video(trajectory: Trajectory, path: Path, *, fps: int, speed: float, size: tuple[int, int], **view: Any) -> Path:
    """Write a film, frame by frame; the file appears whole or not at all."""
    if path.suffix.lower() not in (".mp4", ".gif"):
        raise ModelError(f"cannot write a film to {path}: its ending must be .mp4 or .gif")
    if not (0 < fps <= 240 and np.isfinite(speed) and speed > 0.0):
        raise ModelError(f"a film needs fps between 1 and 240 and a positive speed, got {fps} and {speed}")
    if path.suffix.lower() == ".mp4":
        size = (size[0] + size[0] % 2, size[1] + size[1] % 2)  # the codec takes even sizes
    try:
        import imageio.v2 as imageio
    except ImportError:
        raise MissingExtraError("films need imageio with ffmpeg: pip install dalembert[video]") from None
    studio = Studio(trajectory, size, **view)
    length = float(trajectory.time[-1] - trajectory.time[0]) / speed
    moments = trajectory.time[0] + speed * np.arange(max(1, round(length * fps))) / fps
    knots = np.clip(np.searchsorted(trajectory.time, moments), 0, len(trajectory) - 1)
    with _replacing(path) as temporary:
        options: dict[str, Any] = dict(format="FFMPEG", codec="libx264", macro_block_size=2) if path.suffix.lower() == ".mp4" else dict(format="GIF", loop=0)
        named = temporary.with_name(temporary.name + path.suffix.lower())
        try:
            try:
                writer = imageio.get_writer(named, fps=fps, **options) if "codec" in options else imageio.get_writer(named, duration=1000.0 / fps, **options)
            except (ImportError, ValueError) as error:
                raise MissingExtraError(f"films need imageio with ffmpeg: pip install dalembert[video] ({error})") from None
            with writer:
                for knot in knots:
                    writer.append_data(studio.picture(int(knot)))
            named.replace(temporary)
        finally:
            named.unlink(missing_ok=True)
    return path
