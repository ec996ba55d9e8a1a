"""The command line: each command, its exit codes, and errors of one line."""
from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.cli import hold, main
from dalembert.comparison import Column, Comparison

sys.path.insert(0, str(Path(__file__).parent / "io"))
from robots import CASSIE, find  # pyright: ignore[reportMissingImports]


@pytest.fixture
def model(tmp_path):
    pytest.importorskip("msgspec")
    da.zoo.double_pendulum().save(tmp_path / "arm.json")
    return str(tmp_path / "arm.json")


def test_run_writes_what_was_asked_for(model, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("h5py")
    out = [str(tmp_path / name) for name in ("run.h5", "run.html", "run.png", "phase.pdf")]
    joint = da.load(model).joints[0].name
    assert main(["run", model, "--dt", "0.01", "--duration", "0.2", "--set", f"{joint}=0.5", "--out", out[0], "--html", out[1], "--plot", out[2], "--plot", f"phase={out[3]}"]) == 0
    told = capsys.readouterr().out
    assert "20 to t = 0.2 s" in told
    assert all(f"wrote {path}" in told for path in out)
    trajectory = da.Trajectory.load(out[0])
    assert trajectory.joint(joint).coordinates[0] == pytest.approx(0.5)


def test_the_zoo(capsys):
    assert main(["zoo"]) == 0
    assert "double_four_bar" in capsys.readouterr().out
    assert main(["zoo", "bricard"]) == 0
    assert "rod 1" in capsys.readouterr().out
    assert main(["run", "pendulum", "--dt", "0.01", "--duration", "0.1"]) == 0


@pytest.mark.parametrize(("words", "meant"), [
    ("rn pendulum", "did you mean 'run'"), ("run pendlum", "did you mean 'pendulum'"), ("run pendulum --duraton 3", "did you mean '--duration'"),
    ("run pendulum --plot enrgy=x.png", "did you mean 'energy'"), ("zoo pendlum", "did you mean 'pendulum'"), ("run pendulum --formulation implict", "did you mean 'implicit'"),
])
def test_wrong_words_are_told_what_was_meant(words, meant, capsys):
    with suppress(SystemExit):
        assert main(words.split()) != 0
    told = capsys.readouterr().err
    assert meant in told
    assert told.count("\n") == 1


def test_a_duration_is_met_and_a_ground_is_added(capsys):
    assert main(["run", "door", "--dt", "0.01", "--duration", "0.105", "--ground", "-3"]) == 0
    told = capsys.readouterr().out
    assert "11 to t = 0.105 s" in told
    assert "least gap" in told
    assert main(["info", "quadruped", "--no-contacts", "--no-limits"]) == 0
    assert "may touch" not in capsys.readouterr().out
    assert main(["info", "quadruped"]) == 0
    assert "0 bodies and 4 points may touch, 1 thing around" in capsys.readouterr().out


def test_the_doctor_looks_at_the_installation(capsys, monkeypatch, tmp_path):
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    for words in (f"dalembert           {da.__version__}", "processor", "numba", "cache", "run, Variational", "run, Implicit", "agreement", "all is well"):
        assert words in told
    assert main(["doctor", "pendulum", "--dt", "0.005", "--steps", "12"]) == 0
    told = capsys.readouterr().out
    assert "in Variational(dt=0.005" in told
    assert "against Reduced" in told
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("DALEMBERT_CACHE", str(tmp_path / "open"))
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "it is not used: others can write to" in told
    assert "not well: cache" in told


def test_a_large_file_needs_a_larger_budget(tmp_path, capsys):
    pytest.importorskip("msgspec")
    mechanism = da.Mechanism("stones")
    mechanism.body("stone", da.Convex(points=np.random.default_rng(1).normal(size=(12_000, 3)), mass=1.0))
    mechanism.save(tmp_path / "stones.json")
    assert main(["info", str(tmp_path / "stones.json")]) == 3
    assert "larger Budget(elements=...)" in capsys.readouterr().err
    assert main(["info", str(tmp_path / "stones.json"), "--budget", "10"]) == 0


def test_info_counts(capsys):
    assert main(["info", "double_four_bar"]) == 0
    told = capsys.readouterr().out
    for words in ("degrees of freedom  1", "loops               2", "redundant rows      6", "bodies              5"):
        assert words in told


@pytest.mark.skipif(not CASSIE.is_file(), reason="the model of Cassie is not there")
def test_info_of_cassie(capsys):
    pytest.importorskip("mujoco")
    assert main(["info", str(CASSIE), "--base", "fixed"]) == 0
    told = capsys.readouterr().out
    assert "loops               4" in told
    assert "warnings" in told


def test_compare_measures_the_orders(model, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    assert main(["compare", model, "--dt", "0.01", "--duration", "0.2", "--plot", str(tmp_path / "c.png")]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [word for word in told[1].split() if word != "dt"] == ["0.01", "0.005", "0.0025", "0.00125", "order", "violation", "energy", "time"]
    table = {" ".join(line.split()[:-10]): line.split()[-10:] for line in told[2:-2]}
    assert list(table) == [
        "variational", *(f"implicit {method}" for method in ("bdf1", "bdf2", "sdirk2", "pareschi_russo", "semi_implicit")),
        *(f"reduced {method}" for method in ("bdf1", "bdf2", "sdirk2", "pareschi_russo", "linearly_implicit", "semi_implicit", "rk4")),
    ]
    orders = {name: float(row[4]) for name, row in table.items()}
    assert orders["variational"] == pytest.approx(2.0, abs=0.1)
    assert orders["implicit bdf1"] == pytest.approx(1.0, abs=0.15)
    assert orders["implicit bdf2"] == pytest.approx(2.0, abs=0.25)
    assert orders["reduced bdf1"] == pytest.approx(1.0, abs=0.15)
    assert orders["reduced bdf2"] == pytest.approx(2.0, abs=0.25)
    finest = [float(row[3]) for row in table.values()]
    assert finest[0] < 1e-4
    assert max(finest) < 1e-2
    assert (tmp_path / "c.png").is_file()


def test_compare_says_who_cannot_take_it(capsys):
    assert main(["compare", "box_drop", "--dt", "0.01", "--duration", "0.1", "--halvings", "1"]) == 0
    told = capsys.readouterr()
    refused = [line for line in told.err.strip().splitlines() if not line.startswith("dalembert: compiling")]
    assert [line.split(":")[0] for line in refused] == ["implicit semi_implicit", "reduced semi_implicit", "reduced rk4"]
    assert all("contacts" in line for line in refused)
    assert len(told.out.splitlines()) == 2 + 10 + 1


def test_comparisons_with_failures():
    line = np.linspace(0.0, 1.0, 5)[:, None, None] * np.ones(3)
    runs = [line + h for h in (4e-2, 1e-2, 2.5e-3)]
    found = Comparison([0.4, 0.2, 0.1], [Column("stuck", [None, runs[1], runs[2]]), Column("good", [*runs])])
    name, exact = found.reference()
    assert name == "good"
    np.testing.assert_allclose(exact, line, atol=1e-12)
    assert found.differences()["good"] == pytest.approx([4e-2, 1e-2, 2.5e-3])
    rows = list(found.lines())
    assert "failed" in rows[2]
    assert float(rows[3].split()[4]) == pytest.approx(2.0)
    with pytest.raises(da.StepFailure, match="nothing to compare"):
        Comparison([0.4], [Column("stuck", [None])]).reference()


def test_convert(model, tmp_path, capsys):
    pytest.importorskip("tomli_w")
    assert main(["convert", model, str(tmp_path / "arm.toml")]) == 0
    assert main(["convert", model, str(tmp_path / "arm.urdf"), "--lossy"]) == 0
    assert "wrote" in capsys.readouterr().out
    assert da.load(tmp_path / "arm.toml").mass == da.load(model).mass
    main(["run", model, "--dt", "0.01", "--duration", "0.1", "--out", str(tmp_path / "run.h5")])
    assert main(["convert", str(tmp_path / "run.h5"), str(tmp_path / "run.csv")]) == 0
    assert main(["convert", str(tmp_path / "run.h5"), str(tmp_path / "run.html")]) == 0
    assert main(["convert", str(tmp_path / "run.h5"), str(tmp_path / "run.toml")]) == 3
    assert main(["convert", model, str(tmp_path / "arm.csv")]) == 3


def exit_code(arguments: list[str]) -> object:
    """Of a command, whether it returns or exits."""
    try:
        return main(arguments)
    except SystemExit as stop:
        return stop.code


WRONG = [
    ([], 2, "required: COMMAND"),
    (["fly"], 2, "invalid choice: 'fly'"),
    (["run"], 2, "required: MODEL"),
    (["run", "nothing.urdf"], 3, "no such file"),
    (["run", "nothing"], 3, "no mechanism of that name"),
    (["run", "."], 3, "is a folder"),
    (["run", "run.h5"], 3, "is a trajectory, not a model"),
    (["run", "pendulum", "--dt", "-1"], 2, "must be a positive number"),
    (["run", "pendulum", "--dt", "nan"], 2, "must be a positive number"),
    (["run", "pendulum", "--duration", "long"], 2, "must be a positive number"),
    (["run", "pendulum", "--dt", "1e-12"], 3, "would not fit into memory"),
    (["run", "pendulum", "--formulation", "magic"], 2, "invalid choice: 'magic'"),
    (["run", "pendulum", "--formulation", "implicit", "--method", "rk4"], 2, "belongs to --formulation reduced"),
    (["run", "pendulum", "--formulation", "reduced", "--method", "euler"], 2, "'bdf1'"),
    (["run", "pendulum", "--method", "bdf1"], 2, "belongs to --formulation implicit or reduced"),
    (["run", "box_drop", "--formulation", "implicit", "--method", "semi_implicit"], 3, "use Variational"),
    (["run", "pendulum", "--set", "knee=1"], 3, "no element named 'knee'"),
    (["run", "pendulum", "--set", "knee"], 2, "JOINT=VALUE"),
    (["run", "pendulum", "--set", "joint 1=inf"], 2, "JOINT=VALUE"),
    (["run", "pendulum", "--set", "link 1=1"], 3, "not a joint"),
    (["run", "pendulum", "--set", "joint 1=1,2"], 3, "must be 1 numbers"),
    (["run", "pendulum", "--out", "/none/run.h5"], 2, "no folder"),
    (["run", "pendulum", "--out", "run.xyz"], 2, ".h5, .hdf5, .csv, .npz"),
    (["run", "pendulum", "--html", "run.txt"], 2, ".html"),
    (["run", "pendulum", "--video", "run.avi"], 2, ".mp4, .gif"),
    (["run", "pendulum", "--plot", "run.docx"], 3, "choose an ending"),
    (["run", "pendulum", "--plot", "/none/run.png"], 3, "no folder"),
    (["run", "pendulum", "--plot", "speed=run.png"], 2, "cannot draw 'speed'"),
    (["run", "pendulum", "--plot", "gaps=run.png"], 3, "no gaps to plot"),
    (["run", "pendulum", "--root", "/none"], 2, "no folder"),
    (["run", "n_four_bar", "--set", "ground 0=1", "--set", "ground 1=2"], 1, "cannot be closed"),
    (["view", "nothing.h5"], 3, "no such file"),
    (["view", "pendulum", "--port", "99999"], 2, "between 0 and 65535"),
    (["info", "nothing"], 3, "no mechanism of that name"),
    (["compare", "pendulum", "--halvings", "0"], 2, "invalid choice: 0"),
    (["compare", "pendulum", "--plot", "c.docx"], 3, "choose an ending"),
    (["convert", "pendulum", "p.xyz"], 2, "choose an ending"),
    (["convert", "double_four_bar", "loop.urdf"], 3, "URDF is a tree"),
    (["zoo", "dragon"], 3, "the zoo has no 'dragon'"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_errors_are_one_line(arguments, code, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert exit_code(arguments) == code
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert message in told[0]
    assert not list(tmp_path.iterdir())


def test_debug_shows_the_traceback():
    with pytest.raises(da.ModelError):
        main(["run", "nothing.urdf", "--debug"])


def test_missing_extra(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.urdf").write_text("<robot name='a'><link name='a'/></robot>")
    monkeypatch.setitem(sys.modules, "yourdfpy", None)
    assert main(["run", str(tmp_path / "a.urdf")]) == 4
    assert "dalembert[urdf]" in capsys.readouterr().err


def test_extras_are_missed_before_the_run(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["run", "hoberman_sphere", "--duration", "1e4", "--video", str(tmp_path / "run.mp4")]) == 4
    assert "dalembert[video]" in capsys.readouterr().err


def test_an_interrupted_run_keeps_what_was_computed(tmp_path):
    """Ctrl-C in a terminal, once the progress bar shows a rate and the time left."""
    pytest.importorskip("tqdm")
    pytest.importorskip("h5py")
    pty, fcntl, termios = (pytest.importorskip(name) for name in ("pty", "fcntl", "termios"))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    command = [sys.executable, "-m", "dalembert.cli", "run", "hoberman_sphere", "--dt", "0.002", "--duration", "20", "--out", str(tmp_path / "run.h5")]
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731  a shell's background jobs do not hear Ctrl-C
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=heard)
    os.close(theirs)
    told, sent = "", False
    try:
        while True:
            try:
                told += os.read(ours, 4096).decode(errors="replace")
            except OSError:  # the other side is closed
                break
            if not sent and re.search(r"\d+/10000 \[\d+:\d+<[\d:]+, +[\d.]+ ?(steps/s|s/ steps)", told):
                os.kill(process.pid, signal.SIGINT)
                sent = True
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        os.close(ours)
    assert "interrupted at t = " in told
    assert "Traceback" not in told
    kept = da.Trajectory.load(tmp_path / "run.h5")
    assert 1 < len(kept) < 50001
    assert kept.constraint_violation().max() < 1e-9


def test_a_reader_that_has_seen_enough():
    done = subprocess.run(f"{sys.executable} -m dalembert.cli zoo | head -1", shell=True, capture_output=True, text=True)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_sliders_instead_of_forces():
    mechanism = da.Mechanism("robot")
    link = mechanism.body("link", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -0.5))
    wheel = mechanism.body("wheel", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, -1))
    mechanism.joint("shoulder", da.Revolute(axis="x", drive="force", limits=(-1.0, 2.0), friction=0.1), mechanism.world, link)
    mechanism.joint("axle", da.Revolute(axis="x", drive="force"), link, wheel, at=(0, 0, -1))
    mechanism.gear("gear", "axle", "shoulder", ratio=3.0)
    assert hold(mechanism) == {"shoulder": (-1.0, 2.0)}
    assert mechanism["shoulder"].type.drive == ("motion",)
    assert mechanism["axle"].type.drive == ("force",)
    simulation = da.Simulation(mechanism, da.Variational(dt=0.01))
    for k in range(20):
        simulation.step({"shoulder": 0.01 * (k + 1), "axle": 0.0})
    assert simulation.coordinates("axle")[0] == pytest.approx(0.6, abs=1e-9)


def test_a_robot_in_one_command(tmp_path):
    """What a new user types; the kernels are compiled already."""
    pytest.importorskip("yourdfpy")
    page = tmp_path / "ur5.html"
    command = [sys.executable, "-m", "dalembert.cli", "run", str(find("ur5")), "--duration", "2", "--html", str(page)]
    subprocess.run(command, check=True, capture_output=True)
    tick = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert time.perf_counter() - tick < 15.0  # 5 s on a quiet machine
    assert "wrote" in done.stdout
    assert json.loads(page.read_text(encoding="utf-8").split('type="application/json">')[1].split("</script>")[0])["title"] == "ur5"
