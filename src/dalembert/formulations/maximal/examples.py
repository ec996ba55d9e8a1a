"""Arguments for kernels from a mechanism with nothing in it: their types are those of any mechanism, which is all that compiling takes."""
from __future__ import annotations

import numpy as np

from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.recording import new_recording
from dalembert.formulations.maximal.series import motion_series, new_motion, pose_series
from dalembert.kernels.ahead import Jobs
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.compile import compile_model, new_work
from dalembert.model.records import Model, Work


def model_and_work() -> tuple[Model, Work]:
    """Of nothing."""
    model = compile_model(Mechanism("nothing"))
    return model, new_work(model)


def inputs() -> Inputs:
    """None."""
    return Inputs(np.zeros((0, 0, 6)), np.zeros((0, 0, 6)), np.zeros((1, 0, 6)), np.zeros((0, 0, 0, 6)), np.zeros((0, 0)))


def reading() -> Jobs:
    """The kernels that read a recorded run."""
    recording, per_joint, per_coupling = new_recording(1, 0, 0, 0), np.zeros((1, 0, 6)), np.zeros((1, 0))
    yield motion_series, (*model_and_work(), 0.0, recording, inputs(), np.zeros((2, 1, 0, 6)), new_motion(1, 0, 0, 0), False, np.zeros(1, bool))
    yield pose_series, (*model_and_work(), recording, inputs(), per_joint, per_joint, per_coupling, np.zeros(1), per_coupling)
