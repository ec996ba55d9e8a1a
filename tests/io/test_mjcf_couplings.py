"""Equalities, tendons, actuators and keyframes of MJCF files, against MuJoCo."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from robots import CASSIE, whole
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.mechanism.actuators import actuate

mujoco: Any = pytest.importorskip("mujoco")

ROBOT = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/>
<worldbody><site name="hook" pos="0 0 2"/>
 <body name="base" pos="0 0 1"><freejoint name="root"/><geom size="0.1" contype="0" conaffinity="0"/><site name="eye" pos="0.1 0 0" euler="0.1 0.2 0.3"/>
  <body name="one" pos="0.3 0 0"><joint name="j1" axis="0 1 0" ref="0.2"/><geom type="box" size="0.1 0.05 0.03" contype="0" conaffinity="0"/><site name="tip" pos="0.2 0.1 0"/>
   <body name="two" pos="0.3 0 0"><joint name="j2" type="slide" axis="1 0 0"/><geom type="box" size="0.1 0.05 0.03" contype="0" conaffinity="0"/>
    <body name="three" pos="0.3 0 0"><joint name="j3" axis="0 0 1"/><joint name="j4" axis="0 1 0"/><geom type="box" size="0.1 0.05 0.03" contype="0" conaffinity="0"/></body></body></body>
  <body name="arm" pos="-0.3 0 0"><joint name="b1" type="ball"/><geom type="box" size="0.1 0.05 0.03" pos="-0.1 0 0" contype="0" conaffinity="0"/></body></body>
</worldbody>
<tendon><fixed name="sum"><joint joint="j1" coef="0.5"/><joint joint="j2" coef="-2"/><joint joint="j4" coef="0.3"/></fixed>
 <fixed name="stiff" stiffness="3"><joint joint="j1" coef="1"/><joint joint="j2" coef="1"/></fixed>
 <spatial name="cord" stiffness="20" damping="2" springlength="0.4" range="0 5" limited="true" frictionloss="0.5"><site site="hook"/><site site="tip"/></spatial>
 <spatial name="slack" stiffness="20" springlength="0.4 0.5"><site site="eye"/><site site="tip"/></spatial></tendon>
<actuator><position name="lift" tendon="sum" kp="10" kv="2" gear="3" ctrlrange="-0.2 0.2"/><motor name="pull" tendon="cord" gear="-2" forcerange="-1 1"/>
 <general name="lag" joint="j3" dyntype="filter" dynprm="0.1" gainprm="4"/><motor name="twist" joint="b1" gear="1 0 0"/><intvelocity name="drift" joint="j1" kp="3"/></actuator>
<keyframe><key name="home" qpos="1 2 3 0.8 0.6 0 0 0.5 0.1 -0.4 0.7 0.6 0 0.8 0" qvel="0.1 0.2 0.3 1 -2 0.5 0.3 -0.2 0.4 0.9 0.2 -0.3 0.5" ctrl="0.1 0.5 0.2 0 0"/>
 <key name="rest"/></keyframe>
</mujoco>"""


def load(tmp_path, text: str = ROBOT, **options) -> da.Mechanism:
    (tmp_path / "model.xml").write_text(text)
    return da.load(tmp_path / "model.xml", **options)


def at_home():
    model = mujoco.MjModel.from_xml_string(ROBOT)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    return model, data


def test_a_keyframe_is_the_start(tmp_path):
    mechanism = load(tmp_path, keyframe="home", limits=False)
    simulation = da.Simulation(mechanism, da.Variational(dt=0.001))
    model, data = at_home()
    for name in ("base", "one", "two", "three", "arm"):
        turn = Rotation.from_quat(simulation.orientation[mechanism[name].index], scalar_first=True).as_matrix()
        np.testing.assert_allclose(turn, data.body(name).xmat.reshape(3, 3), atol=1e-9)
    mujoco.mj_energyVel(model, data)
    assert whole(simulation).kinetic == pytest.approx(data.energy[1], rel=1e-6)  # three hangs on a light body
    total = model.body_mass @ data.xipos / model.body_mass.sum()
    np.testing.assert_allclose(whole(simulation).center, total, atol=1e-12)
    momentum = sum(b.mass * simulation.velocity[b.index] for b in mechanism.bodies)
    mujoco.mj_subtreeVel(model, data)
    np.testing.assert_allclose(momentum, model.body_mass.sum() * data.subtree_linvel[0], atol=1e-9)
    assert mechanism.actuators["lift"].control == 0.1
    assert load(tmp_path, keyframe=1).actuators["lift"].control == 0.0
    with pytest.raises(da.ModelError, match="no keyframe 'away'; the file has: home, rest"):
        load(tmp_path, keyframe="away")


def test_actuators_on_tendons(tmp_path):
    mechanism = load(tmp_path, keyframe="home")
    simulation = da.Simulation(mechanism, da.Variational(dt=0.001))
    model, data = at_home()
    data.ctrl[:] = 0.4, 0.3, 0.0, 0.0, 0.0
    mujoco.mj_forward(model, data)
    forces = actuate(mechanism, simulation, {"lift": 0.4, "pull": 0.3, "lag": 0.0})
    lift, pull = (float(data.actuator(name).force[0]) for name in ("lift", "pull"))
    for joint, weight in (("j1", 0.5), ("j2", -2.0), ("j4", 0.3)):
        assert forces[joint] == pytest.approx(3.0 * weight * lift, rel=1e-9)
    assert forces["cord"] == pytest.approx(-2.0 * pull, rel=1e-9)
    assert float(simulation.coordinates("cord")[0]) == pytest.approx(float(data.tendon("cord").length[0]), rel=1e-9)
    held = actuate(mechanism, simulation, {})  # the keyframe's own controls
    assert held["cord"] == pytest.approx(-2.0 * 0.5)


def test_what_cannot_be_held_is_reported(tmp_path):
    mechanism = load(tmp_path)
    told = "\n".join(mechanism.report)
    for words in (
        "tendon 'stiff' runs over 2 joints", "tendon 'slack': a spring that is slack between 0.4 and 0.5 m",
        "actuator 'lag': its control acts at once, without the filter of 0.1 s", "actuator 'twist' is not simulated", "actuator 'drift' is not simulated",
    ):
        assert words in told, words
    cord = mechanism["cord"].type
    assert (cord.stiffness, cord.damping, cord.rest, cord.friction, cord.drive) == ((20.0,), (2.0,), (0.4,), (0.5,), ("force",))
    assert cord.limits == ((-np.inf, 5.0),)
    with pytest.raises(da.ModelError, match="strict=True"):
        load(tmp_path, strict=True)


def test_a_tendon_moves_as_mujocos(tmp_path):
    text = ROBOT.replace('frictionloss="0.5"', "").replace('<option gravity="0 0 0"/>', '<option gravity="0 0 -9.81" timestep="0.0002" integrator="RK4"/>')
    text = text.replace('<fixed name="stiff" stiffness="3">', '<fixed name="stiff">').replace('name="slack" stiffness="20"', 'name="slack"')
    mechanism = load(tmp_path, text)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION | mujoco.mjtDisableBit.mjDSBL_LIMIT
    data = mujoco.MjData(model)
    for _ in range(2500):
        mujoco.mj_step(model, data)
    mujoco.mj_kinematics(model, data)
    errors = []
    for dt in (0.002, 0.001):
        trajectory = da.Simulation(mechanism, da.Variational(dt=dt)).run(0.5)
        turns = [Rotation.from_quat(trajectory.orientation[-1, mechanism[n].index], scalar_first=True).as_matrix() - data.body(n).xmat.reshape(3, 3) for n in ("base", "one", "arm")]
        errors.append(np.abs(turns).max())
    assert errors[1] < 1e-4
    assert errors[0] / errors[1] > 3.0


def test_a_rope_stops_a_fall(tmp_path):
    mechanism = load(tmp_path, """<mujoco><worldbody><site name="top" pos="0 0 1"/>
      <body name="weight" pos="0.1 0 0.9"><freejoint/><geom size="0.05" contype="0" conaffinity="0"/><site name="ring"/></body></worldbody>
      <tendon><spatial name="rope" range="0 0.5" limited="true"><site site="top"/><site site="ring"/></spatial></tendon></mujoco>""")
    trajectory = da.Simulation(mechanism, da.Variational(dt=0.002)).run(2.0)
    length = np.linalg.norm(trajectory.position[:, 0] - (0, 0, 1), axis=1)
    assert length.max() == pytest.approx(0.5, abs=1e-8)
    assert length.max() <= 0.5 + 1e-9


EQUAL = """<mujoco><compiler angle="radian"/><worldbody>
 <body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0"/><geom size="0.1" contype="0" conaffinity="0"/><site name="sa" pos="0.1 0.2 0" euler="0.3 0 0"/></body>
 <body name="b" pos="1 0 1"><freejoint/><geom size="0.1" contype="0" conaffinity="0"/><site name="sb" pos="0 0.1 0.1" euler="0 0.4 0"/></body>
 <body name="c" pos="2 0 1"><joint name="jc" axis="0 1 0" ref="0.1"/><geom size="0.1" pos="0.1 0 0" contype="0" conaffinity="0"/></body>
 <body name="d" pos="3 0 1"><joint name="jd" type="slide" axis="1 0 0"/><geom size="0.1" contype="0" conaffinity="0"/></body>
</worldbody><tendon><fixed name="t"><joint joint="jc" coef="2"/><joint joint="jd" coef="-1"/></fixed>
 <fixed name="three"><joint joint="jc" coef="2"/><joint joint="jd" coef="-1"/><joint joint="ja" coef="1"/></fixed>
 <spatial name="rod"><site site="sa"/><site site="sb"/></spatial></tendon>
<equality>%s</equality></mujoco>"""


def relative(simulation, one: str, two: str) -> tuple[np.ndarray, Rotation]:
    """Position and turn of body two in body one, of frames that lie at the centres of mass."""
    a, b = (simulation.mechanism[n].index for n in (one, two))
    turns = Rotation.from_quat(simulation.orientation[[a, b]], scalar_first=True)
    return turns[0].inv().apply(simulation.position[b] - simulation.position[a]), turns[0].inv() * turns[1]


def test_welds_and_connections(tmp_path):
    start = da.Simulation(load(tmp_path, EQUAL % '<weld body1="a" body2="b" relpose="0.5 0.1 0.2 0.8 0 0.6 0"/>'), da.Variational(dt=0.01))
    place, turn = relative(start, "a", "b")
    np.testing.assert_allclose(place, (0.5, 0.1, 0.2), atol=1e-9)
    np.testing.assert_allclose((turn * Rotation.from_quat((0.8, 0, 0.6, 0), scalar_first=True).inv()).magnitude(), 0.0, atol=1e-9)
    start = da.Simulation(load(tmp_path, EQUAL % '<weld site1="sa" site2="sb"/>'), da.Variational(dt=0.01))
    place, turn = relative(start, "a", "b")
    frames = [Rotation.from_euler("XYZ", angles) for angles in ((0.3, 0, 0), (0, 0.4, 0))]
    np.testing.assert_allclose(((frames[0].inv() * turn) * frames[1]).magnitude(), 0.0, atol=1e-9)
    np.testing.assert_allclose(place + turn.apply((0, 0.1, 0.1)), (0.1, 0.2, 0), atol=1e-9)
    start = da.Simulation(load(tmp_path, EQUAL % '<connect body1="a" body2="b" anchor="0.5 0 0"/>'), da.Variational(dt=0.01))
    place, turn = relative(start, "a", "b")
    np.testing.assert_allclose(place + turn.apply((-0.5, 0, 0)), (0.5, 0, 0), atol=1e-9)


def test_couplings_of_coordinates(tmp_path):
    def coordinates(equality: str) -> dict[str, float]:
        simulation = da.Simulation(load(tmp_path, EQUAL % equality), da.Variational(dt=0.01))
        simulation.run(0.05)
        return {name: float(simulation.coordinates(name)[0]) for name in ("ja", "jc", "jd")}

    assert coordinates('<joint joint1="ja" polycoef="0.3 0 0 0 0"/>')["ja"] == pytest.approx(0.3, abs=1e-9)
    assert coordinates('<joint joint1="jd" polycoef="-0.2"/>')["jd"] == pytest.approx(-0.2, abs=1e-9)
    tied = coordinates('<joint joint1="jc" joint2="ja" polycoef="0.1 0.5"/>')
    assert tied["jc"] == pytest.approx(0.1 + 0.5 * tied["ja"], abs=1e-9)
    tied = coordinates('<tendon tendon1="t" polycoef="0.05"/>')
    assert 2 * tied["jc"] - tied["jd"] == pytest.approx(0.05, abs=1e-9)
    held = load(tmp_path, EQUAL % '<tendon tendon1="rod"/>')
    assert isinstance(held["equality 0"].type, da.Distance)
    for equality, why in (
        ('<tendon tendon1="three"/>', "runs over 3 joints"), ('<tendon tendon1="t" tendon2="three"/>', "ties two tendons"),
        ('<joint joint1="jc" joint2="ja" polycoef="0 1 2 0 0"/>', "straight lines"), ('<joint joint1="jc" joint2="ja" active="false"/>', "not active"),
    ):
        assert any(why in line for line in load(tmp_path, EQUAL % equality).report)


@pytest.mark.skipif(not CASSIE.is_file(), reason="the model of Cassie is not there")
def test_a_keyframe_with_loops_is_closed():
    cassie = da.load(CASSIE, keyframe="home", contacts=False)
    simulation = da.Simulation(cassie, da.Variational(dt=0.002))
    model = mujoco.MjModel.from_xml_path(str(CASSIE))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    apart = [np.abs(simulation.position[b.index] - data.body(b.name).xipos).max() for b in cassie.bodies]
    assert max(apart) < 5e-3  # the keyframe's loops are open by millimetres
    assert simulation.run(0.01).constraint_violation().max() < 1e-9
