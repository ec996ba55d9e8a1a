"""Every experiment of the papers runs, writes what it promises, and its claim holds."""
from __future__ import annotations

import csv
from pathlib import Path

import pytest

import dalembert as da
from dalembert.cli import main
from dalembert.studies import Report, Study, find_study, list_studies

#: small versions that run with the quick tests; the others are slow tests
QUICK = {
    "exoskeleton_tuning", "newton_residuals", "tight_tolerances", "constraint_drift", "energy_dissipation", "scaled_pendulums", "box_drop_gap",
    "t_handle_energy", "fast_pendulum_steps", "large_steps", "cylinder_contacts", "reference_energies",
    "upper_body",
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in list_studies()])
def test_small_version(name, tmp_path):
    outcome = find_study(name).run(tmp_path, quick=True, quiet=True)
    assert outcome.held, outcome
    endings = {file.suffix for file in outcome.files}
    assert {".csv", ".png"} <= endings
    assert all(file.stat().st_size > 50 for file in outcome.files)


@pytest.mark.slow
@pytest.mark.parametrize("name", list_studies())
def test_whole(name, tmp_path):
    outcome = find_study(name).run(tmp_path, quiet=True)
    assert outcome.held, outcome


def made(action, tmp_path):
    return Study("made_up", "Variational", "figure 0", "two is more than one", action).run(tmp_path, quiet=True)


def test_tables_are_kept_whole(tmp_path):
    def action(report: Report) -> None:
        report.table(("name", "value"), [("third", 1 / 3)])
        report.verdict(2 > 1, "2 and 1")

    outcome = made(action, tmp_path)
    assert outcome.tables == {"": [{"name": "third", "value": 1 / 3}]}
    with open(tmp_path / "made_up.csv", newline="") as file:
        assert float(next(iter(csv.DictReader(file)))["value"]) == 1 / 3
    assert str(outcome) == "made_up: two is more than one: held (2 and 1)"


def test_a_study_without_a_verdict_is_refused(tmp_path):
    with pytest.raises(da.DalembertError, match="verdict"):
        made(lambda report: None, tmp_path)


def test_command(tmp_path, capsys):
    assert main(["study"]) == 0
    assert "t_handle_energy" in capsys.readouterr().out
    assert main(["study", "t-handel-energy"]) == 3
    assert "did you mean 't_handle_energy'" in capsys.readouterr().err
    assert main(["study", "--all", "t_handle_energy"]) == 2
    assert main(["study", "t-handle-energy", "--quick", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("t_handle_energy: ")


def test_the_documentation_names_every_study():
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "studies.md").read_text(encoding="utf-8")
    assert {name for name in list_studies() if f"| `{name}` |" not in page} == set()
    assert {file.stem for file in (docs / "studies").glob("*.png")} <= set(list_studies())
