"""Check and look up what callers pass: a model, a tree, a split, a class, a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from lhtree.data.frames import is_frame
from lhtree.data.sparse import check_format
from lhtree.data.validation import check_present, show_gaps
from lhtree.estimators.base import TreeEstimator
from lhtree.model.forest import Forest
from lhtree.model.tree import Tree


def check_model(model: Any) -> None:
    """Refuse anything but a fitted classifier of this package."""
    if not isinstance(model, TreeEstimator):
        raise TypeError(
            "model must be a fitted LHTClassifier or LHForestClassifier, got "
            f"{type(model).__name__}; of a pipeline, pass the last step and transformed rows."
        )
    model.column_names_  # raises NotFittedError  # noqa: B018


def check_number(name: str, value: Any, least: int, most: int) -> int:
    """Return an integer in ``least ... most``; negative numbers do not count from the end."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or not least <= value <= most:
        raise ValueError(
            f"{name} must be an integer from {least} to {most}, got {value!r}."
            if most >= least
            else f"{name}={value!r} does not exist: the model has none."
        )
    return int(value)


def check_labels(model: Any, y: Any, n_rows: int) -> NDArray[Any]:
    """Return the labels of some rows: one each, all of them classes of the model."""
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


def look_up_tree(model: Any, number: Any) -> Tree:
    """Return the tree with this number."""
    forest: Forest = model.forest_
    return forest[check_number("tree", number, 0, len(forest) - 1)]


def look_up_split(tree: Tree, node: Any) -> int:
    """Return the number of a node that must be a split."""
    number = check_number("node", node, 0, tree.n_nodes - 1)
    if tree.left[number] < 0:
        split = np.flatnonzero(tree.left >= 0)
        remedy = f"its splits are {join_few(split.tolist())}" if len(split) else "it has no split"
        raise ValueError(f"node={number} of tree {tree.number} is a leaf; {remedy}.")
    return number


def look_up_class(model: Any, label: Any) -> int:
    """Return the index of a class label."""
    position = np.flatnonzero(model.classes_ == label)
    if len(position) != 1:
        raise ValueError(
            f"{label!r} is not a class of the model; its classes are "
            f"{join_few(model.classes_.tolist())}."
        )
    return int(position[0])


def read_row(x: Any) -> Any:
    """Return one row as a table of one row: a frame keeps its names, all else is an array."""
    if hasattr(x, "iloc") and x.ndim == 1:
        return x.to_frame().T.infer_objects()
    row = x if is_frame(x) else _to_array(x)
    if len(row.shape) == 1:
        return row.reshape(1, -1)
    if len(row.shape) != 2 or row.shape[0] != 1:
        raise ValueError(
            f"x must be one row, got the shape {row.shape}; pass X[[i]], or X.iloc[[i]] "
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


def join_few(values: Sequence[Any], most: int = 8) -> str:
    """List some values in one line."""
    more = f", ... ({len(values)} in all)" if len(values) > most else ""
    return ", ".join(map(str, values[:most])) + more
