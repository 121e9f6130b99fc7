"""Forests: trees on the targets themselves, each on its own draw of rows.

A tree is one round of boosting squared error without λ. It differs in what a node draws, in
where its cuts lie, in when it ends, and in what a leaf adds: the mean of its rows. Targets are
numbers, or 1 for the rows of a class and 0 for all others.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from exact.arithmetic import (
    MASK,
    draw_columns,
    hash64,
    make_hyperplane_key,
    round_half_up,
    round_quotient,
)
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
    sum_rows,
)
from exact.trees import Node, grow_tree

CLASS_BITS = 21  # of the gradient of a row of the class of a tree
SHARE_BITS = 16  # of the share of a class in a leaf
COLUMN_DRAWS = MASK - 4  # of a tree


@dataclass(frozen=True)
class Plan:
    """How a forest is grown. Weights are in units of the weights of rows."""

    n_estimators: int = 2
    n_draws: int = 1 << 31  # rows that each estimator draws
    seed: int = 0
    first_estimator: int = 0  # estimators that are there already
    bootstrap: bool = False
    n_classes: int = 0  # 0: targets are numbers
    balance: bool = False  # whether the classes weigh the same in each estimator
    max_features: int = 0  # columns that a node draws; 0: all
    max_features_per_tree: int = 0  # columns that a tree draws; 0: all
    axis_splits: bool = True  # whether each of them is tried alone
    n_hyperplanes: int = 0
    hyperplane_interval: int = 1  # estimators from one that has hyperplanes to the next
    shrinkage: float = 0.3  # of correlations in directions
    term_price: float = 0.0  # of each term of a hyperplane but one, in units of a node's noise
    max_depth: int = 1 << 31
    max_leaf_nodes: int = 0  # 0: no limit
    min_split_weight: int = 2  # of a node that is divided
    min_weight: int = 1  # of a side of a split
    min_fraction: float = 0.0  # of the weight of the tree's rows, on a side of a split
    ccp_alpha: float = 0.0  # what each leaf but one of a subtree gains, by weight; 0: no pruning
    unit_weight: int = 1  # the weight of a row of weight one
    weight_shift: int = 0  # bits of weights that directions drop
    monotonic_cst: tuple[int, ...] = ()  # trends of the columns: -1, 0 or 1; none: all 0
    interaction_cst: tuple[tuple[int, ...], ...] = ()  # groups of columns; none: all are one

    @property
    def classes(self):
        """Return the classes that have trees: of two the second."""
        return [1] if self.n_classes == 2 else list(range(self.n_classes))

    @property
    def n_trees(self):
        """Return the number of trees of an estimator."""
        return len(self.classes) or 1


# ---- targets ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Targets:
    """What the trees of a class learn, or those of numbers."""

    g: np.ndarray  # gradients
    residual: np.ndarray  # Python integers: what leaves answer is its mean, with the sign -
    shift: int  # bits that gradients drop of residuals, or of ones where these are classes
    number: int = 0  # of the class


def place_numbers(rows):
    """Return numbers as targets; the score of each row is the start, the mean of all."""
    everyone = np.ones(len(rows.X), dtype=bool)
    g, _, unit = SquaredError().compute_gradients(rows.score, rows.y, everyone, None)
    residual = (rows.score[:, 0] - rows.y).astype(object)
    return Targets(g, residual, int(unit).bit_length() - 1)


def place_class(rows, k):
    """Return 1 for the rows of a class, 0 for others; leaves answer shares of 2**-16."""
    is_class = (rows.y == k).astype(np.int64)
    residual = -(is_class.astype(object) << SHARE_BITS)
    return Targets(-(is_class << CLASS_BITS), residual, -CLASS_BITS, number=k)


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


def balance_classes(weight, y):
    """Return weights of rows by which the classes that were drawn weigh about the same."""
    drawn = np.flatnonzero(weight)
    classes, total = np.unique(y[drawn]), float(weight[drawn].sum())
    balanced = np.zeros_like(weight)
    for k in classes:
        of_class = drawn[y[drawn] == k]
        factor = total / (float(len(classes)) * float(weight[of_class].sum()))
        rounded = round_half_up(weight[of_class].astype(np.float64) * factor)
        balanced[of_class] = np.maximum(rounded, 1.0).astype(np.int64)
    return balanced


def weigh_draws(key, rows, plan):
    """Return what each row weighs in an estimator."""
    weight = rows.weight_or_one * count_draws(key, len(rows.X), plan)
    return balance_classes(weight, rows.y) if plan.balance else weight


def draw_tree_columns(key, n_columns, plan):
    """Return the columns that a tree draws; ``key`` is its root's."""
    draws = hash64(key, COLUMN_DRAWS)
    return set(draw_columns(draws, range(n_columns), plan.max_features_per_tree or n_columns))


def has_two_bins(table, rows, j):
    """Return whether a column has two bins in a node: the missing values have one of them."""
    return len(np.unique(table.codes[rows, j])) > 1


def draw_node_columns(table, node, plan, of_tree):
    """Return the columns of a tree that a node draws of those that have two bins in it, in order.

    The key of a node's columns is that of its hyperplanes: these draw nothing else.
    """
    key = make_hyperplane_key(node.key)
    order = draw_columns(key, set(list_columns(node.groups)) & of_tree, None)
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


def choose_split(table, node, plan, of_tree):
    """Set the best split of a node, the first of equal ones: hyperplanes, then single columns."""
    node.is_tried = True
    if is_leaf(table, node, plan):
        return
    columns = draw_node_columns(table, node, plan, of_tree)
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


def make_limits(total, plan):
    """Return the limits of the splits of a tree whose rows weigh so much.

    There is no λ, and only terms have a price.
    """
    return Limits(
        ridge=0.0,
        smoothing=float(SMOOTHING * plan.unit_weight),
        least_hessian=1.0,
        least_weight=max(plan.min_weight, plan.min_fraction * float(total)),
        bounds=Bounds() if any(plan.monotonic_cst) else None,
    )


def grow(columns, rows, plan):
    """Grow the trees of a forest: estimator after estimator, in each class after class."""
    codes, z = encode(columns, rows.X)
    targets, trees = [place_class(rows, k) for k in plan.classes], []
    for number in range(plan.first_estimator, plan.first_estimator + plan.n_estimators):
        own = plan if number % plan.hyperplane_interval == 0 else replace(plan, n_hyperplanes=0)
        key = hash64(plan.seed, number)
        weight = weigh_draws(key, rows, plan)
        for each in targets or [place_numbers(rows)]:
            h = np.ones_like(each.g)
            table = Table(columns, codes, z, weight, each.g, h)
            trees.append(grow_whole(table, each, hash64(key, MASK - each.number), own))
    return trees


def grow_whole(table, targets, key, plan):
    """Grow a tree, cut it back, and set what its leaves answer."""
    drawn, total = np.flatnonzero(table.weight), int(table.weight.sum())
    choose = partial(choose_split, of_tree=draw_tree_columns(key, len(table.columns), plan))
    own = replace(plan, max_leaf_nodes=plan.max_leaf_nodes or len(drawn))
    tree = grow_tree(table, drawn, make_limits(total, plan), own, key, choose)
    if plan.ccp_alpha > 0.0:
        tree = prune(table, tree, plan.ccp_alpha * float(total) / 4.0**targets.shift)
    values = [(compute_mean(targets.residual, table.weight, node.rows),) for node in tree]
    return set_values(tree, values, plan)


def compute_mean(residual, weight, rows):
    """Return the mean of targets less the start in some rows, rounded."""
    return round_quotient(-(residual[rows] * weight[rows]).sum(), weight[rows].sum())


# ---- pruning ----------------------------------------------------------------------------


def compute_split_gain(table, tree, node):
    """Return by how much a split lowers the squared error; bounds take no part."""
    left, right = tree[node.left], tree[node.left + 1]
    of_left, of_right, whole = (
        float(sums.g) * float(sums.g) / float(sums.h)
        for sums in (sum_rows(table, each.rows) for each in (left, right, node))
    )
    return (of_left + of_right) - whole


def sum_subtree(table, tree, k, gain, n_leaves):
    """Return the gain of a split and of all below it, and the number of leaves there."""
    left, right = tree[k].left, tree[k].left + 1
    total = compute_split_gain(table, tree, tree[k]) + (gain[left] + gain[right])
    return total, n_leaves[left] + n_leaves[right]


def prune(table, tree, price):
    """Return a tree without the splits that gain no more than a price for each leaf but one."""
    tree, gain, n_leaves = list(tree), [0.0] * len(tree), [1] * len(tree)
    for k in reversed(range(len(tree))):  # children before their parents
        if tree[k].left < 0:
            continue
        total, n = sum_subtree(table, tree, k, gain, n_leaves)
        if total <= price * float(n - 1):
            tree[k] = Node(weight=tree[k].weight, rows=tree[k].rows)
        else:
            gain[k], n_leaves[k] = total, n
    return number_anew(tree)


def number_anew(tree):
    """Return the nodes that hang together with the root, breadth-first."""
    order, finished = [0], []
    for k in order:  # which grows on the way
        node = tree[k]
        if node.left >= 0:
            order += [node.left, node.left + 1]
            node = replace(node, left=len(order) - 2)
        finished.append(node)
    return finished
