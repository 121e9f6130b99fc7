"""The paper's rules on the grid, exactly: growing a tree that separates a class from the rest.

Weights of rows are integers in units; `min_samples_split`, `min_samples_leaf` and `gamma`
count rows of weight one. A regression tree is boosting with one round, see there.
"""

import math
from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np

from exact.arithmetic import draw_columns, make_child_key, make_hyperplane_key, round_half_up
from exact.columns import Column
from exact.hyperplanes import Hyperplane, choose_fill, list_parts, round_weights
from exact.leaves import Line, fit_constant, fit_line
from exact.moments import Scale, sum_column

WEIGHT_BITS = 15
PROJECTION_BITS = 53
GRID_BITS = 30
LEAST_IMPURITY = 6  # a threshold of least impurity; 1 to 4: pure pieces, 5: their middle


@dataclass(frozen=True)
class Params:
    """How a tree of the paper grows."""

    alpha: float = 0.0  # least variance of a column in a node, in the model's units
    beta: float = 0.0
    gamma: float = 2.0
    contrast: str = "mean"  # or "standardized"
    criterion: str = "purity"  # or "gini"
    n_hyperplanes: int = 1
    axis_splits: bool = False  # whether single columns are candidates, too
    max_features: int = 0  # single columns drawn at a node; 0: all
    max_terms: int = 0  # columns drawn for the hyperplanes of a node; 0: all
    min_samples_split: float = 2.0
    min_samples_leaf: float = 0.0
    min_weight_fraction_leaf: float = 0.0
    max_depth: int | None = None
    leaf: str = "linear"  # or "constant"
    unit_weight: int = 1
    allowed: tuple[int, ...] | None = None  # columns of the tree; None: all

    def list_columns(self, table):
        """Return the columns that the tree may use, ascending."""
        return range(len(table.columns)) if self.allowed is None else sorted(self.allowed)


@dataclass(frozen=True)
class Table:
    """Training rows of a tree, and what is known of their columns."""

    columns: list[Column]  # all of numbers
    scale: Scale
    z: np.ndarray  # [n_rows, n_columns]
    is_positive: np.ndarray  # [n_rows]
    weight: np.ndarray  # [n_rows], in units, positive

    def take(self, rows):
        """Return some of the rows."""
        parts = self.z[rows], self.is_positive[rows], self.weight[rows]
        return Table(self.columns, self.scale, *parts)


@dataclass(frozen=True)
class Split:
    """A hyperplane with its threshold, and how that was chosen."""

    hyperplane: Hyperplane
    kind: int  # 1 to 4: N1 to N4, 5: e, 6: least impurity
    impurity: float


@dataclass(frozen=True)
class Node:
    """A node of a finished tree; nodes are numbered breadth-first."""

    left: int = -1  # number of the left child, the right one follows; -1: a leaf
    split: Split | None = None
    norm: int = 1  # of the weights in the model's units, in units of distances
    largest: int = 1  # the largest weight likewise
    line: Line | None = None  # of a leaf
    weight: int = 0
    positive: int = 0  # weight of the positive rows
    rows: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


# ---- directions -----------------------------------------------------------------------


def weigh_columns(moments, scale, params):
    """Return the columns that a hyperplane keeps and their integer weights on the grid.

    The contrast chooses: in the model's units, or in standard deviations of the node. Weights
    on the grid are weights in the model's units times a step; where the contrast is
    standardized, the units cancel.
    """
    is_mean = params.contrast == "mean"
    strength = {}
    for j, of_column in moments.items():
        unit = scale.steps[j] if is_mean else 1.0 / math.sqrt(of_column.variance)
        strength[j] = of_column.contrast * unit
    most = max((abs(x) for x in strength.values()), default=0.0)
    if most == 0.0:
        return [], []
    kept = [j for j, x in strength.items() if x != 0.0 and abs(x / most) >= params.beta]
    units = (scale.steps[j] if is_mean else 1.0 / math.sqrt(moments[j].variance) for j in kept)
    scaled = [strength[j] * unit for j, unit in zip(kept, units, strict=True)]
    # The sum of all weights times the largest z stays below 2**53.
    room = PROJECTION_BITS - GRID_BITS - (len(kept) - 1).bit_length()
    return kept, round_weights(scaled, min(WEIGHT_BITS, room))


def make_hyperplane(table, moments, kept, weights):
    """Return a hyperplane; its terms ascend by column, those of weight 0 are gone."""
    terms = [(j, w) for j, w in zip(kept, weights, strict=True) if w != 0]
    return Hyperplane(
        tuple(j for j, _ in terms),
        tuple(w for _, w in terms),
        tuple(choose_fill(table.columns[j], moments[j].center) for j, _ in terms),
    )


def list_candidates(table, key, params):
    """Return the hyperplanes of a node: single columns ascending, then all, halves, quarters.

    A column takes part if its variance in the node exceeds ``alpha``; a constant one never.
    """
    allowed, moments = params.list_columns(table), {}
    for j in allowed:
        of_column = sum_column(table.z[:, j], table.is_positive, table.weight)
        step = table.scale.steps[j]
        if of_column.spread > 0 and of_column.variance * step * step > params.alpha:
            moments[j] = of_column
    candidates = []
    if params.axis_splits:
        drawn = draw_columns(key, allowed, params.max_features or None)
        usable = sorted(j for j in drawn if j in moments)
        candidates += [make_hyperplane(table, moments, [j], [1]) for j in usable]
    drawn = draw_columns(make_hyperplane_key(key), allowed, params.max_terms or None)
    usable = [j for j in drawn if j in moments]
    for part in list_parts(usable, params.n_hyperplanes):
        of_part = {j: moments[j] for j in sorted(part)}
        kept, weights = weigh_columns(of_part, table.scale, params)
        candidates.append(make_hyperplane(table, moments, kept, weights))
    return [candidate for candidate in candidates if candidate.columns]


# ---- thresholds -----------------------------------------------------------------------


def measure_impurity(left, left_positive, total, positive):
    """Return half of the Gini impurity of both sides times their weights, in doubles."""
    sides = (left, left_positive), (total - left, positive - left_positive)
    first, second = (np.float64(t) * np.float64(n - t) / np.float64(n) for n, t in sides)
    return first + second


def sum_left(table, is_left):
    """Return the weight of the rows on the left, and of the positive ones among them."""
    return int(table.weight[is_left].sum()), int(table.weight[is_left & table.is_positive].sum())


def choose_gini_cut(table, projection, least):
    """Return the lowest of the cuts of least impurity that leave enough on both sides."""
    values, number = np.unique(projection, return_inverse=True)
    sums = np.zeros((2, len(values)), dtype=np.int64)
    np.add.at(sums[0], number, table.weight)
    np.add.at(sums[1], number, np.where(table.is_positive, table.weight, 0))
    left, left_positive = np.cumsum(sums, axis=1)[:, :-1]
    total, positive = (int(each.sum()) for each in sums)
    cuts = values[:-1] + (np.diff(values) + 1) // 2  # middles, rounded up
    is_allowed = np.minimum(left, total - left) >= least
    if not is_allowed.any():
        return None
    impurity = measure_impurity(left, left_positive, total, positive)
    return int(cuts[np.argmin(np.where(is_allowed, impurity, np.inf))])


def choose_purity_cut(table, projection, least, params):
    """Return the threshold by the paper's rule and its kind; None if a side is too small.

    The first of N1 to N4 that equals the largest decides if it reaches ``gamma`` and both
    sides weigh enough, otherwise the mean of the four extremes, rounded down.
    """
    is_positive, weight = table.is_positive, table.weight
    min_t, max_t = int(projection[is_positive].min()), int(projection[is_positive].max())
    min_n, max_n = int(projection[~is_positive].min()), int(projection[~is_positive].max())
    pieces = (
        is_positive & (projection < min_n),
        is_positive & (projection > max_n),
        ~is_positive & (projection < min_t),
        ~is_positive & (projection > max_t),
    )
    counts = [int(weight[piece].sum()) for piece in pieces]
    kind, most = counts.index(max(counts)) + 1, max(counts)
    is_enough = min(most, int(weight.sum()) - most) >= least
    if most > 0 and most >= params.gamma * params.unit_weight and is_enough:
        return (min_n, max_n + 1, min_t, max_t + 1)[kind - 1], kind
    e = max((min_n + max_n + min_t + max_t) // 4, min(min_n, min_t) + 1)
    left, _ = sum_left(table, projection < e)
    return (e if min(left, int(weight.sum()) - left) >= least else None), 5


def choose_split(table, key, least, params):
    """Return the split of least impurity, the first of equal ones; None if there is none."""
    best, total = None, int(table.weight.sum())
    positive = int(table.weight[table.is_positive].sum())
    for hyperplane in list_candidates(table, key, params):
        projection = hyperplane.project(table.z)
        if projection.min() == projection.max():
            continue
        if params.criterion == "gini":
            cut, kind = choose_gini_cut(table, projection, least), LEAST_IMPURITY
        else:
            cut, kind = choose_purity_cut(table, projection, least, params)
        if cut is None:
            continue
        left, left_positive = sum_left(table, projection < cut)
        impurity = float(measure_impurity(left, left_positive, total, positive))
        if best is None or impurity < best.impurity:
            best = Split(replace(hyperplane, cut=cut), kind, impurity)
    return best


# ---- growing --------------------------------------------------------------------------


def measure_weights(hyperplane, scale):
    """Return the norm and the largest of the weights in the model's units, as integers.

    They are such that |projection - cut| // norm is a distance in units of
    2**distance_power.
    """
    weights = [
        float(w) * math.ldexp(1.0 / scale.steps[j], scale.distance_power)
        for j, w in zip(hyperplane.columns, hyperplane.weights, strict=True)
    ]
    square = 0.0
    for w in weights:
        square = square + w * w
    largest = max(abs(w) for w in weights)
    return max(1, int(round_half_up(math.sqrt(square)))), max(1, int(round_half_up(largest)))


def fit_leaf(table, least_class, params):
    """Return the line of a leaf: constant if a class weighs nothing or too little."""
    total, positive = int(table.weight.sum()), int(table.weight[table.is_positive].sum())
    smaller = min(positive, total - positive)
    if params.leaf == "constant" or smaller == 0 or smaller < least_class:
        return fit_constant(positive, total)
    moments = {j: sum_column(z, table.is_positive, table.weight) for j, z in enumerate(table.z.T)}
    return fit_line(positive, total, moments)


def grow_tree(table, params, key=0):
    """Grow a tree breadth-first, without recursion: a list of nodes."""
    least_class = params.min_weight_fraction_leaf * float(int(table.weight.sum()))
    least = max(params.min_samples_leaf * params.unit_weight, least_class)
    nodes, queue = [], deque([(np.arange(len(table.z)), key, 0)])
    while queue:
        rows, key, depth = queue.popleft()
        part, split = table.take(rows), None
        is_pure = part.is_positive.all() or not part.is_positive.any()
        is_large = int(part.weight.sum()) >= params.min_samples_split * params.unit_weight
        if is_large and not is_pure and depth != params.max_depth:
            split = choose_split(part, key, least, params)
        node = Node(
            weight=int(part.weight.sum()),
            positive=int(part.weight[part.is_positive].sum()),
            rows=rows,
        )
        if split is None:
            nodes.append(replace(node, line=fit_leaf(part, least_class, params)))
            continue
        # The children follow all nodes that are made or wait to be made.
        left = len(nodes) + 1 + len(queue)
        norm, largest = measure_weights(split.hyperplane, table.scale)
        nodes.append(replace(node, left=left, split=split, norm=norm, largest=largest))
        is_left = split.hyperplane.project(part.z) < split.hyperplane.cut
        queue.append((rows[is_left], make_child_key(key, False), depth + 1))
        queue.append((rows[~is_left], make_child_key(key, True), depth + 1))
    return nodes
