"""Pictures of a mechanism at any pose, one after the other, by a camera that stays or follows: no run is needed for them."""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError
from dalembert.mechanism.mechanism import Mechanism
from dalembert.view.painter import ANGLE, FINER, Camera, Painter
from dalembert.view.raster import LARGEST, looking
from dalembert.view.scene import build_scene, fitting_eye

#: the room around a mechanism in its pictures, in parts of its own size
ROOM = 1.5


class Stills:
    """A camera before a mechanism, which is at first at positions (bodies, 3) and orientations (bodies, 4) and in the middle of the picture.

    ``size``: width and height in pixels; ``azimuth``, ``elevation`` (degrees), ``distance`` (m) and ``target`` (3,) as for
    ``Trajectory.snapshot``; ``follow``: a body that stays in the middle as it moves along the ground.
    """

    def __init__(
        self, mechanism: Mechanism, position: np.ndarray, orientation: np.ndarray, *, size: tuple[int, int] = (480, 360), azimuth: float | None = None,
        elevation: float | None = None, distance: float | None = None, target: ArrayLike | None = None, follow: str | None = None,
    ) -> None:
        if len(size) != 2 or not all(isinstance(s, int | np.integer) and 8 <= s <= LARGEST for s in size):
            raise ModelError(f"size must be two whole numbers of pixels between 8 and {LARGEST}, got {size}")
        self.scene = build_scene(mechanism, position, orientation)
        self.painter = Painter(self.scene)
        angles = [usual if given is None else given for given, usual in zip((azimuth, elevation), self.scene.look)]
        self.axes, self.size = looking(*angles), (FINER * size[0], FINER * size[1])
        hull = self.scene.hull
        middle = 0.5 * (hull.min(axis=0) + hull.max(axis=0))
        eye = fitting_eye(middle + ROOM * (hull - middle), self.axes, 0.9 * ANGLE * size[0] / size[1], 0.9 * ANGLE)
        depth = float((eye - middle) @ self.axes[2])
        self.aim = eye - depth * self.axes[2] if target is None else np.asarray(target, dtype=float)
        self.distance = depth if distance is None else float(distance)
        self.follow = None if follow is None else mechanism[follow].index
        self._first = position.copy()

    def picture(self, position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
        """(height, width, 3) uint8."""
        aim = self.aim.copy()
        if self.follow is not None:
            aim[:2] += (position - self._first)[self.follow, :2]
        camera = Camera(aim + self.distance * self.axes[2], self.axes, self.size)
        return self.painter.picture(self.scene.placed(position, orientation), [], camera, aim)
