"""Gradients of runs by SciPy's methods: those of the continuous motion, through impacts at limits too."""
from __future__ import annotations

import numpy as np
import pytest
from test_reduced_gradients import branched
from test_stepwise_gradients import arm, loop, swing

import dalembert as da

METHODS = {m: da.Reduced(dt=0.02, method=m, rtol=1e-10 if m == "RK23" else 1e-12, atol=1e-13) for m in ("DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")}
DOP853 = METHODS["DOP853"]
#: the bars: adjoint against forward, and against differences of the run
EXACT, SMOOTH = 1e-9, 1e-6


def assert_right(check: da.GradientCheck) -> None:
    assert check.forward_error < EXACT, str(check)
    assert check.difference_error < SMOOTH, str(check)


def turning(sim: da.Simulation) -> None:
    for name, rate in (("cross", (1.0, -0.5)), ("sleeve", (0.3, 0.8)), ("screw", 2.0), ("hinge", -1.0)):
        sim.set_joint(name, rate=rate)


NAMES = ["gravity", "a.mass", "c.inertia", "sleeve.point_child", "cross.turn_parent", "cross.start", "hinge.start_rate", "hinge.input", "hinge.stiffness", "screw.pitch"]


@pytest.mark.parametrize("method", ["RK45", *(pytest.param(m, marks=pytest.mark.slow) for m in METHODS if m != "RK45")])
def test_a_tree_by_every_method(method):
    quick = method == "RK45"
    names = ["gravity", "hinge.stiffness", "hinge.start_rate"] if quick else NAMES
    assert_right(da.validate_gradients(branched(), METHODS[method], names, steps=1 if quick else 3, setup=turning))


@pytest.mark.slow
def test_a_loop_with_a_ball():
    names = ["gravity", "b.mass", "ball.damping", "ball.point_child", "hinge.turn_parent", "rod.point_child", "hinge.input", "b.input", "hinge.start_rate"]
    assert_right(da.validate_gradients(loop(), DOP853, names, steps=3, setup=swing))


@pytest.mark.slow
def test_joint_forces():
    assert_right(da.validate_gradients(branched(), DOP853, ["gravity", "a.mass", "hinge.stiffness", "hinge.start_rate"], steps=3, setup=turning, outputs=("force", "torque")))


@pytest.mark.slow
def test_prescribed_motion():
    times, points = np.linspace(0.0, 0.2, 6), 0.3 * np.linspace(0.0, 1.0, 6) ** 3

    def follow(sim: da.Simulation, table: np.ndarray = points) -> None:
        sim.set_target("hinge", (times, table))

    names = ["lower.mass", "elbow.stiffness", "elbow.start_rate"]
    assert_right(da.validate_gradients(arm(), DOP853, names, steps=1, setup=follow, outputs=("position", "orientation", "coordinate", "velocity")))

    def run(table: np.ndarray, tape: bool = False):
        sim = da.Simulation(arm(), DOP853, energy_bound=None)
        follow(sim, table)
        return sim.run(0.02, tape=tape)

    rng, base = np.random.default_rng(0), run(points, True)
    weights, change, step = {"position": rng.normal(size=base.position.shape)}, rng.normal(size=6), 1e-3
    found = float(base.vjp(weights, ["hinge.target_points"])["hinge.target_points"] @ change)
    assert abs(np.sum(weights["position"] * base.jvp({"hinge.target_points": change})["position"]) - found) < EXACT * abs(found)
    values = [float(np.sum(weights["position"] * run(points + k * step * change).position)) for k in (1, -1, 2, -2)]
    assert abs((8.0 * (values[0] - values[1]) - (values[2] - values[3])) / (12.0 * step) - found) < SMOOTH * abs(found)


def dropped(restitution: float) -> da.Mechanism:
    """A weight on a guide, that falls on its end."""
    m = da.Mechanism("dropped")
    m.body("weight", mass=2.0, inertia=np.eye(3), position=(0, 0, 1))
    m.joint("guide", da.Prismatic(axis="z", limits=(0.0, None), restitution=restitution), "world", "weight", at=(0, 0, 0))
    return m


def test_a_bounce_has_the_saltation_matrix():
    """Height and velocity after a bounce with e = 0.7 of what falls from 1 m, by its start, the end's place and its restitution: the closed form."""
    g, h, e, t = 9.81, 1.0, 0.7, 0.6
    sim = da.Simulation(dropped(e), da.Reduced(dt=0.05, method="DOP853", rtol=1e-11, atol=1e-12), energy_bound=None)
    sim.set_joint("guide", h)
    run = sim.run(t, tape=True)
    hit, speed = np.sqrt(2 * h / g), np.sqrt(2 * g * h)
    assert run.joint("guide").coordinates[-1] == pytest.approx(e * speed * (t - hit) - 0.5 * g * (t - hit) ** 2, abs=1e-9)
    names = ["guide.start", "guide.start_rate", "guide.lower", "guide.restitution"]
    weights = np.zeros((len(run), 1, 6))
    weights[-1, 0, 0] = 1.0
    height, velocity = (run.vjp({name: weights}, names) for name in ("coordinate", "rate"))
    # by the height h at the start, and the rate v there: hit and speed change by
    by_h, by_v = (1 / speed, np.sqrt(g / (2 * h))), (1 / g, 0.0)
    for name, (dhit, dspeed) in (("guide.start", by_h), ("guide.start_rate", by_v)):
        rest = t - hit
        expected = e * dspeed * rest - e * speed * dhit + g * rest * dhit, e * dspeed + g * dhit
        assert float(np.squeeze(height[name])) == pytest.approx(expected[0], rel=1e-8)
        assert float(np.squeeze(velocity[name])) == pytest.approx(expected[1], rel=1e-8)
    assert float(np.squeeze(height["guide.lower"])) == pytest.approx(1.0 - float(np.squeeze(height["guide.start"])), rel=1e-8)
    assert float(np.squeeze(height["guide.restitution"])) == pytest.approx(speed * (t - hit), rel=1e-8)
    assert float(np.squeeze(velocity["guide.restitution"])) == pytest.approx(speed, rel=1e-8)


def stops(restitution: float) -> da.Mechanism:
    m = da.Mechanism("stops")
    m.body("a", da.Box(size=(0.6, 0.1, 0.1), mass=1.0), position=(0.3, 0, 0))
    m.body("b", da.Box(size=(0.4, 0.1, 0.1), mass=0.5), position=(0.8, 0, 0))
    m.joint("root", da.Revolute(axis="y", damping=0.05), "world", "a", at=(0, 0, 0))
    m.joint("elbow", da.Revolute(axis="y", limits=(-0.05, 0.06), restitution=restitution, stiffness=1.0), "a", "b", at=(0.6, 0, 0))
    return m


@pytest.mark.slow
@pytest.mark.parametrize("restitution", [0.4, 0.0])
def test_many_bounces_that_come_to_rest(restitution):
    """Seven impacts within 0.15 s, after which an elbow rests on its end; or one, after which it does at once."""
    def knock(sim: da.Simulation) -> None:
        sim.set_joint("root", rate=-0.5)
        sim.set_joint("elbow", rate=2.0)

    names = ["elbow.upper", "elbow.lower", "elbow.start_rate", "root.start_rate", "b.mass", "gravity", "elbow.stiffness", *(["elbow.restitution"] if restitution else [])]
    check = da.validate_gradients(stops(restitution), DOP853, names, steps=18, setup=knock, step=1e-5)
    assert_right(check)
    assert abs(check.rows[1].adjoint) > 0.1


@pytest.mark.slow
def test_a_controller():
    def hold(sim):
        return {"hinge": -2.0 * sim.coordinates("hinge") - 0.3 * sim.rates("hinge")}

    assert_right(da.validate_gradients(branched(), DOP853, ["gravity", "a.mass", "hinge.start_rate"], steps=2, setup=turning, control=hold))


def test_checkpoints_change_nothing(monkeypatch):
    found = []
    for budget in (64_000_000, 2_000):
        monkeypatch.setattr("dalembert.simulation.simulation.BUDGET", budget)
        sim = da.Simulation(dropped(0.5), DOP853, energy_bound=None)
        sim.set_joint("guide", 0.1)
        run = sim.run(0.2, tape=True)
        assert run.record is not None
        assert (run.record.tape is None) == (budget == 2_000)
        found.append(run.vjp({"position": np.ones_like(run.position)}, ["gravity", "weight.mass", "guide.lower"]))
    for name in found[0]:
        np.testing.assert_allclose(found[1][name], found[0][name], rtol=1e-8, atol=1e-9)
