"""The paths of rows through the trees, split by split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.explain import forest_view
from lhtree.model.tree import Tree


@dataclass(frozen=True, eq=False)
class Path:
    """The path of one row through one tree.

    At each split, ``contribution.sum() + constant`` is the projection of the row minus
    the threshold: below zero the row goes left. In the leaf, ``leaf_contribution.sum()
    + value[-1]`` is the membership before it is clipped to [0, 1].

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
        standardised units; 0 for a missing value.
    constant : ndarray of float64, shape (n_splits,)
        Projection of that mean, minus the threshold.
    value : ndarray of float64, shape (n_splits + 1,)
        Fraction of positive rows at each split and, last, in the leaf, after shrinkage.
    leaf : int
        The leaf that the row reaches.
    leaf_contribution : ndarray of float64, shape (n_columns,)
        Slope times (z - mean of the leaf's training rows) of each column.
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


def trace_paths(model: Any, table: NDArray[Any]) -> tuple[tuple[Path, ...], ...]:
    """Return the paths of encoded rows, by row, then tree."""
    leaf = model.forest_.apply(table)
    Z = forest_view.standardize(model.forest_, table)
    parent = model.forest_.compute_parents()
    by_tree = [
        _trace_tree(tree, parent, model.classes_[tree.positive_class], Z, leaf[:, tree.number])
        for tree in model.forest_
    ]
    return tuple(zip(*by_tree, strict=True))


def _trace_tree(tree: Tree, parent: Ints, label: Any, Z: Floats, leaf: Ints) -> list[Path]:
    """Return the path of each row through one tree; rows of a leaf share their nodes."""
    root = int(tree.forest.tree_start[tree.number])  # parents are counted over the forest
    paths: dict[int, Path] = {}
    for end in np.unique(leaf):
        chain = [int(end)]
        while chain[0] > 0:
            chain.insert(0, int(parent[root + chain[0]]) - root)
        rows = np.flatnonzero(leaf == end)
        paths.update(zip(rows.tolist(), _trace_leaf(tree, label, chain, Z[rows]), strict=True))
    return [paths[i] for i in range(len(leaf))]


def _trace_leaf(tree: Tree, label: Any, chain: list[int], Z: Floats) -> list[Path]:
    """Return the path of each row along a chain of nodes that ends in a leaf."""
    node = np.array(chain[:-1], dtype=np.int64)
    contribution = np.zeros((len(Z), len(chain), Z.shape[1]))
    constant, norm = np.empty(len(node)), np.empty(len(node))
    for step, number in enumerate(chain):
        feature, added = forest_view.compute_contributions(tree, number, Z)
        contribution[:, step, feature] = added
        if step < len(node):
            _, weight, center, _ = tree.terms(number)
            constant[step] = weight @ center - tree.threshold[number]
            norm[step] = tree.forest.norm[tree.forest.tree_start[tree.number] + number]
    is_right = np.array(chain[1:], dtype=np.int64) > tree.left[node]
    distance = (contribution[:, :-1].sum(axis=2) + constant) / norm
    leaf_value = tree.value[chain[-1]]
    with np.errstate(invalid="ignore"):  # infinite contributions of both signs cancel to NaN
        raw = leaf_value + contribution[:, -1].sum(axis=1)
    membership = np.where(np.isnan(raw), leaf_value, np.clip(raw, 0.0, 1.0))
    return [
        Path(
            tree=tree.number,
            positive_class=label,
            node=node,
            is_right=is_right,
            distance=distance[i],
            contribution=contribution[i, :-1],
            constant=constant,
            value=tree.value[chain],
            leaf=chain[-1],
            leaf_contribution=contribution[i, -1],
            membership=float(membership[i]),
        )
        for i in range(len(Z))
    ]
