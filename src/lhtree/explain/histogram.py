"""Rows of a split, counted along their projections."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints


class Histogram(NamedTuple):
    """Counts in bins of equal width; one of their edges is the threshold."""

    edge: Floats
    width: float
    positive: Ints
    negative: Ints


def count_projections(
    projection: Floats,
    is_positive: NDArray[np.bool_],
    threshold: float,
    extremes: Floats,
    n_bins: int,
) -> Histogram:
    """Count positive and negative rows in about `n_bins` bins over rows and extremes."""
    shown = np.concatenate([projection, extremes])
    if not len(shown):
        shown = np.array([threshold])
    low, high = float(shown.min()), float(shown.max())
    width = (high - low) / n_bins
    if not width > np.spacing(max(abs(low), abs(high))):  # all equal, up to rounding
        width = max(abs(threshold), 1.0) * 1e-6
    n_left = max(int(np.ceil((threshold - low) / width)), 1)
    n_right = max(int(np.floor((high - threshold) / width)) + 1, 1)
    # The comparison with the threshold itself decides the side: no row may change sides by
    # the rounding of edges.
    step = np.floor((projection - threshold) / width)
    is_left = projection < threshold
    step = np.where(is_left, np.clip(step, -n_left, -1), np.clip(step, 0, n_right - 1))
    index = step.astype(np.int64) + n_left
    size = n_left + n_right
    edge: Floats = threshold + width * np.arange(-n_left, n_right + 1, dtype=np.float64)
    return Histogram(
        edge,
        width,
        np.bincount(index[is_positive], minlength=size),
        np.bincount(index[~is_positive], minlength=size),
    )
