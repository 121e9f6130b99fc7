"""How far targets lie from out-of-bag predictions, for prediction intervals.

The interval of a row is its prediction plus two quantiles of the errors on training rows,
each error divided by the local spread of its row, times the spread of the row. Predictions of
training rows by the trees that did not draw them are as honest as those of new rows, so that
about the wanted share of new targets lies within, whatever the distribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lhtree.arrays import Floats

ROUNDING = 1e-9  # of ranks


@dataclass(frozen=True, eq=False)
class Conformity:
    """Errors of out-of-bag predictions in units of the local spread.

    Parameters
    ----------
    ratio : ndarray of float64, shape (n_rows,)
        Target minus prediction, divided by the spread; ascending.
    weight : ndarray of float64, shape (n_rows,)
        How much each row counts.
    floor : float
        Variance that is added to that of each row.
    """

    ratio: Floats
    weight: Floats
    floor: float

    def __post_init__(self) -> None:
        for is_valid, message in self._list_checks():
            if not is_valid:
                raise ValueError(f"These are not valid out-of-bag errors: {message}.")
        self.ratio.flags.writeable = self.weight.flags.writeable = False

    def _list_checks(self) -> Iterator[tuple[bool, str]]:
        ratio, weight = self.ratio, self.weight
        is_list = ratio.ndim == weight.ndim == 1 and len(ratio) == len(weight)
        yield is_list, "ratio and weight are not lists of one length"
        is_float = ratio.dtype == weight.dtype == np.float64
        yield is_float, "ratio or weight is not float64"
        yield bool(np.isfinite(ratio).all() and np.all(ratio[1:] >= ratio[:-1])), "not ascending"
        yield bool(np.isfinite(weight).all() and np.all(weight > 0)), "a weight is not positive"
        yield 0 < self.floor < math.inf, "floor is not positive"

    def compute_limits(self, coverage: float) -> tuple[float, float]:
        """Return by how many spreads the ends of an interval lie from the prediction.

        Of n rows and a new one, all ranks of the new one are equally likely, so the ends have
        the ranks (n + 1) * (1 - coverage) / 2 from either side.
        """
        up_to = np.cumsum(self.weight)
        total = float(up_to[-1]) if len(up_to) else 0.0
        outside = (total + 1.0) * (1.0 - coverage) / 2
        low_rank = math.floor(outside + ROUNDING)
        if low_rank < 1:
            least = math.ceil(2 / (1.0 - coverage) - ROUNDING) - 1
            raise ValueError(
                f"coverage={coverage!r} needs at least {least} out-of-bag rows, got {total:g}; "
                "lower coverage, or fit on more rows."
            )
        high_rank = math.ceil(total + 1.0 - outside - ROUNDING)
        low, high = np.searchsorted(up_to, [low_rank - ROUNDING, high_rank - ROUNDING])
        return float(self.ratio[low]), float(self.ratio[min(high, len(self.ratio) - 1)])

    def scale(self, variance: Floats) -> Floats:
        """Return the spread of rows whose distributions have some variance."""
        return np.sqrt(variance + self.floor)
