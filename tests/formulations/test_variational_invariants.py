"""What the variational integrator keeps: momenta, energy, closed joints, unit quaternions; on random mechanisms."""
from __future__ import annotations

import numpy as np
import pytest
from pairs import TYPES, moved, with_laws

import dalembert as da
from dalembert import zoo

RANDOM_JOINTS = [da.Revolute, da.Spherical, da.Prismatic, da.Universal, da.Cylindrical, da.Planar, da.PinInSlot, da.Slot]


def random_mechanism(seed: int, *, bodies: int = 6, loops: int = 0, gravity=(0.0, 0.0, 0.0)) -> da.Mechanism:
    """A free-floating random tree with ``loops`` extra joints between its bodies, which keep some freedom."""
    rng = np.random.default_rng(seed)
    mechanism = da.Mechanism(f"random {seed}", gravity=gravity)
    for i in range(bodies):
        A = rng.normal(size=(3, 3))
        inertia = 0.1 * (np.trace(A @ A.T) * np.eye(3) - A @ A.T)
        mechanism.body(f"body {i}", mass=float(rng.uniform(0.5, 2.0)), inertia=inertia, position=rng.normal(size=3), orientation=rng.normal(size=4))
        if i:
            joint = RANDOM_JOINTS[rng.integers(len(RANDOM_JOINTS))]()
            mechanism.joint(f"joint {i}", joint, f"body {rng.integers(i)}", f"body {i}", at=rng.normal(size=3), frame=rng.normal(size=4))
    for k in range(loops):
        a, b = rng.choice(bodies, 2, replace=False)
        points = rng.normal(size=(2, 3)), da.Distance()
        if k % 2:
            mechanism.joint(f"loop {k}", da.PlanarFreeOrientation(), f"body {a}", f"body {b}", at=points[0][0], frame=rng.normal(size=4))
        else:
            mechanism.joint(f"loop {k}", points[1], f"body {a}", f"body {b}", at=points[0])
    for body in mechanism.bodies:
        mechanism.start(body.name, linear=rng.normal(size=3), angular=rng.normal(size=3))
    return mechanism


@pytest.mark.parametrize("loops", [0, 2], ids=["tree", "loops"])
@pytest.mark.parametrize("seed", range(4))
def test_free_floating_mechanisms_keep_their_momenta(seed, loops):
    sim = da.Simulation(random_mechanism(seed, loops=loops), da.Variational(dt=0.01, tolerance=1e-12))
    trajectory = sim.run(10.0)
    momentum = trajectory.momentum()
    scale = np.sum(trajectory.mass * np.linalg.norm(trajectory.velocity[0], axis=1))
    assert np.abs(momentum.linear - momentum.linear[0]).max() < 1e-9 * scale
    arm = np.abs(trajectory.position).max()
    assert np.abs(momentum.angular - momentum.angular[0]).max() < 1e-9 * scale * max(arm, 1.0)
    assert trajectory.constraint_violation().max() < 1e-9
    assert np.abs(np.linalg.norm(trajectory.orientation, axis=2) - 1.0).max() < 1e-14


@pytest.mark.parametrize("name", ["three_link_loop", "slider_crank", "bricard", "double_four_bar"])
def test_loops_stay_closed(name):
    trajectory = da.Simulation(getattr(zoo, name)(), da.Variational(dt=0.01)).run(10.0)
    assert trajectory.constraint_violation().max() < 1e-9


@pytest.mark.parametrize("segments", [1, 4])
def test_four_bar_chains_stay_closed(segments):
    trajectory = da.Simulation(zoo.four_bar_chain(segments), da.Variational(dt=0.01)).run(10.0)
    assert trajectory.constraint_violation().max() < 1e-9


def test_chain_of_sixteen_four_bars_runs_to_the_end():
    trajectory = da.Simulation(zoo.four_bar_chain(16), da.Variational(dt=0.01)).run(10.0)
    energy = trajectory.energy()
    fall = energy.potential[0] - energy.potential.min()
    assert trajectory.constraint_violation().max() < 1e-9
    assert np.abs(energy.total - energy.total[0]).max() < 0.2 * fall


@pytest.mark.parametrize("tolerance", [1e-6, 1e-8, 1e-10])
def test_fifty_links_at_any_tolerance(tolerance):
    """Variational, figure 10."""
    trajectory = da.Simulation(zoo.pendulum(50), da.Variational(dt=0.01, tolerance=tolerance)).run(10.0)
    assert len(trajectory) == 1001
    assert trajectory.constraint_violation().max() < max(tolerance, 1e-9)


def energy_trend(minutes: float) -> tuple[float, float]:
    """Change of a linear fit of the energy over the run, and the amplitude of its oscillation."""
    sim = da.Simulation(zoo.double_pendulum(), da.Variational(dt=0.01))
    trajectory = sim.run(60.0 * minutes)
    energy = trajectory.energy().total
    slope = np.polyfit(trajectory.time, energy, 1)[0]
    return abs(slope) * trajectory.time[-1], 0.5 * float(np.ptp(energy))


@pytest.mark.slow
def test_no_energy_trend_over_an_hour():
    change, amplitude = energy_trend(60.0)
    assert change < 0.01 * amplitude


def test_no_energy_trend_over_ten_minutes():
    change, amplitude = energy_trend(10.0)
    assert change < 0.05 * amplitude


SPRUNG = [n for n, j in TYPES.items() if j.freedom]


@pytest.mark.parametrize("name", SPRUNG)
def test_springs_are_gradients_of_their_energy(name):
    """The energy error of a sprung joint falls fourfold with the step: force and energy belong together."""
    joint = TYPES[name]
    spring = with_laws(joint, stiffness=np.linspace(3.0, 5.0, joint.freedom), rest=np.linspace(0.1, 0.3, joint.freedom))
    errors = []
    for dt in (0.01, 0.005):
        energy = moved(spring, 21, dt=dt).run(1.0).energy().total
        errors.append(np.abs(energy - energy[0]).max())
    assert errors[1] < max(errors[0] / 3.0, 1e-10)
    assert errors[0] < 0.02


@pytest.mark.parametrize("name", SPRUNG)
def test_dampers_dissipate_what_they_say(name):
    """Energy lost equals the work of the dampers, integral of d * rate^2, to second order."""
    joint = TYPES[name]
    damping = np.linspace(0.2, 0.4, joint.freedom)
    trajectory = moved(with_laws(joint, damping=damping), 22, gravity=(0, 0, 0), dt=0.005).run(1.0)
    energy = trajectory.energy().total
    rates = trajectory.joint("joint").rates.reshape(len(trajectory), -1)
    power = (damping * rates**2).sum(axis=1)
    lost = np.trapezoid(power, dx=0.005)
    assert energy[0] - energy[-1] == pytest.approx(lost, rel=2e-3)
    assert np.all(np.diff(energy) < 1e-4 * energy[0])


def test_hoberman_sphere_follows_its_one_coordinate():
    mechanism = zoo.hoberman_sphere(opening=1.1, spin=3.0)
    trajectory = da.Simulation(mechanism, da.Variational(dt=0.002)).run(0.4)
    exact = zoo.hoberman_exact(trajectory.time, opening=1.1, spin=3.0)
    assert np.abs(zoo.hoberman_opening(trajectory.position) - exact).max() < 1e-4


def test_hoberman_sphere_passes_its_singular_pose():
    trajectory = da.Simulation(zoo.hoberman_sphere(opening=1.1, spin=3.0), da.Variational(dt=0.01)).run(4.0)
    assert trajectory.constraint_violation().max() < 1e-9
    assert zoo.hoberman_opening(trajectory.position).min() < 0.2
