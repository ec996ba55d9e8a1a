"""Keyframes of mechanisms with loops: MuJoCo's hold them softly, ours must be closed."""
from __future__ import annotations

import numpy as np

from dalembert.io.mjcf.source import Source
from dalembert.model.topology import loop_count


def close_keyframe(source: Source) -> None:
    """Where loops or gears tie the joints, start at the pose nearest to the keyframe that they allow, at rest."""
    mechanism = source.mechanism
    if source.key is None or not (mechanism.couplings or loop_count(mechanism)):
        return
    from dalembert.formulations.variational import Variational
    from dalembert.simulation.simulation import Simulation

    wishes = {name: value for name, (value, _) in mechanism.initial_joints.items()}
    rates = [rate for _, rate in mechanism.initial_joints.values()]
    mechanism.initial_joints.clear()
    pose = Simulation(mechanism, Variational(dt=1e-3)).solve_pose(wishes)
    for name, wish in wishes.items():
        ends = np.array(mechanism[name].type.limits).reshape(-1, 2).T
        mechanism.start(name, np.clip(pose[name], *ends))
        if np.abs(pose[name] - wish).max() > 1e-3:
            source.report.append(f"joint {name!r} starts at {pose[name].round(6).tolist()} where loops are closed, and not at the keyframe's {np.round(wish, 6).tolist()}")
    if any(np.any(rate) for rate in rates):
        source.report.append("the keyframe's velocities are left out, since loops tie them")
