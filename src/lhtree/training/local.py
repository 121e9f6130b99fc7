"""The backend for rows in memory, on the native core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from lhtree import _core
from lhtree.arrays import Arrays, Floats, Ints, Scale
from lhtree.data import sparse
from lhtree.data.table import Table, Target, check_overflow, weigh_classes
from lhtree.model.building import finish_forest
from lhtree.model.forest import Forest, Votes
from lhtree.model.prediction import Voting
from lhtree.training.backend import Report
from lhtree.training.plan import Plan

MOST_AT_ONCE = 1_024  # rows per batch when all strengths vote; a multiple of 64 bits


class Local:
    """The backend for a fit with its rows in memory.

    Parameters
    ----------
    table : Table
        The rows.
    target : Target
        Their targets.
    names : sequence of str or None
        Names of the columns, for messages; None for positions.
    is_indicator : ndarray of bool, shape (n_columns,)
        Which columns are indicators of categories.
    n_threads : int
        Number of threads.
    """

    def __init__(
        self,
        table: Table,
        target: Target,
        *,
        names: Sequence[str] | None,
        is_indicator: NDArray[np.bool_],
        n_threads: int,
    ) -> None:
        self.table, self._target = table, target
        self._names, self._is_indicator = names, is_indicator
        self._n_threads = n_threads

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""
        return self.table.n_rows

    @property
    def n_columns(self) -> int:
        """Number of columns that the trees see."""
        return self.table.n_columns

    @property
    def weight_sum(self) -> float:
        """Weighted number of rows."""
        return self.table.weight_sum

    @property
    def weight_max(self) -> float:
        """Largest weight of a row."""
        return self.table.weight_max

    @property
    def classes(self) -> NDArray[Any]:
        """Labels of the classes, ascending."""
        return np.asarray(self._target.classes)

    def check_overflow(self, weight_sum: float) -> None:
        """Refuse columns whose sums of squares overflow at this total weight."""
        check_overflow(self.table.X, self._names, weight_sum)

    def compute_scale(self, *, standardize_indicators: bool) -> Scale:
        """Return the units of the columns; centring would fill sparse ones, so they are not."""
        X, weight = self.table.X, self.table.weight
        if issparse(X):
            return sparse.compute_scale(X, weight)
        mean, std = _core.compute_scale(X, weight)
        if not standardize_indicators:
            mean[self._is_indicator], std[self._is_indicator] = 0.0, 1.0
        return mean, std

    def weigh_classes(self, class_weight: Any) -> None:
        """Multiply the weight of each row by that of its class."""
        self.table, self._target = weigh_classes(self.table, self._target, class_weight)

    def grow(self, plan: Plan, scale: Scale | None, report: Report) -> Forest:
        """Grow the estimators of a plan, in raw units if there is no scale."""
        grown = grow_trees(
            self.table, self._target, plan, scale, n_threads=self._n_threads, report=report
        )
        n = self.n_columns
        return finish_forest(grown, (np.zeros(n), np.ones(n)) if scale is None else scale)

    def take_out_of_bag(
        self, plan: Plan, n_estimators: int, most_rows: int | None
    ) -> LocalOutOfBagRows:
        """Return at most `most_rows` evenly spread rows, and which estimators drew them."""
        step = 1 if most_rows is None else -(-self.n_rows // most_rows)
        bits, n_voters = _core.draw_out_of_bag(
            plan.seed, n_estimators, self.n_rows, plan.n_draws, plan.bootstrap, self._n_threads
        )
        has_voters = bool(n_voters.any())
        table, target = self.table, self._target
        if step > 1:
            position = np.arange(0, self.n_rows, step)
            table, target = table.take(position), target.take(position)
            bits, n_voters = take_bits(bits, self.n_rows, step), n_voters[::step]
        return LocalOutOfBagRows(table, target, bits, n_voters, has_voters, self._n_threads)


def grow_trees(
    table: Table,
    target: Target,
    plan: Plan,
    scale: Scale | None,
    *,
    n_threads: int = 1,
    report: Report | None = None,
) -> Arrays:
    """Grow all trees of a plan in one native call; `finish_forest` turns them into a forest."""
    X, y_encoded, weight = table.X, target.values, table.weight
    if isinstance(X, np.ndarray):
        return _core.grow_forest(X, scale, y_encoded, weight, plan, n_threads, report)
    if scale is not None:
        X = sparse.divide(X, scale[1])
    start, column = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    rows = start, column, X.data, X.shape[1]
    return _core.grow_sparse(*rows, y_encoded, weight, plan, n_threads, report)


@dataclass(frozen=True)
class LocalOutOfBagRows:
    """Rows in memory, with the estimators that did not draw them."""

    table: Table
    target: Target
    bits: NDArray[np.uint64]  # (n_estimators, words): row i is bit i % 64 of word i // 64
    n_voters: Ints  # number of estimators that did not draw each row
    has_voters: bool  # whether some estimator left any row of the whole table undrawn
    n_threads: int

    @property
    def y_encoded(self) -> NDArray[np.int32]:
        """Class of each row."""
        return self.target.values

    @property
    def counts(self) -> Floats:
        """How much each row counts."""
        return self.table.counts

    def count_voters(self, n_estimators: int | None = None) -> Ints:
        """Return how many of the first `n_estimators` did not draw each row; None: of all."""
        if n_estimators is None:
            return self.n_voters
        count = np.zeros(self.table.n_rows, dtype=np.int64)
        for word in self.bits[:n_estimators]:
            count += unpack_bits(word, self.table.n_rows)
        return count

    def vote(self, forest: Forest, voting: Voting) -> Votes:
        """Sum the votes of the estimators that did not draw a row."""
        return voting.vote(forest, self.table.X, self.bits, n_threads=self.n_threads)

    def vote_shrunk(
        self, forest: Forest, voting: Voting, strengths: Sequence[float], n_estimators: int | None
    ) -> Iterator[tuple[slice, Votes]]:
        """Yield rows and their votes by the first estimators, shrunk by each strength."""
        bits = self.bits.copy()
        bits[n_estimators or len(bits) :] = 0  # the others do not vote
        for begin in range(0, self.table.n_rows, MOST_AT_ONCE):
            rows = slice(begin, min(begin + MOST_AT_ONCE, self.table.n_rows))
            words = np.ascontiguousarray(bits[:, begin // 64 : (begin + MOST_AT_ONCE) // 64])
            X = self.table.X[rows]
            yield rows, voting.vote_shrunk(forest, X, strengths, words, n_threads=self.n_threads)


def unpack_bits(word: NDArray[np.uint64], n_rows: int) -> NDArray[np.uint8]:
    """Return one entry per row from packed bits."""
    octets = word.astype("<u8").view(np.uint8)
    return np.unpackbits(octets, bitorder="little", count=n_rows)


def take_bits(bits: NDArray[np.uint64], n_rows: int, step: int) -> NDArray[np.uint64]:
    """Return the packed bits of rows 0, step, 2 * step, ..."""
    n_kept = -(-n_rows // step)
    octets = np.zeros((len(bits), 8 * -(-n_kept // 64)), dtype=np.uint8)
    for estimator, word in enumerate(bits):
        kept = np.packbits(unpack_bits(word, n_rows)[::step], bitorder="little")
        octets[estimator, : len(kept)] = kept
    return octets.view("<u8").astype(np.uint64, copy=False)
