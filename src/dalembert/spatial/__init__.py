"""Rotations and rigid motions with their derivatives, as Numba helpers over tuples: tuples, quaternion, so3, se3."""
from dalembert.spatial import quaternion, se3, so3, tuples

__all__ = ["quaternion", "se3", "so3", "tuples"]
