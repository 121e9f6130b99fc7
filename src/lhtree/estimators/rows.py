"""Rows of a fit with their targets and weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from lhtree.data import sparse


class Part(NamedTuple):
    """Some rows of a fit, of positive weight, with their targets as numbers."""

    X: Any
    y: Any
    weight: Any  # None: every row counts once
    offset: Any = None  # what is added to their raw scores; None: nothing

    def take(self, position: Any) -> Part:
        """Return some of the rows."""
        weight, offset = (
            None if each is None else each[position] for each in (self.weight, self.offset)
        )
        return Part(self.X[position], self.y[position], weight, offset)


def read_part(estimator: Any, X: Any, y: Any, sample_weight: Any, params: Any) -> Part:
    """Return the training rows of a fit on the exact engine: categories are codes."""
    is_regressor = estimator._is_regressor
    X, y, weight = estimator._read_training(
        X,
        y,
        sample_weight,
        params,
        learns_columns=True,
        has_codes=True,
        y_numeric=is_regressor,
        order=None,
    )
    return Part(X, np.asarray(y, dtype=np.float64) if is_regressor else y, weight)


def to_kind(X: Any, like: Any) -> Any:
    """Return rows as an array if `like` is one, else as a sparse one."""
    if isinstance(like, np.ndarray):
        return X.toarray() if issparse(X) else X
    return X if issparse(X) else sparse.to_rows(X)


def keep_positive(part: Part) -> Part:
    """Return the rows of positive weight."""
    if part.weight is None or part.weight.all():
        return part
    kept = part.take(np.flatnonzero(part.weight))
    return kept._replace(weight=None) if np.all(kept.weight == 1) else kept
