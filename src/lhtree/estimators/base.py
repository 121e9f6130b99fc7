"""How both classifiers are fitted: validate, grow, judge."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import wraps

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from lhtree import _core
from lhtree.data import sparse
from lhtree.data.notices import warn
from lhtree.data.rows import Draw, check_overflow, gather_rows, weigh_classes
from lhtree.data.weights import resolve_sample_weight
from lhtree.estimators import params
from lhtree.estimators.out_of_bag import JudgedTrees
from lhtree.model.forest import (
    CONTRASTS,
    NO_MAX_DEPTH,
    THRESHOLDS,
    Plan,
    finish_forest,
    grow_trees,
    join_forests,
    list_targets,
)
from lhtree.training import ensemble_size, shrinkage
from lhtree.training.progress import Progress

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's class where it is absent."""

    def with_callbacks(method):
        """Run the method in a frame of its own, as scikit-learn does: warnings count them."""

        @wraps(method)
        def run(self, *args, **kwargs):
            return method(self, *args, **kwargs)

        return run


@contextmanager
def restored_on_error(estimator):
    """Leave the estimator as it was if the block raises."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class HyperplaneTrees(CallbackSupportMixin, JudgedTrees):
    """What both classifiers are: members with one tree per class each."""

    _standardized: bool

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Grow the trees.

        Parameters
        ----------
        X : array-like, frame or sparse array of shape (n_samples, n_features)
            Training rows: numbers, NaN where a value is missing, and categories (see
            `categorical_features`). Arrays of float32 and float64 in C order are read
            without a copy. Sparse rows must have no missing values; their columns are
            divided by the deviation, but not centred, which moves thresholds only.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A row of integer weight w counts like w copies of
            it, a row of weight 0 like none. If any weight is not an integer, the
            weights are first scaled to mean one over the positive ones.

        Returns
        -------
        object
            The fitted classifier itself.
        """
        params.check_rules(self)
        params.check_members(self)
        goes_on = self.warm_start and hasattr(self, "forest_")
        n_old = self._n_members if goes_on else 0
        n_members = params.limit_members(self, n_old)
        progress = Progress(self, n_members and n_members - n_old)
        with restored_on_error(self):
            self._fit(X, y, sample_weight, n_old, progress)
        progress.end()
        return self

    def _fit(self, X, y, sample_weight, n_old, progress):
        X, y = self._validate(X, y, reset=n_old == 0, sample_weight=sample_weight)
        check_classification_targets(y)
        weight = resolve_sample_weight(sample_weight, X.shape[0])
        rows, classes = gather_rows(X, y, weight)
        is_named = hasattr(self, "feature_names_in_") or not self.columns_.is_plain
        names = self.columns_.name_columns(self._name_features()) if is_named else None
        check_overflow(rows.X, names, rows.weight_sum)
        n_weighted = rows.weight_sum  # class weights change no number of rows
        scale = self._find_scale(rows, n_old)
        if not self._balances_members:
            rows, classes = weigh_classes(rows, self.class_weight, classes)
        if n_old:
            self._check_warm_start(X, classes)
        draw = self._find_draw(rows.n_rows, n_old)
        # With replacement, one row may be all that a member draws.
        most = max(rows.weight_sum, draw.n_draws * rows.weight_max)
        if most > n_weighted:  # more than was checked above
            check_overflow(rows.X, names, most)
        seed = self._seed if n_old else self._find_seed()
        plan = self._plan(rows, n_weighted, draw, seed, len(classes))
        self.classes_, self.n_classes_ = classes, len(classes)
        self._seed, self._draw, self._standardized = seed, draw, bool(self.standardize)
        self._grow(rows, plan, scale, n_old, progress)
        if not n_old:
            self._shrink(rows)
        for name in ("calibration_", "oob_score_", "oob_decision_function_"):
            self.__dict__.pop(name, None)
        if self.calibration is not None:
            self._calibrate(rows)
        if self.oob_score:
            self._score_left_out(rows, X.shape[0])

    def _check_warm_start(self, X, classes):
        """Refuse to add members that would not fit those already grown."""
        if not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"y has the classes {classes.tolist()}, but warm_start=True adds to a forest "
                f"with {self.classes_.tolist()}; use the same classes or warm_start=False."
            )
        if bool(self.standardize) != self._standardized:
            raise ValueError(
                f"standardize={self.standardize!r} differs from the members already grown, to "
                "which warm_start=True adds; leave it as it was or set warm_start=False."
            )
        if issparse(X) and self.forest_.column_mean.any():
            raise ValueError(
                "X is sparse, but warm_start=True adds to members whose columns are centred, "
                "which would fill it; give X as an array or set warm_start=False."
            )

    def _find_scale(self, rows, n_old):
        """Return mean and deviation of the columns; a warm start keeps its units."""
        if n_old:
            return self.forest_.column_mean, self.forest_.column_deviation
        n_features = rows.X.shape[1]
        if not self.standardize:
            return np.zeros(n_features), np.ones(n_features)
        if issparse(rows.X):
            return sparse.find_scale(rows.X, rows.weight)
        mean, deviation = _core.find_scale(rows.X, rows.weight)
        if params.resolve_splits(self, n_features).contrast == "mean":
            # Their contrast then reads as share of targets minus share of the rest.
            is_indicator = self.columns_.find_indicators()
            mean[is_indicator], deviation[is_indicator] = 0.0, 1.0
        return mean, deviation

    def _find_draw(self, n_rows, n_old):
        n_draws = params.count_draws(self.max_samples, n_rows, bootstrap=self.bootstrap)
        draw = Draw(n_rows, n_draws, bool(self.bootstrap))
        reader = params.find_reader_of_left_out(self)
        if reader and not self.bootstrap and n_draws >= n_rows:
            raise ValueError(
                f"{reader} needs rows that are left out, but max_samples="
                f"{self.max_samples!r} draws all {n_rows}; use a smaller max_samples or "
                "bootstrap=True."
            )
        if n_old and draw != self._draw:
            raise ValueError(
                f"warm_start=True needs the draws of the members already grown, {self._draw}, "
                f"got {draw}; give the same rows, max_samples and bootstrap, or set "
                "warm_start=False."
            )
        return draw

    def _find_seed(self):
        try:
            generator = check_random_state(self.random_state)
        except ValueError as error:
            raise ValueError(
                "random_state must be None, an integer from 0 to 2**32 - 1 or a RandomState, got "
                f"{self.random_state!r}."
            ) from error
        return int(generator.randint(2**31 - 1))

    def _plan(self, rows, n_weighted, draw, seed, n_classes):
        """Return what to grow; which members is left open."""
        n_features = rows.X.shape[1]
        splits = params.resolve_splits(self, n_features)
        least = params.count_min_samples(self.min_samples_leaf, n_weighted, least=1)
        return Plan(
            n_classes=n_classes,
            target=list_targets(n_classes),
            beta=(),
            n_draws=draw.n_draws,
            seed=seed,
            bootstrap=draw.bootstrap,
            balance=self._balances_members,
            alpha=float(self.alpha),
            gamma=float(self.gamma),
            min_samples_split=params.count_min_samples(
                self.min_samples_split, n_weighted, least=2
            ),
            max_depth=self._find_max_depth(),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            min_samples_leaf=0.0 if least == 1 else least,  # one row, whatever it weighs
            max_leaf_nodes=min(self.max_leaf_nodes or 0, NO_MAX_DEPTH),
            ccp_alpha=float(self.ccp_alpha),
            contrast=CONTRASTS.index(splits.contrast),
            cut=THRESHOLDS.index(splits.threshold),
            n_columns=splits.n_columns,
            axes=splits.axes,
            n_planes=min(splits.n_planes, 2**20),
            n_columns_per_tree=params.count_columns(
                "max_features_per_tree", self.max_features_per_tree, n_features
            ),
            by_columns=not splits.is_dense(n_features),
        )

    def _find_max_depth(self):
        """Return the largest depth; a path has fewer splits than the tree has leaves."""
        limits = [NO_MAX_DEPTH, self.max_depth, self.max_leaf_nodes and self.max_leaf_nodes - 1]
        return min(limit for limit in limits if limit is not None)

    def _grow(self, rows, plan, scale, n_old, progress):
        """Set `forest_`, or add to it, as many members as `n_estimators` asks for."""
        n_threads = params.count_threads(self.n_jobs)
        Z = self._find_table(rows.X, scale, plan.by_columns, n_threads)
        progress.n_trees_per_member = len(plan.target)
        strength = getattr(self, "shrinkage_", 0.0) if n_old else 0.0

        def add(first, last, n_members):
            nonlocal Z
            beta = ensemble_size.schedule_beta(self.beta, first, last, n_members)
            progress.n_before = first - n_old
            grown = grow_trees(
                Z, rows.code, rows.weight, replace(plan, first_member=first, beta=beta),
                n_threads=n_threads, progress=progress,
            )  # fmt: skip
            if last == n_members:
                Z = None  # its memory makes room for the forest
            forest = shrinkage.shrink(finish_forest(grown, scale), strength)
            self.forest_ = join_forests([self.forest_, forest]) if first else forest

        if self.n_estimators == "auto":
            self._grow_until_enough(rows, n_old, add)
            return
        t = self.n_estimators
        if t is None:
            n_rows, n_columns = rows.X.shape
            t = max(n_old, ensemble_size.count_members(n_rows, n_columns, len(plan.target)))
        if t == n_old:
            warn(
                f"n_estimators={t} members are grown already; with warm_start=True fit adds none.",
            )
            return
        add(n_old, t, t)

    def _find_table(self, X, scale, by_columns, n_threads):
        """Return the table in the units and the order in which trees are grown."""
        mean, deviation = scale
        if issparse(X):
            return sparse.divide(X, deviation) if self.standardize else X
        if self.standardize:
            return _core.standardize(X, mean, deviation, by_columns, n_threads)
        return np.ascontiguousarray(X.T) if by_columns else X

    def _grow_until_enough(self, rows, n_old, add):
        """Add members in batches while the out-of-bag accuracy improves."""
        scores = [self._find_left_out_accuracy(rows)] if n_old else []
        n = n_old
        while n < self.max_estimators and not ensemble_size.is_enough(scores):
            last = min(n + ensemble_size.BATCH, self.max_estimators)
            add(n, last, None)
            n = last
            scores.append(self._find_left_out_accuracy(rows))

    @property
    def _balances_members(self):
        """Whether classes weigh alike in the rows of each member; the core sees to it."""
        return isinstance(self.class_weight, str) and self.class_weight == "balanced_subsample"
