"""The paths of rows through the trees, split by split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.estimators.params import count_threads
from lhtree.explain.model_view import ModelView


@dataclass(frozen=True, eq=False)
class Path:
    """The path of one row through one tree.

    At each split, ``contribution.sum() + constant`` is the projection of the row minus
    the threshold: below zero the row goes left. Where no number decides (a split by
    categories, or a value that is missing at a split by its column alone), all three are 0,
    and only `is_right` tells the side. In the leaf, ``leaf_contribution.sum() + value[-1]``
    is the membership before it is clipped to [0, 1].

    Parameters
    ----------
    tree : int
        Position of the tree in ``trees_``.
    positive_class : object
        Label of the class that the tree separates from all others.
    node : ndarray of int64, shape (n_splits,)
        The splits that the row passes, root first.
    is_right : ndarray of bool, shape (n_splits,)
        Whether it goes right there.
    distance : ndarray of float64, shape (n_splits,)
        Signed Euclidean distance from each hyperplane, in standardised units; negative
        on the left side.
    contribution : ndarray of float64, shape (n_splits, n_columns)
        Weight times (z - mean of the split's training rows) of each column, z in
        standardised units; 0 for a missing value. Where leaves are constant (see
        :func:`lhtree.explain.explain_rows`), the fill of the term, which a missing value
        counts as, stands for the mean, or the threshold at a split by a single column.
    constant : ndarray of float64, shape (n_splits,)
        Projection of that mean, or fill, minus the threshold.
    value : ndarray of float64, shape (n_splits + 1,)
        Fraction of positive rows at each split and, last, in the leaf, after shrinkage.
    leaf : int
        The leaf that the row reaches.
    leaf_contribution : ndarray of float64, shape (n_columns,)
        Slope times (z - mean of the leaf's training rows) of each column; 0 in a constant
        leaf.
    membership : float
        The tree's output.
    """

    tree: int
    positive_class: Any
    node: Ints
    is_right: NDArray[np.bool_]
    distance: Floats
    contribution: Floats
    constant: Floats
    value: Floats
    leaf: int
    leaf_contribution: Floats
    membership: float


def trace_paths(view: ModelView, table: NDArray[Any]) -> tuple[tuple[Path, ...], ...]:
    """Return the paths of encoded rows through trees that vote, by row, then tree."""
    trees, n_threads = view.model.forest_, count_threads(view.model.n_jobs)
    leaf = trees.apply(np.ascontiguousarray(table), n_threads=n_threads)
    Z, parent = view.standardize(table), trees.compute_parents()
    by_tree = [_trace_tree(view, tree, parent, Z, leaf[:, tree.number]) for tree in trees]
    return tuple(zip(*by_tree, strict=True))


def _trace_tree(view: ModelView, tree: Any, parent: Ints, Z: Floats, leaf: Ints) -> list[Path]:
    """Return the path of each row through one tree; rows of a leaf share their nodes."""
    root = tree.first_node  # parents are counted over all trees
    share = view.read_shares(tree)
    paths: dict[int, Path] = {}
    for end in np.unique(leaf):
        chain = [int(end)]
        while chain[0] > 0:
            chain.insert(0, int(parent[root + chain[0]]) - root)
        rows = np.flatnonzero(leaf == end)
        traced = _trace_leaf(view, tree, chain, share[chain], Z[rows])
        paths.update(zip(rows.tolist(), traced, strict=True))
    return [paths[i] for i in range(len(leaf))]


def _trace_leaf(
    view: ModelView, tree: Any, chain: list[int], value: Floats, Z: Floats
) -> list[Path]:
    """Return the path of each row along a chain of nodes that ends in a leaf."""
    node, leaf = np.array(chain[:-1], dtype=np.int64), chain[-1]
    assert view.classes is not None
    contribution, constant, norm = view.divide_projections(tree, node, Z)
    in_leaf = view.divide_leaf(tree, leaf, Z)
    with np.errstate(invalid="ignore"):  # infinite contributions of both signs cancel to NaN
        distance = (contribution.sum(axis=2) + constant) / norm
        raw = value[-1] + in_leaf.sum(axis=1)
    membership = np.where(np.isnan(raw), value[-1], np.clip(raw, 0.0, 1.0))
    return [
        Path(
            tree=tree.number,
            positive_class=view.classes[view.get_class(tree)],
            node=node,
            is_right=np.array(chain[1:], dtype=np.int64) > tree.left[node],
            distance=distance[i],
            contribution=contribution[i],
            constant=constant,
            value=value,
            leaf=leaf,
            leaf_contribution=in_leaf[i],
            membership=float(membership[i]),
        )
        for i in range(len(Z))
    ]
