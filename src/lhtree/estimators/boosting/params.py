"""Parameters of the boosted estimators: read once, checked, frozen, then resolved."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np

from lhtree.data.weights import check_class_weight
from lhtree.estimators.params import (
    MOST_DRAWN,
    SMALLEST,
    check_choice,
    check_flag,
    check_integer,
    check_real,
    check_verbose,
    count_columns,
    count_min_samples,
    count_threads,
    draw_seed,
    is_auto,
)
from lhtree.training.plan import NO_MAX_DEPTH, BoostingPlan
from lhtree.training.targets import MOST_BINS, Weights

MOST_CATEGORIES = 255  # codes of a column
FEW_ROWS = 100  # fewer are too few to hold some out for validation
MANY_ROWS = 20_000  # above them, a tenth of the rows is enough for validation
MOST_ROUNDS = 2**24
ROUNDS = 100  # "auto" without early stopping
ROUNDS_AT_MOST, ROUNDS_OF_CLASSES = 600, 1000  # with it; for more than two classes
FIRST_RATE, RATE_GROWTH, MOST_RATE = 0.05, 0.0005, 0.3  # "auto"
FIRST_RATE_OF_NUMBERS = 0.025
# Up to so many rows, few rounds are enough; above MANY_ROWS, each takes long.
FASTER_GROWTH, ROWS_OF_FEW_ROUNDS = 0.0015, 1_000
LEAVES, LEAVES_OF_MANY_ROWS = 15, 31  # "auto"
LEAST_HESSIAN = 0.1  # of a leaf where hessians are at most 1/4
MIN_GAIN = 1.0  # of a split, in units of what one gains on noise
DIRECTION_WEIGHT_BITS = 31
MORE_THAN_ALL = 2**41  # above the weight of all rows
MOST_LEVELS = 255  # of quantiles
COUNTED = ("squared_error", "quantile")  # losses whose hessians are one: they count rows


def list_levels(quantile: Any) -> list[Any]:
    """Return the levels that the parameter `quantile` names: none, one or several."""
    if isinstance(quantile, np.ndarray):
        quantile = quantile.tolist()
    if isinstance(quantile, list | tuple):
        return list(quantile)
    return [] if quantile is None else [quantile]


def check_bins(max_bins: Any, max_categories: Any) -> None:
    """Refuse more bins or categories than a column of the exact engine has."""
    wanted = f"an integer from 2 to {MOST_BINS}"
    check_integer("max_bins", max_bins, wanted, low=2, high=MOST_BINS)
    wanted = f"an integer from 2 to {MOST_CATEGORIES}"
    check_integer("max_categories", max_categories, wanted, low=2, high=MOST_CATEGORIES)


@dataclass(frozen=True)
class BoostingParams:
    """The parameters of a boosted estimator, checked."""

    loss: Any
    learning_rate: Any
    n_estimators: Any
    subsample: Any
    max_leaf_nodes: Any
    max_depth: Any
    min_samples_leaf: Any
    l2_regularization: Any
    n_hyperplanes: Any
    max_terms: Any
    max_features: Any
    max_bins: Any
    categorical_features: Any
    max_categories: Any
    early_stopping: Any
    refit: Any
    validation_fraction: Any
    n_iter_no_change: Any
    tol: Any
    scoring: Any
    warm_start: Any
    n_jobs: Any
    random_state: Any
    verbose: Any
    class_weight: Any = None
    quantile: Any = None
    monotonic_cst: Any = None
    interaction_cst: Any = None

    @classmethod
    def read(cls, estimator: Any) -> BoostingParams:
        """Read and check the parameters of an estimator; a fit reads them here only."""
        given = estimator.get_params(deep=False)
        names = {field.name for field in fields(cls)}
        params = cls(**{name: value for name, value in given.items() if name in names})
        check_choice("loss", params.loss, estimator.LOSSES)
        params._check_quantile()
        params._check_rounds()
        params._check_trees()
        check_class_weight(params.class_weight, is_forest=False)
        check_verbose(params.verbose)
        return params

    def _check_quantile(self) -> None:
        levels = list_levels(self.quantile)
        wanted = f"a number between 0 and 1, or an ascending list of at most {MOST_LEVELS} of them"
        if not levels and self.loss == "quantile":
            raise ValueError(f"quantile must be {wanted}, got {self.quantile!r}.")
        below_one = math.nextafter(1.0, 0.0)
        for level in levels:
            check_real("quantile", level, wanted, low=SMALLEST, high=below_one)
        is_ascending = all(low < high for low, high in pairwise(levels))
        if not is_ascending or len(levels) > MOST_LEVELS:
            raise ValueError(f"quantile must be {wanted}, got {self.quantile!r}.")

    def _check_rounds(self) -> None:
        if not is_auto(self.learning_rate):
            wanted = "a number above 0, or 'auto'"
            check_real("learning_rate", self.learning_rate, wanted, low=SMALLEST)
        if not is_auto(self.n_estimators):
            wanted = f"an integer from 1 to {MOST_ROUNDS}, or 'auto'"
            check_integer("n_estimators", self.n_estimators, wanted, low=1, high=MOST_ROUNDS)
        wanted = "a share of the rows above 0, and at most 1"
        check_real("subsample", self.subsample, wanted, low=SMALLEST, high=1)
        if not is_auto(self.early_stopping):
            check_flag("early_stopping", self.early_stopping, ("auto",))
        if not is_auto(self.validation_fraction):
            wanted = "a fraction of the rows between 0 and 1, or 'auto'"
            name, below_one = "validation_fraction", math.nextafter(1.0, 0.0)
            check_real(name, self.validation_fraction, wanted, low=SMALLEST, high=below_one)
        wanted = "an integer of at least 1"
        check_integer("n_iter_no_change", self.n_iter_no_change, wanted, low=1)
        check_real("tol", self.tol, "a number of at least 0", low=0)
        check_flag("warm_start", self.warm_start)
        if not is_auto(self.refit):
            check_flag("refit", self.refit, ("auto",))
            if self.refit and self.warm_start:
                raise ValueError(
                    "refit=True grows the model anew, and warm_start=True goes on with it; set "
                    "one of them to False."
                )

    def _check_trees(self) -> None:
        if not is_auto(self.max_leaf_nodes):
            wanted = "an integer from 2 to 32768, or 'auto'"
            check_integer("max_leaf_nodes", self.max_leaf_nodes, wanted, low=2, high=2**15)
        if self.max_depth is not None:
            check_integer("max_depth", self.max_depth, "an integer of at least 1, or None", low=1)
        wanted = "an integer of at least 1"
        check_integer("min_samples_leaf", self.min_samples_leaf, wanted, low=1)
        check_real("min_samples_leaf", self.min_samples_leaf, wanted, low=1)  # is a float, too
        name = "l2_regularization"
        check_real(name, self.l2_regularization, "a number of at least 0", low=0)
        wanted = "an integer from 0 to 127"
        check_integer("n_hyperplanes", self.n_hyperplanes, wanted, low=0, high=127)
        if not is_auto(self.max_terms):
            wanted = f"an integer from 2 to {MOST_DRAWN}, or 'auto'"
            check_integer("max_terms", self.max_terms, wanted, low=2, high=MOST_DRAWN)
        self._count_features(1)
        check_bins(self.max_bins, self.max_categories)

    def _count_features(self, n_columns: int) -> int:
        return count_columns("max_features", self.max_features, n_columns, takes_auto=False)

    @property
    def core_loss(self) -> str:
        """The loss of the core: half the absolute error is that of the median."""
        return "quantile" if self.loss == "absolute_error" else str(self.loss)

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of the quantiles that a model predicts."""
        if self.loss == "absolute_error":
            return (0.5,)
        return tuple(map(float, list_levels(self.quantile))) if self.loss == "quantile" else ()

    @property
    def plain_quantile(self) -> float | list[float] | None:
        """The parameter `quantile` of a model of quantiles: a number or a list, else None."""
        if self.loss != "quantile":
            return None
        is_list = np.ndim(self.quantile) > 0
        return list(self.levels) if is_list else self.levels[0]

    @property
    def n_threads(self) -> int:
        """Number of threads."""
        return count_threads(self.n_jobs)

    def draw_seed(self) -> int:
        """Draw the seed of a fit from `random_state`."""
        return draw_seed(self.random_state)

    def stops_early(self, n_rows: int, *, has_validation: bool) -> bool:
        """Whether the loss of validation rows, given or held out, stops the rounds."""
        if is_auto(self.early_stopping):
            return has_validation or n_rows >= FEW_ROWS
        return bool(self.early_stopping)

    def get_validation_fraction(self, n_rows: int) -> float:
        """Return the fraction of the rows that early stopping holds out."""
        if is_auto(self.validation_fraction):
            return 0.2 if n_rows <= MANY_ROWS else 0.1
        return float(self.validation_fraction)

    def refits(self, n_rows: int) -> bool:
        """Whether all rows grow a second model, once held-out rows have stopped the first."""
        if is_auto(self.refit):
            return n_rows <= MANY_ROWS and not self.warm_start
        return bool(self.refit)

    def count_rounds(self, *, stops_early: bool, n_classes: int) -> int:
        """Return the largest number of rounds."""
        if not is_auto(self.n_estimators):
            return int(self.n_estimators)
        if not stops_early:
            return ROUNDS
        return ROUNDS_OF_CLASSES if n_classes > 2 else ROUNDS_AT_MOST

    def _plan_rates(self, n_rows: int, n_classes: int) -> tuple[float, float, float]:
        """Return the first rate, its growth from round to round, and the largest rate."""
        if is_auto(self.learning_rate):
            is_between = ROWS_OF_FEW_ROUNDS < n_rows <= MANY_ROWS
            # A model that is grown anew from all rows has the rates of the first.
            stops_early = self.stops_early(n_rows, has_validation=True)
            n_rounds = self.count_rounds(stops_early=stops_early, n_classes=n_classes)
            is_slow = n_classes == 0 and n_rounds >= ROUNDS_AT_MOST
            first_rate = FIRST_RATE_OF_NUMBERS if is_slow else FIRST_RATE
            return first_rate, RATE_GROWTH if is_between else FASTER_GROWTH, MOST_RATE
        return float(self.learning_rate), 0.0, float(self.learning_rate)

    def _limit_hessian(self, least: float, *, is_counted: bool) -> float:
        if is_counted:  # hessians count rows
            return max(1.0, least)
        return LEAST_HESSIAN if self.loss == "log_loss" else 1.0

    def _count_leaves(self, n_rows: int) -> int:
        if not is_auto(self.max_leaf_nodes):
            return int(self.max_leaf_nodes)
        return LEAVES if n_rows <= MANY_ROWS else LEAVES_OF_MANY_ROWS

    def resolve(
        self,
        *,
        n_columns: int,
        n_numbers: int,
        n_rows: int,
        weights: Weights,
        seed: int,
        stops_early: bool,
        n_classes: int = 0,
    ) -> BoostingPlan:
        """Return the plan for data of a given size.

        Parameters
        ----------
        n_columns : int
            Number of columns.
        n_numbers : int
            Number of columns of numbers, of which hyperplanes are made.
        n_rows : int
            Number of training rows.
        weights : Weights
            Their weights.
        seed : int
            Seed of all draws.
        stops_early : bool
            Whether the loss of validation rows stops the rounds.
        n_classes : int
            Number of classes, 0 for numbers.
        """
        n_rounds = self.count_rounds(stops_early=stops_early, n_classes=n_classes)
        patience = int(self.n_iter_no_change) if stops_early else 0
        first_rate, growth, most_rate = self._plan_rates(n_rows, n_classes)
        wanted = int(2 * math.sqrt(n_numbers)) if is_auto(self.max_terms) else self.max_terms
        max_terms = min(n_numbers, MOST_DRAWN, wanted)
        least = count_min_samples(self.min_samples_leaf, n_rows, least=1)
        is_counted = self.core_loss in COUNTED and weights.values is None
        bits = int(weights.sum_over(n_rows)).bit_length()
        return BoostingPlan(
            n_rounds=n_rounds,
            patience=min(patience, n_rounds + 1),
            learning_rate=first_rate,
            rate_growth=growth,
            most_rate=most_rate,
            subsample=float(self.subsample),
            l2_regularization=float(self.l2_regularization),
            max_leaf_nodes=self._count_leaves(n_rows),
            max_depth=NO_MAX_DEPTH
            if self.max_depth is None
            else min(int(self.max_depth), NO_MAX_DEPTH),
            min_hessian=self._limit_hessian(least, is_counted=is_counted),
            min_gain=MIN_GAIN,
            min_weight=0 if least == 1 else min(int(least) * weights.unit, MORE_THAN_ALL),
            unit_weight=float(weights.unit),
            seed=seed,
            max_features=self._count_features(n_columns),
            n_hyperplanes=int(self.n_hyperplanes) if max_terms >= 2 else 0,
            max_terms=max_terms,
            weight_shift=max(0, bits - DIRECTION_WEIGHT_BITS),
            levels=self.levels,
        )
