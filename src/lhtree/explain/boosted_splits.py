"""The splits of a boosted model as data, and hyperplanes with fewer terms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Ints
from lhtree.explain.boosted_view import BoostedView
from lhtree.explain.wording import Vocabulary, describe_side, make_vocabulary, read_values
from lhtree.model.ensemble import Ensemble
from lhtree.model.ensemble_splits import CategorySplit, HyperplaneSplit, NumberSplit

KINDS = ("leaf", "number", "category", "hyperplane")  # by NodeIndex.kind
LEAST_TERMS = 2  # of a hyperplane


def tabulate_splits(model: Any, n_features: int) -> dict[str, NDArray[Any]]:
    """Return all splits as columns; :func:`lhtree.explain.split_table` describes them."""
    ensemble: Ensemble = model.forest_
    view, words = BoostedView(model), make_vocabulary(model, "raw")
    split = np.flatnonzero(ensemble.left >= 0)
    tree = np.repeat(np.arange(len(ensemble)), np.diff(ensemble.tree_start))[split]
    root = ensemble.tree_start[tree]
    none = np.zeros((0, ensemble.value.shape[1]))
    value = np.concatenate([none, *(read_values(each, words) for each in ensemble)])[split]
    names = ["value"]
    if ensemble.value.shape[1] > 1:
        classes = range(ensemble.n_outputs) if view.classes is None else view.classes
        names = [f"value_{label}" for label in classes]
    columns: dict[str, NDArray[Any]] = {
        "tree": tree,
        **_name_classes(view, tree),
        "node": split - root,
        "depth": ensemble.compute_depth()[split],
        "fraction": ensemble.weight[split] / ensemble.weight[root],
        **{name: value[:, k] for k, name in enumerate(names)},
        "kind": np.array(KINDS, dtype=object)[ensemble.index.kind[split]],
    }
    columns.update(_tabulate_terms(ensemble, tree, split - root, n_features, words))
    return columns


def _name_classes(view: BoostedView, tree: Ints) -> dict[str, NDArray[Any]]:
    """Return the estimators and classes of the trees of a forest of classes."""
    if not view.has_votes or view.classes is None:
        return {}
    n_turns = view.ensemble.n_turns
    return {
        "estimator": tree // n_turns,
        "positive_class": view.classes[tree % n_turns + view.is_mirrored],
    }


def _tabulate_terms(
    ensemble: Ensemble, tree: Ints, node: Ints, k: int, words: Vocabulary
) -> dict[str, NDArray[Any]]:
    """Return condition, side of missing values, threshold and strongest terms of splits."""
    n, k = len(tree), min(k, ensemble.n_features)
    condition, missing = np.full((2, n), None, dtype=object)
    threshold = np.full(n, np.nan)
    weight, raw_weight = np.full((2, k, n), np.nan)
    feature = np.full((k, n), None, dtype=object)
    for i in range(n):
        of_tree = ensemble[tree[i]]
        split = of_tree.split(int(node[i]))
        condition[i] = describe_side(of_tree, int(node[i]), False, words).format()
        missing[i] = _place_missing(split)
        if isinstance(split, HyperplaneSplit):
            listed, raw = split.feature[:k], split.weight[:k]
            strength = split.coefficient[:k] / abs(split.coefficient[0])
        else:
            listed = np.array([split.column])
            raw = strength = np.array([1.0 if isinstance(split, NumberSplit) else np.nan])
        if not isinstance(split, CategorySplit):
            threshold[i] = split.threshold
        feature[: len(listed), i] = [words.columns[j] for j in listed]
        weight[: len(listed), i], raw_weight[: len(listed), i] = strength, raw
    columns: dict[str, NDArray[Any]] = {
        "condition": condition,
        "missing": missing,
        "threshold_raw": threshold,
    }
    for rank in range(k):
        columns[f"feature_{rank + 1}"] = feature[rank]
        columns[f"weight_{rank + 1}"] = weight[rank]
        columns[f"raw_weight_{rank + 1}"] = raw_weight[rank]
    return columns


def _place_missing(split: NumberSplit | CategorySplit | HyperplaneSplit) -> str:
    """Return the side of missing values; in a hyperplane they count as fills."""
    if isinstance(split, HyperplaneSplit):
        return "fill"
    if isinstance(split, NumberSplit):
        return "left" if split.missing_left else "right"
    code = len(split.left) + len(split.right) - 1  # stands for missing categories
    return "left" if code in split.left else "right"


def shorten_hyperplanes(ensemble: Ensemble, min_weight: float) -> Ensemble:
    """Return an ensemble without the terms below `min_weight` times the largest of their split.

    Weights are integers on the grids of the columns. The two strongest terms stay; what the
    others add at their fills moves into the threshold.
    """
    size = np.diff(ensemble.term_start)
    plane = np.repeat(np.arange(len(size)), size)
    strength = np.abs(ensemble.coefficient.astype(np.int64))
    order = np.lexsort((-strength, plane))  # by hyperplane, the strongest first
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - ensemble.term_start[plane]
    largest = np.zeros(len(size), dtype=np.int64)
    np.maximum.at(largest, plane, strength)
    is_kept = (strength >= min_weight * largest[plane]) | (rank < LEAST_TERMS)
    if is_kept.all():
        return ensemble
    cut = ensemble.cut.copy()
    added = ensemble.coefficient.astype(np.int64) * ensemble.fill
    np.subtract.at(cut, plane[~is_kept], added[~is_kept])
    kept_size = np.bincount(plane[is_kept], minlength=len(size))
    return replace(
        ensemble,
        term_start=np.concatenate([[0], np.cumsum(kept_size)]).astype(np.int64),
        feature=ensemble.feature[is_kept],
        coefficient=ensemble.coefficient[is_kept],
        fill=ensemble.fill[is_kept],
        cut=cut,
    )
