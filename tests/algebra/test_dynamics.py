"""Inverse, forward and hybrid dynamics, momenta and energies: identities, and derivatives by differences along the tangent."""
from dataclasses import replace

import numpy as np
import pytest
from trees import KINDS, MOVING, random_tree

import dalembert as da

JOINTS = {**KINDS, **MOVING}
FREE = [kind for kind in JOINTS if kind != "Fixed"]
H = 1e-4


def in_motion(kinds, seed, **options):
    rng = np.random.default_rng(seed)
    algebra = da.Algebra(random_tree(kinds, rng, **options))
    return algebra, rng, algebra.random(rng), *rng.normal(size=(2, algebra.size))


def case(kind: str, reverse: float):
    kinds = [JOINTS[kind], lambda: da.Revolute(axis=[1, 0, 2], armature=0.2), JOINTS[kind], da.Fixed, None]
    return in_motion(kinds, sum(map(ord, kind)), reverse=reverse)


def slope(function, count: int) -> np.ndarray:
    """Derivatives by differences of fourth order: function(direction, step) is the value there; the direction is the last index."""
    columns = []
    for unit in np.eye(count):
        one, two = (np.asarray(function(unit, k * H)) - np.asarray(function(unit, -k * H)) for k in (1, 2))
        columns.append((8.0 * one - two) / (12.0 * H))
    return np.stack(columns, axis=-1)


def close(found, expected, bound: float = 1e-8) -> bool:
    return np.abs(np.asarray(found) - expected).max() < bound * max(1.0, np.abs(expected).max())


both_ways = pytest.mark.parametrize("reverse", [0.0, 1.0], ids=["forwards", "backwards"])


@both_ways
@pytest.mark.parametrize("kind", FREE)
def test_equations_of_motion_are_one(kind, reverse):
    algebra, rng, q, v, a = case(kind, reverse)
    M, tau = algebra.mass_matrix(q), algebra.inverse_dynamics(q, v, a)
    assert close(M @ a + algebra.bias_forces(q, v), tau, 1e-12)
    assert close(algebra.coriolis_forces(q, v) + algebra.gravity_forces(q), algebra.bias_forces(q, v), 1e-12)
    assert close(algebra.forward_dynamics(q, v, tau), a, 1e-10)
    assert close(algebra.inverse_mass_matrix(q) @ M, np.eye(algebra.size), 1e-10)
    x = rng.normal(size=(algebra.size, 3))
    assert close(M @ algebra.inverse_mass_product(q, x), x, 1e-10)
    assert close(algebra.kinetic_energy(q, v), 0.5 * v @ M @ v, 1e-12)
    rotors = np.where([name == "joint 1" for name in algebra.names], 0.2, 0.0)
    assert close(algebra.inverse_dynamics_regressor(q, v, a) @ algebra.inertial_parameters + rotors * a, tau, 1e-12)


@both_ways
@pytest.mark.parametrize("kind", FREE)
def test_derivatives(kind, reverse):
    algebra, _, q, v, a = case(kind, reverse)
    n, move = algebra.size, algebra.integrate
    found = algebra.inverse_dynamics_derivatives(q, v, a)
    assert close(found.dtau_dq, slope(lambda e, h: algebra.inverse_dynamics(move(q, e, h), v, a), n))
    assert close(found.dtau_dv, slope(lambda e, h: algebra.inverse_dynamics(q, v + h * e, a), n))
    assert close(found.dtau_da, algebra.mass_matrix(q), 1e-12)
    dq, dv, da_ = np.random.default_rng(0).normal(size=(3, n))
    change = algebra.inverse_dynamics_product(q, v, a, dq, dv, da_)
    assert close(change, found.dtau_dq @ dq + found.dtau_dv @ dv + found.dtau_da @ da_, 1e-11)
    tau = algebra.inverse_dynamics(q, v, a)
    forward = algebra.forward_dynamics_derivatives(q, v, tau)
    assert close(forward.da_dq, slope(lambda e, h: algebra.forward_dynamics(move(q, e, h), v, tau), n))
    assert close(forward.da_dv, slope(lambda e, h: algebra.forward_dynamics(q, v + h * e, tau), n))
    assert close(forward.da_dtau, algebra.inverse_mass_matrix(q), 1e-12)
    assert close(algebra.mass_matrix_derivatives(q), slope(lambda e, h: algebra.mass_matrix(move(q, e, h)), n))
    assert close(algebra.gravity_forces_derivatives(q), slope(lambda e, h: algebra.gravity_forces(move(q, e, h)), n))
    by_q, by_v = algebra.bias_forces_derivatives(q, v)
    assert close(by_q, slope(lambda e, h: algebra.bias_forces(move(q, e, h), v), n))
    assert close(by_v, slope(lambda e, h: algebra.bias_forces(q, v + h * e), n))
    by_q, by_v = algebra.kinetic_energy_derivatives(q, v)
    assert close(by_q, slope(lambda e, h: algebra.kinetic_energy(move(q, e, h), v), n))
    assert close(by_v, algebra.mass_matrix(q) @ v, 1e-12)
    assert close(algebra.gravity_forces(q), slope(lambda e, h: algebra.potential_energy(move(q, e, h)), n))
    by_q, by_v = algebra.centroidal_momentum_derivatives(q, v)
    assert close(by_q, slope(lambda e, h: algebra.centroidal_momentum(move(q, e, h), v), n))
    assert close(by_v, algebra.centroidal_momentum_matrix(q), 1e-12)


@both_ways
@pytest.mark.parametrize("kind", FREE)
def test_jacobians(kind, reverse):
    algebra, rng, q, v, a = case(kind, reverse)
    n, move, point = algebra.size, algebra.integrate, (0.1, 0.2, 0.3)
    for frame in ("local_world_aligned", "local", "world"):
        found = algebra.body_jacobian_derivatives("body 3", q, point, frame)
        assert close(found, slope(lambda e, h: algebra.body_jacobian("body 3", move(q, e, h), point, frame), n))  # noqa: B023
        assert close(found @ v, algebra.body_jacobian_rate("body 3", q, v, point, frame), 1e-12)
    poses, J = algebra.forward_kinematics(q, v, a), algebra.body_jacobians(q)
    assert close(J[3], algebra.body_jacobian("body 3", q), 1e-14)
    assert close(J @ v, poses.velocity, 1e-12)
    assert close(algebra.jacobian_product(q, v), J @ v, 1e-12)
    assert close(poses.acceleration, J @ a + algebra.jacobian_rate_product(q, v), 1e-12)
    wrenches = rng.normal(size=(len(J), 6))
    assert close(algebra.jacobian_transpose_product(q, wrenches), np.einsum("bcn,bc->n", J, wrenches), 1e-12)
    assert close(algebra.center_of_mass_jacobian(q), slope(lambda e, h: algebra.center_of_mass(move(q, e, h)), n))


@pytest.mark.parametrize("seed", range(4))
def test_half_the_joints_prescribed(seed):
    kinds = [*KINDS.values(), *(MOVING.values() if seed == 3 else ()), None, lambda: da.Revolute(armature=0.4)]
    algebra, rng, q, v, a = in_motion(kinds, seed)
    tau = rng.normal(size=algebra.size)
    owners = [e.name for e in (*algebra.mechanism.joints, *algebra.mechanism.bodies) if any(n.split("[")[0] == e.name for n in algebra.names)]
    prescribed = [owners[i] for i in rng.permutation(len(owners))[: len(owners) // 2]]
    held = np.zeros(algebra.size, dtype=bool)
    for name in prescribed:
        held[algebra.slot(name)] = True
    found, forces = algebra.hybrid_dynamics(q, v, tau, a, prescribed)
    assert np.abs(found - a)[held].max() < 1e-12
    assert np.array_equal(forces[~held], tau[~held])
    expected = algebra.inverse_dynamics(q, v, found)
    assert np.abs(forces - expected).max() < 1e-10 * np.abs(expected).max()
    assert close(algebra.hybrid_dynamics(q, v, tau, a, algebra.names)[1], algebra.inverse_dynamics(q, v, a), 1e-12)
    assert close(algebra.forward_dynamics(q, v, forces), found, 1e-10)


def test_derivatives_with_joints_prescribed():
    algebra, rng, q, v, a = in_motion([*KINDS.values(), None], 2)
    tau, prescribed, n = rng.normal(size=algebra.size), ["joint 1", "joint 5", "joint 9"], algebra.size
    found = algebra.hybrid_dynamics_derivatives(q, v, tau, a, prescribed)
    by_q = slope(lambda e, h: np.stack(algebra.hybrid_dynamics(algebra.integrate(q, e, h), v, tau, a, prescribed)), n)
    by_v = slope(lambda e, h: np.stack(algebra.hybrid_dynamics(q, v + h * e, tau, a, prescribed)), n)
    assert close(np.stack([found.da_dq, found.dtau_dq]), by_q)
    assert close(np.stack([found.da_dv, found.dtau_dv]), by_v)


@pytest.mark.parametrize("kind", ["Revolute", "Spherical", "Free"])
def test_integrate_and_difference(kind):
    algebra, rng, q, v, _ = case(kind, 0.5)
    there, n = algebra.random(rng), algebra.size
    assert close(algebra.forward_kinematics(algebra.integrate(q, algebra.difference(q, there))).position, algebra.forward_kinematics(there).position, 1e-12)
    for dt in (0.0, 0.7):
        by_q, by_v = algebra.integrate_derivatives(q, v, dt)
        after = algebra.integrate(q, v, dt)
        assert close(by_q, slope(lambda e, h: algebra.difference(after, algebra.integrate(algebra.integrate(q, e, h), v, dt)), n))  # noqa: B023
        assert close(by_v, slope(lambda e, h: algebra.difference(after, algebra.integrate(q, v + h * e, dt)), n))  # noqa: B023
    near = algebra.integrate(q, 0.3 * v)
    by_0, by_1 = algebra.difference_derivatives(q, near)
    assert close(by_0, slope(lambda e, h: algebra.difference(algebra.integrate(q, e, h), near), n))
    assert close(by_1, slope(lambda e, h: algebra.difference(q, algebra.integrate(near, e, h)), n))


def test_rotors_along_both_directions_of_a_surface():
    heavy = MOVING["SplineSurface"]()
    rng = np.random.default_rng(6)
    algebra = da.Algebra(random_tree([lambda: replace(heavy, armature=[0.3, 0.7]), KINDS["Revolute"]], rng))
    plain = da.Algebra(random_tree([lambda: heavy, KINDS["Revolute"]], np.random.default_rng(6)))
    q, (v, a) = plain.random(rng), rng.normal(size=(2, plain.size))
    assert close(algebra.mass_matrix(q) - plain.mass_matrix(q), np.diag([0.3, 0.7, 0.0]), 1e-13)
    assert close(algebra.forward_dynamics(q, v, algebra.inverse_dynamics(q, v, a)), a, 1e-11)


def test_a_simulation_has_the_same_rates_poses_and_energy():
    rng = np.random.default_rng(5)
    mechanism = random_tree([*KINDS.values(), None], rng)
    sim = da.Simulation(mechanism, da.Reduced(dt=0.002))
    for body in mechanism.bodies:
        sim.set_velocity(body.name, linear=rng.normal(size=3), angular=rng.normal(size=3))
    sim.run(0.01)
    algebra = da.Algebra(mechanism)
    q, v = algebra.state(sim)
    poses = algebra.forward_kinematics(q, v)
    assert close(poses.position, sim.position, 1e-9)
    assert close(poses.velocity[:, :3], sim.velocity, 1e-9)
    assert np.allclose(np.abs(np.sum(poses.orientation * sim.orientation, axis=1)), 1.0, atol=1e-12)
    assert close(algebra.kinetic_energy(q, v), sim.energies()[1], 1e-9)
    assert close(algebra.neutral(), np.zeros(algebra.size))
    built = algebra.forward_kinematics(algebra.reference())
    assert close(built.position, [b.position for b in mechanism.bodies], 1e-12)


def test_random_configurations_keep_to_the_limits():
    arm = da.Mechanism("arm")
    body = arm.body("body", da.Sphere(radius=0.1, mass=1.0))
    arm.joint("slide", da.Cylindrical(axis="z", limits=[(0.2, 0.3), (None, -1.0)]), arm.world, body)
    algebra = da.Algebra(arm)
    values = np.array([algebra.random(seed) for seed in range(50)])
    assert np.all((values[:, 0] >= 0.2) & (values[:, 0] <= 0.3) & (values[:, 1] <= -1.0))
    assert np.array_equal(algebra.random(3), algebra.random(3))
