"""Mechanisms from mechanisms: shapes at their places, copies, changed elements, one attached to another."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da


def leg() -> da.Mechanism:
    """Two rods from the world, with a cable, a spring, a force and a start."""
    made = da.Mechanism("leg")
    made.body("upper", da.Rod.between((0, 0, 0), (0.3, 0, -0.4), radius=0.03, mass=1.0))
    made.body("lower", da.Rod.between((0.3, 0, -0.4), (0, 0, -1), radius=0.03, mass=0.7))
    made.joint("hip", da.Revolute(axis="y", damping=0.1), "world", "upper", at=(0, 0, 0))
    made.joint("knee", da.Revolute(axis="y", stiffness=3.0, drive="force"), "upper", "lower", at=(0.3, 0, -0.4))
    made.cable("rope", [("world", (0, 0, 0.2)), ("upper", (0.15, 0, 0)), ("lower", (0, 0, 0))], stiffness=10.0)
    made.force("wind", "lower", (0.3, 0, 0.1))
    made.wrench("upper", force=(0.1, 0.0, 0.2), torque=(0, 0.05, 0))
    made.start("hip", 0.2, rate=0.4)
    return made


def test_shapes_between_points_bring_their_place():
    made = da.Mechanism()
    rod = made.body("rod", da.Rod.between((1, 0, 0), (1, 2, 0), radius=0.1, mass=2.0))
    np.testing.assert_allclose(rod.position, (1, 1, 0))
    assert isinstance(rod.shape, da.Rod)
    assert rod.shape.length == 2.0
    np.testing.assert_allclose(np.asarray(rod.shape.axis, dtype=float), (0, 1, 0))
    box = made.body("box", da.Box.from_corners((1, 1, 1), (0, 3, 2), density=100.0))
    assert box.mass == pytest.approx(200.0)
    np.testing.assert_allclose(box.position, (0.5, 2, 1.5))
    frame = da.Composite(parts=[da.Capsule.between((0, 0, 0), (1, 0, 0), radius=0.1, mass=1.0), da.Cylinder.between((1, 0, 0), (1, 1, 0), radius=0.1, mass=1.0)])
    np.testing.assert_allclose(frame.center_of_mass, (0.75, 0.25, 0))
    stone = made.obstacle("stone", da.Box.from_corners((-1, -1, -1), (1, 1, 0), mass=1.0))
    np.testing.assert_allclose(stone.position, (0, 0, -0.5))


def test_bad_places_are_named():
    made = da.Mechanism()
    with pytest.raises(da.ModelError, match="the two points are one"):
        da.Rod.between((0, 0, 1), (0, 0, 1), radius=0.1, mass=1.0)
    with pytest.raises(da.ModelError, match="first point must be 3 numbers"):
        da.Capsule.between((0, 0), (0, 0, 1), radius=0.1, mass=1.0)
    with pytest.raises(da.ModelError, match="Box: size must be positive"):
        da.Box.from_corners((0, 0, 0), (1, 1, 0), mass=1.0)
    with pytest.raises(da.ModelError, match="brings its own position"):
        made.body("rod", da.Rod.between((0, 0, 0), (0, 0, 1), radius=0.1, mass=1.0), position=(1, 0, 0))


def test_a_copy_is_its_own():
    first = leg()
    second = first.copy("other leg")
    second.body("foot", da.Sphere(radius=0.1, mass=0.1))
    second.change("knee", stiffness=7.0)
    assert (first.name, second.name) == ("leg", "other leg")
    assert "foot" not in first
    assert first["knee"].type.stiffness == (3.0,)
    assert first.copy().name == "leg"


def test_changes_are_those_of_a_mechanism_built_so():
    changed, built = leg(), da.Mechanism("leg")
    changed.change("upper", shape=da.Rod.between((0, 0, 0), (0.3, 0, -0.4), radius=0.05, mass=2.0).shape)
    changed.change(changed["hip"], damping=0.3, limits=(-1.0, 1.0))
    changed.change("rope", stiffness=20.0)
    built.body("upper", da.Rod.between((0, 0, 0), (0.3, 0, -0.4), radius=0.05, mass=2.0))
    built.body("lower", da.Rod.between((0.3, 0, -0.4), (0, 0, -1), radius=0.03, mass=0.7))
    built.joint("hip", da.Revolute(axis="y", damping=0.3, limits=(-1.0, 1.0)), "world", "upper", at=(0, 0, 0))
    built.joint("knee", da.Revolute(axis="y", stiffness=3.0, drive="force"), "upper", "lower", at=(0.3, 0, -0.4))
    built.cable("rope", [("world", (0, 0, 0.2)), ("upper", (0.15, 0, 0)), ("lower", (0, 0, 0))], stiffness=20.0)
    built.force("wind", "lower", (0.3, 0, 0.1))
    built.wrench("upper", force=(0.1, 0.0, 0.2), torque=(0, 0.05, 0))
    built.start("hip", 0.2, rate=0.4)
    runs = [da.Simulation(made, da.Variational(dt=0.005)).run(0.3) for made in (changed, built)]
    np.testing.assert_array_equal(runs[0].position, runs[1].position)
    assert changed["knee"].parent is changed["upper"]


def test_bad_changes_are_named_and_change_nothing():
    made = leg()
    for element, changes, words in (
        ("knee", dict(stifness=1.0), "did you mean 'stiffness'"), ("upper", dict(mass=-1.0), "mass must be positive"), ("rope", dict(stiffness="much"), "stiffness must be"),
        ("rope", dict(stiffness=-1.0), "stiffness must not be negative"),
        ("nee", dict(stiffness=1.0), "did you mean 'knee'"), ("world", dict(mass=1.0), "world cannot be changed"), ("upper", dict(shape=3), "one of dalembert's shapes"),
        ("knee", dict(type="Revolute"), "must be a joint"), ("upper", dict(shape=None, collide=True), "no shape to collide with"),
    ):
        before = {name: made[name] for name in ("knee", "upper", "rope")}
        with pytest.raises(da.ModelError, match=words):
            made.change(element, **changes)
        assert before == {name: made[name] for name in before}
    old = made["upper"]
    made.change("upper", mass=2.0)
    with pytest.raises(da.ModelError, match="changed since"):
        made.joint("new", da.Revolute(), "world", old)


@pytest.mark.parametrize("formulation", [da.Variational(dt=0.002), da.Reduced(dt=0.002)], ids=["variational", "reduced"])
def test_an_attached_mechanism_moves_as_it_did_alone(formulation):
    turn, place = np.array([np.cos(0.4), 0, 0, np.sin(0.4)]), np.array([1.0, 2.0, 3.0])
    carrier = da.Mechanism("carrier")
    found = carrier.attach(leg(), prefix="left ", position=place, orientation=turn)
    assert found["hip"] is carrier["left hip"]
    carrier.attach(leg(), prefix="right ")
    both, alone = (da.Simulation(made, formulation).run(0.3) for made in (carrier, leg()))
    moved = Rotation.from_quat(turn, scalar_first=True).apply(alone.position.reshape(-1, 3)).reshape(alone.position.shape) + place
    np.testing.assert_allclose(both.position[:, :2], moved, atol=1e-11)
    np.testing.assert_allclose(both.position[:, 2:], alone.position, atol=1e-11)
    np.testing.assert_allclose(both.joint("left knee").force, alone.joint("knee").force, atol=1e-8)


def test_legs_on_a_trunk():
    robot = da.Mechanism("robot")
    robot.body("trunk", da.Box.from_corners((-1, -1, 0), (1, 1, 0.4), mass=10.0), orientation=(np.cos(0.3), 0, 0, np.sin(0.3)))
    robot.joint("lift", da.Prismatic(axis="z"), "world", "trunk", at=(0, 0, 0.2))
    for k, x in enumerate((-0.9, 0.9)):
        robot.attach(leg(), prefix=f"leg {k} ", on="trunk", position=(x, 0, 0))
    assert robot["leg 1 hip"].parent is robot["trunk"]
    sim = da.Simulation(robot, da.Variational(dt=0.005))
    assert sim.coordinates("leg 1 hip")[0] == pytest.approx(0.2)
    run = sim.run(0.2)
    assert run.constraint_violation().max() < 1e-10
    free = run.joint("lift").coordinates
    assert free[-1] < -0.1  # it falls


def test_what_cannot_be_attached_is_refused_and_nothing_added():
    carrier, ground, law = da.Mechanism("carrier"), da.Mechanism("ground"), da.Mechanism("law")
    carrier.body("trunk", da.Sphere(radius=1.0, mass=1.0))
    ground.ground()
    law.body("ball", da.Sphere(radius=1.0, mass=1.0))
    law.potential("well", "ball", lambda x, q: float(x @ x))
    for call, words in (
        (lambda: carrier.attach(ground, on="trunk"), "stands in the world"), (lambda: carrier.attach(law, position=(1, 0, 0)), "function of places in the world"),
        (lambda: carrier.attach(carrier.copy()), "choose another prefix"),
        (lambda: carrier.attach("leg"), "Mechanism"),  # type: ignore[arg-type]

        (lambda: carrier.attach(leg(), on="trunc"), "did you mean 'trunk'"),
    ):
        with pytest.raises(da.ModelError, match=words):
            call()
        assert [body.name for body in carrier.bodies] == ["trunk"]
    carrier.attach(law)
    carrier.attach(ground, prefix="the ")
    assert {"ball", "well", "the ground"} <= set(carrier._names)


def test_without_contacts_and_limits():
    made = da.zoo.quadruped()
    plain = made.without_contacts().without_limits()
    assert made.touches
    assert not plain.touches
    assert "ground" not in plain
