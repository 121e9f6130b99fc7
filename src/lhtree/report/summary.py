"""What the report says about the model as a whole, as plain data for its template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lhtree.data.reading import name_features
from lhtree.explain import class_importances, interactions, model_view
from lhtree.model.link import VOTES, is_exact, read_link
from lhtree.report.metrics import Metrics

N_CLASSES = 40  # in the tables of classes
N_FEATURES = 30  # in the table of importances
N_PAIRS = 15  # in the table of interactions
N_SHADES = 5  # of cells of the confusion matrix


def describe_model(model: Any) -> dict[str, Any]:
    """Return the size and the parameters of the model."""
    trees = model.forest_
    return {
        "kind": type(model).__name__,
        "about": _describe_trees(model),
        "is_boosted": is_exact(model) and read_link(model).name != VOTES,
        "n_trees": len(trees),
        "n_splits": int(np.count_nonzero(trees.left >= 0)),
        "n_leaves": model.get_n_leaves(),
        "depth": model.get_depth(),
        "oob": getattr(model, "oob_score_", None),
        "parameters": _list_changed(model),
    }


def _describe_trees(model: Any) -> str:
    """Return in one sentence what the trees do."""
    if not is_exact(model):
        return "Each tree separates one class from all others by hyperplanes in closed form."
    classes = [str(label) for label in getattr(model, "classes_", ())]
    if len(classes) == 1:
        return "There is a single class, so there is nothing to learn."
    task = read_link(model).describe_task(classes)
    return f"Each tree {task}; its splits are by single columns and by hyperplanes in closed form."


def _list_changed(model: Any) -> list[tuple[str, str]]:
    """Return the parameters that are not at their defaults."""
    default = type(model)().get_params()
    return [
        (name, repr(value))
        for name, value in model.get_params().items()
        if repr(value) != repr(default.get(name))
    ]


def list_classes(labels: list[str], metrics: Metrics) -> list[dict[str, Any]]:
    """Return a row for each of the most frequent classes."""
    n_rows, n_predicted = metrics.confusion.sum(axis=1), metrics.confusion.sum(axis=0)
    return [
        {
            "label": labels[k],
            "n_rows": int(n_rows[k]),
            "n_predicted": int(n_predicted[k]),
            "precision": metrics.precision[k],
            "recall": metrics.recall[k],
            "f1": metrics.f1[k],
        }
        for k in choose_classes(metrics)
    ]


def choose_classes(metrics: Metrics) -> list[int]:
    """Return the classes that the tables show, in their own order."""
    n_rows = metrics.confusion.sum(axis=1)
    order = np.argsort(-n_rows, kind="stable")[:N_CLASSES]
    return sorted(order.tolist())


def describe_confusion(labels: list[str], metrics: Metrics) -> dict[str, Any]:
    """Return the confusion matrix of the classes shown; shades are fractions of its rows."""
    shown = choose_classes(metrics)
    count = metrics.confusion[np.ix_(shown, shown)]
    total = np.maximum(metrics.confusion.sum(axis=1)[shown], 1)[:, np.newaxis]
    shade = np.ceil(N_SHADES * count / total).astype(int)
    return {
        "labels": [labels[k] for k in shown],
        "cells": [
            [
                {
                    "count": int(count[i, j]),
                    "shade": int(shade[i, j]),
                    "kind": "right" if i == j else "wrong",
                }
                for j in range(len(shown))
            ]
            for i in range(len(shown))
        ],
    }


def describe_importances(model: Any) -> dict[str, Any]:
    """Return the most important features of all trees and by class, and pairs of columns."""
    importance = model.feature_importances_
    order = np.argsort(-importance, kind="stable")[:N_FEATURES]
    names = name_features(model)
    pairs = interactions(model, n_pairs=N_PAIRS)
    return {
        "n_features": len(importance),
        "about": _describe_measure(model),
        "rows": [
            {
                "name": names[j],
                "value": float(importance[j]),
                "width": 100 * float(importance[j]) / (float(importance.max()) or 1.0),
            }
            for j in order
        ],
        "strongest": _list_strongest(model, names),
        "pairs": [
            (str(first), str(second), int(n), float(strength))
            for first, second, n, strength in zip(
                pairs["feature_1"],
                pairs["feature_2"],
                pairs["n_splits"],
                pairs["strength"],
                strict=True,
            )
        ],
    }


def _describe_measure(model: Any) -> str:
    """Return in one sentence what importances measure."""
    if is_exact(model):
        lowered = "impurity" if read_link(model).name == VOTES else "loss"
        return (
            f"How much of the lowered {lowered} is due to each feature: the gain of a hyperplane "
            "is divided by its weights."
        )
    return (
        "How strongly the splits rely on each feature: its fraction of |weight| times standard "
        "deviation, weighted by the rows that reach a split and averaged over the trees."
    )


def _list_strongest(model: Any, names: Sequence[str]) -> list[tuple[str, list[tuple[str, float]]]]:
    """Return the five most important features of each class; two classes share their trees."""
    if len(getattr(model, "classes_", ())) < 3:
        return []
    by_class = model_view.sum_by_feature(
        class_importances(model), model.column_source_, len(names)
    )
    listed = []
    for k, label in enumerate(model.classes_[:N_CLASSES]):
        order = np.argsort(-by_class[k], kind="stable")[:5]
        listed.append((str(label), [(names[j], float(by_class[k, j])) for j in order]))
    return listed


def list_calibration(metrics: Metrics) -> list[dict[str, float]]:
    """Return the bins of predicted probabilities that hold rows."""
    reliability = metrics.reliability
    n_bins = len(reliability.n_rows)
    return [
        {
            "low": i / n_bins,
            "high": (i + 1) / n_bins,
            "count": int(reliability.n_rows[i]),
            "probability": float(reliability.probability[i]),
            "accuracy": float(reliability.accuracy[i]),
        }
        for i in range(n_bins)
        if reliability.n_rows[i]
    ]
