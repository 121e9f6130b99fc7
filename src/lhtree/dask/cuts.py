"""Choosing the cuts of a round's nodes from counts of their projections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Floats, Ints
from lhtree.dask import passes
from lhtree.dask.passes import Forms, Segments
from lhtree.dask.runs import Sums
from lhtree.model.forest import THRESHOLDS, Plan

FEWEST_BINS, MOST_BINS = 64, 1024  # of a form
FEWEST_PARTS, MOST_PARTS = 2, 16  # of a bin that is looked into
FEWEST_LISTED, MOST_LISTED = 2**10, 2**16  # projections of a node
MOST_STEPS = 12  # times that bins are divided while they hold too many rows to be listed
N_NUMBERS = 2**22  # bins, or projections, that a pass may tell of, if the fewest are no more
GINI = THRESHOLDS.index("gini")

Bools = NDArray[np.bool_]
Run = Callable[..., Any]  # run(function, *shared): merge what all partitions say


class Contest(NamedTuple):
    """A node whose candidates compete."""

    whole: Floats  # its weights and numbers of rows: targets, rest
    min_weight: float  # least weight of a side
    n_forms: int


class Cut(NamedTuple):
    """The split of a node."""

    form: int  # among those of its contest
    threshold: float
    rule: int
    left: Floats  # weights and numbers of rows on its left
    extremes: Floats


def choose_cuts(
    run: Run, plan: Plan, contests: list[Contest], forms: Forms, bounds: Floats
) -> list[Cut | None]:
    """Return the cut of each contest; None where a node cannot be split.

    Parameters
    ----------
    run : callable
        Merges a pass over the partitions.
    plan : Plan
        The rules.
    contests : list of Contest
        Nodes, in the order of their forms.
    forms : Forms
        Candidates of all nodes.
    bounds : ndarray of shape (n_forms, 2)
        A range that the projections of each form hardly leave.
    """
    if len(forms.node) == 0:
        return [None] * len(contests)
    if plan.cut == GINI:
        return _choose_gini(run, contests, forms, bounds)
    return _choose_pure(run, plan, contests, forms)


def _find_places(contests: list[Contest]) -> Ints:
    return np.cumsum([0, *(contest.n_forms for contest in contests)])


def share_out(n_parts: int, fewest: int, most: int) -> int:
    """Return how many numbers each part of a pass may tell."""
    return min(most, max(fewest, N_NUMBERS // max(n_parts, 1)))


def _find_count(sums: Floats, n: int) -> Floats:
    """Return weights and numbers of rows; they are the same where every row counts once."""
    count = sums.reshape(n, -1)
    return np.ascontiguousarray(np.tile(count, 2)) if count.shape[1] == 2 else count


def _read_cut(chosen: _core.ChosenCut | None, ends: Floats) -> Cut | None:
    if chosen is None:
        return None
    form, threshold, rule, left = chosen
    return Cut(form, threshold, rule, left, ends[form] * [-1, 1, -1, 1])


def _choose_pure(run: Run, plan: Plan, contests: list[Contest], forms: Forms) -> list[Cut | None]:
    n_forms = len(forms.node)
    nothing = Segments(
        np.zeros(n_forms + 1, np.int64), np.empty(0), np.empty(0), np.zeros(1, np.int64), False
    )
    ends = run(passes.count_bins, forms, nothing)[1].reshape(-1, 4)
    threshold = _core.list_pure_cuts(ends)
    left = _find_count(run(passes.sum_below, forms, threshold)[0], len(threshold))
    n_each = len(threshold) // n_forms
    places = _find_places(contests)
    cuts = []
    for contest, a, b in zip(contests, places[:-1], places[1:], strict=True):
        below = left[a * n_each : b * n_each]
        chosen = _core.choose_pure_cut(
            ends[a:b], below, contest.whole, plan.gamma, contest.min_weight
        )
        cuts.append(_read_cut(chosen, ends[a:b]))
    return cuts


class _Ranges(NamedTuple):
    """Ranges of projections, by form and then ascending, none empty."""

    form: Ints
    counts: Floats  # (n, 4)
    end: Floats  # (n, 2)

    def starts(self, n_forms: int) -> Ints:
        return np.searchsorted(self.form, np.arange(n_forms + 1)).astype(np.int64)


def _choose_gini(
    run: Run, contests: list[Contest], forms: Forms, bounds: Floats
) -> list[Cut | None]:
    """Count projections in bins, and list them in those that may hold the best cut."""
    n_forms = len(forms.node)
    places = _find_places(contests)
    contest_of = np.repeat(np.arange(len(contests)), np.diff(places))
    n_rows = np.array([contest.whole[2:].sum() for contest in contests])[contest_of]
    ranges, ends = _count_whole(run, forms, bounds, n_rows)
    for step in range(MOST_STEPS + 1):
        is_open = _find_open(ranges, contests, places)
        is_many = _hold_many(ranges, is_open, contest_of)
        if step == MOST_STEPS or not is_many.any():
            break
        ranges = _look_into(run, forms, ranges, is_many)
    if np.any(is_open & ~is_many):
        ranges = _list_inside(run, forms, ranges, is_open & ~is_many)
    starts, cuts = ranges.starts(n_forms), []
    for contest, a, b in zip(contests, places[:-1], places[1:], strict=True):
        part = slice(starts[a], starts[b])
        chosen = _core.choose_gini_cut(
            ranges.counts[part],
            ranges.end[part],
            starts[a : b + 1] - starts[a],
            contest.whole,
            contest.min_weight,
        )
        cuts.append(_read_cut(chosen, ends[a:b]))
    return cuts


def _find_bins(form: Ints, sums: Sums, bin_start: Ints) -> _Ranges:
    """Return the bins that hold rows; `form` is that of each segment."""
    n_bins = int(bin_start[-1])
    count = _find_count(sums[0], n_bins)
    end = sums[1][: 2 * n_bins].reshape(-1, 2) * [-1, 1]
    is_used = count[:, 2] + count[:, 3] > 0
    return _Ranges(np.repeat(form, np.diff(bin_start))[is_used], count[is_used], end[is_used])


def _count_whole(run: Run, forms: Forms, bounds: Floats, n_rows: Floats) -> tuple[_Ranges, Floats]:
    n_forms = len(forms.node)
    # The more rows, the more are left in the bins near the cut: about n / sqrt(bins). The range
    # of a plane is only bounded, from those of its columns: it is often narrower.
    most = share_out(len(n_rows), FEWEST_BINS, MOST_BINS)
    n_bins = np.clip(0.5 * np.sqrt(n_rows), FEWEST_BINS, most).astype(np.int64)
    n_bins = np.where(np.diff(forms.start) == 1, n_bins, 2 * n_bins)
    bin_start = np.cumsum([0, *n_bins])
    low, high = (np.ascontiguousarray(bound) for bound in bounds.T)
    segments = Segments(np.arange(n_forms + 1), low, high, bin_start, True)
    sums = run(passes.count_bins, forms, segments)
    ends = sums[1][2 * bin_start[-1] :].reshape(-1, 4)
    return _find_bins(np.arange(n_forms), sums, bin_start), ends


def _find_open(ranges: _Ranges, contests: list[Contest], places: Ints) -> Bools:
    starts = ranges.starts(int(places[-1]))
    is_open: Bools = np.zeros(len(ranges.form), dtype=bool)
    for contest, a, b in zip(contests, places[:-1], places[1:], strict=True):
        part = slice(starts[a], starts[b])
        is_open[part] = _core.find_open(
            ranges.counts[part],
            ranges.end[part],
            starts[a : b + 1] - starts[a],
            contest.whole,
            contest.min_weight == 0,  # else the purest form may be refused for a light side
        )
    return is_open


def select_forms(forms: Forms, number: Ints) -> Forms:
    """Return some of the forms."""
    size = np.diff(forms.start)[number]
    start = np.cumsum([0, *size])
    term = np.repeat(forms.start[number] - start[:-1], size) + np.arange(start[-1])
    return Forms(
        np.ascontiguousarray(forms.node[number]), start, forms.feature[term], forms.weight[term]
    )


def _hold_many(ranges: _Ranges, is_open: Bools, contest_of: Ints) -> Bools:
    """Mark the open ranges of nodes that have too many rows in them to be listed."""
    of = contest_of[ranges.form]
    n_rows = np.bincount(of, is_open * ranges.counts[:, 2:].sum(axis=1))
    most = share_out(int(np.count_nonzero(n_rows)), FEWEST_LISTED, MOST_LISTED)
    return is_open & (n_rows > most)[of]


def _select(forms: Forms, ranges: _Ranges, is_open: Bools) -> tuple[Ints, Forms, Segments]:
    """Return the numbers of the forms that have open ranges, these forms, and the ranges."""
    number, form = np.unique(ranges.form[is_open], return_inverse=True)
    n_open = int(np.count_nonzero(is_open))
    segments = Segments(
        np.searchsorted(form, np.arange(len(number) + 1)).astype(np.int64),
        np.ascontiguousarray(ranges.end[is_open, 0]),
        np.ascontiguousarray(ranges.end[is_open, 1]),
        np.arange(n_open + 1) * share_out(n_open, FEWEST_PARTS, MOST_PARTS),
        False,
    )
    return number, select_forms(forms, number), segments


def _replace(ranges: _Ranges, is_open: Bools, found: _Ranges) -> _Ranges:
    both: list[Any] = [
        np.concatenate([old[~is_open], new]) for old, new in zip(ranges, found, strict=True)
    ]
    order = np.lexsort((both[2][:, 0], both[0]))
    return _Ranges(*(np.ascontiguousarray(array[order]) for array in both))


def _look_into(run: Run, forms: Forms, ranges: _Ranges, is_open: Bools) -> _Ranges:
    """Replace open ranges by their bins."""
    _, some, segments = _select(forms, ranges, is_open)
    sums = run(passes.count_bins, some, segments)
    return _replace(ranges, is_open, _find_bins(ranges.form[is_open], sums, segments.bin_start))


def _list_inside(run: Run, forms: Forms, ranges: _Ranges, is_open: Bools) -> _Ranges:
    """Replace open ranges by the single projections in them."""
    number, some, segments = _select(forms, ranges, is_open)
    listed = run(passes.list_scores, some, segments)
    order = np.lexsort((listed.score, listed.form))
    form, score = listed.form[order], listed.score[order]
    side = np.where(listed.is_target[order, np.newaxis] == 1, [1.0, 0.0], [0.0, 1.0])
    weight = listed.weight[order, np.newaxis] if len(listed.weight) else 1.0
    is_new = np.ones(len(form), dtype=bool)
    is_new[1:] = (np.diff(form) != 0) | (np.diff(score) != 0)
    first = np.flatnonzero(is_new)
    count = np.add.reduceat(np.hstack([side * weight, side]), first, axis=0)
    found = _Ranges(number[form[first]], count, np.column_stack([score[first]] * 2))
    return _replace(ranges, is_open, found)
