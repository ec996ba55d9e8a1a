"""Pictures and films of a run without a display: a small software renderer with shadows, in the page's look."""
from __future__ import annotations

import io
import os
import struct
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.errors import MissingExtraError, ModelError, SaveError
from dalembert.io.whole import write_whole
from dalembert.progress import Progress
from dalembert.simulation.trajectory import Trajectory
from dalembert.view.arrows import Arrows
from dalembert.view.painter import ANGLE, FINER, Camera, Painter
from dalembert.view.scene import (
    AXES,
    INK,
    MAGENTA,
    ORANGE,
    Part,
    arrow_parts,
    build_scene,
    fitting_eye,
    ordinary_speed,
)

LARGEST = 8192  # pixels along an edge
ALL = slice(None)
ARROW_KNOTS = 20  # moments whose arrows a camera makes room for
#: what a picture can show besides the bodies
EXTRAS = ("frames", "axes", "forces", "contacts")


def looking(azimuth: float, elevation: float) -> np.ndarray:
    """(3, 3): right, up and back of a camera (degrees)."""
    a, e = np.radians(azimuth), np.radians(np.clip(elevation, -89.9, 89.9))
    back = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(back, right), back])


class Studio:
    """A trajectory in front of a camera that holds all of its motion (that of some ``knots``), unless told otherwise."""

    def __init__(
        self, trajectory: Trajectory, size: tuple[int, int], *, azimuth: float | None = None, elevation: float | None = None, knots: slice = ALL,
        distance: float | None = None, target: ArrayLike | None = None, follow: str | None = None, show: Sequence[str] = (),
    ) -> None:
        if len(size) != 2 or not all(isinstance(s, int | np.integer) and 8 <= s <= LARGEST for s in size):
            raise ModelError(f"size must be two whole numbers of pixels between 8 and {LARGEST}, got {size}")
        self.show = (show,) if isinstance(show, str) else tuple(show)
        if unknown := [word for word in self.show if word not in EXTRAS]:
            raise ModelError(f"show= got {', '.join(map(repr, unknown))}; choose from: {', '.join(EXTRAS)}")
        self.trajectory, self.scene = trajectory, build_scene(trajectory)
        self.painter = Painter(self.scene)
        angles = [usual if given is None else given for given, usual in zip((azimuth, elevation), self.scene.look)]
        aim = np.zeros(3) if target is None else np.asarray(target, dtype=float)
        if aim.shape != (3,) or not np.isfinite([*aim, *angles, 1.0 if distance is None else distance]).all() or (distance is not None and distance <= 0.0):
            raise ModelError("the camera needs a target of three finite numbers, finite angles and a positive distance")
        self.arrows = Arrows(trajectory, self.scene.size) if self.show else None
        self.axes, self.size = looking(*angles), (FINER * size[0], FINER * size[1])
        position = trajectory.position[knots]
        self.follow = None if follow is None else trajectory._body_index(follow)
        if self.follow is not None:
            position = position - position[:, [self.follow]]
        points = np.concatenate([self.scene.hull_of(position, trajectory.orientation[knots]), *self._arrow_points(knots)])
        eye = fitting_eye(points, self.axes, 0.9 * ANGLE * size[0] / size[1], 0.9 * ANGLE)
        depth = float((eye - 0.5 * (points.min(axis=0) + points.max(axis=0))) @ self.axes[2])
        self.aim = eye - depth * self.axes[2] if target is None else aim
        self.distance = depth if distance is None else float(distance)

    def _arrow_points(self, knots: slice) -> Iterator[np.ndarray]:
        """Where arrows and axes reach at some of the knots, seen from the body that is followed."""
        every = np.arange(len(self.trajectory))[knots]
        for knot in every[:: max(1, len(every) // ARROW_KNOTS)] if self.show else ():
            position = self.trajectory.position[knot]
            origin = np.zeros(3) if self.follow is None else position[self.follow]
            for part in self._extras(int(knot), self.scene.placed(position, self.trajectory.orientation[knot])):
                yield part.vertices.astype(float) - origin

    def picture(self, knot: int) -> np.ndarray:
        """(height, width, 3) uint8 of one knot."""
        position, orientation = self.trajectory.position[knot], self.trajectory.orientation[knot]
        aim = self.aim if self.follow is None else self.aim + position[self.follow]
        camera = Camera(aim + self.distance * self.axes[2], self.axes, self.size)
        poses = self.scene.placed(position, orientation)
        return self.painter.picture(poses, self._extras(knot, poses), camera, aim)

    def _extras(self, knot: int, poses: np.ndarray) -> list[Part]:
        """Frames, axes and arrows that were asked for."""
        if self.arrows is None:
            return []
        reach, lines = self.scene.axis, []
        joints = self.arrows.joints(np.array([knot]))[0]
        if "frames" in self.show:
            for pose in poses[: len(self.scene.bodies)]:
                turn = Rotation.from_quat(pose[3:7], scalar_first=True).as_matrix()
                lines += [(pose[:3], pose[:3] + reach * turn[:, k], AXES[k], False) for k in range(3)]
        if "axes" in self.show:
            lines += [(j[:3] - 0.8 * reach * j[3:6], j[:3] + 0.8 * reach * j[3:6], INK, False) for j in joints if j[3:6].any()]
        for word, rows, colour in (("forces", joints[:, [0, 1, 2, 6, 7, 8]], ORANGE), ("contacts", self.arrows.contacts(knot), MAGENTA)):
            if word in self.show:
                lines += [(r[:3], self.arrows.tips(r[:3], r[3:]), colour, True) for r in rows if r[3:].any()]
        return arrow_parts(lines, 0.05 * reach)


def write_snapshot(trajectory: Trajectory, path: Path, *, time: float | None, size: tuple[int, int], **view: Any) -> Path:
    """Write the picture of one moment as PNG."""
    if path.suffix.lower() != ".png":
        raise ModelError(f"cannot write a picture to {path}: its ending must be .png")
    if time is not None and not trajectory.time[0] - 1e-9 <= time <= trajectory.time[-1] + 1e-9:
        raise ModelError(f"the run goes from {trajectory.time[0]:g} to {trajectory.time[-1]:g} s; there is no time {time}")
    knot = len(trajectory) - 1 if time is None else int(np.argmin(np.abs(trajectory.time - time)))
    picture = Studio(trajectory, size, knots=slice(knot, knot + 1), **view).picture(knot)
    with write_whole(path) as temporary:
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


def write_video(trajectory: Trajectory, path: Path, *, fps: int, speed: float | None, size: tuple[int, int], **view: Any) -> Path:
    """Write a film, frame by frame; the file appears whole or not at all."""
    if path.suffix.lower() not in (".mp4", ".gif"):
        raise ModelError(f"cannot write a film to {path}: its ending must be .mp4 or .gif")
    whole = float(trajectory.time[-1] - trajectory.time[0])
    speed = ordinary_speed(whole) if speed is None else speed
    if not (0 < fps <= 240 and np.isfinite(speed) and speed > 0.0):
        raise ModelError(f"a film needs fps between 1 and 240 and a positive speed, got {fps} and {speed}")
    mp4 = path.suffix.lower() == ".mp4"
    if mp4:
        size = (size[0] + size[0] % 2, size[1] + size[1] % 2)  # the codec takes even sizes
    try:
        import imageio.v2 as imageio
    except ImportError:
        raise MissingExtraError("films need imageio with ffmpeg: pip install dalembert[video]") from None
    studio = Studio(trajectory, size, **view)
    moments = trajectory.time[0] + speed * np.arange(max(1, round(whole / speed * fps))) / fps
    knots = np.clip(np.searchsorted(trajectory.time, moments), 0, len(trajectory) - 1)
    options: dict[str, Any] = dict(format="FFMPEG", fps=fps, codec="libx264", macro_block_size=2) if mp4 else dict(format="GIF", duration=1000.0 / fps, loop=0)
    with write_whole(path, path.suffix.lower()) as temporary:
        try:
            writer = imageio.get_writer(temporary, **options)
        except (ImportError, ValueError) as error:
            raise MissingExtraError(f"films need imageio with ffmpeg: pip install dalembert[video] ({error})") from None
        bar = Progress(len(knots), path.name, "pictures")
        try:
            with writer:
                for k, picture in enumerate(_pictures(studio, knots)):
                    writer.append_data(picture)
                    bar.update(k + 1)
        except OSError as error:  # of the program that codes it, which says little
            raise SaveError(f"cannot write {path}: the film could not be coded, or the disk is full ({' '.join(str(error).split())[:200]})") from error
        bar.close()
        if not (_is_whole_mp4(temporary) if mp4 else temporary.read_bytes()[-1:] == b";"):
            raise SaveError(f"cannot write {path}: the film is not complete; the disk may be full")
    return path


def _pictures(studio: Studio, knots: np.ndarray) -> Iterator[np.ndarray]:
    """Pictures in order, drawn by all cores, a few ahead of what is taken."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        ahead: deque[Future[np.ndarray]] = deque()
        for knot in knots:
            ahead.append(pool.submit(studio.picture, int(knot)))
            if len(ahead) > 2 * cores:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _is_whole_mp4(path: Path) -> bool:
    """Whether the boxes of a file fill it, with the table of contents among them, which comes last. What codes films may end without a word."""
    kinds, place, length = set(), 0, path.stat().st_size if path.exists() else 0
    with path.open("rb") if length else io.BytesIO() as file:
        while place + 8 <= length:
            file.seek(place)
            size, kind = struct.unpack(">I4s", file.read(8))
            if size == 1 and place + 16 <= length:
                (size,) = struct.unpack(">Q", file.read(8))
            if size < 8:
                return False
            kinds.add(kind)
            place += size
    return place == length and {b"moov", b"mdat"} <= kinds
