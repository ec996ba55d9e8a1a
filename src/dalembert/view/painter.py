"""One picture of a scene: what stands where, a lamp that throws shadows, and layers of parts seen by a camera."""
from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import NamedTuple

import numpy as np

from dalembert.view.pixels import BLOCK, GAMMA, coarsen, fill, place, project, shade, shade_over, shade_small, shrink
from dalembert.view.scene import BACKGROUND, LIGHT, Part, Scene

ANGLE = 0.4  # tangent of half the angle of view, upwards
FINER = 2  # pixels per pixel of the picture, each way: their mean has smooth edges
SHADOWS = 1536  # points of the shadow map, each way
HIDDEN = 0.22  # opacity of arrows that a body hides


class Camera:
    """Sees with ``axes`` (right, up, back) from ``eye``; ``size``: of the picture in pixels."""

    def __init__(self, eye: np.ndarray, axes: np.ndarray, size: tuple[int, int]) -> None:
        self.eye, self.axes, self.size = eye, axes, size
        self.focal = 0.5 * size[1] / ANGLE


class Bundle(NamedTuple):
    """Parts laid end to end, as kernels take them."""

    vertices: np.ndarray  # (n, 3), in the coordinates of their owners
    normals: np.ndarray  # (n, 3)
    owners: np.ndarray  # (n,)
    faces: np.ndarray  # (m, 3)
    labels: np.ndarray  # (m,) part of each face
    colours: np.ndarray  # (parts, 3), linear

    @classmethod
    def of(cls, parts: list[Part]) -> Bundle:
        counts = [len(part.vertices) for part in parts]
        shifts = np.cumsum([0, *counts])
        return cls(
            np.concatenate([np.zeros((0, 3), np.float32), *(part.vertices for part in parts)]),
            np.concatenate([np.zeros((0, 3), np.float32), *(part.normals for part in parts)]),
            np.repeat(np.array([part.owner for part in parts], np.int64), counts),
            np.concatenate([np.zeros((0, 3), np.int32), *(part.faces + np.int32(shift) for part, shift in zip(parts, shifts))]),
            np.repeat(np.arange(len(parts), dtype=np.int32), [len(part.faces) for part in parts]),
            np.array([part.colour[:3] for part in parts], float).reshape(-1, 3) ** GAMMA,
        )

    def placed(self, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, 3) vertices and normals in the world."""
        points, turned = np.empty((len(self.vertices), 3)), np.empty((len(self.vertices), 3), np.float32)
        place(self.vertices, self.normals, self.owners, poses, points, turned)
        return points, turned


class Canvas:
    """The arrays that one picture at a time is drawn in: how near things are, what they are, where they face, and the map of shadows."""

    def __init__(self, size: tuple[int, int]) -> None:
        width, height = size
        self.nearness, self.labels = np.zeros((height, width), np.float32), np.zeros((height, width), np.int32)
        self.directions = np.zeros((height, width, 3), np.float32)
        self.shadows = np.zeros((SHADOWS, SHADOWS), np.float32)
        self.squares, self.coarse = (np.zeros((SHADOWS // BLOCK, SHADOWS // BLOCK), np.float32) for _ in range(2))


class Painter:
    """Draws a scene at any poses of its owners; several threads may do so at once."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.solid = Bundle.of([part for part in scene.parts if part.colour[3] == 1.0])
        self.glass = [(Bundle.of([part]), part.colour[3]) for part in scene.parts if part.colour[3] < 1.0]
        self._canvases: dict[tuple[int, int], SimpleQueue[Canvas]] = {}

    def picture(self, poses: np.ndarray, extras: list[Part], camera: Camera, target: np.ndarray) -> np.ndarray:
        """(height, width, 3) uint8, ``FINER`` times smaller than what the camera sees, of owners at their poses (owners, 8).

        Glass is drawn over solid parts, extras last, and faintly where something hides them. ``target``: the middle of what is lit.
        """
        free = self._canvases.setdefault(camera.size, SimpleQueue())
        try:
            canvas = free.get_nowait()
        except Empty:
            canvas = Canvas(camera.size)
        try:
            return self._picture(canvas, poses, extras, camera, target)
        finally:
            free.put(canvas)

    def _picture(self, canvas: Canvas, poses: np.ndarray, extras: list[Part], camera: Camera, target: np.ndarray) -> np.ndarray:
        scene, lamp = self.scene, _lamp(target, 1.5 * self.scene.radius)
        ground = np.array([np.nan if scene.floor is None else scene.floor, scene.spacing, *target[:2], 12.0 * scene.radius])
        points, normals = self.solid.placed(poses)
        self._cast(canvas, points, normals, lamp)
        light = camera.eye, camera.axes, camera.focal, canvas.shadows, canvas.coarse, lamp, LIGHT, np.array(BACKGROUND), ground, 0.004 * scene.radius
        layers = [(bundle, opacity, 0.0, *bundle.placed(poses)) for bundle, opacity in self.glass]
        layers.sort(key=lambda layer: -np.linalg.norm(layer[3].mean(axis=0) - camera.eye))
        if extras:
            bundle = Bundle.of(extras)
            layers.append((bundle, 1.0, HIDDEN, *bundle.placed(poses)))
        drawn = canvas.nearness, canvas.labels, canvas.directions
        self._fill(canvas, self.solid, points, normals, camera)
        width, height = camera.size
        small = np.empty((height // FINER, width // FINER, 3), np.uint8)
        if not layers:
            shade_small(*drawn, self.solid.colours, small, *light)
            return small
        picture = np.empty((height, width, 3), np.float32)
        shade(*drawn, self.solid.colours, picture, *light)
        solid = canvas.nearness.copy()
        for bundle, opacity, hidden, points, normals in layers:
            self._fill(canvas, bundle, points, normals, camera)
            shade_over(*drawn, bundle.colours, picture, solid, opacity, hidden, *light)
        shrink(picture, FINER, small)
        return small

    def _cast(self, canvas: Canvas, points: np.ndarray, normals: np.ndarray, lamp: np.ndarray) -> None:
        """Draw the map of shadows."""
        canvas.shadows[:] = 0.0
        nothing = np.zeros((0, 0), np.int32), np.zeros((0, 0, 3), np.float32)
        fill(points @ lamp[:3, :3].T + lamp[:3, 3], normals, self.solid.faces, self.solid.labels, canvas.shadows, *nothing)
        coarsen(canvas.shadows, canvas.squares, canvas.coarse)

    def _fill(self, canvas: Canvas, bundle: Bundle, points: np.ndarray, normals: np.ndarray, camera: Camera) -> None:
        """Draw what is in front, and nothing else."""
        canvas.nearness[:] = 0.0
        seen = np.empty_like(points)
        project(points, camera.eye, camera.axes, camera.focal, *canvas.nearness.shape, seen)
        fill(seen, normals, bundle.faces, bundle.labels, canvas.nearness, canvas.labels, canvas.directions)


def _lamp(middle: np.ndarray, reach: float) -> np.ndarray:
    """(4, 4) from a point of the world to column, row and nearness in the shadow map, and the slack of the last."""
    side = np.cross([0.0, 1.0, 0.0], LIGHT)
    side /= np.linalg.norm(side)
    lamp = np.zeros((4, 4))
    for row, axis, scale, zero in ((0, side, 0.5 * SHADOWS / reach, 0.5 * SHADOWS), (1, np.cross(LIGHT, side), 0.5 * SHADOWS / reach, 0.5 * SHADOWS), (2, LIGHT, 1.0 / (8.0 * reach), 0.5)):
        lamp[row, :3], lamp[row, 3] = scale * axis, zero - scale * axis @ middle
    lamp[3, 0] = 0.6 / SHADOWS
    return lamp
