"""Splits of the exact engine as sums over the columns of standardised rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lhtree.arrays import Floats, Ints
from lhtree.model.ensemble import Ensemble
from lhtree.model.ensemble_splits import HYPERPLANE, NUMBER
from lhtree.model.grid_columns import GridColumns

STEPS_PER_STD = 20  # a step of a grid is about 2**-20 standard deviations


def compute_units(ensemble: Ensemble) -> Floats:
    """Return powers of two next to the standard deviations of columns of numbers, else ones."""
    power = STEPS_PER_STD - ensemble.columns.power.astype(np.int64)
    unit: Floats = np.ldexp(1.0, power)
    return np.where(ensemble.columns.n_codes == 0, unit, 1.0)


@dataclass(frozen=True, eq=False)
class LinearSplit:
    """A split: rows whose sum of coefficient times value is below the threshold go left.

    Values count from the origin of their grid, in units of two to the power of
    `STEPS_PER_STD` steps. Sums over a hyperplane are exact.
    """

    column: Ints  # none where no number decides: of categories, and of missing values
    coefficient: Floats  # whole numbers
    fill: Floats  # contributions are counted from it
    threshold: float
    grid: GridColumns | None  # None where values are compared as they are

    @property
    def largest(self) -> float:
        """The largest coefficient, without its sign."""
        return float(np.abs(self.coefficient).max(initial=0.0)) or 1.0

    @property
    def constant(self) -> float:
        """Projection of the fills, minus the threshold."""
        return float((self.coefficient @ self.fill - self.threshold) / self.largest)

    @property
    def norm(self) -> float:
        """Length of the weights, of which the largest is one."""
        return float(np.linalg.norm(self.coefficient / self.largest))

    def compare(self, Z: Floats) -> Floats:
        """Return the projections of standardised rows minus the threshold.

        They are NaN where no number decides.
        """
        if not len(self.column):
            return np.full(len(Z), np.nan)
        value = self._place(Z)
        if self.grid is not None:
            value = np.where(np.isnan(value), self.fill, value)
        difference: Floats = (value @ self.coefficient - self.threshold) / self.largest
        return difference

    def divide(self, Z: Floats) -> Floats:
        """Return what each column adds to the projections, from its fill on; 0 if missing."""
        added = self.coefficient * (self._place(Z) - self.fill) / self.largest
        return np.where(np.isnan(added), 0.0, added)

    def _place(self, Z: Floats) -> Floats:
        """Return the values of the columns as the split sees them; NaN stays."""
        value = Z[:, self.column]
        if self.grid is None:
            return value
        step = np.floor(np.ldexp(value, STEPS_PER_STD) + 0.5) - self.grid.origin[self.column]
        step = np.clip(step, self.grid.low[self.column], self.grid.high[self.column])
        return np.ldexp(step, -STEPS_PER_STD)


def read_split(ensemble: Ensemble, node: int) -> LinearSplit:
    """Return a split; `node` is counted over all trees."""
    kind, position = ensemble.index.kind[node], int(ensemble.index.position[node])
    if kind == HYPERPLANE:
        terms = slice(*ensemble.term_start[position : position + 2].tolist())
        return LinearSplit(
            ensemble.feature[terms].astype(np.int64),
            ensemble.coefficient[terms].astype(np.float64),
            np.ldexp(ensemble.fill[terms], -STEPS_PER_STD),
            float(np.ldexp(float(ensemble.cut[position]), -STEPS_PER_STD)),
            ensemble.columns,
        )
    if kind == NUMBER and np.isfinite(ensemble.threshold[position]):
        column = ensemble.column[node : node + 1].astype(np.int64)
        power = ensemble.columns.power[column[0]].astype(np.int64) - STEPS_PER_STD
        threshold = float(np.ldexp(ensemble.threshold[position], power))
        return LinearSplit(column, np.ones(1), np.array([threshold]), threshold, None)
    none = np.empty(0)
    return LinearSplit(none.astype(np.int64), none, none, np.nan, None)
