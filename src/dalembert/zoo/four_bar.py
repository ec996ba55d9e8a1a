"""Four-bar linkages in a row: loops that share pivots, with redundant rows and singular poses."""
from __future__ import annotations

from math import cos, pi, sin

import numpy as np
from numpy.typing import ArrayLike

from dalembert.mechanism.joints import Revolute
from dalembert.mechanism.mechanism import Mechanism
from dalembert.zoo.links import at_least_one, rod_between, sized, slender_rod_between


@sized
def four_bar_chain(
    segments: int = 3,
    *,
    half_angle: float = pi / 6,
    length: float = 1.0,
    mass: float = 1.0,
    radius: float = 0.05,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Mechanism:
    """A chain of rhombi that falls from the horizontal (Linear-time, Fig. 6; Variational, Fig. 9a).

    ``segments`` rhombi of four links of ``length`` (m) and ``mass`` (kg) lie in a row along +x in the x-z plane, at
    rest; each link makes ``half_angle`` (rad) with the row. Each rhombus has four hinges of its own and one more, at
    its first corner, that hangs its link "upper left" on the link "upper right" before it, or on the world. All axes
    are along y. Bodies "1 upper left", "1 upper right", "1 lower left", "1 lower right", "2 upper left", ...; joints
    "1 hanger", "1 left", "1 top", "1 bottom", "1 right", ... For n segments there are 4 n bodies, 5 n joints and
    25 n rows, 3 n of them redundant, and 2 n degrees of freedom.
    """
    segments = at_least_one(segments, "four_bar_chain: segments")
    hinge = Revolute(axis="y")
    mechanism = Mechanism(f"chain of {segments} four-bar segments", gravity=gravity)
    before = mechanism.world
    for k in range(segments):
        run, rise = length * np.array([cos(half_angle), 0.0, 0.0]), length * np.array([0.0, 0.0, sin(half_angle)])
        left, top, bottom, right = 2 * k * run, (2 * k + 1) * run + rise, (2 * k + 1) * run - rise, (2 * k + 2) * run

        def link(name: str, start: np.ndarray, end: np.ndarray, number: int = k + 1):
            return rod_between(mechanism, f"{number} {name}", start, end, mass=mass, radius=radius)

        upper_left, upper_right = link("upper left", left, top), link("upper right", top, right)
        lower_left, lower_right = link("lower left", left, bottom), link("lower right", bottom, right)
        mechanism.joint(f"{k + 1} hanger", hinge, before, upper_left, at=left)
        mechanism.joint(f"{k + 1} left", hinge, upper_left, lower_left, at=left)
        mechanism.joint(f"{k + 1} top", hinge, upper_left, upper_right, at=top)
        mechanism.joint(f"{k + 1} bottom", hinge, lower_left, lower_right, at=bottom)
        mechanism.joint(f"{k + 1} right", hinge, upper_right, lower_right, at=right)
        before = upper_right
    return mechanism


@sized
def n_four_bar(n: int = 2, *, rate: float = 1.0, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Mechanism:
    """``n`` parallelograms side by side (IFToMM benchmark A02): every horizontal pose is singular.

    Ground pivots at (i, 0), n + 1 upright cranks and n couplers in the x-y plane, uniform slender links of ``length``
    (m) and ``mass`` (kg), ``gravity`` (m/s^2) along -y. The cranks start upright and turn towards +x at ``rate``
    (rad/s). Bodies "crank 0", ..., "coupler 0", ...; joints "ground 0", ..., "left 0", "right 0", ..., axes along z.
    A crank's angle is positive anticlockwise, so that it decreases.
    """
    n = at_least_one(n, "n_four_bar: n")
    hinge = Revolute(axis="z")
    mechanism = Mechanism("double four-bar" if n == 2 else f"{n} four-bars", gravity=(0.0, -gravity, 0.0))
    foot = [np.array([i * length, 0.0, 0.0]) for i in range(n + 1)]
    head = [np.array([i * length, length, 0.0]) for i in range(n + 1)]
    cranks = [slender_rod_between(mechanism, f"crank {i}", foot[i], head[i], mass=mass) for i in range(n + 1)]
    couplers = [slender_rod_between(mechanism, f"coupler {i}", head[i], head[i + 1], mass=mass) for i in range(n)]
    for i, crank in enumerate(cranks):
        mechanism.joint(f"ground {i}", hinge, mechanism.world, crank, at=foot[i])
        mechanism.start(crank.name, linear=(0.5 * rate * length, 0.0, 0.0), angular=(0.0, 0.0, -rate))
    for i, coupler in enumerate(couplers):
        mechanism.joint(f"left {i}", hinge, cranks[i], coupler, at=head[i])
        mechanism.joint(f"right {i}", hinge, cranks[i + 1], coupler, at=head[i + 1])
        mechanism.start(coupler.name, linear=(rate * length, 0.0, 0.0), angular=(0.0, 0.0, 0.0))
    return mechanism


@sized
def double_four_bar(*, rate: float = 1.0, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Mechanism:
    """``n_four_bar`` with two parallelograms, the benchmark's usual size."""
    return n_four_bar(2, rate=rate, length=length, mass=mass, gravity=gravity)
