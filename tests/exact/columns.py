"""Columns as integers: grids, bins and codes of categories."""

import math
from dataclasses import dataclass, field

import numpy as np

from exact.arithmetic import round_half_up, round_quotient

MOST_BINS = 255  # of a column; missing values have one more, the last
GRID_BITS = 30  # the range of a column takes at most 2**30 steps
STEPS_PER_STD = 20  # the step of a grid is about std * 2**-20
GAP = -(2**31)  # stands for a missing value on the grid


# ---- grid -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """How the values of a column become integers: z = floor(x * 2**power + 1/2) - origin."""

    power: int = 0
    origin: float = 0.0
    low: int = 0  # least and largest z of the training rows
    high: int = 0


def compute_range_power(low, high):
    """Return the largest power of two by which a range takes at most 2**30 steps."""
    _, exponent = math.frexp(high / 2 - low / 2)  # halved: the range itself may overflow
    return GRID_BITS - (exponent + 1)


def compute_variance(z, weight):
    """Return the weighted variance of integers, from exact sums about their rounded mean."""
    z, weight = z.astype(object), weight.astype(object)  # Python integers never overflow
    total, first, second = weight.sum(), (weight * z).sum(), (weight * z * z).sum()
    middle = round_quotient(first, total)
    shift = first - middle * total
    square = second - 2 * middle * first + middle * middle * total
    return (float(square) - float(shift) * float(shift) / float(total)) / float(total)


def make_grid(x, weight):
    """Return the grid of a column from its present values and the weights of their rows."""
    low, high = (float(x.min()), float(x.max())) if len(x) else (0.0, 0.0)
    if low == high:
        return Grid()
    coarse = compute_range_power(low, high)
    start = float(round_half_up(math.ldexp(low, coarse)))
    z = (round_half_up(np.ldexp(x, coarse)) - start).astype(np.int64)
    fraction, exponent = math.frexp(math.sqrt(compute_variance(z, weight)))
    nearest = (exponent if fraction * fraction >= 0.5 else exponent - 1) - coarse
    power = min(coarse, STEPS_PER_STD - nearest)
    is_zero_inside = low <= 0.0 <= high
    middle = low / 2 + high / 2
    origin = 0.0 if is_zero_inside else float(round_half_up(math.ldexp(middle, power)))
    ends = (int(round_half_up(math.ldexp(end, power)) - origin) for end in (low, high))
    return Grid(power, origin, *ends)


def to_grid(grid, x):
    """Return values as integers; what training did not see is clipped to the ends."""
    with np.errstate(over="ignore", under="ignore"):
        z = round_half_up(np.ldexp(np.where(np.isnan(x), 0.0, x), grid.power)) - grid.origin
    z = np.clip(z, grid.low, grid.high).astype(np.int64)
    return np.where(np.isnan(x), GAP, z)


# ---- bins -----------------------------------------------------------------------------


def make_bins(x, weight, max_bins=MOST_BINS):
    """Return the thresholds between at most 255 bins of about the same weight.

    Bin b holds x with threshold[b - 1] <= x < threshold[b]. A value of a 64th of the weight
    or more (a share that grows as the bins become fewer) has a bin of its own; the others are
    divided by ranks.
    """
    values, of_row = np.unique(x + 0.0, return_inverse=True)  # both zeros are one
    total = np.zeros(len(values), dtype=np.int64)
    np.add.at(total, of_row, weight)
    number = np.arange(len(values))
    if len(values) > max_bins:
        is_heavy = total * ((max_bins + 1) // 4) >= total.sum()
        light = np.where(is_heavy, 0, total)
        n_slots = max_bins - 2 * int(is_heavy.sum())
        rank = np.cumsum(light) - light  # weight of the light values before it
        slot = rank * n_slots // light.sum()
        is_new = np.ones(len(values), dtype=bool)
        is_new[1:] = is_heavy[1:] | is_heavy[:-1] | (slot[1:] != slot[:-1])
        number = np.cumsum(is_new) - 1
    last = np.flatnonzero(np.diff(number))  # the largest value of each bin but the last
    return np.array([find_middle(values[k], values[k + 1]) for k in last], dtype=np.float64)


def find_middle(low, high):
    """Return a threshold that separates two values: low < c <= high."""
    middle = low / 2 + high / 2
    return middle if low < middle <= high else high


def to_bins(thresholds, x):
    """Return the bin of each value; the one after the last for a missing value."""
    code = np.searchsorted(thresholds, x, side="right")
    return np.where(np.isnan(x), len(thresholds) + 1, code).astype(np.uint8)


# ---- columns --------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """What is learned of a column of numbers, or of ``n_codes`` categories."""

    n_codes: int = 0  # 0: a column of numbers
    grid: Grid = Grid()
    thresholds: np.ndarray = field(default_factory=lambda: np.zeros(0))
    fill: int = 0  # mean of the present values on the grid, weighted and rounded
    has_gaps: bool = False  # whether a training row has no value
    zero_bin: int = 0  # of the absent values of a sparse column

    @property
    def missing_code(self):
        """Return the code of missing values, and of unknown categories: that after the last."""
        return self.n_codes or len(self.thresholds) + 1


def learn_column(x, weight, max_bins=MOST_BINS):
    """Return what is learned of a column of numbers."""
    is_present = ~np.isnan(x)
    present, weight = x[is_present], weight[is_present]
    grid, thresholds = make_grid(present, weight), make_bins(present, weight, max_bins)
    z = to_grid(grid, present)
    total = (weight.astype(object) * z).sum()
    return Column(
        grid=grid,
        thresholds=thresholds,
        fill=round_quotient(total, weight.sum()) if len(z) else 0,
        has_gaps=not is_present.all(),
        zero_bin=int(np.searchsorted(thresholds, 0.0, side="right")),
    )


def learn_columns(X, weight=None, n_codes=None, max_bins=MOST_BINS):
    """Return the columns of a table; ``n_codes`` has the number of categories, 0 for numbers."""
    weight = np.ones(len(X), dtype=np.int64) if weight is None else weight
    n_codes = [0] * X.shape[1] if n_codes is None else n_codes
    return [
        Column(n_codes=int(n)) if n else learn_column(x, weight, max_bins)
        for x, n in zip(X.T, n_codes, strict=True)
    ]


def encode_column(column, x):
    """Return the codes and the grid integers of the values of a column.

    What is no code of a category from 0 to ``n_codes`` - 1 is unknown: it counts as missing.
    """
    if not column.n_codes:
        return to_bins(column.thresholds, x), to_grid(column.grid, x)
    is_known = (x >= 0) & (x < column.n_codes) & (x == np.floor(x))
    return np.where(is_known, x, column.n_codes).astype(np.uint8), np.zeros(len(x), dtype=np.int64)


def encode(columns, X):
    """Return the codes, uint8, and the grid integers, int64, of a table: both [n_rows, n]."""
    encoded = [encode_column(column, x) for column, x in zip(columns, X.T, strict=True)]
    codes, z = zip(*encoded, strict=True)
    return np.column_stack(codes), np.column_stack(z)
