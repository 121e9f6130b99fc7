"""Shares of small nodes, moved towards those of the nodes above them.

On the way from the root to a node every step from a parent of weight n to its child
counts by ``n / (n + shrinkage)`` (hierarchical shrinkage). A fully grown tree answers
0 or 1 in leaves of a few rows; where labels are noisy, the shares of larger nodes
above them say more. The trees stay the same: only ``share`` and the constants of the
leaves change, in closed form from numbers that every node has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from lhtree.tree import Floats, Forest

TOLERANCE = 1.01  # errors within one percent are equal
STRENGTHS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0)  # what "auto" chooses from


def shrink(forest: Forest, strength: float) -> Forest:
    """Return the forest with its shares moved towards those of the nodes above.

    Parameters
    ----------
    forest : Forest
        A forest whose shares are those of the training rows.
    strength : float
        Weight of rows at which a step from parent to child counts half; 0 changes
        nothing.

    Returns
    -------
    Forest
        The same trees; a root keeps its share, and all shares stay in [0, 1].
    """
    if strength == 0.0:
        return forest
    share = forest.share.copy()
    root = np.repeat(forest.tree_start[:-1], np.diff(forest.tree_start))
    level = forest.tree_start[:-1]
    while len(level):
        level = level[forest.left[level] >= 0]
        factor = forest.weight_sum[level] / (forest.weight_sum[level] + strength)
        child = root[level] + forest.left[level]
        for side in (child, child + 1):
            step = forest.share[side] - forest.share[level]
            share[side] = np.clip(share[level] + factor * step, 0.0, 1.0)
        level = np.concatenate([child, child + 1])
    arrays = {field.name: getattr(forest, field.name) for field in fields(Forest)}
    threshold = np.where(forest.left < 0, share, forest.threshold)
    return Forest._from_core({**arrays, "share": share, "threshold": threshold})


def choose_strength(errors: Sequence[float] | Floats) -> float:
    """Return the least strength whose error is within one percent of the least.

    Parameters
    ----------
    errors : sequence of float
        Squared error of the out-of-bag probabilities for each of `STRENGTHS`; see
        :func:`measure_error`.

    Returns
    -------
    float
        One of `STRENGTHS`.

    Examples
    --------
    >>> choose_strength([0.40, 0.30, 0.21, 0.201, 0.2, 0.25])
    10.0
    """
    is_good = np.asarray(errors) <= TOLERANCE * min(errors)
    return STRENGTHS[int(np.argmax(is_good))]


def measure_error(proba: Floats, code: NDArray[np.int32], weight: Floats | None) -> float:
    """Return the sum over the rows of the squared error of their probabilities.

    It adds up over parts of the rows.

    Parameters
    ----------
    proba : ndarray of shape (n_rows, n_classes)
        Probabilities.
    code : ndarray of shape (n_rows,)
        Class of each row.
    weight : ndarray of shape (n_rows,) or None
        Weight of each row; None counts every row once.

    Returns
    -------
    float
        Weighted sum of ``sum_k (p_k - [k is the class])**2``.
    """
    own = proba[np.arange(len(code)), code]
    error = (proba**2).sum(axis=1) - own**2 + (1 - own) ** 2
    return float(error.sum() if weight is None else weight @ error)
