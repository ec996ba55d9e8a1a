"""Tendons and actuators of MJCF files pull as MuJoCo's do, at random states."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.mechanism.actuators import actuate

mujoco: Any = pytest.importorskip("mujoco")

ARM = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><default><geom contype="0" conaffinity="0" type="box" size="0.1 0.05 0.03"/></default>
<worldbody><site name="w" pos="0 0.3 1.2"/><site name="w2" pos="0.4 0.5 1.1"/>
 <body name="a" pos="0 0 1"><joint name="j1" axis="0 1 0.2" ref="0.2"/><geom/><site name="a1" pos="0.1 0.1 0"/><site name="a2" pos="-0.1 0.05 0.1"/>
  <body name="b" pos="0.4 0 0"><joint name="j2" axis="0 0 1"/><geom/><site name="b1" pos="0.1 -0.1 0"/><site name="b2" pos="0.15 -0.1 0.1"/>
   <body name="c" pos="0.4 0 0"><joint name="j3" axis="1 0 0" type="slide" ref="-0.1"/><geom/><site name="c1" pos="0.1 0 0.1"/></body></body></body>
</worldbody>
<tendon>%s</tendon><actuator>%s</actuator>%s</mujoco>"""
LINES = {
    "through four": '<spatial name="t" stiffness="30" damping="2" springlength="0.7"><site site="w"/><site site="a1"/><site site="b1"/><site site="c1"/></spatial>',
    "twice on a body": '<spatial name="t" stiffness="30" springlength="0.7"><site site="w"/><site site="b1"/><site site="b2"/><site site="a2"/><site site="c1"/></spatial>',
    "via the world": '<spatial name="t" stiffness="30" damping="1"><site site="a1"/><site site="w"/><site site="w2"/><site site="c1"/></spatial>',
    "a cable": '<spatial name="t" stiffness="30" springlength="0 1.4"><site site="w"/><site site="b1"/><site site="c1"/></spatial>',
    "a cable with a damper": '<spatial name="t" stiffness="30" damping="2" springlength="0 1.4"><site site="w"/><site site="b1"/><site site="c1"/></spatial>',
    "straight": '<spatial name="t" stiffness="30" damping="2" springlength="0.2"><site site="w"/><site site="c1"/></spatial>',
    "straight with friction": '<spatial name="t" stiffness="30" damping="2" springlength="0 0.2" frictionloss="0.1"><site site="w"/><site site="c1"/></spatial>',
}
STATES = [(np.random.default_rng(k).uniform(-0.5, 0.5, 3), np.random.default_rng(10 + k).normal(size=3)) for k in range(4)]


def load(tmp_path, text: str, **options) -> da.Mechanism:
    (tmp_path / "model.xml").write_text(text)
    return da.load(tmp_path / "model.xml", **options)


def both(tmp_path, text: str, q: np.ndarray, v: np.ndarray, control: Any = (), **options) -> tuple[Any, da.Simulation]:
    """MuJoCo's data and our simulation at coordinates (from the reference) and rates."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = model.qpos0 + q, v, control
    mujoco.mj_forward(model, data)
    simulation = da.Simulation(load(tmp_path, text, **options), da.Variational(dt=1e-3))
    for k, name in enumerate(("j1", "j2", "j3")):
        simulation.set_joint(name, q[k], rate=v[k])
    return data, simulation


def on_joints(simulation: da.Simulation, q: np.ndarray, force: float) -> np.ndarray:
    """Forces on the three joints of a tension: its work on small motions of each."""
    found = []
    for k, name in enumerate(("j1", "j2", "j3")):
        lengths = []
        for step in (1e-6, -1e-6):
            simulation.set_joint(name, q[k] + step)
            lengths.append(simulation.path_length("t"))
        simulation.set_joint(name, q[k])
        found.append(-force * (lengths[0] - lengths[1]) / 2e-6)
    return np.array(found)


@pytest.mark.parametrize("name", LINES)
def test_tendons_pull_as_mujocos(name, tmp_path):
    """Length, its rate, and what spring and damper do to the joints."""
    for q, v in STATES:
        data, simulation = both(tmp_path, ARM % (LINES[name], "", ""), q, v, limits=False)
        mechanism = simulation.mechanism
        assert mechanism.report == []
        assert simulation.path_length("t") == pytest.approx(data.ten_length[0], abs=1e-12)
        assert simulation.path_rate("t") == pytest.approx(float(data.ten_velocity[0]), abs=1e-12)
        start = simulation.state
        run = simulation.run(1e-3)
        tension = sum(run.path(path.name).tension[0] for path in mechanism.paths)
        simulation.restore(start)
        np.testing.assert_allclose(on_joints(simulation, q, tension), data.qfrc_passive, atol=1e-8)


def test_the_springs_of_a_straight_tendon_with_friction(tmp_path):
    mechanism = load(tmp_path, ARM % (LINES["straight with friction"], "", ""))
    line, spring = mechanism["t"].type, mechanism["t spring"]
    assert (line.stiffness, line.damping, line.friction) == ((0.0,), (2.0,), (0.1,))
    assert (spring.stiffness, spring.rest, spring.pulls) == (30.0, 0.2, True)
    assert mechanism.report == []


@pytest.mark.parametrize(("line", "words"), [
    ('<spatial stiffness="3"><site site="w"/><site site="a1"/><pulley divisor="2"/><site site="a1"/><site site="b1"/></spatial>', "runs over 4 sites and a pulley: its stiffness is not"),
    ('<spatial stiffness="3" damping="1"><site site="w"/><geom geom="ball"/><site site="b1"/></spatial>', "runs over 2 sites and a sphere: its stiffness and damping are not"),
    ('<spatial stiffness="3" springlength="0.2 0.4"><site site="w"/><site site="a1"/><site site="b1"/></spatial>', "slack between 0.2 and 0.4 m is not simulated"),
    ('<spatial stiffness="3" range="0 2" limited="true"><site site="w"/><site site="a1"/><site site="b1"/></spatial>', "runs over 3 sites: its range is not"),
    ('<spatial stiffness="3"><site site="w"/><site site="w2"/></spatial>', "runs on one body: it is left out"),
    ('<spatial stiffness="3"><site site="w"/><site site="twin"/><site site="b1"/></spatial>', "sites that coincide"),
    ('<fixed stiffness="3"><joint joint="j1" coef="1"/><joint joint="j2" coef="1"/></fixed>', "runs over 2 joints: its stiffness is not"),
])
def test_what_tendons_do_not_do_is_reported(line, words, tmp_path):
    text = (ARM % (line, "", "")).replace('<site name="w" ', '<site name="twin" pos="0 0.3 1.2"/><geom name="ball" type="sphere" size="0.02" pos="1 1 1"/><site name="w" ')
    assert any(words in report for report in load(tmp_path, text).report)


SERVOS = {
    "position": '<position joint="j1" kp="40" kv="3"/>',
    "geared and bounded": '<position joint="j2" kp="40" kv="3" gear="-2.5" forcerange="-7 7"/>',
    "bounded at the joint": '<position joint="j3" kp="40" forcerange="-9 9"/>',
    "general": '<general joint="j3" biastype="affine" gainprm="12" biasprm="1.5 -30 -2" ctrllimited="true" ctrlrange="-0.3 0.3"/>',
    "a fixed tendon": '<position tendon="f" kp="20"/>',
    "velocity": '<velocity joint="j1" kv="3" gear="-1.5"/>',
    "bounded velocity": '<velocity joint="j3" kv="30" forcerange="-2 2"/>',
}


def key(q: np.ndarray, v: np.ndarray, control: float) -> str:
    qpos = q + np.array([0.2, 0.0, -0.1])
    numbers = [" ".join(repr(float(n)) for n in values) for values in (qpos, v, [control])]
    return '<keyframe><key qpos="{}" qvel="{}" ctrl="{}"/></keyframe>'.format(*numbers)


@pytest.mark.parametrize("name", SERVOS)
def test_servos_push_as_mujocos(name, tmp_path):
    fixed = '<fixed name="f"><joint joint="j1" coef="-0.7"/></fixed>'
    for k, (q, v) in enumerate(STATES):
        control = 0.2 * k - 0.3
        text = ARM % (fixed, SERVOS[name], key(q, v, control))
        if name == "bounded at the joint":
            text = text.replace('name="j3"', 'name="j3" actuatorfrclimited="true" actuatorfrcrange="-5 5"')
        data, simulation = both(tmp_path, text, q, v, control, keyframe=0)
        mechanism = simulation.mechanism
        actuator = next(iter(mechanism.actuators.values()))
        joint, = actuator.arms
        assert actuator.servo
        assert mechanism[joint].type.servo[0] is not None
        assert mechanism[joint].type.drive == (None,)
        index = ("j1", "j2", "j3").index(joint)
        held = mechanism[joint].type.servo[0].target
        assert actuate(mechanism, simulation, {}) == {joint: pytest.approx(held)}
        assert actuate(mechanism, simulation, {actuator.name: 0.123}) == actuator.target(0.123)
        run = simulation.run(1e-3)
        assert run.joint(joint).actuation[0] == pytest.approx(float(data.qfrc_actuator[index]), abs=1e-9)


@pytest.mark.parametrize("actuators", [
    '<velocity joint="j1" kv="3" forcerange="-1 2"/>', '<position joint="j1" kp="40" forcerange="-7 9"/>', '<position joint="j1" kp="40"/><motor joint="j1"/>',
    '<position tendon="t" kp="20" kv="1" forcerange="-4 4"/>', '<motor tendon="t" gear="-3"/>', '<general joint="j2" biastype="affine" gainprm="2" biasprm="0.4 1 0"/>',
    '<position tendon="two" kp="20"/>',
])
def test_other_actuators_are_forces(actuators, tmp_path):
    """Those that no servo stands for: ``actuate`` gives what MuJoCo's pushes with, on joints and along paths."""
    two = '<fixed name="two"><joint joint="j1" coef="-0.7"/><joint joint="j3" coef="2"/></fixed>'
    for q, v in STATES:
        text = ARM % (LINES["through four"] + two, actuators, "")
        count = actuators.count("/>")
        control = np.linspace(0.3, -0.2, count)
        data, simulation = both(tmp_path, text, q, v, control)
        mechanism = simulation.mechanism
        assert not any(actuator.servo for actuator in mechanism.actuators.values())
        answer = actuate(mechanism, simulation, dict(zip(mechanism.actuators, control)))
        found = np.array([answer.get(name, 0.0) for name in ("j1", "j2", "j3")])
        if "t" in answer:
            found += on_joints(simulation, q, answer["t"])
            simulation.step(answer)  # the path takes it
        np.testing.assert_allclose(found, data.qfrc_actuator, atol=1e-8)


def test_actuators_come_back_from_a_file(tmp_path):
    mechanism = load(tmp_path, ARM % (LINES["through four"], '<position joint="j1" kp="40"/><motor tendon="t"/>', ""))
    mechanism.save(tmp_path / "model.json")
    read = da.load(tmp_path / "model.json")
    assert read.actuators == mechanism.actuators
    assert read["j1"].type.servo == mechanism["j1"].type.servo
    assert read["t"].drive == "force"
