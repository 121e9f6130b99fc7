"""The model as flat arrays.

A :class:`Forest` holds the nodes of all its trees in one set of arrays; a
:class:`Tree` is a view of one tree. A fit fills the arrays, everything else reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lhtree import _core
from lhtree.arrays import Floats, Ints
from lhtree.data.sparse import move_columns, renumber_columns, split_blocks
from lhtree.model.packing import pack, unpack
from lhtree.model.tree import Tree, compute_depth, compute_parents, list_term_columns
from lhtree.model.validation import check_forest

Votes = tuple[Floats, Floats, Floats]


def list_positive_classes(n_classes: int) -> tuple[int, ...]:
    """Return the classes with trees of their own: all, or the second of two."""
    return (1,) if n_classes == 2 else tuple(range(n_classes))


@dataclass(frozen=True, eq=False)
class Forest:
    """Hyperplane trees as flat arrays: the nodes of one tree after another.

    Every node owns some *terms*. A split sends a row to the left if the sum of
    ``weight * z`` over its terms, the projection, is below ``threshold``. A leaf outputs
    ``value`` plus the sum of ``weight * (z - center)``, clipped to [0, 1]. ``z`` is the
    row in units of the columns: ``(x - column_mean) / column_std``.

    Parameters
    ----------
    tree_start : ndarray of int64, shape (n_trees + 1,)
        First node of each tree. The nodes of a tree are numbered breadth-first.
    positive_class : ndarray of int32, shape (n_trees,)
        Class that each tree separates from all others.
    left : ndarray of int32, shape (n_nodes,)
        Left child, counted from the tree's root; the right child is ``left + 1``;
        -1 marks a leaf.
    start : ndarray of int64, shape (n_nodes + 1,)
        Node ``i`` owns the terms ``start[i]:start[i + 1]``.
    feature_start : ndarray of int64, shape (n_nodes + 1,)
        The columns of these terms are ``feature[feature_start[i]:feature_start[i + 1]]``.
        A node with a term for every column lists none: its columns are all, in order.
    feature : ndarray of int32
        Columns of the terms, ascending in each node.
    weight : ndarray of float64, shape (n_terms,)
        Coefficients: the weights of a split, the slopes of a leaf.
    center, std : ndarray of float64, shape (n_terms,)
        Mean and standard deviation of the column over the node's rows.
    threshold : ndarray of float64, shape (n_nodes,)
        Threshold of a split; 0 for a leaf.
    norm : ndarray of float64, shape (n_nodes,)
        Euclidean length of the weights of a split; 0 for a leaf.
    value : ndarray of float64, shape (n_nodes,)
        Weighted mean of the target over the node's training rows, after shrinkage: the
        fraction of rows of the positive class.
    n_samples : ndarray of int64, shape (n_nodes,)
        Number of training rows in the node.
    weight_sum : ndarray of float64, shape (n_nodes,)
        Sum of their weights.
    threshold_kind : ndarray of int8, shape (n_nodes,)
        How the threshold was chosen: 1 to 4 cut off the pure group N1 to N4, 5 is the
        middle ``e``, 6 the lowest Gini impurity; 0 for a leaf.
    extremes : ndarray of float64, shape (n_nodes, 4)
        Smallest and largest projection of the positive rows, then of the negative rows;
        zeros for a leaf.
    column_mean, column_std : ndarray of float64, shape (n_features,)
        Units of the columns.
    """

    tree_start: Ints
    positive_class: NDArray[np.int32]
    left: NDArray[np.int32]
    start: Ints
    feature_start: Ints
    feature: NDArray[np.int32]
    weight: Floats
    center: Floats
    std: Floats
    threshold: Floats
    norm: Floats
    value: Floats
    n_samples: Ints
    weight_sum: Floats
    threshold_kind: NDArray[np.int8]
    extremes: Floats
    column_mean: Floats
    column_std: Floats

    def __post_init__(self) -> None:
        # The core trusts the numbers in these arrays, so no one else may change them.
        self.__dict__.update({name: value.copy() for name, value in vars(self).items()})
        check_forest(self)
        self._freeze()

    def __getstate__(self) -> dict[str, Any]:
        return pack(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.adopt(unpack(state))

    def adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over arrays that no one else holds, and check them."""
        self.__dict__.update(arrays)
        check_forest(self)
        self._freeze()

    def _freeze(self) -> None:
        for field in fields(self):
            getattr(self, field.name).flags.writeable = False

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Forest:
        """Return a forest of valid arrays that no one else holds, without checks."""
        forest = cls.__new__(cls)
        forest.__dict__.update(arrays)
        forest._freeze()
        return forest

    def __len__(self) -> int:
        return len(self.positive_class)

    def __getitem__(self, number: int) -> Tree:
        return Tree(self, range(len(self))[index(number)])

    def __iter__(self) -> Iterator[Tree]:
        return (Tree(self, number) for number in range(len(self)))

    @property
    def n_features(self) -> int:
        """Number of columns that the trees expect."""
        return len(self.column_mean)

    def compute_depth(self) -> Ints:
        """Return the depth of every node; a root has depth 0."""
        return compute_depth(self.left, self.tree_start)

    def compute_parents(self) -> Ints:
        """Return the parent of every node, numbered over the whole forest; -1 for a root."""
        return compute_parents(self.left, self.tree_start)

    def list_columns(self) -> NDArray[np.int32]:
        """Return the column of every term."""
        return list_term_columns(np.diff(self.start), self.feature, self.n_features)

    def compute_importances(self) -> Floats:
        """Return how strongly the splits rely on each feature, averaged over trees."""
        per_tree = [tree.compute_importances() for tree in self if tree.left[0] >= 0]
        return np.mean(per_tree, axis=0) if per_tree else np.zeros(self.n_features)

    def apply(self, X: Any, *, n_threads: int = 1) -> Ints:
        """Return the leaf that each row (dense or sparse) reaches in each tree."""
        if isinstance(X, np.ndarray):
            return _core.apply(self, X, n_threads)
        forest, X = self._narrow(X)
        return np.concatenate([_core.apply(forest, Z, n_threads) for _, Z in split_blocks(X)])

    def explain(
        self, X: NDArray[Any], *, n_classes: int, n_threads: int = 1
    ) -> tuple[Floats, Floats]:
        """Sum the contributions of each column over the trees of each class.

        :func:`lhtree.explain.explain_rows` has the definition.

        Returns
        -------
        vote : ndarray of shape (n_rows, n_classes)
            Sum of the memberships.
        contribution : ndarray of shape (n_rows, n_classes, n_columns)
            What each column adds to the root values.
        """
        return _core.explain(self, X, n_classes, n_threads)

    def vote(
        self,
        X: Any,
        *,
        n_classes: int,
        by_margin: bool = False,
        out_of_bag: NDArray[np.uint64] | None = None,
        n_trees_per_estimator: int = 1,
        n_threads: int = 1,
    ) -> Votes:
        """Sum the outputs of the trees of each class for each row.

        Returns
        -------
        vote : ndarray of shape (n_rows, n_classes)
            Sum of the memberships; of membership times distance with `by_margin`.
        signed_distance : ndarray of shape (n_rows, n_classes)
            Sum of ``(2 * membership - 1) * distance``.
        complement : ndarray of shape (n_rows,)
            Sum of ``(1 - membership) * distance`` with `by_margin`, otherwise empty.
        """
        settings = n_classes, by_margin, n_trees_per_estimator, n_threads
        return self._vote(X, out_of_bag, partial(_vote_dense, settings=settings))

    def vote_shrunk(
        self,
        X: Any,
        strengths: Sequence[float],
        *,
        n_classes: int,
        by_margin: bool = False,
        out_of_bag: NDArray[np.uint64] | None = None,
        n_trees_per_estimator: int = 1,
        n_threads: int = 1,
    ) -> Votes:
        """Sum the outputs of the trees for each of several strengths of shrinkage.

        :mod:`lhtree.training.shrinkage` has the definition. The strength does not change
        paths, so rows walk down the trees once.

        Returns
        -------
        tuple of ndarrays
            As :meth:`vote` returns, with a first axis for the strengths.
        """
        settings = n_classes, by_margin, n_trees_per_estimator, n_threads
        vote = partial(_vote_dense, settings=settings, strengths=strengths)
        return self._vote(X, out_of_bag, vote, axis=1)

    def _vote(
        self,
        X: Any,
        out_of_bag: NDArray[np.uint64] | None,
        vote_dense: Callable[[Forest, Any, NDArray[np.uint64] | None], Votes],
        axis: int = 0,
    ) -> Votes:
        """Vote on rows; sparse rows are made dense block by block."""
        if isinstance(X, np.ndarray):
            return vote_dense(self, X, out_of_bag)
        forest, X = self._narrow(X)
        votes = []
        for rows, block in split_blocks(X):
            words = None
            if out_of_bag is not None:
                words = np.ascontiguousarray(out_of_bag[:, rows.start // 64 : -(-rows.stop // 64)])
            votes.append(vote_dense(forest, block, words))
        vote, distance, complement = (
            np.concatenate(each, axis=axis) for each in zip(*votes, strict=True)
        )
        return vote, distance, complement

    def _narrow(self, X: csr_array) -> tuple[Forest, csr_array]:
        """Drop the columns of sparse rows that no term uses, so that dense blocks are narrow."""
        column = np.unique(self.feature)
        lists_all = np.diff(self.feature_start) == np.diff(self.start)
        position = renumber_columns(column)
        if not (lists_all.all() and column.size) or position[-1] + 1 >= self.n_features:
            return self, X
        units = np.zeros(position[-1] + 1), np.ones(position[-1] + 1)
        for unit, whole in zip(units, (self.column_mean, self.column_std), strict=True):
            unit[position] = whole[column]
        arrays = {
            "feature": position[np.searchsorted(column, self.feature)],
            "column_mean": units[0],
            "column_std": units[1],
        }
        forest = Forest.from_arrays(vars(self) | arrays)
        return forest, move_columns(X, column, position)


def _vote_dense(
    forest: Forest,
    X: NDArray[Any],
    out_of_bag: NDArray[np.uint64] | None,
    settings: tuple[int, bool, int, int],
    strengths: Sequence[float] | None = None,
) -> Votes:
    n_classes, by_margin, *threads = settings
    if strengths is None:
        return _core.vote(forest, X, n_classes, by_margin, out_of_bag, *threads)
    return _core.vote_shrunk(forest, X, strengths, n_classes, by_margin, out_of_bag, *threads)
