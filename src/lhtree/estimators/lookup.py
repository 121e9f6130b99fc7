"""Check a fitted model, and look up its trees, splits and classes, as explanations need them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lhtree.data.validation import join_few
from lhtree.estimators.averaging import LHForestRegressor
from lhtree.estimators.boosting import BoostingEstimator
from lhtree.estimators.classifier import TreeClassifier
from lhtree.model.ensemble import BoostedTree, Ensemble
from lhtree.model.forest import Forest
from lhtree.model.tree import Tree


def check_model(model: Any) -> None:
    """Refuse anything but a fitted model of this package."""
    if not isinstance(model, TreeClassifier | LHForestRegressor | BoostingEstimator):
        raise TypeError(
            "model must be a fitted LHTClassifier, LHForestClassifier, LHForestRegressor, "
            f"LHBoostClassifier or LHBoostRegressor, got {type(model).__name__}; of a pipeline, "
            "pass the last step and transformed rows."
        )
    model.column_names_  # raises NotFittedError  # noqa: B018


def check_is_forest(model: Any, what: str, remedy: str) -> None:
    """Refuse anything but trees and forests of classes, for what other models do not have."""
    check_model(model)
    if not isinstance(model, TreeClassifier):
        raise TypeError(
            f"{what} is for an LHTClassifier or LHForestClassifier, and model is an "
            f"{type(model).__name__}; {remedy}."
        )


def check_is_classifier(model: Any, what: str, remedy: str) -> None:
    """Refuse anything but a fitted classifier, for what needs classes."""
    check_model(model)
    if not hasattr(model, "classes_"):
        raise TypeError(
            f"{what} is for classifiers, and model is an {type(model).__name__}; {remedy}."
        )


def check_number(name: str, value: Any, least: int, most: int) -> int:
    """Return an integer in ``least ... most``; negative numbers do not count from the end."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or not least <= value <= most:
        raise ValueError(
            f"{name} must be an integer from {least} to {most}, got {value!r}."
            if most >= least
            else f"{name}={value!r} does not exist: the model has no such {name}."
        )
    return int(value)


def look_up_tree(model: Any, number: Any) -> Any:
    """Return the tree with this number."""
    forest: Forest | Ensemble = model.forest_
    return forest[check_number("tree", number, 0, len(forest) - 1)]


def look_up_split(tree: Tree | BoostedTree, node: Any) -> int:
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
