"""The exact engine in plain NumPy and Python integers: the definition of correct.

Nothing here is fast, and nothing depends on the order of rows: sums are integers, and
whatever is a float is made of them by one stated formula.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

MOST_BINS = 255  # of a column; missing values have one more, the last
HEAVY = 64  # a value of one row in 64 or more has a bin of its own
GRID_BITS = 30  # the range of a column takes at most 2**30 steps
STEPS_PER_STD = 20  # the step of a grid is about std * 2**-20
GRADIENT_BITS = 22
HESSIAN_BITS = 15
DIRECTION_BITS = 12  # of columns in a node, about their mean, where directions are computed
WEIGHT_BITS = 15
SMALL_NODE = 256  # rows up to which all cuts of a projection are looked at
GAP = -(2**31)  # stands for a missing value on the grid


# ---- grid -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """How the values of a column become integers: z = floor(x * 2**power + 1/2) - origin."""

    power: int
    origin: float
    low: int  # least and largest z of the training rows
    high: int


def round_up(x):
    """Return floor(x + 1/2), elementwise."""
    return np.floor(np.asarray(x, dtype=np.float64) + 0.5)


def compute_range_power(low, high):
    """Return the largest power of two by which a range takes at most 2**30 steps."""
    _, exponent = math.frexp(high / 2 - low / 2)  # halved: the range itself may overflow
    return GRID_BITS - (exponent + 1)


def compute_variance(z, weight):
    """Return the weighted variance of integers, from exact sums."""
    total = sum(weight)
    first = sum(w * v for w, v in zip(weight, z, strict=True))
    second = sum(w * v * v for w, v in zip(weight, z, strict=True))
    middle = (2 * first + total) // (2 * total)  # the mean, rounded
    shift = first - middle * total
    square = second - 2 * middle * first + middle * middle * total
    return (float(square) - float(shift) * float(shift) / float(total)) / float(total)


def make_grid(x, weight):
    """Return the grid of a column from its present values."""
    low, high = float(x.min()), float(x.max())
    if low == high:
        return Grid(0, 0.0, 0, 0)
    coarse = compute_range_power(low, high)
    start = float(round_up(math.ldexp(low, coarse)))
    z = [int(v) for v in round_up(np.ldexp(x, coarse)) - start]
    fraction, exponent = math.frexp(math.sqrt(compute_variance(z, weight)))
    nearest = (exponent if fraction * fraction >= 0.5 else exponent - 1) - coarse
    power = min(coarse, STEPS_PER_STD - nearest)
    is_zero_inside = low <= 0.0 <= high
    origin = 0.0 if is_zero_inside else float(round_up(math.ldexp(low / 2 + high / 2, power)))
    ends = (int(round_up(math.ldexp(end, power)) - origin) for end in (low, high))
    return Grid(power, origin, *ends)


def to_grid(grid, x):
    """Return values as integers; what training did not see is clipped to the ends."""
    with np.errstate(over="ignore", under="ignore"):
        z = round_up(np.ldexp(np.where(np.isnan(x), 0.0, x), grid.power)) - grid.origin
    z = np.clip(z, grid.low, grid.high).astype(np.int64)
    return np.where(np.isnan(x), GAP, z)


# ---- bins -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Bins:
    """Bins of a column: bin b holds x with threshold[b - 1] <= x < threshold[b]."""

    threshold: np.ndarray  # [n_bins - 1], ascending


def make_bins(x):
    """Return at most 255 bins of about as many rows each, from the present values.

    A value of one row in 64 or more has a bin of its own; the others are divided by ranks.
    """
    values, count = np.unique(x + 0.0, return_counts=True)  # both zeros are one
    n = int(count.sum())
    number = np.arange(len(values))
    if len(values) > MOST_BINS:
        is_heavy = count * HEAVY >= n
        n_light = int(count[~is_heavy].sum())
        n_slots = MOST_BINS - 2 * int(is_heavy.sum())
        light = np.where(is_heavy, 0, count)
        rank = np.cumsum(light) - light  # of the first row of a value among the light ones
        slot = rank * n_slots // max(n_light, 1)
        is_new = np.ones(len(values), dtype=bool)
        is_new[1:] = is_heavy[1:] | is_heavy[:-1] | (slot[1:] != slot[:-1])
        number = np.cumsum(is_new) - 1
    last = np.flatnonzero(np.diff(number))  # the largest value of each bin but the last
    return Bins(np.array([find_middle(values[k], values[k + 1]) for k in last], dtype=np.float64))


def find_middle(low, high):
    """Return a threshold that separates two values: low < c <= high."""
    middle = low / 2 + high / 2
    return middle if low < middle <= high else high


def to_bins(bins, x):
    """Return the bin of each value; the one after the last for a missing value."""
    code = np.searchsorted(bins.threshold, x, side="right")
    return np.where(np.isnan(x), len(bins.threshold) + 1, code).astype(np.uint8)


# ---- exp and log by + - * / alone: libraries differ in the last bit ---------------------

LN2_HIGH = 6.93147180369123816490e-01  # its last 21 bits are zero: exact times an exponent
LN2_LOW = 1.90821492927058770002e-10
LOG2_E = 1.44269504088896340736


def exp(x):
    """Return e**x, about to the last bit, for x in [-700, 700]; clipped beyond."""
    x = np.clip(np.asarray(x, dtype=np.float64), -700.0, 700.0)
    k = np.floor(x * LOG2_E + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    p = np.full_like(r, 1.0 / math.factorial(13))
    for n in range(12, -1, -1):
        p = p * r + 1.0 / math.factorial(n)
    return np.ldexp(p, k.astype(np.int64))


def log(x):
    """Return the natural logarithm of positive normal numbers, about to the last bit."""
    m, k = np.frexp(np.asarray(x, dtype=np.float64))
    is_low = m * m < 0.5
    m = np.where(is_low, m * 2.0, m)
    k = np.where(is_low, k - 1, k).astype(np.float64)
    s = (m - 1.0) / (m + 1.0)
    t = s * s
    p = np.full_like(t, 1.0 / 21.0)
    for n in range(19, 0, -2):
        p = p * t + 1.0 / n
    return k * LN2_HIGH + (2.0 * s * p + k * LN2_LOW)


# ---- gradients ------------------------------------------------------------------------


def quantize_residuals(residual):
    """Return gradients of squared error, f - y, in 22 bits, and the shift that was dropped."""
    most = max(abs(int(residual.min())), abs(int(residual.max())))
    shift = max(0, most.bit_length() - GRADIENT_BITS)
    half = (1 << shift) >> 1
    limit = (1 << GRADIENT_BITS) - 1
    return np.minimum((residual + half) >> shift, limit), shift


def compute_logistic_gradients(score, y):
    """Return gradients and hessians of log-loss as integers, and the power of the former."""
    p = 1.0 / (1.0 + exp(-score))
    slope = p - y
    most = float(np.abs(slope).max())
    _, exponent = math.frexp(most) if most > 0.0 else (0.0, 0)
    power = min(GRADIENT_BITS - exponent, 1000)
    limit = (1 << GRADIENT_BITS) - 1
    g = np.clip(round_up(np.ldexp(slope, power)), -limit, limit).astype(np.int64)
    h = np.clip(round_up(p * (1.0 - p) * 2.0 ** (HESSIAN_BITS + 2)), 1, (1 << HESSIAN_BITS) - 1)
    return g, h.astype(np.int64), power


# ---- hyperplanes --------------------------------------------------------------------------


@dataclass
class Hyperplane:
    """Integer weights of some columns, and what a missing value of each counts as."""

    column: list[int]
    weight: list[int]
    fill: list[int]

    def project(self, z):
        """Return the projections of rows on the grid: exact integers."""
        terms = zip(self.column, self.weight, self.fill, strict=True)
        return sum(w * np.where(z[:, j] == GAP, fill, z[:, j]) for j, w, fill in terms)


def hash64(key, counter):
    """Return the splitmix64 output number ``counter`` of the stream ``key``."""
    mask = (1 << 64) - 1
    z = (key + (counter + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def make_child_key(key, is_right):
    """Return the key of a child's draws."""
    return hash64(key, (1 << 64) - 1 - int(is_right))


def draw_columns(key, n_columns, n_drawn):
    """Return the columns with the smallest hashes, in the order of these."""
    return sorted(range(n_columns), key=lambda j: (hash64(key, j), j))[:n_drawn]


def center_column(z):
    """Return a column of a node about its mean in 12 bits, that mean, and the shift."""
    present = z[z != GAP]
    n = len(present)
    if n == 0:
        return None
    fill = (2 * int(present.sum()) + n) // (2 * n)
    largest = max(int(present.max()) - fill, fill - int(present.min()))
    if largest == 0:
        return None
    shift = max(0, largest.bit_length() - DIRECTION_BITS)
    return np.where(z == GAP, 0, (z - fill) >> shift), fill, shift


def solve(matrix, right):
    """Solve a symmetric positive definite system by Cholesky, in one order of operations."""
    n, low, x = len(right), [list(row) for row in matrix], list(right)
    for a in range(n):
        for b in range(a + 1):
            s = low[a][b]
            for k in range(b):
                s = s - low[a][k] * low[b][k]
            if a == b:
                if not s > 0.0:
                    return None
                low[a][a] = math.sqrt(s)
            else:
                low[a][b] = s / low[b][b]
    for a in range(n):
        for k in range(a):
            x[a] = x[a] - low[a][k] * x[k]
        x[a] = x[a] / low[a][a]
    for a in reversed(range(n)):
        for k in range(a + 1, n):
            x[a] = x[a] - low[k][a] * x[k]
        x[a] = x[a] / low[a][a]
    return x


@dataclass
class Direction:
    """A hyperplane and about where the projections of a node lie."""

    hyperplane: Hyperplane
    middle: int
    std: float


def compute_direction(z, g, columns, shrinkage):
    """Return shrunken least squares of the gradient on some columns, None if there is none."""
    n = len(z)
    centered = [(j, center_column(z[:, j])) for j in columns]
    used = [(j, *found) for j, found in centered if found is not None]
    q = [each for _, each, _, _ in used]
    short = np.minimum((g + 64) >> 7, (1 << 15) - 1)
    sums = [int(each.sum()) for each in q]
    total = int(short.sum())

    def center(product, a, b):
        return float(product) - float(a) * float(b) / float(n)

    moment = [
        [center(int((q[a] * q[b]).sum()), sums[a], sums[b]) for b in range(len(q))]
        for a in range(len(q))
    ]
    if not all(moment[a][a] > 0.0 for a in range(len(q))):
        return None
    std = [math.sqrt(moment[a][a]) for a in range(len(q))]
    right = [center(int((q[a] * short).sum()), sums[a], total) / std[a] for a in range(len(q))]
    keep = 1.0 - shrinkage
    matrix = [
        [1.0 if a == b else keep * moment[a][b] / (std[a] * std[b]) for b in range(len(q))]
        for a in range(len(q))
    ]
    solution = solve(matrix, right)
    if solution is None:
        return None
    return round_direction(used, moment, solution, std, n)


def round_direction(used, moment, solution, std, n):
    """Return integer weights of 15 bits, and the middle and spread of their projections."""
    scaled = [
        math.ldexp(x / s, -shift)
        for x, s, (_, _, _, shift) in zip(solution, std, used, strict=True)
    ]
    largest = max((abs(x) for x in scaled), default=0.0)
    if not largest > 0.0:
        return None
    _, exponent = math.frexp(largest)
    limit = (1 << WEIGHT_BITS) - 1
    rounded = [int(round_up(math.ldexp(x, WEIGHT_BITS - exponent))) for x in scaled]
    weight = [max(-limit, min(limit, w)) for w in rounded]
    kept = [a for a, w in enumerate(weight) if w != 0]
    if len(kept) < 2:  # a single column has better cuts of its own
        return None
    variance = 0.0
    for a in kept:
        for b in kept:
            left = math.ldexp(float(weight[a]), used[a][3])
            right = math.ldexp(float(weight[b]), used[b][3])
            variance = variance + left * right * moment[a][b]
    plane = Hyperplane(
        [used[a][0] for a in kept], [weight[a] for a in kept], [used[a][2] for a in kept]
    )
    middle = sum(w * fill for w, fill in zip(plane.weight, plane.fill, strict=True))
    return Direction(plane, middle, math.sqrt(max(variance, 0.0) / float(n)))


def list_cuts(projection, direction):
    """Return the thresholds of a projection that are looked at, ascending."""
    if len(projection) <= SMALL_NODE:
        values = np.unique(projection)
        return [int(a) + (int(b) - int(a) + 1) // 2 for a, b in pairwise(values)]
    shift = 0
    while 2.0**shift < direction.std / 32.0:  # 256 bins over eight standard deviations or more
        shift += 1
    start = direction.middle - (128 << shift)
    return [start + (b << shift) for b in range(1, 256)]


# ---- growing a tree ---------------------------------------------------------------------


@dataclass
class Node:
    """A node of a tree that grows: rows, sums and its best split."""

    rows: np.ndarray
    g: int
    h: int
    depth: int
    column: int = -1
    cut: int = -1  # bins up to this one go left
    missing_left: bool = False
    gain: float = 0.0
    left: int = -1  # number of the left child; the right one follows
    key: int = 0  # of its draws
    hyperplane: Hyperplane | None = None  # in place of a column
    threshold: int = 0  # projections below it go left


def compute_score(g, h, ridge):
    """Return g**2 / (h + ridge), 0 where both are 0."""
    return g * g / (h + ridge) if h + ridge > 0.0 else 0.0


def compute_cut_score(left_g, left_h, node, ridge, least_hessian):
    """Return the score of a cut, 0 if a side has too little."""
    a, x = float(left_g), float(left_h)
    c, y = float(node.g - left_g), float(node.h - left_h)
    if x < least_hessian or y < least_hessian:
        return 0.0
    x, y = x + ridge, y + ridge
    return (a * a * y + c * c * x) / (x * y)


@dataclass(frozen=True)
class Table:
    """A table as the engine sees it."""

    codes: np.ndarray  # bins
    n_bins: list[int]
    z: np.ndarray  # grid values


@dataclass(frozen=True)
class Settings:
    """How trees grow."""

    max_leaf_nodes: int = 31
    max_depth: int = 99
    ridge: float = 0.0
    least_hessian: float = 1.0
    n_hyperplanes: int = 0
    n_drawn: int = 0  # columns of a hyperplane
    shrinkage: float = 0.3  # of their correlations


def choose_column(node, table, g, h, settings):
    """Set the cut of a single column with the largest gain, the first of equal ones.

    Columns come in their order; in each, first missing values go right, then left.
    """
    limits = settings.ridge, settings.least_hessian
    parent = compute_score(float(node.g), float(node.h), settings.ridge)
    best = parent * (1.0 + 2.0**-40)
    for j in range(table.codes.shape[1]):
        bin_of = table.codes[node.rows, j].astype(np.int64)
        sum_g = np.bincount(bin_of, g[node.rows], 256).astype(np.int64)
        sum_h = np.bincount(bin_of, h[node.rows], 256).astype(np.int64)
        missing = table.n_bins[j]
        has_missing = bool((bin_of == missing).any())
        for missing_left in (False, True) if has_missing else (False,):
            n_cuts = missing if has_missing and not missing_left else missing - 1
            left_g = int(sum_g[missing]) if missing_left else 0
            left_h = int(sum_h[missing]) if missing_left else 0
            for b in range(n_cuts):
                left_g, left_h = left_g + int(sum_g[b]), left_h + int(sum_h[b])
                score = compute_cut_score(left_g, left_h, node, *limits)
                if score > best:
                    best = score
                    node.column, node.cut, node.missing_left = j, b, missing_left
                    node.gain = score - parent
    return best


def choose_hyperplane(node, table, g, h, settings, best):
    """Replace the split of a node by a hyperplane of larger gain, if there is one."""
    parent = compute_score(float(node.g), float(node.h), settings.ridge)
    z = table.z[node.rows]
    columns = draw_columns(hash64(node.key, (1 << 64) - 3), z.shape[1], settings.n_drawn)
    direction = compute_direction(z, g[node.rows], columns, settings.shrinkage)
    if direction is None:
        return
    projection = direction.hyperplane.project(z)
    for threshold in list_cuts(projection, direction):
        left = node.rows[projection < threshold]
        score = compute_cut_score(
            int(g[left].sum()), int(h[left].sum()), node, settings.ridge, settings.least_hessian
        )
        if score > best:
            best = score
            node.hyperplane, node.threshold = direction.hyperplane, threshold
            node.column, node.missing_left, node.gain = 0, False, score - parent


def choose_split(node, table, g, h, settings):
    """Set the best split of a node, if it may have one."""
    if node.depth >= settings.max_depth or settings.max_leaf_nodes < 2:
        return
    best = choose_column(node, table, g, h, settings)
    if settings.n_hyperplanes > 0:
        choose_hyperplane(node, table, g, h, settings, best)


def goes_left(node, table):
    """Return which rows of a node go left."""
    if node.hyperplane is not None:
        return node.hyperplane.project(table.z[node.rows]) < node.threshold
    bin_of = table.codes[node.rows, node.column]
    is_missing = bin_of == table.n_bins[node.column]
    return np.where(is_missing, node.missing_left, bin_of <= node.cut)


def grow_tree(table, g, h, settings, key):
    """Grow a tree best first: the open node of largest gain is split, the oldest of equals."""
    rows = np.arange(len(table.codes))
    nodes = [Node(rows, int(g.sum()), int(h.sum()), 0, key=key)]
    choose_split(nodes[0], table, g, h, settings)
    for _ in range(settings.max_leaf_nodes - 1):
        open_nodes = [k for k, node in enumerate(nodes) if node.column >= 0 and node.left < 0]
        if not open_nodes:
            break
        node = nodes[max(open_nodes, key=lambda k: (nodes[k].gain, -k))]
        is_left = goes_left(node, table)
        node.left = len(nodes)
        for is_right, side in enumerate((is_left, ~is_left)):
            part = node.rows[side]
            child = Node(part, int(g[part].sum()), int(h[part].sum()), node.depth + 1)
            child.key = make_child_key(node.key, is_right)
            choose_split(child, table, g, h, settings)
            nodes.append(child)
    return nodes


# ---- boosting -----------------------------------------------------------------------------

MOST_VALUE = (1 << 31) - 1
SCORE_POWER = 24  # log-odds are multiples of 2**-24


def compute_leaf_value(node, factor, ridge):
    """Return what a leaf adds to the score: the Newton step times `factor`, as an integer."""
    h = float(node.h) + ridge
    if h <= 0.0:
        return 0
    value = math.floor(-factor * float(node.g) / h + 0.5)
    return max(-MOST_VALUE, min(MOST_VALUE, value))


def round_mean(y):
    """Return the mean of integers, rounded."""
    return (2 * int(y.sum()) + len(y)) // (2 * len(y))


def start_logistic(y):
    """Return the log-odds of the positive rows, as an integer."""
    n_positive = int(y.sum())
    odds = log(np.array([n_positive / (len(y) - n_positive)]))[0]
    return int(round_up(odds * 2.0**SCORE_POWER))


def boost_squared(table, y, *, n_rounds, rate, l2, seed=0, **settings):
    """Boost squared error on integer targets; return the trees and the scores of the rows."""
    n = len(y)
    score = np.full(n, round_mean(y), dtype=np.int64)
    trees, ones = [], np.ones(n, dtype=np.int64)
    for _ in range(n_rounds):
        g, shift = quantize_residuals(score - y)
        settings_of_round = Settings(ridge=l2, least_hessian=1.0, **settings)
        nodes = grow_tree(table, g, ones, settings_of_round, hash64(seed, len(trees)))
        add_tree(nodes, score, rate * 2.0**shift, l2)
        trees.append(nodes)
    return trees, score


def boost_logistic(table, y, *, n_rounds, rate, l2, seed=0, **settings):
    """Boost log-loss on targets 0 and 1; return the trees and the scores of the rows."""
    score = np.full(len(y), start_logistic(y), dtype=np.int64)
    unit = 2.0 ** (HESSIAN_BITS + 2)  # of a hessian of one
    trees = []
    for _ in range(n_rounds):
        g, h, power = compute_logistic_gradients(np.ldexp(score.astype(float), -SCORE_POWER), y)
        settings_of_round = Settings(ridge=l2 * unit, least_hessian=unit, **settings)
        nodes = grow_tree(table, g, h, settings_of_round, hash64(seed, len(trees)))
        factor = rate * 2.0 ** (SCORE_POWER + HESSIAN_BITS + 2 - power)
        add_tree(nodes, score, factor, l2 * unit)
        trees.append(nodes)
    return trees, score


def add_tree(nodes, score, factor, ridge):
    """Add the leaves of a tree to the scores of the rows."""
    for node in nodes:
        if node.left < 0:
            score[node.rows] += compute_leaf_value(node, factor, ridge)
