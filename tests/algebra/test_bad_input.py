"""What makes no sense gets its named error, which says what was wrong."""
import numpy as np
import pytest

import dalembert as da


@pytest.fixture(scope="module")
def algebra():
    return da.Algebra(da.zoo.n_four_bar(1))


@pytest.mark.parametrize(("call", "words"), [
    (lambda a, q: a.mass_matrix(q[:-1]), "q must be 3 numbers"),
    (lambda a, q: a.inverse_dynamics(q, q, [0.0, np.nan, 0.0]), "a must be finite, got nan for 'ground 1'"),
    (lambda a, q: a.bias_forces(q, "fast"), "v must be 3 numbers"),
    (lambda a, q: a.body_jacobian("nobody", q), "has no body 'nobody'; it has"),
    (lambda a, q: a.body_jacobian(a.mechanism.bodies[0], q, point=(1.0, 2.0)), "3 numbers"),
    (lambda a, q: a.body_jacobian(a.mechanism.bodies[0], q, frame="mine"), "local_world_aligned"),
    (lambda a, q: a.hybrid_dynamics(q, q, q, q, ["no joint"]), "no coordinates of 'no joint'"),
    (lambda a, q: a.hybrid_dynamics(q, q, q, q, "ground 0"), "list of names"),
    (lambda a, q: a.slot("right 0"), "closes a loop"),
    (lambda a, q: a.inverse_mass_product(q, np.zeros((2, 2))), "x must have the shape"),
    (lambda a, q: a.jacobian_transpose_product(q, np.zeros(6)), "wrenches must have the shape"),
    (lambda a, q: a.rate_map(q, []), "do not determine"),
    (lambda a, q: a.rate_map(q, ["ground 0", "ground 1"]), "not independent"),
    (lambda a, q: a.rate_map(q, a.names), "not independent"),
    (lambda a, q: a.constrained_inverse_dynamics(q, q, [1.0, 0.0, 0.0]), "opens the loops"),
])
def test_errors_say_what_was_wrong(algebra, call, words):
    with pytest.raises(da.ModelError, match=words.replace("(", r"\(")):
        call(algebra, np.zeros(algebra.size))


def test_forces_that_are_not_there(algebra):
    q = algebra.close_loops(algebra.reference() + 0.1)
    a, _ = algebra.constrained_forward_dynamics(q, np.zeros(3), [5.0, 0.0, 0.0])
    with pytest.raises(da.ModelError, match="cannot cause these accelerations"):
        algebra.constrained_inverse_dynamics(q, np.zeros(3), a, [])


def test_loops_that_do_not_close():
    ring = da.Mechanism("ring")
    body = ring.body("body", da.Sphere(radius=0.1, mass=1.0), position=(1, 0, 0))
    ring.joint("hinge", da.Revolute(axis="z"), ring.world, body, at=(0, 0, 0))
    ring.joint("pin", da.Spherical(), ring.world, body, at=((0, 3, 0), (1, 0, 0)))
    algebra = da.Algebra(ring)
    with pytest.raises(da.AssemblyError, match="stays open by"):
        algebra.close_loops([0.5])


def test_mechanisms_that_have_nothing_to_say():
    with pytest.raises(da.ModelError, match="needs a Mechanism"):
        da.Algebra("arm")  # type: ignore[arg-type]
    with pytest.raises(da.ModelError, match="has no bodies"):
        da.Algebra(da.Mechanism("nothing"))
    still = da.Mechanism("still")
    still.joint("weld", da.Fixed(), still.world, still.body("body", da.Sphere(radius=0.1, mass=1.0)))
    algebra = da.Algebra(still)
    assert algebra.mass_matrix([]).shape == (0, 0)
    assert algebra.forward_dynamics([], [], []).shape == (0,)
    with pytest.raises(da.ModelError, match="no body of 'still' can move"):
        algebra.center_of_mass([])


def test_single_directions_of_a_free_rotation_are_not_prescribed():
    ball = da.Mechanism("ball")
    ball.joint("socket", da.Spherical(), ball.world, ball.body("body", da.Sphere(radius=0.1, mass=1.0)))
    algebra, zero = da.Algebra(ball), np.zeros(3)
    with pytest.raises(da.ModelError, match="prescribed together"):
        algebra.hybrid_dynamics(zero, zero, zero, zero, ["socket[1]"])
