"""What leads to the predictions for some rows, as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from lhtree.arrays import Floats, Ints
from lhtree.data.frames import take_rows
from lhtree.estimators import lookup
from lhtree.explain import Explanation, explain_rows, model_view, nearest_counterfactual
from lhtree.explain.counterfactuals import can_be_proven
from lhtree.explain.row_text import describe_values
from lhtree.model.link import is_exact
from lhtree.report.metrics import Predictions
from lhtree.report.numbers import NumberPredictions
from lhtree.report.trees import cut_digits

N_TERMS = 10  # contributions per row and class, and changes of a counterfactual
N_STARTS = 8  # near rows of other classes, from which the search for a counterfactual starts
MAX_STATES = 2_000  # polytopes visited per row to prove a counterfactual
N_EVALUATIONS = 400_000  # trees evaluated per row where nothing is proven
N_BOOSTED_EVALUATIONS = 50_000  # the same of boosted models, whose trees are many


def choose_rows(y_encoded: Ints, predicted: Ints, max_rows: int) -> Ints:
    """Return the rows to explain, at even steps: up to half of them predicted wrongly."""
    if len(y_encoded) <= max_rows:
        return np.arange(len(y_encoded))
    is_right = predicted == y_encoded
    wrong, right = np.flatnonzero(~is_right), np.flatnonzero(is_right)
    n_wrong = min(len(wrong), max(max_rows // 2, max_rows - len(right)))
    chosen = [_spread(wrong, n_wrong), _spread(right, max_rows - n_wrong)]
    return np.sort(np.concatenate(chosen))


def _spread(position: Ints, n: int) -> Ints:
    """Return `n` of the positions at even steps."""
    return position[(np.arange(n) * len(position)) // max(n, 1)]


def describe_rows(
    model: Any, X: Any, predictions: Predictions | NumberPredictions, number: Ints, digits: int
) -> list[dict[str, Any]]:
    """Return the chosen rows with contributions and counterfactuals.

    Parameters
    ----------
    model : classifier or regressor
        A fitted model.
    X : array-like
        All rows.
    predictions : Predictions or NumberPredictions
        What is true and predicted of all rows.
    number : ndarray of int
        Positions of the rows to describe.
    digits : int
        Decimals of contributions, which are whole multiples of ``10**-digits``, so that they
        add up in print.
    """
    explanation = explain_rows(model, take_filled(X, number))
    total = explanation.by_feature()
    starts: list[Ints] = []
    if isinstance(predictions, Predictions):
        table, predicted = np.asarray(explanation.table), predictions.predicted[number]
        starts = _choose_starts(model, table, predicted)
    rows = []
    for i, k in enumerate(number):
        why = [_describe_score(total, i, output, digits) for output in range(len(total.base))]
        named = sorted({feature for each in why for feature in each[1]})
        text = describe_values(explanation, i)
        row = {
            "number": int(k),
            **_describe_prediction(predictions, int(k)),
            "values": {j: f"{total.column_names[j]} = {text[j]}" for j in named},
            "why": why,
        }
        if starts:
            x, start = take_filled(X, number[i : i + 1]), take_filled(X, number[starts[i]])
            row["counterfactual"] = _describe_counterfactual(model, x, start, text)
        rows.append(row)
    return rows


def _describe_prediction(predictions: Predictions | NumberPredictions, k: int) -> dict[str, Any]:
    if isinstance(predictions, NumberPredictions):
        true, predicted = float(predictions.true[k]), float(predictions.predicted[k])
        return {"true": cut_digits(true, 7), "predicted": cut_digits(predicted, 7)}
    return {
        "true": int(predictions.y_encoded[k]),
        "predicted": int(predictions.predicted[k]),
        "proba": [round(value, 4) for value in predictions.probability[k].tolist()],
    }


def take_filled(X: Any, number: Ints) -> Any:
    """Return some rows of a table of the same kind; those of a sparse table as an array."""
    rows = take_rows(X, number)
    return rows.toarray() if issparse(rows) else rows


def _describe_score(total: Explanation, row: int, output: int, digits: int) -> list[Any]:
    """Return base, features, what they add, number and sum of the others, and the score.

    All are whole multiples of ``10**-digits`` and add up exactly.
    """
    unit = 10**digits
    contribution = total.contribution[row, output]
    order = np.argsort(-np.abs(contribution), kind="stable")
    order = order[np.abs(contribution[order]) >= 0.5 / unit]
    shown, others = order[:N_TERMS], order[N_TERMS:]
    base = round(unit * float(total.base[output]))
    score = round(unit * float(total.score[row, output]))
    parts = np.append(contribution[shown], contribution.sum() - contribution[shown].sum())
    whole = round_to_sum(unit * parts, score - base)
    n_other = len(contribution) - len(shown) if whole[-1] or len(others) else 0
    return [base, shown.tolist(), whole[:-1], n_other, whole[-1], score]


def round_to_sum(value: Floats, total: int) -> list[int]:
    """Round numbers so that they add up to `total`, which is close to their sum.

    If `total` is their rounded sum, each changes by less than one: those with the largest
    remainders are rounded up. Any further difference goes to the last one.
    """
    whole = np.floor(value).astype(np.int64)
    n_up = total - int(whole.sum())
    if 0 <= n_up <= len(whole):
        whole[np.argsort(whole - value, kind="stable")[:n_up]] += 1
    else:
        whole[-1] += n_up
    return [int(each) for each in whole]


def _choose_starts(model: Any, table: NDArray[Any], predicted: Ints) -> list[Ints]:
    """Return for each row the nearest rows that are predicted as another class."""
    Z = np.nan_to_num(model_view.view_model(model).standardize(table))
    square = np.square(Z).sum(axis=1)
    distance = square[:, np.newaxis] - 2 * Z @ Z.T + square
    distance[predicted[:, np.newaxis] == predicted] = np.inf
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :N_STARTS]
    return [near[np.isfinite(distance[i, near])] for i, near in enumerate(nearest)]


def _describe_counterfactual(model: Any, x: Any, start: Any, text: list[str]) -> dict[str, Any]:
    n_evaluations = N_BOOSTED_EVALUATIONS if is_exact(model) else N_EVALUATIONS
    nearest = nearest_counterfactual(
        model,
        x,
        start=start if len(start) else None,
        max_states=MAX_STATES if can_be_proven(model) else 0,
        n_trials=max(n_evaluations // max(len(model.forest_), 1), 200),
    )
    if not nearest.found:
        return {"predicted": None, "message": nearest.message}
    order = _sort_changes(model, nearest.change)
    changes = [
        [nearest.feature_names[j], text[j], f"{float(text[j]) + nearest.change[j]:.5g}"]
        for j in order[:N_TERMS]
    ]
    return {
        "predicted": lookup.look_up_class(model, nearest.prediction),
        "message": nearest.message,
        "changes": changes,
        "n_other": max(len(order) - N_TERMS, 0),
    }


def _sort_changes(model: Any, change: Floats) -> NDArray[np.int64]:
    """Return the changed features, the largest change in standardised units first."""
    std = np.ones(len(change))
    std[model.column_source_] = model_view.view_model(model).column_std
    size = np.abs(np.nan_to_num(change)) / std
    order = np.argsort(-size, kind="stable")
    return order[size[order] > 0]
