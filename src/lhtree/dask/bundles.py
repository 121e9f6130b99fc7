"""Finishing small nodes: their rows come together on one worker, many nodes at once."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import Future

from lhtree.arrays import Floats
from lhtree.dask import passes
from lhtree.dask.cluster import Cluster
from lhtree.dask.passes import Branches
from lhtree.dask.rounds import Node
from lhtree.model.forest import Plan


def make_bundles(
    sizes: Sequence[int], n_rows: int, n_workers: int, most_rows: int
) -> list[list[int]]:
    """Divide nodes into bundles of about the same work, each for one worker.

    The nodes of a bundle share their rows: it holds no row twice.

    Parameters
    ----------
    sizes : sequence of int
        Rows of each node.
    n_rows : int
        Rows of the whole table.
    n_workers : int
        Bundles that can be worked on at the same time.
    most_rows : int
        Rows that a worker can hold.
    """
    total = sum(sizes)
    n_bundles = n_workers if n_rows <= most_rows else max(n_workers, -(-total // most_rows))
    heap = [(0, 0, number) for number in range(min(n_bundles, len(sizes)))]
    bundles: list[list[int]] = [[] for _ in heap]
    for k in sorted(range(len(sizes)), key=lambda k: -sizes[k]):
        work, held, number = heapq.heappop(heap)
        if n_rows > most_rows and held and held + sizes[k] > most_rows:
            heapq.heappush(heap, (work, held, number))
            number, work, held = len(bundles), 0, 0
            bundles.append([])
        bundles[number].append(k)
        heapq.heappush(heap, (work + sizes[k], held + sizes[k], number))
    return [sorted(bundle) for bundle in bundles if bundle]


def finish_nodes(
    cluster: Cluster,
    tables: Sequence[Any],
    states: Sequence[Future],
    nodes: list[Node],
    scale: tuple[Floats, Floats],
    plan: Plan,
    *,
    n_rows: int,
    most_rows: int,
    on_node: Callable[[int], None],
) -> None:
    """Grow the subtrees of nodes, as many bundles at a time as there are threads."""
    sizes = [node.n_rows for node in nodes]
    bundles = make_bundles(sizes, n_rows, cluster.n_threads, most_rows)
    bundles.sort(key=lambda bundle: -sum(sizes[k] for k in bundle))
    for begin in range(0, len(bundles), cluster.n_threads):
        wave = bundles[begin : begin + cluster.n_threads]
        numbers = tuple(np.array(bundle, dtype=np.int64) for bundle in wave)
        branches = [_describe([nodes[k] for k in bundle]) for bundle in wave]
        finished = cluster.start_joined(
            passes.take, tables, states, (numbers,), passes.finish, branches, (scale, plan)
        )
        for bundle, future in zip(wave, finished, strict=True):
            arrays = cluster.gather([future])[0]
            for place, k in enumerate(bundle):
                nodes[k].record.subtree = (arrays, place)
            on_node(len(bundle))
        cluster.drop(finished)


def _describe(nodes: list[Node]) -> Branches:
    return Branches(
        np.array([node.key for node in nodes], dtype=np.uint64),
        np.array([node.tree.key for node in nodes], dtype=np.uint64),
        np.array([node.depth for node in nodes], dtype=np.int64),
        np.array([node.tree.weight_sum for node in nodes], dtype=np.float64),
        np.array([node.tree.beta for node in nodes], dtype=np.float64),
    )
