"""The public function: state the problem, search, report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lhtree.arrays import Floats
from lhtree.data.reading import name_features
from lhtree.data.warn import warning_once
from lhtree.estimators import lookup
from lhtree.explain import model_view
from lhtree.explain.counterfactuals.cell_search import CellSearch
from lhtree.explain.counterfactuals.local_search import LocalSearch
from lhtree.explain.counterfactuals.problem import Problem, state_problem
from lhtree.model.link import is_exact

MAX_STATES = 20_000  # polytopes visited for a proof
N_TRIALS = 20_000  # rows predicted in a search without proof
IMPOSSIBLE = "No change of class is possible"
NOT_FOUND = "No change of class was found; a larger n_trials, or other start rows, may help."


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """The nearest row found for which the model predicts another class.

    Parameters
    ----------
    found : bool
        Whether there is such a row.
    is_minimal : bool
        Whether it is proven that no smaller change has the same effect, or, if none was
        found, that no change has it. Proofs hold up to 1e-6 in standardised units.
    x : ndarray of shape (n_features,), frame of one row, or None
        The changed row in raw units, of the same type as the row passed; a sparse row
        becomes an array.
    change : ndarray of shape (n_features,)
        What was added to each feature, in raw units; NaN for a feature that is not a
        number.
    distance : float
        Euclidean length of the change in standardised units; infinite if none was found.
    original : object
        Label that the model predicts for the original row.
    prediction : object
        Label that it predicts for `x`.
    feature_names : list of str
        Names of the features.
    message : str
        The result in one sentence.
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
    desired_class: Any = None,
    features: Iterable[Any] | None = None,
    ranges: Mapping[Any, Any] | None = None,
    integers: Iterable[Any] | None = None,
    start: Any = None,
    max_states: int = MAX_STATES,
    n_trials: int = N_TRIALS,
) -> Counterfactual:
    """Return the smallest change of a row that makes the model predict another class.

    The size of a change is its Euclidean length in standardised units, those in which the
    trees compare (for boosted models, the powers of two next to the standard deviations).
    With one tree per class the result is proven: the search visits the polytopes in which
    the votes are linear in the order of their distance. For forests and boosted models,
    and where `max_states` is too small, it is the best that a local search finds. Either
    way `predict` has confirmed it.

    Parameters
    ----------
    model : classifier of this package
        A fitted model.
    x : array-like of shape (n_features,) or (1, n_features)
        The row.
    desired_class : object, default=None
        Label of the class to reach; None takes any class but the one predicted for `x`.
    features : list of str or int, default=None
        Names or positions of the features that may change; None lets all numbers
        change. Categories and missing values stay as they are.
    ranges : dict of str or int to pair, default=None
        Least and largest value of a feature, in raw units; None for no limit.
    integers : list of str or int, default=None
        Features whose value must be an integer.
    start : array-like of shape (n_rows, n_features), default=None
        Rows from which the local search starts, such as near rows of other classes. It
        also starts across the first splits of some trees.
    max_states : int, default=20000
        Most polytopes to visit for a proof.
    n_trials : int, default=20000
        Most rows to predict in the local search.

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
    >>> result = nearest_counterfactual(model, X.iloc[0], features=["proline", "alcohol"])
    >>> result.found, result.is_minimal, int(result.original), int(result.prediction)
    (True, True, 0, 1)
    >>> model.predict(result.x).item()
    1
    """
    problem = state_problem(model, x, desired_class, features, ranges, integers)
    lookup.check_number("max_states", max_states, 0, np.iinfo(np.int64).max)
    lookup.check_number("n_trials", n_trials, 0, np.iinfo(np.int64).max)
    moves = _compute_moves(problem, start)
    if problem.original in problem.desired:
        label = model.classes_[problem.original]
        raise ValueError(
            f"desired_class={desired_class!r} is what the model predicts already ({label!r}); "
            "pass another class."
        )
    if not problem.desired:
        return _report_failure(problem, True, f"{IMPOSSIBLE}: the model has only one class.")
    if not len(problem.free):
        return _report_failure(problem, True, f"{IMPOSSIBLE}: the row has no number to change.")
    move, is_proven = None, False
    if can_be_proven(model):
        result = CellSearch(problem).run(max_states)
        move, is_proven = result.move, result.is_proven
    if move is None and not is_proven:
        move = LocalSearch(problem, n_trials).run(moves, _list_root_normals(problem))
    return _report(problem, move, is_proven)


def can_be_proven(model: Any) -> bool:
    """Whether :func:`nearest_counterfactual` can prove its results for a model.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.

    Returns
    -------
    bool
        True for one tree per class, where votes are piecewise linear in few cells.
    """
    return model_view.view_model(model).can_be_proven


def _compute_moves(problem: Problem, start: Any) -> Floats:
    """Return the moves to the rows from which to start."""
    view, free = problem.view, problem.free
    if start is None:
        return np.empty((0, len(free)))
    z = view.standardize(problem.row[np.newaxis])[0]
    rows = view.standardize(problem.model.encode_rows(start))
    moves: Floats = np.nan_to_num(rows[:, free] - z[free])
    return moves


def _list_root_normals(problem: Problem) -> Floats:
    """Return the normals of the hyperplanes at the roots, both ways.

    A root that is a leaf has slopes in forests of classes, which lead as well.
    """
    trees = problem.model.forest_
    root = trees.tree_start[:-1]
    if is_exact(problem.model):  # whose leaves are constant
        root = root[trees.left[root] >= 0]
    z = problem.view.standardize(problem.row[np.newaxis])[0]
    normal, _ = problem.view.compute_functions(root, z)
    both: Floats = np.concatenate([normal, -normal])[:, problem.free]
    return both


def _report(problem: Problem, move: Floats | None, is_proven: bool) -> Counterfactual:
    """Return the row after a move, once the model has confirmed it."""
    model = problem.model
    if move is None:
        message = f"{IMPOSSIBLE}." if is_proven else NOT_FOUND
        return _report_failure(problem, is_proven, message)
    x = problem.make_row(move)
    k = problem.view.predict_encoded(model_view.encode_row(model, x)[np.newaxis])[0]
    if k not in problem.desired:
        return _report_failure(problem, False, NOT_FOUND)
    original, prediction = model.classes_[problem.original], model.classes_[k]
    is_changed = move != 0
    raw = problem.compute_raw(move) - problem.row[problem.free]
    change = _make_no_change(problem)
    change[model.column_source_[problem.free[is_changed]]] = raw[is_changed]
    distance = float(np.linalg.norm(move))
    kind = "The smallest change" if is_proven else "The smallest change found"
    return Counterfactual(
        found=True,
        is_minimal=is_proven,
        x=x[0] if isinstance(x, np.ndarray) else x,
        change=change,
        distance=distance,
        original=original,
        prediction=prediction,
        feature_names=list(name_features(model)),
        message=f"{kind} that turns {original} into {prediction} has length {distance:.4g} "
        "(standardised units).",
    )


def _report_failure(problem: Problem, is_proven: bool, message: str) -> Counterfactual:
    """Return that no row was found, and why."""
    model = problem.model
    return Counterfactual(
        found=False,
        is_minimal=is_proven,
        x=None,
        change=_make_no_change(problem),
        distance=np.inf,
        original=model.classes_[problem.original],
        prediction=None,
        feature_names=list(name_features(model)),
        message=message,
    )


def _make_no_change(problem: Problem) -> Floats:
    """Return a change of 0 for each numeric feature, NaN for all others."""
    model = problem.model
    change = np.full(model.n_features_in_, np.nan)
    change[model.column_source_[problem.view.is_number]] = 0.0
    return change
