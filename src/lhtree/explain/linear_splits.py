"""Splits of the exact engine as sums over the columns of standardised rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.model.ensemble import Ensemble
from lhtree.model.ensemble_splits import HYPERPLANE, NUMBER, list_fills, list_terms

STEPS_PER_STD = 20  # a step of a grid is about 2**-20 standard deviations


def compute_units(ensemble: Ensemble) -> Floats:
    """Return powers of two next to the standard deviations of columns of numbers, else ones."""
    power = STEPS_PER_STD - ensemble.columns.power.astype(np.int64)
    unit: Floats = np.ldexp(1.0, power)
    return np.where(ensemble.columns.n_codes == 0, unit, 1.0)


@dataclass(frozen=True, eq=False)
class LinearSplits:
    """Splits: rows whose sum of coefficient times value is below the threshold go left.

    Values count from the origin of their grid, in units of two to the power of
    `STEPS_PER_STD` steps; sums over a hyperplane are exact. Splits where no number decides,
    those of categories and of missing values, have no term.
    """

    ensemble: Ensemble
    row: Ints  # [n_terms] position of the split of each term
    column: Ints
    coefficient: Floats  # whole numbers
    fill: Floats  # contributions are counted from it
    on_grid: NDArray[np.bool_]  # whether values are rounded, and missing ones are filled
    threshold: Floats  # [n_splits]
    largest: Floats  # [n_splits] the largest coefficient, without its sign

    @property
    def constant(self) -> Floats:
        """Projections of the fills, minus the thresholds; 0 where no number decides."""
        constant = self._sum(self.coefficient * self.fill) - self.threshold
        return np.where(np.isnan(constant), 0.0, constant / self.largest)

    @property
    def norm(self) -> Floats:
        """Lengths of the weights, of which the largest is one; 1 where no number decides."""
        square = self._sum(self.coefficient**2) / self.largest**2
        return np.where(square > 0, np.sqrt(square), 1.0)

    def _sum(self, value: Floats) -> Floats:
        return np.asarray(np.bincount(self.row, value, len(self.threshold)), dtype=np.float64)

    def compare(self, Z: Floats) -> Floats:
        """Return the projections of standardised rows minus the threshold of the only split.

        They are NaN where no number decides.
        """
        value = self._place(Z)
        value = np.where(np.isnan(value) & self.on_grid, self.fill, value)
        difference: Floats = (value @ self.coefficient - self.threshold[0]) / self.largest[0]
        return difference

    def divide(self, Z: Floats) -> Floats:
        """Return what each term adds to the projections, from its fill on; 0 if missing."""
        added = self.coefficient * (self._place(Z) - self.fill) / self.largest[self.row]
        return np.where(np.isnan(added), 0.0, added)

    def _place(self, Z: Floats) -> Floats:
        """Return the values of the terms as the splits see them; NaN stays."""
        value, columns = Z[:, self.column], self.ensemble.columns
        step = np.floor(np.ldexp(value, STEPS_PER_STD) + 0.5) - columns.origin[self.column]
        step = np.clip(step, columns.low[self.column], columns.high[self.column])
        return np.where(self.on_grid, np.ldexp(step, -STEPS_PER_STD), value)


def read_splits(ensemble: Ensemble, node: Ints) -> LinearSplits:
    """Return some splits; nodes are counted over all trees."""
    row, column, coefficient = list_terms(ensemble, node)
    kind, position = ensemble.index.kind[node], ensemble.index.position[node]
    is_plane, is_number = kind == HYPERPLANE, kind == NUMBER
    threshold = np.full(len(node), np.nan)
    threshold[is_plane] = np.ldexp(ensemble.cut[position[is_plane]].astype(float), -STEPS_PER_STD)
    unit = compute_units(ensemble)[ensemble.column[node[is_number]]]
    threshold[is_number] = ensemble.threshold[position[is_number]] / unit
    threshold[np.isinf(threshold)] = np.nan  # it divides present values from missing ones
    fill = threshold[row]
    fill[is_plane[row]] = np.ldexp(list_fills(ensemble, node[is_plane]), -STEPS_PER_STD)
    largest = np.ones(len(node))
    np.maximum.at(largest, row, np.abs(coefficient))
    is_kept = ~np.isnan(threshold)[row]
    return LinearSplits(
        ensemble,
        row[is_kept],
        column[is_kept],
        coefficient[is_kept].astype(np.float64),
        fill[is_kept],
        is_plane[row][is_kept],
        threshold,
        largest,
    )
