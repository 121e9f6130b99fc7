"""Running passes over the partitions of a table on the workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dask.delayed import delayed
from distributed import Client, Future, futures_of, get_client, wait

from lhtree.dask.merging import Mergeable, Runs, collect_runs, merge_runs
from lhtree.dask.partitions import Partition, count_bytes

MERGED_AT_ONCE = 8
COPIED_AT_MOST = 16  # times that what tasks share is sent; else workers hand it on
SECONDS_BETWEEN_LOOKS = 5.0
SECONDS_WITHOUT_WORKERS = 30.0
UNLIMITED = 4 * 2**30  # bytes to count on where a worker has no limit
HELD_FRACTION = 0.3  # of the cluster's memory, for a table that is held during a fit
RESERVED = 256 * 2**20  # bytes of a worker that are Python and its libraries


def get_current_client() -> Client:
    """Return the client of the context."""
    try:
        return get_client()
    except ValueError as error:
        raise ValueError(
            "lhtree.dask needs a cluster, but there is no client; create one first, for "
            "example with `client = distributed.Client()`."
        ) from error


def list_workers(client: Client) -> list[dict[str, Any]]:
    """Return what the scheduler says of each worker.

    The client's own copy (`Client.scheduler_info`) is not asked: what renews it in the
    background leaves the workers out, so it may be without them at any time.
    """
    try:
        return list(client.sync(client.scheduler.identity)["workers"].values())
    except OSError:  # the scheduler cannot be reached, now or ever
        return []


class Shared(NamedTuple):
    """What tasks get besides partitions, as one value that Dask does not look into."""

    values: tuple[Any, ...]


def run_each(function: Callable[..., Any], columns: Sequence[Any], shared: Shared) -> list[Any]:
    """Run a function on each partition of a batch."""
    return [function(*items, *shared.values) for items in zip(*columns, strict=True)]


def run_merged(
    function: Callable[..., Mergeable],
    numbers: Sequence[int],
    n_partitions: int,
    columns: Sequence[Any],
    shared: Shared,
) -> Runs[Any]:
    """Run a function on each partition of a batch, and merge what it returns."""
    parts = (function(*items, *shared.values) for items in zip(*columns, strict=True))
    return collect_runs(numbers, parts, n_partitions)


def run_joined(
    function: Callable[..., Any], batches: list[list[Any]], numbers: list[list[int]], *others: Any
) -> Any:
    """Run a function on what was taken from all partitions, in their order."""
    found = {
        number: item
        for some, items in zip(numbers, batches, strict=True)
        for number, item in zip(some, items, strict=True)
    }
    batches.clear()
    return function([found.pop(number) for number in range(len(found))], *others)


def _pick(items: Sequence[Sequence[Any]], number: int) -> list[Any]:
    return [item[number] for item in items]


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
        self.n_bytes_sent = 0
        self.batches: list[list[int]] = []
        self.read_resources()

    def read_resources(self) -> None:
        """Count the workers, their threads and their memory."""
        workers = list_workers(self._client)
        if not workers:
            raise ValueError("the cluster has no workers; start at least one before fit.")
        self.n_threads = sum(worker["nthreads"] for worker in workers)
        limits = [worker["memory_limit"] or UNLIMITED for worker in workers]
        threads = max(worker["nthreads"] for worker in workers)
        self.memory = sum(limits)
        self.memory_per_thread = max(min(limits) - RESERVED, min(limits) / 4) / threads

    def persist_if_small(self, *collections: Any) -> tuple[list[Any], bool]:
        """Keep collections on the workers, if they are known to fit; else they stay lazy."""
        n_bytes = sum(count_bytes(collection) for collection in collections)
        if n_bytes > HELD_FRACTION * self.memory:
            return list(collections), False
        held = [None if some is None else self._client.persist(some) for some in collections]
        return held, True

    def divide(self, partitions: Sequence[Partition], *, is_held: bool) -> None:
        """Decide which partitions share a task: those that one worker holds.

        No batch has more than the share of a thread, so that no worker waits for another
        that holds more; and lazy partitions come one at a time.
        """
        self.batches = [[number] for number in range(len(partitions))]
        if not is_held:
            return
        tables = [partition.X for partition in partitions]
        self._wait_until_there(futures_of(tables))
        holders = self._client.who_has(futures_of(tables))
        held: dict[str, list[int]] = {}
        for number, table in enumerate(tables):
            workers = holders.get(table.key, ())
            held.setdefault(min(workers, default=""), []).append(number)
        most = -(-len(partitions) // self.n_threads)
        self.batches = sorted(
            numbers[i : i + most]
            for numbers in held.values()
            for i in range(0, len(numbers), most)
        )

    def to_batches(self, values: Sequence[Any]) -> list[list[Any]]:
        """Return values, one for each partition, by batches."""
        return [[values[number] for number in numbers] for numbers in self.batches]

    @property
    def _n_partitions(self) -> int:
        return sum(map(len, self.batches))

    def _share(self, values: tuple[Any, ...]) -> Any:
        shared = Shared(values)
        if len(self.batches) <= COPIED_AT_MOST:
            return shared
        return delayed(shared, pure=False, traverse=False)

    def start(
        self, function: Callable[..., Any], *columns: Sequence[Any], shared: tuple[Any, ...] = ()
    ) -> list[Future]:
        """Start one task per batch, each returning a list with an entry per partition.

        A column has an entry per batch: a list, or the future of one.
        """
        task, everyone = delayed(run_each, pure=False), self._share(shared)
        return self._keep(
            self._client.compute(
                [task(function, list(lists), everyone) for lists in zip(*columns, strict=True)]
            )
        )

    def total(
        self, function: Callable[..., Mergeable], *columns: Sequence[Any], shared: Any = ()
    ) -> Any:
        """Return what a pass over all partitions returns, merged on the workers."""
        self.n_passes += 1
        n, everyone = self._n_partitions, self._share(tuple(shared))
        task, merge = delayed(run_merged, pure=False), delayed(merge_runs, pure=False)
        level = [
            task(function, numbers, n, list(lists), everyone)
            for numbers, *lists in zip(self.batches, *columns, strict=True)
        ]
        while len(level) > 1:
            level = [
                merge(level[i : i + MERGED_AT_ONCE], n)
                for i in range(0, len(level), MERGED_AT_ONCE)
            ]
        futures = self._keep(self._client.compute(level))
        runs: Runs[Any] = self._wait(futures[0])
        self.drop(futures)
        self.n_bytes_sent += runs.n_sent + runs.n_bytes
        (whole,) = runs.parts.values()
        return whole

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
        """Start one task per job, which gets what each batch has taken for it.

        ``take(table, state, *takes)`` returns a item for each job, and ``finish(items,
        job, *shared)`` works on those of one job.
        """
        task, pick = delayed(run_each, pure=False), delayed(_pick, pure=False)
        everyone = self._share(takes)
        taken = [task(take, list(lists), everyone) for lists in zip(tables, states, strict=True)]
        others = [delayed(value, pure=False, traverse=False) for value in shared]
        end = delayed(run_joined, pure=False)
        tasks = [
            end(finish, [pick(items, number) for items in taken], self.batches, job, *others)
            for number, job in enumerate(jobs)
        ]
        return self._keep(self._client.compute(tasks))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """Start one task."""
        return self._keep([self._client.submit(function, *arguments, pure=False)])[0]

    def gather(self, futures: Sequence[Future]) -> list[Any]:
        """Return the results; give up if the workers are gone for long."""
        return [self._wait(future) for future in futures]

    def gather_each(self, futures: Sequence[Future]) -> list[Any]:
        """Return the results of all partitions, in their order."""
        found = {
            number: result
            for numbers, results in zip(self.batches, self.gather(futures), strict=True)
            for number, result in zip(numbers, results, strict=True)
        }
        return [found[number] for number in range(len(found))]

    def _wait(self, future: Future) -> Any:
        watch = self._watch_workers()
        while True:
            try:
                return future.result(timeout=SECONDS_BETWEEN_LOOKS)
            except TimeoutError:
                if future.status == "error":  # the task itself timed out
                    raise
            next(watch)

    def _wait_until_there(self, futures: Sequence[Future]) -> None:
        """Wait until partitions are made; those that fail are left to the first task."""
        watch = self._watch_workers()
        while True:
            try:
                wait(futures, timeout=SECONDS_BETWEEN_LOOKS)
            except TimeoutError:
                next(watch)
            else:
                return

    def _watch_workers(self) -> Iterator[None]:
        """Look at the cluster, time after time; raise once there is nothing to wait for."""
        alone_since = None
        while True:
            if self._client.status != "running":
                raise RuntimeError("the connection to the cluster was lost during fit.")
            if list_workers(self._client):
                alone_since = None
            elif alone_since is None:
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since > SECONDS_WITHOUT_WORKERS:
                raise RuntimeError(
                    f"the cluster has had no worker for {SECONDS_WITHOUT_WORKERS:.0f} seconds; "
                    "fit cannot go on."
                )
            yield

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
