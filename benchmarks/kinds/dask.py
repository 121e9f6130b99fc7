"""Growth on a Dask cluster against a local fit: predictions, CPU time, traffic, memory.

Tasks: ``overhead`` (CPU time of all processes: workers, scheduler, client), ``equal`` (whether
cluster and process grow the same forest) and ``memory`` (a table larger than the workers).
"""

from __future__ import annotations

import math
import os
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import dask.array as da
import distributed
import numpy as np

import lhtree
import lhtree.dask
from benchmarks import data, models
from benchmarks.kinds.clocks import read_peak, time_best
from lhtree.estimators.classifier import TreeClassifier

N_COLUMNS = 20
REPEATS = 8  # of the random rows of a partition: it must be cheap to make again
N_FITS = 2
OVERHEAD_ROWS, OVERHEAD_PARTITIONS = 1_000_000, 16
MEMORY_LIMIT = "512MB"
MODELS = (
    "LHForest, n_estimators=16, max_depth=10",
    "LHForest, n_estimators=2, max_depth=10",
    "LHForest, n_estimators=4",
    "LHForest, preset='paper', n_estimators=8, max_depth=10",
    "LHT, max_depth=10",
)
# By name: the row limit and the largest depth.
TABLES = {
    "satimage": (50, 8),
    "spambase": (50, 8),
    "million": (100_000, 10),
    "million integers": (100_000, 10),
}

Job = dict[str, Any]
Forest: Any = lhtree.dask.LHForestClassifier


def list_jobs(_: Namespace) -> list[Job]:
    """Return all measurements."""
    jobs: list[Job] = [
        {"task": "overhead", "model": model, "n_workers": n_workers, "limited": limited}
        for model in MODELS
        for n_workers in (1, 2, 4)
        for limited in (True, False)
    ]
    jobs += [
        {"task": "equal", "data": name, "preset": preset, "standardize": standardize,
         "n_partitions": n_partitions}
        for name in TABLES
        for preset in ("accurate", "paper")
        for standardize in (True, False)
        for n_partitions in (1, 2, 7, 64)
    ]  # fmt: skip
    jobs.append({"task": "memory", "n_estimators": 1, "max_depth": 2})
    return jobs


def measure(job: Job) -> dict[str, Any]:
    """Return the numbers of one job."""
    measures = {"overhead": measure_overhead, "equal": measure_equal, "memory": measure_memory}
    return measures[job["task"]](job)


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


def make_block(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose classes depend on a few columns and noise."""
    rng = np.random.default_rng(seed)
    few = rng.standard_normal((-(-n // REPEATS), N_COLUMNS))
    X = np.concatenate([few + k / 64 for k in range(REPEATS)])[:n]
    score = X[:, 0] + X[:, 1] * X[:, 2] - X[:, 3] + 0.5 * rng.standard_normal(n)
    return X, (score > 0).astype(np.int64)


def make_lazy(n_blocks: int, size: int) -> tuple[Any, Any]:
    """Return a table whose partitions are made when they are needed."""

    def rows(_: Any, block_info: Any = None) -> np.ndarray:
        return make_block(block_info[None]["chunk-location"][0], size)[0]

    def labels(_: Any, block_info: Any = None) -> np.ndarray:
        return make_block(block_info[None]["chunk-location"][0], size)[1]

    start = da.zeros(n_blocks * size, chunks=size, dtype=np.int8)
    chunks = start.chunks[0], (N_COLUMNS,)
    X = da.map_blocks(rows, start[:, np.newaxis], chunks=chunks, dtype=np.float64)
    return X, da.map_blocks(labels, start, dtype=np.int64)


def load_rows(name: str) -> data.Table:
    """Return a data set, or the million rows: as they are, or as small integers."""
    if not name.startswith("million"):
        return data.load(name)
    blocks = [make_block(seed, 62_500) for seed in range(16)]
    X, y = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    X_test, y_test = make_block(10**6, 100_000)
    if name == "million integers":
        X, X_test = np.rint(8 * X), np.rint(8 * X_test)
    return data.Table(X, y, X_test, y_test)


def fit_local(model: Any, X: Any, y: Any) -> Any:
    """Fit a forest or tree in this process on the engine of the cluster, whatever its preset."""
    TreeClassifier._fit(model, X, y, None)
    return model


def measure_equal(job: Job) -> dict[str, Any]:
    """Compare the forests of cluster and process."""
    table = load_rows(job["data"])
    row_limit, max_depth = TABLES[job["data"]]
    params = {
        "preset": job["preset"], "standardize": job["standardize"], "n_estimators": 2,
        "max_depth": max_depth, "random_state": 0,
    }  # fmt: skip
    local = fit_local(lhtree.LHForestClassifier(n_jobs=1, **params), table.X, table.y)
    size = -(-len(table.X) // job["n_partitions"])
    with start_cluster(2) as client:
        X = client.persist(da.from_array(table.X, (size, -1)))
        y = client.persist(da.from_array(table.y, size))
        model = Forest(row_limit=row_limit, **params)
        grown = model.fit(X, y).to_local()
    same = grown.predict(table.X_test) == local.predict(table.X_test)
    fields = ("left", "feature", "weight", "threshold", "value")
    return {
        "max_depth": max_depth,
        "n_nodes": len(local.forest_.left),
        "n_test": len(same),
        "same_predictions": float(same.mean()),
        "same_structure": np.array_equal(grown.forest_.left, local.forest_.left),
        "same_bits": all(
            np.array_equal(getattr(grown.forest_, field), getattr(local.forest_, field))
            for field in fields
        ),
        **model.growth_,
    }


def warm_up(client: Any) -> float:
    """Fit a few rows, so that all workers have imported the packages; return its CPU time."""
    before = sum_cpu(client)
    X, y = make_block(0, 400)
    size = -(-len(X) // (4 * len(client.nthreads())))
    Forest(n_estimators=2, max_depth=3, row_limit=100).fit(
        da.from_array(X, (size, -1)), da.from_array(y, size)
    )
    return sum_cpu(client) - before


def measure_overhead(job: Job) -> dict[str, Any]:
    """Measure the CPU time of a fit on a cluster against that of a local one."""
    lazy = make_lazy(OVERHEAD_PARTITIONS, OVERHEAD_ROWS // OVERHEAD_PARTITIONS)
    X, y = da.compute(*lazy, scheduler="synchronous")
    X_test, _ = make_block(10**6, 20_000)
    local = models.make_model(job["model"], "", job["n_workers"])
    local_cpu = time_best(lambda: fit_local(local, X, y), N_FITS, math.inf, time.process_time)
    params = models.parse_parameters(job["model"])
    if job["model"].startswith("LHForest"):
        params["random_state"] = 0
    kind = getattr(lhtree.dask, type(local).__name__)
    # A limit forces rounds; without one it follows from the memory of the workers.
    model = kind(row_limit=100_000 if job["limited"] else None, **params)
    with start_cluster(job["n_workers"]) as client:
        held = client.persist(list(lazy))
        distributed.wait(held)
        start_cpu = warm_up(client)
        wall = time.monotonic()
        cpu = time_best(lambda: model.fit(*held), N_FITS, math.inf, partial(sum_cpu, client))
        wall = (time.monotonic() - wall) / N_FITS
        same = model.to_local().predict(X_test) == local.predict(X_test)
    return {
        "n_rows": len(X),
        "n_partitions": OVERHEAD_PARTITIONS,
        "local_cpu": round(local_cpu, 2),
        "start_cpu": round(start_cpu, 2),
        "cpu": round(cpu, 2),
        "ratio": round(cpu / local_cpu, 2),
        "wall": round(wall, 2),
        "same_predictions": float(same.mean()),
        **model.growth_,
    }


def measure_memory(job: Job) -> dict[str, Any]:
    """Fit a table of 3 GB, several times larger than the memory of the workers."""
    size = 100_000  # 16 MB a partition
    n_blocks = int(3 * 2**30 / (size * N_COLUMNS * 8))
    X, y = make_lazy(n_blocks, size)
    with start_cluster(2, MEMORY_LIMIT) as client:
        pids = set(client.run(os.getpid).values())
        wall = time.monotonic()
        model = Forest(
            n_estimators=job["n_estimators"], max_depth=job["max_depth"], max_samples=0.2,
            random_state=0,
        ).fit(X, y)  # fmt: skip
        wall = time.monotonic() - wall
        X_test, y_test = make_block(10**6, 20_000)
        return {
            "n_bytes_of_table": int(X.nbytes),
            "n_partitions": n_blocks,
            "memory_limit": MEMORY_LIMIT,
            "n_workers": 2,
            "peak_mib": [round(1e6 / 2**20 * peak) for peak in client.run(read_peak).values()],
            "no_worker_died": pids == set(client.run(os.getpid).values()),
            "wall": round(wall, 1),
            "accuracy": round(float(model.to_local().score(X_test, y_test)), 4),
            **model.growth_,
        }
