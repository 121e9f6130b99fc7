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
from lhtree.estimators.params import count_threads
from lhtree.explain import arguments, model_view
from lhtree.explain.model_view import ModelView
from lhtree.explain.wording import choose_decimals, make_vocabulary
from lhtree.files import write_atomically
from lhtree.model.link import VOTES, is_exact, read_link
from lhtree.report import numbers, rows, summary, trees
from lhtree.report.boosted_trees import describe_boosted_tree
from lhtree.report.metrics import Predictions, compute_metrics
from lhtree.report.numbers import NumberPredictions
from lhtree.report.render import render
from lhtree.report.share_trees import describe_share_tree

__all__ = ["write_report"]

MOST_COUNTED = 20_000  # rows at the splits of trees
VOTE_DIGITS = 4  # decimals of contributions to votes
MOST_DIGITS = 9  # of contributions to any score


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
    model : classifier or regressor of this package
        A fitted model.
    X : array-like of shape (n_rows, n_features)
        Rows with the columns of the training data, preferably ones not used in training.
    y : array-like of shape (n_rows,)
        Their classes, or numbers.
    path : str or path
        Where to write. An existing file is replaced once the new one is complete.
    title : str, default=None
        Heading of the page.
    max_trees : int, default=30
        How many trees to show, the first ones.
    max_rows : int, default=200
        How many rows to explain, taken at even steps; up to half of them are wrongly
        predicted rows, or of predicted numbers a quarter those with the largest errors.
        Metrics are over all rows.

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
    view = model_view.view_model(model)
    max_trees = lookup.check_number("max_trees", max_trees, 1, np.iinfo(np.int64).max)
    max_rows = lookup.check_number("max_rows", max_rows, 1, np.iinfo(np.int64).max)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a string or None, got {title!r}.")
    file = _check_path(path)
    predictions = _predict(model, X, y)
    number = _choose_rows(predictions, max_rows)
    shown = list(model.forest_)[:max_trees]
    data = _collect_data(view, X, predictions, number, shown)
    n_rows = predictions.n_rows
    context = {
        "title": title or f"{type(model).__name__} on {n_rows:,} rows",
        "version": lhtree.__version__,
        "n_rows": n_rows,
        "model": summary.describe_model(model),
        "importances": summary.describe_importances(model),
        "learning": numbers.draw_learning(model),
        "not_shown": _list_not_shown(view, n_rows, len(number), len(shown)),
        **_describe_quality(view, predictions),
    }
    write_atomically(file, render(context, data))
    return file


def _predict(model: Any, X: Any, y: Any) -> Predictions | NumberPredictions:
    """Return what is true and predicted of all rows."""
    if not hasattr(model, "classes_"):
        predicted = model.predict(X)
        if predicted.ndim > 1:  # several numbers: the one in the middle
            predicted = predicted[:, predicted.shape[1] // 2]
        return NumberPredictions(arguments.check_targets(model, y, len(predicted)), predicted)
    probability = model.predict_proba(X)
    labels = arguments.check_labels(model, y, len(probability))
    y_encoded, predicted = (
        np.searchsorted(model.classes_, each) for each in (labels, model.predict(X))
    )
    return Predictions(y_encoded, predicted, probability)


def _choose_rows(predictions: Predictions | NumberPredictions, max_rows: int) -> Ints:
    if isinstance(predictions, NumberPredictions):
        return numbers.choose_number_rows(predictions, max_rows)
    return rows.choose_rows(predictions.y_encoded, predictions.predicted, max_rows)


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
    view: ModelView,
    X: Any,
    predictions: Predictions | NumberPredictions,
    number: Ints,
    shown: list[Any],
) -> dict[str, Any]:
    """Return what the scripts of the page read."""
    model = view.model
    digits = _choose_digits(view, X, number)
    return {
        "kind": _name_kind(model),
        "has_votes": _has_votes(model),
        "classes": [] if view.classes is None else [str(label) for label in view.classes],
        "outputs": list(view.output_names),
        "start": view.start_name,
        "score": view.score_name,
        "digits": digits,
        "columns": list(model.column_names_),
        "std": [trees.cut_digits(v) for v in view.column_std.tolist()],
        "is_shrunk": bool(getattr(model, "shrinkage_", 0.0)),
        "trees": _describe_trees(view, X, predictions, number, shown),
        "rows": rows.describe_rows(model, X, predictions, number, digits),
        "probability_note": _describe_probability(view),
    }


def _name_kind(model: Any) -> str:
    """Return what nodes say: fractions of a class, what they add, or a mean of numbers."""
    if not is_exact(model):
        return "votes"
    if _has_votes(model):
        return "shares"
    return "averaged" if read_link(model).is_averaged else "boosted"


def _has_votes(model: Any) -> bool:
    """Return whether the scores of a model are votes for classes."""
    return not is_exact(model) or read_link(model).name == VOTES


def _choose_digits(view: ModelView, X: Any, number: Ints) -> int:
    """Return how many decimals contributions have: four of votes, else five digits."""
    if _has_votes(view.model):
        return VOTE_DIGITS
    scores = view.explain(view.model.encode_rows(rows.take_filled(X, number)))
    shown = [*np.abs(scores.score).max(axis=0).tolist(), *scores.base.tolist()]
    return choose_decimals(shown, VOTE_DIGITS + 1, most=MOST_DIGITS)


def _describe_trees(
    view: ModelView,
    X: Any,
    predictions: Predictions | NumberPredictions,
    number: Ints,
    shown: list[Any],
) -> list[dict[str, Any]]:
    """Return the trees with the rows that pass their nodes."""
    model = view.model
    counted = _choose_counted(predictions.n_rows, number)
    position = np.searchsorted(counted, number)
    table = model.encode_rows(rows.take_filled(X, counted))
    if isinstance(predictions, Predictions) and not is_exact(model):
        Z, y_encoded = view.standardize(table), predictions.y_encoded[counted]
        return [trees.describe_tree(model, tree, Z, y_encoded, position) for tree in shown]
    words = make_vocabulary(model, "raw")
    leaf = model.forest_.apply(np.ascontiguousarray(table), n_threads=count_threads(model.n_jobs))
    if isinstance(predictions, Predictions) and _has_votes(model):
        Z, y_encoded = view.standardize(table), predictions.y_encoded[counted]
        return [
            describe_share_tree(
                view, tree, words, Z, y_encoded == view.get_class(tree), leaf[:, tree.number],
                position,
            )
            for tree in shown
        ]  # fmt: skip
    return [
        describe_boosted_tree(tree, words, view.column_std, leaf[:, tree.number], position)
        for tree in shown
    ]


def _describe_probability(view: ModelView) -> str:
    """Return how probabilities follow from scores."""
    if _has_votes(view.model):
        return "From predict_proba; computed from the votes of all classes."
    if view.score_name == "log-odds":
        return "From predict_proba: the logistic function of the log-odds."
    return "From predict_proba: the softmax of the scores."


def _choose_counted(n_rows: int, number: Ints) -> Ints:
    """Return the rows to count in distributions: all, or many and the explained ones."""
    if n_rows <= MOST_COUNTED:
        return np.arange(n_rows)
    return np.union1d((np.arange(MOST_COUNTED) * n_rows) // MOST_COUNTED, number)


def _describe_quality(
    view: ModelView, predictions: Predictions | NumberPredictions
) -> dict[str, Any]:
    """Return what the template says of the predictions."""
    if isinstance(predictions, NumberPredictions):
        return {
            "summary_page": "numbers.html",
            "n_classes": 0,
            "metrics": numbers.compute_number_metrics(predictions),
            "predicted": numbers.draw_predictions(predictions),
            "residuals": numbers.draw_residuals(predictions),
        }
    labels = [] if view.classes is None else [str(label) for label in view.classes]
    metrics = compute_metrics(predictions)
    return {
        "summary_page": "classes.html",
        "n_classes": len(labels),
        "metrics": metrics,
        "class_table": summary.list_classes(labels, metrics),
        "confusion": summary.describe_confusion(labels, metrics),
        "calibration": summary.list_calibration(metrics),
    }


def _list_not_shown(view: ModelView, n_rows: int, n_explained: int, n_shown: int) -> list[str]:
    """Return what the page does not show, one sentence each."""
    notes = []
    model = view.model
    n_trees, n_columns = len(model.forest_), len(view.is_number)
    n_classes = 0 if view.classes is None else len(view.classes)
    if n_shown < n_trees:
        notes.append(f"Trees: the first {n_shown:,} of {n_trees:,} are shown.")
    if n_explained < n_rows:
        special = "a quarter of them are those with the largest errors"
        if n_classes:
            special = "up to half of them are wrongly predicted rows"
        notes.append(
            f"Rows: {n_explained:,} of {n_rows:,} are explained, taken at even steps; {special}. "
            "Metrics are over all rows."
        )
    if n_classes and not view.can_be_proven:
        notes.append(
            "Nearest counterfactuals come from a short search; "
            "lhtree.explain.nearest_counterfactual searches longer."
        )
    if n_rows > MOST_COUNTED:
        notes.append(
            f"Rows at the splits of trees: {MOST_COUNTED:,} of the {n_rows:,} rows, at even steps."
        )
    if n_columns > trees.N_TERMS:
        notes.append(
            f"Weights, slopes and contributions: the {trees.N_TERMS} strongest of {n_columns:,}."
        )
    if model.n_features_in_ > summary.N_FEATURES:
        notes.append(f"Importances: the {summary.N_FEATURES} largest of {model.n_features_in_:,}.")
    if n_classes > summary.N_CLASSES:
        notes.append(f"Tables of classes: the {summary.N_CLASSES} most frequent of {n_classes:,}.")
    return notes
