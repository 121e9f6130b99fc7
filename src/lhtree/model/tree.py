"""One tree of a forest, as views of the forest's arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints

if TYPE_CHECKING:
    from lhtree.model.forest import Forest


class Terms(NamedTuple):
    """The terms of a node: its hyperplane if it is a split, its line if it is a leaf."""

    feature: NDArray[np.int32]  # columns, ascending
    weight: Floats
    center: Floats  # mean of the column over the node's rows
    std: Floats  # its standard deviation there


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree of a forest: views of the forest's arrays.

    Parameters
    ----------
    forest : Forest
        Owner of the arrays.
    number : int
        Position of the tree in the forest.
    """

    forest: Forest
    number: int

    def __repr__(self) -> str:
        return (
            f"Tree(positive_class={self.positive_class}, n_nodes={self.n_nodes}, "
            f"n_leaves={self.n_leaves}, depth={self.depth})"
        )

    @property
    def _nodes(self) -> slice:
        return slice(*self.forest.tree_start[self.number : self.number + 2])

    @property
    def first_node(self) -> int:
        """Position of the root among the nodes of all trees."""
        return int(self._nodes.start)

    @property
    def positive_class(self) -> int:
        """Class that the tree separates from all others, as an index into ``classes_``."""
        return int(self.forest.positive_class[self.number])

    @property
    def n_nodes(self) -> int:
        """Number of splits and leaves."""
        return len(self.left)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.left < 0))

    @property
    def depth(self) -> int:
        """Number of splits on the longest path."""
        return int(self.compute_depth().max())

    @property
    def left(self) -> NDArray[np.int32]:
        """Left child of every node; -1 marks a leaf."""
        return self.forest.left[self._nodes]

    @property
    def threshold(self) -> Floats:
        """Threshold of every split, 0 for a leaf."""
        return self.forest.threshold[self._nodes]

    @property
    def value(self) -> Floats:
        """Weighted fraction of positive rows in every node, after shrinkage."""
        return self.forest.value[self._nodes]

    @property
    def n_samples(self) -> Ints:
        """Number of training rows in every node."""
        return self.forest.n_samples[self._nodes]

    @property
    def weight_sum(self) -> Floats:
        """Sum of the weights of these rows."""
        return self.forest.weight_sum[self._nodes]

    @property
    def threshold_kind(self) -> NDArray[np.int8]:
        """How the threshold of every split was chosen; see :class:`Forest`."""
        return self.forest.threshold_kind[self._nodes]

    @property
    def extremes(self) -> Floats:
        """Extremes of the projections of every split; see :class:`Forest`."""
        return self.forest.extremes[self._nodes]

    def compute_depth(self) -> Ints:
        """Return the depth of every node; the root has depth 0."""
        return compute_depth(self.left, np.array([0, self.n_nodes]))

    def compute_importances(self) -> Floats:
        """Return how strongly the splits rely on each feature; zeros without a split."""
        forest, nodes = self.forest, self._nodes
        bounds = forest.start[nodes.start : nodes.stop + 1]
        terms = slice(bounds[0], bounds[-1])
        node = np.repeat(np.arange(self.n_nodes), np.diff(bounds))
        strength = np.abs(forest.weight[terms]) * forest.std[terms]
        strength *= self.left[node] >= 0  # the slopes of leaves do not count
        total = np.bincount(node, strength, self.n_nodes)[node]
        strength *= np.divide(self.weight_sum[node], total, np.zeros(len(node)), where=total > 0)
        importance = np.bincount(self.list_columns(), strength, forest.n_features)
        return importance / (importance.sum() or 1.0)

    def list_columns(self) -> NDArray[np.int32]:
        """Return the column of every term of the tree."""
        forest, nodes = self.forest, self._nodes
        size = np.diff(forest.start[nodes.start : nodes.stop + 1])
        listed = forest.feature[slice(*forest.feature_start[[nodes.start, nodes.stop]])]
        return list_term_columns(size, listed, forest.n_features)

    def terms(self, node: int) -> Terms:
        """Return columns, weights, centers and standard deviations of a node's terms."""
        forest = self.forest
        i = int(forest.tree_start[self.number]) + range(self.n_nodes)[node]
        terms = slice(*forest.start[i : i + 2])
        feature = forest.feature[slice(*forest.feature_start[i : i + 2])]
        if terms.stop - terms.start == forest.n_features:
            feature = np.arange(forest.n_features, dtype=np.int32)
        return Terms(feature, forest.weight[terms], forest.center[terms], forest.std[terms])


def repeat_roots(tree_start: Ints) -> Ints:
    """Return for every node the root of its tree."""
    return np.repeat(tree_start[:-1], np.diff(tree_start))


def compute_parents(left: NDArray[Any], tree_start: Ints) -> Ints:
    """Return the parent of every node, counted over all trees; -1 for a root."""
    parent = np.full(len(left), -1, dtype=np.int64)
    split = np.flatnonzero(left >= 0)
    child = left[split] + repeat_roots(tree_start)[split]
    parent[child] = parent[child + 1] = split
    return parent


def compute_depth(left: NDArray[Any], tree_start: Ints) -> Ints:
    """Return the depth of every node in its tree, level by level."""
    first_child = left + repeat_roots(tree_start)
    depth = np.zeros(len(left), dtype=np.int64)
    level = tree_start[:-1]
    while len(level):
        level = level[left[level] >= 0]
        child = first_child[level]
        depth[child] = depth[child + 1] = depth[level] + 1
        level = np.concatenate([child, child + 1])
    return depth


def list_term_columns(size: Ints, listed: NDArray[np.int32], n_features: int) -> NDArray[np.int32]:
    """Return the column of every term; nodes with a term for every column list none."""
    column = np.empty(size.sum(), dtype=np.int32)
    is_dense = np.repeat(size == n_features, size)
    column[~is_dense] = listed
    all_columns = np.arange(n_features, dtype=np.int32)
    column[is_dense] = np.tile(all_columns, np.count_nonzero(size == n_features))
    return column
