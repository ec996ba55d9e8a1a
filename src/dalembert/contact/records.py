"""Contacts and joint limits as record arrays: scratch of a step with contacts, made for a list of what is near.

A contact says where a feature of body ``a`` may touch body ``b`` (the world is a body too). Every pair of shapes comes
down to a few kinds, all of which are evaluated again at the end of the step (DESIGN section 4):

    PLANE  a support feature of a (a ball, a circle, an ellipsoid) against a half-space fixed in b
    BALLS  a ball of a against a ball of b
    LINE   a ball of a against a cylinder about a line of b
    EDGES  a line of a against a line of b
    FIELD  a ball of a against the height field of the environment
    SMOOTH a shape of a against a shape of b where they meet in one point: their distance
    TWIST  the torques of a contact that resist spinning or rolling, beside it (see ``twists``)
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.linalg.compact import Room
from dalembert.model.records import F, I, fields

PLANE, BALLS, LINE, EDGES, FIELD, SMOOTH, TWIST = range(7)
#: support features of body a: a point with a radius, a circle about an axis, an ellipsoid
BALL_SUPPORT, CIRCLE_SUPPORT, ELLIPSOID_SUPPORT = range(3)
#: the sliding velocity of a contact is that by the rows of the knot just after it, that in the middle of the step, the mean of before and after the knot
AFTER_KNOT, IN_MIDDLE, MEAN = range(3)
#: most unknowns of a body, in any formulation
MOST = 12
#: most edges of a linearised friction cone
MAX_EDGES = 16
#: a circle's support is rounded off at this tilt (rad), so that it has a gradient when it lies flat; it stays on the safe side
FLATNESS = 1e-6

CONTACT = np.dtype([
    ("kind", I),
    # what every pass over all contacts asks for stands together (``added``: found at another pose than the knot's)
    *fields(I, used=0, awake=0, bounced=0, added=0, edges=0, a=0, b=0, support=0, node=0, diagonal=0, block_na=0, block_an=0, block_nb=0, block_bn=0,
            owner=0, part=0,
            # where sliding is looked at
            look=0,
            # a point on the rim of a cylinder, which stands for it where it lies flat
            rim=0,
            # its rows were not written at this knot, from which it is far
            bare=0,
            # numbers of two shapes
            first=0, second=0,
            # 1 + the body in whose frame the direction ``grain`` of friction is, 0 where it is the same all around; of a TWIST, 1 + its contact and
            # whether it resists rolling
            grain_of=0, carrier=0, rolls=0),
    *fields(
        F, friction=0, restitution=0, weight=0,
        # part of the restitution that is granted (see ``impacts``)
        granted=0,
        # features: of a, in its frame; of b, in its frame
        point=3, radius=0, axis=3, semi=3, frame=9, normal=3, offset=0, point_b=3, radius_b=0, axis_b=3, side=0,
        # velocity of the surface of b that the motion of b does not have, and its parts along the tangents (m/s)
        belt=3, drift=2,
        # friction along the grain and across it, as parts of ``friction``; levers (m) of the torques against spinning and rolling
        grain=3, share=2, spin=0, roll=0,
        # of a compliant contact (see ``compliance``): its law (N/m, N s/m), what that makes of the slack in this step, the rate of its gap (m/s)
        stiffness=0, damping=0, soft=0, drag=0, rate=0,
        # at the knot: gap, normal, point (world); rows of the normal and the two tangents by a and by b
        gap0=0, n0=3, p0=3, Ga=(3, 6), Gb=(3, 6),
        # rows of the sliding velocity along the two tangents by a and by b, and what it has besides (m/s): those of the knot and nothing, if a
        # formulation does not say otherwise
        Sa=(2, 6), Sb=(2, 6), past=2,
        # at the end of the step: gap, normal and its gradient by a and by b
        gap=0, n=3, Ha=6, Hb=6,
        # gradients by the unknowns of a and b: of the gap over dt, of the sliding velocity
        Ka=MOST, Kb=MOST, Ta=(2, MOST), Tb=(2, MOST),
        # the iterate: slack of the gap (m/s), impulses, sliding velocity and its bound; the direction of the last solve
        bound=0, s=0, gamma=0, beta=2, eta=2, psi=0, ds=0, dgamma=0, dbeta=2, deta=2, dpsi=0,
        # linearised cone: impulse along each edge, and its direction
        edge=MAX_EDGES, dedge=MAX_EDGES,
        # impulses to start the iteration from
        gamma0=0, beta0=2,
        # roots of the inertias that the normal and the tangential impulses feel of the two bodies alone, over the weight (see ``smoothed``)
        tau=0, sigma=0,
    ),
])

LIMIT = np.dtype(
    # ``bears``: 1 + its number in GEOMETRIES for the friction of a bearing along the direction, of which the joint has
    # ``share`` records in a row that share one bound; ``pin``: the canonical axis of its pin or the normal of its plate
    fields(I, joint=0, direction=0, a=0, b=0, node=0, diagonal=0, block_na=0, block_an=0, block_nb=0, block_bn=0,
            awake=2, bounced=2, bears=0, share=0, pin=0)
    + fields(
        # of a bearing: coefficient, radius (m), 1/length (1/m), radius of the collar (m)
        F, end=2, restitution=0, friction=0, weight=0, bearing=4, granted=0,
        # row of the direction at the knot and at the end, coordinate there; gradients by the unknowns, as of contacts
        c0=0, Ga=6, Gb=6, c=0, Ha=6, Hb=6, Ka=MOST, Kb=MOST, Ta=MOST, Tb=MOST,
        # ``cap``: bound of friction; ``full``: that of a bearing if it moved along this direction alone; ``unit``: inertia by which the product
        # of friction is measured
        bound=2, s=2, gamma=2, beta=0, eta=0, psi=0, ds=2, dgamma=2, dbeta=0, deta=0, dpsi=0, cap=0, full=0, unit=0,
        gamma0=2, beta0=0,
        # of a bearing (see ``shared_bound``): what rates answer to friction along its directions, the friction and rate that were asked for and those
        # before, its bound, and scratch
        answer=6, asked=2, tried=2, reach=0, factor=6, goal=2,
    )
)

#: one line of the log: a contact of a step, at its end
ENTRY = np.dtype(
    [("knot", "i4"), ("owner", "i4"), ("part", "i4"), ("a", "i4"), ("b", "i4"), ("gap", "f8"), ("normal_force", "f8"),
     ("friction_force", "f8", 3), ("point", "f8", 3), ("normal", "f8", 3)]
)


#: forms of shapes: a ball or a ball swept along a segment; a polyhedron; a cylinder; an ellipsoid; a cone
ROUND, POLYHEDRON, CYLINDER, ELLIPSOID, CONE = range(5)
#: where the base and the tip of a cone lie along its axis, in halves of its length from its centre of mass
BASE, TIP = -0.5, 1.5

GEOMETRY = np.dtype(
    fields(I, body=0, form=0, first_corner=0, corners=0, first_face=0, faces=0, first_edge=0, edges=0)
    # segment (``axis``, ``half``) with a ball about it or a disc across it (``radius``), or half a cone's length and its base; ellipsoid or box (``semi``, ``frame``); ``skin``: radius of the ball about
    # every point of the core; balls about ``position`` that hold the shape and that it holds; how far from the body's centre of mass its core reaches
    + fields(F, position=3, axis=3, half=0, radius=0, skin=0, semi=3, frame=9, outer=0, inner=0, swing=0)
)
#: ``margin``: distance of the two balls that counts as near; ``close``: distance from which features are found at the knot already;
#: ``gap`` and ``n``: a lower bound of the distance at the knot, and its direction; ``added``: how often features were added in this step
PAIR = np.dtype(fields(I, i=0, j=0, first=0, slots=0, added=0) + fields(F, margin=0, close=0, gap=0, n=3))


#: what a state holds besides of a body: the pose at which the list of what is near was made and the room there (m); what
#: contacts exert after the last step
LASTING_BODY = fields(F, place=8, wrench=6)
#: and of a joint: what dry friction and limits exert along the directions after the last step, and how much its bearing would at most
LASTING_JOINT = fields(F, friction=6, limit=6, hold=6)


class ContactOptions(NamedTuple):
    """What a step with contacts takes besides model, state, inputs and scene. ``sizes`` (n,): radii of the bodies (m)."""

    compliance: float
    tolerance: float
    max_iterations: int
    resting: float
    sizes: np.ndarray
    limited: int  # whether restitution is limited by the work of impacts (1), and steps are refused in which contacts put energy in all the same (2)
    events: int  # how impact times are resolved (see ``flights``)


class Shapes(NamedTuple):
    """What the narrow phase takes: pairs, geometries, corners, planes and loops of faces, edges, room for a polygon."""

    pairs: np.ndarray
    geometries: np.ndarray
    corners: np.ndarray  # (., 3) body frame
    planes: np.ndarray  # (., 4) body frame
    loops: np.ndarray  # corners of all faces, counter-clockwise
    starts: np.ndarray  # where each face's loop begins, and the end
    edges: np.ndarray  # (., 2) corners
    work: np.ndarray  # (2, ROOM, 3)


class Scene(NamedTuple):
    """What may touch in a step: contacts, limits, terrain heights (grid) and its frame, shapes of pairs, scratch."""

    contacts: np.ndarray
    gathered: np.ndarray  # room for those that are awake
    limits: np.ndarray
    heights: np.ndarray  # (nx, ny), m
    terrain: np.ndarray  # (x0, y0, dx, dy)
    shapes: Shapes
    scratch: np.ndarray  # (6,)
    counts: np.ndarray  # (n,) contacts of each body with the environment that are awake
    islands: np.ndarray  # (9, n) works of impacts (see ``impacts``)
    room: Room  # for the schedule of what is awake


class Tape(NamedTuple):
    """What a run with contacts records besides poses, per knot (first axis).

    Forces are means over the kick at the knot, which the step that follows determines. At the last knot, and in implicit
    runs at all knots, they are what lasts of the step before: all but impacts.
    """

    wrench: np.ndarray  # (N, n, 6) on the bodies by contacts: force (world), torque (body)
    friction: np.ndarray  # (N, joints, 6) along joint directions by dry friction
    limit: np.ndarray  # (N, joints, 6) along joint directions by limits
    after: np.ndarray  # (N, n, 6) momenta of the step that follows, less the half kick of what lasts: world, body
    spin_after: np.ndarray  # (N, joints, 6) momenta of reflected inertias in the step that follows
    steps: np.ndarray  # (N, 1) how many steps of the same length lie behind, since a start or an impact
    lasting: np.ndarray  # (N, n, 6) on the bodies by contacts, what lasts of the step before, as controllers see it
    lasting_along: np.ndarray  # (N, joints, 6) the same along joint directions by dry friction and limits


def new_tape(knots: int, bodies: int, joints: int) -> Tape:
    """Room for a run."""
    return Tape(
        np.zeros((knots, bodies, 6)), np.zeros((knots, joints, 6)), np.zeros((knots, joints, 6)), np.zeros((knots, bodies, 6)),
        np.zeros((knots, joints, 6)), np.zeros((knots, 1)), np.zeros((knots, bodies, 6)), np.zeros((knots, joints, 6)),
    )
