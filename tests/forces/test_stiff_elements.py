"""Stiff cables and servos: stable at steps that do not resolve them, of second order where steps do."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dalembert as da
from dalembert import zoo

BOTH = pytest.mark.parametrize("make", [lambda dt: da.Variational(dt=dt), lambda dt: da.Implicit(dt=dt)], ids=["variational", "bdf2"])


def chain(stiffness: float, damping: float = 0.0, links: int = 30) -> da.Mechanism:
    """Links of 1 kg and 1 m, with a cable through three of them."""
    mechanism = da.Mechanism("chain with a cable")
    before = mechanism.world
    for i in range(links):
        link = mechanism.body(f"link {i}", da.Rod(length=1.0, mass=1.0, radius=0.02), position=(0, 0, -i - 0.5))
        mechanism.joint(f"hinge {i}", da.Revolute(axis="x"), before, link, at=(0, 0, -i))
        before = link
    points = [("link 10", (0, 0.2, -10.2)), ("link 11", (0, 0.2, -11.5)), ("link 12", (0, 0.2, -12.8))]
    mechanism.cable("cable", points, stiffness=stiffness, damping=damping)
    mechanism.start("hinge 0", 0.3)
    mechanism.start("hinge 11", 0.4)
    return mechanism


@BOTH
def test_a_cable_that_the_step_does_not_resolve(make):
    run = da.Simulation(chain(1e6), make(0.01)).run(3.0)
    cable, energy = run.path("cable"), run.energy()
    assert cable.tension.min() >= 0.0, "it never pushes"
    assert cable.tension.max() > 100.0
    moved = np.ptp(energy.potential)
    assert energy.total.max() - energy.total[0] < 0.05 * moved, "the energy stays where it is"
    assert run.constraint_violation().max() < 1e-11
    assert run.substeps.max() == 1


@BOTH
def test_a_cable_that_the_step_resolves(make):
    ends, open_energy = [], []
    for dt in (0.004, 0.002, 0.001, 0.00025):
        run = da.Simulation(chain(2e3, 20.0, links=14), make(dt)).run(0.4)
        ends.append(np.concatenate([run.position[-1].ravel(), 0.1 * run.velocity[-1].ravel()]))
        cable, total = run.path("cable"), run.energy().total
        lost = np.trapezoid(np.where(cable.tension > 0.0, 20.0 * cable.rate**2, 0.0), run.time)
        open_energy.append(abs(total[-1] - total[0] + lost))
    errors = [np.abs(end - ends[-1]).max() for end in ends[:-1]]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(orders > 1.9), orders
    energy_orders = np.log2(np.array(open_energy[:-2]) / open_energy[1:-1])
    assert np.all(energy_orders > 1.8), energy_orders


def servo_quadruped(gain: float) -> da.Mechanism:
    """The quadruped with servos in place of springs, dampers and force inputs."""
    mechanism = zoo.quadruped()
    for index, joint in enumerate(mechanism.joints):
        target = float(np.atleast_1d(mechanism.initial_joints[joint.name][0])[0])
        kind = replace(joint.type, stiffness=0.0, damping=0.0, drive=None, servo=da.Servo(stiffness=gain, damping=0.02 * gain, target=target))
        mechanism.joints[index] = mechanism._names[joint.name] = replace(joint, type=kind)
    return mechanism


def test_stiff_servos_hold_a_quadruped():
    """Gains of 1e4 N m/rad at a step of 5 ms: it stands, does not ring, and gives way as statics says."""
    gain = 1e4
    mechanism = servo_quadruped(gain)
    sim = da.Simulation(mechanism, da.Variational(dt=0.005))
    run = sim.run(2.0)
    height = run.body("trunk").position[:, 2]
    assert abs(height[-1] - height[0]) < 1e-3
    late = run.time > 1.0
    assert np.abs(run.velocity[late]).max() < 1e-6, "at rest"
    for joint in mechanism.joints:
        series = run.joint(joint.name)
        target = float(np.atleast_1d(mechanism.initial_joints[joint.name][0])[0])
        # at rest the servo's force is its gain times the error, and holds what the leg carries
        np.testing.assert_allclose(gain * (target - series.coordinates[late]), series.actuation[late], rtol=1e-3, atol=1e-4)
        assert np.ptp(series.actuation[late]) < 1e-3, "no ringing"
    weight = sum(body.mass for body in mechanism.bodies) * 9.81
    assert run.contacts().total_force()[-1, 2] == pytest.approx(weight, rel=1e-6)


@BOTH
def test_a_servo_reaches_its_target_and_keeps_its_bound(make):
    mechanism = da.Mechanism("motor", gravity=(0, 0, 0))
    mechanism.body("arm", da.Rod(length=1.0, mass=1.0, radius=0.02), position=(0, 0, -0.5))
    mechanism.joint("motor", da.Revolute(axis="x", servo=da.Servo(stiffness=400.0, damping=30.0, bound=2.0)), mechanism.world, "arm", at=(0, 0, 0))
    sim = da.Simulation(mechanism, make(0.01))
    sim.set_target("motor", 0.5)
    run = sim.run(4.0)
    drive = run.joint("motor").shares["drive"]
    assert np.abs(drive).max() <= 2.0 + 1e-9
    assert run.joint("motor").coordinates[-1] == pytest.approx(0.5, abs=1e-4)
    sim.run(2.0, control=lambda _: {"motor": -0.2})
    assert sim.coordinates("motor")[0] == pytest.approx(-0.2, abs=1e-3)
