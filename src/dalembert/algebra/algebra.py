"""The joint-space algebra of a mechanism: one object, vectors in, vectors and matrices out."""
from __future__ import annotations

from dalembert.algebra.loops import Loops


class Algebra(Loops):
    """Joint-space algebra of a ``Mechanism``, as it is now, with names and an order of arguments that Pinocchio users know.

    Vectors have one number per entry of ``names``. ``q``: the coordinates that ``Trajectory`` reports; a free rotation is a rotation
    vector. ``v``: their rates; that of a free rotation is the angular velocity in the parent's axes. ``a``: the derivative of ``v``.
    ``tau``: what does work on ``v``. Derivatives by ``q`` are along the tangent, the space of ``v``: of f(integrate(q, v, t)) by t.

    An algebra keeps scratch of its own: threads need one each.
    """
