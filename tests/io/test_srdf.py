"""SRDF files beside URDF files: which links pass through one another, and poses by name."""
from __future__ import annotations

import numpy as np
import pytest
from robots import find

import dalembert as da

pytest.importorskip("yourdfpy")

BALL = """<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius="0.1"/></geometry></collision>"""
#: three balls one after the other on a rail above a fixed one, and a fourth that follows the first
BALLS = f"""<robot name="balls">
  <link name="base">{BALL}</link>
  {"".join(f'<link name="{name}">{BALL}</link>' for name in ("one", "two", "three", "shadow"))}
  {"".join(
      f'<joint name="{name} slide" type="prismatic"><parent link="base"/><child link="{name}"/><origin xyz="{x} 0 1"/><axis xyz="1 0 0"/><limit lower="-2" upper="2"/>{more}</joint>'
      for name, x, more in (("one", 0, ""), ("two", 0.5, ""), ("three", 1, ""), ("shadow", 3, '<mimic joint="one slide"/>'))
  )}
</robot>"""
SAID = """<robot name="balls"><group name="all"><link name="one"/><joint name="one slide"/></group>
  <group_state name="near" group="all"><joint name="root" value="0 0 2 0 0 0.6 0.8"/><joint name="one slide" value="0.1"/><joint name="two slide" value="5"/>
    <joint name="shadow slide" value="1"/><joint name="lost" value="0"/></group_state>
  <virtual_joint name="root" type="floating" parent_frame="world" child_link="base"/>
  <disable_collisions link1="one" link2="two" reason="Never"/><disable_collisions link1="one" link2="nobody"/>
  <rotor_params><joint name="one slide" mass="1"/></rotor_params>
</robot>"""


def load(folder, said=SAID, **options):
    (folder / "balls.urdf").write_text(BALLS)
    (folder / "balls.srdf").write_text(said)
    return da.load(folder / "balls.urdf", srdf=folder / "balls.srdf", **options)


def meet(mechanism, moving: str, other: str) -> bool:
    """Whether a ball that is shot along the rail pushes another one."""
    sim = da.Simulation(mechanism, da.Variational(dt=0.005))
    sim.set_joint(f"{moving} slide", rate=4.0)
    run = sim.run(0.2)
    return bool(abs(run.joint(f"{other} slide").rates[-1]) > 0.1)


def test_links_of_disabled_pairs_pass_through_one_another(tmp_path):
    mechanism = load(tmp_path)
    assert not meet(mechanism, "one", "two")
    assert meet(load(tmp_path), "two", "three")
    assert not meet(load(tmp_path, self_collisions=False), "two", "three")
    assert not meet(da.load(tmp_path / "balls.urdf"), "two", "three")


def test_a_link_collides_with_those_alone_that_are_enabled(tmp_path):
    said = '<robot><disable_default_collisions link="two"/><enable_collisions link1="one" link2="two"/></robot>'
    assert meet(load(tmp_path, said), "one", "two")
    assert not meet(load(tmp_path, said), "two", "three")


def test_a_pose_is_the_start(tmp_path):
    mechanism = load(tmp_path, keyframe="near", base="free")
    sim = da.Simulation(mechanism, da.Variational(dt=0.01))
    assert [sim.coordinates(f"{name} slide")[0] for name in ("one", "two", "shadow")] == pytest.approx([0.1, 2.0, 0.1])
    np.testing.assert_allclose(sim.position[0], [0, 0, 2], atol=1e-12)
    np.testing.assert_allclose(sim.orientation[0], [0.8, 0, 0, 0.6], atol=1e-12)
    held = da.Simulation(load(tmp_path, keyframe="near"), da.Variational(dt=0.01))
    np.testing.assert_allclose(held.mechanism["base collision"].position, 0, atol=1e-12)
    said = "\n".join(mechanism.report)
    for part in ("<rotor_params> is left out", "collisions of 'nobody'", "at the end of its limits, [2.0], and not at [5.0]", "'lost', which does not move"):
        assert part in said


def test_what_is_wrong_with_it_is_said(tmp_path):
    with pytest.raises(da.ModelError, match=r"balls.srdf has no pose 'neer'; did you mean 'near'"):
        load(tmp_path, keyframe="neer")
    with pytest.raises(da.ModelError, match="'one slide' must be finite numbers, got 'up'"):
        load(tmp_path, SAID.replace('value="0.1"', 'value="up"'))
    with pytest.raises(da.ModelError, match="no SRDF file: its root is <mujoco>"):
        load(tmp_path, "<mujoco/>")
    with pytest.raises(da.ModelError, match="there is no such file"):
        da.load(tmp_path / "balls.urdf", srdf=tmp_path / "none.srdf")
    with pytest.raises(da.ModelError, match="declares a document type"):
        load(tmp_path, "<!DOCTYPE robot><robot/>")
    with pytest.raises(da.ModelError, match="keyframe= says nothing about URDF files"):
        da.load(tmp_path / "balls.urdf", keyframe="near")
    da.zoo.pendulum(1).save(tmp_path / "one.json")
    with pytest.raises(da.ModelError, match="srdf= says nothing about native files"):
        da.load(tmp_path / "one.json", srdf=tmp_path / "balls.srdf")


def test_a_robot_stands_in_its_own_pose_and_touches_the_ground_alone():
    urdf = find("a1")
    robot = da.load(urdf, srdf=urdf.parents[1] / "srdf" / "a1.srdf", keyframe="standing", base="free")
    robot.ground()
    sim = da.Simulation(robot, da.Variational(dt=0.002))
    with pytest.raises(da.OverlapError) as found:
        sim.step()
    assert all("ground" in line for line in str(found.value).split("inside one another: ")[1].split(". Move")[0].split("; "))
    sim.resolve_overlaps()
    assert sim.coordinates("FL_thigh_joint")[0] == pytest.approx(0.8, abs=0.05)
    assert sim.run(0.05).constraint_violation().max() < 1e-8
