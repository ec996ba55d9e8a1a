"""Wrench, K and D of the forces of RedMax section 1.9, against numbers of 50 digits.

Tests the kernels of ``forces`` (laws, bodies, couplings, loads) and of paths in ``model.couplings`` as formulations call them.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from pairs import tangent
from published import problem

import dalembert as da
from dalembert.forces.bodies import add_load_derivatives, push_on_bodies, user_damping
from dalembert.forces.couplings import push_along_paths
from dalembert.forces.laws import coupling_law
from dalembert.forces.loads import evaluate_loads, potential_energy
from dalembert.kernels import kernel
from dalembert.mechanism.mechanism import rotation_matrix
from dalembert.model.couplings import add_path_stiffness
from dalembert.model.placement import Placement
from dalembert.spatial.tuples import load3, load9

FORCES = problem("forces_with_derivatives")
OURS = {c["name"]: c for c in problem("forces_with_derivatives_dalembert")["configurations"]}
GIVEN = {c["name"]: c for c in FORCES["configurations"]}
TOLERANCE = 1e-10


class Found(NamedTuple):
    """Wrench (6 n,), its derivatives by poses and velocities (6 n, 6 n), energy, over all bodies A, B, C."""

    wrench: np.ndarray
    K: np.ndarray
    D: np.ndarray
    energy: float


def bodies(gravity: Any = (0, 0, 0), masses: Any = (1.7, 1.7, 1.7)) -> da.Mechanism:
    """The three bodies of the file at their poses."""
    mechanism = da.Mechanism("forces", gravity=gravity)
    for (name, at), mass in zip(FORCES["bodies"].items(), masses):
        mechanism.body(name, mass=mass, inertia=np.diag([0.11, 0.23, 0.31]), position=at["position"], orientation=at["quaternion"])
    return mechanism


def velocities() -> np.ndarray:
    """(4, 6) linear (world) and angular (body frame), the world last."""
    return np.array([*([*b["velocity_world"], *b["omega_body"]] for b in FORCES["bodies"].values()), np.zeros(6)])


def in_world(mechanism: da.Mechanism, point: Any) -> tuple[Any, np.ndarray]:
    """A point of the file, [body or null, body coordinates], as the builder takes it."""
    body = mechanism.world if point[0] is None else mechanism[point[0]]
    return body, body.position + rotation_matrix(body.orientation) @ np.array(point[1])


@kernel
def load_derivatives(model, work, u, K, D):
    """K and D of the first load."""
    load = model.loads[0]
    body, v = work.bodies[load.body], u[load.body]
    add_load_derivatives(K, D, load, load3(body.x), load9(body.R), load3(v), load3(v[3:]))


@kernel
def law_of_path(model, work):
    """Force, K and D of the first path's law."""
    tie = work.couplings[0]
    return coupling_law(work, model.couplings[0], tie, tie.value, tie.rate)


@kernel
def segment(model, work, number, force, K):
    add_path_stiffness(K, model, work, model.couplings[0], number, force, False)


@kernel
def damping_of_law(model, work, which, D):
    user_damping(model, work, model.loads[0], which, D)


def evaluate(mechanism: da.Mechanism) -> tuple[Any, Any, np.ndarray, float]:
    """Model, work, wrenches of all forces and energy at the file's poses and velocities."""
    placement, u = Placement.of(mechanism), velocities()
    model, work = placement.model, placement.work
    work.velocity[:] = u
    evaluate_loads(model, work)
    push_on_bodies(model, work, u, 1)
    push_along_paths(model, work, u)
    return model, work, work.bodies["load"][:-1].ravel().copy(), float(potential_energy(model, work))


def load(mechanism: da.Mechanism) -> Found:
    """Of the one load of a mechanism."""
    model, work, wrench, energy = evaluate(mechanism)
    K, D = np.zeros((18, 18)), np.zeros((18, 18))
    at = 6 * int(model.loads["body"][0])
    load_derivatives(model, work, velocities(), K[at : at + 6, at : at + 6], D[at : at + 6, at : at + 6])
    return Found(wrench, K, D, energy)


def turning(model: Any, work: Any, force: float) -> np.ndarray:
    """(18, 18) change of the wrenches of a constant force along the first path."""
    total, of = np.zeros((24, 24)), model.points["body"]
    for number in range(len(of) - 1):
        K = np.zeros((12, 12))
        segment(model, work, number, force, K)
        rows = np.concatenate([6 * of[number] + np.arange(6), 6 * of[number + 1] + np.arange(6)])
        np.add.at(total, (rows[:, None], rows[None, :]), K)
    return total[:18, :18]


def path(mechanism: da.Mechanism) -> Found:
    """Of the one path of a mechanism: mu g, with mu a law of the length and of its rate g . u."""
    model, work, wrench, energy = evaluate(mechanism)
    mu, K, D, _ = law_of_path(model, work)
    g = np.zeros((3, 6))
    g[model.ends] = work.ends["G"]
    g = g.ravel()
    by_pose = D * velocities()[:3].ravel() @ turning(model, work, 1.0) + K * g
    return Found(wrench, turning(model, work, mu) + np.outer(g, by_pose), D * np.outer(g, g), energy)


def close(found: Any, expected: Any, tolerance: float = TOLERANCE) -> None:
    """Equal within a share of the largest number."""
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * max(float(np.abs(expected).max()), 1.0))


def compare(found: Found, *names: str) -> None:
    """A force is the sum of configurations of the file."""
    wrench, K, D = np.zeros(18), np.zeros((18, 18)), np.zeros((18, 18))
    for name in names:
        entry = OURS[name]
        rows = np.concatenate([6 * "ABC".index(b) + np.arange(6) for b in entry["bodies"]])
        wrench[rows] += entry["wrench"]
        K[np.ix_(rows, rows)] += entry["K"]
        D[np.ix_(rows, rows)] += entry["D"]
    for got, expected in zip(found, (wrench, K, D)):
        close(got, expected)
    close(found.energy, GIVEN[names[0]].get("energy", 0.0))


def test_gravity() -> None:
    p = GIVEN["gravity"]["parameters"]
    mechanism = bodies(p["gravity_world"], (1e-30, p["mass"], 1e-30))
    _, _, wrench, energy = evaluate(mechanism)
    compare(Found(wrench, np.zeros((18, 18)), np.zeros((18, 18)), energy), "gravity")


def test_drag() -> None:
    mechanism = bodies()
    d = GIVEN["damping"]["parameters"]["d"]
    mechanism.drag("drag", "A", linear=d, angular=d)
    compare(load(mechanism), "damping")


def test_a_force_at_a_point() -> None:
    mechanism, p = bodies(), GIVEN["directional_point_force"]["parameters"]
    body, at = in_world(mechanism, [p["body"], p["point"]])
    mechanism.force("push", body, p["k"] * np.array(p["direction_world"]), at=at)
    compare(load(mechanism), "directional_point_force")


@pytest.mark.parametrize("branch", ["static", "dynamic"])
def test_penalty_contact(branch: str) -> None:
    mechanism, p = bodies(), GIVEN[f"contact_friction_{branch}"]["parameters"]
    mechanism.penalty(
        "floor", p["body"], point=p["point"], normal=p["normal"], offset=float(np.dot(p["normal"], p["ground_point"])), stiffness=p["kn"],
        damping=p["kd"], friction=p["mu"], tangential=p["kt"],
    )
    compare(load(mechanism), "contact_normal", f"contact_friction_{branch}")


def test_penalty_contact_that_is_open() -> None:
    mechanism, p = bodies(), GIVEN["contact_normal"]["parameters"]
    offset = float(np.dot(p["normal"], [*p["ground_point"][:2], 0.7]))
    mechanism.penalty("floor", p["body"], point=p["point"], normal=p["normal"], offset=offset, stiffness=p["kn"], damping=p["kd"], friction=p["mu"])
    assert not any(np.any(part) for part in load(mechanism))


def through(name: str, law: Any = None, **laws: Any) -> Found:
    """A path through the points of a configuration, with the tension and length that the file gives."""
    mechanism, given = bodies(), GIVEN[name]
    points = [in_world(mechanism, point) for point in given["parameters"]["points"]]
    if laws.pop("pulls", False):
        mechanism.cable("line", points, **laws)
    else:
        mechanism.path("line", points, law=law, **laws)
    model, work, _, _ = evaluate(mechanism)
    mu = law_of_path(model, work)[0]
    scalars = given["scalars"]
    close([work.couplings["value"][0], work.couplings["rate"][0], -mu], [scalars["length"], scalars["length_rate"], scalars["tension"]])
    return path(mechanism)


@pytest.mark.parametrize("name", ["generic_spring", "via_point_spring"])
def test_a_law_of_length_and_rate(name: str) -> None:
    p = GIVEN[name]["parameters"]

    def law(length: float, rate: float) -> tuple[float, float, float, float]:
        e, k1, k3, d1, d2 = length - p["l0"], p["k1"], p["k3"], p["d1"], p["d2"]
        energy = k1 * e**2 / 2 + k3 * e**4 / 4
        return k1 * e + k3 * e**3 + d1 * rate + d2 * e * rate, k1 + 3 * k3 * e**2 + d2 * rate, d1 + d2 * e, energy

    compare(through(name, law), name)


@pytest.mark.parametrize("name", ["spring_damper", "spring_damper_world"])
def test_springs_and_dampers(name: str) -> None:
    """The file's gains are per strain: ours are those over the rest length."""
    p = GIVEN[name]["parameters"]
    compare(through(name, stiffness=p["k"] / p["L"], damping=p["d"] / p["L"], length=p["L"]), name)


def test_a_cable() -> None:
    taut, slack = GIVEN["cable_taut"]["parameters"], GIVEN["cable_slack"]["parameters"]
    compare(through("cable_taut", stiffness=taut["k"] / taut["L"], damping=taut["d"] / taut["L"], length=taut["L"], pulls=True), "cable_taut")
    found = through("cable_slack", stiffness=slack["k"] / slack["L"], damping=slack["d"] / slack["L"], length=slack["L"], pulls=True)
    assert not any(np.any(part) for part in found)


@pytest.mark.parametrize("name", ["point_to_point", "point_to_point_world"])
def test_a_force_law_between_two_points(name: str) -> None:
    """No element of its own, but a user's law. Its D, one body at a time, comes by differences, to seven digits."""
    mechanism, p = bodies(), GIVEN[name]["parameters"]
    ends = [p["point_1"], p["point_2"]]
    owners = [body for body, _ in ends if body is not None]

    def between(position: np.ndarray, orientation: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        x, v, turns = [], [], [rotation_matrix(q) for q in orientation]
        for body, point in ends:
            if body is None:
                x.append(np.array(point))
                v.append(np.zeros(3))
            else:
                k = owners.index(body)
                x.append(position[k] + turns[k] @ point)
                v.append(velocity[k, :3] + turns[k] @ np.cross(velocity[k, 3:], point))
        force = p["ks"] * (x[1] - x[0]) + p["kd"] * (v[1] - v[0])
        wrench = np.zeros((len(owners), 6))
        for (body, point), sign in zip(ends, (1.0, -1.0)):
            if body is not None:
                k = owners.index(body)
                wrench[k] += [*(sign * force), *np.cross(point, turns[k].T @ (sign * force))]
        return wrench

    mechanism.force_law("tie", owners, between)
    model, work, wrench, _ = evaluate(mechanism)
    rows = np.concatenate([6 * "ABC".index(b) + np.arange(6) for b in owners])
    close(wrench[rows], OURS[name]["wrench"])
    for which in range(len(owners)):
        D, own = np.zeros((6, 6)), slice(6 * which, 6 * which + 6)
        damping_of_law(model, work, which, D)
        close(D, np.array(OURS[name]["D"])[own, own], 1e-7)


@pytest.mark.parametrize("name", ["generic_spring", "via_point_spring", "spring_damper_world", "cable_taut"])
def test_the_stiffness_of_a_path_by_differences(name: str) -> None:
    """``add_path_stiffness`` alone, for a force that stays as it is."""
    mechanism = bodies()
    mechanism.path("line", [in_world(mechanism, point) for point in GIVEN[name]["parameters"]["points"]])
    placement, step = Placement.of(mechanism), 1e-6
    model, work = placement.model, placement.work
    exact = turning(model, work, -3.0)
    x, q = work.bodies["x"][:-1].copy(), work.bodies["q"][:-1].copy()
    for column in range(18):
        body, direction = divmod(column, 6)
        ends = []
        for sign in (1.0, -1.0):
            moved, turned, delta = x.copy(), q.copy(), sign * step * np.eye(6)[direction]
            moved[body] += delta[:3]
            turned[body] = tangent(q[body], delta[3:])
            placement.put(moved, turned)
            g = np.zeros((3, 6))
            g[model.ends] = work.ends["G"]
            ends.append(-3.0 * g.ravel())
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), exact[:, column], atol=1e-8)
