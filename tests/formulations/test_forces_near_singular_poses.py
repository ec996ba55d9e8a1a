"""Forces where the rows of a loop nearly follow from one another: every refinement of a solve takes away but a part of what is left."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da


def nearly_singular() -> da.Mechanism:
    """Three bodies in loops of slides and screws, whose rows leave 2e-4 of their size to tell them apart."""
    mechanism = da.Mechanism("nearly singular")
    mechanism.body("b0", position=(0.349, 0.113, 0.226), orientation=(-1.06, -0.829, 0.678, -0.281), mass=1.08, inertia=np.diag((0.00929, 0.0187, 0.0183)))
    mechanism.body("b1", position=(-0.19, 0.219, 0.119), orientation=(-0.408, -0.399, -0.515, 1.16), mass=0.735, inertia=np.diag((0.00235, 0.00852, 0.00681)))
    mechanism.joint("j1", da.Planar(normal=(-0.317, -1.12, -1.28)), "b1", "b0", at=(0.228, 0.219, 0.335), frame=(0.247, -0.234, -1.57, 2.88))
    mechanism.body("b2", position=(-1.08, -0.429, -0.278), orientation=(-0.697, 1.95, -0.738, -2.45), mass=1.05, inertia=np.diag((0.0118, 0.0106, 0.00255)))
    mechanism.joint("j2", da.Cylindrical(axis=(0.0549, 1.07, -0.235)), "b2", "b0", at=(-0.276, 0.202, 0.00437), frame=(2.1, 0.815, 1.78, -0.343))
    mechanism.joint("l0", da.Cylindrical(), mechanism.world, "b1", at=(-0.148, 0.212, -0.11), frame=(1.42, 0.0507, 0.331, 1.25))
    mechanism.joint("l1", da.Cylindrical(axis=(-0.687, 0.796, -0.0466)), "b1", "b2", at=(-0.386, -0.0887, -0.053), frame=(-0.62, 1.23, 0.35, 1.12))
    return mechanism


@pytest.mark.parametrize("formulation", [da.Variational(dt=0.001), da.Implicit(dt=0.001), da.Reduced(dt=0.001)], ids=lambda f: type(f).__name__)
def test_forces_are_those_that_change_the_momentum(formulation):
    mechanism = nearly_singular()
    run = da.Simulation(mechanism, formulation).run(0.012)
    force = run.mass[:, None] * np.array(mechanism.gravity) + np.zeros_like(run.velocity)
    for joint in mechanism.joints:
        parent = np.eye(3)[None] if joint.parent.index < 0 else Rotation.from_quat(run.orientation[:, joint.parent.index], scalar_first=True).as_matrix()
        pushed = np.einsum("tij,tj->ti", np.broadcast_to(parent @ joint.frame_parent, (len(run), 3, 3)), run.joint(joint.name).force)
        for body, sign in ((joint.child.index, 1.0), (joint.parent.index, -1.0)):
            if body >= 0:
                force[:, body] += sign * pushed
    change = run.mass[:, None] * np.gradient(run.velocity, formulation.dt, axis=0)
    np.testing.assert_allclose(force[3:-3], change[3:-3], atol=2e-3 * np.abs(change).max())
