"""The forest of numbers."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from lhtree.data.reading import read_rows
from lhtree.data.warn import warn
from lhtree.estimators.averaging.fit import Grown, fit_averaged
from lhtree.estimators.averaging.levels import check_coverage, read_levels
from lhtree.estimators.averaging.params import AveragingParams
from lhtree.estimators.averaging.sequence import EstimatorSequence
from lhtree.estimators.base import TreeEstimator, restored_on_error, with_callbacks
from lhtree.estimators.docstrings import describe_averaging
from lhtree.estimators.params import count_threads
from lhtree.estimators.samples import keep_positive, read_samples
from lhtree.training.progress import Progress

LEAVES_AT_ONCE = 2**22  # of a row in a tree


@describe_averaging()
class LHForestRegressor(EstimatorSequence, RegressorMixin, TreeEstimator):
    """LH Forest for numbers: the mean of many trees on random rows.

    Each tree is grown from random rows until its leaves hold a single target. A node takes the
    best of several candidate splits in closed form: single columns that it draws, and
    hyperplanes whose weights are the shrunken least squares of the target on some of them.
    Beside the mean, the forest predicts quantiles and intervals. All sums are exact integers:
    the model does not depend on the number of threads.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    LHBoostRegressor : Boosting for numbers, as a rule more accurate.
    LHForestClassifier : Forests for classes.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lhtree import LHForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LHForestRegressor(random_state=0).fit(X[:400], y[:400])
    >>> low, high = model.interval(X[400:], coverage=0.8).T
    >>> bool(((low < y[400:]) & (y[400:] < high)).mean() > 0.7)
    True
    """

    _is_regressor = True

    def __init__(
        self,
        n_estimators=None,
        *,
        axis_splits=True,
        n_hyperplanes=3,
        max_features="auto",
        min_samples_split=2,
        min_samples_leaf=1,
        max_depth=None,
        max_leaf_nodes=None,
        max_samples=0.8,
        bootstrap=False,
        shrinkage="auto",
        oob_score=False,
        warm_start=False,
        max_bins=255,
        categorical_features="from_dtype",
        max_categories=255,
        monotonic_cst=None,
        interaction_cst=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_estimators = n_estimators
        self.axis_splits = axis_splits
        self.n_hyperplanes = n_hyperplanes
        self.max_features = max_features
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.shrinkage = shrinkage
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.max_categories = max_categories
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Grow the trees.

        Parameters
        ----------
        X : array-like, frame or sparse array of shape (n_samples, n_features)
            Training rows: numbers, NaN for missing values, and categories (see
            `categorical_features`). Frames are those of pandas, polars and pyarrow.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A row of integer weight w counts as w copies of it wherever it
            is drawn, a row of weight 0 as absent. If any weight is not an integer, the
            positive weights are first scaled to mean one.

        Returns
        -------
        object
            The fitted estimator.
        """
        params = AveragingParams.read(self)
        old = self._grown if params.shared.warm_start and hasattr(self, "forest_") else None
        n_old = 0 if old is None else len(old.forest)
        n_estimators = params.shared.limit_estimators(n_old)
        n_new = n_estimators and n_estimators - n_old
        progress = Progress(self, n_new, is_verbose=bool(params.shared.verbose))
        with restored_on_error(self):
            given = read_samples(self, X, y, sample_weight, params)
            n_samples, position = len(given.y), None
            samples = keep_positive(given)
            if len(samples.y) < n_samples:
                position = np.flatnonzero(given.weight)
            fitted = fit_averaged(self, samples, params, old, progress)
            self._keep(fitted, position)
            if params.shared.oob_score:
                self._score_out_of_bag(fitted.out_of_bag, samples, params, n_samples)
            progress.end()
        return self

    @property
    def _grown(self):
        """The result of the last fit."""
        return Grown(self.forest_, self.columns_, self._seed, self._draw, self.shrinkage_)

    def _keep(self, fitted, position):
        """Set the attributes of a fit and remove stale ones."""
        grown = fitted.grown
        self.forest_, self.shrinkage_ = grown.forest, grown.shrinkage
        self._seed, self._draw = grown.seed, grown.draw
        self.leaf_rows_ = fitted.leaf_rows
        for name in ("oob_score_", "oob_prediction_", "_conformity", "_position"):
            self.__dict__.pop(name, None)
        if fitted.conformity is not None:
            self._conformity = fitted.conformity
        if position is not None:  # of the rows that count, among those of X
            self._position = position

    def _score_out_of_bag(self, found, samples, params, n_samples):
        """Set the attributes of `oob_score`."""
        is_predicted = found.n_voters > 0
        if not is_predicted.all():
            warn(
                f"{np.count_nonzero(~is_predicted)} rows were drawn by every estimator and have "
                "no out-of-bag prediction; use more estimators.",
            )
        prediction = found.prediction
        if hasattr(self, "_position"):
            prediction = np.full(n_samples, np.nan)
            prediction[self._position] = found.prediction
        self.oob_prediction_ = prediction
        measure = params.shared.oob_score
        own = samples.y[is_predicted], found.prediction[is_predicted]
        if callable(measure):
            self.oob_score_ = measure(*own)
        else:
            weight = None if samples.weight is None else samples.weight[is_predicted]
            self.oob_score_ = float(r2_score(*own, sample_weight=weight))

    def predict(self, X):
        """Return the predicted number of each row: the mean over the trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        rows = read_rows(self, X)
        return self.forest_.score(rows, n_threads=count_threads(self.n_jobs))[:, 0]

    def predict_quantiles(self, X, quantiles=(0.05, 0.5, 0.95)):
        """Return quantiles of the targets that may be expected for each row.

        They are those of the training targets in the leaves that the row reaches: each tree
        weighs alike, and within a leaf the rows that the tree drew, by their weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.
        quantiles : float or list of float, default=(0.05, 0.5, 0.95)
            Levels from 0 to 1.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles), or (n_samples,)
            A column for each level; a list for a single number.

        Notes
        -----
        Leaves of a few rows make these quantiles narrow where targets have much noise:
        :meth:`interval` measures how wide they should be, and a larger `min_samples_leaf`
        makes them smoother.
        """
        levels = read_levels(quantiles)
        rows = read_rows(self, X)
        parts = [self.leaf_rows_.compute_quantiles(leaf, levels) for leaf in self._reach(rows)]
        found = np.concatenate(parts)
        return found[:, 0] if np.ndim(quantiles) == 0 else found

    def interval(self, X, coverage=0.9):
        """Return an interval for the target of each row that holds a wanted share of targets.

        The ends are the prediction plus the local spread times a quantile of the errors of
        out-of-bag predictions, each divided by its own spread (conformal prediction),
        extrapolated to all trees. For new rows that come as those of training did, about
        `coverage` of the targets lie within, and as many below as above. The spread of a row
        is the standard deviation of the targets in the leaves that it reaches, pulled a
        little towards the usual one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.
        coverage : float, default=0.9
            Share of the targets, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper end.
        """
        check_is_fitted(self)
        coverage = check_coverage(coverage)
        conformity = getattr(self, "_conformity", None)
        if conformity is None:
            raise ValueError(
                f"interval needs out-of-bag rows, but max_samples={self.max_samples!r} drew every "
                "row for every estimator; fit with a smaller max_samples or bootstrap=True."
            )
        limits = conformity.compute_limits(coverage)
        rows = read_rows(self, X)
        variance = [self.leaf_rows_.compute_variance(leaf) for leaf in self._reach(rows)]
        spread = conformity.spread.compute(np.concatenate(variance))
        middle = self.forest_.score(rows, n_threads=count_threads(self.n_jobs))[:, 0]
        return middle[:, np.newaxis] + spread[:, np.newaxis] * np.array(limits)

    def _reach(self, rows):
        """Yield the leaves that rows reach in each tree, a block of rows at a time."""
        n_threads = count_threads(self.n_jobs)
        size = max(1, LEAVES_AT_ONCE // len(self.forest_))
        for first in range(0, rows.shape[0], size):
            block = rows[first : first + size]
            yield self.forest_.locate_leaves(block, n_threads=n_threads)
