"""Friction in joints by the load that they carry: closed forms for every geometry, orders, sticking, jamming, bad input."""
from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import dalembert as da
from dalembert.contact.bearing import journal_points, spread
from dalembert.formulations.reduced.paper_maximal import PaperMaximal
from dalembert.mechanism.shapes import Shape

G = 9.81
FORMULATIONS = [da.Variational(dt=0.005), da.Implicit(dt=0.005), da.Implicit(dt=0.005, method="sdirk2"), da.Reduced(dt=0.005)]
named = pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: f"{type(f).__name__} {getattr(f, 'method', '')}")


def wheel(spin: float, **bearing: float) -> da.Mechanism:
    mechanism = da.Mechanism("wheel")
    mechanism.body("wheel", da.Cylinder(radius=0.3, length=0.05, mass=4.0, axis="y"))
    mechanism.joint("axle", da.Revolute(axis="y", bearing=da.Bearing(**{"friction": 0.1, "radius": 0.02, **bearing})), mechanism.world, "wheel")
    mechanism.start("axle", rate=spin)
    return mechanism


def one_body(joint: da.Joint, rate: tuple[float, ...], shape: Shape | None = None) -> da.Mechanism:
    mechanism = da.Mechanism(type(joint).__name__)
    mechanism.body("body", shape or da.Cylinder(radius=0.1, length=0.3, mass=2.0, axis="x"))
    mechanism.joint("joint", joint, mechanism.world, "body")
    mechanism.start("joint", rate=rate)
    return mechanism


@named
def test_wheel_runs_down_linearly_and_stays(formulation):
    """tau = mu r m g; it stops at I w / tau."""
    run = da.Simulation(wheel(0.3), formulation).run(1.2)
    axle, alpha = run.joint("axle"), 0.1 * 0.02 * 4.0 * G / (0.5 * 4.0 * 0.09)
    stop = 0.3 / alpha
    before = run.time < stop - 0.02
    assert np.abs(axle.rates[before] - (0.3 - alpha * run.time[before])).max() < 3e-4
    after = run.time > stop + 0.02
    assert np.abs(axle.rates[after]).max() < 1e-6
    assert axle.shares["friction"][10] == pytest.approx(-0.1 * 0.02 * 4.0 * G, rel=1e-6)


@named
def test_door_on_one_hinge(formulation):
    """Weight on the collar, tilting moment on both ends: tau = mu (2 r M / l + t m g), whatever the rate."""
    weight = 30.0 * G
    torque = 0.2 * (2.0 * 0.01 * weight * 0.45 / 1.5 + 0.008 * weight)
    inertia = 30.0 * (0.9**2 + 0.04**2) / 12.0 + 30.0 * 0.45**2
    stop = 0.2 * inertia / torque
    run = da.Simulation(da.zoo.rubbing_door(), formulation).run(2.5)
    before = run.time < stop - 0.02
    angle = 0.2 * run.time - 0.5 * torque / inertia * run.time**2
    hinge = run.joint("hinge")
    assert np.abs(hinge.coordinates[before] - angle[before]).max() < 1e-4
    assert hinge.coordinates[-1] == pytest.approx(0.5 * 0.2 * stop, abs=1e-3)
    assert abs(hinge.rates[-1]) < 1e-8


@named
def test_ball_is_held_back_against_its_spin(formulation):
    """A ball joint at the centre of a sphere: mu r m g against omega, whatever its direction."""
    spin = np.array([0.3, -0.2, 0.5])
    run = da.Simulation(one_body(da.Spherical(bearing=da.Bearing(friction=0.2, radius=0.03)), tuple(spin), da.Sphere(radius=0.2, mass=5.0)), formulation).run(0.3)
    size = np.linalg.norm(spin)
    speed = np.maximum(size - 0.2 * 0.03 * 5.0 * G / (0.4 * 5.0 * 0.04) * run.time, 0.0)
    moving = speed > 0.03
    assert np.abs(run.angular_velocity[moving, 0] - np.outer(speed[moving], spin / size)).max() < 1e-3
    assert np.abs(run.angular_velocity[-1]).max() < 1e-6


@named
def test_sleeve_slides_and_turns_under_one_bound(formulation):
    """Force and torque oppose the motion of the surface: |(f, tau / r)| = mu m g."""
    run = da.Simulation(one_body(da.Cylindrical(axis="x", bearing=da.Bearing(friction=0.3, radius=0.05, length=0.3)), (1.0, 10.0)), formulation).run(0.2)
    joint = run.joint("joint")
    slip = joint.rates * [1.0, 0.05]
    friction = joint.shares["friction"] / [1.0, 0.05]
    assert np.linalg.norm(friction[5:-5], axis=1) == pytest.approx(0.3 * 2.0 * G, rel=1e-5)
    expected = -0.3 * 2.0 * G * slip / np.linalg.norm(slip, axis=1)[:, None]
    assert np.abs(friction[5:-5] - expected[5:-5]).max() < 0.05


def drawer(friction: float) -> da.Mechanism:
    """Half a metre long, pulled by 1 N half a metre beside its axis."""
    mechanism = da.Mechanism("drawer", gravity=(0, 0, 0))
    mechanism.body("drawer", da.Box(size=(0.1, 0.1, 0.1), mass=1.0))
    mechanism.joint("rail", da.Prismatic(axis="x", bearing=da.Bearing(friction=friction, radius=0.05, length=0.5)), mechanism.world, "drawer")
    mechanism.force("pull", "drawer", (1.0, 0, 0), at=(0, 0.5, 0))
    return mechanism


@named
@pytest.mark.parametrize("friction", [0.2, 0.45, 0.55])
def test_drawer_pulled_at_its_side_jams(friction, formulation):
    """Ends carry P c / l each: P - 2 mu P c / l is left, and nothing moves where that is negative."""
    run = da.Simulation(drawer(friction), formulation).run(0.2)
    assert run.joint("rail").rates[-1] == pytest.approx(0.2 * max(1.0 - 2.0 * friction, 0.0), abs=1e-6)


@named
def test_puck_on_a_plate(formulation):
    """A planar joint: sliding alone it loses mu g."""
    run = da.Simulation(one_body(da.Planar(normal="z", bearing=da.Bearing(friction=0.25, radius=0.2)), (0.8, 0.6, 0.0)), formulation).run(0.2)
    assert np.linalg.norm(run.velocity[-1, 0]) == pytest.approx(1.0 - 0.25 * G * 0.2, abs=2e-3)


@named
def test_both_pins_of_a_universal_joint(formulation):
    """Weight across both pins: each turns against mu r m g on its own."""
    shape = da.Sphere(radius=0.2, mass=5.0)
    for rate in ((0.2, 0.0), (0.0, 0.2)):
        run = da.Simulation(one_body(da.Universal(axes=("x", "y"), bearing=da.Bearing(friction=0.1, radius=0.02)), rate, shape), formulation).run(0.05)
        drop = 0.1 * 0.02 * 5.0 * G / (0.4 * 5.0 * 0.04) * 0.05
        assert run.joint("joint").rates[-1] == pytest.approx(np.array(rate) * (1.0 - drop / 0.2), abs=1e-4)


def pendulum_with_friction(time: float, friction: float, radius: float) -> np.ndarray:
    """Angle and rate of a rod on a pin whose load is that of its own motion, by an ODE solver."""
    mass, half, inertia = 1.5, 0.4, 1.5 * 0.8**2 / 12.0 + 1.5 * 0.4**2

    def acceleration(angle: float, rate: float) -> float:
        def missing(a: float) -> float:
            along, across = mass * (G * np.cos(angle) + half * rate**2), mass * (G * np.sin(angle) + half * a)
            return inertia * a + mass * G * half * np.sin(angle) + np.sign(rate) * friction * radius * np.hypot(along, across)

        return float(brentq(missing, -200.0, 200.0, xtol=1e-14))  # type: ignore[arg-type]

    found = solve_ivp(lambda _, y: (y[1], acceleration(*y)), (0.0, time), (0.8, -0.5), rtol=1e-11, atol=1e-12)
    return found.y[:, -1]


@pytest.mark.parametrize(("make", "least"), [(lambda dt: da.Variational(dt=dt), 1.85), (lambda dt: da.Implicit(dt=dt), 1.85), (lambda dt: da.Reduced(dt=dt), 1.85), (lambda dt: da.Implicit(dt=dt, method="bdf1"), 0.85)])
def test_order_where_the_load_follows_from_the_motion(make, least):
    mechanism = da.Mechanism("pendulum")
    mechanism.body("rod", mass=1.5, inertia=np.diag([1.5 * 0.64 / 12.0] * 2 + [1e-3]), position=(0, 0, -0.4))
    mechanism.joint("pin", da.Revolute(axis="x", bearing=da.Bearing(friction=0.4, radius=0.1)), mechanism.world, "rod")
    mechanism.start("pin", 0.8, rate=-0.5)
    reference, errors = pendulum_with_friction(0.3, 0.4, 0.1), []
    for dt in (0.01, 0.005, 0.0025):
        pin = da.Simulation(mechanism, make(dt)).run(0.3).joint("pin")
        errors.append(np.abs(np.array([pin.coordinates[-1], pin.rates[-1]]) - reference).max())
    assert np.log2(errors[-2] / errors[-1]) > least
    assert errors[-1] < 0.03


@pytest.mark.parametrize("contact", ["staggered", "qp"])
def test_bilateral_staggered_projections(contact):
    """The paper's algorithm, in its maximal coordinates: wheel, ball and jamming drawer, as in the other formulations."""
    stepper = PaperMaximal(dt=0.005, contact=contact)
    motion = stepper.run(wheel(0.3), 0.8)
    alpha = 0.1 * 0.02 * 4.0 * G / (0.5 * 4.0 * 0.09)
    assert np.abs(motion.velocity[:120, 0, 4] - (0.3 - alpha * motion.time[:120])).max() < 1e-7
    assert np.abs(motion.velocity[-1]).max() < 1e-9
    spin = np.array([0.3, -0.2, 0.5])
    ball = one_body(da.Spherical(bearing=da.Bearing(friction=0.2, radius=0.03)), tuple(spin), da.Sphere(radius=0.2, mass=5.0))
    motion = stepper.run(ball, 0.3)
    size = np.linalg.norm(spin)
    speed = size - 0.2 * 0.03 * 5.0 * G / (0.4 * 5.0 * 0.04) * motion.time
    assert np.abs(motion.velocity[:30, 0, 3:] - np.outer(speed[:30], spin / size)).max() < 1e-6
    assert np.abs(motion.velocity[-1]).max() < 1e-9
    for friction in (0.2, 0.45, 0.55):
        assert stepper.run(drawer(friction), 0.2).velocity[-1, 0, 0] == pytest.approx(0.2 * max(1.0 - 2.0 * friction, 0.0), abs=1e-6)


def pressed_wheel() -> da.Mechanism:
    """A ball on an axle, and another one on a guide that lies on top of it without friction: the axle carries both."""
    mechanism = da.Mechanism("pressed wheel")
    mechanism.body("wheel", da.Sphere(radius=0.2, mass=5.0), collide=True)
    mechanism.body("weight", da.Sphere(radius=0.1, mass=3.0), position=(0, 0, 0.3), collide=True)
    mechanism.joint("axle", da.Revolute(axis="y", bearing=da.Bearing(friction=0.1, radius=0.02)), mechanism.world, "wheel")
    mechanism.joint("guide", da.Prismatic(axis="z"), mechanism.world, "weight", at=(0, 0, 0.3))
    mechanism.contact_pair("wheel", "weight", friction=0.0, restitution=0.0)
    mechanism.start("axle", rate=1.0)
    return mechanism


@named
def test_a_bearing_carries_what_touches_its_body(formulation):
    run = da.Simulation(pressed_wheel(), formulation).run(0.2)
    alpha = 0.1 * 0.02 * 8.0 * G / (0.4 * 5.0 * 0.04)
    assert run.joint("axle").rates[-1] == pytest.approx(1.0 - 0.2 * alpha, abs=1e-4)


def test_staggered_projections_with_contacts_and_bearings():
    motion = PaperMaximal(dt=0.005).run(pressed_wheel(), 0.2)
    alpha = 0.1 * 0.02 * 8.0 * G / (0.4 * 5.0 * 0.04)
    assert motion.velocity[-1, 0, 4] == pytest.approx(1.0 - 0.2 * alpha, abs=1e-6)
    assert all(solution is not None and solution.converged for solution in motion.contacts)


def test_thrust_and_length_change_what_is_borne():
    loads = {}
    for name, bearing in dict(plain={}, thrust={"thrust": 0.005}).items():
        mechanism = da.Mechanism("spindle")
        mechanism.body("spindle", da.Cylinder(radius=0.1, length=0.3, mass=2.0, axis="z"))
        mechanism.joint("pivot", da.Revolute(axis="z", bearing=da.Bearing(friction=0.1, radius=0.02, **bearing)), mechanism.world, "spindle")
        mechanism.start("pivot", rate=5.0)
        loads[name] = float(da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.05).joint("pivot").shares["friction"][2].item())
    assert loads["plain"] == pytest.approx(-0.1 * 0.02 * 2.0 * G, rel=1e-6)
    assert loads["thrust"] == pytest.approx(-0.1 * 0.005 * 2.0 * G, rel=1e-6)


def test_points_around_a_pin_overrate_its_load_by_up_to_four_over_pi():
    """Eq. 2.125 spreads a force over rings of points: the sum of the loads depends on how many there are."""
    wrench = np.array([0, 0, 0, 0, 3.0, 4.0])
    for count, worst in ((4, np.sqrt(2.0)), (64, 4.0 / np.pi)):
        normals = journal_points(count, 0.02, 0.1)
        loads = spread(normals, wrench)
        assert normals.T @ loads == pytest.approx(wrench, abs=1e-6)
        assert 1.0 - 1e-6 <= np.abs(loads).sum() / 5.0 <= worst + 1e-3


def test_a_state_restored_goes_on_alike():
    simulation = da.Simulation(wheel(0.1), da.Variational(dt=0.01))
    simulation.run(0.1)
    state = simulation.state
    one = simulation.run(0.3).joint("axle").coordinates[-1]
    simulation.restore(state)
    assert simulation.run(0.3).joint("axle").coordinates[-1] == one


def test_parameters_by_name():
    simulation = da.Simulation(wheel(0.3), da.Variational(dt=0.01))
    assert simulation.parameters()["axle.bearing_friction"].value == 0.1
    simulation.set_parameters({"axle.bearing_friction": 0.0, "axle.bearing_length": 0.2})
    assert simulation.run(0.1).joint("axle").rates[-1] == pytest.approx(0.3, abs=1e-12)
    with pytest.raises(da.ModelError, match="Bearing: radius must be positive"):
        simulation.set_parameters({"axle.bearing_radius": -1.0})


@pytest.mark.parametrize("ending", [".json", ".toml"])
def test_bearings_come_back_from_files(ending, tmp_path):
    mechanism = wheel(0.3, length=0.07, thrust=0.011)
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0))
    mechanism.joint("socket", da.Spherical(bearing=da.Bearing(friction=0.3, radius=0.01)), "wheel", "ball")
    mechanism.save(tmp_path / f"model{ending}")
    back = da.load(tmp_path / f"model{ending}")
    assert [joint.type for joint in back.joints] == [joint.type for joint in mechanism.joints]
    assert da.load(tmp_path / f"model{ending}", limits=False).joints[0].type.bearing is None


@pytest.mark.parametrize(("make", "message"), [
    (lambda: da.Bearing(friction=-0.1, radius=0.1), "friction must not be negative"),
    (lambda: da.Bearing(friction=0.1, radius=0.0), "radius must be positive"),
    (lambda: da.Bearing(friction=0.1, radius=0.1, length=-1.0), "length must be positive"),
    (lambda: da.Bearing(friction=0.1, radius="wide"), "radius must be a number"),  # type: ignore[arg-type]
    (lambda: da.Free(bearing=da.Bearing(friction=0.1, radius=0.1)), "takes no bearing"),
    (lambda: da.Fixed(bearing=da.Bearing(friction=0.1, radius=0.1)), "takes no bearing"),
    (lambda: da.Revolute(bearing=0.3), "must be a dalembert.Bearing"),  # type: ignore[arg-type]
    (lambda: da.Revolute(drive="motion", bearing=da.Bearing(friction=0.1, radius=0.1)), "follows a target takes no bearing"),
])
def test_bad_bearings_are_refused(make, message):
    with pytest.raises(da.ModelError, match=message):
        make()


def test_what_cannot_take_a_bearing_says_so():
    with pytest.raises(da.ModelError, match="semi_implicit"):
        da.Simulation(wheel(1.0), da.Implicit(dt=0.01, method="semi_implicit"))


def linked() -> da.Mechanism:
    """A four-bar linkage with friction in all its pins (one closes the loop), and a body that hangs on the coupler as its parent."""
    mechanism, bearing = da.Mechanism("rubbing four-bar"), da.Bearing(friction=0.3, radius=0.05, length=0.3)
    pin = da.Revolute(axis="y", bearing=bearing)
    ends = {"crank": ((0, 0, 0), (0, 0, -0.5)), "coupler": ((0, 0, -0.5), (1.0, 0, -0.8)), "rocker": ((1.0, 0, 0), (1.0, 0, -0.8))}
    for name, (a, b) in ends.items():
        a, b = np.array(a), np.array(b)
        mechanism.body(name, da.Sphere(radius=0.2, mass=1.0), position=0.5 * (a + b))
    mechanism.body("bob", da.Sphere(radius=0.1, mass=0.5), position=(0.5, 0.1, -1.0))
    mechanism.joint("first", pin, mechanism.world, "crank", at=(0, 0, 0))
    mechanism.joint("second", pin, "crank", "coupler", at=(0, 0, -0.5))
    mechanism.joint("fourth", da.Spherical(), mechanism.world, "rocker", at=(1.0, 0, 0))
    mechanism.joint("third", da.Universal(axes=("y", "x"), bearing=bearing), "coupler", "rocker", at=(1.0, 0, -0.8))
    mechanism.joint("hanger", da.Cylindrical(axis=(0, 1, 1), bearing=bearing, damping=1.0), "bob", "coupler", at=(0.5, 0.05, -0.7))
    mechanism.start("first", rate=1.0)
    return mechanism


def test_formulations_agree_on_loops_and_joints_read_backwards():
    """Two formulations, and the paper's own in maximal coordinates, extrapolated: nothing but the law is shared."""
    runs = [da.Simulation(linked(), formulation).run(0.2) for formulation in (da.Implicit(dt=0.002), da.Reduced(dt=0.002))]
    ends = [np.hstack([run.position[-1], run.velocity[-1]]) for run in runs]
    assert np.abs(ends[0] - ends[1]).max() < 1e-4
    paper = [PaperMaximal(dt=dt).run(linked(), 0.2) for dt in (0.004, 0.002)]
    coarse, fine = (np.hstack([run.position[-1], run.velocity[-1, :, :3]]) for run in paper)
    assert np.abs(2.0 * fine - coarse - ends[0]).max() < 3e-4


def test_a_bearing_that_carries_next_to_nothing():
    """Without gravity the load passes through zero, and bounds of some directions count as none while those of others do not."""
    mechanism = da.Mechanism("weightless plate", gravity=(0.0, 0.0, 0.0))
    mechanism.body("plate", position=(-0.444, 0.903, -0.699), orientation=(3.85, -1.63, -1.04, -0.226), mass=12.9, inertia=np.diag((0.11, 0.15, 0.0864)))
    joint = da.PlanarFreeOrientation(
        normal=(0.801, 1.93, 0.468), stiffness=(0.0, 13.9, 0.0, 10.8, 96.1), damping=(0.0131, 0.0689, 0.281, 0.0, 2.21),
        bearing=da.Bearing(friction=0.0858, radius=0.131, length=0.5),
    )
    mechanism.joint("joint", joint, mechanism.world, "plate", at=(-0.244, 0.994, -0.904), frame=(-0.432, 1.2, -1.42, -0.102))
    sim = da.Simulation(mechanism, da.Variational(dt=0.002))
    sim.set_joint("joint", rate=(-0.311, 0.11, 0.0644, -0.0238, 0.365))
    run = sim.run(0.048)
    assert run.substeps.max() == 1
    assert np.diff(run.energy().total).max() < 1e-5


def test_weak_friction_of_a_bearing_beside_a_hard_impact():
    """What slides in the bearing is known from its motion: the impact leaves friction short of its bound."""
    mechanism = da.Mechanism("heavy")
    mechanism.body("arm", mass=86100.0, inertia=np.diag((512.0, 399.0, 218.0)), position=(-0.201, 1.34, -0.0916))
    mechanism.joint("end", da.Universal(limits=((-0.0898, 0.083), (-0.0429, 0.0139)), restitution=0.902), mechanism.world, "arm", at=(-0.246, 1.57, -0.355))
    mechanism.body("base", mass=1160000.0, inertia=np.diag((12100.0, 16800.0, 15500.0)), position=(0.17, -0.424, 0.0441), orientation=(-0.808, 0.266, -0.493, -1.29))
    mechanism.joint("turn", da.Revolute(axis=(0.765, -2.17, 0.123), limits=(-0.00821, 0.0515)), mechanism.world, "base", at=(0.369, -0.326, -0.385), frame=(-2.47, 0.329, 0.719, -0.554))
    mechanism.body("block", mass=1570000.0, inertia=np.diag((8010.0, 3060.0, 7630.0)), position=(-0.0986, 0.639, 0.0579), orientation=(-0.36, 0.514, -0.316, -1.15))
    slide = da.CylindricalFreeOrientation(axis=(2.28, -1.77, 1.99), stiffness=(23.2e6, 0.0, 54.7e6, 840e3), bearing=da.Bearing(friction=0.0153, radius=0.137, length=0.5))
    mechanism.joint("slide", slide, "block", "base", at=(-0.272, -0.0238, 0.114), frame=(1.61, 1.18, -1.38, -1.71))
    for method in ("pareschi_russo", "bdf2"):
        sim = da.Simulation(mechanism, da.Reduced(dt=4.75e-5, method=method))
        sim.set_joint("turn", rate=11.0)
        sim.set_joint("end", rate=(7.1, 0.268))
        run = sim.run(0.0182)
        assert run.constraint_violation().max() < 1e-8


def test_friction_that_moves_more_than_its_own_body_settles():
    """Bounds that follow the motion of a bearing in a light chain as if its body were alone swing to and fro."""
    mechanism = da.Mechanism("chain on plates")
    mechanism.body("first", mass=0.562, inertia=np.diag((0.00356, 0.00416, 0.0036)), position=(-0.325, -0.207, 0.23), orientation=(0.0321, 2.1, 0.111, 0.646))
    mechanism.joint("slot", da.PinInSlot(stiffness=(3.24, 0.689)), mechanism.world, "first", at=(-0.0876, 0.103, 0.142), frame=(1.91, 0.348, -2.03, 0.645))
    mechanism.body("second", mass=1.25, inertia=np.diag((0.0178, 0.0271, 0.0123)), position=(0.145, -0.276, -0.634), orientation=(0.941, -0.609, -2.42, -1.09))
    mechanism.joint("plane", da.PlanarFreeOrientation(normal=(-1.51, 0.656, -1.26)), "second", "first", at=(-0.46, -0.37, -0.0613), frame=(0.71, 0.663, -1.14, 0.362))
    mechanism.body("third", mass=0.881, inertia=np.diag((0.014, 0.0103, 0.00657)), position=(0.541, -0.0964, 0.343), orientation=(0.0806, 1.23, -0.73, 1.82))
    plate = da.Planar(normal=(-1.38, 2.89, 2.29), damping=(1.18, 0.0, 0.0), bearing=da.Bearing(friction=0.0271, radius=0.187, length=0.5))
    mechanism.joint("plate", plate, "second", "third", at=(0.538, -0.505, -0.332), frame=(0.0114, 1.85, 1.87, 1.07))
    mechanism.body("last", mass=0.546, inertia=np.diag((0.00161, 0.00225, 0.00157)), position=(-0.178, -0.294, 0.38), orientation=(-0.781, 0.338, 0.504, 0.934))
    ends = da.RotationAlongAxis(
        axis=(0.696, -0.547, -1.02), stiffness=(0.274, 0.0, 25.5, 1.68), armature=(0.003, 0.0, 0.0268, 0.00366),
        limits=((-0.0114, 0.0548), (-0.0122, 0.0863), (-0.0495, 0.0788), (-0.0183, 0.0212)), friction=(0.00412, 0.0, 0.0, 0.0),
    )
    mechanism.joint("ends", ends, "last", "second", at=(-0.12, -0.227, -0.162), frame=(0.472, 3.28, 0.277, -0.71))
    mechanism.cable("cable", (("first", (-0.271, -0.51, 0.125)), ("last", (-0.199, -0.239, 0.519))), stiffness=104.0)
    sim = da.Simulation(mechanism, da.Implicit(dt=0.0054))
    sim.set_joint("slot", (0.419, -0.481))
    for name, rate in (("plane", (-0.768, -0.64, -0.0608, 0.487, -0.0893)), ("plate", (0.676, 0.334, -0.0161)), ("ends", (-0.481, -0.357, 0.936, 0.193))):
        sim.set_joint(name, rate=rate)
    assert sim.run(0.1296).constraint_violation().max() < 1e-8


@pytest.mark.parametrize("formulation", [da.Variational, da.Implicit, da.Reduced])
def test_directions_that_a_light_body_couples_share_their_friction(formulation):
    """Where a push along one direction moves the body along the others, bounds of each by itself swung to and fro, and no step was found."""
    mechanism = da.Mechanism("plates")
    disc = mechanism.body("disc", mass=2.8e-05, inertia=np.diag((4.14e-07, 4.56e-07, 2.32e-07)), position=(-0.128, 0.0, 0.0), orientation=(0.0185, 0.317, -0.417, -0.245))
    chip = mechanism.body("chip", mass=5.16e-08, inertia=np.diag((7.21e-10, 2.74e-10, 5.35e-10)), position=(-0.687, 0.0, 0.0), orientation=(-1.44, 0.0952, -1.17, -0.364))
    mechanism.joint("screw", da.Helical(), mechanism.world, disc, at=(-0.139, 0.0, 0.0), frame=(-1.08, 0.0233, -1.54, 0.124))
    plate = da.Planar(bearing=da.Bearing(friction=0.0523, radius=0.116, length=0.5))
    mechanism.joint("plate", plate, disc, chip, at=(-0.105, 0.0, 0.0), frame=(-0.34, -0.99, 1.0, -0.963))
    run = da.Simulation(mechanism, formulation(dt=0.00045)).run(0.009)
    assert run.substeps.max() == 1
    rates, shares = run.joint("plate").rates[5:-1], run.joint("plate").shares["friction"][5:-1]
    scale = np.array([1.0, 1.0, 0.116])  # of one bound: slides in N, turns over the radius
    force, slide = shares / scale, rates * scale
    size = np.linalg.norm(force, axis=1, keepdims=True)
    np.testing.assert_allclose(force / size, -slide / np.linalg.norm(slide, axis=1, keepdims=True), atol=2e-3)


def test_a_bearing_beside_hard_limits_settles():
    """Impulses of the step before were no good start where limits hit: later tries begin from none."""
    mechanism = da.Mechanism("arm")
    base = mechanism.body("base", mass=1.31, inertia=np.diag((0.0172, 0.0164, 0.0318)), position=(0.0339, 0.202, -0.0881), orientation=(-1.28, 0.299, -0.0612, -1.36))
    limits, friction = ((-0.0345, 0.026), (-0.0135, 0.0136), (-0.0324, 0.0455)), (0.0309, 1.87e-05, 0.00359)
    stage = da.Planar(normal=(-0.0335, 0.509, -0.799), armature=(0.0, 0.00282, 0.00158), limits=limits, friction=friction)
    mechanism.joint("stage", stage, mechanism.world, base, at=(-0.0939, 0.18, -0.0443), frame=(-0.765, -0.449, 2.52, -1.42))
    arm = mechanism.body("arm", mass=0.9, inertia=np.diag((0.0165, 0.0122, 0.00823)), position=(0.198, -0.411, 0.101), orientation=(-0.147, 1.11, 0.48, 0.712))
    sleeve = da.CylindricalFreeOrientation(axis=(-0.571, 1.17, -0.729), damping=(3.11, 0.0, 0.0, 0.0122), bearing=da.Bearing(friction=0.0507, radius=0.19, length=0.5))
    mechanism.joint("sleeve", sleeve, arm, base, at=(0.164, -0.0357, 0.0978), frame=(-2.14, -1.59, -0.595, 1.68))
    tip = mechanism.body("tip", mass=0.93, inertia=np.diag((0.00281, 0.00322, 0.00362)), position=(-0.239, 0.0115, -0.451), orientation=(1.88, -0.89, -0.201, 0.776))
    mechanism.joint("hinge", da.Revolute(axis=(0.247, -1.67, 2.53), friction=0.000129), tip, arm, at=(-0.145, -0.0238, -0.32), frame=(-0.134, -0.672, -0.637, 0.266))
    sim = da.Simulation(mechanism, da.Variational(dt=0.00055))
    sim.set_joint("stage", rate=(-13.2, 3.75, -2.08))
    sim.set_joint("sleeve", rate=(-5.8, -0.588, 0.826, 8.01))
    sim.set_joint("hinge", 0.466)
    assert len(sim.run(12 * 0.00055)) == 13


def two_hinges() -> da.Mechanism:
    """A heavy door whose hinges both hold it up."""
    mechanism = da.Mechanism("door")
    door = mechanism.body("door", da.Box(size=(0.9, 0.04, 2.0), mass=30.0), position=(0.45, 0.0, 1.0))
    for name, height in (("low", 0.2), ("high", 1.8)):
        mechanism.joint(name, da.Revolute(axis="z", bearing=da.Bearing(friction=0.2, radius=0.01)), mechanism.world, door, at=(0.0, 0.0, height))
    return mechanism


def test_hinges_that_hold_a_door_together_share_its_weight_evenly():
    ends = []
    for formulation in (da.Variational(dt=0.005), da.Implicit(dt=0.005)):
        sim = da.Simulation(two_hinges(), formulation)
        sim.set_joint("low", rate=1.0)
        run = sim.run(0.5)
        low, high = (run.joint(name) for name in ("low", "high"))
        np.testing.assert_allclose(low.force[10:-10, 2], 0.5 * 30.0 * G, rtol=1e-3)
        assert np.abs(low.shares["friction"][50] + 0.353) < 0.02 > np.abs(high.shares["friction"][50] + 0.353)
        ends.append(low.rates[-1])
    assert ends[0] == pytest.approx(ends[1], rel=1e-5)


def test_bearings_whose_loads_are_left_open_are_named_in_joint_coordinates():
    """The same door on a ball and a slot, which hold no more than it takes, has loads that statics says."""
    with pytest.warns(RuntimeWarning, match="the loads of 'high', 'low' in 'door' are shared"):
        da.Simulation(two_hinges(), da.Reduced(dt=0.005))
    mechanism = da.Mechanism("door")
    door = mechanism.body("door", da.Box(size=(0.9, 0.04, 2.0), mass=30.0), position=(0.45, 0.0, 1.0))
    bearing = da.Bearing(friction=0.2, radius=0.01)
    mechanism.joint("low", da.Spherical(bearing=bearing), mechanism.world, door, at=(0.0, 0.0, 0.2))
    mechanism.joint("high", da.Slot(axis="z", bearing=bearing), mechanism.world, door, at=(0.0, 0.0, 1.8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        da.Simulation(mechanism, da.Reduced(dt=0.005))
