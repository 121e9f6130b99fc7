"""What the report's tree viewer shows of forests of classes of the exact engine, as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.explain.histogram import count_projections
from lhtree.explain.model_view import ModelView
from lhtree.explain.splits import compute_extremes, name_pure_side_of
from lhtree.explain.wording import Vocabulary
from lhtree.model.ensemble import BoostedTree
from lhtree.report.boosted_trees import describe_boosted_tree
from lhtree.report.trees import N_BINS, cut_digits


def describe_share_tree(
    view: ModelView,
    tree: BoostedTree,
    words: Vocabulary,
    Z: Floats,
    is_positive: NDArray[np.bool_],
    leaf: Ints,
    shown: Ints,
) -> dict[str, Any]:
    """Return a tree that votes for a class, with the distributions of rows at its splits.

    Parameters
    ----------
    view : ModelView
        The forest.
    tree : BoostedTree
        The tree.
    words : Vocabulary
        Names of columns and categories.
    Z : ndarray of shape (n_rows, n_columns)
        Standardised rows.
    is_positive : ndarray of bool, shape (n_rows,)
        Whether they belong to the tree's class.
    leaf : ndarray of shape (n_rows,)
        The leaves that they reach.
    shown : ndarray of shape (n_shown,)
        Positions of the rows whose leaves are listed.
    """
    share = view.read_shares(tree).tolist()
    return {
        **describe_boosted_tree(tree, words, view.column_std, leaf, shown),
        "estimator": tree.number // (len(view.model.forest_) // view.n_estimators),
        "positive_class": view.get_class(tree),
        "share": [cut_digits(value, 5) for value in share],
        "cuts": _describe_cuts(view, tree, Z, is_positive, leaf),
    }


def _describe_cuts(
    view: ModelView, tree: BoostedTree, Z: Floats, is_positive: NDArray[np.bool_], leaf: Ints
) -> list[list[Any] | None]:
    """Return what each split does to the rows; None for a leaf."""
    rows = {int(end): np.flatnonzero(leaf == end) for end in np.unique(leaf)}
    cuts: list[list[Any] | None] = [None] * tree.n_nodes
    none = np.empty(0, dtype=np.int64)
    for node in np.flatnonzero(tree.left >= 0)[::-1].tolist():
        sides = [rows.pop(int(tree.left[node]) + side, none) for side in (0, 1)]
        here = rows[node] = np.concatenate(sides)
        is_right = np.arange(len(here)) >= len(sides[0])
        cuts[node] = _describe_cut(view, tree, node, Z[here], is_positive[here], is_right)
    return cuts


def _describe_cut(
    view: ModelView,
    tree: BoostedTree,
    node: int,
    Z: Floats,
    is_positive: NDArray[np.bool_],
    is_right: NDArray[np.bool_],
) -> list[Any]:
    """Return threshold, extremes and histogram (or None), pure sides, and counts per side.

    The histogram is of the rows with a number; counts are of positive and of negative rows.
    """
    facts = view.look_at_split(tree, node, Z)
    sides = [is_positive[is_right == side] for side in (False, True)]
    counts = [[int(side.sum()), int((~side).sum())] for side in sides]
    pure = name_pure_side_of(is_positive, is_right)
    names = {"left": ["left"], "right": ["right"], "both": ["left", "right"]}.get(pure, [])
    listed = [[name, bool(counts[name == "right"][0])] for name in names]
    has_number = ~np.isnan(facts.projection)
    if not has_number.any():
        return [None, listed, counts]
    projection, is_positive = facts.projection[has_number], is_positive[has_number]
    extremes = compute_extremes(projection, is_positive)
    finite = extremes[~np.isnan(extremes)]
    bins = count_projections(projection, is_positive, facts.threshold, finite, N_BINS)
    drawn = [
        cut_digits(facts.threshold),
        [None if np.isnan(value) else cut_digits(value) for value in extremes.tolist()],
        [
            cut_digits(bins.edge[0], 7),
            cut_digits(bins.width, 7),
            bins.positive.tolist(),
            bins.negative.tolist(),
        ],
    ]
    return [drawn, listed, counts]
