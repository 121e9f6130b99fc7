"""Native core of lhtree: free functions on arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.tree import Forest, Plan

Rows = NDArray[np.float32] | NDArray[np.float64]  # C-contiguous, without infinities
Floats = NDArray[np.float64]

def grow_forest(
    X: Rows,
    code: NDArray[np.int32],
    weight: Floats | None,
    plan: Plan,
    n_threads: int,
    progress: Callable[[int], object] | None,
) -> dict[str, NDArray[Any]]: ...
def find_scale(X: Rows, weight: Floats | None) -> tuple[Floats, Floats]: ...
def find_beyond(X: Rows, limit: float) -> NDArray[np.int64]: ...
def has_infinity(X: Rows) -> bool: ...
def standardize(
    X: Rows, mean: Floats, deviation: Floats, by_columns: bool, n_threads: int
) -> Floats: ...
def vote(
    forest: Forest,
    X: Rows,
    n_classes: int,
    by_margin: bool,
    left_out: NDArray[np.uint64] | None,
    n_trees_per_member: int,
    n_threads: int,
) -> tuple[Floats, Floats, Floats]: ...
def apply(forest: Forest, X: Rows, n_threads: int) -> NDArray[np.int64]: ...
def explain(forest: Forest, X: Rows, n_classes: int, n_threads: int) -> tuple[Floats, Floats]: ...
def find_links(left: NDArray[np.int32], risk: Floats) -> tuple[Floats, Floats]: ...
def find_left_out(
    seed: int, n_members: int, n_rows: int, n_draws: int, bootstrap: bool, n_threads: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]: ...
