"""Probabilities fitted to the out-of-bag votes: one formula, two numbers.

``p_k`` is proportional to ``(q_k + offset) ** exponent``, see :mod:`lhtree.model.prediction`. The
offset is half a vote as a fraction of all votes, so that no class is impossible; the exponent
minimises the log-loss of the out-of-bag votes. The formula keeps the order of the classes:
labels do not change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats

HALF_VOTE = 0.5

SMALLEST_EXPONENT = 0.01  # scores that differ keep probabilities that differ
LARGEST_EXPONENT = 20.0  # the smallest scores keep a positive probability


def fit_exponent(log_score: Floats, y_encoded: NDArray[np.int32], weight: Floats | None) -> float:
    """Return the exponent that minimises the log-loss, by Newton's method (it is convex).

    Parameters
    ----------
    log_score : ndarray of shape (n_rows, n_classes)
        Logarithms of the scores.
    y_encoded : ndarray of shape (n_rows,)
        Class of each row.
    weight : ndarray of shape (n_rows,) or None
        Weight of each row; None counts every row once.

    Returns
    -------
    float
        From 0.01 (nearly equal probabilities) to 20.
    """
    centered = log_score - log_score.max(axis=1, keepdims=True)
    own = centered[np.arange(len(y_encoded)), y_encoded]
    part = np.ones(len(y_encoded)) if weight is None else weight
    part = part / part.sum()
    low, high, exponent = SMALLEST_EXPONENT, LARGEST_EXPONENT, 1.0
    for _ in range(60):
        p = np.exp(exponent * centered)
        p /= p.sum(axis=1, keepdims=True)
        mean = (p * centered).sum(axis=1)
        slope = float(part @ (mean - own))  # of the log-loss
        bend = float(part @ ((p * centered**2).sum(axis=1) - mean**2))
        low, high = (low, exponent) if slope > 0 else (exponent, high)
        step = exponent - slope / bend if bend > 0 else low
        following = step if low < step < high else (low + high) / 2
        if abs(following - exponent) <= 1e-9 * (1 + exponent):
            break
        exponent = following
    return exponent
