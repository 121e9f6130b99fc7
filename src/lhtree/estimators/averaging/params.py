"""Parameters of a forest on the exact engine: read once, checked, frozen, then resolved."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from lhtree.data.weights import MOST_WEIGHT_BITS
from lhtree.estimators.boosting.params import (
    DIRECTION_WEIGHT_BITS,
    MORE_THAN_ALL,
    MOST_CATEGORIES,
    check_bins,
)
from lhtree.estimators.params import (
    MOST_DRAWN,
    Params,
    check_integer,
    count_columns,
    count_min_samples,
    is_auto,
)
from lhtree.model.ensemble_validation import MOST_AVERAGED
from lhtree.training.forest_size import FEWEST_OF_ENGINE, choose_n_estimators
from lhtree.training.plan import NO_MAX_DEPTH, AveragedPlan, Draw
from lhtree.training.targets import Weights

MOST_CANDIDATES = 127  # hyperplanes that a node tries
HYPERPLANE_INTERVAL = 2  # every other tree tries hyperplanes: where they mislead, the others help
# Of each term of a hyperplane but one, in units of what noise would gain: of numbers, of classes.
TERM_PRICE, TERM_PRICE_OF_CLASSES = 0.5, 0.25
# Of the correlations in directions: of numbers, of classes.
SHRINKAGE, SHRINKAGE_OF_CLASSES = 0.3, 0.1


@dataclass(frozen=True)
class AveragingParams:
    """The parameters of a forest on the exact engine, checked.

    Parameters
    ----------
    shared : Params
        Those that trees and forests of the paper have, too.
    max_bins, monotonic_cst, interaction_cst : object
        Those of the exact engine.
    """

    shared: Params
    max_bins: Any
    monotonic_cst: Any
    interaction_cst: Any

    @classmethod
    def read(cls, estimator: Any) -> AveragingParams:
        """Read and check the parameters of an estimator; a fit reads them here only."""
        given = estimator.get_params(deep=False)
        is_of_classes = "preset" in given
        if not is_of_classes and given["n_estimators"] is not None:
            wanted = f"an integer from 1 to {MOST_AVERAGED}, or None for the size of the table"
            check_integer("n_estimators", given["n_estimators"], wanted, low=1, high=MOST_AVERAGED)
            check_integer(
                "n_hyperplanes", given["n_hyperplanes"], "an integer of at least 0", low=0
            )
        shared = Params.check({"preset": "accurate"} | given)
        if is_of_classes and not shared.is_exact:
            _refuse_of_engine(estimator, given)
        else:
            n_categories = given["max_categories"]
            is_open = is_of_classes and n_categories is None
            check_bins(given["max_bins"], MOST_CATEGORIES if is_open else n_categories)
        constraints = {name: given[name] for name in ("monotonic_cst", "interaction_cst")}
        return cls(shared, given["max_bins"], **constraints)

    @property
    def n_threads(self) -> int:
        """Number of threads."""
        return self.shared.n_threads

    @property
    def categorical_features(self) -> Any:
        """Which columns are categories."""
        return self.shared.categorical_features

    @property
    def max_categories(self) -> int:
        """Largest number of categories of a column."""
        given = self.shared.max_categories
        return MOST_CATEGORIES if given is None else int(given)

    def count_estimators(self, n_old: int, n_rows: int, n_drawn: int, n_trees: int) -> int:
        """Return the final number of estimators."""
        wanted = self.shared.limit_estimators(n_old)
        if wanted is not None:
            return wanted
        size = choose_n_estimators(n_rows, n_drawn, n_trees, fewest=FEWEST_OF_ENGINE)
        return max(n_old, size)

    def resolve(
        self,
        draw: Draw,
        *,
        n_columns: int,
        n_numbers: int,
        weights: Weights,
        seed: int,
        constraints: dict[str, Any],
        n_classes: int = 0,
    ) -> AveragedPlan:
        """Return the plan for data of a given size, with the estimators still open.

        Parameters
        ----------
        draw : Draw
            How to draw rows.
        n_columns : int
            Number of columns.
        n_numbers : int
            Number of columns of numbers, of which hyperplanes are made.
        weights : Weights
            Weights of the rows.
        seed : int
            Seed of all draws.
        constraints : dict
            Trends and groups of the columns.
        n_classes : int
            Number of classes, 0 for numbers.
        """
        shared, unit = self.shared, weights.unit
        # Balanced weights are rounded, so that they may add up to more.
        heaviest = _weigh_draws(draw, weights) + draw.n_rows * shared.balance
        n_weighted = weights.sum_over(draw.n_rows) / unit
        split = count_min_samples(shared.min_samples_split, n_weighted, least=2)
        leaf = count_min_samples(shared.min_samples_leaf, n_weighted, least=1)
        depth = NO_MAX_DEPTH if shared.max_depth is None else int(shared.max_depth)
        return AveragedPlan(
            n_estimators=0,
            n_draws=draw.n_draws,
            seed=seed,
            bootstrap=draw.bootstrap,
            n_classes=n_classes,
            balance=shared.balance,
            max_features=count_drawn(shared.max_features, n_columns, n_classes=n_classes),
            max_features_per_tree=count_columns(
                "max_features_per_tree", shared.max_features_per_tree, n_columns
            ),
            axis_splits=bool(shared.axis_splits),
            n_hyperplanes=min(int(shared.n_hyperplanes), MOST_CANDIDATES) if n_numbers > 1 else 0,
            hyperplane_interval=HYPERPLANE_INTERVAL if shared.axis_splits else 1,
            shrinkage=SHRINKAGE_OF_CLASSES if n_classes else SHRINKAGE,
            term_price=TERM_PRICE_OF_CLASSES if n_classes else TERM_PRICE,
            max_depth=min(depth, NO_MAX_DEPTH),
            max_leaf_nodes=min(int(shared.max_leaf_nodes or 0), np.iinfo(np.int32).max),
            min_split_weight=min(int(split) * unit, MORE_THAN_ALL),
            min_weight=1 if leaf == 1 else min(int(leaf) * unit, MORE_THAN_ALL),
            min_fraction=float(shared.min_weight_fraction_leaf),
            ccp_alpha=float(shared.ccp_alpha) / 2,  # impurity is twice the squared error
            unit_weight=float(unit),
            weight_shift=max(0, heaviest.bit_length() - DIRECTION_WEIGHT_BITS),
            **constraints,
        )


def count_drawn(max_features: Any, n_columns: int, *, n_classes: int = 0) -> int:
    """Return how many columns a node draws.

    "auto" is twice the square root of their number; of numbers, half of them if that is more.
    """
    n = count_columns("max_features", max_features, n_columns)
    if n_classes or not is_auto(max_features):
        return n
    return max(n, min(n_columns // 2, MOST_DRAWN))


def _refuse_of_engine(estimator: Any, given: dict[str, Any]) -> None:
    """Refuse what the paper's rules do not have, if it is set."""
    defaults = inspect.signature(type(estimator)).parameters
    for name in ("max_bins", "monotonic_cst", "interaction_cst"):
        if name in given and given[name] != defaults[name].default:
            raise ValueError(
                f"{name}={given[name]!r} needs contrast='fisher', criterion='gini', "
                "voting='membership', alpha=0 and beta=0, as with preset='accurate'; leave it at "
                "its default, or set these."
            )


def _weigh_draws(draw: Draw, weights: Weights) -> int:
    """Return what the rows of an estimator weigh at most; refuse what the core cannot add up."""
    total = weights.sum_over(draw.n_rows)
    if not draw.bootstrap:
        return total
    largest = 1 if weights.values is None else int(weights.values.max())
    most = draw.n_draws * largest
    if weights.values is not None and most >= 1 << MOST_WEIGHT_BITS:
        raise ValueError(
            "sample_weight adds up to too much if bootstrap=True draws the heaviest row every "
            f"time: {most / weights.unit:g}, but the limit is "
            f"{2.0**MOST_WEIGHT_BITS / weights.unit:g}; divide it by a constant, or set "
            "bootstrap=False."
        )
    return max(total, most)
