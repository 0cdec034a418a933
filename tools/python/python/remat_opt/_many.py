"""Many searches at once: models times budgets on several processes or machines."""

from __future__ import annotations

import concurrent.futures as futures
import functools
import hashlib
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Union

from . import _command as command
from . import _html, errors
from ._files import Folder, model_file, path_of
from ._models import Input, sweep
from ._problem import Problem
from ._report import Report
from .errors import InternalError, LimitError, RematError, UsageError

_FORMAT = "remat-job/1"
# Of a name that becomes that of a file.
_LONGEST = 80
# Of a digest, in a name: so many digits in hexadecimal.
_DIGITS = 12


@dataclass(frozen=True)
class Job:
    """One model under one budget."""

    model: str
    """Its name."""
    budget: str
    """The budget, as the command line takes it."""
    report: Report | None
    """What `sweep` found for this budget (`remat-sweep/2`, with one point)."""
    error: RematError | None
    """Why there is none: `InfeasibleError` where it is proved that no plan keeps the budget."""
    attempts: int
    """How often it was tried; 0 where an earlier call had done it."""
    path: pathlib.Path | None
    """The file of the result, where there is a folder of them."""

    @property
    def point(self) -> dict[str, Any] | None:
        """What was found: `peak_bytes`, `overhead_percent`, `certificate`."""
        return None if self.report is None or not self.report["points"] else dict(self.report["points"][0])


class Jobs(list[Job]):
    """The jobs of a call, models in their order and of each its budgets in theirs."""

    @property
    def failed(self) -> list[Job]:
        """Those without a plan."""
        return [job for job in self if job.report is None]

    def _repr_html_(self) -> str:
        head = ("model", "budget", "peak", "added time", "proved")
        return _html.table([_row(job) for job in self], head)


def _row(job: Job) -> tuple[object, ...]:
    point = job.point
    if point is None:
        return (job.model, job.budget, "", "", str(job.error).splitlines()[0] if job.error else "")
    added = point.get("overhead_percent")
    time = "" if added is None else f"{added:+.2f} %"
    return (job.model, job.budget, _html.size(point.get("peak_bytes")), time, _html.proof(point.get("certificate")))


Models = Union[Mapping[str, Input], Sequence[Input]]
"""Models by their names; of those in a sequence, the name of the file or graph is theirs."""


def sweep_many(
    models: Models,
    budgets: Sequence[str | int | float],
    *,
    executor: futures.Executor | None = None,
    workers: int | None = None,
    output: str | os.PathLike[str] | None = None,
    retries: int = 2,
    progress: Callable[[Job], object] | None = None,
    **arguments: Any,
) -> Jobs:
    """A plan for each of several models under each of several budgets, on several processes or machines.

    A job is one model under one budget. Jobs that fail for reasons of the machine (a process that was killed, a worker
    that was lost, a disk that was full, a limit that was reached before a plan was found) are tried again; what follows
    from the model or the budget is a result, and is not.

    Args:
        models: Models and graphs by name, or in a sequence. Paths have to lead to the same files on every machine.
        budgets: Each a share (`"80%"`, `0.8`), bytes (`512 << 20`, `"512MiB"`) or `"min"`.
        executor: Where jobs run: any `concurrent.futures.Executor` with processes of its own, as
            `remat_opt.cluster.RayExecutor` for a cluster. Without it, every job has a process of its own on this
            machine. Calls of one process run side by side, too, each with threads of its own.
        workers: Without an executor: jobs at one time; half as many as there are cores, because a search uses two.
        output: A folder for the results, one JSON file for each job. Jobs whose file is there are not run again, so a
            call that was interrupted goes on where it ended. The name of a file states model and budget, and a digest of
            the content of the model and of all arguments.
        retries: How often a job is tried again.
        progress: Called with every `Job` that is done, in the calling thread.
        arguments: Further arguments of `sweep`, the same for all jobs: `time_limit`, `solver`, `seed`, `dims`, `fix_dims`.

    Returns:
        All jobs; those without a plan have an `error`. In a notebook it shows as a table.

    Raises:
        UsageError: Two models have one name, or arguments make no sense.
        KeyboardInterrupt: Within a second of Ctrl-C; jobs that are done stay in `output`.
    """
    if refused := sorted(set(arguments) & {"page", "total_time_limit"}):
        raise UsageError(f"`{refused[0]}` is for one sweep, and every job would have it")
    folder = None if output is None else path_of(output)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    tasks = []
    for name, given in _named(models):
        # Executors may work in other folders.
        model = path_of(given) if isinstance(given, (str, os.PathLike)) else given
        content = b"" if folder is None else _content(model)
        tasks += [_Task(name, model, content, command.budget(budget), arguments, folder) for budget in budgets]
    done: dict[int, Job] = {}
    waiting = []
    for place, task in enumerate(tasks):
        earlier = task.earlier()
        if earlier is None:
            waiting.append(place)
        else:
            done[place] = earlier
            _tell(progress, earlier)
    with _pool(executor, workers) as (pool, run):
        for attempt in range(1, retries + 2):
            again = []
            begun = {}
            for place in waiting:
                task = tasks[place]
                begun[_submit(pool, run, task)] = place
            try:
                for future in futures.as_completed(begun):
                    place = begun[future]
                    job, is_final = tasks[place].outcome(future, attempt)
                    if is_final or attempt > retries:
                        tasks[place].keep(job)
                        done[place] = job
                        _tell(progress, job)
                    else:
                        again.append(place)
            except BaseException:
                for future in begun:
                    future.cancel()
                raise
            waiting = sorted(again)
    return Jobs(done[place] for place in range(len(tasks)))


def _tell(progress: Callable[[Job], object] | None, job: Job) -> None:
    if progress is not None:
        progress(job)


def _submit(
    pool: futures.Executor, run: Callable[..., dict[str, Any]], task: _Task
) -> futures.Future[dict[str, Any]]:
    try:
        return pool.submit(run, task.model, task.budget, task.arguments)
    except Exception as error:
        # An executor that broke takes nothing any more.
        failed: futures.Future[dict[str, Any]] = futures.Future()
        failed.set_exception(error)
        return failed


def _named(models: Models) -> list[tuple[str, Input]]:
    if isinstance(models, Mapping):
        return list(models.items())
    named = [(_name(model, place), model) for place, model in enumerate(models)]
    if len({name for name, _ in named}) != len(named):
        raise UsageError("two models have the same name: give them as a dictionary, by name")
    return named


def _name(model: Input, place: int) -> str:
    if isinstance(model, (str, os.PathLike)):
        return pathlib.Path(model).stem
    if isinstance(model, Problem):
        about = model.document.get("graph")
        name = about.get("name") if isinstance(about, Mapping) else model.document.get("name")
        return str(name or f"graph {place}")
    graph = getattr(getattr(model, "model_proto", model), "graph", None)
    return str(getattr(graph, "name", None) or f"model {place}")


@dataclass(frozen=True)
class _Task:
    name: str
    model: Input
    content: bytes
    budget: str
    arguments: Mapping[str, Any]
    folder: pathlib.Path | None

    @functools.cached_property
    def path(self) -> pathlib.Path | None:
        """The file of its result."""
        if self.folder is None:
            return None
        readable = re.sub(r"[^A-Za-z0-9._%-]+", "_", f"{self.name}-{self.budget}")[:_LONGEST]
        asked = json.dumps([self.name, self.budget, sorted(self.arguments.items())], default=str)
        digest = hashlib.blake2b(asked.encode())
        digest.update(self.content)
        return self.folder / f"{readable}-{digest.hexdigest()[:_DIGITS]}.json"

    def earlier(self) -> Job | None:
        """What an earlier call found."""
        path = self.path
        if path is None or not path.exists():
            return None
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            return None
        if document.get("format") != _FORMAT or not document.get("is_final"):
            return None
        return self._job(document, 0)

    def _job(self, document: Mapping[str, Any], attempts: int) -> Job:
        report = document.get("report")
        error = None if report is not None else errors.from_fields(document["error"])
        kept = None if report is None else Report(report)
        return Job(self.name, self.budget, kept, error, attempts, self.path)

    def outcome(self, future: futures.Future[dict[str, Any]], attempt: int) -> tuple[Job, bool]:
        """The job as it ended, and whether it would end so again."""
        try:
            document = future.result()
        except Exception as error:
            # Whatever an executor raises for a worker that it lost.
            lost = LimitError(f"the job ended without a result: {type(error).__name__}: {error}", "limit")
            return Job(self.name, self.budget, None, lost, attempt, self.path), False
        job = self._job(document, attempt)
        return job, not isinstance(job.error, (LimitError, InternalError))

    def keep(self, job: Job) -> None:
        """Writes the result; whole or not at all."""
        path = self.path
        if path is None:
            return
        document = {
            "format": _FORMAT,
            "model": job.model,
            "budget": job.budget,
            "attempts": job.attempts,
            "is_final": not isinstance(job.error, (LimitError, InternalError)),
            "report": job.report,
            "error": None if job.error is None else errors.fields(job.error),
        }
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False, encoding="utf-8") as file:
            json.dump(document, file, indent=2)
        os.replace(file.name, path)


def _content(model: Input) -> bytes:
    """What two models differ in."""
    if isinstance(model, Problem):
        return json.dumps(model.document, sort_keys=True).encode()
    if isinstance(model, (str, os.PathLike)):
        try:
            with open(model, "rb") as file:
                return hashlib.file_digest(file, "blake2b").digest() if hasattr(hashlib, "file_digest") else file.read()
        except OSError:
            return b""
    with Folder() as folder:
        return model_file(model, pathlib.Path(folder)).read_bytes()


def _search(model: Input, budget: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A job, in whatever process."""
    try:
        return {"report": dict(sweep(model, [budget], **arguments))}
    except RematError as error:
        points = (error.report or {}).get("points") or [{}]
        # The sweep says how many budgets have no plan; why this one has none stands with it.
        reason = points[0].get("reason")
        return {"error": errors.fields(error) if reason is None else {**errors.fields(error), "message": reason}}


class _Processes:
    """Jobs in processes of their own: what kills one leaves the others alone."""

    # Nothing of the caller's program is imported there, so it needs no guard against running twice.
    _CHILD = (
        "import pickle, sys; from remat_opt import _many; "
        "pickle.dump(_many._search(*pickle.load(sys.stdin.buffer)), sys.stdout.buffer)"
    )

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._is_over = False

    def search(self, model: Input, budget: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A job."""
        task = pickle.dumps((model, budget, arguments))
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        with self._lock:
            if self._is_over:
                raise futures.CancelledError
            process = subprocess.Popen(
                [sys.executable, "-c", self._CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables
            )
            self._running.add(process)
        try:
            found, _ = process.communicate(task)
        finally:
            self._running.discard(process)
        if process.returncode != 0:
            raise ChildProcessError(f"exit status {process.returncode}")
        document: dict[str, Any] = pickle.loads(found)
        return document

    def end(self) -> None:
        """Ends what runs, and begins nothing more."""
        with self._lock:
            self._is_over = True
            running = list(self._running)
        for process in running:
            process.terminate()


@contextmanager
def _pool(
    executor: futures.Executor | None, workers: int | None
) -> Iterator[tuple[futures.Executor, Callable[..., dict[str, Any]]]]:
    if executor is not None:
        yield executor, _search
        return
    processes = _Processes()
    with futures.ThreadPoolExecutor(workers or max(1, (os.cpu_count() or 1) // 2)) as pool:
        try:
            yield pool, processes.search
        finally:
            processes.end()
