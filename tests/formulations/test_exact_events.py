"""Resolved impact times against closed forms: bouncing, cradles, rocking, stops; resting, energy, and the same bits however it is run."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "contact_bouncing_ball.json").read_text())
G = 9.81


def exact(dt: float, **options) -> da.Variational:
    return da.Variational(dt=dt, events="exact", **options)


def ball(height: float = 1.0, restitution: float = 0.8, friction: float = 0.0) -> da.Mechanism:
    scene = da.Mechanism("ball")
    scene.ground(friction=friction, restitution=restitution)
    scene.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0.0, 0.0, 0.1 + height), collide=True)
    return scene


def heights(time: np.ndarray, height: float, restitution: float) -> np.ndarray:
    """Closed form of a bouncing ball's height (m)."""
    found, speed = [], np.sqrt(2.0 * G * height)
    for t in time:
        begin, up = speed / G, restitution * speed
        if t <= begin:
            found.append(height - 0.5 * G * t * t)
            continue
        while t > begin + 2.0 * up / G and up > 1e-12:
            begin, up = begin + 2.0 * up / G, restitution * up
        found.append(up * (t - begin) - 0.5 * G * (t - begin) ** 2 if up > 1e-12 else 0.0)
    return np.array(found)


@pytest.mark.parametrize("dt", [0.003, 0.01])
def test_a_bouncing_ball_comes_to_rest_as_in_closed_form(dt):
    parameters = REFERENCE["parameters"]
    run = da.Simulation(ball(parameters["h0"], parameters["e"]), exact(dt, resting_speed=1e-4)).run(5.0)
    z = run.position[:, 0, 2] - 0.1
    np.testing.assert_allclose(z, heights(run.time, parameters["h0"], parameters["e"]), atol=1e-9)
    assert np.abs(run.velocity[run.time > REFERENCE["reference"]["zeno_time"] + 0.02]).max() < 1e-9
    log = run.contacts()
    impulse = np.sum(log.total_force()[1:, 2]) * dt
    assert impulse == pytest.approx(parameters["m"] * G * run.time[-1], rel=1e-3)


def test_an_elastic_ball_keeps_its_energy():
    run = da.Simulation(ball(restitution=1.0), exact(0.01)).run(10.0)
    energy = run.energy().total
    np.testing.assert_allclose(energy, energy[0], rtol=1e-9)


def cradle() -> da.Mechanism:
    scene = da.Mechanism("cradle")
    for i in range(5):
        scene.body(f"ball {i}", da.Sphere(radius=0.05, mass=1.0), position=(0.1 * i, 0.0, -1.0), collide=True)
        scene.joint(f"hinge {i}", da.Revolute(axis="y"), scene.world, f"ball {i}", at=(0.1 * i, 0.0, 0.0))
    for i in range(4):
        scene.contact_pair(f"ball {i}", f"ball {i + 1}", friction=0.0, restitution=1.0)
    scene.start("hinge 0", 0.3)
    return scene


def test_a_cradle_hands_all_of_its_motion_on():
    """The last ball swings on as the first one would have, without others; they hang still."""
    run = da.Simulation(cradle(), exact(0.001, impacts="sequential")).run(1.2)
    fall = G / (1.0 + 0.4 * 0.05**2)
    alone = solve_ivp(lambda t, y: [y[1], -fall * np.sin(y[0])], (0.0, 1.2), [0.3, 0.0], rtol=1e-11, atol=1e-13, method="DOP853", t_eval=run.time)
    below = alone.y[0] < 0.0
    angles = [run.joint(f"hinge {i}").coordinates.ravel() for i in range(5)]
    np.testing.assert_allclose(angles[4][below], alone.y[0][below], atol=1e-6)
    for other in angles[:4]:
        assert np.abs(other[below]).max() < 1e-6
    energy = run.energy().total - run.energy().total.min()
    assert np.ptp(run.energy().total) < 1e-5 * max(1.0, energy.max())


def test_a_stop_throws_a_door_back():
    """A hinge about the vertical with a stop: constant speeds before and after."""
    scene = da.Mechanism("door")
    scene.body("door", da.Box(size=(0.8, 0.05, 2.0), mass=20.0), position=(0.4, 0.0, 0.0))
    scene.joint("hinge", da.Revolute(axis="z", limits=(None, 0.5), restitution=0.6), scene.world, "door", at=(0.0, 0.0, 0.0))
    scene.start("hinge", rate=1.7)
    run = da.Simulation(scene, exact(0.001)).run(1.0)
    hit = 0.5 / 1.7
    expected = np.where(run.time < hit, 1.7 * run.time, 0.5 - 0.6 * 1.7 * (run.time - hit))
    np.testing.assert_allclose(run.joint("hinge").coordinates, expected, atol=1e-6)


def test_a_ball_that_is_thrown_begins_to_roll_at_its_bounce():
    """Enough friction to stick: the point of contact stops, so that v = 5/7 of it and omega = v/r after the first bounce."""
    sim = da.Simulation(ball(0.5, 0.5, 10.0), exact(0.01))
    sim.set_velocity("ball", linear=(2.0, 0.0, 0.0))
    run = sim.run(0.4)
    hit = np.sqrt(2.0 * 0.5 / G)
    after = run.time > hit
    np.testing.assert_allclose(run.velocity[after, 0, 0], 10.0 / 7.0, rtol=1e-9)
    np.testing.assert_allclose(run.angular_velocity[after, 0, 1], 10.0 / 7.0 / 0.1, rtol=1e-9)
    expected = np.where(after, 2.0 * hit + 10.0 / 7.0 * (run.time - hit), 2.0 * run.time)
    np.testing.assert_allclose(run.position[:, 0, 0], expected, atol=1e-9)


def leaning_block(angle: float) -> tuple[da.Mechanism, float, float]:
    """A block on the edge of its base, and its half diagonal (m) and slenderness (rad)."""
    width, height = 0.2, 0.8
    scene = da.Mechanism("block")
    scene.ground(friction=5.0, restitution=0.0)
    c, s = np.cos(angle), np.sin(angle)
    centre = (0.5 * width * (1.0 - c) + 0.5 * height * s, 0.0, 0.5 * width * s + 0.5 * height * c)
    scene.body("block", da.Box(size=(width, 0.3, height), mass=1.0), position=centre, orientation=(np.cos(0.5 * angle), 0.0, np.sin(0.5 * angle), 0.0), collide=True)
    return scene, 0.5 * np.hypot(width, height), np.arctan2(width, height)


def rocking(time: np.ndarray, angle: float, radius: float, slenderness: float) -> np.ndarray:
    """Housner's rocking block up to its second impact: angles (rad)."""
    def swing(begin: float, rate: float, at: np.ndarray) -> tuple[np.ndarray, float, float]:
        def hit(t, y):
            return y[0]

        hit.terminal, hit.direction = True, -1  # type: ignore[attr-defined]
        fall = 0.75 * G / radius
        found = solve_ivp(
            lambda t, y: [y[1], -fall * np.sin(slenderness - y[0])], (0.0, 5.0), [begin, rate], events=hit, rtol=1e-12, atol=1e-14, method="DOP853", dense_output=True,
        )
        end, speed = float(found.t_events[0][0]), -float(found.y_events[0][0][1])
        return found.sol(at[at <= end])[0], end, speed

    first, end, speed = swing(angle, 0.0, time)
    second, _, _ = swing(1e-300, speed * (1.0 - 1.5 * np.sin(slenderness) ** 2), time[time > end] - end)
    return np.concatenate([first, -second])


def off_housner(dt: float) -> np.ndarray:
    """Angles (rad) of a block that rocks, less Housner's, up to its second impact."""
    scene, radius, slenderness = leaning_block(0.1)
    run = da.Simulation(scene, exact(dt)).run(0.7)
    q, expected = run.orientation[:, 0], rocking(run.time, 0.1, radius, slenderness)
    return 2.0 * np.arctan2(q[:, 2], q[:, 0])[: len(expected)] - expected


def test_a_rocking_block_follows_housner():
    assert np.abs(off_housner(5e-4)).max() < 1e-6


def test_a_block_rocks_to_second_order():
    """Up to its first impact, at 0.2648 s."""
    coarse, fine = (np.abs(off_housner(dt)[: int(0.26 / dt)]).max() for dt in (2e-3, 1e-3))
    assert 3.6 < coarse / fine < 4.4


@pytest.mark.parametrize("dt", [0.003, 0.01])
def test_a_block_slides_to_its_stop_as_in_closed_form(dt):
    scene, speed, friction = da.Mechanism("block"), np.array([1.3, 0.4]), 0.4
    scene.ground(friction=friction)
    scene.body("block", da.Box(size=(0.4, 0.4, 0.1), mass=1.7), position=(0.0, 0.0, 0.05), collide=True)
    scene.start("block", linear=(*speed, 0.0))
    run = da.Simulation(scene, exact(dt)).run(0.6)
    fall, fast = friction * G, np.hypot(*speed)
    time = np.minimum(run.time, fast / fall)
    way = fast * time - 0.5 * fall * time**2
    np.testing.assert_allclose(run.position[:, 0, :2], np.outer(way, speed / fast), atol=1e-9)
    assert np.abs(run.velocity[run.time > fast / fall]).max() < 1e-9
    assert np.flatnonzero(run.substeps > 1).tolist() == [int(np.ceil(fast / fall / dt))]


def rubbing(dt: float, mass: float, friction: float, stiffness: float, start: float, rate: float) -> da.Simulation:
    scene = da.Mechanism("slide", gravity=(0.0, 0.0, 0.0))
    scene.body("body", da.Box(size=(0.2, 0.2, 0.2), mass=mass))
    scene.joint("rail", da.Prismatic(axis="x", friction=friction, stiffness=stiffness), scene.world, "body")
    scene.start("rail", start, rate=rate)
    return da.Simulation(scene, exact(dt))


def test_dry_friction_of_a_joint_stops_it_as_in_closed_form():
    run = rubbing(0.01, 1.3, 2.0, 0.0, 0.0, 1.5).run(1.2)
    time = np.minimum(run.time, 1.5 * 1.3 / 2.0)
    np.testing.assert_allclose(run.joint("rail").coordinates, 1.5 * time - 0.5 * 2.0 / 1.3 * time**2, atol=1e-9)


def test_a_coulomb_oscillator_is_of_second_order_across_its_reversals():
    mass, friction, stiffness, start = 1.3, 3.0, 80.0, 0.5
    omega, shift = np.sqrt(stiffness / mass), friction / stiffness

    def swing(t: float) -> float:
        x = start
        while abs(x) > shift:
            middle = np.sign(x) * shift
            if t < np.pi / omega:
                return middle + (x - middle) * np.cos(omega * t)
            x, t = 2.0 * middle - x, t - np.pi / omega
        return x

    errors = []
    for dt in (0.01, 0.005):
        run = rubbing(dt, mass, friction, stiffness, start, 0.0).run(3.0)
        errors.append(np.abs(run.joint("rail").coordinates - [swing(t) for t in run.time]).max())
        assert np.sum(run.substeps > 1) >= 6
    assert errors[1] < 2e-4
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)


def test_the_same_bits_in_one_go_in_parts_and_step_by_step():
    def simulation() -> da.Simulation:
        return da.Simulation(ball(0.3, 0.7), exact(0.01))

    whole = simulation().run(1.0)
    one, two = simulation(), simulation()
    parts = [one.run(0.3), one.run(0.7)]
    for _ in range(100):
        two.step()
    np.testing.assert_array_equal(parts[1].position[-1], whole.position[-1])
    np.testing.assert_array_equal(two.run(0.01).position[0], whole.position[-1])


def test_random_scenes_gain_no_energy():
    from test_impact_energy import rise, thrown

    for seed in (0, 3, 4, 5, 6, 7, 8, 9, 10, 11):
        _, run, _ = thrown(seed, events="exact")
        assert rise(run.energy().total) < 1e-3, seed


@pytest.mark.parametrize("formulation", [da.Implicit, da.Reduced])
def test_other_formulations_say_who_finds_impact_times(formulation):
    with pytest.raises(da.ModelError, match=r"Variational.*events"):
        formulation(dt=0.01, events="exact")


@pytest.mark.parametrize("bad", [dict(events="rough"), dict(events="exact", cone="linear"), dict(impacts="sequential")])
def test_what_does_not_go_together_is_refused(bad):
    with pytest.raises(da.ModelError, match="events"):
        da.Variational(dt=0.01, **bad)
