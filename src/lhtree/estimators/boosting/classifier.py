"""Boosting for classes."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from lhtree.data.table import encode
from lhtree.data.weights import check_range, compute_class_weight
from lhtree.estimators.boosting.base import BoostingEstimator
from lhtree.estimators.docstrings import describe_boosting
from lhtree.estimators.samples import keep_positive
from lhtree.training.targets import place_classes, place_nothing

MOST_CLASSES = 2**16  # of which the core takes scores


@describe_boosting(
    loss=""""log_loss"
    The loss that the trees lower."""
)
class LHBoostClassifier(ClassifierMixin, BoostingEstimator):
    """Gradient boosting for classes, with splits by single columns and by hyperplanes.

    Each tree is grown on the gradients that the trees before it left. A node tries all its
    single columns, and hyperplanes whose weights are the shrunken least squares of the
    gradient on some of its columns, in closed form. All sums are exact integers: the model
    does not depend on the number of threads nor, if no part of the rows is drawn
    (``early_stopping=False``), on their order.

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
        learning_rate="auto",
        n_estimators="auto",
        subsample=1.0,
        max_leaf_nodes="auto",
        max_depth=None,
        min_samples_leaf=1,
        l2_regularization=0.3,
        n_hyperplanes=1,
        max_terms="auto",
        max_features=None,
        max_bins=255,
        categorical_features="from_dtype",
        max_categories=255,
        monotonic_cst=None,
        interaction_cst=None,
        early_stopping="auto",
        refit="auto",
        validation_fraction="auto",
        n_iter_no_change=30,
        tol=0.0,
        scoring="loss",
        warm_start=False,
        class_weight=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.subsample = subsample
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.n_hyperplanes = n_hyperplanes
        self.max_terms = max_terms
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.max_categories = max_categories
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.refit = refit
        self.tol = tol
        self.scoring = scoring
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _encode_targets(self, samples, params):
        check_classification_targets(samples.y)
        self.classes_ = np.unique(samples.y)
        if len(self.classes_) > MOST_CLASSES:
            raise ValueError(
                f"y must have at most {MOST_CLASSES} classes, got {len(self.classes_)}; join rare "
                "ones, or use LHBoostRegressor for numbers."
            )
        y = encode(samples.y, self.classes_)
        factor = compute_class_weight(params.class_weight, self.classes_, y, samples.weight)
        if factor is None:
            return samples._replace(y=y)
        if not factor.any():
            raise ValueError(
                f"class_weight={params.class_weight!r} leaves no row with a positive weight."
            )
        check_range("class_weight", factor[factor > 0])
        weight = np.ones(len(y)) if samples.weight is None else samples.weight
        weighted = (factor / factor.max())[y] * weight
        check_range("class_weight times sample_weight", weighted)
        weighted *= weight.sum() / weighted.sum()
        kept = keep_positive(samples._replace(weight=weighted))
        self.classes_ = np.unique(kept.y)  # a class of weight 0 is absent
        return kept._replace(y=encode(kept.y, self.classes_))

    def _encode_validation(self, samples, params):
        classes = self.classes_.tolist()
        for label in samples.y.tolist():
            if label not in classes:
                raise ValueError(
                    f"y_val has the class {label!r}, which is not in y; its classes are {classes}."
                )
        return samples._replace(y=encode(samples.y, self.classes_))

    def _stratify(self, samples, fraction):
        """Return the classes, if each has a row for both parts."""
        n_held_out = math.ceil(len(samples.y) * fraction)
        count = np.bincount(samples.y)
        n_classes = np.count_nonzero(count)
        fits = n_held_out >= n_classes and len(samples.y) - n_held_out >= n_classes
        return samples.y if fits and count[count > 0].min() > 1 else None

    def _list_missed(self, y, kept, held_out):
        """Return the first row of each class that would have no training row."""
        missed = np.setdiff1d(y, y[kept])
        return np.array([held_out[y[held_out] == label].min() for label in missed], dtype=np.intp)

    def _is_certain(self):
        return len(self.classes_) < 2

    def _place_targets(self, samples, weights, held_out, validation, params):
        if self._is_certain():
            return place_nothing(samples.y, validation)
        return place_classes(samples.y, weights, held_out, validation, len(self.classes_))

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
        return self._to_probabilities(self._score_rows(X))

    def staged_predict_proba(self, X):
        """Return the probability of each class after each round, one array at a time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        iterator of ndarray of shape (n_samples, n_classes)
            Probabilities as of `predict_proba`; the last are those of the model.
        """
        return map(self._to_probabilities, self._stage_scores(X))

    def staged_decision_function(self, X):
        """Return the raw scores after each round, one array at a time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        iterator of ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores as of `decision_function`; the last are those of the model.
        """
        return self._stage_scores(X)

    def _to_probabilities(self, score):
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
        return self._to_predictions(self._score_rows(X))

    def _to_predictions(self, score):
        if len(self.classes_) > 2:
            return self.classes_[score.argmax(axis=1)]
        return self.classes_[((score > 0) & (len(self.classes_) > 1)).astype(np.intp)]
