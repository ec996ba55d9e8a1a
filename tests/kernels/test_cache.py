"""The folder of compiled kernels: entries, waiting for each other, what is removed."""
from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dalembert.kernels import cache
from dalembert.kernels.cache import KEPT_DAYS, MARK, Folder, remove_unused


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("DALEMBERT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_entries_come_back(root):
    folder = Folder(Path(__file__))
    assert folder.load("a") is None
    assert not folder.holds("a")
    folder.save("a", b"first")
    folder.save("a", b"second")
    assert folder.load("a") == b"second"
    assert sorted(file.name for file in folder.path.iterdir()) == ["a", MARK]
    assert folder.path.parent == root


def test_a_cache_that_cannot_be_written_is_no_error(root, capsys):
    root.write_text("not a folder")
    folder = Folder(Path(__file__))
    folder.save("a", b"data")
    with folder.claim("a"):
        assert folder.load("a") is None
    assert "cannot keep compiled kernels" in capsys.readouterr().err


def _age(folder: Path, days: float) -> None:
    then = time.time() - days * 86400
    os.utime(folder, (then, then))


def _make(root: Path, days: int, count: int) -> list[Path]:
    """Folders like ours that were last used some days ago."""
    folders = [root / f"kernels-{days:08d}{i:08d}" for i in range(count)]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "kernel").write_bytes(b"code")
        (folder / MARK).touch()
        _age(folder, days)
    return folders


def test_unused_folders_go(root):
    old, young = _make(root, KEPT_DAYS + 1, 3), _make(root, KEPT_DAYS - 1, 3)
    (root / "locks").touch()
    with ThreadPoolExecutor(4) as pool:  # several processes may do this at the same time
        list(pool.map(lambda _: remove_unused.__wrapped__(), range(8)))
    assert sorted(root.iterdir()) == sorted([*young, root / "locks"])
    assert all((folder / "kernel").exists() for folder in young)
    assert not any(folder.exists() for folder in old)


def test_use_keeps_a_folder(root):
    folder = Folder(Path(__file__))
    folder.save("a", b"data")
    _make(root, KEPT_DAYS - 1, 1)
    _age(folder.path, 2 * KEPT_DAYS)
    cache._mark_used.cache_clear()
    assert folder.load("a") == b"data"
    remove_unused.__wrapped__()
    assert folder.load("a") == b"data"


def test_the_newest_folders_stay(root, monkeypatch):
    monkeypatch.setattr(cache, "KEPT_FOLDERS", 2)
    _make(root, 5, 3)
    newest = _make(root, 1, 2)
    remove_unused.__wrapped__()
    assert sorted(root.iterdir()) == newest


def test_what_others_made_stays(root, monkeypatch, tmp_path):
    """The cache may be pointed at a folder that holds a user's own."""
    (ours,) = _make(root, KEPT_DAYS + 1, 1)
    (elsewhere,) = _make(tmp_path / "elsewhere", KEPT_DAYS + 1, 1)
    named, marked = root / "kernels-0123456789abcdef", root / "thesis"
    for folder in (named, marked):
        folder.mkdir()
        (folder / "chapter").write_text("years of work")
    (marked / MARK).touch()
    (root / "kernels-fedcba9876543210").symlink_to(elsewhere)
    (ours / "link").symlink_to(marked)
    for folder in (named, marked, ours):
        _age(folder, KEPT_DAYS + 1)
    monkeypatch.setattr(cache, "KEPT_FOLDERS", 0)
    remove_unused.__wrapped__()
    assert not ours.exists()
    assert len(list(root.iterdir())) == 3
    assert all((folder / "chapter").exists() for folder in (named, marked))
    assert (elsewhere / "kernel").exists()


def test_an_interrupted_removal_is_taken_up_again(root, monkeypatch):
    (folder,) = _make(root, KEPT_DAYS + 1, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", _fail)
        remove_unused.__wrapped__()
    assert not folder.exists()
    assert len(list(root.iterdir())) == 1
    remove_unused.__wrapped__()
    assert not list(root.iterdir())


def _fail(*_: object) -> None:
    raise OSError


HOLDER = """
import sys, time
from pathlib import Path
from dalembert.kernels.cache import Folder
with Folder(Path(sys.argv[1])).claim("entry"):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@pytest.mark.skipif(not cache.can_wait(), reason="no locks on this system")
@pytest.mark.parametrize("killed", [False, True])
def test_claims_wait_for_other_processes(root, killed):
    folder = Folder(Path(__file__))
    seconds = 60.0 if killed else 1.0
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, __file__, str(seconds)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        begun = time.monotonic()
        with folder.claim("another entry"):
            assert time.monotonic() - begun < 0.5
        if killed:
            holder.kill()
        with folder.claim("entry"):
            assert (time.monotonic() - begun < 30.0) if killed else (time.monotonic() - begun > 0.5)
    finally:
        holder.kill()
        holder.communicate()
