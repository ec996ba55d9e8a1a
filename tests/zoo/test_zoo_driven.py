"""The driven mechanisms: their counts and classes (Quaternion, tables 4 and 5), and that their motions run as they were planned."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert import zoo
from dalembert.model.placement import Placement
from dalembert.model.topology import loop_count

FORMULATIONS = {"variational": da.Variational(dt=0.01), "bdf2": da.Implicit(dt=0.01, method="bdf2")}


class Counts(NamedTuple):
    """What makes a mechanism the class that it is. ``freedom``: velocities that the passive joints leave; ``left``: with all drives held."""

    bodies: int
    joints: int
    loops: int
    rows: int
    redundant: int
    freedom: int
    drives: int
    left: int


def rank(rows: list[np.ndarray], lengths: np.ndarray) -> int:
    """Of rows of unit length, rotations measured by the way that they move a body's mass; there must be a gap to decide it."""
    scaled = np.array(rows) / lengths
    unit = scaled / np.linalg.norm(scaled, axis=1)[:, None]
    squares = np.linalg.eigvalsh(unit.T @ unit)  # of the singular values
    assert not np.any((squares > 1e-13) & (squares < 1e-8)), "the rank is not clear"
    return int(np.count_nonzero(squares > 1e-10))


def count(mechanism: da.Mechanism) -> Counts:
    """Counts of a mechanism whose motion drives are held, in its reference pose. ``redundant``: of all rows, drives included."""
    placement = Placement.of(mechanism)
    size = len(mechanism.bodies)
    lengths = np.ones((size, 6))
    lengths[:, 3:] = [[np.sqrt(np.trace(b.inertia) / b.mass)] * 3 for b in mechanism.bodies]
    passive, driven = [], []
    for joint, at in zip(placement.model.joints, placement.work.joints):
        for k in range(int(joint["locks"])):
            row = np.zeros((size + 1, 6))
            row[joint["parent"]] += at["Gp"][k]
            row[joint["child"]] += at["Gc"][k]
            (passive if joint["row_direction"][k] < 0 else driven).append(row[:size].ravel())
    held, holding = rank(passive, lengths.ravel()), rank(passive + driven, lengths.ravel())
    rows = len(passive) + len(driven)
    return Counts(size, len(mechanism.joints), loop_count(mechanism), rows, rows - holding, 6 * size - held, len(driven), 6 * size - holding)


def follow(mechanism: da.Mechanism, motion: dict[str, Callable[[float], float]], formulation, duration: float) -> da.Trajectory:
    simulation = da.Simulation(mechanism, formulation)
    for name, target in motion.items():
        simulation.set_target(name, target)
    return simulation.run(duration)


@pytest.mark.parametrize(("make", "counts"), [
    # seven drives for one internal freedom; the six of flight stay free; 36 redundant rows of planar loops and 6 of drives
    (zoo.solar_panel_satellite, Counts(bodies=26, joints=37, loops=12, rows=192, redundant=42, freedom=7, drives=7, left=6)),
    # eight drives for the six freedoms of the pelvis; 6 redundant rows of planar loops and 2 of drives
    (zoo.walker_legs, Counts(bodies=38, joints=45, loops=7, rows=236, redundant=8, freedom=6, drives=8, left=0)),
    # fourteen drives more above the pelvis
    (zoo.character, Counts(bodies=38, joints=45, loops=7, rows=236, redundant=8, freedom=20, drives=22, left=0)),
    # as many drives as freedoms; all redundant rows are those of planar loops
    (zoo.animatronic_figure, Counts(bodies=151, joints=198, loops=47, rows=982, redundant=76, freedom=27, drives=27, left=0)),
], ids=["satellite", "walker", "character", "figure"])
def test_counts(make: Callable[[], da.Mechanism], counts: Counts) -> None:
    assert count(make()) == counts


@pytest.mark.parametrize(("make", "motion"), [
    (zoo.solar_panel_satellite, zoo.deployment()), (zoo.walker_legs, zoo.walker_motion()), (zoo.character, zoo.character_motion()),
    (zoo.animatronic_figure, zoo.figure_motion()),
], ids=["satellite", "walker", "character", "figure"])
def test_motions_start_from_rest_and_name_every_drive(make: Callable[[], da.Mechanism], motion: dict[str, Callable[[float], float]]) -> None:
    assert set(motion) == {j.name for j in make().joints if "motion" in j.type.drive}  # type: ignore[operator]
    for target in motion.values():
        assert abs(target(0.0)) < 1e-15
        assert abs(target(1e-3)) < 1e-9
        assert max(abs(target(t)) for t in np.linspace(0.0, 5.0, 51)) > 1e-3


@pytest.mark.parametrize("name", FORMULATIONS)
def test_satellite_unfolds_and_keeps_its_momentum(name: str) -> None:
    satellite, design = zoo.solar_panel_satellite(), zoo.SatelliteDesign()
    trajectory = follow(satellite, zoo.deployment(duration=3.0), FORMULATIONS[name], 3.1)
    assert trajectory.constraint_violation().max() < 1e-10
    masses = np.array([b.mass for b in satellite.bodies])
    center = np.einsum("n,tnc->tc", masses, trajectory.position) / masses.sum()
    np.testing.assert_allclose(center, np.broadcast_to(center[0], center.shape), atol=1e-9)
    opened = 2.0 * (design.stowed - design.deployed)
    for k in range(1, design.panels):  # passive hinges too
        assert trajectory.joint(f"hinge {k}").coordinates[-1] == pytest.approx(opened if k % 2 else -opened, abs=1e-9)
    first, last = (trajectory.body(f"panel {k}") for k in (1, design.panels))
    apart = np.linalg.norm(last.position[-1] - first.position[-1])
    assert apart == pytest.approx((design.panels - 1) * design.panel_length * np.cos(design.deployed), abs=1e-9)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_pelvis_dances_as_planned(name: str) -> None:
    walker = zoo.walker_legs()
    trajectory = follow(walker, zoo.walker_motion(), FORMULATIONS[name], 2.0)
    assert trajectory.constraint_violation().max() < 1e-10
    pelvis = trajectory.body("pelvis")
    places, turns = (np.array(part) for part in zip(*(zoo.dance(t) for t in trajectory.time)))
    assert np.ptp(places, axis=0).min() > 0.05
    np.testing.assert_allclose(pelvis.position, walker["pelvis"].position + places, atol=1e-9)
    reached = Rotation.from_quat(pelvis.orientation, scalar_first=True).as_matrix()
    np.testing.assert_allclose(reached, turns, atol=1e-9)


def test_the_character_dances_and_its_upper_body_alone_does_the_same() -> None:
    motion = zoo.character_motion()
    whole = follow(zoo.character(), motion, FORMULATIONS["bdf2"], 1.5)
    assert whole.constraint_violation().max() < 1e-10
    assert np.ptp(whole.body("head").position, axis=0).min() > 0.05
    sim = da.Simulation(zoo.character(legs=False), FORMULATIONS["bdf2"])
    sim.follow("lead", whole, "pelvis")
    for name in motion:
        if name in sim.mechanism:
            sim.set_target(name, motion[name])
    alone = sim.run(1.5)
    for name in ("head", "left forearm", "right forearm"):
        np.testing.assert_allclose(alone.body(name).position, whole.body(name).position, atol=1e-8)


@pytest.mark.parametrize(("passive", "freedom"), [(("left ankle drive", "right hip roll"), 0), (("neck pitch", "left elbow"), 2), (tuple(zoo.character_motion()), 20)])
def test_any_drives_of_the_character_may_be_passive(passive: tuple[str, ...], freedom: int) -> None:
    mechanism = zoo.character(passive=passive)
    assert count(mechanism).left == freedom
    trajectory = da.Simulation(mechanism, da.Implicit(dt=0.01)).run(0.05)
    assert trajectory.constraint_violation().max() < 1e-10


def test_walker_takes_steps_of_a_tenth_of_a_second() -> None:
    trajectory = follow(zoo.walker_legs(), zoo.walker_motion(), da.Implicit(dt=0.1, method="bdf2"), 3.0)
    assert np.all(trajectory.substeps[1:] == 1)
    assert trajectory.constraint_violation().max() < 1e-10


@pytest.mark.parametrize("design", [zoo.WalkerDesign(shank=0.45, thigh=0.40, knee_bend=0.5), zoo.WalkerDesign(spacing=0.3, hip_drop=0.0)])
def test_walker_of_another_design(design: zoo.WalkerDesign) -> None:
    trajectory = follow(zoo.walker_legs(design), zoo.walker_motion(design=design), FORMULATIONS["bdf2"], 1.0)
    assert trajectory.constraint_violation().max() < 1e-10


@pytest.mark.parametrize("name", [
    "variational",
    "bdf2",
])
def test_figure_performs(name: str) -> None:
    figure = zoo.animatronic_figure()
    masses = [b.mass for b in figure.bodies]
    assert (min(masses), max(masses)) == (3e-4, 49.2)
    trajectory = follow(figure, zoo.figure_motion(), FORMULATIONS[name], 2.0)
    assert trajectory.constraint_violation().max() < 1e-10
    for side in ("left", "right"):
        foot = trajectory.body(f"{side} foot").orientation
        np.testing.assert_allclose(np.abs(foot), np.broadcast_to((1.0, 0.0, 0.0, 0.0), foot.shape), atol=1e-9)
        bends = [trajectory.joint(f"{side} {finger} third knuckle").coordinates for finger in ("index", "middle", "ring", "little")]
        assert np.max(bends[0]) > 0.25
        np.testing.assert_allclose(bends, np.broadcast_to(bends[0], np.shape(bends)), atol=1e-9)


@pytest.mark.parametrize("drive", ["force", None])
@pytest.mark.parametrize("make", [zoo.solar_panel_satellite, zoo.walker_legs, zoo.character, zoo.animatronic_figure])
def test_without_motion_drives_it_is_free(make: Callable[..., da.Mechanism], drive: str | None) -> None:
    mechanism = make(drive=drive)
    kinds = [kind for joint in mechanism.joints for kind in joint.type.drive]  # type: ignore[union-attr]
    assert kinds.count("motion") == 0
    assert (kinds.count("force") > 0) == (drive == "force")


def test_fast_pendulum_turns_steadily() -> None:
    trajectory = da.Simulation(zoo.fast_pendulum(30.0), da.Variational(dt=1e-3)).run(1.0)
    np.testing.assert_allclose(trajectory.joint("hinge").coordinates, 30.0 * trajectory.time, atol=5e-3)
    assert trajectory.constraint_violation().max() < 1e-10
    flight = da.Simulation(zoo.fast_pendulum(30.0, pinned=False), da.Variational(dt=1e-3)).run(0.1)
    np.testing.assert_allclose(flight.position[-1, 0], (0.5, 0.0, -1.5), atol=1e-9)


@pytest.mark.parametrize("make", [
    lambda: zoo.SatelliteDesign(panels=1), lambda: zoo.SatelliteDesign(stowed=0.1), lambda: zoo.SatelliteDesign(swing_reach=0.0),
    lambda: zoo.walker_drives((0.0, 0.0, 0.3), np.eye(3)), lambda: zoo.character(passive=("tail",)), lambda: zoo.walker_legs(passive=("neck yaw",)),
])
def test_impossible_designs_are_named(make: Callable[[], object]) -> None:
    with pytest.raises(da.ModelError):
        make()


@pytest.mark.parametrize("formulation", [da.Variational(dt=0.01), da.Implicit(dt=0.01), da.Reduced(dt=0.01)], ids=lambda f: type(f).__name__)
def test_exoskeleton_leads_the_arm(formulation) -> None:
    """Its motors follow, the cuffs take the arm along, and a stiff elbow asks more of them than a healthy one."""
    torque = {}
    for patient in ("healthy", "spastic"):
        sim = da.Simulation(zoo.exoskeleton(patient=patient), formulation)
        for motor, law in zoo.exoskeleton_tracking().items():
            sim.set_input(motor, law)
        run = sim.run(6.0)
        wanted = np.array([zoo.exoskeleton_aims(t) for t in run.time])
        for k, motor in enumerate(("flexion", "elbow")):
            assert np.abs(run.joint(motor).coordinates - wanted[:, k]).max() < 0.15
        assert np.abs(run.joint("arm elbow").coordinates - run.joint("elbow").coordinates).max() < 0.25
        assert run.constraint_violation().max() < 1e-9
        torque[patient] = np.abs(run.joint("elbow").actuation).max()
    assert torque["spastic"] > 1.2 * torque["healthy"]
