"""Methods in joint coordinates that step by rates of change: their orders, and one motion with the others; loops, inputs and stiffness."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dalembert as da

SCENES = {scene["id"]: scene for scene in json.loads((Path(__file__).parents[2] / "reference" / "redmax_scenes.json").read_text())["scenes"]}


def with_everything() -> da.Mechanism:
    """Springs, dampers, a rotor, drag, a spring between bodies and a free rotation."""
    mechanism = da.Mechanism("with everything")
    upper = mechanism.body("upper", da.Box(size=[1.0, 0.1, 0.2], mass=1.0), position=[0.5, 0.0, 0.0])
    lower = mechanism.body("lower", da.Box(size=[1.0, 0.2, 0.1], mass=1.5), position=[1.5, 0.0, 0.0])
    mechanism.joint("hip", da.Revolute(axis="y", stiffness=10.0, damping=1.0, rest=0.2, armature=0.3), mechanism.world, upper)
    mechanism.joint("knee", da.Spherical(stiffness=[5.0, 4.0, 3.0], damping=[0.5, 0.4, 0.3]), lower, upper, at=[1.0, 0.0, 0.0])
    mechanism.spring("spring", upper, lower, at=([0.0, 0.0, 0.2], [1.5, 0.3, 1.2]), stiffness=100.0, damping=2.0)
    mechanism.drag("drag", "lower", linear=0.4, angular=0.1)
    mechanism.start("hip", 0.3, rate=1.0)
    mechanism.start("knee", [0.1, 0.2, -0.3], rate=[2.0, 1.0, -1.0])
    return mechanism


def on_splines() -> da.Mechanism:
    """A weight on a bent wire, and another on a curved plate that hangs on it."""
    mechanism = da.Mechanism("on splines")
    rng = np.random.default_rng(1)
    wire = np.column_stack([0.5 * np.arange(8), 0.2 * rng.normal(size=(8, 2)), np.ones(8), 0.3 * rng.normal(size=(8, 3))])
    plate = 0.1 * rng.normal(size=(6, 6, 6))
    plate[..., 0] += 0.4 * np.arange(6)[:, None]
    plate[..., 1] += 0.4 * np.arange(6)
    bead = mechanism.body("bead", da.Box(size=[0.2, 0.1, 0.3], mass=1.0))
    puck = mechanism.body("puck", da.Box(size=[0.1, 0.2, 0.1], mass=0.5))
    mechanism.joint("wire", da.SplineCurve(wire, stiffness=20.0, damping=0.2, rest=2.0, armature=0.1), mechanism.world, bead)
    mechanism.joint("plate", da.SplineSurface(plate, stiffness=[9.0, 5.0], rest=[1.2, 1.4], armature=[0.2, 0.1]), bead, puck)
    mechanism.start("wire", 2.5)
    mechanism.start("plate", [1.5, 1.3])
    return mechanism


TREES = {"splines": on_splines, "double pendulum": da.zoo.double_pendulum, "balls": lambda: da.zoo.pendulum(3, joint="spherical"), "everything": with_everything}
LOOPS = {"slider-crank": da.zoo.slider_crank, "double four-bar": da.zoo.double_four_bar, "three links": da.zoo.three_link_loop}


def end(mechanism: da.Mechanism, duration: float, **options) -> np.ndarray:
    """Positions at the end."""
    return da.Simulation(mechanism, da.Reduced(**options), energy_bound=None).run(duration).position[-1]


def orders(mechanism: da.Mechanism, method: str, dt: float, duration: float = 0.4) -> float:
    """The measured order of a method."""
    exact = end(mechanism, duration, dt=duration / 4, method="DOP853", rtol=1e-12, atol=1e-13)
    errors = [np.abs(end(mechanism, duration, dt=step, method=method) - exact).max() for step in (dt, dt / 2)]
    return float(np.log2(errors[0] / errors[1]))


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize(("method", "order", "dt"), [("rk4", 4.0, 0.01), ("semi_implicit", 1.0, 0.002), ("linearly_implicit", 1.0, 0.002)])
def test_orders_on_trees(name, method, order, dt):
    assert orders(TREES[name](), method, dt) > order - 0.15


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize(("method", "order", "dt"), [("rk4", 4.0, 0.01), ("linearly_implicit", 1.0, 0.002)])
def test_orders_on_loops(name, method, order, dt):
    assert orders(LOOPS[name](), method, dt, 0.2) > order - 0.2


@pytest.mark.parametrize("number", [0, 1, 3, 5, 6, 7, 9, 12])
def test_scenes_of_redmax_end_where_they_should(number):
    scene = SCENES[number]
    run = da.Simulation(da.zoo.redmax_scene(number), da.Reduced(dt=scene["t_end"] / 4, method="DOP853", rtol=1e-12, atol=1e-11), energy_bound=None).run(scene["t_end"])
    wanted = np.array(scene["exact"]["com"])
    assert np.abs(run.position[-1] - wanted).max() < 1e-8 * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_tighter_tolerances_give_smaller_errors(method):
    mechanism = da.zoo.double_pendulum()
    exact = end(mechanism, 0.5, dt=0.25, method="DOP853", rtol=1e-13, atol=1e-13)
    errors = [np.abs(end(mechanism, 0.5, dt=0.1, method=method, rtol=tol, atol=tol) - exact).max() for tol in (1e-4, 1e-8)]
    assert errors[1] < 1e-6
    assert errors[1] < 1e-2 * errors[0]


@pytest.mark.parametrize("name", [*(tree for tree in TREES if tree != "splines"), *LOOPS])
def test_one_motion_with_variational(name):
    mechanism = {**TREES, **LOOPS}[name]()
    exact = end(mechanism, 0.3, dt=0.1, method="DOP853", rtol=1e-11, atol=1e-12)
    errors = [np.abs(da.Simulation(mechanism, da.Variational(dt=dt)).run(0.3).position[-1] - exact).max() for dt in (0.004, 0.002)]
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize("method", ["rk4", "semi_implicit", "linearly_implicit", "DOP853"])
@pytest.mark.parametrize("name", LOOPS)
def test_loops_stay_closed(name, method):
    run = da.Simulation(LOOPS[name](), da.Reduced(dt=0.005, method=method)).run(0.5)
    assert run.constraint_violation().max() < 1e-11


def test_baselines_drift_and_are_pulled_back():
    """Rows at the level of rates or accelerations let a loop open; stabilization keeps that small."""
    mechanism = da.zoo.slider_crank()
    for method in ("kkt_velocity", "kkt_acceleration"):
        pulled, free = (
            da.Simulation(mechanism, da.Reduced(dt=0.002, method=method, stabilization=s), energy_bound=None).run(0.5) for s in (0.2, 0.0)
        )
        assert 1e-9 < pulled.constraint_violation().max() < 0.5 * free.constraint_violation().max()
        exact = end(mechanism, 0.5, dt=0.005, method="rk4")
        halved = end(mechanism, 0.5, dt=0.001, method=method)
        assert np.abs(halved - exact).max() < 0.6 * np.abs(pulled.position[-1] - exact).max()


def test_stiff_springs_and_dampers_are_no_matter_for_the_linearly_implicit_method():
    stiff = da.Mechanism("stiff")
    before = stiff.world
    for i in range(6):
        link = stiff.body(f"link {i}", da.Box(size=[1.0, 0.1, 0.1], mass=1.0), position=[0.5 + i, 0.0, 0.0])
        stiff.joint(f"hinge {i}", da.Revolute(axis="y", stiffness=1e6, damping=1e4), before, link, at=[i, 0.0, 0.0])
        before = link
    stiff.spring("spring", stiff.bodies[0], stiff.bodies[3], at=([0.5, 0.0, 0.2], [3.5, 0.0, 0.2]), stiffness=1e7, damping=10.0)
    run = da.Simulation(stiff, da.Reduced(dt=0.01, method="linearly_implicit"), energy_bound=None).run(2.0)
    assert np.abs(run.velocity[-1]).max() < 1e-3 * max(1.0, np.abs(run.velocity).max())
    # joints with K = D creep back as exp(-t)
    run = da.Simulation(da.zoo.redmax_scene(100), da.Reduced(dt=0.01, method="linearly_implicit"), energy_bound=None).run(2.0)
    assert np.abs(run.velocity[-1]).max() < 0.1 * np.abs(run.velocity[0]).max()
    with pytest.raises(da.StepFailure, match="velocities beyond"):
        da.Simulation(stiff, da.Reduced(dt=0.01, method="semi_implicit"), energy_bound=None).run(2.0)


def arm(drive: str) -> da.Mechanism:
    """Two links in a plane; the first is driven."""
    mechanism = da.Mechanism("arm")
    upper = mechanism.body("upper", da.Box(size=[1.0, 0.1, 0.1], mass=1.0), position=[0.5, 0.0, 0.0])
    lower = mechanism.body("lower", da.Box(size=[1.0, 0.1, 0.1], mass=2.0), position=[1.5, 0.0, 0.0])
    mechanism.joint("shoulder", da.Revolute(axis="y", drive=drive), mechanism.world, upper)
    mechanism.joint("elbow", da.Revolute(axis="y", damping=0.1), upper, lower, at=[1.0, 0.0, 0.0])
    return mechanism


def test_forces_that_are_functions_of_time_keep_the_fourth_order():
    def run(**options):
        sim = da.Simulation(arm("force"), da.Reduced(**options))
        sim.set_input("shoulder", lambda t: 20.0 * np.sin(9.0 * t))
        return sim.run(0.5).position[-1]

    exact = run(dt=0.25, method="DOP853", rtol=1e-12, atol=1e-13)
    errors = [np.abs(run(dt=dt, method="rk4") - exact).max() for dt in (0.02, 0.01)]
    assert 12.0 < errors[0] / errors[1] < 22.0


def test_controllers_act_step_by_step():
    def control(sim):
        return {"shoulder": 5.0 - 3.0 * float(sim.rates("shoulder")[0])}

    runs = [
        da.Simulation(arm("force"), da.Reduced(dt=0.01, method=method, rtol=1e-11)).run(0.3, control=control).position[-1] for method in ("rk4", "DOP853")
    ]
    assert np.abs(runs[0] - runs[1]).max() < 1e-7


@pytest.mark.parametrize("method", ["rk4", "DOP853", "semi_implicit", "linearly_implicit"])
def test_a_run_in_parts_is_that_in_one_go(method):
    whole = da.Simulation(with_everything(), da.Reduced(dt=0.01, method=method))
    parts = da.Simulation(with_everything(), da.Reduced(dt=0.01, method=method))
    run = whole.run(0.3)
    for _ in range(3):
        last = parts.run(0.1)
    assert np.abs(run.position[-1] - last.position[-1]).max() < (1e-7 if method == "DOP853" else 1e-300)
    assert parts.time == pytest.approx(0.3)


def test_splines_agree_with_the_implicit_method_and_end():
    mechanism = on_splines()
    exact = end(mechanism, 0.4, dt=0.1, method="DOP853", rtol=1e-11, atol=1e-12)
    errors = [np.abs(end(mechanism, 0.4, dt=dt, method="bdf2") - exact).max() for dt in (0.002, 0.001)]
    assert errors[1] < 0.3 * errors[0]
    for method in ("rk4", "DOP853"):
        sim = da.Simulation(mechanism, da.Reduced(dt=0.01, method=method), energy_bound=None)
        sim.set_joint("wire", 4.5, rate=20.0)
        with pytest.raises(da.StepFailure, match="'wire' would be at"):
            sim.run(1.0)
        assert sim.coordinates("wire")[0] < 5.0


def test_contacts_are_refused_aloud():
    for method in ("rk4", "RK45"):
        with pytest.raises(da.ModelError, match="contacts, limits or dry friction"):
            da.Simulation(da.zoo.box_drop(), da.Reduced(dt=0.01, method=method))
    with pytest.raises(da.ModelError, match="events need"):
        da.Reduced(dt=0.01, method="rk4", events=[lambda moment: moment.time])
    with pytest.raises(da.ModelError, match="unknown method"):
        da.Reduced(dt=0.01, method="rk5")


@pytest.mark.parametrize(
    ("formulation", "closed"),
    [
        (da.Reduced(dt=0.02, method="semi_implicit"), False),
        (da.Reduced(dt=0.02, method="rk4"), False),
        (da.Reduced(dt=0.02, method="rk4"), True),
        (da.Implicit(dt=0.02, method="semi_implicit"), False),
        (da.Implicit(dt=0.02, method="semi_implicit"), True),
    ],
    ids=["semi_implicit", "rk4", "rk4, loop", "maximal", "maximal, loop"],
)
def test_steps_too_long_for_a_stiff_spring_are_failures(formulation, closed):
    """They go off within some steps: an error of ours says so, and the last good knot stays."""
    mechanism = da.zoo.n_four_bar(2) if closed else with_everything()
    body = mechanism.bodies[-1]
    mechanism.spring("stiff", mechanism.world, body, at=([0.3, 0.2, 3.0], body.position), stiffness=1e9)
    sim = da.Simulation(mechanism, formulation, energy_bound=None)
    with pytest.raises(da.StepFailure, match="Use a smaller dt"):
        sim.run(20.0)
    assert np.isfinite(sim.position).all()
    assert np.abs(sim.velocity).max() < 1e100


def test_a_stiff_motion_by_rk45_ends_with_a_word():
    """A light body in honey: steps of RK45 would be of a tenth of a microsecond, for hours."""
    mechanism = da.Mechanism("honey", gravity=(0, 0, -9.81))
    mechanism.body("grain", da.Sphere(radius=0.01, mass=1e-6))
    mechanism.joint("free", da.Cartesian(), mechanism.world, "grain")
    mechanism.drag("drag", "grain", linear=30.0)
    sim = da.Simulation(mechanism, da.Reduced(dt=0.01, method="RK45"))
    with pytest.raises(da.StepFailure, match=r"more than 20,000 evaluations by 'RK45'.*method='Radau'"):
        sim.run(1.0)
    run = da.Simulation(mechanism, da.Reduced(dt=0.01, method="Radau")).run(0.1)
    assert run.velocity[-1, 0, 2] == pytest.approx(-9.81e-6 / 30.0, rel=1e-3)


def thrown_off(method: str = "linearly_implicit", dt: float = 0.011) -> da.Simulation:
    """Two bodies that turn about one another by 0.4 rad in a step."""
    mechanism = da.Mechanism("whirl")
    one = mechanism.body("one", mass=1.86, inertia=np.diag((0.0129, 0.00703, 0.00749)), position=(-0.715, 0.409, -0.203), orientation=(-0.113, -1.09, 1.08, 0.879))
    two = mechanism.body("two", mass=0.646, inertia=np.diag((0.0086, 0.00777, 0.00501)), position=(-1.46, -0.347, -0.281), orientation=(-0.476, -0.76, -0.0961, -0.109))
    mechanism.joint("joint", da.RotationAlongAxis(), two, one, at=(-1.43, 0.325, -0.428), frame=(-1.87, -0.131, 0.207, -0.817))
    mechanism.spring("spring", one, two, at=((-0.563, 0.5, -0.141), (-1.53, -0.301, -0.411)), stiffness=41.2, damping=0.157)
    sim = da.Simulation(mechanism, da.Reduced(dt=dt, method=method), energy_bound=None)
    sim.set_joint("joint", rate=(6.39, 7.71, -13.3, -21.8))
    return sim


def test_steps_that_are_too_long_for_linearly_implicit_euler_are_divided():
    """It takes what depends on the square of velocities as it was: whole steps went beyond 1e8 rad/s."""
    sim, steps = thrown_off(), 24
    run = sim.run(steps * 0.011)
    assert len(run) == steps + 1
    assert run.substeps.max() > 1
    kinetic = run.energy().kinetic
    assert kinetic.max() < 4.0 * kinetic[0]
    other = thrown_off()
    for _ in range(steps):
        other.step()
    np.testing.assert_array_equal(other.position, run.position[-1])
    fine = thrown_off("rk4", 0.011 / 64).run(4 * 0.011)
    assert np.abs(run.position[4] - fine.position[-1]).max() < 0.03


def test_derivatives_of_divided_steps():
    run = thrown_off().run(0.022, tape=True)
    assert run.substeps.max() > 1
    weights = np.zeros_like(run.position)
    weights[-1] = np.arange(6.0).reshape(2, 3) - 2.0
    gradient = run.vjp({"position": weights}, parameters=["one.mass"])["one.mass"]
    forward = run.jvp({"one.mass": 1.0})
    assert float(np.sum(weights * forward["position"])) == pytest.approx(float(gradient), rel=1e-7)
