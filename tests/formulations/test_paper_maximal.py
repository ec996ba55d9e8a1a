"""The RedMax paper's maximal formulation against the others as the step falls, its derivatives, momentum, and contact."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert import zoo
from dalembert.formulations.reduced.paper_maximal import PaperMaximal, Stepper
from dalembert.mechanism.joints import JOINTS
from dalembert.simulation.setup import Setup


def two_bodies(joint: da.Joint) -> da.Mechanism:
    """A body on a hinge with another one on the joint, both moving."""
    mechanism = da.Mechanism(type(joint).__name__)
    upper = mechanism.body("upper", da.Box(size=(0.1, 0.2, 0.5), mass=1.0), position=(0, 0, -0.25))
    lower = mechanism.body("lower", da.Box(size=(0.3, 0.1, 0.4), mass=0.7), position=(0.1, 0, -0.7))
    mechanism.joint("hinge", da.Revolute(axis="x"), mechanism.world, upper)
    mechanism.joint("joint", joint, upper, lower, at=((0, 0, -0.5), (0, 0, -0.9)) if isinstance(joint, da.Distance) else (0, 0, -0.5))
    mechanism.start("hinge", 0.4, rate=1.0)
    if joint.freedom:
        mechanism.start("joint", rate=np.linspace(0.5, -0.4, joint.freedom))
    return mechanism


def machine() -> da.Mechanism:
    """Rotor, servo, spring, damper, cable, gear, drag, penalty plane and point force at once."""
    mechanism = da.Mechanism("bit of everything")
    arm = mechanism.body("arm", da.Box(size=(0.1, 0.2, 0.5), mass=1.0), position=(0, 0, -0.25))
    tip = mechanism.body("tip", da.Sphere(radius=0.1, mass=0.5), position=(0.1, 0, -0.8))
    wheel = mechanism.body("wheel", da.Cylinder(radius=0.2, length=0.05, mass=1.0, axis="x"), position=(0.3, 0, 0))
    free = mechanism.body("free", da.Box(size=(0.2, 0.3, 0.1), mass=0.4), position=(1.0, 0, 0.02))
    mechanism.joint("shoulder", da.Revolute(axis="x", armature=0.3, damping=0.1), mechanism.world, arm)
    mechanism.joint("slide", da.Cylindrical(axis="z", stiffness=(40.0, 1.0), damping=0.2, armature=(0.2, 0.05)), arm, tip, at=(0, 0, -0.5))
    mechanism.joint("axle", da.Revolute(axis="x", servo=da.Servo(stiffness=20.0, damping=1.0, target=0.5)), mechanism.world, wheel, at=(0.3, 0, 0))
    mechanism.joint("ball", da.Free(stiffness=(0, 0, 0, 2.0, 3.0, 1.0)), mechanism.world, free, at=(1.0, 0, 0.02))
    mechanism.gear("gear", "shoulder", "axle", ratio=-1.5)
    mechanism.cable("cable", [(mechanism.world, (0.5, 0.5, -0.2)), (arm, (0, 0, -0.4)), (tip, (0.1, 0, -0.8))], stiffness=50.0, damping=0.5, length=1.0)
    mechanism.drag("air", free, linear=0.3, angular=0.02)
    mechanism.penalty("floor", free, point=(0.1, 0.1, -0.05), stiffness=200.0, damping=2.0, friction=0.4, tangential=5.0)
    mechanism.force("push", free, (0.3, 0.1, 0.2), at=(0.9, 0.1, 0.0), follows=True)
    mechanism.start("shoulder", 0.5, rate=1.0)
    mechanism.start("free", linear=(0.4, -0.2, 0.0), angular=(1.0, -0.5, 2.0))
    return mechanism


def errors(mechanism: da.Mechanism, time: float, steps: tuple[float, ...], **options) -> list[float]:
    """Largest error of positions and velocities at the end, against the variational integrator with a small step."""
    reference = da.Simulation(mechanism, da.Variational(dt=min(steps) / 16)).run(time)
    end = np.hstack([reference.position[-1], reference.velocity[-1], reference.angular_velocity[-1]])
    found = []
    for dt in steps:
        motion = PaperMaximal(dt=dt, **options).run(mechanism, time)
        found.append(float(np.abs(np.hstack([motion.position[-1], motion.velocity[-1]]) - end).max()))
    return found


def order(found: list[float]) -> float:
    return float(np.log2(found[-2] / found[-1]))


@pytest.mark.parametrize("kind", [j for j in JOINTS if j is not da.Free], ids=lambda j: j.__name__)
def test_every_joint_tends_to_the_same_motion(kind):
    found = errors(two_bodies(kind()), 0.2, (0.004, 0.002))
    assert found[-1] < 0.04
    assert 0.85 < order(found) < 1.2


def test_forces_of_every_kind_tend_to_the_same_motion():
    found = errors(machine(), 0.2, (0.001, 0.0005))
    assert found[-1] < 0.02
    assert 0.85 < order(found) < 1.2


MECHANISMS = {
    "four bar": zoo.n_four_bar, "top": lambda: zoo.heavy_top(spin=15.0), "slider crank": zoo.slider_crank, "door": lambda: zoo.door(rate=2.0),
    "double pendulum": zoo.double_pendulum,
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_of_the_zoo(name):
    found = errors(MECHANISMS[name](), 0.2, (0.001, 0.0005))
    assert 0.85 < order(found) < 1.2 or found[-1] < 1e-9


def test_explicit_forces_too():
    assert 0.85 < order(errors(machine(), 0.2, (0.002, 0.001), implicit=False)) < 1.2


def test_derivatives_of_forces_against_differences():
    mechanism = machine()
    stepper = Stepper(PaperMaximal(dt=0.01), mechanism, Setup(mechanism).initial())
    found = stepper.linearise()
    position, orientation = stepper.work.bodies["x"][:-1].copy(), stepper.work.bodies["q"][:-1].copy()
    twist, coordinate, frames = stepper.twist.copy(), stepper.work.joints["coordinate"].copy(), stepper.rotations.copy()

    def force(turn: np.ndarray, more: np.ndarray) -> np.ndarray:
        turned = Rotation.from_quat(orientation, scalar_first=True) * Rotation.from_rotvec(turn[:, :3])
        moved = position + np.einsum("nij,nj->ni", frames, turn[:, 3:])
        stepper.placement.put(moved, turned.as_quat(scalar_first=True), coordinate)
        stepper.twist = twist + more
        return stepper.linearise().f

    size, step, nothing = twist.size, 1e-6, np.zeros_like(twist)
    K, D = np.zeros((size, size)), np.zeros((size, size))
    for k in range(size):
        way = np.zeros(size)
        way[k] = step
        way = way.reshape(-1, 6)
        K[:, k] = (force(way, nothing) - force(-way, nothing)) / (2 * step)
        D[:, k] = (force(nothing, way) - force(nothing, -way)) / (2 * step)
    rotors = np.linalg.norm(stepper.model.joints["armature"]) * np.abs(twist).max()  # their bias is left out of D
    assert np.abs(found.D - D).max() < 3.0 * rotors
    free = slice(18, 24)
    assert np.abs(found.D[free, free] - D[free, free]).max() < 1e-6 * np.abs(D).max()
    assert np.abs(found.K[free, free] - K[free, free]).max() < 1e-6 * np.abs(K).max()


def test_momentum_of_linked_bodies_is_kept_to_first_order():
    """Body-frame twists with explicit gyroscopic forces do not keep momentum exactly: the error halves with the step."""
    mechanism = da.Mechanism("pair", gravity=(0, 0, 0))
    first = mechanism.body("first", da.Box(size=(0.1, 0.2, 0.5), mass=1.0))
    second = mechanism.body("second", da.Box(size=(0.3, 0.1, 0.4), mass=0.7), position=(0.1, 0, 0.6))
    mechanism.joint("ball", da.Spherical(), first, second, at=(0, 0, 0.3))
    mechanism.start("first", linear=(0.3, 0, 0.1), angular=(1.0, 2.0, -1.0))
    mass, changes = np.array([1.0, 0.7]), []
    for dt in (0.004, 0.002):
        motion = PaperMaximal(dt=dt).run(mechanism, 0.4)
        momentum = np.einsum("n,knc->kc", mass, motion.velocity[..., :3])
        changes.append(np.abs(momentum - momentum[0]).max())
    assert changes[1] < 0.01
    assert 0.85 < np.log2(changes[0] / changes[1]) < 1.2


def test_reaction_of_a_hanging_chain_is_its_weight():
    mechanism = da.Mechanism("hanging")
    above = mechanism.world
    for k in range(3):
        body = mechanism.body(f"link {k}", da.Rod(length=0.5, mass=1.0 + k, radius=0.02, axis="z"), position=(0, 0, -0.25 - 0.5 * k))
        mechanism.joint(f"pin {k}", da.Revolute(axis="x"), above, body, at=(0, 0, -0.5 * k))
        above = body
    motion = PaperMaximal(dt=0.01).run(mechanism, 0.05)
    loads = np.linalg.norm(motion.row_force[-1, :, :3], axis=1)
    assert loads == pytest.approx(9.81 * np.array([6.0, 5.0, 3.0]), rel=1e-9)


def test_drift_is_asked_back():
    mechanism = zoo.double_pendulum()
    opened = []
    for gamma in (0.0, None):
        stepper = Stepper(PaperMaximal(dt=0.005, gamma=gamma), mechanism, Setup(mechanism).initial())
        for _ in range(200):
            stepper.step()
        opened.append(np.abs(stepper.placement.opened()[0]).max())
    assert opened[1] < 0.02 * opened[0]


def box_on_incline(angle: float, friction: float, speed: float) -> da.Mechanism:
    """Gravity leans: the ground stays level, and x is downhill."""
    mechanism = da.Mechanism("incline", gravity=(9.81 * np.sin(angle), 0, -9.81 * np.cos(angle)))
    mechanism.ground(friction=friction, restitution=0.0)
    mechanism.body("box", da.Box(size=(0.4, 0.3, 0.1), mass=2.0), position=(0, 0, 0.05), collide=True)
    mechanism.start("box", linear=(speed, 0, 0))
    return mechanism


@pytest.mark.parametrize("contact", ["staggered", "qp"])
def test_box_sticks_below_the_friction_angle(contact):
    motion = PaperMaximal(dt=0.01, contact=contact).run(box_on_incline(0.25, 0.3, 0.0), 0.3)
    assert np.abs(motion.position[-1] - motion.position[0]).max() < 1e-10
    assert motion.contacts[-1] is not None
    assert motion.contacts[-1].normal.sum() / 0.01 == pytest.approx(2.0 * 9.81 * np.cos(0.25), rel=1e-9)


def test_box_slides_as_the_closed_form_says_and_stays_on_the_ground():
    angle, friction = 0.5, 0.3
    motion = PaperMaximal(dt=0.005).run(box_on_incline(angle, friction, 0.2), 0.5)
    speed = 0.2 + 9.81 * (np.sin(angle) - friction * np.cos(angle)) * 0.5
    assert motion.velocity[-1, 0, 0] == pytest.approx(speed, rel=1e-9)
    assert abs(motion.position[-1, 0, 2] - 0.05) < 1e-9


def test_the_single_program_lifts_what_slides():
    """N v + mu T v >= 0: at a sliding speed v the box leaves the ground at mu v, where staggered projections keep it down."""
    mechanism = box_on_incline(0.0, 0.3, 2.0)
    lifted = PaperMaximal(dt=0.005, contact="qp").run(mechanism, 0.005)
    assert lifted.velocity[-1, 0, 2] == pytest.approx(0.3 * lifted.velocity[-1, 0, 0], rel=1e-9)
    held = PaperMaximal(dt=0.005).run(mechanism, 0.005)
    assert abs(held.velocity[-1, 0, 2]) < 1e-12


def test_a_stop_and_dry_friction_hold_a_joint():
    mechanism = da.Mechanism("slider")
    mechanism.body("block", da.Box(size=(0.1, 0.1, 0.1), mass=2.0))
    mechanism.joint("rail", da.Prismatic(axis="x", limits=(None, 0.5), friction=3.0), mechanism.world, "block")
    mechanism.start("rail", rate=2.0)
    motion = PaperMaximal(dt=0.001).run(mechanism, 1.0)
    way = 2.0 * motion.time - 0.5 * 1.5 * motion.time**2
    before = way < 0.499
    assert np.abs(motion.position[before, 0, 0] - way[before]).max() < 2e-3
    assert abs(motion.position[-1, 0, 0] - 0.5) < 1e-9
    assert np.abs(motion.velocity[-1]).max() < 1e-9


def test_bad_options_and_restitution_are_refused():
    with pytest.raises(da.ModelError, match="contact must be"):
        PaperMaximal(dt=0.01, contact="soft")
    with pytest.raises(da.ModelError, match="gamma must lie"):
        PaperMaximal(dt=0.01, gamma=1e3)
    mechanism = box_on_incline(0.0, 0.3, 0.0)
    mechanism.contact_pair("box", mechanism.grounds[0].name, friction=0.3, restitution=0.5)
    with pytest.raises(da.ModelError, match="restitution"):
        PaperMaximal(dt=0.01).run(mechanism, 0.05)
