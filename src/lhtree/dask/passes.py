"""What one task does with one partition: pure functions that workers run."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from distributed import CancelledError, get_worker
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Floats, Ints
from lhtree.dask.partitions import to_table
from lhtree.dask.runs import Listed, Sums
from lhtree.data.frames import check_dates, check_present
from lhtree.model.forest import Forest, Plan
from lhtree.model.packing import complete

Positions = NDArray[np.uint32]
Scale = tuple[Floats, Floats]


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
    code: NDArray[np.int32]
    weight: Floats | None
    first: int  # number of the first of them in the whole table


class State(NamedTuple):
    """Which rows of a partition are in which node: node after node, targets first."""

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


class Forms(NamedTuple):
    """Linear forms over the rows of nodes."""

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


class Fates(NamedTuple):
    """What becomes of the nodes of a round."""

    threshold: Floats  # of each form
    stays: NDArray[np.uint8]
    keeps: NDArray[np.uint8]  # left and right side of each node


class Draws(NamedTuple):
    """The members of a batch and the limits of their draws."""

    member: tuple[int, ...]
    limit: tuple[tuple[int, int], ...]
    n_rows: int


def survey(X: Any, y: Any, weight: Any) -> Survey:
    """Look at a partition for the first time."""
    check_present("y", y)
    check_present("sample_weight", weight)
    check_dates("sample_weight", weight)
    table, label = to_table(X), np.asarray(y)
    has_missing = _has_missing(label)
    names, code = (label[:0], np.zeros(0, int)) if has_missing else _find_labels(label)
    values = np.ones(len(table)) if weight is None else np.asarray(weight, dtype=np.float64)
    is_bad = ~(np.isfinite(values) & (values >= 0))
    fits = len(values) == len(table) == len(code)
    kept = np.flatnonzero(values > 0) if fits and not is_bad.any() else np.zeros(0, int)
    n, m = len(names), table.shape[1]
    smallest, largest = _find_ends_by_label(code[kept], values[kept], n)
    weights = np.bincount(code[kept], values[kept], minlength=n).astype(np.float64)
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
        low=_find_end(np.min, table, np.inf),
        high=_find_end(np.max, table, -np.inf),
        mean=mean,
        labels=names,
        has_missing_label=has_missing,
        counts=np.bincount(code[kept], minlength=n),
        weight=weights,
        smallest=smallest,
        largest=largest,
        is_integer=bool(np.all(values == np.floor(values))),
        n_zero=int(np.count_nonzero(values == 0)),
        bad_weight=float(values[is_bad][0]) if is_bad.any() else None,
    )


def _find_ends_by_label(code: Ints, values: Floats, n: int) -> tuple[Floats, Floats]:
    smallest, largest = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(smallest, code, values)
    np.maximum.at(largest, code, values)
    return smallest, largest


def _find_end(find: Any, table: NDArray[Any], nothing: float) -> Floats:
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


def _find_labels(label: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    names, code = np.unique(label, return_inverse=True)
    return names, code.ravel()


def label_rows(
    y: Any, weight: Any, first: int, classes: NDArray[Any], unit: float, factor: Floats | None
) -> Labels:
    """Code the classes of a partition's rows and weigh them; drop those that do not count."""
    label = np.asarray(y)
    place = np.minimum(np.searchsorted(classes, label), len(classes) - 1)
    code = place.astype(np.int32)
    values = None if weight is None else np.asarray(weight, dtype=np.float64) / unit
    if factor is not None:
        values = factor[code] * (1.0 if values is None else values)
    row = np.arange(len(label), dtype=np.uint32)
    if values is None:
        return Labels(row, code, None, first)
    kept = (values > 0) & (classes[code] == label)
    return Labels(row[kept], code[kept], values[kept], first)


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


def find_limits(plan: Plan, members: tuple[int, ...], n_rows: int) -> list[tuple[int, int]]:
    """Find which hashes are small enough for members; that takes no row, only their number."""
    return [_core.find_draw_limit(plan.seed, i, n_rows, plan.n_draws) for i in members]


def draw_rows(
    labels: Labels, plan: Plan, draws: Draws, number: int
) -> tuple[NDArray[np.intp], Floats | None]:
    """Return which of the rows that count a member of the batch draws, and their weights."""
    hash_limit, row_limit = draws.limit[number]
    times = _core.draw_part(
        plan.seed,
        draws.member[number],
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


def count_members(labels: Labels, plan: Plan, draws: Draws) -> Sums:
    """For each member and class: the weight of the rows drawn, and their number."""
    sums = np.zeros((len(draws.member), 2, plan.n_classes))
    for number in range(len(draws.member)):
        drawn, weight = draw_rows(labels, plan, draws, number)
        code = labels.code[drawn]
        sums[number, 1] = np.bincount(code, minlength=plan.n_classes)
        sums[number, 0] = (
            sums[number, 1]
            if weight is None
            else np.bincount(code, weight, minlength=plan.n_classes)
        )
    return Sums(sums.ravel(), np.empty(0))


def begin(
    labels: Labels,
    plan: Plan,
    draws: Draws,
    roots: tuple[tuple[int, int], ...],
    factor: Floats | None,
) -> State:
    """Put the rows of a partition into roots, given by member of the batch and target."""
    rows: list[Positions] = []
    weights: list[Floats] = []
    sizes: list[int] = []
    last, drawn, weight = -1, np.zeros(0, np.intp), None
    for number, target in roots:
        if number != last:
            last = number
            drawn, weight = draw_rows(labels, plan, draws, number)
            if factor is not None:
                balance = factor[number][labels.code[drawn]]
                weight = balance if weight is None else weight * balance
        is_target = labels.code[drawn] == target
        for side in (is_target, ~is_target):
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


def count_bins(X: Any, state: State, scale: Scale, forms: Forms, segments: Segments) -> Sums:
    """Count the projections of nodes in bins."""
    return Sums(*_core.count_bins(to_table(X), scale, state, forms, segments))


def list_scores(X: Any, state: State, scale: Scale, forms: Forms, segments: Segments) -> Listed:
    """List the projections of nodes that lie in segments."""
    return Listed(*_core.list_scores(to_table(X), scale, state, forms, segments))


def sum_below(X: Any, state: State, scale: Scale, forms: Forms, threshold: Floats) -> Sums:
    """Count what lies below thresholds."""
    return Sums(*_core.sum_below(to_table(X), scale, state, forms, threshold))


def split(X: Any, state: State, scale: Scale, forms: Forms, fates: Fates) -> State:
    """Divide the rows of nodes among their children."""
    return State(*_core.split_nodes(to_table(X), scale, state, forms, fates))


class Piece(NamedTuple):
    """The rows of some nodes that one partition holds, each once."""

    X: NDArray[Any]
    row: Positions  # of the nodes, in X: node after node, targets first
    weight: Floats | None
    n_targets: Ints  # of each node
    n_rest: Ints


def take(X: Any, state: State, bundles: tuple[Ints, ...]) -> tuple[Piece, ...]:
    """Take the rows of nodes out of a partition, a piece for each bundle of nodes."""
    table = to_table(X)
    return tuple(_take_piece(table, state, nodes) for nodes in bundles)


def _take_piece(table: NDArray[Any], state: State, nodes: Ints) -> Piece:
    start, middle, end = state.start[nodes], state.middle[nodes], state.start[nodes + 1]
    parts = [slice(a, b) for a, b in zip(start, end, strict=True)]
    row = np.concatenate([state.row[part] for part in parts])
    weight = None if state.weight is None else np.concatenate([state.weight[p] for p in parts])
    is_taken = np.zeros(len(table), dtype=bool)
    is_taken[row] = True
    place = np.cumsum(is_taken, dtype=np.uint32) - np.uint32(1)
    return Piece(table[is_taken], place[row], weight, middle - start, end - middle)


class Branches(NamedTuple):
    """Nodes whose subtrees are grown apart from their trees."""

    key: NDArray[np.uint64]
    tree_key: NDArray[np.uint64]
    depth: Ints
    weight_sum: Floats
    beta: Floats


def finish(
    pieces: list[Piece], branches: Branches, scale: Scale, plan: Plan
) -> dict[str, NDArray[Any]]:
    """Grow the subtrees of nodes whose rows have come together."""
    X = np.concatenate([piece.X for piece in pieces])
    state = join_pieces(pieces)
    pieces.clear()
    mean, deviation = scale
    if np.any(mean != 0) or np.any(deviation != 1):
        Z: NDArray[Any] = _core.standardize(
            np.ascontiguousarray(X), mean, deviation, plan.by_columns, 1
        )
    else:
        Z = np.ascontiguousarray(X.T if plan.by_columns else X)
    arrays = _core.grow_branches(Z, plan, state, branches, 1, make_watch())
    complete(arrays, arrays["rule"] > 0, len(mean))
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


def join_pieces(pieces: list[Piece]) -> State:
    """Put the rows of pieces together; each node gets its targets, then its rest."""
    shift = np.cumsum([0, *(len(piece.X) for piece in pieces[:-1])])
    rows: list[list[Positions]] = []
    weights: list[list[Floats]] = []
    for piece, first in zip(pieces, shift, strict=True):
        cuts = np.cumsum(np.column_stack([piece.n_targets, piece.n_rest]).ravel())[:-1]
        rows.append(np.split(piece.row + np.uint32(first), cuts))
        if piece.weight is not None:
            weights.append(np.split(piece.weight, cuts))
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


class Judges(NamedTuple):
    """Rows whose out-of-bag votes decide."""

    X: NDArray[Any]
    code: NDArray[np.int32]
    weight: Floats | None
    is_left_out: NDArray[np.bool_]  # (n_members, n_rows)

    def forget_rows(self) -> Judges:
        """Return what the client may know."""
        return self._replace(X=self.X[:0])


def pick_judges(X: Any, labels: Labels, plan: Plan, draws: Draws, step: int) -> Judges:
    """Take every so manieth row of the table."""
    judge = np.flatnonzero((labels.first + np.arange(len(labels.row))) % step == 0)
    is_left_out = np.ones((len(draws.member), len(labels.row)), dtype=bool)
    for number in range(len(draws.member)):
        drawn, _ = draw_rows(labels, plan, draws, number)
        is_left_out[number, drawn] = False
    return Judges(
        np.ascontiguousarray(to_table(X)[labels.row[judge]]),
        labels.code[judge],
        None if labels.weight is None else labels.weight[judge],
        is_left_out[:, judge],
    )


class VoteQuestion(NamedTuple):
    """What is asked of rows that some members did not see."""

    forest: Forest
    n_classes: int
    by_margin: bool
    n_members: int  # the first ones, that are asked
    strengths: tuple[float, ...] | None  # of shrinkage, asked side by side; None: as it is


def vote_left_out(judges: Judges, question: VoteQuestion) -> tuple[Floats, Floats, Floats]:
    """Sum what the first members say of rows that they did not see."""
    forest, n_classes, by_margin, n_members, strengths = question
    if len(judges.X) == 0:
        each = () if strengths is None else (len(strengths),)
        nothing = np.zeros((*each, 0, n_classes))
        return nothing, nothing, np.zeros((*each, 0))
    is_asked = np.zeros((len(judges.is_left_out), 64 * -(-len(judges.X) // 64)), dtype=bool)
    is_asked[:n_members, : len(judges.X)] = judges.is_left_out[:n_members]
    ask = forest.vote if strengths is None else partial(forest.vote_shrunk, strengths=strengths)
    return ask(
        judges.X,
        n_classes=n_classes,
        by_margin=by_margin,
        left_out=np.packbits(is_asked, axis=1, bitorder="little").view("<u8"),
        n_trees_per_member=len(forest) // len(is_asked),
    )
