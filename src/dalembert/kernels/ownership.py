"""Whose a folder is: machine code is taken only from folders that belong to the user and that nobody else can write.

Everything is asked of what was opened, not of its name: nobody can put another file there in between. Systems without
POSIX owners (Windows) keep the cache in the user's profile, which is the user's alone already.
"""
from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

POSIX = os.name == "posix"
#: flags of what is opened: no links, and not for processes that we start
_CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def user() -> int:
    """Number of the user."""
    return os.geteuid()


def doubt(folder: Path) -> str:
    """Why what is in a folder may be somebody else's; empty where it is the user's own."""
    if not POSIX:
        return ""
    try:
        return _doubt(os.lstat(folder)) or _doubt_around(folder.parent)
    except OSError as error:
        return str(error)


def _doubt(found: os.stat_result) -> str:
    if found.st_uid != user():
        return f"it belongs to user {found.st_uid}, not to user {user()}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others can write to it (chmod go-w would change that)"
    return ""


def _doubt_around(folder: Path) -> str:
    """The folders around it: no one else may put another folder in its place."""
    here = os.stat(folder)
    sticky = bool(here.st_mode & stat.S_ISVTX)
    if here.st_uid not in (user(), 0):
        return f"the folder around it belongs to user {here.st_uid}, not to user {user()}"
    if here.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not sticky:
        return f"others can write to {folder} (chmod go-w would change that)"
    for above in Path(os.path.realpath(folder)).parents:
        mode = os.stat(above).st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"everyone can write to {above}"
    return ""


def make_root(root: Path) -> None:
    """Make a folder of the user's alone, where there is none."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)


def tighten(root: Path) -> None:
    """Let nobody else write to a folder that we made, with a generous mask."""
    found = os.stat(root)
    if POSIX and found.st_uid == user() and found.st_mode & 0o022:
        os.chmod(root, stat.S_IMODE(found.st_mode) & ~0o022)


def make_private(folder: Path, mark: str, text: str) -> None:
    """Make a folder of the user's alone with a file in it that says whose it is; it appears with that file, or not at all."""
    make_root(folder.parent)
    new = folder.with_name(f"{folder.name}-{os.getpid()}")
    try:
        new.mkdir(mode=0o700, exist_ok=True)
        (new / mark).write_text(text)
        os.rename(new, folder)
    except OSError:  # another process was first
        with suppress(OSError):
            (new / mark).unlink()
            new.rmdir()
        if not folder.is_dir():
            raise


def open_private(path: Path) -> int:
    """Open a file of the user's own for reading and writing, made where there is none; PermissionError where it is not the user's."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _CAREFUL, 0o600)
    if POSIX and os.fstat(handle).st_uid != user():
        os.close(handle)
        raise PermissionError(f"{path} belongs to another user")
    return handle


def read_private(folder: Path, name: str) -> bytes:
    """The bytes of a file in a folder, if both are the user's alone: PermissionError where they are not."""
    if not POSIX:
        return (folder / name).read_bytes()
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _CAREFUL)
    try:
        file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _CAREFUL, dir_fd=here)
        try:
            reason = _doubt(os.fstat(here)) or _doubt_around(folder.parent) or _doubt(os.fstat(file))
            if reason or not stat.S_ISREG(os.fstat(file).st_mode):
                raise PermissionError(reason or f"{name} is no file")
            with os.fdopen(file, "rb", closefd=False) as opened:
                return opened.read()
        finally:
            os.close(file)
    finally:
        os.close(here)
