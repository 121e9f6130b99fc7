"""Finishing small nodes: their rows come together on one worker, many nodes at once."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
from distributed import Future

from lhtree.arrays import Scale
from lhtree.dask import tasks
from lhtree.dask.cluster import Cluster
from lhtree.dask.rounds import Node
from lhtree.dask.tasks import Branches
from lhtree.training.plan import Plan


def make_chunks(
    sizes: Sequence[int], n_rows: int, n_workers: int, most_rows: int
) -> list[list[int]]:
    """Divide nodes into chunks of about the same work, each for one worker.

    The nodes of a chunk share their rows: it holds no row twice.

    Parameters
    ----------
    sizes : sequence of int
        Rows of each node.
    n_rows : int
        Rows of the whole table.
    n_workers : int
        Chunks that can be worked on at the same time.
    most_rows : int
        Rows that a worker can hold.
    """
    total = sum(sizes)
    n_chunks = n_workers if n_rows <= most_rows else max(n_workers, -(-total // most_rows))
    heap = [(0, 0, number) for number in range(min(n_chunks, len(sizes)))]
    chunks: list[list[int]] = [[] for _ in heap]
    for k in sorted(range(len(sizes)), key=lambda k: -sizes[k]):
        work, held, number = heapq.heappop(heap)
        if n_rows > most_rows and held and held + sizes[k] > most_rows:
            heapq.heappush(heap, (work, held, number))
            number, work, held = len(chunks), 0, 0
            chunks.append([])
        chunks[number].append(k)
        heapq.heappush(heap, (work + sizes[k], held + sizes[k], number))
    return [sorted(chunk) for chunk in chunks if chunk]


def finish_nodes(
    cluster: Cluster,
    tables: Sequence[Any],
    states: Sequence[Future],
    nodes: list[Node],
    scale: Scale,
    plan: Plan,
    *,
    n_rows: int,
    most_rows: int,
) -> None:
    """Grow the subtrees of nodes, as many chunks at a time as there are threads."""
    sizes = [node.n_rows for node in nodes]
    chunks = make_chunks(sizes, n_rows, cluster.n_threads, most_rows)
    chunks.sort(key=lambda chunk: -sum(sizes[k] for k in chunk))
    for begin in range(0, len(chunks), cluster.n_threads):
        running = chunks[begin : begin + cluster.n_threads]
        numbers = tuple(np.array(chunk, dtype=np.int64) for chunk in running)
        branches = [_describe([nodes[k] for k in chunk]) for chunk in running]
        finished = cluster.start_joined(
            tasks.take, tables, states, (numbers,), tasks.finish, branches, (scale, plan)
        )
        for chunk, future in zip(running, finished, strict=True):
            arrays = cluster.gather([future])[0]
            for position, k in enumerate(chunk):
                nodes[k].record.subtree = (arrays, position)
        cluster.drop(finished)


def _describe(nodes: list[Node]) -> Branches:
    return Branches(
        np.array([node.key for node in nodes], dtype=np.uint64),
        np.array([node.tree.key for node in nodes], dtype=np.uint64),
        np.array([node.depth for node in nodes], dtype=np.int64),
        np.array([node.tree.weight_sum for node in nodes], dtype=np.float64),
        np.array([node.tree.beta for node in nodes], dtype=np.float64),
    )
