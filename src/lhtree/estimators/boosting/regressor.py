"""Boosting for numbers."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin

from lhtree.estimators.boosting.base import BoostingEstimator
from lhtree.estimators.docstrings import describe_boosting
from lhtree.training.boosting import place_numbers


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
        subsample=1.0,
        max_leaf_nodes=31,
        max_depth=None,
        min_samples_leaf=1,
        l2_regularization=1.0,
        n_hyperplanes=1,
        max_terms="auto",
        max_features=None,
        max_bins=255,
        categorical_features="from_dtype",
        max_categories=255,
        monotonic_cst=None,
        interaction_cst=None,
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
