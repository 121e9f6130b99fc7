"""The steps of a fit on any backend: units, weights, draws, trees, out-of-bag work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Scale
from lhtree.data.warn import warn
from lhtree.estimators.params import Params, is_auto
from lhtree.model.building import join_forests
from lhtree.model.forest import Forest
from lhtree.model.prediction import Voting
from lhtree.training import forest_size, shrinkage
from lhtree.training.backend import Backend
from lhtree.training.out_of_bag import OutOfBag
from lhtree.training.plan import Draw, Plan
from lhtree.training.progress import Progress


@dataclass(frozen=True)
class Fitted:
    """The result of a fit, from which a warm start continues."""

    forest: Forest
    classes: NDArray[Any]
    seed: int
    draw: Draw
    is_standardized: bool
    shrinkage: float = 0.0
    calibration: Floats | None = None

    @property
    def scale(self) -> Scale | None:
        """Units of the columns; None for raw units."""
        if not self.is_standardized:
            return None
        return self.forest.column_mean, self.forest.column_std

    @property
    def n_estimators(self) -> int:
        """Number of estimators."""
        return Voting(len(self.classes), by_margin=False).count_estimators(self.forest)


def fit_trees(
    backend: Backend, params: Params, old: Fitted | None, progress: Progress
) -> tuple[Fitted, OutOfBag]:
    """Grow the trees, then compute what depends on their out-of-bag votes.

    Parameters
    ----------
    backend : Backend
        Holds the training rows.
    params : Params
        The parameters of the estimator.
    old : Fitted or None
        The earlier fit to which a warm start adds estimators.
    progress : Progress
        Reports how many trees have grown.

    Returns
    -------
    fitted : Fitted
        The model.
    out_of_bag : OutOfBag
        Computes out-of-bag scores.
    """
    backend.check_overflow(backend.weight_sum)
    n_weighted = backend.weight_sum  # class weights do not change the number of rows
    scale = _choose_scale(backend, params, old)
    if not params.balance:
        backend.weigh_classes(params.class_weight)
    if old is not None:
        _check_warm_start(backend.classes, params, old)
    draw = _choose_draw(backend, params, old)
    # With replacement, an estimator may draw the same row every time.
    most_weight = max(backend.weight_sum, draw.n_draws * backend.weight_max)
    if most_weight > n_weighted:  # more than was checked above
        backend.check_overflow(most_weight)
    seed = params.draw_seed() if old is None else old.seed
    n_classes = len(backend.classes)
    plan = params.resolve(
        draw, n_columns=backend.n_columns, n_weighted=n_weighted, n_classes=n_classes, seed=seed
    )
    voting = Voting(n_classes, by_margin=params.voting == "margin")
    out_of_bag = OutOfBag(backend, plan, voting, params.out_of_bag_reader)
    forest = _Growth(backend, params, plan, scale, out_of_bag, progress, old).run()
    if old is None:
        strength = _choose_shrinkage(params, draw, out_of_bag, forest)
        forest = shrinkage.shrink(forest, strength)
    else:
        strength = old.shrinkage
    calibration = out_of_bag.calibrate(forest) if params.calibration == "oob" else None
    fitted = Fitted(
        forest, backend.classes, seed, draw, bool(params.standardize), strength, calibration
    )
    return fitted, out_of_bag


def _choose_scale(backend: Backend, params: Params, old: Fitted | None) -> Scale | None:
    """Return the units of the columns, None for raw units; a warm start keeps its own."""
    if old is not None:
        return old.scale
    if not params.standardize:
        return None
    # With the paper's contrast, an indicator reads as the difference of two fractions.
    return backend.compute_scale(standardize_indicators=params.contrast != "mean")


def _check_warm_start(classes: NDArray[Any], params: Params, old: Fitted) -> None:
    """Refuse to add estimators that do not match those already grown."""
    if not np.array_equal(classes, old.classes):
        raise ValueError(
            f"y has the classes {classes.tolist()}, but warm_start=True adds to a forest "
            f"with {old.classes.tolist()}; use the same classes or warm_start=False."
        )
    if bool(params.standardize) != old.is_standardized:
        raise ValueError(
            f"standardize={params.standardize!r} differs from the estimators already grown, to "
            "which warm_start=True adds; leave it as it was or set warm_start=False."
        )


def _choose_draw(backend: Backend, params: Params, old: Fitted | None) -> Draw:
    draw = params.resolve_draw(backend.n_rows)
    if old is not None and draw != old.draw:
        raise ValueError(
            f"warm_start=True needs the draws of the estimators already grown, {old.draw}, "
            f"got {draw}; give the same rows, max_samples and bootstrap, or set "
            "warm_start=False."
        )
    return draw


def _choose_shrinkage(params: Params, draw: Draw, out_of_bag: OutOfBag, forest: Forest) -> float:
    if not is_auto(params.shrinkage):
        return float(params.shrinkage)
    return out_of_bag.choose_shrinkage(forest) if draw.has_out_of_bag else 0.0


@dataclass
class _Growth:
    """Grows estimators in batches until there are `n_estimators`."""

    backend: Backend
    params: Params
    plan: Plan
    scale: Scale | None
    out_of_bag: OutOfBag
    progress: Progress
    old: Fitted | None
    forest: Forest | None = None

    def run(self) -> Forest:
        """Return the forest of old and new estimators."""
        self.forest = None if self.old is None else self.old.forest
        self.progress.n_trees_per_estimator = len(self.plan.positive_class)
        if is_auto(self.params.n_estimators):
            return self._grow_until_enough()
        t = self.params.n_estimators
        if t is None:
            n_rows, n_columns = self.backend.n_rows, self.backend.n_columns
            n_trees = len(self.plan.positive_class)
            t = forest_size.choose_n_estimators(n_rows, n_columns, n_trees)
            t = max(self._n_old, t)
        if self.forest is not None and t == self._n_old:
            warn(
                f"n_estimators={t} estimators are grown already; with warm_start=True fit adds "
                "none."
            )
            return self.forest
        return self._add(self._n_old, t, t)

    @property
    def _n_old(self) -> int:
        return 0 if self.old is None else self.old.n_estimators

    def _add(self, first: int, last: int, n_estimators: int | None) -> Forest:
        """Grow estimators `first` to `last - 1`; None: their final number is still open."""
        beta = forest_size.schedule_beta(self.params.beta, first, last, n_estimators)
        self.progress.n_before = first - self._n_old
        plan = replace(self.plan, first_estimator=first, beta=beta)
        grown = self.backend.grow(plan, self.scale, self.progress)
        if self.old is not None:
            grown = shrinkage.shrink(grown, self.old.shrinkage)
        self.forest = grown if self.forest is None else join_forests([self.forest, grown])
        return self.forest

    def _grow_until_enough(self) -> Forest:
        """Add estimators in batches while the out-of-bag accuracy improves."""
        n, most = self._n_old, self.params.max_estimators
        forest = self.forest
        scores = [] if forest is None else [self.out_of_bag.compute_accuracy(forest)]
        while forest is None or (n < most and not forest_size.is_enough(scores)):
            last = min(n + forest_size.BATCH, most)
            forest = self._add(n, last, None)
            n = last
            scores.append(self.out_of_bag.compute_accuracy(forest))
        return forest
