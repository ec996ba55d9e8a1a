"""Strands of point masses and springs, free or attached to bodies, in all formulations."""
import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ModelError

FORMULATIONS = {"Reduced": da.Reduced, "Implicit": da.Implicit, "Variational": da.Variational}


@pytest.mark.parametrize("name", FORMULATIONS)
def test_energy_of_a_strand_on_a_pendulum_converges_at_second_order(name):
    worst = []
    for dt in (0.002, 0.001, 0.0005):
        energy = da.Simulation(da.zoo.strand_pendulum(), FORMULATIONS[name](dt=dt)).run(1.0).energy().total
        worst.append(np.abs(energy - energy[0]).max())
    assert min(np.log2(worst[0] / worst[1]), np.log2(worst[1] / worst[2])) > 1.85
    assert worst[-1] < 2e-4


def test_formulations_tend_to_one_motion():
    fine = da.Simulation(da.zoo.strand_pendulum(), da.Variational(dt=1e-4)).run(0.5)
    for name, formulation in FORMULATIONS.items():
        errors = []
        for dt in (0.002, 0.001):
            run = da.Simulation(da.zoo.strand_pendulum(), formulation(dt=dt)).run(0.5)
            errors.append(np.abs(run.strand("tail").points[-1] - fine.strand("tail").points[-1]).max())
        assert np.log2(errors[0] / errors[1]) > 1.75, name
        assert errors[1] < 5e-4, name


@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_hanging_strand_rests_under_its_weight(name):
    """Between two points of the world: momentum of the weight is taken by the ends, and the tensions are those of the statics."""
    mechanism = da.Mechanism("rope")
    points = np.linspace([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], 9)
    rope = mechanism.strand("rope", points, mass=0.7, stiffness=100.0, length=1.1, attach={0: "world", -1: "world"})
    for body in rope.bodies:
        if body.index >= 0:
            mechanism.drag(f"air of {body.name}", body, linear=2.0)
    run = da.Simulation(mechanism, FORMULATIONS[name](dt=0.02)).run(30.0)
    series = run.strand("rope")
    assert series.points.shape == (len(run), 9, 3)
    assert series.tension.shape == (len(run), 8)
    along = np.diff(series.points[-1], axis=0)
    length = np.linalg.norm(along, axis=1)
    pulls = along / length[:, None] * series.tension[-1][:, None]
    masses = np.array([body.mass for body in rope.bodies[1:-1]])
    np.testing.assert_allclose(np.diff(pulls, axis=0), np.outer(masses, [0.0, 0.0, 9.81]), atol=1e-6)
    np.testing.assert_allclose(series.tension[-1], 100.0 * 8 * (length - 1.1 / 8), atol=1e-6)
    assert masses.sum() == pytest.approx(0.7)


def test_a_strand_is_the_same_with_more_points():
    """Mass and stiffness are those of the whole: the slowest stretching motion of a strand that is held at one end."""
    periods = []
    for count in (6, 21):
        mechanism = da.Mechanism("bar", gravity=(0, 0, 0))
        mechanism.strand("bar", np.linspace([0, 0, 0], [1, 0, 0], count), mass=1.0, stiffness=100.0, attach={0: "world"})
        for body in mechanism.bodies:
            mechanism.start(body.name, linear=(np.sin(0.5 * np.pi * body.position[0]) * 0.01, 0, 0))
        tip = da.Simulation(mechanism, da.Reduced(dt=0.0005)).run(0.4).strand("bar").points[:, -1, 0]
        top = int(np.argmax(tip))
        periods.append(4 * 0.0005 * (top + 0.5 * (tip[top - 1] - tip[top + 1]) / (tip[top - 1] - 2 * tip[top] + tip[top + 1])))
    # a bar of length l: omega = pi / 2 sqrt(k / m)
    exact = 4.0 / np.sqrt(100.0)
    assert abs(periods[1] - exact) < 0.03 * exact
    assert abs(periods[1] - exact) < 0.4 * abs(periods[0] - exact)


def test_pulls_only():
    mechanism = da.Mechanism("slack", gravity=(0, 0, 0))
    mechanism.strand("slack", [[0, 0, 0], [1, 0, 0], [2, 0, 0]], mass=1.0, stiffness=50.0, length=2.5, pulls=True, attach={0: "world", 2: "world"})
    run = da.Simulation(mechanism, da.Reduced(dt=0.01)).run(0.5)
    assert np.abs(run.strand("slack").tension).max() == 0.0
    assert np.ptp(run.position, axis=0).max() < 1e-12


def test_stays_as_cheap_as_it_is_long():
    """The equations of a long strand in Reduced are solved spring by spring: no more than a few iterations, all of them used."""
    run = da.Simulation(da.zoo.strand_pendulum(points=60), da.Reduced(dt=0.002)).run(0.1)
    assert run.iterations[1:].mean() < 6.0
    assert np.all(run.substeps[1:] == 1)


@pytest.mark.parametrize(("points", "more", "message"), [
    ([[0, 0, 0]], {}, "two or more"),
    ([[0, 0], [1, 1]], {}, "nx3 numbers"),
    ([[0, 0, 0], [0, 0, 0], [1, 0, 0]], {}, "points 0 and 1 coincide"),
    ([[0, 0, 0], [1, 0, 0]], {"attach": {0: "world", 1: "world"}}, "no free point"),
    ([[0, 0, 0], [1, 0, 0], [2, 0, 0]], {"attach": {0: "world", 1: "world"}}, "nothing stretches"),
    ([[0, 0, 0], [1, 0, 0]], {"attach": {5: "world"}}, "no point 5"),
    ([[0, 0, 0], [1, 0, 0]], {"attach": {0: "world", -2: "world"}}, "attached twice"),
    ([[0, 0, 0], [1, 0, 0]], {"attach": [(0, "world")]}, "attach must be a dict"),
    ([[0, 0, 0], [1, 0, 0]], {"attach": {0: "nobody"}}, "nobody"),
    ([[0, 0, 0], [1, 0, 0]], {"mass": 0.0}, "mass"),
    ([[0, 0, 0], [1, 0, 0]], {"stiffness": -1.0}, "stiffness"),
    ([[0, 0, 0], [1, 0, 0]], {"radius": 0.0}, "radius"),
])
def test_bad_strands_are_refused_and_leave_nothing_behind(points, more, message):
    mechanism = da.Mechanism("nothing")
    with pytest.raises(ModelError, match=message):
        mechanism.strand("rope", points, **{"mass": 1.0, "stiffness": 10.0, **more})
    assert [*mechanism.bodies, *mechanism.joints, *mechanism.paths, *mechanism.strands] == []


def test_a_tendon_bends_a_finger_until_its_springs_hold_it():
    """At rest, stiffness times angle is tension times lever, the same in all three joints."""
    stiffness, lever, gap = 0.02, 0.008, 0.004
    for formulation in (da.Reduced(dt=0.005), da.Implicit(dt=0.005), da.Variational(dt=0.005)):
        finger = da.zoo.cable_finger(stiffness=stiffness, lever=lever, pull=0.006, damping=2e-3)
        run = da.Simulation(finger, formulation).run(3.0)
        tendon = run.path("tendon")
        radius, opening = np.hypot(gap, lever), np.pi - 2.0 * np.arctan(lever / gap)
        for joint in ("knuckle", "middle", "end"):
            angle = run.joint(joint).coordinates[-1]
            assert angle > 0.1
            assert stiffness * angle == pytest.approx(tendon.tension[-1] * radius * np.cos(0.5 * (opening - angle)), rel=1e-6)
        assert tendon.tension.min() >= 0.0
        assert abs(run.joint("knuckle").rates[-1]) < 1e-6


def test_a_curling_finger_of_the_zoo_follows_its_map():
    run = da.Simulation(da.zoo.curling_finger(curvature=(0.0, 0.15, 0.3)), da.Reduced(dt=0.001)).run(0.3)
    y = run.coordinate_map("curl").coordinates
    assert np.ptp(y) > 0.5
    for joint, first, second in zip(("knuckle", "middle", "end"), (1.0, 0.9, 0.6), (0.0, 0.15, 0.3)):
        np.testing.assert_allclose(run.joint(joint).coordinates, first * y + second * y**2, atol=1e-9)
    energy = run.energy().total
    assert np.abs(energy - energy[0]).max() < 1e-3 * np.ptp(run.energy().kinetic)


def test_the_tip_of_a_strand_can_be_pictured(tmp_path):
    from dalembert.view.scene import build_scene

    run = da.Simulation(da.zoo.strand_pendulum(), da.Reduced(dt=0.01)).run(0.1)
    ties = [tie for tie in build_scene(run).ties if tie.kind == "strand"]
    assert len(ties) == 6
    assert ties[0].radius == pytest.approx(0.006)
    page = run.to_html(tmp_path / "strand.html")
    assert page.stat().st_size > 10_000
