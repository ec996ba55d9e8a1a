"""What touches in MJCF files: the same pairs with the same friction as in MuJoCo, and what becomes of each kind of geom."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.contact.features import corners
from dalembert.mechanism.mechanism import rotation_matrix
from dalembert.mechanism.touching import Touching

mujoco: Any = pytest.importorskip("mujoco")


def load(tmp_path, text: str, **options) -> da.Mechanism:
    (tmp_path / "model.xml").write_text(text)
    return da.load(tmp_path / "model.xml", **options)


def laws(mechanism: da.Mechanism) -> dict[tuple[frozenset[str], str], float]:
    """Friction against sliding, spinning and rolling of all pairs that may touch."""
    state = Touching(mechanism)
    things = [*state.moving, *state.obstacles, *state.around]
    found = {frozenset((a.names[0], b.names[0])): state.law(a, b) for i, a in enumerate(things) for b in things[i + 1 :]}
    kinds = ("friction", "spin_friction", "rolling_friction")
    return {(pair, kind): getattr(law, kind) or 0.0 for pair, law in found.items() if law is not None for kind in kinds}


def random_scene(seed: int, apart: float) -> str:
    """Bodies of a tree, some fixed, some on two hinges, with random bits and coefficients; ``apart``: distance between them."""
    random = np.random.default_rng(seed)
    count = 0

    def geom(kind: str = "sphere", size: str = "0.1") -> str:
        nonlocal count
        count += 1
        return (
            f'<geom name="g{count}" type="{kind}" size="{size}" contype="{random.integers(0, 4)}" conaffinity="{random.integers(0, 4)}" '
            f'condim="{random.choice([1, 3, 3, 4, 6])}" friction="{random.choice([0.2, 0.5, 0.9])} {random.choice([0.005, 0.01, 0.02])} {random.choice([0.001, 0.003])}" priority="{random.choice([0, 0, 0, 1])}"/>'
        )

    text = geom("plane", "1 1 1") + geom("box", "0.1 0.1 0.1")
    bodies = 9
    for k in range(bodies):
        hinges = {0: "", 1: '<joint axis="1 0 0"/>', 2: '<joint axis="1 0 0"/><joint axis="0 1 0"/>', 3: '<freejoint/>'}[k % 4 if k % 3 == 0 else int(random.integers(0, 3))]
        inner = geom() + (geom("capsule", "0.1 0.1") if random.random() < 0.3 else "")
        text += f'<body name="b{k}" pos="{apart * (k + 1)} 0 {apart}">{hinges}{inner}'
        if k % 3 == 2:
            text += "</body>" * 3
    excludes = "".join(f'<exclude body1="b{a}" body2="b{b}"/>' for a, b in ((0, 4), (2, 7)))
    pairs = f'<pair geom1="g3" geom2="g5" friction="0.33 0.33 0.005 0.0001 0.0001" condim="{random.choice([1, 3, 4, 6])}"/>'
    return f'<mujoco><worldbody>{text}</worldbody><contact>{excludes}{pairs}</contact></mujoco>'


@pytest.mark.parametrize("seed", range(12))
def test_pairs_and_friction_are_those_of_mujoco(seed, tmp_path):
    text = random_scene(seed, 5.0)
    mechanism = load(tmp_path, text)
    model = mujoco.MjModel.from_xml_string(random_scene(seed, 0.001))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    expected = {}
    for contact in data.contact:
        pair = frozenset(model.geom(int(g)).name for g in (contact.geom1, contact.geom2))
        if not all(model.body_weldid[model.geom_bodyid[int(g)]] == 0 for g in (contact.geom1, contact.geom2)):
            sliding, _, spinning, rolling, _ = map(float, contact.friction)
            expected[pair, "friction"] = sliding if contact.dim > 1 else 0.0
            expected[pair, "spin_friction"] = spinning if contact.dim > 3 else 0.0
            expected[pair, "rolling_friction"] = rolling if contact.dim > 4 else 0.0
    assert len(expected) > 3 * 3
    assert laws(mechanism) == pytest.approx(expected)
    none = laws(load(tmp_path, text, self_collisions=False))
    still = {"g1", "g2"} | {model.geom(g).name for g in range(model.ngeom) if model.body_weldid[model.geom_bodyid[g]] == 0}
    declared = frozenset(("g3", "g5"))
    assert none == pytest.approx({(pair, kind): value for (pair, kind), value in expected.items() if pair & still or pair == declared})
    assert not load(tmp_path, text, contacts=False).touches


SCENE = """<mujoco><compiler angle="radian"/><asset>
 <mesh name="wedge" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/><mesh name="flat" vertex="0 0 0 1 0 0 0 1 0 1 1 0 0 0 1e-12"/>
 <hfield name="hill" nrow="3" ncol="4" size="1.5 1 0.5 0.1" elevation="0 0 0 0 0 1 0.5 0 0 0 0 0"/></asset>
<worldbody><geom name="ramp" type="plane" size="1 1 1" pos="0 0 -1" zaxis="0 -0.6 0.8" friction="0.4"/>
 <geom name="hill" type="hfield" hfield="hill" pos="20 0 0"/>
 <body name="table" pos="3 0 0"><geom name="top" type="box" size="0.5 0.5 0.1"/></body>
 <body name="a" pos="0 0 2"><freejoint/><geom name="a" type="mesh" mesh="wedge"/><geom name="egg" type="ellipsoid" size="0.1 0.2 0.3" pos="0 0 1"/></body>
 <body name="b" pos="0.05 0 2.0"><joint name="j" type="slide"/><geom name="ball" size="0.2" margin="0.01" solref="0.01 1"/><geom name="roll" size="0.1" pos="0 3 0" condim="6"/></body>
</worldbody></mujoco>"""


def test_kinds_of_geoms(tmp_path):
    mechanism = load(tmp_path, SCENE)
    ramp, = mechanism.grounds
    np.testing.assert_allclose(ramp.normal, (0, -0.6, 0.8), atol=1e-12)
    assert (ramp.offset, ramp.friction) == (pytest.approx(-0.8), 0.4)
    top, = mechanism.obstacles
    np.testing.assert_allclose(top.position, (3, 0, 0))
    hill, = mechanism.terrains
    assert hill.heights.shape == (4, 3)
    np.testing.assert_allclose((hill.heights[1, 1], hill.heights[2, 1]), (0.5, 0.25), atol=1e-6)
    np.testing.assert_allclose((hill.origin, hill.spacing), ((18.5, -1), (1, 1)))
    colliders = {c.name: c for c in mechanism.colliders}
    assert set(colliders) == {"a collider", "egg", "ball", "roll"}
    wedge = colliders["a collider"]
    body = mechanism["a"]
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    R = np.array(data.geom("a").xmat).reshape(3, 3)
    vertices = data.geom("a").xpos + model.mesh_vert[: model.mesh_vertnum[0]] @ R.T
    ours = da.Simulation(mechanism, da.Variational(dt=0.01))
    places = wedge.position + corners(wedge.shape) @ rotation_matrix(wedge.orientation).T
    placed = ours.position[body.index] + places @ rotation_matrix(body.orientation).T
    assert sorted(placed.round(6).tolist()) == sorted(vertices.round(6).tolist())
    told = "\n".join(mechanism.report)
    for words in (
        "its mesh touches by its convex hull", "height field is smooth", "'egg': an ellipsoid does not touch the height field",
        "solref and solimp are not used, of ball", "margin and gap are not used, of ball", "overlap by",
    ):
        assert words in told, words


def test_friction_against_spinning_and_rolling(tmp_path):
    """Of balls that spin on a plane the one of condim 4 stops after 2 r^2 omega / (5 c g); those that roll are braked by 5 c g / (7 r) in condim 6 alone."""
    ball = '<body name="{name}" pos="0 {y} 0.1"><freejoint/><geom size="0.1" condim="{condim}" friction="1 0.02 0.004"/></body>'
    bodies = "".join(ball.format(name=f"{motion} {condim}", y=0.5 * k, condim=condim) for k, (motion, condim) in enumerate((m, c) for m in ("spins", "rolls") for c in (1, 3, 4, 6)))
    mechanism = load(tmp_path, f'<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1" condim="1" friction="0.5 0.001 0.0001"/>{bodies}</worldbody></mujoco>')
    simulation = da.Simulation(mechanism, da.Variational(dt=0.005))
    for body in mechanism.bodies:
        if body.name.startswith("spins"):
            simulation.set_velocity(body.name, angular=(0, 0, 10.0))
        else:
            simulation.set_velocity(body.name, linear=(1.0, 0, 0), angular=(0, 10.0, 0))
    run = simulation.run(0.15)  # of 2 * 0.01 * 10 / (5 * 0.02 * 9.81) = 0.204 s
    for condim in (1, 3, 4, 6):
        spin, roll = mechanism[f"spins {condim}"].index, mechanism[f"rolls {condim}"].index
        lost = 5 * 0.02 * 9.81 / (2 * 0.01) * 0.15 if condim > 3 else 0.0
        assert run.angular_velocity[-1, spin, 2] == pytest.approx(10.0 - lost, abs=0.02)
        braked = 5 * 0.004 * 9.81 / (7 * 0.1) * 0.15 if condim == 6 else 0.0
        assert run.velocity[-1, roll, 0] == pytest.approx(1.0 - braked, abs=1e-3)


def test_a_stack_rests_as_the_file_says(tmp_path):
    mechanism = load(tmp_path, """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
      <body name="box" pos="0 0 0.12"><freejoint/><geom type="box" size="0.2 0.2 0.1"/></body>
      <body name="ball" pos="0 0 0.35"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>""")
    trajectory = da.Simulation(mechanism, da.Variational(dt=0.005)).run(1.0)
    np.testing.assert_allclose(trajectory.position[-1, :, 2], (0.1, 0.3), atol=1e-6)


def test_bodies_that_joints_keep_level_pass_along_the_floor(tmp_path):
    """What slides along a plane and turns about its normal touches it without end: which of the two carries it, nothing tells."""
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
      <body name="puck" pos="0 0 0.1"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/><joint name="turn" axis="0 0 1"/>
        <geom type="sphere" size="0.1"/></body>
      <body name="ball" pos="1 0 0.3"><joint name="fall" type="slide" axis="0 0 1"/><geom type="sphere" size="0.1"/></body></worldbody></mujoco>"""
    mechanism = load(tmp_path, text)
    assert "'puck' and 'floor' do not collide: joints keep them at one distance" in mechanism.report
    sim = da.Simulation(mechanism, da.Variational(dt=0.005))
    sim.set_joint("x", rate=0.5)
    run = sim.run(0.6)
    assert run.joint("x").coordinates[-1] == pytest.approx(0.3)
    assert run.touching == ("ball / floor",)
    assert run.body("ball").position[-1, 2] == pytest.approx(0.1, abs=1e-9)
