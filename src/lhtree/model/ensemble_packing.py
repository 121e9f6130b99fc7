"""The arrays of boosted trees in few bytes, for files and pickles.

Nothing is lost: the packed form omits what follows from other arrays, keeps bits as bits,
repeated thresholds once, and integers in the narrowest type that holds them all.
docs/design/file-format.md explains each array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Arrays, Ints
from lhtree.model.packing import add_up, narrow, number_children

if TYPE_CHECKING:
    from lhtree.model.ensemble import Ensemble

TREES, COLUMNS = "ensemble.", "columns."  # start the names of packed arrays
BITS = np.uint8
# What each packed array becomes when it is read.
DTYPES: dict[str, type[np.generic]] = {
    TREES + "base": np.int64,
    TREES + "n_nodes": np.int32,
    TREES + "is_split": BITS,
    TREES + "value": np.int32,
    TREES + "value_index": np.int32,
    TREES + "leaf_weight": np.int64,
    TREES + "column": np.int32,
    TREES + "missing_left": BITS,
    TREES + "threshold": np.float64,
    TREES + "threshold_index": np.int32,
    TREES + "codes": BITS,
    TREES + "n_terms": np.int32,
    TREES + "feature": np.int32,
    TREES + "coefficient": np.int16,
    TREES + "fill": np.int32,
    TREES + "cut": np.int64,
    TREES + "importance": np.float64,
    COLUMNS + "n_codes": np.int32,
    COLUMNS + "power": np.int16,
    COLUMNS + "origin": np.float64,
    COLUMNS + "low": np.int32,
    COLUMNS + "high": np.int32,
    COLUMNS + "fill": np.int32,
    COLUMNS + "has_gaps": BITS,
}
OF_COLUMNS = [name.removeprefix(COLUMNS) for name in DTYPES if name.startswith(COLUMNS)]
CODE_BYTES = 32  # of a split by categories


def pack(ensemble: Ensemble) -> Arrays:
    """Return what `unpack` needs, beside power and origin, to restore a valid ensemble."""
    columns = ensemble.columns
    is_split = ensemble.left >= 0
    column = ensemble.column[is_split]
    is_number, is_category, _ = _sort_splits(column, columns.n_codes)
    value, value_index = _list_values(ensemble.value.ravel())
    bits = ensemble.threshold.view(np.int64)  # 0.0 and -0.0 differ
    distinct, index = np.unique(bits, return_inverse=True)
    parts = {
        "base": ensemble.base,
        "n_nodes": np.diff(ensemble.tree_start),
        "is_split": np.packbits(is_split),
        "value": value,
        "value_index": value_index,
        "leaf_weight": ensemble.weight[~is_split],
        "column": column,
        "missing_left": np.packbits(ensemble.missing_left[is_split][is_number]),
        "threshold": distinct.view(np.float64),
        "threshold_index": index,
        "codes": cut_codes(ensemble.codes, columns.n_codes[column[is_category]]),
        "n_terms": np.diff(ensemble.term_start),
        "feature": ensemble.feature,
        "coefficient": ensemble.coefficient,
        "fill": ensemble.fill[columns.has_gaps[ensemble.feature] > 0],
        "cut": ensemble.cut,
        "importance": ensemble.importance,
    }
    of_columns = {name: getattr(columns, name) for name in OF_COLUMNS}
    of_columns["has_gaps"] = np.packbits(columns.has_gaps)
    return {
        **{TREES + name: narrow(array) for name, array in parts.items()},
        **{COLUMNS + name: narrow(array) for name, array in of_columns.items()},
    }


def unpack(packed: Arrays) -> tuple[Arrays, Arrays]:
    """Return the arrays of trees and those of columns; raise a ValueError if they do not fit.

    What these checks leave open, an `Ensemble` of the arrays checks.
    """
    arrays = {name: _widen(packed, name) for name in DTYPES}
    columns = _unpack_columns(arrays)
    trees = {name: arrays[TREES + name] for name in ("base", "coefficient", "cut", "importance")}
    is_split = _unpack_nodes(arrays, trees)
    n_planes = _unpack_splits(arrays, columns["n_codes"], is_split, trees)
    _unpack_terms(arrays, columns, n_planes, trees)
    return trees, columns


def _list_values(value: NDArray[np.int32]) -> tuple[NDArray[np.int32], Ints]:
    """Return distinct values and the position of each, if that takes less; else all values."""
    distinct, index = np.unique(value, return_inverse=True)
    index = index.reshape(-1).astype(np.int64)
    listed = narrow(distinct).nbytes + narrow(index).nbytes
    if listed < narrow(value).nbytes:
        return distinct, index
    return value, index[:0]


def _sort_splits(
    column: NDArray[np.int32], n_codes: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which splits are by numbers, by categories and by hyperplanes."""
    is_plane = column < 0
    is_category = ~is_plane & (n_codes[column] > 0)
    return ~is_plane & ~is_category, is_category, is_plane


def _mask_codes(n_codes: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which bytes of the bits of categories are kept.

    They hold a bit for each code, one for missing values, and one for codes that the column
    does not have: all bits after it are the same.
    """
    mask: NDArray[np.bool_] = np.arange(CODE_BYTES) < ((n_codes + 9) // 8)[:, np.newaxis]
    return mask


def cut_codes(codes: NDArray[np.uint64], n_codes: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Return the bits of the splits by categories without those that follow from others."""
    return codes.astype("<u8").view(np.uint8)[_mask_codes(n_codes)]


def restore_codes(cut: NDArray[np.uint8], n_codes: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return the bits that `cut_codes` was given."""
    mask = _mask_codes(n_codes)
    _demand(len(cut) == np.count_nonzero(mask), "codes does not have the bytes of all splits")
    codes = np.zeros(mask.shape, dtype=np.uint8)
    codes[mask] = cut
    last = np.minimum(n_codes + 1, 8 * CODE_BYTES - 1)
    is_set = codes[np.arange(len(codes)), last // 8] >> (last % 8).astype(np.uint8) & 1
    codes[~mask & (is_set > 0)[:, np.newaxis]] = 255
    return codes.view("<u8").astype(np.uint64)


def _widen(packed: Arrays, name: str) -> NDArray[Any]:
    """Return an array in the type of its field."""
    if name not in packed:
        raise ValueError(f"the array {name!r} is missing")
    array, dtype = packed[name], np.dtype(DTYPES[name])
    is_integer = dtype.kind in "iu"
    if array.ndim != 1 or array.dtype.kind not in ("iu" if is_integer else "f"):
        raise ValueError(f"the array {name!r} is not a list of {dtype}")
    if is_integer and array.size:
        bounds = np.iinfo(dtype)
        if int(array.min()) < bounds.min or int(array.max()) > bounds.max:
            raise ValueError(f"the array {name!r} has values beyond {dtype}")
    return array.astype(dtype)


def _demand(is_valid: bool, problem: str) -> None:
    if not is_valid:
        raise ValueError(problem)


def _unpack_bits(arrays: Arrays, name: str, count: int) -> NDArray[np.uint8]:
    bits = arrays[name]
    _demand(len(bits) == (count + 7) // 8, f"the array {name!r} does not have {count} bits")
    return np.unpackbits(bits, count=count)


def _unpack_columns(arrays: Arrays) -> Arrays:
    columns = {name: arrays[COLUMNS + name] for name in OF_COLUMNS}
    n_columns = len(columns["n_codes"])
    columns["has_gaps"] = _unpack_bits(arrays, COLUMNS + "has_gaps", n_columns)
    for name, array in columns.items():
        _demand(len(array) == n_columns, f"columns.{name} does not have one entry per column")
    columns["threshold"] = np.empty(0)  # splits have their own
    columns["threshold_start"] = np.zeros(n_columns + 1, dtype=np.int64)
    return columns


def _unpack_nodes(arrays: Arrays, trees: Arrays) -> NDArray[np.bool_]:
    """Add children, weights and values of the nodes; return which nodes are splits."""
    n_nodes = arrays[TREES + "n_nodes"]
    _demand(bool(np.all(n_nodes > 0)), "a tree has no node")
    start = trees["tree_start"] = add_up(n_nodes)
    bits = _unpack_bits(arrays, TREES + "is_split", int(start[-1]))
    is_split: NDArray[np.bool_] = bits.astype(bool)
    left = trees["left"] = number_children(is_split, start)
    own = np.arange(len(left)) - np.repeat(start[:-1], n_nodes)
    n_splits = np.diff(add_up(is_split)[start])
    is_whole = bool(np.all(n_nodes == 2 * n_splits + 1))
    _demand(is_whole, "a node has no parent, or a child is absent")
    _demand(bool(np.all(left[is_split] > own[is_split])), "a child comes before its parent")
    of_leaves = arrays[TREES + "leaf_weight"]
    n_leaves, n_outputs = int(np.count_nonzero(~is_split)), len(trees["base"])
    _demand(len(of_leaves) == n_leaves, "leaf_weight does not have one entry per leaf")
    trees["weight"] = _add_weights(of_leaves, np.where(is_split, left - own, 0))
    value = arrays[TREES + "value"]
    index = arrays[TREES + "value_index"]
    if len(index):
        is_inside = (index >= 0) & (index < len(value))
        _demand(bool(np.all(is_inside)), "a leaf has an unknown value")
        value = value[index]
    is_fitting = n_outputs > 0 and len(value) in (n_leaves, n_leaves * n_outputs)
    _demand(is_fitting, "value does not have one entry per leaf, or per leaf and output")
    is_narrow = len(value) == n_leaves and n_leaves > 0
    trees["value"] = value.reshape(n_leaves, 1 if is_narrow else n_outputs)
    return is_split


def _add_weights(of_leaves: Ints, to_left: Ints) -> Ints:
    """Return the weights of all nodes from those of the leaves.

    `to_left` is how far away the left child of each split is, 0 for leaves.
    """
    weight = np.zeros(len(to_left), dtype=np.int64)
    weight[to_left == 0] = of_leaves
    level = np.flatnonzero(to_left)  # then the splits whose parents are splits, and so on
    levels = []
    while len(level):
        levels.append(level)
        left = level + to_left[level]
        child = np.concatenate([left, left + 1])
        level = child[to_left[child] > 0]
    for level in reversed(levels):
        left = level + to_left[level]
        weight[level] = weight[left] + weight[left + 1]
    return weight


def _unpack_splits(
    arrays: Arrays, n_codes: NDArray[np.int32], is_split: NDArray[np.bool_], trees: Arrays
) -> int:
    """Add what splits by single columns have; return the number of hyperplanes."""
    column = arrays[TREES + "column"]
    split = np.flatnonzero(is_split)
    _demand(len(column) == len(split), "column does not have one entry per split")
    is_inside = (column >= -1) & (column < len(n_codes))
    _demand(bool(np.all(is_inside)), "a split has an unknown column")
    is_number, is_category, is_plane = _sort_splits(column, n_codes)
    trees["column"] = np.full(len(is_split), -1, dtype=np.int32)
    trees["column"][split] = column
    n_numbers = int(np.count_nonzero(is_number))
    trees["missing_left"] = np.zeros(len(is_split), dtype=np.uint8)
    bits = _unpack_bits(arrays, TREES + "missing_left", n_numbers)
    trees["missing_left"][split[is_number]] = bits
    distinct, index = arrays[TREES + "threshold"], arrays[TREES + "threshold_index"]
    _demand(len(index) == n_numbers, "threshold_index does not have one entry per split")
    is_inside = (index >= 0) & (index < len(distinct))
    _demand(bool(np.all(is_inside)), "a split has an unknown threshold")
    trees["threshold"] = distinct[index]
    of_splits = n_codes[column[is_category]]
    trees["codes"] = restore_codes(arrays[TREES + "codes"], of_splits)
    return int(np.count_nonzero(is_plane))


def _unpack_terms(arrays: Arrays, columns: Arrays, n_planes: int, trees: Arrays) -> None:
    """Add the terms of the hyperplanes."""
    n_terms, feature = arrays[TREES + "n_terms"], arrays[TREES + "feature"]
    _demand(len(n_terms) == n_planes, "n_terms does not have one entry per hyperplane")
    _demand(bool(np.all(n_terms >= 0)), "a hyperplane has a negative number of terms")
    start = trees["term_start"] = add_up(n_terms)
    _demand(len(feature) == start[-1], "feature does not have one entry per term")
    is_inside = (feature >= 0) & (feature < len(columns["n_codes"]))
    _demand(bool(np.all(is_inside)), "a hyperplane has an unknown column")
    trees["feature"] = feature
    trees["fill"] = columns["fill"][feature]
    has_own = columns["has_gaps"][feature] > 0
    own = arrays[TREES + "fill"]
    is_fitting = len(own) == np.count_nonzero(has_own)
    _demand(is_fitting, "fill does not have one entry per term whose column has gaps")
    trees["fill"][has_own] = own
