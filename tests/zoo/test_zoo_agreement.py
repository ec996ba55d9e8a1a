"""Every mechanism of the zoo without contact: all formulations tend to one motion, each at its order, and to closed forms."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert import zoo
from dalembert.model.topology import loop_count

Formulation = da.Variational | da.Implicit | da.Reduced


class Method(NamedTuple):
    """A formulation from its step, the order that it must show on trees, and on mechanisms with loops or rods (index 3)."""

    make: Callable[[float], Formulation]
    on_trees: float
    on_loops: float


METHODS = {
    "variational": Method(lambda dt: da.Variational(dt=dt, tolerance=1e-12), 1.75, 1.75),
    "implicit bdf2": Method(lambda dt: da.Implicit(dt=dt, tolerance=1e-12), 1.75, 1.75),
    "implicit sdirk2": Method(lambda dt: da.Implicit(dt=dt, method="sdirk2", tolerance=1e-12), 0.75, 0.75),
    "reduced bdf1": Method(lambda dt: da.Reduced(dt=dt, method="bdf1", tolerance=1e-12), 0.85, 0.7),
    "reduced bdf2": Method(lambda dt: da.Reduced(dt=dt, tolerance=1e-12), 1.85, 1.85),
    "reduced sdirk2": Method(lambda dt: da.Reduced(dt=dt, method="sdirk2", tolerance=1e-12), 1.85, 0.75),
}
#: what gives joint forces of its own order at every knot
FORCES = ("variational", "implicit bdf2", "reduced bdf1", "reduced bdf2", "reduced sdirk2")
#: errors at which rounding ends an order, m, rad, m/s or rad/s
FLOOR = 1e-10


class Case(NamedTuple):
    """A mechanism, a step at which its errors are asymptotic, how long to run, and the motion of its drives.

    ``determined``: False where redundant rows or drives leave open how the joints share the load.
    """

    make: Callable[[], da.Mechanism]
    dt: float
    duration: float
    motion: dict[str, Callable[[float], float]] | None = None
    slow: bool = False
    determined: bool = True


def tilted(mechanism: da.Mechanism) -> da.Mechanism:
    """With some gravity along its plane."""
    mechanism.gravity = np.array([2.0, -1.0, -9.0])
    return mechanism


CASES = {
    "pendulum": Case(zoo.pendulum, 0.01, 0.5),
    "pendulum of 5 links": Case(lambda: zoo.pendulum(5), 0.005, 0.3),
    "spherical pendulum of 3 links": Case(lambda: zoo.pendulum(3, "spherical"), 0.005, 0.3),
    "double_pendulum": Case(zoo.double_pendulum, 0.005, 0.5),
    "simple_pendulum": Case(zoo.simple_pendulum, 0.01, 0.5),
    "conical_pendulum": Case(zoo.conical_pendulum, 0.01, 0.5),
    "fast_pendulum": Case(zoo.fast_pendulum, 0.001, 0.05),
    "mass_spring": Case(zoo.mass_spring, 0.01, 0.5),
    "damped_oscillator": Case(zoo.damped_oscillator, 0.01, 0.5),
    "free_body": Case(zoo.free_body, 0.02, 1.0),
    "t_handle": Case(zoo.t_handle, 0.002, 0.2),
    "heavy_top": Case(zoo.heavy_top, 2e-4, 0.02),
    "spinning_top": Case(zoo.spinning_top, 5e-4, 0.05),
    "three_link_loop": Case(zoo.three_link_loop, 0.01, 0.5),
    "four_bar_chain": Case(zoo.four_bar_chain, 0.005, 0.3),
    "four_bar_chain of 16": Case(lambda: zoo.four_bar_chain(16), 0.005, 0.1),
    "n_four_bar": Case(lambda: zoo.n_four_bar(1), 0.005, 0.5),
    "double_four_bar": Case(zoo.double_four_bar, 0.005, 0.5),
    "n_four_bar of 5": Case(lambda: zoo.n_four_bar(5), 0.005, 0.5),
    "n_link_loop": Case(zoo.n_link_loop, 0.005, 0.3),
    "cart_pole": Case(lambda: zoo.cart_pole(angle=0.5), 0.005, 0.3),
    "cart_pole of 2 links": Case(lambda: zoo.cart_pole(2, angle=0.5), 0.005, 0.3),
    "five_bar": Case(lambda: tilted(zoo.five_bar(damping=0.0)), 0.005, 0.2),
    "slider_crank": Case(zoo.slider_crank, 0.001, 0.1),
    "andrews_squeezer": Case(zoo.andrews_squeezer, 2e-5, 0.002),
    "bricard": Case(zoo.bricard, 0.01, 0.5),
    "curling_finger": Case(zoo.curling_finger, 5e-4, 0.05),
    "cable_finger": Case(lambda: zoo.cable_finger(cable=500.0, rest=0.2, pull=0.002), 1e-4, 0.01),
    "strand_pendulum": Case(zoo.strand_pendulum, 0.001, 0.2),
    "door": Case(lambda: zoo.door(rate=1.0), 0.02, 0.5),
    "door on balls": Case(lambda: zoo.door("spherical", rate=1.0), 0.02, 0.5),
    "solar_panel_satellite": Case(zoo.solar_panel_satellite, 0.05, 1.5, zoo.deployment(duration=3.0)),
    "walker_legs": Case(zoo.walker_legs, 0.02, 0.6, zoo.walker_motion(), determined=False),
    "walker_legs without drives": Case(lambda: zoo.walker_legs(drive=None), 0.005, 0.1),
    "animatronic_figure": Case(zoo.animatronic_figure, 0.02, 0.4, zoo.figure_motion()),
    "animatronic_figure without drives": Case(lambda: zoo.animatronic_figure(drive=None), 0.002, 0.02),
    "character": Case(zoo.character, 0.02, 0.2, zoo.character_motion(), determined=False),
    "exoskeleton": Case(zoo.exoskeleton, 0.001, 0.1, determined=False),
    "redmax_scene": Case(zoo.redmax_scene, 0.002, 0.2),
    "redmax_scene 5": Case(lambda: zoo.redmax_scene(5), 0.002, 0.2),
    "redmax_scene 7": Case(lambda: zoo.redmax_scene(7), 0.001, 0.1),
    "hoberman_sphere": Case(lambda: zoo.hoberman_sphere(opening=1.1, spin=3.0), 0.01, 0.1, slow=True, determined=False),
}


def marked(names: list[str]) -> list:
    return [pytest.param(name, marks=pytest.mark.slow) if CASES[name].slow else name for name in names]


def run(case: Case, formulation: Formulation) -> da.Trajectory:
    sim = da.Simulation(case.make(), formulation)
    for name, target in (case.motion or {}).items():
        sim.set_target(name, target)
    return sim.run(case.duration)


def final(trajectory: da.Trajectory) -> list[np.ndarray]:
    """Poses, velocities, and what the joints transmit, at the end."""
    q = trajectory.orientation[-1]
    turned = q * np.where(q @ np.ones(4) < 0.0, -1.0, 1.0)[:, None]
    joints = [trajectory.joint(name) for name in trajectory.joints]
    return [
        np.concatenate([trajectory.position[-1].ravel(), turned.ravel()]),
        np.concatenate([trajectory.velocity[-1].ravel(), trajectory.angular_velocity[-1].ravel()]),
        np.concatenate([part[-1] for joint in joints for part in (joint.force, joint.torque)] or [np.zeros(1)]),
    ]


def taking(case: Case) -> dict[str, tuple[Callable[[float], Formulation], float]]:
    """The methods with the order that they must show on a mechanism; of many loops, BDF2 stands for all of Reduced."""
    mechanism = case.make()
    loops = loop_count(mechanism) + len(mechanism.couplings) > 0
    left_out = ("reduced bdf1", "reduced sdirk2") if loop_count(mechanism) > 20 else ()
    return {name: (method.make, method.on_loops if loops else method.on_trees) for name, method in METHODS.items() if name not in left_out}


def check(errors: np.ndarray, order: float, scale: np.ndarray | float = 1.0) -> None:
    """Errors (2, quantities) at a step and at half of it fall as the order says."""
    measured = np.log2(np.maximum(errors[0], 1e-300) / np.maximum(errors[1], 1e-300))
    assert np.all((measured > order) | (errors[1] < FLOOR * scale)), (errors, measured)


@pytest.mark.parametrize("name", marked(list(CASES)))
def test_all_formulations_tend_to_one_motion(name):
    """Positions, velocities and joint forces; the exact ones are those of Variational, extrapolated to dt = 0."""
    case = CASES[name]
    coarse, fine = (final(run(case, da.Variational(dt=case.dt / k, tolerance=1e-12))) for k in (8, 16))
    exact = [b + (b - a) / 3.0 for a, b in zip(coarse, fine)]
    # redundant rows share a load to about 1e-7 of it
    scale = np.array([1.0, max(1.0, np.abs(exact[1]).max()), 1e3 * max(1.0, np.abs(exact[2]).max())])
    for method, (make, order) in taking(case).items():
        seen = 3 if method in FORCES and case.determined else 2
        ends = [final(run(case, make(dt)))[:seen] for dt in (case.dt, case.dt / 2)]
        check(np.array([[np.abs(a - b).max() for a, b in zip(end, exact)] for end in ends]), order, scale[:seen])


def reduced(motion: Callable, start: tuple[float, ...], time: float) -> np.ndarray:
    """The end of a motion in reduced coordinates, to 1e-12."""
    return solve_ivp(lambda _, y: motion(y), (0.0, time), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


def swing(trajectory: da.Trajectory) -> float:
    """phi'' = -g sin(phi) from a quarter turn."""
    phi = reduced(lambda y: (y[1], -9.81 * np.sin(y[0])), (-0.5 * np.pi, 0.0), trajectory.time[-1])[0]
    return float(np.abs(trajectory.position[-1, 0, :2] - (np.sin(phi), -np.cos(phi))).max())


def circle(trajectory: da.Trajectory) -> float:
    turned = np.sqrt(9.81 / np.cos(np.pi / 6)) * trajectory.time[-1]
    return float(np.abs(trajectory.position[-1, 0, :2] - 0.5 * np.array([np.cos(turned), np.sin(turned)])).max())


def vibration(damping: float) -> Callable[[da.Trajectory], float]:
    """2 x'' + damping x' + 50 x = 0."""
    def error(trajectory: da.Trajectory) -> float:
        decay, t = damping / 4.0, trajectory.time[-1]
        frequency = np.sqrt(25.0 - decay**2)
        exact = 0.1 * np.exp(-decay * t) * (np.cos(frequency * t) + decay / frequency * np.sin(frequency * t))
        return float(abs(trajectory.joint("slide").coordinates[-1] - exact))

    return error


def spin(inertia: np.ndarray, start: tuple[float, ...]) -> Callable[[da.Trajectory], float]:
    """Euler's equations."""
    def error(trajectory: da.Trajectory) -> float:
        exact = reduced(lambda w: np.cross(inertia * w, w) / inertia, start, trajectory.time[-1])
        return float(np.abs(trajectory.angular_velocity[-1, 0] - exact).max())

    return error


def cranks(n: int) -> Callable[[da.Trajectory], float]:
    """phi'' = g ((n + 1)/2 + n) / ((n + 1)/3 + n) sin(phi) from upright, in every crank."""
    def error(trajectory: da.Trajectory) -> float:
        pull = 9.81 * (0.5 * (n + 1) + n) / ((n + 1) / 3.0 + n)
        exact = reduced(lambda y: (y[1], pull * np.sin(y[0])), (0.0, 1.0), trajectory.time[-1])[0]
        return max(abs(-trajectory.joint(f"ground {i}").coordinates[-1] - exact) for i in range(n + 1))

    return error


def steady(joint: str, rate: float) -> Callable[[da.Trajectory], float]:
    return lambda trajectory: float(abs(trajectory.joint(joint).coordinates[-1] - rate * trajectory.time[-1]))


def opening(trajectory: da.Trajectory) -> float:
    exact = zoo.hoberman_exact(trajectory.time, opening=1.1, spin=3.0)
    return float(np.abs(zoo.hoberman_opening(trajectory.position) - exact).max())


CLOSED_FORMS = {
    "simple_pendulum": swing, "conical_pendulum": circle, "fast_pendulum": steady("hinge", 50.0), "door": steady("lower", 1.0),
    "mass_spring": vibration(0.0), "damped_oscillator": vibration(3.0), "free_body": spin(np.array([1.0, 2.0, 3.0]), (0.3, 0.0, 1.0)),
    "t_handle": spin(np.diag(zoo.t_handle().bodies[0].inertia), (0.01, 0.0, 15.0)),
    "n_four_bar": cranks(1), "double_four_bar": cranks(2), "n_four_bar of 5": cranks(5), "hoberman_sphere": opening,
}


@pytest.mark.parametrize("name", marked(list(CLOSED_FORMS)))
def test_all_formulations_tend_to_the_closed_form(name):
    case, error = CASES[name], CLOSED_FORMS[name]
    for make, order in taking(case).values():
        check(np.array([[error(run(case, make(dt)))] for dt in (case.dt, case.dt / 2)]), order)


def test_none_is_left_out():
    """Everything in the zoo that builds a mechanism without contacts, limits or dry friction, of joints that all formulations take."""
    makers = {name: getattr(zoo, name) for name in zoo.__all__ if name.islower() and not name.startswith(("hoberman_exact", "hoberman_in", "hoberman_op"))}
    built = {}
    for name, make in makers.items():
        try:
            built[name] = make()
        except TypeError:  # not a mechanism: it needs a time, a pose or a simulation
            continue
    free = {name for name, mechanism in built.items() if isinstance(mechanism, da.Mechanism) and not mechanism.touches and all(j.type.has_rows for j in mechanism.joints)}
    assert free <= set(CASES)
    assert len(free) > 20
