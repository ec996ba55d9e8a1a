"""Twists and wrenches of body frames in kernels: pairs of 3-tuples (angular, linear) and (torque, force).

A frame stands at (R, p) in its parent's: A takes a twist of the parent to the child, A^T a wrench of the child to the parent,

    A = [[R^T, 0], [-R^T [p], R^T]],     ad(V) X = (w x a, v x a + w x b) for V = (w, v), X = (a, b).
"""
from __future__ import annotations

from dalembert.kernels import inline
from dalembert.spatial.tuples import add3, cross3, dot3, mat_t_vec, mat_vec, scale3, sub3


@inline
def load6(a):
    """A twist or wrench from the first six entries of an array."""
    return (a[0], a[1], a[2]), (a[3], a[4], a[5])


@inline
def store6(a, X):
    """a[:6] = X."""
    a[0], a[1], a[2] = X[0]
    a[3], a[4], a[5] = X[1]


@inline
def add6(X, Y):
    """X + Y."""
    return add3(X[0], Y[0]), add3(X[1], Y[1])


@inline
def sub6(X, Y):
    """X - Y."""
    return sub3(X[0], Y[0]), sub3(X[1], Y[1])


@inline
def scale6(s, X):
    """s X."""
    return scale3(s, X[0]), scale3(s, X[1])


@inline
def dot6(X, W):
    """X . W."""
    return dot3(X[0], W[0]) + dot3(X[1], W[1])


@inline
def to_child(R, p, V):
    """A V."""
    return mat_t_vec(R, V[0]), mat_t_vec(R, add3(V[1], cross3(V[0], p)))


@inline
def to_parent(R, p, W):
    """A^T W."""
    force = mat_vec(R, W[1])
    return add3(mat_vec(R, W[0]), cross3(p, force)), force


@inline
def bracket(V, X):
    """ad(V) X."""
    return cross3(V[0], X[0]), add3(cross3(V[1], X[0]), cross3(V[0], X[1]))


@inline
def bracket_t(V, W):
    """ad(V)^T W."""
    return add3(cross3(W[0], V[0]), cross3(W[1], V[1])), cross3(W[1], V[0])
