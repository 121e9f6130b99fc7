"""Targets of boosting as integers, and what integer scores mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Floats, Ints
from lhtree.model.grid_columns import GridColumns

Flags = NDArray[np.uint8]
Int32s = NDArray[np.int32]

MOST_BINS = 255  # of a column of numbers
LOG_POWER = 24  # log-odds, logarithms of means, and their losses are multiples of 2**-24
SHARE_POWER = 16  # shares of classes in leaves are multiples of 2**-16
SLOPE_POWER = 20  # slopes of quantile losses are multiples of 2**-20
MEAN_BITS = 30  # of the largest target whose score is the logarithm of a mean
WIDEST = np.iinfo(np.int32)


class Weights(NamedTuple):
    """Weights of rows as integers."""

    values: Ints | None  # None: all are one
    unit: int = 1  # what a row of weight one weighs

    def sum_over(self, n_rows: int) -> int:
        """Return the weight of all rows."""
        return n_rows if self.values is None else int(self.values.sum())

    def take(self, n_rows: int, is_taken: NDArray[np.bool_]) -> Ints:
        """Return the weights of some of the rows."""
        whole = np.ones(n_rows, dtype=np.int64) if self.values is None else self.values
        return whole[is_taken]


class TargetScale(NamedTuple):
    """How integer scores become real ones, and the score before the first round.

    Integer losses of rows become real ones by ``loss_factor * 2**-loss_power``.
    """

    power: int
    origin: float
    base: Ints  # [n_outputs]
    loss_power: int
    loss_factor: float = 1.0

    def to_raw(self, score: Ints) -> Floats:
        """Return integer scores as real numbers."""
        return np.ldexp(score.astype(np.float64) + self.origin, -self.power)

    def average(self, total: Floats, weight: int) -> Floats:
        """Return mean losses from sums of integer ones over rows of some weight."""
        if weight == 0:
            return np.zeros(len(total))
        with np.errstate(over="ignore"):  # the square of a huge error is infinite
            mean: Floats = np.ldexp(self.loss_factor * (total / weight), -self.loss_power)
        return mean

    def to_sum(self, loss: float, weight: int) -> float:
        """Return a mean loss as a sum of integer ones."""
        with np.errstate(over="ignore"):
            return float(np.ldexp(loss / (self.loss_factor or 1.0) * weight, self.loss_power))


class Targets(NamedTuple):
    """Integer targets of training and validation rows, and their scale."""

    training: Int32s
    validation: Int32s
    scale: TargetScale


def place_numbers(
    y: Floats,
    weights: Weights,
    held_out: Flags | None,
    validation: Floats,
    offset: Floats | None = None,
) -> Targets:
    """Place numbers on a grid of their own; scores start with their mean, losses are halved.

    A constant has a grid that holds it exactly, or one for the offsets of the rows.
    """
    no_codes = np.zeros(1, dtype=np.int32)
    column = np.ascontiguousarray(y[:, None])
    arrays, (_, z) = _core.learn_columns(
        column, weights.values, held_out, no_codes, MOST_BINS, True, 1
    )
    grid = GridColumns(**arrays)
    # Numbers beyond those of training count as what they are.
    open_grid = replace(
        grid,
        low=np.array([WIDEST.min + 1], dtype=np.int32),
        high=np.array([WIDEST.max], dtype=np.int32),
    )
    if held_out is not None:
        _, z = _core.encode_rows(column, open_grid, True, 1)
    _, other = _core.encode_rows(np.ascontiguousarray(validation[:, None]), open_grid, True, 1)
    assert z is not None
    assert other is not None
    y_int, y_other = z.ravel(), other.ravel()
    power, origin, start = int(grid.power[0]), float(grid.origin[0]), int(grid.fill[0])
    if grid.low[0] == grid.high[0]:  # the grid of a constant is all zeros
        value = float(_take_trained(y, held_out)[0])
        power, start = 53 - math.frexp(value)[1], 0
        if offset is not None:
            power = min(power, 30 - math.frexp(np.abs(offset).max())[1])
        origin = float(np.floor(math.ldexp(value, power) + 0.5))
        y_int, y_other = np.zeros_like(y_int), np.zeros_like(y_other)
    base = np.array([start], dtype=np.int64)
    return Targets(y_int, y_other, TargetScale(power, origin, base, 2 * power + 1))


def place_quantiles(
    y: Floats,
    weights: Weights,
    held_out: Flags | None,
    validation: Floats,
    offset: Floats | None,
    levels: Sequence[float],
    *,
    is_absolute: bool,
) -> Targets:
    """Place numbers on a grid of their own; scores start with their quantiles.

    Losses are means over the levels; that of absolute errors is twice that of the median.
    """
    targets = place_numbers(y, weights, held_out, validation, offset)
    trained, weight = (
        _take_trained(targets.training, held_out),
        _weigh_trained(weights, held_out, y),
    )
    twice = [compute_quantile(trained, weight, level) for level in levels]
    base = np.array([(each + 1) >> 1 for each in twice], dtype=np.int64)
    power = targets.scale.power + SLOPE_POWER - is_absolute
    scale = targets.scale._replace(base=base, loss_power=power, loss_factor=1.0 / len(levels))
    return targets._replace(scale=scale)


def compute_quantile(values: NDArray[np.integer], weight: Ints, level: float) -> int:
    """Return twice the weighted quantile of integers.

    That is the smallest value up to which they weigh at least the level, plus the smallest
    up to which they weigh more.
    """
    order = np.argsort(values, kind="stable")
    up_to = np.cumsum(weight[order])
    total = int(up_to[-1])
    wanted = level * float(total)
    ranks = (max(1, min(total, rank)) for rank in (math.ceil(wanted), math.floor(wanted) + 1))
    return sum(int(values[order[np.searchsorted(up_to, rank)]]) for rank in ranks)


def place_means(
    y: Floats, weights: Weights, held_out: Flags | None, validation: Floats, *, is_gamma: bool
) -> Targets:
    """Place numbers of at least 0 (gamma: above 0) as multiples of a power of two.

    Scores are logarithms of means and start with that of the mean of all; losses are half the
    deviance.
    """
    trained = _take_trained(y, held_out)
    power = MEAN_BITS - math.frexp(trained.max())[1] if trained.any() else 0

    def place(values: Floats) -> Int32s:
        with np.errstate(over="ignore"):  # what is too large is clipped
            steps = np.floor(np.ldexp(values, power) + 0.5)
        return np.clip(steps, 1 if is_gamma else 0, WIDEST.max).astype(np.int32)

    placed = place(y)
    own = _take_trained(placed, held_out).astype(np.int64)
    mean = compute_mean(own, _weigh_trained(weights, held_out, y))
    base = np.array([_to_log(mean)], dtype=np.int64)
    origin = -math.floor(power * math.log(2.0) * 2.0**LOG_POWER + 0.5)
    scale = TargetScale(LOG_POWER, float(origin), base, LOG_POWER)
    if not is_gamma:
        scale = scale._replace(loss_power=LOG_POWER + power, loss_factor=mean)
    return Targets(placed, place(validation), scale)


def compute_mean(values: Ints, weight: Ints) -> float:
    """Return the mean of integers from 0 to 2**31, their sum rounded once; 1 if all are 0."""
    total = (int((weight * (values >> 16)).sum()) << 16) + int((weight * (values & 0xFFFF)).sum())
    return float(total) / float(int(weight.sum())) or 1.0


def place_offset(name: str, offset: Floats | None, scale: TargetScale) -> Ints | int:
    """Return what is added to raw scores as integers."""
    if offset is None:
        return 0
    with np.errstate(over="ignore"):  # what is too large is refused
        steps = np.floor(np.ldexp(offset, scale.power) + 0.5)
    if not np.all(np.abs(steps) <= WIDEST.max):
        most, given = math.ldexp(1.0, 31 - scale.power), offset.flat[np.abs(offset).argmax()]
        raise ValueError(
            f"{name} must lie within ±{most:g} for these targets, got {given:g}; give it in units "
            "of raw scores."
        )
    return steps.astype(np.int64)


def place_classes(
    y: Int32s, weights: Weights, held_out: Flags | None, validation: Int32s, n_classes: int
) -> Targets:
    """Return indices of classes; their scores start with the logarithms of their shares.

    Two classes have one score, the log-odds of the second; more have one each.
    """
    trained, weight = _take_trained(y, held_out), _weigh_trained(weights, held_out, y)
    of_class = [int(weight[trained == k].sum()) for k in range(n_classes)]
    if n_classes > 2:
        odds = [n_classes * each / sum(of_class) for each in of_class]
    else:
        odds = [of_class[1] / of_class[0]] if n_classes == 2 and all(of_class) else [1.0]
    base = np.array([_to_log(each) for each in odds], dtype=np.int64)
    return Targets(y, validation, TargetScale(LOG_POWER, 0.0, base, LOG_POWER))


def place_shares(y: Int32s, n_classes: int) -> Targets:
    """Return indices of classes; scores are shares, from 0 to 1.

    Two classes have one score, the share of the second; more have one each.
    """
    base = np.zeros(n_classes if n_classes > 2 else 1, dtype=np.int64)
    return Targets(y, y[:0], TargetScale(SHARE_POWER, 0.0, base, 0))


def place_nothing(y: Int32s, validation: Int32s) -> Targets:
    """Return the targets of a single class: there is nothing to learn, and no loss."""
    base = np.zeros(1, dtype=np.int64)
    return Targets(y, validation, TargetScale(0, 0.0, base, 0, loss_factor=0.0))


def _to_log(x: float) -> int:
    return math.floor(_core.compute_log(x) * 2.0**LOG_POWER + 0.5)


def _take_trained(values: NDArray, held_out: Flags | None) -> NDArray:  # type: ignore[type-arg]
    return values if held_out is None else values[held_out == 0]


def _weigh_trained(weights: Weights, held_out: Flags | None, y: NDArray) -> Ints:  # type: ignore[type-arg]
    is_trained = np.ones(len(y), dtype=bool) if held_out is None else held_out == 0
    return weights.take(len(y), is_trained)
