"""Growth on a Dask cluster against a local fit: answers, CPU time, traffic, memory.

Every measurement appends one JSON line to ``benchmarks/results/dask.jsonl``;
docs/guide/scaling-out.md is written from these lines. CPU time is that of all processes:
workers, scheduler, client.

    python -m benchmarks.dask_scaling equal
    python -m benchmarks.dask_scaling overhead
    python -m benchmarks.dask_scaling memory
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import dask.array as da
import distributed
import numpy as np

import lhtree
import lhtree.dask
from benchmarks import data

RESULTS = Path(__file__).parent / "results" / "dask.jsonl"
N_COLUMNS = 20
REPEATS = 8

Dtype = Literal["float32", "float64"]


def write_line(**values: Any) -> None:
    """Append a result."""
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(values) + "\n")
    print(values, flush=True)


@contextmanager
def start_cluster(n_workers: int, memory_limit: str | None = None) -> Iterator[Any]:
    """Start worker processes of one thread each."""
    limit = {} if memory_limit is None else {"memory_limit": memory_limit}
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            **limit,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def sum_cpu(client: Any) -> float:
    """Return the CPU seconds of the workers and of this process."""
    return float(sum(client.run(time.process_time).values()) + time.process_time())


def make_block(seed: int, n: int, dtype: Dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose classes depend on a few columns and noise."""
    rng = np.random.default_rng(seed)
    # Few random rows, repeated with a shift: partitions must be cheap to make again.
    few = rng.standard_normal((-(-n // REPEATS), N_COLUMNS), dtype=dtype)
    X = np.concatenate([few + np.float64(k) / 64 for k in range(REPEATS)])[:n].astype(dtype)
    score = X[:, 0] + X[:, 1] * X[:, 2] - X[:, 3] + 0.5 * rng.standard_normal(n, dtype=dtype)
    return X, (score > 0).astype(np.int64)


def make_lazy(n_blocks: int, size: int, dtype: Dtype = "float64") -> tuple[Any, Any]:
    """Return a table whose partitions are made when they are needed."""

    def rows(_: Any, block_info: Any = None) -> np.ndarray:
        return make_block(block_info[None]["chunk-location"][0], size, dtype)[0]

    def labels(_: Any, block_info: Any = None) -> np.ndarray:
        return make_block(block_info[None]["chunk-location"][0], size, dtype)[1]

    start = da.zeros(n_blocks * size, chunks=size, dtype=np.int8)
    X = da.map_blocks(
        rows, start[:, np.newaxis], chunks=(start.chunks[0], (N_COLUMNS,)), dtype=dtype
    )
    return X, da.map_blocks(labels, start, dtype=np.int64)


# By name: the row limit, the largest depth, the numbers of partitions.
TABLES: dict[str, tuple[int, int | None, list[int]]] = {
    "satimage": (50, 8, [1, 2, 7, 64]),
    "spambase": (50, 8, [1, 2, 7, 64]),
    "million": (100_000, 10, [1, 2, 7, 64]),
    "million integers": (100_000, 10, [1, 2, 7, 64]),
}


class Rows(NamedTuple):
    """A table in memory, whose test rows are asked."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray


def load_rows(name: str) -> Rows:
    """Return a data set, or the million rows: as they are, or as small integers."""
    if not name.startswith("million"):
        table = data.load(name)
        return Rows(table.X, table.y, table.X_test)
    blocks = [make_block(seed, 62_500, "float64") for seed in range(16)]
    X, y = (np.concatenate(part) for part in zip(*blocks, strict=True))
    X_test = make_block(10**6, 100_000, "float64")[0]
    if name == "million integers":
        X, X_test = np.rint(8 * X), np.rint(8 * X_test)
    return Rows(X, y, X_test)


def compare(name: str, row_limit: int, max_depth: int | None, partitions: list[int]) -> None:
    """Compare the answers of cluster and process, for several numbers of partitions."""
    table = load_rows(name)
    with start_cluster(2) as client:
        for preset, standardize in itertools.product(("accurate", "paper"), (True, False)):
            parameters = {
                "preset": preset,
                "n_estimators": 2,
                "max_depth": max_depth,
                "standardize": standardize,
                "random_state": 0,
            }
            local = lhtree.LHForestClassifier(n_jobs=1, **parameters).fit(table.X, table.y)
            for n_parts in partitions:
                size = -(-len(table.X) // n_parts)
                X = client.persist(da.from_array(table.X, (size, -1)))
                y = client.persist(da.from_array(table.y, size))
                model = lhtree.dask.LHForestClassifier(row_limit=row_limit, **parameters)
                plain = model.fit(X, y).to_local()
                same = plain.predict(table.X_test) == local.predict(table.X_test)
                write_line(
                    kind="equal",
                    table=name,
                    preset=preset,
                    standardize=standardize,
                    max_depth=max_depth,
                    n_partitions=n_parts,
                    n_nodes=len(local.forest_.left),
                    n_test=len(same),
                    same_answers=float(same.mean()),
                    same_structure=np.array_equal(plain.forest_.left, local.forest_.left),
                    same_bits=all(
                        np.array_equal(
                            getattr(plain.forest_, field), getattr(local.forest_, field)
                        )
                        for field in ("left", "feature", "weight", "threshold", "share")
                    ),
                    **model.growth_,
                )


MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "forest": ("LHForestClassifier", {"n_estimators": 16, "max_depth": 10, "random_state": 0}),
    "short forest": (
        "LHForestClassifier",
        {"n_estimators": 2, "max_depth": 10, "random_state": 0},
    ),
    "full depth": ("LHForestClassifier", {"n_estimators": 4, "random_state": 0}),
    "paper forest": (
        "LHForestClassifier",
        {"preset": "paper", "n_estimators": 8, "max_depth": 10, "random_state": 0},
    ),
    "one tree": ("LHTClassifier", {"max_depth": 10}),
}


def warm_up(client: Any) -> float:
    """Fit a few rows, so that all workers have imported the packages; returns its CPU time."""
    before = sum_cpu(client)
    X, y = make_block(0, 400, "float64")
    n_parts = 4 * len(client.nthreads())
    size = -(-len(X) // n_parts)
    lhtree.dask.LHForestClassifier(n_estimators=2, max_depth=3, row_limit=100).fit(
        da.from_array(X, (size, -1)), da.from_array(y, size)
    )
    return sum_cpu(client) - before


def find_least(repeats: int, clock: Callable[[], float], work: Callable[[], Any]) -> float:
    """Return the least time that some work takes: what else the machine does adds to it."""
    times = []
    for _ in range(repeats):
        begin = clock()
        work()
        times.append(clock() - begin)
    return min(times)


def measure_overhead(
    names: list[str], workers: list[int], row_limits: list[int | None], n_rows: int, repeats: int
) -> None:
    """Measure the CPU time of a fit on a cluster against that of a local one."""
    n_parts = 16
    lazy_X, lazy_y = make_lazy(n_parts, n_rows // n_parts)
    X, y = da.compute(lazy_X, lazy_y, scheduler="synchronous")
    X_test, _ = make_block(10**6, 20_000, "float64")
    for name in names:
        kind, parameters = MODELS[name]
        for n_workers in workers:
            # Anew each time: both feel what else the machine does.
            local = getattr(lhtree, kind)(n_jobs=n_workers, **parameters)
            local_cpu = find_least(repeats, time.process_time, partial(local.fit, X, y))
            with start_cluster(n_workers) as client:
                held = client.persist([lazy_X, lazy_y])
                distributed.wait(held)
                start_cpu = warm_up(client)
                for row_limit in row_limits:
                    wall = time.monotonic()
                    model = getattr(lhtree.dask, kind)(row_limit=row_limit, **parameters)
                    cpu = find_least(repeats, partial(sum_cpu, client), partial(model.fit, *held))
                    wall = (time.monotonic() - wall) / repeats
                    same = model.to_local().predict(X_test) == local.predict(X_test)
                    write_line(
                        kind="overhead",
                        model=name,
                        n_rows=len(X),
                        n_partitions=n_parts,
                        n_workers=n_workers,
                        local_cpu=round(local_cpu, 2),
                        start_cpu=round(start_cpu, 2),
                        cpu=round(cpu, 2),
                        ratio=round(cpu / local_cpu, 2),
                        wall=round(wall, 2),
                        load=round(os.getloadavg()[0], 1),
                        same_answers=float(same.mean()),
                        **model.growth_,
                    )


def find_peak() -> float:
    """Return the largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_memory(n_gigabytes: float, n_members: int, max_depth: int) -> None:
    """Fit a table that is several times larger than the memory of the workers."""
    size = 100_000  # 16 MB a partition
    n_blocks = int(n_gigabytes * 2**30 / (size * N_COLUMNS * 8))
    X, y = make_lazy(n_blocks, size)
    with start_cluster(2, memory_limit="512MB") as client:
        pids = set(client.run(os.getpid).values())
        wall = time.monotonic()
        model = lhtree.dask.LHForestClassifier(
            n_estimators=n_members, max_depth=max_depth, max_samples=0.2, random_state=0
        ).fit(X, y)
        wall = time.monotonic() - wall
        X_test, y_test = make_block(10**6, 20_000, "float64")
        write_line(
            kind="memory",
            n_bytes_of_table=int(X.nbytes),
            n_partitions=n_blocks,
            memory_limit="512MB",
            n_workers=2,
            n_members=n_members,
            max_depth=max_depth,
            peak_mib=[round(peak) for peak in client.run(find_peak).values()],
            no_worker_died=pids == set(client.run(os.getpid).values()),
            wall=round(wall, 1),
            accuracy=round(float(model.to_local().score(X_test, y_test)), 4),
            **model.growth_,
        )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    equal = commands.add_parser("equal")
    equal.add_argument("tables", nargs="*", default=list(TABLES))
    overhead = commands.add_parser("overhead")
    overhead.add_argument("--models", nargs="+", default=list(MODELS))
    overhead.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4])
    overhead.add_argument("--row-limits", nargs="+", type=int, default=[100_000, 0])
    overhead.add_argument("--rows", type=int, default=1_000_000)
    overhead.add_argument("--repeats", type=int, default=2)
    memory = commands.add_parser("memory")
    memory.add_argument("--gigabytes", type=float, default=3.0)
    memory.add_argument("--members", type=int, default=2)
    memory.add_argument("--max-depth", type=int, default=8)
    options = parser.parse_args()
    if options.command == "equal":
        for name in options.tables:
            compare(name, *TABLES[name])
    elif options.command == "overhead":
        limits = [limit or None for limit in options.row_limits]
        measure_overhead(options.models, options.workers, limits, options.rows, options.repeats)
    else:
        measure_memory(options.gigabytes, options.members, options.max_depth)


if __name__ == "__main__":
    main()
