"""Whether probabilities come true: how often predictions of each probability are right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints


class Reliability(NamedTuple):
    """How often predictions are right, in bins of their probability."""

    n_rows: Ints
    probability: Floats  # mean; NaN in an empty bin
    accuracy: Floats  # likewise

    @property
    def error(self) -> float:
        """Mean gap between probability and accuracy, the expected calibration error."""
        gap = np.abs(self.probability - self.accuracy)
        return float(np.nansum(gap * self.n_rows) / self.n_rows.sum())


def compute_reliability(
    probability: Floats, is_right: NDArray[np.bool_], n_bins: int
) -> Reliability:
    """Return how often predictions are right, by their probability.

    Parameters
    ----------
    probability : ndarray of shape (n_rows,)
        Probability of the predicted class.
    is_right : ndarray of bool, shape (n_rows,)
        Whether that is the class of the row.
    n_bins : int
        Number of bins of equal width.

    Returns
    -------
    Reliability
        Rows, mean probability and accuracy of each bin.

    Examples
    --------
    >>> import numpy as np
    >>> bins = compute_reliability(np.array([0.9, 0.9, 0.8]), np.array([True, False, True]), 10)
    >>> round(bins.error, 9)  # two rows with a gap of 0.4, one of 0.2
    0.333333333
    """
    bin_number = np.minimum((probability * n_bins).astype(np.int64), n_bins - 1)
    n_rows = np.bincount(bin_number, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(bin_number, probability, n_bins) / n_rows
        accuracy = np.bincount(bin_number, is_right, n_bins) / n_rows
    return Reliability(n_rows, mean, accuracy)
