"""Ensembles of whole runs: planned, handed to workers, and kept one by one as they come, so that nothing that was finished is ever lost."""
from __future__ import annotations

import inspect
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dalembert.checks import ANYTHING, BY_NAME, FUNCTION, NOTHING, PATH, POSITIVE, checked, one_of, shown, whole
from dalembert.ensemble.digest import fingerprint
from dalembert.ensemble.ensemble import Ensemble
from dalembert.ensemble.journal import Memory
from dalembert.ensemble.one_run import Job, check_names
from dalembert.ensemble.record import FAILURE, Record, packed
from dalembert.ensemble.samples import Plan, lay_out
from dalembert.ensemble.workers import Crew, Lost, crew_of
from dalembert.errors import ModelError
from dalembert.formulations.engine import Formulation
from dalembert.mechanism.mechanism import Mechanism
from dalembert.progress import Progress
from dalembert.simulation.ending import ending_in_order

#: s of work that a task has which travels to its worker
TASK_SECONDS = 0.1
#: runs of such a task at the most
LONGEST = 64
#: workers that a run may kill when it is alone before it counts as failed
STRIKES = 2
#: s between two looks at the workers
LOOK = 1.0

SOME = whole("a whole number from 1", least=1)
Reduce = str | Callable[..., Any]


@checked(
    mechanism=ANYTHING, duration=POSITIVE, starts=BY_NAME | NOTHING, parameters=BY_NAME | NOTHING, controls=FUNCTION | NOTHING, samples=SOME | NOTHING,
    seed=whole("a whole number from 0", least=0), workers=SOME | NOTHING, backend=ANYTHING, out=PATH | NOTHING,
    reduce=one_of("end", "trajectory") | FUNCTION, prepare=FUNCTION | NOTHING,
)
def run_many(
    mechanism: Mechanism | Callable[..., Mechanism], formulation: Formulation, duration: float, *, parameters: Mapping[str, Any] | None = None,
    starts: Mapping[str, Any] | None = None, controls: Callable[..., Any] | None = None, prepare: Callable[..., Any] | None = None,
    samples: int | None = None, seed: int = 0, grid: bool = True, reduce: Reduce = "end", out: str | Path | None = None, workers: int | None = None,
    backend: Any = "threads", progress: bool | None = None,
) -> Ensemble:
    """Run a mechanism many times, with other parameters and starts, and return what all runs gave.

    ``mechanism``: a mechanism, or a function that makes one; ``duration`` in s. ``parameters`` and ``starts``: by name, a list of values, a range
    (low, high) to draw from, a distribution of ``scipy.stats``, a function of a ``numpy.random.Generator``, or one number for all. Names are those of
    ``Simulation.parameters``, arguments of the function that makes the mechanism, or the controllers' own; starts are joints ("elbow", and "elbow.rate" for
    speeds). Lists are the axes of a grid, or with ``grid=False`` columns of a table; ``samples``: how many times all that is random is drawn, at each point of the grid. What is drawn
    depends on ``seed``, the run's number and the name alone.

    ``controls``: a controller ``f(sim)``, or a function ``f(parameters, generator)`` that makes one for each run. ``prepare(sim, parameters)`` is called
    before each run, to set targets and the like. ``reduce``: what is kept of a run, its "end", the whole "trajectory", or a function of the
    trajectory that gives a number, an array or a dict of these.

    ``out``: an HDF5 file to which runs are written as they come; the same call goes on where it was ended, by whatever. ``workers``: how many, by default one for
    each processor; ``backend``: "threads", "processes", "dask", "ray", another backend of joblib by name, a Dask client, or an executor. Results are equal to
    the bit whoever makes them. Runs that fail are listed in ``Ensemble.failures``, and the others go on. Ctrl-C lets those finish that are going, pressed again it does not.
    """
    job = _job(mechanism, formulation, duration, controls, prepare, reduce, seed)
    plan = lay_out(parameters or {}, starts or {}, samples, seed, grid, job.controllers)
    check_names(job, plan.parameters, plan.starts)
    identity = _identity(job, plan)
    if out is None:
        memory = Memory()
        interrupted = _run_all(job, plan, memory, workers, backend, progress, lambda: None)
        return Ensemble.of(identity, plan, memory, interrupted=interrupted)
    from dalembert.io.ensembles import Store

    with Store(Path(out), identity, plan) as store:
        interrupted = False
        if len(store.records) < plan.runs:
            interrupted = _run_all(job, plan, store.records, workers, backend, progress, store.now_and_then)
    return Ensemble.load(out)._marked(interrupted)


def _job(mechanism: Any, formulation: Formulation, duration: float, controls: Any, prepare: Any, reduce: Any, seed: int) -> Job:
    if isinstance(mechanism, Mechanism):
        if not mechanism.bodies:
            raise ModelError(f"{mechanism.name!r} has no bodies to simulate")
        mechanism = mechanism.snapshot()
    elif isinstance(mechanism, type) or not callable(mechanism):
        raise ModelError(f"run_many needs a Mechanism, or a function that makes one, got {shown(mechanism)}")
    source: Any = mechanism
    return Job(source, formulation, duration, controls, _makes_controllers(controls), prepare, reduce, seed)


def _makes_controllers(controls: Any) -> bool:
    """Whether it asks for two arguments, parameters and a generator, and not for a simulation alone."""
    if controls is None:
        return False
    try:
        parameters = inspect.signature(controls).parameters.values()
    except (TypeError, ValueError):
        return False
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters) == 2


def _identity(job: Job, plan: Plan) -> dict[str, Any]:
    """What a file says of the ensemble that it belongs to: names for people, and a fingerprint of each part."""
    source = job.source
    name = source.name if isinstance(source, Mechanism) else getattr(source, "__name__", type(source).__name__)
    parts = dict(
        mechanism=source, formulation=job.formulation, duration=job.duration, parameters=plan.parameters, starts=plan.starts, controls=job.control,
        prepare=job.prepare, reduce=job.reduce, seed=plan.seed,
    )
    return dict(
        mechanism=name, formulation=type(job.formulation).__name__, duration=job.duration, seed=plan.seed, shape=list(plan.shape), axes=list(plan.axes),
        parts={what: fingerprint(part) for what, part in parts.items()},
    )


# ---- running them


def _run_all(job: Job, plan: Plan, records: Memory, workers: int | None, backend: Any, progress: bool | None, now_and_then: Callable[[], None]) -> bool:
    """Run what has no record yet; returns whether Ctrl-C ended it."""
    todo = deque(index for index in range(plan.runs) if index not in records)
    crew = crew_of(backend, None if workers is None else min(workers, len(todo)), job)
    bar = Progress(plan.runs, f"{len(todo)} runs" if len(records) == 0 else f"the last {len(todo)} runs", "runs", progress)
    ended_well = False
    try:
        with ending_in_order(), _ctrl_c() as stop:
            _go_on(crew, plan, todo, records, stop, bar, now_and_then)
            ended_well = True
            return stop.is_set()
    except KeyboardInterrupt:
        return True
    finally:
        bar.close()
        crew.close(now=not ended_well)


def _go_on(crew: Crew, plan: Plan, todo: deque[int], records: Memory, stop: threading.Event, bar: Progress, now_and_then: Callable[[], None]) -> None:
    """Hand out tasks and keep what comes back. Runs whose worker died go again, one at a time: so it is known which of them kills."""
    suspects: deque[int] = deque()
    strikes: Counter[int] = Counter()
    size, alone = 1, False
    while True:
        while not stop.is_set() and crew.room > 0 and (todo or suspects):
            if todo and not alone:
                crew.submit([(i, *plan.row(i)) for i in (todo.popleft() for _ in range(min(size, len(todo))))])
            elif crew.going == 0:
                index, alone = suspects.popleft(), True
                crew.submit([(index, *plan.row(index))])
            else:
                break
        if crew.going == 0:
            return
        for task, done in crew.wait(LOOK):
            blamed, alone = alone, False
            if isinstance(done, Lost):
                for index, *_ in task:
                    strikes[index] += blamed
                    if strikes[index] < STRIKES:
                        suspects.append(index)
                    else:
                        records.add(packed(Record(index, FAILURE, {}, dict(error="WorkerDied", message=f"its worker died with it, {STRIKES} times: {done}", time=0.0))))
            elif isinstance(done, BaseException):
                raise done
            else:
                data, seconds = done
                for record in data:
                    if record is None:  # Ctrl-C came to the worker, too
                        stop.set()
                    else:
                        records.add(record)
                if crew.apart and seconds > 0.0:
                    size = max(1, min(LONGEST, 2 * size, int(TASK_SECONDS * len(task) / seconds)))
        bar.update(len(records))
        now_and_then()


@contextmanager
def _ctrl_c() -> Iterator[threading.Event]:
    """Ctrl-C sets the event instead of raising; pressed again, it raises. Where the program has a handler of its own, that one stays."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield stop
        return

    def asked(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        print("interrupted: runs that are going are finished and kept; Ctrl-C again leaves them", file=sys.stderr)

    signal.signal(signal.SIGINT, asked)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
