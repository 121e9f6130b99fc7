"""Boosting: trees on gradients, one after the other.

A single regression tree is boosting of squared error with one round and a learning rate of 1:
the score of its splits is then the reduction of squared error, and a leaf adds what leads from
the start to the mean of its rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from exact.arithmetic import hash64
from exact.columns import encode
from exact.constraints import Bounds, clip_values
from exact.losses import make_loss, sum_losses
from exact.splits import SMOOTHING, Limits, Table
from exact.trees import Node, add_values, grow_tree

ROW_DRAWS = (1 << 64) - 1 - 3


@dataclass(frozen=True)
class Plan:
    """How a model is boosted."""

    n_rounds: int = 4
    learning_rate: float = 0.1  # of the first round
    rate_growth: float = 0.0  # what each round adds to it
    most_rate: float = np.inf  # up to this
    subsample: float = 1.0  # share of the rows that each round draws
    l2_regularization: float = 1.0
    min_hessian: float = 1.0
    min_weight: float = 0.0  # of a side of a split, in units of the weights of rows
    unit_weight: int = 1  # the weight of a row of weight one
    max_leaf_nodes: int = 8
    max_depth: int = 99
    max_features: int = 0  # columns that a node draws for its single splits; 0: all
    min_gain: float = 0.0  # of a split, in units of what one gains on noise
    n_hyperplanes: int = 0
    hyperplane_interval: int = 1  # rounds from one whose tree has hyperplanes to the next
    max_terms: int = 3
    shrinkage: float = 0.3  # of correlations in directions
    weight_shift: int = 0  # bits of weights that directions drop
    patience: int = 0  # rounds without a lower loss of the held-out rows; 0: any number
    tolerance: float = 0.0  # by which a sum of losses must be lower to count
    seed: int = 0
    first_round: int = 0  # rounds that are there already
    levels: tuple[float, ...] = ()  # of quantile loss, one per output
    monotonic_cst: tuple[int, ...] = ()  # trends of the columns: -1, 0 or 1; none: all 0
    interaction_cst: tuple[tuple[int, ...], ...] = ()  # groups of columns; none: all are one


@dataclass(frozen=True)
class Rows:
    """Rows of a table, of positive weight, and their targets."""

    X: np.ndarray  # [n_rows, n_columns], raw values
    y: np.ndarray  # integers: on the grid of the target, or indices of classes
    weight: np.ndarray | None = None  # in units; None: all one
    score: np.ndarray | None = None  # [n_rows, n_outputs] to begin with; None: the loss chooses
    held_out: np.ndarray | None = None  # which rows only say when to stop; None: none

    @property
    def weight_or_one(self):
        """Return the weight of each row."""
        return np.ones(len(self.X), dtype=np.int64) if self.weight is None else self.weight

    @property
    def is_trained(self):
        """Return which rows are not held out."""
        return np.ones(len(self.X), dtype=bool) if self.held_out is None else self.held_out == 0


@dataclass(frozen=True)
class Boosted:
    """Trees, and how they do: losses before the first round and after each."""

    trees: list[list[Node]]
    training_score: np.ndarray
    validation_score: np.ndarray | None
    training_loss: list[int]
    held_out_loss: list[int]  # zeros without held-out rows


def make_limits(loss, plan, is_weighted):
    """Return the limits of a plan in the units of a loss.

    Without weights, losses whose hessians are one count rows by them, so `min_weight` takes
    no part there.
    """
    unit = loss.hessian_unit * plan.unit_weight
    is_counted = is_weighted or loss.hessian_unit > 1
    return Limits(
        ridge=plan.l2_regularization * unit,
        smoothing=float(SMOOTHING * unit),
        least_hessian=max(1.0, plan.min_hessian * unit),
        least_weight=plan.min_weight if is_counted else 0.0,
        bounds=Bounds() if any(plan.monotonic_cst) else None,
    )


def limit_gain(limits, table, drawn, plan):
    """Return limits by which a split must gain more than one on noise does on average.

    Each category but one raises the gain of the best of their sets by chance, and each term but
    one that of a hyperplane.
    """
    weight, g = table.weight[drawn].tolist(), table.g[drawn].tolist()
    squares = sum(w * each * each for w, each in zip(weight, g, strict=True))
    hessian = sum(w * each for w, each in zip(weight, table.h[drawn].tolist(), strict=True))
    least = plan.min_gain * (float(squares) / float(hessian) * float(plan.unit_weight))
    return replace(limits, least_gain=least, category_price=least / 8, term_price=least / 4)


def start_scores(rows, start):
    """Return the scores of rows before the first round."""
    if rows.score is None:
        return np.tile(np.array(start, dtype=np.int64), (len(rows.X), 1))
    return rows.score.astype(np.int64)


def compute_rate(plan, number):
    """Return the learning rate of a round."""
    rate = plan.learning_rate + plan.rate_growth * float(plan.first_round + number)
    return min(rate, plan.most_rate)


def draw_rows(rows, key, share):
    """Return the rows that a round draws, each with probability ``share``; all if that is none."""
    trained = np.flatnonzero(rows.is_trained)
    if share >= 1.0:
        return trained
    draws, most = hash64(key, ROW_DRAWS), int(share * 2.0**64)
    drawn = np.array([i for i in trained.tolist() if hash64(draws, i) < most], dtype=np.int64)
    return drawn if len(drawn) else trained


def measure(loss, parts):
    """Return the losses of the rows to train on and of those held out, of all parts."""
    sums = [0, 0]
    for rows, score in parts:
        for k, chosen in enumerate((rows.is_trained, ~rows.is_trained)):
            own = score[chosen], rows.y[chosen], rows.weight_or_one[chosen]
            sums[k] += sum_losses(loss, *own)
    return sums


def find_best_round(losses, tolerance):
    """Return the last round that counts: whose loss is lower, by more than a tolerance."""
    best = 0
    for number, loss in enumerate(losses):
        if float(loss) < float(losses[best]) - tolerance:
            best = number
    return best


def has_lost_patience(losses, plan):
    """Return whether so many rounds in a row did not lower the loss."""
    best = find_best_round(losses, plan.tolerance)
    return plan.patience > 0 and len(losses) - 1 - best >= plan.patience


def set_values(tree, values, plan):
    """Return a tree whose leaves add values; ``values`` has those that each node would add."""
    if any(plan.monotonic_cst):
        values = [(each,) for each in clip_values(tree, [each for (each,) in values], plan)]
    return [
        node if node.left >= 0 else replace(node, values=each)
        for node, each in zip(tree, values, strict=True)
    ]


def boost(columns, training, validation, loss, plan, n_outputs=1):
    """Boost trees; ``validation`` rows, all held out, may be None; ``loss`` is a name."""
    loss, weight = make_loss(loss, n_outputs, plan.levels), training.weight_or_one
    chosen, start = training.is_trained, None
    loss.learn(training.y[chosen], weight[chosen])
    if training.score is None:
        start = loss.start(training.y[chosen], weight[chosen])
    parts = [(training, start_scores(training, start))]
    if validation is not None:
        validation = replace(validation, held_out=np.ones(len(validation.X), dtype=np.uint8))
        parts.append((validation, start_scores(validation, start)))
    score = parts[0][1]
    codes, z = encode(columns, training.X)
    limits = make_limits(loss, plan, training.weight is not None)
    trees, losses = [], [measure(loss, parts)]
    for number in range(plan.n_rounds):
        key = hash64(plan.seed, plan.first_round + number)
        gradients = loss.compute_gradients(score, training.y, chosen, key)
        table = Table(columns, codes, z, weight, *gradients[:2])
        drawn = draw_rows(training, key, plan.subsample)
        own = limit_gain(limits, table, drawn, plan)
        has_hyperplanes = (plan.first_round + number) % plan.hyperplane_interval == 0
        own_plan = plan if has_hyperplanes else replace(plan, n_hyperplanes=0)
        tree = grow_tree(table, drawn, own, own_plan, key)
        step = compute_rate(plan, number) * gradients[2], limits.ridge
        of_rows = gradients, training.y, weight
        values = [loss.compute_values(*of_rows, node.rows, *step) for node in tree]
        tree = set_values(tree, values, plan)
        trees.append(tree)
        for rows, of_part in parts:
            add_values(tree, columns, rows.X, of_part)
        losses.append(measure(loss, parts))
        if has_lost_patience([held_out for _, held_out in losses], plan):
            break
    other = parts[1][1] if validation is not None else None
    return Boosted(trees, score, other, *map(list, zip(*losses, strict=True)))
