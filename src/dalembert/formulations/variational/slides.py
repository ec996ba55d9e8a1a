"""Where an interval looks at the sliding velocities of what goes on touching, so that rolling and sliding are of second order.

The force at a knot stands between two intervals, whose velocities are those of their middles. Three velocities may be asked to vanish or to face friction:

    AFTER_KNOT  that of the rows of the knot just after it: dissipative whatever happens, for what strikes, stops or wakes up. Of first order;
    IN_MIDDLE   that in the middle of the interval, for what sticks and rolls:

                    eta = t' . v + (p' - x') x t' . W,    W = R' J^-1 R'^T R l.

                The pose there (') is foreseen by the velocities just before the knot, x + dt/2 v and R exp(dt/2 w), and t' are the tangents of the knot, carried
                to the normal there. Momenta R l of an interval stay as they are at its beginning, so that a ball, whose momentum is its spin, rolls exactly;
    MEAN        the mean of before and after by the rows of the knot, for what slides on: it takes exactly the work that friction does.
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.events import approach, is_impact, velocity_before
from dalembert.contact.geometry import measure, slide_after_knot
from dalembert.contact.records import AFTER_KNOT, IN_MIDDLE, MEAN, TWIST
from dalembert.kernels import inline, kernel
from dalembert.model.pose import put6
from dalembert.spatial import so3
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load9,
    mat_mul,
    mat_mul_t,
    mat_t_mul,
    mat_vec,
    neg3,
    scale3,
    sub3,
)

#: gaps (m) of what touches at the knot already
TOUCHING = 1e-6
#: what slides more slowly than this part of what friction takes from a free body's speed in a step may stick
SLOW = 0.5


@inline
def middle(model, work, i, dt):
    """Foreseen pose (x, R) of a body in the middle of the interval; the world stays."""
    body = work.bodies[i]
    if i == model.bodies.shape[0] - 1:
        return load3(body.x), load9(body.R)
    linear, angular = velocity_before(model, work, i)
    return add3(load3(body.x), scale3(0.5 * dt, linear)), mat_mul(load9(body.R), so3.exp_matrix(scale3(0.5 * dt, angular)))


@inline
def foresee(model, work, i, dt):
    """The pose (x, R') of ``middle``, and J R^T R' J^-1 R'^T: torques in the world there as torques over the momenta just after the knot."""
    x, R = middle(model, work, i, dt)
    if i == model.bodies.shape[0] - 1:
        return x, R, R
    fixed = model.bodies[i]
    turn = mat_mul(load9(fixed.inertia), mat_t_mul(load9(work.bodies[i].R), R))
    return x, R, mat_mul(turn, mat_mul_t(load9(fixed.inertia_inverse), R))


@inline
def carried(t, n):
    """A tangent, as long as it is, turned to another normal."""
    across = sub3(t, scale3(dot3(t, n), n))
    return scale3(sqrt(dot3(t, t) / dot3(across, across)), across)


@kernel
def slide_in_middle(scene, contact, xa, Ra, A, xb, Rb, B):
    """Rows of the sliding velocity of a contact in the middle of the interval, as ``foresee`` has it of both bodies; over the velocities of the momenta just after the knot."""
    contact.look = IN_MIDDLE
    _, n, p = measure(contact, scene, xa, Ra, xb, Rb)
    t = carried(load3(contact.Ga[1]), n)
    u = carried(load3(contact.Ga[2]), n)
    arm = sub3(p, xa)
    put6(contact.Sa[0], t, mat_vec(A, cross3(arm, t)))
    put6(contact.Sa[1], u, mat_vec(A, cross3(arm, u)))
    arm = sub3(p, xb)
    put6(contact.Sb[0], neg3(t), mat_vec(B, cross3(arm, neg3(t))))
    put6(contact.Sb[1], neg3(u), mat_vec(B, cross3(arm, neg3(u))))


@inline
def before_knot(model, work, contact):
    """Rates along the tangents just before the knot; less the drift, they are the sliding velocity there."""
    return (
        approach(model, work, contact.a, contact.b, contact.Ga[1], contact.Gb[1]), approach(model, work, contact.a, contact.b, contact.Ga[2], contact.Gb[2]),
    )


@inline
def slide_on(contact, before):
    """Look at the mean sliding velocity of before and after the knot, with the rates ``before`` it."""
    contact.look = MEAN
    for k in range(2):
        contact.past[k] = 0.5 * before[k]
        for c in range(6):
            contact.Sa[k, c] = 0.5 * contact.Ga[1 + k, c]
            contact.Sb[k, c] = 0.5 * contact.Gb[1 + k, c]


@kernel
def place_slide(model, work, scene, contact, look, dt):
    """Rows of a contact's sliding velocity as they were looked at, after ``at_knot``."""
    if look == IN_MIDDLE:
        xa, Ra, A = foresee(model, work, contact.a, dt)
        xb, Rb, B = foresee(model, work, contact.b, dt)
        slide_in_middle(scene, contact, xa, Ra, A, xb, Rb, B)
    elif look == MEAN:
        slide_on(contact, before_knot(model, work, contact))


@kernel
def look_at_slides(model, work, scene, dt, speed, resting):
    """Choose for all contacts where their sliding is looked at; ``speed`` (m/s) is what gravity makes in the step."""
    world = model.bodies.shape[0] - 1
    a, b = world, world
    xa, Ra, A = foresee(model, work, a, dt)
    xb, Rb, B = xa, Ra, A
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.used != 1 or contact.kind == TWIST or contact.friction == 0.0 or contact.gap0 > TOUCHING:
            continue
        if is_impact(model, work, contact, resting):
            continue
        before = before_knot(model, work, contact)
        slip0 = before[0] - contact.drift[0]
        slip1 = before[1] - contact.drift[1]
        if sqrt(slip0 * slip0 + slip1 * slip1) > SLOW * contact.friction * speed:
            slide_on(contact, before)
        elif contact.grain_of == 0 or min(contact.share[0], contact.share[1]) > 0.0:
            if contact.a != a:  # contacts of a body stand together
                a = contact.a
                xa, Ra, A = foresee(model, work, a, dt)
            if contact.b != b:
                b = contact.b
                xb, Rb, B = foresee(model, work, b, dt)
            slide_in_middle(scene, contact, xa, Ra, A, xb, Rb, B)


@kernel
def mend_slides(scene, all):
    """Look just after the knot at what was thought to slide on and turned back or stopped instead, or at ``all``. Returns how many changed."""
    count = 0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        stops = all and contact.look != AFTER_KNOT
        if contact.look == MEAN and contact.awake != 0:
            slip0 = 2.0 * contact.past[0] - contact.drift[0]
            slip1 = 2.0 * contact.past[1] - contact.drift[1]
            after0 = 2.0 * contact.eta[0] - slip0
            after1 = 2.0 * contact.eta[1] - slip1
            stops = stops or slip0 * after0 + slip1 * after1 <= 0.0
        if stops:
            slide_after_knot(contact)
            count += 1
    return count
