"""What functions that a run calls may do with the simulation, and what copies and short runs of it give."""
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dalembert as da

FORMULATIONS = {"variational": da.Variational(dt=0.01), "implicit": da.Implicit(dt=0.01), "reduced": da.Reduced(dt=0.01)}


def cart() -> da.Mechanism:
    """A slide that follows a motion, and a pendulum on it."""
    mechanism = da.Mechanism("cart")
    body = mechanism.body("cart", mass=1.0, inertia=0.01 * np.eye(3))
    bob = mechanism.body("bob", mass=0.5, inertia=0.002 * np.eye(3), position=(0.0, 0.0, -0.4))
    mechanism.joint("slide", da.Prismatic(axis="x", drive="motion"), mechanism.world, body)
    mechanism.joint("hinge", da.Revolute(axis="y", drive="force"), body, bob, at=(0.0, 0.0, 0.0))
    return mechanism


MOVES: dict[str, Callable[[da.Simulation], object]] = {
    "run": lambda sim: sim.run(0.02),
    "step": lambda sim: sim.step(),
    "reset": lambda sim: sim.reset(),
    "restore": lambda sim: sim.restore(sim.state),
    "set_joint": lambda sim: sim.set_joint("hinge", 0.3),
    "set_velocity": lambda sim: sim.set_velocity("bob", linear=(1.0, 0.0, 0.0)),
    "set_parameters": lambda sim: sim.set_parameters({"bob.mass": 2.0}),
    "set_target": lambda sim: sim.set_target("slide", 0.1),
    "set_input": lambda sim: sim.set_input("hinge", 1.0),
    "equilibrium": lambda sim: sim.equilibrium(),
    "step_jacobian": lambda sim: sim.step_jacobian(),
}


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.parametrize("move", MOVES)
def test_a_controller_cannot_move_the_simulation_it_controls(name, move):
    """It used to be taken in silence: a run within a run advanced the same state twice, and targets set there were never followed."""
    sim = da.Simulation(cart(), FORMULATIONS[name])

    def control(sim: da.Simulation) -> dict[str, float]:
        if sim.time > 0.025:
            MOVES[move](sim)
        return {}

    with pytest.raises(da.ControlError, match="in the middle of a run") as caught:
        sim.run(0.1, control=control)
    assert len(caught.value.trajectory) == 4  # type: ignore[attr-defined]
    assert sim.time == pytest.approx(0.03)
    plain = da.Simulation(cart(), FORMULATIONS[name])
    plain.run(0.03)
    assert np.array_equal(sim.run(0.05).position, plain.run(0.05).position)
    MOVES[move](sim)  # between runs it may be moved


def test_a_target_cannot_move_it_either():
    sim = da.Simulation(cart(), da.Variational(dt=0.01))
    sim.set_target("slide", lambda t: 0.1 * t if sim.run(0.01) else 0.0)
    with pytest.raises(da.DalembertError, match="in the middle of a run"):
        sim.run(0.1)
    sim.set_target("slide", 0.0)
    assert len(sim.run(0.1)) == 11


@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_controller_may_look_ahead_on_a_copy(name):
    plain, sim = (da.Simulation(cart(), FORMULATIONS[name]) for _ in range(2))

    def control(sim: da.Simulation) -> dict[str, float]:
        ahead = copy.deepcopy(sim)
        ahead.set_parameters({"bob.mass": 2.0})
        ahead.run(0.02)
        sim.linearise()
        return {}

    assert np.array_equal(sim.run(0.05, control=control).position, plain.run(0.05).position)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_simulation_that_was_pickled_can_be_read_on(name):
    sim = da.Simulation(da.zoo.pendulum(2), FORMULATIONS[name])
    sim.run(0.05)
    again = pickle.loads(pickle.dumps(sim))
    assert len(again.latest()) == 1  # it made no step yet
    again.step()
    sim.step()
    assert np.array_equal(again.latest().position, sim.latest().position)


def test_runs_that_are_none(tmp_path: Path):
    sim = da.Simulation(da.zoo.pendulum(2), da.Variational(dt=0.01))
    for duration in (1e-12, 1e-9):
        with pytest.raises(da.ModelError, match="is none at all beside"):
            sim.run(duration)
        with pytest.raises(da.ModelError, match="is none at all"):
            sim.stream(duration, tmp_path / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(da.ModelError, match="is a file"):
        sim.stream(0.1, tmp_path / "file")
    assert sim.time == 0.0


def test_contacts_at_knots_that_are_none():
    contacts = da.Simulation(da.zoo.box_drop(), da.Variational(dt=0.01)).run(0.1).contacts()
    for knot in (11, -12, 10**6):
        with pytest.raises(da.ModelError, match=f"there is no knot {knot}"):
            contacts.at(knot)
    assert len(contacts.at(-11).gap) == len(contacts.at(0).gap)
