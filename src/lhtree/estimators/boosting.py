"""Gradient boosting on trees whose splits are single columns or hyperplanes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from lhtree.data import sparse
from lhtree.data.reading import read_rows
from lhtree.data.table import encode
from lhtree.data.validation import check_dates, check_present
from lhtree.data.weights import (
    check_range,
    compute_class_weight,
    resolve_sample_weight,
    to_units,
)
from lhtree.estimators.base import TreeEstimator, restored_on_error, with_callbacks
from lhtree.estimators.boosting_params import BoostingParams
from lhtree.estimators.docstrings import describe_boosting
from lhtree.estimators.params import count_threads
from lhtree.training.boosting import (
    TargetScale,
    Weights,
    boost,
    encode_rows,
    learn_rows,
    make_rows,
    place_classes,
    place_numbers,
)
from lhtree.training.progress import Progress

MOST_CLASSES = 2**16  # of which the core takes scores


class Part(NamedTuple):
    """Some rows of a fit, of positive weight, with their targets as numbers."""

    X: Any
    y: Any
    weight: Any  # None: every row counts once

    def take(self, position: Any) -> Part:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[position]
        return Part(self.X[position], self.y[position], weight)


class BoostingEstimator(TreeEstimator):
    """Base class: reads rows, holds out some of them for validation, boosts, and keeps the model.

    Parameters
    ----------
    *args, **kwargs : object
        Parameters of the estimator.
    """

    LOSSES: tuple[str, ...]

    @with_callbacks
    def fit(self, X, y, sample_weight=None, *, X_val=None, y_val=None, sample_weight_val=None):
        """Grow the trees, one after the other.

        Parameters
        ----------
        X : array-like, frame or sparse array of shape (n_samples, n_features)
            Training rows: numbers, NaN for missing values, and categories (see
            `categorical_features`). Frames are those of pandas, polars and pyarrow.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A row of integer weight w counts as w copies of it, a row of
            weight 0 as absent. If any weight is not an integer, the positive weights are
            first scaled to mean one.
        X_val : array-like, frame or sparse array of shape (n_val, n_features), default=None
            Validation rows for early stopping; None takes a part of the training rows.
        y_val : array-like of shape (n_val,), default=None
            Targets of the validation rows.
        sample_weight_val : array-like of shape (n_val,), default=None
            Weights of the validation rows.

        Returns
        -------
        object
            The fitted estimator.
        """
        params = BoostingParams.read(self)
        progress = Progress(self, params.n_estimators, is_verbose=bool(params.verbose))
        with restored_on_error(self):
            X, y, weight = self._read_training(
                X,
                y,
                sample_weight,
                params,
                learns_columns=True,
                has_codes=True,
                y_numeric=self._is_regressor,
            )
            training = self._encode_targets(keep_positive(Part(X, y, weight)), params)
            validation = self._read_validation(X_val, y_val, sample_weight_val)
            seed = params.draw_seed()
            has_validation = validation is not None
            stops = params.stops_early(len(training.y), has_validation=has_validation)
            held_out = None
            if validation is None and stops:
                held_out = self._hold_out(training, params, seed)
                stops = held_out is not None
            self._boost(training, held_out, validation, params, seed, stops_early=stops)
        progress.end()
        return self

    def _read_validation(self, X, y, sample_weight):
        """Return the validation rows of the caller, None if there are none."""
        if X is None and y is None:
            if sample_weight is not None:
                raise ValueError("sample_weight_val needs X_val and y_val; give them, too.")
            return None
        if X is None or y is None:
            given, absent = ("y_val", "X_val") if X is None else ("X_val", "y_val")
            raise ValueError(f"{given} needs {absent}; give both or none.")
        y = self._read_validation_targets(y)
        try:
            rows = read_rows(self, X)
        except ValueError as error:
            raise ValueError(f"X_val does not fit: {error}") from error
        if rows.shape[0] != len(y):
            raise ValueError(
                f"y_val must have one entry per row of X_val, {rows.shape[0]}, got {len(y)}."
            )
        weight = resolve_sample_weight(sample_weight, len(y), "sample_weight_val", "X_val")
        return self._encode_validation(keep_positive(Part(rows, y, weight)))

    def _read_validation_targets(self, y):
        """Return validation targets as a list of numbers or labels."""
        check_present("y_val", y)
        try:
            y = column_or_1d(y)
        except ValueError as error:
            raise ValueError(f"y_val must have one entry per row: {error}") from error
        if not self._is_regressor:
            return y
        check_dates("y_val", y)
        try:
            return np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y_val must be numbers: {error}.") from error

    def _hold_out(self, part, params, seed):
        """Return flags of the rows held out for validation, None if there are none."""
        if len(part.y) < 2:
            raise ValueError(
                "early_stopping=True needs at least 2 rows, one of them for validation, got "
                f"{len(part.y)}; give more rows or set early_stopping=False."
            )
        if math.ceil(len(part.y) * params.validation_fraction) >= len(part.y):
            raise ValueError(
                f"validation_fraction={params.validation_fraction!r} leaves none of the "
                f"{len(part.y)} rows for training; lower it."
            )
        position = np.arange(len(part.y))
        kept, held_out = train_test_split(
            position,
            test_size=params.validation_fraction,
            random_state=seed,
            stratify=self._stratify(part, params.validation_fraction),
        )
        is_held_out = np.zeros(len(part.y), dtype=np.uint8)
        is_held_out[held_out] = 1
        is_held_out[self._list_missed(part.y, kept, held_out)] = 0
        return is_held_out if is_held_out.any() else None

    def _list_missed(self, y, kept, held_out):
        """Return held-out rows that the training rows cannot do without."""
        return held_out[:0]

    def _boost(self, training, held_out, validation, params, seed, *, stops_early):
        """Encode the rows, add the rounds and keep the model."""
        weights = Weights(*to_units(training.weight))
        n_codes = self.columns_.count_codes()
        plan = params.resolve(
            n_numbers=int(np.count_nonzero(n_codes == 0)),
            n_rows=len(training.y),
            weights=weights,
            seed=seed,
            patience=params.n_iter_no_change if stops_early else 0,
        )
        wants_z = plan.n_hyperplanes > 0
        n_threads = params.n_threads
        columns, encoded = learn_rows(
            training.X, weights.values, held_out, n_codes, wants_z=wants_z, n_threads=n_threads
        )
        if validation is None:
            validation = training.take(np.empty(0, dtype=np.intp))
        other = encode_rows(
            to_kind(validation.X, training.X), columns, wants_z=wants_z, n_threads=n_threads
        )
        other_weights = Weights(*to_units(validation.weight, "sample_weight_val"))
        y, y_other, scale = self._place_targets(training.y, weights, held_out, validation.y)
        is_certain = scale is None  # a single class: nothing to learn
        if is_certain:
            plan = replace(plan, n_rounds=0)
            scale = TargetScale(0, 0.0, np.zeros(1, dtype=np.int64))
        rows = make_rows(encoded, y, weights, scale, held_out)
        other_rows = make_rows(other, y_other, other_weights, scale)
        self.forest_, losses = boost(
            columns,
            rows,
            other_rows,
            loss=params.loss,
            plan=plan,
            scale=scale,
            n_threads=n_threads,
        )
        self.n_iter_ = len(self.forest_)
        factor = 0.0 if is_certain else -1.0
        self.train_score_, self.validation_score_ = (factor * each + 0.0 for each in losses)

    def _score_rows(self, X):
        """Return the raw scores of rows in any form: a list, or one column per class."""
        rows = read_rows(self, X)
        score = self.forest_.score(rows, n_threads=count_threads(self.n_jobs))
        return score if score.shape[1] > 1 else score[:, 0]


def to_kind(X: Any, like: Any) -> Any:
    """Return rows as an array if `like` is one, else as a sparse one."""
    if isinstance(like, np.ndarray):
        return X.toarray() if issparse(X) else X
    return X if issparse(X) else sparse.to_rows(X)


def keep_positive(part: Part) -> Part:
    """Return the rows of positive weight."""
    if part.weight is None or part.weight.all():
        return part
    kept = part.take(np.flatnonzero(part.weight))
    return kept._replace(weight=None) if np.all(kept.weight == 1) else kept


@describe_boosting(
    loss=""""squared_error"
    What the trees lower."""
)
class LHBoostRegressor(RegressorMixin, BoostingEstimator):
    """Gradient boosting for numbers, with splits by single columns and by hyperplanes.

    Each tree is grown on the gradients that the trees before it left. A node tries all its
    single columns, and hyperplanes whose weights are the shrunken least squares of the
    gradient on some of its columns, in closed form. All sums are exact integers: the model
    does not depend on the order of rows or the number of threads.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    LHBoostClassifier : Boosting for classes.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lhtree import LHBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LHBoostRegressor(n_estimators=50).fit(X, y)
    >>> model.predict(X[:2]).shape
    (2,)
    """

    LOSSES = ("squared_error",)
    _is_regressor = True

    def __init__(
        self,
        loss="squared_error",
        *,
        learning_rate=0.1,
        n_estimators=100,
        max_leaf_nodes=31,
        max_depth=None,
        min_samples_leaf=1,
        l2_regularization=1.0,
        n_hyperplanes=1,
        max_terms="auto",
        categorical_features="from_dtype",
        max_categories=255,
        early_stopping="auto",
        validation_fraction=0.1,
        n_iter_no_change=10,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.n_hyperplanes = n_hyperplanes
        self.max_terms = max_terms
        self.categorical_features = categorical_features
        self.max_categories = max_categories
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _encode_targets(self, part, params):
        return part._replace(y=np.asarray(part.y, dtype=np.float64))

    def _encode_validation(self, part):
        if not np.isfinite(part.y).all():
            raise ValueError("y_val must be finite numbers; leave out rows without a target.")
        return part

    def _stratify(self, part, fraction):
        return None

    def _place_targets(self, y, weights, held_out, validation):
        return place_numbers(y, weights, held_out, validation)

    def predict(self, X):
        """Return the predicted number of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        return self._score_rows(X)


@describe_boosting(
    loss=""""log_loss"
    What the trees lower."""
)
class LHBoostClassifier(ClassifierMixin, BoostingEstimator):
    """Gradient boosting for classes, with splits by single columns and by hyperplanes.

    Each tree is grown on the gradients that the trees before it left. A node tries all its
    single columns, and hyperplanes whose weights are the shrunken least squares of the
    gradient on some of its columns, in closed form. All sums are exact integers: the model
    does not depend on the order of rows or the number of threads.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    {attributes}

    See Also
    --------
    LHBoostRegressor : Boosting for numbers.
    LHForestClassifier : Forests.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from lhtree import LHBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LHBoostClassifier(n_estimators=50).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    LOSSES = ("log_loss",)
    _is_regressor = False

    def __init__(
        self,
        loss="log_loss",
        *,
        learning_rate=0.1,
        n_estimators=100,
        max_leaf_nodes=31,
        max_depth=None,
        min_samples_leaf=1,
        l2_regularization=1.0,
        n_hyperplanes=1,
        max_terms="auto",
        categorical_features="from_dtype",
        max_categories=255,
        early_stopping="auto",
        validation_fraction=0.1,
        n_iter_no_change=10,
        class_weight=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.n_hyperplanes = n_hyperplanes
        self.max_terms = max_terms
        self.categorical_features = categorical_features
        self.max_categories = max_categories
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _encode_targets(self, part, params):
        check_classification_targets(part.y)
        self.classes_ = np.unique(part.y)
        if len(self.classes_) > MOST_CLASSES:
            raise ValueError(
                f"y must have at most {MOST_CLASSES} classes, got {len(self.classes_)}; join rare "
                "ones, or use LHBoostRegressor for numbers."
            )
        y = encode(part.y, self.classes_)
        factor = compute_class_weight(params.class_weight, self.classes_, y, part.weight)
        if factor is None:
            return part._replace(y=y)
        if not factor.any():
            raise ValueError(
                f"class_weight={params.class_weight!r} leaves no row with a positive weight."
            )
        check_range("class_weight", factor[factor > 0])
        weight = np.ones(len(y)) if part.weight is None else part.weight
        weighted = (factor / factor.max())[y] * weight
        check_range("class_weight times sample_weight", weighted)
        weighted *= weight.sum() / weighted.sum()
        kept = keep_positive(Part(part.X, part.y, weighted))
        self.classes_ = np.unique(kept.y)  # a class of weight 0 is absent
        return kept._replace(y=encode(kept.y, self.classes_))

    def _encode_validation(self, part):
        classes = self.classes_.tolist()
        for label in part.y.tolist():
            if label not in classes:
                raise ValueError(
                    f"y_val has the class {label!r}, which is not in y; its classes are {classes}."
                )
        return part._replace(y=encode(part.y, self.classes_))

    def _stratify(self, part, fraction):
        """Return the classes, if each has a row for both parts."""
        n_held_out = math.ceil(len(part.y) * fraction)
        count = np.bincount(part.y)
        n_classes = np.count_nonzero(count)
        fits = n_held_out >= n_classes and len(part.y) - n_held_out >= n_classes
        return part.y if fits and count[count > 0].min() > 1 else None

    def _list_missed(self, y, kept, held_out):
        """Return the first row of each class that would have no training row."""
        missed = np.setdiff1d(y, y[kept])
        return np.array([held_out[y[held_out] == label].min() for label in missed], dtype=np.intp)

    def _place_targets(self, y, weights, held_out, validation):
        if len(self.classes_) < 2:
            return y, validation, None
        return y, validation, place_classes(y, weights, held_out, len(self.classes_))

    def decision_function(self, X):
        """Return raw scores: the log-odds of the second of two classes, or one score per class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Above 0 where the second of two classes is predicted; of more classes, the one
            with the largest score is.
        """
        return self._score_rows(X)

    def predict_proba(self, X):
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``; rows sum to one.
        """
        score = self._score_rows(X)
        if len(self.classes_) == 1:
            return np.ones((len(score), 1))
        if len(self.classes_) > 2:
            return softmax(score, axis=1)
        p = expit(score)
        return np.column_stack([1.0 - p, p])

    def predict_log_proba(self, X):
        """Return the logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms in the order of ``classes_``.
        """
        score = self._score_rows(X)
        if len(self.classes_) == 1:
            return np.zeros((len(score), 1))
        if len(self.classes_) > 2:
            return log_softmax(score, axis=1)
        return np.column_stack([log_expit(-score), log_expit(score)])

    def predict(self, X):
        """Return the predicted class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        score = self._score_rows(X)
        if len(self.classes_) > 2:
            return self.classes_[score.argmax(axis=1)]
        return self.classes_[((score > 0) & (len(self.classes_) > 1)).astype(np.intp)]
