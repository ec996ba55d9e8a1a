"""The search of example 43 on a Dask cluster of two processes, of which one is killed in the middle: nothing is lost, and the answer is the same.

The worker that has the gait number 12 is killed with SIGKILL, once. Dask starts another one, its gaits are run again, and every gait is in the file once; the numbers are equal
to the bit to those of threads. Draws which gaits were run, when, out/walker_on_a_cluster.png.
"""
import os
import signal
import sys
import time
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.view.plots import COLOURS, INK, finish_axis, finished, new_figure

SAMPLES, FATAL = 24, 12
spec = spec_from_file_location("walker_search", Path(__file__).with_name("43_walker_search.py"))
assert spec is not None
assert spec.loader is not None
example = module_from_spec(spec)
spec.loader.exec_module(example)


def settings(folder: Path) -> dict[str, Any]:
    """What both searches have: gaits have numbers, and each leaves a line when it begins."""
    log, once = str(folder / "walker_log.txt"), str(folder / "walker_killed.txt")

    def prepare(sim, parameters):
        with open(log, "a") as file:
            file.write(f"{int(parameters['number'])} {os.getpid()} {time.time()}\n")
        if parameters["number"] == FATAL and not os.path.exists(once):
            Path(once).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return dict(parameters={**example.GAITS, "number": list(range(SAMPLES))}, samples=1, seed=4, controls=example.gait, prepare=prepare, reduce=example.walk)


if __name__ == "__main__":
    if find_spec("distributed") is None or os.name != "posix":
        print("this example needs Dask, pip install dalembert[dask], and signals: it is left out")
        sys.exit()
    import dalembert as da

    folder = Path("out")
    folder.mkdir(exist_ok=True)
    for name in ("walker_log.txt", "walker_killed.txt", "walker.h5"):
        (folder / name).unlink(missing_ok=True)
    common = settings(folder)
    cluster = da.run_many(example.walker(), example.METHOD, example.TIME, backend="dask", workers=2, out=folder / "walker.h5", **common)
    begun = np.loadtxt(folder / "walker_log.txt")
    serial = da.run_many(example.walker(), example.METHOD, example.TIME, **common)
    same = all(np.array_equal(cluster.results[name], serial.results[name], equal_nan=True) for name in ("distance", "path"))
    processes = list(dict.fromkeys(begun[:, 1]))
    twice = [int(number) for number in range(SAMPLES) if (begun[:, 0] == number).sum() > 1]
    print(f"{len(cluster)} gaits, {int(cluster.successful.sum())} in the file, by {len(processes)} processes; begun twice: {twice}; equal to the bit: {same}")

    figure = new_figure(folder / "walker_on_a_cluster.png", height=3.0)
    axis = figure.subplots()
    for k, process in enumerate(processes):
        mine = begun[begun[:, 1] == process]
        axis.plot(mine[:, 2] - begun[0, 2], mine[:, 0], "o", color=COLOURS[k % len(COLOURS)], markersize=4)
    axis.annotate("killed", (begun[begun[:, 0] == FATAL][0, 2] - begun[0, 2], FATAL), xytext=(-14, 8), textcoords="offset points", color=INK)
    axis.set_xlabel("time / s", color=INK)
    finish_axis(axis, "gait")
    axis.margins(x=0.03)
    finished(figure, "gaits begun by workers, a colour each", "out/walker_on_a_cluster.png")
    if not (same and cluster.successful.all() and (folder / "walker_killed.txt").exists() and FATAL in twice):
        raise SystemExit("something was lost")
