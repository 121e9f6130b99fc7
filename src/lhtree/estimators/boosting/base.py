"""What boosted estimators share: the steps of a fit, and raw scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lhtree.data.reading import read_rows
from lhtree.data.weights import to_units
from lhtree.estimators.base import TreeEstimator, restored_on_error, with_callbacks
from lhtree.estimators.boosting.params import BoostingParams
from lhtree.estimators.boosting.rows import Part, keep_positive, to_kind
from lhtree.estimators.boosting.validation import hold_out, read_validation
from lhtree.estimators.params import count_threads
from lhtree.training.boosting import (
    TargetScale,
    Weights,
    boost,
    encode_rows,
    learn_rows,
    make_rows,
    stores_grid,
)
from lhtree.training.progress import Progress


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
                order=None,
            )
            training = self._encode_targets(keep_positive(Part(X, y, weight)), params)
            validation = read_validation(self, X_val, y_val, sample_weight_val)
            seed = params.draw_seed()
            has_validation = validation is not None
            stops = params.stops_early(len(training.y), has_validation=has_validation)
            held_out = None
            if validation is None and stops:
                held_out = hold_out(self, training, params, seed)
                stops = held_out is not None
            self._boost(training, held_out, validation, params, seed, stops_early=stops)
        progress.end()
        return self

    def _list_missed(self, y, kept, held_out):
        """Return held-out rows that the training rows cannot do without."""
        return held_out[:0]

    def _boost(self, training, held_out, validation, params, seed, *, stops_early):
        """Encode the rows, add the rounds and keep the model."""
        weights = Weights(*to_units(training.weight))
        n_codes = self.columns_.count_codes()
        plan = params.resolve(
            n_columns=len(n_codes),
            n_numbers=int(np.count_nonzero(n_codes == 0)),
            n_rows=len(training.y),
            weights=weights,
            seed=seed,
            patience=params.n_iter_no_change if stops_early else 0,
        )
        wants_z = plan.n_hyperplanes > 0 and stores_grid(training.X)
        n_threads = params.n_threads
        columns, encoded = learn_rows(
            training.X,
            weights.values,
            held_out,
            n_codes,
            max_bins=int(params.max_bins),
            wants_z=wants_z,
            n_threads=n_threads,
        )
        if validation is None:
            validation = training.take(np.empty(0, dtype=np.intp))
        validation_X = to_kind(validation.X, training.X)
        other = encode_rows(validation_X, columns, wants_z=wants_z, n_threads=n_threads)
        other_weights = Weights(*to_units(validation.weight, "sample_weight_val"))
        y, y_other, scale = self._place_targets(training.y, weights, held_out, validation.y)
        is_certain = scale is None  # a single class: nothing to learn
        if is_certain:
            plan = replace(plan, n_rounds=0)
            scale = TargetScale(0, 0.0, np.zeros(1, dtype=np.int64))
        rows = make_rows(encoded, y, weights, scale, held_out, raw=training.X)
        other_rows = make_rows(other, y_other, other_weights, scale, raw=validation_X)
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
