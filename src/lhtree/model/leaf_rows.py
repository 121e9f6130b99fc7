"""The training targets in each leaf of a forest of numbers: distributions, not only means.

For a row, all trees together give a weighted distribution of training targets: each tree
weighs alike, and within the leaf that the row reaches the targets weigh as in training. Its
quantiles are those of a quantile regression forest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lhtree.arrays import Arrays, Floats, Ints
from lhtree.model.packing import add_up, narrow

PAIRS_AT_ONCE = 2**22  # of a row and a target
ROUNDING = 1e-9  # of sums of weights that should be equal


@dataclass(frozen=True, eq=False)
class LeafRows:
    """Which training targets are in each leaf, one leaf after another.

    Parameters
    ----------
    target : ndarray of float64, shape (n_targets,)
        Distinct targets, ascending.
    size : ndarray of integers, shape (n_leaves,)
        How many distinct targets each leaf has.
    rank : ndarray of integers, shape (n_entries,)
        Their positions in `target`, ascending within a leaf.
    weight : ndarray of integers, shape (n_entries,) or (0,)
        What the rows of each weigh; empty if that is 1 for all.
    """

    target: Floats
    size: NDArray[Any]
    rank: NDArray[Any]
    weight: NDArray[Any]

    def __post_init__(self) -> None:
        for is_valid, message in self._list_checks():
            if not is_valid:
                raise ValueError(f"This is not a valid list of the rows in leaves: {message}.")
        for name in ("size", "rank", "weight"):
            array = getattr(self, name)
            if array.dtype != np.uint8:
                object.__setattr__(self, name, narrow(array.astype(np.int64)))
        for field in fields(self):
            getattr(self, field.name).flags.writeable = False

    def _list_checks(self) -> Iterator[tuple[bool, str]]:
        target, size, rank, weight = self.target, self.size, self.rank, self.weight
        is_list = all(each.ndim == 1 for each in (target, size, rank, weight))
        yield is_list and target.dtype == np.float64, "an array is not a list"
        is_integer = all(each.dtype.kind in "iu" for each in (size, rank, weight))
        yield is_integer, "size, rank or weight are not integers"
        is_ascending = bool(np.all(target[1:] > target[:-1]))
        yield is_ascending and bool(np.isfinite(target).all()), "targets are not ascending"
        yield bool(np.all(size > 0)), "a leaf has no target"
        largest = int(size.max(initial=0))
        is_whole = largest <= len(rank) and int(size.sum(dtype=np.int64)) == len(rank)
        yield is_whole, "rank does not have one entry for each target of a leaf"
        is_inside = not len(rank) or (rank.min() >= 0 and int(rank.max()) < len(target))
        yield bool(is_inside), "a rank is not that of a target"
        yield len(weight) in (0, len(rank)), "weight does not have one entry for each rank"
        yield bool(np.all(weight > 0)), "a weight is not positive"

    def __getstate__(self) -> Arrays:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: Arrays) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @classmethod
    def join(cls, target: Floats, leaves: Sequence[Arrays]) -> LeafRows:
        """Return the rows of trees whose `size`, `rank` and `weight` are given one by one."""
        whole = {
            name: np.concatenate([each[name] for each in leaves])
            for name in ("size", "rank", "weight")
        }
        if np.all(whole["weight"] == 1):
            whole["weight"] = np.empty(0, dtype=np.uint8)
        return cls(target, **whole)

    @cached_property
    def moments(self) -> Floats:
        """Mean and mean square of each leaf's targets around `center`, two columns."""
        weight = self.weight if len(self.weight) else np.ones(len(self.rank), dtype=np.uint8)
        return average_leaves(self.target - self.center, self.size, self.rank, weight)

    @property
    def center(self) -> float:
        """A number in the middle of the targets."""
        return float(self.target[len(self.target) // 2])

    @cached_property
    def _matrix(self) -> csr_array:
        """Distribution of each leaf: leaves by targets."""
        start = add_up(self.size)
        weight = np.ones(len(self.rank)) if not len(self.weight) else self.weight.astype(float)
        weight /= np.repeat(np.add.reduceat(weight, start[:-1]), self.size)
        shape = len(self.size), len(self.target)
        return csr_array((weight, self.rank.astype(np.int32), start), shape=shape)

    def compute_variance(self, leaf: Ints) -> Floats:
        """Return the variance of the distribution of each row, by its leaf in each tree."""
        mean, square = self.moments[leaf].mean(axis=1).T
        variance: Floats = np.maximum(square - mean * mean, 0.0)
        return variance

    def compute_quantiles(self, leaf: Ints, levels: Floats) -> Floats:
        """Return quantiles of the distribution of each row, by its leaf in each tree.

        A quantile is the smallest target up to which the weights are at least the level.

        Parameters
        ----------
        leaf : ndarray of int64, shape (n_rows, n_trees)
            Positions of the leaves that the rows reach.
        levels : ndarray of float64, shape (n_levels,)
            Levels from 0 to 1.
        """
        quantile = np.empty((len(leaf), len(levels)))
        n_pairs = self.size.astype(np.int64)[leaf].sum(axis=1).max(initial=1)
        n_at_once = max(1, PAIRS_AT_ONCE // int(min(n_pairs, len(self.target))))
        for first in range(0, len(leaf), n_at_once):
            rows = slice(first, first + n_at_once)
            quantile[rows] = self._compute_block(leaf[rows], levels)
        return quantile

    def _compute_block(self, leaf: Ints, levels: Floats) -> Floats:
        n_rows, n_trees = leaf.shape
        start = np.arange(n_rows + 1, dtype=np.int64) * n_trees
        share = np.full(leaf.size, 1.0 / n_trees)
        chosen = csr_array((share, leaf.ravel(), start), shape=(n_rows, len(self.size)))
        weights = chosen @ self._matrix
        weights.sort_indices()
        first, last = weights.indptr[:-1], weights.indptr[1:] - 1
        up_to = np.cumsum(weights.data)
        before = up_to[first] - weights.data[first]
        size = np.diff(weights.indptr)
        # Row i has the numbers from i to i + 1: all rows are searched at once.
        row = np.arange(n_rows)
        scaled = (up_to - np.repeat(before, size)) / np.repeat(up_to[last] - before, size)
        scaled += np.repeat(row, size)
        place = np.searchsorted(scaled, row[:, np.newaxis] + levels - ROUNDING)
        place = np.clip(place, first[:, np.newaxis], last[:, np.newaxis])
        quantile: Floats = self.target[weights.indices[place]]
        return quantile


def average_leaves(
    value: Floats, size: NDArray[Any], rank: NDArray[Any], weight: NDArray[Any]
) -> Floats:
    """Return the weighted mean and mean square of the values in each leaf, two columns."""
    first = add_up(size)[:-1]
    own, of_entry = value[rank], weight.astype(np.float64)
    total = np.add.reduceat(of_entry, first)
    sums = [np.add.reduceat(of_entry * each, first) for each in (own, own * own)]
    return np.stack(sums, axis=1) / total[:, np.newaxis]
