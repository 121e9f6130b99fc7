"""What boosted estimators share: the steps of a fit, and raw scores."""

from __future__ import annotations

from dataclasses import replace

from lhtree.data.reading import read_rows
from lhtree.estimators.base import TreeEstimator, restored_on_error, with_callbacks
from lhtree.estimators.boosting.coverage import Watched, move_scores
from lhtree.estimators.boosting.offsets import check_pair, read_offset
from lhtree.estimators.boosting.params import BoostingParams
from lhtree.estimators.boosting.preparation import prepare
from lhtree.estimators.boosting.scoring import GrowingScores, make_scorer
from lhtree.estimators.boosting.validation import hold_out, read_validation
from lhtree.estimators.boosting.warm_start import Earlier, negate
from lhtree.estimators.boosting.watch import FitWatch
from lhtree.estimators.params import count_threads
from lhtree.estimators.samples import keep_positive, read_samples
from lhtree.model.ensemble import Ensemble
from lhtree.training.progress import RoundProgress
from lhtree.training.rounds import count_refitted, run_watched


class BoostingEstimator(TreeEstimator):
    """Base class: reads rows, holds out some of them for validation, boosts, and keeps the model.

    Parameters
    ----------
    *args, **kwargs : object
        Parameters of the estimator.
    """

    LOSSES: tuple[str, ...]
    forest_: Ensemble

    @with_callbacks
    def fit(
        self,
        X,
        y,
        sample_weight=None,
        *,
        X_val=None,
        y_val=None,
        sample_weight_val=None,
        init_score=None,
        init_score_val=None,
    ):
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
        init_score : array-like of shape (n_samples,) or (n_samples, n_scores), default=None
            What is added to the raw score of each row while the trees grow: predictions of
            another model, or with ``loss="poisson"`` the logarithm of an exposure. Predictions
            do not know it: add it to raw scores, or multiply rates by the exposure.
        init_score_val : array-like of shape (n_val,) or (n_val, n_scores), default=None
            The same for the validation rows.

        Returns
        -------
        object
            The fitted estimator.
        """
        params = BoostingParams.read(self)
        scorer = make_scorer(self, params.scoring)
        earlier = Earlier.of(self, params)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        data = {"X": X, "y": y, "metadata": weights}
        is_verbose = bool(params.verbose)
        progress = RoundProgress(self, data, is_verbose=is_verbose)
        with restored_on_error(self):
            training = self._read_samples(X, y, sample_weight, init_score, params)
            validation = read_validation(
                self, X_val, y_val, sample_weight_val, init_score_val, params
            )
            has_validation = validation is not None
            check_pair(init_score, init_score_val, has_validation=has_validation)
            self._loss, self._quantile = params.loss, params.plain_quantile
            self._seed = params.draw_seed()
            if earlier is not None:
                earlier.check_columns(self)
                self._seed = self._seed if earlier.seed is None else earlier.seed
                progress.n_before = len(earlier.forest)
            stops = params.stops_early(len(training.y), has_validation=has_validation)
            held_out = None
            if stops and not has_validation:
                held_out = hold_out(self, training, params, self._seed)
                stops = held_out is not None
            parts = training, held_out, validation
            boosting = prepare(self, *parts, params, seed=self._seed, stops_early=stops)
            watched = None
            if stops and params.levels:
                watched = Watched.of(boosting, training, held_out, validation)
            if earlier is not None:
                earlier.join(boosting, training, validation)
            scores = None
            if scorer is not None:
                scores = GrowingScores(self, scorer, *parts, self._seed, (X, X_val))
            is_stopped = self._run(boosting, scores, progress, earlier, float(params.tol))
            if watched is not None:
                self._move_quantiles(watched, params)
            if held_out is not None and not is_stopped and params.refits(len(training.y)):
                self._best_round = len(self.forest_)
                n_rounds = count_refitted(boosting, self._best_round)
                del boosting, scores
                progress.report_refit(self._best_round, n_rounds)
                self._refit(training, n_rounds, params)
            progress.end()
        return self

    def _move_quantiles(self, watched, params):
        """Let so many of the rows that said when to stop lie below a quantile as should."""
        shift = watched.measure_shift(self.forest_, params.levels, params.n_threads)
        self.forest_ = move_scores(self.forest_, shift)
        self._shift = shift.tolist()

    def _refit(self, training, n_rounds, params):
        """Grow a model of so many rounds from all rows in place of the one there is."""
        boosting = prepare(self, training, None, None, params, seed=self._seed, stops_early=False)
        boosting.plan = replace(boosting.plan, n_rounds=n_rounds)
        forest = boosting.take(boosting.run())
        self.forest_ = move_scores(forest, self._shift) if hasattr(self, "_shift") else forest
        self.n_iter_ = len(self.forest_)

    def _read_samples(self, X, y, sample_weight, init_score, params):
        """Return the training rows of positive weight."""
        samples = read_samples(self, X, y, sample_weight, params)
        offset = read_offset(init_score, len(samples.y), "init_score", "X")
        return self._encode_targets(keep_positive(samples._replace(offset=offset)), params)

    def _stratify(self, samples, fraction):
        """Return the classes by which held-out rows are drawn, None to draw from all rows."""

    def _list_missed(self, y, kept, held_out):
        """Return held-out rows that the training rows cannot do without."""
        return held_out[:0]

    def _is_certain(self):
        """Whether there is nothing to learn: a single class."""
        return False

    def _run(self, boosting, scores, progress, earlier, tol):
        """Run the rounds and keep the model; return whether a callback stopped them."""
        watch = FitWatch(progress, scores, tol, _describe_model)
        progress.n_rounds = progress.n_before + boosting.plan.n_rounds
        if scores is None and not progress.is_needed:
            n_rounds = boosting.run()
        else:
            n_rounds = run_watched(boosting, watch)
        self.forest_ = boosting.take(n_rounds)
        self.n_iter_ = len(self.forest_)
        for name in ("_best_round", "_shift"):  # of an earlier fit
            self.__dict__.pop(name, None)
        found = negate(boosting.average_losses()) if scores is None else scores.list_all()
        if earlier is not None:
            found = earlier.extend(found, has_losses=scores is None)
        self.train_score_, self.validation_score_ = found.training, found.validation
        return watch.is_stopped

    def _score_rows(self, X):
        """Return the raw scores of rows in any form: a list, or one column per class."""
        rows = read_rows(self, X)
        score = self.forest_.score(rows, n_threads=count_threads(self.n_jobs))
        return score if score.shape[1] > 1 else score[:, 0]

    def _stage_scores(self, X):
        """Yield what `_score_rows` would return after each round."""
        rows = read_rows(self, X)
        for score in self.forest_.stage_scores(rows, n_threads=count_threads(self.n_jobs)):
            yield score if score.shape[1] > 1 else score[:, 0]

    def staged_predict(self, X):
        """Return the predictions after each round, one array at a time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        iterator of ndarray of shape (n_samples,)
            Predictions as of `predict`; the last are those of the model.
        """
        return map(self._to_predictions, self._stage_scores(X))


def _describe_model(boosting):
    """Return what a fit that ended now would leave behind, beside what is there already."""
    forest = boosting.take(boosting.n_done)
    return {"forest_": forest, "n_iter_": len(forest)}
