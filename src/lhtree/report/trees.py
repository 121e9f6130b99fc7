"""What the report's tree viewer shows, as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats
from lhtree.explain import forest_view
from lhtree.explain.histogram import count_projections
from lhtree.explain.splits import name_pure_side
from lhtree.model.tree import Tree

N_TERMS = 10  # weights per node
N_BINS = 28  # of a distribution


def describe_tree(
    model: Any, tree: Tree, Z: Floats, y_encoded: NDArray[np.int64], shown: NDArray[np.int64]
) -> dict[str, Any]:
    """Return a tree with the distributions of rows at its splits.

    Parameters
    ----------
    model : classifier
        Whose tree it is.
    tree : Tree
        The tree.
    Z : ndarray of shape (n_rows, n_columns)
        Standardised rows.
    y_encoded : ndarray of shape (n_rows,)
        Their classes.
    shown : ndarray of shape (n_shown,)
        Positions of the rows whose leaves are listed.
    """
    is_positive = y_encoded == tree.positive_class
    rows = {0: np.arange(len(Z))}
    leaf = np.zeros(len(Z), dtype=np.int64)
    splits: list[list[Any] | None] = []
    for node in range(tree.n_nodes):
        here = rows.pop(node)
        if tree.left[node] < 0:
            leaf[here] = node
            splits.append(None)
            continue
        projection = forest_view.project(tree, node, Z[here])
        is_right = projection >= tree.threshold[node]
        rows[int(tree.left[node])] = here[~is_right]
        rows[int(tree.left[node]) + 1] = here[is_right]
        splits.append(_describe_split(tree, node, projection, is_positive[here]))
    return {
        "number": tree.number,
        "estimator": tree.number // model.voting_.n_trees_per_estimator,
        "positive_class": tree.positive_class,
        "left": tree.left.tolist(),
        "n": tree.n_samples.tolist(),
        "value": [cut_digits(value, 4) for value in tree.value.tolist()],
        "splits": splits,
        "terms": [_describe_terms(tree, node) for node in range(tree.n_nodes)],
        "leaf": leaf[shown].tolist(),
    }


def _describe_split(
    tree: Tree, node: int, projection: Floats, is_positive: NDArray[np.bool_]
) -> list[Any]:
    """Return threshold, raw threshold, its kind, extremes, pure sides and histogram."""
    forest, threshold = tree.forest, float(tree.threshold[node])
    feature, weight, *_ = tree.terms(node)
    shift = float(weight / forest.column_std[feature] @ forest.column_mean[feature])
    extremes = tree.extremes[node]
    bins = count_projections(projection, is_positive, threshold, extremes, N_BINS)
    return [
        cut_digits(threshold),
        cut_digits(threshold + shift),
        forest_view.THRESHOLD_KINDS[tree.threshold_kind[node]],
        [cut_digits(value) for value in extremes.tolist()],
        _list_pure_sides(threshold, extremes),
        [
            cut_digits(bins.edge[0], 7),
            cut_digits(bins.width, 7),
            bins.positive.tolist(),
            bins.negative.tolist(),
        ],
    ]


def _list_pure_sides(threshold: float, extremes: Floats) -> list[list[Any]]:
    """Return the pure sides, and whether their rows are positive."""
    pure = name_pure_side(threshold, extremes)
    sides = ["left", "right"] if pure == "both" else [pure]
    is_positive = {
        "left": bool(extremes[0] < threshold),
        "right": bool(extremes[1] >= threshold),
    }
    return [[side, is_positive[side]] for side in sides if side != "none"]


def _describe_terms(tree: Tree, node: int) -> list[Any]:
    """Return the columns and weights of the strongest terms, and the number of others."""
    feature, weight, *_ = tree.terms(node)
    is_used = weight != 0
    feature, weight = feature[is_used], weight[is_used]
    order = np.argsort(-np.abs(weight), kind="stable")[:N_TERMS]
    values = [cut_digits(value) for value in weight[order].tolist()]
    return [feature[order].tolist(), values, len(weight) - len(order)]


def cut_digits(value: float, n_digits: int = 5) -> float:
    """Return a number with few significant digits, which is short in a file."""
    number = float(f"{value:.{n_digits}g}")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number
