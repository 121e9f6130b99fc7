"""Probabilities that fit the out-of-bag votes: one formula, two numbers.

``p_k`` is proportional to ``(q_k + offset) ** exponent``, see :mod:`lhtree.model.prediction`. The
offset is what half a vote is among the votes of all members, so that no class is
impossible; the exponent has the least log-loss on the votes of the members that left
a row out. The formula keeps the order of the classes: labels do not change.
"""

from __future__ import annotations

import numpy as np

from lhtree.arrays import Floats, Ints

HALF_VOTE = 0.5
PLAIN = (0.0, 1.0)  # offset and exponent that change nothing
SMALLEST_EXPONENT = 0.01  # different scores keep different probabilities
LARGEST_EXPONENT = 20.0  # smallest scores keep a positive probability


def fit_exponent(log_score: Floats, code: Ints, weight: Floats | None) -> float:
    """Return the exponent of least log-loss, by Newton's method on a convex function.

    Parameters
    ----------
    log_score : ndarray of shape (n_rows, n_classes)
        Logarithms of the scores that the exponent will sharpen or flatten.
    code : ndarray of shape (n_rows,)
        Class of each row.
    weight : ndarray of shape (n_rows,) or None
        Weight of each row; None counts every row once.

    Returns
    -------
    float
        From 0.01 (almost equal probabilities) to 20.
    """
    centered = log_score - log_score.max(axis=1, keepdims=True)
    own = centered[np.arange(len(code)), code]
    share = np.full(len(code), 1 / len(code)) if weight is None else weight / weight.sum()
    low, high, exponent = SMALLEST_EXPONENT, LARGEST_EXPONENT, 1.0
    for _ in range(60):
        p = np.exp(exponent * centered)
        p /= p.sum(axis=1, keepdims=True)
        mean = (p * centered).sum(axis=1)
        slope = float(share @ (mean - own))  # of the log-loss
        bend = float(share @ ((p * centered**2).sum(axis=1) - mean**2))
        low, high = (low, exponent) if slope > 0 else (exponent, high)
        step = exponent - slope / bend if bend > 0 else low
        following = step if low < step < high else (low + high) / 2
        if abs(following - exponent) <= 1e-9 * (1 + exponent):
            break
        exponent = following
    return exponent
