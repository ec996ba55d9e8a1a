"""Mechanisms of the zoo by parameters on the command line, and what they do of themselves."""
from __future__ import annotations

import inspect
from contextlib import suppress

import numpy as np
import pytest

import dalembert as da
from dalembert.cli import main
from dalembert.zoo.driven import DRIVEN
from dalembert.zoo.words import SHORT, describe, find_mechanism, mechanisms, read_words


@pytest.mark.parametrize(("text", "bodies", "joints"), [
    ("pendulum", 1, 1), ("pendulum:", 1, 1), ("pendulum:n=7,joint=spherical", 7, 7), ("character:passive=left elbow,neck yaw,legs=no", 15, 15),
    ("satellite:design.panels=6,drive=none", 14, 19), ("door:hinge_heights=0.1,1.2,hinge=spherical", 1, 2), ("redmax_scene:number=7", 2, 2),
])
def test_parameters(text, bodies, joints):
    made = read_words(text).make()
    assert (len(made.bodies), len(made.joints)) == (bodies, joints)


def test_values_arrive_as_what_they_are():
    sphere = read_words("hoberman_sphere:velocity=0,0,3,spin=2").arguments
    assert sphere == {"velocity": (0.0, 0.0, 3.0), "spin": 2.0}
    assert read_words("rubbing_door:bearing.friction=0.3,rate=1").make()["hinge"].type.bearing.friction == 0.3
    gait = read_words("quadruped:gait.a1=0.1", driven=True).arguments["gait"]
    assert (gait.a1, gait.b) == (0.1, 0.2)  # the rest is that of the trot
    assert np.array_equal(read_words("pendulum:gravity=0,0,-1.6").make().gravity, (0.0, 0.0, -1.6))


@pytest.mark.parametrize(("text", "message"), [
    ("pendulum:lenght=3", "has no parameter 'lenght'; did you mean 'length'"), ("pendulum:n=x", "n must be a whole number, got 'x'"),
    ("pendulum:n=2.5", "n must be a whole number"), ("pendulum:n=0", "n must be a whole number from 1"), ("pendulum:joint=sperical", "did you mean 'spherical'"),
    ("pendulum:n", "'n' is no PARAMETER=VALUE"), ("pendulum:=3", "is no PARAMETER=VALUE"), ("pendulum:n=3,n=4", "n is given twice"),
    ("pendulum:n.x=3", "has no fields"), ("pendulum:length=nan", "length must be a number"), ("pendulum:n=3,4", "must be one value"),
    ("pendlum:n=3", "did you mean 'pendulum'"), ("satelite", "did you mean 'satellite'"), ("satellite:design.panel=6", "did you mean 'design.panels'"),
    ("satellite:design=6", "set field by field"), ("satellite:design.panels=1", "panels must be a whole number of at least 2"),
    ("character:passive=left elbo", "did you mean 'left elbow'"), ("character:legs=maybe", "legs must be true or false"),
    ("character:design.ankle_arm=1", "must be 2 numbers"), ("character:design.ankle_crank=1,2,3,4", "in Python only"),
    ("door:hinge_heights=a,b", "must be numbers"), ("door:hinge_heights=1", "2 numbers"), ("pendulum:gravity=0,0", "3 numbers"),
])
def test_what_is_wrong_is_said(text, message):
    with pytest.raises(da.ModelError) as raised:
        read_words(text).make()
    assert message in str(raised.value)


def test_random_words_are_taken_or_refused():
    rng = np.random.default_rng(3)
    values = ["", "0", "-1", "2", "3.5", "nan", "inf", "1e400", "x", "none", "true", "0,0,0", "1,2", "force", "forse", "left elbow", ",", "=", "-0", "1e-300", "\n"]
    small = [name for name in mechanisms() if name not in ("hoberman_sphere", "animatronic_figure", "biped")]
    taken = 0
    for _ in range(300):
        name = str(rng.choice(small))
        known = [*inspect.signature(mechanisms()[name]).parameters, "design.panels", "gait.b"]
        text = ",".join(f"{rng.choice(known)}={rng.choice(values)}" for _ in range(rng.integers(1, 3)))
        with suppress(da.ModelError):
            read_words(f"{name}:{text}").make()
            taken += 1
    assert 10 < taken < 290


def test_short_names_and_descriptions():
    assert all(find_mechanism(short) == name for short, name in SHORT.items())
    assert not set(SHORT) & set(mechanisms())
    assert set(DRIVEN) <= set(mechanisms())
    for name in mechanisms():
        line = describe(name)[0].removeprefix("dalembert run ")
        read_words(line).make()  # what it recommends can be done


def perform(name: str, duration: float, **more) -> da.Trajectory:
    words = read_words(name, driven=True)
    assert words.driven is not None
    sim = da.Simulation(words.make(), da.Variational(dt=words.driven.dt))
    return sim.run(duration, control=words.driven.set_up(sim, words.arguments, **more))


def test_the_quadruped_walks():
    run = perform("quadruped", 2.0)
    assert run.body("trunk").position[-1, 0] > 0.5


def test_the_hopper_hops():
    run = perform("hopper", 0.5)
    assert run.contacts().least_gap().max() > 0.3


def test_the_sphere_opens():
    run = perform("hoberman_sphere", 0.1)
    opening = da.zoo.hoberman_opening(run.position)
    assert opening[-1] < opening[0] - 0.01


@pytest.mark.parametrize(("name", "joint"), [
    ("animatronic_figure", "neck yaw"), ("character", "left elbow"), ("walker_legs", "left hip roll"), ("solar_panel_satellite:design.panels=4", "root"), ("exoskeleton", "elbow"),
])
def test_motions_are_followed(name, joint):
    run = perform(name, 1.0)
    assert np.ptp(run.joint(joint).coordinates) > 1e-3
    assert run.constraint_violation().max() < 1e-9


def test_joints_to_leave_and_joints_without_a_drive_have_no_motion():
    run = perform("character:passive=right elbow", 0.3, leave=["left elbow"])
    assert np.abs(run.joint("left elbow").coordinates).max() < 1e-12
    assert np.abs(run.joint("right elbow").actuation).max() == 0.0  # it swings as the rest moves it
    assert np.ptp(run.joint("waist yaw").coordinates) > 1e-3


def test_in_every_command(tmp_path, capsys):
    assert main(["run", "pendulum:n=3,joint=spherical", "--duration", "0.05"]) == 0
    assert "pendulum of 3 links" in capsys.readouterr().out
    assert main(["info", "pendulum:n=3"]) == 0
    assert "link 3" in capsys.readouterr().out
    assert main(["convert", "pendulum:n=4", str(tmp_path / "chain.json")]) == 0
    assert len(da.load(tmp_path / "chain.json").bodies) == 4
    assert main(["compare", "pendulum:n=2", "--duration", "0.02", "--halvings", "1"]) == 0
    capsys.readouterr()
    assert main(["run", "pendulum:lenght=3"]) == 3
    assert "did you mean 'length'" in capsys.readouterr().err
    assert main(["run", "pendlum:length=0.5"]) == 3
    assert "did you mean 'pendulum'" in capsys.readouterr().err
    assert main(["zoo", "figure"]) == 0
    assert "of itself it gestures" in capsys.readouterr().out


def test_passive_on_the_command_line(tmp_path, capsys):
    trunks = []
    for words in ([], ["--passive"]):
        file = tmp_path / f"run{len(words)}.npz"
        assert main(["run", "character", "--duration", "0.3", "--out", str(file), *words]) == 0
        with np.load(file) as kept:
            trunks.append(np.ptp(kept["position"], axis=0).max())
    assert trunks[0] > 1e-3 > 1e-9 > trunks[1]
    assert main(["run", "character", "--duration", "0.1", "--set", "left elbow=0.3"]) == 0
    capsys.readouterr()


def test_a_file_goes_before_a_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    da.zoo.pendulum(5).save("pendulum.json")
    (tmp_path / "pendulum.json").rename(tmp_path / "pendulum")
    assert main(["info", "pendulum"]) != 0  # a file without an ending is no model, and is not passed over in silence
    assert "pendulum" in capsys.readouterr().err
