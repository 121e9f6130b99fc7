"""Native core of lhtree: free functions on arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.dask.passes import Branches, Fates, Forms, Request, Scale, Segments, State
from lhtree.model.forest import Forest, Plan

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
def grow_sparse(
    start: NDArray[np.int64],
    column: NDArray[np.int32],
    value: Floats,
    n_columns: int,
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
def vote_shrunk(
    forest: Forest,
    X: Rows,
    strength: Sequence[float],
    n_classes: int,
    by_margin: bool,
    left_out: NDArray[np.uint64] | None,
    n_trees_per_member: int,
    n_threads: int,
) -> tuple[Floats, Floats, Floats]: ...
def shrink(forest: Forest, strength: float) -> Floats: ...
def apply(forest: Forest, X: Rows, n_threads: int) -> NDArray[np.int64]: ...
def explain(forest: Forest, X: Rows, n_classes: int, n_threads: int) -> tuple[Floats, Floats]: ...
def find_links(left: NDArray[np.int32], risk: Floats) -> tuple[Floats, Floats]: ...
def find_left_out(
    seed: int, n_members: int, n_rows: int, n_draws: int, bootstrap: bool, n_threads: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]: ...

# ---- growing over parts of the rows; see native/old/part.hpp and native/old/decide.hpp ----

AnyRows = NDArray[Any]  # float32 or float64, any strides
Positions = NDArray[np.uint32]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Terms = tuple[Ints, Floats, Floats, Floats]  # feature, weight, center, deviation
ChosenCut = tuple[int, float, int, Floats]  # form, threshold, rule, count on the left

def measure_nodes(
    X: AnyRows, scale: Scale, state: State, request: Request
) -> tuple[Floats, Floats]: ...
def count_bins(
    X: AnyRows, scale: Scale, state: State, forms: Forms, segments: Segments
) -> tuple[Floats, Floats]: ...
def list_scores(
    X: AnyRows, scale: Scale, state: State, forms: Forms, segments: Segments
) -> tuple[Ints, Floats, NDArray[np.uint8], Floats]: ...
def sum_below(
    X: AnyRows, scale: Scale, state: State, forms: Forms, threshold: Floats
) -> tuple[Floats, Floats]: ...
def split_nodes(
    X: AnyRows, scale: Scale, state: State, forms: Forms, fates: Fates
) -> tuple[Positions, Floats | None, Longs, Longs]: ...
def sum_columns(
    X: AnyRows, origin: Floats, unit: Floats, row: Positions, weight: Floats | None
) -> Floats: ...
def grow_branches(
    Z: Rows,
    plan: Plan,
    state: State,
    branches: Branches,
    n_threads: int,
    watch: Callable[[], object] | None,
) -> dict[str, NDArray[Any]]: ...
def find_draw_limit(seed: int, member: int, n_rows: int, n_draws: int) -> tuple[int, int]: ...
def draw_part(
    seed: int,
    member: int,
    first: int,
    n: int,
    n_rows: int,
    n_draws: int,
    bootstrap: bool,
    limit_hash: int,
    limit_row: int,
) -> Positions: ...
def find_tree_key(seed: int, member: int, target: int) -> int: ...
def find_child_key(key: int, is_right: bool) -> int: ...
def list_tree_columns(key: int, n_columns: int, n_kept: int) -> Ints: ...
def draw_columns(key: int, column: Ints, n: int) -> Ints: ...
def judge_columns(
    column: Ints,
    origin: Floats,
    sum: Floats,
    end: Floats,
    weight_target: float,
    weight_rest: float,
    alpha: float,
) -> NDArray[np.int8]: ...
def make_planes(
    plan: Plan,
    beta: float,
    column: Ints,
    origin: Floats,
    sum: Floats,
    weight_target: float,
    weight_rest: float,
) -> list[Terms]: ...
def make_leaf(
    column: Ints, origin: Floats, sum: Floats, weight_target: float, weight_rest: float
) -> Terms: ...
def find_norm(feature: Ints, weight: Floats) -> float: ...
def find_open(
    count: Floats, end: Floats, start: Longs, whole: Floats, compares_forms: bool
) -> NDArray[np.uint8]: ...
def choose_gini_cut(
    count: Floats, end: Floats, start: Longs, whole: Floats, min_weight: float
) -> ChosenCut | None: ...
def list_pure_cuts(end: Floats) -> Floats: ...
def choose_pure_cut(
    end: Floats, left: Floats, whole: Floats, gamma: float, min_weight: float
) -> ChosenCut | None: ...
