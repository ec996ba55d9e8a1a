"""Gradients of what is read where a ball joint meets its limits and rubs: these push along the rotation vector, and are read about the parent's axes."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

pytestmark = pytest.mark.filterwarnings("ignore::dalembert.GradientWarning")
NAMES = ["arm.mass", "arm.inertia", "ball.point_child", "ball.turn_parent", "hinge.damping", "gravity", "hand.mass"]
#: adjoint against forward, of forces too, which carry the rounding of positions over the square of a step; against differences of the run
EXACT, FORCES, NEAR = 1e-9, 1e-8, 1e-4


def pressed(friction: tuple[float, float, float], **drive) -> da.Mechanism:
    """A double pendulum whose first joint, far from its axes, leans on the end of one component of its rotation vector."""
    m = da.Mechanism("pressed", gravity=(0.3, 0.2, -9.81))
    m.body("arm", mass=1.2, inertia=np.diag((0.05, 0.03, 0.04)), position=(0.3, 0.1, -0.35), orientation=(1, 0.2, -0.1, 0.3))
    m.body("hand", mass=0.6, inertia=np.diag((0.01, 0.012, 0.008)), position=(0.5, 0.3, -0.8))
    m.joint("ball", da.Spherical(limits=((None, 0.704), None, None), damping=0.02, friction=friction), m.world, "arm", at=(0, 0, 0), frame=(1, 0.3, -0.2, 0.1))
    m.joint("hinge", da.Revolute(axis=(0.5, -0.1, 0.3), damping=0.05, **drive), "arm", "hand", at=(0.4, 0.2, -0.6))
    return m


def lean(sim: da.Simulation) -> None:
    sim.set_joint("ball", (0.7, -0.5, 0.4), rate=(1.0, 0.3, -0.2))
    sim.set_joint("hinge", rate=0.5)


@pytest.mark.parametrize(
    ("formulation", "friction"), [
        (da.Variational(dt=0.005, tolerance=1e-13), (0.03, 0.05, 0.02)), (da.Reduced(dt=0.005, tolerance=1e-13), (0.0, 0.0, 0.0)),
        pytest.param(da.Implicit(dt=0.005, method="bdf2", tolerance=1e-13), (0.0, 0.0, 0.0), marks=pytest.mark.slow),
        pytest.param(da.Implicit(dt=0.005, method="sdirk2", tolerance=1e-13), (0.0, 0.0, 0.0), marks=pytest.mark.slow),
    ], ids=["variational", "reduced", "bdf2", "sdirk2"],
)
def test_what_is_read_where_a_ball_leans_on_its_end(formulation, friction):
    for outputs, exact in ((("velocity", "angular_velocity", "rate", "energy"), EXACT), (("force", "torque"), FORCES)):
        check = da.validate_gradients(pressed(friction), formulation, NAMES, steps=8, setup=lean, step=1e-4, outputs=outputs)
        assert check.forward_error < exact, str(check)
        assert check.difference_error < NEAR, str(check)


def test_a_controller_that_sees_such_rates():
    m, names = pressed((0.03, 0.05, 0.02), drive="force"), [name for name in NAMES if name != "hinge.damping"]  # which hardly matters

    def steer(sim: da.Simulation):
        return {"hinge": -0.3 * sim.rates("ball")[0] - 0.2 * sim.rates("hinge")[0]}

    check = da.validate_gradients(m, da.Variational(dt=0.005, tolerance=1e-13), names, steps=8, setup=lean, step=1e-4, control=steer, forward=False)
    assert check.difference_error < NEAR, str(check)
