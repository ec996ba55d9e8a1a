"""Everything that writes files: they appear whole or not at all, and what killed writers left goes."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dalembert as da
from dalembert.io.urdf_export import save_urdf
from dalembert.io.whole import _machine, write_whole

for module in ("h5py", "matplotlib", "imageio", "msgspec", "tomli_w"):
    pytest.importorskip(module)


def writers(run: da.Trajectory) -> dict:
    """Every way to write a file, by the file's name."""
    model = da.zoo.pendulum(2)
    state = da.State("kind", (0.0, 1, 0.1), run.position.reshape(-1), run.time)
    return {
        "run.h5": run.save, "run.csv": run.save, "run.npz": run.save, "run.html": run.to_html, "run.png": lambda path: run.snapshot(path, size=(160, 120)),
        "run.gif": lambda path: run.to_video(path, size=(80, 60)), "run.mp4": lambda path: run.to_video(path, size=(80, 60)),
        "plot.png": lambda path: run.plot("violation", path=path), "plot.pdf": lambda path: run.plot("violation", path=path),
        "plot.svg": lambda path: run.plot("violation", path=path), "graph.png": lambda path: model.draw_graph(path),
        "model.json": model.save, "model.toml": model.save, "model.urdf": lambda path: save_urdf(model, Path(path), lossy=True), "state.npz": state.save,
    }


NAMES = ["run.h5", "run.csv", "run.npz", "run.html", "run.png", "run.gif", "run.mp4", "plot.png", "plot.pdf", "plot.svg", "graph.png", "model.json", "model.toml", "model.urdf", "state.npz"]


@pytest.mark.parametrize("name", NAMES)
def test_what_was_there_stays(short_run, tmp_path, monkeypatch, name):
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / name
    path.write_bytes(b"what was there before")
    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        writers(short_run)[name](path)
    assert path.read_bytes() == b"what was there before"
    assert list(tmp_path.iterdir()) == [path]


#: writes everything where files may have 1,000 bytes, as a disk that is nearly full would have it
FULL = """
import json, resource, sys
from pathlib import Path
import dalembert as da
sys.path.insert(0, sys.argv[1])
from test_writers import writers
folder = Path(sys.argv[2])
run = da.Trajectory.load(folder / "source.h5")
todo = writers(run)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
said = {}
for name, write in todo.items():
    try:
        write(folder / name)
        said[name] = "written"
    except Exception as error:
        said[name] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
"""


@pytest.mark.skipif(os.name != "posix", reason="bounds of files are those of POSIX")
def test_a_full_disk_is_said_so(short_run, tmp_path):
    short_run.save(tmp_path / "source.h5")
    for name in NAMES:
        (tmp_path / name).write_bytes(b"what was there before")
    done = subprocess.run([sys.executable, "-c", FULL, str(Path(__file__).parent), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-1000:]
    said = json.loads(done.stdout.splitlines()[-1])
    for name in NAMES:
        if said[name] == "written":
            assert name in ("model.urdf", "model.toml"), "small enough"
            continue
        assert said[name].startswith(f"SaveError: cannot write {tmp_path / name}: "), said[name]
        assert (tmp_path / name).read_bytes() == b"what was there before"
    assert {path.name for path in tmp_path.iterdir()} == {*NAMES, "source.h5"}


def test_leftovers_of_dead_writers_go(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    token = "0" * 16
    gone = [tmp_path / f".dalembert-{_machine()}-{dead.pid}-{token}.tmp", tmp_path / f".dalembert-{_machine()}-{dead.pid}-{token}.tmp.mp4"]
    old = tmp_path / f".dalembert-ffffffff-{dead.pid}-{token}.tmp"
    kept = [
        tmp_path / f".dalembert-{_machine()}-{os.getpid()}-{token}.tmp",  # its writer lives
        tmp_path / f".dalembert-abcdefab-{dead.pid}-{token}.tmp",  # of another machine
        tmp_path / ".dalembert-mine.tmp", tmp_path / "results.tmp",
    ]
    for path in (*gone, old, *kept):
        path.write_bytes(b"half a file")
    os.utime(old, (1.0, 1.0))
    da.zoo.pendulum(2).save(tmp_path / "model.json")
    assert not any(path.exists() for path in (*gone, old))
    assert all(path.exists() for path in kept)


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_who_may_read_a_file_stays(tmp_path):
    path = tmp_path / "model.json"
    path.touch()
    path.chmod(0o600)
    da.zoo.pendulum(2).save(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_other_errors_stay_what_they_are(tmp_path):
    def fail() -> None:
        with write_whole(tmp_path / "a") as part:
            part.touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not list(tmp_path.iterdir())
