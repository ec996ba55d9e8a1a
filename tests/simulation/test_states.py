"""States are plain numbers that go out and in again; however a run is divided or read, the bits are the same."""
from __future__ import annotations

import pickle

import numpy as np
import pytest

import dalembert as da
from dalembert import zoo

METHODS = [da.Variational(dt=0.01), *(da.Implicit(dt=0.01, method=m) for m in ("bdf1", "bdf2", "sdirk2", "pareschi_russo", "semi_implicit")),
           *(da.Reduced(dt=0.01, method=m) for m in ("bdf1", "bdf2", "sdirk2", "pareschi_russo")), da.Reduced(dt=0.01, rotations="xyz", switch_charts=True)]


def loop() -> da.Mechanism:
    mechanism = zoo.double_pendulum()
    return mechanism


@pytest.fixture(params=METHODS, ids=lambda f: getattr(f, "method", "variational"))
def formulation(request):
    return request.param


def swing(formulation) -> da.Simulation:
    sim = da.Simulation(loop(), formulation)
    sim.set_joint(sim.mechanism.joints[0].name, 0.8)
    return sim


def test_runs_add_up_to_the_bit(formulation):
    whole, parts, steps = swing(formulation), swing(formulation), swing(formulation)
    run = whole.run(0.5)
    pieces = [parts.run(0.2), parts.run(0.1), parts.run(0.2)]
    for _ in range(50):
        steps.step()
    np.testing.assert_array_equal(run.position, np.concatenate([pieces[0].position, *(p.position[1:] for p in pieces[1:])]))
    np.testing.assert_array_equal(run.time, np.concatenate([pieces[0].time, *(p.time[1:] for p in pieces[1:])]))
    assert whole.state == parts.state == steps.state


def test_reading_changes_nothing(formulation):
    read, silent = swing(formulation), swing(formulation)
    for _ in range(20):
        read.step()
        silent.step()
        _ = read.velocity, read.angular_velocity, read.energy(), read.position
        for joint in read.mechanism.joints:
            _ = read.coordinates(joint.name), read.rates(joint.name)
        read.redundancy()
        read.solve_pose({read.mechanism.joints[0].name: 0.3})
    assert read.state == silent.state


def test_a_state_comes_back(formulation, tmp_path):
    sim = swing(formulation)
    sim.run(0.2)
    state = sim.state
    first = sim.run(0.3)
    state.save(tmp_path / "state.npz")
    other = swing(formulation)
    for kept in (state, pickle.loads(pickle.dumps(state)), da.State.load(tmp_path / "state.npz")):
        assert kept == state
        for simulation in (sim, other):
            simulation.restore(kept)
            assert simulation.time == pytest.approx(0.2)
            np.testing.assert_array_equal(simulation.run(0.3).position, first.position)


def test_inputs_of_one_run_do_not_push_the_next():
    mechanism = da.Mechanism("slider", gravity=(0, 0, 0))
    mechanism.body("block", da.Box(size=(0.1, 0.1, 0.1), mass=1.0))
    mechanism.joint("rail", da.Prismatic(axis="x", drive="force"), mechanism.world, "block")
    for formulation in (da.Variational(dt=0.001), da.Implicit(dt=0.001), da.Reduced(dt=0.001)):
        sim = da.Simulation(mechanism, formulation)
        sim.run(1.0, control=lambda _: {"rail": 1.0})
        sim.run(1.0)
        assert sim.velocity[0, 0] == pytest.approx(1.0, abs=1e-3)


def test_states_of_other_kinds_are_refused():
    sim, other = swing(da.Variational(dt=0.01)), swing(da.Implicit(dt=0.01))
    before = other.state
    with pytest.raises(da.ModelError, match="Variational"):
        other.restore(sim.state)
    with pytest.raises(da.ModelError, match="needs a state"):
        other.restore(sim.position)  # type: ignore[arg-type]
    assert other.state == before


def test_damaged_files_of_states(tmp_path):
    path = tmp_path / "state.npz"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(da.ModelError, match="no file of a state"):
        da.State.load(path)
    with pytest.raises(da.ModelError, match="no file of a state"):
        da.State.load(tmp_path / "missing.npz")


def test_a_change_of_the_step_keeps_second_order():
    """Steps of dt, then of 0.6 dt, then of dt again: errors fall with the square of dt, in both formulations."""
    for make in (lambda dt: da.Variational(dt=dt), lambda dt: da.Implicit(dt=dt), lambda dt: da.Reduced(dt=dt)):
        ends = []
        for dt in (0.02, 0.01, 0.005, 0.0025, 0.00125 / 4):
            sim = swing(make(dt))
            sim.run(0.4)
            sim.run(0.3, dt=0.6 * dt)
            sim.run(0.3)
            assert sim.time == pytest.approx(1.0)
            ends.append(np.concatenate([sim.position.ravel(), sim.velocity.ravel()]))
        errors = [np.abs(end - ends[-1]).max() for end in ends[:-1]]
        orders = np.log2(np.array(errors[:-1]) / errors[1:])
        assert np.all(orders > 1.8), orders
