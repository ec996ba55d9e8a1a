"""The watch: nothing overlaps at the end of a step, and nothing passes through anything within it.

Pairs are judged by their shapes, not by the features that stand for them. The way of a body within a step is taken as straight and its turn
as even. A pair that overlaps at the end by more than ``OVERLAP``, or on the way by more than ``DIP`` of its thickness, gets the features of the pose just before
(by conservative advancement), or where it has some already the half-space that touches one shape against the lowest feature of the
other: as long as two shapes overlap there is such a feature that lies below it. The step is then solved again.
"""
from __future__ import annotations

from math import pi, sqrt

from dalembert.contact.distance import best_normal, core_distance, local_distance, signed_distance
from dalembert.contact.events import OVERLAP, clear_impulse, lies_flat
from dalembert.contact.geometry import at_end, at_knot, lowest
from dalembert.contact.narrow import put_features
from dalembert.contact.placing import lowest_support, put_plane, put_smooth
from dalembert.contact.polyhedra import put_crossed
from dalembert.contact.records import BALL_SUPPORT, CYLINDER, POLYHEDRON, SMOOTH
from dalembert.contact.rounded import hold, is_smooth
from dalembert.contact.support import separation, top
from dalembert.kernels import inline, kernel
from dalembert.spatial import so3
from dalembert.spatial.tuples import (
    add3,
    dot3,
    load3,
    load9,
    mat_mul,
    mat_t_mul,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    store3,
    store9,
    sub3,
)

#: part of the thinner shape's half thickness by which two may overlap on the way: the straight way of what rolls around something is a chord
DIP = 1e-2
#: poses on the way at which two that touch are looked at, at least: more if they move further than their thickness; and at most
LOOKS, MOST_LOOKS = 8, 1000
#: most steps of conservative advancement
ADVANCES = 40
#: how often features may be added to a pair in one step
ADDITIONS = 6
#: cosine of an angle below which a direction is that of a face
ALIGNED = 1.0 - 1e-8

#: gap (m) above which something is open at the knot
OPEN = 1e-5
#: what becomes of a pair in a step
FREE, HIT = 0, 1


@inline
def turn_of(body):
    """Rotation vector (body frame) of a body's turn within the step."""
    return so3.log_matrix(mat_t_mul(load9(body.R), load9(body.Rn)))


@inline
def most_turn(body):
    """No less than the angle (rad) of a body's turn within the step, at little cost."""
    chord = 0.0
    for k in range(9):
        e = body.Rn[k] - body.R[k]
        chord += e * e
    return 0.5 * pi * sqrt(0.5 * chord)


@inline
def turned(R, phi, t):
    """Rotation after the part t of a turn."""
    return mat_mul(R, so3.exp_matrix(scale3(t, phi)))


@inline
def after(body, t):
    """Position after the part t of the step."""
    return add3(scale3(1.0 - t, load3(body.x)), scale3(t, load3(body.xn)))


@kernel
def end_separation(pair, scene, bodies):
    """(separation of a pair at the end of the step, its direction): by the directions of its contacts, or else by its distance."""
    shapes = scene.shapes
    ga = shapes.geometries[pair.i]
    gb = shapes.geometries[pair.j]
    A = bodies[ga.body]
    B = bodies[gb.body]
    RA = load9(A.Rn)
    RB = load9(B.Rn)
    d = sub3(load3(A.xn), load3(B.xn))
    best = -1e300
    n = load3(pair.n)
    for s in range(pair.first, pair.first + pair.slots):
        contact = scene.contacts[s]
        if contact.used != 0:
            at_end(contact, scene, bodies)
            m = load3(contact.n) if contact.a == ga.body else neg3(load3(contact.n))
            value = separation(ga, gb, shapes.corners, RA, RB, d, m)
            if value > best:
                best = value
                n = m
            if best >= -OVERLAP:
                return best, n
    best, n = local_distance(ga, gb, shapes.corners, RA, RB, d, n, shapes.work[1])
    if best >= -OVERLAP:
        return best, n
    return signed_distance(ga, gb, shapes.corners, shapes.planes, shapes.edges, RA, RB, d, n, shapes.work[1])


@kernel
def follow(pair, scene, bodies, phi_a, phi_b):
    """(FREE or HIT, part of the step at which the pair is last apart, direction between the two there) of a pair that may meet in this step."""
    shapes = scene.shapes
    corners, points = shapes.corners, shapes.work[1]
    ga = shapes.geometries[pair.i]
    gb = shapes.geometries[pair.j]
    A = bodies[ga.body]
    B = bodies[gb.body]
    R0a = load9(A.R)
    R0b = load9(B.R)
    d0 = sub3(load3(A.x), load3(B.x))
    d1 = sub3(load3(A.xn), load3(B.xn))
    moved = sub3(d1, d0)
    turn_a = ga.swing * sqrt(dot3(phi_a, phi_a))
    turn_b = gb.swing * sqrt(dot3(phi_b, phi_b))
    way = sqrt(dot3(moved, moved)) + turn_a + turn_b
    dip = DIP * min(ga.inner, gb.inner)
    end, n1 = end_separation(pair, scene, bodies)
    fine = end >= -OVERLAP
    if fine and way < 2.0 * dip:
        return FREE, 1.0, n1
    # One direction that separates both poses separates all between them, but for what turns bulge by.
    if fine:
        bulge = 0.125 * (turn_a * sqrt(dot3(phi_a, phi_a)) + turn_b * sqrt(dot3(phi_b, phi_b)))
        for k in range(2):
            n = n1 if k == 0 else load3(pair.n)
            start = separation(ga, gb, corners, R0a, R0b, d0, n)
            if start - bulge >= -dip and (k == 0 or separation(ga, gb, corners, load9(A.Rn), load9(B.Rn), d1, n) - bulge >= -dip):
                return FREE, 1.0, n1
    t = 0.0
    n = load3(pair.n)
    gap = pair.gap
    both = ga.skin + gb.skin
    for _ in range(ADVANCES):
        closing = max(-dot3(n, moved), 0.0) + turn_a + turn_b
        if gap < dip or closing * (1.0 - t) <= gap:
            break
        t += gap / closing
        low, _, n, _ = core_distance(
            ga, gb, corners, turned(R0a, phi_a, t), turned(R0b, phi_b, t), add3(d0, scale3(t, moved)), n, both + 0.5 * dip, points,
        )
        gap = low - both
    if gap >= dip:
        closing = max(-dot3(n, moved), 0.0) + turn_a + turn_b
        if closing * (1.0 - t) <= gap:
            return FREE, 1.0, n
    # From here on they are as good as touching: look at poses on the rest of the way.
    first = t
    last = t
    _, n = local_distance(ga, gb, corners, turned(R0a, phi_a, t), turned(R0b, phi_b, t), add3(d0, scale3(t, moved)), n, points)
    looks = max(LOOKS, int((1.0 - first) * way / (0.5 * (ga.inner + gb.inner))) + 1)
    if looks > MOST_LOOKS:
        return HIT, last, n
    for k in range(1, looks):
        t = first + (1.0 - first) * k / looks
        gap, m = local_distance(ga, gb, corners, turned(R0a, phi_a, t), turned(R0b, phi_b, t), add3(d0, scale3(t, moved)), n, points)
        if gap < -dip:
            return HIT, last, n
        if gap >= -OVERLAP:
            last = t
            n = m
    return (FREE, 1.0, n1) if fine else (HIT, last, n)


@inline
def waken(contact, scene, bodies):
    """A contact that was added takes part in the step; returns its gap at the end."""
    contact.added = 1
    contact.awake = 1
    contact.bounced = 0
    contact.bound = 0.0
    contact.granted = 1.0
    contact.gamma0 = 0.0
    contact.beta0[0] = 0.0
    contact.beta0[1] = 0.0
    clear_impulse(contact)
    at_knot(contact, scene, bodies)
    at_end(contact, scene, bodies)
    return contact.gap


@inline
def leave_flat(contact, bodies, others):
    """A circle that lies flat sleeps, if there are others: points of its rim stand for it."""
    if others and lies_flat(contact, bodies):
        contact.used = 2
        contact.awake = 0


@kernel
def put_at(pair, scene, bodies, phi_a, phi_b, t, n):
    """Give a pair the features of a pose within the step, about along ``n``; returns the least gap of them at the end."""
    ga = scene.shapes.geometries[pair.i]
    gb = scene.shapes.geometries[pair.j]
    A = bodies[ga.body]
    B = bodies[gb.body]
    xa, Ra, xb, Rb = load3(A.x), load9(A.R), load3(B.x), load9(B.R)
    at_knot_n = load3(pair.n)
    store3(pair.n, n)
    store3(A.x, after(A, t))
    store9(A.R, turned(Ra, phi_a, t))
    store3(B.x, after(B, t))
    store9(B.R, turned(Rb, phi_b, t))
    put_features(bodies, scene.contacts, pair, scene.shapes)
    store3(A.x, xa)
    store9(A.R, Ra)
    store3(B.x, xb)
    store9(B.R, Rb)
    store3(pair.n, at_knot_n)
    least = 1e300
    used = 0
    for s in range(pair.first, pair.first + pair.slots):
        contact = scene.contacts[s]
        contact.awake = 0
        if contact.used != 0:
            used += 1
            least = min(least, waken(contact, scene, bodies))
    for s in range(pair.first, pair.first + pair.slots):
        if scene.contacts[s].used != 0:
            leave_flat(scene.contacts[s], bodies, used > 1)
    return least


@kernel
def put_between(pair, scene, bodies, phi_a, phi_b, t, n):
    """Add the half-space that touches one shape along ``n``, fixed in its body at a pose within the step, against the lowest feature of the other.

    Lowest at the end. Of polyhedra that meet there with two edges, these, if they overlap at the end. Returns False when there is no room for it.
    """
    shapes = scene.shapes
    slot = -1
    for s in range(pair.first, pair.first + pair.slots):
        if scene.contacts[s].used == 0 or scene.contacts[s].awake == 0:
            slot = s
            break
    if slot < 0:
        return False
    ga = shapes.geometries[pair.i]
    gb = shapes.geometries[pair.j]
    A = bodies[ga.body]
    B = bodies[gb.body]
    RA = turned(load9(A.R), phi_a, t)
    RB = turned(load9(B.R), phi_b, t)
    d = sub3(after(A, t), after(B, t))
    crossed = ga.form == POLYHEDRON and gb.form == POLYHEDRON and put_crossed(
        scene.contacts[slot], ga, gb, shapes.corners, shapes.planes, shapes.edges, RA, RB, d, n, shapes.work[1],
    )
    if crossed and waken(scene.contacts[slot], scene, bodies) < -OVERLAP:
        return True
    # Where the direction is that of a face it is fixed in the face's body.
    _, on_a = best_normal(ga, gb, shapes.corners, shapes.planes, RA, RB, d, True, True)
    _, on_b = best_normal(ga, gb, shapes.corners, shapes.planes, RA, RB, d, False, True)
    if dot3(on_b, n) < ALIGNED and dot3(on_a, n) > ALIGNED:
        normal = mat_t_vec(RA, neg3(on_a))
        seen = mat_t_vec(load9(B.Rn), mat_vec(load9(A.Rn), normal))
        number = lowest_support(gb, shapes.corners, seen)
        put_plane(scene.contacts[slot], gb.body, ga.body, normal, top(ga, shapes.corners, normal), gb, shapes.corners, number)
    elif dot3(on_b, n) < ALIGNED and gb.form >= CYLINDER:
        put_smooth(scene.contacts[slot], ga, gb, RB, n)
    else:
        normal = mat_t_vec(RB, on_b if dot3(on_b, n) > ALIGNED else n)
        seen = mat_t_vec(load9(A.Rn), mat_vec(load9(B.Rn), normal))
        number = lowest_support(ga, shapes.corners, seen)
        put_plane(scene.contacts[slot], ga.body, gb.body, normal, top(gb, shapes.corners, normal), ga, shapes.corners, number)
    waken(scene.contacts[slot], scene, bodies)
    return True


@kernel
def was_apart(scene):
    """Whether something that was added in this step was open at the knot."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0 and contact.added != 0 and contact.gap0 > OPEN:
            return True
    return False


@kernel
def pin(contact, scene, bodies):
    """Of a circle that lies flat at the knot, hold the point alone that is lowest at the end: if it lies flat there too, the lowest point jumps about on it."""
    if contact.awake != 0 and lies_flat(contact, bodies):
        a = bodies[contact.a]
        low, _ = lowest(contact, load9(a.Rn), mat_vec(load9(bodies[contact.b].Rn), load3(contact.normal)))
        store3(contact.point, mat_t_vec(load9(a.Rn), low))
        contact.support = BALL_SUPPORT
        contact.radius = 0.0
        waken(contact, scene, bodies)


@kernel
def straighten(bodies, scene, tries):
    """Give pairs whose distance is their gap, though they may come to touch in more than one point, a half-space instead; pin circles that lie flat.

    For steps without a solution after ``tries`` others: there the direction of the distance jumps. At first one feature is held against the
    half-space (further ones come with the watch), then all that are over it.
    """
    shapes = scene.shapes
    for k in range(shapes.pairs.shape[0]):
        pair = shapes.pairs[k]
        ga = shapes.geometries[pair.i]
        gb = shapes.geometries[pair.j]
        for s in range(pair.first, pair.first + pair.slots):
            pin(scene.contacts[s], scene, bodies)
        if gb.form < CYLINDER or is_smooth(ga, gb):
            continue
        first = pair.first
        found = -1
        for s in range(first, first + pair.slots):
            contact = scene.contacts[s]
            if contact.awake != 0 and (contact.kind == SMOOTH or (tries > 1 and contact.added != 0)):
                found = s
        if found < 0:
            continue
        n = load3(scene.contacts[found].n0) if scene.contacts[found].a == ga.body else neg3(load3(scene.contacts[found].n0))
        used = 0
        if tries > 1:
            used = hold(scene.contacts, first, pair.slots, bodies, ga, gb, n, shapes.corners, shapes.planes)
            used += hold(scene.contacts, first + used, pair.slots - used, bodies, gb, ga, neg3(n), shapes.corners, shapes.planes)
        if used == 0:
            normal = mat_t_vec(load9(bodies[gb.body].R), n)
            number = lowest_support(ga, shapes.corners, mat_t_vec(load9(bodies[ga.body].R), n))
            put_plane(scene.contacts[first], ga.body, gb.body, normal, top(gb, shapes.corners, normal), ga, shapes.corners, number)
            used = 1
        for s in range(first, first + pair.slots):
            scene.contacts[s].awake = 0
            if s < first + used:
                waken(scene.contacts[s], scene, bodies)
                leave_flat(scene.contacts[s], bodies, used > 1)
            else:
                scene.contacts[s].used = 0


@kernel
def watch(bodies, scene, guessed):
    """Look at all near pairs from the knot to the end pose; returns how many had to get features, or -1 - k when that is of no use to pair k.

    Of no use: the step has to be divided. Where the end pose is only ``guessed``, pairs that have features wait for a better one.
    """
    shapes = scene.shapes
    count = 0
    for k in range(shapes.pairs.shape[0]):
        pair = shapes.pairs[k]
        ga = shapes.geometries[pair.i]
        gb = shapes.geometries[pair.j]
        A = bodies[ga.body]
        B = bodies[gb.body]
        moved = sub3(sub3(load3(A.xn), load3(A.x)), sub3(load3(B.xn), load3(B.x)))
        straight = sqrt(dot3(moved, moved))
        if pair.gap > straight + ga.swing * most_turn(A) + gb.swing * most_turn(B):
            continue
        phi_a = turn_of(A)
        phi_b = turn_of(B)
        if pair.gap > straight + ga.swing * sqrt(dot3(phi_a, phi_a)) + gb.swing * sqrt(dot3(phi_b, phi_b)):
            continue
        used = False
        touches = False
        for s in range(pair.first, pair.first + pair.slots):
            used = used or scene.contacts[s].used != 0
            touches = touches or scene.contacts[s].awake != 0
        if used and (guessed or scene.contacts[pair.first].stiffness > 0.0):  # what is compliant may overlap
            continue
        fate, t, n = follow(pair, scene, bodies, phi_a, phi_b)
        if fate == FREE:
            continue
        if pair.added == ADDITIONS:
            return -1 - k
        pair.added += 1
        count += 1
        least = 0.0
        if pair.slots == 1 and pair.added > 1:
            t = 1.0  # a ball: its nearest feature at the end
        if guessed or not touches or pair.slots == 1:
            least = put_at(pair, scene, bodies, phi_a, phi_b, t, n)
        if pair.slots == 1 and least > -OVERLAP:  # a ball that has this feature already: it leaves an edge for a face
            least = put_at(pair, scene, bodies, phi_a, phi_b, 1.0, n)
        if least > -OVERLAP and not put_between(pair, scene, bodies, phi_a, phi_b, t, n):
            return -1 - k
    return count
