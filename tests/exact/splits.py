"""Candidates of a node over single columns, and how splits are scored."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from exact.constraints import (
    Bounds,
    compute_gain,
    get_trend,
    order_cuts,
    score_node,
)

N_CODES = 256  # all that a byte can hold
SMOOTHING = 10  # rows of gradient 0 that are added to each category to order it


@dataclass(frozen=True)
class Table:
    """Encoded training rows, and what a round asks of them."""

    columns: list[Any]
    codes: np.ndarray  # [n_rows, n_columns]
    z: np.ndarray  # [n_rows, n_columns]
    weight: np.ndarray  # [n_rows], in units
    g: np.ndarray  # [n_rows], gradients and hessians per unit of weight
    h: np.ndarray


@dataclass(frozen=True)
class Sums:
    """Sums over rows: of gradients and hessians times weights, and of weights."""

    g: Any  # integers, or arrays of them: one entry per cut
    h: Any
    weight: Any


@dataclass(frozen=True)
class Limits:
    """What the sides of a split must have, and how sums are drawn towards 0."""

    ridge: float  # the λ of the document
    smoothing: float  # of categories
    least_hessian: float
    least_weight: float = 0.0
    least_gain: float = 0.0  # of a split
    category_price: float = 0.0  # taken from a score for each category but one
    term_price: float = 0.0  # and for each term of a hyperplane but one
    bounds: Bounds | None = None  # of Newton steps; None: no column has a trend


@dataclass(frozen=True)
class Split:
    """A split of a node; its score must exceed that of the node."""

    score: float
    column: int = -1  # -1: a hyperplane
    cut: int = -1  # bins up to this one go left
    missing_left: bool = False
    codes: frozenset[int] | None = None  # of categories: those that go left
    hyperplane: Any = None


def sum_rows(table, rows):
    """Return the sums over some rows, as Python integers."""
    weight = table.weight[rows]
    g, h = (weight * table.g[rows]).sum(), (weight * table.h[rows]).sum()
    return Sums(int(g), int(h), int(weight.sum()))


def sum_by_code(table, rows, code, n_codes=N_CODES):
    """Return the sums over the rows of each code: integer arrays."""
    weight, sums = table.weight[rows], []
    for amount in (weight * table.g[rows], weight * table.h[rows], weight):
        total = np.zeros(n_codes, dtype=np.int64)
        np.add.at(total, code, amount)
        sums.append(total)
    return Sums(*sums)


def compute_node_score(sums, limits):
    """Return G**2 / (H + λ); a node has a row, and so a hessian of at least one.

    Scores of splits within bounds are gains: there the node has none.
    """
    if limits.bounds is not None:
        return 0.0
    return float(sums.g) * float(sums.g) / (float(sums.h) + limits.ridge)


def compute_least_score(sums, limits):
    """Return what the score of a split must exceed to be worth it."""
    if limits.bounds is not None:
        own = score_node(float(sums.g), float(sums.h) + limits.ridge, limits.bounds)
        return abs(own) * 2.0**-40 + limits.least_gain
    return compute_node_score(sums, limits) * (1.0 + 2.0**-40) + limits.least_gain


def compute_split_score(left, sums, limits, order=0):
    """Return the scores of cuts from the sums on their left, 0 where a limit is not met.

    Within bounds they are gains, and 0 where the outputs are not in order.
    """
    a, x = left.g.astype(np.float64), left.h.astype(np.float64)
    c, y = (sums.g - left.g).astype(np.float64), (sums.h - left.h).astype(np.float64)
    lightest = np.minimum(left.weight, sums.weight - left.weight)
    is_allowed = np.minimum(x, y) >= limits.least_hessian
    is_allowed &= lightest >= limits.least_weight
    # Both hessians are one or more where the split is allowed: no division by zero.
    x, y = (np.where(is_allowed, side + limits.ridge, 1.0) for side in (x, y))
    if limits.bounds is not None:
        whole = float(sums.g), float(sums.h) + limits.ridge
        return np.where(is_allowed, compute_gain((a, x), (c, y), whole, limits.bounds, order), 0.0)
    return np.where(is_allowed, (a * a * y + c * c * x) / (x * y), 0.0)


def choose_first_best(score, least_score):
    """Return the number of the first of the largest scores, None if none exceeds the least."""
    best = int(np.argmax(score)) if len(score) else 0
    return best if len(score) and score[best] > least_score else None


def accumulate(by_code, order, start=None):
    """Return the sums of the first codes of an order: of one of them, of two, ...

    The codes ``start`` belong to all of these.
    """
    parts = []
    for total in (by_code.g, by_code.h, by_code.weight):
        before = 0 if start is None else total[start]
        parts.append(before + np.cumsum(total[order]))
    return Sums(*parts)


def list_middles(weight):
    """Return the bins in the middle between neighbours of those that have rows."""
    present = np.flatnonzero(weight)
    return (present[:-1] + present[1:]) // 2


def choose_cut(table, rows, j, sums, limits, least_score, trend=0, *, is_amid=False):
    """Return the best cut of a column of numbers, None if there is none.

    Cuts between bins ascend, first with missing values on the right, then on the left. With
    them on the right there is one more, after the last bin: "is missing". Cuts are after all
    bins, or, if ``is_amid``, one in the middle between neighbours that have rows.
    """
    code, missing = table.codes[rows, j], table.columns[j].missing_code
    by_code = sum_by_code(table, rows, code)
    has_missing, best = bool((code == missing).any()), None
    between = list_middles(by_code.weight[:missing]) if is_amid else np.arange(missing - 1)
    for missing_left in (False, True) if has_missing else (False,):
        has_last = has_missing and not missing_left
        cuts = np.append(between, missing - 1) if has_last else between
        left = accumulate(by_code, np.arange(missing), missing if missing_left else None)
        left = Sums(left.g[cuts], left.h[cuts], left.weight[cuts])
        score = compute_split_score(left, sums, limits, order_cuts(cuts, missing - 1, trend))
        chosen = choose_first_best(score, least_score)
        if chosen is not None:
            best = Split(float(score[chosen]), j, int(cuts[chosen]), missing_left)
            least_score = best.score
    return best


def choose_categories(table, rows, j, sums, limits, least_score):
    """Return the best set of categories to go left, None if there is none.

    The categories of the node, missing values among them, come in the order of their smoothed
    mean gradients, then of their codes; those before a cut go left. Codes that do not occur
    go to the side with the larger sum of hessians, left if equal. The more categories, the
    better is the best of their sets by chance alone: each but one costs some of the score.
    """
    by_code = sum_by_code(table, rows, table.codes[rows, j])
    present = np.flatnonzero(by_code.weight)
    mean = by_code.g[present] / (by_code.h[present].astype(np.float64) + limits.smoothing)
    order = present[np.argsort(mean, kind="stable")]
    left = accumulate(by_code, order[:-1])
    score = compute_split_score(left, sums, limits)
    cut = choose_first_best(score, 0.0)
    if cut is None:
        return None
    net = float(score[cut]) - limits.category_price * (len(present) - 1)
    if not net > least_score:
        return None
    codes = {int(code) for code in order[: cut + 1]}
    if 2 * int(left.h[cut]) >= sums.h:
        codes |= set(range(N_CODES)) - {int(code) for code in present}
    return Split(net, j, codes=frozenset(codes))


def choose_column(table, rows, sums, limits, plan, columns, least_score, *, is_amid=False):
    """Return the best split by one of some columns, the first of equal ones, or None."""
    best = None
    for j in columns:
        if table.columns[j].n_codes:
            split = choose_categories(table, rows, j, sums, limits, least_score)
        else:
            trend = get_trend(plan, j)
            split = choose_cut(table, rows, j, sums, limits, least_score, trend, is_amid=is_amid)
        if split is not None:
            best, least_score = split, split.score
    return best
