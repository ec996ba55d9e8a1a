"""What notebooks and interpreters show."""
from __future__ import annotations

import json

import pytest

import dalembert as da


@pytest.fixture(scope="module")
def run() -> da.Trajectory:
    return da.Simulation(da.zoo.pendulum(n=2), da.Variational(dt=0.01)).run(0.1)


def test_objects_say_what_they_are_in_a_line(run):
    sim = da.Simulation(da.zoo.pendulum(n=1), da.Variational(dt=0.01))
    assert repr(sim) == "<simulation of 'pendulum' in Variational, dt = 0.01 s, at t = 0 s>"
    assert repr(run) == "<trajectory of 'pendulum of 2 links' in Variational: 11 knots from t = 0 to 0.1 s, 2 bodies, 2 joints>"
    assert repr(sim.mechanism) == "<mechanism 'pendulum': 1 body, 1 joint>"


def test_tables_of_notebooks_are_short_and_escaped(run):
    made = da.Mechanism("<b>")
    made.body("<script>", da.Sphere(radius=1.0, mass=1.0))
    shown = made._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "11 knots" in run._repr_html_()
    assert len(run._repr_html_()) < 2000


def test_a_page_without_a_path_is_shown_inline(run, tmp_path):
    page = run.to_html()
    assert page._repr_html_().startswith("<iframe srcdoc=")
    run.to_html(tmp_path / "run.html")
    assert str(page) == (tmp_path / "run.html").read_text(encoding="utf-8")
    assert len(repr(page)) < 200


def test_figures_appear_in_an_executed_notebook():
    """A kernel runs cells as a student would; pictures, tables and pages must come back."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    cells = [
        "import dalembert as da\nsim = da.Simulation(da.zoo.pendulum(n=1), da.Variational(dt=0.01))\nrun = sim.run(0.1)",
        "run", "sim.mechanism", "run.plot('energy')", "run.view()", "run.to_html()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=300).execute()
    outputs = [json.loads(json.dumps(cell.outputs)) for cell in notebook.cells]
    kinds = [set().union(*(out.get("data", {}) for out in found)) for found in outputs]
    assert "text/html" in kinds[1]
    assert "text/html" in kinds[2]
    assert "image/png" in kinds[3]
    for k in (4, 5):
        page = next(out["data"]["text/html"] for out in outputs[k] if "data" in out)
        assert "iframe" in page
