"""Gradients through impacts whose times are resolved: saltation of closed forms, adjoint against forward, against differences of runs."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

RADIUS, HEIGHT, TIME = 0.1, 0.5, 0.5
START = np.array([0.3, -0.2])


def ball(restitution: float = 0.7, friction: float = 0.0, tilt: float = 0.0, spin: float = 0.0) -> da.Simulation:
    scene = da.Mechanism("ball")
    scene.ground(friction=friction, restitution=restitution, normal=(np.sin(tilt), 0.0, np.cos(tilt)))
    scene.body("ball", da.Sphere(radius=RADIUS, mass=1.3), position=(0.0, 0.0, (HEIGHT + RADIUS) / np.cos(tilt)), collide=True)
    sim = da.Simulation(scene, da.Variational(dt=0.01, events="exact"))
    sim.set_velocity("ball", linear=(START[0], 0.0, START[1]), angular=(0.0, spin, 0.0))
    return sim


def bounce(numbers: np.ndarray, tilt: float, stick: bool, spin: float) -> np.ndarray:
    """Closed form: x, z and their velocities at TIME, after one bounce, by the plane's offset, vx, vz, restitution and gravity."""
    offset, vx, vz, e, g = numbers
    n, t = np.array([np.sin(tilt), np.cos(tilt)]), np.array([np.cos(tilt), -np.sin(tilt)])
    gap = HEIGHT - offset
    start = np.array([0.0, (HEIGHT + RADIUS) / np.cos(tilt)])
    v, gravity = np.array([vx, vz]), np.array([0.0, -g])
    vn, gn = v @ n, -gravity @ n
    hit = (vn + np.sqrt(vn**2 + 2.0 * gn * gap)) / gn
    x, u = start + v * hit + 0.5 * gravity * hit**2, v + gravity * hit
    along = (5.0 * (u @ t) + 2.0 * RADIUS * spin) / 7.0 if stick else u @ t
    w = -e * (u @ n) * n + along * t
    rest = TIME - hit
    return np.concatenate([x + w * rest + 0.5 * gravity * rest**2, w + gravity * rest])


@pytest.mark.parametrize(("tilt", "friction", "spin"), [(0.0, 0.0, 0.0), (0.3, 0.0, 0.0), (0.0, 5.0, 3.0), (0.3, 5.0, -2.0)])
def test_a_bounce_has_the_saltation_of_the_closed_form(tilt, friction, spin):
    sim = ball(friction=friction, tilt=tilt, spin=spin)
    run = sim.run(TIME, tape=True)
    here = np.array([0.0, *START, 0.7, 9.81])
    np.testing.assert_allclose(
        [*run.position[-1, 0, [0, 2]], *run.velocity[-1, 0, [0, 2]]], bounce(here, tilt, friction > 0.0, spin), atol=1e-9,
    )
    names = ["ground.offset", "ball.start_velocity", "ground.restitution", "gravity"]
    for k, (what, axis) in enumerate([("position", 0), ("position", 2), ("velocity", 0), ("velocity", 2)]):
        weight = np.zeros(run.position.shape)
        weight[-1, 0, axis] = 1.0
        found = run.vjp({what: weight}, names)
        got = np.array([found["ground.offset"], *found["ball.start_velocity"][[0, 2]], found["ground.restitution"], -found["gravity"][2]])
        for i in range(5):
            step = np.zeros(5)
            step[i] = 1e-5
            expected = (bounce(here + step, tilt, friction > 0.0, spin)[k] - bounce(here - step, tilt, friction > 0.0, spin)[k]) / 2e-5
            assert got[i] == pytest.approx(expected, rel=1e-6, abs=1e-7), (what, axis, i)


def agree(run: da.Trajectory, names: list[str], seed: int = 0) -> float:
    """The largest difference of backward and forward passes, relative to the terms of their sums."""
    rng, worst = np.random.default_rng(seed), 0.0
    shape = run.position.shape
    weights = {"energy": rng.normal(size=len(run.time))} | {name: rng.normal(size=shape) for name in ("position", "orientation", "velocity", "angular_velocity")}
    back = run.vjp(weights, names)
    for name in names:
        change = rng.normal(size=np.shape(back[name]))
        change = change + change.T if name.endswith("inertia") else change
        ahead = run.jvp({name: change})
        terms = [weights[what] * ahead[what] for what in weights]
        scale = np.sqrt(sum(np.sum(term**2) for term in terms))
        worst = max(worst, abs(float(np.sum(back[name] * change)) - sum(float(np.sum(term)) for term in terms)) / scale)
    return worst


@pytest.mark.slow
def test_a_sliding_bounce_on_a_slope():
    run = ball(friction=0.1, tilt=0.4, spin=-2.0).run(0.9, tape=True)
    assert np.sum(run.substeps > 1) == 2
    names = ["ball.start_velocity", "ball.start_angular_velocity", "ground.restitution", "ground.friction", "gravity", "ball.mass", "ball.inertia", "ground.offset", "ball.radius"]
    assert agree(run, names) < 1e-9


@pytest.mark.slow
def test_a_slide_that_ends_has_the_saltation_of_the_closed_form():
    """A block comes to rest at v |v| / (2 mu g)."""
    scene, v, mu, g = da.Mechanism("block"), np.array([1.3, 0.4]), 0.4, 9.81
    scene.ground(friction=mu)
    scene.body("block", da.Box(size=(0.4, 0.4, 0.1), mass=1.7), position=(0.0, 0.0, 0.05), collide=True)
    scene.start("block", linear=(*v, 0.0))
    run = da.Simulation(scene, da.Variational(dt=0.01, events="exact")).run(0.5, tape=True)
    speed = np.linalg.norm(v)
    by_speed, place = (np.outer(v, v) / speed + speed * np.eye(2)) / (2.0 * mu * g), v * speed / (2.0 * mu * g)
    for axis in range(2):
        weight = np.zeros(run.position.shape)
        weight[-1, 0, axis] = 1.0
        found = run.vjp({"position": weight}, ["block.start_velocity", "ground.friction", "gravity", "block.mass"])
        np.testing.assert_allclose(found["block.start_velocity"][:2], by_speed[axis], atol=1e-8)
        assert found["ground.friction"] == pytest.approx(-place[axis] / mu, abs=1e-8)
        assert found["gravity"][2] == pytest.approx(place[axis] / g, abs=1e-8)
        assert found["block.mass"] == pytest.approx(0.0, abs=1e-8)
    ahead = run.jvp({"block.start_velocity": np.array([1.0, 0.0, 0.0])})
    np.testing.assert_allclose(ahead["position"][-1, 0, :2], by_speed[:, 0], atol=1e-8)
    np.testing.assert_allclose(ahead["velocity"][-1], 0.0, atol=1e-8)
    assert agree(run, ["block.start_velocity", "ground.friction", "gravity", "block.mass", "ground.offset"]) < 1e-9


def test_an_oscillator_with_dry_friction_that_turns_back():
    scene = da.Mechanism("slide", gravity=(0.0, 0.0, 0.0))
    scene.body("body", da.Box(size=(0.2, 0.2, 0.2), mass=1.3))
    scene.joint("rail", da.Prismatic(axis="x", friction=3.0, stiffness=80.0, damping=0.3), scene.world, "body")
    scene.start("rail", 0.5, rate=0.2)
    run = da.Simulation(scene, da.Variational(dt=0.01, events="exact")).run(1.0, tape=True)
    assert np.sum(run.substeps > 1) == 3  # at once, as it begins against its spring
    assert agree(run, ["rail.start", "rail.start_rate", "rail.friction", "rail.stiffness", "body.mass"]) < 1e-9


@pytest.mark.slow
def test_a_pendulum_that_meets_its_stop():
    scene = da.Mechanism("pendulum")
    scene.body("rod", da.Box(size=(0.8, 0.4, 0.5), mass=2.0), position=(0.4, 0.0, 0.0))
    hinge = da.Revolute(axis="y", limits=(None, 0.5), restitution=0.6, damping=0.3, armature=0.1)
    scene.joint("hinge", hinge, scene.world, "rod", at=(0.0, 0.0, 0.0))
    scene.start("hinge", rate=1.7)
    run = da.Simulation(scene, da.Variational(dt=0.01, events="exact")).run(0.4, tape=True)
    assert run.substeps.max() == 2
    names = ["hinge.start_rate", "hinge.start", "hinge.restitution", "hinge.upper", "rod.mass", "rod.inertia", "hinge.damping", "hinge.armature", "gravity", "hinge.point_parent"]
    assert agree(run, names) < 1e-9


def falling(bar: float, **options) -> da.Simulation:
    scene = da.Mechanism("two links")
    scene.ground(friction=0.4, restitution=0.5 + bar)
    turn, c, s = (np.cos(0.1), 0.0, np.sin(0.1), 0.0), np.cos(0.2), np.sin(0.2)
    scene.body("left", da.Capsule(length=0.3, radius=0.05, mass=1.0, axis="x"), position=(0.0, 0.0, 0.4), orientation=turn, collide=True)
    scene.body("right", da.Capsule(length=0.3, radius=0.05, mass=0.7, axis="x"), position=(0.4 * c, 0.0, 0.4 - 0.4 * s), orientation=turn, collide=True)
    scene.joint("pin", da.Revolute(axis="y", stiffness=3.0, damping=0.05), "left", "right", at=(0.2 * c, 0.0, 0.4 - 0.2 * s))
    return da.Simulation(scene, da.Variational(dt=0.005, events="exact", **options))


@pytest.mark.slow
def test_links_that_fall_on_their_ends():
    run = falling(0.0).run(0.35, tape=True)
    assert np.sum(run.substeps > 1) >= 3
    names = ["pin.start_rate", "ground.restitution", "ground.friction", "left.mass", "right.inertia", "pin.stiffness", "gravity", "ground.offset"]
    # The last of four impacts is so flat that a last digit of a mass moves the gradient by some 1e-9 of itself.
    check = da.validate_gradients(
        falling(0.0).mechanism, da.Variational(dt=0.005, events="exact"), names, steps=70, differences=False, rounding=True,
        outputs=("position", "orientation", "velocity", "angular_velocity", "energy"),
    )
    assert check.agrees(1e-9), str(check)


def test_links_against_differences_of_the_run():
    run = falling(0.0).run(0.3, tape=True)
    assert np.sum(run.substeps > 1) >= 1
    change = run.jvp({"ground.restitution": 1.0})
    higher, lower = (falling(bar).run(0.3) for bar in (1e-5, -1e-5))
    expected = (higher.position - lower.position) / 2e-5
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(change["position"], expected, atol=1e-6)


def test_a_limited_impact_and_strikes_one_after_the_other():
    """A rod that slides and hits with one end, whose restitution the work limits; and three balls in a row."""
    angle = 0.9
    rod = da.Mechanism("rod")
    rod.ground(friction=1.0, restitution=1.0)
    turn = (np.cos(0.5 * angle), 0.0, np.sin(0.5 * angle), 0.0)
    rod.body("rod", da.Capsule(length=0.6, radius=0.01, mass=1.0, axis="z"), position=(0.0, 0.0, 0.3 * np.cos(angle) + 0.012), orientation=turn)
    rod.contact_point("rod", point=(0.0, 0.0, -0.3), radius=0.01)
    sim = da.Simulation(rod, da.Variational(dt=1e-3, events="exact"))
    sim.set_velocity("rod", linear=(1.0, 0.0, -1.0))
    assert agree(sim.run(0.01, tape=True), ["rod.start_velocity", "rod.mass", "rod.inertia", "ground.offset"]) < 1e-9
    row = da.Mechanism("row")
    row.gravity = (0.0, 0.0, 0.0)
    for i in range(3):
        row.body(f"ball {i}", da.Sphere(radius=0.1, mass=1.0 + i), position=(0.2 * i - (0.1 if i == 0 else 0.0), 0.01 * i * i, 0.0), collide=True)
    for i in range(2):
        row.contact_pair(f"ball {i}", f"ball {i + 1}", friction=0.0, restitution=0.8)
    sim = da.Simulation(row, da.Variational(dt=0.01, events="exact", impacts="sequential"))
    sim.set_velocity("ball 0", linear=(1.0, 0.0, 0.0))
    run = sim.run(0.15, tape=True)
    assert np.abs(run.velocity[-1, 2]).max() > 0.1
    assert agree(run, ["ball 0.start_velocity", "ball 1.mass", "ball 0.radius"]) < 1e-9


def test_what_cannot_be_differentiated_is_refused():
    run = falling(0.0).run(0.2, tape=True)
    with pytest.raises(da.GradientError, match="force"):
        run.vjp({"force": np.zeros((len(run.time), 1, 3))}, ["ground.restitution"])
    with pytest.raises(da.GradientError, match="gradient_smoothing"):
        run.jvp({"ground.restitution": 1.0}, gradient_smoothing=0.1)
