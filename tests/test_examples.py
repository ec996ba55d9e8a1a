"""Every example, and every program in the documentation, runs and passes its own check."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dalembert as da

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
#: half a minute and more
LONG = {"19_hoberman_throw", "44_walker_on_a_cluster", "45_learning_to_balance"}
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"(?<!`)`(\.?\w[\w.-]*/[\w./-]*|\w+\.py)`")
LINK = re.compile(r"\]\((?!\w+:|#)([^)#]+)")


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in LONG), id=path.stem) for path in EXAMPLES])
def test_example(path, tmp_path):
    assert run([str(path)], tmp_path)
    promised = set(re.findall(r"out/\w+\.png", path.read_text(encoding="utf-8")))
    assert {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.png")} == promised


@pytest.mark.parametrize("page", [page for page in PAGES if PROGRAM.search(page.read_text(encoding="utf-8"))], ids=lambda page: page.name)
def test_programs_in_the_documentation(page, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("\n".join(PROGRAM.findall(page.read_text(encoding="utf-8"))), encoding="utf-8")
    run([str(program)], tmp_path)


def there(page: Path, link: str) -> bool:
    """True for files, and for pages that an example writes."""
    if link.startswith("pages/"):
        return any(f"out/{link.removeprefix('pages/')}" in example.read_text(encoding="utf-8") for example in EXAMPLES)
    return (page.parent / link).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_in_the_documentation(page):
    assert not [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not there(page, link)]


def test_pictures_of_the_documentation_are_made_by_examples():
    promised = {name for example in EXAMPLES for name in re.findall(r"out/(\w+\.png)", example.read_text(encoding="utf-8"))}
    assert {path.name for path in (ROOT / "docs" / "images").glob("*.png")} <= promised


def test_programs_of_users_are_short():
    """Machines and tasks that users came with: at most 60 lines each."""
    numbers = [16, 21, *range(24, 36)]
    assert {int(path.name[:2]): count for path in EXAMPLES if int(path.name[:2]) in numbers and (count := len(path.read_text(encoding="utf-8").splitlines())) > 60} == {}


def test_the_gallery_names_every_page_and_script():
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(\d\d_\w+\.py)`", text)) == {example.name for example in EXAMPLES}
    written = {name for example in EXAMPLES for name in re.findall(r"out/(\w+\.html)", example.read_text(encoding="utf-8"))}
    assert set(re.findall(r"pages/(\w+\.html)", text)) == written


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_in_the_documentation(page):
    """Files and folders in backticks are there, seen from the repository or from src/dalembert; scripts also by their bare names."""
    places = (ROOT, ROOT / "src" / "dalembert", ROOT / "examples")
    named = PATH.findall(page.read_text(encoding="utf-8"))
    assert not [name for name in named if not name.startswith("out/") and not any((place / name).exists() for place in places)]


def test_the_theory_page_names_what_is_there():
    text = (ROOT / "docs" / "variational.md").read_text(encoding="utf-8")
    functions = {name for file in (ROOT / "src").rglob("*.py") for name in re.findall(r"^def (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)}
    assert not set(re.findall(r"`([a-z_]+)`", text)) - functions


def test_the_joint_table_is_complete():
    text = (ROOT / "docs" / "mechanism.md").read_text(encoding="utf-8")
    for joint in da.JOINTS:
        assert f"| `{joint.__name__}` |" in text or f"| `{joint.__name__}`," in text, joint.__name__


def test_versions_agree():
    assert re.findall(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE) == [da.__version__]
    assert f"## [{da.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
