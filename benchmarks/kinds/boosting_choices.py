"""Other values of the constants behind boosting's defaults than those that were chosen.

Each value takes the place of one default alone. Of up to 4,000 training rows of a table, or of
all if there are more than 20,000 (another rule holds there), 75 % train and 25 % score. After a
change of the sources all is measured anew, since the default may grow other models.
"""

from __future__ import annotations

import functools
import warnings
from argparse import Namespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks import data
from benchmarks.kinds import choices
from benchmarks.kinds.choices import DEFAULT
from benchmarks.kinds.comparison import score
from benchmarks.lines import Line
from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.estimators.boosting import params
from lhtree.training.plan import BoostingPlan

MOST_ROWS = 4_000
SLOW = ("mnist",)  # left out: a fit takes minutes


class Choice(NamedTuple):
    """A default and other values of it: a parameter of the estimator, unless it has constants."""

    title: str
    default: str
    values: tuple[Any, ...]
    constants: tuple[str, ...] = ()  # of the module `params`
    is_factor: bool = False  # the constants are multiplied; those that count stay integers


CHOICES = {
    "first_rate": Choice(
        "Learning rate of the first round", "0.05; 0.025 for numbers with 600 rounds",
        (0.025, 0.1),
        ("FIRST_RATE", "FIRST_RATE_OF_NUMBERS"),
    ),
    "rate_growth": Choice(
        "Growth of the rate, times the default", "0.0005 and 0.0015", (0, 0.5, 2),
        ("RATE_GROWTH", "FASTER_GROWTH"), is_factor=True,
    ),
    "most_rate": Choice("Largest rate", "0.3", (0.1, 0.2), ("MOST_RATE",)),
    "rows_of_few_rounds": Choice(
        "Rows up to which rates grow faster", "1,000", (0, 20_000), ("ROWS_OF_FEW_ROUNDS",)
    ),
    "rounds": Choice(
        "Most rounds, times the default", "600, 1000", (0.5, 2),
        ("ROUNDS_AT_MOST", "ROUNDS_OF_CLASSES"), is_factor=True,
    ),
    "n_iter_no_change": Choice("Rounds without a lower loss", "30", (10, 60)),
    "validation_fraction": Choice(
        "Share of held-out rows", "0.2; 0.1 above 20,000 rows", (0.1, 0.3)
    ),
    "refit": Choice("Growing anew from all rows", "up to 20,000 rows", (False, True)),
    "leaves": Choice(
        "Leaves of a tree, times the default", "15; 31 above 20,000 rows", (0.5, 2),
        ("LEAVES", "LEAVES_OF_MANY_ROWS"), is_factor=True,
    ),
    "l2_regularization": Choice("L2 regularisation", "0.3", (0.0, 1.0, 3.0)),
    "min_gain": Choice(
        "Least gain of a split, in units of noise", "1", (0.0, 0.5, 2.0), ("MIN_GAIN",)
    ),
    "least_hessian": Choice(
        "Least hessian of a leaf (classes)", "0.1", (0.01, 1.0), ("LEAST_HESSIAN",)
    ),
    "n_hyperplanes": Choice("Hyperplanes of a node", "1", (0, 3)),
    "max_terms": Choice("Columns drawn for hyperplanes, in square roots of all", "2", (1, 4)),
    "shrinkage": Choice("Shrinkage of correlations", "0.3", (0.1, 0.6)),  # of the plan
    "max_features": Choice("Columns drawn for single splits", "all", ("sqrt", 0.5)),
    "subsample": Choice("Share of the rows drawn for a tree", "1", (0.5, 0.8)),
}  # fmt: skip
VARIANTS = [DEFAULT, *((name, str(v)) for name, each in CHOICES.items() for v in each.values)]


def list_jobs(options: Namespace) -> list[Line]:
    """Return all values, one split of all tables after the other; large tables have one."""
    places = [
        (name, split)
        for split in range(options.seeds)
        for name, table in choices.list_tables().items()
        if name not in SLOW and (split == 0 or table.n_rows <= params.MANY_ROWS)
    ]
    return choices.make_jobs(places, VARIANTS)


def resolve(name: str, value: str, X: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a value changes: parameters of the estimator, names of the module `params`."""
    if (name, value) == DEFAULT:
        return {}, {}
    choice = CHOICES[name]
    (own,) = [each for each in choice.values if str(each) == value]
    if name == "shrinkage":
        return {}, {"BoostingPlan": functools.partial(BoostingPlan, shrinkage=own)}
    if name == "max_terms":
        return {name: choices.count_terms(X, own)}, {}
    if not choice.constants:
        return {name: own}, {}
    before = {each: getattr(params, each) for each in choice.constants}
    return {}, {n: type(v)(own * v) if choice.is_factor else own for n, v in before.items()}


@functools.lru_cache(maxsize=1)
def read_table(name: str) -> tuple[Any, Any]:
    """Return training rows and targets."""
    return data.load(name)[:2]


def measure(job: Line) -> Line:
    """Fit and score one split of a part of the training rows; return its losses and the time."""
    X, y = read_table(job["data"])
    n_classes = 0 if data.is_of_numbers(job["data"]) else int(y.max()) + 1
    split, n_rows = job["split"], len(y)
    X, y = choices.draw_rows(X, y, MOST_ROWS if n_rows <= params.MANY_ROWS else n_rows, split)
    can_stratify = n_classes and 1 not in np.bincount(y)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.25, random_state=split, stratify=y if can_stratify else None
    )
    settings, constants = resolve(job["choice"], job["value"], X)
    estimator = LHBoostClassifier if n_classes else LHBoostRegressor
    with mock.patch.dict(vars(params), constants), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(n_jobs=1, random_state=split, **settings)
        seconds = choices.time_fit(model, X, y)
    is_known = np.isin(y_test, y) | (n_classes == 0)
    result = score(model, X_test[is_known], y_test[is_known], n_classes)
    return {**result, "rounds": model.n_iter_, "cpu_s": seconds}
