"""Back to the start, and durations that are met."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

FORMULATIONS = [da.Variational(dt=0.01), da.Implicit(dt=0.01), da.Reduced(dt=0.01)]
IDS = [type(formulation).__name__ for formulation in FORMULATIONS]


def cart_pole() -> da.Mechanism:
    made = da.Mechanism("cart pole")
    made.body("cart", da.Box(size=(0.4, 0.3, 0.2), mass=1.0))
    made.body("pole", da.Rod.between((0, 0, 0), (0, 0, 1), radius=0.02, mass=0.1))
    made.joint("rail", da.Prismatic(axis="x", drive="force"), "world", "cart")
    made.joint("hinge", da.Revolute(axis="y"), "cart", "pole")
    return made


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=IDS)
def test_a_reset_run_has_the_same_bits(formulation):
    sim = da.Simulation(cart_pole(), formulation)
    sim.set_joint("hinge", 0.3, rate=0.2)
    sim.set_input("rail", 0.5)
    first = sim.run(0.3)
    sim.set_input("rail", lambda t: 7.0)
    sim.set_joint("hinge", -1.0)
    sim.run(0.1)
    sim.reset()
    assert sim.time == 0.0
    assert sim.coordinates("hinge")[0] == pytest.approx(0.3)
    again = sim.run(0.3)
    np.testing.assert_array_equal(first.position, again.position)
    np.testing.assert_array_equal(first.velocity, again.velocity)
    sim.reset()
    for _ in range(30):
        sim.step()
    np.testing.assert_array_equal(sim.position, first.position[-1])


def test_a_reset_before_the_first_step_changes_nothing():
    sim = da.Simulation(cart_pole(), da.Variational(dt=0.01))
    sim.set_joint("hinge", 0.3)
    before = sim.state
    sim.reset()
    assert sim.state == before


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=IDS)
def test_parameters_stay_when_a_simulation_is_reset(formulation):
    sim, other = (da.Simulation(cart_pole(), formulation) for _ in range(2))
    for one in (sim, other):
        one.set_joint("hinge", 0.3, rate=0.2)
    sim.run(0.2)
    sim.set_parameters({"pole.mass": 0.4})
    sim.reset()
    other.set_parameters({"pole.mass": 0.4})
    np.testing.assert_allclose(sim.run(0.2).position, other.run(0.2).position, atol=1e-12)


def test_a_reset_run_has_the_derivatives_of_its_start():
    sim = da.Simulation(cart_pole(), da.Variational(dt=0.01))
    sim.set_joint("hinge", 0.3)
    gradients = []
    for _ in range(2):
        run = sim.run(0.1, tape=True)
        seed = np.zeros_like(run.position)
        seed[-1] = 1.0
        gradients.append(run.vjp({"position": seed}, parameters=["hinge.start"])["hinge.start"])
        sim.reset()
    np.testing.assert_array_equal(*gradients)


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=IDS)
def test_a_duration_is_met_by_a_last_shorter_step(formulation):
    sim = da.Simulation(cart_pole(), formulation)
    sim.set_joint("hinge", 0.3)
    run = sim.run(0.125)
    assert sim.time == pytest.approx(0.125, abs=1e-15)
    np.testing.assert_allclose(run.time, [*np.arange(13) * 0.01, 0.125], atol=1e-14)
    fine = da.Simulation(cart_pole(), type(formulation)(dt=0.0005))
    fine.set_joint("hinge", 0.3)
    np.testing.assert_allclose(run.position[-1], fine.run(0.125).position[-1], atol=2e-5)
    np.testing.assert_allclose(run.joint("hinge").force[-1], fine.run(1e-3).joint("hinge").force[0], atol=0.02)
    assert len(da.Simulation(cart_pole(), formulation).run(0.003)) == 2
    assert len(da.Simulation(cart_pole(), formulation).run(0.1 + 0.2)) == 31


def test_a_tape_is_one_of_whole_steps():
    with pytest.raises(da.GradientError, match="no multiple of dt"):
        da.Simulation(cart_pole(), da.Variational(dt=0.01)).run(0.125, tape=True)


def test_a_stream_meets_its_duration(tmp_path):
    pytest.importorskip("h5py")
    sim = da.Simulation(cart_pole(), da.Variational(dt=0.01))
    sim.stream(0.125, tmp_path / "parts", part=0.05)
    assert da.Trajectory.load(tmp_path / "parts").time[-1] == pytest.approx(0.125)
