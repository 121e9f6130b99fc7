"""How far targets lie from out-of-bag predictions, for prediction intervals.

The interval of a row is its prediction plus two quantiles of the errors on training rows,
each error divided by the local spread of its row, times the spread of the row. Predictions of
training rows by the trees that did not draw them are as honest as those of new rows, so that
about the wanted share of new targets lies within, whatever the distribution.

Only about a fifth of the trees say something about a training row out of bag, and the fewer
they are, the larger are errors, and the less certain spreads. Their quantiles move nearly in
proportion to one divided by the number of trees: the quantiles for all trees that did not draw
a row, and for those of the first half, lead on to those of all trees.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lhtree.arrays import Floats

ROUNDING = 1e-9  # of ranks


@dataclass(frozen=True)
class Spread:
    """The local spread of targets: that of a row's leaves, pulled towards what is usual.

    Parameters
    ----------
    usual : float
        Mean variance of the targets in the leaves of a row.
    least : float
        What is added to all variances.
    share : float
        Share of the usual variance in that of each row.
    """

    usual: float
    least: float
    share: float

    def compute(self, variance: Floats) -> Floats:
        """Return the spread of rows from the variances in their leaves."""
        pulled = (1 - self.share) * variance + self.share * self.usual
        spread: Floats = np.sqrt(pulled + self.least)
        return spread


@dataclass(frozen=True, eq=False)
class Conformity:
    """Errors of out-of-bag predictions in units of the local spread.

    Parameters
    ----------
    ratio : ndarray of float64, shape (n_rows,)
        Target minus prediction, divided by the spread.
    half_ratio : ndarray of float64, shape (n_rows,)
        The same for the trees of the first half alone.
    weight : ndarray of float64, shape (n_rows,)
        How much each row counts.
    step : float
        Which part of the way from quantiles of `half_ratio` to those of `ratio` leads on to
        those of all trees.
    spread : Spread
        The spread of rows.
    """

    ratio: Floats
    half_ratio: Floats
    weight: Floats
    step: float
    spread: Spread

    def __post_init__(self) -> None:
        for is_valid, message in self._list_checks():
            if not is_valid:
                raise ValueError(f"These are not valid out-of-bag errors: {message}.")
        for array in (self.ratio, self.half_ratio, self.weight):
            array.flags.writeable = False

    def _list_checks(self) -> Iterator[tuple[bool, str]]:
        lists = self.ratio, self.half_ratio, self.weight
        is_list = all(each.ndim == 1 and len(each) == len(self.weight) for each in lists)
        yield is_list, "ratio, half_ratio and weight are not lists of one length"
        is_float = all(each.dtype == np.float64 for each in lists)
        yield is_float, "ratio, half_ratio or weight is not float64"
        yield len(self.weight) > 0, "there is none"
        yield all(bool(np.isfinite(each).all()) for each in lists), "an error is not finite"
        yield bool(np.all(self.weight > 0)), "a weight is not positive"
        yield 0 <= self.step < math.inf, "step is not a number from 0 up"
        yield 0 <= self.spread.usual < math.inf, "usual is not a number from 0 up"
        yield 0 < self.spread.least < math.inf, "least is not a number above 0"
        yield 0 <= self.spread.share <= 1, "share is not a number from 0 to 1"

    def compute_limits(self, coverage: float) -> tuple[float, float]:
        """Return by how many spreads the ends of an interval lie from the prediction.

        Of n rows and a new one, all ranks of the new one are equally likely, so the ends have
        the ranks (n + 1) * (1 - coverage) / 2 from either side.
        """
        low, high = self._find_limits(self.ratio, coverage)
        half_low, half_high = self._find_limits(self.half_ratio, coverage)
        # Neither end goes beyond the middle.
        most = (high - low) / 2
        return (
            low + min(self.step * (low - half_low), most),
            high - min(self.step * (half_high - high), most),
        )

    def _find_limits(self, ratio: Floats, coverage: float) -> tuple[float, float]:
        order = np.argsort(ratio, kind="stable")
        up_to = np.cumsum(self.weight[order])
        total = float(up_to[-1])
        outside = (total + 1.0) * (1.0 - coverage) / 2
        low_rank = math.floor(outside + ROUNDING)
        if low_rank < 1:
            least = math.ceil(2 / (1.0 - coverage) * (1 - ROUNDING)) - 1
            raise ValueError(
                f"coverage={coverage!r} needs at least {least} out-of-bag rows, got {total:g}; "
                "lower coverage, or fit on more rows."
            )
        high_rank = math.ceil(total + 1.0 - outside - ROUNDING)
        place = np.searchsorted(up_to, [low_rank - ROUNDING, high_rank - ROUNDING])
        low, high = ratio[order[np.minimum(place, len(order) - 1)]].tolist()
        return low, high
