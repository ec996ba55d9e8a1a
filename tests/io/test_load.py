"""Loading model files: what becomes of their elements, what is reported, what is refused, and what 200 broken files do."""
from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from robots import CASSIE, find

import dalembert as da

ARM = """<robot name="arm">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="world"/>
  <link name="upper"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0 0 -0.5"/><geometry><box size="0.1 0.1 1"/></geometry><material name="red"/></visual></link>
  <link name="dummy"/>
  <link name="lower"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/><inertia ixx="0.2" iyy="0.2" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tool"><inertial><mass value="0.5"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="world"/><child link="upper"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/><dynamics damping="0.3" friction="0.1"/></joint>
  <joint name="elbow x" type="continuous"><parent link="upper"/><child link="dummy"/><origin xyz="0 0 -1"/><axis xyz="1 0 0"/></joint>
  <joint name="elbow y" type="continuous"><parent link="dummy"/><child link="lower"/><axis xyz="0 1 0"/><mimic joint="shoulder" multiplier="2" offset="0.1"/></joint>
  <joint name="grip" type="fixed"><parent link="lower"/><child link="tool"/><origin xyz="0 0 -1"/></joint>
</robot>"""

LEG = """<mujoco model="leg"><compiler angle="radian"/><option gravity="0 0 -5"/>
<worldbody><geom type="plane" size="1 1 1"/>
 <body name="thigh" pos="0 0 1"><joint name="hip" axis="0 1 0" range="-1 1" stiffness="3" springref="0.2" armature="0.1" frictionloss="0.4"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.04" rgba="0 0 1 1"/><site name="s1" pos="0 0 -0.2"/>
  <body name="shank" pos="0 0 -0.5"><joint name="knee" axis="0 1 0" ref="0.3" damping="0.2"/><geom type="box" size="0.04 0.04 0.25" pos="0 0 -0.25"/>
   <site name="s2" pos="0 0 -0.3"/></body></body>
 <body name="bar" pos="0.3 0 1"><joint name="slide" type="slide" axis="1 0 0"/><geom type="sphere" size="0.1"/></body>
 <body name="ball" pos="1 0 1"><joint name="socket" type="ball" damping="0.1"/><geom type="sphere" size="0.1" pos="0 0 -0.3"/></body>
</worldbody>
<equality><joint name="rack" joint1="slide" joint2="hip" polycoef="0.1 0.5 0 0 0"/><joint joint1="slide" joint2="hip" polycoef="0 0 1 0 0"/>
 <weld name="weld" body1="bar" body2="ball"/></equality>
<tendon><spatial name="band" stiffness="20" damping="1" springlength="0.1"><site site="s1"/><site site="s2"/></spatial></tendon>
<actuator><motor name="m" joint="hip" gear="3" ctrlrange="-1 1"/><position name="p" joint="knee" kp="40" kv="2"/><velocity name="v" joint="slide" kv="5"/>
 <muscle name="u" joint="hip"/></actuator>
</mujoco>"""


@pytest.fixture
def arm(tmp_path):
    pytest.importorskip("yourdfpy")
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


@pytest.fixture
def leg(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "leg.xml"
    path.write_text(LEG)
    return path


def test_urdf_elements(arm):
    mechanism = da.load(arm)
    assert [b.name for b in mechanism.bodies] == ["upper", "lower after elbow x", "lower", "tool"]
    assert mechanism.mass == pytest.approx(3.5, rel=1e-12)
    np.testing.assert_allclose(mechanism["tool"].position, (0, 0, -2), atol=1e-12)
    assert mechanism["shoulder"].type.damping == (0.3,)
    assert (mechanism.couplings[0].ratio, mechanism.couplings[0].offset) == (2.0, 0.1)
    assert isinstance(mechanism["grip"].type, da.Fixed)
    visual, = mechanism.visuals["upper"]
    assert visual.colour == (1.0, 0.0, 0.0, 1.0)
    assert isinstance(visual.geometry, da.Box)
    shoulder = mechanism["shoulder"].type
    assert (shoulder.limits, shoulder.friction) == (((-1.0, 1.0),), (0.1,))
    assert mechanism.actuators["shoulder"].force_range == (-1.0, 1.0)
    assert mechanism.report == ["joint 'shoulder': its velocity limit 1 is not enforced"]
    assert not da.load(arm, limits=False).touches
    with pytest.raises(da.ModelError, match="strict=True"):
        da.load(arm, strict=True)


def test_merged_links(arm):
    kept, merged = da.load(arm), da.load(arm, merge_fixed=True)
    assert "tool" not in merged
    assert merged.mass == pytest.approx(kept.mass, rel=1e-12)
    swings = []
    for mechanism in (kept, merged):
        mechanism.couplings.clear()
        mechanism.start("shoulder", 1.0)
        swings.append(da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.5).joint("elbow x").coordinates)
    np.testing.assert_allclose(swings[0], swings[1], atol=1e-8)


def test_a_free_base(arm):
    text = ARM.replace('<link name="world"/>', '<link name="trunk"><inertial><mass value="3"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>').replace('"world"', '"trunk"')
    arm.write_text(text)
    assert "trunk fixed" in da.load(arm)
    free = da.load(arm, base="free")
    assert not any(j.child is free["trunk"] for j in free.joints)


def test_mesh_inertia(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    pytest.importorskip("yourdfpy")
    trimesh.creation.box((0.2, 0.4, 0.6)).export(tmp_path / "box.stl")
    (tmp_path / "m.urdf").write_text(
        '<robot name="m"><link name="a"><visual><geometry><mesh filename="box.stl" scale="2 1 1"/></geometry></visual></link></robot>')
    mechanism = da.load(tmp_path / "m.urdf", mesh_density=1000.0)
    box = da.Box(size=(0.4, 0.4, 0.6), density=1000.0)
    assert mechanism["a"].mass == pytest.approx(box.mass)
    np.testing.assert_allclose(mechanism["a"].inertia, box.inertia, atol=1e-6)


def test_mjcf_elements(leg):
    mechanism = da.load(leg)
    np.testing.assert_array_equal(mechanism.gravity, (0, 0, -5))
    hip, knee = mechanism["hip"].type, mechanism["knee"].type
    assert (hip.stiffness, hip.rest, hip.armature, hip.drive) == ((3.0,), (0.2,), (0.1,), ("force",))
    assert knee.damping == (0.2,)
    rack = mechanism["rack"]
    assert (rack.first.name, rack.second.name, rack.ratio, rack.offset) == ("slide", "hip", 0.5, 0.1)
    assert isinstance(mechanism["weld"].type, da.Fixed)
    band = mechanism["band"]
    assert ([b.name for b in band.bodies], band.stiffness, band.damping, band.rest, band.pulls) == (["thigh", "shank"], 20.0, 1.0, 0.1, False)
    assert isinstance(mechanism["socket"].type, da.Spherical)
    assert (mechanism.actuators["p"].bias, mechanism.actuators["p"].servo) == ((0.0, -40.0, -2.0), True)
    assert (knee.servo, knee.drive) == ((da.Servo(stiffness=40.0, damping=2.0, target=-0.3),), (None,))
    limp = da.load(leg, actuators=False)
    assert (limp.actuators, limp["knee"].type.servo, limp["hip"].type.drive) == ({}, (None,), (None,))
    told = "\n".join(mechanism.report)
    for words in ("'equality 1' is not simulated", "actuator 'u' is not simulated"):
        assert words in told
    assert (hip.limits, hip.friction) == (((-1.0, 1.0),), (0.4,))
    assert [g.name for g in mechanism.grounds] == ["world plane"]
    assert [c.body.name for c in mechanism.colliders] == ["thigh", "shank", "bar", "ball"]


def test_actuators_act_as_mujocos(leg):
    mujoco = pytest.importorskip("mujoco")
    from dalembert.mechanism.actuators import actuate

    leg.write_text(LEG.replace('<muscle name="u" joint="hip"/>', ""))
    mechanism = da.load(leg)
    model = mujoco.MjModel.from_xml_path(str(leg))
    data = mujoco.MjData(model)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EQUALITY
    data.qpos[model.joint("hip").qposadr] = 0.2
    data.qpos[model.joint("knee").qposadr] = 0.5
    data.qvel[model.joint("knee").dofadr] = 0.7
    data.ctrl[:] = (2.0, 0.1, 0.4)
    mujoco.mj_forward(model, data)
    mechanism.couplings.clear()
    mechanism.start("hip", 0.2, rate=0.0)
    mechanism.start("knee", 0.2, rate=0.7)
    simulation = da.Simulation(mechanism, da.Variational(dt=0.01))
    forces = actuate(mechanism, simulation, {"m": 2.0, "p": 0.1, "v": 0.4})
    hip, slide = (float(data.qfrc_actuator[model.joint(name).dofadr[0]]) for name in ("hip", "slide"))
    assert forces["hip"] == pytest.approx(hip, abs=1e-9)
    assert forces["slide"] == 0.4  # a velocity servo takes the rate that it follows; at rest its force is
    assert mechanism["slide"].type.servo[0].damping * 0.4 == pytest.approx(slide, abs=1e-9)
    assert forces["knee"] == pytest.approx(0.1 - 0.3)  # a servo takes a target, which counts from the reference pose
    with pytest.raises(da.ControlError, match="no actuator 'x'"):
        actuate(mechanism, simulation, {"x": 1.0})


BOMB = '<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><robot name="&b;"><link name="a"/></robot>'
SECRET = '<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"><link name="a"/></robot>'


@pytest.mark.parametrize(("name", "text", "message"), [
    ("a.urdf", BOMB, "DOCTYPE"),
    ("a.urdf", SECRET, "DOCTYPE"),
    ("a.xml", BOMB.replace("robot", "mujoco"), "DOCTYPE"),
    ("a.urdf", "<a>" * 300 + "</a>" * 300, "deeper than 250"),
    ("a.urdf", "", "no valid XML"),
    ("a.urdf", "<robot name='a'/>", "no links"),
    ("a.xml", "<html/>", "root <html>"),
    ("a.txt", "x", "by its ending"),
    ("a.xml", '<mujoco><asset><mesh file="../../x.stl"/></asset></mujoco>', "outside of"),
    ("a.xml", '<mujoco><compiler meshdir="/etc"/><asset><mesh file="passwd"/></asset></mujoco>', "outside of"),
    ("a.xml", '<mujoco><include file="/etc/passwd"/></mujoco>', "outside of"),
    ("a.xml", '<mujoco><include file="a.xml"/></mujoco>', "in a circle"),
    ("a.xml", '<mujoco><worldbody><replicate count="1000"><replicate count="1000"><geom size="1"/></replicate></replicate></worldbody></mujoco>', "more than"),
    ("a.xml", '<mujoco><asset><texture type="2d" builtin="flat" width="1000000" height="1000000"/></asset></mujoco>', "more than"),
    ("a.xml", '<mujoco><size memory="100G"/></mujoco>', "memory"),
    ("a.urdf", '<robot name="a"><link name="a"><visual><geometry><mesh filename="../../../x.stl"/></geometry></visual></link></robot>', "outside of"),
    ("a.urdf", '<robot name="a"><link name="a"><visual><geometry><mesh filename="file:///etc/passwd"/></geometry></visual></link></robot>', "outside of"),
    ("a.urdf", '<robot name="a"><link name="a"/><link name="b"/></robot>', "one root link"),
    ("a.urdf", '<robot name="a"><link name="a"/><joint name="j" type="fixed"><parent link="a"/><child link="c"/></joint></robot>', "'c', which does not exist"),
    ("a.urdf", ARM.replace('type="revolute"', 'type="bent"'), "bent"),
    ("a.urdf", ARM.replace('<mass value="1"/>', '<mass value="-1"/>'), "must be positive"),
    ("a.urdf", ARM.replace('<mass value="1"/>', '<mass value="nan"/>'), "mass"),
    ("a.urdf", ARM.replace('<axis xyz="1 0 0"/>', '<axis xyz="0 0 0"/>'), "axis"),
])
def test_refused(tmp_path, name, text, message):
    pytest.importorskip("mujoco")
    pytest.importorskip("yourdfpy")
    folder = tmp_path / "deep" / "folder"
    folder.mkdir(parents=True)
    (folder / name).write_text(text)
    with pytest.raises(da.ModelError, match=message):
        da.load(folder / name)


def test_refused_links_and_arguments(tmp_path, arm):
    (tmp_path / "inner").mkdir()
    (tmp_path / "secret.stl").write_text("solid x")
    (tmp_path / "inner" / "link.stl").symlink_to(tmp_path / "secret.stl")
    model = tmp_path / "inner" / "a.urdf"
    model.write_text('<robot name="a"><link name="a"><visual><geometry><mesh filename="link.stl"/></geometry></visual></link></robot>')
    with pytest.raises(da.ModelError, match="outside of"):
        da.load(model)
    with pytest.raises(da.ModelError, match="no such file"):
        da.load(tmp_path / "none.urdf")
    with pytest.raises(da.ModelError, match="base must be"):
        da.load(arm, base="flying")
    with pytest.raises(da.ModelError, match="mesh_density"):
        da.load(arm, mesh_density=-1.0)


def test_missing_extras(arm, leg, monkeypatch):
    monkeypatch.setitem(sys.modules, "yourdfpy", None)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(da.MissingExtraError, match=r"dalembert\[urdf\]"):
        da.load(arm)
    with pytest.raises(da.MissingExtraError, match=r"dalembert\[mjcf\]"):
        da.load(leg)


# ---- broken files

WORDS = (b"nan", b"1e308", b"-1", b"0", b"", b"inf", b"99999999999999999999", b"x" * 3000, b"<", b"&", b"\x00", b"\xff\xfe", b"../../../etc/passwd")


def mutate(text: bytes, random: np.random.Generator, valid: bool) -> bytes:
    """A broken copy: bytes changed, pieces cut or doubled, values replaced, the end lost; or ``valid`` XML with other values."""
    data = bytearray(text)
    words = [w for w in WORDS if not valid or not set(w) & set(b"<&\x00\xff")]
    for _ in range(int(random.integers(1, 4))):
        a, b = sorted(int(v) for v in random.integers(0, len(data), 2))
        b = min(b, a + 400)
        kind = 9 if valid else int(random.integers(0, 7))
        if kind == 0:
            data[a] = int(random.integers(0, 256))
        elif kind == 1:
            del data[a:b]
        elif kind == 2:
            data[a:a] = data[a:b]
        elif kind == 3:
            del data[a:]
            data = data or bytearray(b"<")
        else:
            quotes = [i for i in range(len(data)) if data[i] == 34]
            if len(quotes) > 2:
                k = 2 * int(random.integers(0, len(quotes) // 2 - 1)) if valid else int(random.integers(0, len(quotes) - 1))
                data[quotes[k] + 1 : quotes[k + 1]] = words[int(random.integers(0, len(words)))]
    return bytes(data)


LOADER = """
import json, sys, time
import dalembert as da
for path in json.load(open(sys.argv[1])):
    tick = time.perf_counter()
    try:
        da.load(path); outcome = "loaded"
    except da.ModelError as error:
        outcome = "refused"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"
    print(json.dumps([path, outcome, time.perf_counter() - tick]), flush=True)
"""


@pytest.mark.slow
def test_two_hundred_broken_files(tmp_path):
    pytest.importorskip("mujoco")
    pytest.importorskip("yourdfpy")
    sources = [("urdf", find("a1").read_bytes()), ("urdf", find("panda").read_bytes()), ("xml", find("ant").read_bytes()), ("xml", find("humanoid").read_bytes())]
    sources += [("urdf", ARM.encode()), ("xml", LEG.encode())]
    if CASSIE.is_file():
        sources.append(("xml", CASSIE.read_bytes()))
    random = np.random.default_rng(2024)
    paths = []
    for k in range(200):
        ending, text = sources[k % len(sources)]
        path = tmp_path / f"{k}.{ending}"
        path.write_bytes(mutate(text, random, valid=k % 2 == 0))
        paths.append(str(path))
    (tmp_path / "list.json").write_text(json.dumps(paths))
    before = {p: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(Path(tmp_path).iterdir())}
    tick = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", LOADER, str(tmp_path / "list.json")], capture_output=True, text=True, timeout=600, cwd=tmp_path)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert done.returncode == 0, done.stderr[-500:]
    assert len(rows) == 200
    assert [r for r in rows if r[1] not in ("loaded", "refused")] == []
    assert max(r[2] for r in rows) < 5.0
    assert sum(r[1] == "refused" for r in rows) > 60
    (tmp_path / "MUJOCO_LOG.TXT").unlink(missing_ok=True)
    after = {p: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(Path(tmp_path).iterdir())}
    assert after == before
    print(f"{time.perf_counter() - tick:.1f} s", sum(r[1] == "loaded" for r in rows), "loaded")


def test_a_robot_from_another_machine_loads_without_its_pictures(tmp_path):
    """Meshes at absolute places that do not exist here are left out with a line in the report; a file with nothing in it says so."""
    (tmp_path / "a.urdf").write_text(
        '<robot name="a"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<visual><geometry><mesh filename="/no/such/place/trunk.stl"/></geometry></visual></link></robot>', encoding="utf-8",
    )
    assert any("was not found" in line for line in da.load(tmp_path / "a.urdf").report)
    (tmp_path / "b.urdf").write_text('<robot xmlns:xacro="http://wiki.ros.org/xacro"><!-- nothing --></robot>', encoding="utf-8")
    with pytest.raises(da.ModelError, match="is empty"):
        da.load(tmp_path / "b.urdf")


def test_a_branch_without_mass_goes(tmp_path):
    link = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    joint = '<joint name="{0}" type="revolute"><parent link="a"/><child link="{0}"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    (tmp_path / "a.urdf").write_text(f'<robot name="a">{link.format("a")}<link name="b"/><link name="c"/>{joint.format("b")}{joint.format("c")}</robot>', encoding="utf-8")
    loaded = da.load(tmp_path / "a.urdf")
    assert [body.name for body in loaded.bodies] == ["a"]
    assert sum("carries none" in line for line in loaded.report) == 2


@pytest.mark.parametrize(("multiplier", "ends"), [(2.0, (0.0, 0.3)), (-1.0, (0.0, 0.5))], ids=["shared", "no room"])
def test_joints_that_mimic_leave_their_limits_to_their_leader(tmp_path, multiplier, ends):
    """Ends of both that are met at once would share one force in no certain way."""
    link = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    joint = '<joint name="{0} turn" type="revolute"><parent link="a"/><child link="{0}"/><axis xyz="0 1 0"/><limit lower="0" upper="{1}" effort="1" velocity="1"/>{2}</joint>'
    mimic = f'<mimic joint="b turn" multiplier="{multiplier}"/>'
    text = f'<robot name="a">{"".join(link.format(n) for n in "abc")}{joint.format("b", 0.5, "")}{joint.format("c", 0.6, mimic)}</robot>'
    (tmp_path / "a.urdf").write_text(text, encoding="utf-8")
    loaded = da.load(tmp_path / "a.urdf")
    assert loaded["b turn"].type.limits[0] == pytest.approx(ends)
    assert not np.isfinite(loaded["c turn"].type.limits[0]).any()
    assert any("leave no room" in line for line in loaded.report) == (multiplier < 0)
