"""The builder: names, bodies, joints, and the errors that name the culprit."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.model.compile import compile_model


def two_bodies() -> da.Mechanism:
    mechanism = da.Mechanism("two")
    mechanism.body("a", da.Sphere(radius=0.1, mass=1.0))
    mechanism.body("b", da.Sphere(radius=0.1, mass=1.0), position=(1, 0, 0))
    return mechanism


def test_elements_are_found_by_name_and_in_order():
    mechanism = two_bodies()
    mechanism.joint("j", da.Revolute(axis="z"), "a", "b", at=(0.5, 0, 0))
    assert [b.name for b in mechanism.bodies] == ["a", "b"]
    assert mechanism["j"] is mechanism.joints[0]
    assert mechanism.mass == pytest.approx(2.0)
    np.testing.assert_allclose(mechanism["j"].point_child, [-0.5, 0, 0])


@pytest.mark.parametrize(("make", "message"), [
    (lambda m: m.body("c", mass=0.0, inertia=np.eye(3)), "c.*mass"),
    (lambda m: m.body("c", mass=-1.0, inertia=np.eye(3)), "c.*mass"),
    (lambda m: m.body("c", mass=np.nan, inertia=np.eye(3)), "c.*mass"),
    (lambda m: m.body("c", mass=1.0, inertia=np.diag([1.0, 1.0, 0.0])), "c.*positive definite"),
    (lambda m: m.body("c", mass=1.0, inertia=np.diag([1.0, 1.0, 3.0])), "c.*sum of the other two"),
    (lambda m: m.body("c", mass=1.0, inertia=np.full((3, 3), np.inf)), "c.*inertia"),
    (lambda m: m.body("c", mass=1.0), "c.*needs a shape"),
    (lambda m: m.body("c", da.Sphere(radius=1, mass=1), mass=1.0), "c.*not both"),
    (lambda m: m.body("a", da.Sphere(radius=1, mass=1)), "'a' is taken"),
    (lambda m: m.body("world", da.Sphere(radius=1, mass=1)), "'world' is taken"),
    (lambda m: m.body("", da.Sphere(radius=1, mass=1)), "non-empty"),
    (lambda m: m.body("c", da.Sphere(radius=1, mass=1), position=(0, 0)), "body 'c': position must be 3 numbers"),
    (lambda m: m.body("c", da.Sphere(radius=1, mass=1), position=(0, 0, np.nan)), "body 'c': position must be finite"),
    (lambda m: m.body("c", da.Sphere(radius=1, mass=1), orientation=(0, 0, 0, 0)), "body 'c': orientation"),
    (lambda m: m.joint("j", da.Revolute(), "a", "a"), "'a' to itself"),
    (lambda m: m.joint("j", da.Revolute(), "a", "nobody"), "nobody"),
    (lambda m: m.joint("j", da.Revolute(), "a", m.world), "world can only be the parent"),
    (lambda m: m.joint("j", "hinge", "a", "b"), "type must be a joint"),
    (lambda m: m.joint("j", da.Revolute(), "a", "b", at=(1, np.inf, 0)), "joint 'j'"),
    (lambda m: m.joint("j", da.Revolute(), "a", "b", frame=(0, 0, 0, 0)), "joint 'j': frame"),
    (lambda m: m.joint("j", da.Distance(), "a", "b"), "coincide"),
    (lambda m: m.joint("j", da.Revolute(axis=(0, 0, 0)), "a", "b"), "axis"),
    (lambda m: m.joint("j", da.Universal(axes=("x", "x")), "a", "b"), "perpendicular"),
    (lambda m: m.spring("s", "a", "b", at=((0, 0, 0), (1, 0, 0)), stiffness=-1.0), "stiffness"),
    (lambda m: m.spring("s", "a", "b", at=((0, 0, 0), (1, 0, 0)), length=-1.0), "length"),
    (lambda m: m.wrench("world", force=(1, 0, 0)), "world"),
    (lambda m: m.wrench("a", force=(1, 0, np.nan)), "wrench 'a': force must be finite"),
    (lambda m: m.load("a", force=(1, 0, 0)), r"use wrench\(\) for a constant force.*dalembert.load for a model file"),
    (lambda m: m.loads, "are in wrenches"),
    (lambda m: m.potential("p", "a", 3.0), "potential 'p': energy must be a function"),
    (lambda m: m.gear("g", "a", "b", ratio=1.0), "joints"),
    (lambda m: da.Mechanism("bad", gravity=(0, 0)), "gravity"),
    (lambda m: m["nobody"], "nobody"),
    (lambda m: m.joint("j", da.Revolute(), da.Mechanism("other").body("x", da.Sphere(radius=1, mass=1)), "b"), "another mechanism"),
])
def test_bad_input_is_named(make, message):
    mechanism = two_bodies()
    with pytest.raises(da.ModelError, match=message):
        make(mechanism)
    assert [b.name for b in mechanism.bodies] == ["a", "b"]
    assert mechanism.joints == []


@pytest.mark.parametrize(("make", "message"), [
    (lambda: da.Revolute(stiffness=-1.0), "stiffness"),
    (lambda: da.Revolute(damping=np.nan), "damping"),
    (lambda: da.Revolute(stiffness=(1.0, 2.0)), "stiffness"),
    (lambda: da.Revolute(spring=1.0), "Revolute has no parameter 'spring': say stiffness="),  # pyright: ignore[reportCallIssue]
    (lambda: da.Revolute(drive="torque"), "drive"),
    (lambda: da.Revolute(drive="position"), r"say drive='motion' .* or servo=Servo\(...\)"),
    (lambda: da.Fixed(drive="force"), "no free direction"),
    (lambda: da.Spherical(drive=("motion", None, None)), "all three"),
    (lambda: da.Helical(pitch=np.inf), "pitch"),
    (lambda: da.Distance(length=-1.0), "length"),
    (lambda: da.Cylindrical(rest="far"), "rest"),
])
def test_joints_check_their_parameters(make, message):
    with pytest.raises(da.ModelError, match=message):
        make()


ROWS = {
    da.Fixed: 6, da.Prismatic: 5, da.Revolute: 5, da.Cylindrical: 4, da.Helical: 5, da.Universal: 4, da.Spherical: 3, da.Planar: 3,
    da.Rectangular: 4, da.PlanarFreeOrientation: 1, da.PinInSlot: 4, da.Slot: 2, da.Cartesian: 3, da.RotationAlongAxis: 2,
    da.Free: 0, da.Distance: 1,
}


@pytest.mark.parametrize("kind", da.JOINTS, ids=lambda k: k.__name__)
def test_every_joint_locks_as_many_directions_as_its_table_says(kind):
    """Tables 3 of Quaternion and B.2 of Variational."""
    mechanism = two_bodies()
    at = ((0, 0, 0), (1, 0, 0)) if kind is da.Distance else (0.5, 0, 0)
    mechanism.joint("j", kind(), "a", "b", at=at)
    record = compile_model(mechanism).joints[0]
    assert record["locks"] == ROWS[kind]
    free = 5 if kind is da.Distance else kind().freedom
    assert record["locks"] + free == 6


def test_driven_and_damped_directions_add_rows():
    mechanism = two_bodies()
    mechanism.joint("j", da.Cylindrical(axis="x", drive=("motion", None), damping=(0.0, 2.0)), "a", "b", at=(0.5, 0, 0))
    record = compile_model(mechanism).joints[0]
    assert (record["locks"], record["rows"]) == (5, 6)


def test_bases_are_right_handed():
    for axis in ("x", "y", "z", "-x", (1, 2, 3), (-1, 0.1, 0)):
        for joint in (da.Revolute(axis=axis), da.Planar(normal=axis)):
            np.testing.assert_allclose(joint.basis.T @ joint.basis, np.eye(3), atol=1e-14)
            assert np.linalg.det(joint.basis) == pytest.approx(1.0)
