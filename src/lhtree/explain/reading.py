"""What all explanations ask of a model: its names, trees and rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from lhtree.arrays import Floats, Ints
from lhtree.data.frames import check_present, is_frame, show_gaps
from lhtree.data.sparse import check_format
from lhtree.estimators.base import HyperplaneTrees
from lhtree.model.forest import Forest, Tree, list_targets

MOST_EXTREME = 1e154  # the core moves numbers beyond it to it; see native/old/predict.hpp
RULE_NAMES = ("leaf", "N1", "N2", "N3", "N4", "e", "gini")


def check_model(model: Any) -> None:
    """Refuse what is no fitted classifier of this package."""
    if not isinstance(model, HyperplaneTrees):
        raise TypeError(
            "model must be a fitted LHTClassifier or LHForestClassifier, got "
            f"{type(model).__name__}; of a pipeline, give the last step and transformed rows."
        )
    model.column_names_  # raises NotFittedError  # noqa: B018


def check_number(name: str, value: Any, least: int, most: int) -> int:
    """Return an integer in ``least ... most``; negative numbers do not count from the end."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or not least <= value <= most:
        raise ValueError(
            f"{name} must be an integer from {least} to {most}, got {value!r}."
            if most >= least
            else f"{name}={value!r} cannot be had: there is none."
        )
    return int(value)


def find_tree(model: Any, number: Any) -> Tree:
    """Return a tree of the model by its number."""
    forest: Forest = model.forest_
    return forest[check_number("tree", number, 0, len(forest) - 1)]


def find_split(tree: Tree, node: Any) -> int:
    """Return the number of a split of the tree."""
    number = check_number("node", node, 0, tree.n_nodes - 1)
    if tree.left[number] < 0:
        split = np.flatnonzero(tree.left >= 0)
        remedy = f"its splits are {join_few(split.tolist())}" if len(split) else "it has no split"
        raise ValueError(f"node={number} of tree {tree.number} is a leaf; {remedy}.")
    return number


def join_few(values: Sequence[Any], most: int = 8) -> str:
    """List some values in one line."""
    more = f", ... ({len(values)} in all)" if len(values) > most else ""
    return ", ".join(map(str, values[:most])) + more


def find_class(model: Any, label: Any) -> int:
    """Return the index of a class label."""
    position = np.flatnonzero(model.classes_ == label)
    if len(position) != 1:
        raise ValueError(
            f"{label!r} is no class of the model; its classes are "
            f"{join_few(model.classes_.tolist())}."
        )
    return int(position[0])


def check_labels(model: Any, y: Any, n_rows: int) -> NDArray[Any]:
    """Return the labels of some rows, one each and all known to the model."""
    check_present("y", y)
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise ValueError(
            f"y must have one label for each of the {n_rows} rows of X, got the shape "
            f"{labels.shape}."
        )
    known = set(model.classes_.tolist())  # compared as they are: "1" is not 1
    unknown = [label for label in dict.fromkeys(labels.tolist()) if label not in known]
    if unknown:
        raise ValueError(
            f"y has {join_few(unknown)}, but the model's classes are "
            f"{join_few(model.classes_.tolist())}."
        )
    return labels


def count_trees_per_member(model: Any) -> int:
    """Return how many trees a member has: one per class, or one for two classes."""
    return len(list_targets(model.n_classes_))


def find_row(x: Any) -> Any:
    """Return one row as a table of one row: a frame with its names, or a dense array."""
    if hasattr(x, "iloc") and x.ndim == 1:
        return x.to_frame().T.infer_objects()
    row = x if is_frame(x) else _to_array(x)
    if len(row.shape) == 1:
        return row.reshape(1, -1)
    if len(row.shape) != 2 or row.shape[0] != 1:
        raise ValueError(
            f"x must be one row, got the shape {row.shape}; give X[[i]], or X.iloc[[i]] "
            "of a frame."
        )
    return row


def _to_array(x: Any) -> NDArray[Any]:
    if issparse(x):
        check_format(x)
        return np.asarray(x.toarray())
    x = show_gaps(x)
    array = np.asarray(x)
    if array.dtype.kind in "biuf" or hasattr(x, "dtype"):
        return array
    return np.asarray(x, dtype=object)  # numbers beside text stay numbers


def encode_row(model: Any, row: Any) -> Floats:
    """Return one row as the trees see it; an array counts by position, though names are known."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        table = model.encode_rows(row)
    encoded: Floats = np.asarray(table, dtype=np.float64)[0]
    return encoded


def find_feature_names(model: Any) -> Sequence[str]:
    """Return the names of the columns of the caller's `X`."""
    names: Sequence[str] = model._name_features()
    return names


def find_numbers(model: Any) -> NDArray[np.bool_]:
    """Return which of the columns that the trees see are features as they came."""
    is_number: NDArray[np.bool_] = ~model.columns_.find_indicators()
    return is_number


def find_source(model: Any) -> NDArray[np.int64]:
    """Return, for each column that the trees see, the feature it is made from."""
    source: NDArray[np.int64] = model.column_source_
    return source


def sum_by_feature(value: Floats, source: Ints, n_features: int) -> Floats:
    """Return numbers of columns, along the last axis, added up over each feature's columns."""
    total = np.zeros((*value.shape[:-1], n_features))
    for j, feature in enumerate(source):
        total[..., feature] += value[..., j]
    return total


def standardize(forest: Forest, table: NDArray[Any]) -> Floats:
    """Return encoded rows in the units of the trees; NaN stays where a value is missing."""
    with np.errstate(over="ignore"):
        Z = (table.astype(np.float64) - forest.column_mean) / forest.column_deviation
    return np.clip(Z, -MOST_EXTREME, MOST_EXTREME)


def find_parts(tree: Tree, node: int, Z: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Return the columns of a node's terms and what each adds: weight times (z - center).

    A missing value adds nothing.
    """
    feature, weight, center, _ = tree.terms(node)
    part = Z[:, feature] - center
    part[np.isnan(part)] = 0.0
    with np.errstate(over="ignore"):  # slopes of nearly constant columns, far away
        return feature, part * weight


def project(tree: Tree, node: int, Z: Floats) -> Floats:
    """Return the projections of rows at a node, added up as the core does, bit for bit."""
    feature, weight, center, _ = tree.terms(node)
    lanes = np.zeros((8, len(Z)))
    for j, w, c in zip(feature, weight, center, strict=True):
        lanes[j % 8] += w * np.where(np.isnan(Z[:, j]), c, Z[:, j])
    halves = lanes[:4] + lanes[4:]
    score: Floats = (halves[0] + halves[2]) + (halves[1] + halves[3])
    return score


def predict_encoded(model: Any, table: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of the class that the model predicts for encoded rows."""
    sums = model._vote(np.ascontiguousarray(table))
    code: NDArray[np.int64] = model._find_probabilities(sums, model._n_members).argmax(axis=1)
    return code
