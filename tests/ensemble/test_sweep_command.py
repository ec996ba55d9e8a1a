"""The command that sweeps: grids, random numbers, tables, pictures, and mistakes in one line."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.cli import main

SHORT = ["sweep", "double_pendulum", "--duration", "0.05", "--dt", "0.01"]


def test_a_grid_to_a_file_and_a_picture(tmp_path: Path, capsys) -> None:
    out, picture = tmp_path / "sweep.h5", tmp_path / "sweep.png"
    words = [*SHORT, "--vary", "joint 1.damping=0:1:5", "--samples", "100", "--out", str(out), "--plot", str(picture)]
    assert main(words) == 0
    told = capsys.readouterr()
    assert "5 runs of 0.05 s" in told.out
    assert "nothing to draw" in told.err
    ensemble = da.Ensemble.load(out)
    assert np.array_equal(ensemble.parameters["joint 1.damping"], np.linspace(0, 1, 5))
    assert set(ensemble.results) == {"joint 1", "joint 2"}
    assert picture.stat().st_size > 5000
    assert main(words) == 0
    assert main([*SHORT, "--vary", "joint 1.damping=0:1:6", "--out", str(out)]) == 3
    assert "another ensemble" in capsys.readouterr().err


@pytest.mark.parametrize("varied", [["joint 1.damping=1,0,0.5", "joint 1=0.2,0.1"], ["joint 1.damping=0:1", "joint 1.rate=-1:1"], ["joint 1.damping=0:1", "joint 1=0:1", "link 1.mass=1,2"]])
def test_grids_and_chance_in_tables_and_pictures(varied: list[str], tmp_path: Path) -> None:
    words = [word for name in varied for word in ("--vary", name)] + ["--samples", "3"] * (":" in varied[0])
    measures = [word for name in ("energy", "violation", "joint 2.force", "joint 1.travel", "joint 1.rate") for word in ("--measure", name)]
    assert main([*SHORT, *words, *measures, "--out", str(tmp_path / "runs.csv"), "--plot", str(tmp_path / "map.svg")]) == 0
    table = (tmp_path / "runs.csv").read_text().splitlines()
    assert len(table) == 1 + {2: 6, 3: 6}[len(varied)] if ":" not in varied[0] or len(varied) == 3 else 4
    assert "joint 2.force" in table[0]
    assert (tmp_path / "map.svg").exists()


def test_failures_are_told(capsys) -> None:
    assert main([*SHORT, "--vary", "link 1.mass=1,-1"]) == 0
    assert "1 run failed" in capsys.readouterr().out
    assert main([*SHORT, "--vary", "link 1.mass=-2,-1"]) == 1


@pytest.mark.parametrize(("words", "code", "said"), [
    ([], 2, "--vary"), (["--vary", "joint 1.dampin=0:1:3"], 3, "joint 1.damping"), (["--vary", "joint 1=0:1:3", "--measure", "enrgy"], 3, "energy"),
    (["--vary", "joint 1=0:1"], 3, "samples"),
])
def test_mistakes(words: list[str], code: int, said: str, capsys) -> None:
    assert main([*SHORT, *words]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("values", ["joint 1", "joint 1=", "joint 1=a", "joint 1=0:1:0", "joint 1=0:1:2:3", "joint 1=nan", "joint 1=0:inf"])
def test_values_that_are_none(values: str, capsys) -> None:
    with pytest.raises(SystemExit):
        main([*SHORT, "--vary", values])
    assert "NAME=LOW:HIGH:COUNT" in capsys.readouterr().err
