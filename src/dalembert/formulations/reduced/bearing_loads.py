"""What bearings carry in joint coordinates: the forces of the nodes, less what acts along the joint's own free directions."""
from __future__ import annotations

from dalembert.contact.bearing import bear_load
from dalembert.formulations.reduced.ties import CLOSED
from dalembert.kernels import inline, kernel
from dalembert.model.records import BALL, SECOND, SLIDE
from dalembert.spatial.tuples import (
    add3,
    column,
    cross3,
    dot3,
    load3,
    load9,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    sub3,
)
from dalembert.spatial.twists import load6


@inline
def carried_by_node(stage, joint, node, at):
    """Force and moment on the joint's child at its joint point, in the child's frame, that a joint of the tree carries in all."""
    bodies = stage.work.bodies
    M, F = load6(at.F)
    if node.backwards:  # what acts on the parent, about its centre of mass and in its frame
        parent, child = bodies[joint.parent], bodies[joint.child]
        point = add3(load3(child.x), mat_vec(load9(child.R), load3(joint.point_child)))
        R = load9(parent.R)
        F, M = neg3(mat_vec(R, F)), neg3(mat_vec(R, M))
        M = sub3(M, cross3(sub3(point, load3(parent.x)), F))
        Rc = load9(child.R)
        return mat_t_vec(Rc, F), mat_t_vec(Rc, M)
    return F, sub3(M, cross3(load3(joint.point_child), F))


@inline
def carried_by_rows(stage, joint, index):
    """The same of a joint that closes a loop: what its rows carry."""
    F = (0.0, 0.0, 0.0)
    M = (0.0, 0.0, 0.0)
    rows, ends = stage.ties.rows, stage.ties.ends
    for i in range(rows.shape[0]):
        row = rows[i]
        if row.kind == CLOSED and row.index == index:
            for e in range(row.first, row.first + row.ends):
                if ends[e].slot == 1:
                    torque, force = load6(ends[e].G)
                    F = add3(F, scale3(row.mu, force))
                    M = add3(M, scale3(row.mu, torque))
    return F, sub3(M, cross3(load3(joint.point_child), F))


@inline
def without_free(stage, joint, F, M):
    """A wrench without what acts along free slides and about free turns: that is the laws', not the surfaces'."""
    R_parent, R_child = load9(stage.work.bodies[joint.parent].R), load9(stage.work.bodies[joint.child].R)
    for i in range(joint.free):
        kind = joint.free_kind[i]
        if kind == BALL:
            M = (0.0, 0.0, 0.0)
            continue
        if kind == SECOND:
            a = column(load9(joint.frame_child), joint.free_axis[i])
        else:
            a = mat_t_vec(R_child, mat_vec(R_parent, column(load9(joint.frame_parent), joint.free_axis[i])))
        if kind == SLIDE:
            F = sub3(F, scale3(dot3(F, a), a))
        else:
            M = sub3(M, scale3(dot3(M, a), a))
    return F, M


@kernel
def bear_in_tree(stage, limits, attempt, tolerance):
    """``contact.bearing.bear`` for a stage in joint coordinates that was just solved; impulses are forces times its ``c``."""
    wrong = 0
    i = 0
    while i < limits.shape[0]:
        if limits[i].bears != 0:
            index = limits[i].joint
            joint = stage.model.joints[index]
            node = last_node(stage.tree, index)
            if node >= 0:
                F, M = carried_by_node(stage, joint, stage.tree[node], stage.own.nodes[node])
                F, M = without_free(stage, joint, F, M)
            else:
                F, M = carried_by_rows(stage, joint, index)
            wrong += bear_load(stage.work, joint, limits, i, scale3(stage.c, F), scale3(stage.c, M), attempt, tolerance)
        i += max(limits[i].share, 1)
    return wrong


@inline
def last_node(tree, joint):
    """The node that ends a joint's factors, -1 for a joint outside of the tree."""
    found = -1
    for i in range(tree.shape[0]):
        if tree[i].joint == joint and tree[i].body >= 0:
            found = i
    return found
