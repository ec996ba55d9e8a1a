"""Whether joints do work in a step, which they never do in a motion: a step in which they do much is too long for it.

Impulses mu at a knot between intervals of velocities u- and u+ change the kinetic energy by mu G (u- + u+) / 2. Rows that hold allow
no velocity along G at the knot, so that this is the error of the step alone, of third order; near a pose at which a mechanism can
turn over, or where links whip, it may be as large as the energy itself. Where the intervals, h- and h+, differ, the velocity at the
knot is (h+ u- + h- u+) / (h- + h+); at a start, where there is no interval before it, u- is the velocity of the start, and the work is of
second order and that of half a kick, which counts twice. What falls from rest, and what rests but for the tolerance of its rows, has no kinetic energy to compare with: that of a fall
over one step counts besides.
"""
from __future__ import annotations

from dalembert.formulations.variational.equations import flow, momentum_after
from dalembert.kernels import kernel
from dalembert.model.pose import put6
from dalembert.model.records import CONSTRAINT
from dalembert.spatial.tuples import add3, dot3, load3, load9, mat_vec, scale3, sub3

#: how a step ends in which joints do too much work (see ``solvers/outcomes.py``)
STRAINED = 4
#: largest share of the kinetic energy that joints may give or take at a knot
MOST = 0.1


@kernel
def strains(model, work, before, dt, share, tolerance):
    """True when the joints give or take more than a share of the kinetic energy at the knot between an interval and the one just solved.

    ``tolerance`` (m/s) of their rows.
    """
    bodies, velocity = work.bodies, work.velocity
    world = bodies.shape[0] - 1
    kinetic = 0.0
    g = load3(model.gravity)
    fall = dt * dt * dot3(g, g)
    early = dt / (before + dt) if before > 0.0 else 0.5
    late = 1.0 - early
    for i in range(world):
        body, fixed = bodies[i], model.bodies[i]
        v, w = load3(body.v), load3(body.w)
        p, l = sub3(load3(body.p), load3(body.along)), sub3(load3(body.l), load3(body.along[3:]))
        linear = add3(scale3(early / fixed.mass, p), scale3(late, v))
        turning = add3(scale3(early, l), scale3(late, momentum_after(body, fixed, dt)))
        angular = mat_vec(load9(fixed.inertia_inverse), turning)
        put6(velocity[i], linear, angular)
        after = fixed.mass * dot3(v, v) + dot3(w, mat_vec(load9(fixed.inertia), w))
        mean = fixed.mass * dot3(linear, linear) + dot3(angular, turning)
        kinetic += 0.5 * (max(after, mean) + fixed.mass * fall)
    done = 0.0
    pressed = 0.0
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        for k in range(joint.locks):
            if joint.row_direction[k] < 0:  # drives do work
                rate = 0.0
                if joint.parent != world:
                    u = velocity[joint.parent]
                    rate += flow(at.Gp[k], load3(u), load3(u[3:]))
                u = velocity[joint.child]
                rate += flow(at.Gc[k], load3(u), load3(u[3:]))
                done += at.mu[k] * rate
                pressed += abs(at.mu[k])
    for i in range(model.couplings.shape[0]):
        coupling = model.couplings[i]
        if coupling.law == CONSTRAINT:
            pressed += abs(work.couplings[i].mu)
            for e in range(coupling.first, coupling.first + coupling.ends):
                u = velocity[model.ends[e]]
                done += work.couplings[i].mu * flow(work.ends[e].G, load3(u), load3(u[3:]))
    if before == 0.0:
        done *= 2.0
    return abs(done) > share * kinetic + 10.0 * tolerance * pressed
