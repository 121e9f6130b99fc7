"""Sparse tables: SciPy's CSR rows, never dense as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from lhtree.arrays import LANES, Floats

MOST_NUMBERS = 2**22  # in a block of rows that is made dense: 32 MB
MOST_COLUMNS = 2**31 - 1  # column numbers have 32 bits
WIDE = 2**20  # wider tables drop the columns without a value in training
BITS = 64  # rows per word of out-of-bag bits; blocks hold a multiple of them


def check_format(X: Any) -> None:
    """Refuse inconsistent sparse arrays: SciPy's routines trust them."""
    if not issparse(X):
        return
    for is_valid, problem in _list_checks(X):
        if not is_valid:
            raise ValueError(
                f"X is a malformed sparse array of format {X.format!r}: {problem}; build it anew."
            )


def _list_checks(X: Any) -> Iterator[tuple[bool, str]]:
    """Yield whether a check holds and what is wrong if not; each relies on the earlier ones."""
    yield X.ndim == 2, f"it has {X.ndim} dimensions, not 2"
    yield X.dtype.kind not in "Mm", f"it holds dates or time differences ({X.dtype})"
    yield not np.ma.is_masked(getattr(X, "data", None)), "some of its data are masked"
    if X.format in ("csr", "csc", "bsr"):
        yield from _check_compressed(X)
    elif X.format == "coo":
        yield len(X.coords) == 2, "coords are not two lists"
        for name, index, length in zip(("row", "col"), X.coords, X.shape, strict=True):
            yield from _check_indices(name, index, length, np.size(X.data))
    elif X.format == "lil":
        yield len(X.rows) == len(X.data) == X.shape[0], "it does not have one list per row"
        for index, data in zip(X.rows, X.data, strict=True):
            yield from _check_indices("rows", index, X.shape[1], len(data))
    elif X.format == "dok":
        for k, name in enumerate(("row", "column")):
            index = [key[k] for key in X.keys()]  # noqa: SIM118
            yield from _check_indices(name, index, X.shape[k], len(index))
    elif X.format == "dia":
        is_table = np.ndim(X.data) == 2 and np.shape(X.offsets) == (len(X.data),)
        yield is_table, "it does not have one row of data per offset"
        offset = np.asarray(X.offsets)
        yield offset.dtype.kind in "iu", "offsets are not integers"
        is_inside = (offset >= -X.shape[0]) & (offset <= X.shape[1])
        yield bool(np.all(is_inside)), "an offset lies beyond its corners"
        yield len(np.unique(offset)) == len(offset), "an offset occurs twice"


def _check_compressed(X: Any) -> Iterator[tuple[bool, str]]:
    """Check a format that compresses one of its axes."""
    major, minor = X.shape[::-1] if X.format == "csc" else X.shape
    if X.format == "bsr":
        is_cut = np.ndim(X.data) == 3 and min(X.data.shape[1:]) > 0
        yield is_cut, "data are not a list of blocks"
        height, width = X.data.shape[1:]
        yield major % height == minor % width == 0, "the blocks do not fill it"
        major, minor = major // height, minor // width
    else:
        yield np.ndim(X.data) == 1, "data are not a list"
    start = np.asarray(X.indptr)
    is_list = start.ndim == 1 and start.dtype.kind in "iu"
    yield is_list, "indptr is not a list of integers"
    yield len(start) == major + 1, f"indptr has {len(start)} entries, not {major + 1}"
    yield start[0] == 0, f"indptr starts with {start[0]}, not 0"
    yield bool(np.all(start[1:] >= start[:-1])), "indptr falls"
    yield start[-1] <= len(X.data), f"indptr points to {start[-1]}, beyond the data"
    yield from _check_indices("indices", X.indices, minor, len(X.data))


def _check_indices(
    name: str, indices: Any, length: int, n_values: int
) -> Iterator[tuple[bool, str]]:
    index = np.asarray(indices) if np.size(indices) else np.empty(0, dtype=np.int64)
    is_list = index.ndim == 1 and index.dtype.kind in "iu"
    yield is_list, f"{name} is not a list of integers"
    yield len(index) == n_values, f"{name} has {len(index)} entries for {n_values} values"
    if len(index):
        low, high = int(index.min()), int(index.max())
        yield low >= 0, f"{name} has the negative number {low}"
        yield high < length, f"{name} has {high}, which is not below {length}"


def select_columns(rows: csr_array) -> tuple[int, ...] | None:
    """Return the columns with a value if the table is very wide; None keeps all."""
    if rows.shape[1] <= max(WIDE, rows.nnz):
        return None
    return tuple(np.unique(rows.indices).tolist()) or (0,)


def to_rows(X: Any) -> csr_array:
    """Return the rows with ascending columns, without stored zeros or duplicates."""
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
            f"X is sparse and has a missing value (NaN) in column {column}; fill it, or pass X "
            "as an array or a frame."
        )


def compute_scale(rows: csr_array, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the units of the columns: stds, and means of 0, as centring would fill the table."""
    n_rows, n_columns = rows.shape
    own = np.ones(n_rows) if weight is None else weight
    row = np.repeat(np.arange(n_rows), np.diff(rows.indptr))
    column, value, value_weight = rows.indices, rows.data, own[row]

    def add_up(numbers: Floats) -> Floats:
        return np.asarray(np.bincount(column, numbers, n_columns), dtype=np.float64)

    # Squares of tiny numbers would underflow, so measure in units of the largest.
    unit = np.zeros(n_columns)
    np.maximum.at(unit, column, np.abs(value))
    unit[unit == 0] = 1.0
    value = value / unit[column]
    total = own.sum()
    mean = add_up(value_weight * value) / total
    count = np.bincount(column, minlength=n_columns)
    rest = np.where(count == n_rows, 0.0, total - add_up(value_weight))  # weight of the zeros
    square = add_up(value_weight * (value - mean[column]) ** 2) + rest * mean**2
    std = unit * np.sqrt(square / total)
    is_constant = (count == 0) | ((count == n_rows) & _mark_constant(column, value, n_columns))
    return np.zeros(n_columns), np.where(is_constant | (std == 0), 1.0, std)


def _mark_constant(column: NDArray[Any], value: Floats, n_columns: int) -> NDArray[np.bool_]:
    low, high = np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
    np.minimum.at(low, column, value)
    np.maximum.at(high, column, value)
    return np.asarray(low == high)


def divide(rows: csr_array, std: Floats) -> csr_array:
    """Return the rows in units of the columns."""
    return csr_array((rows.data / std[rows.indices], rows.indices, rows.indptr), rows.shape)


def list_columns_beyond(rows: csr_array, limit: float) -> NDArray[Any]:
    """Return the columns that hold a number beyond the limit."""
    return np.unique(rows.indices[np.abs(rows.data) > limit])


def renumber_columns(column: NDArray[Any]) -> NDArray[np.int32]:
    """Return new, smaller numbers for ascending columns, in the same order and lanes."""
    gap = np.diff(column, prepend=-1)
    return np.asarray(np.cumsum((gap - 1) % LANES + 1) - 1, dtype=np.int32)


def move_columns(rows: csr_array, column: NDArray[Any], position: NDArray[Any]) -> csr_array:
    """Return the rows with only the given columns (ascending), moved to new positions."""
    found = np.searchsorted(column, rows.indices)
    found[found == len(column)] = 0
    is_kept = column[found] == rows.indices
    start = np.concatenate([[0], np.cumsum(is_kept)])[rows.indptr]
    shape = (rows.shape[0], int(position[-1]) + 1)
    return csr_array((rows.data[is_kept], position[found[is_kept]], start), shape)


def lies_by_rows(X: Any) -> bool:
    """Return whether a table is an array whose rows are whole in memory."""
    return isinstance(X, np.ndarray) and bool(X.flags.c_contiguous)


def split_blocks(rows: Any) -> Iterator[tuple[slice, Floats]]:
    """Yield the rows of a sparse table, or of an array by columns, in blocks by rows."""
    n_rows, n_columns = rows.shape
    size = max(1, MOST_NUMBERS // n_columns // BITS) * BITS
    for first in range(0, n_rows, size):
        part = slice(first, min(first + size, n_rows))
        block = rows[part]
        yield part, np.ascontiguousarray(block.toarray() if issparse(block) else block)
