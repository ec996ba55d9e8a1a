"""Every number of a mechanism has a name: listed with its unit, set to another value, read back; nonsense is refused."""
from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

import dalembert as da
from dalembert.formulations.engine import Formulation
from dalembert.mechanism.parameters import Parameter, list_parameters, with_parameters
from dalembert.model.functions import address_of

FORMULATIONS = pytest.mark.parametrize("formulation", [da.Variational(dt=0.005), da.Implicit(dt=0.005)], ids=["variational", "implicit"])


def machine(**given: Any) -> da.Mechanism:
    """A bit of everything that has parameters."""
    numbers: dict[str, Any] = dict(
        damping=0.1, mass=1.0, stiffness=30.0, path_damping=0.5, rest=0.8, push=(0.0, 0.5, 0.0), linear=0.2, angular=0.01, depth=400.0, gain=20.0,
        rate_gain=0.5, bound=4.0,
    ) | given
    mechanism = da.Mechanism("machine", gravity=numbers.get("gravity", (0, 0, -9.81)))
    upper = mechanism.body("upper", mass=numbers["mass"], inertia=np.diag([0.1, 0.1, 0.01]), position=(0, 0, -0.5))
    lower = mechanism.body("lower", mass=0.7, inertia=np.diag([0.05, 0.05, 0.01]), position=(0, 0, -1.5))
    mechanism.joint("shoulder", da.Revolute(axis="x", damping=numbers["damping"], stiffness=1.0, armature=0.01), "world", upper)
    servo = da.Servo(stiffness=numbers["gain"], damping=numbers["rate_gain"], target=0.2, bound=numbers["bound"])
    mechanism.joint("elbow", da.Universal(axes=("x", "y"), servo=(servo, None), damping=0.1), upper, lower, at=(0, 0, -1))
    points = [("world", (0, 0.5, 0)), (upper, (0, 0.1, -0.7)), (lower, (0, 0, -1.6))]
    mechanism.path("spring", points, stiffness=numbers["stiffness"], damping=numbers["path_damping"], length=numbers["rest"])
    mechanism.cable("rope", points[:2], stiffness=100.0, length=0.9)
    mechanism.force("wind", lower, numbers["push"])
    mechanism.drag("air", lower, linear=numbers["linear"], angular=numbers["angular"])
    mechanism.penalty("mat", lower, point=(0, 0, -0.5), offset=-1.7, stiffness=numbers["depth"], damping=2.0, friction=0.4, tangential=3.0)
    mechanism.wrench(upper, force=(0.1, 0, 0))
    return mechanism


def touching() -> da.Mechanism:
    """Everything that touches."""
    mechanism = da.Mechanism("touching")
    crate = mechanism.body("crate", da.Box(size=(0.1, 0.1, 0.1), mass=1.0), position=(0, 0, 1), collide=True)
    ball = mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(1, 0, 1), collide=True)
    mechanism.joint("screw", da.Helical(pitch=0.1), "world", crate, at=(0, 0, 1))
    mechanism.joint("wheel", da.Revolute(limits=(-1, None), restitution=0.2), "world", ball, at=(1, 0, 1))
    mechanism.joint("rod", da.Distance(length=1.0), crate, ball, at=((0, 0, 1), (1, 0, 1)))
    mechanism.gear("gear", "screw", "wheel", ratio=2.0)
    mechanism.ground(friction=0.3)
    mechanism.obstacle("stone", da.Sphere(radius=0.1, mass=1.0), position=(5, 0, 0))
    mechanism.height_field(np.zeros((2, 2)), origin=(9, 9), name="hills")
    mechanism.collider("knob", crate, da.Sphere(radius=0.01, mass=1.0), friction=0.2)
    mechanism.contact_point(crate, point=(0, 0, 0.1), friction=0.5)
    mechanism.contact_point(crate, point=(0, 0.1, 0.1), restitution=0.1)
    mechanism.contact_pair(crate, ball, friction=0.1)
    mechanism.contact_pair("knob", ball, collide=False)
    return mechanism


UNITS = {
    "gravity": "m/s^2", "shoulder.point_child": "m", "spring.points": "m", "upper.mass": "kg", "upper.inertia": "kg m^2", "upper.force": "N", "upper.torque": "N m", "shoulder.stiffness": "N m/rad",
    "shoulder.damping": "N m s/rad", "shoulder.rest": "rad", "shoulder.armature": "kg m^2", "shoulder.friction": "N m", "shoulder.lower": "rad",
    "shoulder.upper": "rad", "shoulder.restitution": "", "elbow.servo_stiffness": "N m/rad", "elbow.servo_damping": "N m s/rad", "elbow.servo_bound": "N m",
    "spring.stiffness": "N/m", "spring.damping": "N s/m", "spring.rest": "m", "rope.stiffness": "N/m", "wind.force": "N", "air.linear": "N s/m",
    "air.angular": "N m s/rad", "mat.offset": "m", "mat.stiffness": "N/m", "mat.damping": "N s/m", "mat.friction": "", "mat.tangential": "N s/m",
}
TOUCHING = {
    "screw.pitch": "m", "rod.length": "m", "gear.ratio": "", "gear.offset": "m or rad", "ground.friction": "", "ground.restitution": "", "stone.friction": "",
    "hills.restitution": "", "knob.friction": "", "crate contact 0.friction": "", "crate contact 1.restitution": "", "ball and crate.friction": "",
    "ball and crate.restitution": "", "wheel.restitution": "",
}


@pytest.mark.parametrize(("build", "units"), [(machine, UNITS), (touching, TOUCHING)], ids=["forces", "contacts"])
def test_every_parameter_is_listed_set_and_read_back(build, units):
    mechanism = build()
    listed = list_parameters(mechanism)
    for name, unit in units.items():
        assert listed[name].unit == unit, name
    for name, parameter in listed.items():
        other = 1.25 * np.array(parameter.value) + np.where(np.array(parameter.value) == 0.0, 0.1, 0.0)
        if name.endswith(".inertia"):
            other = 1.25 * np.array(parameter.value)
        if name.endswith((".lower", ".upper")):
            other = np.full(np.shape(parameter.value), -0.5 if name.endswith("lower") else 0.5)
        if name.endswith(".velocity"):  # of a conveyor, along its surface
            other = np.cross(mechanism[name.rpartition(".")[0]].normal, (0.3, 0.2, 0.1))
        changed = list_parameters(with_parameters(mechanism, {name: other}))
        assert set(changed) == set(listed)
        for key, value in changed.items():
            np.testing.assert_array_equal(value.value, other if key == name else listed[key].value, err_msg=f"{key} after setting {name}")
            assert np.shape(value.value) == np.shape(parameter.value) or key != name
    assert {n: np.array(p.value).tolist() for n, p in list_parameters(mechanism).items()} == {n: np.array(p.value).tolist() for n, p in listed.items()}


def test_what_has_no_number_of_its_own_is_not_listed():
    listed = list_parameters(touching())
    for name in ("knob.restitution", "crate contact 0.restitution", "crate contact 1.friction", "ball and knob.friction"):
        assert name not in listed
    mechanism = machine()
    mechanism.path("muscle", [("world", (0, 1, 0)), ("upper", (0, 0, 0))], law=lambda length, rate: 0.0)
    assert not any(name.startswith("muscle") for name in list_parameters(mechanism))


def test_elements_refer_to_the_changed_ones():
    changed = with_parameters(machine(), {"upper.mass": 3.0, "lower.mass": 4.0})
    upper, lower = changed["upper"], changed["lower"]
    assert (upper.mass, lower.mass) == (3.0, 4.0)
    assert changed["spring"].bodies == (changed.world, upper, lower)
    assert changed["wind"].body is changed["air"].body is changed["mat"].body is lower
    assert (changed["elbow"].parent, changed["elbow"].child) == (upper, lower)
    assert changed.joints[1] is changed["elbow"]
    assert changed.paths[0] is changed["spring"]
    with pytest.raises(ValueError, match="read-only"):
        with_parameters(changed, {"upper.inertia": 2.0 * upper.inertia})["upper"].inertia[0, 0] = 1.0


def test_a_law_is_not_compiled_again_for_other_parameters():
    @numba.njit
    def push(position, orientation, velocity):
        return -0.1 * velocity

    mechanism = machine()
    law = mechanism.force_law("law", ["upper", "lower"], push)
    changed = with_parameters(mechanism, {"upper.mass": 3.0})["law"]
    assert changed is not law
    assert changed.bodies[0].mass == 3.0
    assert address_of(changed) == address_of(law)


CHANGES: dict[str, dict[str, Any]] = {
    "shoulder.damping": dict(damping=0.7), "gravity": dict(gravity=(0.0, 1.0, -5.0)), "upper.mass": dict(mass=2.0), "spring.stiffness": dict(stiffness=80.0),
    "spring.damping": dict(path_damping=3.0), "spring.rest": dict(rest=1.1), "wind.force": dict(push=(0.0, -2.0, 1.0)), "air.linear": dict(linear=1.5),
    "air.angular": dict(angular=0.2), "mat.stiffness": dict(depth=900.0), "elbow.servo_stiffness": dict(gain=50.0), "elbow.servo_damping": dict(rate_gain=3.0),
    "elbow.servo_bound": dict(bound=1.0),
}


@FORMULATIONS
def test_a_changed_number_moves_as_one_that_was_built_in(formulation: Formulation):
    plain = da.Simulation(machine(), formulation)
    plain.set_joint("shoulder", 0.4)
    reference = plain.run(0.3).position
    for name, given in CHANGES.items():
        (value,) = given.values()
        runs = []
        for mechanism, values in ((machine(), {name: value}), (machine(**given), {})):
            sim = da.Simulation(mechanism, formulation)
            sim.set_joint("shoulder", 0.4)
            if values:
                sim.set_parameters(values)
                assert np.all(sim.parameters()[name].value == value)
            runs.append(sim.run(0.3).position)
        np.testing.assert_allclose(runs[0], runs[1], atol=1e-10, err_msg=name)
        assert np.abs(runs[0][-1] - reference[-1]).max() > 1e-6, name


def test_friction_of_a_contact_point_acts():
    def slide(friction: float) -> float:
        mechanism = da.Mechanism("puck")
        mechanism.body("puck", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 0.1))
        mechanism.joint("upright", da.Cartesian(), "world", "puck", at=(0, 0, 0.1))
        mechanism.ground(friction=0.9)
        mechanism.contact_point("puck", point=(0, 0, -0.1), friction=0.1)
        sim = da.Simulation(mechanism, da.Variational(dt=0.01))
        sim.set_velocity("puck", linear=(1, 0, 0))
        sim.set_parameters({"puck contact 0.friction": friction})
        return float(sim.run(0.2).position[-1, 0, 0])

    assert slide(0.05) > slide(0.2) + 0.01


@pytest.mark.parametrize(("values", "message"), [
    ({"spring.stiffnes": 1.0}, r"no parameter 'spring.stiffnes'; it has: spring.damping, spring.points, spring.rest, spring.stiffness$"),
    ({"nobody.mass": 1.0}, "no parameter 'nobody.mass'; it has: air.angular"),
    ({"mass": 1.0}, "no parameter 'mass'"),
    ({3: 1.0}, "values must be a dict"),
    ({"upper.mass": -1.0}, "mass must be positive"),
    ({"upper.mass": np.nan}, "'upper.mass' must be finite"),
    ({"upper.mass": [1.0, 2.0]}, "'upper.mass' must be a number"),
    ({"upper.inertia": np.eye(2)}, r"'upper.inertia' must be numbers of shape \(3, 3\)"),
    ({"upper.inertia": -np.eye(3)}, "inertia"),
    ({"spring.stiffness": -1.0}, "spring.stiffness must not be negative"),
    ({"spring.rest": np.inf}, "'spring.rest' must be finite"),
    ({"wind.force": (1.0, 2.0)}, r"'wind.force' must be numbers of shape \(3,\)"),
    ({"wind.force": "much"}, "'wind.force' must be numbers"),
    ({"air.linear": -0.1}, "air.linear must not be negative"),
    ({"mat.friction": -0.1}, "mat.friction must not be negative"),
    ({"elbow.servo_stiffness": -1.0}, "joint 'elbow': Servo: stiffness must not be negative"),
    ({"elbow.servo_bound": 0.0}, "joint 'elbow': Servo: bound must be positive"),
    ({"elbow.servo_bound": np.nan}, "'elbow.servo_bound' must be finite"),
    ({"elbow.damping": [0.1, 0.2, 0.3]}, r"'elbow.damping' must be numbers of shape \(2,\)"),
    ({"shoulder.lower": 2.0, "shoulder.upper": 1.0}, "joint 'shoulder': .* lower one must lie below"),
    ({"shoulder.restitution": 2.0}, "restitution must lie between 0 and 1"),
    ({"gravity": 3j}, "'gravity' must be numbers"),
])
def test_nonsense_is_refused_and_changes_nothing(values, message):
    sim = da.Simulation(machine(), da.Variational(dt=0.005))
    sim.run(0.05)
    state, before = sim.state, {n: np.array(p.value) for n, p in sim.parameters().items()}
    with pytest.raises(da.ModelError, match=message):
        sim.set_parameters({"shoulder.damping": 9.0, **values})
    assert sim.state == state
    for name, value in before.items():
        np.testing.assert_array_equal(sim.parameters()[name].value, value)
    assert isinstance(sim.parameters()["gravity"], Parameter)


def test_a_bound_may_be_taken_away():
    sim = da.Simulation(machine(), da.Variational(dt=0.005))
    sim.set_parameters({"elbow.servo_bound": np.inf, "shoulder.lower": -np.inf})
    assert sim.parameters()["elbow.servo_bound"].value == np.inf
