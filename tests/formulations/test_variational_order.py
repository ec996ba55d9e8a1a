"""Measured orders of convergence: 2 in positions and in knot velocities."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert import zoo


def hinged_rod(**laws) -> da.Mechanism:
    mechanism = da.Mechanism("rod")
    mechanism.body("rod", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -0.5))
    mechanism.joint("hinge", da.Revolute(axis="x", **laws), mechanism.world, "rod")
    mechanism.start("hinge", 1.5)
    return mechanism


def pd_controller(sim: da.Simulation) -> dict[str, float]:
    return {"hinge": 30.0 * (0.3 - sim.coordinates("hinge")[0]) - 2.0 * sim.rates("hinge")[0]}


CASES = {
    "simple pendulum": (lambda: zoo.pendulum(1), 0.01, 2.0, None),
    "damped pendulum": (lambda: hinged_rod(damping=0.5), 0.01, 2.0, None),
    "pendulum under a PD controller": (lambda: hinged_rod(drive="force"), 0.005, 1.0, pd_controller),
    "pendulum with a torsion spring": (lambda: hinged_rod(stiffness=20.0, rest=0.2), 0.01, 2.0, None),
    "double pendulum": (zoo.double_pendulum, 0.005, 1.0, None),
    "heavy top": (zoo.heavy_top, 0.0005, 0.5, None),
    "Andrews squeezer": (zoo.andrews_squeezer, 2e-5, 0.01, None),
    "double four-bar": (zoo.double_four_bar, 0.005, 1.0, None),
}


def final_state(make, dt: float, duration: float, control) -> tuple[np.ndarray, np.ndarray]:
    trajectory = da.Simulation(make(), da.Variational(dt=dt, tolerance=1e-12)).run(duration, control=control)
    pose = np.concatenate([trajectory.position[-1].ravel(), trajectory.orientation[-1].ravel()])
    return pose, np.concatenate([trajectory.velocity[-1].ravel(), trajectory.angular_velocity[-1].ravel()])


def measured_orders(make, dt: float, duration: float, control=None) -> tuple[np.ndarray, np.ndarray]:
    """Orders in pose and velocity between dt, dt/2 and dt/4, against dt/32."""
    exact = final_state(make, dt / 32, duration, control)
    steps = dt / np.array([1.0, 2.0, 4.0])
    errors = np.array([[np.abs(a - b).max() for a, b in zip(final_state(make, h, duration, control), exact)] for h in steps])
    orders = np.diff(np.log(errors), axis=0) / np.diff(np.log(steps))[:, None]
    return orders[:, 0], orders[:, 1]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_second_order_in_positions_and_knot_velocities(case):
    position, velocity = measured_orders(*case)
    assert np.all((position > 1.9) & (position < 2.1)), position
    assert np.all((velocity > 1.9) & (velocity < 2.1)), velocity


def test_second_order_through_a_change_of_step():
    """Another step from the middle of a run on keeps the order: the kick is weighted by both neighbouring steps."""
    def run(dt: float) -> np.ndarray:
        sim = da.Simulation(zoo.double_pendulum(), da.Variational(dt=dt, tolerance=1e-12))
        sim.run(0.4)
        return sim.run(0.4, dt=dt / 3).position[-1]

    exact = run(0.005 / 32)
    errors = [np.abs(run(0.005 / k) - exact).max() for k in (1, 2, 4)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 1.9) & (orders < 2.1)), orders
