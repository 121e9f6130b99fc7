"""Hyperplanes of a node: directions by shrunken least squares of the gradient, and cuts."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from exact.arithmetic import (
    draw_columns,
    make_hyperplane_key,
    round_half_up,
    round_quotient,
    solve,
)
from exact.columns import GAP
from exact.constraints import draw_group, get_trend, order_hyperplane
from exact.splits import (
    Split,
    accumulate,
    choose_first_best,
    compute_split_score,
    sum_by_code,
)

DIRECTION_BITS = 12  # of a column of a node about its center
SHORT_BITS = 7  # dropped from gradients where directions are computed
MOST_SHORT = (1 << 15) - 1
WEIGHT_BITS = 15
ROWS_PER_TERM = 4  # of a node, for each column that it draws
SMALL_NODE = 256  # rows up to which all cuts of a projection are looked at
N_BINS = 256  # of the projections of a larger node


@dataclass(frozen=True)
class Hyperplane:
    """Integer weights of columns, what a missing value of each counts as, and a threshold."""

    columns: tuple[int, ...]
    weights: tuple[int, ...]
    fills: tuple[int, ...]
    cut: int = 0  # projections below it go left

    def project(self, z):
        """Return the projections of rows on the grid: exact integers."""
        terms = zip(self.columns, self.weights, self.fills, strict=True)
        return sum(w * np.where(z[:, j] == GAP, fill, z[:, j]) for j, w, fill in terms)


@dataclass(frozen=True)
class Term:
    """A column of a node about its center."""

    column: int
    center: int
    shift: int  # bits that were dropped
    q: np.ndarray  # [n_rows of the node]


@dataclass(frozen=True)
class Direction:
    """A hyperplane, and about where the projections of a node lie."""

    hyperplane: Hyperplane
    middle: int
    std: float


# ---- directions -----------------------------------------------------------------------


def center_column(j, z, v):
    """Return a column of a node about its center, None if it has no two values.

    The center is the mean of the present values, weighted by v; gaps count as it. A column
    whose present values weigh nothing has none.
    """
    is_present = z != GAP
    present, total = z[is_present], int(v[is_present].sum())
    if total == 0 or present.min() == present.max():
        return None
    center = round_quotient((v[is_present].astype(object) * present).sum(), total)
    largest = max(int(present.max()) - center, center - int(present.min()))
    shift = max(0, largest.bit_length() - DIRECTION_BITS)
    return Term(j, center, shift, np.where(is_present, (z - center) >> shift, 0))


def list_terms(table, rows, v, columns):
    """Return those of some columns that have two values in a node, about their centers."""
    terms = [center_column(j, table.z[rows, j], v) for j in columns]
    return [term for term in terms if term is not None]


def list_parts(terms, n_hyperplanes):
    """Return the terms of each candidate: all, both halves, the four quarters, ..."""
    parts = []
    for candidate in range(1, n_hyperplanes + 1):
        n_parts = 1 << (candidate.bit_length() - 1)
        i = candidate - n_parts
        begin, end = (len(terms) * k // n_parts for k in (i, i + 1))
        parts.append(terms[begin:end])
    return parts


def compute_moment(v, a, b):
    """Return the centered sum of products of two integer columns, from exact sums."""
    product, first, second, total = (
        float(int(each.sum())) for each in (v * a * b, v * a, v * b, v)
    )
    return product - first * second / total


def compute_direction(terms, v, g, columns, plan):
    """Return shrunken least squares of the gradient on some terms, None if there is none.

    Terms that would raise the gradient with a column that may only lower it, or the reverse,
    are dropped, and the rest is solved again.
    """
    short = np.minimum((g + (1 << SHORT_BITS >> 1)) >> SHORT_BITS, MOST_SHORT)
    moment = [[compute_moment(v, a.q, b.q) for b in terms] for a in terms]
    if not all(moment[a][a] > 0.0 for a in range(len(terms))):
        return None
    std = [math.sqrt(moment[a][a]) for a in range(len(terms))]
    right = [compute_moment(v, term.q, short) / s for term, s in zip(terms, std, strict=True)]
    keep, p = 1.0 - plan.shrinkage, range(len(terms))
    matrix = [[1.0 if a == b else keep * moment[a][b] / (std[a] * std[b]) for b in p] for a in p]
    solution = solve(matrix, right)
    if solution is None:
        return None
    kept = [t for x, t in zip(solution, terms, strict=True) if not is_wrong(x, t.column, plan)]
    if len(kept) < len(terms):
        return compute_direction(kept, v, g, columns, plan)
    scaled = [
        math.ldexp(x / s, -term.shift) for x, s, term in zip(solution, std, terms, strict=True)
    ]
    return round_direction(terms, scaled, moment, columns, int(v.sum()))


def is_wrong(x, j, plan):
    """Return whether a term has the sign that the trend of its column forbids."""
    return x * get_trend(plan, j) > 0.0


def round_weights(scaled, bits=WEIGHT_BITS):
    """Return weights as integers of so many bits, scaled by a power of two; all 0 if they are."""
    largest = max((abs(x) for x in scaled), default=0.0)
    if not largest > 0.0:
        return [0] * len(scaled)
    _, exponent = math.frexp(largest)
    rounded = [int(round_half_up(math.ldexp(x, bits - exponent))) for x in scaled]
    most = (1 << bits) - 1
    return [max(-most, min(most, w)) for w in rounded]


def round_direction(terms, scaled, moment, columns, total):
    """Return the direction with integer weights, None if fewer than two of them are left."""
    weight = round_weights(scaled)
    kept = [a for a, w in enumerate(weight) if w != 0]
    if len(kept) < 2:  # a single column has better cuts of its own
        return None
    variance = 0.0
    for a in kept:
        for b in kept:
            left = math.ldexp(float(weight[a]), terms[a].shift)
            right = math.ldexp(float(weight[b]), terms[b].shift)
            variance = variance + left * right * moment[a][b]
    hyperplane = Hyperplane(
        tuple(terms[a].column for a in kept),
        tuple(weight[a] for a in kept),
        tuple(choose_fill(columns[terms[a].column], terms[a].center) for a in kept),
    )
    middle = sum(weight[a] * terms[a].center for a in kept)
    return Direction(hyperplane, middle, math.sqrt(max(variance, 0.0) / float(total)))


def choose_fill(column, center):
    """Return what a missing value counts as: the center in the node if training had gaps."""
    return center if column.has_gaps else column.fill


# ---- cuts of projections --------------------------------------------------------------


def number_projections(projection, direction, is_small):
    """Return the bin of each projection, and the thresholds between the bins.

    A small node has a bin for each distinct projection, a larger one 256 of equal width,
    over eight standard deviations or more and open at both ends.
    """
    if is_small:
        values, number = np.unique(projection, return_inverse=True)
        return number, [int(a) + (int(b) - int(a) + 1) // 2 for a, b in pairwise(values)]
    shift = 0
    while 2.0**shift < direction.std / 32.0:
        shift += 1
    start = direction.middle - (N_BINS // 2 << shift)
    number = np.clip((projection - start) >> shift, 0, N_BINS - 1)
    return number, [start + (b << shift) for b in range(1, N_BINS)]


def choose_hyperplane(table, rows, sums, direction, limits, is_small, least_score, order=0):
    """Return the best cut along a direction, the lowest of equal ones, None if there is none."""
    projection = direction.hyperplane.project(table.z[rows])
    number, thresholds = number_projections(projection, direction, is_small)
    by_bin = sum_by_code(table, rows, number, len(thresholds) + 1)
    left = accumulate(by_bin, np.arange(len(thresholds)))
    score = compute_split_score(left, sums, limits, order)
    cut = choose_first_best(score, least_score)
    if cut is None:
        return None
    net = float(score[cut]) - limits.term_price * float(len(direction.hyperplane.columns) - 1)
    if not net > least_score:
        return None
    return Split(net, hyperplane=replace(direction.hyperplane, cut=thresholds[cut]))


def count_affordable(sums, plan):
    """Return how many columns the hyperplanes of a node may use for the weight of its rows."""
    return math.floor(float(sums.weight) / (ROWS_PER_TERM * float(plan.unit_weight)))


def keep_numbers(table, groups):
    """Return the columns of numbers of each group."""
    return [
        (number, [j for j in group if not table.columns[j].n_codes]) for number, group in groups
    ]


def draw_oblique_columns(table, key, sums, plan, groups):
    """Return the columns that a node draws for its hyperplanes, in the order of their hashes.

    They lie within one of the groups.
    """
    key = make_hyperplane_key(key)
    group = draw_group(key, keep_numbers(table, groups))
    return draw_columns(key, group, min(plan.max_terms, count_affordable(sums, plan)))


def choose_oblique(table, rows, sums, limits, plan, columns, least_score):
    """Return the best split by a hyperplane over some columns, or over parts of them, or None.

    The first of equal ones is the best. A node is small by the weighted number of its rows: a
    row of weight w counts like w copies.
    """
    v, best = table.weight[rows] >> plan.weight_shift, None
    if plan.n_hyperplanes == 0 or int(v.sum()) == 0:
        return None
    is_small = sums.weight <= SMALL_NODE * plan.unit_weight
    terms = list_terms(table, rows, v, columns)
    for part in list_parts(terms, plan.n_hyperplanes):
        direction = compute_direction(part, v, table.g[rows], table.columns, plan)
        if direction is None:
            continue
        order = order_hyperplane(direction.hyperplane.columns, plan)
        split = choose_hyperplane(
            table, rows, sums, direction, limits, is_small, least_score, order
        )
        if split is not None:
            best, least_score = split, split.score
    return best
