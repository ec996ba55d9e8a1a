"""The line of a path at a pose, in NumPy: its length, how fast it changes, and where its points are."""
from __future__ import annotations

import numpy as np

from dalembert.mechanism.forces import Path
from dalembert.mechanism.mechanism import rotation_matrix


def path_points(path: Path, position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
    """(points, 3) in the world, for bodies at positions (n, 3) and orientations (n, 4)."""
    places = [
        point if body.index < 0 else position[body.index] + rotation_matrix(orientation[body.index]) @ point
        for body, point in zip(path.bodies, path.points)
    ]
    return np.array(places)


def path_motion(path: Path, position: np.ndarray, orientation: np.ndarray, velocity: np.ndarray) -> tuple[float, float]:
    """Length (m) and its rate (m/s) for velocities (n, 6), linear (world) and angular (body frame)."""
    speeds = np.array([
        np.zeros(3) if body.index < 0 else velocity[body.index, :3] + rotation_matrix(orientation[body.index]) @ np.cross(velocity[body.index, 3:], point)
        for body, point in zip(path.bodies, path.points)
    ])
    steps = np.diff(path_points(path, position, orientation), axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    return float(lengths.sum()), float(np.sum(np.diff(speeds, axis=0) * steps / lengths[:, None]))
