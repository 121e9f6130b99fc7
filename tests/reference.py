"""Hyperplane trees in plain NumPy: the definition of correct.

Everything that a model computes is here once, as plainly as possible and without
regard to speed: drawing rows and columns, growing a tree, and voting. Tests compare
the native core with it. ``Z`` is the table in the units in which trees are grown.

A value may be missing (NaN). The statistics of a column then use the rows that have it,
and a missing value stands for the column's mean in the node: in the projections of a
split, in Fisher's correlations, and in a leaf, where it adds nothing.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Terms = tuple[Ints, Floats, Floats, Floats]  # feature, weight, center, std
Rows = tuple[Floats, Bools, Floats]  # Z, is_positive, weight of the rows of a node
Statistics = tuple[Floats, Floats, Floats]  # mean, variance, contrast of each column
Hyperplane = tuple[Ints, Floats]  # feature, weight
Split = tuple[float, int, Floats, Terms, Bools]  # threshold, its kind, extremes, terms, is_left


@dataclass(frozen=True)
class Params:
    """Parameters of one tree."""

    alpha: float = 0.0
    beta: float = 0.0
    gamma: float = 2.0
    min_samples_split: float = 2.0
    max_depth: int | None = None
    min_weight_fraction_leaf: float = 0.0
    min_samples_leaf: float = 0.0  # least weight of a side of a split
    max_leaf_nodes: int | None = None
    ccp_alpha: float = 0.0
    n_columns: int | None = None  # columns drawn at each node; None: all
    contrast: str = "mean"  # or "standardized" or "fisher"
    criterion: str = "purity"  # or "gini"
    n_hyperplanes: int = 1  # candidates over parts of the columns drawn
    axis_splits: bool = False  # whether each column drawn is a candidate of its own


@dataclass
class Tree:
    """One tree; nodes are numbered breadth-first, the right child is ``left + 1``."""

    left: Ints  # -1 marks a leaf
    threshold: Floats  # 0 at a leaf
    value: Floats  # weighted fraction of positive rows
    n_samples: Ints  # number of rows, not weighted
    weight_sum: Floats  # weighted number of rows
    threshold_kind: Ints  # 0: leaf, 1 to 4: N1 to N4, 5: e, 6: least impurity
    extremes: Floats  # (n_nodes, 4): minT, maxT, minN, maxN; zeros at a leaf
    # The terms of each node, columns ascending: all that are not zero.
    feature: list[Ints]
    weight: list[Floats]  # w at a split, slope a at a leaf
    center: list[Floats]  # mean in the node
    std: list[Floats]  # population standard deviation in the node
    # Only trees that were grown have these.
    positive_sum: Floats = field(
        default_factory=lambda: np.zeros(0)
    )  # weight of the positive rows
    key: list[Any] = field(default_factory=list)  # of the node's draws: none twice


# ---- Draws: a counter-based hash, so that they depend on nothing but the numbers


@np.errstate(over="ignore")  # arithmetic is meant to be modulo 2**64
def hash64(key: ArrayLike, counter: ArrayLike) -> Any:
    """Return the splitmix64 output number ``counter`` of the stream ``key``."""
    step, one = np.uint64(0x9E3779B97F4A7C15), np.uint64(1)
    z = np.asarray(key).astype(np.uint64)
    z = z + (np.asarray(counter).astype(np.uint64) + one) * step
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def draw_smallest(key: ArrayLike, number: Ints, n_drawn: int | None) -> Ints:
    """Return those of ascending ``number`` with the smallest hashes; None: all."""
    order = np.argsort(hash64(key, number), kind="stable")  # equal hashes: by number
    return np.sort(number[order[:n_drawn]])


def draw_rows(
    seed: int, estimator: int, n_rows: int, n_draws: int, bootstrap: bool
) -> tuple[Ints, Ints]:
    """Return the rows of an estimator, ascending, and how often each was drawn."""
    key = hash64(seed, estimator)
    if bootstrap:
        drawn = hash64(key, np.arange(n_draws)) % np.uint64(n_rows)
        return np.unique(drawn.astype(np.int64), return_counts=True)
    rows = draw_smallest(key, np.arange(n_rows), n_draws)
    return rows, np.ones_like(rows)


def tree_key(seed: int, estimator: int, positive_class: int) -> Any:
    """Return the key of the draws of one tree, which is also that of its root."""
    return hash64(hash64(seed, estimator), ~positive_class)


def tree_columns(key: ArrayLike, n_features: int, n_kept: int | None) -> Ints:
    """Return the columns that one tree may use."""
    return draw_smallest(key, np.arange(n_features), n_kept)


def draw_columns(key: ArrayLike, columns: Ints, is_usable: Bools, n_wanted: int | None) -> Ints:
    """Shuffle ``columns`` until ``n_wanted`` usable ones are found; None: all."""
    position = columns.copy()
    found: list[int] = []
    for i in range(len(position)):
        if len(found) == n_wanted:
            break
        j = i + int(hash64(key, i) % np.uint64(len(position) - i))
        position[i], position[j] = position[j], position[i]
        if is_usable[position[i]]:
            found.append(position[i])
    return np.array(found, dtype=np.int64)


# ---- Weights and scale


def resolve_weight(sample_weight: ArrayLike) -> Floats:
    """Return integer weights as they are, others with mean one where positive."""
    weight = np.asarray(sample_weight, dtype=np.float64)
    if np.all(weight == np.floor(weight)):
        return weight
    scaled: Floats = weight / weight[weight > 0].mean()
    return scaled


def standardization(X: ArrayLike, weight: Floats) -> tuple[Floats, Floats]:
    """Return mean and population standard deviation of the columns; 1 for constant ones."""
    counts = weight > 0
    X, weight = np.asarray(X, dtype=np.float64)[counts], weight[counts]
    low, high = compute_range(X)
    estimate = average(X, weight)
    mean = estimate + average(X - estimate, weight)
    mean = np.where(low == high, low, mean)  # z of a constant column is exactly 0
    # Squares of tiny numbers would underflow: measure in units of the largest.
    unit = np.maximum(high - mean, mean - low)
    unit = np.where(unit > 0, unit, 1.0)
    std = unit * np.sqrt(average(((X - mean) / unit) ** 2, weight))
    return mean, np.where(std > 0, std, 1.0)  # all missing: 0 and 1


# ---- Statistics of a node


def sum_present(Z: Floats, weight: Floats) -> Floats:
    """Return the weight of the rows that have a value, for each column."""
    return np.asarray(weight @ ~np.isnan(Z))


def average(Z: Floats, weight: Floats) -> Floats:
    """Return the weighted mean of the values that are there; 0 if there is none."""
    total = sum_present(Z, weight)
    return np.asarray(weight @ np.where(np.isnan(Z), 0.0, Z) / np.where(total > 0, total, 1.0))


def compute_range(Z: Floats) -> tuple[Floats, Floats]:
    """Return the least and largest value of each column; 0 if there is none."""
    is_missing = np.isnan(Z)
    low = np.where(is_missing, np.inf, Z).min(axis=0)
    high = np.where(is_missing, -np.inf, Z).max(axis=0)
    is_empty = is_missing.all(axis=0)
    return np.where(is_empty, 0.0, low), np.where(is_empty, 0.0, high)


def fill_missing(Z: Floats, center: Floats) -> Floats:
    """Return the table with ``center`` of each column where a value is missing."""
    return np.where(np.isnan(Z), center, Z)


def compute_moments(Z: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Compute mean and variance as their formulas say."""
    mean = average(Z, weight)
    return mean, average((Z - mean) ** 2, weight)


def choose_origin(Z: Floats, weight: Floats) -> Floats:
    """Return what to subtract from each column before its sums are taken."""
    mean, variance = compute_moments(Z, weight)
    # A column far from 0 for its spread would lose its digits in the sums. Its least
    # value is near, depends on no rounding, and keeps sums of integers exact. All
    # other columns have the origin 0, which leaves their values untouched.
    return np.where(variance < 1e-6 * mean**2, compute_range(Z)[0], 0.0)


def compute_statistics(Z: Floats, is_positive: Bools, weight: Floats) -> Statistics:
    """Compute the statistics of a node that holds both classes.

    A column without a value in the positive or in the negative rows counts as constant.
    """
    low, high = compute_range(Z)
    origin, is_negative = choose_origin(Z, weight), ~is_positive
    Z = Z - origin
    mean, variance = compute_moments(Z, weight)
    positive, negative = Z[is_positive], Z[is_negative]
    contrast = average(positive, weight[is_positive]) - average(negative, weight[is_negative])
    is_one_sided = np.isnan(positive).all(axis=0) | np.isnan(negative).all(axis=0)
    is_ignored = (low == high) | is_one_sided
    variance = np.where(is_ignored, 0.0, variance)
    is_zero = is_ignored | (np.abs(contrast) <= 1e-10 * np.sqrt(variance))
    return origin + mean, variance, np.where(is_zero, 0.0, contrast)


def average_about(Z: Floats, weight: Floats) -> Floats:
    """Return the mean of each column, taken about its origin."""
    origin = choose_origin(Z, weight)
    return origin + average(Z - origin, weight)


def compute_covariance(Z: Floats, weight: Floats) -> Floats:
    """Compute the population covariance of the columns."""
    Z = Z - choose_origin(Z, weight)
    Z = Z - weight @ Z / weight.sum()
    return np.asarray((weight * Z.T) @ Z / weight.sum())


# ---- Hyperplanes


def subtract_products(x: float, a: Floats, b: Floats) -> float:
    """Subtract the products of the elements of a and b from x, one after the other."""
    for k in range(len(a)):
        x -= a[k] * b[k]
    return x


def solve(R: Floats, b: Floats) -> Floats | None:
    """Solve ``R a = b`` by Cholesky's method; None if R is not positive definite."""
    p = len(b)
    L, y, a = np.zeros((p, p)), np.zeros(p), np.zeros(p)
    for i in range(p):
        for j in range(i + 1):
            x = subtract_products(R[i, j], L[i, :j], L[j, :j])
            if i == j and x <= 0:
                return None
            L[i, j] = np.sqrt(x) if i == j else x / L[j, j]
    for i in range(p):
        y[i] = subtract_products(b[i], L[i, :i], y[:i]) / L[i, i]
    for i in reversed(range(p)):
        a[i] = subtract_products(y[i], L[i + 1 :, i], a[i + 1 :]) / L[i, i]
    return a


def solve_fisher(rows: Rows, feature: Ints, contrast: Floats, std: Floats) -> Floats | None:
    """Return Fisher's direction in units of the stds; None if there is none."""
    Z, is_positive, weight = rows
    p, total = len(feature), weight.sum()
    Z = Z[:, feature]
    # What the class leaves of the correlation of the columns, missing values at the mean.
    filled = np.column_stack([fill_missing(Z, average_about(Z, weight)), is_positive])
    covariance = compute_covariance(filled, weight)
    unit = np.sqrt(np.diag(covariance))
    R = covariance / np.outer(unit, unit)
    R = R[:p, :p] - np.outer(R[p, :p], R[p, :p])
    R = np.where(np.eye(p, dtype=bool), R + 0.1, R * (total / (total + p)))
    a = solve(R, contrast / std)
    if a is None:
        return None
    return np.where(np.abs(a) <= 1e-10 * np.abs(a).max(initial=0.0), 0.0, a)  # less is rounding


def weigh_hyperplane(
    rows: Rows, params: Params, statistics: Statistics, feature: Ints
) -> Hyperplane | None:
    """Return the columns that a hyperplane over ``feature`` keeps and their weights."""
    _, variance, contrast = (of_column[feature] for of_column in statistics)
    std = np.sqrt(variance)
    unit = np.ones_like(std) if params.contrast == "mean" else std
    strength: Floats | None = contrast / unit
    if params.contrast == "fisher":
        strength = solve_fisher(rows, feature, contrast, std)
    if strength is None or not np.isfinite(strength).all() or not strength.any():
        return None  # also if there is no column
    w = strength / unit
    is_kept = (np.abs(strength / np.abs(strength).max()) >= params.beta) & (w != 0)
    feature, w = feature[is_kept], w[is_kept]
    w = w / np.abs(w).max(initial=0.0)
    return feature[w != 0], w[w != 0]  # a quotient may underflow


def make_candidates(
    rows: Rows, params: Params, key: ArrayLike, columns: Ints
) -> Iterator[Hyperplane]:
    """Yield the columns and weights of a node's candidates: hyperplanes, then single columns."""
    statistics = compute_statistics(*rows)
    is_usable = statistics[1] > params.alpha  # the variance of a constant column is 0
    drawn = draw_columns(hash64(key, ~2), columns, is_usable, params.n_columns)
    for c in range(params.n_hyperplanes):
        # All columns drawn, their first and second half, then quarters, and so on.
        n_parts = 2 ** ((c + 1).bit_length() - 1)
        part = c + 1 - n_parts
        begin, end = (len(drawn) * k // n_parts for k in (part, part + 1))
        hyperplane = weigh_hyperplane(rows, params, statistics, np.sort(drawn[begin:end]))
        if hyperplane is not None:
            yield hyperplane
    for j in drawn if params.axis_splits else []:
        yield np.array([j]), np.ones(1)


# ---- Growing


def sum_terms(feature: Ints, term: Floats) -> Floats:
    """Sum the columns of ``term`` (n_rows, n_terms) in the order that is defined."""
    lane = np.zeros((8, len(term)))
    for k, j in enumerate(feature):
        lane[j % 8] += term[:, k]
    even: Floats = (lane[0] + lane[4]) + (lane[2] + lane[6])
    odd: Floats = (lane[1] + lane[5]) + (lane[3] + lane[7])
    return even + odd


def project(Z: Floats, feature: Ints, weight: Floats, center: Floats) -> Floats:
    """Return FS of each row; a missing value stands for its center."""
    return sum_terms(feature, weight * fill_missing(Z[:, feature], center))


def measure_impurity(is_left: Bools, is_positive: Bools, weight: Floats) -> Any:
    """Return Gini's impurity of a cut; of several if ``is_left`` has a row for each."""
    n, t = is_left @ weight, is_left @ (weight * is_positive)
    rest_n, rest_t = ~is_left @ weight, ~is_left @ (weight * is_positive)
    return (t * (n - t) / n + rest_t * (rest_n - rest_t) / rest_n) / weight.sum()


def leaves_enough(is_left: Bools, weight: Floats, least: float) -> Any:
    """Return whether both sides of a cut, or of several, weigh at least ``least``."""
    return (is_left @ weight >= least) & (~is_left @ weight >= least)


def choose_gini_cut(
    score: Floats, is_positive: Bools, weight: Floats, least: float
) -> float | None:
    """Return the lowest of the cuts of least impurity that leave enough on both sides."""
    value = np.unique(score)
    below, above = value[:-1], value[1:]
    middle = below + (above - below) / 2
    cut: Floats = np.where(middle <= below, above, middle)
    cut = cut[leaves_enough(score < cut[:, None], weight, least)]
    if not len(cut):
        return None
    impurity = measure_impurity(score < cut[:, None], is_positive, weight)
    return float(cut[impurity <= impurity.min() + 1e-12].min())


def choose_threshold(
    score: Floats, is_positive: Bools, weight: Floats, params: Params
) -> tuple[float | None, int, Floats]:
    """Return threshold, its kind and extremes for projections that are not all equal.

    The threshold is None if no cut leaves enough rows on both sides.
    """
    least = params.min_samples_leaf
    positive, negative = score[is_positive], score[~is_positive]
    min_t, max_t, min_n, max_n = positive.min(), positive.max(), negative.min(), negative.max()
    extremes = np.array([min_t, max_t, min_n, max_n])
    if params.criterion == "gini":
        return choose_gini_cut(score, is_positive, weight, least), 6, extremes
    count = [
        weight[is_positive & (score < min_n)].sum(),
        weight[is_positive & (score > max_n)].sum(),
        weight[~is_positive & (score < min_t)].sum(),
        weight[~is_positive & (score > max_t)].sum(),
    ]
    best = int(np.argmax(count))  # the first of equal ones
    # Nothing to cut off (all counts 0) must not pass even a gamma of 0.
    is_large = count[best] >= params.gamma and count[best] > 0
    if is_large and min(count[best], weight.sum() - count[best]) >= least:
        cut = [min_n, np.nextafter(max_n, np.inf), min_t, np.nextafter(max_t, np.inf)]
        return cut[best], best + 1, extremes
    e = min_n / 4 + max_n / 4 + min_t / 4 + max_t / 4
    # Rounding must leave neither side empty.
    e = min(max(e, np.nextafter(score.min(), np.inf)), score.max())
    return e if leaves_enough(score < e, weight, least) else None, 5, extremes


def fit_leaf(Z: Floats, is_positive: Bools, weight: Floats, least: float, columns: Ints) -> Terms:
    """Return the terms of a leaf; none if a class weighs nothing or below ``least``."""
    positive, negative = weight[is_positive], weight[~is_positive]
    has_both = positive.size > 0 and negative.size > 0
    if not has_both or min(positive.sum(), negative.sum()) < least:
        return columns[:0], np.zeros(0), np.zeros(0), np.zeros(0)
    mean, variance, contrast = compute_statistics(Z, is_positive, weight)
    feature = columns[variance[columns] > 0]
    # P is 0 or 1, hence Cov(X, P) = p (1 - p) contrast, with p the fraction of positive rows
    # among those that have X.
    p = sum_present(Z[is_positive], positive) / np.maximum(sum_present(Z, weight), 1e-300)
    p = p[feature]
    slope = p * (1 - p) * contrast[feature] / variance[feature]
    feature, slope = feature[slope != 0], slope[slope != 0]
    return feature, slope, mean[feature], np.sqrt(variance[feature])


def choose_split(
    rows: Rows, params: Params, least: float, key: ArrayLike, columns: Ints
) -> Split | None:
    """Return the best split of a node, the first of equal ones; None: a leaf."""
    Z, is_positive, weight = rows
    if is_positive.all() or not is_positive.any():  # rows decide, whatever they weigh
        return None
    mean, variance, _ = compute_statistics(Z, is_positive, weight)
    best, least_impurity = None, np.inf
    for feature, w in make_candidates(rows, params, key, columns):
        score = project(Z, feature, w, mean[feature])
        if score.min() == score.max():  # also if no feature is left
            continue
        threshold, kind, extremes = choose_threshold(score, is_positive, weight, params)
        if threshold is None:
            continue
        is_left = score < threshold
        if min(weight[is_left].sum(), weight[~is_left].sum()) < least:
            continue
        impurity = measure_impurity(is_left, is_positive, weight)
        if impurity < least_impurity - 1e-12:
            terms = feature, w, mean[feature], np.sqrt(variance[feature])
            best, least_impurity = (threshold, kind, extremes, terms, is_left), impurity
    return best


def grow_fully(
    table: Rows, params: Params, key: ArrayLike, columns: Ints, collapsed: frozenset[Any]
) -> Tree:
    """Grow a tree in which the nodes with the keys ``collapsed`` are leaves."""
    Z, is_positive, weight = table
    least = params.min_weight_fraction_leaf * weight.sum()
    nodes: list[tuple[Any, ...]] = []  # fields in the order of `Tree`
    queue = deque([(np.arange(len(Z)), key, 0)])
    while queue:
        rows, key, depth = queue.popleft()
        z, p, v = Z[rows], is_positive[rows], weight[rows]
        value, split = v[p].sum() / v.sum(), None
        is_large = v.sum() >= params.min_samples_split
        if is_large and depth != params.max_depth and int(key) not in collapsed:
            split = choose_split((z, p, v), params, least, key, columns)
        if split is None:
            left, threshold, kind, extremes = -1, 0.0, 0, np.zeros(4)
            terms = fit_leaf(z, p, v, least, columns)
        else:
            threshold, kind, extremes, terms, is_left = split
            # The children follow all nodes that are made or wait to be made.
            left = len(nodes) + 1 + len(queue)
            queue.append((rows[is_left], hash64(key, ~0), depth + 1))
            queue.append((rows[~is_left], hash64(key, ~1), depth + 1))
        head = left, threshold, value, len(rows), v.sum(), kind, extremes
        nodes.append((*head, *terms, v[p].sum(), int(key)))
    fields: list[Any] = [list(field) for field in zip(*nodes, strict=True)]
    return Tree(*map(np.array, fields[:7]), *fields[7:11], np.array(fields[11]), fields[12])


def grow(
    Z: ArrayLike,
    is_positive: ArrayLike,
    weight: ArrayLike,
    params: Params,
    key: ArrayLike = 0,
    columns: Ints | None = None,
) -> Tree:
    """Grow a tree from rows of positive weight; ``columns``: those it may use."""
    Z, weight = np.asarray(Z, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    table = Z, np.asarray(is_positive, dtype=bool), weight
    columns = np.arange(Z.shape[1]) if columns is None else np.asarray(columns)
    collapsed: frozenset[Any] = frozenset()
    tree = grow_fully(table, params, key, columns, collapsed)
    if params.max_leaf_nodes is not None:
        collapsed |= keep_best_first(tree, params.max_leaf_nodes)
        tree = grow_fully(table, params, key, columns, collapsed)
    if params.ccp_alpha > 0:
        collapsed |= cut_weakest_links(tree, params.ccp_alpha)[0]
        tree = grow_fully(table, params, key, columns, collapsed)
    return tree


# ---- Small trees


def weigh_impurity(tree: Tree) -> Floats:
    """Return half of the Gini impurity of each node times its weight."""
    t, n = tree.positive_sum, tree.weight_sum
    return np.asarray(t * (n - t) / n)


def keep_best_first(tree: Tree, max_leaf_nodes: int) -> frozenset[Any]:
    """Return the keys of the splits that are dropped if the best are kept first."""
    impurity, is_split = weigh_impurity(tree), tree.left >= 0
    kept: set[int] = set()
    frontier = [0] if is_split[0] else []
    while frontier and len(kept) + 1 < max_leaf_nodes:
        child = tree.left[frontier]
        decrease = impurity[frontier] - impurity[child] - impurity[child + 1]
        best = frontier.pop(int(np.argmax(decrease)))  # ascending: the first of equal ones
        kept.add(best)
        frontier += [int(c) for c in (tree.left[best], tree.left[best] + 1) if is_split[c]]
        frontier.sort()
    return frozenset(tree.key[i] for i in np.flatnonzero(is_split) if i not in kept)


def list_leaves(left: Ints, node: int) -> list[int]:
    """Return the leaves below a node."""
    if left[node] < 0:
        return [node]
    return list_leaves(left, left[node]) + list_leaves(left, left[node] + 1)


def cut_weakest_links(
    tree: Tree, ccp_alpha: float
) -> tuple[frozenset[Any], list[tuple[float, float]]]:
    """Cut the weakest link until it is stronger than ``ccp_alpha``.

    Returns the keys of the nodes that become leaves, and after each cut its strength and
    the impurity of the tree that is left.
    """
    left, risk = tree.left.copy(), 2 * weigh_impurity(tree) / tree.weight_sum[0]
    collapsed, path = set(), [(0.0, risk[list_leaves(left, 0)].sum())]
    while left[0] >= 0:
        strength = {}
        reached = [0]
        for node in reached:
            if left[node] >= 0:
                leaves = list_leaves(left, node)
                strength[node] = (risk[node] - risk[leaves].sum()) / (len(leaves) - 1)
                reached += [left[node], left[node] + 1]
        weakest = min(strength, key=lambda node: strength[node])
        if strength[weakest] > ccp_alpha:
            break
        left[weakest] = -1
        collapsed.add(tree.key[weakest])
        path.append((strength[weakest], risk[list_leaves(left, 0)].sum()))
    return frozenset(collapsed), path


# ---- Prediction


def list_path(tree: Tree, z: ArrayLike) -> list[int]:
    """Return the nodes from the root to the leaf of one row."""
    Z = np.asarray(z, dtype=np.float64)[None, :]
    path = [0]
    while tree.left[path[-1]] >= 0:
        node = path[-1]
        score = project(Z, tree.feature[node], tree.weight[node], tree.center[node])[0]
        path.append(int(tree.left[node]) + int(score >= tree.threshold[node]))
    return path


def descend(tree: Tree, Z: ArrayLike, normalized: bool) -> tuple[Ints, Floats]:
    """Return the leaf of each row and its distance to the nearest threshold passed."""
    Z = np.asarray(Z, dtype=np.float64)
    at = np.zeros(len(Z), dtype=np.int64)
    nearest = np.full(len(Z), np.inf if tree.left[0] >= 0 else 0.0)
    for node in np.flatnonzero(tree.left >= 0):  # parents come before their children
        rows = np.flatnonzero(at == node)
        score = project(Z[rows], tree.feature[node], tree.weight[node], tree.center[node])
        gap = np.abs(score - tree.threshold[node])
        if normalized:
            gap /= np.linalg.norm(tree.weight[node])
        nearest[rows] = np.minimum(nearest[rows], gap)
        at[rows] = tree.left[node] + (score >= tree.threshold[node])
    return at, nearest


def apply(tree: Tree, Z: ArrayLike) -> Ints:
    """Return the leaf of each row."""
    return descend(tree, Z, True)[0]


def distance(tree: Tree, Z: ArrayLike, normalized: bool = True) -> Floats:
    """Return d of each row, or d' if it is not to be normalized."""
    return descend(tree, Z, normalized)[1]


def membership(tree: Tree, Z: ArrayLike) -> Floats:
    """Return the membership of each row in the positive class."""
    Z = np.asarray(Z, dtype=np.float64)
    at = apply(tree, Z)
    output = tree.value[at]
    for leaf in np.unique(at):
        rows, feature = np.flatnonzero(at == leaf), tree.feature[leaf]
        offset = fill_missing(Z[np.ix_(rows, feature)], tree.center[leaf]) - tree.center[leaf]
        output[rows] += sum_terms(feature, tree.weight[leaf] * offset)
    return np.clip(output, 0.0, 1.0)


def predict_proba(
    trees: Sequence[Tree],
    positive_class: Sequence[int],
    Z: ArrayLike,
    n_classes: int,
    voting: str = "membership",
) -> Floats:
    """Return the fraction of the votes that each class gets; ``positive_class``: by tree."""
    Z = np.asarray(Z, dtype=np.float64)
    if n_classes == 1:
        return np.ones((len(Z), 1))
    mu = np.array([membership(tree, Z) for tree in trees])  # (n_trees, n_rows)
    signed_distance = (2 * mu - 1) * np.array([distance(tree, Z) for tree in trees])
    margin = np.array([distance(tree, Z, normalized=False) for tree in trees])
    is_margin = voting == "margin"
    vote, s = np.zeros((2, len(Z), n_classes))
    for k in np.unique(positive_class):
        own = np.asarray(positive_class) == k
        s[:, k] = signed_distance[own].mean(axis=0)
        claim = (mu * margin)[own].sum(axis=0)
        vote[:, k] = claim if is_margin else mu[own].mean(axis=0)
    if n_classes == 2:  # trees of class 1 only
        s[:, 0] = -s[:, 1]
        vote[:, 0] = ((1 - mu) * margin).sum(axis=0) if is_margin else 1 - vote[:, 1]
    # (1 + s / (1 + |s|)) / 2, for s < 0 in a form that never rounds to 0.
    tie_term = np.where(s < 0, 1 / (1 + np.abs(s)), 1 + s / (1 + np.abs(s))) / 2
    q: Floats = vote + 1e-6 * tie_term
    q /= q.sum(axis=1, keepdims=True)
    return q


def importances(trees: Sequence[Tree], n_features: int) -> Floats:
    """Return how much splits rely on each feature, averaged over the trees that split."""
    of_trees = []
    for tree in trees:
        of_tree = np.zeros(n_features)
        for node in np.flatnonzero(tree.left >= 0):
            spread = np.abs(tree.weight[node]) * tree.std[node]
            reach = tree.weight_sum[node] / tree.weight_sum[0]
            of_tree[tree.feature[node]] += reach * spread / spread.sum()
        if tree.left[0] >= 0:
            of_trees.append(of_tree / of_tree.sum())
    return np.mean(of_trees, axis=0) if of_trees else np.zeros(n_features)
