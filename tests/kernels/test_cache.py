"""The folder of compiled kernels: entries, waiting for each other, what is removed."""
from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dalembert.kernels import cache, ownership
from dalembert.kernels.cache import KEPT_DAYS, MARK, SEAL, Folder, remove_unused


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
    assert folder.path is not None
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
        (folder / "kernel").write_bytes(SEAL + b"code")
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
    assert folder.path is not None
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
    (ours, linked) = _make(root, KEPT_DAYS + 1, 2)
    (linked / "link").symlink_to(tmp_path)
    (elsewhere,) = _make(tmp_path / "elsewhere", KEPT_DAYS + 1, 1)
    named, marked = root / "kernels-0123456789abcdef", root / "thesis"
    for folder in (named, marked):
        folder.mkdir()
        (folder / "chapter").write_text("years of work")
    (marked / MARK).touch()
    (root / "kernels-fedcba9876543210").symlink_to(elsewhere)
    for folder in (named, marked, ours, linked):
        _age(folder, KEPT_DAYS + 1)
    monkeypatch.setattr(cache, "KEPT_FOLDERS", 0)
    remove_unused.__wrapped__()
    assert not ours.exists()
    assert (linked / "link").is_symlink()
    assert len(list(root.iterdir())) == 4
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


# ---- what is trusted


def test_a_damaged_entry_is_no_entry(root, capsys):
    folder = Folder(Path(__file__))
    folder.save("a", bytes(range(256)))
    assert folder.path is not None
    whole = (folder.path / "a").read_bytes()
    damaged = [whole[:cut] for cut in (0, 5, len(SEAL), len(SEAL) + 20, len(whole) - 1)] + [b"x" + whole, whole + b"\0", b"\x80\x04."]
    for k in range(0, len(whole), 7):  # bits in the seal, in the checksum and in the data
        changed = bytearray(whole)
        changed[k] ^= 1 << k % 8
        damaged.append(bytes(changed))
    for data in damaged:
        (folder.path / "a").write_bytes(data)
        assert folder.load("a") is None
    assert "is damaged, and is compiled again" in capsys.readouterr().err
    folder.save("a", b"new")
    assert folder.load("a") == b"new"


def test_an_entry_counts_in_its_own_place_alone(root):
    folder = Folder(Path(__file__))
    folder.save("a", b"data")
    assert folder.path is not None
    (folder.path / "a").rename(folder.path / "b")
    assert folder.load("b") is None


posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are those of POSIX")


@posix
@pytest.mark.parametrize("what", ["root", "folder", "entry"])
def test_what_others_can_write_is_not_trusted(root, what, capsys):
    folder = Folder(Path(__file__))
    folder.save("a", b"data")
    assert folder.path is not None
    place = {"root": root, "folder": folder.path, "entry": folder.path / "a"}[what]
    mode = place.stat().st_mode
    for more in (0o020, 0o002):
        place.chmod(mode | more)
        assert folder.load("a") is None
        if what != "entry":
            folder.save("b", b"data")
            assert not (folder.path / "b").exists()
    place.chmod(mode)
    assert folder.load("a") == b"data"
    said = capsys.readouterr().err
    assert "others can write to" in said
    assert "chmod go-w" in said


@posix
def test_what_belongs_to_others_is_not_trusted(root, monkeypatch, capsys):
    folder = Folder(Path(__file__))
    folder.save("a", b"data")
    monkeypatch.setattr(ownership, "user", lambda: os.geteuid() + 1)
    assert folder.load("a") is None
    assert f"belongs to user {os.geteuid()}, not to user {os.geteuid() + 1}" in capsys.readouterr().err


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["folder", "entry"])
def test_what_another_user_planted_is_not_trusted(root, what):
    folder = Folder(Path(__file__))
    folder.save("a", b"data")
    assert folder.path is not None
    os.chown(folder.path if what == "folder" else folder.path / "a", 12345, 12345)
    assert folder.load("a") is None


@posix
def test_links_are_not_followed(root, tmp_path):
    folder = Folder(Path(__file__))
    folder.save("a", b"data")
    assert folder.path is not None
    (folder.path / "a").rename(tmp_path / "elsewhere")
    (folder.path / "a").symlink_to(tmp_path / "elsewhere")
    assert folder.load("a") is None
    os.unlink(folder.path / "a")
    os.mkfifo(folder.path / "a")  # one that nobody writes to would be waited for
    assert folder.load("a") is None


@posix
def test_a_folder_for_everyone_can_hold_a_cache(tmp_path, monkeypatch):
    """As /tmp: anyone can write to it, but nobody can replace what is another's."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    monkeypatch.setenv("DALEMBERT_CACHE", str(tmp_path / "shared"))
    folder = Folder(Path(__file__))
    folder.save("a", b"data")
    assert folder.load("a") == b"data"


def test_without_a_home_nothing_is_kept(monkeypatch, capsys):
    for name in ("DALEMBERT_CACHE", "XDG_CACHE_HOME", "HOME", "USERPROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", classmethod(_no_home))
    folder = Folder(Path(__file__))
    with folder.claim("a"):
        assert folder.load("a") is None
        folder.save("a", b"data")
    assert not folder.holds("a")
    assert not cache.can_wait()
    assert "cannot keep compiled kernels: there is no home folder" in capsys.readouterr().err


def _no_home(_: object) -> Path:
    raise RuntimeError("Could not determine home directory.")


# ---- what killed processes leave


def test_leftovers_of_killed_writers_go(root):
    folder = Folder(Path(__file__))
    folder.save("a", b"data")
    assert folder.path is not None
    old, young = folder.path / "new-old", folder.path / "new-young"
    for file in (old, young):
        file.write_bytes(b"half")
    os.utime(old, (1.0, 1.0))
    cache._remove_leftovers.cache_clear()
    folder.save("b", b"data")
    assert not old.exists()
    assert young.exists()


def test_what_a_user_put_into_one_of_our_folders_stays(root):
    (folder,) = _make(root, KEPT_DAYS + 1, 1)
    (folder / "notes.txt").write_text("years of work")
    _age(folder, KEPT_DAYS + 1)
    remove_unused.__wrapped__()
    assert (folder / "notes.txt").read_text() == "years of work"
    (folder / "notes.txt").unlink()
    (folder / "inner").mkdir()
    (folder / "inner" / "index.nbi").write_bytes(b"of Numba's own cache")
    _age(folder, KEPT_DAYS + 1)
    remove_unused.__wrapped__()
    assert not folder.exists()
