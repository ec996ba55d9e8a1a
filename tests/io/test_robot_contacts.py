"""Robots of model files fall on the ground by what their files let touch, with limits and loops: every step of 5 ms has a solution."""
from __future__ import annotations

import numpy as np
import pytest
from robots import CASSIE, find, slow_unless

import dalembert as da

MAKES = {"variational": da.Variational, "implicit": da.Implicit, "reduced": da.Reduced}
every_formulation = pytest.mark.parametrize("make", list(MAKES.values()), ids=list(MAKES))
LARGE = da.Budget(elements=200_000_000)

HINGES = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/>
<body name="base" pos="0 0 0.8"><freejoint/><geom type="box" size=".15 .1 .05" mass="5"/>
 <body name="leg" pos="0 0 -.08"><joint name="first" type="hinge" axis="1 0 0"/><joint name="second" type="hinge" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03" mass="1"/><geom type="sphere" pos="0 0 -.32" size=".05" mass=".3"/></body>
</body></worldbody><equality><joint joint1="first" joint2="second" polycoef="0 {ratio} 0 0 0"/></equality></mujoco>"""


def falls(mechanism: da.Mechanism, make, duration: float) -> da.Trajectory:
    """A run to the ground, without penetration, joints closed and with no more energy than before."""
    sim = da.Simulation(mechanism, make(dt=0.005))
    sim.resolve_overlaps()
    run = sim.run(duration)
    contacts = run.contacts()
    assert len(contacts.normal_force) > 0
    assert contacts.least_gap().min() > -1e-8
    assert run.constraint_violation().max() < 1e-8
    return run


@pytest.mark.parametrize("ratio", [1.0, -0.5])
@every_formulation
def test_two_hinges_on_one_link_tied_by_an_equality(make, ratio, tmp_path):
    """The link between the two hinges has next to no mass, and the equality ties them."""
    (tmp_path / "hinges.xml").write_text(HINGES.format(ratio=ratio))
    mechanism = da.load(tmp_path / "hinges.xml")
    mechanism.start("base", linear=(0.5, 0.2, 0.0), angular=(1.0, -0.5, 0.3))
    run = falls(mechanism, make, 1.0)
    first, second = (np.ravel(run.joint(name).coordinates) for name in ("first", "second"))
    assert np.abs(first).max() > 0.01
    np.testing.assert_allclose(first, ratio * second, atol=1e-8)


@pytest.mark.skipif(not CASSIE.is_file(), reason="no model of Cassie here")
@every_formulation
def test_cassie_in_its_scene(make):
    falls(da.load(CASSIE.with_name("scene.xml"), budget=LARGE), make, 1.0)


@pytest.mark.parametrize("name", [slow_unless(name, ("g1",)) for name in ("g1", "talos", "a1")])
@every_formulation
def test_a_robot_falls_to_the_ground(name, make):
    mechanism = da.load(find(name), base="free", merge_fixed=True, position=(0, 0, 1.2), budget=LARGE)
    mechanism.ground(friction=0.8)
    falls(mechanism, make, 1.2)
