"""What a trajectory tells of single elements: what a joint's force is made of, and how a path pulls."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.formulations.engine import Formulation

FORMULATIONS = pytest.mark.parametrize("formulation", [da.Variational(dt=1e-3), da.Implicit(dt=1e-3), da.Reduced(dt=1e-3)], ids=["variational", "implicit", "reduced"])


def slider(**laws) -> da.Mechanism:
    """2 kg on a rail along x, no gravity."""
    mechanism = da.Mechanism("slider", gravity=(0, 0, 0))
    mechanism.body("cart", da.Box(size=(0.1, 0.1, 0.1), mass=2.0))
    mechanism.joint("rail", da.Prismatic(axis="x", **laws), "world", "cart")
    return mechanism


@FORMULATIONS
def test_a_motor_beside_a_spring_and_a_damper_reports_its_own_share(formulation: Formulation) -> None:
    k, c, a, A, w = 30.0, 4.0, 0.5, 0.2, 3.0
    simulation = da.Simulation(slider(drive="motion", stiffness=k, damping=c, armature=a, rest=0.05), formulation)
    simulation.set_joint("rail", rate=A * w)
    simulation.set_target("rail", lambda t: A * np.sin(w * t))
    run = simulation.run(1.0)
    rail, t = run.joint("rail"), run.time
    x, v, acceleration = A * np.sin(w * t), A * w * np.cos(w * t), -A * w * w * np.sin(w * t)
    np.testing.assert_allclose(rail.shares["spring"], -k * (x - 0.05), atol=1e-9)
    np.testing.assert_allclose(rail.shares["damper"], -c * v, atol=2e-5)
    np.testing.assert_allclose(rail.shares["drive"], (2.0 + a) * acceleration + k * (x - 0.05) + c * v, atol=1e-3)
    np.testing.assert_allclose(sum(rail.shares.values()), rail.actuation, atol=1e-9)


@FORMULATIONS
def test_shares_add_up_to_the_actuation(formulation: Formulation) -> None:
    mechanism = slider(servo=da.Servo(stiffness=50.0, damping=3.0, target=0.1, bound=4.0), stiffness=20.0, damping=1.0, armature=0.3)
    run = da.Simulation(mechanism, formulation).run(0.5)
    rail = run.joint("rail")
    assert set(rail.shares) == {"drive", "spring", "damper", "rotor", "friction", "limit"}
    np.testing.assert_allclose(sum(rail.shares.values()), rail.actuation, atol=1e-9)
    assert np.abs(rail.shares["drive"]).max() <= 4.0 + 1e-9
    acceleration = np.gradient(rail.rates, run.time)
    np.testing.assert_allclose(rail.shares["rotor"][5:-5], -0.3 * acceleration[5:-5], atol=0.05)  # the servo comes off its bound on the way
    free = da.Mechanism("free", gravity=(0, 0, 0))
    free.body("body", da.Sphere(radius=0.1, mass=1.0))
    free.joint("tie", da.Free(stiffness=3.0, damping=0.1), "world", "body")
    tie = da.Simulation(free, formulation).run(0.01).joint("tie")
    assert all(share.shape == tie.coordinates.shape == (11, 6) for share in tie.shares.values())


@FORMULATIONS
def test_paths_tell_length_and_tension(formulation: Formulation) -> None:
    mechanism = slider()
    mechanism.path("spring", [("world", (1, 0, 0)), ("cart", (0, 0, 0))], stiffness=40.0, damping=2.0, length=0.8)
    mechanism.cable("rope", [("cart", (0, 0, 0)), ("world", (-0.3, 0.4, 0)), ("world", (-0.3, 0.6, 0))], stiffness=25.0, length=0.65)
    mechanism.path("muscle", [("world", (1, 0.2, 0)), ("cart", (0, 0.2, 0))], law=lambda length, rate: 5.0 * length**2 + rate)
    run = da.Simulation(mechanism, formulation).run(1.0)
    x, v = run.joint("rail").coordinates, run.joint("rail").rates
    spring, rope, muscle = (run.path(name) for name in ("spring", "rope", "muscle"))
    np.testing.assert_allclose(spring.length, 1.0 - x, atol=1e-12)
    np.testing.assert_allclose(spring.rate, -v, atol=1e-9)
    np.testing.assert_allclose(spring.tension, 40.0 * (0.2 - x) - 2.0 * v, atol=1e-9)
    np.testing.assert_allclose(rope.length, np.hypot(x + 0.3, 0.4) + 0.2, atol=1e-12)
    np.testing.assert_allclose(rope.tension, 25.0 * np.maximum(rope.length - 0.65, 0.0), atol=1e-9)
    assert rope.tension.min() >= 0.0 < rope.tension.max()
    np.testing.assert_allclose(muscle.tension, 5.0 * (1.0 - x) ** 2 - v, atol=1e-9)
    with pytest.raises(da.ModelError, match=r"no path 'cord'; it has: spring, rope, muscle"):
        run.path("cord")


def test_now_and_then_agree() -> None:
    """What the simulation says of a path is what the trajectory says afterwards."""
    mechanism = slider()
    mechanism.cable("rope", [("cart", (0, 0.1, 0)), ("world", (-0.3, 0.4, 0)), ("world", (-0.3, 0.6, 0))], stiffness=25.0, length=0.5)
    simulation = da.Simulation(mechanism, da.Variational(dt=0.01))
    simulation.set_joint("rail", 0.3, rate=0.2)
    run = simulation.run(0.3)
    assert simulation.path_length("rope") == pytest.approx(run.path("rope").length[-1], abs=1e-12)
    assert simulation.path_rate("rope") == pytest.approx(run.path("rope").rate[-1], abs=1e-9)
    with pytest.raises(da.ModelError, match="no path or cable"):
        simulation.path_length("cart")


def test_a_file_keeps_paths_and_shares(tmp_path) -> None:
    mechanism = slider(stiffness=3.0, damping=0.2)
    mechanism.cable("rope", [("cart", (0, 0, 0)), ("world", (-0.3, 0.4, 0))], stiffness=25.0, length=0.4)
    run = da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.2)
    run.save(tmp_path / "run.h5")
    loaded = da.Trajectory.load(tmp_path / "run.h5")
    assert loaded.paths == ("rope",)
    for field in ("length", "rate", "tension"):
        np.testing.assert_array_equal(getattr(loaded.path("rope"), field), getattr(run.path("rope"), field))
    for name, share in run.joint("rail").shares.items():
        np.testing.assert_array_equal(loaded.joint("rail").shares[name], share)
    assert loaded.model is not None
    assert loaded.model["rope"].pulls
