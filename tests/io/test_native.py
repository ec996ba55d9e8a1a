"""dalembert's own model files: a mechanism read back is the same, and so is its trajectory, to the last bit."""
from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robots import CASSIE, find

import dalembert as da
from dalembert import zoo
from dalembert.mechanism.actuators import Actuator
from dalembert.zoo.words import mechanisms

native = pytest.importorskip("dalembert.io.native")
pytest.importorskip("msgspec")
pytest.importorskip("tomli_w")

ROOT = Path(__file__).parents[2]


def everything() -> da.Mechanism:
    """Every joint of the table with laws on its directions, gears, forces, springs, visuals, all that touches, and a start."""
    mechanism = da.Mechanism("everything", gravity=(0.1, 0.2, -9.8))
    for i, kind in enumerate(da.JOINTS):
        body = mechanism.body(f"body {i}", da.Box(size=(0.1, 0.2, 0.3 + 0.01 * i), density=700.0), position=(i / 3, 0.1, 0.2), orientation=(1, 0.1 * i, 0.2, 0.3))
        free = kind().freedom
        laws: dict[str, Any] = dict(stiffness=3.3, damping=np.full(free, 0.1), rest=0.05) if free else {}
        if free and i % 2:
            laws |= dict(limits=(-1.0, None), friction=0.2 * i, restitution=0.5)
        at = ((i / 3, 0, 0), (i / 3 + 0.1, 0.1, 0.2)) if kind is da.Distance else (i / 3, 0, 0)
        mechanism.joint(f"joint {i}", kind(**laws), mechanism.world, body, at=at, frame=(0.3, 0.1, 0.2, 0.4))
    mechanism.joint("rotor", da.Revolute(axis=(1, 1, 0.3), armature=0.1, drive="force"), "body 2", "body 3", at=(0.9, 0, 0))
    shape = da.Composite(parts=[(da.Rod(length=1.0, radius=0.1, mass=1.0, axis=(1, 2, 3)), (0, 0, 1)), (da.Sphere(radius=0.2, mass=2.0), (0, 1, 0), (1, 1, 0, 0.1))])
    mechanism.body("composite", shape)
    mechanism.spring("tie", "body 1", "composite", at=((0.3, 0, 0), (0, 0, 1)), stiffness=10.0, damping=0.5)
    mechanism.gear("gear", "joint 1", "joint 2", ratio=0.5, offset=0.01)
    mechanism.wrench("composite", force=(1, 2, 3), torque=(0.1, 0, 0))
    mechanism.joint("axle", da.Cylindrical(axis=(0, 1, 3), servo=(None, da.Servo(stiffness=9.1, damping=0.3, target=0.2))), "body 4", "body 5", at=(1, 0, 0))
    mechanism.joint("slider", da.Prismatic(servo=da.Servo(stiffness=1 / 3, bound=7.0)), "body 5", "body 6", at=(1, 0, 0.1))
    points = [("body 1", (0.3, 0.01, 1 / 3)), ("world", (0.1, 0.2, 0.3)), ("composite", (0, 0, 1)), ("body 1", (0.4, 0, 0))]
    mechanism.path("line", points, stiffness=3.0, damping=1 / 7, length=1.1, drive="force")
    mechanism.cable("rope", points[:2], stiffness=1e3)
    mechanism.joint("hinge", da.Revolute(axis=(0, 1, 1)), "body 7", "body 8", at=(2, 0, 0))
    mechanism.joint("cross", da.Universal(), "body 8", "body 9", at=(2.5, 0, 0))
    mechanism.coordinate_map("bend", ["hinge", ("cross", 1), ("cross", 0)], matrix=[[1.0, 0.1], [1 / 3, 2.0], [0.2, 0.3]], offset=[0.0, 0.1, 1 / 7], near=0.1)
    strand = [(9.0, 1.0, 1 / 3), (9.1, 1.2, 0.3), (9.3, 1.4, 0.3), (9.7, 1.5, 0.1)]
    mechanism.strand("hair", strand, mass=0.1, stiffness=1 / 3, damping=0.01, length=1.3, attach={0: "body 9", -1: "world"}, radius=0.003, colour=(0.1, 0.2, 0.3, 1))
    mechanism.force("wind", "body 2", (1.0, 0.1, 1 / 3), at=(0.7, 0.2, 0.1))
    mechanism.force("thrust", "body 3", (0, 0, 1.0), follows=True)
    mechanism.drag("air", "composite", linear=0.3, angular=0.01)
    mechanism.penalty("mat", "body 4", point=(0, 0.1, 0.2), normal=(0.1, 0.2, 1.0), offset=-2.0, stiffness=1e3, damping=3.0, friction=0.5, tangential=10.0)
    mechanism.visual("composite", da.Mesh(np.eye(3), np.array([[0, 1, 2]])), position=(0.1, 0, 0), colour=(1, 0, 0, 0.5))
    mechanism.visual("world", da.Cylinder(radius=0.1, length=3.0, mass=1.0))
    mechanism.body("crate", da.Box(size=(0.1, 0.1, 0.1), mass=1.0), position=(9, 0, 1), collide=True)
    mechanism.joint("lid", da.Universal(limits=(None, (-0.3, 1.0 / 3.0))), "crate", "composite", at=(9, 0, 1))
    mechanism.ground(normal=(0.1, 0.2, 1.0), offset=-3.0, friction=0.7, restitution=0.1, layer=3, mask=5)
    mechanism.obstacle("stone", da.Convex(points=np.random.default_rng(1).normal(size=(9, 3)), mass=1.0), position=(20, 0, 0), orientation=(1, 0.3, 0.2, 0.1))
    mechanism.height_field(np.random.default_rng(2).uniform(-5, -4, (3, 4)), origin=(-1, -2), spacing=(0.7, 0.3), friction=0.2, name="hills")
    mechanism.collider("knob", "composite", da.Capsule(radius=0.1, length=0.2, mass=1.0, axis=(1, 1, 0)), position=(0, 0, 2), orientation=(1, 1, 0.1, 0), friction=0.9, layer=2, mask=2**40)
    mechanism.collider("hat", "body 2", da.Cone(radius=0.1, length=1 / 3, mass=1.0, axis=(1, 0.2, 0)), position=(0, 0.1, 2))
    mechanism.contact_point("body 3", point=(0, 0, 0.1), radius=0.01, friction=0.3)
    mechanism.contact_pair("crate", "knob", friction=0.1, restitution=0.3)
    mechanism.contact_pair("crate", "hills", collide=False)
    mechanism.actuators["pull"] = Actuator(name="pull", arms={"rotor": 2.0, "joint 1": -0.5}, gain=3.0, bias=(0.1, -1.0, 0.0), force_range=(-1, 2), control=0.5)
    mechanism.start("joint 2", 0.1, rate=0.2)
    mechanism.start("composite", linear=(1, 0, 0), angular=(0, 0, 2))
    mechanism.report.append("nothing was left out")
    return mechanism


def same(a, b) -> None:
    """Two values are identical, down to the bits of their arrays."""
    if isinstance(a, np.ndarray):
        b = np.asarray(b)  # an axis may be given as an array and come back as a tuple
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert set(a) == set(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif hasattr(a, "__dataclass_fields__") and not isinstance(a, da.Mechanism):
        assert type(a) is type(b)
        for field in fields(a):
            if field.name not in ("parent", "child", "first", "second", "density", "body", "bodies", "joints"):
                same(getattr(a, field.name), getattr(b, field.name))
    else:
        assert a == b


def same_mechanism(a: da.Mechanism, b: da.Mechanism) -> None:
    for field in fields(a):
        if field.name != "world":
            same(getattr(a, field.name), getattr(b, field.name))
    for x, y in zip(a.joints, b.joints):
        assert (x.parent.name, x.child.name) == (y.parent.name, y.child.name)
        same(x.type.basis, y.type.basis)
    for x, y in zip(a.paths, b.paths):
        assert [body.name for body in x.bodies] == [body.name for body in y.bodies]
    for x, y in zip(a.maps, b.maps):
        assert [joint.name for joint in x.joints] == [joint.name for joint in y.joints]
    for x, y in zip(a.strands, b.strands):
        assert [body.name for body in x.bodies] == [body.name for body in y.bodies]
    for name in ("colliders", "contact_points", "point_forces", "drags", "penalties"):
        assert [e.body.name for e in getattr(a, name)] == [e.body.name for e in getattr(b, name)]
    assert native.to_data(a) == native.to_data(b)


@pytest.mark.parametrize("ending", [".toml", ".json"])
@pytest.mark.parametrize("name", mechanisms())
def test_the_zoo_comes_back_bit_for_bit(name, ending, tmp_path):
    made = mechanisms()[name]()
    made.save(tmp_path / f"model{ending}")
    read = da.load(tmp_path / f"model{ending}")
    same_mechanism(made, read)
    dt = 1e-5 if name == "andrews_squeezer" else 1e-3
    if made.touches:
        dt = 0.01  # so that something touches within ten steps
    formulation = da.Variational(dt=dt) if all(joint.type.has_rows for joint in made.joints) else da.Reduced(dt=dt)
    runs = [da.Simulation(m, formulation).run(10 * dt) for m in (made, read)]
    for series in ("position", "orientation", "velocity", "angular_velocity"):
        np.testing.assert_array_equal(getattr(runs[0], series), getattr(runs[1], series))
    if made.touches:
        np.testing.assert_array_equal(runs[0].contacts().normal_force, runs[1].contacts().normal_force)


@pytest.mark.parametrize("ending", [".toml", ".json"])
def test_everything_comes_back(ending, tmp_path):
    made = everything()
    made.save(tmp_path / f"model{ending}")
    same_mechanism(made, da.load(tmp_path / f"model{ending}"))


@pytest.mark.parametrize("ending", [".toml", ".json"])
def test_forces_push_as_before(ending, tmp_path):
    made = zoo.pendulum(3)
    first, _, last = made.bodies
    made.body("cart", da.Box(size=(0.1, 0.1, 0.1), mass=1.0), position=(0, 1, 0))
    made.joint("motor", da.Prismatic(axis="y", servo=da.Servo(stiffness=50.0, damping=3.0, target=0.1, bound=9.0)), "world", "cart", at=(0, 1, 0))
    made.path("spring", [("world", (0, 1, 0)), (first, first.position), (last, last.position)], stiffness=20.0, damping=0.3, length=0.5)
    made.cable("rope", [("cart", (0, 1, 0)), (last, last.position)], stiffness=30.0, length=0.7)
    made.force("wind", last, (0, 1.0, 0.2), at=last.position + np.array([0, 0, 0.1]))
    made.drag("air", first, linear=0.3, angular=0.01)
    made.penalty("mat", last, normal=(0, 0.1, 1.0), offset=last.position[2] + 0.01, stiffness=100.0, damping=1.0, friction=0.5, tangential=2.0)
    made.save(tmp_path / f"model{ending}")
    runs = [da.Simulation(m, da.Variational(dt=0.01)).run(0.2) for m in (made, da.load(tmp_path / f"model{ending}"))]
    np.testing.assert_array_equal(runs[0].position, runs[1].position)
    assert np.abs(runs[0].body("cart").velocity).max() > 0.1


def test_contacts_and_limits_can_be_left_out(tmp_path):
    everything().save(tmp_path / "model.toml")
    bare = da.load(tmp_path / "model.toml", contacts=False, limits=False)
    assert not bare.touches
    assert [*bare.grounds, *bare.obstacles, *bare.terrains, *bare.colliders, *bare.contact_points, *bare.pair_laws] == []
    assert not any(joint.type.bounded for joint in bare.joints)
    with pytest.raises(da.ModelError, match="base= says nothing about native files"):
        da.load(tmp_path / "model.toml", base="free")
    with pytest.raises(da.ModelError, match=r"contacts=False, limits=False"):
        da.Simulation(da.load(tmp_path / "model.toml"), da.Implicit(dt=0.01, method="semi_implicit"))


@pytest.mark.parametrize("name", ["a1", "humanoid", "cassie"])
def test_robots_come_back(name, tmp_path):
    if name == "cassie" and not CASSIE.is_file():
        pytest.skip("the model of Cassie is not there")
    pytest.importorskip("mujoco")
    pytest.importorskip("yourdfpy")
    made = da.load(CASSIE if name == "cassie" else find(name))
    made.save(tmp_path / "model.json")
    same_mechanism(made, da.load(tmp_path / "model.json"))


def test_the_published_schema_is_that_of_the_code():
    assert json.loads((ROOT / "docs" / "model.schema.json").read_text(encoding="utf-8")) == native.schema()


def test_files_follow_the_schema():
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(json.loads(native.dumps(everything())), native.schema())


def broken(**changes):
    data = json.loads(native.dumps(zoo.double_pendulum()))
    for path, value in changes.items():
        target = data
        *way, last = path.split("__")
        for step in way:
            target = target[int(step)] if step.isdigit() else target[step]
        target[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(("text", "message"), [
    ("", "no valid JSON"),
    ("[1, 2]", "no model of dalembert"),
    ("{}", "missing required field"),
    (broken(format=99), "format 99"),
    (broken(colour="red"), "unknown field"),
    (broken(bodies__0__mass=-1.0), "mass must be positive"),
    (broken(bodies__0__mass="x"), "bodies"),
    (broken(bodies__0__inertia=[[1, 2, 3], [0, 1, 0], [0, 0, 1]]), "symmetric"),
    (broken(bodies__0__orientation=[1, 1, 0, 0]), "length one"),
    (broken(bodies__1__name="link 1"), "taken|name"),
    (broken(joints__0__type="Bent"), "unknown type 'Bent'"),
    (broken(joints__0__parameters={"colour": 1}), "no parameter 'colour'"),
    (broken(joints__0__parameters={"axis": [1, 0, 0], "spring": [3.0]}), "joint '.*': Revolute has no parameter 'spring': say stiffness="),
    (broken(joints__0__parameters={"axis": [1, 0, 0], "drive": ["position"]}), "joint '.*': Revolute: there is no drive='position'; say drive='motion'"),
    (broken(joints__0__frame_child=[[1, 0, 0], [0, 1, 0], [0, 0, 2]]), "rotation matrix"),
    (broken(joints__0__parent="nobody"), "no element named 'nobody'"),
    (broken(joints__0__point_child=[0, 0]), "3 numbers"),
    (broken(visuals=[{"position": [0, 0, 0], "orientation": [1, 0, 0, 0]}]), "either a shape or a mesh"),
    (broken(visuals=[{"mesh": {"vertices": "AAAA", "faces": ""}, "position": [0, 0, 0], "orientation": [1, 0, 0, 0]}]), "damaged"),
    (broken(start=[{"value": 1.0}]), "names a joint or a body"),
    (broken(joints__0__parameters={"axis": [1, 0, 0], "limits": [[1, -1]]}), "lower one must lie below"),
    (broken(joints__0__parameters={"axis": [1, 0, 0], "friction": [-1.0]}), "must not be negative"),
    (broken(grounds=[{"name": "g", "friction": -1.0, "normal": [0, 0, 1]}]), "must not be negative"),
    (broken(grounds=[{"name": "g", "friction": 1.0, "normal": [0, 0, 2]}]), "length one"),
    (broken(grounds=[{"name": "link 1", "friction": 1.0, "normal": [0, 0, 1]}]), "taken"),
    (broken(obstacles=[{"name": "o", "friction": 1.0, "shape": {"type": "Blob"}}]), "unknown shape"),
    (broken(colliders=[{"name": "c", "body": "nobody", "shape": {"type": "Sphere", "radius": 1.0, "mass": 1.0}}]), "nobody"),
    (broken(colliders=[{"name": "c", "body": "link 1", "layer": 0.5, "shape": {"type": "Sphere", "radius": 1.0, "mass": 1.0}}]), "layer"),
    (broken(terrains=[{"name": "t", "friction": 1.0, "heights": [[0.0]], "origin": [0, 0], "spacing": [1, 1]}]), "grid"),
    (broken(pairs=[{"between": ["link 1"]}]), "between two"),
    (broken(bodies__0__collide=True, bodies__0__shape=None), "no shape to collide"),
    (broken(loads=[{"body": "link 1"}]), "'loads', which is now called 'wrenches'"),
    (broken(wrenches=[{"body": "nobody"}]), "no element named 'nobody'"),
    (broken(joints__0__parameters={"servo": [3.0]}), "a servo of joint '.*' has stiffness and may have"),
    (broken(joints__0__parameters={"servo": {"stiffness": -1.0}}), "joint '.*': Servo: stiffness must not be negative"),
    (broken(joints__0__parameters={"servo": {"stiffness": 1.0, "bound": 0.0}}), "joint '.*': Servo: bound must be positive"),
    (broken(paths=[{"name": "p", "rest": 1.0, "points": [{"body": "link 1", "point": [0, 0, 0]}]}]), "path 'p' needs two points or more, got 1"),
    (broken(paths=[{"name": "p", "rest": -1.0, "points": [{"body": "link 1", "point": [0, 0, 0]}, {"body": "world", "point": [9, 0, 0]}]}]), "path 'p': length must not be"),
    (broken(forces=[{"name": "f", "body": "world", "force": [0, 0, 1]}]), "force 'f' on the world"),
    (broken(drags=[{"name": "d", "body": "link 1", "linear": -1.0}]), "drag 'd': linear must not be negative"),
    (broken(penalties=[{"name": "s", "body": "link 1", "normal": [0, 0, 2], "stiffness": 1.0}]), "length one"),
    (broken(actuators=[{"name": "a", "arms": {"link 1": 1.0}}]), "needs joints"),
])
def test_bad_files(text, message, tmp_path):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(da.ModelError, match=message):
        da.load(tmp_path / "bad.json")


def test_what_cannot_be_written(tmp_path, monkeypatch):
    mechanism = zoo.pendulum()
    with pytest.raises(da.ModelError, match="ending"):
        mechanism.save(tmp_path / "model.yaml")
    with pytest.raises(FileNotFoundError):
        mechanism.save(tmp_path / "none" / "model.json")
    link = mechanism.bodies[0]
    mechanism.path("muscle", [(mechanism.world, (1, 1, 1)), (link, link.position)], law=lambda length, rate: 0.0)
    mechanism.potential("field", link, lambda x, q: 0.0)
    mechanism.constraint("rail", link, lambda x, q: 0.0)
    mechanism.coordinate_map("bend", [mechanism.joints[0]], function=lambda y: y)
    for ending in ("json", "toml"):
        with pytest.raises(da.ModelError, match=r"Python function.*path 'muscle'.*force law 'field'.*constraint 'rail'.*coordinate map 'bend'"):
            mechanism.save(tmp_path / f"model.{ending}")
    assert not list(tmp_path.iterdir())
    monkeypatch.setitem(sys.modules, "msgspec", None)
    with pytest.raises(da.MissingExtraError, match=r"dalembert\[model\]"):
        zoo.pendulum().save(tmp_path / "model.json")
