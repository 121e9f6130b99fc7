"""Means, variances and contrasts of the columns of a node, from exact sums on the grid."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exact.arithmetic import round_quotient
from exact.columns import GAP

DISTANCE_BITS = 10  # the unit of distances is about 2**10 steps of the finest column


@dataclass(frozen=True)
class Moments:
    """Weighted sums over the rows that have a value of a column: Python integers."""

    weight: int
    positive: int  # weight of the positive rows
    first: int  # of w z
    second: int  # of w z**2
    positive_first: int  # of w z over positive rows

    @cached_property
    def center(self):
        """Return the mean, rounded."""
        return round_quotient(self.first, self.weight) if self.weight else 0

    @cached_property
    def spread(self):
        """Return the variance times the squared weight, exactly; 0 for a constant column."""
        return self.weight * self.second - self.first * self.first

    @cached_property
    def covariance(self):
        """Return the covariance with being positive times the squared weight, exactly.

        It is 0 if the column has no value in one of the classes.
        """
        return self.weight * self.positive_first - self.first * self.positive

    @cached_property
    def variance(self):
        """Return the population variance in squared steps of the grid."""
        return float(self.spread) / (float(self.weight) * float(self.weight))

    @cached_property
    def contrast(self):
        """Return mean of positive rows - mean of the rest, in steps; 0 without one of these."""
        if self.covariance == 0:
            return 0.0
        rest = self.weight - self.positive
        return float(self.covariance) / (float(self.positive) * float(rest))


def sum_column(z, is_positive, weight):
    """Return the moments of a column in some rows."""
    is_present = z != GAP
    z = np.where(is_present, z, 0).astype(object)  # Python integers never overflow
    weight = np.where(is_present, weight, 0).astype(object)
    positive = np.where(is_positive, weight, 0)
    sums = weight, positive, weight * z, weight * z * z, positive * z
    return Moments(*(int(each.sum()) for each in sums))


@dataclass(frozen=True)
class Scale:
    """The model's units: one step of the grid of each column, and a unit of distances."""

    steps: list[float]  # 0 for a column that is constant over all training rows
    distance_power: int  # distances are multiples of 2**distance_power


def make_scale(columns, z, sample_weight, standardize=True):
    """Return the model's units: standard deviations of all training rows, or those of X."""
    nobody, steps = np.zeros(len(z), dtype=bool), []
    for column, of_column in zip(columns, z.T, strict=True):
        moments = sum_column(of_column, nobody, sample_weight)
        if moments.spread == 0:
            steps.append(0.0)
        elif standardize:
            steps.append(1.0 / math.sqrt(moments.variance))
        else:
            steps.append(math.ldexp(1.0, -column.grid.power))
    finest = min((step for step in steps if step > 0.0), default=1.0)
    return Scale(steps, math.frexp(finest)[1] - 1 + DISTANCE_BITS)
