"""Gradients through contact, joint limits and dry friction: adjoint, forward sensitivities and differences of the run itself."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import dalembert as da

VARIATIONAL = da.Variational(dt=0.01, tolerance=1e-13)
METHODS = {m: da.Implicit(dt=0.01, method=m, tolerance=1e-13, solver="general") for m in ("bdf1", "bdf2", "sdirk2", "pareschi_russo")}
#: the bars: adjoint against forward, and against differences of the run, away from events
EXACT, NEAR = 1e-9, 1e-4
pytestmark = pytest.mark.filterwarnings("ignore::dalembert.GradientWarning")


def assert_right(check: da.GradientCheck) -> None:
    assert check.forward_error < EXACT, str(check)
    assert check.difference_error < NEAR, str(check)


def foot() -> da.Mechanism:
    """A foot that bounces and slides on the ground."""
    m = da.Mechanism("foot")
    m.ground(friction=0.3, restitution=0.4, offset=-0.02)
    m.body("foot", mass=0.7, inertia=np.diag([0.003, 0.0035, 0.004]), position=(0, 0, 0.1))
    m.contact_point("foot", point=(0.01, 0.005, -0.02), radius=0.08)
    return m


def foot_and_arm() -> da.Mechanism:
    """The same, and an arm that meets its limits and rubs."""
    m = foot()
    m.body("upper", mass=1.0, inertia=np.diag([0.02, 0.03, 0.04]), position=(0.3, 1.0, 0.5))
    m.body("lower", mass=0.6, inertia=np.diag([0.01, 0.02, 0.015]), position=(0.7, 1.0, 0.5))
    m.joint("hinge", da.Revolute(axis="y", friction=0.3, limits=(-0.4, 0.2), restitution=0.3), "world", "upper", at=(0, 1, 0.5))
    m.joint("slide", da.Prismatic(axis="x", friction=0.2, limits=(-0.02, 0.08), damping=0.1), "upper", "lower", at=(0.6, 1, 0.5))
    return m


def kick(sim: da.Simulation) -> None:
    sim.set_velocity("foot", linear=(1.0, 0.4, -0.5), angular=(0.3, 0.5, -1.0))


def throw(sim: da.Simulation) -> None:
    kick(sim)
    sim.set_joint("hinge", 0.1, rate=1.5)
    sim.set_joint("slide", 0.01, rate=0.6)


NAMES = [
    "ground.friction", "ground.restitution", "foot contact 0.point", "foot contact 0.radius", "foot.centre_of_mass", "foot.mass", "foot.inertia",
    "gravity", "hinge.upper", "hinge.friction", "hinge.restitution", "slide.upper", "slide.friction", "hinge.point_child", "hinge.turn_child",
    "slide.turn_parent", "upper.mass", "lower.inertia", "hinge.start_rate", "slide.start", "foot.start_velocity",
]


#: those that tests of every day take
SOME = [
    "ground.friction", "ground.restitution", "foot contact 0.radius", "foot.inertia", "hinge.restitution", "slide.upper", "slide.friction", "hinge.turn_child",
    "upper.mass", "hinge.start_rate",
]


@pytest.mark.parametrize("names", [SOME, pytest.param(NAMES, marks=pytest.mark.slow)], ids=["some", "all"])
def test_bounces_slides_limits_and_dry_friction(names):
    assert_right(da.validate_gradients(foot_and_arm(), VARIATIONAL, names, steps=14, setup=throw, step=1e-4))


#: of the foot
OWN = ["ground.friction", "ground.restitution", "foot contact 0.radius", "foot.centre_of_mass", "foot.mass", "foot.inertia", "gravity", "foot.start_velocity"]


def test_steps_of_bdf2():
    """By differences alone: what forward sensitivities need is compiled in the slow tests."""
    check = da.validate_gradients(foot(), METHODS["bdf2"], OWN, steps=14, setup=kick, step=1e-4, forward=False)
    assert check.difference_error < NEAR, str(check)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_all_methods(method):
    """Where an arm rests at a limit, steps go over from one formula to another by chance, and differences say nothing."""
    # Runs of "pareschi_russo" jump where the radius is 8e-6 to 16e-6 m smaller; those of "bdf1" are too rough for steps below 1e-3.
    step = 3e-5 if method == "pareschi_russo" else 1e-3
    assert_right(da.validate_gradients(foot(), METHODS[method], OWN, steps=14, setup=kick, step=step))
    assert da.validate_gradients(foot_and_arm(), METHODS[method], NAMES, steps=14, setup=throw, differences=False).forward_error < EXACT


@pytest.mark.slow
def test_the_linearised_cone():
    formulation = da.Variational(dt=0.01, tolerance=1e-13, cone="linear", cone_edges=6)
    names = ["ground.friction", "foot contact 0.radius", "foot.mass", "foot.start_velocity"]
    assert_right(da.validate_gradients(foot(), formulation, names, steps=14, setup=kick, step=1e-4))


def bouncing_ball(restitution: float = 0.7) -> da.Mechanism:
    m = da.Mechanism("ball")
    m.ground(friction=0.0, restitution=restitution)
    m.body("ball", mass=1.0, inertia=0.1 * np.eye(3), position=(0, 0, 1))
    m.contact_point("ball")
    return m


def end_of(mechanism: da.Mechanism, formulation, duration: float, speed) -> tuple[np.ndarray, np.ndarray]:
    sim = da.Simulation(mechanism, formulation, energy_bound=None)
    sim.set_velocity(mechanism.bodies[0].name, linear=speed)
    run = sim.run(duration)
    return run.position[-1, 0], run.velocity[-1, 0]


@pytest.mark.parametrize("dt", [0.01, 0.002])
def test_a_bounce_is_that_of_the_run_and_not_the_continuous_one(dt):
    """By the start's velocity w: the run's impact stays at its knot; the true one moves, dt1/dw = 1/g."""
    restitution, duration, formulation = 0.7, 0.6, da.Variational(dt=dt, tolerance=1e-12)
    sim = da.Simulation(bouncing_ball(restitution), formulation, energy_bound=None)
    run = sim.run(duration, tape=True)
    weights = np.zeros_like(run.position)
    weights[-1, 0, 2] = 1.0
    found = [float(run.vjp({what: weights}, ["ball.start_velocity"])["ball.start_velocity"][2]) for what in ("position", "velocity")]
    tangent = run.jvp({"ball.start_velocity": (0.0, 0.0, 1.0)}) if dt > 0.005 else None
    step = 1e-5
    ends = [end_of(bouncing_ball(restitution), formulation, duration, (0, 0, sign * step)) for sign in (1.0, -1.0)]
    for value, name, first, second in zip(found, ("position", "velocity"), *ends):
        assert value == pytest.approx((first[2] - second[2]) / (2.0 * step), abs=1e-6)
        assert tangent is None or value == pytest.approx(tangent[name][-1, 0, 2], abs=1e-9)
    impact = np.sqrt(2.0 / 9.81)
    continuous = (duration - impact) - restitution * impact, 1.0  # of z and of its rate, by the saltation matrix
    assert found[1] == pytest.approx(-restitution, abs=1e-6)
    assert abs(found[0] - continuous[0]) > 0.4


def test_a_slide_that_ends():
    """A block that friction stops: where it stops changes with its speed as in the run; by friction too."""
    def block(friction: float = 0.4) -> da.Mechanism:
        m = da.Mechanism("block")
        m.ground(friction=friction)
        m.body("block", mass=2.0, inertia=np.eye(3), position=(0, 0, 0.1))
        for x in (-0.1, 0.1):
            m.contact_point("block", point=(x, 0.0, -0.1))
        return m

    formulation = da.Variational(dt=0.01, tolerance=1e-12)
    speed, duration, step = np.array([1.0, 0.0, 0.0]), 0.4, 1e-4
    sim = da.Simulation(block(), formulation, energy_bound=None)
    sim.set_velocity("block", linear=speed)
    run = sim.run(duration, tape=True)
    assert np.linalg.norm(run.velocity[-1, 0]) < 1e-6
    weights = np.zeros_like(run.position)
    weights[-1, 0, 0] = 1.0
    found = run.vjp({"position": weights}, ["block.start_velocity", "ground.friction"])
    ends = [end_of(block(), formulation, duration, speed + np.array([sign * step, 0, 0]))[0][0] for sign in (1.0, -1.0)]
    assert found["block.start_velocity"][0] == pytest.approx((ends[0] - ends[1]) / (2.0 * step), rel=1e-4)
    ends = [end_of(block(0.4 + sign * step), formulation, duration, speed)[0][0] for sign in (1.0, -1.0)]
    assert float(found["ground.friction"]) == pytest.approx((ends[0] - ends[1]) / (2.0 * step), rel=1e-4)


def test_smoothed_gradients_leave_the_run_alone():
    mechanism, names = foot_and_arm(), ["ground.friction", "foot.mass", "foot.start_velocity", "hinge.friction"]
    assert da.validate_gradients(mechanism, VARIATIONAL, names, steps=10, setup=throw, gradient_smoothing=0.03).forward_error < EXACT
    sim = da.Simulation(mechanism, VARIATIONAL, energy_bound=None)
    throw(sim)
    run = sim.run(0.1, tape=True)
    before, weights = run.position.copy(), {"position": np.ones_like(run.position)}
    exact, near, far = (run.vjp(weights, names, gradient_smoothing=s) for s in (0.0, 1e-4, 0.1))
    assert (exact.smoothing, near.smoothing, far.smoothing) == (0.0, 1e-4, 0.1)
    np.testing.assert_array_equal(run.position, before)
    for name in names:
        size = np.abs(exact[name]).max()
        assert np.abs(near[name] - exact[name]).max() < 1e-2 * size
        assert np.abs(far[name] - exact[name]).max() > 1e-4 * size


def test_a_contact_that_just_closes_is_said():
    """Without gravity, at a ground that it touches and does not press."""
    m = da.Mechanism("grazing")
    m.gravity = np.zeros(3)
    m.ground(friction=0.3)
    m.body("ball", mass=1.0, inertia=0.1 * np.eye(3), position=(0, 0, 0))
    m.contact_point("ball")
    run = da.Simulation(m, VARIATIONAL).run(0.03, tape=True)
    weights = {"position": np.ones_like(run.position)}
    with pytest.warns(da.GradientWarning, match="'ball / ground' just opens or closes.*between those of both sides"):
        run.vjp(weights, ["ball.start_velocity"])
    with pytest.warns(da.GradientWarning, match="just opens or closes"):
        run.jvp({"ball.start_velocity": (0.0, 0.0, 1.0)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.vjp(weights, ["ball.start_velocity"], gradient_smoothing=0.01)


def test_what_cannot_be_differentiated_says_so():
    run = da.Simulation(bouncing_ball(), VARIATIONAL).run(0.02, tape=True)
    weights = {"position": np.ones_like(run.position)}
    for value in (-1.0, np.nan, "soft"):
        with pytest.raises(da.DalembertError, match="gradient_smoothing"):
            run.vjp(weights, ["ball.mass"], gradient_smoothing=value)  # type: ignore[arg-type]
    with pytest.raises(da.GradientError, match=r"ground\.friction"):
        run.vjp(weights, ["ground.stickiness"])


def door() -> da.Mechanism:
    """One direction that a long hinge carries."""
    m = da.Mechanism("door")
    m.body("door", mass=1.0, inertia=0.05 * np.eye(3), position=(0.3, 0, 0))
    m.joint("pin", da.Revolute(axis="z", bearing=da.Bearing(friction=0.2, radius=0.01, length=0.1)), "world", "door", at=(0, 0, 0))
    return m


def sleeve() -> da.Mechanism:
    """Directions that share one bearing, and a ball on top of it."""
    m = da.Mechanism("sleeve", gravity=(0, -2.0, -9.0))
    m.body("rod", mass=1.0, inertia=np.diag([0.05, 0.04, 0.06]), position=(0.1, 0.02, 0.05))
    m.body("arm", mass=0.5, inertia=np.diag([0.01, 0.02, 0.015]), position=(0.1, 0.3, 0.05))
    m.joint("sleeve", da.Cylindrical(axis="x", bearing=da.Bearing(friction=0.15, radius=0.02, length=0.3)), "world", "rod", at=(0, 0, 0))
    m.joint("ball", da.Spherical(bearing=da.Bearing(friction=0.1, radius=0.01)), "rod", "arm", at=(0.1, 0.1, 0.05))
    return m


def slide_and_turn(sim: da.Simulation) -> None:
    sim.set_joint("sleeve", rate=(1.0, 2.0))
    sim.set_joint("ball", rate=(1.0, -2.0, 1.5))


def test_a_bearing_whose_friction_follows_its_load():
    names = ["door.mass", "pin.turn_parent", "pin.bearing_friction", "pin.bearing_radius", "pin.bearing_length", "pin.bearing_thrust"]
    check = da.validate_gradients(door(), VARIATIONAL, names, steps=3, setup=lambda sim: sim.set_joint("pin", rate=2.0), step=1e-4, forward=False)
    assert check.difference_error < 1e-6, str(check)
    assert min(abs(row.adjoint) for row in check.rows) > 1e-3


def test_impacts_with_times_of_their_own_refuse_bearings():
    with pytest.raises(da.GradientError, match="'pin' has a bearing"):
        da.Simulation(door(), da.Variational(dt=0.01, events="exact")).run(0.02, tape=True)


@pytest.mark.slow
@pytest.mark.parametrize("formulation", [VARIATIONAL, METHODS["bdf2"]], ids=["variational", "bdf2"])
@pytest.mark.parametrize(
    ("make", "setup", "names"), [
        (door, lambda sim: sim.set_joint("pin", rate=2.0), ["door.mass", "door.inertia", "gravity", "pin.start_rate", "pin.point_child", "pin.turn_parent", "pin.bearing_length"]),
        (sleeve, slide_and_turn, ["arm.mass", "gravity", "sleeve.turn_parent", "ball.point_child", "sleeve.bearing_friction", "ball.bearing_radius", "sleeve.start_rate"]),
    ], ids=["door", "sleeve"],
)
def test_bearings(formulation, make, setup, names):
    check = da.validate_gradients(make(), formulation, names, steps=3, setup=setup, step=1e-4)
    assert check.forward_error < 1e-9, str(check)
    assert check.difference_error < 1e-6, str(check)


@pytest.mark.parametrize("formulation", [VARIATIONAL, pytest.param(METHODS["bdf2"], marks=pytest.mark.slow)], ids=["variational", "bdf2"])
def test_checkpoints_step_jacobians_and_objectives(formulation, monkeypatch):
    names, found = ["ground.friction", "foot.mass", "hinge.upper", "hinge.start_rate"], []
    for budget in (64_000_000, 20_000):
        monkeypatch.setattr("dalembert.simulation.simulation.BUDGET", budget)
        sim = da.Simulation(foot_and_arm(), formulation, energy_bound=None)
        throw(sim)
        run = sim.run(0.12, tape=True)
        assert run.record is not None
        assert (run.record.tape is None) == (budget == 20_000)
        found.append(run.vjp({"position": np.ones_like(run.position), "velocity": np.ones_like(run.velocity)}, names))
    for name in names:
        np.testing.assert_allclose(found[1][name], found[0][name], rtol=1e-9, atol=1e-12)
    # a row of the step's matrix is what one step pulls back
    before = sim.state
    jacobian = sim.step_jacobian(["ground.friction", "gravity"])
    np.testing.assert_array_equal(sim.state.numbers, before.numbers)
    one = sim.run(formulation.dt, tape=True)
    weights = np.zeros_like(one.position)
    weights[-1, 0, 0] = 1.0
    for name, value in one.vjp({"position": weights}, ["ground.friction", "gravity"]).items():
        np.testing.assert_allclose(jacobian.parameters[name][0], value, rtol=1e-8, atol=1e-12)

    def loss(run: da.Trajectory):
        weights = np.zeros_like(run.position)
        weights[-1, 0, 0] = 1.0
        return run.position[-1, 0, 0], {"position": weights}

    function = da.value_and_gradient(foot_and_arm(), formulation, 0.1, ["ground.friction"], loss, setup=throw)
    value, gradient = function(function.x0)
    near = [function(function.x0 + h)[0] for h in (1e-5, -1e-5)]
    assert gradient[0] == pytest.approx((near[0] - near[1]) / 2e-5, rel=1e-4)
    assert np.isfinite(value)


def things(kind: str) -> tuple[da.Mechanism, list[str]]:
    """Shapes on a ground or on one another, with what is of interest in them."""
    m = da.Mechanism(kind)
    turned = np.array([0.99, 0.02, 0.12, 0.05]) / np.linalg.norm([0.99, 0.02, 0.12, 0.05])
    if kind in ("cylinder", "ellipsoid", "box"):
        m.ground(friction=0.4)
        shape = {
            "cylinder": da.Cylinder(radius=0.1, length=0.3, mass=1.0, axis="x"), "ellipsoid": da.Ellipsoid(semi_axes=(0.1, 0.15, 0.2), mass=1.0),
            "box": da.Box(size=(0.2, 0.3, 0.1), mass=1.0),
        }[kind]
        m.body("a", shape, position=(0, 0, {"cylinder": 0.145, "ellipsoid": 0.21, "box": 0.09}[kind]), orientation=turned, collide=True)
        # the ellipsoid rolls, and its friction holds whatever its coefficient
        return m, [{"cylinder": "a.length", "ellipsoid": "a.semi_axes", "box": "a.size"}[kind], "ground.offset"] + ["ground.friction"] * (kind != "ellipsoid")
    if kind == "terrain":
        x = np.linspace(-1, 1, 9)
        m.height_field(0.1 * np.sin(2 * x[:, None]) * np.cos(1.5 * x), origin=(-1, -1), spacing=0.25, friction=0.3)
        m.body("a", da.Sphere(radius=0.08, mass=0.5), position=(0.19, 0.03, 0.13), collide=True)
        return m, ["a.radius", "terrain.friction"]
    if kind in ("ball on box", "capsule on box", "box on box"):
        m.obstacle("floor", da.Box(size=(1, 1, 0.2), mass=1.0), position=(0, 0, -0.1), friction=0.3)
        shape = {
            "ball on box": da.Sphere(radius=0.08, mass=0.5), "capsule on box": da.Capsule(radius=0.05, length=0.6, mass=0.5, axis="x"),
            "box on box": da.Box(size=(0.3, 0.2, 0.1), mass=0.5),
        }[kind]
        place = {"ball on box": (0.19, 0.03, 0.09), "capsule on box": (0.5, 0.03, 0.13), "box on box": (0.0, 0.03, 0.051)}[kind]
        m.body("a", shape, position=place, orientation=turned if kind == "capsule on box" else (1, 0, 0, 0), collide=True)
        return m, ["floor.friction"] + (["a.radius"] if kind != "box on box" else [])
    for name, shape, place in {
        "balls": [("a", da.Sphere(radius=0.1, mass=1.0), (0, 0, 0)), ("b", da.Sphere(radius=0.08, mass=0.5), (0.19, 0.03, 0))],
        "capsules": [
            ("a", da.Capsule(radius=0.1, length=0.4, mass=1.0, axis="y"), (0, 0, 0)), ("b", da.Capsule(radius=0.08, length=0.5, mass=0.5), (0.19, 0.03, 0.05)),
        ],
    }[kind]:
        m.body(name, shape, position=place, collide=True)
    m.contact_pair("a", "b", friction=0.3, restitution=0.5 if kind == "balls" else 0.0)
    return m, ["a.radius", "b.radius", "a and b.friction", "a and b.restitution"]


#: of differences where events are near
STEPS = {"cylinder": 1e-4, "ellipsoid": 1e-4, "box": 1e-4, "balls": 1e-5}
#: what lands on four corners: how these share impulses, and what slides by them, follows last digits
FLAT = ("box", "box on box")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cylinder", "ellipsoid", "box", "terrain", "ball on box", "capsule on box", "box on box", "balls", "capsules"])
def test_shapes(kind):
    mechanism, names = things(kind)

    def setup(sim: da.Simulation) -> None:
        sim.set_velocity("a", linear=(0.5, 0.2, -0.3), angular=(0.3, 0.5, -1.0))
        if "b" in mechanism:
            sim.set_velocity("b", linear=(-0.5, -0.2, 0.0), angular=(0.3, -0.5, -1.0))

    names = [*names, "a.mass", "a.inertia", "a.start_velocity", "a.start_angular_velocity"]
    # Capsules come apart and meet again too often for differences; a cylinder's other end lands in the last step but one.
    steps = 10 if kind == "cylinder" else 12
    step, differences = STEPS.get(kind, 1e-3), kind != "capsules"
    check = da.validate_gradients(mechanism, VARIATIONAL, names, steps=steps, setup=setup, step=step, differences=differences, rounding=kind in FLAT)
    # last digits of the velocity with which a box comes down, which ``rounding`` leaves alone, move the adjoint by the ground's offset by 5e-7
    assert check.agrees(1e-8 if kind == "box" else EXACT, NEAR), str(check)


def over_an_edge(stacked: bool) -> da.Mechanism:
    """A box that slides and turns on the corner of another one, which stands on the ground or is fixed: its points of contact move with both."""
    m = da.Mechanism("over an edge")
    if stacked:
        m.ground(friction=0.3)
        m.body("floor", da.Box(size=(0.4, 0.4, 0.2), mass=2.0), position=(0, 0, 0.1001), collide=True)
    else:
        m.obstacle("floor", da.Box(size=(0.4, 0.4, 0.2), mass=1.0), position=(0, 0, 0.1001), friction=0.3)
    m.body("box", da.Box(size=(0.3, 0.2, 0.1), mass=0.5), position=(0.1, 0.13, 0.2506), orientation=(1, 0, 0, 0.1), collide=True)
    return m


@pytest.mark.parametrize("stacked", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["fixed", "stacked"])
def test_a_slide_that_depends_on_how_impulses_are_shared(stacked):
    """Four to six points press, three would do: the friction's moment is that of the shares that a step settles on, as far as rounding lets it."""
    def setup(sim: da.Simulation) -> None:
        sim.set_velocity("box", linear=(0.5, 0.2, -0.1), angular=(0.0, 0.0, -1.0))

    names = ["box.mass", "box.start_velocity", "box.start_angular_velocity"] + ([] if stacked else ["floor.friction"])
    check = da.validate_gradients(over_an_edge(stacked), VARIATIONAL, names, steps=12, setup=setup, rounding=True)
    assert check.agrees(EXACT, NEAR), str(check)


def test_limited_restitution_is_said_of_contacts_and_of_stops():
    """A rod that slides and hits with one end, and a flap on it that meets its stop in the same step: the work limits both."""
    angle, m = 0.9, da.Mechanism("rod")
    m.ground(friction=1.0, restitution=1.0)
    middle = 0.3 * np.cos(angle) + 0.012
    top = np.array([0.3 * np.sin(angle), 0.0, middle + 0.3 * np.cos(angle)])
    turn = (np.cos(0.5 * angle), 0.0, np.sin(0.5 * angle), 0.0)
    m.body("rod", da.Capsule(length=0.6, radius=0.01, mass=1.0, axis="z"), position=(0, 0, middle), orientation=turn)
    m.contact_point("rod", point=(0, 0, -0.3), radius=0.01)
    m.body("flap", mass=0.02, inertia=1e-4 * np.eye(3), position=top + np.array([0.0, 0.05, 0.0]))
    m.joint("hinge", da.Revolute(axis="y", limits=(-0.001, 0.5), restitution=0.5), "rod", "flap", at=top)
    sim = da.Simulation(m, da.Variational(dt=0.004))
    sim.set_velocity("rod", linear=(1.0, 0.0, -1.0))
    sim.set_joint("hinge", 0.0, rate=-2.0)
    run = sim.run(0.008, tape=True)
    with pytest.warns(da.GradientWarning, match="'rod / ground' has a restitution that the work.*'hinge' has a restitution that the work"):
        run.vjp({"position": np.ones_like(run.position)}, ["rod.mass"])


def steered(sim):
    """Torques that follow the arm, and a wrench that follows the foot: velocities at knots depend on what touched in the step before."""
    (angle,), (rate,) = sim.coordinates("hinge"), sim.rates("hinge")
    force = np.array([-0.5 * sim.velocity[0, 0], 0.2 * sim.position[0, 1], -0.3 * sim.velocity[0, 2], 0.0, 0.01 * sim.angular_velocity[0, 1], 0.0])
    return {"hinge": -2.0 * np.sin(angle) - 0.3 * rate, "foot": force}


def driven() -> da.Mechanism:
    m = foot()
    m.body("upper", mass=1.0, inertia=np.diag([0.02, 0.03, 0.04]), position=(0.3, 1.0, 0.5))
    m.joint("hinge", da.Revolute(axis="y", friction=0.3, limits=(-0.4, 0.2), drive="force"), "world", "upper", at=(0, 1, 0.5))
    return m


@pytest.mark.parametrize("formulation", [VARIATIONAL, *(pytest.param(METHODS[name], marks=pytest.mark.slow) for name in ("bdf2", "sdirk2"))], ids=["variational", "bdf2", "sdirk2"])
def test_a_controller_that_sees_what_touches(formulation):
    def setup(sim: da.Simulation) -> None:
        kick(sim)
        sim.set_joint("hinge", 0.0, rate=-1.5)

    names = ["ground.friction", "ground.restitution", "foot contact 0.radius", "foot.mass", "upper.inertia", "hinge.friction", "foot.start_velocity", "hinge.start_rate"]
    assert_right(da.validate_gradients(driven(), formulation, names, steps=10, setup=setup, step=1e-4, control=steered))
