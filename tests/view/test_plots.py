"""Plots: files appear, axes carry units, bad wishes are refused with the choices."""
from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import dalembert as da
from dalembert.view.plots import LONGEST_LEGEND, PLOTS


@pytest.fixture(scope="module")
def boxes_run() -> da.Trajectory:
    """A box of 1 kg falls on one of 2 kg that stands on the ground."""
    scene = da.Mechanism("two boxes")
    scene.ground(friction=0.6)
    scene.body("lower", da.Box(size=(0.2, 0.2, 0.2), mass=2.0), position=(0, 0, 0.1), collide=True)
    scene.body("upper", da.Box(size=(0.2, 0.2, 0.2), mass=1.0), position=(0, 0, 0.31), collide=True)
    return da.Simulation(scene, da.Variational(dt=0.01)).run(0.5)


@pytest.mark.parametrize("what", PLOTS)
@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_a_picture_is_written(short_run, boxes_run, tmp_path, what, ending):
    path = tmp_path / f"{what}.{ending}"
    (boxes_run if what == "gaps" else short_run).plot(what, path=str(path))
    assert path.stat().st_size > 1000


def test_gaps_and_normal_forces(boxes_run):
    gap, force = boxes_run.plot("gaps").axes
    assert (gap.get_ylabel(), gap.get_yscale(), force.get_ylabel(), force.get_xlabel()) == ("gap / m", "log", "normal force / N", "time / s")
    names = [line.get_label() for line in force.lines]
    assert set(names) == {"lower / ground", "lower / upper"}
    carried = {name: line.get_ydata()[-2] for name, line in zip(names, force.lines)}
    assert carried == pytest.approx({"lower / ground": 3 * 9.81, "lower / upper": 9.81}, rel=1e-4)
    contacts = boxes_run.contacts()
    least = np.fmin.reduce([line.get_ydata() for line in gap.lines])
    near = np.isfinite(contacts.least_gap())
    np.testing.assert_allclose(least[near], np.maximum(contacts.least_gap()[near], 1e-15))
    only, _ = boxes_run.plot("gaps", names="upper").axes
    assert [line.get_label() for line in only.lines] == ["lower / upper"]


def test_gaps_that_are_not_there(short_run, boxes_run):
    with pytest.raises(da.ModelError, match="nothing in it can touch"):
        short_run.plot("gaps")
    with pytest.raises(da.ModelError, match="near pairs were: lower / ground"):
        boxes_run.plot("gaps", names=("ball",))
    far = da.Simulation(da.zoo.box_drop(height=100.0), da.Variational(dt=0.01)).run(0.02)
    with pytest.raises(da.ModelError, match="no gaps to plot"):
        far.plot("gaps")


def test_rounding_gets_no_scale_of_its_own():
    run = da.Simulation(da.zoo.double_four_bar(), da.Variational(dt=0.01)).run(0.2)
    _, torque = run.plot("forces").axes  # a plane linkage of hinges
    assert torque.get_ylim()[1] == 1.0


@pytest.mark.parametrize(("what", "units"), [
    ("energy", ["J", "J"]), ("coordinates", ["rad", "m"]), ("forces", ["N", "N m"]), ("violation", ["m or rad"]),
])
def test_axes_have_units(short_run, what, units):
    figure = short_run.plot(what)
    assert [axis.get_ylabel().split(" / ")[1] for axis in figure.axes] == units
    assert figure.axes[-1].get_xlabel() == "time / s"


def legend(axis) -> list[str]:
    return [text.get_text() for text in axis.get_legend().get_texts()]


def test_energy_shows_what_the_trajectory_holds(short_run):
    above, below = short_run.plot("energy").axes
    assert legend(above) == ["kinetic", "potential", "total"]
    energy = short_run.energy()
    for line, values in zip(above.lines, (energy.kinetic, energy.potential, energy.total), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), values)
    np.testing.assert_array_equal(below.lines[0].get_ydata(), energy.total - energy.total[0])


def test_coordinates_are_sorted_by_unit(short_run):
    angles, distances = short_run.plot("coordinates").axes
    assert legend(angles) == ["motor", "axle", "ball [0]", "ball [1]", "ball [2]"]
    assert legend(distances) == ["slide", "tie"]
    np.testing.assert_array_equal(angles.lines[3].get_ydata(), short_run.joint("ball").coordinates[:, 1])


@pytest.mark.parametrize("names", [("slide",), ["slide"], "slide"])
def test_joints_are_chosen_by_name(short_run, names):
    (axis,) = short_run.plot("coordinates", names=names).axes
    assert legend(axis) == ["slide"]
    force, torque = short_run.plot("forces", names=names).axes
    np.testing.assert_allclose(force.lines[0].get_ydata(), np.linalg.norm(short_run.joint("slide").force, axis=1))
    np.testing.assert_allclose(torque.lines[0].get_ydata(), np.linalg.norm(short_run.joint("slide").torque, axis=1))
    (axis,) = short_run.plot("violation", names=names).axes
    assert legend(axis) == ["slide"]


def test_violation_has_a_logarithmic_axis_and_survives_zeros(short_run):
    (axis,) = short_run.plot("violation").axes
    assert axis.get_yscale() == "log"
    assert (np.asarray(axis.lines[0].get_ydata()) > 0.0).all()


def test_names_are_printed_as_they_are():
    mechanism = da.Mechanism("costs $5 or $6")
    body = mechanism.body("body", da.Sphere(radius=0.1, mass=1.0))
    mechanism.joint("_hidden", da.Revolute(axis="x"), mechanism.world, body)
    figure = da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.01).plot("coordinates")
    assert legend(figure.axes[0])[0].endswith("_hidden")
    assert figure.get_suptitle() == r"costs \$5 or \$6"


def many_joints(*types: da.Joint) -> da.Trajectory:
    mechanism = da.Mechanism("many")
    for i, joint in enumerate(types):
        body = mechanism.body(f"body {i}", da.Sphere(radius=0.1, mass=1.0), position=(i, 0, 0))
        mechanism.joint(f"joint {i}", joint, mechanism.world, body, at=(i, 0, 0))
    return da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.01)


def test_a_long_legend_says_what_it_leaves_out():
    figure = many_joints(*[da.Prismatic(axis="z")] * (LONGEST_LEGEND + 5)).plot("coordinates")
    assert legend(figure.axes[0])[-1] == "and 5 more"


@pytest.mark.parametrize("what", ["coordinates", "forces"])
def test_long_legends_leave_room_for_the_panels(what, tmp_path):
    figure = many_joints(*[da.Prismatic(axis="z")] * 25, *[da.Revolute(axis="z")] * 25).plot(what, path=tmp_path / "many.png")
    assert len(figure.axes) == 2
    for axis in figure.axes:
        assert axis.get_position().height > 0.3
        assert axis.get_position().width > 0.6


@pytest.mark.parametrize(("arguments", "message"), [
    ({"what": "speed"}, "energy, coordinates, forces, violation, velocities, phase, gaps"),
    ({"what": "forces", "names": ("elbow",)}, "'elbow'; the joints of 'geared pendulum' are: motor, axle"),
    ({"what": "forces", "names": ()}, "the joints of 'geared pendulum' are"),
    ({"what": "energy", "names": ("motor",)}, "leave it out"),
    ({"what": "energy", "path": "energy.docx"}, "choose an ending from .*png"),
])
def test_bad_wishes(short_run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(da.ModelError, match=message):
        short_run.plot(**arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["coordinates", "forces"])
def test_nothing_to_plot(what):
    mechanism = da.Mechanism("ball")
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0))
    run = da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.01)
    with pytest.raises(da.ModelError, match="no joints"):
        run.plot(what)
    run.plot("violation")


def test_without_matplotlib(short_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(da.MissingExtraError, match=r"dalembert\[plot\]"):
        short_run.plot("energy")


def test_importing_dalembert_imports_no_extra():
    code = "import sys, dalembert; print(sorted({'matplotlib', 'h5py', 'tqdm', 'mujoco'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
