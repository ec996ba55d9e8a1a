"""The Hoberman sphere: 240 angulated rods, 420 joints, 547 redundant rows, one internal motion.

The hubs are the 30 vertices of an icosidodecahedron; its 60 edges lie on six great circles. Each edge carries two
scissor pairs, and each pair fills a wedge of GAMMA = 18 degrees between two radial lines. With the opening phi, arms of
length a, the wedge's bisector b and the tangent t towards the radial line on which a rod has its outer end, that rod has

    its pivot at P = a cos(phi) / sin(GAMMA/2) b,
    body axes x = cos(phi) b - sin(phi) t, y = sin(phi) b + cos(phi) t, z = b x t,
    arms along -sin(GAMMA/2) x +- cos(GAMMA/2) y, which end on the two radial lines at a (cos(phi) cot(GAMMA/2) +- sin(phi)).

So a rod is rigid while phi, the one internal coordinate, changes: it turns about -z at the rate of phi. The sphere is
largest at phi = 0, where it is singular.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.checks import POSITIVE, checked, numbers, shown
from dalembert.errors import ModelError
from dalembert.mechanism.joints import Revolute, Spherical
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.zoo.links import sized

GAMMA = pi / 10
S, C = sin(0.5 * GAMMA), cos(0.5 * GAMMA)
RODS = 240
LARGEST_OPENING = 0.5 * (pi - GAMMA)  # the inner ends meet at the centre


def hubs() -> np.ndarray:
    """(30, 3) unit vectors: the vertices of the icosidodecahedron."""
    g = 0.5 * (1.0 + 5.0**0.5)
    signs = [(a, b, c) for a in (1, -1) for b in (1, -1) for c in (1, -1)]
    corners = [(0.0, 0.0, g), (0.0, 0.0, -g)] + [(0.5 * a, 0.5 * g * b, 0.5 * g * g * c) for a, b, c in signs]
    return np.array([np.roll(corner, k) for k in range(3) for corner in corners]) / g


@dataclass(frozen=True)
class _Rod:
    """Where a rod lies: the bisector of its wedge and the tangent towards its outer end."""

    bisector: np.ndarray
    tangent: np.ndarray

    def axes(self, opening: float) -> np.ndarray:
        """(3, 3): the body axes as columns."""
        b, t = self.bisector, self.tangent
        return np.column_stack([cos(opening) * b - sin(opening) * t, sin(opening) * b + cos(opening) * t, np.cross(b, t)])


@checked(arm=POSITIVE, rod_mass=POSITIVE, velocity=numbers(3))
def hoberman_sphere(
    *,
    arm: float = 0.1,
    opening: float = 0.7,
    spin: float = 0.0,
    opening_rate: float = 0.0,
    rod_mass: float = 0.02,
    velocity: ArrayLike = (0.0, 0.0, 0.0),
    gravity: ArrayLike = (0.0, 0.0, 0.0),
) -> Mechanism:
    """A Hoberman sphere of 240 rods and 420 joints, free in space (Quaternion, Fig. 7, tables 5 and 6).

    ``arm``: length of half a rod in m; ``rod_mass`` in kg, of two uniform slender arms; ``opening``: the internal
    coordinate phi in rad, between 0 (largest) and 81 degrees (collapsed), with ``opening_rate`` in rad/s; ``spin`` in
    rad/s about z; ``velocity`` of the whole in m/s.

    Bodies "rod 0" to "rod 239", four to an edge. Joints: "pivot 0" to "pivot 119" in the middle of the scissor pairs,
    "outer 0", "inner 0", ... in the middle of the edges, all revolute about the great circle's normal; at each of the
    60 hub points four rods meet in a chain of a revolute, a spherical and a revolute joint, "hub 0 outer first",
    "hub 0 outer ball", "hub 0 outer second", ... The 1980 rows have rank 1433 on 1440 velocities.
    """
    if not 0.0 < opening < LARGEST_OPENING:
        raise ModelError(f"hoberman_sphere: opening must be between 0 and {LARGEST_OPENING:.4g} rad, got {opening}")
    mechanism = Mechanism("Hoberman sphere", gravity=gravity)
    outer, inner = (arm * (cos(opening) * C / S + side * sin(opening)) for side in (1, -1))
    centers = hubs()
    apart = centers @ centers.T
    edges = [(i, j) for i in range(30) for j in range(i + 1, 30) if abs(apart[i, j] - cos(2.0 * GAMMA)) < 1e-9]
    moving = bool(spin or opening_rate or np.any(velocity))
    meetings: dict[tuple[int, str], list[tuple[np.ndarray, Body]]] = {}
    for k, (i, j) in enumerate(edges):
        normal = np.cross(centers[i], centers[j]) / sin(2.0 * GAMMA)
        hinge = Revolute(axis=tuple(normal))
        middle = (centers[i] + centers[j]) / (2.0 * cos(GAMMA))
        pairs = []
        for wedge, (left, right) in enumerate(((centers[i], middle), (middle, centers[j]))):
            bisector = (left + right) / (2.0 * C)
            tangent = (left - right) / (2.0 * S)
            rods = [_Rod(bisector, tangent), _Rod(bisector, -tangent)]
            pair = [_add_rod(mechanism, rod, arm, opening, rod_mass) for rod in rods]
            mechanism.joint(f"pivot {2 * k + wedge}", hinge, pair[0], pair[1], at=arm * cos(opening) / S * bisector)
            for body, rod in zip(pair, rods) if moving else ():
                _start_rod(mechanism, body, rod, arm, opening, opening_rate, spin, np.asarray(velocity, dtype=float))
            pairs.append(pair)
        (first_out_i, first_out_mid), (second_out_mid, second_out_j) = pairs
        mechanism.joint(f"outer {k}", hinge, first_out_mid, second_out_mid, at=outer * middle)
        mechanism.joint(f"inner {k}", hinge, first_out_i, second_out_j, at=inner * middle)
        for hub, level, body in ((i, "outer", first_out_i), (i, "inner", first_out_mid), (j, "outer", second_out_j), (j, "inner", second_out_mid)):
            meetings.setdefault((hub, level), []).append((normal, body))
    for (hub, level), rods in sorted(meetings.items(), key=lambda item: item[0]):
        _join_hub(mechanism, f"hub {hub} {level}", (outer if level == "outer" else inner) * centers[hub], rods)
    return mechanism


def _add_rod(mechanism: Mechanism, rod: _Rod, arm: float, opening: float, mass: float) -> Body:
    axes = rod.axes(opening)
    unit = mass * arm**2
    inertia = unit * np.diag([C * C / 3.0, S * S / 12.0, 1.0 / 12.0 + 0.25 * C * C])
    position = arm * cos(opening) / S * rod.bisector - 0.5 * arm * S * axes[:, 0]
    turn = Rotation.from_matrix(axes).as_quat(scalar_first=True)
    return mechanism.body(f"rod {len(mechanism.bodies)}", mass=mass, inertia=inertia, position=position, orientation=turn)


def _start_rod(
    mechanism: Mechanism, body: Body, rod: _Rod, arm: float, opening: float, opening_rate: float, spin: float, velocity: np.ndarray
) -> None:
    """Velocities of a rod in a sphere that spins about z and opens."""
    axes = rod.axes(opening)
    along = -arm * sin(opening) / S * rod.bisector + 0.5 * arm * S * axes[:, 1]  # d position / d opening; d x / d opening = -y
    linear = velocity + spin * np.array([-body.position[1], body.position[0], 0.0]) + opening_rate * along
    angular = spin * axes[2] - np.array([0.0, 0.0, opening_rate])
    mechanism.start(body.name, linear=linear, angular=angular)


def _join_hub(mechanism: Mechanism, name: str, point: np.ndarray, rods: list[tuple[np.ndarray, Body]]) -> None:
    """Join four rods: a hinge for the two on each of the two great circles, and a ball between the circles."""
    (normal, first), *others = rods
    same = [body for other, body in others if abs(other @ normal) > 1.0 - 1e-9]
    cross = [(other, body) for other, body in others if abs(other @ normal) <= 1.0 - 1e-9]
    (partner,), ((other_normal, third), (_, fourth)) = same, cross
    mechanism.joint(f"{name} first", Revolute(axis=tuple(normal)), first, partner, at=point)
    mechanism.joint(f"{name} ball", Spherical(), partner, third, at=point)
    mechanism.joint(f"{name} second", Revolute(axis=tuple(other_normal)), third, fourth, at=point)


class HobermanInertia(NamedTuple):
    """Inertias of the sphere at an opening: kinetic energy = (``internal`` phi'^2 + ``rotational`` omega^2) / 2, in kg m^2."""

    internal: float
    rotational: float
    internal_slope: float
    rotational_slope: float


@sized
def hoberman_inertia(opening: float, *, arm: float = 0.1, rod_mass: float = 0.02) -> HobermanInertia:
    """M(phi) and I(phi), which is isotropic by symmetry, with their derivatives by phi."""
    unit = RODS * rod_mass * arm**2
    far, near = _radii()
    own = 1.0 / 12.0 + 0.25 * C * C
    c, s = cos(opening), sin(opening)
    slope = 2.0 * s * c * (far - near)
    return HobermanInertia(
        internal=unit * (far * s * s + near * c * c + own),
        rotational=2.0 / 3.0 * unit * (far * c * c + near * s * s + own),
        internal_slope=unit * slope,
        rotational_slope=-2.0 / 3.0 * unit * slope,
    )


def _radii() -> tuple[float, float]:
    """Squared distances of a rod's centre of mass from the sphere's, at phi = 0 and pi/2, in units of the arm squared."""
    return (1.0 / S - 0.5 * S) ** 2, (0.5 * S) ** 2


@sized
def hoberman_exact(
    time: ArrayLike, *, arm: float = 0.1, opening: float = 0.7, spin: float = 0.0, opening_rate: float = 0.0, rod_mass: float = 0.02
) -> np.ndarray:
    """The opening (rad) over ``time`` (s, ascending from 0) of a free sphere, integrated to 1e-12 in its one coordinate.

    M phi'' + M' phi'^2 / 2 - I' (L/I)^2 / 2 = 0 with the angular momentum L = I spin constant.
    """
    times = np.atleast_1d(np.asarray(time, dtype=float))
    if times.ndim != 1 or not times.size or times[0] < 0.0 or np.any(np.diff(times) < 0.0):
        raise ModelError(f"hoberman_exact: time must be ascending from 0, got {shown(time)}")
    momentum = hoberman_inertia(opening, arm=arm, rod_mass=rod_mass).rotational * spin

    def motion(_: float, state: np.ndarray) -> tuple[float, float]:
        phi, rate = state
        M, I, dM, dI = hoberman_inertia(phi, arm=arm, rod_mass=rod_mass)
        return rate, (0.5 * dI * (momentum / I) ** 2 - 0.5 * dM * rate**2) / M

    end = max(float(times[-1]), 1e-9)
    from scipy.integrate import solve_ivp  # takes long to import

    solved = solve_ivp(motion, (0.0, end), (opening, opening_rate), method="DOP853", t_eval=times, rtol=1e-12, atol=1e-13)
    return solved.y[0]


@sized
def hoberman_opening(position: ArrayLike, *, arm: float = 0.1) -> np.ndarray:
    """The opening (rad) of a simulated sphere, from the positions (..., 240, 3) of its rods (their mean square radius)."""
    position = np.asarray(position, dtype=float)
    if position.ndim < 2 or position.shape[-2:] != (RODS, 3):
        raise ModelError(f"hoberman_opening: position must be (..., {RODS}, 3) numbers, got shape {position.shape}")
    out = position - position.mean(axis=-2, keepdims=True)
    square = np.einsum("...ij,...ij->...", out, out) / (RODS * arm**2)
    far, near = _radii()
    return np.arccos(np.sqrt(np.clip((square - near) / (far - near), 0.0, 1.0)))  # rounding goes beyond in the singular pose
