"""Quantiles that cover what they should: moved by what held-out rows say.

Trees bring a quantile close to the rows that they grow from: of other rows, fewer lie between
two levels. The rows that said when to stop know by how much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lhtree.arrays import Ints
from lhtree.data.weights import to_units
from lhtree.estimators.samples import Samples
from lhtree.model.ensemble import Ensemble
from lhtree.training.rounds import Boosting
from lhtree.training.targets import Flags, compute_quantile

ROWS_PER_BLOCK = 2**14


class Watched(NamedTuple):
    """The rows that say when to stop: where they are, and their scores before the first tree."""

    samples: Samples
    position: Ints
    target: Ints
    start: Ints

    @classmethod
    def of(
        cls,
        boosting: Boosting,
        training: Samples,
        held_out: Flags | None,
        validation: Samples | None,
    ) -> Watched:
        """Return them, before any round was run: those of the caller, or those held out."""
        if validation is None:
            samples, rows, is_taken = training, boosting.rows, held_out
        else:
            samples, rows = validation, boosting.validation
            is_taken = np.ones(len(validation.y), dtype=np.uint8)
        assert is_taken is not None
        position = np.flatnonzero(is_taken)
        return cls(samples, position, rows.y[position].astype(np.int64), rows.score[position])

    def measure_shift(self, forest: Ensemble, levels: Sequence[float], n_threads: int) -> Ints:
        """Return what to add to each score; 0 where chance alone may explain the difference."""
        residual = self.target[:, None] - self.start
        for first in range(0, len(self.position), ROWS_PER_BLOCK):
            block = slice(first, first + ROWS_PER_BLOCK)
            rows = self.samples.X[self.position[block]]
            residual[block] -= forest.sum_values(rows, n_threads=n_threads)
        own = None if self.samples.weight is None else self.samples.weight[self.position]
        units, unit = to_units(own)
        weight = np.ones(len(residual), dtype=np.int64) if units is None else units
        columns = zip(residual.T, levels, strict=True)
        return np.array([_measure(each, weight, unit, level) for each, level in columns])


def move_scores(forest: Ensemble, shift: Ints) -> Ensemble:
    """Return a model whose scores have integers added."""
    return replace(forest, base=forest.base + shift)


def _measure(residual: Ints, weight: Ints, unit: int, level: float) -> int:
    """Return the quantile of residuals, or 0 if it may be 0: within one standard deviation."""
    total = int(weight.sum())
    below, above = int(weight[residual < 0].sum()), int(weight[residual > 0].sum())
    chance = math.sqrt(level * (1 - level) * total * unit)
    if below - chance <= level * total <= total - above + chance:
        return 0
    return (compute_quantile(residual, weight, level) + 1) >> 1
