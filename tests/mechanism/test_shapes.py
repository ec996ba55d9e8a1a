"""Mass properties against quadrature and closed forms, and the error that each bad input gets."""
from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError
from dalembert.mechanism.shapes import (
    Box,
    Capsule,
    Composite,
    Cone,
    Cylinder,
    Ellipsoid,
    Rod,
    Shape,
    Sphere,
    as_axis,
    check_inertia,
    check_mass,
    principal_axes,
)

QUARTER_TURN_TO_X = (np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0)  # about y: z goes to x

# shape, half-widths of its elliptic cross-section at height z, top, heights at which the outline has a kink
SOLIDS = {
    "Rod": (Rod(length=1.4, radius=0.05, density=3.0), lambda z: (0.05, 0.05), 0.7, []),
    "Cylinder": (Cylinder(radius=0.5, length=0.3, density=3.0), lambda z: (0.5, 0.5), 0.15, []),
    "Capsule": (Capsule(radius=0.4, length=1.2, density=3.0), lambda z: (np.sqrt(0.16 - np.maximum(abs(z) - 0.6, 0) ** 2),) * 2, 1.0, [-0.6, 0.6]),
    "Sphere": (Sphere(radius=0.7, density=3.0), lambda z: (np.sqrt(0.49 - z * z),) * 2, 0.7, []),
    "Ellipsoid": (Ellipsoid(semi_axes=(0.2, 0.5, 0.9), density=3.0), lambda z: (0.2 * np.sqrt(1 - (z / 0.9) ** 2), 0.5 * np.sqrt(1 - (z / 0.9) ** 2)), 0.9, []),
}


def slices(half_widths, top, breaks) -> tuple[float, np.ndarray]:
    """Volume and the second moments (xx, yy, zz) of a stack of ellipses, by Gauss quadrature over the height."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    volume, second = 0.0, np.zeros(3)
    edges = [-top, *breaks, top]
    for low, high in pairwise(edges):
        for z, w in zip(0.5 * (high - low) * nodes + 0.5 * (low + high), 0.5 * (high - low) * weights):
            a, b = half_widths(z)
            area = np.pi * a * b
            volume += w * area
            second += w * area * np.array([a * a / 4, b * b / 4, z * z])
    return volume, second


@pytest.mark.parametrize("name", SOLIDS)
def test_solids_match_quadrature(name):
    shape, half_widths, top, breaks = SOLIDS[name]
    volume, second = slices(half_widths, top, breaks)
    assert shape.volume == pytest.approx(volume, rel=1e-12)
    assert shape.mass == pytest.approx(3.0 * volume, rel=1e-12)
    assert_allclose(shape.inertia, 3.0 * np.diag(second.sum() - second), rtol=1e-12, atol=1e-15)
    assert_allclose(shape.center_of_mass, np.zeros(3))


def test_box():
    box = Box(size=(1, 2, 3), mass=12.0)
    assert_allclose(box.inertia, np.diag([4 + 9, 1 + 9, 1 + 4]))
    assert box.volume == 6
    assert box.density == 2


def test_rod():
    rod = Rod(length=1.0, mass=1.0, radius=0.05)
    across = (3 * 0.05**2 + 1) / 12
    assert_allclose(rod.inertia, np.diag([across, across, 0.05**2 / 2]), rtol=1e-15)
    assert isinstance(rod, Cylinder)


def test_a_capsule_of_hardly_any_length_is_a_ball():
    assert_allclose(Capsule(radius=0.3, length=1e-12, mass=2.0).inertia, Sphere(radius=0.3, mass=2.0).inertia, rtol=1e-10)


def test_cone():
    """Slices from its base on, against quadrature."""
    cone = Cone(radius=0.3, length=0.8, density=3.0)
    nodes, weights = np.polynomial.legendre.leggauss(6)
    z, w = 0.4 * (nodes + 1.0), 0.4 * weights
    area = np.pi * (0.3 * (1 - z / 0.8)) ** 2
    volume, first = w @ area, w @ (area * z)
    across = w @ (area * (area / np.pi / 4 + (z - first / volume) ** 2))
    assert cone.volume == pytest.approx(volume, rel=1e-13)
    assert_allclose(cone.center_of_mass, np.array([0.0, 0.0, first / volume - 0.4]))
    assert_allclose(cone.inertia, 3.0 * np.diag([across, across, w @ (area * area / np.pi / 2)]), rtol=1e-12)


def test_a_cone_between_two_points():
    placed = Cone.between((1, 0, 0), (1, 2, 0), radius=0.3, mass=1.0)
    assert placed.position == (1.0, 0.5, 0.0)
    assert isinstance(placed.shape, Cone)
    assert_allclose(np.asarray(placed.shape.axis, dtype=float), (0, 1, 0))
    assert placed.shape.length == 2.0


@pytest.mark.parametrize("kind", [Rod, Cylinder, Capsule, Cone])
def test_axes(kind):
    along_z = kind(radius=0.1, length=1.0, mass=2.0)
    a, b = along_z.inertia[0, 0], along_z.inertia[2, 2]
    assert_allclose(kind(radius=0.1, length=1.0, mass=2.0, axis="x").inertia, np.diag([b, a, a]))
    assert_allclose(kind(radius=0.1, length=1.0, mass=2.0, axis="-y").inertia, np.diag([a, b, a]))
    oblique = kind(radius=0.1, length=1.0, mass=2.0, axis=(1, 2, -3))
    u = np.array([1, 2, -3]) / np.sqrt(14)
    assert_allclose(oblique.axis, u)
    assert u @ oblique.inertia @ u == pytest.approx(b)
    assert_allclose(np.linalg.eigvalsh(oblique.inertia), [b, a, a])


def test_mass_and_density_agree():
    by_mass = Sphere(radius=0.2, mass=5.0)
    by_density = Sphere(radius=0.2, density=by_mass.density)
    assert by_density.mass == pytest.approx(5.0, rel=1e-15)
    assert_allclose(by_density.inertia, by_mass.inertia)


def test_shapes_are_values():
    box = Box(size=[1, 2, 3], mass=1)
    assert box == Box(size=(1.0, 2.0, 3.0), mass=1.0)
    assert hash(box) == hash(Box(size=(1.0, 2.0, 3.0), mass=1.0))
    assert eval(repr(box)) == box
    assert replace(box, mass=2.0, density=None).mass == 2.0
    with pytest.raises(FrozenInstanceError):
        box.mass = 2.0  # pyright: ignore[reportAttributeAccessIssue]


# composites

def test_t_handle():
    """A steel T-handle: its mass, centre of mass and moments in closed form, to all digits."""
    bar = Cylinder(radius=0.01, length=0.10, axis="x", density=7800)
    stem = Cylinder(radius=0.01, length=0.06, axis="z", density=7800)
    handle = Composite(parts=[(bar, (0, 0, 0), (1, 0, 0, 0)), (stem, (0, 0, 0.03), (1, 0, 0, 0))])
    assert handle.mass == pytest.approx(0.392070763168006196, rel=1e-14)
    assert_allclose(handle.center_of_mass, [0, 0, 0.01125], rtol=1e-14, atol=1e-17)
    J = np.array([0.000142738262215852256, 0.000340815679024688719, 0.000217680954967236773])
    assert_allclose(handle.inertia, np.diag(J), rtol=1e-13, atol=1e-18)
    moments, q = handle.principal()
    assert_allclose(moments, np.sort(J), rtol=1e-13)
    R = Rotation.from_quat(q, scalar_first=True).as_matrix()
    assert_allclose(np.abs(R), np.array([[1, 0, 0], [0, 0, 1], [0, 1, 0]]), atol=1e-12)
    assert handle.volume == pytest.approx(np.pi * 0.01**2 * 0.16)


def test_a_part_may_be_turned():
    along_z = Cylinder(radius=0.1, length=1.0, mass=1.0)
    turned = Composite(parts=[(along_z, (0, 0, 0), QUARTER_TURN_TO_X)])
    assert_allclose(turned.inertia, Cylinder(radius=0.1, length=1.0, mass=1.0, axis="x").inertia, atol=1e-16)


def test_two_halves_make_a_box():
    half = Box(size=(1, 2, 1.5), density=2.0)
    whole = Composite(parts=[(half, (5, 0, 1.5 / 2)), (half, (5, 0, -1.5 / 2))])
    box = Box(size=(1, 2, 3), density=2.0)
    assert whole.mass == box.mass
    assert_allclose(whole.center_of_mass, [5, 0, 0])
    assert_allclose(whole.inertia, box.inertia, rtol=1e-14, atol=1e-14)


def test_composites_nest():
    ball, box = Sphere(radius=0.1, mass=1.0), Box(size=(0.1, 0.2, 0.3), mass=2.0)
    turn = Rotation.from_rotvec([0.3, -0.2, 0.9])
    inner_parts = [(ball, (1.0, 0, 0), (1, 0, 0, 0)), (box, (0, 1.0, 0), QUARTER_TURN_TO_X)]
    inner = Composite(parts=inner_parts)
    place = np.array([0.5, 0.6, 0.7])
    q = turn.as_quat(scalar_first=True)
    nested = Composite(parts=[(inner, place, q), (ball, (0, 0, 0))])
    flat = Composite(parts=[
        *((shape, place + turn.apply(np.array(position) - inner.center_of_mass),
           (turn * Rotation.from_quat(orientation, scalar_first=True)).as_quat(scalar_first=True))
          for shape, position, orientation in inner_parts),
        (ball, (0, 0, 0)),
    ])
    assert_allclose(nested.center_of_mass, flat.center_of_mass, atol=1e-15)
    assert_allclose(nested.inertia, flat.inertia, rtol=1e-13, atol=1e-14)


# checks of masses, inertias and axes

lengths = st.floats(0.01, 10)
rotations = arrays(np.float64, 3, elements=st.floats(-3, 3)).map(Rotation.from_rotvec)


@given(lengths, lengths, lengths, rotations)
def test_principal_axes_of_turned_boxes(x, y, z, rotation):
    R = rotation.as_matrix()
    J = R @ Box(size=(x, y, z), mass=1.0).inertia @ R.T
    moments, q = principal_axes(0.5 * (J + J.T))
    P = Rotation.from_quat(q, scalar_first=True).as_matrix()
    assert np.all(np.diff(moments) >= 0)
    assert np.linalg.norm(q) == pytest.approx(1.0)
    assert_allclose(P @ np.diag(moments) @ P.T, J, atol=1e-13 * moments[2])


@pytest.mark.parametrize("moments", [(1, 2, 3), (2, 2, 2)])
def test_principal_axes_of_a_sorted_diagonal_are_the_body_axes(moments):
    assert_allclose(principal_axes(np.diag(moments))[1], [1, 0, 0, 0], atol=1e-15)


@given(lengths, lengths, lengths, rotations)
def test_inertias_of_real_bodies_pass(x, y, z, rotation):
    R = rotation.as_matrix()
    J = R @ Box(size=(x, y, z), mass=1.0).inertia @ R.T
    assert_allclose(check_inertia(J, "box"), J, atol=1e-15 * np.abs(J).max())


@pytest.mark.parametrize("moments", [(1, 1, 2), (1e-12, 1, 1), (1, 1, 2 + 1e-9)])
def test_plates_and_thin_rods_pass(moments):
    assert_allclose(check_inertia(np.diag(moments), "plate"), np.diag(moments))


def test_a_checked_inertia_is_a_symmetric_copy():
    J = np.diag([1.0, 2.0, 2.5])
    J[0, 1] = 1e-10
    checked = check_inertia(J, "part")
    assert (checked == checked.T).all()
    checked[0, 0] = 7
    assert J[0, 0] == 1


@pytest.mark.parametrize(("inertia", "message"), [
    (np.diag([1, 1, 2.1]), "exceeds the sum"),
    (np.diag([0, 1, 1]), "positive definite"),
    (np.diag([-1, 1, 1]), "positive definite"),
    (np.zeros((3, 3)), "positive definite"),
    ([[1, 0.1, 0], [0, 1, 0], [0, 0, 1]], "symmetric"),
    (np.diag([1, 1, np.nan]), "finite"),
    (np.diag([1, 1, np.inf]), "finite"),
    ((1, 1, 1), "3x3"),
    (None, "3x3"),
    ("heavy", "3x3"),
    ([[1, 0], [0, 1, 0]], "3x3"),
    (np.eye(3) * 1j, "3x3"),
])
def test_impossible_inertias(inertia, message):
    with pytest.raises(ModelError, match=f"(?s)'wheel'.*{message}"):
        check_inertia(inertia, "wheel")


def test_masses():
    assert check_mass(2, "wheel") == 2.0
    assert isinstance(check_mass(np.float64(2), "wheel"), float)


@pytest.mark.parametrize("mass", [0, -1.0, np.nan, np.inf, None, "1", [1.0], 1j])
def test_impossible_masses(mass):
    with pytest.raises(ModelError, match="'wheel': mass"):
        check_mass(mass, "wheel")


@pytest.mark.parametrize(("value", "expected"), [
    ("x", (1, 0, 0)), ("-z", (0, 0, -1)), ("+y", (0, 1, 0)), ((0, 3, 4), (0, 0.6, 0.8)), ((0, 1e-300, 0), (0, 1, 0)), ((1e300, 0, 0), (1, 0, 0)),
])
def test_axis_values(value, expected):
    assert_allclose(as_axis(value, "axis"), expected, rtol=1e-15)


def test_a_named_axis_is_a_copy():
    as_axis("x", "axis")[0] = 5
    assert as_axis("x", "axis")[0] == 1


@pytest.mark.parametrize("value", ["w", "", "xy", (0, 0, 0), (1, 0), (1, 0, 0, 0), (np.nan, 0, 1), (np.inf, 0, 1), None, 3, ("a", "b", "c")])
def test_impossible_axes(value):
    with pytest.raises(ModelError, match=r"^Revolute\.axis"):
        as_axis(value, "Revolute.axis")


GOOD: dict[type[Shape], dict] = {
    Rod: dict(length=1.0, radius=0.1),
    Cylinder: dict(length=1.0, radius=0.1),
    Capsule: dict(length=1.0, radius=0.1),
    Cone: dict(length=1.0, radius=0.1),
    Sphere: dict(radius=0.1),
    Box: dict(size=(1, 2, 3)),
    Ellipsoid: dict(semi_axes=(1, 2, 3)),
}


@pytest.mark.parametrize("kind", GOOD)
def test_bad_masses_of_shapes(kind):
    with pytest.raises(ModelError, match=rf"^{kind.__name__}: .*neither"):
        kind(**GOOD[kind])
    with pytest.raises(ModelError, match=rf"^{kind.__name__}: .*mass=1.0 and density=2.0"):
        kind(**GOOD[kind], mass=1.0, density=2.0)
    for field in ("mass", "density"):
        for bad in (0.0, -2.0, np.nan, np.inf, "1", (1.0,)):
            with pytest.raises(ModelError, match=rf"^{kind.__name__}: {field} must"):
                kind(**GOOD[kind], **{field: bad})


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in GOOD.items() for field in fields])
def test_bad_lengths_of_shapes(kind, field):
    single = (0.0, -1.0, np.nan, np.inf, 1e200, 1e-200, "1", None, (1.0, 2.0))
    triple = (1.0, (1, 2), (1, 2, 3, 4), (1, 0, 3), (1, -2, 3), (1, np.nan, 3), (np.inf, 2, 3), None, "xyz")
    for bad in triple if field in ("size", "semi_axes") else single:
        with pytest.raises(ModelError, match=rf"^{kind.__name__}: {field} must"):
            kind(**{**GOOD[kind], field: bad}, mass=1.0)


def test_bad_axes_of_shapes():
    for bad in ("q", (0, 0, 0), (1, 2)):
        with pytest.raises(ModelError, match=r"^Rod: axis must"):
            Rod(length=1.0, radius=0.1, mass=1.0, axis=bad)


def test_a_rod_without_thickness_is_refused():
    with pytest.raises(ModelError, match="thickness"):
        Rod(length=1.0, radius=1e-9, mass=1.0)


def test_fields_are_keywords():
    with pytest.raises(TypeError):
        Sphere(0.1, 1.0)  # pyright: ignore[reportCallIssue]


BALL = Sphere(radius=0.1, mass=1.0)


@pytest.mark.parametrize(("parts", "message"), [
    ([], "empty"),
    (None, "list of"),
    ([BALL], "list of"),
    ([(BALL,)], r"parts\[0\] must be"),
    ([(BALL, (0, 0, 0)), ("ball", (0, 0, 0))], r"parts\[1\] must be"),
    ([(BALL, (0, 0))], r"parts\[0\]: position"),
    ([(BALL, (0, 0, np.nan))], r"parts\[0\]: position must be finite"),
    ([(BALL, (0, 0, 0), (0, 0, 0, 0))], "zero quaternion"),
    ([(BALL, (0, 0, 0), (1, 0, 0))], r"parts\[0\]: orientation"),
])
def test_bad_parts(parts, message):
    with pytest.raises(ModelError, match=rf"^Composite: .*{message}"):
        Composite(parts=parts)
