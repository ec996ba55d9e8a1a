"""Closed loops: Jacobians, ranks and constrained dynamics, redundant rows included."""
import numpy as np
import pytest
from trees import random_body

import dalembert as da

LOOPS = {
    "four-bar": lambda: da.zoo.n_four_bar(1), "double four-bar": lambda: da.zoo.n_four_bar(2), "slider-crank": da.zoo.slider_crank,
    "Bricard": da.zoo.bricard, "squeezer": da.zoo.andrews_squeezer,
}


def spatial_loop() -> da.Mechanism:
    """A chain of bodies that ends on the world again, with a ball that closes it, a gear and a rod."""
    rng = np.random.default_rng(2)
    mechanism = da.Mechanism("ring")
    bodies = [random_body(mechanism, f"body {i}", rng) for i in range(5)]
    kinds = [da.Revolute(axis=[1, 0, 1]), da.Universal(), da.Spherical(), da.Cylindrical(axis="y"), da.Revolute(axis="y")]
    for i, (kind, body) in enumerate(zip(kinds, bodies)):
        mechanism.joint(f"joint {i}", kind, bodies[i - 1] if i else mechanism.world, body, at=rng.normal(size=3))
    mechanism.joint("closing", da.Spherical(), mechanism.world, bodies[-1], at=rng.normal(size=3))
    mechanism.joint("rod", da.Distance(), bodies[0], bodies[3], at=(rng.normal(size=3), rng.normal(size=3)))
    mechanism.gear("gear", "joint 0", "joint 4", ratio=-0.5, offset=0.0)
    return mechanism


def mapped_chain() -> da.Mechanism:
    """A chain whose four angles follow one number."""
    rng = np.random.default_rng(4)
    mechanism = da.Mechanism("finger")
    bodies = [random_body(mechanism, f"body {i}", rng) for i in range(4)]
    for i, body in enumerate(bodies):
        mechanism.joint(f"joint {i}", da.Revolute(axis=rng.normal(size=3)), bodies[i - 1] if i else mechanism.world, body, at=rng.normal(size=3))
    mechanism.coordinate_map("curl", [f"joint {i}" for i in range(4)], matrix=[[1.0], [0.5], [-0.3], [2.0]])
    return mechanism


LOOPS["spatial"], LOOPS["map"] = spatial_loop, mapped_chain


@pytest.fixture(params=LOOPS)
def moving(request):
    """An algebra at closed loops, with rates that keep them closed."""
    algebra = da.Algebra(LOOPS[request.param]())
    rng = np.random.default_rng(1)
    q = algebra.close_loops(algebra.integrate(algebra.reference(), rng.normal(size=algebra.size), 0.01))
    return algebra, q, algebra.project_rates(q, rng.normal(size=algebra.size)), rng


def test_rows_and_their_derivatives(moving):
    algebra, q, v, _ = moving
    assert np.abs(algebra.loop_error(q)).max() < 1e-11
    G, h = algebra.loop_jacobian(q), 1e-5
    assert G.shape == (len(algebra.loop_names), algebra.size)
    assert np.abs(G @ v).max() < 1e-12 * max(1.0, np.abs(v).max())
    for k, unit in enumerate(np.eye(algebra.size)):
        column = (algebra.loop_error(algebra.integrate(q, unit, h)) - algebra.loop_error(algebra.integrate(q, unit, -h))) / (2 * h)
        assert np.abs(column - G[:, k]).max() < 1e-8 * max(1.0, np.abs(G).max())
    turned = (algebra.loop_jacobian(algebra.integrate(q, v, h)) - algebra.loop_jacobian(algebra.integrate(q, v, -h))) @ v / (2 * h)
    assert np.abs(turned - algebra.loop_bias(q, v)).max() < 1e-7 * max(1.0, np.abs(turned).max())


def test_constrained_dynamics(moving):
    algebra, q, v, rng = moving
    tau = rng.normal(size=algebra.size)
    a, forces = algebra.constrained_forward_dynamics(q, v, tau)
    G, scale = algebra.loop_jacobian(q), max(1.0, np.abs(a).max())
    assert np.abs(G @ a + algebra.loop_bias(q, v)).max() < 1e-9 * scale
    asked = algebra.inverse_dynamics(q, v, a)
    assert np.abs(asked - tau - G.T @ forces).max() < 1e-9 * max(np.abs(asked).max(), np.abs(tau).max())
    # least norm: nothing of the multipliers is without effect
    assert np.linalg.norm(forces) <= np.linalg.norm(np.linalg.lstsq(G.T, asked - tau, rcond=1e-10)[0]) * (1 + 1e-8)
    found, _ = algebra.constrained_inverse_dynamics(q, v, a)
    again, _ = algebra.constrained_forward_dynamics(q, v, found)
    assert np.abs(again - a).max() < 1e-8 * scale
    independent = algebra.independent_coordinates(q)
    few, _ = algebra.constrained_inverse_dynamics(q, v, a, independent)
    assert set(np.flatnonzero(few)) <= {algebra.names.index(name) for name in independent}
    assert np.abs(algebra.constrained_forward_dynamics(q, v, few)[0] - a).max() < 1e-7 * scale


def test_independent_coordinates_and_consistent_jacobians(moving):
    algebra, q, v, _ = moving
    independent = algebra.independent_coordinates(q)
    N = algebra.rate_map(q)
    assert N.shape == (algebra.size, len(independent))
    chosen = [algebra.names.index(name) for name in independent]
    assert np.abs(N @ v[chosen] - v).max() < 1e-9 * np.abs(v).max()
    found = algebra.consistent_body_jacobians(q)
    assert np.abs(found @ v[chosen] - algebra.jacobian_product(q, v)).max() < 1e-9 * np.abs(algebra.jacobian_product(q, v)).max()
    one = algebra.consistent_body_jacobians(q, [algebra.mechanism.bodies[-1].name], independent)
    assert np.array_equal(one[0], found[-1])


@pytest.mark.parametrize("name", LOOPS)
def test_freedom_is_what_the_rank_analysis_says(name):
    mechanism = LOOPS[name]()
    algebra = da.Algebra(mechanism)
    sim = da.Simulation(mechanism, da.Variational(dt=0.001))
    q, _ = algebra.state(sim)
    assert len(algebra.independent_coordinates(q)) == sim.redundancy().freedom + sim.redundancy().driven_rank


def test_accelerations_are_those_of_a_simulation():
    mechanism = da.zoo.n_four_bar(2)
    sim = da.Simulation(mechanism, da.Implicit(dt=1e-4, method="bdf2", tolerance=1e-12))
    sim.set_joint("ground 0", 0.3, rate=1.0)
    algebra, rates = da.Algebra(mechanism), []
    for _ in range(21):
        q, v = algebra.state(sim)
        rates.append((q, v))
        sim.run(1e-4)
    q, v = rates[15]
    a, _ = algebra.constrained_forward_dynamics(q, v, algebra.passive_forces(q, v))
    slope = (-rates[17][1] + 8 * rates[16][1] - 8 * rates[14][1] + rates[13][1]) / (12 * 1e-4)
    assert np.abs(a - slope).max() < 1e-4 * np.abs(a).max()


def test_pinocchio_closes_the_same_loop():
    pin = pytest.importorskip("pinocchio")
    from peers import Peer

    rng = np.random.default_rng(3)
    mechanism = da.Mechanism("ring")
    bodies = [random_body(mechanism, f"body {i}", rng) for i in range(5)]
    for i, body in enumerate(bodies):
        mechanism.joint(f"joint {i}", da.Revolute(axis=rng.normal(size=3)), bodies[i - 1] if i else mechanism.world, body, at=rng.normal(size=3))
    tree = da.Algebra(mechanism)
    peer = Peer(pin, mechanism, tree, ())
    end = rng.normal(size=3)
    joint = mechanism.joint("closing", da.Spherical(), mechanism.world, bodies[-1], at=end)
    algebra = da.Algebra(mechanism)
    q = algebra.close_loops(algebra.integrate(algebra.reference(), rng.normal(size=5), 0.1))
    v = algebra.project_rates(q, rng.normal(size=5))
    tau = rng.normal(size=5)
    at, pose = peer.at[bodies[-1].index]
    contact = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, peer.model, at, pose * pin.SE3(np.eye(3), joint.point_child), 0, pin.SE3(np.eye(3), end), pin.LOCAL)
    data, models, datas = peer.model.createData(), pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    models.append(contact)
    datas.append(contact.createData())
    pin.initConstraintDynamics(peer.model, data, models, datas)
    theirs = pin.constraintDynamics(peer.model, data, q, v, tau, models, datas, pin.ProximalSettings(1e-14, 0.0, 20))
    a, _ = algebra.constrained_forward_dynamics(q, v, tau)
    assert np.abs(a - theirs).max() < 1e-10 * np.abs(theirs).max()
