"""Events of adaptive methods: joint limits against closed forms, and functions of the user's."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

G = 9.81


def slider(restitution: float = 0.5) -> da.Mechanism:
    """A weight one metre above the end of its slide."""
    mechanism = da.Mechanism("slider")
    weight = mechanism.body("weight", da.Box(size=[0.2, 0.2, 0.2], mass=2.0), position=[0.0, 0.0, 1.0])
    mechanism.joint("slide", da.Prismatic(axis="z", limits=(-1.0, None), restitution=restitution), mechanism.world, weight)
    return mechanism


@pytest.mark.parametrize("method", ["RK45", "DOP853", "LSODA", "Radau"])
def test_impacts_at_a_limit_happen_when_they_should(method):
    run = da.Simulation(slider(), da.Reduced(dt=0.05, method=method), energy_bound=None).run(3.0)
    fall = np.sqrt(2.0 / G)
    wanted = fall * np.array([1.0, *(1.0 + 2.0 * np.cumsum(0.5 ** np.arange(1, 8)))])
    met = [event.time for event in run.events if event.name == "lower limit of 'slide'"]
    np.testing.assert_allclose(met[:8], wanted, atol=1e-9)
    # it comes to rest there and stays
    assert np.abs(run.position[-20:]).max() < 1e-12
    assert np.abs(run.velocity[-20:]).max() == 0.0
    assert run.joint("slide").coordinates.min() > -1.0 - 1e-9


def test_bouncing_pendulum_keeps_its_energy_and_its_period():
    """A pendulum between elastic stops at 0 (hanging) and its amplitude: half a period per bounce, from the elliptic integral."""
    from scipy.special import ellipk

    mechanism = da.Mechanism("pendulum")
    rod = mechanism.body("rod", da.Box(size=[0.1, 0.1, 1.0], mass=1.0), position=[0.0, 0.0, -0.5])
    mechanism.joint("hinge", da.Revolute(axis="y", limits=(0.0, None), restitution=1.0), mechanism.world, rod, at=[0.0, 0.0, 0.0])
    sim = da.Simulation(mechanism, da.Reduced(dt=0.02, method="DOP853", rtol=1e-11, atol=1e-12), energy_bound=None)
    amplitude = 1.0
    sim.set_joint("hinge", amplitude)
    run = sim.run(4.0)
    omega = np.sqrt(0.5 * G / (0.25 + 1.01 / 12.0))
    quarter = ellipk(np.sin(0.5 * amplitude) ** 2) / omega
    wanted = quarter * np.arange(1, 2 * len(run.events), 2)
    np.testing.assert_allclose([event.time for event in run.events], wanted, atol=1e-8)
    assert len(run.events) == 5
    energy = run.energy().total
    assert np.abs(energy - energy[0]).max() < 1e-8


def test_impact_inside_a_chain_gives_the_rest_what_momentum_says():
    """At an impact only the impulse along the stopped direction acts: the other joint's momentum does not change."""
    def chain(restitution):
        mechanism = da.Mechanism("chain")
        upper = mechanism.body("upper", da.Box(size=[0.1, 0.1, 1.0], mass=1.0), position=[0.0, 0.0, -0.5])
        lower = mechanism.body("lower", da.Box(size=[0.1, 0.1, 1.0], mass=1.0), position=[0.0, 0.0, -1.5])
        mechanism.joint("hip", da.Revolute(axis="y"), mechanism.world, upper, at=[0.0, 0.0, 0.0])
        mechanism.joint("knee", da.Revolute(axis="y", limits=(None, 1.0), restitution=restitution), upper, lower, at=[0.0, 0.0, -1.0])
        return mechanism

    for restitution in (1.0, 0.0):
        sim = da.Simulation(chain(restitution), da.Reduced(dt=0.01, method="DOP853", rtol=1e-11, atol=1e-12), energy_bound=None)
        sim.set_joint("knee", 0.3)
        sim.set_joint("knee", rate=9.0)
        run = sim.run(0.4)
        assert run.events[0].name == "upper limit of 'knee'"
        before, after = (int(np.searchsorted(run.time, run.events[0].time)) + k for k in (-1, 0))
        assert run.joint("knee").rates[before] > 0.0
        other = da.Simulation(chain(restitution), da.Variational(dt=0.001), energy_bound=None)
        other.set_joint("knee", 0.3)
        other.set_joint("knee", rate=9.0)
        reference = other.run(0.4)
        assert np.abs(run.position[after + 3] - reference.position[10 * (after + 3)]).max() < 5e-3
        if restitution == 1.0:
            energy = run.energy().total
            assert np.abs(energy - energy[0]).max() < 1e-8
        assert run.joint("knee").coordinates.max() < 1.0 + 1e-9


def test_what_is_held_at_an_end_is_let_go():
    """A weight resting on its stop is lifted by a force that grows with time: it leaves when the force exceeds the weight."""
    mechanism = da.Mechanism("lifted")
    weight = mechanism.body("weight", da.Box(size=[0.2, 0.2, 0.2], mass=2.0), position=[0.0, 0.0, 0.0])
    mechanism.joint("slide", da.Prismatic(axis="z", limits=(0.0, None), drive="force"), mechanism.world, weight)
    sim = da.Simulation(mechanism, da.Reduced(dt=0.05, method="RK45", rtol=1e-10), energy_bound=None)
    sim.set_input("slide", lambda t: 40.0 * t)
    run = sim.run(1.0)
    free = 2.0 * G / 40.0
    np.testing.assert_allclose(run.position[:, 0, 2], np.where(run.time < free, 0.0, 40.0 / 2.0 * (run.time - free) ** 3 / 6.0), atol=1e-8)


def test_events_are_noted_and_end_runs():
    def apex(moment):
        return moment.velocity[moment.body("weight"), 2]

    def low(moment):
        return moment.coordinates("slide")[0] + 0.5

    apex.direction = -1.0
    run = da.Simulation(slider(), da.Reduced(dt=0.05, method="RK45", events=[apex]), energy_bound=None).run(1.0)
    assert [event.name for event in run.events] == ["lower limit of 'slide'", "apex", "lower limit of 'slide'"]
    assert run.events[1].position[0, 2] == pytest.approx(0.25, abs=1e-9)
    low.terminal = True
    sim = da.Simulation(slider(), da.Reduced(dt=0.05, method="DOP853", events=[low]), energy_bound=None)
    run = sim.run(1.0)
    assert run.events[-1].time == pytest.approx(np.sqrt(1.0 / G), abs=1e-9)
    assert run.time[-1] == sim.time == pytest.approx(0.3)
    with pytest.raises(da.StepFailure, match="'low' ended"):
        sim.step()


def test_events_are_kept_in_files(tmp_path):
    pytest.importorskip("h5py")
    run = da.Simulation(slider(), da.Reduced(dt=0.05, method="RK45"), energy_bound=None).run(1.0)
    run.save(tmp_path / "run.h5")
    again = da.Trajectory.load(tmp_path / "run.h5")
    assert [(e.time, e.name) for e in again.events] == [(e.time, e.name) for e in run.events]
