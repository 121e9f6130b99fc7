"""The steps of a fit of a forest: grow trees, look at rows that they did not draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Arrays, Floats, Ints
from lhtree.model.conformity import Conformity, Spread
from lhtree.model.ensemble import Ensemble
from lhtree.model.ensemble_parts import TREE_ARRAYS, join_trees
from lhtree.model.ensemble_splits import sum_gains
from lhtree.model.grid_columns import GridColumns
from lhtree.model.leaf_rows import LeafRows, average_leaves
from lhtree.training import shrinkage
from lhtree.training.boosting_rows import Rows
from lhtree.training.leaf_values import shrink_leaves
from lhtree.training.local import unpack_bits
from lhtree.training.plan import AveragedPlan, Draw
from lhtree.training.targets import TargetScale

MOST_ROWS = 5_000  # enough to choose the shrinkage
MOST_ERRORS = 2**16  # enough for the tails of an interval
PRIOR_TREES = 2  # as many as the usual variance of targets counts like
LEAST_SPREAD = 0.1  # of a row, in units of the errors of all rows


@dataclass(frozen=True)
class Averaging:
    """What the trees of a forest are grown from.

    Parameters
    ----------
    columns : GridColumns
        How the columns were encoded.
    rows : Rows
        The encoded rows; their scores are the start.
    X : array or sparse array
        The same rows as they were.
    y : ndarray of float64 or int32
        Their targets: numbers, or classes.
    unit : int
        What a row of weight one weighs.
    plan : AveragedPlan
        Estimators and trees.
    scale : TargetScale
        What integer scores mean.
    n_threads : int
        Number of threads.
    """

    columns: GridColumns
    rows: Rows
    X: Any
    y: NDArray[Any]
    unit: int
    plan: AveragedPlan
    scale: TargetScale
    n_threads: int

    @property
    def weight(self) -> Ints:
        """Integer weights of the rows."""
        weight = self.rows.weight
        return np.ones(len(self.y), dtype=np.int64) if weight is None else weight

    @property
    def has_out_of_bag(self) -> bool:
        """Whether an estimator may leave a row undrawn."""
        return self.plan.bootstrap or self.plan.n_draws < len(self.y)

    def count_estimators(self, forest: Ensemble) -> int:
        """Return the number of estimators of a forest."""
        return len(forest) // self.plan.n_trees

    def grow(self, first: int, last: int, report: Callable[[int], object] | None) -> Arrays:
        """Grow the estimators from `first` to before `last`."""
        plan = replace(self.plan, first_estimator=first, n_estimators=last - first)
        trees: Arrays = _core.grow_averaged(self.columns, self.rows, plan, self.n_threads, report)
        return trees

    def join(self, before: Ensemble | None, trees: Arrays) -> Ensemble:
        """Return the forest of earlier trees and new ones."""
        columns = self.columns.without_bins()
        start = np.zeros(len(columns.n_codes)) if before is None else before.importance
        importance = sum_gains(trees, start)
        if before is not None:
            trees = join_trees([vars(before), trees])
        return Ensemble(
            columns=columns,
            base=self.scale.base,
            power=self.scale.power,
            origin=self.scale.origin,
            importance=importance,
            n_averaged=(len(trees["tree_start"]) - 1) // self.plan.n_trees,
            **{name: trees[name] for name in TREE_ARRAYS},
        )

    def shrink(self, forest: Ensemble, strength: float) -> Ensemble:
        """Return the forest with its leaves pulled towards the nodes above them."""
        if strength == 0.0:
            return forest
        return replace(forest, value=shrink_leaves(forest, [strength], self.unit).T.copy())

    def draw_out_of_bag(self, n_estimators: int) -> NDArray[np.uint64]:
        """Return for each estimator the packed bits of the rows that it did not draw."""
        plan = self.plan
        bits, _ = _core.draw_out_of_bag(
            plan.seed, n_estimators, len(self.y), plan.n_draws, plan.bootstrap, self.n_threads
        )
        return bits

    def sample(self) -> Ints:
        """Return some of the rows, evenly spread: enough to judge a forest."""
        return np.arange(0, len(self.y), -(-len(self.y) // MOST_ROWS))

    def list_truth(self, position: Ints) -> Floats:
        """Return what the scores of some rows should be, less the start: a row per output."""
        if self.plan.n_classes == 0:
            return (self.rows.y[position] - self.scale.base).astype(np.float64)[np.newaxis]
        n_outputs = len(self.scale.base)
        positive = np.arange(n_outputs) + (self.plan.n_classes == 2)
        is_positive = self.y[position] == positive[:, np.newaxis]
        truth: Floats = np.ldexp(is_positive.astype(np.float64), self.scale.power)
        return truth


class OutOfBagSums(NamedTuple):
    """Sums of the leaves of trees that did not draw a row, shrunken by several strengths."""

    total: Floats  # [n_strengths, n_outputs, n_rows]
    n_voters: Ints  # estimators that did not draw each row

    def average(self, kept: NDArray[np.bool_]) -> Floats:
        """Return the means of some rows."""
        means: Floats = self.total[:, :, kept] / self.n_voters[kept]
        return means


@dataclass(frozen=True)
class Judged:
    """Some training rows, and what trees that did not draw them say about them."""

    averaging: Averaging
    position: Ints  # of the rows
    strengths: Sequence[float]  # of shrinkage
    half: OutOfBagSums  # of the first half of the estimators
    every: OutOfBagSums

    @classmethod
    def of(cls, averaging: Averaging, forest: Ensemble, strengths: Sequence[float]) -> Judged:
        """Send some of the rows down all trees."""
        position, plan = averaging.sample(), averaging.plan
        t = averaging.count_estimators(forest)
        values = shrink_leaves(forest, strengths, averaging.unit)
        total = np.zeros((len(strengths), forest.n_outputs, len(position)))
        n_voters = np.zeros(len(position), dtype=np.int64)
        half = OutOfBagSums(total, n_voters)
        bits = averaging.draw_out_of_bag(t)
        is_out = np.zeros(len(position), dtype=bool)
        leaves = forest.iterate_leaves(averaging.X[position], n_threads=averaging.n_threads)
        for i, leaf in enumerate(leaves):
            estimator, tree = divmod(i, plan.n_trees)
            if tree == 0:
                if estimator == t // 2:
                    half = OutOfBagSums(total.copy(), n_voters.copy())
                is_out = unpack_bits(bits[estimator], len(averaging.y))[position] > 0
                n_voters += is_out
            total[:, tree, is_out] += values[:, leaf[is_out]]
        return cls(averaging, position, strengths, half, OutOfBagSums(total, n_voters))

    @property
    def counts(self) -> Floats:
        """How much each row counts."""
        counts: Floats = self.averaging.weight[self.position] / self.averaging.unit
        return counts

    def choose(self, n_estimators: int) -> int:
        """Return which strength has the lowest error, extrapolated to all estimators' votes."""
        has_voters = self.half.n_voters > 0
        true = self.averaging.list_truth(self.position[has_voters])
        voters = self.half.n_voters[has_voters], self.every.n_voters[has_voters]
        few, every = (
            np.square(each.average(has_voters) - true).sum(axis=1)
            for each in (self.half, self.every)
        )
        errors = [
            shrinkage.extrapolate_error(pair, voters, n_estimators, self.counts[has_voters])
            for pair in zip(few, every, strict=True)
        ]
        return int(np.argmin(errors))


class OutOfBagNumbers(NamedTuple):
    """What the trees that did not draw a row say about it."""

    n_voters: Ints  # how many they are
    prediction: Floats  # NaN where there is none
    variance: Floats  # of their distributions together


class LeavesSeen(NamedTuple):
    """Which rows the leaves have, and what trees that did not draw a row say about it."""

    leaf_rows: LeafRows
    out_of_bag: OutOfBagNumbers
    half: OutOfBagNumbers  # of the first half of the trees


def look_at_leaves(averaging: Averaging, forest: Ensemble) -> LeavesSeen:
    """Walk all rows down all trees once."""
    target, rank = np.unique(averaging.y, return_inverse=True)
    centered = target - target[len(target) // 2]
    sums = half = _Sums.make(len(averaging.y))
    leaves = []
    plan, ends = averaging.plan, forest.starts.leaf
    draw = Draw(len(averaging.y), plan.n_draws, plan.bootstrap)
    draws = count_draws(plan.seed, len(forest), draw)
    trees = forest.iterate_leaves(averaging.X, n_threads=averaging.n_threads)
    for i, (leaf, times) in enumerate(zip(trees, draws, strict=True)):
        if i == len(forest) // 2:
            half = sums.copy()
        first, end = int(ends[i]), int(ends[i + 1])
        own = _list_entries(leaf - first, rank, times * averaging.weight, len(target))
        leaves.append(own)
        value, moments = forest.value[first:end, 0], average_leaves(centered, **own)
        sums.add(times == 0, leaf - first, np.column_stack([value, moments]))
    found = (each.finish(averaging.scale) for each in (sums, half))
    return LeavesSeen(LeafRows.join(target, leaves), *found)


class _Sums(NamedTuple):
    """Sums over the trees that did not draw a row."""

    n_voters: Ints
    total: Floats  # of values, means and mean squares, one row each

    @classmethod
    def make(cls, n_rows: int) -> _Sums:
        return cls(np.zeros(n_rows, dtype=np.int64), np.zeros((3, n_rows)))

    def copy(self) -> _Sums:
        return _Sums(self.n_voters.copy(), self.total.copy())

    def add(self, is_out: NDArray[np.bool_], leaf: Ints, of_leaves: Floats) -> None:
        """Add what the leaves of a tree say of rows that it did not draw."""
        self.n_voters[is_out] += 1
        self.total[:, is_out] += of_leaves[leaf[is_out]].T

    def finish(self, scale: TargetScale) -> OutOfBagNumbers:
        count = np.where(self.n_voters > 0, self.n_voters, np.nan)
        value, mean, square = self.total / count
        prediction = np.ldexp(value + float(scale.base[0]) + scale.origin, -scale.power)
        return OutOfBagNumbers(self.n_voters, prediction, np.maximum(square - mean * mean, 0.0))


def count_draws(seed: int, n_estimators: int, draw: Draw) -> Iterator[Ints]:
    """Yield how often each estimator draws each row."""
    n, n_draws = draw.n_rows, draw.n_draws
    if draw.bootstrap:
        for i in range(n_estimators):
            times = _core.draw_partition(seed, i, 0, n, n, n_draws, True, 0, 0)
            yield times.astype(np.int64)
        return
    for word in _core.draw_out_of_bag(seed, n_estimators, n, n_draws, False, 1)[0]:
        yield 1 - unpack_bits(word, n).astype(np.int64)


def list_draws(seed: int, n_estimators: int, draw: Draw) -> list[Ints]:
    """Return the rows that each estimator draws, ascending."""
    row = np.arange(draw.n_rows)
    return [np.repeat(row, times) for times in count_draws(seed, n_estimators, draw)]


def _list_entries(leaf: Ints, rank: Ints, weight: Ints, n_targets: int) -> Arrays:
    """Return the distinct targets of the rows of positive weight in each leaf of a tree."""
    row = np.flatnonzero(weight)
    key = leaf[row] * n_targets + rank[row]
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    entry = key[first]
    narrow = np.uint16 if n_targets <= 2**16 else np.int32
    return {
        "size": np.bincount(entry // n_targets),
        "rank": (entry % n_targets).astype(narrow),
        "weight": np.add.reduceat(weight[row][order], first),
    }


def measure_conformity(
    averaging: Averaging, seen: LeavesSeen, n_estimators: int
) -> Conformity | None:
    """Return the errors of out-of-bag predictions, each in units of its spread.

    None if no estimator left a row undrawn.
    """
    found, half = seen.out_of_bag, seen.half
    position = _choose_measured(found.n_voters, half.n_voters)
    if not len(position):
        return None
    if not half.n_voters[position].all():  # too few trees for halves
        half = found
    weight = averaging.weight[position] / averaging.unit
    few, every = (float(np.mean(1 / each.n_voters[position])) for each in (half, found))
    square = np.square(averaging.y[position] - found.prediction[position])
    spread = Spread(
        usual=float(np.average(found.variance[position], weights=weight)),
        # If all errors are 0, any number does.
        least=LEAST_SPREAD**2 * float(np.average(square, weights=weight)) or 1.0,
        share=PRIOR_TREES / (PRIOR_TREES + 1 / every),
    )
    ratio, half_ratio = (
        (averaging.y[position] - each.prediction[position])
        / spread.compute(each.variance[position])
        for each in (found, half)
    )
    step = _extrapolate(few, every, 1 / n_estimators)
    return Conformity(ratio, half_ratio, weight, step, spread)


def _extrapolate(few: float, every: float, wanted: float) -> float:
    """Return how far to go on from quantiles of few voters to those of all, in such steps.

    The numbers are one divided by how many trees there are. A single tree says nothing of
    how quantiles move, so few trees count less.
    """
    if few <= every or every <= wanted:
        return 0.0
    return (every - wanted) / (few - every) * (1 - few)


def _choose_measured(n_voters: Ints, n_half: Ints) -> Ints:
    """Return rows, at even steps, of those that at least half as many as usual voted on."""
    is_measured = n_voters >= max(1, np.median(n_voters) / 2)
    if (is_measured & (n_half > 0)).any():
        is_measured &= n_half > 0
    position = np.flatnonzero(is_measured)
    return position[:: max(1, -(-len(position) // MOST_ERRORS))]
