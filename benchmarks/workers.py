"""Worker processes that do one job after the other, within a limit of CPU time."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import connection, get_context, parent_process
from typing import Any

try:
    import resource
except ImportError:  # Windows: no limit there
    resource = None  # type: ignore[assignment]

Job = dict[str, Any]


class OverLimit(Exception):
    """The job took more CPU time than it may."""


class Failed(Exception):
    """The job raised; the message is the last line of what it said."""


def _end_with_parent() -> None:
    """End this process as soon as the run that wants its answer is gone."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _serve(pipe: Any, work: Callable[[Job], Any], limit: float) -> None:
    """Answer jobs until the pipe ends (runs in the worker process)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        if resource is not None:
            hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
            resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + limit) + 1, hard))
        try:
            answer = ("done", work(job))
        except Exception as error:  # whatever a peer raises is this job's result
            answer = ("failed", f"{type(error).__name__}: {error}")
        try:
            pipe.send(answer)
        except BrokenPipeError:
            return


class _Worker:
    def __init__(self, work: Callable[[Job], Any], limit: float) -> None:
        context = get_context("spawn")  # no threads or memory of the parent are inherited
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work, limit), daemon=True)
        self.process.start()
        theirs.close()
        self.job: Job | None = None

    def give(self, job: Job) -> None:
        self.job = job
        self.pipe.send(job)

    def take(self) -> Any:
        """Return the answer, or the exception that says why there is none."""
        try:
            kind, answer = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            if hasattr(signal, "SIGXCPU") and self.process.exitcode == -signal.SIGXCPU:
                return OverLimit()
            return Failed(f"the worker ended with exit code {self.process.exitcode}")
        return answer if kind == "done" else Failed(answer)

    def end(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def do_jobs(
    jobs: list[Job], work: Callable[[Job], Any], n_workers: int, limit: float
) -> Iterator[tuple[Job, Any]]:
    """Yield each job with its answer, in the order of completion.

    The answer is :class:`OverLimit` for a job that took more than `limit` seconds of CPU
    time, and :class:`Failed` for one that raised; a new worker then takes the next job.
    """
    queue = iter(jobs)
    workers: list[_Worker] = []
    try:
        for job in queue:
            workers.append(_Worker(work, limit))
            workers[-1].give(job)
            if len(workers) == n_workers:
                break
        while workers:
            ready = connection.wait([worker.pipe for worker in workers])
            for worker in [worker for worker in workers if worker.pipe in ready]:
                answer, done = worker.take(), worker.job
                workers.remove(worker)
                following = next(queue, None)
                if following is None:
                    worker.end()
                else:
                    if not worker.process.is_alive():
                        worker.end()
                        worker = _Worker(work, limit)
                    worker.give(following)
                    workers.append(worker)
                assert done is not None
                yield done, answer
    finally:
        for worker in workers:
            worker.end()
