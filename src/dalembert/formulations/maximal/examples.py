"""Arguments for kernels from a mechanism with nothing in it: their types are those of any mechanism, which is all that compiling takes."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.formulations.maximal.engine import Inputs, new_recording, no_stages
from dalembert.formulations.maximal.series import motion_series, new_motion, pose_series
from dalembert.kernels.ahead import Jobs
from dalembert.linalg.blocks import BLOCK, VECTOR, aligned_zeros
from dalembert.linalg.schedule import Schedule
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.compile import compile_mechanism
from dalembert.model.records import Records


class Graph(NamedTuple):
    """What the solver's kernels take."""

    blocks: np.ndarray
    schedule: Schedule
    vector: np.ndarray


def records() -> Records:
    """Records of nothing."""
    return compile_mechanism(Mechanism("nothing"))


def graph() -> Graph:
    """A graph without nodes."""
    return Graph(aligned_zeros(0, BLOCK), Schedule(*(np.zeros(0, np.int64) for _ in Schedule._fields)), aligned_zeros(0, VECTOR))


def reading() -> Jobs:
    """The kernels that read a recorded run."""
    recording, load = new_recording(1, 0, 0, 0), np.zeros((0, 6))
    inputs = Inputs(np.zeros((0, 0, 6)), np.zeros((0, 0, 6)), np.zeros((1, 0, 6)), no_stages(0))
    per_joint, per_coupling = np.zeros((1, 0, 6)), np.zeros((1, 0))
    yield motion_series, (records(), *graph(), 0.0, recording, inputs, load, np.zeros((2, 1, 0, 6)), new_motion(1, 0, 0), False)
    yield pose_series, (records(), recording, inputs, load, per_joint, per_joint, per_coupling, np.zeros(1))
