"""Scores that rows start from: `init_score` and `init_score_val` of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from lhtree.arrays import Floats
from lhtree.data.validation import check_dates, check_present
from lhtree.data.weights import to_numbers


def read_offset(given: Any, n_rows: int, name: str, table: str) -> Floats | None:
    """Return what is added to the raw scores of rows, one column per score; None for nothing."""
    if given is None:
        return None
    check_present(name, given)
    check_dates(name, given)
    offset = to_numbers(name, given)
    if offset.ndim not in (1, 2) or len(offset) != n_rows or offset.shape[1:] == (0,):
        raise ValueError(
            f"{name} must have one entry per row of {table}, shape {(n_rows,)}, or a column for "
            f"each raw score, got an array of shape {offset.shape}."
        )
    if not np.isfinite(offset).all():
        bad = offset[~np.isfinite(offset)][0]
        raise ValueError(f"{name} must be finite, got {bad}; leave out those rows.")
    return offset.reshape(n_rows, -1) if offset.any() else None


def check_pair(init_score: Any, init_score_val: Any, *, has_validation: bool) -> None:
    """Refuse offsets for only one of training and validation rows."""
    if init_score_val is not None and not has_validation:
        raise ValueError("init_score_val needs X_val and y_val; give them, too.")
    if has_validation and (init_score is None) != (init_score_val is None):
        given, absent = ("init_score", "init_score_val")[:: 1 if init_score is not None else -1]
        raise ValueError(f"{given} needs {absent} where there is X_val; give both or none.")


def check_outputs(name: str, offset: Floats | None, n_outputs: int) -> None:
    """Refuse offsets for another number of scores than a row has."""
    if offset is not None and offset.shape[1] != n_outputs:
        raise ValueError(
            f"{name} must have {n_outputs} column{'s' * (n_outputs > 1)}, one for each raw score "
            f"of a row, got {offset.shape[1]}."
        )
