"""A fitted model as one self-contained HTML page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import lhtree
from lhtree.arrays import Ints
from lhtree.data.warn import warning_once
from lhtree.estimators import lookup
from lhtree.explain import arguments, model_view
from lhtree.explain.counterfactuals import can_be_proven
from lhtree.files import write_atomically
from lhtree.report import rows, summary, trees
from lhtree.report.metrics import Metrics, Predictions, compute_metrics
from lhtree.report.render import render

__all__ = ["write_report"]

MOST_COUNTED = 20_000  # rows in the distributions of splits


@warning_once()
def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    max_trees: int = 30,
    max_rows: int = 200,
) -> Path:
    """Write a page about a model and its predictions for some rows.

    The page shows how well the model predicts the rows, its trees split by split, the
    features it relies on, and what leads to its predictions for single rows. It is one HTML
    file for any current browser that loads nothing from anywhere.

    Parameters
    ----------
    model : LHTClassifier or LHForestClassifier
        A fitted model.
    X : array-like of shape (n_rows, n_features)
        Rows with the columns of the training data, preferably ones not used in training.
    y : array-like of shape (n_rows,)
        Their classes.
    path : str or path
        Where to write. An existing file is replaced once the new one is complete.
    title : str, default=None
        Heading of the page.
    max_trees : int, default=30
        How many trees to show, the first ones.
    max_rows : int, default=200
        How many rows to explain, taken at even steps; up to half of them are wrongly
        predicted rows. Metrics are over all rows.

    Returns
    -------
    pathlib.Path
        Where the page is. The page says what it does not show.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.report import write_report
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> with TemporaryDirectory() as folder:
    ...     path = write_report(
    ...         LHTClassifier().fit(X, y), X, y, f"{folder}/wine.html", max_rows=5
    ...     )
    ...     path.name, path.stat().st_size < 5_000_000
    ('wine.html', True)
    """
    lookup.check_is_forest(model, "write_report", "lhtree.explain has the numbers")
    max_trees = lookup.check_number("max_trees", max_trees, 1, np.iinfo(np.int64).max)
    max_rows = lookup.check_number("max_rows", max_rows, 1, np.iinfo(np.int64).max)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a string or None, got {title!r}.")
    file = _check_path(path)
    probability = model.predict_proba(X)
    labels = arguments.check_labels(model, y, len(probability))
    y_encoded, predicted = (
        np.searchsorted(model.classes_, each) for each in (labels, model.predict(X))
    )
    predictions = Predictions(y_encoded, predicted, probability)
    number = rows.choose_rows(y_encoded, predicted, max_rows)
    shown = list(model.forest_)[:max_trees]
    data = _collect_data(model, X, predictions, number, shown)
    metrics = compute_metrics(predictions)
    context = _collect_context(model, title, metrics, len(y_encoded), len(number), len(shown))
    write_atomically(file, render(context, data))
    return file


def _check_path(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written before the work starts."""
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"path={str(path)!r} is a folder; name a file in it.")
    if not file.parent.is_dir():
        raise FileNotFoundError(
            f"path={str(path)!r} lies in a folder that does not exist; make {file.parent} first."
        )
    return file


def _collect_data(
    model: Any, X: Any, predictions: Predictions, number: Ints, shown: list[Any]
) -> dict[str, Any]:
    """Return what the scripts of the page read."""
    counted = _choose_counted(len(predictions.y_encoded), number)
    Z = model_view.view_model(model).standardize(model.encode_rows(rows.take_filled(X, counted)))
    y_encoded, position = predictions.y_encoded[counted], np.searchsorted(counted, number)
    return {
        "classes": [str(label) for label in model.classes_],
        "columns": list(model.column_names_),
        "std": [trees.cut_digits(v) for v in model.forest_.column_std.tolist()],
        "is_shrunk": bool(getattr(model, "shrinkage_", 0.0)),
        "trees": [trees.describe_tree(model, tree, Z, y_encoded, position) for tree in shown],
        "rows": rows.describe_rows(model, X, predictions, number),
        "probability_note": "From predict_proba; computed from the votes of all classes.",
    }


def _choose_counted(n_rows: int, number: Ints) -> Ints:
    """Return the rows to count in distributions: all, or many and the explained ones."""
    if n_rows <= MOST_COUNTED:
        return np.arange(n_rows)
    return np.union1d((np.arange(MOST_COUNTED) * n_rows) // MOST_COUNTED, number)


def _collect_context(
    model: Any, title: str | None, metrics: Metrics, n_rows: int, n_explained: int, n_shown: int
) -> dict[str, Any]:
    """Return what the template of the page reads."""
    labels = [str(label) for label in model.classes_]
    return {
        "title": title or f"{type(model).__name__} on {n_rows:,} rows",
        "version": lhtree.__version__,
        "model": summary.describe_model(model),
        "metrics": metrics,
        "n_rows": n_rows,
        "n_classes": len(labels),
        "class_table": summary.list_classes(labels, metrics),
        "confusion": summary.describe_confusion(labels, metrics),
        "calibration": summary.list_calibration(metrics),
        "importances": summary.describe_importances(model),
        "not_shown": _list_not_shown(model, n_rows, n_explained, n_shown),
    }


def _list_not_shown(model: Any, n_rows: int, n_explained: int, n_shown: int) -> list[str]:
    """Return what the page does not show, one sentence each."""
    notes = []
    n_trees, n_columns = len(model.forest_), model.forest_.n_features
    if n_shown < n_trees:
        notes.append(f"Trees: the first {n_shown:,} of {n_trees:,} are shown.")
    if n_explained < n_rows:
        notes.append(
            f"Rows: {n_explained:,} of {n_rows:,} are explained, taken at even steps; up to half "
            "of them are wrongly predicted rows. Metrics are over all rows."
        )
    if not can_be_proven(model):
        notes.append(
            "Nearest counterfactuals come from a short search; "
            "lhtree.explain.nearest_counterfactual searches longer."
        )
    if n_rows > MOST_COUNTED:
        notes.append(
            f"Distributions of splits: {MOST_COUNTED:,} of the {n_rows:,} rows, at even steps."
        )
    if n_columns > trees.N_TERMS:
        notes.append(
            f"Weights, slopes and contributions: the {trees.N_TERMS} strongest of {n_columns:,}."
        )
    if model.n_features_in_ > summary.N_FEATURES:
        notes.append(f"Importances: the {summary.N_FEATURES} largest of {model.n_features_in_:,}.")
    if model.n_classes_ > summary.N_CLASSES:
        notes.append(
            f"Tables of classes: the {summary.N_CLASSES} most frequent of {model.n_classes_:,}."
        )
    return notes
