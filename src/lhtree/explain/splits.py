"""The splits of a model as data: a table of all of them, and a close view of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.estimators import lookup
from lhtree.explain import arguments, boosted_splits, forest_view, model_view
from lhtree.model.link import is_exact


def split_table(model: Any, *, n_features: int = 5) -> Any:
    """Return all splits of a model, one row each.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.
    n_features : int, default=5
        How many features to name per split, the largest weights first.

    Returns
    -------
    pandas.DataFrame or dict of str to ndarray
        A frame if pandas is installed, otherwise its columns. Of trees, and of forests whose
        leaves are not constant: ``tree`` (position in ``trees_``), ``estimator``,
        ``positive_class`` (label of the class that the tree separates from all others),
        ``node``, ``depth``, ``n_samples`` and ``weight_sum`` (training rows and their
        weights), ``value`` (fraction of positive rows among them, after shrinkage),
        ``threshold_kind`` (what chose the threshold: N1 to N4 for a pure side, e for the
        middle, gini), ``threshold``, ``threshold_raw``, and for k = 1 to `n_features`
        ``feature_k``, ``weight_k`` and ``raw_weight_k``. A split with fewer features has None
        and NaN in the columns that it does not fill.

        Of boosted models and of forests whose leaves are constant (see
        :func:`explain_rows`): ``tree``, ``node``, ``depth``, ``fraction`` (of the tree's
        training rows, by weight), ``value`` (what the leaves below add to the raw score, on
        average, or in a forest what they predict: the share of a class, or a number; with
        several scores ``value_`` and the class, or the position, of each), ``kind`` ("number",
        "category" or "hyperplane"), ``condition`` (in words: rows that fulfil it go left),
        ``missing`` (the side of missing values, or "fill": in a hyperplane they count as
        numbers), ``threshold_raw``, ``feature_k``, ``weight_k`` and ``raw_weight_k``; of
        classes also ``estimator`` and ``positive_class``. Categories have neither threshold
        nor weight. The strongest weight of a hyperplane is 1 or -1.

    Notes
    -----
    A row goes left where the sum of weight times value is below the threshold.
    ``threshold`` and ``weight_k`` are for standardised columns, ``threshold_raw`` and
    ``raw_weight_k`` for the columns as they came; both describe the same hyperplane.
    With ``standardize=False`` they are the same numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.explain import split_table
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> table = split_table(LHTClassifier().fit(X, y), n_features=2)
    >>> table["feature_1"][0], table["threshold_kind"][0]
    ('proline', 'N3')
    """
    lookup.check_model(model)
    lookup.check_number("n_features", n_features, 1, np.iinfo(np.int64).max)
    if is_exact(model):
        return to_frame(boosted_splits.tabulate_splits(model, int(n_features)))
    forest = model.forest_
    split = np.flatnonzero(forest.left >= 0)
    tree = np.repeat(np.arange(len(forest)), np.diff(forest.tree_start))[split]
    node = split - forest.tree_start[tree]
    kind = np.array(forest_view.THRESHOLD_KINDS, dtype=object)
    columns: dict[str, NDArray[Any]] = {
        "tree": tree,
        "estimator": tree // model.voting_.n_trees_per_estimator,
        "positive_class": model.classes_[forest.positive_class[tree]],
        "node": node,
        "depth": forest.compute_depth()[split],
        "n_samples": forest.n_samples[split],
        "weight_sum": forest.weight_sum[split],
        "value": forest.value[split],
        "threshold_kind": kind[forest.threshold_kind[split]],
        "threshold": forest.threshold[split],
    }
    columns.update(_tabulate_terms(model, tree, node, n_features))
    return to_frame(columns)


def _tabulate_terms(model: Any, tree: Ints, node: Ints, k: int) -> dict[str, NDArray[Any]]:
    """Return the raw threshold and the `k` strongest features of the given splits."""
    forest, n = model.forest_, len(tree)
    k = min(k, forest.n_features)
    name = np.array(model.column_names_, dtype=object)
    strongest = np.full((k, n), None, dtype=object)
    weights, raw_weights = np.full((2, k, n), np.nan)
    shift = np.empty(n)
    for i in range(n):
        feature, weight, *_ = forest[tree[i]].terms(node[i])
        raw = weight / forest.column_std[feature]
        shift[i] = raw @ forest.column_mean[feature]
        order = np.argsort(-np.abs(weight), kind="stable")[:k]
        strongest[: len(order), i] = name[feature[order]]
        weights[: len(order), i] = weight[order]
        raw_weights[: len(order), i] = raw[order]
    split = forest.tree_start[tree] + node
    columns: dict[str, NDArray[Any]] = {"threshold_raw": forest.threshold[split] + shift}
    for rank in range(k):
        columns[f"feature_{rank + 1}"] = strongest[rank]
        columns[f"weight_{rank + 1}"] = weights[rank]
        columns[f"raw_weight_{rank + 1}"] = raw_weights[rank]
    return columns


def to_frame(columns: dict[str, NDArray[Any]]) -> Any:
    """Return a frame if pandas is installed, otherwise the columns as they are."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        return columns
    return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class SplitView:
    """How one split separates the rows that reach it.

    Parameters
    ----------
    tree, node : int
        Which split.
    positive_class : object
        Label of the class that the tree separates from all others.
    row : ndarray of int64, shape (n_reaching,)
        Positions in `X` of the rows that reach the split.
    projection : ndarray of float64, shape (n_reaching,)
        Their weighted sums. Units are standardised; where leaves are constant, they are
        those of ``threshold_raw`` in :func:`split_table`. NaN where no number decides: at a
        split by categories, or by one column whose value is missing.
    is_positive : ndarray of bool, shape (n_reaching,)
        Whether they belong to the positive class.
    is_right : ndarray of bool, shape (n_reaching,)
        Whether they go right: their projection is not below the threshold.
    threshold : float
        Constant of the split; NaN at a split by categories.
    extremes : ndarray of float64, shape (4,)
        Least and largest projection in training, of the positive rows, then of the
        negative ones. A forest whose leaves are constant does not keep them: they are
        those of the rows shown, NaN where there are none.
    threshold_kind : str
        What chose the threshold: N1 to N4 for a pure side, e for the middle, gini.
    pure_side : str
        Side on which all training rows were positive, or all were negative: "left",
        "right", "both" or "none". It says the same of the rows shown where `extremes` are
        theirs.
    n_samples : int
        Training rows that reached the split; where `extremes` are those of the rows shown,
        the weight of the tree's training rows.
    value : float
        Weighted fraction of positive rows among them, after shrinkage.
    is_of_training : bool
        Whether `extremes` and `pure_side` are those of the training rows.
    """

    tree: int
    node: int
    positive_class: Any
    row: Ints
    projection: Floats
    is_positive: NDArray[np.bool_]
    is_right: NDArray[np.bool_]
    threshold: float
    extremes: Floats
    threshold_kind: str
    pure_side: str
    n_samples: int
    value: float
    is_of_training: bool = True


def split_view(model: Any, tree: int, node: int, X: Any, y: Any) -> SplitView:
    """Return what a split does to the rows that reach it.

    Parameters
    ----------
    model : LHTClassifier or LHForestClassifier
        A fitted model.
    tree : int
        Position of the tree in ``trees_``.
    node : int
        Number of the split in the tree; 0 is the root.
    X : array-like of shape (n_rows, n_features)
        Rows with the columns of the training data.
    y : array-like of shape (n_rows,)
        Their class labels.

    Returns
    -------
    SplitView
        The rows that reach the split, their projections, and the split's constants.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.explain import split_view
    >>> X, y = load_wine(return_X_y=True)
    >>> view = split_view(LHTClassifier().fit(X, y), 0, 0, X, y)
    >>> view.threshold_kind, view.pure_side, int(view.is_right.sum()), int(view.is_positive.sum())
    ('N3', 'left', 70, 59)
    """
    remedy = "its trees have no positive class; split_table lists their splits"
    lookup.check_is_forest(model, "split_view", remedy)
    view = model_view.view_model(model)
    chosen = lookup.look_up_tree(model, tree)
    number = lookup.look_up_split(chosen, node)
    table = model.encode_rows(X)
    labels = arguments.check_labels(model, y, len(table))
    leaf, right = model.apply(X)[:, chosen.number], int(chosen.left[number]) + 1
    row = np.flatnonzero(_mark_reaching(chosen, number, leaf))
    is_right = _mark_reaching(chosen, right, leaf[row])
    facts = view.look_at_split(chosen, number, view.standardize(table[row]))
    positive_class = model.classes_[view.get_class(chosen)]
    is_positive = labels[row] == positive_class
    if facts.extremes is None:
        extremes = compute_extremes(facts.projection, is_positive)
        pure_side = name_pure_side_of(is_positive, is_right)
    else:
        extremes, pure_side = facts.extremes, name_pure_side(facts.threshold, facts.extremes)
    return SplitView(
        tree=chosen.number,
        node=number,
        positive_class=positive_class,
        row=row,
        projection=facts.projection,
        is_positive=is_positive,
        is_right=is_right,
        threshold=facts.threshold,
        extremes=extremes,
        threshold_kind=facts.threshold_kind,
        pure_side=pure_side,
        n_samples=facts.n_samples,
        value=facts.value,
        is_of_training=facts.extremes is not None,
    )


def compute_extremes(projection: Floats, is_positive: NDArray[np.bool_]) -> Floats:
    """Return least and largest projection of positive rows, then of negative ones; NaN of none."""
    extremes = np.full(4, np.nan)
    for k, mask in enumerate((is_positive, ~is_positive)):
        of_class = projection[mask & ~np.isnan(projection)]
        if len(of_class):
            extremes[2 * k : 2 * k + 2] = of_class.min(), of_class.max()
    return extremes


def name_pure_side_of(is_positive: NDArray[np.bool_], is_right: NDArray[np.bool_]) -> str:
    """Return the side that is not mixed, of those that some rows are on."""
    sides = (is_positive[is_right == side] for side in (False, True))
    return _name_side(*(len(np.unique(side)) == 1 for side in sides))


def name_pure_side(threshold: float, extremes: Floats) -> str:
    """Return the side that is not mixed, from the extremes of positive and negative rows."""
    least_positive, most_positive, least_negative, most_negative = extremes
    left = not (least_positive < threshold and least_negative < threshold)
    right = not (most_positive >= threshold and most_negative >= threshold)
    return _name_side(left, right)


def _name_side(left: bool, right: bool) -> str:
    """Return which sides are pure."""
    names = {(True, True): "both", (True, False): "left", (False, True): "right"}
    return names.get((left, right), "none")


def _mark_reaching(tree: Any, node: int, leaf: Ints) -> NDArray[np.bool_]:
    """Return whether each row, by its leaf, passes a node."""
    is_below = np.zeros(tree.n_nodes, dtype=bool)
    is_below[node] = True
    for parent in range(node, tree.n_nodes):  # a child comes after its parent
        if is_below[parent] and tree.left[parent] >= 0:
            is_below[tree.left[parent] : tree.left[parent] + 2] = True
    return is_below[leaf]
