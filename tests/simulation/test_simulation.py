"""Setting up, stepping and running: what `Simulation` promises."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert import zoo
from dalembert.model.topology import loop_count


def arm(**laws) -> da.Mechanism:
    mechanism = da.Mechanism("arm")
    mechanism.body("upper", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -0.5))
    mechanism.body("lower", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -1.5))
    mechanism.joint("shoulder", da.Revolute(axis="x", **laws), mechanism.world, "upper", at=(0, 0, 0))
    mechanism.joint("elbow", da.Revolute(axis="x", **laws), "upper", "lower", at=(0, 0, -1))
    return mechanism


def simulation(mechanism: da.Mechanism | None = None, dt: float = 0.01) -> da.Simulation:
    return da.Simulation(mechanism or arm(), da.Variational(dt=dt))


def test_set_joint_carries_the_subtree():
    sim = simulation()
    sim.set_joint("shoulder", np.pi / 2, rate=2.0)
    np.testing.assert_allclose(sim.position, [[0, 0.5, 0], [0, 1.5, 0]], atol=1e-12)
    np.testing.assert_allclose(sim.velocity, [[0, 0, 1.0], [0, 0, 3.0]], atol=1e-9)
    np.testing.assert_allclose(sim.rates("shoulder"), [2.0], atol=1e-9)
    np.testing.assert_allclose(sim.rates("elbow"), [0.0], atol=1e-9)


def test_joints_set_before_stay():
    sim = simulation()
    sim.set_joint("elbow", 0.7)
    sim.set_joint("shoulder", -0.3)
    assert sim.coordinates("elbow")[0] == pytest.approx(0.7, abs=1e-11)
    assert sim.coordinates("shoulder")[0] == pytest.approx(-0.3, abs=1e-11)


def test_angles_are_unwrapped_over_turns():
    mechanism = da.Mechanism("wheel", gravity=(0, 0, 0))
    mechanism.body("wheel", da.Cylinder(radius=0.2, length=0.1, mass=1.0))
    mechanism.joint("axle", da.Revolute(axis="z"), mechanism.world, "wheel")
    sim = simulation(mechanism, dt=0.001)
    sim.set_joint("axle", 9.0, rate=5.0)
    trajectory = sim.run(4.0)
    np.testing.assert_allclose(trajectory.joint("axle").coordinates, 9.0 + 5.0 * trajectory.time, atol=1e-4)


def test_set_joint_closes_loops():
    sim = simulation(zoo.three_link_loop())
    name = sim.mechanism.joints[0].name
    before = sim.coordinates(name)[0]
    sim.set_joint(name, before + 0.1)
    assert sim.coordinates(name)[0] == pytest.approx(before + 0.1, abs=1e-9)
    assert sim.run(sim.formulation.dt).constraint_violation()[0] < 1e-10


def test_a_loop_that_cannot_close_says_which_and_by_how_much():
    mechanism = da.Mechanism("too short", gravity=(0, 0, 0))
    mechanism.body("a", da.Box(size=(1, 0.1, 0.1), mass=1.0), position=(0.5, 0, 0))
    mechanism.joint("left", da.Revolute(axis="z"), mechanism.world, "a", at=(0, 0, 0))
    mechanism.joint("right", da.Spherical(), mechanism.world, "a", at=((3, 0, 0), (1, 0, 0)))
    with pytest.raises(da.AssemblyError, match=r"left.*cannot be closed.*open by"):
        simulation(mechanism)


def test_an_unreachable_coordinate_leaves_the_state_alone():
    sim = simulation(zoo.slider_crank())
    slide = next(j.name for j in sim.mechanism.joints if isinstance(j.type, da.Prismatic))
    x, q, v = sim.position, sim.orientation, sim.velocity
    with pytest.raises(da.AssemblyError, match=slide):
        sim.set_joint(slide, 50.0)
    np.testing.assert_array_equal(sim.position, x)
    np.testing.assert_array_equal(sim.orientation, q)
    np.testing.assert_allclose(sim.velocity, v, atol=1e-12)


def test_set_velocity_is_made_consistent():
    sim = simulation()
    sim.set_velocity("lower", linear=(0, 1, 0), angular=(2, 0, 0))
    v, w = sim.velocity, sim.angular_velocity
    # both hinges hold: the end points of the rods move together
    np.testing.assert_allclose(v[0] + np.cross(w[0], [0, 0, 0.5]), 0.0, atol=1e-9)
    np.testing.assert_allclose(v[0] + np.cross(w[0], [0, 0, -0.5]), v[1] + np.cross(w[1], [0, 0, 0.5]), atol=1e-9)
    np.testing.assert_allclose(v[1], [0, 1, 0], atol=1e-5)


def test_setting_again_after_a_run_starts_from_where_it_is():
    sim = simulation()
    sim.set_joint("shoulder", 1.0)
    sim.run(0.5)
    velocity, elbow = sim.velocity, sim.coordinates("elbow")[0]
    sim.set_velocity("lower", linear=velocity[1], angular=sim.angular_velocity[1])
    np.testing.assert_allclose(sim.velocity, velocity, atol=1e-6)
    assert sim.coordinates("elbow")[0] == pytest.approx(elbow, abs=1e-12)


def test_runs_continue_where_the_last_one_stopped():
    whole = simulation()
    whole.set_joint("shoulder", 1.0)
    parts = simulation()
    parts.set_joint("shoulder", 1.0)
    long = whole.run(1.0)
    first, second = parts.run(0.4), parts.run(0.6)
    assert second.time[0] == pytest.approx(first.time[-1])
    np.testing.assert_allclose(second.position[-1], long.position[-1], atol=1e-9)
    np.testing.assert_allclose(second.velocity[0], long.velocity[40], atol=1e-8)


def test_steps_equal_a_run():
    one, other = simulation(), simulation()
    for sim in (one, other):
        sim.set_joint("shoulder", 1.0)
    trajectory = one.run(0.2)
    for _ in range(20):
        other.step()
    np.testing.assert_allclose(other.position, trajectory.position[-1], atol=1e-12)
    np.testing.assert_allclose(other.velocity, trajectory.velocity[-1], atol=1e-9)
    assert other.time == pytest.approx(0.2)


def test_a_body_by_name_gives_its_series():
    run = da.Simulation(arm(), da.Variational(dt=0.01)).run(0.1)
    for i, name in enumerate(run.bodies):
        series = run.body(name)
        assert series.name == name
        if i == 0:
            assert "velocity" not in run._values  # not before it is asked for
        for what in ("position", "orientation", "velocity", "angular_velocity"):
            np.testing.assert_array_equal(getattr(series, what), getattr(run, what)[:, i])
    with pytest.raises(da.ModelError, match="no body 'nobody'; it has"):
        run.body("nobody")


def test_forces_of_a_hanging_chain():
    trajectory = simulation().run(0.05)
    for k in (0, 2, -1):
        np.testing.assert_allclose(trajectory.joint("shoulder").force[k], [0, 0, 2 * 9.81], atol=1e-9)
        np.testing.assert_allclose(trajectory.joint("elbow").force[k], [0, 0, 9.81], atol=1e-9)


def test_forces_are_given_in_the_joint_frame_on_the_parent():
    mechanism = da.Mechanism("shelf")
    mechanism.body("board", da.Box(size=(1, 0.2, 0.02), mass=2.0), position=(0.5, 0, 0))
    half = np.sqrt(0.5)
    mechanism.joint("clamp", da.Fixed(), mechanism.world, "board", at=(0, 0, 0), frame=(half, 0, half, 0))
    series = simulation(mechanism).run(0.02).joint("clamp")
    # the frame is turned by 90 degrees about y: its x axis points down, its z axis along the world's x
    np.testing.assert_allclose(series.force[-1], [-2 * 9.81, 0, 0], atol=1e-9)
    np.testing.assert_allclose(series.torque[-1], [0, -9.81, 0], atol=1e-9)


def test_actuation_is_the_part_along_the_free_directions():
    mechanism = arm(stiffness=5.0, damping=0.3)
    sim = simulation(mechanism, dt=0.002)
    sim.set_joint("shoulder", 0.4)
    series = sim.run(0.5).joint("shoulder")
    expected = -5.0 * series.coordinates - 0.3 * series.rates
    np.testing.assert_allclose(series.actuation, expected, atol=2e-4)
    np.testing.assert_allclose(series.torque[:, 0], series.actuation, atol=1e-9)


def test_motion_drives_follow_their_target_and_report_the_torque():
    mechanism = da.Mechanism("driven rod", gravity=(0, 0, 0))
    rod = da.Rod(length=1.0, mass=3.0, radius=0.05)
    mechanism.body("rod", rod, position=(0, 0, -0.5))
    mechanism.joint("motor", da.Revolute(axis="x", drive="motion"), mechanism.world, "rod")
    sim = simulation(mechanism, dt=0.001)
    sim.set_joint("motor", 0.0, rate=0.6)
    sim.set_target("motor", lambda t: 0.3 * np.sin(2.0 * t))
    trajectory = sim.run(1.0)
    series, t = trajectory.joint("motor"), trajectory.time
    np.testing.assert_allclose(series.coordinates, 0.3 * np.sin(2 * t), atol=1e-11)
    np.testing.assert_allclose(series.rates, 0.6 * np.cos(2 * t), atol=1e-5)
    inertia = rod.inertia[0, 0] + 3.0 * 0.25
    np.testing.assert_allclose(series.actuation[5:-5], -inertia * 1.2 * np.sin(2 * t[5:-5]), atol=1e-4)


@pytest.mark.parametrize(("joint", "target"), [
    (da.Universal(drive="motion"), [0.2, -0.3]),
    (da.Spherical(drive="motion"), [0.3, -0.2, 0.4]),
    (da.Cylindrical(axis="x", drive="motion"), [0.1, 0.5]),
    (da.Planar(drive=("motion", "force", "motion")), [0.1, 0.0, 0.3]),
    (da.Free(drive="motion"), [0.1, 0.2, -0.1, 0.3, 0.1, -0.2]),
], ids=["universal", "spherical", "cylindrical", "planar, partly", "free"])
def test_motion_drives_of_every_kind(joint, target):
    mechanism = da.Mechanism("driven", gravity=(0, 0, -1.0))
    mechanism.body("b", da.Box(size=(0.3, 0.2, 0.1), mass=1.0), position=(0.2, 0, 0))
    mechanism.joint("j", joint, mechanism.world, "b")
    sim = simulation(mechanism)
    goal = np.array(target)
    driven = np.array([d == "motion" for d in joint.drive])
    sim.set_target("j", lambda t: goal * t)
    trajectory = sim.run(1.0)
    np.testing.assert_allclose(trajectory.joint("j").coordinates[-1][driven], goal[driven], atol=1e-9)


def test_force_drives_push_with_what_they_are_told():
    mechanism = da.Mechanism("cart", gravity=(0, 0, 0))
    mechanism.body("cart", da.Box(size=(1, 1, 1), mass=2.0))
    mechanism.joint("rail", da.Prismatic(axis="x", drive="force"), mechanism.world, "cart")
    sim = simulation(mechanism)
    trajectory = sim.run(1.0, control=lambda s: {"rail": 4.0})
    np.testing.assert_allclose(trajectory.joint("rail").coordinates, trajectory.time**2, atol=1e-9)
    np.testing.assert_allclose(trajectory.joint("rail").actuation[1:], 4.0, atol=1e-9)


def test_wrenches_on_bodies():
    mechanism = da.Mechanism("satellite", gravity=(0, 0, 0))
    mechanism.body("s", mass=2.0, inertia=np.diag([1.0, 2.0, 2.5]))
    mechanism.wrench("s", force=(0, 2.0, 0))
    sim = simulation(mechanism)
    trajectory = sim.run(1.0, control=lambda s: {"s": [4.0, 0, 0, 0, 0, 0.5]})
    np.testing.assert_allclose(trajectory.position[-1, 0], [1.0, 0.5, 0.0], atol=1e-9)
    np.testing.assert_allclose(trajectory.angular_velocity[-1, 0], [0, 0, 0.2], atol=1e-6)


def test_gears_keep_their_ratio_and_transmit():
    mechanism = da.Mechanism("gears", gravity=(0, 0, 0))
    for name, x in (("small", 0.0), ("large", 0.3)):
        mechanism.body(name, da.Cylinder(radius=0.1, length=0.05, mass=1.0), position=(x, 0, 0))
        mechanism.joint(f"{name} axle", da.Revolute(axis="z", drive="force"), mechanism.world, name, at=(x, 0, 0))
    mechanism.gear("mesh", "small axle", "large axle", ratio=-2.0)
    trajectory = simulation(mechanism, dt=0.002).run(1.0, control=lambda s: {"small axle": 0.1})
    small, large = trajectory.joint("small axle").coordinates, trajectory.joint("large axle").coordinates
    np.testing.assert_allclose(small, -2.0 * large, atol=1e-10)
    inertia = 0.5 * 0.01 * (1.0 + 0.25)  # of both, seen from the small wheel
    np.testing.assert_allclose(small[-1], 0.5 * 0.1 / inertia, rtol=1e-4)
    np.testing.assert_allclose(trajectory.coupling_force("mesh")[5], -0.1 * 0.25 / 1.25, rtol=1e-6)
    assert trajectory.constraint_violation().max() < 1e-10


def test_helical_joints_advance():
    mechanism = da.Mechanism("screw")
    mechanism.body("nut", da.Cylinder(radius=0.1, length=0.05, mass=1.0))
    mechanism.joint("thread", da.Helical(axis="z", pitch=0.2), mechanism.world, "nut")
    trajectory = simulation(mechanism, dt=0.001).run(1.0)
    angle, lead = trajectory.joint("thread").coordinates, 0.2 / (2 * np.pi)
    np.testing.assert_allclose(trajectory.position[:, 0, 2], lead * angle, atol=1e-11)
    acceleration = -9.81 * lead / (0.005 + lead**2)
    np.testing.assert_allclose(angle[-1], 0.5 * acceleration, rtol=3e-4)


def test_distance_joints_hold_their_length():
    mechanism = da.Mechanism("rope")
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(1, 0, 0))
    mechanism.joint("string", da.Distance(), mechanism.world, "ball", at=((0, 0, 0), (1, 0, 0)))
    trajectory = simulation(mechanism).run(2.0)
    np.testing.assert_allclose(np.linalg.norm(trajectory.position[:, 0], axis=1), 1.0, atol=1e-11)


def test_point_springs_oscillate():
    mechanism = da.Mechanism("spring", gravity=(0, 0, 0))
    mechanism.body("ball", da.Sphere(radius=0.1, mass=2.0), position=(1.2, 0, 0))
    mechanism.spring("tie", mechanism.world, "ball", at=((0, 0, 0), (1.2, 0, 0)), stiffness=50.0, damping=3.0, length=1.0)
    trajectory = simulation(mechanism, dt=0.001).run(1.0)
    t, rate, omega = trajectory.time, 0.75, np.sqrt(25.0 - 0.75**2)
    exact = 1.0 + 0.2 * np.exp(-rate * t) * (np.cos(omega * t) + rate / omega * np.sin(omega * t))
    np.testing.assert_allclose(trajectory.position[:, 0, 0], exact, atol=2e-6)


@pytest.mark.parametrize("given", [True, False], ids=["with its gradient", "differentiated numerically"])
def test_user_potentials(given):
    def energy(x, q):
        return 8.0 * float(x @ x)

    mechanism = da.Mechanism("trap", gravity=(0, 0, 0))
    mechanism.body("bead", da.Sphere(radius=0.1, mass=4.0), position=(0.5, 0, 0))
    mechanism.potential("trap", "bead", energy, wrench=(lambda x, q: [*(-16.0 * x), 0, 0, 0]) if given else None)
    trajectory = simulation(mechanism, dt=0.002).run(1.0)
    np.testing.assert_allclose(trajectory.position[:, 0, 0], 0.5 * np.cos(2.0 * trajectory.time), atol=1e-5)
    total = trajectory.energy().total
    np.testing.assert_allclose(total, total[0], rtol=1e-5)


def test_an_interrupted_run_keeps_what_was_computed(monkeypatch, capsys):
    sim = simulation()
    sim.set_joint("shoulder", 1.0)
    calls = []
    run = sim._engine.advance

    def stop_later(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(*arguments)

    monkeypatch.setattr(sim._engine, "advance", stop_later)
    trajectory = sim.run(100.0)
    assert 2 < len(trajectory) < 10001
    assert trajectory.time[-1] == pytest.approx(sim.time)
    assert np.all(np.isfinite(trajectory.velocity))
    assert "interrupted" in capsys.readouterr().err


def test_a_fast_spin_is_substepped():
    mechanism = zoo.free_body((1.0, 2.0, 3.0))
    name = mechanism.bodies[0].name
    sim = simulation(mechanism)
    sim.set_velocity(name, angular=(0.0, 150.0, 0.1))
    trajectory = sim.run(0.1)
    assert trajectory.substeps[1:].min() >= 2
    momentum = trajectory.momentum().angular
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-9 * 300.0)


def test_a_spin_no_substep_can_follow_fails_and_keeps_the_state():
    mechanism = zoo.free_body((1.0, 2.0, 3.0))
    name = mechanism.bodies[0].name
    sim = simulation(mechanism)
    sim.set_velocity(name, angular=(0.0, 1e6, 0.0))
    x, q, w = sim.position, sim.orientation, sim.angular_velocity
    with pytest.raises(da.StepFailure, match=rf"{name}.*rad/s"):
        sim.run(0.1)
    np.testing.assert_array_equal(sim.position, x)
    np.testing.assert_array_equal(sim.orientation, q)
    np.testing.assert_allclose(sim.angular_velocity, w)
    assert sim.time == 0.0


def failing_controllers():
    return {
        "NaN": (lambda s: {"shoulder": np.nan}, "shoulder.*must be finite"),
        "unknown name": (lambda s: {"knee": 1.0}, "knee"),
        "no drive": (lambda s: {"elbow": 1.0}, "elbow.*no drive"),
        "wrong size": (lambda s: {"shoulder": [1.0, 2.0]}, "shoulder.*takes 1"),
        "wrong wrench": (lambda s: {"upper": [1.0, 2.0]}, "upper.*six"),
        "no dict": (lambda s: 3.0, "dict"),
        "words": (lambda s: {"shoulder": "much"}, "shoulder.*numbers"),
    }


@pytest.mark.parametrize("case", failing_controllers().values(), ids=failing_controllers().keys())
def test_controllers_that_misbehave_are_named_and_harm_nothing(case):
    control, message = case
    mechanism = da.Mechanism("arm")
    mechanism.body("upper", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -0.5))
    mechanism.body("lower", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -1.5))
    mechanism.joint("shoulder", da.Revolute(axis="x", drive="force"), mechanism.world, "upper")
    mechanism.joint("elbow", da.Revolute(axis="x"), "upper", "lower", at=(0, 0, -1))
    sim = simulation(mechanism)
    sim.run(0.1)
    time, x = sim.time, sim.position
    with pytest.raises(da.ControlError, match=message):
        sim.run(0.1, control=control)
    assert sim.time == time
    np.testing.assert_array_equal(sim.position, x)


@pytest.mark.parametrize("options", [dict(dt=0.0), dict(dt=-1.0), dict(dt=np.nan), dict(dt=0.01, tolerance=0.0), dict(dt=0.01, max_iterations=0)])
def test_options_that_make_no_sense(options):
    with pytest.raises(da.ModelError, match="Variational"):
        da.Variational(**options)


def test_other_bad_calls():
    sim = simulation()
    with pytest.raises(da.ModelError, match="duration"):
        sim.run(0.0)
    with pytest.raises(da.ModelError, match="knee"):
        sim.set_joint("knee", 1.0)
    with pytest.raises(da.ModelError, match="coordinates of joint 'elbow'"):
        sim.set_joint("elbow", [1.0, 2.0])
    with pytest.raises(da.ModelError, match="finite"):
        sim.set_joint("elbow", np.inf)
    with pytest.raises(da.ModelError, match="body"):
        sim.set_velocity("elbow", linear=(0, 0, 1))
    with pytest.raises(da.ModelError, match="not motion-driven"):
        sim.set_target("elbow", 1.0)
    with pytest.raises(da.ModelError, match="no bodies"):
        da.Simulation(da.Mechanism("empty"), da.Variational(dt=0.01))


def test_loops_are_counted():
    assert loop_count(arm()) == 0
    assert loop_count(zoo.three_link_loop()) == 1
    assert loop_count(zoo.double_four_bar()) == 2


@pytest.mark.parametrize("n", [1, 10])
def test_residuals_of_the_next_step_fall_below_its_tolerance(n):
    sim = da.Simulation(da.zoo.pendulum(n), da.Variational(dt=0.01))
    sim.run(0.1)
    before = sim.state.numbers.copy()
    residuals = sim.residuals()
    np.testing.assert_array_equal(sim.state.numbers, before)
    assert residuals[0] > 1e-3
    assert residuals[-1] < 1e-10
    assert np.all(np.diff(residuals) < 0.0)
    assert len(residuals) - 1 == sim.run(0.01).iterations[-1]


def test_a_run_keeps_the_residuals_of_its_steps(tmp_path):
    plain = da.Simulation(da.zoo.pendulum(3), da.Variational(dt=0.01)).run(0.105)
    sim = da.Simulation(da.zoo.pendulum(3), da.Variational(dt=0.01))
    first = sim.residuals()
    run = sim.run(0.105, residuals=True)
    np.testing.assert_array_equal(run.position, plain.position)
    found = run.residuals
    assert len(found) == len(run) == 12
    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1, : len(first)], first)
    np.testing.assert_array_equal(np.isfinite(found[1:]).sum(axis=1) - 1, run.iterations[1:])
    assert np.nanmin(found[1:], axis=1).max() < 1e-10
    run.save(tmp_path / "run.h5")
    np.testing.assert_array_equal(da.Trajectory.load(tmp_path / "run.h5").residuals, found)
    with pytest.raises(da.ModelError, match="residuals=True"):
        plain.residuals  # noqa: B018


@pytest.mark.parametrize("make", [lambda: da.Simulation(da.zoo.n_four_bar(), da.Variational(dt=0.01)), lambda: da.Simulation(da.zoo.box_drop(), da.Variational(dt=0.01)),
                                  lambda: da.Simulation(da.zoo.pendulum(), da.Implicit(dt=0.01))])
def test_residuals_that_are_not_there_are_refused(make):
    with pytest.raises(da.ModelError, match="residuals by iteration"):
        make().residuals()
    with pytest.raises(da.ModelError, match="residuals by iteration"):
        make().run(0.1, residuals=True)
