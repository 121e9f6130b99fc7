"""Boosting: trees on gradients, one after the other.

A single regression tree is boosting of squared error with one round and a learning rate of 1:
the score of its splits is then the reduction of squared error, and a leaf adds what leads from
the start to the mean of its rows.
"""

from dataclasses import dataclass

import numpy as np

from exact.arithmetic import hash64
from exact.columns import encode
from exact.losses import LOSSES, SquaredError, sum_losses
from exact.splits import SMOOTHING, Limits, Table
from exact.trees import Node, grow_tree, list_values, walk


@dataclass(frozen=True)
class Plan:
    """How a model is boosted."""

    n_rounds: int = 4
    learning_rate: float = 0.1
    l2_regularization: float = 1.0
    min_hessian: float = 1.0
    min_weight: float = 0.0  # of a side of a split, in units of the weights of rows
    unit_weight: int = 1  # the weight of a row of weight one
    max_leaf_nodes: int = 8
    max_depth: int = 99
    max_features: int = 0  # columns that a node draws for its single splits; 0: all
    n_hyperplanes: int = 0
    max_terms: int = 3
    shrinkage: float = 0.3  # of correlations in directions
    weight_shift: int = 0  # bits of weights that directions drop
    patience: int = 0  # rounds without a lower loss of the held-out rows; 0: any number
    seed: int = 0
    first_round: int = 0  # rounds that are there already


@dataclass(frozen=True)
class Rows:
    """Rows of a table, of positive weight, and their targets."""

    X: np.ndarray  # [n_rows, n_columns], raw values
    y: np.ndarray  # integers: on the grid of the target, or 0 and 1
    weight: np.ndarray | None = None  # in units; None: all one
    score: np.ndarray | None = None  # before the first round; None: the loss chooses

    @property
    def weight_or_one(self):
        """Return the weight of each row."""
        return np.ones(len(self.X), dtype=np.int64) if self.weight is None else self.weight


@dataclass(frozen=True)
class Boosted:
    """Trees, and how they do: losses before the first round and after each."""

    trees: list[list[Node]]
    training_score: np.ndarray
    held_out_score: np.ndarray | None
    training_loss: list[int]
    held_out_loss: list[int]  # empty without held-out rows


def make_limits(loss, plan, is_weighted):
    """Return the limits of a plan in the units of a loss.

    Squared error without weights counts rows by hessians, so `min_weight` takes no part there.
    """
    unit = loss.hessian_unit * plan.unit_weight
    is_counted = is_weighted or loss is not SquaredError
    return Limits(
        ridge=plan.l2_regularization * unit,
        smoothing=float(SMOOTHING * unit),
        least_hessian=max(1.0, plan.min_hessian * unit),
        least_weight=plan.min_weight if is_counted else 0.0,
    )


def start_scores(rows, start):
    """Return the scores of rows before the first round."""
    if rows.score is None:
        return np.full(len(rows.X), start, dtype=np.int64)
    return rows.score.astype(np.int64)


def has_lost_patience(losses, patience):
    """Return whether so many rounds in a row did not lower the least loss before them."""
    first_best = losses.index(min(losses))
    return patience > 0 and len(losses) - 1 - first_best >= patience


def boost(columns, training, held_out, loss, plan):
    """Boost trees; ``held_out`` rows may be None, ``loss`` is a name."""
    loss = LOSSES[loss]
    weight, score = training.weight_or_one, training.score
    start = loss.start(training.y, weight) if score is None else 0
    score = start_scores(training, start)
    codes, z = encode(columns, training.X)
    limits = make_limits(loss, plan, training.weight is not None)
    trees, training_loss = [], [sum_losses(loss, score, training.y, weight)]
    held_out_score, held_out_loss = None, []
    if held_out is not None:
        held_out_score = start_scores(held_out, start)
        rest = held_out.y, held_out.weight_or_one
        held_out_loss.append(sum_losses(loss, held_out_score, *rest))
    for number in range(plan.n_rounds):
        g, h, unit = loss.compute_gradients(score, training.y)
        table = Table(columns, codes, z, weight, g, h)
        key = hash64(plan.seed, plan.first_round + number)
        tree = grow_tree(table, plan.learning_rate * unit, limits, plan, key)
        trees.append(tree)
        for node in tree:
            if node.left < 0:
                score[node.rows] += node.value
        training_loss.append(sum_losses(loss, score, training.y, weight))
        if held_out is not None:
            held_out_score += list_values(tree)[walk(tree, columns, held_out.X)]
            held_out_loss.append(sum_losses(loss, held_out_score, *rest))
            if has_lost_patience(held_out_loss, plan.patience):
                break
    return Boosted(trees, score, held_out_score, training_loss, held_out_loss)
