"""The command line: each command, its exit codes, and errors of one line."""
from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dalembert as da
from dalembert.cli import main

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
    out = [str(tmp_path / name) for name in ("run.h5", "run.html", "run.png")]
    joint = da.load(model).joints[0].name
    assert main(["run", model, "--dt", "0.01", "--duration", "0.2", "--set", f"{joint}=0.5", "--out", out[0], "--html", out[1], "--plot", out[2]]) == 0
    told = capsys.readouterr().out
    assert "20 steps" in told
    assert all(f"wrote {path}" in told for path in out)
    trajectory = da.Trajectory.load(out[0])
    assert trajectory.joint(joint).coordinates[0] == pytest.approx(0.5)


def test_the_zoo(capsys):
    assert main(["zoo"]) == 0
    assert "double_four_bar" in capsys.readouterr().out
    assert main(["zoo", "bricard"]) == 0
    assert "rod 1" in capsys.readouterr().out
    assert main(["run", "pendulum", "--dt", "0.01", "--duration", "0.1"]) == 0


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
    assert "not simulated" in told


def test_compare_measures_the_order(model, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    assert main(["compare", model, "--dt", "0.01", "--duration", "0.2", "--plot", str(tmp_path / "c.png")]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("order"))
    assert float(line.split()[1]) == pytest.approx(2.0, abs=0.1)
    assert (tmp_path / "c.png").is_file()


def test_convert(model, tmp_path, capsys):
    pytest.importorskip("tomli_w")
    assert main(["convert", model, str(tmp_path / "arm.toml")]) == 0
    assert main(["convert", model, str(tmp_path / "arm.urdf"), "--lossy"]) == 0
    assert "wrote" in capsys.readouterr().out
    assert da.load(tmp_path / "arm.toml").mass == da.load(model).mass
    assert main(["convert", model, str(tmp_path / "arm.xyz")]) == 3
    main(["run", model, "--dt", "0.01", "--duration", "0.1", "--out", str(tmp_path / "run.h5")])
    assert main(["convert", str(tmp_path / "run.h5"), str(tmp_path / "run.csv")]) == 0
    assert main(["convert", str(tmp_path / "run.h5"), str(tmp_path / "run.toml")]) == 3


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (["run", "nothing.urdf"], 3, "no such file"),
    (["run", "nothing"], 3, "no mechanism of that name"),
    (["run", "pendulum", "--dt", "-1"], 3, "dt must be positive"),
    (["run", "pendulum", "--formulation", "magic"], 3, "no formulation 'magic'"),
    (["run", "pendulum", "--set", "knee=1"], 3, "no element named 'knee'"),
    (["run", "pendulum", "--set", "knee"], 3, "JOINT=VALUE"),
    (["run", "pendulum", "--out", "/none/run.h5"], 3, "no folder"),
    (["run", "n_four_bar", "--set", "ground 0=1", "--set", "ground 1=2"], 1, "cannot be closed"),
    (["zoo", "dragon"], 3, "the zoo has no 'dragon'"),
    (["compare", "pendulum", "--halvings", "0"], 3, "halvings"),
])
def test_errors_are_one_line(arguments, code, message, capsys):
    assert main(arguments) == code
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert message in told[0]


def test_debug_shows_the_traceback():
    with pytest.raises(da.ModelError):
        main(["run", "nothing.urdf", "--debug"])


def test_wrong_usage():
    with pytest.raises(SystemExit) as stop:
        main(["fly"])
    assert stop.value.code == 2


def test_missing_extra(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.urdf").write_text("<robot name='a'><link name='a'/></robot>")
    monkeypatch.setitem(sys.modules, "yourdfpy", None)
    assert main(["run", str(tmp_path / "a.urdf")]) == 4
    assert "dalembert[urdf]" in capsys.readouterr().err


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
