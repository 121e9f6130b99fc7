"""What classifiers add: classes, votes, probabilities, out-of-bag scores."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from lhtree.data.reading import read_rows
from lhtree.data.warn import warn
from lhtree.estimators.base import TreeEstimator, restored_on_error, with_callbacks
from lhtree.estimators.fit import Fitted, fit_trees
from lhtree.estimators.params import Params, check_choice, count_threads
from lhtree.model.prediction import (
    NOT_CALIBRATED,
    VOTINGS,
    Voting,
    normalize_scores,
    predict_classes,
)
from lhtree.training.progress import Progress


class TreeClassifier(ClassifierMixin, TreeEstimator):
    """Classifiers whose trees vote: one tree per class, or one for two classes."""

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Grow the trees.

        Parameters
        ----------
        X : array-like, frame or sparse array of shape (n_samples, n_features)
            Training rows: numbers, NaN for missing values, and categories (see
            `categorical_features`). Frames are those of pandas, polars and pyarrow. Arrays
            of float32 and float64 in C order are read without a copy. Sparse rows must
            not have missing values; their columns are divided by the standard deviation
            but not centred, which only moves thresholds.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A row of integer weight w counts as w copies of
            it, a row of weight 0 as absent. If any weight is not an integer, the
            positive weights are first scaled to mean one.

        Returns
        -------
        object
            The fitted classifier.
        """
        self._fit(X, y, sample_weight)
        return self

    def _fit(self, X, y, sample_weight):
        self._fit_by_the_paper(X, y, sample_weight, Params.read(self))

    def _fit_by_the_paper(self, X, y, sample_weight, params):
        """Grow trees by the rules of the paper; return the rows of positive weight."""
        old = self._fitted if params.warm_start and hasattr(self, "forest_") else None
        n_old = 0 if old is None else old.n_estimators
        n_estimators = params.limit_estimators(n_old)
        n_new = n_estimators and n_estimators - n_old
        progress = Progress(self, n_new, is_verbose=bool(params.verbose))
        with restored_on_error(self):
            rows, y, weight = self._read_training(
                X, y, sample_weight, params, learns_columns=old is None
            )
            check_classification_targets(y)
            if old is not None and issparse(rows) and old.forest.column_mean.any():
                raise ValueError(
                    "X is sparse, but warm_start=True adds to estimators whose columns are "
                    "centred, which would fill it; give X as an array or set warm_start=False."
                )
            backend = self._make_local(rows, y, weight, params)
            fitted, out_of_bag = fit_trees(backend, params, old, progress)
            self._keep(fitted)
            if params.oob_score:
                self._score_out_of_bag(backend, out_of_bag, params, len(y))
            progress.end()
        return backend.table

    @property
    def _fitted(self):
        """The result of the last fit."""
        return Fitted(
            forest=self.forest_,
            classes=self.classes_,
            seed=self._seed,
            draw=self._draw,
            is_standardized=self._standardized,
            shrinkage=self.shrinkage_,
        )

    def _keep(self, fitted):
        """Set the attributes of a fit and remove stale ones."""
        self.classes_, self.n_classes_ = fitted.classes, len(fitted.classes)
        self.forest_, self.shrinkage_ = fitted.forest, fitted.shrinkage
        self._seed, self._draw = fitted.seed, fitted.draw
        self._standardized = fitted.is_standardized
        for name in ("calibration_", "oob_score_", "oob_decision_function_"):
            self.__dict__.pop(name, None)
        if fitted.calibration is not None:
            self.calibration_ = fitted.calibration

    def _score_out_of_bag(self, backend, out_of_bag, params, n_samples):
        """Set the attributes of `oob_score`."""
        rows, score, n_voters = out_of_bag.score_rows(self.forest_)
        is_voted = n_voters > 0
        if not is_voted.all():
            warn(
                f"{np.count_nonzero(~is_voted)} rows were drawn by every estimator and have no "
                "out-of-bag votes; use more estimators.",
            )
        self.oob_decision_function_ = backend.table.spread_out(
            self._normalize(score), is_voted, n_samples
        )
        measure = params.oob_score if callable(params.oob_score) else accuracy_score
        predicted = self.classes_[predict_classes(score[is_voted])]
        self.oob_score_ = measure(self.classes_[rows.y_encoded[is_voted]], predicted)

    @property
    def voting_(self):
        """How the trees vote.

        Returns
        -------
        lhtree.model.prediction.Voting
            Turns the outputs of trees into class scores.
        """
        voting = getattr(self, "voting", "membership")
        check_choice("voting", voting, VOTINGS)
        return Voting(self.n_classes_, by_margin=voting == "margin")

    def _score_rows(self, X):
        """Return the class scores of rows in any form."""
        rows = read_rows(self, X)
        return self.voting_.score_rows(self.forest_, rows, n_threads=count_threads(self.n_jobs))

    def _normalize(self, score):
        """Return probabilities, calibrated if the fit was."""
        if self.voting_.by_margin:  # its votes have no scale
            return normalize_scores(score)
        return normalize_scores(score, *getattr(self, "calibration_", NOT_CALIBRATED))

    def predict_proba(self, X):
        """Return the probability of each class, calibrated if the fit was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``; rows sum to one.
        """
        return self._normalize(self._score_rows(X))

    def predict_log_proba(self, X):
        """Return the logarithm of the class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of :meth:`predict_proba`.
        """
        return np.log(self.predict_proba(X))

    def predict(self, X):
        """Return the most probable class of each row, the first in a tie.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        score = self._score_rows(X)  # refuses a classifier that is not fitted
        return self.classes_[self._choose(score)]

    def _choose(self, score):
        """Return the index of the class that each row has by its scores."""
        return predict_classes(score)

    @property
    def n_estimators_(self):
        """Number of estimators grown.

        Returns
        -------
        int
            What `n_estimators` came to.
        """
        check_is_fitted(self)
        return self.voting_.count_estimators(self.forest_)
