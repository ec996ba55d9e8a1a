"""Those who run: threads, processes, or workers of a cluster. Each kind is a crew that takes tasks and hands back what became of them.

A task is a few rows of the plan. What it gives is the records of these runs as bytes, or an exception; ``Lost`` where the worker died with it.
"""
from __future__ import annotations

import logging
import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from time import monotonic, perf_counter
from typing import Any, Protocol

from dalembert.checks import shown
from dalembert.ensemble.one_run import Job, Row
from dalembert.errors import DalembertError, MissingExtraError, ModelError

#: tasks that wait for each worker
AHEAD = 2
#: s until an idle process of ours ends
IDLE = 60
#: s between two questions to a cluster
ASK = 2.0
#: how often a cluster tries a task again by itself whose worker died
RETRIES = 3

Task = list[Row]
#: records, and s that they took
Done = tuple[list[bytes | None], float]


class Lost(Exception):
    """The worker that had a task died; whether of it, nobody knows."""


class Crew(Protocol):
    """Workers. ``room``: how many tasks they take now; ``going``: how many they have; ``apart``: whether tasks travel to them."""

    apart: bool

    @property
    def room(self) -> int: ...
    @property
    def going(self) -> int: ...
    def submit(self, task: Task) -> None:
        """Hand over a task."""
        ...
    def wait(self, seconds: float) -> list[tuple[Task, Done | BaseException]]:
        """What is finished, waiting so long for it at the most."""
        ...
    def close(self, *, now: bool) -> None:
        """Let the workers go; ``now``: whatever they do."""
        ...


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def crew_of(backend: Any, workers: int | None, job: Job) -> Crew:
    """The crew that a name, a Dask client, the module ray or an executor stands for."""
    home = type(backend).__module__.partition(".")[0]
    if home == "numpy":  # arrays are equal to nothing as a whole
        backend = None
    if backend == "threads":
        return Threads(job, workers or processors())
    if backend == "dask" or home in ("distributed", "dask"):
        return Dask(pack(job), workers, None if backend == "dask" else backend)
    if backend == "ray" or getattr(backend, "__name__", None) == "ray":
        return Ray(pack(job), workers)
    if isinstance(backend, futures.Executor):
        return Executor(pack(job), workers or getattr(backend, "_max_workers", None) or processors(), backend)
    if backend == "processes":
        return Processes(pack(job), workers or processors())
    if isinstance(backend, str):
        return Joblib(pack(job), workers, backend)
    raise ModelError(
        "run_many: backend must be 'threads', 'processes', 'dask', 'ray', the name of another backend of joblib, a Dask client or an "
        f"executor, got {shown(backend)}"
    )


# ---- what workers do


def pack(job: Job) -> bytes:
    """A job as bytes that other processes understand, functions of the program included; before it, where the program finds its modules."""
    cloudpickle = imported("cloudpickle", "cloudpickle", "many", "running in other processes")
    try:
        return pickle.dumps((sys.path, cloudpickle.dumps(job)))
    except Exception as error:
        raise ModelError(f"the ensemble cannot be sent to other processes ({' '.join(str(error).split())}): use backend='threads', or keep what cannot travel out of its functions") from error


def unpack(data: bytes) -> Job:
    """A job in another process. Workers of a cluster know the modules beside the program only where they are told of its folders."""
    folders, packed = pickle.loads(data)
    sys.path.extend(folder for folder in folders if folder not in sys.path and os.path.isdir(folder))
    return pickle.loads(packed)


def imported(package: str, module: str, extra: str, what: str) -> Any:
    """A module of an extra, or an error that names it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{what} needs {package}: pip install dalembert[{extra}] ({error})") from None


def work(job: Job, task: Task) -> Done:
    """Do a task."""
    begun = perf_counter()
    return [job.outcome(row) for row in task], perf_counter() - begun


#: the last job that came to this process, with its bytes
_known: dict[bytes, Job] = {}


def work_elsewhere(data: bytes, task: Task) -> Done:
    """Do a task in another process."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the business of the process that asked
    job = _known.get(data)
    if job is None:
        job = unpack(data)
        _known.clear()
        _known[data] = job
    return work(job, task)


# ---- crews


def now_and_then(ask: Callable[[], int]) -> Callable[[], int]:
    """How many workers a cluster has, one at least; it grows and shrinks, and is asked every other second."""
    last = [0.0, 1.0]

    def count() -> int:
        if monotonic() - last[0] > ASK:
            last[:] = monotonic(), max(1, ask())
        return int(last[1])

    return count


class Served:
    """Threads of this process that take tasks from one queue and put what became of them into another."""

    def __init__(self, workers: int, threads: int, room: int) -> None:
        self.workers, self.going, self._most, self._threads = workers, 0, room, threads
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Task, Done | BaseException]] = queue.SimpleQueue()
        for number in range(threads):
            threading.Thread(target=self._serve, name=f"dalembert-{number}", daemon=True).start()

    def _serve(self) -> None:
        raise NotImplementedError

    @property
    def room(self) -> int:
        return self._most - self.going

    def submit(self, task: Task) -> None:
        self.going += 1
        self._tasks.put(task)

    def wait(self, seconds: float) -> list[tuple[Task, Done | BaseException]]:
        found = []
        try:
            found.append(self._done.get(timeout=seconds))
            while True:
                found.append(self._done.get_nowait())
        except queue.Empty:
            self.going -= len(found)
            return found

    def close(self, *, now: bool) -> None:
        while not self._tasks.empty():
            with suppress(queue.Empty):
                self._tasks.get_nowait()
        for _ in range(self._threads):
            self._tasks.put(None)


class Threads(Served):
    """Threads of this process: they end with it, whatever they do. Kernels let one another run; Python takes turns."""

    apart = False

    def __init__(self, job: Job, workers: int) -> None:
        self.job = job
        super().__init__(workers, workers, workers + 1)  # one that waits, so that no worker does

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                self._done.put((task, work(self.job, task)))
            except BaseException as error:
                self._done.put((task, error))


class Executor:
    """An executor as Python's library defines them, of the user's."""

    apart = True

    def __init__(self, data: bytes, workers: int, executor: Any) -> None:
        self.data, self.workers, self.executor = data, workers, executor
        self._tasks: dict[Any, Task] = {}

    @property
    def going(self) -> int:
        return len(self._tasks)

    @property
    def room(self) -> int:
        return AHEAD * self.workers - len(self._tasks)

    def submit(self, task: Task) -> None:
        try:
            future = self.executor.submit(work_elsewhere, self.data, task)
        except futures.BrokenExecutor as error:  # whose workers died since
            future = futures.Future()
            future.set_exception(error)
        self._tasks[future] = task

    def wait(self, seconds: float) -> list[tuple[Task, Done | BaseException]]:
        done = futures.wait(list(self._tasks), timeout=seconds, return_when=futures.FIRST_COMPLETED).done
        return [(self._tasks.pop(future), self._found(future)) for future in done]

    def _found(self, future: Any) -> Done | BaseException:
        error = futures.CancelledError() if future.cancelled() else future.exception()
        if error is None:
            return future.result()
        return Lost(str(error)) if isinstance(error, futures.BrokenExecutor) else error

    def close(self, *, now: bool) -> None:
        for future in self._tasks:
            future.cancel()


class Processes(Executor):
    """Processes of this machine, joblib's: they stay for a minute for the next ensemble, and are made anew when one dies."""

    def __init__(self, data: bytes, workers: int) -> None:
        loky = imported("joblib", "joblib.externals.loky", "many", "running in processes")
        self._make = lambda: loky.get_reusable_executor(max_workers=workers, timeout=IDLE)
        super().__init__(data, workers, self._make())

    def submit(self, task: Task) -> None:
        if not self._tasks:
            self.executor = self._make()  # the same one, if it is well
        super().submit(task)

    def close(self, *, now: bool) -> None:
        super().close(now=now)
        if now:
            self.executor.shutdown(wait=False, kill_workers=True)


class Dask:
    """A Dask cluster: the user's, by its client or the one that is current, or one of processes of this machine that ends with the ensemble."""

    apart = True

    def __init__(self, data: bytes, workers: int | None, client: Any) -> None:
        distributed = imported("dask", "distributed", "dask", "backend='dask'")
        self.data, self._own, self._most = data, None, workers
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:
                settings = dict(n_workers=workers or processors(), threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL)
                client = self._own = distributed.Client(distributed.LocalCluster(**settings))
        self.client, self._killed = client, distributed.scheduler.KilledWorker
        self._tasks: dict[Any, Task] = {}
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._count, self._name = 0, f"dalembert-{os.getpid()}-{id(self)}"
        self._cores = now_and_then(lambda: sum(client.ncores().values()))

    @property
    def going(self) -> int:
        return len(self._tasks)

    @property
    def room(self) -> int:
        return AHEAD * (self._most or self._cores()) - len(self._tasks)

    def submit(self, task: Task) -> None:
        self._count += 1
        future = self.client.submit(work_elsewhere, self.data, task, pure=False, key=f"{self._name}-{self._count}")
        self._tasks[future] = task
        future.add_done_callback(self._done.put)

    def wait(self, seconds: float) -> list[tuple[Task, Done | BaseException]]:
        try:
            future = self._done.get(timeout=seconds)
        except queue.Empty:
            if self.client.status not in ("running", "connecting"):
                raise DalembertError("the Dask client lost its cluster; what was finished is kept, and the same call goes on") from None
            return []
        try:
            found = future.result()
        except self._killed as error:
            found = Lost(str(error))
        except Exception as error:
            if self.client.status != "running":
                raise DalembertError(f"the Dask client lost its cluster ({type(error).__name__}); what was finished is kept, and the same call goes on") from error
            found = Lost(str(error)) if future.cancelled() else error
        return [(self._tasks.pop(future), found)]

    def close(self, *, now: bool) -> None:
        if self._tasks:
            self.client.cancel(list(self._tasks))
        if self._own is not None:
            cluster = self._own.cluster
            self._own.close()
            cluster.close()


class Ray:
    """A Ray cluster: the one that this process is connected to, or one of this machine, which is started and goes on until the process ends."""

    apart = True

    def __init__(self, data: bytes, workers: int | None) -> None:
        self.ray = ray = imported("ray", "ray", "ray", "backend='ray'")
        if not ray.is_initialized():
            local: dict[str, Any] = {} if os.environ.get("RAY_ADDRESS") else dict(num_cpus=workers, include_dashboard=False)
            ray.init(log_to_driver=False, configure_logging=False, **local)
        self._cores = now_and_then(lambda: int(ray.cluster_resources().get("CPU", 1)))
        self._call, self._data = ray.remote(max_retries=RETRIES)(work_elsewhere), ray.put(data)
        self._most, self._lost = workers, (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError)
        self._tasks: dict[Any, Task] = {}

    @property
    def going(self) -> int:
        return len(self._tasks)

    @property
    def room(self) -> int:
        return AHEAD * (self._most or self._cores()) - len(self._tasks)

    def submit(self, task: Task) -> None:
        self._tasks[self._call.remote(self._data, task)] = task

    def wait(self, seconds: float) -> list[tuple[Task, Done | BaseException]]:
        done, _ = self.ray.wait(list(self._tasks), num_returns=1, timeout=seconds)
        return [(self._tasks.pop(reference), self._found(reference)) for reference in done]

    def _found(self, reference: Any) -> Done | BaseException:
        try:
            return self.ray.get(reference)
        except self._lost as error:
            return Lost(str(error))
        except Exception as error:
            return error

    def close(self, *, now: bool) -> None:
        for reference in self._tasks:
            self.ray.cancel(reference, force=now)


class Joblib(Served):
    """Any other backend of joblib by its name, such as one that the user has registered; tasks go to it in rounds."""

    apart = True

    def __init__(self, data: bytes, workers: int | None, name: str) -> None:
        joblib = imported("joblib", "joblib", "many", f"backend={name!r}")
        self.data, self._delayed = data, joblib.delayed(_numbered)
        self._parallel = lambda: joblib.Parallel(n_jobs=workers or -1, backend=name, return_as="generator_unordered", batch_size=1)
        try:
            self._parallel()
            with joblib.parallel_config(backend=name):
                count = workers or joblib.effective_n_jobs(-1)
        except (ValueError, TypeError, KeyError) as error:
            raise ModelError(f"run_many: there is no backend {name!r}: choose 'threads', 'processes', 'dask' or 'ray', or one of joblib's that gives results one by one ({error})") from None
        super().__init__(count, 1, 2 * AHEAD * count)

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            tasks = {task[0][0]: task}
            while not self._tasks.empty() and (task := self._tasks.get()) is not None:
                tasks[task[0][0]] = task
            try:
                for number, done in self._parallel()([self._delayed(self.data, task) for task in tasks.values()]):
                    self._done.put((tasks.pop(number), done))
            except BaseException as error:
                lost = Lost(str(error)) if isinstance(error, futures.BrokenExecutor) else error
                for task in tasks.values():
                    self._done.put((task, lost))


def _numbered(data: bytes, task: Task) -> tuple[int, Done]:
    return task[0][0], work_elsewhere(data, task)
