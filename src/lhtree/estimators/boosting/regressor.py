"""Boosting for numbers."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin

from lhtree.estimators.boosting.base import BoostingEstimator
from lhtree.estimators.docstrings import describe_boosting
from lhtree.model.link import LOG_LOSSES, read_link
from lhtree.training.targets import place_means, place_numbers, place_quantiles


@describe_boosting(
    loss="""{"squared_error", "absolute_error", "quantile", "poisson", "gamma"}
    The loss that the trees lower. "squared_error" predicts means, "absolute_error" medians,
    "quantile" the levels that `quantile` names. "poisson" is for counts and other numbers of
    at least 0, "gamma" for numbers above 0: both predict means, and raw scores are their
    logarithms.""",
    quantile="""float or list of float
    With ``loss="quantile"``: the level to predict, between 0 and 1, or several in ascending
    order, which one model predicts together and which do not cross.""",
)
class LHBoostRegressor(RegressorMixin, BoostingEstimator):
    """Gradient boosting for numbers, with splits by single columns and by hyperplanes.

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

    LOSSES = ("squared_error", "absolute_error", "quantile", "poisson", "gamma")
    _is_regressor = True

    def __init__(
        self,
        loss="squared_error",
        *,
        quantile=None,
        learning_rate="auto",
        n_estimators="auto",
        subsample=1.0,
        max_leaf_nodes="auto",
        max_depth=None,
        min_samples_leaf=1,
        l2_regularization=3.0,
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
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.loss = loss
        self.quantile = quantile
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
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss in LOG_LOSSES
        return tags

    def _encode_targets(self, samples, params):
        y = samples.y
        check_targets("y", y, params.loss)
        if params.loss == "poisson" and not y.any():
            raise ValueError(
                "loss='poisson' needs a y above 0 in some row, got zeros only; use another loss."
            )
        return samples

    def _encode_validation(self, samples, params):
        if not np.isfinite(samples.y).all():
            raise ValueError("y_val must be finite numbers; leave out rows without a target.")
        check_targets("y_val", samples.y, params.loss)
        return samples

    def _place_targets(self, samples, weights, held_out, validation, params):
        given = samples.y, weights, held_out, validation
        if params.loss in LOG_LOSSES:
            return place_means(*given, is_gamma=params.loss == "gamma")
        if params.levels:
            is_absolute = params.loss == "absolute_error"
            return place_quantiles(*given, samples.offset, params.levels, is_absolute=is_absolute)
        return place_numbers(*given, samples.offset)

    def predict(self, X):
        """Return the predicted number of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_levels)
            Predictions: a column per level where `quantile` is a list.
        """
        return self._to_predictions(self._score_rows(X))

    def _to_predictions(self, score):
        return read_link(self).predict_numbers(score)

    def score(self, X, y, sample_weight=None):
        """Return the coefficient of determination, R2, of the predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            1 for perfect predictions, 0 for those of the mean.
        """
        levels = getattr(self, "_quantile", None)
        if isinstance(levels, list):
            raise ValueError(
                f"score needs one prediction for each row, but quantile={levels} gives "
                f"{len(levels)}; score each column with sklearn.metrics.mean_pinball_loss."
            )
        return super().score(X, y, sample_weight)


def check_targets(name, y, loss):
    """Refuse numbers that a loss cannot have as targets.

    Parameters
    ----------
    name : str
        Name of the argument.
    y : ndarray of float64
        Its values.
    loss : str
        The loss.
    """
    if loss not in LOG_LOSSES or not len(y):
        return
    least = y.min()
    is_refused, wanted = (
        (least <= 0, "above 0") if loss == "gamma" else (least < 0, "of at least 0")
    )
    if is_refused:
        raise ValueError(
            f"loss={loss!r} needs {name} {wanted} in every row, got {least}; leave out those rows "
            "or use loss='squared_error'."
        )
