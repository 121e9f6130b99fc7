"""What the core should grow: one frozen record with every number resolved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

NO_MAX_DEPTH = np.iinfo(np.int64).max
CONTRASTS = ("mean", "standardized", "fisher")
CRITERIA = ("purity", "gini")


class Draw(NamedTuple):
    """How each estimator draws its rows from those of positive weight."""

    n_rows: int
    n_draws: int
    bootstrap: bool

    @property
    def has_out_of_bag(self) -> bool:
        """Whether an estimator may leave a row undrawn."""
        return self.bootstrap or self.n_draws < self.n_rows


@dataclass(frozen=True)
class Plan:
    """Which estimators to grow, and how.

    Estimators ``first_estimator``, ``first_estimator + 1``, ... get one ``beta`` each, and
    one tree per entry of ``positive_class``. Draws depend only on ``seed`` and on the
    numbers of estimator, class, row and column.
    """

    n_classes: int
    positive_class: tuple[int, ...]
    beta: tuple[float, ...]
    n_draws: int  # rows drawn per estimator
    seed: int = 0
    first_estimator: int = 0
    bootstrap: bool = False
    balance: bool = False  # equal class weights within each estimator's rows
    alpha: float = 0.0
    gamma: float = 2.0
    min_samples_split: float = 2.0
    max_depth: int = NO_MAX_DEPTH
    min_weight_fraction_leaf: float = 0.0
    min_samples_leaf: float = 0.0  # smallest weight on a side of a split; 0: any
    max_leaf_nodes: int = 0  # 0: no limit
    ccp_alpha: float = 0.0
    contrast: int = 0  # index into CONTRASTS
    criterion: int = 0  # index into CRITERIA
    max_features: int = 0  # columns drawn at each node; 0: all
    axis_splits: bool = False  # whether to try each of them alone
    n_hyperplanes: int = 1  # to try in each node: over all of them, halves, quarters, ...
    max_features_per_tree: int = 0  # columns drawn per tree; 0: all


@dataclass(frozen=True)
class BoostingPlan:
    """Which rounds of boosting to add, and how. Weights are in units of row weights."""

    n_rounds: int
    learning_rate: float  # of the first round
    l2_regularization: float
    max_leaf_nodes: int
    rate_growth: float = 0.0  # what each round adds to the learning rate
    most_rate: float = math.inf  # up to this
    subsample: float = 1.0  # share of the rows that each round draws
    first_round: int = 0
    patience: int = 0  # rounds without a lower validation loss before the last; 0: any
    tolerance: float = 0.0  # by which a sum of losses must be lower to count
    max_depth: int = NO_MAX_DEPTH
    min_hessian: float = 1.0  # of a leaf, by which it is divided
    min_weight: int = 0  # of a leaf
    unit_weight: float = 1.0  # what a row of weight one weighs
    min_gain: float = 0.0  # of a split, in units of what one gains on noise
    seed: int = 0
    max_features: int = 0  # columns that a node draws for its single splits; 0: all
    n_hyperplanes: int = 0  # over all columns drawn, halves, quarters, ...
    hyperplane_interval: int = 1  # rounds from one whose tree has hyperplanes to the next
    max_terms: int = 0  # columns drawn for them
    shrinkage: float = 0.3  # of correlations, in directions
    weight_shift: int = 0  # bits that weights lose in directions
    levels: tuple[float, ...] = ()  # of quantile loss, one per output
    monotonic_cst: tuple[int, ...] = ()  # trends of the columns: -1, 0 or 1; none: all 0
    interaction_cst: tuple[tuple[int, ...], ...] = ()  # groups of columns; none: all are one


@dataclass(frozen=True)
class AveragedPlan:
    """Which trees of a forest on the exact engine to grow, and how.

    Weights are in units of row weights. Draws depend only on ``seed`` and on the numbers of
    estimator, row, node and column.
    """

    n_estimators: int
    n_draws: int  # rows drawn per estimator
    seed: int = 0
    first_estimator: int = 0
    bootstrap: bool = False
    n_classes: int = 0  # 0: targets are numbers
    balance: bool = False  # equal class weights within each estimator's rows
    max_features: int = 0  # columns drawn at each node; 0: all
    max_features_per_tree: int = 0  # columns drawn per tree; 0: all
    axis_splits: bool = True  # whether to try each of them alone
    n_hyperplanes: int = 0  # over all columns drawn, halves, quarters, ...
    hyperplane_interval: int = 1  # estimators from one that has hyperplanes to the next
    shrinkage: float = 0.3  # of correlations, in directions
    term_price: float = 0.0  # of each term of a hyperplane but one, in units of the node's noise
    max_depth: int = NO_MAX_DEPTH
    max_leaf_nodes: int = 0  # 0: no limit
    min_split_weight: int = 2  # of a node that is divided
    min_weight: int = 1  # of a side of a split
    min_fraction: float = 0.0  # of the weight of a tree's rows, on a side of a split
    ccp_alpha: float = 0.0  # gain per leaf and weight that a subtree needs
    unit_weight: float = 1.0  # what a row of weight one weighs
    weight_shift: int = 0  # bits that weights lose in directions
    monotonic_cst: tuple[int, ...] = ()  # trends of the columns: -1, 0 or 1; none: all 0
    interaction_cst: tuple[tuple[int, ...], ...] = ()  # groups of columns; none: all are one

    @property
    def n_trees(self) -> int:
        """Trees of an estimator: one per class, but one for two classes and for numbers."""
        return self.n_classes if self.n_classes > 2 else 1
