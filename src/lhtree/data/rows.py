"""The rows that a fit grows from, and their weights."""

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
from lhtree.data.weights import check_range, find_class_weight


class TrainingRows(NamedTuple):
    """The rows of positive weight, ready to grow from."""

    X: Any  # an array, or a sparse one
    code: NDArray[np.int32]  # class of each row
    weight: Floats | None  # None: every row counts once
    number: NDArray[np.intp] | None  # position of each row in the caller's X; None: its own

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def weight_sum(self) -> float:
        """Weighted number of rows."""
        return self.n_rows if self.weight is None else float(self.weight.sum())

    @property
    def counts(self) -> Floats:
        """How much each row counts."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    @property
    def weight_max(self) -> float:
        """Largest weight of a row."""
        return 1.0 if self.weight is None else float(self.weight.max())

    def find_numbers(self, place: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the positions in the caller's X of the rows at some places."""
        return place if self.number is None else self.number[place]

    def take_every(self, step: int) -> TrainingRows:
        """Return the rows number 0, step, 2 * step, ..."""
        if step == 1:
            return self
        kept = np.arange(0, len(self.code), step)
        weight = None if self.weight is None else self.weight[kept]
        return TrainingRows(self.X[kept], self.code[kept], weight, self.find_numbers(kept))


class Draw(NamedTuple):
    """How the rows of each member are drawn from those of positive weight."""

    n_rows: int
    n_draws: int
    bootstrap: bool


class LeftOut(NamedTuple):
    """Which training rows the members of a forest did not see."""

    bits: NDArray[np.uint64]  # (n_members, words): row i is bit i % 64 of word i // 64
    n_voters: NDArray[np.int64]  # number of members that left each row out

    def take_every(self, step: int) -> LeftOut:
        """Keep the rows number 0, step, 2 * step, ..."""
        if step == 1:
            return self
        n_voters = self.n_voters[::step]
        octets = np.zeros((len(self.bits), 8 * -(-len(n_voters) // 64)), dtype=np.uint8)
        for member, word in enumerate(self.bits):
            is_out = np.unpackbits(word.astype("<u8").view(np.uint8), bitorder="little")
            kept = np.packbits(is_out[: len(self.n_voters) : step], bitorder="little")
            octets[member, : len(kept)] = kept
        return LeftOut(octets.view("<u8").astype(np.uint64, copy=False), n_voters)

    def pad(self, n_members: int) -> NDArray[np.uint64]:
        """Return the bits of a forest of more members, whose others do not vote."""
        n_silent = n_members - len(self.bits)
        return np.pad(self.bits, ((0, n_silent), (0, 0)))


def gather_rows(
    X: Any, y: NDArray[Any], weight: Floats | None
) -> tuple[TrainingRows, NDArray[Any]]:
    """Return the rows that count and their classes: one of rows of weight 0 alone is none."""
    number = None
    if weight is not None and not weight.all():
        number = np.flatnonzero(weight)
        X, y, weight = X[number], y[number], weight[number]
        if np.all(weight == 1):
            weight = None  # the bits of sums with and without weights may differ
    classes = np.unique(y)
    return TrainingRows(X, encode(y, classes), weight, number), classes


def encode(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int32]:
    """Return the place of each label among the classes, in pieces that take little memory."""
    piece = 1 << 14
    code = np.empty(len(y), dtype=np.int32)
    for begin in range(0, len(y), piece):
        code[begin : begin + piece] = np.searchsorted(classes, y[begin : begin + piece])
    return code


def weigh_classes(
    rows: TrainingRows, class_weight: Any, classes: NDArray[Any]
) -> tuple[TrainingRows, NDArray[Any]]:
    """Multiply the weights of the rows by those of their classes; return those that count."""
    factor = find_class_weight(class_weight, classes, rows.code, rows.weight)
    if factor is None:
        return rows, classes
    weight = factor[rows.code] * (1.0 if rows.weight is None else rows.weight)
    if not weight.any():
        raise ValueError(f"class_weight={class_weight!r} leaves no row with a positive weight.")
    check_range("class_weight times sample_weight", weight)
    kept, found = gather_rows(rows.X, rows.code, weight)
    if kept.number is None:
        return kept._replace(number=rows.number), classes[found]
    return kept._replace(number=rows.find_numbers(kept.number)), classes[found]


def check_overflow(X: Any, names: Sequence[str] | None, weight_sum: float) -> None:
    """Refuse columns whose weighted sums of squares leave the range of doubles."""
    limit = find_largest_value(weight_sum)
    columns = sparse.find_beyond(X, limit) if issparse(X) else _core.find_beyond(X, limit)
    refuse_columns(columns, names, limit)


def find_largest_value(weight_sum: float) -> float:
    """Return the largest number whose weighted sums of squares stay in the range of doubles."""
    return math.sqrt(sys.float_info.max) / 4 / weight_sum


def refuse_columns(columns: NDArray[np.int64], names: Sequence[str] | None, limit: float) -> None:
    """Refuse columns with values beyond a limit, if there are any."""
    if len(columns):
        listed = ", ".join(str(j if names is None else names[j]) for j in columns[:5])
        more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
        raise ValueError(
            f"X has values beyond {limit:.1e}, whose squares overflow, in column {listed}{more}; "
            "divide them by a constant."
        )
