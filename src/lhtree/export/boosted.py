"""What another program needs of a fitted model of the exact engine to predict as it does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lhtree.arrays import Floats, Ints
from lhtree.data.columns import Columns
from lhtree.data.reading import name_features
from lhtree.estimators.lookup import check_model
from lhtree.model.ensemble import Ensemble
from lhtree.model.grid_columns import GridColumns
from lhtree.model.link import LOG, LOGIT, SOFTMAX, VOTES, Link, read_link


@dataclass(frozen=True)
class PlainBoosted:
    """Trees on the exact engine, and how their scores become predictions."""

    ensemble: Ensemble
    link: Link
    columns: Columns  # how the columns of X become those that the trees see
    feature_names: Sequence[str]  # of the columns of X

    @property
    def column_names(self) -> list[str]:
        """Names of the columns that the trees see."""
        return self.columns.name_columns(self.feature_names)

    @property
    def library(self) -> str:
        """The function of a library that predictions go through: exp, pow or none."""
        if self.link.name in (LOG, LOGIT, SOFTMAX):
            return "exp"
        return "pow" if self.link.name == VOTES and self.link.calibration[1] != 1.0 else ""

    @property
    def n_numbers(self) -> int:
        """How many numbers the trees have: nodes, terms and values of leaves."""
        ensemble = self.ensemble
        return len(ensemble.left) + 3 * len(ensemble.feature) + ensemble.value.size

    @property
    def scale(self) -> tuple[float, float]:
        """Two powers of two whose product is the step of a score."""
        return split_power(-self.ensemble.power)


def read_boosted(model: Any) -> PlainBoosted:
    """Return the plain parts of a fitted model: boosted trees, or a forest."""
    check_model(model)
    return PlainBoosted(model.forest_, read_link(model), model.columns_, name_features(model))


def split_power(power: int) -> tuple[float, float]:
    """Return two doubles whose product is a power of two that may be none itself."""
    half = power // 2 if power >= 0 else -(-power // 2)
    return math.ldexp(1.0, half), math.ldexp(1.0, power - half)


class UsedColumns(NamedTuple):
    """The grids of the columns that hyperplanes use, and where they are."""

    column: Ints  # ascending
    position: Ints  # of the column of each term among these
    first: Floats  # powers of two: x * first * second is in steps of the grid
    second: Floats
    origin: Floats
    low: Ints
    high: Ints

    @classmethod
    def of(cls, ensemble: Ensemble) -> UsedColumns:
        """Return the columns of the hyperplanes of an ensemble."""
        grids: GridColumns = ensemble.columns
        column, position = np.unique(ensemble.feature, return_inverse=True)
        factors = [split_power(int(power)) for power in grids.power[column]]
        first, second = np.array(factors).reshape(-1, 2).T
        return cls(
            column.astype(np.int64),
            position.reshape(-1).astype(np.int64),
            first,
            second,
            grids.origin[column],
            grids.low[column].astype(np.int64),
            grids.high[column].astype(np.int64),
        )
