"""Run measurements, and go on where a run was stopped.

::

    python -m benchmarks.run accuracy                        # all of it; takes hours
    python -m benchmarks.run accuracy --datasets wine wdbc --seeds 3
    python -m benchmarks.run comparison --models "LHForest, defaults" RF --roles judge
    python -m benchmarks.run comparison --models "LHForest, defaults" --threads 1 2
    python -m benchmarks.run comparison --stale              # ours again where sources changed
    python -m benchmarks.run speed --budget-minutes 25       # the most important first
    python -m benchmarks.run speed --tasks synth --again     # another round; the page has the best
    python -m benchmarks.run robustness --tasks holes --seeds 30
    python -m benchmarks.report                              # pages from the lines

Every measurement is one JSON line of ``benchmarks/results/<kind>.jsonl``, written as soon as it
is known. What has a line is skipped. Jobs run in worker processes within a limit of CPU time.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from benchmarks import data, lines, models

try:
    import resource
except ImportError:  # Windows: no limit there
    resource = None  # type: ignore[assignment]

Job = dict[str, Any]
Work = Callable[[Job], Any]
Prepare = Callable[[Job], dict[str, str]]  # environment variables that a job needs


class Kind(NamedTuple):
    """A kind of jobs: what lists and measures them, and how they run."""

    module: str
    list_jobs: str = "list_jobs"
    measure: str = "measure"
    n_seeds: int = 10
    n_workers: int = 2
    limit: float = 1500.0  # seconds of CPU time for each thread of a job
    is_fresh: bool = False  # a process for each job: none inherits memory or thread pools
    is_by_build: bool = False  # with other sources all is measured again
    keeps_errors: bool = False  # what fails has a line that says so


KINDS = {
    "accuracy": Kind("comparison", "list_accuracy"),
    "defaults": Kind("comparison", "list_folds"),
    "comparison": Kind(
        "comparison", "list_comparison", n_seeds=3, n_workers=1, limit=600.0, is_fresh=True,
        keeps_errors=True,
    ),
    "robustness": Kind("robustness", n_seeds=3),
    "speed": Kind("speed", n_workers=1, limit=600.0, is_fresh=True, is_by_build=True),
    "engine_speed": Kind(
        "speed", "list_boosts", "measure_boosts", n_workers=1, is_fresh=True, is_by_build=True
    ),
    "engine_choices": Kind("engine_choices", n_seeds=3, n_workers=1, is_by_build=True),
    "boosting_choices": Kind("boosting_choices", n_seeds=2, n_workers=1, is_by_build=True),
    "dask": Kind("dask", n_workers=1, limit=math.inf, is_fresh=True),
}  # fmt: skip


# ---- Worker processes


class OverLimit(Exception):
    """The job took more CPU time than it may."""


class Failed(Exception):
    """The job raised; the message says what."""


def _end_with_parent() -> None:
    """End this process as soon as the run that wants its result is gone."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _serve(pipe: Any, work: Work, limit: float) -> None:
    """Do jobs until the pipe ends (runs in the worker process)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        if resource is not None and limit < math.inf:
            hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
            end = time.process_time() + limit * job.get("threads", 1)
            resource.setrlimit(resource.RLIMIT_CPU, (int(end) + 1, hard))
        try:
            result = ("done", work(job))
        except Exception as error:  # whatever a peer raises is this job's result
            result = ("failed", f"{type(error).__name__}: {error}")
        try:
            pipe.send(result)
        except BrokenPipeError:
            return


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Give the processes that start here some variables."""
    before = os.environ.copy()
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in changes.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


class _Worker:
    def __init__(self, work: Work, limit: float, environment: dict[str, str]) -> None:
        context = get_context("spawn")  # no threads or memory of the parent are inherited
        self.pipe, theirs = context.Pipe()
        # Not a daemon: those may not start a Dask cluster.
        self.process = context.Process(target=_serve, args=(theirs, work, limit))
        self.environment = environment
        with _environment(environment):
            self.process.start()
        theirs.close()

    def give(self, job: Job) -> None:
        self.job = job
        self.pipe.send(job)

    def take(self) -> Any:
        """Return the result, or the exception that says why there is none."""
        try:
            kind, result = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            if hasattr(signal, "SIGXCPU") and self.process.exitcode == -signal.SIGXCPU:
                return OverLimit()
            return Failed(f"the worker ended with exit code {self.process.exitcode}")
        return result if kind == "done" else Failed(result)

    def end(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _prepare_threads(job: Job) -> dict[str, str]:
    """Return the variables that tell OpenMP, BLAS and Numba the number of threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    return dict.fromkeys(names, str(job.get("threads", 1)))


def do_jobs(
    jobs: Iterable[Job],
    work: Work,
    kind: Kind,
    prepare: Prepare = lambda _: {},
) -> Generator[tuple[Job, Any]]:
    """Yield each job with its result, in the order of completion.

    The result is :class:`OverLimit` for a job that took more than its limit of CPU time, and
    :class:`Failed` for one that raised. A worker takes the next job that needs the same
    variables, which `prepare` returns.
    """
    queue = iter(jobs)
    busy: list[_Worker] = []
    idle: list[_Worker] = []
    try:
        while True:
            while len(busy) < kind.n_workers and (job := next(queue, None)) is not None:
                environment = {**_prepare_threads(job), **prepare(job)}
                fit = [worker for worker in idle if worker.environment == environment]
                worker = fit[0] if fit else _Worker(work, kind.limit, environment)
                idle = [each for each in idle if each is not worker]
                worker.give(job)
                busy.append(worker)
            if not busy:
                return
            ready = connection.wait([worker.pipe for worker in busy])
            for worker in [worker for worker in busy if worker.pipe in ready]:
                result = worker.take()
                busy.remove(worker)
                if kind.is_fresh or not worker.process.is_alive():
                    worker.end()
                else:
                    idle.append(worker)
                yield worker.job, result
    finally:
        for worker in (*busy, *idle):
            worker.end()


# ---- The command


def _describe(job: Job) -> str:
    return ", ".join(f"{name} {value}" for name, value in job.items())


def _until(deadline: float, jobs: list[Job], loads: dict[str, float]) -> Iterator[Job]:
    """Yield the jobs as long as there is time; note the load of the machine before each."""
    for i, job in enumerate(jobs):
        if time.monotonic() >= deadline:
            tqdm.write(f"The budget is spent; {len(jobs) - i} measurements are left.")
            return
        if hasattr(os, "getloadavg"):
            loads[_describe(job)] = round(os.getloadavg()[0], 2)
        yield job


def run(jobs: list[Job], out: Path, kind: Kind, *, budget: float = math.inf) -> int:
    """Do the jobs and append their lines; return how many failed."""
    module = importlib.import_module(f"benchmarks.kinds.{kind.module}")
    prepare: Prepare = getattr(module, "prepare", lambda _: {})
    number = lines.start_run(out)
    loads: dict[str, float] = {}
    queue = _until(time.monotonic() + budget, jobs, loads)
    n_failed = 0
    done = do_jobs(queue, getattr(module, kind.measure), kind, prepare)
    with closing(done), tqdm(total=len(jobs)) as bar:
        for job, result in done:
            bar.update()
            if isinstance(result, Failed):
                n_failed += 1
                tqdm.write(f"failed: {_describe(job)}: {result}")
                if not kind.keeps_errors:
                    continue
                result = {"error": " ".join(str(result).split())[:300]}
            if isinstance(result, OverLimit):
                result = {"over_s": kind.limit}
            load = loads.get(_describe(job))
            line = {**job, **result, "load": load, "at": lines.format_now(), "run": number}
            lines.append(out, line)
            tqdm.write(json.dumps(line))
    return n_failed


def drop_done(jobs: list[Job], out: Path, kind: Kind, *, stale: bool = False) -> list[Job]:
    """Return the jobs without a line; one that took too long may try again with more time.

    If `stale`, our lines of other sources do not count.
    """
    build = lines.compute_build()
    measured = [
        line
        for line in lines.read(out)
        if line.get("over_s", kind.limit) >= kind.limit
        and (
            line.get("build") == build
            or not (kind.is_by_build or (stale and models.is_ours(line.get("model", ""))))
        )
    ]
    done = {
        fields: {tuple(line.get(name) for name in fields) for line in measured}
        for fields in {tuple(job) for job in jobs}
    }
    return [job for job in jobs if tuple(job.values()) not in done[tuple(job)]]


def drop_absent(jobs: list[Job], *, may_download: bool) -> list[Job]:
    """Return the jobs whose data can be found; say which cannot."""
    absent = set()
    for name in dict.fromkeys(job.get("data", "") for job in jobs):
        dataset = data.ALIASES.get(name, name)
        if dataset not in data.ALL:
            continue  # synthetic, or found in a folder
        try:
            data.ensure(dataset, may_download=may_download)
        except data.Absent as error:
            tqdm.write(f"skipped: {error}")
            absent.add(name)
    return [job for job in jobs if job.get("data") not in absent]


def select(jobs: list[Job], options: argparse.Namespace) -> list[Job]:
    """Return the jobs that the command line asks for; refuse names that no job has."""
    given = {
        "data": options.datasets, "model": options.models, "task": options.tasks,
        "choice": options.choices, "role": options.roles, "threads": options.threads,
    }  # fmt: skip
    for field, wanted in given.items():
        known = list(dict.fromkeys(job[field] for job in jobs if field in job))
        for name in wanted or ():
            if name not in known:
                raise ValueError(f"No job has {field} {name!r}; there are {known}.")
        if wanted:
            jobs = [job for job in jobs if job.get(field) in wanted]
    return jobs


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add = parser.add_argument
    add("kind", choices=KINDS)
    add("--datasets", nargs="+", metavar="NAME", help="only these data sets")
    add("--models", nargs="+", metavar="NAME", help="only these models, by their names in tables")
    add("--roles", nargs="+", metavar="NAME", help="only tables to judge, choose, or named ones")
    add("--tasks", nargs="+", metavar="NAME", help="only these (see --list)")
    add("--choices", nargs="+", metavar="NAME", help="only these constants, or the default")
    add("--threads", nargs="+", type=int, metavar="N", help="only jobs with these threads")
    add("--seeds", type=int, help="random splits")
    add("--list", action="store_true", help="print the jobs and leave")
    add("--stale", action="store_true", help="measure our lines of other sources again")
    add("--again", action="store_true", help="measure again what has a line")
    add("--budget-minutes", type=float, default=math.inf, help="start no job after these")
    add("--workers", type=int, help="jobs at a time")
    add("--limit", type=float, help="seconds of CPU time for each thread of a job")
    add("--data", type=Path, help="folder of data sets (default: LHTREE_DATA)")
    add("--offline", action="store_true", help="do not download data sets")
    add("--out", type=Path, help="file of lines (default: benchmarks/results/<kind>.jsonl)")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for and has no line yet."""
    options = parse(arguments)
    if options.data:
        os.environ["LHTREE_DATA"] = str(options.data)  # workers inherit it
    kind = KINDS[options.kind]
    kind = kind._replace(
        limit=options.limit or kind.limit, n_workers=options.workers or kind.n_workers
    )
    options.seeds = options.seeds or kind.n_seeds
    out = options.out or lines.RESULTS / f"{options.kind}.jsonl"
    module = importlib.import_module(f"benchmarks.kinds.{kind.module}")
    try:
        jobs = select(getattr(module, kind.list_jobs)(options), options)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    if options.list:
        print(*map(json.dumps, jobs), sep="\n")
        return 0
    lines.mend(out)
    jobs = drop_absent(jobs, may_download=not options.offline)
    if not options.again:
        jobs = drop_done(jobs, out, kind, stale=options.stale)
    if not jobs:
        print("Nothing to do: every line is there.")
        return 0
    n_failed = run(jobs, out, kind, budget=60 * options.budget_minutes)
    return int(n_failed > 0 and not kind.keeps_errors)


if __name__ == "__main__":
    raise SystemExit(main())
