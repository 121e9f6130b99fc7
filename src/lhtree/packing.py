"""The arrays of a forest in few bytes, for pickles.

Nothing is lost: numbers are kept in the narrowest type that holds them all, and what
follows from other arrays is left out: children from the kind of each node, places of
terms from their number, and what leaves do not have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

NARROWER: dict[str, tuple[type[np.generic], ...]] = {
    "i": (np.uint8, np.uint16, np.int32),
    "f": (np.float32,),
}
OF_SPLITS = ("norm", "extremes")  # zero in leaves


def narrow(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers in the narrowest type that holds them."""
    for dtype in NARROWER.get(array.dtype.kind, ()):
        if np.dtype(dtype).itemsize < array.dtype.itemsize:
            with np.errstate(over="ignore"):  # what does not fit is seen by the comparison
                small = array.astype(dtype)
            if np.array_equal(small, array):
                return small
    return array


def pack(arrays: Arrays) -> Arrays:
    """Return what `unpack` needs to restore the arrays of a sound forest."""
    packed = dict(arrays)
    is_split = arrays["left"] >= 0
    del packed["left"], packed["feature_start"]
    packed["is_split"] = np.packbits(is_split)
    packed["start"] = np.diff(arrays["start"])
    for name in OF_SPLITS:
        if not np.any(arrays[name][~is_split]):
            packed[name] = arrays[name][is_split]
    if np.array_equal(arrays["threshold"][~is_split], arrays["share"][~is_split]):
        packed["threshold"] = arrays["threshold"][is_split]
    if np.array_equal(arrays["weight_sum"], arrays["n_samples"]):
        del packed["weight_sum"]
    return {name: narrow(array) for name, array in packed.items()}


def unpack(packed: Arrays) -> Arrays:
    """Return the arrays that `pack` was given."""
    n_nodes = len(packed["share"])
    is_split = np.unpackbits(packed["is_split"], count=n_nodes).astype(bool)
    arrays = {name: _widen(array) for name, array in packed.items() if name != "is_split"}
    arrays["target"] = packed["target"].astype(np.int32)
    arrays["feature"] = packed["feature"].astype(np.int32)
    arrays["rule"] = packed["rule"].astype(np.int8)
    arrays["left"] = _find_children(is_split, arrays["tree_start"])
    n_terms = arrays["start"]
    n_listed = np.where(n_terms == len(arrays["column_mean"]), 0, n_terms)
    arrays["start"] = np.append(0, np.cumsum(n_terms))
    arrays["feature_start"] = np.append(0, np.cumsum(n_listed))
    for name in (*OF_SPLITS, "threshold"):
        if len(arrays[name]) != n_nodes:
            whole = np.zeros((n_nodes, *arrays[name].shape[1:]))
            whole[is_split] = arrays[name]
            arrays[name] = whole
    if len(packed["threshold"]) != n_nodes:
        arrays["threshold"][~is_split] = arrays["share"][~is_split]
    arrays.setdefault("weight_sum", arrays["n_samples"].astype(np.float64))
    return arrays


def _widen(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def _find_children(is_split: NDArray[np.bool_], tree_start: NDArray[np.int64]) -> NDArray[Any]:
    """Return the left children: breadth-first, the k-th split has the children 2k - 1, 2k."""
    n_before: NDArray[np.int64] = np.cumsum(is_split) - is_split
    first: NDArray[np.int64] = np.repeat(n_before[tree_start[:-1]], np.diff(tree_start))
    return np.where(is_split, 2 * (n_before - first) + 1, -1).astype(np.int32)
