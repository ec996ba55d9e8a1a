"""Batches: every state as a simulation of its own would be, to the bit, whatever the number of threads."""
from __future__ import annotations

import pickle
import signal
from typing import Any

import numpy as np
import pytest

import dalembert as da

FORMULATIONS = {
    "variational": da.Variational(dt=0.01), "bdf2": da.Implicit(dt=0.01), "sdirk2": da.Implicit(dt=0.01, method="sdirk2"),
    "semi_implicit": da.Implicit(dt=0.01, method="semi_implicit"), "reduced": da.Reduced(dt=0.01), "rk4": da.Reduced(dt=0.01, method="rk4"),
    "adaptive": da.Reduced(dt=0.01, method="RK45"),
}


def cart_pole() -> da.Mechanism:
    m = da.Mechanism("cart and pole")
    m.body("cart", da.Box(size=(0.3, 0.2, 0.1), mass=1.0))
    m.body("pole", da.Rod(length=0.6, radius=0.01, mass=0.2), position=(0, 0, 0.3))
    m.joint("slide", da.Prismatic(axis="x", drive="force"), "world", "cart")
    m.joint("hinge", da.Revolute(axis="y", damping=1e-3), "cart", "pole")
    return m


def arm() -> da.Mechanism:
    """Two links: the first one follows its motion, the second one has a servo."""
    m = da.Mechanism("arm")
    m.body("upper", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -0.5))
    m.body("lower", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -1.5))
    m.joint("shoulder", da.Revolute(axis="x", drive="motion"), "world", "upper", at=(0, 0, 0))
    m.joint("elbow", da.Revolute(axis="x", servo=da.Servo(stiffness=50.0, damping=5.0)), "upper", "lower", at=(0, 0, -1))
    return m


def balls() -> da.Mechanism:
    """Two balls above the ground, one above the other but not quite."""
    m = da.Mechanism("balls")
    m.ground()
    for i, x in enumerate((0.0, 0.03)):
        m.body(f"ball {i}", da.Sphere(radius=0.1, mass=1.0), position=(x, 0, 0.11 + 0.25 * i), collide=True)
        m.joint(f"free {i}", da.Free(), "world", f"ball {i}")
    return m


def same(batch: da.Batch, simulations: list[da.Simulation]) -> None:
    """States, and what is read off them, are those of the simulations."""
    for i, sim in enumerate(simulations):
        assert batch.state(i) == sim.state, i
    for name in ("position", "orientation", "velocity", "angular_velocity"):
        assert np.array_equal(getattr(batch, name), [getattr(sim, name) for sim in simulations]), name
    assert np.array_equal(batch.energy(), [sim.energy() for sim in simulations])
    assert np.array_equal(batch.time, [sim.time for sim in simulations])
    for joint in batch.mechanism.joints:
        assert np.array_equal(batch.coordinates(joint.name), [sim.coordinates(joint.name) for sim in simulations])
        assert np.array_equal(batch.rates(joint.name), [sim.rates(joint.name) for sim in simulations])


@pytest.mark.parametrize("name", FORMULATIONS)
def test_bits_are_those_of_simulations(name: str) -> None:
    n, formulation, rng = 5, FORMULATIONS[name], np.random.default_rng(1)
    tilt, rate = rng.uniform(-0.5, 0.5, (n, 1)), rng.uniform(-1, 1, (n, 1))
    batches = [da.Batch(cart_pole(), formulation, n, threads=threads) for threads in (1, 2, 3)]
    simulations = [da.Simulation(cart_pole(), formulation) for _ in range(n)]
    for batch in batches:
        batch.reset(coordinates={"hinge": tilt}, rates={"slide": rate})
    for i, sim in enumerate(simulations):
        sim.restore(batches[0].state(i))
    for k in range(12):
        inputs = None if k % 3 == 2 else {"slide": rng.uniform(-1, 1, (n, 1)), "pole": rng.uniform(-0.1, 0.1, (n, 6))}
        for batch in batches:
            batch.step(inputs)
        for i, sim in enumerate(simulations):
            sim.step(None if inputs is None else {key: value[i] for key, value in inputs.items()})
    for batch in batches:
        same(batch, simulations)


@pytest.mark.parametrize("name", ["variational", "bdf2", "sdirk2", "reduced", "rk4"])
def test_targets_and_several_steps(name: str) -> None:
    n, formulation, rng = 3, FORMULATIONS[name], np.random.default_rng(2)
    batch, simulations = da.Batch(arm(), formulation, n, threads=2), [da.Simulation(arm(), formulation) for _ in range(n)]
    for steps in (1, 4, 1, 3):
        inputs = {"shoulder": batch.coordinates("shoulder") + rng.uniform(-0.02, 0.02, (n, 1)), "elbow": rng.uniform(-0.5, 0.5, n)}
        batch.step(inputs, steps)
        for i, sim in enumerate(simulations):
            for _ in range(steps):
                sim.step({key: value[i] for key, value in inputs.items()})
    same(batch, simulations)


@pytest.mark.parametrize("name", ["variational", "bdf2", "reduced"])
def test_contact_scenes(name: str) -> None:
    n, formulation = 4, FORMULATIONS[name]
    batches = [da.Batch(balls(), formulation, n, threads=threads) for threads in (1, 2)]
    simulations = [da.Simulation(balls(), formulation) for _ in range(n)]
    speeds = np.linspace(-1.0, 1.0, n)[:, None] * [1, 0, 0, 0, 0, 0]
    for batch in batches:
        batch.reset(rates={"free 1": speeds})
    for i, sim in enumerate(simulations):
        sim.restore(batches[0].state(i))
    for _ in range(30):
        for runner in (*batches, *simulations):
            runner.step()
    for batch in batches:
        same(batch, simulations)
    assert np.all(batches[0].contact_wrench[:, 0, 2] > 1.0), "the lower ball lies on the ground"


def test_goes_on_in_a_simulation_and_back() -> None:
    batch, sim = da.Batch(cart_pole(), da.Variational(dt=0.01), 2), da.Simulation(cart_pole(), da.Variational(dt=0.01))
    batch.reset([1], coordinates={"hinge": 0.3})
    batch.step({"slide": 1.0}, 5)
    sim.restore(batch.state(1))
    sim.step()
    batch.step()
    assert sim.state == batch.state(1)
    batch.restore(0, sim.state)
    batch.step()
    assert batch.state(0) == batch.state(1)


def test_a_failed_state_stands_still_until_it_is_reset() -> None:
    batch = da.Batch(cart_pole(), da.Variational(dt=0.01), 3, threads=2)
    batch.reset([1], rates={"hinge": 1e7})
    before = batch.state(1)
    batch.step()
    assert batch.failed.tolist() == [False, True, False]
    assert isinstance(batch.failure(1), da.StepFailure)
    assert "spins" in str(batch.failure(1))
    assert batch.failure(0) is None
    assert batch.state(1) == before
    assert batch.time.tolist() == [0.01, 0.0, 0.01]
    batch.step()
    assert np.isfinite(batch.position).all()
    assert np.isfinite(batch.velocity).all()
    batch.reset(batch.failed)
    batch.step()
    assert not batch.failed.any()
    assert batch.time.tolist() == [0.03, 0.01, 0.03]


def test_parameters_of_their_own() -> None:
    n, masses = 3, np.array([0.1, 0.5, 2.0])
    batch = da.Batch(cart_pole(), da.Variational(dt=0.01), n, threads=2)
    batch.reset(coordinates={"hinge": 0.2})
    batch.step(steps=3)
    simulations, before = [da.Simulation(cart_pole(), da.Variational(dt=0.01)) for _ in range(n)], batch.state(0)
    batch.set_parameters({"pole.mass": masses, "gravity": (0, 0, -5.0)})
    for sim, mass in zip(simulations, masses):
        sim.restore(before)
        sim.set_parameters({"pole.mass": mass, "gravity": (0, 0, -5.0)})
    for runner in (batch, *simulations):
        for _ in range(5):
            runner.step({"slide": 0.5})
    same(batch, simulations)
    assert [batch.parameters(i)["pole.mass"].value for i in range(n)] == masses.tolist()
    batch.reset()
    batch.set_parameters({"pole.mass": 1.0}, [1])
    batch.step()
    assert batch.parameters(1)["pole.mass"].value == 1.0
    assert batch.parameters(2)["pole.mass"].value == 2.0


@pytest.mark.parametrize("name", ["variational", "bdf2", "reduced"])
def test_resets_are_as_joints_are_set(name: str) -> None:
    m = da.Mechanism("limbs")
    kinds = da.Free(), da.Universal(), da.Spherical(), da.Prismatic(axis="y"), da.Revolute(axis="x", limits=(-1, 2)), da.Cylindrical()
    above = m.world
    for i, kind in enumerate(kinds):
        body = m.body(f"body {i}", da.Box(size=(0.1, 0.2, 0.3), mass=1.0), position=(0.3 * i, 0.1, 0.0))
        m.joint(f"joint {i}", kind, above, body, at=(0.3 * i - 0.1, 0.0, 0.0))
        above = body
    rng, n = np.random.default_rng(3), 3
    coordinates = {f"joint {i}": rng.uniform(-0.8, 0.8, (n, kind.freedom)) for i, kind in enumerate(kinds) if i != 3}
    rates = {f"joint {i}": rng.uniform(-1, 1, (n, kind.freedom)) for i, kind in enumerate(kinds) if i not in (1, 3)}
    batch = da.Batch(m, FORMULATIONS[name], n)
    batch.step()
    batch.reset(coordinates=coordinates, rates=rates)
    for i in range(n):
        sim = da.Simulation(m, FORMULATIONS[name])
        for joint, value in coordinates.items():
            sim.set_joint(joint, value[i], rate=rates[joint][i] if joint in rates else None)
        turned = np.sign(np.sum(sim.orientation * batch.orientation[i], axis=1))
        assert np.allclose(batch.orientation[i] * turned[:, None], sim.orientation, rtol=0, atol=1e-12)
        for what in ("position", "velocity", "angular_velocity"):
            assert np.allclose(getattr(batch, what)[i], getattr(sim, what), rtol=0, atol=1e-11), what
        for joint in m.joints:
            assert np.allclose(batch.coordinates(joint.name)[i], sim.coordinates(joint.name), rtol=0, atol=1e-12)
            assert np.allclose(batch.rates(joint.name)[i], sim.rates(joint.name), rtol=0, atol=1e-11)
        assert batch.time[i] == 0.0
    with pytest.raises(da.ModelError, match="limits"):
        batch.reset(coordinates={"joint 4": -1.5})


def test_resets_close_loops() -> None:
    m = da.zoo.four_bar_chain(1)
    crank = "1 top"
    angles = da.Simulation(m, da.Variational(dt=0.01)).coordinates(crank) + np.array([[0.1], [0.2], [0.3]])
    batch = da.Batch(m, da.Variational(dt=0.01), 3)
    batch.reset(coordinates={crank: angles})
    for i, angle in enumerate(angles):
        sim = da.Simulation(m, da.Variational(dt=0.01))
        sim.set_joint(crank, angle)
        assert batch.state(i) == sim.state
    batch.step(steps=3)
    before = [batch.state(i) for i in range(3)]
    with pytest.raises(da.AssemblyError):
        batch.reset(coordinates={crank: angles, "1 left": [0.1, 0.2, 0.7], "1 bottom": [0.3, 0.2, 1.0]})
    assert [batch.state(i) for i in range(3)] == before


def test_pickled_in_the_middle() -> None:
    batch = da.Batch(cart_pole(), da.Reduced(dt=0.01), 4, threads=2)
    batch.reset(coordinates={"hinge": np.linspace(0.1, 0.4, 4)})
    batch.set_parameters({"pole.mass": 0.7}, [2])
    batch.step(steps=3)
    other = pickle.loads(pickle.dumps(batch))
    for b in (batch, other):
        b.step({"slide": 1.0})
        b.reset([0])
        b.step()
    assert all(batch.state(i) == other.state(i) for i in range(4))


def test_one_state_and_flat_arrays() -> None:
    batch = da.Batch(balls(), da.Variational(dt=0.01), 1)
    assert len(batch) == 1
    assert batch.threads == 1
    assert batch.coordinates().shape == (1, 12)
    assert batch.coordinate_names[:2] == ("free 0[0]", "free 0[1]")
    assert da.Batch(cart_pole(), da.Variational(dt=0.01), 2).coordinate_names == ("slide", "hinge")


@pytest.mark.parametrize("make", [
    lambda: da.Batch(cart_pole(), da.Variational(dt=0.01), 0), lambda: da.Batch(cart_pole(), da.Variational(dt=0.01), 1.5),  # type: ignore[arg-type]
    lambda: da.Batch("cart", da.Variational(dt=0.01), 1), lambda: da.Batch(cart_pole(), "fast", 1),  # type: ignore[arg-type]
    lambda: da.Batch(da.Mechanism("empty"), da.Variational(dt=0.01), 1), lambda: da.Batch(cart_pole(), da.Variational(dt=0.01), 1, threads=0),
])
def test_bad_batches(make: object) -> None:
    with pytest.raises(da.ModelError):
        make()  # type: ignore[operator]


def test_bad_arguments_change_nothing() -> None:
    batch: Any = da.Batch(cart_pole(), da.Variational(dt=0.01), 3)
    batch.step(steps=2)
    before = [batch.state(i) for i in range(3)]
    for call in (
        lambda: batch.step({"hinge": 1.0}), lambda: batch.step({"wheel": 1.0}), lambda: batch.step({"slide": [1.0, 2.0]}), lambda: batch.step({"slide": np.nan}),
        lambda: batch.step({"slide": np.ones((4, 1))}), lambda: batch.step([1.0]), lambda: batch.step(steps=0), lambda: batch.step({"pole": 1.0j}),
        lambda: batch.reset([3]), lambda: batch.reset([0, 0]), lambda: batch.reset([0.5]), lambda: batch.reset("all"), lambda: batch.reset([True]),
        lambda: batch.reset(coordinates={"pole": 1.0}), lambda: batch.reset(coordinates={"hinge": [1.0, 2.0]}), lambda: batch.reset(rates={"hinge": np.inf}),
        lambda: batch.set_parameters({"pole.mass": [-1.0, 1.0, 1.0]}), lambda: batch.set_parameters({"pole.weight": 1.0}), lambda: batch.set_parameters({"pole.mass": [1.0, 2.0]}),
        lambda: batch.state(3), lambda: batch.state("0"), lambda: batch.failure(None), lambda: batch.coordinates("pole"),
        lambda: batch.restore(0, before), lambda: batch.restore(0, da.Simulation(arm(), da.Variational(dt=0.01)).state),
    ):
        with pytest.raises(da.DalembertError):
            call()  # type: ignore[no-untyped-call]
        assert [batch.state(i) for i in range(3)] == before
    batch.reset([])
    assert [batch.state(i) for i in range(3)] == before


def test_ctrl_c_leaves_all_states_at_the_same_time() -> None:
    m = cart_pole()
    batch = da.Batch(m, da.Variational(dt=0.01), 4, threads=2)
    batch.reset(coordinates={"hinge": 0.1})
    calls = []

    def law(x: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if not calls:
            signal.raise_signal(signal.SIGINT)
        calls.append(1)
        return np.zeros((1, 6))

    m.force_law("interrupts", "pole", law)
    batch = da.Batch(m, da.Variational(dt=0.01), 4, threads=2)
    with pytest.raises(KeyboardInterrupt):
        batch.step(steps=3)
    assert np.ptp(batch.time) == 0.0
