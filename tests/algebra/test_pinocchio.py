"""Random trees of every joint that Pinocchio has, also read from child to parent, and compositions of them, against Pinocchio."""
import numpy as np
import pytest
from peers import Peer
from trees import KINDS, random_body, random_tree

import dalembert as da

pin = pytest.importorskip("pinocchio")
BOUND = 1e-10


def apart(found, expected) -> float:
    """Largest difference, relative to the largest entry."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max(initial=0.0) / max(np.abs(expected).max(initial=0.0), 1e-6))


NATIVE = ("Cartesian", "Planar", "Free", "Universal")


def setting(kinds, seed, native=NATIVE, **options):
    rng = np.random.default_rng(seed)
    mechanism = random_tree(kinds, rng, grounded=0.0, **options)
    algebra = da.Algebra(mechanism)
    peer = Peer(pin, mechanism, algebra, native)
    q = algebra.random(rng)
    v, a = rng.normal(size=(2, algebra.size))
    return rng, mechanism, algebra, peer, q, v, a


CASES = [
    *(pytest.param([KINDS[kind], lambda: da.Revolute(axis="y", armature=0.3), KINDS[kind], None, KINDS[kind]], id=kind) for kind in KINDS if kind != "Fixed"),
    pytest.param([*KINDS.values(), None], id="all"),
]


@pytest.mark.parametrize("kinds", CASES)
def test_dynamics(kinds):
    rng, _, algebra, peer, q, v, a = setting(kinds, 1)
    model, data = peer.model, peer.data
    p, T, T_rate = peer.motion(q, v)
    w, b = T @ v, T @ a + T_rate @ v
    M = pin.crba(model, data, p)
    M = np.triu(M) + np.triu(M, 1).T
    assert apart(algebra.mass_matrix(q), T.T @ M @ T) < BOUND
    tau = T.T @ pin.rnea(model, data, p, w, b)
    assert apart(algebra.inverse_dynamics(q, v, a), tau) < BOUND
    assert apart(algebra.gravity_forces(q), T.T @ pin.computeGeneralizedGravity(model, data, p)) < BOUND
    assert apart(algebra.bias_forces(q, v), T.T @ pin.rnea(model, data, p, w, T_rate @ v)) < BOUND
    push = rng.normal(size=algebra.size)
    theirs = pin.aba(model, data, p, w, np.linalg.solve(T.T, push))
    assert apart(T @ algebra.forward_dynamics(q, v, push) + T_rate @ v, theirs) < BOUND
    inverse = pin.computeMinverse(model, data, p)
    inverse = np.triu(inverse) + np.triu(inverse, 1).T
    back = np.linalg.inv(T)
    assert apart(algebra.inverse_mass_matrix(q), back @ inverse @ back.T) < BOUND
    rotors = 0.5 * float(np.sum(model.armature * w**2))
    assert apart(algebra.kinetic_energy(q, v), pin.computeKineticEnergy(model, data, p, w) + rotors) < BOUND
    assert apart(algebra.potential_energy(q), pin.computePotentialEnergy(model, data, p)) < BOUND


@pytest.mark.parametrize("kinds", CASES)
def test_kinematics_and_momentum(kinds):
    # time derivatives of their Jacobians take the columns of universal joints as constant
    rng, mechanism, algebra, peer, q, v, _ = setting(kinds, 2, NATIVE[:3])
    model = peer.model
    p, T, T_rate = peer.motion(q, v)
    w = T @ v
    body, point = mechanism.bodies[-1], rng.normal(size=3)
    own = model.frames[peer.frames[body.name]]
    frame = model.addFrame(pin.Frame("point", own.parentJoint, 0, own.placement * pin.SE3(np.eye(3), point), pin.FrameType.OP_FRAME))
    data = model.createData()
    pin.computeJointJacobians(model, data, p)
    pin.computeJointJacobiansTimeVariation(model, data, p, w)
    pin.updateFramePlacements(model, data)
    for name, theirs in (("local_world_aligned", pin.LOCAL_WORLD_ALIGNED), ("local", pin.LOCAL), ("world", pin.WORLD)):
        J = pin.getFrameJacobian(model, data, frame, theirs)
        rate = pin.getFrameJacobianTimeVariation(model, data, frame, theirs)
        assert apart(algebra.body_jacobian(body, q, point, name), J @ T) < BOUND
        assert apart(algebra.body_jacobian_rate(body.name, q, v, point, name), rate @ T + J @ T_rate) < BOUND
    poses = algebra.forward_kinematics(q)
    for other in mechanism.bodies:
        assert np.allclose(poses.position[other.index], data.oMf[peer.frames[other.name]].translation, atol=1e-10)
    A = pin.computeCentroidalMap(model, data, p).copy()
    assert apart(algebra.centroidal_momentum_matrix(q), A @ T) < BOUND
    rate = pin.computeCentroidalMapTimeVariation(model, data, p, w)
    # theirs is meant for the product alone: a term that the rates make vanish is left out of the columns
    assert apart(algebra.centroidal_momentum_matrix_rate(q, v) @ v, rate @ w + A @ T_rate @ v) < BOUND
    assert apart(algebra.centroidal_momentum(q, v), pin.computeCentroidalMomentum(model, data, p, w).vector) < BOUND
    assert apart(algebra.center_of_mass(q), pin.centerOfMass(model, data, p)) < BOUND
    assert apart(algebra.center_of_mass_jacobian(q), pin.jacobianCenterOfMass(model, data, p) @ T) < BOUND


def test_derivatives_where_the_tangents_are_the_same():
    singles = [KINDS[k] for k in ("Revolute", "Prismatic", "Helical", "Cylindrical", "Rectangular", "PinInSlot", "Universal", "Cartesian")]
    rng, _, algebra, peer, q, v, a = setting(singles, 3, reach=3)
    p, T, T_rate = peer.motion(q, v)
    assert not T_rate.any()
    found = algebra.inverse_dynamics_derivatives(q, v, a)
    by_q, by_v, _ = pin.computeRNEADerivatives(peer.model, peer.data, p, T @ v, T @ a)
    assert apart(found.dtau_dq, T.T @ by_q @ T) < BOUND
    assert apart(found.dtau_dv, T.T @ by_v @ T) < BOUND
    tau = rng.normal(size=algebra.size)
    found = algebra.forward_dynamics_derivatives(q, v, tau)
    by_q, by_v, _ = pin.computeABADerivatives(peer.model, peer.data, p, T @ v, T @ tau)
    assert apart(found.da_dq, T.T @ by_q @ T) < BOUND
    assert apart(found.da_dv, T.T @ by_v @ T) < BOUND
    h = algebra.centroidal_momentum_derivatives(q, v)[0]
    theirs = pin.computeCentroidalDynamicsDerivatives(peer.model, peer.data, p, T @ v, T @ a)[0]
    assert apart(h, theirs @ T) < BOUND


def test_regressor_where_joint_frames_are_body_frames():
    rng = np.random.default_rng(4)
    mechanism = da.Mechanism("chain")
    for i in range(6):
        body = random_body(mechanism, f"body {i}", rng)
        parent = mechanism.bodies[i - 1] if i else mechanism.world
        mechanism.joint(f"joint {i}", da.Revolute(axis="x"), parent, body, at=body.position, frame=body.orientation)
    algebra = da.Algebra(mechanism)
    peer = Peer(pin, mechanism, algebra, NATIVE)
    q, v, a = algebra.random(rng), *rng.normal(size=(2, 6))
    found = algebra.inverse_dynamics_regressor(q, v, a)
    assert apart(found, pin.computeJointTorqueRegressor(peer.model, peer.data, q, v, a)) < BOUND
    theirs = np.concatenate([peer.model.inertias[i].toDynamicParameters() for i in range(1, 7)])
    assert apart(algebra.inertial_parameters, theirs) < BOUND
