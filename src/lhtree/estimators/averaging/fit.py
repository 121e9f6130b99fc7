"""The steps of a fit of a forest, and of a warm start; `classes` has what those of classes add."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.sparse import issparse

from lhtree.data.columns import Columns
from lhtree.data.warn import warn
from lhtree.data.weights import to_units
from lhtree.estimators.averaging.params import AveragingParams
from lhtree.estimators.constraints import resolve_constraints
from lhtree.estimators.params import is_auto
from lhtree.estimators.samples import Samples
from lhtree.model.conformity import Conformity
from lhtree.model.ensemble import Ensemble
from lhtree.model.leaf_rows import LeafRows
from lhtree.training.averaging import (
    Averaging,
    Judged,
    OutOfBagNumbers,
    look_at_leaves,
    measure_conformity,
)
from lhtree.training.boosting_rows import learn_rows, make_rows
from lhtree.training.plan import Draw
from lhtree.training.progress import Progress
from lhtree.training.shrinkage import STRENGTHS
from lhtree.training.targets import Targets, Weights, place_numbers

SAME_ROWS = (
    "warm_start=True adds to estimators on the rows, targets and weights of the first fit, but "
    "{what} changed; give the same again, or set warm_start=False."
)


@dataclass(frozen=True)
class Grown:
    """The result of a fit, from which a warm start continues."""

    forest: Ensemble
    columns: Columns
    seed: int
    draw: Draw
    shrinkage: float

    def check(self, estimator: Any, draw: Draw, averaging: Averaging) -> None:
        """Refuse to add estimators on other rows, or with other draws."""
        if draw != self.draw:
            raise ValueError(
                f"warm_start=True needs the draws of the estimators already grown, {self.draw}, "
                f"got {draw}; give the same rows, max_samples and bootstrap, or set "
                "warm_start=False."
            )
        own, forest, scale = averaging.columns.without_bins(), self.forest, averaging.scale
        if estimator.columns_ != self.columns or not all(
            np.array_equal(getattr(own, each.name), getattr(forest.columns, each.name))
            for each in fields(own)
        ):
            raise ValueError(SAME_ROWS.format(what="the columns of the rows have"))
        is_same = (scale.power, scale.origin) == (forest.power, forest.origin)
        if not is_same or not np.array_equal(scale.base, forest.base):
            raise ValueError(SAME_ROWS.format(what="the targets have"))


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves behind."""

    grown: Grown
    leaf_rows: LeafRows
    conformity: Conformity | None
    out_of_bag: OutOfBagNumbers


def fit_averaged(
    estimator: Any,
    samples: Samples,
    params: AveragingParams,
    old: Grown | None,
    progress: Progress,
) -> Fitted:
    """Grow the trees of numbers, shrink their leaves, and look at the rows that they did not draw.

    Parameters
    ----------
    estimator : LHForestRegressor
        Knows the columns of the rows.
    samples : Samples
        The training rows of positive weight.
    params : AveragingParams
        The parameters.
    old : Grown or None
        The earlier fit to which a warm start adds estimators.
    progress : Progress
        Reports how many trees have grown.
    """
    draw = params.shared.resolve_draw(len(samples.y))
    seed = params.shared.draw_seed() if old is None else old.seed
    weights = Weights(*to_units(samples.weight))
    targets = place_numbers(samples.y, weights, None, samples.y[:0])
    averaging = prepare(estimator, samples, params, draw, seed, weights, targets)
    if old is not None:
        old.check(estimator, draw, averaging)
    forest = grow(averaging, params, old, progress)
    strength = 0.0 if old is None else old.shrinkage
    if old is None:
        strength = _choose_strength(averaging, params.shared.shrinkage, forest)
        forest = averaging.shrink(forest, strength)
    seen = look_at_leaves(averaging, forest)
    return Fitted(
        Grown(forest, estimator.columns_, seed, draw, strength),
        seen.leaf_rows,
        measure_conformity(averaging, seen, len(forest)),
        seen.out_of_bag,
    )


def _choose_strength(averaging: Averaging, given: Any, forest: Ensemble) -> float:
    t = averaging.count_estimators(forest)
    if not is_auto(given):
        return float(given)
    if t == 1 or not averaging.has_out_of_bag:  # nothing to compare
        return 0.0
    return STRENGTHS[Judged.of(averaging, forest, STRENGTHS).choose(t)]


def prepare(
    estimator: Any,
    samples: Samples,
    params: AveragingParams,
    draw: Draw,
    seed: int,
    weights: Weights,
    targets: Targets,
    n_classes: int = 0,
) -> Averaging:
    """Return what trees grow from: rows become integers, as weights and targets are."""
    n_codes = estimator.columns_.count_codes()
    trends, groups = resolve_constraints(estimator, params)
    plan = params.resolve(
        draw,
        n_columns=len(n_codes),
        n_numbers=int(np.count_nonzero(n_codes == 0)),
        weights=weights,
        seed=seed,
        constraints={"monotonic_cst": trends, "interaction_cst": groups},
        n_classes=n_classes,
    )
    columns, encoded = learn_rows(
        samples.X,
        weights.values,
        None,
        n_codes,
        max_bins=int(params.max_bins),
        wants_z=plan.n_hyperplanes > 0 and issparse(samples.X),
        n_threads=params.n_threads,
    )
    start = targets.scale._replace(base=targets.scale.base[:1])  # the trees read one score
    rows = make_rows(encoded, targets.training, weights, start, raw=samples.X)
    return Averaging(
        columns, rows, samples.X, samples.y, weights.unit, plan, targets.scale, params.n_threads
    )


def grow(
    averaging: Averaging, params: AveragingParams, old: Grown | None, progress: Progress
) -> Ensemble:
    """Return the forest of old and new estimators; new leaves are shrunken as old ones were."""
    plan, n_trees = averaging.plan, averaging.plan.n_trees
    n_old = 0 if old is None else averaging.count_estimators(old.forest)
    t = params.count_estimators(n_old, len(averaging.y), plan.max_features, n_trees)
    if old is not None and t == n_old:
        warn(f"n_estimators={t} estimators are grown already; with warm_start=True fit adds none.")
        return old.forest
    progress.n_trees_per_estimator = n_trees
    return add(averaging, old, None if old is None else old.forest, n_old, t, progress)


def add(
    averaging: Averaging,
    old: Grown | None,
    before: Ensemble | None,
    first: int,
    last: int,
    progress: Progress,
) -> Ensemble:
    """Return a forest with the estimators from `first` to before `last` added."""
    trees = averaging.grow(first, last, progress)
    if old is not None:
        shrunken = averaging.shrink(averaging.join(None, trees), old.shrinkage)
        trees = {**trees, "value": shrunken.value}
    return averaging.join(before, trees)
