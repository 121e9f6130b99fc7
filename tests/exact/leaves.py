"""What a leaf of the paper's trees answers: a constant, or a clipped line, in integers."""

import math
from dataclasses import dataclass

import numpy as np

from exact.arithmetic import round_half_up, round_quotient
from exact.columns import GAP

MEMBERSHIP_BITS = 16
ONE = 1 << MEMBERSHIP_BITS  # the membership of certain rows
SLOPE_BITS = 15
MOST_SLOPE = (1 << SLOPE_BITS) - 1
MOST_SHIFT = 62


@dataclass(frozen=True)
class Line:
    """Membership clip(value + ((sum of slope * (z - center)) >> shift), 0, 2**16)."""

    value: int
    columns: tuple[int, ...] = ()
    slopes: tuple[int, ...] = ()
    centers: tuple[int, ...] = ()  # means in the leaf, rounded
    shift: int = 0

    def answer(self, z):
        """Return the memberships of rows in units of 2**-16; a missing value adds nothing."""
        total = np.zeros(len(z), dtype=np.int64)
        for j, slope, center in zip(self.columns, self.slopes, self.centers, strict=True):
            total += slope * np.where(z[:, j] == GAP, 0, z[:, j] - center)
        return np.clip(self.value + (total >> self.shift), 0, ONE)


def fit_constant(positive, total):
    """Return the share of the positive rows, rounded."""
    return Line(round_quotient(positive << MEMBERSHIP_BITS, total))


def fit_line(positive, total, moments):
    """Return the line of a leaf; ``moments`` has those of each column that may take part.

    A slope is Cov(z, P) / Var(z): each column on its own. All are multiplied by the power of
    two that brings the largest to 15 bits, but at least by 2**16 and at most by 2**78.
    """
    line, slopes = fit_constant(positive, total), {}
    for j, of_column in moments.items():
        if of_column.covariance != 0:  # a constant column has none
            slopes[j] = float(of_column.covariance) / float(of_column.spread)
    if not slopes:
        return line
    _, exponent = math.frexp(max(abs(slope) for slope in slopes.values()))
    shift = min(max(SLOPE_BITS - MEMBERSHIP_BITS - exponent, 0), MOST_SHIFT)
    rounded = {}
    for j, slope in slopes.items():
        scaled = int(round_half_up(math.ldexp(slope, MEMBERSHIP_BITS + shift)))
        rounded[j] = max(-MOST_SLOPE, min(MOST_SLOPE, scaled))
    kept = [j for j, slope in rounded.items() if slope != 0]
    return Line(
        line.value,
        tuple(kept),
        tuple(rounded[j] for j in kept),
        tuple(moments[j].center for j in kept),
        shift,
    )
