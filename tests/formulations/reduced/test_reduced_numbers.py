"""Joint coordinates in numbers that are hard on them: large angles and tiny steps, light beside heavy, spins and slow motions."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da


@pytest.mark.parametrize("method", ["bdf1", "bdf2", "sdirk2", "pareschi_russo"])
def test_tiny_steps_at_large_angles(method):
    """An angle of a thousand turns must not cost a step of 0.1 ms its digits."""
    sim = da.Simulation(da.zoo.double_pendulum(), da.Reduced(dt=1e-4, method=method, tolerance=1e-11))
    near = sim.run(0.02)
    sim = da.Simulation(da.zoo.double_pendulum(), da.Reduced(dt=1e-4, method=method, tolerance=1e-11))
    joint = sim.mechanism.joints[0].name
    sim.set_joint(joint, sim.coordinates(joint) + 2000.0 * np.pi, rate=sim.rates(joint))
    far = sim.run(0.02)
    np.testing.assert_allclose(far.velocity, near.velocity, atol=1e-9)
