"""Boosted trees, and those of forests of numbers, as flat integer arrays.

An :class:`Ensemble` holds what the exact engine grew: splits by single columns on raw values,
hyperplanes and leaves as integers. A fit fills the arrays, everything else reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Arrays, Floats, Ints
from lhtree.data.sparse import lies_by_rows, split_blocks
from lhtree.model import ensemble_packing
from lhtree.model.ensemble_parts import TreeStarts, cut_trees
from lhtree.model.ensemble_splits import (
    HYPERPLANE,
    CategorySplit,
    HyperplaneSplit,
    NodeIndex,
    NumberSplit,
    average_leaves,
    describe_split,
)
from lhtree.model.ensemble_validation import check_ensemble
from lhtree.model.grid_columns import GridColumns
from lhtree.model.tree import compute_depth, compute_parents

SCALARS = ("power", "origin", "n_averaged")
STAGED_LEAVES = 2**21  # leaves that a walk down the trees one by one lists at once


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees as flat arrays: the nodes of one tree after another.

    The integer score of a row is ``base * n_averaged + sum of the leaves' values``, its raw
    score ``(integer score / n_averaged + origin) * 2**-power``: boosted trees add up, those of
    a forest are averaged. A tree adds to all scores; where leaves have a single value and there
    are several scores, the trees take turns: tree i adds to score i modulo their number. Splits
    of each kind have arrays of their own, in the order of the nodes: by a column of numbers
    (``x < threshold`` goes left), by a column of categories (codes whose bit is set go left), by
    a hyperplane (``sum(coefficient * z) < cut`` goes left, z on the grids of the columns).

    Parameters
    ----------
    columns : GridColumns
        The grids of the columns.
    base : ndarray of int64, shape (n_outputs,)
        Scores before the first tree.
    power : int
        A score has steps of ``2**-power``.
    origin : float
        Integer that is added to a score.
    tree_start : ndarray of int64, shape (n_trees + 1,)
        First node of each tree. The nodes of a tree are numbered breadth-first.
    left : ndarray of int32, shape (n_nodes,)
        Left child, counted from the tree's root; the right child is ``left + 1``; -1 marks a
        leaf.
    column : ndarray of int32, shape (n_nodes,)
        Column of a split by a single column, else -1.
    missing_left : ndarray of uint8, shape (n_nodes,)
        Whether missing values go left, in splits by a column of numbers.
    value : ndarray of int32, shape (n_leaves, n_outputs) or (n_leaves, 1)
        What each leaf adds to each score, or to that of its tree, in the order of the nodes.
    weight : ndarray of int64, shape (n_nodes,)
        Weight of the training rows in the node.
    threshold : ndarray of float64
        Thresholds of splits by columns of numbers.
    codes : ndarray of uint64, shape (n_category_splits, 4)
        Bits of the categories that go left; the one after the last stands for missing ones.
    term_start : ndarray of int64, shape (n_hyperplanes + 1,)
        First term of each hyperplane.
    feature : ndarray of int32, shape (n_terms,)
        Columns of the terms.
    coefficient : ndarray of int16, shape (n_terms,)
        Their integer weights.
    fill : ndarray of int32, shape (n_terms,)
        What a missing value counts as.
    cut : ndarray of int64, shape (n_hyperplanes,)
        Thresholds of the hyperplanes.
    importance : ndarray of float64, shape (n_columns,)
        By how much the splits of each column lowered the loss.
    n_averaged : int
        How many trees a score is the mean of: the estimators of a forest, 1 of boosted trees.
    """

    columns: GridColumns
    base: Ints
    power: int
    origin: float
    tree_start: Ints
    left: NDArray[np.int32]
    column: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    value: NDArray[np.int32]
    weight: Ints
    threshold: Floats
    codes: NDArray[np.uint64]
    term_start: Ints
    feature: NDArray[np.int32]
    coefficient: NDArray[np.int16]
    fill: NDArray[np.int32]
    cut: Ints
    importance: Floats
    n_averaged: int = 1

    def __post_init__(self) -> None:
        prepared = _core.prepare_ensemble(self, self.columns)  # refuses what it could not walk
        check_ensemble(self)
        object.__setattr__(self, "_prepared", prepared)
        for array in (*vars(self).values(), *vars(self.columns).values(), *prepared):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        return {**ensemble_packing.pack(self), **{name: getattr(self, name) for name in SCALARS}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        trees, columns = ensemble_packing.unpack(state)
        scalars = {name: state[name] for name in SCALARS}
        self.__dict__.update(trees, columns=GridColumns(**columns), **scalars)
        self.__post_init__()

    @classmethod
    def from_packed(
        cls, packed: Arrays, power: int, origin: float, n_averaged: int = 1
    ) -> Ensemble:
        """Return the ensemble of which `ensemble_packing.pack` gave the arrays."""
        trees, columns = ensemble_packing.unpack(packed)
        grids = GridColumns(**columns)
        return cls(grids, power=power, origin=origin, n_averaged=n_averaged, **trees)

    def __len__(self) -> int:
        return len(self.tree_start) - 1

    def __getitem__(self, number: int) -> BoostedTree:
        return BoostedTree(self, range(len(self))[index(number)])

    def __iter__(self) -> Iterator[BoostedTree]:
        return (BoostedTree(self, number) for number in range(len(self)))

    @property
    def n_features(self) -> int:
        """Number of columns that the trees expect."""
        return len(self.columns.n_codes)

    @property
    def n_outputs(self) -> int:
        """Number of scores per row."""
        return len(self.base)

    @property
    def n_turns(self) -> int:
        """After how many trees the next one adds to the same score again."""
        return self.n_outputs // int(self.value.shape[1])

    def sum_values(
        self, X: Any, out_of_bag: NDArray[np.uint64] | None = None, *, n_threads: int = 1
    ) -> Ints:
        """Return the scores of rows as integers, without the base: one column per output.

        Bit ``i % 64`` of ``out_of_bag[estimator, i // 64]`` says whether an estimator takes part
        in the score of row i; None: all do.
        """
        if lies_by_rows(X):
            prepared = self._prepared  # type: ignore[attr-defined]
            return _core.sum_trees(X, self, self.columns, prepared, out_of_bag, n_threads)
        blocks = []
        for rows, part in split_blocks(X):  # which begin at multiples of 64
            bits = None
            if out_of_bag is not None:
                bits = np.ascontiguousarray(out_of_bag[:, rows.start // 64 : -(-rows.stop // 64)])
            blocks.append(self.sum_values(part, bits, n_threads=n_threads))
        return np.concatenate(blocks)

    def score(self, X: Any, *, n_threads: int = 1) -> Floats:
        """Return the raw scores of rows, one column per output."""
        return self.to_raw(self.sum_values(X, n_threads=n_threads) + self.start)

    @property
    def start(self) -> Ints:
        """Integer scores before the first tree, one per output."""
        return self.base * self.n_averaged

    def take(self, first: int, last: int) -> Ensemble:
        """Return the trees from `first` to before `last`, without their importances.

        Where trees take turns, they must be those of whole estimators.
        """
        trees = cut_trees(vars(self), self.starts, first, last)
        return Ensemble(
            columns=self.columns,
            base=self.base,
            power=self.power,
            origin=self.origin,
            importance=np.zeros(self.n_features),
            n_averaged=1 if self.n_averaged == 1 else max(1, (last - first) // self.n_turns),
            **trees,
        )

    def stage_scores(self, X: Any, *, n_threads: int = 1) -> Iterator[Floats]:
        """Yield the raw scores of rows after each boosted tree; each tree is walked once."""
        score = np.tile(self.base, (X.shape[0], 1))
        for leaf in self.iterate_leaves(X, n_threads=n_threads):
            score += self.value[leaf]
            yield self.to_raw(score)

    def iterate_leaves(self, X: Any, *, n_threads: int = 1) -> Iterator[Ints]:
        """Yield tree after tree the position in `value` of the leaf that each row reaches."""
        n_at_once = max(1, min(len(self), STAGED_LEAVES // max(1, X.shape[0])))
        n_at_once += -n_at_once % self.n_turns
        for first in range(0, len(self), n_at_once):
            part = self.take(first, min(first + n_at_once, len(self)))
            leaf = part.apply(X, n_threads=n_threads) + part.tree_start[:-1]
            yield from part.index.position[leaf].T + self.starts.leaf[first]

    def locate_leaves(self, X: Any, *, n_threads: int = 1) -> Ints:
        """Return the same of all trees at once, one column per tree."""
        leaf = self.apply(X, n_threads=n_threads) + self.tree_start[:-1]
        position: Ints = self.index.position[leaf]
        return position

    def to_raw(self, score: Ints) -> Floats:
        """Return integer scores as real numbers."""
        return np.ldexp(self._average(score) + self.origin, -self.power)

    def to_change(self, change: Ints) -> Floats:
        """Return differences of integer scores as those of raw scores."""
        return np.ldexp(self._average(change), -self.power)

    def _average(self, total: Ints) -> Floats:
        mean: Floats = total.astype(np.float64) / self.n_averaged
        return mean

    def divide(self, X: NDArray[Any], *, n_threads: int = 1) -> Ints:
        """Return what each column adds to the scores of rows, as integers.

        :func:`lhtree.explain.explain_rows` has the definition. With the mean values of the
        roots (`root_value`) and the start they add up to the scores exactly.

        Returns
        -------
        ndarray of int64, shape (n_rows, n_outputs, n_columns)
            `to_change` makes real numbers of them.
        """
        prepared = self._prepared  # type: ignore[attr-defined]
        return _core.divide_scores(X, self, self.columns, prepared, self.node_value, n_threads)

    @property
    def root_value(self) -> Ints:
        """Sum of the mean values of all trees, as integers, one per output."""
        of_roots = self.node_value[self.tree_start[:-1]]
        total: Ints = of_roots.reshape(-1, self.n_outputs).sum(axis=0)
        return total

    def apply(self, X: Any, *, n_threads: int = 1) -> Ints:
        """Return the leaf that each row reaches in each tree."""
        if not lies_by_rows(X):
            return np.concatenate(
                [self.apply(part, n_threads=n_threads) for _, part in split_blocks(X)]
            )
        return _core.find_leaves(X, self, self.columns, self._prepared, n_threads)  # type: ignore[attr-defined]

    @cached_property
    def starts(self) -> TreeStarts:
        """Where the entries of each tree are."""
        return TreeStarts.of(vars(self), self.columns.n_codes)

    @cached_property
    def index(self) -> NodeIndex:
        """What each node is, and where its numbers are."""
        return NodeIndex.of(self)

    @cached_property
    def node_value(self) -> Ints:
        """Mean of the leaves below each node, as integers: columns as in `value`."""
        return average_leaves(self)

    def compute_parents(self) -> Ints:
        """Return the parent of every node, counted over all trees; -1 for a root."""
        return compute_parents(self.left, self.tree_start)

    def compute_depth(self) -> Ints:
        """Return the depth of every node; a root has depth 0."""
        return compute_depth(self.left, self.tree_start)

    def compute_importances(self) -> Floats:
        """Return how much of the gain of all splits is due to each column."""
        total = self.importance.sum()
        return self.importance / total if total > 0 else self.importance.copy()


@dataclass(frozen=True, eq=False)
class BoostedTree:
    """One tree of an ensemble, boosted or averaged, in the units of the data.

    What texts and pictures read for every node is made once.

    Parameters
    ----------
    ensemble : Ensemble
        The trees.
    number : int
        Position of the tree.
    """

    ensemble: Ensemble
    number: int

    def __repr__(self) -> str:
        kind = self.ensemble.index.kind[self.nodes]
        return (
            f"BoostedTree(n_nodes={self.n_nodes}, n_leaves={self.n_leaves}, depth={self.depth}, "
            f"n_hyperplanes={int(np.count_nonzero(kind == HYPERPLANE))})"
        )

    @property
    def nodes(self) -> slice:
        """Positions of the tree's nodes among those of all trees."""
        return slice(*self.ensemble.tree_start[self.number : self.number + 2].tolist())

    @property
    def output(self) -> int:
        """Which score the tree adds to, where trees take turns; else the first."""
        return self.number % self.ensemble.n_turns

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.left)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.left < 0))

    @property
    def depth(self) -> int:
        """Number of splits on the longest path."""
        return int(self.compute_depth().max())

    @cached_property
    def left(self) -> NDArray[np.int32]:
        """Left child of each node, -1 for a leaf; the right child follows."""
        return self.ensemble.left[self.nodes]

    @cached_property
    def column(self) -> NDArray[np.int32]:
        """Column of each split by a single column, else -1."""
        return self.ensemble.column[self.nodes]

    @property
    def first_node(self) -> int:
        """Position of the root among the nodes of all trees."""
        return int(self.nodes.start)

    @cached_property
    def node_value(self) -> Ints:
        """What each leaf adds to the scores, and each split on average, as integers."""
        return self.ensemble.node_value[self.nodes]

    @cached_property
    def fraction(self) -> Floats:
        """Fraction of the weight of the tree's training rows that each node has."""
        weight = self.ensemble.weight[self.nodes]
        fraction: Floats = weight / weight[0]
        return fraction

    @cached_property
    def value(self) -> Floats:
        """What each leaf adds to the raw scores, and each split on average over its rows.

        In a forest, it is what the tree predicts there minus what all trees start from.
        """
        value: Floats = np.ldexp(self.node_value.astype(np.float64), -self.ensemble.power)
        return value

    @cached_property
    def prediction(self) -> Floats:
        """What the tree predicts alone: in a forest, predictions are the mean over its trees."""
        ensemble = self.ensemble
        base = ensemble.base if ensemble.n_turns == 1 else ensemble.base[self.output]
        whole = (base + self.node_value).astype(np.float64) + ensemble.origin
        prediction: Floats = np.ldexp(whole, -ensemble.power)
        return prediction

    def compute_depth(self) -> Ints:
        """Return the depth of every node; the root has depth 0."""
        return compute_depth(self.left, np.array([0, self.n_nodes]))

    def split(self, node: int) -> NumberSplit | CategorySplit | HyperplaneSplit:
        """Return a split in the units of the data.

        Parameters
        ----------
        node : int
            A node whose ``left`` is not -1.
        """
        if not 0 <= node < self.n_nodes or self.left[node] < 0:
            raise ValueError(f"node={node!r} is not a split.")
        return describe_split(self.ensemble, self.first_node + int(node))
