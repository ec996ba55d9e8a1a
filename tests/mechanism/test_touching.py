"""What may touch what: layers and masks, joined and fixed bodies, declared pairs, and whose coefficients count."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dalembert as da
from dalembert.mechanism.touching import Touching

BALL = da.Sphere(radius=0.1, mass=1.0)


def scene(**collider) -> da.Mechanism:
    """Three bodies in a row, the first two hinged, the last two fixed to one another; each has a collider, and there is a ground."""
    mechanism = da.Mechanism("scene")
    for i, name in enumerate("abc"):
        mechanism.body(name, mass=1.0, inertia=np.eye(3), position=(i, 0, 1))
        mechanism.collider(f"{name} ball", name, BALL, **collider)
    mechanism.joint("hinge", da.Revolute(axis="y"), "a", "b", at=(0.5, 0, 1))
    mechanism.joint("weld", da.Fixed(), "b", "c", at=(1.5, 0, 1))
    mechanism.ground(friction=0.3)
    mechanism.body("d", da.Box(size=(1, 1, 1), mass=1.0), position=(0, 5, 1), collide=True)
    return mechanism


def touching(mechanism: da.Mechanism) -> dict[tuple[str, str], float]:
    """Friction of all pairs that may touch, by names."""
    state = Touching(mechanism)
    things = [*state.moving, *state.obstacles, *state.around]
    laws = {(a.names[0], b.names[0]): state.law(a, b) for i, a in enumerate(things) for b in things[i + 1 :]}
    return {names: law.friction for names, law in laws.items() if law is not None}


def test_joined_and_fixed_bodies_do_not_touch():
    assert touching(scene()) == {
        ("d", "a ball"): 0.5, ("d", "b ball"): 0.5, ("d", "c ball"): 0.5,
        ("d", "ground"): 0.3, ("a ball", "ground"): 0.3, ("b ball", "ground"): 0.3, ("c ball", "ground"): 0.3,
    }


def test_bodies_that_a_spring_ties_touch():
    mechanism = scene()
    mechanism.spring("tie", "a", "d", at=((0, 0, 1), (0, 5, 1)), stiffness=1.0)
    assert ("d", "a ball") in touching(mechanism)


def test_the_larger_coefficient_counts():
    found = touching(scene(friction=0.8))
    assert found["a ball", "ground"] == 0.8
    assert found["d", "a ball"] == 0.8
    assert touching(scene(friction=0.1))["a ball", "ground"] == 0.3


def test_layers_and_masks():
    alone = scene(layer=2, mask=2)
    assert touching(alone) == {("d", "ground"): 0.3}
    deaf = scene(layer=1, mask=0)  # touch what listens to them, but not one another
    deaf.body("e", mass=1.0, inertia=np.eye(3), position=(0, 9, 1))
    deaf.collider("e ball", "e", BALL, mask=0)
    assert ("a ball", "ground") in touching(deaf)
    assert ("a ball", "e ball") not in touching(deaf)
    assert ("d", "e ball") in touching(deaf)


def test_declared_pairs_go_before_everything():
    mechanism = scene(layer=2, mask=2)
    mechanism.contact_pair("a", "b", friction=0.7)
    mechanism.contact_pair("a ball", "b ball", friction=0.9)
    mechanism.contact_pair("a", "ground", friction=0.2)
    mechanism.contact_pair("d", "ground", collide=False)
    assert touching(mechanism) == {("a ball", "b ball"): 0.9, ("a ball", "ground"): 0.2}


def test_what_is_fixed_to_the_world_does_not_touch_the_environment():
    mechanism = scene()
    mechanism.obstacle("wall", da.Box(size=(1, 1, 1), mass=1.0), position=(9, 0, 0))
    mechanism.joint("base", da.Fixed(), mechanism.world, "c", at=(2, 0, 1))
    found = touching(mechanism)
    assert ("a ball", "wall") in found
    assert ("d", "c ball") in found
    assert not any("b ball" in pair or "c ball" in pair for pair in found if "wall" in pair or "ground" in pair)


def test_touches_is_exact():
    mechanism = da.Mechanism("arm")
    for i, name in enumerate("ab"):
        mechanism.body(name, BALL, position=(i, 0, 0), collide=True)
    mechanism.joint("hinge", da.Revolute(axis="y"), "a", "b")
    assert not mechanism.touches
    mechanism.body("c", BALL, position=(3, 0, 0), collide=True)
    assert mechanism.touches


def test_a_collider_beside_the_centre_of_mass_carries_its_body():
    mechanism = da.Mechanism("table")
    mechanism.ground(friction=1.0)
    mechanism.body("top", mass=2.0, inertia=np.diag([0.1, 0.1, 0.2]), position=(0, 0, 0.5))
    for i, (x, y) in enumerate([(0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2)]):
        mechanism.collider(f"leg {i}", "top", da.Capsule(radius=0.05, length=0.2, mass=1.0, axis="x"), position=(x, y, -0.2), orientation=(1, 0, 1, 0))
    run = da.Simulation(mechanism, da.Variational(dt=0.005)).run(1.0)
    assert run.position[-1, 0, 2] == pytest.approx(0.2 + 0.1 + 0.05, abs=1e-6)
    assert run.contacts().least_gap().min() >= -1e-8
    last = run.contacts().at(len(run) - 1)
    assert last.normal_force.sum() == pytest.approx(2.0 * 9.81, rel=1e-3)


@pytest.mark.parametrize(("make", "message"), [
    (lambda m: m.collider("x", "world", BALL), "use obstacle"),
    (lambda m: m.collider("x", "a", "ball"), "one of dalembert's shapes"),
    (lambda m: m.collider("a ball", "a", BALL), "taken"),
    (lambda m: m.collider("x", "a", BALL, layer=0.5), "whole number"),
    (lambda m: m.collider("x", "a", BALL, friction=-1.0), "must not be negative"),
])
def test_bad_colliders(make: Callable[[da.Mechanism], object], message):
    with pytest.raises(da.ModelError, match=message):
        make(scene())
