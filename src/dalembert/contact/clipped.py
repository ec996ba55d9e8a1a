"""Points of a polyhedron's side that lie over a face of another one: where three planes meet.

One is the side itself. The other two are sides of the same shape, or stand on rims of the face: with these, the point moves over its body as the two bodies
move, or as shapes change in size. All that is a function of poses and planes alone, so that it has derivatives; which planes meet is read off the point.
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.records import PLANE
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load9, mat_t_vec, mat_vec, scale3, store3, sub3

#: part of the shapes' sizes within which a point lies in a plane
IN_PLANE = 1e-9
#: volume of three unit normals below which they have no point in common
FLAT = 1e-6


@inline
def rim_plane(shapes, face, number):
    """(normal, offset) of the plane that stands on a rim of a face, inwards, in the frame of its body."""
    start = shapes.starts[face]
    count = shapes.starts[face + 1] - start
    c0 = load3(shapes.corners[shapes.loops[start + number]])
    c1 = load3(shapes.corners[shapes.loops[start + (number + 1) % count]])
    m = cross3((shapes.planes[face, 0], shapes.planes[face, 1], shapes.planes[face, 2]), sub3(c1, c0))
    m = scale3(1.0 / sqrt(dot3(m, m)), m)
    return m, dot3(m, c0)


@inline
def own_plane(planes, f):
    """(normal, offset) of a side."""
    return (planes[f, 0], planes[f, 1], planes[f, 2]), planes[f, 3]


@inline
def plane_of(shapes, code, face, A, B):
    """(normal, offset) of a plane in the frame of body A. ``code``: number of a side of A's shape, or -1 less that of a rim of a face of B's."""
    if code >= 0:
        return own_plane(shapes.planes, code)
    m, offset = rim_plane(shapes, face, -1 - code)
    world = mat_vec(load9(B.R), m)
    return mat_t_vec(load9(A.R), world), offset - dot3(world, sub3(load3(A.x), load3(B.x)))


@kernel
def find_planes(contact, ga, gb, shapes, A, B, codes):
    """Which planes meet in a contact's point, into ``codes``: its side, two more (see ``plane_of``), the face that it lies over.

    Returns False where the point is one of the shape's own, and does not move.
    """
    planes = shapes.planes
    f = load3(contact.axis)
    if contact.kind != PLANE or contact.added != 0 or dot3(f, f) == 0.0:
        return False
    facing, face = -1, -1
    for k in range(ga.first_face, ga.first_face + ga.faces):
        if planes[k, 0] == f[0] and planes[k, 1] == f[1] and planes[k, 2] == f[2]:
            facing = k
    for k in range(gb.first_face, gb.first_face + gb.faces):
        same = planes[k, 0] == contact.normal[0] and planes[k, 1] == contact.normal[1] and planes[k, 2] == contact.normal[2]
        if same and planes[k, 3] == contact.offset:
            face = k
    if facing < 0 or face < 0:
        return False
    level = IN_PLANE * (ga.outer + gb.outer)
    p = load3(contact.point)
    codes[0] = facing
    codes[3] = face
    found = 0
    first = f
    sides = ga.faces
    rims = shapes.starts[face + 1] - shapes.starts[face]
    for k in range(sides + rims):
        code = ga.first_face + k if k < sides else -1 - (k - sides)
        if code == facing:
            continue
        n, offset = plane_of(shapes, code, face, A, B)
        if abs(dot3(n, p) - offset) > level:
            continue
        across = cross3(f, n)
        if found == 0 and dot3(across, across) > FLAT * FLAT:
            codes[1] = code
            first = n
            found = 1
        elif found == 1 and abs(dot3(cross3(f, first), n)) > FLAT:
            codes[2] = code
            return codes[1] < 0 or code < 0
    return False


@kernel
def clipped_point(shapes, codes, A, B):
    """Where three planes meet, in the frame of body A."""
    n0, o0 = plane_of(shapes, codes[0], codes[3], A, B)
    n1, o1 = plane_of(shapes, codes[1], codes[3], A, B)
    n2, o2 = plane_of(shapes, codes[2], codes[3], A, B)
    c0, c1, c2 = cross3(n1, n2), cross3(n2, n0), cross3(n0, n1)
    p = add3(add3(scale3(o0, c0), scale3(o1, c1)), scale3(o2, c2))
    return scale3(1.0 / dot3(n0, c0), p)


@kernel
def find_clipped(scene, bodies, codes):
    """Which points of contacts that are awake move over their bodies, at the pose at which they were found: their planes into ``codes`` (contacts, 4), -1 first for the rest."""
    pairs, geometries = scene.shapes.pairs, scene.shapes.geometries
    codes[:, 0] = -1
    for k in range(pairs.shape[0]):
        for s in range(pairs[k].first, pairs[k].first + pairs[k].slots):
            contact = scene.contacts[s]
            if contact.awake == 0:
                continue
            straight = geometries[pairs[k].i].body == contact.a
            ga, gb = geometries[pairs[k].i if straight else pairs[k].j], geometries[pairs[k].j if straight else pairs[k].i]
            if not find_planes(contact, ga, gb, scene.shapes, bodies[contact.a], bodies[contact.b], codes[s]):
                codes[s, 0] = -1


@kernel
def move_clipped(scene, bodies, codes):
    """Points that move over their bodies (``find_clipped``), at another pose or with other shapes."""
    for s in range(codes.shape[0]):
        if codes[s, 0] >= 0:
            contact = scene.contacts[s]
            store3(contact.point, clipped_point(scene.shapes, codes[s], bodies[contact.a], bodies[contact.b]))
