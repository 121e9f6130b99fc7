"""The arrays of a forest in few bytes, for pickles and while it grows.

Nothing is lost: the packed form omits what follows from other arrays (children, positions
of terms) and what leaves do not have. Pickles also keep numbers in the narrowest type that
holds them all. `ensemble_packing` does the same for boosted trees.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Arrays

NARROW_INTEGERS = (np.uint8, np.int8, np.uint16, np.int16, np.int32)
OF_SPLITS = ("threshold", "norm", "extremes")  # zero in leaves


def narrow(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers in the narrowest type that holds them."""
    if array.dtype.kind == "i":
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        for dtype in NARROW_INTEGERS:
            if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
                return array.astype(dtype)
    elif array.dtype == np.float64:
        with np.errstate(over="ignore"):  # the comparison notices what does not fit
            small = array.astype(np.float32)
        if np.array_equal(small, array):
            return small
    return array


def pack(arrays: Arrays) -> Arrays:
    """Return what `unpack` needs to restore the arrays of a valid forest."""
    packed = dict(arrays)
    is_split = arrays["left"] >= 0
    del packed["left"], packed["feature_start"]
    packed["is_split"] = np.packbits(is_split)
    packed["start"] = np.diff(arrays["start"])
    for name in OF_SPLITS:
        if not np.any(arrays[name][~is_split]):
            packed[name] = arrays[name][is_split]
    if np.array_equal(arrays["weight_sum"], arrays["n_samples"]):
        del packed["weight_sum"]
    return {name: narrow(array) for name, array in packed.items()}


def unpack(packed: Arrays) -> Arrays:
    """Return the arrays that `pack` was given."""
    arrays = {name: _widen(array) for name, array in packed.items() if name != "is_split"}
    arrays["positive_class"] = packed["positive_class"].astype(np.int32)
    arrays["threshold_kind"] = packed["threshold_kind"].astype(np.int8)
    arrays["n_terms"] = arrays.pop("start")
    is_split = np.unpackbits(packed["is_split"], count=len(packed["value"])).astype(bool)
    complete(arrays, is_split, len(arrays["column_mean"]))
    return arrays


def complete(arrays: Arrays, is_split: NDArray[np.bool_], n_features: int) -> None:
    """Replace the packed arrays of a forest by its full arrays, one by one.

    Parameters
    ----------
    arrays : dict of ndarrays
        The fields of a forest, with the number of terms of every node, ``n_terms``, in
        place of `left`, `start` and `feature_start`; `feature` and `n_samples` of any
        width. If `threshold`, `norm` and `extremes` hold splits only, leaves get zeros.
        Without `weight_sum` every row counts once.
    is_split : ndarray of bool, shape (n_nodes,)
        Which nodes are splits.
    n_features : int
        Number of columns.
    """
    n_terms = arrays.pop("n_terms")
    arrays["left"] = number_children(is_split, arrays["tree_start"])
    arrays["start"] = add_up(n_terms)
    arrays["feature_start"] = add_up(np.where(n_terms == n_features, 0, n_terms))
    arrays["feature"] = arrays["feature"].astype(np.int32, copy=False)
    arrays["n_samples"] = arrays["n_samples"].astype(np.int64, copy=False)
    arrays.setdefault("weight_sum", arrays["n_samples"].astype(np.float64))
    for name in OF_SPLITS:
        if len(arrays[name]) != len(is_split):
            whole = np.zeros((len(is_split), *arrays[name].shape[1:]))
            whole[is_split] = arrays[name]
            arrays[name] = whole


def add_up(size: NDArray[Any]) -> NDArray[np.int64]:
    """Return the start of each of several consecutive entries, and the end of the last."""
    start = np.zeros(len(size) + 1, dtype=np.int64)
    np.cumsum(size, out=start[1:])
    return start


def _widen(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def number_children(is_split: NDArray[np.bool_], tree_start: NDArray[np.int64]) -> NDArray[Any]:
    """Return the left children: breadth-first, the k-th split has the children 2k - 1, 2k."""
    n_before: NDArray[np.int64] = np.cumsum(is_split) - is_split
    first: NDArray[np.int64] = np.repeat(n_before[tree_start[:-1]], np.diff(tree_start))
    return np.where(is_split, 2 * (n_before - first) + 1, -1).astype(np.int32)
