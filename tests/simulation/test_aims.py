"""Inverse kinematics to points and frames of bodies."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da


def arm() -> da.Mechanism:
    """Six turns in a row, none of them at a singular pose."""
    made, parent, place = da.Mechanism("arm"), "world", np.zeros(3)
    for k, axis in enumerate(("z", "y", "y", "x", "y", "x")):
        end = place + np.array((0.0, 0.0, 0.3) if k < 2 else (0.3, 0.02, 0.0))
        made.body(f"link {k}", da.Rod.between(place, end, radius=0.03, mass=1.0))
        made.joint(f"turn {k}", da.Revolute(axis=axis), parent, f"link {k}", at=place)
        parent, place = f"link {k}", end
    return made


def posed(mechanism: da.Mechanism, coordinates: Mapping[str, Any]) -> da.Simulation:
    sim = da.Simulation(mechanism, da.Variational(dt=0.01))
    for name, value in coordinates.items():
        sim.set_joint(name, value)
    return sim


def test_a_hand_reaches_a_point_and_a_frame():
    rng = np.random.default_rng(3)
    tip = np.array([0.15, 0.01, 0.0])
    for _ in range(5):
        there = posed(arm(), {f"turn {k}": rng.uniform(-0.5, 0.5) for k in range(6)})
        place, turn = there.position[-1], Rotation.from_quat(there.orientation[-1], scalar_first=True)
        goal = place + turn.apply(tip)
        sim = da.Simulation(arm(), da.Variational(dt=0.01))
        found = sim.solve_pose(aims=[da.Aim(body="link 5", point=tip, position=goal, orientation=there.orientation[-1])])
        reached = posed(arm(), found)
        turned = Rotation.from_quat(reached.orientation[-1], scalar_first=True)
        np.testing.assert_allclose(reached.position[-1] + turned.apply(tip), goal, atol=1e-8)
        assert (turned.inv() * turn).magnitude() < 1e-8
        assert sim.coordinates("turn 0")[0] == 0.0  # the simulation stays


def test_directions_without_weight_are_free():
    sim = da.Simulation(arm(), da.Variational(dt=0.01))
    height = da.Aim(body="link 5", position=(9.0, 9.0, 0.9), weight=(0.0, 0.0, 1.0))
    reached = posed(arm(), sim.solve_pose(aims=[height]))
    assert reached.position[-1][2] == pytest.approx(0.9, abs=1e-8)
    assert np.linalg.norm(reached.position[-1][:2]) < 1.5
    both = posed(arm(), sim.solve_pose({"turn 3": 0.4}, aims=[height]))
    assert both.coordinates("turn 3")[0] == pytest.approx(0.4, abs=1e-7)
    assert both.position[-1][2] == pytest.approx(0.9, abs=1e-7)


def test_out_of_reach_is_as_near_as_can_be():
    reached = posed(arm(), da.Simulation(arm(), da.Variational(dt=0.01)).solve_pose(aims=[da.Aim(body="link 5", position=(0, 5, 0.6))]))
    assert reached.position[-1][1] > 1.1  # stretched towards it


def test_closed_chains():
    bar = da.zoo.double_four_bar()
    coupler = bar.bodies[1].name
    turned = da.Simulation(bar, da.Variational(dt=0.01))
    crank = bar.joints[0].name
    turned.set_joint(crank, 0.4)
    goal = turned.position[1]
    found = da.Simulation(bar, da.Variational(dt=0.01)).solve_pose(aims=[da.Aim(body=coupler, position=goal)])
    assert found[crank][0] == pytest.approx(0.4, abs=1e-7)


@pytest.mark.parametrize(("arguments", "words"), [
    (dict(body="link 5"), "needs a position"), (dict(body="", position=(0, 0, 0)), "name"), (dict(body="link 5", position=(0, 0)), "3 numbers"),
    (dict(body="link 5", position=(0, 0, 0), weight=-1.0), "none of them negative"), (dict(body="link 5", orientation=(0, 0, 0, 0)), "zero quaternion"),
])
def test_bad_aims(arguments, words):
    with pytest.raises(da.ModelError, match=words):
        da.Aim(**arguments)


def test_aims_at_what_is_no_body():
    sim = da.Simulation(arm(), da.Variational(dt=0.01))
    for name in ("turn 0", "world"):
        with pytest.raises(da.ModelError, match="body that moves"):
            sim.solve_pose(aims=[da.Aim(body=name, position=(0, 0, 0))])
