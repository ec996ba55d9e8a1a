"""An ensemble whose workers are killed: the program of a head that tests kill, too. Usage: killed.py FOLDER BACKEND RUNS."""
from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import dalembert as da


def ensemble(folder: Path, backend: str, runs: int, out: str = "runs.h5", workers: int = 2, **more) -> da.Ensemble:
    """A double pendulum from random starts, of which the run number 7 kills its process once; each run that begins leaves a line in the file "begun"."""
    begun, once = str(folder / "begun"), str(folder / "killed")

    def prepare(simulation: da.Simulation, parameters: dict[str, float]) -> None:
        number = int(parameters["number"])
        log = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(log, f"{number}\n".encode())
        os.close(log)
        if number == 7:
            try:
                os.close(os.open(once, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

    mechanism = da.zoo.double_pendulum()
    return da.run_many(
        mechanism, da.Variational(dt=0.01), 0.3, parameters={"number": list(range(runs)), "link 1.mass": (0.5, 1.5)}, starts={"joint 1": (-1.0, 1.0)},
        samples=1, seed=5, prepare=prepare, reduce=tip, out=folder / out, workers=workers, backend=backend, **more,
    )


def tip(run: da.Trajectory) -> dict[str, object]:
    """Where the second link ends, and the largest force in the second joint."""
    return {"tip": run.position[-1, 1], "force": run.joint("joint 2").force.max()}


if __name__ == "__main__":
    print(ensemble(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
