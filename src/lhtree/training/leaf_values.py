"""Hierarchical shrinkage of integer leaves: small nodes are pulled towards those above.

On the path from the root to a leaf, every step from a split of n rows to its child counts by
``n / (n + strength)``, as in :mod:`lhtree.training.shrinkage`. The factors fall on the way
down and are whole multiples of a small step, so that values stay between those of the nodes on
the path, and leaves that were in order (`monotonic_cst`) stay so, without rounding.
"""

from __future__ import annotations

import numpy as np

from lhtree.arrays import Ints
from lhtree.model.ensemble import Ensemble

FACTOR_BITS = 30  # after the point; a step between two nodes has 32


def shrink_leaves(ensemble: Ensemble, strength: float, unit: int) -> Ints:
    """Return the shrunken values of all leaves, in steps of the scores.

    Parameters
    ----------
    ensemble : Ensemble
        Trees with one output, whose leaves hold the means of their rows.
    strength : float
        Rows of a split at which the step to its child counts half; 0 changes nothing.
    unit : int
        What a row of weight one weighs.
    """
    if strength == 0.0 or not len(ensemble.left):
        return ensemble.value[:, 0].astype(np.int64)
    root = np.repeat(ensemble.tree_start[:-1], np.diff(ensemble.tree_start))
    depth, mean = ensemble.compute_depth(), ensemble.node_value[:, 0]
    with np.errstate(over="ignore"):
        factor = 1.0 / (1.0 + strength / (ensemble.weight / unit))
    whole_factor = np.floor(np.ldexp(factor, FACTOR_BITS)).astype(np.int64)
    value = mean << FACTOR_BITS
    order = np.argsort(depth, kind="stable")
    start = np.searchsorted(depth[order], np.arange(int(depth.max()) + 2))
    for level in range(len(start) - 2):
        node = order[start[level] : start[level + 1]]
        node = node[ensemble.left[node] >= 0]
        for side in (0, 1):
            child = root[node] + ensemble.left[node] + side
            value[child] = value[node] + whole_factor[node] * (mean[child] - mean[node])
    half = 1 << (FACTOR_BITS - 1)
    shrunken: Ints = (value[ensemble.left < 0] + half) >> FACTOR_BITS
    return shrunken
