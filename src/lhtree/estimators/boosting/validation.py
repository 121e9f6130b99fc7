"""Validation rows: those that the caller gives, or a part of the training rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import column_or_1d

from lhtree.data.reading import read_rows
from lhtree.data.validation import check_dates, check_numbers, check_present, read_labels
from lhtree.data.weights import resolve_sample_weight
from lhtree.estimators.boosting.offsets import read_offset
from lhtree.estimators.boosting.params import BoostingParams
from lhtree.estimators.samples import Samples, keep_positive
from lhtree.training.targets import Flags


def read_validation(
    estimator: Any, X: Any, y: Any, sample_weight: Any, init_score: Any, params: BoostingParams
) -> Samples | None:
    """Return the validation rows of the caller, None if there are none."""
    if X is None and y is None:
        if sample_weight is not None:
            raise ValueError("sample_weight_val needs X_val and y_val; give them, too.")
        return None
    if X is None or y is None:
        given, absent = ("y_val", "X_val") if X is None else ("X_val", "y_val")
        raise ValueError(f"{given} needs {absent}; give both or none.")
    y = _read_targets(y, is_regressor=estimator._is_regressor)
    try:
        rows = read_rows(estimator, X)
    except ValueError as error:
        raise ValueError(f"X_val does not fit: {error}") from error
    if rows.shape[0] != len(y):
        raise ValueError(
            f"y_val must have one entry per row of X_val, {rows.shape[0]}, got {len(y)}."
        )
    weight = resolve_sample_weight(sample_weight, len(y), "sample_weight_val", "X_val")
    offset = read_offset(init_score, len(y), "init_score_val", "X_val")
    samples: Samples = estimator._encode_validation(
        keep_positive(Samples(rows, y, weight, offset)), params
    )
    return samples


def _read_targets(y: Any, *, is_regressor: bool) -> Any:
    """Return validation targets as a list of numbers or labels."""
    check_present("y_val", y)
    if is_regressor:
        check_dates("y_val", y)
        check_numbers("y_val", y)
    else:
        y = read_labels("y_val", y)
    try:
        y = column_or_1d(y)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y_val must have one entry per row: {error}") from error
    return np.asarray(y, dtype=np.float64) if is_regressor else y


def hold_out(estimator: Any, samples: Samples, params: BoostingParams, seed: int) -> Flags | None:
    """Return flags of the rows held out for validation, None if there are none."""
    if len(samples.y) < 2:
        raise ValueError(
            "early_stopping=True needs at least 2 rows, one of them for validation, got "
            f"{len(samples.y)}; give more rows or set early_stopping=False."
        )
    fraction = params.get_validation_fraction(len(samples.y))
    if math.ceil(len(samples.y) * fraction) >= len(samples.y):
        raise ValueError(
            f"validation_fraction={fraction!r} leaves none of the "
            f"{len(samples.y)} rows for training; lower it."
        )
    position = np.arange(len(samples.y))
    kept, held_out = train_test_split(
        position,
        test_size=fraction,
        random_state=seed,
        stratify=estimator._stratify(samples, fraction),
    )
    is_held_out = np.zeros(len(samples.y), dtype=np.uint8)
    is_held_out[held_out] = 1
    is_held_out[estimator._list_missed(samples.y, kept, held_out)] = 0
    return is_held_out if is_held_out.any() else None
