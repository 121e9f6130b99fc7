"""Native core of lhtree: free functions on arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32] | NDArray[np.float64]  # C-contiguous, without infinities
Floats = NDArray[np.float64]
Scale = tuple[Floats, Floats]  # mean and standard deviation of the columns
# Records whose fields the core reads by name and checks: `Forest` and `Plan`.
Forest = object
Plan = object

def grow_forest(
    X: Rows,
    scale: Scale | None,
    y_encoded: NDArray[np.int32],
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
    y_encoded: NDArray[np.int32],
    weight: Floats | None,
    plan: Plan,
    n_threads: int,
    progress: Callable[[int], object] | None,
) -> dict[str, NDArray[Any]]: ...
def compute_scale(X: Rows, weight: Floats | None) -> Scale: ...
def list_columns_beyond(X: Rows, limit: float) -> NDArray[np.int64]: ...
def has_infinity(X: Rows) -> bool: ...

# ---- the exact engine: columns, boosting, walking down boosted trees ----
# Records whose fields the core reads by name and checks: `GridColumns`, `Ensemble`, `Rows`
# (of boosting) and `BoostingPlan`.

Codes = NDArray[np.uint8]
OnGrid = NDArray[np.int32] | None
Prepared = tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]

def learn_columns(
    X: Rows,
    weight: NDArray[np.int64] | None,
    held_out: NDArray[np.uint8] | None,
    n_codes: NDArray[np.int32],
    max_bins: int,
    wants_z: bool,
    n_threads: int,
) -> tuple[dict[str, NDArray[Any]], tuple[Codes, OnGrid]]: ...
def encode_rows(
    X: Rows, columns: object, wants_z: bool, n_threads: int
) -> tuple[Codes, OnGrid]: ...
def learn_sparse(
    start: NDArray[np.int64],
    column: NDArray[np.int32],
    value: Floats,
    n_columns: int,
    weight: NDArray[np.int64] | None,
    held_out: NDArray[np.uint8] | None,
    max_bins: int,
    wants_z: bool,
    n_threads: int,
) -> tuple[dict[str, NDArray[Any]], tuple[Codes, OnGrid]]: ...
def encode_sparse(
    start: NDArray[np.int64],
    column: NDArray[np.int32],
    value: Floats,
    columns: object,
    wants_z: bool,
    n_threads: int,
) -> tuple[Codes, OnGrid]: ...
def compute_log(x: float) -> float: ...
def compute_exp(x: float) -> float: ...
def prepare_ensemble(ensemble: object, columns: object) -> Prepared: ...
def sum_trees(
    X: Rows,
    ensemble: object,
    columns: object,
    prepared: Prepared,
    out_of_bag: NDArray[np.uint64] | None,
    n_threads: int,
) -> NDArray[np.int64]: ...
def find_leaves(
    X: Rows, ensemble: object, columns: object, prepared: Prepared, n_threads: int
) -> NDArray[np.int64]: ...
def divide_scores(
    X: Rows,
    ensemble: object,
    columns: object,
    prepared: Prepared,
    node_value: NDArray[np.int64],
    n_threads: int,
) -> NDArray[np.int64]: ...
def boost(
    columns: object, training: object, validation: object, loss: str, plan: object, n_threads: int
) -> dict[str, Any]: ...
def grow_averaged(
    columns: object, rows: object, plan: object, n_threads: int, report: object
) -> dict[str, Any]: ...

# ---- predicting ----

def vote(
    forest: Forest,
    X: Rows,
    n_classes: int,
    by_margin: bool,
    out_of_bag: NDArray[np.uint64] | None,
    n_trees_per_estimator: int,
    n_threads: int,
) -> tuple[Floats, Floats, Floats]: ...
def vote_shrunk(
    forest: Forest,
    X: Rows,
    strength: Sequence[float],
    n_classes: int,
    by_margin: bool,
    out_of_bag: NDArray[np.uint64] | None,
    n_trees_per_estimator: int,
    n_threads: int,
) -> tuple[Floats, Floats, Floats]: ...
def shrink(forest: Forest, strength: float) -> Floats: ...
def apply(forest: Forest, X: Rows, n_threads: int) -> NDArray[np.int64]: ...
def explain(forest: Forest, X: Rows, n_classes: int, n_threads: int) -> tuple[Floats, Floats]: ...
def list_pruning_links(left: NDArray[np.int32], risk: Floats) -> tuple[Floats, Floats]: ...
def draw_out_of_bag(
    seed: int, n_estimators: int, n_rows: int, n_draws: int, bootstrap: bool, n_threads: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]: ...

# ---- growing over partitions of the rows; see native/old/part.hpp and native/old/decide.hpp ----

AnyRows = NDArray[Any]  # float32 or float64, any strides
Positions = NDArray[np.uint32]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Terms = tuple[Ints, Floats, Floats, Floats]  # feature, weight, center, std
ChosenCut = tuple[int, float, int, Floats]  # hyperplane, threshold, its kind, count on the left
# Records of `lhtree.dask.tasks`, as the tuples that they are.
State = tuple[Positions, Floats | None, Longs, Longs]
Request = tuple[Longs, Ints, Floats, bool]
Hyperplanes = tuple[Longs, Longs, Ints, Floats]
Segments = tuple[Longs, Floats, Floats, Longs, bool]
NodeUpdates = tuple[Floats, NDArray[np.uint8], NDArray[np.uint8]]
Branches = tuple[NDArray[np.uint64], NDArray[np.uint64], Longs, Floats, Floats]

def measure_nodes(
    X: AnyRows, scale: Scale, state: State, request: Request
) -> tuple[Floats, Floats]: ...
def count_bins(
    X: AnyRows, scale: Scale, state: State, hyperplanes: Hyperplanes, segments: Segments
) -> tuple[Floats, Floats]: ...
def list_scores(
    X: AnyRows, scale: Scale, state: State, hyperplanes: Hyperplanes, segments: Segments
) -> tuple[Ints, Floats, NDArray[np.uint8], Floats]: ...
def sum_below(
    X: AnyRows, scale: Scale, state: State, hyperplanes: Hyperplanes, threshold: Floats
) -> tuple[Floats, Floats]: ...
def split_nodes(
    X: AnyRows, scale: Scale, state: State, hyperplanes: Hyperplanes, updates: NodeUpdates
) -> tuple[Positions, Floats | None, Longs, Longs]: ...
def sum_columns(
    X: AnyRows, origin: Floats, unit: Floats, row: Positions, weight: Floats | None
) -> Floats: ...
def grow_branches(
    X: Rows,
    scale: Scale | None,
    plan: Plan,
    state: State,
    branches: Branches,
    n_threads: int,
    watch: Callable[[], object] | None,
) -> dict[str, NDArray[Any]]: ...
def compute_draw_limit(
    seed: int, estimator: int, n_rows: int, n_draws: int
) -> tuple[int, int]: ...
def draw_partition(
    seed: int,
    estimator: int,
    first: int,
    n: int,
    n_rows: int,
    n_draws: int,
    bootstrap: bool,
    limit_hash: int,
    limit_row: int,
) -> Positions: ...
def make_tree_key(seed: int, estimator: int, positive_class: int) -> int: ...
def make_child_key(key: int, is_right: bool) -> int: ...
def list_tree_columns(key: int, n_columns: int, n_kept: int) -> Ints: ...
def draw_columns(key: int, column: Ints, n: int) -> Ints: ...
def classify_columns(
    column: Ints,
    origin: Floats,
    sum: Floats,
    end: Floats,
    positive_weight: float,
    negative_weight: float,
    alpha: float,
) -> NDArray[np.int8]: ...
def make_hyperplanes(
    plan: Plan,
    beta: float,
    column: Ints,
    origin: Floats,
    sum: Floats,
    positive_weight: float,
    negative_weight: float,
) -> list[Terms]: ...
def make_leaf(
    column: Ints, origin: Floats, sum: Floats, positive_weight: float, negative_weight: float
) -> Terms: ...
def compute_norm(feature: Ints, weight: Floats) -> float: ...
def list_open_bins(
    count: Floats, end: Floats, start: Longs, whole: Floats, compares_hyperplanes: bool
) -> NDArray[np.uint8]: ...
def choose_gini_cut(
    count: Floats, end: Floats, start: Longs, whole: Floats, min_weight: float
) -> ChosenCut | None: ...
def list_pure_cuts(end: Floats) -> Floats: ...
def choose_pure_cut(
    end: Floats, left: Floats, whole: Floats, gamma: float, min_weight: float
) -> ChosenCut | None: ...
