"""Forests of numbers: trees on the targets themselves, each on its own draw of rows.

A tree is one round of boosting squared error without λ. It differs in what a node draws, in
where its cuts lie, in when it ends, and in what a leaf adds: the mean of its rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from exact.arithmetic import MASK, hash64, make_hyperplane_key, round_quotient, shuffle
from exact.boosting import set_values
from exact.columns import encode
from exact.constraints import Bounds, draw_group, list_columns
from exact.hyperplanes import choose_oblique, count_affordable, keep_numbers
from exact.losses import SquaredError
from exact.splits import (
    SMOOTHING,
    Limits,
    Table,
    choose_column,
    compute_least_score,
    compute_node_score,
)
from exact.trees import grow_tree


@dataclass(frozen=True)
class Plan:
    """How a forest is grown. Weights are in units of the weights of rows."""

    n_estimators: int = 2
    n_draws: int = 1 << 31  # rows that each estimator draws
    seed: int = 0
    first_estimator: int = 0  # estimators that are there already
    bootstrap: bool = False
    max_features: int = 0  # columns that a node draws; 0: all
    axis_splits: bool = True  # whether each of them is tried alone
    n_hyperplanes: int = 0
    hyperplane_interval: int = 1  # estimators from one that has hyperplanes to the next
    shrinkage: float = 0.3  # of correlations in directions
    term_price: float = 0.0  # of each term of a hyperplane but one, in units of a node's noise
    max_depth: int = 1 << 31
    max_leaf_nodes: int = 0  # 0: no limit
    min_split_weight: int = 2  # of a node that is divided
    min_weight: int = 1  # of a side of a split
    unit_weight: int = 1  # the weight of a row of weight one
    weight_shift: int = 0  # bits of weights that directions drop
    monotonic_cst: tuple[int, ...] = ()  # trends of the columns: -1, 0 or 1; none: all 0
    interaction_cst: tuple[tuple[int, ...], ...] = ()  # groups of columns; none: all are one


# ---- draws ------------------------------------------------------------------------------


def count_draws(key, n_rows, plan):
    """Return how often an estimator draws each row."""
    count = np.zeros(n_rows, dtype=np.int64)
    if plan.bootstrap:
        for j in range(plan.n_draws):
            count[hash64(key, j) % n_rows] += 1
    else:
        order = sorted(range(n_rows), key=lambda i: (hash64(key, i), i))
        count[order[: plan.n_draws]] = 1
    return count


def has_two_bins(table, rows, j):
    """Return whether a column has two bins in a node: the missing values have one of them."""
    return len(np.unique(table.codes[rows, j])) > 1


def draw_node_columns(table, node, plan):
    """Return the columns that a node draws of those that have two bins in it, in their order.

    The key of a node's columns is that of its hyperplanes: these draw nothing else.
    """
    order = shuffle(make_hyperplane_key(node.key), list_columns(node.groups))
    drawn = [j for j in order if has_two_bins(table, node.rows, j)]
    return drawn[: plan.max_features or None]


def keep_oblique_columns(table, node, plan, columns):
    """Return the drawn columns that hyperplanes use: the first of the numbers of one group."""
    key = make_hyperplane_key(node.key)
    group = draw_group(key, keep_numbers(table, node.groups))
    return [j for j in columns if j in group][: count_affordable(node.sums, plan)]


# ---- growing ----------------------------------------------------------------------------


def is_leaf(table, node, plan):
    """Return whether a node is not to be divided, whatever its columns."""
    return (
        node.depth >= plan.max_depth
        or node.sums.weight < plan.min_split_weight
        or len(np.unique(table.g[node.rows])) == 1
    )


def estimate_noise(table, node, plan):
    """Return what a split of a node would gain on average if the targets were noise."""
    weight, g = (each[node.rows].astype(object) for each in (table.weight, table.g))
    squares, sums = float((weight * g * g).sum()), node.sums
    rest = squares - float(sums.g) * float(sums.g) / float(sums.h)
    return max(rest, 0.0) / float(sums.h) * float(plan.unit_weight)


def choose_split(table, node, plan):
    """Set the best split of a node, the first of equal ones: hyperplanes, then single columns."""
    node.is_tried = True
    if is_leaf(table, node, plan):
        return
    columns = draw_node_columns(table, node, plan)
    oblique = keep_oblique_columns(table, node, plan, columns)
    least_score = compute_least_score(node.sums, node.limits)
    price = plan.term_price * estimate_noise(table, node, plan)
    of_node = node.rows, node.sums, replace(node.limits, term_price=price), plan
    node.split = choose_oblique(table, *of_node, oblique, least_score)
    if plan.axis_splits:
        least_score = node.split.score if node.split else least_score
        single = choose_column(table, *of_node, columns, least_score, is_amid=True)
        node.split = single or node.split
    if node.split is not None:
        node.rank = node.split.score - compute_node_score(node.sums, node.limits)


def make_limits(plan):
    """Return the limits of the splits of a forest: there is no λ, and only terms have a price."""
    return Limits(
        ridge=0.0,
        smoothing=float(SMOOTHING * plan.unit_weight),
        least_hessian=1.0,
        least_weight=plan.min_weight,
        bounds=Bounds() if any(plan.monotonic_cst) else None,
    )


def grow(columns, rows, plan):
    """Grow the trees of a forest; each row's score is the start, the mean of all targets."""
    codes, z = encode(columns, rows.X)
    everyone = np.ones(len(rows.X), dtype=bool)
    g, h, _ = SquaredError().compute_gradients(rows.score, rows.y, everyone, None)
    residual = (rows.score[:, 0] - rows.y).astype(object)  # Python integers never overflow
    trees = []
    for number in range(plan.first_estimator, plan.first_estimator + plan.n_estimators):
        key = hash64(plan.seed, number)
        weight = rows.weight_or_one * count_draws(key, len(rows.X), plan)
        drawn = np.flatnonzero(weight)
        table = Table(columns, codes, z, weight, g, h)
        own = replace(plan, max_leaf_nodes=plan.max_leaf_nodes or len(drawn))
        if number % plan.hyperplane_interval:
            own = replace(own, n_hyperplanes=0)
        tree = grow_tree(table, drawn, make_limits(plan), own, hash64(key, MASK), choose_split)
        values = [(compute_mean(residual, weight, node.rows),) for node in tree]
        trees.append(set_values(tree, values, plan))
    return trees


def compute_mean(residual, weight, rows):
    """Return the mean of targets less the start in some rows, rounded."""
    return round_quotient(-(residual[rows] * weight[rows]).sum(), weight[rows].sum())
