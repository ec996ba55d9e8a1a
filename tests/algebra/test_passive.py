"""Forces of springs, dampers, cables and loads along the coordinates: negative gradients of their energy, and power lost."""
import numpy as np
from trees import random_body

import dalembert as da


def sprung(rng: np.random.Generator, *, damped: bool) -> da.Mechanism:
    """Bodies with springs along joints, between points and in a cable; a loop; a wrench."""
    mechanism = da.Mechanism("sprung")
    bodies = [random_body(mechanism, f"body {i}", rng) for i in range(6)]
    damping = 0.3 if damped else 0.0
    kinds = [
        da.Revolute(axis=[1, 2, 3], stiffness=3.0, rest=0.2, damping=damping), da.Spherical(stiffness=[1.0, 2.0, 3.0], damping=damping),
        da.Universal(stiffness=2.0), da.Cylindrical(stiffness=[4.0, 1.0], damping=damping),
    ]
    for i, kind in enumerate(kinds):
        ends = (bodies[i - 1] if i else mechanism.world, bodies[i])
        mechanism.joint(f"joint {i}", kind, *(ends[::-1] if i == 1 else ends), at=rng.normal(size=3))
    mechanism.joint("rail", da.Prismatic(axis="y", stiffness=2.0), bodies[0], bodies[4], at=rng.normal(size=3))
    mechanism.joint("slot", da.Slot(axis=[1, 1, 0], stiffness=[1.0, 2.0, 3.0, 1.0], damping=damping), bodies[1], bodies[5], at=rng.normal(size=3))
    mechanism.spring("spring", bodies[0], bodies[2], at=(rng.normal(size=3), rng.normal(size=3)), stiffness=5.0, damping=damping, length=0.1)
    mechanism.cable("cable", [("body 1", (0.1, 0, 0)), ("body 4", (0, 0.2, 0)), (mechanism.world, (0, 0, 2.0))], stiffness=20.0, damping=damping, length=0.5)
    if damped:
        mechanism.drag("drag", "body 3", linear=0.2, angular=0.1)
    return mechanism


def test_springs_push_down_the_gradient_of_their_energy():
    rng = np.random.default_rng(1)
    mechanism = sprung(rng, damped=False)
    algebra, h = da.Algebra(mechanism), 1e-4
    q = algebra.integrate(algebra.reference(), 0.2 * rng.normal(size=algebra.size))
    sim = da.Simulation(mechanism, da.Reduced(dt=0.01))

    def energy(q):
        for joint in mechanism.joints:
            if joint.name in {name.split("[")[0] for name in algebra.names}:
                sim.set_joint(joint.name, q[algebra.slot(joint.name)])
        return sim.energy()

    slope = np.zeros(algebra.size)
    for k, unit in enumerate(np.eye(algebra.size)):
        one, two = (energy(algebra.integrate(q, unit, j * h)) - energy(algebra.integrate(q, unit, -j * h)) for j in (1, 2))
        slope[k] = (8 * one - two) / (12 * h)
    expected = algebra.gravity_forces(q) - slope
    assert np.abs(algebra.passive_forces(q, np.zeros(algebra.size)) - expected).max() < 1e-7 * np.abs(expected).max()


def test_a_simulation_accelerates_by_them():
    rng = np.random.default_rng(2)
    mechanism = sprung(rng, damped=True)
    mechanism.wrench("body 2", force=(1, 2, 3), torque=(0.1, 0.2, 0.3))
    algebra, dt, knots = da.Algebra(mechanism), 1e-4, []
    sim = da.Simulation(mechanism, da.Reduced(dt=dt, tolerance=1e-12))
    sim.set_velocity("body 0", angular=(1.0, 2.0, 0.5))
    for _ in range(21):
        knots.append(algebra.state(sim))
        sim.run(dt)
    q, v = knots[15]
    a = algebra.forward_dynamics(q, v, algebra.passive_forces(q, v))
    slope = (-knots[17][1] + 8 * knots[16][1] - 8 * knots[14][1] + knots[13][1]) / (12 * dt)
    assert np.abs(a - slope).max() < 1e-5 * np.abs(a).max()
