"""From dask collections to the partitions that tasks work on."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from lhtree.data.validation import show_gaps


class Partition(NamedTuple):
    """A lazy partition of the table, its labels and the weights of its rows."""

    X: Delayed
    y: Delayed
    weight: Delayed | None


def is_frame(collection: Any) -> bool:
    """Whether this is a dask dataframe or series."""
    return hasattr(collection, "npartitions") and hasattr(collection, "map_partitions")


def is_array(collection: Any) -> bool:
    """Whether this is a dask array."""
    return isinstance(collection, da.Array)


def check_table(X: Any) -> Any:
    """Return X with whole rows in each chunk; refuse what is not a table of a cluster."""
    if is_frame(X):
        if getattr(X, "ndim", 2) != 2:
            raise ValueError("X must be a dask dataframe or a dask array of two dimensions.")
        return X
    if not is_array(X):
        raise TypeError(
            f"X must be a dask array or dask dataframe, got {type(X).__name__}; for data in "
            "memory use lhtree's local classifiers."
        )
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got shape {X.shape}.")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X must hold numbers, got dtype {X.dtype}; convert it with X.astype.")
    _check_chunks("X", X)
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _check_chunks(name: str, array: Any) -> None:
    if any(math.isnan(size) for sizes in array.chunks for size in sizes):
        raise ValueError(
            f"{name} has chunks of unknown size; call {name}.compute_chunk_sizes() first, or "
            "give dataframes."
        )


def _check_column(name: str, column: Any) -> Any:
    """Return labels or weights, one per row."""
    if is_frame(column):
        if column.ndim != 1:
            raise ValueError(f"{name} must be one column, got a dataframe; select a column.")
        return column
    if not is_array(column):
        raise TypeError(
            f"{name} must be a dask array or dask series, got {type(column).__name__}."
        )
    _check_chunks(name, column)
    if column.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {column.shape}.")
    return column


def _check_pairs(X: Any, name: str, column: Any) -> None:
    """Refuse a column whose partitions are not those of X, as far as sizes are known."""
    n_parts = X.npartitions if is_frame(X) else X.numblocks[0]
    n_other = column.npartitions if is_frame(column) else column.numblocks[0]
    sizes = None if is_frame(X) else X.chunks[0]
    others = None if is_frame(column) else column.chunks[0]
    if n_parts != n_other or (sizes and others and sizes != others):
        raise ValueError(
            f"X and {name} must have the same partitions, got {sizes or n_parts} and "
            f"{others or n_other}; rechunk or repartition one of them."
        )


def _list_delayed(collection: Any) -> list[Any]:
    """Return the partitions of a collection as they are counted."""
    items: list[Any] = np.ravel(collection.to_delayed()).tolist()
    if is_frame(collection) and len(items) != collection.npartitions:
        # Dask's optimiser reads several files at once where few of their columns are needed,
        # so that the labels of a table would have other partitions than its features.
        items = collection.to_delayed(optimize_graph=False)
    return items


def list_partitions(X: Any, y: Any, sample_weight: Any) -> list[Partition]:
    """Return the partitions of a table; refuse columns that do not fit it."""
    y = _check_column("y", y)
    _check_pairs(X, "y", y)
    columns = [y]
    if sample_weight is not None:
        sample_weight = _check_column("sample_weight", sample_weight)
        _check_pairs(X, "sample_weight", sample_weight)
        columns.append(sample_weight)
    parts = [_list_delayed(collection) for collection in (X, *columns)]
    weights = parts[2] if sample_weight is not None else [None] * len(parts[0])
    return [Partition(*items) for items in zip(parts[0], parts[1], weights, strict=True)]


def to_table(X: Any) -> NDArray[Any]:
    """Return the numbers of a partition, float32 or float64, copied only where they must be."""
    try:
        table = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(show_gaps(X))
        if table.dtype not in (np.float32, np.float64):
            table = table.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"X must hold numbers: {error}; encode its other columns first."
        ) from error
    return np.require(table, requirements="A")


def count_bytes(collection: Any) -> float:
    """Return the size of a collection, infinite where it is not known."""
    if collection is None:
        return 0.0
    return float(collection.nbytes) if is_array(collection) else math.inf
