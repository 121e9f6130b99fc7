"""The last step before the rounds: rows, weights, targets and offsets become integers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lhtree.data.weights import to_units
from lhtree.estimators.boosting.offsets import check_outputs
from lhtree.estimators.boosting.params import BoostingParams
from lhtree.estimators.constraints import check_single_output, resolve_constraints
from lhtree.estimators.samples import Samples, to_kind
from lhtree.training.boosting_rows import (
    encode_rows,
    learn_rows,
    make_rows,
    settle_start,
    stores_grid,
)
from lhtree.training.plan import BoostingPlan
from lhtree.training.rounds import Boosting
from lhtree.training.targets import Flags, Weights, place_offset


def prepare(
    estimator: Any,
    training: Samples,
    held_out: Flags | None,
    validation: Samples | None,
    params: BoostingParams,
    *,
    seed: int,
    stops_early: bool,
) -> Boosting:
    """Return what the rounds need.

    Parameters
    ----------
    estimator : BoostingEstimator
        Knows what targets mean.
    training : Samples
        Rows to train on, some of which may be held out.
    held_out : ndarray of uint8, or None
        Which of these rows are for validation.
    validation : Samples, or None
        More validation rows.
    params : BoostingParams
        The parameters.
    seed : int
        Seed of all draws.
    stops_early : bool
        Whether the loss of validation rows stops the rounds.
    """
    if estimator._is_certain():
        training = training._replace(offset=None)
    if validation is None:
        validation = training.take(np.empty(0, dtype=np.intp))
    weights = Weights(*to_units(training.weight))
    plan = _resolve(estimator, training, weights, params, seed, stops_early)
    wants_z = plan.n_hyperplanes > 0 and stores_grid(training.X)
    options: dict[str, Any] = {"wants_z": wants_z, "n_threads": params.n_threads}
    columns, encoded = learn_rows(
        training.X,
        weights.values,
        held_out,
        estimator.columns_.count_codes(),
        max_bins=int(params.max_bins),
        **options,
    )
    validation_X = to_kind(validation.X, training.X)
    other = encode_rows(validation_X, columns, **options)
    other_weights = Weights(*to_units(validation.weight, "sample_weight_val"))
    targets = estimator._place_targets(training, weights, held_out, validation.y, params)
    scale = targets.scale
    check_single_output(plan.monotonic_cst, len(scale.base))
    for name, samples in (("init_score", training), ("init_score_val", validation)):
        check_outputs(name, samples.offset, len(scale.base))
    offset = place_offset("init_score", training.offset, scale)
    rows = make_rows(encoded, targets.training, weights, scale, held_out, offset, training.X)
    offset = place_offset("init_score_val", validation.offset, scale)
    others = make_rows(other, targets.validation, other_weights, scale, None, offset, validation_X)
    given: dict[str, Any] = {"loss": params.core_loss, "n_threads": params.n_threads}
    if training.offset is not None:
        scale = settle_start(columns, rows, [others], plan=plan, scale=scale, **given)
    boosting = Boosting(columns, rows, others, plan=plan, scale=scale, **given)
    tolerance = scale.to_sum(float(params.tol), boosting.weigh_validation())
    boosting.plan = replace(plan, tolerance=tolerance)
    return boosting


def _resolve(
    estimator: Any,
    training: Samples,
    weights: Weights,
    params: BoostingParams,
    seed: int,
    stops_early: bool,
) -> BoostingPlan:
    n_codes = estimator.columns_.count_codes()
    plan = params.resolve(
        n_columns=len(n_codes),
        n_numbers=int(np.count_nonzero(n_codes == 0)),
        n_rows=len(training.y),
        weights=weights,
        seed=seed,
        stops_early=stops_early,
        n_classes=len(getattr(estimator, "classes_", ())),
    )
    trends, groups = resolve_constraints(estimator, params)
    plan = replace(plan, monotonic_cst=trends, interaction_cst=groups)
    return replace(plan, n_rounds=0) if estimator._is_certain() else plan
