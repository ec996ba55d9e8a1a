"""Simulators in processes of their own, all on one core: they run in turns when they are told to, and none disturbs or takes along another."""
from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import traceback
import warnings
from typing import Any

import numpy as np

from benchmarks.comparison.measure import pin
from benchmarks.comparison.scene import Poses, Scene

#: how often joints and ground are looked at during a run
LOOKS = 20
#: a timing shorter than this (s) is made of several runs
SHORTEST = 0.005
#: s without an answer after which a simulator is given up
PATIENCE = 240.0


class Failed(Exception):
    """What a simulator could not do, in its words."""


class Worker:
    """A process with the models of one simulator; calls of methods of ``Bench`` by name."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, what: str, *arguments: Any) -> Any:
        """The answer, or Failed: the process is then still good, unless it died."""
        try:
            self.pipe.send((what, arguments))
            if not self.pipe.poll(PATIENCE):
                raise EOFError
            good, answer = self.pipe.recv()
        except (EOFError, OSError):
            self.close()
            raise Failed("its process died or did not answer") from None
        if not good:
            raise Failed(answer)
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()

    @property
    def alive(self) -> bool:
        return self.process.is_alive()


def _serve(pipe: Any) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    warnings.simplefilter("ignore")
    pin()
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # simulators print, from C too
        os.dup2(nothing, stream)
    os.chdir(tempfile.gettempdir())  # MuJoCo writes a log to where it is
    bench = Bench()
    while True:
        try:
            what, arguments = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            pipe.send((True, getattr(bench, what)(*arguments)))
        except KeyboardInterrupt:
            return
        except Exception as error:
            pipe.send((False, f"{type(error).__name__}: {error}"[:300] or traceback.format_exc()[-300:]))


class Bench:
    """What a worker does. Models are kept by a key."""

    def __init__(self) -> None:
        self.scenes: dict[str, Scene] = {}
        self.models: dict[Any, Any] = {}

    def scene(self, problem: str) -> Scene:
        if problem not in self.scenes:
            from benchmarks.comparison.problems import PROBLEMS

            self.scenes = {problem: PROBLEMS[problem].scene()}
        return self.scenes[problem]

    def about(self, problem: str) -> dict[str, Any]:
        scene = self.scene(problem)
        return dict(bodies=len(scene.links), loops=len(scene.loops), contact=scene.ground is not None)

    def exact(self, problem: str, duration: float) -> Poses | None:
        from benchmarks.comparison.problems import exact

        return exact(problem, self.scene(problem), duration)

    def refuses(self, problem: str, peer: str, method: str) -> str | None:
        return _peer(peer).refuses(self.scene(problem), method)

    def build(self, key: Any, problem: str, peer: str, method: str, dt: float, accuracy: float | None = None) -> dict[str, float]:
        """Seconds of processor time that the model and its first step take: what is compiled or loaded is in there."""
        scene, simulator = self.scene(problem), _peer(peer)
        tick = time.process_time()
        model = simulator.build(scene, method, dt) if accuracy is None else simulator.build(scene, method, dt, accuracy)
        built = time.process_time()
        model.run(1)
        stepped = time.process_time()
        model.reset()
        self.models[key] = scene, model
        return dict(build=built - tick, first_step=stepped - built)

    def forget(self) -> None:
        self.models.clear()

    def look(self, key: Any, steps: int, reference: Poses | None) -> dict[str, Any]:
        """What comes out of a run: how far joints open and bodies sink in, at most, and the error at the end (m)."""
        scene, model = self.models[key]
        opening = depth = 0.0
        done, poses = 0, scene.start
        for target in np.linspace(0, steps, min(LOOKS, steps) + 1).round().astype(int)[1:]:
            model.run(int(target) - done)
            done, poses = int(target), model.poses()
            opening, depth = max(opening, scene.opening(poses)), max(depth, scene.depth(poses))
        found = {"opening": opening, "depth": depth, "diverged": bool(not np.isfinite(poses.position).all() or scene.error(poses, scene.start) > 1e3)}
        return found | ({} if reference is None else {"error": scene.error(poses, reference)})

    def error(self, key: Any, reference: Poses) -> float:
        """Of where the last run ended, in m."""
        scene, model = self.models[key]
        return scene.error(model.poses(), reference)

    def spend(self, key: Any, steps: int) -> float:
        """Seconds of processor time of a run from the start; very short ones are taken several times."""
        _, model = self.models[key]
        spent, count = 0.0, 0
        while spent < SHORTEST and count < 20:
            model.reset()
            tick = time.process_time()
            model.run(steps)
            spent += time.process_time() - tick
            count += 1
        return spent / count


def _peer(name: str) -> Any:
    from benchmarks.peers import peer_named

    return peer_named(name)


class Crew:
    """Workers by group: one per simulator, kept; ours one per formulation, new for each problem."""

    def __init__(self) -> None:
        self.workers: dict[str, Worker] = {}

    def get(self, group: str) -> Worker:
        if group not in self.workers or not self.workers[group].alive:
            self.workers[group] = Worker()
        return self.workers[group]

    def renew(self) -> None:
        """Before a problem: models are forgotten, and ours start in new processes."""
        for group in list(self.workers):
            if group.startswith("dalembert"):
                self.workers.pop(group).close()
            elif self.workers[group].alive:
                self.workers[group].ask("forget")

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def group_of(peer: str, method: str) -> str:
    """The process that runs a method."""
    return f"{peer} {method.split()[0]}" if peer == "dalembert" else peer
