"""Modes in closed form: pendulums, chains, four-bars, damped oscillators; films of them."""
from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.special import jn_zeros, roots_laguerre

import dalembert as da

FORMULATIONS = {"variational": da.Variational(dt=0.01), "implicit": da.Implicit(dt=0.01, method="bdf2"), "reduced": da.Reduced(dt=0.01)}
VARIATIONAL = FORMULATIONS["variational"]


def hanging_chain(count: int, length: float = 1.0) -> da.Mechanism:
    """Equal point masses, as far apart as the first is from the ceiling."""
    mechanism, step = da.Mechanism("hanging chain"), length / count
    before = mechanism.world
    for i in range(count):
        mechanism.body(f"bead {i}", mass=1.0, inertia=1e-14 * step**2 * np.eye(3), position=(0, 0, -(i + 1) * step))
        mechanism.joint(f"link {i}", da.Revolute(axis="x"), before, f"bead {i}", at=(0, 0, -i * step))
        before = mechanism[f"bead {i}"]
    return mechanism


@pytest.mark.parametrize("count", [1, 2, 10, 40])
def test_hanging_chain(count):
    """w^2 = (g / spacing) times the zeros of the Laguerre polynomial L_n."""
    sim = da.Simulation(hanging_chain(count), VARIATIONAL)
    sim.set_joint("link 0", 0.2)
    assert sim.equilibrium().stable
    modes = sim.modes()
    assert modes.angular_frequencies == pytest.approx(np.sqrt(9.81 * count * roots_laguerre(count)[0]), rel=1e-8)
    assert modes.frequencies == pytest.approx(modes.angular_frequencies / (2 * np.pi), rel=1e-15)
    assert not modes.damping_ratios.any()
    below = modes.body_shapes[0, :, 1]  # of the slowest mode: all to one side
    assert np.all(below * below[-1] > 0.0)


def test_long_chain_in_seconds_and_its_limit():
    """100 beads: zeros of L_100, and a rope's zeros of the Bessel function J_0 as the limit, of first order in the spacing."""
    begun = time.process_time()
    sim = da.Simulation(hanging_chain(100), VARIATIONAL)
    sim.equilibrium()
    modes = sim.modes()
    assert time.process_time() - begun < 20.0
    assert modes.angular_frequencies == pytest.approx(np.sqrt(981.0 * roots_laguerre(100)[0]), rel=1e-8)
    # With half a link more below, the beads are the middles of pieces of the rope, but for the last half of a piece.
    rope = 0.5 * jn_zeros(0, 3) * np.sqrt(9.81 / (1.0 + 0.5 / 100))
    assert modes.angular_frequencies[:3] == pytest.approx(rope, rel=2e-3)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_double_pendulum(formulation):
    m1, m2, l1, l2, I1, I2, g = 1.0, 1.3, 0.5, 0.7, 0.02, 0.04, 9.81
    mechanism = da.Mechanism("double pendulum")
    mechanism.body("upper", mass=m1, inertia=I1 * np.eye(3), position=(0, 0, -0.3))
    mechanism.body("lower", mass=m2, inertia=I2 * np.eye(3), position=(0, 0, -l1 - l2))
    mechanism.joint("shoulder", da.Revolute(axis="x"), mechanism.world, "upper")
    mechanism.joint("elbow", da.Revolute(axis="x"), "upper", "lower", at=(0, 0, -l1))
    M = np.array([[m1 * 0.09 + I1 + m2 * l1**2, m2 * l1 * l2], [m2 * l1 * l2, m2 * l2**2 + I2]])
    K = np.diag([(m1 * 0.3 + m2 * l1) * g, m2 * l2 * g])
    values, shapes = eigh(K, M)  # of the angles from the vertical
    modes = da.Simulation(mechanism, FORMULATIONS[formulation]).modes()
    assert modes.angular_frequencies == pytest.approx(np.sqrt(values), rel=1e-12)
    shoulder, elbow = modes.joint("shoulder"), modes.joint("elbow")
    assert elbow / shoulder == pytest.approx(shapes[1] / shapes[0] - 1.0, rel=1e-11)
    assert modes.body("lower")[:, 3] == pytest.approx(shoulder + elbow, rel=1e-12)
    assert modes.shapes @ modes.linearisation.mass @ modes.shapes.T == pytest.approx(np.eye(2), abs=1e-12)


def four_bar(angle: float) -> da.Mechanism:
    """Links of 1, 2 and 1.5 m on feet 2 m apart, with springs in three hinges; ``angle``: of the first link from the x axis."""
    corners = four_bar_corners(angle)
    mechanism = da.Mechanism("four-bar on springs")
    for name, start, end, mass in zip(("crank", "coupler", "rocker"), corners, corners[1:], (1.0, 2.0, 1.5)):
        along = end - start
        turn = 0.5 * np.arctan2(along[1], along[0])
        mechanism.body(
            name, mass=mass, inertia=mass * (along @ along) / 12.0 * np.eye(3), position=(*(0.5 * (start + end)), 0.0), orientation=(np.cos(turn), 0, 0, np.sin(turn)),
        )
    names = ("world", "crank", "coupler", "rocker", "world")
    for i, (name, corner) in enumerate(zip(("A", "B", "C", "D"), corners)):
        parent, child = (names[i], names[i + 1]) if i < 3 else (names[4], names[3])
        mechanism.joint(name, da.Revolute(axis="z", stiffness=SPRINGS[i]), parent, child, at=(*corner, 0.0))
    mechanism.gravity = np.array([0.0, -9.81, 0.0])
    return mechanism


SPRINGS, START = (30.0, 20.0, 0.0, 10.0), 1.2


def four_bar_corners(angle):
    """Corners of the loop, for complex angles too; the branch with the rocker's head to the right."""
    foot, head = np.array([0.0, 0.0]), np.array([np.cos(angle), np.sin(angle)])
    other = np.array([2.0, 0.0])
    across = other - head
    apart = np.sqrt(across @ across)
    along = (4.0 - 2.25 + apart**2) / (2.0 * apart)
    off = np.sqrt(4.0 - along**2)
    unit = across / apart
    return [foot, head, head + along * unit + off * np.array([-unit[1], unit[0]]), other]


def four_bar_energy(angle):
    """Energy of weights and springs, with rests as they were built; and positions and turns of the links."""
    corners, built = four_bar_corners(angle), four_bar_corners(START)
    # turns of the links since they were built, by the sine, which takes complex numbers
    turns = [np.arcsin(_cross(b1 - b0, c1 - c0) / np.sqrt((b1 - b0) @ (b1 - b0)) / np.sqrt((c1 - c0) @ (c1 - c0)))
             for b0, b1, c0, c1 in zip(built, built[1:], corners, corners[1:])]
    stretch = (turns[0], turns[1] - turns[0], turns[2] - turns[1], turns[2])
    middles = [0.5 * (a + b) for a, b in pairwise(corners)]
    energy = sum(9.81 * mass * middle[1] for mass, middle in zip((1.0, 2.0, 1.5), middles))
    return energy + sum(0.5 * k * s**2 for k, s in zip(SPRINGS, stretch)), middles, turns


def _cross(a, b):
    return a[0] * b[1] - a[1] * b[0]


def test_four_bar_on_springs():
    """Equilibrium and frequency from the loop's own closed form, in one angle, by complex steps."""
    tiny = 1e-30

    def slope(angle):
        return four_bar_energy(angle + 1j * tiny)[0].imag / tiny

    angle: float = brentq(slope, START - 0.6, START + 0.3, xtol=1e-15)  # type: ignore[assignment]
    size = 1e-3
    stiffness = sum(weight * slope(angle + steps * size) for steps, weight in ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))) / size
    _, middles, turns = four_bar_energy(angle + 1j * tiny)
    lengths = (1.0, 2.0, 1.5)
    inertia = sum(
        mass * (middle.imag @ middle.imag + length**2 / 12.0 * turn.imag**2) for mass, length, middle, turn in zip((1.0, 2.0, 1.5), lengths, middles, turns)
    ) / tiny**2
    for formulation in FORMULATIONS.values():
        sim = da.Simulation(four_bar(START), formulation)
        found = sim.equilibrium()
        assert found.joints["A"] == pytest.approx(angle - START, abs=1e-11)
        modes = sim.modes()
        assert modes.angular_frequencies == pytest.approx(np.sqrt(stiffness / inertia), rel=1e-9)


def oscillators(damping: tuple[float, float]) -> da.Simulation:
    mechanism = da.Mechanism("oscillators", gravity=(0, 0, 0))
    before = mechanism.world
    for i in range(2):
        mechanism.body(f"block {i}", mass=1.0 + i, inertia=0.1 * np.eye(3), position=(i + 1.0, 0, 0))
        mechanism.joint(f"slide {i}", da.Prismatic(axis="x", stiffness=50.0 * (i + 1), damping=damping[i]), before, f"block {i}")
        before = mechanism[f"block {i}"]
    return da.Simulation(mechanism, VARIATIONAL)


@pytest.mark.parametrize("damping", [(0.3, 0.0), (0.0, 2.0), (40.0, 1.0)])
def test_complex_modes(damping):
    """Damping in one place couples the modes: eigenvalues of the quadratic problem, and shapes that solve it."""
    modes = oscillators(damping).modes()
    M, K = np.array([[3.0, 2.0], [2.0, 2.0]]), np.diag([50.0, 100.0])
    D = np.diag(damping)
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    expected = np.linalg.eigvals(A)
    expected = expected[expected.imag > -1e-9]
    assert len(modes) == len(expected)
    for value, shape, ratio in zip(modes.eigenvalues, modes.shapes, modes.damping_ratios):
        assert np.abs(expected - value).min() < 1e-9
        left = (value**2 * M + value * D + K) @ shape
        assert np.abs(left).max() < 1e-9 * np.abs(K).max()
        assert ratio == pytest.approx(-value.real / abs(value), abs=1e-12)
    assert np.iscomplexobj(modes.shapes)
    if damping[0] == 40.0:
        assert not modes.swinging.all()
        assert np.all(modes.damping_ratios[~modes.swinging] == pytest.approx(1.0))


def test_damping_ratio_of_one_oscillator():
    mechanism = da.Mechanism("one", gravity=(0, 0, 0))
    mechanism.body("block", mass=2.0, inertia=np.eye(3))
    mechanism.joint("slide", da.Prismatic(axis="x", stiffness=50.0, damping=4.0), mechanism.world, "block")
    modes = da.Simulation(mechanism, VARIATIONAL).modes()
    assert (modes.angular_frequencies[0], modes.damping_ratios[0]) == pytest.approx((5.0, 0.2), rel=1e-12)
    assert modes.damped_frequencies[0] == pytest.approx(5.0 * np.sqrt(0.96) / (2 * np.pi), rel=1e-12)


def test_unstable_and_rigid_modes():
    mechanism = da.Mechanism("pendulum on wheels")
    mechanism.body("cart", da.Box(size=(0.3, 0.2, 0.1), mass=1.0))
    mechanism.body("pole", da.Rod(length=1.0, mass=0.5, radius=0.02), position=(0, 0, 0.5))
    mechanism.joint("rail", da.Prismatic(axis="x"), mechanism.world, "cart")
    mechanism.joint("pin", da.Revolute(axis="y"), "cart", "pole")
    sim = da.Simulation(mechanism, VARIATIONAL)
    assert sim.equilibrium().stability == "unstable"
    modes = sim.modes()
    assert modes.growing.tolist() == [False, True]
    assert modes.frequencies.tolist() == [0.0, 0.0]
    assert modes.eigenvalues[0] == 0.0


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_films(formulation, tmp_path):
    """Shapes along a closed loop: joints stay closed, the film ends where it began, pages and pictures take it."""
    sim = da.Simulation(four_bar(START), FORMULATIONS[formulation])
    sim.equilibrium()
    film = sim.modes().animate(0, periods=1.0, frames=24)
    assert len(film) == 25
    assert film.time[-1] == pytest.approx(1.0 / sim.modes().frequencies[0])
    assert film.constraint_violation().max() < 1e-10
    assert film.position[-1] == pytest.approx(film.position[0], abs=1e-9)
    assert 0.05 < np.ptp(film.joint("A").coordinates) < 1.0
    assert film.to_html(tmp_path / "mode.html").stat().st_size > 10_000
    assert film.energy().potential[0] > film.energy().potential[6]


def test_bad_films():
    modes = oscillators((0.0, 0.0)).modes()
    for number in (2, -3, 0.5):
        with pytest.raises(da.ModelError, match="there are 2 modes"):
            modes.animate(number)  # type: ignore[arg-type]
    with pytest.raises(da.ModelError, match="amplitude of a film must be positive"):
        modes.animate(0, amplitude=-1.0)
    with pytest.raises(da.ModelError, match="no joint 'nothing'"):
        modes.joint("nothing")
    with pytest.raises(da.ModelError, match="no body 'nothing'"):
        modes.body("nothing")


def test_only_about_rest():
    sim = da.Simulation(hanging_chain(2), VARIATIONAL)
    sim.set_joint("link 0", 0.3)
    with pytest.raises(da.EquilibriumError, match="not in balance here"):
        sim.modes()
    sim.set_joint("link 0", 0.0, rate=1.0)
    with pytest.raises(da.EquilibriumError, match="moves"):
        sim.modes()
