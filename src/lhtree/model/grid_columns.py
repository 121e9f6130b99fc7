"""How the values of columns become integers, and bins."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class GridColumns:
    """How the values of columns become integers, and bins.

    A number x is ``z = floor(x * 2**power + 1/2) - origin`` on the grid of its column, clipped
    to what training saw.

    Parameters
    ----------
    n_codes : ndarray of int32, shape (n_columns,)
        Number of categories; 0 for a column of numbers.
    power : ndarray of int16, shape (n_columns,)
        A step of the grid is ``2**-power``.
    origin : ndarray of float64, shape (n_columns,)
        Integer that is taken off.
    low, high : ndarray of int32, shape (n_columns,)
        Smallest and largest value on the grid.
    fill : ndarray of int32, shape (n_columns,)
        Mean of the training rows on the grid.
    has_gaps : ndarray of uint8, shape (n_columns,)
        Whether a training row has a missing value.
    threshold : ndarray of float64
        Thresholds between the bins of a column, one column after another.
    threshold_start : ndarray of int64, shape (n_columns + 1,)
        Column j has ``threshold[threshold_start[j]:threshold_start[j + 1]]``.
    """

    n_codes: NDArray[np.int32]
    power: NDArray[np.int16]
    origin: Floats
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    fill: NDArray[np.int32]
    has_gaps: NDArray[np.uint8]
    threshold: Floats
    threshold_start: Ints

    def without_bins(self) -> GridColumns:
        """Return the columns as a model keeps them: splits have their own thresholds."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        start = np.zeros(len(self.n_codes) + 1, dtype=np.int64)
        return GridColumns(**{**kept, "threshold": np.empty(0), "threshold_start": start})
