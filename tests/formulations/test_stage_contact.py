"""Contacts, limits and dry friction in Implicit and Reduced: orders while nothing opens or closes, impacts, forces at knots, agreement with Variational."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert import zoo

METHODS = ("bdf1", "bdf2", "sdirk2", "pareschi_russo")


@pytest.fixture(params=[da.Implicit, da.Reduced], ids=["implicit", "reduced"])
def formulation(request):
    return request.param


def frame(fall: float = 0.0) -> da.Mechanism:
    """Two legs with a hinge on top that slide apart on the ground, or fall on it first (m/s)."""
    mechanism, spread = da.Mechanism("frame"), 0.6
    mechanism.ground(friction=0.1)
    top = np.array([0.0, 0.0, np.cos(spread) + 0.02])
    for side, name in ((-1, "left"), (1, "right")):
        along = np.array([side * np.sin(spread), 0.0, -np.cos(spread)])
        turn = Rotation.from_rotvec((0, -side * spread, 0)).as_quat(scalar_first=True)
        mechanism.body(name, da.Capsule(radius=0.02, length=1.0, mass=1.0), position=top + 0.5 * along, orientation=turn, collide=True)
        mechanism.start(name, linear=(0, 0, -fall))
    mechanism.joint("hinge", da.Revolute(axis="y"), "left", "right", at=top)
    return mechanism


def egg() -> da.Mechanism:
    """An ellipsoid that rolls over its sides, from the start on."""
    mechanism, axes = da.Mechanism("egg"), (0.3, 0.2, 0.1)
    turn, spin = Rotation.from_rotvec((0, 0.4, 0)), np.array([0.0, 3.0, 0.0])
    semi, up = np.array(axes), turn.as_matrix()[2]
    height = float(np.linalg.norm(semi * up))
    mechanism.ground(friction=1.0)
    mechanism.body("egg", da.Ellipsoid(semi_axes=axes, mass=1.0), position=(0, 0, height), orientation=turn.as_quat(scalar_first=True), collide=True)
    lowest = -turn.apply(semi**2 * up) / height
    mechanism.start("egg", linear=-np.cross(spin, lowest), angular=turn.inv().apply(spin))
    return mechanism


def test_bdf2_is_of_second_order_while_contacts_last(formulation):
    fine = da.Simulation(frame(), formulation(dt=1.25e-4)).run(0.25)
    errors = []
    for dt in (0.005, 0.0025):
        run, every = da.Simulation(frame(), formulation(dt=dt)).run(0.25), round(dt / 1.25e-4)
        forces = np.abs(run.joint("hinge").force - fine.joint("hinge").force[::every])[5:-5]
        errors.append((np.abs(run.position[-1] - fine.position[-1]).max(), np.abs(run.velocity[-1] - fine.velocity[-1]).max(), forces.max()))
        assert run.contacts().gap.min() > -1e-12
    assert np.all(np.array(errors[0]) > 3.5 * np.array(errors[1]))
    assert errors[1][0] < (1e-5 if formulation is da.Implicit else 1.5e-5)


def test_rolling_over_a_curved_side_is_nearly_of_second_order(formulation):
    fine = da.Simulation(egg(), formulation(dt=1e-4)).run(0.3)
    errors = [np.abs(da.Simulation(egg(), formulation(dt=dt)).run(0.3).position[-1] - fine.position[-1]).max() for dt in (0.01, 0.005, 0.0025)]
    assert errors[0] > 2.5 * errors[1] > 6.0 * errors[2]
    assert errors[2] < 2e-5


@pytest.mark.parametrize("make", [lambda: frame(), lambda: frame(fall=1.0), egg], ids=["slides", "falls", "rolls"])
def test_formulations_agree_as_the_step_falls(formulation, make):
    apart = []
    for dt in (0.004, 0.002, 0.001):
        ends = [da.Simulation(make(), kind(dt=dt)).run(0.2).position[-1] for kind in (da.Variational, formulation)]
        apart.append(np.abs(ends[0] - ends[1]).max())
    assert apart[2] < 2e-4
    assert apart[0] > 1.8 * apart[1] > 3.2 * apart[2]


def test_forces_after_an_impact_are_those_that_last(formulation):
    runs = [da.Simulation(frame(fall=1.0), kind(dt=0.0025)).run(0.1) for kind in (da.Variational, formulation)]
    forces = [run.joint("hinge").force[1:-1] for run in runs]
    np.testing.assert_allclose(forces[1], forces[0], atol=5e-3)
    assert np.abs(runs[1].joint("hinge").force[0]).max() < 10.0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_gaps_and_carries_weight(formulation, method):
    rng = np.random.default_rng(3)
    mechanism = zoo.box_drop(orientation=rng.normal(size=4))
    mechanism.start("box", linear=(1, 0, 0), angular=3 * rng.normal(size=3))
    run = da.Simulation(mechanism, formulation(dt=0.005, method=method)).run(4.0)
    contacts = run.contacts()
    assert contacts.gap.min() > -1e-12
    np.testing.assert_allclose(contacts.total_force()[-1], (0, 0, 9.81 * mechanism.mass), atol=1e-9 * 9.81 * mechanism.mass)
    assert np.abs(run.velocity[-1]).max() < 1e-9
    energy = run.energy_after().total
    assert energy.max() < energy[0] * 1.001


def test_a_stack_carries_its_weight(formulation):
    mechanism = da.Mechanism("stack")
    mechanism.ground()
    for i in range(5):
        mechanism.body(f"box {i}", da.Box(size=(0.2,) * 3, mass=1.0 + i), position=(0, 0, 0.1 + 0.2 * i), collide=True)
    contacts = da.Simulation(mechanism, formulation(dt=0.01)).run(2.0).contacts()
    for i, above in enumerate(np.cumsum([5.0, 4.0, 3.0, 2.0, 1.0])[::-1]):
        pair = contacts.of("ground") if i == 0 else contacts.of(f"box {i - 1}", f"box {i}")
        assert np.linalg.norm(pair.total_force()[-1]) == pytest.approx(9.81 * above, rel=1e-9)


@pytest.mark.parametrize("method", ["bdf1", "bdf2"])
def test_a_limit_gives_back_its_part_of_the_rate(formulation, method):
    mechanism = da.Mechanism("door", gravity=(0, 0, 0))
    mechanism.body("leaf", da.Box(size=(1.0, 0.05, 2.0), mass=10.0), position=(0.5, 0, 0))
    mechanism.joint("hinge", da.Revolute(axis="z", limits=(-0.3, 0.4), restitution=0.5), mechanism.world, "leaf")
    sim = da.Simulation(mechanism, formulation(dt=0.002, method=method))
    sim.set_joint("hinge", rate=1.0)
    run = sim.run(3.0).joint("hinge")
    assert run.coordinates.max() < 0.4 + 1e-9
    assert run.coordinates.min() > -0.3 - 1e-9
    # at the upper end after 0.4 s, at the lower one 1.4 s later
    lost = 0.02 if method == "bdf1" else 1e-4
    assert run.rates[400] == pytest.approx(-0.5, abs=lost)
    assert run.rates[-1] == pytest.approx(0.25, abs=lost)


def test_a_block_on_a_rail_stops_where_coulomb_says(formulation):
    ends = []
    for dt in (0.01, 0.005):
        mechanism = da.Mechanism("rail", gravity=(0, 0, 0))
        mechanism.body("cart", da.Box(size=(0.1,) * 3, mass=2.0))
        mechanism.joint("rail", da.Prismatic(axis="x", friction=3.0), mechanism.world, "cart")
        sim = da.Simulation(mechanism, formulation(dt=dt))
        sim.set_joint("rail", rate=1.4321)
        run = sim.run(2.0).joint("rail")
        ends.append(run.coordinates[-1])
        np.testing.assert_allclose(run.actuation[20:60], -3.0, rtol=1e-6)
        assert abs(run.rates[-1]) < 1e-9
    np.testing.assert_allclose(ends, 1.4321**2 / 3.0, atol=1e-4)


@pytest.mark.parametrize("formulation", [da.Variational, da.Implicit, da.Reduced], ids=["variational", "implicit", "reduced"])
def test_a_drive_feels_what_it_pushes(formulation):
    mechanism = da.Mechanism("ram")
    mechanism.ground(friction=0.4)
    mechanism.body("box", da.Box(size=(0.2,) * 3, mass=1.0), position=(0.5, 0, 0.1), collide=True)
    mechanism.body("ram", da.Box(size=(0.2, 0.1, 0.1), mass=2.0), position=(0.2, 0, 0.1), collide=True)
    mechanism.contact_pair("box", "ram", friction=0.0)
    mechanism.joint("rail", da.Prismatic(axis="x", drive="motion"), mechanism.world, "ram")
    sim = da.Simulation(mechanism, formulation(dt=0.01))
    sim.set_target("rail", lambda t: 0.4 * (1.0 - np.cos(1.5 * t)))
    run = sim.run(1.5)
    pushed = np.arange(100, 140)
    expected = 0.4 * 9.81 + 3.0 * 0.9 * np.cos(1.5 * run.time[pushed])
    np.testing.assert_allclose(run.joint("rail").actuation[pushed].ravel(), expected, rtol=5e-4)
    assert run.contacts().gap.min() > -1e-12


def test_friction_points_against_sliding(formulation):
    for angle in (0.3, 1.7, 4.0):
        mechanism = da.Mechanism("slide")
        mechanism.ground(friction=0.4)
        mechanism.body("block", da.Box(size=(0.2, 0.2, 0.05), mass=1.0), position=(0, 0, 0.025), collide=True)
        way = np.array([np.cos(angle), np.sin(angle), 0.0])
        mechanism.start("block", linear=3.0 * way)
        force = da.Simulation(mechanism, formulation(dt=0.005)).run(0.3).contacts().total_force()[5:]
        np.testing.assert_allclose(force[:, :2], np.tile(-0.4 * 9.81 * way[:2], (len(force), 1)), atol=1e-5)


def test_energy_after_is_that_at_the_knots(formulation):
    run = da.Simulation(zoo.box_drop(), formulation(dt=0.01)).run(1.0)
    np.testing.assert_allclose(run.energy_after().total, run.energy().total, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("options", "advice"), [
    (dict(method="semi_implicit"), "choose 'bdf2'"), (dict(solver="kinematic"), "solver='general'"), (dict(method="sdirk2", accuracy=1e-5), "choose a dt"),
])
def test_what_does_not_go_with_contacts_is_named(options, advice):
    with pytest.raises(da.ModelError, match=advice):
        da.Simulation(zoo.box_drop(), da.Implicit(dt=0.01, **options))


@pytest.mark.parametrize("bad", [dict(cone="round"), dict(cone="linear", cone_edges=5), dict(resting_speed=-1.0)])
def test_bad_options_are_named(bad):
    with pytest.raises(da.ModelError, match="Implicit: "):
        da.Implicit(dt=0.01, **bad)
