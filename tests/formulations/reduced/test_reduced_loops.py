"""Loops, springs between bodies and cables in joint coordinates: closed to rounding, and one motion with `Implicit` as the step shrinks."""
import numpy as np
import pytest

import dalembert as da


def spring_pair() -> da.Mechanism:
    """Two bars with a stiff spring between them."""
    mechanism = da.Mechanism("bars on a spring")
    upper, lower = (mechanism.body(name, da.Box(size=[1.0, 0.1, 0.1], mass=1.0), position=[x, 0.0, 0.0]) for name, x in (("upper", 0.5), ("lower", 1.5)))
    mechanism.joint("hip", da.Revolute(axis="y"), mechanism.world, upper)
    mechanism.joint("knee", da.Spherical(), upper, lower, at=[1.0, 0.0, 0.0])
    mechanism.spring("spring", upper, lower, at=([0.0, 0.0, 0.2], [0.0, 0.0, 1.2]), stiffness=1e5, damping=10.0)
    return mechanism


def ball_in_a_loop() -> da.Mechanism:
    """Two bars whose end glides on a plane and turns against springs and dampers of a free rotation."""
    mechanism = da.Mechanism("bars on a plane")
    upper, lower = (mechanism.body(name, da.Box(size=[1.0, 0.1, 0.1], mass=1.0), position=[x, 0.0, 0.0]) for name, x in (("upper", 0.5), ("lower", 1.5)))
    mechanism.joint("hip", da.Revolute(axis="y"), mechanism.world, upper)
    mechanism.joint("knee", da.Spherical(), upper, lower, at=[1.0, 0.0, 0.0])
    laws: dict[str, list[float]] = dict(stiffness=[0.0, 0.0, 2.0, 3.0, 4.0], damping=[0.0, 0.0, 0.5, 0.5, 0.5])
    mechanism.joint("foot", da.PlanarFreeOrientation(normal="y", **laws), mechanism.world, lower, at=[2.0, 0.0, 0.0])  # pyright: ignore[reportArgumentType]
    return mechanism


LOOPS = {
    "four-bar chain": lambda: da.zoo.four_bar_chain(3), "double four-bar": da.zoo.double_four_bar, "Bricard": da.zoo.bricard,
    "slider-crank": da.zoo.slider_crank, "three links": da.zoo.three_link_loop, "spring": spring_pair, "ball": ball_in_a_loop,
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_close_and_agree_with_maximal_coordinates(name):
    mechanism, differences = LOOPS[name](), []
    for dt in (0.002, 0.001):
        runs = [da.Simulation(mechanism, formulation).run(0.3) for formulation in (da.Reduced(dt=dt), da.Implicit(dt=dt))]
        assert np.abs(runs[0].constraint_violation()).max() < 1e-12
        differences.append(np.abs(runs[0].position[::2 if dt == 0.001 else 1] - runs[1].position[::2 if dt == 0.001 else 1]).max())
    assert differences[1] < max(differences[0] / 3.0, 1e-10)


def test_stiff_cable_takes_few_iterations_and_never_pushes():
    mechanism = da.Mechanism("cable through a chain")
    before = mechanism.world
    for i in range(30):
        link = mechanism.body(f"link {i}", da.Box(size=[1.0, 0.1, 0.1], mass=1.0), position=[0.5 + i, 0.0, 0.0])
        mechanism.joint(f"hinge {i}", da.Revolute(axis="y"), before, link, at=[i, 0.0, 0.0])
        before = link
    points = [("world", [0.0, 0.0, 1.0])] + [(f"link {i}", [i + 0.5, 0.0, 0.3]) for i in (5, 12, 20)]
    mechanism.cable("cable", points, stiffness=1e6, damping=100.0)
    run = da.Simulation(mechanism, da.Reduced(dt=0.01)).run(2.0)
    assert run.iterations[1:].mean() < 6.0
    assert run.path("cable").tension.min() >= -1e-9
