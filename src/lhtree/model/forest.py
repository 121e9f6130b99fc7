"""The model as flat arrays.

A :class:`Forest` holds the nodes of all its trees in one set of arrays; a
:class:`Tree` is a view of one of them. Growing fills the arrays, everything else
reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lhtree import _core
from lhtree.arrays import Floats, Ints
from lhtree.data.sparse import move_columns, place_columns, split_blocks
from lhtree.model.packing import Arrays, complete, pack, unpack
from lhtree.model.validation import check_forest

Progress = Callable[[int], object]
Votes = tuple[Floats, Floats, Floats]

NO_MAX_DEPTH = np.iinfo(np.int64).max
CONTRASTS = ("mean", "standardized", "fisher")
THRESHOLDS = ("purity", "gini")


def list_targets(n_classes: int) -> tuple[int, ...]:
    """Return the classes that have trees of their own: all, or the second of two."""
    return (1,) if n_classes == 2 else tuple(range(n_classes))


@dataclass(frozen=True)
class Plan:
    """What to grow: members, their trees, and the rules of growing.

    Members ``first_member``, ``first_member + 1``, ... get one ``beta`` each, and
    one tree per entry of ``target``. The draws depend on nothing but ``seed`` and
    the numbers of member, class, row and column.
    """

    n_classes: int
    target: tuple[int, ...]
    beta: tuple[float, ...]
    n_draws: int  # rows drawn per member
    seed: int = 0
    first_member: int = 0
    bootstrap: bool = False
    balance: bool = False  # weigh the classes alike within each member's rows
    alpha: float = 0.0
    gamma: float = 2.0
    min_samples_split: float = 2.0
    max_depth: int = NO_MAX_DEPTH
    min_weight_fraction_leaf: float = 0.0
    min_samples_leaf: float = 0.0  # least weight of a side of a split; 0: any
    max_leaf_nodes: int = 0  # 0: no limit
    ccp_alpha: float = 0.0
    contrast: int = 0  # index into CONTRASTS
    cut: int = 0  # index into THRESHOLDS
    n_columns: int = 0  # columns drawn at each node; 0: all
    axes: bool = False  # whether each of them is tried alone
    n_planes: int = 1  # contrasts tried: over all of them, halves, quarters, ...
    n_columns_per_tree: int = 0  # columns drawn per tree; 0: all
    by_columns: bool = False  # whether the core gets the table transposed


@dataclass(frozen=True, eq=False)
class Forest:
    """Hyperplane trees as flat arrays: the nodes of tree after tree.

    Every node owns one linear form, its *terms*. A split sends a row to the left
    if the sum of ``weight * z`` over the terms is below ``threshold``; a leaf
    answers ``share`` plus the sum of ``weight * (z - center)``, clipped to [0, 1].
    ``z`` is the row in units of the columns: ``(x - column_mean) / column_deviation``.

    Parameters
    ----------
    tree_start : ndarray of int64, shape (n_trees + 1,)
        First node of each tree. The nodes of a tree are numbered breadth-first.
    target : ndarray of int32, shape (n_trees,)
        Class that each tree separates from the rest.
    left : ndarray of int32, shape (n_nodes,)
        Left child, counted from the tree's root; the right child is ``left + 1``;
        -1 marks a leaf.
    start : ndarray of int64, shape (n_nodes + 1,)
        Node ``i`` owns the terms ``start[i]:start[i + 1]``.
    feature_start : ndarray of int64, shape (n_nodes + 1,)
        The columns of these terms are ``feature[feature_start[i]:feature_start[i + 1]]``.
        A node with a term for every column lists none: they are all columns in order.
    feature : ndarray of int32
        Columns of the terms, ascending in each node.
    weight : ndarray of float64, shape (n_terms,)
        Coefficients: the weights of a split, the slopes of a leaf.
    center, deviation : ndarray of float64, shape (n_terms,)
        Mean and deviation of the column over the node's rows.
    threshold : ndarray of float64, shape (n_nodes,)
        Constant of a split; the share of a leaf.
    norm : ndarray of float64, shape (n_nodes,)
        Euclidean length of the weights of a split; 0 for a leaf.
    share : ndarray of float64, shape (n_nodes,)
        Weighted share of targets among the node's training rows, after shrinkage.
    n_samples : ndarray of int64, shape (n_nodes,)
        Number of training rows in the node.
    weight_sum : ndarray of float64, shape (n_nodes,)
        Sum of their weights.
    rule : ndarray of int8, shape (n_nodes,)
        What chose the threshold: 1 to 4 for the pure pieces N1 to N4, 5 for the
        middle ``e``, 6 for the least Gini impurity; 0 for a leaf.
    extremes : ndarray of float64, shape (n_nodes, 4)
        Least and largest projection of the targets, then of the rest; zeros for a leaf.
    column_mean, column_deviation : ndarray of float64, shape (n_features,)
        Units of the columns.
    """

    tree_start: Ints
    target: NDArray[np.int32]
    left: NDArray[np.int32]
    start: Ints
    feature_start: Ints
    feature: NDArray[np.int32]
    weight: Floats
    center: Floats
    deviation: Floats
    threshold: Floats
    norm: Floats
    share: Floats
    n_samples: Ints
    weight_sum: Floats
    rule: NDArray[np.int8]
    extremes: Floats
    column_mean: Floats
    column_deviation: Floats

    def __post_init__(self) -> None:
        # The core trusts the numbers in these arrays: nobody else may change them.
        self.__dict__.update({name: value.copy() for name, value in vars(self).items()})
        check_forest(self)
        self._freeze()

    def __getstate__(self) -> dict[str, Any]:
        return pack(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._adopt(unpack(state))

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take arrays that nobody else has, once they are known to be sound."""
        self.__dict__.update(arrays)
        check_forest(self)
        self._freeze()

    def _freeze(self) -> None:
        for field in fields(self):
            getattr(self, field.name).flags.writeable = False

    @classmethod
    def _from_core(cls, arrays: dict[str, NDArray[Any]]) -> Forest:
        """Return a forest of arrays that are known to be sound and nobody else's."""
        forest = cls.__new__(cls)
        forest.__dict__.update(arrays)
        forest._freeze()
        return forest

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, number: int) -> Tree:
        return Tree(self, range(len(self))[index(number)])

    def __iter__(self) -> Iterator[Tree]:
        return (Tree(self, number) for number in range(len(self)))

    @property
    def n_features(self) -> int:
        """Number of columns that the trees expect."""
        return len(self.column_mean)

    def find_depth(self) -> Ints:
        """Return the depth of every node; a root has depth 0."""
        root = self.tree_start[:-1]
        shift = np.repeat(root, np.diff(self.tree_start))
        return _find_depth(np.where(self.left < 0, -1, self.left + shift), root)

    def find_parent(self) -> Ints:
        """Return the parent of every node, both counted over the forest; -1 for a root."""
        parent = np.full(len(self.left), -1, dtype=np.int64)
        root = np.repeat(self.tree_start[:-1], np.diff(self.tree_start))
        split = np.flatnonzero(self.left >= 0)
        child = root[split] + self.left[split]
        parent[child] = parent[child + 1] = split
        return parent

    def find_columns(self) -> NDArray[np.int32]:
        """Return the column of every term."""
        return _list_columns(np.diff(self.start), self.feature, self.n_features)

    def find_importances(self) -> Floats:
        """Return how strongly the splits rely on each feature, averaged over trees."""
        per_tree = [tree.find_importances() for tree in self if tree.left[0] >= 0]
        return np.mean(per_tree, axis=0) if per_tree else np.zeros(self.n_features)

    def apply(self, X: Any, *, n_threads: int = 1) -> Ints:
        """Return the leaf that each row, dense or sparse, reaches in each tree."""
        if isinstance(X, np.ndarray):
            return _core.apply(self, X, n_threads)
        forest, X = self._narrow(X)
        return np.concatenate([_core.apply(forest, Z, n_threads) for _, Z in split_blocks(X)])

    def explain(
        self, X: NDArray[Any], *, n_classes: int, n_threads: int = 1
    ) -> tuple[Floats, Floats]:
        """Sum what each column adds to the memberships over the trees of each class.

        :func:`lhtree.explain.explain_rows` has the definition.

        Returns
        -------
        vote : ndarray of shape (n_rows, n_classes)
            Sum of the memberships.
        contribution : ndarray of shape (n_rows, n_classes, n_columns)
            What each column adds to the shares of targets at the roots.
        """
        return _core.explain(self, X, n_classes, n_threads)

    def vote(
        self,
        X: Any,
        *,
        n_classes: int,
        by_margin: bool = False,
        left_out: NDArray[np.uint64] | None = None,
        n_trees_per_member: int = 1,
        n_threads: int = 1,
    ) -> Votes:
        """Sum what the trees of each class say of each row.

        Returns
        -------
        vote : ndarray of shape (n_rows, n_classes)
            Sum of the memberships; of membership times distance with `by_margin`.
        signed_distance : ndarray of shape (n_rows, n_classes)
            Sum of ``(2 * membership - 1) * distance``.
        complement : ndarray of shape (n_rows,)
            Sum of ``(1 - membership) * distance`` with `by_margin`, otherwise empty.
        """

        def ask(forest: Forest, rows: Any, words: NDArray[np.uint64] | None) -> Votes:
            return _core.vote(
                forest, rows, n_classes, by_margin, words, n_trees_per_member, n_threads
            )

        return self._ask_blocks(X, left_out, ask)

    def vote_shrunk(
        self,
        X: Any,
        strengths: Sequence[float],
        *,
        n_classes: int,
        by_margin: bool = False,
        left_out: NDArray[np.uint64] | None = None,
        n_trees_per_member: int = 1,
        n_threads: int = 1,
    ) -> Votes:
        """Sum what the trees would say if they were shrunk by each of some strengths.

        :mod:`lhtree.training.shrinkage` has the definition. Rows take the same paths whatever the
        strength, so they walk down the trees once.

        Returns
        -------
        tuple of ndarrays
            What :meth:`vote` returns, one after the other along a first axis.
        """

        def ask(forest: Forest, rows: Any, words: NDArray[np.uint64] | None) -> Votes:
            return _core.vote_shrunk(
                forest, rows, strengths, n_classes, by_margin, words, n_trees_per_member, n_threads
            )

        return self._ask_blocks(X, left_out, ask, axis=1)

    def _ask_blocks(
        self, X: Any, left_out: NDArray[np.uint64] | None, ask: Callable[..., Votes], axis: int = 0
    ) -> Votes:
        """Ask for the votes on rows, sparse ones in dense blocks that are joined."""
        if isinstance(X, np.ndarray):
            return ask(self, X, left_out)
        forest, X = self._narrow(X)
        parts = []
        for rows, block in split_blocks(X):
            words = None
            if left_out is not None:
                words = np.ascontiguousarray(left_out[:, rows.start // 64 : -(-rows.stop // 64)])
            parts.append(ask(forest, block, words))
        vote, distance, complement = (
            np.concatenate(part, axis=axis) for part in zip(*parts, strict=True)
        )
        return vote, distance, complement

    def _narrow(self, X: csr_array) -> tuple[Forest, csr_array]:
        """Leave out the columns of sparse rows that no term has: dense blocks get narrow."""
        column = np.unique(self.feature)
        lists_all = np.diff(self.feature_start) == np.diff(self.start)
        place = place_columns(column)
        if not (lists_all.all() and column.size) or place[-1] + 1 >= self.n_features:
            return self, X
        units = np.zeros(place[-1] + 1), np.ones(place[-1] + 1)
        for unit, whole in zip(units, (self.column_mean, self.column_deviation), strict=True):
            unit[place] = whole[column]
        arrays = {
            "feature": place[np.searchsorted(column, self.feature)],
            "column_mean": units[0],
            "column_deviation": units[1],
        }
        forest = Forest._from_core(vars(self) | arrays)
        return forest, move_columns(X, column, place)


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree of a forest: views of its part of the forest's arrays.

    Parameters
    ----------
    forest : Forest
        Where the arrays are.
    number : int
        Which of its trees.
    """

    forest: Forest
    number: int

    def __repr__(self) -> str:
        return (
            f"Tree(target={self.target}, n_nodes={self.n_nodes}, "
            f"n_leaves={self.n_leaves}, depth={self.depth})"
        )

    @property
    def _nodes(self) -> slice:
        return slice(*self.forest.tree_start[self.number : self.number + 2])

    @property
    def target(self) -> int:
        """Class that the tree separates from the rest, as an index into ``classes_``."""
        return int(self.forest.target[self.number])

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
        return int(self.find_depth().max())

    @property
    def left(self) -> NDArray[np.int32]:
        """Left child of every node; -1 marks a leaf."""
        return self.forest.left[self._nodes]

    @property
    def threshold(self) -> Floats:
        """Constant of every split, share of every leaf."""
        return self.forest.threshold[self._nodes]

    @property
    def share(self) -> Floats:
        """Weighted share of targets in every node, after shrinkage."""
        return self.forest.share[self._nodes]

    @property
    def n_samples(self) -> Ints:
        """Number of training rows in every node."""
        return self.forest.n_samples[self._nodes]

    @property
    def weight_sum(self) -> Floats:
        """Sum of the weights of these rows."""
        return self.forest.weight_sum[self._nodes]

    @property
    def rule(self) -> NDArray[np.int8]:
        """What chose the threshold of every node; see :class:`Forest`."""
        return self.forest.rule[self._nodes]

    @property
    def extremes(self) -> Floats:
        """Extremes of the projections of every split; see :class:`Forest`."""
        return self.forest.extremes[self._nodes]

    def find_depth(self) -> Ints:
        """Return the depth of every node; the root has depth 0."""
        return _find_depth(self.left, np.zeros(1, dtype=np.int64))

    def find_importances(self) -> Floats:
        """Return how strongly the splits rely on each feature; zeros without a split."""
        forest, nodes = self.forest, self._nodes
        bounds = forest.start[nodes.start : nodes.stop + 1]
        terms = slice(bounds[0], bounds[-1])
        node = np.repeat(np.arange(self.n_nodes), np.diff(bounds))
        strength = np.abs(forest.weight[terms]) * forest.deviation[terms]
        strength *= self.left[node] >= 0  # the slopes of leaves do not count
        total = np.bincount(node, strength, self.n_nodes)[node]
        strength *= np.divide(self.weight_sum[node], total, np.zeros(len(node)), where=total > 0)
        importance = np.bincount(self.find_columns(), strength, forest.n_features)
        return importance / (importance.sum() or 1.0)

    def find_columns(self) -> NDArray[np.int32]:
        """Return the column of every term of the tree."""
        forest, nodes = self.forest, self._nodes
        size = np.diff(forest.start[nodes.start : nodes.stop + 1])
        listed = forest.feature[slice(*forest.feature_start[[nodes.start, nodes.stop]])]
        return _list_columns(size, listed, forest.n_features)

    def terms(self, node: int) -> tuple[NDArray[np.int32], Floats, Floats, Floats]:
        """Return columns, weights, centers and deviations of a node's terms."""
        forest = self.forest
        i = int(forest.tree_start[self.number]) + range(self.n_nodes)[node]
        terms = slice(*forest.start[i : i + 2])
        feature = forest.feature[slice(*forest.feature_start[i : i + 2])]
        if terms.stop - terms.start == forest.n_features:
            feature = np.arange(forest.n_features, dtype=np.int32)
        return feature, forest.weight[terms], forest.center[terms], forest.deviation[terms]


def _find_depth(left: NDArray[Any], root: Ints) -> Ints:
    """Return the depth of every node, level by level."""
    depth = np.zeros(len(left), dtype=np.int64)
    level = root
    while len(level):
        level = level[left[level] >= 0]
        child = left[level]
        depth[child] = depth[child + 1] = depth[level] + 1
        level = np.concatenate([child, child + 1])
    return depth


def _list_columns(size: Ints, listed: NDArray[np.int32], n_features: int) -> NDArray[np.int32]:
    """Return the columns of the terms of nodes; those of nodes that have all are not listed."""
    column = np.empty(size.sum(), dtype=np.int32)
    is_dense = np.repeat(size == n_features, size)
    column[~is_dense] = listed
    all_columns = np.arange(n_features, dtype=np.int32)
    column[is_dense] = np.tile(all_columns, np.count_nonzero(size == n_features))
    return column


def grow_trees(
    X: Any,
    code: NDArray[np.int32],
    weight: Floats | None,
    plan: Plan,
    *,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> Arrays:
    """Grow all trees of a plan in one native call; `finish_forest` makes a forest of them.

    Parameters
    ----------
    X : ndarray of float32 or float64, or csr_array, shape (n_rows, n_features)
        Rows in the units of the trees, C-contiguous, NaN where a value is missing;
        transposed if the plan reads them by columns. Or a sparse array of rows, see
        :func:`lhtree.data.sparse.to_rows`, never transposed.
    code : ndarray of int32, shape (n_rows,)
        Class of each row.
    weight : ndarray of float64, shape (n_rows,), or None
        Positive weight of each row; None counts every row once.
    plan : Plan
        What to grow.
    n_threads : int, default=1
        Number of trees that grow at the same time.
    progress : callable, optional
        Called now and then with the number of trees grown so far.
    """
    if isinstance(X, np.ndarray):
        return _core.grow_forest(X, code, weight, plan, n_threads, progress)
    start, column = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    table = start, column, X.data, X.shape[1]
    return _core.grow_sparse(*table, code, weight, plan, n_threads, progress)


def finish_forest(grown: Arrays, scale: tuple[Floats, Floats]) -> Forest:
    """Return the forest of trees that have grown.

    While trees grow, their nodes take half of the memory that they have in the end: the
    training rows need the rest, so they should be gone by now.

    Parameters
    ----------
    grown : dict of ndarrays
        What `grow_trees` returns; it is used up.
    scale : tuple of two ndarrays of shape (n_features,)
        Mean and deviation that lead from raw columns to those of the trees.
    """
    mean, deviation = scale
    complete(grown, grown["rule"] > 0, len(mean))
    return Forest._from_core({**grown, "column_mean": mean, "column_deviation": deviation})


def join_forests(forests: Sequence[Forest]) -> Forest:
    """Return one forest with the trees of several, which share their units."""
    offset_of = {"tree_start": "left", "start": "weight", "feature_start": "feature"}
    arrays: dict[str, NDArray[Any]] = {}
    for field in fields(Forest):
        parts = [getattr(forest, field.name) for forest in forests]
        if field.name.startswith("column_"):
            arrays[field.name] = parts[0]
        elif field.name in offset_of:
            sizes = [len(getattr(forest, offset_of[field.name])) for forest in forests]
            shifts = np.cumsum([0, *sizes[:-1]])
            shifted = [part[1:] + shift for part, shift in zip(parts, shifts, strict=True)]
            arrays[field.name] = np.concatenate([parts[0][:1], *shifted])
        else:
            arrays[field.name] = np.concatenate(parts)
    return Forest._from_core(arrays)
