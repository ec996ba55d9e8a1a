"""The scenes of the RedMax code: energies and states of BDF1 and BDF2 in its joint coordinates, exact motions in all formulations."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from published import problem
from scipy.spatial.transform import Rotation

import dalembert as da

REDMAX = problem("redmax_scenes")
SCENES: dict[int, dict[str, Any]] = {scene["id"]: scene for scene in REDMAX["scenes"]}
#: scenes whose rotations have one angle each: our coordinates are the file's
SAME_COORDINATES = [0, 1, 3, 5, 6, 10, 12]


def joints(scene: dict[str, Any]) -> list[str]:
    """Names of the joints with coordinates, in the file's order."""
    return [f"joint {body['body']}" for body in scene["bodies"] if "q0" in body]


def final(run: da.Trajectory, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and rates at the end."""
    series = [run.joint(name) for name in names]
    return tuple(np.concatenate([np.atleast_1d(values[-1]) for values in found]) for found in ([s.coordinates for s in series], [s.rates for s in series]))  # type: ignore[return-value]


def energy(run: da.Trajectory) -> float:
    """T + V at the end, with V = 0 at the start."""
    return float(run.energy().total[-1] - run.energy().potential[0])


@pytest.mark.parametrize("number", SCENES)
@pytest.mark.parametrize("formulation", [da.Variational(dt=0.01), da.Implicit(dt=0.01), da.Reduced(dt=0.01)], ids=lambda f: type(f).__name__)
def test_scenes_start_where_the_file_says(number, formulation):
    scene = SCENES[number]
    simulation = da.Simulation(da.zoo.redmax_scene(number), formulation)
    np.testing.assert_allclose(simulation.position, scene["com_at_start"], atol=1e-10)
    assert simulation.energies()[1] == pytest.approx(scene["T0"], rel=1e-11, abs=1e-8)


def test_the_study_has_the_numbers_of_the_file():
    from dalembert.studies.redmax.reference_energies import SCENES as STUDIED

    assert set(STUDIED) == set(SCENES)
    for number, studied in STUDIED.items():
        scene = SCENES[number]
        assert (studied.step, studied.duration, studied.start, studied.bdf1) == (scene["h"], scene["t_end"], scene["T0"], scene["bdf1"]["H_expected"])
        assert studied.bdf2 in (None, scene["bdf2"]["H_expected"])


@pytest.mark.parametrize("method", ["bdf1", "bdf2"])
@pytest.mark.parametrize("number", SAME_COORDINATES)
def test_energies_and_states_of_the_redmax_code(number, method):
    scene = SCENES[number]
    expected = scene[method]
    run = da.Simulation(da.zoo.redmax_scene(number), da.Reduced(dt=scene["h"], method=method, tolerance=1e-12), energy_bound=None).run(scene["t_end"])
    assert len(run) == scene["steps"] + 1
    scale = max(abs(expected["H_own"]), scene["T0"], 1.0)
    assert abs(energy(run) - expected["H_own"]) < 1e-10 * scale
    assert abs(energy(run) - expected["H_expected"]) < 1e-7 * scale
    q, rate = final(run, joints(scene))
    np.testing.assert_allclose(q, expected["q_final"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(rate, expected["qdot_final"], rtol=1e-9, atol=1e-9)
    if "H_own_at_h_half" in expected:
        half = da.Simulation(da.zoo.redmax_scene(number), da.Reduced(dt=scene["h"] / 2, method=method, tolerance=1e-12), energy_bound=None).run(scene["t_end"])
        assert abs(energy(half) - expected["H_own_at_h_half"]) < 1e-9 * scale


def turned(chart: str, angles: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotation vector and angular velocity (parent's axes) of intrinsic Euler angles and their rates."""
    so_far, spin = Rotation.identity(), np.zeros(3)
    for axis, angle, rate in zip(chart, angles, rates):
        spin += so_far.apply(rate * np.eye(3)["xyz".index(axis)])
        so_far = so_far * Rotation.from_euler(axis, angle)
    return so_far.as_rotvec(), spin


@pytest.mark.parametrize("method", ["bdf1", "bdf2"])
@pytest.mark.parametrize("number", [7, 9])
def test_energies_and_states_in_the_charts_that_the_file_names(number, method):
    """x-y-z; body 2 of scene 7 leaves it twice in BDF2, and ends in y-x-z."""
    scene = SCENES[number]
    expected, names = scene[method], joints(scene)
    formulation = da.Reduced(dt=scene["h"], method=method, tolerance=1e-12, rotations="xyz", switch_charts=True)
    run = da.Simulation(da.zoo.redmax_scene(number), formulation, energy_bound=None).run(scene["t_end"])
    scale = max(abs(expected["H_own"]), scene["T0"], 1.0)
    assert abs(energy(run) - expected["H_own"]) < 1e-10 * scale
    assert abs(energy(run) - expected["H_expected"]) < 1e-7 * scale
    for place, name in enumerate(names):
        joint, size = run.joint(name), run.joint(name).coordinates.shape[1]
        part = slice(size * place, size * (place + 1))
        chart = "yxz" if (number, method, place) == (7, "bdf2", 1) else "xyz"
        vector, spin = turned(chart, expected["q_final"][part][-3:], expected["qdot_final"][part][-3:])
        reached = Rotation.from_rotvec(joint.coordinates[-1, -3:])
        assert (reached.inv() * Rotation.from_rotvec(vector)).magnitude() < 1e-9
        np.testing.assert_allclose(joint.rates[-1, -3:], spin, atol=2e-8)


def test_scene_7_in_one_chart():
    """The file's number for x-y-z throughout."""
    scene = SCENES[7]
    run = da.Simulation(da.zoo.redmax_scene(7), da.Reduced(dt=scene["h"], tolerance=1e-12, rotations="xyz")).run(scene["t_end"])
    assert energy(run) == pytest.approx(8664.806084965, rel=1e-11)


def test_the_box_on_soft_ground_comes_to_rest():
    """BDF1 forgets the way: the energy of four corners that carry the weight."""
    scene = SCENES[11]
    run = da.Simulation(da.zoo.redmax_scene(11), da.Reduced(dt=scene["h"], method="bdf1")).run(scene["t_end"])
    assert energy(run) == pytest.approx(scene["bdf1"]["H_own"], rel=1e-7)


FORMULATIONS = {
    "variational": lambda dt: da.Variational(dt=dt, tolerance=1e-12),
    "implicit bdf2": lambda dt: da.Implicit(dt=dt),
    "reduced bdf2": lambda dt: da.Reduced(dt=dt, tolerance=1e-12),
    "reduced sdirk2": lambda dt: da.Reduced(dt=dt, method="sdirk2", tolerance=1e-12),
    "reduced pareschi_russo": lambda dt: da.Reduced(dt=dt, method="pareschi_russo", tolerance=1e-12),
}


#: parts of the file's step at which errors are asymptotic
PARTS = {0: 64, 10: 256}
#: the undamped spring of scene 10 asks more of methods that damp
STIFF = {"implicit bdf2": 1024, "reduced bdf2": 1024}


def small_step_cases() -> list:
    cases = []
    for number in SCENES:
        if number != 11:
            for name in FORMULATIONS:
                parts = STIFF.get(name, 256) if number == 10 else PARTS.get(number, 32)
                cases.append(pytest.param(number, name, parts, marks=[pytest.mark.slow] if parts > 500 else []))
    return cases


@pytest.mark.parametrize(("number", "name", "parts"), small_step_cases())
def test_small_steps_tend_to_the_exact_motion(number, name, parts):
    """Second order in positions and rates."""
    scene = SCENES[number]
    exact, names = scene["exact"], joints(scene)
    errors = []
    for part in (parts, 2 * parts):
        run = da.Simulation(da.zoo.redmax_scene(number), FORMULATIONS[name](scene["h"] / part), energy_bound=None).run(scene["t_end"])
        error = [np.abs(run.position[-1] - exact["com"]).max()]
        if number not in (7, 9):  # rates there are those of Euler angles
            error.append(np.abs(final(run, names)[1] - exact["qdot"]).max())
        errors.append(error)
    errors = np.array(errors)
    size = max(1.0, np.abs(exact["com"]).max())
    assert np.all((np.log2(errors[0] / errors[1]) > 1.85) | (errors[1] < 1e-9 * size)), (errors, np.log2(errors[0] / errors[1]))
    assert errors[1, 0] < 1e-3 * size


@pytest.mark.parametrize("point", REDMAX["gradient_of_a_task"]["points"], ids=lambda point: str(point["p"]))
def test_the_task_of_the_redmax_code(point):
    """Stiff joints, constant torques, BDF1: where the tip is in the end."""
    task = REDMAX["gradient_of_a_task"]
    sim = da.Simulation(da.zoo.redmax_scene(100, drive="force"), da.Reduced(dt=0.01, method="bdf1", tolerance=1e-12))
    for name, push in zip(("joint 1", "joint 2"), point["p"]):
        sim.set_input(name, 1e5 * push)
    run = sim.run(1.0, tape=True)
    tip = run.point("body 2", (5.0, 0.0, 0.0))[-1]
    np.testing.assert_allclose(tip, point["tip"], rtol=1e-9, atol=1e-9)
    q, rate = final(run, ["joint 1", "joint 2"])
    np.testing.assert_allclose(q, point["q_final"], rtol=1e-9)
    np.testing.assert_allclose(rate, point["qdot_final"], rtol=1e-8)
    missed = tip - task["target"]
    assert 0.005 * np.sum(np.square(point["p"])) + 50.0 * missed @ missed == pytest.approx(point["Psi"], rel=1e-9)
    # the gradient: the tip moves with the body, and turns about its centre of mass
    last = sim.mechanism["body 2"].index
    position, turn = np.zeros_like(run.position), np.zeros_like(run.position)
    position[-1, last] = 100.0 * missed
    turn[-1, last] = np.cross((5.0, 0.0, 0.0), Rotation.from_quat(run.orientation[-1, last], scalar_first=True).inv().apply(100.0 * missed))
    names = ["joint 1", "joint 2"]
    found = run.vjp({"position": position, "orientation": turn}, [f"{name}.{what}" for name in names for what in ("input", "start", "start_rate")])
    by_torque = [1e5 * found[f"{name}.input"].sum() + 0.01 * push for name, push in zip(names, point["p"])]
    for ours, theirs in ((by_torque, "dPsi_dp"), ([found[f"{name}.start"] for name in names], "dPsi_dq0"), ([found[f"{name}.start_rate"] for name in names], "dPsi_dqdot0")):
        np.testing.assert_allclose(ours, point[theirs], rtol=0.0, atol=1e-7 * np.abs(point[theirs]).max())
