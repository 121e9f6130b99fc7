"""Monotone and interaction constraints: bounds of nodes, orders of splits, groups of columns."""

import math
from dataclasses import dataclass, replace

import numpy as np

from exact.arithmetic import hash64

GROUP_DRAWS = (1 << 64) - 1 - 6
MOST_VALUE = (1 << 31) - 1  # of a leaf


@dataclass(frozen=True)
class Bounds:
    """Between what the outputs of a node lie: Newton steps, or integers that leaves add."""

    low: float = -math.inf
    high: float = math.inf

    def clip(self, value):
        """Return values within the bounds."""
        return np.clip(value, self.low, self.high)

    def divide(self, order, middle):
        """Return the bounds of both children of a split whose order is -1, 0 or 1."""
        if order == 0:
            return self, self
        below, above = replace(self, high=middle), replace(self, low=middle)
        return (below, above) if order > 0 else (above, below)


# ---- growth ---------------------------------------------------------------------------


def compute_step(g, down, bounds):
    """Return the Newton step within bounds; ``down`` is the sum of hessians and λ."""
    return bounds.clip(-g / down)


def score_step(g, down, step):
    """Return twice by how much a step lowers the loss."""
    return -step * (2.0 * g + down * step)


def score_node(g, down, bounds):
    """Return the score of a node."""
    return score_step(g, down, compute_step(g, down, bounds))


def compute_gain(left, right, whole, bounds, order):
    """Return the gains of splits, 0 where the steps are not in order.

    ``left``, ``right`` and ``whole`` are pairs of a sum of gradients, and one of hessians and λ.
    """
    steps = [compute_step(*side, bounds) for side in (left, right)]
    gain = score_step(*left, steps[0]) + score_step(*right, steps[1])
    gain = gain - score_node(*whole, bounds)
    return np.where(order * steps[0] <= order * steps[1], gain, 0.0)


def order_cuts(cuts, n_thresholds, trend):
    """Return the order of each cut of a column: there is none after the last present bin."""
    return np.where(cuts < n_thresholds, trend, 0)


def get_trend(plan, j):
    """Return the trend of a column: -1, 0 or 1."""
    return plan.monotonic_cst[j] if plan.monotonic_cst else 0


def order_split(split, plan, columns):
    """Return the order of a split of a node that grows."""
    if split.hyperplane is not None:
        return order_hyperplane(split.hyperplane.columns, plan)
    if split.codes is not None or split.cut == len(columns[split.column].thresholds):
        return 0
    return get_trend(plan, split.column)


def order_hyperplane(columns, plan):
    """Return -1 if some column of a hyperplane has a trend, else 0.

    Projections rise with the gradient, so scores fall.
    """
    return -1 if any(get_trend(plan, j) for j in columns) else 0


def divide_bounds(left, right, ridge, bounds, order):
    """Return the bounds of both children of a split from the sums of its sides."""
    steps = [compute_step(float(side.g), float(side.h) + ridge, bounds) for side in (left, right)]
    return bounds.divide(order, (steps[0] + steps[1]) * 0.5)


# ---- leaves ---------------------------------------------------------------------------


def clip_values(tree, values, plan):
    """Return what each node of a finished tree adds, within its bounds.

    ``values`` has what each would add were it a leaf. Nodes come before their children.
    """
    bounds = {0: Bounds(-MOST_VALUE, MOST_VALUE)}
    clipped = list(values)
    for k, node in enumerate(tree):
        clipped[k] = int(bounds[k].clip(values[k]))
        if node.left < 0:
            continue
        order = 0
        if node.hyperplane is not None:
            order = order_hyperplane(node.hyperplane.columns, plan)
        elif node.codes is None and node.threshold < math.inf:
            order = get_trend(plan, node.column)
        left, right = (int(bounds[k].clip(values[node.left + side])) for side in (0, 1))
        bounds[node.left], bounds[node.left + 1] = bounds[k].divide(order, (left + right) // 2)
    return clipped


# ---- interaction ----------------------------------------------------------------------


def list_groups(plan, n_columns):
    """Return the groups of a plan and their numbers; without any, all columns are one."""
    return tuple(enumerate(plan.interaction_cst or (tuple(range(n_columns)),)))


def list_columns(groups):
    """Return the columns of some groups, ascending."""
    return sorted({j for _, group in groups for j in group})


def keep_groups(groups, split):
    """Return the groups, pairs of a number and columns, that have all columns of a split."""
    used = {split.column} if split.hyperplane is None else set(split.hyperplane.columns)
    return tuple((number, group) for number, group in groups if used <= set(group))


def draw_group(key, groups):
    """Return the group of the smallest hash of those with two columns or more, or none of them.

    ``groups`` are pairs of a number and columns, ``key`` is that of a node's hyperplanes.
    """
    draws = hash64(key, GROUP_DRAWS)
    large = [(hash64(draws, number), number, group) for number, group in groups if len(group) > 1]
    return min(large)[2] if large else ()
