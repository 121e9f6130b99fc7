"""What the report's tree viewer shows of the trees of the exact engine, as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from lhtree.arrays import Floats, Ints
from lhtree.explain.wording import Vocabulary, describe_side
from lhtree.model.ensemble import BoostedTree
from lhtree.model.ensemble_splits import HyperplaneSplit
from lhtree.report.trees import N_TERMS, cut_digits

N_SHOWN = 3  # terms, or categories, of a condition


def describe_boosted_tree(
    tree: BoostedTree, words: Vocabulary, column_std: Floats, leaf: Ints, shown: Ints
) -> dict[str, Any]:
    """Return a tree with its conditions, and how many rows pass its nodes.

    Parameters
    ----------
    tree : BoostedTree
        The tree.
    words : Vocabulary
        Names of columns and categories.
    column_std : ndarray of shape (n_columns,)
        Units of the columns.
    leaf : ndarray of shape (n_rows,)
        The leaves of the rows to count.
    shown : ndarray of shape (n_shown,)
        Positions of the rows whose leaves are listed.
    """
    count = np.bincount(leaf, minlength=tree.n_nodes)
    splits = np.flatnonzero(tree.left >= 0)
    for node in splits[::-1]:
        count[node] = count[tree.left[node]] + count[tree.left[node] + 1]
    is_split = tree.left >= 0
    nodes = range(tree.n_nodes)
    return {
        "number": tree.number,
        "left": tree.left.tolist(),
        "fraction": [cut_digits(value, 4) for value in tree.fraction.tolist()],
        "value": [[cut_digits(v, 5) for v in values] for values in tree.value.tolist()],
        **_describe_predictions(tree, words),
        "counted": count.tolist(),
        "splits": [_describe_split(tree, k, words) if is_split[k] else None for k in nodes],
        "terms": [_describe_terms(tree, k, column_std) if is_split[k] else None for k in nodes],
        "leaf": leaf[shown].tolist(),
    }


def _describe_predictions(tree: BoostedTree, words: Vocabulary) -> dict[str, Any]:
    """Return what the nodes of a tree in a forest of numbers predict."""
    if words.link is None or not words.link.is_averaged or words.link.is_of_classes:
        return {}
    return {"predicted": [cut_digits(v, 6) for v in tree.prediction[:, 0].tolist()]}


def _describe_split(tree: BoostedTree, node: int, words: Vocabulary) -> list[str]:
    """Return the conditions of both sides, and that of the left in short."""
    sides = [describe_side(tree, node, is_right, words) for is_right in (False, True)]
    return [*(side.format(2, N_TERMS) for side in sides), sides[0].format(2, N_SHOWN)]


def _describe_terms(tree: BoostedTree, node: int, column_std: Floats) -> list[Any] | None:
    """Return columns, weights for standardised and raw columns, and the number of others."""
    split = tree.split(node)
    if not isinstance(split, HyperplaneSplit):
        return None
    weight = split.weight * column_std[split.feature]
    weight = weight / np.abs(weight).max()
    return [
        split.feature[:N_TERMS].tolist(),
        [cut_digits(value) for value in weight[:N_TERMS].tolist()],
        [cut_digits(value) for value in split.weight[:N_TERMS].tolist()],
        max(len(weight) - N_TERMS, 0),
    ]
