"""A fitted model as explanations see it: its columns, its units, its nodes at work."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import LANES, Floats, Ints
from lhtree.estimators.params import count_threads
from lhtree.model.forest import Forest
from lhtree.model.prediction import MOST_EXTREME, predict_classes
from lhtree.model.tree import Tree

THRESHOLD_KINDS = ("leaf", "N1", "N2", "N3", "N4", "e", "gini")  # by Forest.threshold_kind


def mark_numeric_columns(model: Any) -> NDArray[np.bool_]:
    """Return which of the columns that the trees see are numbers, not indicators."""
    is_number: NDArray[np.bool_] = ~model.columns_.list_indicators()
    return is_number


def sum_by_feature(value: Floats, source: Ints, n_features: int) -> Floats:
    """Add up the numbers of each feature's columns, along the last axis."""
    total = np.zeros((*value.shape[:-1], n_features))
    for j, feature in enumerate(source):
        total[..., feature] += value[..., j]
    return total


def encode_row(model: Any, row: Any) -> Floats:
    """Return one row as the trees see it; an array may lack the names that the model knows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        table = model.encode_rows(row)
    encoded: Floats = np.asarray(table, dtype=np.float64)[0]
    return encoded


def predict_encoded(model: Any, table: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of the class that the model predicts for encoded rows."""
    rows, n_threads = np.ascontiguousarray(table), count_threads(model.n_jobs)
    return predict_classes(model.voting_.score_rows(model.forest_, rows, n_threads=n_threads))


def standardize(forest: Forest, table: NDArray[Any]) -> Floats:
    """Return encoded rows in the units of the trees; NaN stays where a value is missing."""
    with np.errstate(over="ignore"):
        Z = (table.astype(np.float64) - forest.column_mean) / forest.column_std
    return np.clip(Z, -MOST_EXTREME, MOST_EXTREME)


def compute_contributions(tree: Tree, node: int, Z: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Return the columns of a node's terms and what each adds: weight times (z - center).

    A missing value adds nothing.
    """
    feature, weight, center, _ = tree.terms(node)
    offset = Z[:, feature] - center
    offset[np.isnan(offset)] = 0.0
    with np.errstate(over="ignore"):  # slopes of nearly constant columns, far away
        return feature, offset * weight


def project(tree: Tree, node: int, Z: Floats) -> Floats:
    """Return the projections of rows at a node, added up as the core does, bit for bit."""
    feature, weight, center, _ = tree.terms(node)
    lanes = np.zeros((LANES, len(Z)))
    for j, w, c in zip(feature, weight, center, strict=True):
        lanes[j % LANES] += w * np.where(np.isnan(Z[:, j]), c, Z[:, j])
    halves = lanes[:4] + lanes[4:]
    score: Floats = (halves[0] + halves[2]) + (halves[1] + halves[3])
    return score
