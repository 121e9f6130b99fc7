"""Growing a tree best first, and walking rows down it."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from exact.arithmetic import draw_columns, make_child_key
from exact.columns import encode
from exact.constraints import (
    divide_bounds,
    keep_groups,
    list_columns,
    list_groups,
    order_split,
)
from exact.hyperplanes import Hyperplane, choose_oblique, draw_oblique_columns
from exact.splits import (
    Limits,
    Split,
    Sums,
    choose_column,
    compute_least_score,
    compute_node_score,
    sum_rows,
)


@dataclass(frozen=True)
class Node:
    """A node of a finished tree; nodes are numbered breadth-first."""

    left: int = -1  # number of the left child, the right one follows; -1: a leaf
    column: int = -1  # -1: a hyperplane, or a leaf
    missing_left: bool = False  # of a split by a column of numbers
    threshold: float = 0.0  # x < threshold goes left; inf: whatever is present
    codes: frozenset[int] | None = None  # of a split by categories: those that go left
    hyperplane: Hyperplane | None = None
    values: tuple[int, ...] = ()  # what a leaf adds to each score
    weight: int = 0  # of its rows, in units
    gain: float = 0.0
    rows: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass
class OpenNode:
    """A node of a tree that grows."""

    rows: np.ndarray
    sums: Sums
    depth: int
    key: int  # of its draws
    limits: Limits  # with its bounds
    groups: tuple[tuple[int, tuple[int, ...]], ...]  # numbered, whose columns it may use
    split: Split | None = None
    rank: float = 0.0  # gain of its first split, before hyperplanes are tried
    is_tried: bool = False  # whether hyperplanes were tried
    left: int = -1


def choose_column_split(table, node, plan):
    """Set the best split of a node by a single column; if there is none, try hyperplanes.

    The gain of this split is the node's rank among open nodes.
    """
    if node.depth >= plan.max_depth or plan.max_leaf_nodes < 2:
        return
    columns = list_columns(node.groups)
    if plan.max_features:
        columns = sorted(draw_columns(node.key, columns, plan.max_features))
    least_score = compute_least_score(node.sums, node.limits)
    of_node = node.rows, node.sums, node.limits, plan
    node.split = choose_column(table, *of_node, columns, least_score)
    if node.split is None:
        try_hyperplanes(table, node, plan)
    if node.split is not None:
        node.rank = node.split.score - compute_node_score(node.sums, node.limits)


def try_hyperplanes(table, node, plan):
    """Replace the split of a node by a hyperplane of a larger score, if there is one."""
    has_split = node.split is not None
    least_score = node.split.score if has_split else compute_least_score(node.sums, node.limits)
    columns = draw_oblique_columns(table, node.key, node.sums, plan, node.groups)
    of_node = node.rows, node.sums, node.limits, plan
    found = choose_oblique(table, *of_node, columns, least_score)
    node.split = found or node.split
    node.is_tried = True


def open_node(table, rows, depth, key, limits, groups, plan, choose):
    """Return a node with its first split."""
    node = OpenNode(rows, sum_rows(table, rows), depth, key, limits, groups)
    choose(table, node, plan)
    return node


def divide_limits(table, node, is_left, plan):
    """Return the limits of both children of a node: with bounds if some column has a trend."""
    if node.limits.bounds is None:
        return node.limits, node.limits
    left, right = (sum_rows(table, node.rows[side]) for side in (is_left, ~is_left))
    order = order_split(node.split, plan, table.columns)
    bounds = divide_bounds(left, right, node.limits.ridge, node.limits.bounds, order)
    return tuple(replace(node.limits, bounds=each) for each in bounds)


def goes_left(split, table, rows):
    """Return which training rows of a node go left, by their codes and grid integers."""
    if split.hyperplane is not None:
        return split.hyperplane.project(table.z[rows]) < split.hyperplane.cut
    code = table.codes[rows, split.column]
    if split.codes is not None:
        return np.isin(code, sorted(split.codes))
    is_missing = code == table.columns[split.column].missing_code
    return np.where(is_missing, split.missing_left, code <= split.cut)


def grow_tree(table, rows, limits, plan, key, choose=choose_column_split):
    """Grow a tree from some rows; its leaves have no values yet.

    Of the open nodes, that of the largest rank is split, the oldest of equal ones, until there
    are enough leaves. Only then hyperplanes compete with its best single column, unless
    ``choose``, which sets the split of a new node and its rank, has tried them.
    """
    groups = list_groups(plan, len(table.columns))
    nodes = [open_node(table, rows, 0, key, limits, groups, plan, choose)]
    for _ in range(plan.max_leaf_nodes - 1):
        frontier = [k for k, node in enumerate(nodes) if node.split and node.left < 0]
        if not frontier:
            break
        node = nodes[max(frontier, key=lambda k: (nodes[k].rank, -k))]
        if not node.is_tried:
            try_hyperplanes(table, node, plan)
        is_left = goes_left(node.split, table, node.rows)
        node.left = len(nodes)
        groups = keep_groups(node.groups, node.split)
        of_children = divide_limits(table, node, is_left, plan)
        for is_right, side in enumerate((is_left, ~is_left)):
            key, own = make_child_key(node.key, is_right), of_children[is_right]
            of_child = node.rows[side], node.depth + 1, key, own, groups
            nodes.append(open_node(table, *of_child, plan, choose))
    return number_nodes(nodes, table.columns)


def number_nodes(nodes, columns):
    """Return the nodes of a tree breadth-first."""
    order = [0]
    finished = []
    for k in order:  # which grows on the way
        node = make_node(nodes[k], columns)
        if nodes[k].left >= 0:
            node = replace(node, left=len(order))
            order += [nodes[k].left, nodes[k].left + 1]
        finished.append(node)
    return finished


def make_node(node, columns):
    """Return a node as it is stored: bins become thresholds."""
    common = {"weight": node.sums.weight, "rows": node.rows}
    if node.left < 0:
        return Node(**common)
    split, threshold = node.split, 0.0
    if split.hyperplane is None and split.codes is None:
        thresholds = columns[split.column].thresholds
        threshold = float(thresholds[split.cut]) if split.cut < len(thresholds) else math.inf
    return Node(
        column=split.column,
        missing_left=split.missing_left,
        threshold=threshold,
        codes=split.codes,
        hyperplane=split.hyperplane,
        gain=split.score - compute_node_score(node.sums, node.limits),
        **common,
    )


# ---- walking --------------------------------------------------------------------------


def walk(nodes, columns, X):
    """Return the leaf of each row of a table of raw values."""
    codes, z = encode(columns, X)
    at = np.zeros(len(X), dtype=np.int64)
    for k, node in enumerate(nodes):  # parents come before their children
        rows = np.flatnonzero(at == k)
        if node.left < 0 or len(rows) == 0:
            continue
        if node.hyperplane is not None:
            is_left = node.hyperplane.project(z[rows]) < node.hyperplane.cut
        elif node.codes is not None:
            is_left = np.isin(codes[rows, node.column], sorted(node.codes))
        else:
            x = X[rows, node.column]
            is_left = np.where(np.isnan(x), node.missing_left, x < node.threshold)
        at[rows] = np.where(is_left, node.left, node.left + 1)
    return at


def add_values(nodes, columns, X, score):
    """Add what the leaves of a tree add to the scores of rows of raw values."""
    at = walk(nodes, columns, X)
    for k, node in enumerate(nodes):
        if node.left < 0:
            score[at == k] += np.array(node.values, dtype=np.int64)
