"""Tables of which most values are zero: rows as SciPy's CSR, never dense as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
MOST_NUMBERS = 2**22  # of a block of rows that is made dense: 32 MB
MOST_COLUMNS = 2**31 - 1  # columns are numbered by 32 bits
LANES = 8  # column j of a projection is added to sum j mod 8
BITS = 64  # rows of a block are a multiple: bits of rows left out are kept in such words


def to_rows(X: Any) -> csr_array:
    """Return the rows with their columns ascending, without zeros and duplicates."""
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(f"X must have at most {MOST_COLUMNS} columns, got {X.shape[1]}.")
    rows = csr_array(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows


def check_present(rows: csr_array) -> None:
    """Refuse missing values."""
    if np.isnan(rows.data).any():
        column = int(rows.indices[np.isnan(rows.data)][0])
        raise ValueError(
            f"X is sparse and has a missing value (NaN) in column {column}; zeros are no missing "
            "values: fill them, or give X as an array or a frame."
        )


def find_scale(rows: csr_array, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the units of the columns: no mean, which would fill the table, and deviations."""
    n_rows, n_columns = rows.shape
    own = np.ones(n_rows) if weight is None else weight
    row = np.repeat(np.arange(n_rows), np.diff(rows.indptr))
    column, value, value_weight = rows.indices, rows.data, own[row]

    def add_up(numbers: Floats) -> Floats:
        return np.asarray(np.bincount(column, numbers, n_columns), dtype=np.float64)

    # Squares of tiny numbers would underflow: measure in units of the largest.
    unit = np.zeros(n_columns)
    np.maximum.at(unit, column, np.abs(value))
    unit[unit == 0] = 1.0
    value = value / unit[column]
    total = own.sum()
    mean = add_up(value_weight * value) / total
    count = np.bincount(column, minlength=n_columns)
    rest = np.where(count == n_rows, 0.0, total - add_up(value_weight))  # weight of the zeros
    square = add_up(value_weight * (value - mean[column]) ** 2) + rest * mean**2
    deviation = unit * np.sqrt(square / total)
    is_constant = (count == 0) | ((count == n_rows) & _find_constant(column, value, n_columns))
    return np.zeros(n_columns), np.where(is_constant | (deviation == 0), 1.0, deviation)


def _find_constant(column: NDArray[Any], value: Floats, n_columns: int) -> NDArray[np.bool_]:
    low, high = np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
    np.minimum.at(low, column, value)
    np.maximum.at(high, column, value)
    return np.asarray(low == high)


def divide(rows: csr_array, deviation: Floats) -> csr_array:
    """Return the rows in units of the columns."""
    return csr_array((rows.data / deviation[rows.indices], rows.indices, rows.indptr), rows.shape)


def find_beyond(rows: csr_array, limit: float) -> NDArray[Any]:
    """Return the columns with a number beyond the limit."""
    return np.unique(rows.indices[np.abs(rows.data) > limit])


def place_columns(column: NDArray[Any]) -> NDArray[np.int32]:
    """Return small numbers for ascending columns, in their order and in the same lanes."""
    gap = np.diff(column, prepend=-1)
    return np.asarray(np.cumsum((gap - 1) % LANES + 1) - 1, dtype=np.int32)


def move_columns(rows: csr_array, column: NDArray[Any], place: NDArray[np.int32]) -> csr_array:
    """Return the rows with these columns, ascending, at the places given, and no others."""
    kept = csr_array(rows[:, column])
    shape = (rows.shape[0], int(place[-1]) + 1)
    return csr_array((kept.data, place[kept.indices], kept.indptr), shape)


def split_blocks(rows: csr_array) -> Iterator[tuple[slice, Floats]]:
    """Yield the rows in dense blocks of bounded size."""
    n_rows, n_columns = rows.shape
    size = max(1, MOST_NUMBERS // n_columns // BITS) * BITS
    for first in range(0, n_rows, size):
        part = slice(first, min(first + size, n_rows))
        yield part, np.ascontiguousarray(rows[part].toarray())
