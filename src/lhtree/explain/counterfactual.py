"""The smallest change of a row that makes the model predict another class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lhtree.arrays import Floats
from lhtree.data.notices import warning_once
from lhtree.explain import reading
from lhtree.explain.cells import CellSearch
from lhtree.explain.question import Question, ask
from lhtree.explain.wander import Wanderer

MAX_STATES = 20_000  # polytopes visited for a proof
N_TRIALS = 20_000  # rows predicted in a search without proof


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """The nearest row that was found of another class.

    Parameters
    ----------
    found : bool
        Whether there is an answer.
    is_minimal : bool
        Whether it is proven that no smaller change has the same effect, or, if nothing
        was found, that no change has it; up to 1e-6 in standardised units.
    x : ndarray of shape (n_features,), frame of one row, or None
        The changed row in raw units, in the form in which it was given; a sparse one
        as an array.
    change : ndarray of shape (n_features,)
        What was added to each feature, in raw units; NaN for one that is no number.
    distance : float
        Euclidean length of the change in standardised units; infinite if none was found.
    original : object
        Label that the model predicts for the row as it was given.
    prediction : object
        Label that it predicts for `x`.
    feature_names : list of str
        Names of the features.
    message : str
        The answer in one sentence.
    """

    found: bool
    is_minimal: bool
    x: Any
    change: Floats
    distance: float
    original: Any
    prediction: Any
    feature_names: list[str]
    message: str

    def __str__(self) -> str:
        lines = [self.message]
        for j in np.argsort(-np.abs(np.nan_to_num(self.change)), kind="stable"):
            if self.change[j] != 0 and not np.isnan(self.change[j]):
                lines.append(f"  {self.feature_names[j]}: {self.change[j]:+.6g}")
        return "\n".join(lines)


@warning_once()
def nearest_counterfactual(
    model: Any,
    x: Any,
    *,
    target: Any = None,
    features: Iterable[Any] | None = None,
    ranges: Mapping[Any, Any] | None = None,
    integers: Iterable[Any] | None = None,
    start: Any = None,
    max_states: int = MAX_STATES,
    n_trials: int = N_TRIALS,
) -> Counterfactual:
    """Return the smallest change of a row that makes the model predict another class.

    Small is meant in the Euclidean sense in standardised units, those in which the
    trees compare. With one tree per class the answer is proven: polytopes in which the
    votes are linear are visited in the order of their distance. For forests, and where
    `max_states` is not enough, it is the best of a search. Either way `predict` has
    confirmed it.

    Parameters
    ----------
    model : LHTClassifier or LHForestClassifier
        A fitted model.
    x : array-like of shape (n_features,) or (1, n_features)
        The row.
    target : object, default=None
        Label of the class to reach; None takes any but the one now predicted.
    features : list of str or int, default=None
        Names or positions of the features that may change; None lets all numbers
        change. Categories and missing values stay as they are.
    ranges : dict of str or int to pair, default=None
        Least and largest value of a feature, in raw units; None for no limit.
    integers : list of str or int, default=None
        Features whose value must be an integer.
    start : array-like of shape (n_rows, n_features), default=None
        Rows from which a search without proof starts, such as near rows of other
        classes. It also starts across the first splits of some trees.
    max_states : int, default=20000
        Most polytopes to visit for a proof.
    n_trials : int, default=20000
        Most rows to predict in a search without proof.

    Returns
    -------
    Counterfactual
        The changed row, or the reason why there is none.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.explain import nearest_counterfactual
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = LHTClassifier(beta=0.8).fit(X, y)
    >>> answer = nearest_counterfactual(model, X.iloc[0], features=["proline", "alcohol"])
    >>> answer.found, answer.is_minimal, int(answer.original), int(answer.prediction)
    (True, True, 0, 1)
    >>> model.predict(answer.x).item()
    1
    """
    question = ask(model, x, target, features, ranges, integers)
    reading.check_number("max_states", max_states, 0, np.iinfo(np.int64).max)
    reading.check_number("n_trials", n_trials, 0, np.iinfo(np.int64).max)
    rows = _find_moves(question, start)
    if question.original in question.wanted:
        label = model.classes_[question.original]
        raise ValueError(f"target={target!r} is what the model predicts already ({label!r}).")
    if not question.wanted:
        return _answer(question, None, True, "The model knows one class only.")
    if not len(question.free):
        return _answer(question, None, True, "The row has no number that could change.")
    move, is_proven = None, False
    if can_be_proven(model):
        answer = CellSearch(question).run(max_states)
        move, is_proven = answer.move, answer.is_proven
    if move is None and not is_proven:
        move = Wanderer(question, n_trials).run(rows, _find_directions(question))
    return _answer(question, move, is_proven, "No change of class was found.")


def can_be_proven(model: Any) -> bool:
    """Whether the votes of a model are piecewise linear in few cells."""
    return bool(model._n_members == 1 and model.voting == "membership")


def _find_moves(question: Question, start: Any) -> Floats:
    """Return the moves to given rows."""
    forest, free = question.model.forest_, question.free
    if start is None:
        return np.empty((0, len(free)))
    z = reading.standardize(forest, question.row[np.newaxis])[0]
    rows = reading.standardize(forest, question.model.encode_rows(start))
    moves: Floats = np.nan_to_num(rows[:, free] - z[free])
    return moves


def _find_directions(question: Question) -> Floats:
    """Return the normals of the planes at the roots, both ways."""
    forest = question.model.forest_
    normal = np.zeros((len(forest), forest.n_features))
    for tree in forest:
        feature, weight, *_ = tree.terms(0)
        normal[tree.number, feature] = weight
    both: Floats = np.concatenate([normal, -normal])[:, question.free]
    return both


def _answer(
    question: Question, move: Floats | None, is_proven: bool, failure: str
) -> Counterfactual:
    model = question.model
    names = list(reading.find_feature_names(model))
    original = model.classes_[question.original]
    source = reading.find_source(model)
    change = np.full(len(names), np.nan)
    change[source[reading.find_numbers(model)]] = 0.0
    if move is None:
        hint = (
            "There is none." if is_proven else "A larger n_trials, or other start rows, may help."
        )
        return Counterfactual(
            False, is_proven, None, change, np.inf, original, None, names, f"{failure} {hint}"
        )
    x = question.make_row(move)
    code = reading.predict_encoded(model, reading.encode_row(model, x)[np.newaxis])[0]
    if code not in question.wanted:
        return _answer(question, None, False, failure)
    prediction = model.classes_[code]
    is_changed = move != 0
    raw = question.find_raw(move) - question.row[question.free]
    change[source[question.free[is_changed]]] = raw[is_changed]
    distance = float(np.linalg.norm(move))
    kind = "The smallest change" if is_proven else "The smallest change found"
    message = (
        f"{kind} from {original} to {prediction} has the length {distance:.4g} in "
        "standardised units."
    )
    x = x[0] if isinstance(x, np.ndarray) else x
    return Counterfactual(
        True, is_proven, x, change, distance, original, prediction, names, message
    )
