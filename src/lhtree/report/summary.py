"""What the report says about the model as a whole, as plain data for its template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lhtree.arrays import Floats
from lhtree.data.reading import name_features
from lhtree.explain import class_importances, interactions, model_view
from lhtree.report.metrics import Metrics

N_CLASSES = 40  # in the tables of classes
N_FEATURES = 30  # in the table of importances
N_PAIRS = 15  # in the table of interactions
N_SHADES = 5  # of cells of the confusion matrix


def describe_model(model: Any) -> dict[str, Any]:
    """Return the size and the parameters of the model."""
    forest = model.forest_
    return {
        "kind": type(model).__name__,
        "n_trees": len(forest),
        "n_estimators": len(forest) // model.voting_.n_trees_per_estimator,
        "n_splits": int(np.count_nonzero(forest.left >= 0)),
        "n_leaves": model.get_n_leaves(),
        "depth": model.get_depth(),
        "oob": getattr(model, "oob_score_", None),
        "parameters": _list_changed(model),
    }


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
    by_class = model_view.sum_by_feature(
        class_importances(model), model.column_source_, len(importance)
    )
    order = np.argsort(-importance, kind="stable")[:N_FEATURES]
    names = name_features(model)
    pairs = interactions(model, n_pairs=N_PAIRS)
    return {
        "n_features": len(importance),
        "rows": [
            {
                "name": names[j],
                "value": float(importance[j]),
                "width": 100 * float(importance[j]) / (float(importance.max()) or 1.0),
            }
            for j in order
        ],
        "strongest": _list_strongest(model, by_class, names),
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


def _list_strongest(
    model: Any, by_class: Floats, names: Sequence[str]
) -> list[tuple[str, list[tuple[str, float]]]]:
    """Return the five most important features of each class."""
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
