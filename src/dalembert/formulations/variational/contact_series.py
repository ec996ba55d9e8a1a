"""Velocities just after the knots of a recorded run with contacts."""
from __future__ import annotations

from dalembert.formulations.maximal.knot import project
from dalembert.formulations.maximal.series import recall
from dalembert.kernels import kernel
from dalembert.model.pose import joint_rates


@kernel
def after_series(model, work, compliance, recording, inputs, tape, prescribed, velocity, rate, impulse, coupling_impulse):
    """Velocities (N, n + 1, 6) and joint rates (N, joints, 6) just after all knots but the last one, which keeps what is there.

    The momentum at the start of an interval is that just after the knot, M v+, and half a kick of all forces that last:

        P+ = M v+ + dt/2 (f + G^T lam),     G v+ = prescribed rates.

    ``tape.after`` holds P+ - dt/2 f. In it, P+ has all impulses at the knot, those by which joints answer an impact too;
    their reactions lam that last are unknown, but G^T lam is what a projection on the joints in the mass metric takes off,
    and M v+, whose velocities the joints allow, is what it leaves. ``impulse`` (joints, 6) and ``coupling_impulse`` are scratch.
    """
    for knot in range(velocity.shape[0] - 1):
        recall(model, work, recording, inputs, knot)
        for i in range(work.joints.shape[0]):
            joint, at = model.joints[i], work.joints[i]
            for k in range(6):
                at.spin[k] = tape.spin_after[knot, i, k]
            for k in range(joint.rows):
                direction = joint.row_direction[k]
                at.r[k] = prescribed[knot, i, direction] if direction >= 0 else 0.0
        for i in range(work.couplings.shape[0]):
            work.couplings[i].r = 0.0
        project(model, work, compliance, tape.after[knot], 0.0, 1e-13, velocity[knot], impulse, coupling_impulse)
        joint_rates(model, work, velocity[knot], rate[knot])
