"""What does not pass in silence: energy out of nothing, changed branches, targets that disagree, what spins too fast."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import dalembert as da
from dalembert import zoo
from dalembert.mechanism.mechanism import Body


def bar(mechanism: da.Mechanism, name: str, start: np.ndarray, end: np.ndarray, mass: float) -> Body:
    along = end - start
    angle = np.arctan2(along[2], along[1])
    return mechanism.body(
        name, da.Rod(length=float(np.linalg.norm(along)), mass=mass, radius=0.02, axis="y"), position=0.5 * (start + end),
        orientation=(float(np.cos(0.5 * angle)), float(np.sin(0.5 * angle)), 0.0, 0.0),
    )


def four_bar(lengths: tuple[float, float, float, float], angle: float, masses=(1.0, 1.0, 1.0), gravity: float = 9.81, **motor) -> da.Mechanism:
    """Crank, coupler and rocker of given lengths on a base (the last one), the crank at an angle."""
    mechanism = da.Mechanism("four-bar", gravity=(0.0, 0.0, -gravity))
    crank, coupler, rocker, base = lengths
    a, d = np.zeros(3), np.array([0.0, base, 0.0])
    b = crank * np.array([0.0, np.cos(angle), np.sin(angle)])
    reach = float(np.linalg.norm(d - b))
    along = (coupler**2 - rocker**2 + reach**2) / (2.0 * reach)
    unit = (d - b) / reach
    c = b + along * unit + np.sqrt(coupler**2 - along**2) * np.array([0.0, -unit[2], unit[1]])
    bodies = [bar(mechanism, *entry) for entry in (("crank", a, b, masses[0]), ("coupler", b, c, masses[1]), ("rocker", d, c, masses[2]))]
    mechanism.joint("motor", da.Revolute(axis="x", **motor), mechanism.world, bodies[0], at=a)
    mechanism.joint("b", da.Revolute(axis="x"), bodies[0], bodies[1], at=b)
    mechanism.joint("c", da.Revolute(axis="x"), bodies[1], bodies[2], at=c)
    mechanism.joint("d", da.Revolute(axis="x"), mechanism.world, bodies[2], at=d)
    return mechanism


def uneven() -> da.Mechanism:
    return four_bar((1.0, 1.5, 1.2, 2.0), 1.2, masses=(10.0, 1.0, 0.1))


def test_energy_out_of_nothing_is_told_with_its_figure():
    rough = da.Simulation(zoo.double_pendulum(), da.Reduced(dt=0.05, method="semi_implicit"))
    rough.set_joint("joint 1", rate=3.0)
    with pytest.warns(da.EnergyWarning, match=r"rose by 10\.4 J.*dt = 0.05"):
        rough.run(4.95)  # where it is highest
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        da.Simulation(uneven(), da.Variational(dt=0.001)).run(2.0)
        da.Simulation(uneven(), da.Variational(dt=0.01), energy_bound=0.02).run(10.0)  # its steps are divided, which raised the energy by half once
        da.Simulation(uneven(), da.Variational(dt=0.01), energy_bound=None).run(10.0)


def test_nothing_is_said_where_something_puts_energy_in_or_all_is_at_rest():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        driven = four_bar((0.3, 0.9, 0.6, 1.0), 0.5 * np.pi, drive="force")
        da.Simulation(driven, da.Variational(dt=0.01)).run(0.5, control=lambda _: {"motor": 3.0})
        da.Simulation(zoo.box_drop(), da.Variational(dt=0.01)).run(1.0)


@pytest.mark.parametrize("formulation", [da.Implicit(dt=0.01), da.Implicit(dt=0.01, solver="general"), da.Variational(dt=0.01), da.Reduced(dt=0.01)],
                         ids=["kinematic", "general", "variational", "reduced"])
def test_a_crank_rocker_stays_on_its_branch(formulation):
    """69 degrees a step."""
    rate = np.deg2rad(69.0) / 0.01
    ends = []
    for chosen in (formulation, da.Implicit(dt=0.0005)):
        sim = da.Simulation(four_bar((0.3, 0.9, 0.6, 1.0), 0.5 * np.pi, gravity=0.0, drive="motion"), chosen)
        sim.set_target("motor", lambda t: rate * t)
        ends.append(sim.run(0.2).joint("d").coordinates)
    np.testing.assert_allclose(ends[0], ends[1][::20], atol=1e-9)


@pytest.mark.parametrize("formulation", [da.Implicit(dt=0.01), da.Variational(dt=0.01), da.Reduced(dt=0.01)], ids=["implicit", "variational", "reduced"])
def test_redundant_drives_as_tables_at_60_hz(formulation):
    """Splines through targets that agree do not agree between them: they are moved onto what the joints allow."""
    mechanism = zoo.walker_legs()
    times = np.arange(0.0, 1.5, 1.0 / 60.0)
    sims = [da.Simulation(mechanism, formulation, target_tolerance=tolerance) for tolerance in (1e-6, 0.0)]
    for sim in sims:
        for name, motion in zoo.walker_motion().items():
            sim.set_target(name, (times, [motion(t) for t in times]))
    sims[0].run(0.6)
    run = sims[0].run(0.6)
    assert run.constraint_violation().max() < 1e-10
    assert 0.0 < run.target_correction.max() < 1e-6
    with pytest.raises(da.StepFailure, match="target_tolerance"):
        sims[1].run(1.2)


def test_a_spin_that_no_step_can_follow_is_named():
    sim = da.Simulation(zoo.free_body(), da.Variational(dt=0.01))
    name = sim.mechanism.bodies[0].name
    sim.set_velocity(name, angular=(3e4, 0.0, 0.0))
    with pytest.raises(da.StepFailure, match=f"{name!r} spins at 3.58"):
        sim.run(0.1)


def test_a_loose_tolerance_takes_a_good_guess():
    for formulation in (da.Variational(dt=0.01, tolerance=1e-3), da.Implicit(dt=0.01, tolerance=1e-3), da.Reduced(dt=0.01, tolerance=1e-3)):
        run = da.Simulation(zoo.four_bar_chain(2), formulation).run(0.5)
        assert run.substeps.max() == 1


def test_assembly_does_not_depend_on_masses():
    lengths, poses = (1.0, 1.5, 1.2, 2.0), []
    for ratio in (1.0, 1e6, 1e8, 1e10):
        sim = da.Simulation(four_bar(lengths, 1.2, masses=(ratio, 1.0, 1.0 / ratio)), da.Variational(dt=0.01))
        sim.set_joint("motor", 0.3)
        poses.append(sim.position)
    for pose in poses[1:]:
        np.testing.assert_allclose(pose, poses[0], atol=1e-9)


def parallelogram(**motor) -> da.Mechanism:
    """Cranks of 1 m on a base of 2 m, flat."""
    mechanism = da.Mechanism("parallelogram", gravity=(0, 0, 0))
    points = {name: np.array([0.0, y, 0.0]) for name, y in (("a", 0.0), ("b", 1.0), ("c", 3.0), ("d", 2.0))}
    ends = (("crank", "a", "b"), ("coupler", "b", "c"), ("rocker", "d", "c"))
    crank, coupler, rocker = (bar(mechanism, name, points[p], points[q], 1.0) for name, p, q in ends)
    mechanism.joint("a", da.Revolute(axis="x", **motor), mechanism.world, crank, at=points["a"])
    mechanism.joint("b", da.Revolute(axis="x"), crank, coupler, at=points["b"])
    mechanism.joint("c", da.Revolute(axis="x"), coupler, rocker, at=points["c"])
    mechanism.joint("d", da.Revolute(axis="x"), mechanism.world, rocker, at=points["d"])
    return mechanism


def test_a_parallelogram_that_starts_flat():
    for angle in (0.5, -0.3, 1.5):
        sim = da.Simulation(parallelogram(drive="motion"), da.Variational(dt=0.01))
        sim.set_joint("a", angle)
        assert abs(sim.coordinates("d")[0]) > 0.1
        assert sim.run(0.1).constraint_violation().max() < 1e-10
    sim = da.Simulation(parallelogram(drive="motion"), da.Implicit(dt=0.01))
    sim.set_target("a", lambda t: t)
    run = sim.run(1.0)
    assert run.constraint_violation().max() < 1e-10
    assert abs(run.joint("d").coordinates[-1]) > 0.5


def test_velocities_of_forty_parallelograms_upright():
    sim = da.Simulation(zoo.n_four_bar(40), da.Variational(dt=0.01))
    np.testing.assert_allclose(sim.angular_velocity[:41, 2], -1.0, atol=1e-9)


def test_the_part_of_a_velocity_that_is_not_given_follows():
    mechanism = da.Mechanism("pinned rod")
    mechanism.body("rod", da.Rod(length=1.0, mass=1.0, radius=0.02), position=(0, 0, -0.5))
    mechanism.joint("pin", da.Revolute(axis="x"), mechanism.world, "rod", at=(0, 0, 0))
    sim = da.Simulation(mechanism, da.Variational(dt=0.01))
    sim.set_velocity("rod", angular=(2.0, 0.0, 0.0))
    np.testing.assert_allclose(sim.angular_velocity[0], [2.0, 0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(sim.velocity[0], [0.0, 1.0, 0.0], atol=1e-9)


def test_a_force_that_is_a_function_of_time_is_of_second_order():
    mechanism = da.Mechanism("slider", gravity=(0, 0, 0))
    mechanism.body("block", da.Box(size=(0.1, 0.1, 0.1), mass=1.0))
    mechanism.joint("rail", da.Prismatic(axis="x", drive="force", stiffness=4.0), mechanism.world, "block")
    for make in (lambda dt: da.Variational(dt=dt), lambda dt: da.Implicit(dt=dt), lambda dt: da.Implicit(dt=dt, method="sdirk2"), lambda dt: da.Reduced(dt=dt)):
        for given in ("control", "input"):
            ends = []
            for dt in (0.02, 0.01, 0.005, 0.0005):
                sim = da.Simulation(mechanism, make(dt))
                if given == "input":
                    sim.set_input("rail", lambda t: np.sin(3.0 * t))
                    sim.run(1.0)
                else:
                    sim.run(1.0, control=lambda _: {"rail": lambda t: np.sin(3.0 * t)})
                ends.append(sim.position[0, 0])
            errors = np.abs(np.array(ends[:-1]) - ends[-1])
            assert np.all(np.log2(errors[:-1] / errors[1:]) > 1.8), (make(1.0), given, errors)


def test_the_hopper_says_which_steps_its_gains_bear():
    with pytest.raises(da.ControlError, match=r"up to 0\.01 s"):
        da.Simulation(zoo.hopper(), da.Variational(dt=0.011)).run(0.1, control=zoo.hopper_turn())


def test_the_opening_of_a_closed_hoberman_sphere_is_a_number():
    assert zoo.hoberman_opening(np.zeros((240, 3))) == pytest.approx(0.5 * np.pi)


@pytest.mark.parametrize(("rate", "bound", "highest"), [(3.0, 0.1, 12), (4.75, 0.105, 10)], ids=["once looked at", "between the looks of old"])
def test_a_rise_that_falls_again_is_told_too(rate, bound, highest):
    """The energy is looked at at every knot of a short run, and not at the end alone."""
    sim = da.Simulation(zoo.double_pendulum(), da.Reduced(dt=0.05, method="semi_implicit"), energy_bound=bound)
    sim.set_joint("joint 1", rate=rate)
    with pytest.warns(da.EnergyWarning) as said:
        run = sim.run(1.2)
    energy = run.energy()
    rise = energy.total - energy.total[0]
    assert rise[-1] < 0.6 * rise.max()
    assert int(rise.argmax()) == highest
    assert f"rose by {rise.max():.3g} J" in str(said[0].message)


@pytest.mark.parametrize("formulation", [da.Variational(dt=0.01), da.Implicit(dt=0.01), da.Reduced(dt=0.01)], ids=["variational", "implicit", "reduced"])
def test_a_glance_at_the_energy_sees_what_a_trajectory_tells(formulation, monkeypatch):
    """Rotors, springs and bodies: what the watch goes by, at every knot of the first 128 and one of four after them."""
    from dalembert.simulation import energy as watch

    mechanism = zoo.pendulum(3)
    mechanism.joint("spring", da.Revolute(axis="x", stiffness=2.0, armature=0.3), mechanism.world, mechanism.body("rotor", da.Sphere(radius=0.1, mass=1.0)))
    seen = []
    rises = watch.rises
    monkeypatch.setattr(watch, "rises", lambda *energies: (seen.append(energies), rises(*energies))[1])
    sim = da.Simulation(mechanism, formulation)
    sim.set_joint("spring", rate=2.0)
    run = sim.run(3.0)
    kinetic, potential = seen[0]
    knots, energy = watch.looked_at(len(run)), run.energy()
    assert list(knots[126:130]) == [126, 127, 128, 132]
    assert knots[-1] == len(run) - 1
    np.testing.assert_allclose(potential, energy.potential[knots], rtol=0, atol=1e-9)
    np.testing.assert_allclose(kinetic, energy.kinetic[knots], rtol=0, atol=(1e-9 if run.formulation == "Reduced" else 2e-3) * energy.kinetic.max())
