"""Bars of the features of pairs of shapes: by the shapes they belong to, and by the poses at which the narrow phase finds them.

Features are points of their shapes, radii, and half-spaces that touch a shape. All are fixed in their bodies but for points of a clipped face
(``contact.clipped``), which move over it as the two bodies move.
"""
from __future__ import annotations

from dalembert.contact.clipped import find_planes, plane_of, rim_plane
from dalembert.contact.records import ELLIPSOID_SUPPORT, PLANE, SMOOTH
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.formulations.maximal.pull_shapes import pull_own_point, pull_top
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load9, mat_t_vec, mat_vec, scale3, sub3


@kernel
def fold_pairs(scene, touch):
    """Give the bars of features of pairs, once those of a step are known, to shapes and poses: the next step has others.

    Where impulses are not unique, those of single contacts are far larger than their sum: a pair's are added up before they join others.
    """
    pairs, geometries = scene.shapes.pairs, scene.shapes.geometries
    for k in range(pairs.shape[0]):
        pair = pairs[k]
        clear_shape(touch.pair[0])
        clear_shape(touch.pair[1])
        for s in range(pair.first, pair.first + pair.slots):
            contact, own = scene.contacts[s], touch.contacts[s]
            if contact.awake == 0 or contact.kind == SMOOTH:
                continue
            straight = geometries[pair.i].body == contact.a
            first, second = (pair.i, pair.j) if straight else (pair.j, pair.i)
            of_a, of_b = (touch.pair[0], touch.pair[1]) if straight else (touch.pair[1], touch.pair[0])
            fold_feature(contact, own, scene.shapes, touch, geometries[first], geometries[second], of_a, of_b)
            own.radius = own.radius_b = own.offset = 0.0
            for c in range(3):
                own.point[c] = own.point_b[c] = own.axis[c] = own.axis_b[c] = own.semi[c] = own.turn[c] = 0.0
        add_shape(touch.geometries[pair.i], touch.pair[0])
        add_shape(touch.geometries[pair.j], touch.pair[1])


@inline
def clear_shape(bar):
    """Bars of a shape: nothing."""
    bar.radius = bar.half = 0.0
    for c in range(3):
        bar.semi[c] = bar.position[c] = 0.0


@inline
def add_shape(bar, more):
    """Add the bars of a shape to others."""
    bar.radius += more.radius
    bar.half += more.half
    for c in range(3):
        bar.semi[c] += more.semi[c]
        bar.position[c] += more.position[c]


@kernel
def fold_feature(contact, own, shapes, touch, ga, gb, of_a, of_b):
    """The bars of one feature, to its shapes."""
    if find_planes(contact, ga, gb, shapes, touch.found_at[contact.a], touch.found_at[contact.b], touch.codes):
        pull_clipped(contact, own, shapes, touch, ga, gb, of_a, of_b)
    else:
        pull_own_point(ga, of_a, load3(contact.point), load3(own.point))
    if contact.radius > 0.0:  # points on the rim of a cylinder have none
        of_a.radius += own.radius
    if contact.kind == PLANE:
        if contact.support == ELLIPSOID_SUPPORT:
            add_to3(of_a.semi, 1.0, load3(own.semi))
        pull_top(gb, shapes.corners, of_b, load3(contact.normal), own.offset)
    else:
        pull_own_point(gb, of_b, load3(contact.point_b), load3(own.point_b))
        of_b.radius += own.radius_b


@inline
def pull_clipped(contact, own, shapes, touch, ga, gb, of_a, of_b):
    """A point of a side of a that lies over a face of b, where the planes in ``touch.codes`` meet."""
    codes, A, B = touch.codes, touch.found_at[contact.a], touch.found_at[contact.b]
    bar_a, bar_b = touch.found_bar[contact.a], touch.found_bar[contact.b]
    n0, _ = plane_of(shapes, codes[0], codes[3], A, B)
    n1, _ = plane_of(shapes, codes[1], codes[3], A, B)
    n2, _ = plane_of(shapes, codes[2], codes[3], A, B)
    p, p_bar = load3(contact.point), load3(own.point)
    volume = dot3(n0, cross3(n1, n2))
    P = sub3(add3(load3(A.x), mat_vec(load9(A.R), p)), load3(B.x))
    # what is along the side's own normal is its offset's alone, to the last digit
    out = dot3(p_bar, n0)
    p_bar = sub3(p_bar, scale3(out, n0))
    for k in range(3):
        n, across = (n0, cross3(n1, n2)) if k == 0 else (n1, cross3(n2, n0)) if k == 1 else (n2, cross3(n0, n1))
        weight = dot3(p_bar, across) / volume + (out if k == 0 else 0.0)  # bar of the plane's offset
        if codes[k] >= 0:
            pull_top(ga, shapes.corners, of_a, n, weight)
            continue
        m, _ = rim_plane(shapes, codes[3], -1 - codes[k])
        world = mat_vec(load9(B.R), m)
        corner = load3(shapes.corners[shapes.loops[shapes.starts[codes[3]] - 1 - codes[k]]])
        pull_own_point(gb, of_b, corner, scale3(weight, m))
        add_to3(bar_a.x, -weight, world)
        add_to3(bar_a.phi, -weight, cross3(p, n))
        add_to3(bar_b.x, weight, world)
        add_to3(bar_b.phi, weight, cross3(mat_t_vec(load9(B.R), P), m))
