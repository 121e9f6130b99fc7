"""The rows and targets of a fit."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from lhtree import _core
from lhtree.arrays import Floats
from lhtree.data import sparse
from lhtree.data.validation import join_few
from lhtree.data.weights import check_range, compute_class_weight

MOST_ROWS = 2**30  # a tree has up to twice as many nodes, and node numbers have 32 bits
ROWS_AT_ONCE = 1 << 14  # rows encoded at once, which takes little memory


class Target(NamedTuple):
    """What trees learn to predict: numbers, or positions in `classes`."""

    values: NDArray[Any]
    classes: NDArray[Any] | None = None  # None: the values are numbers

    def take(self, position: NDArray[Any]) -> Target:
        """Return the targets of some rows."""
        return self._replace(values=self.values[position])


class Table(NamedTuple):
    """The encoded training rows of positive weight."""

    X: Any  # an array of rows, or a sparse one
    weight: Floats | None = None  # None: every row counts once
    number: NDArray[np.intp] | None = None  # position of each row in the caller's X; None: same

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def weight_sum(self) -> float:
        """Weighted number of rows."""
        return self.n_rows if self.weight is None else float(self.weight.sum())

    @property
    def weight_max(self) -> float:
        """Largest weight of a row."""
        return 1.0 if self.weight is None else float(self.weight.max())

    @property
    def counts(self) -> Floats:
        """How much each row counts."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def look_up_numbers(self, position: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the positions of rows of this table in the caller's X."""
        return position if self.number is None else self.number[position]

    def spread_out(self, values: Floats, is_known: NDArray[np.bool_], n_samples: int) -> Floats:
        """Return values at the positions of their rows in the caller's X, NaN elsewhere."""
        spread = np.full((n_samples, *values.shape[1:]), np.nan)
        spread[self.look_up_numbers(np.flatnonzero(is_known))] = values[is_known]
        return spread

    def take(self, position: NDArray[np.intp]) -> Table:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[position]
        return Table(self.X[position], weight, self.look_up_numbers(position))


def make_table(X: Any, y: NDArray[Any], weight: Floats | None) -> tuple[Table, Target]:
    """Return the rows of positive weight and their classes; classes without rows drop out."""
    number = None
    if weight is not None and not weight.all():
        number = np.flatnonzero(weight)
        X, y, weight = X[number], y[number], weight[number]
        if np.all(weight == 1):
            weight = None  # sums with and without weights may differ in their last bits
    classes = np.unique(y)
    return Table(X, weight, number), Target(encode(y, classes), classes)


def encode(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int32]:
    """Return the position of each label among the classes."""
    y_encoded = np.empty(len(y), dtype=np.int32)
    for begin in range(0, len(y), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        y_encoded[rows] = np.searchsorted(classes, y[rows])
    return y_encoded


def weigh_classes(table: Table, target: Target, class_weight: Any) -> tuple[Table, Target]:
    """Multiply the weights of rows by those of their classes; drop rows of weight 0."""
    y_encoded, classes = target
    assert classes is not None, "numbers have no classes to weigh"
    factor = compute_class_weight(class_weight, classes, y_encoded, table.weight)
    if factor is None:
        return table, target
    weight = factor[y_encoded] * (1.0 if table.weight is None else table.weight)
    if not weight.any():
        raise ValueError(f"class_weight={class_weight!r} leaves no row with a positive weight.")
    check_range("class_weight times sample_weight", weight)
    kept, found = make_table(table.X, y_encoded, weight)
    number = table.number if kept.number is None else table.look_up_numbers(kept.number)
    return kept._replace(number=number), Target(found.values, classes[found.classes])


def check_overflow(X: Any, names: Sequence[str] | None, weight_sum: float) -> None:
    """Refuse columns whose weighted sums of squares overflow."""
    limit = compute_largest_value(weight_sum)
    list_columns = sparse.list_columns_beyond if issparse(X) else _core.list_columns_beyond
    refuse_columns(list_columns(X, limit), names, limit)


def compute_largest_value(weight_sum: float) -> float:
    """Return the largest number whose weighted sums of squares do not overflow."""
    return math.sqrt(sys.float_info.max) / 4 / weight_sum


def refuse_columns(columns: NDArray[np.int64], names: Sequence[str] | None, limit: float) -> None:
    """Refuse columns with values beyond a limit, if there are any."""
    if len(columns):
        listed = join_few([j if names is None else names[j] for j in columns], 5)
        raise ValueError(
            f"X has values beyond {limit:.1e}, whose squares overflow, in column {listed}; "
            "divide them by a constant."
        )
