"""Equilibria: poses and stability in closed form, branches, and what has none."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import dalembert as da

FORMULATIONS = {"variational": da.Variational(dt=0.01), "implicit": da.Implicit(dt=0.01, method="bdf2"), "reduced": da.Reduced(dt=0.01)}
VARIATIONAL = FORMULATIONS["variational"]


def pendulum(**laws) -> da.Mechanism:
    mechanism = da.Mechanism("pendulum")
    mechanism.body("rod", mass=1.0, inertia=0.1 * np.eye(3), position=(0, 0, -0.5))
    mechanism.joint("hinge", da.Revolute(axis="x", **laws), mechanism.world, "rod")
    return mechanism


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_pendulum_with_a_spring(formulation):
    """k (angle - rest) + m g l sin(angle) = 0; the simulation ends there, at rest, and stays."""
    sim = da.Simulation(pendulum(stiffness=3.0, rest=2.0), FORMULATIONS[formulation])
    found = sim.equilibrium()
    angle: float = brentq(lambda x: 3.0 * (x - 2.0) + 4.905 * np.sin(x), 0.0, 2.0, xtol=1e-15)  # type: ignore[assignment]
    assert found.joints["hinge"] == pytest.approx(angle, abs=1e-13)
    assert found.stable
    assert found.stiffness == pytest.approx((3.0 + 4.905 * np.cos(angle)) / 0.35, rel=1e-12)
    assert sim.coordinates("hinge") == pytest.approx(angle, abs=1e-13)
    run = sim.run(0.5)
    assert np.abs(run.joint("hinge").coordinates - angle).max() < 1e-12


def test_branches_are_kept():
    """Three equilibria of a shallow truss; each is found from nearby, the middle one is unstable."""
    truss = da.Mechanism("truss", gravity=(0, 0, 0))
    truss.body("joint", mass=1.0, inertia=1e-3 * np.eye(3), position=(0, 0, 0.2))
    truss.joint("guide", da.Prismatic(axis="z"), truss.world, "joint", at=(0, 0, 0))
    for x in (-1.0, 1.0):
        truss.spring(f"spring {x:g}", truss.world, "joint", at=((x, 0, 0), (0, 0, 0.2)), stiffness=100.0)
    sim = da.Simulation(truss, VARIATIONAL)
    rest = np.hypot(1.0, 0.2)

    def curvature(z):
        length = np.hypot(1.0, z)
        return 200.0 * (1.0 - rest / length + rest * z * z / length**3)

    for begin, height, stability in ((0.25, 0.2, "stable"), (0.03, 0.0, "unstable"), (-0.15, -0.2, "stable")):
        sim.set_joint("guide", begin - 0.2)  # from where it was built
        found = sim.equilibrium(move=False)
        assert found.position[0, 2] == pytest.approx(height, abs=1e-12)
        assert found.stability == stability
        assert found.stiffness == pytest.approx(curvature(height), rel=1e-9)
        assert sim.position[0, 2] == pytest.approx(begin)
    sim.set_joint("guide", 0.03 - 0.2)
    assert sim.equilibrium(stable=True).position[0, 2] == pytest.approx(0.2, abs=1e-12)


@pytest.mark.parametrize(("begin", "stable", "end"), [(0.4, False, 0.0), (2.8, False, np.pi), (np.pi / 2, False, 0.0), (2.8, True, 0.0)])
def test_hanging_or_inverted(begin, stable, end):
    sim = da.Simulation(pendulum(), VARIATIONAL)
    sim.set_joint("hinge", begin)
    found = sim.equilibrium(stable=stable)
    assert found.joints["hinge"] == pytest.approx(end, abs=1e-10)
    assert found.stability == ("stable" if end == 0.0 else "unstable")
    assert found.residual < 1e-12


def test_a_loop_under_its_weight():
    """A chain of rhombi with springs in its hinges: no force is left, to rounding, and the loops are closed."""
    mechanism = da.zoo.four_bar_chain(2)
    for name in ("1 upper left", "2 lower right"):
        mechanism.path(f"tie of {name}", [(mechanism.world, (1.0, 0.0, 2.0)), (name, mechanism[name].position)], stiffness=200.0)
    sim = da.Simulation(mechanism, VARIATIONAL)
    found = sim.equilibrium(stable=True)
    assert found.stable
    assert found.residual < 1e-12
    assert np.abs(sim.linearise().acceleration).max() < 1e-10
    run = sim.run(0.2)
    assert np.abs(run.position - run.position[0]).max() < 1e-9
    assert run.constraint_violation().max() < 1e-9


def test_drives_servos_and_inputs_take_part():
    """A motion drive stands at its target, a servo gives way, an input is held."""
    mechanism = pendulum(drive="force")
    mechanism.body("arm", mass=1.0, inertia=0.1 * np.eye(3), position=(0, 0, -1.5))
    mechanism.joint("motor", da.Revolute(axis="x", drive="motion"), "rod", "arm", at=(0, 0, -1))
    sim = da.Simulation(mechanism, VARIATIONAL)
    sim.set_target("motor", 0.5)
    sim.set_input("hinge", 2.0)
    angle = sim.equilibrium().joints["hinge"][0]
    assert 9.81 * (1.5 * np.sin(angle) + 0.5 * np.sin(angle + 0.5)) == pytest.approx(2.0, abs=1e-12)
    assert sim.coordinates("motor") == pytest.approx(0.5, abs=1e-12)
    servo = da.Simulation(pendulum(servo=da.Servo(stiffness=20.0, target=1.0)), VARIATIONAL)
    angle = servo.equilibrium().joints["hinge"][0]
    assert 20.0 * (1.0 - angle) == pytest.approx(4.905 * np.sin(angle), rel=1e-12)
    servo.set_target("hinge", -1.0)
    assert servo.equilibrium().joints["hinge"] == pytest.approx(-angle, abs=1e-12)


def test_neutral_ones():
    mechanism = da.Mechanism("floating", gravity=(0, 0, 0))
    mechanism.body("box", da.Box(size=(0.1, 0.2, 0.3), mass=1.0))
    found = da.Simulation(mechanism, VARIATIONAL).equilibrium()
    assert (found.stability, found.steps) == ("neutral", 0)


def test_forces_that_follow():
    """A column under a force that turns with its end: no energy, no static loss of stability, and still flutter (Ziegler)."""
    for load, stability in ((1.0, "stable"), (3.0, "unstable")):
        column = da.Mechanism("Ziegler's column", gravity=(0, 0, 0))
        before = column.world
        for i, mass in enumerate((2.0, 1.0)):
            column.body(f"link {i}", mass=mass, inertia=1e-9 * np.eye(3), position=(0, 0, i + 1.0))
            column.joint(f"hinge {i}", da.Revolute(axis="x", stiffness=1.0), before, f"link {i}", at=(0, 0, i))
            before = column[f"link {i}"]
        column.force("thrust", before, (0, 0, -load), at=(0, 0, 2), follows=True)
        found = da.Simulation(column, VARIATIONAL).equilibrium()
        assert found.stability == stability  # masses 2 m and m: flutter beyond 2.086 k / l
        assert np.iscomplexobj(found.stiffness) == (stability == "unstable")


def test_none():
    mechanism = da.Mechanism("falling")
    mechanism.body("box", da.Box(size=(0.1, 0.2, 0.3), mass=1.0))
    sim = da.Simulation(mechanism, VARIATIONAL)
    before = sim.state
    with pytest.raises(da.EquilibriumError, match=r"forces still accelerate box\[2\] \(9.81 m/s\^2\)"):
        sim.equilibrium()
    assert sim.state == before


def test_what_rests_on_limits_and_contacts():
    with pytest.raises(da.EquilibriumError, match="beyond a limit of joint 'hinge'"):
        da.Simulation(pendulum(limits=(0.2, 1.0)), VARIATIONAL).equilibrium()
    mechanism = da.Mechanism("box on a soft spring")
    mechanism.ground()
    mechanism.body("box", da.Box(size=(0.2, 0.2, 0.2), mass=1.0), position=(0, 0, 0.3), collide=True)
    mechanism.joint("guide", da.Prismatic(axis="z", stiffness=10.0), mechanism.world, "box")
    with pytest.raises(da.EquilibriumError, match="overlap"):
        da.Simulation(mechanism, VARIATIONAL).equilibrium()
