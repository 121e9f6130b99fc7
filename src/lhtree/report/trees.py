"""What the report's tree viewer shows, as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats
from lhtree.explain import reading
from lhtree.explain.histogram import count_projections
from lhtree.explain.splits import find_pure_side
from lhtree.model.forest import Tree

N_TERMS = 10  # weights per node
N_BINS = 28  # of a distribution


def describe_tree(
    model: Any, tree: Tree, Z: Floats, code: NDArray[np.int64], shown: NDArray[np.int64]
) -> dict[str, Any]:
    """Return a tree with the distributions of rows at its splits.

    Parameters
    ----------
    model : classifier
        Whose tree it is.
    tree : Tree
        The tree.
    Z : ndarray of shape (n_rows, n_columns)
        Rows in the units of the trees.
    code : ndarray of shape (n_rows,)
        Their classes.
    shown : ndarray of shape (n_shown,)
        Positions of the rows whose leaves are told.
    """
    is_target = code == tree.target
    rows = {0: np.arange(len(Z))}
    leaf = np.zeros(len(Z), dtype=np.int64)
    splits: list[list[Any] | None] = []
    for node in range(tree.n_nodes):
        here = rows.pop(node)
        if tree.left[node] < 0:
            leaf[here] = node
            splits.append(None)
            continue
        projection = reading.project(tree, node, Z[here])
        is_right = projection >= tree.threshold[node]
        rows[int(tree.left[node])] = here[~is_right]
        rows[int(tree.left[node]) + 1] = here[is_right]
        splits.append(_describe_split(tree, node, projection, is_target[here]))
    return {
        "number": tree.number,
        "member": tree.number // reading.count_trees_per_member(model),
        "target": tree.target,
        "left": tree.left.tolist(),
        "n": tree.n_samples.tolist(),
        "share": [cut_digits(value, 4) for value in tree.share.tolist()],
        "splits": splits,
        "terms": [_describe_terms(tree, node) for node in range(tree.n_nodes)],
        "leaf": leaf[shown].tolist(),
    }


def _describe_split(
    tree: Tree, node: int, projection: Floats, is_target: NDArray[np.bool_]
) -> list[Any]:
    """Return threshold, the same in raw units, rule, extremes, pure sides, distribution."""
    forest, threshold = tree.forest, float(tree.threshold[node])
    feature, weight, *_ = tree.terms(node)
    shift = float(weight / forest.column_deviation[feature] @ forest.column_mean[feature])
    extremes = tree.extremes[node]
    bins = count_projections(projection, is_target, threshold, extremes, N_BINS)
    return [
        cut_digits(threshold),
        cut_digits(threshold + shift),
        reading.RULE_NAMES[tree.rule[node]],
        [cut_digits(value) for value in extremes.tolist()],
        _list_pure_sides(threshold, extremes),
        [cut_digits(bins.edge[0], 7), cut_digits(bins.width, 7), *_list_counts(bins)],
    ]


def _list_counts(bins: Any) -> list[list[int]]:
    return [bins.target.tolist(), bins.rest.tolist()]


def _list_pure_sides(threshold: float, extremes: Floats) -> list[list[Any]]:
    """Return the pure sides, and whether targets are what they hold."""
    pure = find_pure_side(threshold, extremes)
    sides = ["left", "right"] if pure == "both" else [pure]
    holds_targets = {
        "left": bool(extremes[0] < threshold),
        "right": bool(extremes[1] >= threshold),
    }
    return [[side, holds_targets[side]] for side in sides if side != "none"]


def _describe_terms(tree: Tree, node: int) -> list[Any]:
    """Return columns and weights of the strongest terms, and how many others there are."""
    feature, weight, *_ = tree.terms(node)
    is_used = weight != 0
    feature, weight = feature[is_used], weight[is_used]
    order = np.argsort(-np.abs(weight), kind="stable")[:N_TERMS]
    values = [cut_digits(value) for value in weight[order].tolist()]
    return [feature[order].tolist(), values, len(weight) - len(order)]


def cut_digits(value: float, n_digits: int = 5) -> float:
    """Return a number with so many significant digits: short in a file."""
    number = float(f"{value:.{n_digits}g}")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number
