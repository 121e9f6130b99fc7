"""What one task does with one partition: pure functions that workers run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from distributed import CancelledError, get_worker
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Floats, Ints, Scale
from lhtree.dask.merging import Listed, Sums
from lhtree.dask.partitions import to_table
from lhtree.data.validation import check_dates, check_present
from lhtree.model.forest import Forest, Votes
from lhtree.model.packing import complete
from lhtree.model.prediction import Voting
from lhtree.training.plan import Plan

Positions = NDArray[np.uint32]


class Survey(NamedTuple):
    """What a partition says of itself before anything is decided."""

    n_rows: int
    n_labels: int
    n_weights: int
    low: Floats  # least value of each column; NaN if one is missing
    high: Floats
    mean: Floats  # of the columns, over rows of positive weight; 0 if there is none
    labels: NDArray[Any]  # distinct
    has_missing_label: bool
    counts: Ints  # rows of positive weight, by label
    weight: Floats  # their weight
    smallest: Floats  # of these weights, by label; infinite if there is none
    largest: Floats
    is_integer: bool  # whether all weights are
    n_zero: int  # rows of weight 0
    bad_weight: float | None  # one that is negative or not finite


class Labels(NamedTuple):
    """The rows of a partition that count."""

    row: Positions  # in the partition
    y_encoded: NDArray[np.int32]
    weight: Floats | None
    first: int  # number of the first of them in the whole table


class State(NamedTuple):
    """Which rows of a partition are in which node: node after node, positive rows first."""

    row: Positions
    weight: Floats | None
    start: Ints
    middle: Ints


class Request(NamedTuple):
    """Columns to be summed, for each node."""

    column_start: Ints
    column: NDArray[np.int32]
    origin: Floats
    with_products: bool


class Hyperplanes(NamedTuple):
    """Hyperplanes over the rows of nodes."""

    node: Ints
    start: Ints
    feature: NDArray[np.int32]
    weight: Floats


class Segments(NamedTuple):
    """Ranges of projections, to be counted in bins; see native/old/part.hpp."""

    start: Ints
    low: Floats
    high: Floats
    bin_start: Ints
    is_whole: bool


class NodeUpdates(NamedTuple):
    """What becomes of the nodes of a round."""

    threshold: Floats  # of each hyperplane
    stays: NDArray[np.uint8]
    keeps: NDArray[np.uint8]  # left and right side of each node


class Draws(NamedTuple):
    """The estimators of a batch and the limits of their draws."""

    estimator: tuple[int, ...]
    limit: tuple[tuple[int, int], ...]
    n_rows: int


def survey(X: Any, y: Any, weight: Any) -> Survey:
    """Look at a partition for the first time."""
    check_present("y", y)
    check_present("sample_weight", weight)
    check_dates("sample_weight", weight)
    table, label = to_table(X), np.asarray(y)
    has_missing = _has_missing(label)
    names, y_encoded = (label[:0], np.zeros(0, int)) if has_missing else _encode_labels(label)
    values = np.ones(len(table)) if weight is None else np.asarray(weight, dtype=np.float64)
    is_bad = ~(np.isfinite(values) & (values >= 0))
    fits = len(values) == len(table) == len(y_encoded)
    kept = np.flatnonzero(values > 0) if fits and not is_bad.any() else np.zeros(0, int)
    n, m = len(names), table.shape[1]
    smallest, largest = _compute_ends_by_label(y_encoded[kept], values[kept], n)
    weights = np.bincount(y_encoded[kept], values[kept], minlength=n).astype(np.float64)
    mean = table[kept[0]].astype(np.float64) if len(kept) else np.zeros(m)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = _core.sum_columns(
            table, mean, np.ones(m), kept.astype(np.uint32), np.ascontiguousarray(values[kept])
        )
        mean += sums[:, 0] / (weights.sum() or 1.0)
    return Survey(
        n_rows=len(table),
        n_labels=len(label),
        n_weights=len(values),
        low=_compute_end(np.min, table, np.inf),
        high=_compute_end(np.max, table, -np.inf),
        mean=mean,
        labels=names,
        has_missing_label=has_missing,
        counts=np.bincount(y_encoded[kept], minlength=n),
        weight=weights,
        smallest=smallest,
        largest=largest,
        is_integer=bool(np.all(values == np.floor(values))),
        n_zero=int(np.count_nonzero(values == 0)),
        bad_weight=float(values[is_bad][0]) if is_bad.any() else None,
    )


def _compute_ends_by_label(y_encoded: Ints, values: Floats, n: int) -> tuple[Floats, Floats]:
    smallest, largest = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(smallest, y_encoded, values)
    np.maximum.at(largest, y_encoded, values)
    return smallest, largest


def _compute_end(find: Any, table: NDArray[Any], nothing: float) -> Floats:
    if len(table) == 0:
        return np.full(table.shape[1], nothing)
    return find(table, axis=0).astype(np.float64)  # type: ignore[no-any-return]


def _has_missing(label: NDArray[Any]) -> bool:
    if label.dtype.kind == "f":
        return bool(np.isnan(label).any())
    if label.dtype.kind in "Mm":
        return bool(np.isnat(label).any())
    if label.dtype.kind != "O":
        return False
    return any(value is None or value != value or str(value) == "<NA>" for value in label)


def _encode_labels(label: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    names, y_encoded = np.unique(label, return_inverse=True)
    return names, y_encoded.ravel()


def label_rows(
    y: Any, weight: Any, first: int, classes: NDArray[Any], unit: float, factor: Floats | None
) -> Labels:
    """Code the classes of a partition's rows and weigh them; drop those that do not count."""
    label = np.asarray(y)
    position = np.minimum(np.searchsorted(classes, label), len(classes) - 1)
    y_encoded = position.astype(np.int32)
    values = None if weight is None else np.asarray(weight, dtype=np.float64) / unit
    if factor is not None:
        values = factor[y_encoded] * (1.0 if values is None else values)
    row = np.arange(len(label), dtype=np.uint32)
    if values is None:
        return Labels(row, y_encoded, None, first)
    kept = (values > 0) & (classes[y_encoded] == label)
    return Labels(row[kept], y_encoded[kept], values[kept], first)


def sum_scale(X: Any, weight: Any, origin: Floats, unit: Floats) -> Sums:
    """Sum the columns about a point near their mean, their squares, and the weights.

    Classes of weight 0 take part, as in a local fit: only `weight` counts.
    """
    table, values = to_table(X), None
    row = np.arange(len(table), dtype=np.uint32)
    if weight is not None:
        weights = np.asarray(weight, dtype=np.float64)
        row = row[weights > 0]
        values = weights[row]
    total = float(len(row)) if values is None else math.fsum(values)
    sums = _core.sum_columns(table, origin, unit, row, values)
    return Sums(np.append(sums.ravel(), total), np.empty(0))


def compute_draw_limits(
    plan: Plan, estimators: tuple[int, ...], n_rows: int
) -> list[tuple[int, int]]:
    """Find which hashes are small enough for estimators; that takes no row, only their number."""
    return [_core.compute_draw_limit(plan.seed, i, n_rows, plan.n_draws) for i in estimators]


def draw_rows(
    labels: Labels, plan: Plan, draws: Draws, number: int
) -> tuple[NDArray[np.intp], Floats | None]:
    """Return which of the rows that count an estimator of the batch draws, and their weights."""
    hash_limit, row_limit = draws.limit[number]
    times = _core.draw_partition(
        plan.seed,
        draws.estimator[number],
        labels.first,
        len(labels.row),
        draws.n_rows,
        plan.n_draws,
        plan.bootstrap,
        hash_limit,
        row_limit,
    )
    drawn = np.flatnonzero(times)
    if not plan.bootstrap and labels.weight is None:
        return drawn, None
    weight = np.ones(len(drawn)) if labels.weight is None else labels.weight[drawn]
    return drawn, weight * times[drawn]


def sum_draws(labels: Labels, plan: Plan, draws: Draws) -> Sums:
    """For each estimator and class: the weight of the rows drawn, and their number."""
    sums = np.zeros((len(draws.estimator), 2, plan.n_classes))
    for number in range(len(draws.estimator)):
        drawn, weight = draw_rows(labels, plan, draws, number)
        y_encoded = labels.y_encoded[drawn]
        sums[number, 1] = np.bincount(y_encoded, minlength=plan.n_classes)
        sums[number, 0] = (
            sums[number, 1]
            if weight is None
            else np.bincount(y_encoded, weight, minlength=plan.n_classes)
        )
    return Sums(sums.ravel(), np.empty(0))


def begin(
    labels: Labels,
    plan: Plan,
    draws: Draws,
    roots: tuple[tuple[int, int], ...],
    factor: Floats | None,
) -> State:
    """Put the rows of a partition into roots, given by estimator and positive class."""
    rows: list[Positions] = []
    weights: list[Floats] = []
    sizes: list[int] = []
    last, drawn, weight = -1, np.zeros(0, np.intp), None
    for number, positive_class in roots:
        if number != last:
            last = number
            drawn, weight = draw_rows(labels, plan, draws, number)
            if factor is not None:
                balance = factor[number][labels.y_encoded[drawn]]
                weight = balance if weight is None else weight * balance
        is_positive = labels.y_encoded[drawn] == positive_class
        for side in (is_positive, ~is_positive):
            rows.append(labels.row[drawn[side]])
            sizes.append(len(rows[-1]))
            if weight is not None:
                weights.append(weight[side])
    ends = np.cumsum([0, *sizes])
    return State(
        np.concatenate(rows),
        np.concatenate(weights) if weights else None,
        np.ascontiguousarray(ends[::2]),
        np.ascontiguousarray(ends[1::2]),
    )


def measure(X: Any, state: State, scale: Scale, requests: tuple[Request, ...]) -> Sums:
    """Sum the columns that nodes ask for."""
    parts = [_core.measure_nodes(to_table(X), scale, state, request) for request in requests]
    return Sums(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def count_bins(
    X: Any, state: State, scale: Scale, hyperplanes: Hyperplanes, segments: Segments
) -> Sums:
    """Count the projections of nodes in bins."""
    return Sums(*_core.count_bins(to_table(X), scale, state, hyperplanes, segments))


def list_scores(
    X: Any, state: State, scale: Scale, hyperplanes: Hyperplanes, segments: Segments
) -> Listed:
    """List the projections of nodes that lie in segments."""
    return Listed(*_core.list_scores(to_table(X), scale, state, hyperplanes, segments))


def sum_below(
    X: Any, state: State, scale: Scale, hyperplanes: Hyperplanes, threshold: Floats
) -> Sums:
    """Count what lies below thresholds."""
    return Sums(*_core.sum_below(to_table(X), scale, state, hyperplanes, threshold))


def split(
    X: Any, state: State, scale: Scale, hyperplanes: Hyperplanes, updates: NodeUpdates
) -> State:
    """Divide the rows of nodes among their children."""
    return State(*_core.split_nodes(to_table(X), scale, state, hyperplanes, updates))


class TakenRows(NamedTuple):
    """The rows of some nodes that one partition holds, each once."""

    X: NDArray[Any]
    row: Positions  # of the nodes, in X: node after node, positive rows first
    weight: Floats | None
    n_positive: Ints  # of each node
    n_negative: Ints


def take(X: Any, state: State, chunks: tuple[Ints, ...]) -> tuple[TakenRows, ...]:
    """Take the rows of nodes out of a partition, for each chunk of nodes."""
    table = to_table(X)
    return tuple(_take_nodes(table, state, nodes) for nodes in chunks)


def _take_nodes(table: NDArray[Any], state: State, nodes: Ints) -> TakenRows:
    start, middle, end = state.start[nodes], state.middle[nodes], state.start[nodes + 1]
    parts = [slice(a, b) for a, b in zip(start, end, strict=True)]
    row = np.concatenate([state.row[part] for part in parts])
    weight = None if state.weight is None else np.concatenate([state.weight[p] for p in parts])
    is_taken = np.zeros(len(table), dtype=bool)
    is_taken[row] = True
    position = np.cumsum(is_taken, dtype=np.uint32) - np.uint32(1)
    return TakenRows(table[is_taken], position[row], weight, middle - start, end - middle)


class Branches(NamedTuple):
    """Nodes whose subtrees are grown apart from their trees."""

    key: NDArray[np.uint64]
    tree_key: NDArray[np.uint64]
    depth: Ints
    weight_sum: Floats
    beta: Floats


def finish(
    taken: list[TakenRows], branches: Branches, scale: Scale, plan: Plan
) -> dict[str, NDArray[Any]]:
    """Grow the subtrees of nodes whose rows have come together."""
    X = np.concatenate([each.X for each in taken])
    state = join_rows(taken)
    taken.clear()
    mean, std = scale
    is_scaled = np.any(mean != 0) or np.any(std != 1)
    X = np.ascontiguousarray(X)
    arrays = _core.grow_branches(
        X, scale if is_scaled else None, plan, state, branches, 1, make_watch()
    )
    complete(arrays, arrays["threshold_kind"] > 0, len(mean))
    return arrays


def make_watch() -> Callable[[], None] | None:
    """Return what raises once nobody waits for the task that runs here."""
    try:
        worker = get_worker()
    except ValueError:  # not on a worker
        return None
    key = worker.get_current_task()

    def watch() -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise CancelledError("the fit does not need this task any more")

    return watch


def join_rows(taken: list[TakenRows]) -> State:
    """Put the rows of taken together; each node gets its positive rows, then the negative ones."""
    shift = np.cumsum([0, *(len(each.X) for each in taken[:-1])])
    rows: list[list[Positions]] = []
    weights: list[list[Floats]] = []
    for each, first in zip(taken, shift, strict=True):
        cuts = np.cumsum(np.column_stack([each.n_positive, each.n_negative]).ravel())[:-1]
        rows.append(np.split(each.row + np.uint32(first), cuts))
        if each.weight is not None:
            weights.append(np.split(each.weight, cuts))
    sides = [np.concatenate(side) for side in zip(*rows, strict=True)]
    ends = np.cumsum([0, *map(len, sides)])
    weight = None
    if weights:
        weight = np.concatenate([part for side in zip(*weights, strict=True) for part in side])
    return State(
        np.concatenate(sides),
        weight,
        np.ascontiguousarray(ends[::2]),
        np.ascontiguousarray(ends[1::2]),
    )


class OutOfBagPartition(NamedTuple):
    """Rows of a partition, and which estimators did not draw them."""

    X: NDArray[Any]
    y_encoded: NDArray[np.int32]
    weight: Floats | None
    is_out_of_bag: NDArray[np.bool_]  # (n_estimators, n_rows)
    has_voters: bool  # whether any row of the partition was left undrawn

    def without_rows(self) -> OutOfBagPartition:
        """Return what the client may know."""
        return self._replace(X=self.X[:0])


def take_out_of_bag(
    X: Any, labels: Labels, plan: Plan, draws: Draws, step: int
) -> OutOfBagPartition:
    """Take the rows number 0, step, 2 * step, ... of the whole table."""
    taken = np.flatnonzero((labels.first + np.arange(len(labels.row))) % step == 0)
    is_out_of_bag = np.ones((len(draws.estimator), len(labels.row)), dtype=bool)
    for number in range(len(draws.estimator)):
        drawn, _ = draw_rows(labels, plan, draws, number)
        is_out_of_bag[number, drawn] = False
    return OutOfBagPartition(
        np.ascontiguousarray(to_table(X)[labels.row[taken]]),
        labels.y_encoded[taken],
        None if labels.weight is None else labels.weight[taken],
        is_out_of_bag[:, taken],
        bool(is_out_of_bag.any()),
    )


class VoteRequest(NamedTuple):
    """Whose votes are wanted on rows that they did not draw."""

    forest: Forest
    voting: Voting
    n_estimators: int  # the first ones
    strengths: tuple[float, ...] | None  # of shrinkage, side by side; None: as it is


def vote_out_of_bag(rows: OutOfBagPartition, request: VoteRequest) -> Votes:
    """Sum the votes of the first estimators on rows that they did not draw."""
    forest, voting, n_estimators, strengths = request
    if len(rows.X) == 0:
        each = () if strengths is None else (len(strengths),)
        nothing = np.zeros((*each, 0, voting.n_classes))
        return nothing, nothing, np.zeros((*each, 0))
    votes = np.zeros((len(rows.is_out_of_bag), 64 * -(-len(rows.X) // 64)), dtype=bool)
    votes[:n_estimators, : len(rows.X)] = rows.is_out_of_bag[:n_estimators]
    bits = np.packbits(votes, axis=1, bitorder="little").view("<u8")
    if strengths is None:
        return voting.vote(forest, rows.X, bits)
    return voting.vote_shrunk(forest, rows.X, strengths, bits)
