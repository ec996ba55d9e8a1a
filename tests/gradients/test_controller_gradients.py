"""Gradients through controllers: by differences of them, by derivatives that were given, and what cannot be done."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

METHODS = {"variational": da.Variational(dt=0.01, tolerance=1e-13), "bdf2": da.Implicit(dt=0.01, tolerance=1e-13, solver="general")}
SOME = pytest.mark.parametrize("formulation", METHODS.values(), ids=METHODS.keys())
NAMES = ["gravity", "upper.mass", "lower.inertia", "shoulder.start_rate", "shoulder.damping", "elbow.servo_stiffness", "shoulder.point_parent"]


def arm() -> da.Mechanism:
    mechanism = da.Mechanism("arm")
    upper = mechanism.body("upper", da.Rod(length=1.0, mass=1.0, radius=0.05, axis="x"), position=(0.5, 0, 0))
    lower = mechanism.body("lower", da.Rod(length=0.8, mass=0.6, radius=0.04, axis="x"), position=(1.4, 0, 0))
    mechanism.joint("shoulder", da.Revolute(axis="y", damping=0.1, drive="force"), "world", upper, at=(0, 0, 0))
    mechanism.joint("elbow", da.Revolute(axis="y", servo=da.Servo(stiffness=20.0, damping=1.0)), upper, lower, at=(1, 0, 0))
    return mechanism


def swing(sim: da.Simulation) -> None:
    sim.set_joint("shoulder", rate=0.7)


def everything_seen(sim):
    (angle,), (rate,) = sim.coordinates("shoulder"), sim.rates("shoulder")
    torque = -10.0 * np.sin(angle) - 2.0 * rate + sim.position[1, 2] ** 2 - 0.3 * sim.energies()[1] + sim.orientation[0, 2]
    wrench = np.array([0.0, 0.0, -sim.velocity[1, 2] * np.cos(sim.time), 0.0, 0.0, 0.0])
    return {"shoulder": torque, "elbow": 0.3 * np.tanh(angle) + 0.1 * sim.angular_velocity[0, 1], "lower": wrench}


def proportional(sim):
    return {"shoulder": -10.0 * sim.coordinates("shoulder") - 2.0 * sim.rates("shoulder")}


def proportional_derivative(sim):
    by_angle, by_rate = np.zeros((2, 6)), np.zeros((2, 6))
    by_angle[0, 0], by_rate[0, 0] = -10.0, -2.0
    return {"shoulder": {"coordinate": by_angle, "rate": by_rate}}


@SOME
def test_a_controller_that_reads_everything(formulation):
    """A torque, a target that a servo holds, a wrench: adjoint, forward and the closed loop itself."""
    check = da.validate_gradients(arm(), formulation, NAMES, steps=6, setup=swing, control=everything_seen)
    assert check.forward_error < 1e-9, str(check)
    assert check.difference_error < 1e-6, str(check)


@SOME
def test_derivatives_that_are_given(formulation):
    found = {}
    for derivative in ("differences", proportional_derivative, None):
        sim = da.Simulation(arm(), formulation)
        swing(sim)
        run = sim.run(0.2, tape=True, control=proportional, control_derivative=derivative)
        assert run.differenced == (("controller",) if derivative == "differences" else ())
        weights = np.ones((len(run), 2, 3))
        found[derivative] = run.vjp({"position": weights}, ["shoulder.damping", "upper.mass"])
        tangent = float(np.sum(weights * run.jvp({"shoulder.damping": 1.0})["position"]))
        assert abs(found[derivative]["shoulder.damping"] - tangent) < 1e-9 * abs(tangent)
    for name in ("shoulder.damping", "upper.mass"):
        assert abs(found["differences"][name] - found[proportional_derivative][name]) < 1e-9 * abs(found["differences"][name])
        assert abs(found["differences"][name] - found[None][name]) > 1e-2 * abs(found["differences"][name])


def test_a_servo_is_a_controller():
    """The same gains as a controller's: gradients agree as the step shrinks."""
    errors = []
    for dt in (0.02, 0.01, 0.005):
        gradients = []
        for servo in (None, da.Servo(stiffness=10.0, damping=2.0)):
            mechanism = da.Mechanism("hinge")
            mechanism.body("rod", da.Rod(length=1.0, mass=1.0, radius=0.05, axis="x"), position=(0.5, 0, 0))
            kind = da.Revolute(axis="y", drive="force") if servo is None else da.Revolute(axis="y", servo=servo)
            mechanism.joint("shoulder", kind, "world", "rod", at=(0, 0, 0))
            sim = da.Simulation(mechanism, da.Variational(dt=dt))
            swing(sim)
            run = sim.run(0.2, tape=True, control=proportional if servo is None else None)
            weights = np.zeros((len(run), 1, 3))
            weights[-1, 0, 2] = 1.0
            gradients.append(run.vjp({"position": weights}, ["rod.mass"])["rod.mass"])
        errors.append(abs(gradients[0] - gradients[1]) / abs(gradients[1]))
    assert errors[2] < 0.6 * errors[1] < 0.36 * errors[0]


def test_controllers_that_cannot_be_differentiated_say_so():
    class Integrator:
        total = 0.0

        def __call__(self, sim):
            self.total += float(sim.coordinates("shoulder")[0]) * 0.01 + 0.1
            return {"shoulder": -self.total}

    weights = {"position": np.ones((3, 2, 3))}
    for control, words in ((Integrator(), "memory"), (lambda sim: {"shoulder": float(sim.state.numbers[0])}, "sim.state")):
        run = da.Simulation(arm(), METHODS["variational"]).run(0.02, tape=True, control=control)
        with pytest.raises(da.GradientError, match=words):
            run.vjp(weights, ["gravity"])
    run = da.Simulation(arm(), METHODS["variational"]).run(0.02, tape=True, control=Integrator(), control_derivative=None)
    assert np.all(np.isfinite(run.vjp(weights, ["gravity"])["gravity"]))
    run = da.Simulation(arm(), METHODS["variational"]).run(0.02, tape=True, control=proportional, control_derivative=lambda sim: {"shoulder": {"rate": np.ones(2)}})
    with pytest.raises(da.ControlError, match="shape"):
        run.vjp(weights, ["gravity"])
    with pytest.raises(da.ModelError, match="control_derivative"):
        da.Simulation(arm(), METHODS["variational"]).run(0.02, control_derivative="exact")
