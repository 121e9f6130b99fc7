"""Rows of a fit with their targets, weights and offsets, before they are encoded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from lhtree.data import sparse
from lhtree.data.frames import is_frame, take_rows


class Samples(NamedTuple):
    """Some rows of a fit, all of positive weight."""

    X: Any
    y: Any
    weight: Any  # None: every row counts once
    offset: Any = None  # what is added to their raw scores; None: nothing
    number: Any = None  # of each row among those given to `fit`; None: they are all there

    def take(self, position: Any) -> Samples:
        """Return some of the rows."""
        weight, offset = (
            None if each is None else each[position] for each in (self.weight, self.offset)
        )
        number = position if self.number is None else self.number[position]
        return Samples(self.X[position], self.y[position], weight, offset, number)

    def show(self, X: Any) -> Samples:
        """Return them with their rows as they are in X, which was given to `fit`."""
        table = X if hasattr(X, "shape") or is_frame(X) else np.asarray(X, dtype=object)
        return self._replace(X=table if self.number is None else take_rows(table, self.number))


def read_samples(estimator: Any, X: Any, y: Any, sample_weight: Any, params: Any) -> Samples:
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
    return Samples(X, np.asarray(y, dtype=np.float64) if is_regressor else y, weight)


def to_kind(X: Any, like: Any) -> Any:
    """Return rows as an array if `like` is one, else as a sparse one."""
    if isinstance(like, np.ndarray):
        return X.toarray() if issparse(X) else X
    return X if issparse(X) else sparse.to_rows(X)


def keep_positive(samples: Samples) -> Samples:
    """Return the rows of positive weight."""
    if samples.weight is None or samples.weight.all():
        return samples
    kept = samples.take(np.flatnonzero(samples.weight))
    return kept._replace(weight=None) if np.all(kept.weight == 1) else kept
