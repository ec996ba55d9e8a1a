"""Joints in sequence and along splines: motion and its derivatives, equivalent joints of the table, forces, files, bad input."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from test_tree_solve import curve, surface

import dalembert as da
from dalembert.formulations.reduced.engine import ReducedEngine
from dalembert.model.splines import SPLINE_WORK, place_spline
from dalembert.spatial.splines import locate


def two_bodies(joint: da.Joint, *, backwards: bool = False, second: da.Joint | None = None) -> da.Mechanism:
    """A body on a joint, askew, and another one hung on it by a hinge with laws."""
    mechanism = da.Mechanism("two bodies")
    mechanism.body("a", da.Box(size=(0.2, 0.3, 0.5), mass=2.0), position=(0.3, 0.1, -0.4), orientation=(1, 0.1, 0.3, -0.2))
    mechanism.body("b", da.Box(size=(0.1, 0.2, 0.6), mass=1.0), position=(0.3, 0.2, -1.0), orientation=(1, 0.2, 0.1, 0))
    frame = (1, 0.3, -0.2, 0.4)
    if backwards:  # the tree reaches "a" through "b"
        mechanism.joint("hinge", second or da.Revolute(axis="x", stiffness=2.0, damping=0.1, armature=0.05), mechanism.world, "b", at=(0.3, 0.1, -0.7))
        mechanism.joint("joint", joint, "a", "b", at=(0.1, 0.2, -0.3), frame=frame)
    else:
        mechanism.joint("joint", joint, mechanism.world, "a", at=(0.1, 0.2, -0.3), frame=frame)
        mechanism.joint("hinge", second or da.Revolute(axis="x", stiffness=2.0, damping=0.1, armature=0.05), "b", "a", at=(0.3, 0.1, -0.7))
    return mechanism


def run(mechanism: da.Mechanism, value, rate, duration: float = 0.5, dt: float = 0.005, **options) -> da.Trajectory:
    mechanism.start("joint", value, rate=rate)
    mechanism.start("hinge", 0.3, rate=-1.0)
    return da.Simulation(mechanism, da.Reduced(dt=dt, tolerance=1e-11, **options)).run(duration)


def same(a: da.Trajectory, b: da.Trajectory, atol: float = 1e-9, coordinates: bool = True) -> None:
    np.testing.assert_allclose(a.position, b.position, atol=atol)
    np.testing.assert_allclose(a.velocity, b.velocity, atol=10 * atol)
    np.testing.assert_allclose(a.angular_velocity, b.angular_velocity, atol=10 * atol)
    np.testing.assert_allclose(a.energy().total, b.energy().total, atol=100 * atol)
    for name in ("joint", "hinge"):
        for what in ("coordinates", "rates", "actuation") * coordinates + ("force", "torque"):
            np.testing.assert_allclose(getattr(a.joint(name), what), getattr(b.joint(name), what), atol=100 * atol, err_msg=f"{name} {what}")


SEQUENCES = {
    "universal": (da.Universal(axes=("x", "y"), stiffness=(3, 2), damping=0.1),
                  da.CompositeJoint(da.Revolute(axis="x", stiffness=3, damping=0.1), da.Revolute(axis="y", stiffness=2, damping=0.1)), (0.5, 0.7), (1.0, 2.0)),
    "cylindrical": (da.Cylindrical(axis="z", stiffness=20, rest=0.1), da.CompositeJoint(da.Prismatic(axis="z"), da.Revolute(axis="z"), stiffness=20, rest=0.1), (0.2, 0.4), (0.3, 2.0)),
    "slot": (da.Slot(axis="x", stiffness=(30, 1, 2, 3), damping=0.2), da.CompositeJoint(da.Prismatic(axis="x", stiffness=30, damping=0.2), da.Spherical(stiffness=(1, 2, 3), damping=0.2)),
             (0.1, 0.4, 0.5, -0.3), (0.2, 1.0, -1.0, 2.0)),
    "three": (da.Planar(normal="z", damping=0.3), da.CompositeJoint(da.Prismatic(axis="x", damping=0.3), da.CompositeJoint(da.Prismatic(axis="y", damping=0.3), da.Revolute(axis="z", damping=0.3))),
              (0.1, 0.2, 0.5), (0.3, -0.4, 1.0)),
}


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("name", SEQUENCES)
def test_a_sequence_is_the_joint_of_the_table(name, backwards):
    """Motion, rates, energies, and forces, which are read off the tree here and off the graph there."""
    table, sequence, value, rate = SEQUENCES[name]
    same(run(two_bodies(sequence, backwards=backwards), value, rate), run(two_bodies(table, backwards=backwards), value, rate))


def test_a_placement_between_two_joints():
    """A composite with an arm between is two joints with a body of hardly any mass between them."""
    arm = da.CompositeJoint(da.Revolute(axis="x"), da.Revolute(axis="z", damping=0.1), position=(0.0, 0.3, 0.1), orientation=(1, 0.2, 0, 0))
    short = da.Mechanism("composite")
    short.body("load", da.Box(size=(0.2, 0.3, 0.5), mass=2.0), position=(0.1, 0.4, -0.2))
    short.joint("arm", arm, short.world, "load")
    short.start("arm", (0.4, -0.7), rate=(1.0, 2.0))
    long = da.Mechanism("with a body between")
    long.body("link", mass=1e-9, inertia=1e-12 * np.eye(3), position=(0, 0.15, 0.05))
    long.body("load", da.Box(size=(0.2, 0.3, 0.5), mass=2.0), position=(0.1, 0.4, -0.2))
    long.joint("one", da.Revolute(axis="x"), long.world, "link")
    long.joint("two", da.Revolute(axis="z", damping=0.1), "link", "load", at=(0, 0.3, 0.1), frame=(1, 0.2, 0, 0))
    long.start("one", 0.4, rate=1.0)
    long.start("two", -0.7, rate=2.0)
    a, b = (da.Simulation(m, da.Reduced(dt=0.005)).run(0.5) for m in (short, long))
    np.testing.assert_allclose(a.body("load").position, b.body("load").position, atol=1e-6)
    np.testing.assert_allclose(a.joint("arm").coordinates, np.column_stack([b.joint("one").coordinates, b.joint("two").coordinates]), atol=1e-5)


def test_drives_and_servos_of_the_parts():
    table = da.Universal(axes=("x", "y"), drive=("motion", None), servo=(None, da.Servo(stiffness=20.0, damping=1.0, target=0.3)))
    parts = da.CompositeJoint(da.Revolute(axis="x", drive="motion"), da.Revolute(axis="y", servo=da.Servo(stiffness=20.0, damping=1.0, target=0.3)))
    runs = []
    for joint in (table, parts):
        simulation = da.Simulation(two_bodies(joint), da.Reduced(dt=0.005, tolerance=1e-11))
        simulation.set_target("joint", lambda t: (0.3 * np.sin(3.0 * t), 0.3))
        runs.append(simulation.run(0.5))
    np.testing.assert_allclose(runs[0].position, runs[1].position, atol=1e-10)
    same(*runs, atol=1e-6)  # forces are taken for velocities that meet the targets, which both readings find to second order


def test_six_freedoms_at_the_most_and_only_joints_that_place():
    for parts, words in (((da.Free(), da.Revolute()), "have 7 coordinates"), ((da.Distance(), da.Revolute()), "its first joint must be one that places"),
                         ((da.Revolute(), da.Revolute(bearing=da.Bearing(friction=0.1, radius=0.01))), "has a bearing")):
        with pytest.raises(da.ModelError, match=words):
            da.CompositeJoint(*parts)


def test_two_turns_about_one_axis_are_no_coordinates():
    mechanism = two_bodies(da.CompositeJoint(da.Revolute(axis="z"), da.Revolute(axis="z")))
    with pytest.raises(da.ModelError, match="coordinates of 'joint' are not independent"):
        da.Simulation(mechanism, da.Reduced(dt=0.01))


# ---- splines

def line(length: float = 3.0, count: int = 7) -> da.SplineCurve:
    """Control frames on a straight line along z: one unit of the coordinate is ``length`` / (count - 1) metres, from one frame in."""
    return da.SplineCurve([[0, 0, z, 1, 0, 0, 0] for z in np.linspace(-length / (count - 1), length - length / (count - 1), count)], damping=0.0)


def test_a_straight_curve_is_a_slide():
    """Coordinates are half as long as metres here; forces and motion are those of the slide."""
    a, b = run(two_bodies(line()), 2.4, 0.6, duration=0.4), run(two_bodies(da.Prismatic(axis="z")), 1.2, 0.3, duration=0.4)
    same(a, b, coordinates=False)
    np.testing.assert_allclose(0.5 * a.joint("joint").coordinates, b.joint("joint").coordinates, atol=1e-9)


@pytest.mark.parametrize("closed", [False, True])
def test_a_circle_is_a_hinge(closed):
    """Frames at equal turns about z: their twists are one screw, and the spline is the circle itself."""
    count = 12
    angles = 2.0 * np.pi * (np.arange(count) - 1) / count
    frames = [[0, 0, 0, *Rotation.from_rotvec((0, 0, a)).as_quat(scalar_first=True)] for a in angles]
    per = 2.0 * np.pi / count
    round_curve = da.SplineCurve(frames, closed=closed, stiffness=1.0 * per**2, damping=0.1 * per**2)
    hinge = da.Revolute(axis="z", stiffness=1.0, damping=0.1)
    a, b = run(two_bodies(round_curve), 0.5 / per, 2.0 / per, duration=0.4), run(two_bodies(hinge), 0.5, 2.0, duration=0.4)
    same(a, b, coordinates=False)
    np.testing.assert_allclose(per * a.joint("joint").coordinates, b.joint("joint").coordinates, atol=1e-9)
    np.testing.assert_allclose(a.joint("joint").actuation / per, b.joint("joint").actuation, atol=1e-7)


def test_a_closed_curve_goes_round_and_round():
    frames = [[np.cos(a), np.sin(a), 0.0, *Rotation.from_rotvec((0, 0, a)).as_quat(scalar_first=True)] for a in np.linspace(0, 2 * np.pi, 8, endpoint=False)]
    track = da.Mechanism("track", gravity=(0, 0, 0))
    start = da.SplineCurve(frames, closed=True).motion(np.zeros(1))[:3, 3]
    track.body("car", da.Box(size=(0.1, 0.1, 0.1), mass=1.0), position=start)
    track.joint("rail", da.SplineCurve(frames, closed=True), track.world, "car")
    track.start("rail", 0.0, rate=8.0)
    lap = da.Simulation(track, da.Reduced(dt=0.005)).run(3.0)
    assert lap.joint("rail").coordinates[-1] == pytest.approx(24.0, abs=0.5)
    radius = np.linalg.norm(lap.body("car").position[:, :2], axis=1)
    assert radius.max() - radius.min() < 0.02


def test_a_flat_surface_is_a_plane():
    grid = np.zeros((6, 7, 6))
    grid[..., 0], grid[..., 1] = 0.5 * (np.arange(6) - 1)[:, None], 0.25 * (np.arange(7) - 1)
    a = run(two_bodies(da.SplineSurface(grid, damping=(0.3 * 0.25, 0.3 / 16))), (0.6, 0.8), (0.4, 0.4), duration=0.3)
    b = run(two_bodies(da.Rectangular(normal="z", damping=0.3)), (0.3, 0.2), (0.2, 0.1), duration=0.3)
    same(a, b, coordinates=False)


@pytest.mark.parametrize("make", [curve, surface], ids=["curve", "surface"])
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
def test_columns_and_their_derivatives_by_differences(make, backwards):
    """At q = 0, near it, generic, at and near the end: pose against NumPy's, S, dS, ddS by six-point differences of the one before."""
    joint = make()
    mechanism = two_bodies(joint, backwards=backwards)
    engine = ReducedEngine(mechanism, da.Reduced(dt=0.01))
    node = next(n for n in engine.tree.nodes if n["factors"])
    ends, count = node["cells"][: node["count"]].astype(float), int(node["count"])

    def at(q):
        out = np.zeros(1, SPLINE_WORK)
        place_spline(engine.model.splines, node, np.concatenate([q, np.zeros(3 - count)]), out[0])
        return out[0]

    def difference(field, q, e):
        h = 1e-3
        terms = [w * (at(q + k * h * e)[field] - at(q - k * h * e)[field]) for k, w in ((1, 45.0), (2, -9.0), (3, 1.0))]
        return np.sum(terms, axis=0) / (60.0 * h)

    for q in (np.zeros(count), np.full(count, 1e-6), 0.37 * ends, 0.71 * ends, ends - 1e-6, ends):
        # away from the borders of pieces the neighbours must belong to the same one: shift by less than the step where needed
        inside = np.where(np.abs(q - np.round(q)) < 4e-3, np.clip(q, 4e-3, ends - 4e-3), q)
        here = at(inside)
        for j, e in enumerate(np.eye(count)):
            R, dR, dp = here["R"].reshape(3, 3), difference("R", inside, e).reshape(3, 3), difference("p", inside, e)
            W = R.T @ dR
            np.testing.assert_allclose(here["S"][j], [W[2, 1], W[0, 2], W[1, 0], *(R.T @ dp)], atol=1e-10)
            np.testing.assert_allclose(here["dS"][:count, j], difference("S", inside, e)[:count], atol=1e-9)
            np.testing.assert_allclose(here["ddS"][:count, :count, j], difference("dS", inside, e)[:count, :count], atol=1e-8)
        edge = at(q)
        number, local = locate(tuple(int(n) for n in ends), False, q)
        assert np.isfinite(edge["ddS"]).all()
        if not backwards:
            G = np.eye(4)
            element = mechanism["joint"]
            G[:3, :3], G[:3, 3] = element.frame_child, element.point_child
            expected = G @ joint.factors[0].pieces[number].pose(local) @ np.linalg.inv(G)
            np.testing.assert_allclose(edge["R"].reshape(3, 3), expected[:3, :3], atol=1e-13)
            np.testing.assert_allclose(edge["p"], expected[:3, 3], atol=1e-13)


def test_pieces_of_a_curve_meet_smoothly():
    joint = curve()
    for knot in (1.0, 2.0):
        below, above = (joint.motion_columns(np.array([knot + s])) for s in (-1e-9, 1e-9))
        np.testing.assert_allclose(below, above, atol=1e-7)


@pytest.mark.parametrize(("make", "value"), [(curve, 1.2), (surface, (0.9, 0.5))], ids=["curve", "surface"])
@pytest.mark.parametrize(("method", "order"), [("bdf1", 0.9), ("bdf2", 1.85), ("sdirk2", 1.85)])
def test_orders_on_splines(make, value, method, order):
    mechanism = two_bodies(make(stiffness=5.0, rest=value))
    rate = np.full(np.size(value), 0.4)

    def end(dt, method):
        trajectory = run(mechanism, value, rate, duration=0.2, dt=dt, method=method)
        return np.concatenate([trajectory.position[-1].ravel(), trajectory.velocity[-1].ravel(), trajectory.joint("joint").force[-1], trajectory.joint("joint").torque[-1]])

    coarse, fine = end(0.0005, "bdf2"), end(0.00025, "bdf2")
    exact = fine + (fine - coarse) / 3.0
    errors = [np.abs(end(dt, method) - exact).max() for dt in (0.004, 0.002)]
    assert np.log2(errors[0] / errors[1]) > order


def test_energy_of_a_shoulder_without_dampers():
    """Conserved but for the error of the method, which is of second order."""
    def drift(dt):
        shoulder = da.zoo.spline_shoulder(damping=0.0)
        energy = da.Simulation(shoulder, da.Reduced(dt=dt)).run(0.4).energy().total
        return float(np.abs(energy - energy[0])[-1])

    # the arm's own dampers take out what does not depend on the step: look at differences
    shoulder = da.zoo.spline_shoulder()
    trajectory = da.Simulation(shoulder, da.Reduced(dt=0.002)).run(1.0)
    assert np.all(np.diff(trajectory.energy().total) < 1e-6)
    assert trajectory.joint("girdle").coordinates.min() > 0.0
    assert trajectory.joint("girdle").coordinates.max() < 5.0
    values = [drift(dt) for dt in (0.002, 0.001, 0.0005)]
    assert np.log2(abs(values[0] - values[1]) / abs(values[1] - values[2])) > 1.8


def test_weight_rests_on_a_curve():
    """At rest on a spline the joint carries the weight: force in the joint's frame, torque about the joint's point."""
    mechanism = da.Mechanism("at rest")
    mechanism.body("a", da.Box(size=(0.2, 0.3, 0.5), mass=2.0), position=(0.25, 0.0, 0.0))
    flat = da.SplineCurve([[0.1 * x, 0.02 * x * x, 0.0, 1, 0, 0, 0] for x in range(-1, 5)], damping=1.0)
    mechanism.joint("rail", flat, mechanism.world, "a")
    held = da.Simulation(mechanism, da.Reduced(dt=0.01)).run(0.05)
    np.testing.assert_allclose(held.joint("rail").force[2], (0, 0, 2.0 * 9.81), atol=1e-9)
    element = mechanism["rail"]
    np.testing.assert_allclose(held.joint("rail").torque[2], np.cross(-element.point_child, (0, 0, 2.0 * 9.81)), atol=1e-9)


def test_leaving_a_spline_fails_and_names_the_joint():
    simulation = da.Simulation(two_bodies(line()), da.Reduced(dt=0.005))
    simulation.set_joint("joint", 3.5, rate=5.0)
    with pytest.raises(da.StepFailure, match=r"joint 'joint' would be at .* and its spline goes from 0 to"):
        simulation.run(2.0)
    assert 3.5 < simulation.coordinates("joint")[0] <= 4.0
    with pytest.raises(da.ModelError, match=r"'joint' starts at .* beyond its spline"):
        simulation.set_joint("joint", 4.5)


@pytest.mark.parametrize("method", ["rk4", "linearly_implicit", "DOP853"])
def test_other_methods_tend_to_the_same_motion(method):
    """Explicit, linearly implicit and adaptive: coordinates, rates, energies and forces are read off the tree there too."""
    mechanism = two_bodies(da.CompositeJoint(curve(stiffness=5.0, rest=1.2), da.Spherical(damping=0.1), position=(0.1, 0, 0)))
    value, rate = (1.2, 0.1, 0.2, 0.3), (0.4, 1.0, 0.0, -1.0)
    exact = run(mechanism, value, rate, duration=0.1, dt=0.0005)
    found = run(mechanism, value, rate, duration=0.1, dt=0.0005, method=method)
    same(found, exact, atol=3e-3 if method == "linearly_implicit" else 1e-5)
    simulation = da.Simulation(two_bodies(line()), da.Reduced(dt=0.005, method=method))
    simulation.set_joint("joint", 3.5, rate=5.0)
    with pytest.raises(da.StepFailure, match="joint 'joint' would be at"):
        simulation.run(2.0)
    assert simulation.coordinates("joint")[0] <= 4.0


@pytest.mark.parametrize(("make", "words"), [
    (lambda: da.SplineCurve([[0, 0, z, 1, 0, 0, 0] for z in range(3)]), "needs at least 4 control frames, got 3"),
    (lambda: da.SplineCurve([[0, 0, z, 1, 0, 0, 0] for z in range(2)], closed=True), "needs at least 3 control frames, got 2"),
    (lambda: da.SplineCurve([[0, 0, 0, 1, 0, 0, 0]] * 5), "coincide"),
    (lambda: da.SplineCurve([[0, 0, z, 0, 0, 0, 0] for z in range(5)]), "zero quaternion"),
    (lambda: da.SplineCurve([[0, 0, z, 1, 0, 0] for z in range(5)]), "must be nx7 numbers"),
    (lambda: da.SplineCurve([[0, 0, z, *((1, 0, 0, 0) if z % 2 else (0, 1, 0, 0))] for z in range(5)]), "half a turn"),
    (lambda: da.SplineCurve([[0, 0, np.nan, 1, 0, 0, 0]] * 5), "finite"),
    (lambda: da.SplineSurface(np.zeros((4, 3, 6))), "at least 4 x 4 control frames, got 4 x 3"),
    (lambda: da.SplineSurface(np.full((4, 4, 6), 1.5)), "quarter turn"),
    (lambda: surface(drive=("motion", None)), "drives both"),
])
def test_bad_splines_are_named(make, words):
    with pytest.raises(da.ModelError, match=words):
        make()


@pytest.mark.parametrize("formulation", [da.Variational(dt=0.01), da.Implicit(dt=0.01), da.Implicit(dt=0.01, method="semi_implicit")])
def test_maximal_coordinates_refuse_aloud(formulation):
    for joint, kind in ((curve(), "SplineCurve"), (surface(), "SplineSurface"), (SEQUENCES["universal"][1], "CompositeJoint")):
        with pytest.raises(da.ModelError, match=rf"cannot take joint 'joint': a {kind} .* Use Reduced"):
            da.Simulation(two_bodies(joint), formulation)


def test_limits_are_refused_aloud():
    with pytest.raises(da.ModelError, match="no contacts, limits or dry friction beside joint 'joint'"):
        da.Simulation(two_bodies(curve(limits=(0.1, 2.0))), da.Reduced(dt=0.01))


def test_two_splines_cannot_close_a_loop():
    mechanism = two_bodies(line())
    mechanism.joint("other", curve(), mechanism.world, "a")
    with pytest.raises(da.ModelError, match="closes a loop"):
        da.Simulation(mechanism, da.Reduced(dt=0.01))


def test_placing_setting_and_states():
    mechanism = two_bodies(da.CompositeJoint(curve(), da.Universal(), position=(0.1, 0, 0)))
    simulation = da.Simulation(mechanism, da.Reduced(dt=0.005))
    np.testing.assert_allclose(simulation.position[0], mechanism["a"].position, atol=1e-12)  # the reference pose is at zero
    simulation.set_joint("joint", (1.3, 0.2, -0.4), rate=(0.5, 1.0, -2.0))
    np.testing.assert_allclose(simulation.coordinates("joint"), (1.3, 0.2, -0.4))
    np.testing.assert_allclose(simulation.rates("joint"), (0.5, 1.0, -2.0), atol=1e-10)
    kept = simulation.state
    first = simulation.run(0.2)
    simulation.restore(kept)
    again = simulation.run(0.2)
    np.testing.assert_array_equal(first.position, again.position)
    # velocities are the rates of the positions
    middle = (first.position[2:] - first.position[:-2]) / 0.01
    np.testing.assert_allclose(first.velocity[2:-1], middle[1:], atol=5e-3)


@pytest.mark.parametrize("ending", [".json", ".toml"])
def test_files_hold_them_bit_for_bit(ending, tmp_path):
    pytest.importorskip("msgspec")
    joint = da.CompositeJoint(curve(stiffness=2.0), da.CompositeJoint(surface(damping=(1.0, 2.0)), da.Revolute(axis="x", armature=0.1)), position=(0.1, 0.2, 0.3))
    mechanism = two_bodies(joint)
    mechanism.save(tmp_path / f"model{ending}")
    back = da.load(tmp_path / f"model{ending}")
    assert back["joint"].type == joint
    runs = [run(m, (1.0, 0.5, 0.6, 0.0), (0.2, 0.1, 0.3, 1.0), duration=0.05) for m in (mechanism, back)]
    np.testing.assert_array_equal(runs[0].position, runs[1].position)


def test_parameters_of_a_sequence_have_names():
    simulation = da.Simulation(two_bodies(SEQUENCES["universal"][1]), da.Reduced(dt=0.005))
    np.testing.assert_array_equal(simulation.parameters()["joint.stiffness"].value, (3.0, 2.0))
    simulation.set_parameters({"joint.stiffness": (5.0, 2.0)})
    assert simulation.mechanism["joint"].type.first.stiffness == (5.0,)
