"""Gaps of every kind of contact: gradients by finite differences, and distances against an oracle that did not produce them."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.contact.features import corners
from dalembert.contact.geometry import at_end, at_knot
from dalembert.contact.narrow import find_features
from dalembert.formulations.variational.contact_engine import ContactEngine
from dalembert.mechanism.shapes import Shape

SHAPES = {
    "sphere": da.Sphere(radius=0.2, mass=1.0),
    "capsule": da.Capsule(radius=0.1, length=0.3, mass=1.0, axis=(1, 2, 2)),
    "cylinder": da.Cylinder(radius=0.15, length=0.3, mass=1.0, axis="x"),
    "cone": da.Cone(radius=0.15, length=0.3, mass=1.0, axis=(2, -1, 2)),
    "ellipsoid": da.Ellipsoid(semi_axes=(0.1, 0.2, 0.3), mass=1.0),
    "box": da.Box(size=(0.2, 0.3, 0.4), mass=1.0),
    "hull": da.Convex(points=np.random.default_rng(2).normal(size=(12, 3)) * 0.2, mass=1.0),
    "composite": da.Composite(parts=[(da.Sphere(radius=0.1, mass=1.0), (0.2, 0, 0)), (da.Box(size=(0.1, 0.2, 0.1), mass=1.0), (-0.1, 0, 0.1), (1, 0.3, 0, 0.2))]),
}
CONVEX = ("sphere", "capsule", "cylinder", "cone", "ellipsoid", "box", "hull")
PAIRS = [(a, b) for i, a in enumerate(CONVEX) for b in CONVEX[i:]]


def contact_engine(mechanism: da.Mechanism, formulation: da.Variational) -> ContactEngine:
    """An engine whose work stands at the start."""
    simulation = da.Simulation(mechanism, formulation)
    engine = simulation._engine
    assert isinstance(engine, ContactEngine)
    engine.overlaps(simulation.state.numbers)
    return engine


def surface(shape: Shape, count: int = 4000) -> np.ndarray:
    """Points of a shape whose hull is the shape, from its definition alone."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=(count, 3))
    u /= np.linalg.norm(u, axis=1)[:, None]
    if isinstance(shape, da.Composite):
        parts = []
        for part, where, orientation in shape.parts:
            turned = Rotation.from_quat(orientation, scalar_first=True).apply(surface(part))
            parts.append(turned + where - shape.center_of_mass)
        return np.concatenate(parts)
    if isinstance(shape, da.Sphere):
        return shape.radius * u
    if isinstance(shape, da.Ellipsoid):
        return np.asarray(shape.semi_axes) * u
    if isinstance(shape, da.Capsule):
        half = 0.5 * shape.length * np.asarray(shape.axis, dtype=float)
        return np.concatenate([shape.radius * u + half, shape.radius * u - half])
    if isinstance(shape, da.Cylinder):
        axis = np.asarray(shape.axis, dtype=float)
        across = u - np.outer(u @ axis, axis)
        across *= shape.radius / np.linalg.norm(across, axis=1)[:, None]
        return np.concatenate([across + 0.5 * shape.length * axis, across - 0.5 * shape.length * axis])
    if isinstance(shape, da.Cone):
        axis = np.asarray(shape.axis, dtype=float)
        across = u - np.outer(u @ axis, axis)
        across *= shape.radius / np.linalg.norm(across, axis=1)[:, None]
        return np.concatenate([across - 0.25 * shape.length * axis, 0.75 * shape.length * axis[None]])
    return corners(shape)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_gap_to_a_tilted_ground_is_that_of_the_lowest_point(name, seed):
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=3)
    normal /= np.linalg.norm(normal)
    mechanism = da.Mechanism("one")
    mechanism.ground(normal=normal, offset=-2.0)
    mechanism.body("body", SHAPES[name], position=rng.normal(size=3), orientation=rng.normal(size=4), collide=True)
    engine = contact_engine(mechanism, da.Variational(dt=0.01))
    contacts = engine.scene.contacts
    for contact in contacts:
        at_knot(contact, engine.scene, engine.graph.work.bodies)
    body = mechanism.bodies[0]
    points = Rotation.from_quat(body.orientation, scalar_first=True).apply(surface(SHAPES[name])) + body.position
    lowest = (points @ normal).min() + 2.0
    assert contacts["gap0"].min() <= lowest + 1e-9  # sampled points cannot lie below the true lowest one
    assert contacts["gap0"].min() == pytest.approx(lowest, abs=2e-3)


def oracle_shape(shape):
    """The same shape in coal, and its orientation in the body frame."""
    coal = pytest.importorskip("coal")
    if isinstance(shape, da.Sphere):
        return coal.Sphere(shape.radius), np.eye(3)
    if isinstance(shape, da.Capsule | da.Cylinder | da.Cone):
        turn = Rotation.align_vectors([shape.axis], [[0.0, 0.0, 1.0]])[0]
        return getattr(coal, type(shape).__name__)(shape.radius, shape.length), turn.as_matrix()
    if isinstance(shape, da.Ellipsoid):
        return coal.Ellipsoid(*shape.semi_axes), np.eye(3)
    if isinstance(shape, da.Box):
        return coal.Box(*shape.size), np.eye(3)
    points = coal.StdVec_Vec3s()
    for corner in shape.corners:
        points.append(corner)
    return coal.Convex.convexHull(points, False, "Qt"), np.eye(3)


def oracle_distance(bodies) -> float:
    coal = pytest.importorskip("coal")
    placed = []
    for position, orientation, shape in bodies:
        geometry, turn = oracle_shape(shape)
        R = Rotation.from_quat(orientation, scalar_first=True).as_matrix() @ turn
        middle = 0.25 * shape.length * R[:, 2] if isinstance(shape, da.Cone) else 0.0
        placed += [geometry, coal.Transform3s(R, np.asarray(position + middle, dtype=float))]
    request = coal.DistanceRequest()
    request.gjk_tolerance = 1e-10
    return float(coal.distance(*placed, request, coal.DistanceResult()))


def pair_engine(a: str, b: str, seed: int):
    """Two bodies 0.02 m apart."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    q = rng.normal(size=(2, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    near, far = 0.0, 3.0
    for _ in range(60):
        middle = 0.5 * (near + far)
        apart = oracle_distance([(middle * direction, q[0], SHAPES[a]), (np.zeros(3), q[1], SHAPES[b])])
        near, far = (middle, far) if apart < 0.02 else (near, middle)
    mechanism = da.Mechanism("pair", gravity=(0, 0, 0))
    mechanism.body("a", SHAPES[a], position=far * direction, orientation=q[0], collide=True)
    mechanism.body("b", SHAPES[b], orientation=q[1], collide=True)
    engine = contact_engine(mechanism, da.Variational(dt=0.01))
    return engine, mechanism


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize("seed", range(3))
def test_gaps_of_pairs_are_never_above_the_distance_and_equal_it_where_features_allow(a, b, seed):
    """Separating axes are a lower bound for two polyhedra whose nearest features are corners; otherwise the gap is the distance."""
    engine, _ = pair_engine(a, b, seed)
    contacts = engine.scene.contacts
    gap = contacts["gap0"][contacts["used"] != 0].min()
    assert gap < 0.02 + 1e-6
    polyhedra = {a, b} <= {"box", "hull"}
    assert gap > (-1e-9 if polyhedra else 0.02 - 1e-6)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_gap_gradients_of_pairs(a, b):
    engine, _ = pair_engine(a, b, 3)
    bodies, contacts = engine.graph.work.bodies, engine.scene.contacts
    find_features(bodies, contacts, engine.scene.shapes, np.inf)
    bodies["xn"], bodies["Rn"] = bodies["x"], bodies["R"]
    step = 1e-6
    for i in np.flatnonzero(contacts["used"]):
        contact = contacts[i]
        at_end(contact, engine.scene, bodies)
        exact = {int(contact["a"]): contact["Ha"].copy(), int(contact["b"]): contact["Hb"].copy()}
        for body, row in exact.items():
            x, R = bodies["xn"][body].copy(), bodies["Rn"][body].reshape(3, 3).copy()
            for c in range(6):
                ends = []
                for sign in (1.0, -1.0):
                    delta = sign * step * np.eye(6)[c]
                    bodies["xn"][body] = x + delta[:3]
                    bodies["Rn"][body] = (R @ Rotation.from_rotvec(delta[3:]).as_matrix()).ravel()
                    at_end(contact, engine.scene, bodies)
                    ends.append(float(contact["gap"]))
                bodies["xn"][body], bodies["Rn"][body] = x, R.ravel()
                assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(row[c], abs=1e-7)


def test_gap_gradients_of_supports():
    """Circle, ellipsoid and height field, as above."""
    rng = np.random.default_rng(5)
    for name in ("cylinder", "ellipsoid", "box"):
        mechanism = da.Mechanism("one")
        if name == "box":
            mechanism.height_field(0.1 * rng.normal(size=(6, 6)), origin=(-2.5, -2.5), spacing=1.0)
        else:
            mechanism.ground(normal=(0.1, 0.2, 1.0))
        mechanism.body("body", SHAPES[name], position=(0.3, 0.2, 1.0), orientation=rng.normal(size=4), collide=True)
        engine = contact_engine(mechanism, da.Variational(dt=0.01))
        bodies = engine.graph.work.bodies
        bodies["xn"], bodies["Rn"] = bodies["x"], bodies["R"]
        x, R = bodies["xn"][0].copy(), bodies["Rn"][0].reshape(3, 3).copy()
        for contact in engine.scene.contacts:
            at_end(contact, engine.scene, bodies)
            exact = contact["Ha"].copy()
            for c in range(6):
                ends = []
                for sign in (1.0, -1.0):
                    delta = sign * 1e-6 * np.eye(6)[c]
                    bodies["xn"][0], bodies["Rn"][0] = x + delta[:3], (R @ Rotation.from_rotvec(delta[3:]).as_matrix()).ravel()
                    at_end(contact, engine.scene, bodies)
                    ends.append(float(contact["gap"]))
                bodies["xn"][0], bodies["Rn"][0] = x, R.ravel()
                assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(exact[c], abs=1e-6)


@pytest.mark.parametrize("floor", [da.Cylinder(radius=0.5, length=2.0, mass=1.0, axis="x"), da.Ellipsoid(semi_axes=(2.0, 0.5, 0.5), mass=1.0)])
def test_friction_turns_a_ball_on_what_is_round(floor):
    """It acts where the two touch: a ball that is set down on the top of a cylinder or an ellipsoid comes to roll."""
    m = da.Mechanism("rolls")
    m.obstacle("floor", floor, friction=0.6)
    m.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 0.6), collide=True)
    sim = da.Simulation(m, da.Variational(dt=0.005))
    sim.set_velocity("ball", linear=(0.2, 0, 0))
    run = sim.run(0.1)
    assert run.velocity[-1, 0, 0] == pytest.approx(0.2 * 5 / 7, rel=2e-2)  # of a ball that slides until it rolls
    assert run.angular_velocity[-1, 0, 1] == pytest.approx(run.velocity[-1, 0, 0] / 0.1, rel=1e-2)
