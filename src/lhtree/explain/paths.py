"""The way of a row through the trees, split by split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.explain import reading
from lhtree.model.forest import Tree


@dataclass(frozen=True, eq=False)
class Path:
    """The way of one row through one tree.

    At each split, ``contribution.sum() + constant`` is the projection of the row minus
    the threshold: below zero the row goes left. In the leaf, ``leaf_contribution.sum()
    + share[-1]`` is the membership before it is clipped to [0, 1].

    Parameters
    ----------
    tree : int
        Position of the tree in ``trees_``.
    target : object
        Label of the class that the tree separates from the rest.
    node : ndarray of int64, shape (n_splits,)
        The splits that the row passes, root first.
    is_right : ndarray of bool, shape (n_splits,)
        Whether it goes right there.
    distance : ndarray of float64, shape (n_splits,)
        Signed Euclidean distance from each hyperplane, in standardised units; negative
        on the left side.
    contribution : ndarray of float64, shape (n_splits, n_columns)
        Weight times (value - mean of the split's training rows) of each column; 0 for
        a missing value.
    constant : ndarray of float64, shape (n_splits,)
        Projection of that mean, minus the threshold.
    share : ndarray of float64, shape (n_splits + 1,)
        Share of targets at each split and, last, in the leaf, after shrinkage.
    leaf : int
        Where the row arrives.
    leaf_contribution : ndarray of float64, shape (n_columns,)
        Slope times (value - mean of the leaf's training rows) of each column.
    membership : float
        What the tree answers.
    """

    tree: int
    target: Any
    node: Ints
    is_right: NDArray[np.bool_]
    distance: Floats
    contribution: Floats
    constant: Floats
    share: Floats
    leaf: int
    leaf_contribution: Floats
    membership: float


def find_paths(model: Any, table: NDArray[Any]) -> tuple[tuple[Path, ...], ...]:
    """Return the paths of encoded rows, by row, then tree."""
    leaf = model.forest_.apply(table)
    Z = reading.standardize(model.forest_, table)
    parent = model.forest_.find_parent()
    by_tree = [
        _trace_tree(tree, parent, model.classes_[tree.target], Z, leaf[:, tree.number])
        for tree in model.forest_
    ]
    return tuple(zip(*by_tree, strict=True))


def _trace_tree(tree: Tree, parent: Ints, target: Any, Z: Floats, leaf: Ints) -> list[Path]:
    """Return the path of each row through one tree; rows of a leaf share their nodes."""
    root = int(tree.forest.tree_start[tree.number])  # parents are counted over the forest
    paths: dict[int, Path] = {}
    for end in np.unique(leaf):
        chain = [int(end)]
        while chain[0] > 0:
            chain.insert(0, int(parent[root + chain[0]]) - root)
        rows = np.flatnonzero(leaf == end)
        paths.update(zip(rows.tolist(), _trace_leaf(tree, target, chain, Z[rows]), strict=True))
    return [paths[i] for i in range(len(leaf))]


def _trace_leaf(tree: Tree, target: Any, chain: list[int], Z: Floats) -> list[Path]:
    """Return the path of each row along a chain of nodes that ends in a leaf."""
    node = np.array(chain[:-1], dtype=np.int64)
    part = np.zeros((len(Z), len(chain), Z.shape[1]))
    constant, norm = np.empty(len(node)), np.empty(len(node))
    for step, number in enumerate(chain):
        feature, value = reading.find_parts(tree, number, Z)
        part[:, step, feature] = value
        if step < len(node):
            _, weight, center, _ = tree.terms(number)
            constant[step] = weight @ center - tree.threshold[number]
            norm[step] = tree.forest.norm[tree.forest.tree_start[tree.number] + number]
    is_right = np.array(chain[1:], dtype=np.int64) > tree.left[node]
    distance = (part[:, :-1].sum(axis=2) + constant) / norm
    with np.errstate(invalid="ignore"):  # infinite parts of both signs say nothing
        raw = tree.share[chain[-1]] + part[:, -1].sum(axis=1)
    membership = np.where(np.isnan(raw), tree.share[chain[-1]], np.clip(raw, 0.0, 1.0))
    return [
        Path(
            tree=tree.number,
            target=target,
            node=node,
            is_right=is_right,
            distance=distance[i],
            contribution=part[i, :-1],
            constant=constant,
            share=tree.share[chain],
            leaf=chain[-1],
            leaf_contribution=part[i, -1],
            membership=float(membership[i]),
        )
        for i in range(len(Z))
    ]
