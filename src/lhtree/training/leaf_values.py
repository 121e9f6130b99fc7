"""Hierarchical shrinkage of integer leaves: small nodes are pulled towards those above.

On the path from the root to a leaf, every step from a split of n rows to its child counts by
``n / (n + strength)``, as in :mod:`lhtree.training.shrinkage`. The factors fall on the way
down and are whole multiples of a small step, so that values stay between those of the nodes on
the path, and leaves that were in order (`monotonic_cst`) stay so, without rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Ints
from lhtree.model.ensemble import Ensemble

FACTOR_BITS = 30  # after the point; a step between two nodes has 32


def shrink_leaves(ensemble: Ensemble, strengths: Sequence[float], unit: int) -> NDArray[np.int32]:
    """Return the shrunken values of all leaves, in steps of the scores: a row per strength.

    Parameters
    ----------
    ensemble : Ensemble
        Trees with one output, whose leaves hold the means of their rows.
    strengths : sequence of float
        Rows of a split at which the step to its child counts half; 0 changes nothing.
    unit : int
        What a row of weight one weighs.
    """
    mean, is_leaf = ensemble.node_value[:, 0], ensemble.left < 0
    levels = list(_list_levels(ensemble))
    shrunken = np.empty((len(strengths), np.count_nonzero(is_leaf)), dtype=np.int32)
    for own, strength in zip(shrunken, strengths, strict=True):
        factor, value = _compute_factor(ensemble, strength, unit), mean << FACTOR_BITS
        for node, left in levels:
            for child in (left, left + 1):
                value[child] = value[node] + factor[node] * (mean[child] - mean[node])
        own[:] = (value[is_leaf] + (1 << (FACTOR_BITS - 1))) >> FACTOR_BITS
    return shrunken


def _compute_factor(ensemble: Ensemble, strength: float, unit: int) -> Ints:
    """Return for each node by how much the steps to its children count."""
    with np.errstate(over="ignore"):
        # In this form, no rounding makes the factor of more rows the smaller one.
        factor = 1.0 / (1.0 + strength / (ensemble.weight / unit))
    return np.floor(np.ldexp(factor, FACTOR_BITS)).astype(np.int64)


def _list_levels(ensemble: Ensemble) -> Iterator[tuple[Ints, Ints]]:
    """Yield the splits of one depth after another, and their left children."""
    root = np.repeat(ensemble.tree_start[:-1], np.diff(ensemble.tree_start))
    node = ensemble.tree_start[:-1]
    while len(node := node[ensemble.left[node] >= 0]):
        left = root[node] + ensemble.left[node]
        yield node, left
        node = np.concatenate([left, left + 1])
