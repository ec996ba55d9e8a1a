"""SDF files: poses in any frame, joints in loops, static models, several models, sensors; what is wrong is named."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dalembert as da

BOX = """<inertial><mass>{m}</mass><pose>{com} 0 0 0</pose><inertia><ixx>0.01</ixx><iyy>0.02</iyy><izz>0.03</izz></inertia></inertial>
<visual name="look"><geometry><box><size>1 .1 .1</size></box></geometry><material><diffuse>1 0 0 1</diffuse></material></visual>"""


def put(folder: Path, text: str, name: str = "model.sdf") -> Path:
    (folder / name).write_text(f'<sdf version="1.9">{text}</sdf>')
    return folder / name


def pendulum(second_pose: str) -> str:
    return f"""<model name="arm"><pose>0 0 2 0 0 0</pose>
    <link name="upper">{BOX.format(m=1, com="0.5 0 0")}</link>
    <link name="lower">{second_pose}{BOX.format(m=2, com="0.5 0 0")}</link>
    <joint name="shoulder" type="revolute"><parent>world</parent><child>upper</child><axis><xyz>0 1 0</xyz><limit><effort>5</effort></limit></axis></joint>
    <joint name="elbow" type="continuous"><parent>upper</parent><child>lower</child><axis><xyz expressed_in="__model__">0 1 0</xyz><dynamics><damping>0.1</damping></dynamics></axis>
    <sensor name="wrist" type="force_torque"/></joint></model>"""


@pytest.mark.parametrize("pose", [
    "<pose>1 0 0 0 0.3 0</pose>", '<pose relative_to="upper">1 0 0 0 0.3 0</pose>', '<pose relative_to="world" degrees="true">1 0 2 0 17.188733853924695 0</pose>',
    '<pose rotation_format="quat_xyzw">1 0 0 0 0.14943813247359922 0 0.9887710779360422</pose>',
])
def test_poses_in_every_way(tmp_path: Path, pose: str):
    """The same arm however the second link's place is written, and the same as one that was built here."""
    found = da.load(put(tmp_path, pendulum(pose)))
    built = da.Mechanism("arm")
    tilt = (np.cos(0.15), 0.0, np.sin(0.15), 0.0)
    built.body("upper", mass=1.0, inertia=np.diag([0.01, 0.02, 0.03]), position=(0.5, 0, 2))
    built.body("lower", mass=2.0, inertia=np.diag([0.01, 0.02, 0.03]), position=(1 + 0.5 * np.cos(0.3), 0, 2 - 0.5 * np.sin(0.3)), orientation=tilt)
    built.joint("shoulder", da.Revolute(axis="y"), "world", "upper", at=(0, 0, 2))
    built.joint("elbow", da.Revolute(axis="y", damping=0.1), "upper", "lower", at=(1, 0, 2))
    runs = [da.Simulation(m, da.Variational(dt=1e-3)).run(0.3) for m in (found, built)]
    assert np.allclose(runs[0].position, runs[1].position, atol=1e-9)
    assert found.actuators["shoulder"].force_range == (-5.0, 5.0)
    assert runs[0].sensor("wrist").values.shape == (301, 6)


def test_loop_with_a_child_that_is_the_world(tmp_path: Path):
    """A four-bar: joints in a circle, one of them from a link to the world, with its coordinate turned round."""
    def link(name: str, pose: str) -> str:
        return f'<link name="{name}"><pose>{pose}</pose>{BOX.format(m=1, com="0.5 0 0")}</link>'

    def hinge(name: str, parent: str, child: str, pose: str, extra: str = "") -> str:
        return f'<joint name="{name}" type="revolute"><pose relative_to="__model__">{pose}</pose><parent>{parent}</parent><child>{child}</child><axis><xyz>0 1 0</xyz>{extra}</axis></joint>'

    turn = f"0 {-np.pi / 2} 0"
    text = '<model name="four bar">' + link("a", f"0 0 0 {turn}") + link("b", "0 0 1 0 0 0") + link("c", f"1 0 0 {turn}")
    limits = "<limit><lower>-0.1</lower><upper>2</upper></limit>"
    text += hinge("1", "world", "a", "0 0 0 0 0 0") + hinge("2", "a", "b", "0 0 1 0 0 0") + hinge("3", "b", "c", "1 0 1 0 0 0") + hinge("4", "c", "world", "1 0 0 0 0 0", limits) + "</model>"
    m = da.load(put(tmp_path, text))
    assert (len(m.bodies), len(m.joints)) == (3, 4)
    assert m["4"].parent is m.world
    sim = da.Simulation(m, da.Variational(dt=1e-3))
    sim.set_joint("1", 0.05)
    assert sim.coordinates("4")[0] == pytest.approx(-0.05, abs=1e-9)  # of the world against the link
    run = sim.run(0.2)
    assert run.constraint_violation().max() < 1e-8
    assert np.allclose(run.joint("1").coordinates, -run.joint("4").coordinates, atol=1e-8)


WORLD = """<world name="room"><gravity>0 0 -5</gravity><include><uri>model://sun</uri></include>
<model name="floor"><static>true</static><link name="link"><collision name="plane"><geometry><plane><normal>0 0 1</normal></plane></geometry>
<surface><friction><ode><mu>0.3</mu></ode></friction></surface></collision></link></model>
<model name="wall"><static>1</static><pose>0.5 0 0.5 0 0 0</pose><link name="link"><collision name="box"><geometry><box><size>.1 1 1</size></box></geometry></collision></link></model>
{boxes}</world>"""
CRATE = """<model name="{name}"><pose>{pose}</pose><link name="link"><inertial><mass>2</mass><inertia><ixx>.01</ixx><iyy>.01</iyy><izz>.01</izz></inertia></inertial>
<collision name="box"><geometry><box><size>.2 .2 .2</size></box></geometry></collision><sensor name="imu of {name}" type="imu"><pose>0.1 0 0 0 0 0</pose></sensor></link></model>"""


def test_world_of_several_models(tmp_path: Path):
    """Crates of two models lie on the floor and on one another; the world's gravity counts; a wall stands."""
    boxes = CRATE.format(name="low", pose="0 0 0.1 0 0 0") + CRATE.format(name="high", pose="0.02 0 0.3 0 0 0")
    m = da.load(put(tmp_path, WORLD.format(boxes=boxes), "room.world"))
    assert [b.name for b in m.bodies] == ["low::link", "high::link"]
    assert len(m.grounds) == len(m.obstacles) == 1
    assert any("include" in line for line in m.report)
    run = da.Simulation(m, da.Variational(dt=5e-3)).run(0.1)
    assert np.allclose(run.position[-1, :, 2], [0.1, 0.3], atol=1e-6)
    assert np.allclose(run.contacts().of("low::link", "floor::link plane").total_force()[-1], (0, 0, 20), atol=1e-4)
    assert np.allclose(run.sensor("imu of high").values[-1, :3], (0, 0, 5), atol=1e-4)


def test_base_and_contacts(tmp_path: Path):
    text = CRATE.format(name="crate", pose="0 0 1 0 0 0")
    assert not da.load(put(tmp_path, text)).joints
    assert len(da.load(tmp_path / "model.sdf", base="fixed").joints) == 1
    assert not da.load(tmp_path / "model.sdf", contacts=False).colliders


def test_a_cone(tmp_path: Path):
    """Described from the middle of its length, with its tip up: it stands on its base."""
    cone = "<geometry><cone><radius>0.2</radius><length>0.4</length></cone></geometry>"
    link = f'<link name="link"><inertial><mass>2</mass><pose>0 0 -0.1 0 0 0</pose></inertial><visual name="look">{cone}</visual><collision name="hull">{cone}</collision></link>'
    m = da.load(put(tmp_path, f'<model name="hat"><pose>0 0 0.2 0 0 0</pose>{link}</model>'))
    assert not any("hull" in line for line in m.report)
    m.ground()
    run = da.Simulation(m, da.Variational(dt=5e-3)).run(0.1)
    assert np.allclose(run.position[-1, 0], (0, 0, 0.1), atol=1e-6)
    assert len(run.contacts().at(-1).point) == 8
    shape = m.visuals["link"][0]
    assert np.allclose(shape.position, 0.0, atol=1e-12)


def test_kinds_of_joints(tmp_path: Path):
    parts = "".join(f'<link name="{k}"><pose>0 0 {k} 0 0 0</pose>{BOX.format(m=1, com="0 0 0")}</link>' for k in range(7))
    axes = "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>"
    kinds = ["fixed", "ball", "universal", "prismatic", "screw", "gearbox", "revolute"]
    joints = "".join(f'<joint name="j{k}" type="{kind}"><parent>{"world" if k == 0 else k - 1}</parent><child>{k}</child>{axes}<screw_thread_pitch>0.2</screw_thread_pitch></joint>' for k, kind in enumerate(kinds))
    m = da.load(put(tmp_path, f'<model name="all">{parts}{joints}</model>'))
    assert [type(j.type).__name__ for j in m.joints] == ["Fixed", "Spherical", "Universal", "Prismatic", "Helical", "Revolute"]
    assert m["j4"].type.pitch == 0.2
    assert any("gearbox" in line for line in m.report)


def test_a_universal_joint_from_either_end(tmp_path: Path):
    """The same joint written from the world to the link and from the link to the world: the same motion, coordinates in turn."""
    def hung(parent: str, child: str, first: str, second: str) -> da.Trajectory:
        axes = f"<axis><xyz>{first}</xyz></axis><axis2><xyz>{second}</xyz></axis2>"
        joint = f'<joint name="j" type="universal"><pose relative_to="__model__">0 0 0 0 0 0</pose><parent>{parent}</parent><child>{child}</child>{axes}</joint>'
        m = da.load(put(tmp_path, f'<model name="m"><link name="l"><pose>0 0 0 0 0 0</pose>{BOX.format(m=1, com="0.5 0.2 -0.1")}</link>{joint}</model>'))
        return da.Simulation(m, da.Variational(dt=1e-3)).run(0.2)

    down, up = hung("world", "l", "1 0 0", "0 1 0"), hung("l", "world", "0 1 0", "1 0 0")
    assert np.allclose(down.position, up.position, atol=1e-12)
    assert np.allclose(down.joint("j").coordinates, -up.joint("j").coordinates, atol=1e-12)


@pytest.mark.parametrize(("text", "words"), [
    ("", "no models"), ('<model name="a"/>', "no links that move"), ('<model name="a"><link/></model>', "a link has no name"),
    ('<model name="a"><link name="l"><pose>1 2 three</pose></link></model>', "6 numbers"),
    ('<model name="a"><link name="l"><pose relative_to="nothing">0 0 0 0 0 0</pose></link></model>', "does not exist"),
    ('<model name="a"><link name="l"><pose relative_to="k">0 0 0 0 0 0</pose></link><link name="k"><pose relative_to="l">0 0 0 0 0 0</pose></link></model>', "circle"),
    ('<model name="a"><link name="l"/><joint name="j" type="fixed"><parent>l</parent><child>k</child></joint></model>', "does not exist"),
    ('<model name="a"><link name="l"/><joint name="j" type="revolute"><parent>world</parent><child>l</child><axis><xyz>0 0 0</xyz></axis></joint></model>', "must not be zero"),
    ('<model name="a"><link name="l"><inertial><mass>-1</mass></inertial></link></model>', "mass"),
    ('<model name="a"><link name="l"/><link name="l"/></model>', "two frames"),
])
def test_mistakes_are_named(tmp_path: Path, text: str, words: str):
    with pytest.raises(da.ModelError, match=words):
        da.load(put(tmp_path, text))
