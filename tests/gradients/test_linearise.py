"""A and B of continuous time and of a step: against differences of accelerations, closed forms, and steps of both formulations."""
from __future__ import annotations

import numpy as np
import pytest
from everything import everything
from pairs import TYPES, pair, with_laws
from scipy.linalg import expm
from scipy.spatial.transform import Rotation
from trees import KINDS, random_tree

import dalembert as da

STENCIL = ((-2.0, 1 / 12), (-1.0, -2 / 3), (1.0, 2 / 3), (2.0, -1 / 12))
FORMULATIONS = {
    "variational": lambda dt: da.Variational(dt=dt), "implicit": lambda dt: da.Implicit(dt=dt, method="bdf2"), "reduced": lambda dt: da.Reduced(dt=dt),
}


def differenced(sim: da.Simulation, linear, size: float = 1e-3) -> np.ndarray:
    """(d, 2 d): differences of the accelerations of the coordinates, by set_joint."""
    coordinates = list(linear.coordinates)
    owners = [name.split("[")[0] for name in coordinates]
    joints = list(dict.fromkeys(owners))
    place = [int(name.split("[")[1][:-1]) if "[" in name else 0 for name in coordinates]
    value, rate = ({name: read(name) for name in joints} for read in (sim.coordinates, sim.rates))
    result = np.zeros((len(coordinates), 2 * len(coordinates)))
    for column in range(2 * len(coordinates)):
        which = column % len(coordinates)
        kinds = sim.mechanism[owners[which]].type.directions
        for steps, weight in STENCIL:
            values, rates = ({name: array.copy() for name, array in given.items()} for given in (value, rate))
            if column >= len(coordinates):
                rates[owners[which]][place[which]] += steps * size
            elif kinds[place[which]][0] == "ball":
                turn = Rotation.from_rotvec(steps * size * np.eye(3)[kinds[place[which]][1]])
                values[owners[which]][-3:] = (turn * Rotation.from_rotvec(values[owners[which]][-3:])).as_rotvec()
            else:
                values[owners[which]][place[which]] += steps * size
            for name in joints:
                sim.set_joint(name, values[name], rate=rates[name])
            result[:, column] += weight / size * sim.linearise(inputs=[], coordinates=coordinates).acceleration
    return result


@pytest.mark.parametrize("kind", [name for name, joint in TYPES.items() if joint.freedom])
def test_accelerations_of_every_joint(kind):
    """Each joint of the table with springs, dampers and rotors, askew and moving."""
    joint = TYPES[kind]
    laws: dict = dict(stiffness=3.0, damping=0.7)
    if not any(direction == "ball" for direction, _ in joint.directions):
        laws["armature"] = 0.2
    rng = np.random.default_rng(7)
    sim = da.Simulation(pair(with_laws(joint, **laws), 1, grounded=True), da.Variational(dt=0.01))
    sim.set_joint("joint", rng.uniform(-0.6, 0.6, joint.freedom), rate=rng.normal(size=joint.freedom))
    linear = sim.linearise(inputs=[])
    expected = differenced(sim, linear)
    assert np.abs(linear.A[len(expected) :] - expected).max() < 1e-8 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("moving", [False, True], ids=["at rest", "moving"])
def test_accelerations_under_all_forces(moving):
    sim, rng = da.Simulation(everything(), da.Variational(dt=0.01)), np.random.default_rng(5)
    if moving:
        for name in "abcde":
            sim.set_velocity(name, linear=0.5 * rng.normal(size=3), angular=0.5 * rng.normal(size=3))
    sim.set_input("hinge", 0.7)
    sim.set_input("path", 2.0)
    sim.set_input("ball", (0.1, 0.2, 0.3))
    linear = sim.linearise(inputs=[])
    assert linear.coordinates == ("hinge", "cross[0]", "cross[1]", "ball[0]", "ball[1]", "ball[2]", "slide")
    expected = differenced(sim, linear)
    assert np.abs(linear.A[7:] - expected).max() < 2e-8 * np.abs(expected).max()  # the potential is differenced twice


def test_accelerations_of_loops_with_redundant_rows():
    sim = da.Simulation(da.zoo.four_bar_chain(2), da.Variational(dt=0.005))
    sim.set_joint("1 hanger", rate=1.0)
    sim.run(0.3)
    linear = sim.linearise()
    assert len(linear.coordinates) == 4
    expected = differenced(sim, linear)
    assert np.abs(linear.A[4:] - expected).max() < 1e-7 * np.abs(expected).max()
    assert np.abs(linear.A[:4] - np.eye(4, 8, 4)).max() < 1e-14


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_by_joint_space_algebra(seed):
    """All joints of the table in random trees, moving: mass, accelerations and their derivatives by ``Algebra``."""
    rng = np.random.default_rng(seed)
    mechanism = random_tree([*rng.permutation(list(KINDS.values()))], rng)  # type: ignore[arg-type]
    sim, algebra = da.Simulation(mechanism, da.Variational(dt=0.01)), da.Algebra(mechanism)
    for joint in mechanism.joints:
        if joint.type.freedom:
            sim.set_joint(joint.name, rng.uniform(-0.6, 0.6, joint.type.freedom), rate=rng.normal(size=joint.type.freedom))
    linear, (q, v), none = sim.linearise(), algebra.state(sim), np.zeros(algebra.size)
    assert linear.coordinates == algebra.names
    derivatives = algebra.forward_dynamics_derivatives(q, v, none)
    for found, expected in (
        (linear.mass, algebra.mass_matrix(q)), (linear.acceleration, algebra.forward_dynamics(q, v, none)),
        (linear.A[algebra.size :], np.hstack([derivatives.da_dq, derivatives.da_dv])),
    ):
        assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()


def test_a_sleeping_top():
    """Spin about the vertical: s = i (I3 w +- sqrt(I3^2 w^2 - 4 I1 m g l)) / (2 I1), stable or not."""
    top = da.Mechanism("sleeping top")
    mass, height, axial, across = 2.0, 0.3, 0.02, 0.05
    top.body("top", mass=mass, inertia=np.diag([across, across, axial]), position=(0, 0, height))
    top.joint("tip", da.Spherical(), top.world, "top")
    about_tip = across + mass * height**2
    for spin in (20.0, 60.0):
        sim = da.Simulation(top, da.Variational(dt=1e-3))
        sim.set_velocity("top", angular=(0, 0, spin))
        root = np.sqrt(complex((axial * spin) ** 2 - 4 * about_tip * mass * 9.81 * height))
        expected = [1j * sign * (axial * spin + other * root) / (2 * about_tip) for sign in (1, -1) for other in (1, -1)]
        found = sim.linearise().eigenvalues
        for value in expected:
            assert np.abs(found - value).min() < 1e-9 * np.abs(value)


def double_pendulum(**laws) -> da.Mechanism:
    mechanism = da.Mechanism("double pendulum")
    before = mechanism.world
    for i, name in enumerate(("upper", "lower")):
        mechanism.body(name, mass=1.0 + 0.3 * i, inertia=0.02 * (i + 1) * np.eye(3), position=(0, 0, -0.5 * (i + 1)))
        mechanism.joint(("shoulder", "elbow")[i], da.Revolute(axis="x", drive="force", **laws), before, name, at=(0, 0, -0.5 * i))
        before = mechanism[name]
    return mechanism


def test_inputs():
    """Torques, a wrench and a servo's target, in closed form; at an angle where the mass matrix is not that of the start."""
    sim = da.Simulation(double_pendulum(), da.Variational(dt=0.01))
    sim.set_joint("elbow", 0.7)
    linear = sim.linearise(inputs=["elbow", "lower", "shoulder"])
    assert linear.inputs == ("elbow", *(f"lower[{i}]" for i in range(6)), "shoulder")
    l, m1, m2, I1, I2, c, s = 0.5, 1.0, 1.3, 0.02, 0.04, np.cos(0.7), np.sin(0.7)
    coupled = m2 * l * l * c
    M = np.array([[I1 + I2 + (m1 + 2 * m2) * l * l + 2 * coupled, I2 + m2 * l * l + coupled], [0.0, I2 + m2 * l * l]])
    M[1, 0] = M[0, 1]
    F = np.zeros((2, 8))
    F[:, 0], F[:, 7] = (0, 1), (1, 0)
    F[:, 2], F[:, 3] = (l + l * c, l * c), (l * s, l * s)  # force along y and z of the world
    F[:, 4] = (1, 1)
    assert linear.mass == pytest.approx(M, abs=1e-13)
    assert linear.B[2:] == pytest.approx(np.linalg.solve(M, F), abs=1e-12)
    assert not linear.B[:2].any()


def test_targets_of_servos_and_tensions():
    mechanism = da.Mechanism("servo")
    mechanism.body("arm", mass=2.0, inertia=0.1 * np.eye(3), position=(0, 0, -0.4))
    mechanism.joint("hinge", da.Revolute(axis="x", servo=da.Servo(stiffness=20.0, damping=1.0, bound=30.0)), mechanism.world, "arm")
    mechanism.path("tendon", [(mechanism.world, (0, 1.0, -0.4)), ("arm", (0, 0, -0.4))], drive="force")
    sim = da.Simulation(mechanism, da.Variational(dt=0.01))
    linear = sim.linearise(inputs=["hinge", "tendon"])
    inertia = 0.1 + 2.0 * 0.16
    assert linear.B[1] == pytest.approx(np.array([20.0, 0.4]) / inertia, rel=1e-12)
    assert linear.A[1] == pytest.approx(np.array([-20.0 - 2.0 * 9.81 * 0.4, -1.0]) / inertia, rel=1e-12)
    sim.set_target("hinge", 2.0)  # 40 N m, beyond its bound
    assert sim.linearise(inputs=["hinge"]).B[1] == 0.0


def held_over_a_step(linear) -> np.ndarray:
    """exp of (A, B) for an input held over a step: (2 d, 2 d + inputs)."""
    count, width = linear.B.shape
    both = np.zeros((count + width, count + width))
    both[:count] = np.hstack([linear.A, linear.B])
    return expm(linear.dt * both)[:count]


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_steps_tend_to_continuous_time(formulation):
    """About an equilibrium, a step is exp(A dt) to its own order; B that of an input held over the step."""
    errors = []
    for dt in (0.02, 0.01):
        linear = da.Simulation(double_pendulum(damping=0.1), FORMULATIONS[formulation](dt)).linearise()
        errors.append(np.abs(np.hstack([linear.A_step, linear.B_step]) - held_over_a_step(linear)).max())
    assert np.log2(errors[0] / errors[1]) > 1.7, errors
    assert errors[1] < 5e-3


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_steps_with_servos(formulation):
    """Servos are of first order in Variational; about an equilibrium, off the start, none of them counts for more than it does."""
    errors = []
    for dt in (0.004, 0.002):
        mechanism = da.Mechanism("servo")
        mechanism.body("arm", mass=2.0, inertia=0.1 * np.eye(3), position=(0, 0, -0.4))
        mechanism.joint("hinge", da.Revolute(axis="x", servo=da.Servo(stiffness=20.0, damping=1.0, target=0.5)), mechanism.world, "arm")
        sim = da.Simulation(mechanism, FORMULATIONS[formulation](dt))
        sim.equilibrium()
        linear = sim.linearise(inputs=["hinge"])
        errors.append(np.abs(np.hstack([linear.A_step, linear.B_step]) - held_over_a_step(linear)).max() / dt)
    assert errors[1] < 0.6 * errors[0], errors
    assert errors[1] < 1.0


def test_steps_of_a_loop_keep_volume():
    """A step of a conservative mechanism is symplectic, loops or not: of one freedom, its A has determinant 1."""
    sim = da.Simulation(da.zoo.n_four_bar(1, rate=0.0), da.Variational(dt=0.01))
    sim.set_joint("ground 0", 0.5, rate=2.0)
    linear = sim.linearise()
    momentum = linear.mass[0, 0]
    end = da.Simulation(da.zoo.n_four_bar(1, rate=0.0), da.Variational(dt=0.01))
    end.restore(sim.state)
    end.step()
    after = end.linearise(coordinates=list(linear.coordinates)).mass[0, 0]
    assert np.linalg.det(linear.A_step) == pytest.approx(momentum / after, rel=1e-6)


def test_deviations_follow_the_linear_system():
    sim = da.Simulation(double_pendulum(), da.Variational(dt=0.001))
    linear = sim.linearise()
    assert np.abs(linear.deviation(sim)).max() == 0.0
    sim.set_joint("elbow", 1e-4)
    begun = linear.deviation(sim)
    assert begun == pytest.approx([0, 1e-4, 0, 0], abs=1e-15)
    sim.run(0.3)
    assert linear.deviation(sim) == pytest.approx(np.linalg.matrix_power(linear.A_step, 300) @ begun, abs=1e-10)
    assert linear.deviation(sim) == pytest.approx(expm(0.3 * linear.A) @ begun, abs=1e-8)  # and the error of 300 steps


def test_coordinates_by_name():
    """A change of coordinates is a change of basis: eigenvalues stay."""
    sim = da.Simulation(da.zoo.n_four_bar(1, rate=0.0), da.Variational(dt=0.01))
    chosen, named, body = sim.linearise(), sim.linearise(coordinates=["ground 1"]), sim.linearise(coordinates=["coupler 0[0]"])
    assert (named.coordinates, body.coordinates, body.units) == (("ground 1",), ("coupler 0[0]",), ("m",))
    for other in (named, body):
        assert other.eigenvalues == pytest.approx(chosen.eigenvalues, abs=1e-10)


def test_both_formulations_and_bodies_without_joints():
    mechanism = da.Mechanism("two bodies", gravity=(0, 0, 0))
    for name, x in (("left", 0.0), ("right", 1.0)):
        mechanism.body(name, da.Box(size=(0.1, 0.2, 0.3), mass=1.0), position=(x, 0, 0))
    mechanism.spring("spring", "left", "right", at=((0.05, 0, 0), (0.95, 0, 0)), stiffness=8.0)
    for make in FORMULATIONS.values():
        linear = da.Simulation(mechanism, make(0.01)).linearise()
        assert len(linear.coordinates) == 12
        assert np.imag(linear.eigenvalues).max() == pytest.approx(4.0, rel=1e-12)


def parallelogram(angle: float) -> da.Mechanism:
    """Two cranks and a bar, the cranks at an angle (rad) from the bar."""
    mechanism, arm = da.Mechanism("parallelogram"), 0.5 * np.array([np.cos(angle), 0.0, np.sin(angle)])
    turn = (np.cos(angle / 2), 0, -np.sin(angle / 2), 0)
    for name, x in (("left", 0.0), ("right", 1.0)):
        mechanism.body(name, da.Rod(length=0.5, mass=1.0, radius=0.02, axis="x"), position=np.array([x, 0, 0]) + 0.5 * arm, orientation=turn)
        mechanism.joint(f"{name} foot", da.Revolute(axis="y"), mechanism.world, name, at=(x, 0, 0))
    mechanism.body("bar", da.Rod(length=1.0, mass=1.0, radius=0.02, axis="x"), position=np.array([0.5, 0, 0]) + arm)
    for name, x in (("left", 0.0), ("right", 1.0)):
        mechanism.joint(f"{name} pin", da.Revolute(axis="y"), name, "bar", at=np.array([x, 0, 0]) + arm)
    return mechanism


def one_hinge(**laws) -> da.Simulation:
    mechanism = da.Mechanism("one hinge")
    mechanism.body("rod", da.Rod(length=1.0, mass=1.0, radius=0.02), position=(0, 0, -0.5))
    mechanism.joint("hinge", da.Revolute(axis="x", **laws), mechanism.world, "rod")
    return da.Simulation(mechanism, da.Variational(dt=0.01))


def test_dead_centres():
    assert da.Simulation(parallelogram(-1.0), da.Variational(dt=0.01)).linearise().coordinates
    for angle in (0.0, 1e-7):
        with pytest.raises(da.LinearisationError, match="dead centre"):
            da.Simulation(parallelogram(angle), da.Variational(dt=0.01)).linearise()


def test_dry_friction():
    with pytest.raises(da.LinearisationError, match=r"'hinge' is held by dry friction of 0\.1"):
        one_hinge(friction=0.1).linearise()
    sliding, smooth = one_hinge(friction=0.1), one_hinge()
    for sim in (sliding, smooth):
        sim.set_joint("hinge", 0.3, rate=1.0)
    assert np.abs(sliding.linearise().A - smooth.linearise().A).max() < 1e-13
    lag = smooth.linearise().acceleration - sliding.linearise().acceleration
    assert lag == pytest.approx(0.1 / smooth.linearise().mass[0], rel=1e-12)


def test_bearings():
    sim = one_hinge(bearing=da.Bearing(friction=0.1, radius=0.01))
    with pytest.raises(da.LinearisationError, match="'hinge' has a bearing"):
        sim.linearise()
    sim.set_parameters({"hinge.bearing_friction": 0.0})
    assert np.abs(sim.linearise().A - one_hinge().linearise().A).max() < 1e-13


def test_joints_without_rows():
    mechanism = da.Mechanism("composite")
    mechanism.body("rod", da.Rod(length=1.0, mass=1.0, radius=0.02), position=(0, 0, -0.5))
    mechanism.joint("joint", da.CompositeJoint(da.Revolute(axis="x"), da.Revolute(axis="y")), mechanism.world, "rod")
    sim = da.Simulation(mechanism, da.Reduced(dt=0.01))
    for analysis in (sim.linearise, sim.equilibrium, sim.modes):
        with pytest.raises(da.LinearisationError, match="'joint' of 'composite' is given by how it moves"):
            analysis()


@pytest.mark.parametrize("make", FORMULATIONS.values(), ids=FORMULATIONS)
def test_limits_and_contacts(make):
    with pytest.raises(da.LinearisationError, match="'hinge' stands at a limit"):
        one_hinge(limits=(-1.0, 0.0)).linearise()
    sim = da.Simulation(da.zoo.box_drop(), make(0.01))
    assert sim.linearise().A.shape == (12, 12)
    sim.run(1.0)
    with pytest.raises(da.LinearisationError, match="touch"):
        sim.linearise()


@pytest.mark.parametrize(("arguments", "message"), [
    (dict(coordinates="hinge"), "must be a list of names"),
    (dict(inputs="hinge"), "must be a list of names"),
    (dict(coordinates=["nothing"]), "no element named 'nothing'"),
    (dict(coordinates=["hinge[1]"]), "has no coordinate 'hinge\\[1\\]'; it has: hinge"),
    (dict(coordinates=["hinge", "hinge"]), "named twice: hinge"),
    (dict(coordinates=["hinge", "rod[0]"]), "has 1 independent coordinates at this pose, got 2"),
    (dict(coordinates=["rod[0]"]), "do not determine the motion"),
    (dict(coordinates=["world"]), "coordinates are those of joints and bodies"),
    (dict(inputs=["hinge"]), "takes no input; make it with drive='force' or a servo"),
    (dict(inputs=["world"]), "takes no input"),
    (dict(inputs=["rod", "rod"]), "named twice"),
])
def test_bad_names(arguments, message):
    with pytest.raises(da.ModelError, match=message):
        one_hinge().linearise(**arguments)


def test_motion_drives():
    sim = one_hinge(drive="motion")
    with pytest.raises(da.ModelError, match="follows a target exactly"):
        sim.linearise(inputs=["hinge"])
    with pytest.raises(da.LinearisationError, match="cannot move"):
        sim.linearise()


def test_about_a_motion_that_a_drive_prescribes():
    """A pendulum on a slide that is shaken: its equation, with the slide's acceleration in it."""
    mechanism = da.Mechanism("shaken pendulum")
    mechanism.body("slider", da.Box(size=(0.1, 0.1, 0.1), mass=1.0))
    mechanism.body("bob", mass=2.0, inertia=0.1 * np.eye(3), position=(0, 0, -0.5))
    mechanism.joint("shaker", da.Prismatic(axis="z", drive="motion"), mechanism.world, "slider")
    mechanism.joint("pin", da.Revolute(axis="x"), "slider", "bob")
    sim = da.Simulation(mechanism, da.Variational(dt=0.001))
    sim.set_joint("pin", 0.4)
    sim.set_target("shaker", lambda t: 0.2 * np.sin(6.0 * t))
    sim.run(0.2)
    linear = sim.linearise()
    angle, weight = sim.coordinates("pin")[0], 9.81 - 0.2 * 36.0 * np.sin(6.0 * sim.time)
    assert linear.coordinates == ("pin",)
    assert linear.A[1] == pytest.approx([-weight * np.cos(angle) / 0.6 * 0.5 * 2.0, 0.0], abs=1e-8)
    assert linear.acceleration == pytest.approx(-weight * np.sin(angle) / 0.6, abs=1e-8)


def test_kinks_of_forces():
    mechanism = da.Mechanism("kinks")
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0))
    mechanism.joint("guide", da.Prismatic(axis="z"), mechanism.world, "ball")
    mechanism.cable("cable", [(mechanism.world, (0, 0, 1)), ("ball", (0, 0, 0))], stiffness=10.0)
    mechanism.penalty("plane", "ball", offset=-0.2, stiffness=10.0)
    sim = da.Simulation(mechanism, da.Variational(dt=0.01))
    with pytest.raises(da.LinearisationError, match=r"<cable 'cable' .*> is just slack"):
        sim.linearise()
    sim.set_joint("guide", -0.2)
    with pytest.raises(da.LinearisationError, match="<penalty 'plane' on 'ball'> just touches"):
        sim.linearise()
    sim.set_joint("guide", -0.1)
    assert sim.linearise().A[1, 0] == pytest.approx(-10.0)
