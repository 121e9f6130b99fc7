"""Choosing the cuts of a round's nodes from counts of their projections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Floats, Ints
from lhtree.dask import tasks
from lhtree.dask.merging import Sums
from lhtree.dask.tasks import Hyperplanes, Segments
from lhtree.training.plan import CRITERIA, Plan

FEWEST_BINS, MOST_BINS = 64, 1024  # of a hyperplane
FEWEST_PARTS, MOST_PARTS = 2, 16  # of a bin that is looked into
FEWEST_LISTED, MOST_LISTED = 2**10, 2**16  # projections of a node
MOST_STEPS = 12  # times that bins are divided while they hold too many rows to be listed
N_NUMBERS = 2**22  # bins, or projections, that a pass may return, if the fewest are no more
GINI = CRITERIA.index("gini")

Bools = NDArray[np.bool_]
Run = Callable[..., Any]  # run(function, *shared): merge what all partitions return


class Candidates(NamedTuple):
    """The candidates of a node, of which one is chosen."""

    whole: Floats  # its weights and numbers of rows: positive, negative
    min_weight: float  # least weight of a side
    n_hyperplanes: int


class Cut(NamedTuple):
    """The split of a node."""

    hyperplane: int  # among the candidates of its node
    threshold: float
    threshold_kind: int
    left: Floats  # weights and numbers of rows on its left
    extremes: Floats


def choose_cuts(
    run: Run, plan: Plan, candidates: list[Candidates], hyperplanes: Hyperplanes, bounds: Floats
) -> list[Cut | None]:
    """Return the cut of each node; None where a node cannot be split.

    Parameters
    ----------
    run : callable
        Merges a pass over the partitions.
    plan : Plan
        The rules.
    candidates : list of Candidates
        Nodes, in the order of their hyperplanes.
    hyperplanes : Hyperplanes
        Candidates of all nodes.
    bounds : ndarray of shape (n_hyperplanes, 2)
        A range that the projections of each hyperplane hardly leave.
    """
    if len(hyperplanes.node) == 0:
        return [None] * len(candidates)
    if plan.criterion == GINI:
        return _choose_gini(run, candidates, hyperplanes, bounds)
    return _choose_pure(run, plan, candidates, hyperplanes)


def _add_up_sizes(candidates: list[Candidates]) -> Ints:
    return np.cumsum([0, *(each.n_hyperplanes for each in candidates)])


def divide_numbers(n_parts: int, fewest: int, most: int) -> int:
    """Return how many numbers each part of a pass may return."""
    return min(most, max(fewest, N_NUMBERS // max(n_parts, 1)))


def _read_count(sums: Floats, n: int) -> Floats:
    """Return weights and numbers of rows; they are the same where every row counts once."""
    count = sums.reshape(n, -1)
    return np.ascontiguousarray(np.tile(count, 2)) if count.shape[1] == 2 else count


def _read_cut(chosen: _core.ChosenCut | None, ends: Floats) -> Cut | None:
    if chosen is None:
        return None
    hyperplane, threshold, kind, left = chosen
    return Cut(hyperplane, threshold, kind, left, ends[hyperplane] * [-1, 1, -1, 1])


def _choose_pure(
    run: Run, plan: Plan, candidates: list[Candidates], hyperplanes: Hyperplanes
) -> list[Cut | None]:
    n_hyperplanes = len(hyperplanes.node)
    nothing = Segments(
        np.zeros(n_hyperplanes + 1, np.int64),
        np.empty(0),
        np.empty(0),
        np.zeros(1, np.int64),
        False,
    )
    ends = run(tasks.count_bins, hyperplanes, nothing)[1].reshape(-1, 4)
    threshold = _core.list_pure_cuts(ends)
    left = _read_count(run(tasks.sum_below, hyperplanes, threshold)[0], len(threshold))
    n_each = len(threshold) // n_hyperplanes
    offsets = _add_up_sizes(candidates)
    cuts = []
    for each, a, b in zip(candidates, offsets[:-1], offsets[1:], strict=True):
        below = left[a * n_each : b * n_each]
        chosen = _core.choose_pure_cut(ends[a:b], below, each.whole, plan.gamma, each.min_weight)
        cuts.append(_read_cut(chosen, ends[a:b]))
    return cuts


class _Ranges(NamedTuple):
    """Ranges of projections, by hyperplane and then ascending, none empty."""

    hyperplane: Ints
    counts: Floats  # (n, 4)
    end: Floats  # (n, 2)

    def starts(self, n_hyperplanes: int) -> Ints:
        return np.searchsorted(self.hyperplane, np.arange(n_hyperplanes + 1)).astype(np.int64)


def _choose_gini(
    run: Run, candidates: list[Candidates], hyperplanes: Hyperplanes, bounds: Floats
) -> list[Cut | None]:
    """Count projections in bins, and list them in those that may hold the best cut."""
    n_hyperplanes = len(hyperplanes.node)
    offsets = _add_up_sizes(candidates)
    node_of = np.repeat(np.arange(len(candidates)), np.diff(offsets))
    n_rows = np.array([each.whole[2:].sum() for each in candidates])[node_of]
    ranges, ends = _count_whole(run, hyperplanes, bounds, n_rows)
    for step in range(MOST_STEPS + 1):
        is_open = _list_open(ranges, candidates, offsets)
        is_many = _hold_many(ranges, is_open, node_of)
        if step == MOST_STEPS or not is_many.any():
            break
        ranges = _look_into(run, hyperplanes, ranges, is_many)
    if np.any(is_open & ~is_many):
        ranges = _list_inside(run, hyperplanes, ranges, is_open & ~is_many)
    starts, cuts = ranges.starts(n_hyperplanes), []
    for each, a, b in zip(candidates, offsets[:-1], offsets[1:], strict=True):
        part = slice(starts[a], starts[b])
        chosen = _core.choose_gini_cut(
            ranges.counts[part],
            ranges.end[part],
            starts[a : b + 1] - starts[a],
            each.whole,
            each.min_weight,
        )
        cuts.append(_read_cut(chosen, ends[a:b]))
    return cuts


def _list_bins(hyperplane: Ints, sums: Sums, bin_start: Ints) -> _Ranges:
    """Return the bins that hold rows; `hyperplane` is that of each segment."""
    n_bins = int(bin_start[-1])
    count = _read_count(sums[0], n_bins)
    end = sums[1][: 2 * n_bins].reshape(-1, 2) * [-1, 1]
    is_used = count[:, 2] + count[:, 3] > 0
    return _Ranges(
        np.repeat(hyperplane, np.diff(bin_start))[is_used], count[is_used], end[is_used]
    )


def _count_whole(
    run: Run, hyperplanes: Hyperplanes, bounds: Floats, n_rows: Floats
) -> tuple[_Ranges, Floats]:
    n_hyperplanes = len(hyperplanes.node)
    # The more rows, the more are left in the bins near the cut: about n / sqrt(bins). The range
    # of a hyperplane is only bounded, from those of its columns: it is often narrower.
    most = divide_numbers(len(n_rows), FEWEST_BINS, MOST_BINS)
    n_bins = np.clip(0.5 * np.sqrt(n_rows), FEWEST_BINS, most).astype(np.int64)
    n_bins = np.where(np.diff(hyperplanes.start) == 1, n_bins, 2 * n_bins)
    bin_start = np.cumsum([0, *n_bins])
    low, high = (np.ascontiguousarray(bound) for bound in bounds.T)
    segments = Segments(np.arange(n_hyperplanes + 1), low, high, bin_start, True)
    sums = run(tasks.count_bins, hyperplanes, segments)
    ends = sums[1][2 * bin_start[-1] :].reshape(-1, 4)
    return _list_bins(np.arange(n_hyperplanes), sums, bin_start), ends


def _list_open(ranges: _Ranges, candidates: list[Candidates], offsets: Ints) -> Bools:
    starts = ranges.starts(int(offsets[-1]))
    is_open: Bools = np.zeros(len(ranges.hyperplane), dtype=bool)
    for each, a, b in zip(candidates, offsets[:-1], offsets[1:], strict=True):
        part = slice(starts[a], starts[b])
        is_open[part] = _core.list_open_bins(
            ranges.counts[part],
            ranges.end[part],
            starts[a : b + 1] - starts[a],
            each.whole,
            each.min_weight == 0,  # else the purest hyperplane may be refused for a light side
        )
    return is_open


def select_hyperplanes(hyperplanes: Hyperplanes, number: Ints) -> Hyperplanes:
    """Return some of the hyperplanes."""
    size = np.diff(hyperplanes.start)[number]
    start = np.cumsum([0, *size])
    term = np.repeat(hyperplanes.start[number] - start[:-1], size) + np.arange(start[-1])
    return Hyperplanes(
        np.ascontiguousarray(hyperplanes.node[number]),
        start,
        hyperplanes.feature[term],
        hyperplanes.weight[term],
    )


def _hold_many(ranges: _Ranges, is_open: Bools, node_of: Ints) -> Bools:
    """Mark the open ranges of nodes that have too many rows in them to be listed."""
    of = node_of[ranges.hyperplane]
    n_rows = np.bincount(of, is_open * ranges.counts[:, 2:].sum(axis=1))
    most = divide_numbers(int(np.count_nonzero(n_rows)), FEWEST_LISTED, MOST_LISTED)
    return is_open & (n_rows > most)[of]


def _select(
    hyperplanes: Hyperplanes, ranges: _Ranges, is_open: Bools
) -> tuple[Ints, Hyperplanes, Segments]:
    """Return the numbers of the hyperplanes with open ranges, these hyperplanes, the ranges."""
    number, hyperplane = np.unique(ranges.hyperplane[is_open], return_inverse=True)
    n_open = int(np.count_nonzero(is_open))
    segments = Segments(
        np.searchsorted(hyperplane, np.arange(len(number) + 1)).astype(np.int64),
        np.ascontiguousarray(ranges.end[is_open, 0]),
        np.ascontiguousarray(ranges.end[is_open, 1]),
        np.arange(n_open + 1) * divide_numbers(n_open, FEWEST_PARTS, MOST_PARTS),
        False,
    )
    return number, select_hyperplanes(hyperplanes, number), segments


def _replace(ranges: _Ranges, is_open: Bools, found: _Ranges) -> _Ranges:
    both: list[Any] = [
        np.concatenate([old[~is_open], new]) for old, new in zip(ranges, found, strict=True)
    ]
    order = np.lexsort((both[2][:, 0], both[0]))
    return _Ranges(*(np.ascontiguousarray(array[order]) for array in both))


def _look_into(run: Run, hyperplanes: Hyperplanes, ranges: _Ranges, is_open: Bools) -> _Ranges:
    """Replace open ranges by their bins."""
    _, some, segments = _select(hyperplanes, ranges, is_open)
    sums = run(tasks.count_bins, some, segments)
    return _replace(
        ranges, is_open, _list_bins(ranges.hyperplane[is_open], sums, segments.bin_start)
    )


def _list_inside(run: Run, hyperplanes: Hyperplanes, ranges: _Ranges, is_open: Bools) -> _Ranges:
    """Replace open ranges by the single projections in them."""
    number, some, segments = _select(hyperplanes, ranges, is_open)
    listed = run(tasks.list_scores, some, segments)
    order = np.lexsort((listed.score, listed.hyperplane))
    hyperplane, score = listed.hyperplane[order], listed.score[order]
    side = np.where(listed.is_positive[order, np.newaxis] == 1, [1.0, 0.0], [0.0, 1.0])
    weight = listed.weight[order, np.newaxis] if len(listed.weight) else 1.0
    is_new = np.ones(len(hyperplane), dtype=bool)
    is_new[1:] = (np.diff(hyperplane) != 0) | (np.diff(score) != 0)
    first = np.flatnonzero(is_new)
    count = np.add.reduceat(np.hstack([side * weight, side]), first, axis=0)
    found = _Ranges(number[hyperplane[first]], count, np.column_stack([score[first]] * 2))
    return _replace(ranges, is_open, found)
