"""Running passes over the partitions of a table on the workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from dask.delayed import delayed
from distributed import Client, Future, get_client

from lhtree.dask.partitions import count_bytes
from lhtree.tree import Floats

Sums = tuple[Floats, Floats]  # merge by addition and by the maximum

MERGED_AT_ONCE = 8
SECONDS_BETWEEN_LOOKS = 5.0
SECONDS_WITHOUT_WORKERS = 30.0
UNLIMITED = 4 * 2**30  # bytes to count on where a worker has no limit
HELD_SHARE = 0.3  # of the cluster's memory, for a table that is held during a fit
RESERVED = 256 * 2**20  # bytes of a worker that are Python and its libraries


def find_client() -> Client:
    """Return the client of the context."""
    try:
        return get_client()
    except ValueError as error:
        raise ValueError(
            "lhtree.dask needs a cluster, but there is no client; create one first, for "
            "example with `client = distributed.Client()`."
        ) from error


def merge_sums(parts: Sequence[Sums]) -> Sums:
    """Merge what parts know, in their order."""
    sums, ends = (array.copy() for array in parts[0])
    for more, further in parts[1:]:
        sums += more
        np.maximum(ends, further, out=ends)
    return sums, ends


def _pick(pieces: Sequence[Any], number: int) -> Any:
    return pieces[number]


class Cluster:
    """The workers of a fit, and all that it left on them.

    Tasks are pure functions of the partitions and of what was decided before: if a
    worker dies, Dask computes what it held again, with the same bits.

    Parameters
    ----------
    client : distributed.Client
        Where the tasks go.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._futures: set[Future] = set()
        self.n_passes = 0
        self.n_bytes_merged = 0
        self.look()

    def look(self) -> None:
        """Count the workers, their threads and their memory."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        if not workers:
            raise ValueError("the cluster has no workers; start at least one before fit.")
        self.n_threads = sum(worker["nthreads"] for worker in workers)
        limits = [worker["memory_limit"] or UNLIMITED for worker in workers]
        threads = max(worker["nthreads"] for worker in workers)
        self.memory = sum(limits)
        self.memory_per_thread = max(min(limits) - RESERVED, min(limits) / 4) / threads

    def hold(self, *collections: Any) -> list[Any]:
        """Keep collections on the workers, if they are known to fit; the others stay lazy."""
        n_bytes = sum(count_bytes(collection) for collection in collections)
        if n_bytes > HELD_SHARE * self.memory:
            return list(collections)
        return [None if some is None else self._client.persist(some) for some in collections]

    def start(
        self, function: Callable[..., Any], *columns: Sequence[Any], shared: Iterable[Any] = ()
    ) -> list[Future]:
        """Start one task per partition; `shared` goes to each of them, sent once."""
        everyone = [delayed(value, pure=False, traverse=False) for value in shared]
        task = delayed(function, pure=False)
        tasks = [task(*pieces, *everyone) for pieces in zip(*columns, strict=True)]
        return self._keep(self._client.compute(tasks))

    def start_joined(
        self,
        take: Callable[..., Any],
        tables: Sequence[Any],
        states: Sequence[Any],
        takes: tuple[Any, ...],
        finish: Callable[..., Any],
        jobs: Sequence[Any],
        shared: tuple[Any, ...],
    ) -> list[Future]:
        """Start one task per job, which gets what each partition has taken for it.

        ``take(table, state, *takes)`` returns a piece for each job, and ``finish(pieces,
        job, *shared)`` works on those of one job.
        """
        everyone = [delayed(value, pure=False, traverse=False) for value in takes]
        task, pick = delayed(take, pure=False), delayed(_pick, pure=False)
        taken = [task(*pieces, *everyone) for pieces in zip(tables, states, strict=True)]
        others = [delayed(value, pure=False, traverse=False) for value in shared]
        end = delayed(finish, pure=False)
        tasks = [
            end([pick(pieces, number) for pieces in taken], job, *others)
            for number, job in enumerate(jobs)
        ]
        return self._keep(self._client.compute(tasks))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """Start one task."""
        return self._keep([self._client.submit(function, *arguments, pure=False)])[0]

    def merge(self, futures: Sequence[Future]) -> Sums:
        """Merge what tasks return: on the workers, in an order that scheduling cannot change."""
        self.n_passes += 1
        while len(futures) > 1:
            futures = [
                self.submit(merge_sums, list(futures[i : i + MERGED_AT_ONCE]))
                for i in range(0, len(futures), MERGED_AT_ONCE)
            ]
        sums: Sums = self.gather(futures)[0]
        self.n_bytes_merged += sums[0].nbytes + sums[1].nbytes
        return sums

    def gather(self, futures: Sequence[Future]) -> list[Any]:
        """Return the results; give up if the workers are gone for long."""
        return [self._wait(future) for future in futures]

    def _wait(self, future: Future) -> Any:
        alone_since = None
        while True:
            try:
                return future.result(timeout=SECONDS_BETWEEN_LOOKS)
            except TimeoutError:
                if future.status == "error":  # the task itself timed out
                    raise
            if self._client.status != "running":
                raise RuntimeError("the connection to the cluster was lost during fit.")
            if self._client.scheduler_info(n_workers=-1)["workers"]:
                alone_since = None
            elif alone_since is None:
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since > SECONDS_WITHOUT_WORKERS:
                raise RuntimeError(
                    f"the cluster has had no worker for {SECONDS_WITHOUT_WORKERS:.0f} seconds; "
                    "fit cannot go on."
                )

    def _keep(self, futures: list[Future]) -> list[Future]:
        self._futures.update(futures)
        return futures

    def drop(self, futures: Iterable[Future]) -> None:
        """Forget results that are not needed any more."""
        for future in futures:
            self._futures.discard(future)
            future.release()

    def free(self) -> None:
        """Give back all that the fit holds; tasks that nobody waits for are stopped."""
        self.drop(list(self._futures))
