"""Check that the arrays of a forest describe trees that the core can walk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lhtree.model.forest import Forest

Check = tuple[bool, str]  # whether it holds, and what is wrong if not

DTYPES = {
    "tree_start": np.int64,
    "positive_class": np.int32,
    "left": np.int32,
    "start": np.int64,
    "feature_start": np.int64,
    "feature": np.int32,
    "n_samples": np.int64,
    "threshold_kind": np.int8,
}  # all others are float64


def check_forest(forest: Forest) -> None:
    """Raise a ValueError unless the arrays of a forest describe valid trees.

    Parameters
    ----------
    forest : Forest
        The forest to check.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lhtree import LHTClassifier, check_forest
    >>> check_forest(LHTClassifier().fit(*load_iris(return_X_y=True)).forest_)
    """
    for check in (_check_shapes, _check_numbers, _check_columns, _check_children, _check_nodes):
        for is_valid, message in check(forest):
            if not is_valid:
                raise ValueError(f"This is not a valid forest: {message}.")


# Each check may rely on the earlier ones.


def _check_shapes(forest: Forest) -> Iterator[Check]:
    for name, array in vars(forest).items():
        wanted = np.dtype(DTYPES.get(name, np.float64))
        yield array.dtype == wanted, f"{name} has the type {array.dtype}, not {wanted}"
        yield array.ndim == 1 + (name == "extremes"), f"{name} has {array.ndim} dimensions"
        yield array.flags.c_contiguous, f"{name} is not contiguous"
    n_nodes, n_terms = len(forest.left), len(forest.weight)
    for name, n_parts, n_whole in [
        ("tree_start", len(forest.positive_class), n_nodes),
        ("start", n_nodes, n_terms),
        ("feature_start", n_nodes, len(forest.feature)),
    ]:
        bounds = getattr(forest, name)
        yield len(bounds) == n_parts + 1, f"{name} has {len(bounds)} entries"
        yield bounds[0] == 0 and bounds[-1] == n_whole, f"{name} does not cover its array"
        yield bool(np.all(np.diff(bounds) >= (name == "tree_start"))), f"{name} falls"
    of_nodes = ("threshold", "norm", "value", "n_samples", "weight_sum", "extremes")
    for name in (*of_nodes, "threshold_kind"):
        yield len(getattr(forest, name)) == n_nodes, f"{name} does not have one entry per node"
    yield forest.extremes.shape[1] == 4, "extremes does not have four columns"
    for name in ("center", "std"):
        yield len(getattr(forest, name)) == n_terms, f"{name} does not have one entry per term"
    n_columns = len(forest.column_mean)
    yield n_columns > 0, "there are no columns"
    yield len(forest.column_std) == n_columns, "column_std has the wrong length"


def _check_numbers(forest: Forest) -> Iterator[Check]:
    for name, array in vars(forest).items():
        if array.dtype == np.float64:
            yield bool(np.isfinite(array).all()), f"{name} is not finite"
    yield bool(np.all(forest.column_std > 0)), "the std of a column is not positive"
    yield bool(np.all(forest.positive_class >= 0)), "a positive class is negative"
    yield bool(np.all((forest.value >= 0) & (forest.value <= 1))), "a value is not in [0, 1]"
    yield bool(np.all(forest.n_samples > 0)), "a node has no rows"
    yield bool(np.all(forest.weight_sum > 0)), "a node's rows have no weight"
    yield bool(np.all(forest.std >= 0)), "a std is negative"


def _check_columns(forest: Forest) -> Iterator[Check]:
    n_columns = forest.n_features
    size = np.diff(forest.start)
    yield bool(np.all(size <= n_columns)), "a node has more terms than columns"
    n_listed = np.where(size == n_columns, 0, size)
    yield bool(np.array_equal(np.diff(forest.feature_start), n_listed)), "columns do not fit terms"
    node = np.repeat(np.arange(len(size)), np.diff(forest.feature_start))
    is_inside = (forest.feature >= 0) & (forest.feature < n_columns)
    yield bool(np.all(is_inside)), "a column is out of range"
    ascends = (np.diff(forest.feature) > 0) | (np.diff(node) > 0)
    yield bool(np.all(ascends)), "the columns of a node are not ascending"


def _check_children(forest: Forest) -> Iterator[Check]:
    n_nodes, is_split = len(forest.left), forest.left >= 0
    tree_size = np.diff(forest.tree_start)
    own = np.arange(n_nodes) - np.repeat(forest.tree_start[:-1], tree_size)
    yield bool(np.all(forest.left[is_split] > own[is_split])), "a child comes before its parent"
    # Breadth-first, the k-th split of a tree has the children 2k - 1 and 2k.
    n_before: NDArray[np.int64] = np.cumsum(is_split) - is_split
    rank: NDArray[np.int64] = n_before - np.repeat(n_before[forest.tree_start[:-1]], tree_size)
    yield bool(np.all(forest.left[is_split] == 2 * rank[is_split] + 1)), "children are misplaced"
    n_splits = np.add.reduceat(is_split, forest.tree_start[:-1], dtype=np.int64)
    yield bool(np.all(tree_size == 2 * n_splits + 1)), "a node has no parent, or a child is absent"
    yield bool(np.all(forest.left[~is_split] == -1)), "a leaf is not marked by -1"
    child = (forest.left + np.arange(n_nodes) - own)[is_split]
    count = forest.n_samples
    yield bool(np.all(count[child] + count[child + 1] == count[is_split])), "rows are lost"


def _check_nodes(forest: Forest) -> Iterator[Check]:
    is_split = forest.left >= 0
    n_kinds, kind = 6, forest.threshold_kind
    is_kind = np.where(is_split, (kind > 0) & (kind <= n_kinds), kind == 0)
    yield bool(is_kind.all()), "a threshold_kind is unknown, or that of a leaf at a split"
    in_split = np.repeat(is_split, np.diff(forest.start))
    is_small = (np.abs(forest.weight) <= 1) | ~in_split
    yield bool(is_small.all()), "a weight of a split is larger than one"
    norm = _compute_norms(forest)[is_split]
    yield bool(np.all(norm > 0)), "a split has no weights"
    is_norm = np.abs(forest.norm[is_split] - norm) <= 1e-9 * norm
    yield bool(is_norm.all()), "a norm is not that of the weights"
    yield bool(np.all(forest.norm[~is_split] == 0)), "a leaf has a norm"
    yield bool(np.all(forest.threshold[~is_split] == 0)), "a leaf has a threshold"
    low, high = forest.extremes[:, ::2], forest.extremes[:, 1::2]
    yield bool(np.all(low <= high)), "the extremes of a node are exchanged"


def _compute_norms(forest: Forest) -> NDArray[np.float64]:
    """Return the Euclidean length of the weights of every split; leaves are arbitrary."""
    n_nodes = len(forest.left)
    node = np.repeat(np.arange(n_nodes), np.diff(forest.start))
    with np.errstate(over="ignore", under="ignore"):
        total = np.bincount(node, np.square(forest.weight), n_nodes)
    return np.sqrt(total)
