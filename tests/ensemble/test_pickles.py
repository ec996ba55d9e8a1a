"""Mechanisms, simulations, states, trajectories and parameters cross to other processes, small, and go on there to the bit."""
from __future__ import annotations

import pickle
from collections.abc import Callable

import cloudpickle
import numpy as np
import pytest

import dalembert as da
from dalembert.ensemble.digest import fingerprint
from dalembert.zoo.words import mechanisms

#: those that take long to make or to run
LARGE = ("hoberman_sphere", "animatronic_figure", "walker_legs", "solar_panel_satellite", "exoskeleton")
QUICK = ("double_pendulum", "slider_crank", "hopper", "quadruped", "cable_finger", "spline_shoulder")
FORMULATIONS = (da.Variational(dt=0.001), da.Implicit(dt=0.001), da.Reduced(dt=0.001))


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in mechanisms()])
def test_the_zoo_travels(name: str) -> None:
    mechanism = mechanisms()[name]()
    twin = pickle.loads(pickle.dumps(mechanism))
    assert fingerprint(twin) == fingerprint(mechanism)
    taken = 0
    for formulation in FORMULATIONS[:1] if name in LARGE else FORMULATIONS:
        try:
            simulation = da.Simulation(mechanism, formulation)
        except da.ModelError:
            continue
        taken += 1
        simulation.run(0.002)
        data = pickle.dumps(simulation)
        other = pickle.loads(data)
        assert len(pickle.dumps(simulation.state)) < 2 * simulation.state.numbers.nbytes + 1200 + 60 * len(mechanism.bodies)
        assert len(data) < 12 * len(pickle.dumps(mechanism)) + 4000
        here, there = simulation.run(0.002), other.run(0.002)
        kept = pickle.loads(pickle.dumps(here))
        for run in (there, kept):
            assert np.array_equal(run.position, here.position)
            assert np.array_equal(run.velocity, here.velocity)
        other.reset()
        simulation.reset()
        assert other.state == simulation.state
        assert pickle.loads(pickle.dumps(simulation.parameters())).keys() == simulation.parameters().keys()
    assert taken


def test_targets_inputs_and_parameters_travel_along() -> None:
    mechanism = da.Mechanism("driven")
    mechanism.body("rod", da.Rod(length=1.0, radius=0.02, mass=1.0), position=(0, 0, -0.5))
    mechanism.joint("hinge", da.Revolute(axis="x", drive="motion"), mechanism.world, "rod", at=(0, 0, 0))
    simulation = da.Simulation(mechanism, da.Variational(dt=0.01))
    simulation.set_target("hinge", lambda time: np.sin(time))
    simulation.set_parameters({"rod.mass": 2.0})
    simulation.run(0.1)
    other = pickle.loads(cloudpickle.dumps(simulation))
    assert other.time == simulation.time
    assert other.parameters()["rod.mass"].value == 2.0
    assert np.array_equal(other.run(0.1).joint("hinge").force, simulation.run(0.1).joint("hinge").force)


def of(number: float) -> Callable[[float], float]:
    return lambda x: x + number


def test_fingerprints_tell_what_differs() -> None:
    same = [(da.zoo.quadruped(), da.zoo.quadruped()), (of(1.0), of(1.0)), ({"a": np.ones(3)}, {"a": np.ones(3)}), (da.Variational(dt=0.01), da.Variational(dt=0.01))]
    other = [(da.zoo.pendulum(), da.zoo.simple_pendulum()), (of(1.0), of(2.0)), (np.ones(3), np.ones((3, 1))), (1, 1.0), ("1", 1), (lambda x: x, lambda x: -x), (da.Variational(dt=0.01), da.Variational(dt=0.02))]
    assert all(fingerprint(a) == fingerprint(b) for a, b in same)
    assert all(fingerprint(a) != fingerprint(b) for a, b in other)
