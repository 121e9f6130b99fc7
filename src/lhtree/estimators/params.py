"""Parameters of the estimators: read once, checked, frozen, then resolved for given data."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, fields, replace
from functools import cache
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils import check_random_state

from lhtree.data.table import MOST_ROWS
from lhtree.data.weights import check_class_weight
from lhtree.model.forest import list_positive_classes
from lhtree.model.prediction import VOTINGS
from lhtree.training.plan import CONTRASTS, CRITERIA, NO_MAX_DEPTH, Draw, Plan

PRESETS: dict[str, dict[str, Any]] = {
    "accurate": {
        "contrast": "fisher",
        "criterion": "gini",
        "max_features": "auto",
        "axis_splits": True,
        "n_hyperplanes": 3,
        "shrinkage": "auto",
    },
    "paper": {
        "contrast": "mean",
        "criterion": "purity",
        "max_features": 1.0,
        "axis_splits": False,
        "n_hyperplanes": 1,
        "shrinkage": 0.0,
    },
}
RENAMED = {"threshold": "criterion", "axes": "axis_splits", "n_planes": "n_hyperplanes"}
MOST_DRAWN = 128  # columns that "auto" draws: Fisher's direction costs the cube of them
MOST_HYPERPLANES = MOST_ESTIMATORS = 2**20
MOST_THREADS = 1024
SMALLEST = math.ulp(0.0)


@dataclass(frozen=True)
class Params:
    """The parameters of an estimator, checked, with its preset in place of "auto".

    Parameters that an estimator lacks have defaults here: one tree per class is a forest
    of one estimator on all rows.
    """

    n_estimators: Any = 1
    max_estimators: Any = 1
    preset: Any = "paper"
    contrast: Any = "mean"
    criterion: Any = "purity"
    axis_splits: Any = False
    n_hyperplanes: Any = 1
    alpha: Any = 0.0
    beta: Any = 0.0
    gamma: Any = 2
    min_samples_split: Any = 2
    max_depth: Any = None
    min_weight_fraction_leaf: Any = 0.0
    min_samples_leaf: Any = 1
    max_leaf_nodes: Any = None
    ccp_alpha: Any = 0.0
    max_samples: Any = None
    bootstrap: Any = False
    max_features: Any = None
    max_features_per_tree: Any = None
    shrinkage: Any = 0.0
    voting: Any = "membership"
    standardize: Any = True
    categorical_features: Any = "from_dtype"
    max_categories: Any = 64
    class_weight: Any = None
    calibration: Any = None
    oob_score: Any = False
    warm_start: Any = False
    n_jobs: Any = None
    random_state: Any = 0
    verbose: Any = 0
    is_forest: bool = False  # draws rows, and may balance the classes in each draw

    @classmethod
    def read(cls, estimator: Any) -> Params:
        """Read and check the parameters of an estimator; a fit reads them here only."""
        return cls.check(estimator.get_params(deep=False))

    @classmethod
    def check(cls, given: dict[str, Any]) -> Params:
        """Return parameters as a record, checked."""
        names = {field.name for field in fields(cls)}
        params = cls(**{name: value for name, value in given.items() if name in names})
        params = replace(params, is_forest="bootstrap" in given)
        auto = ("auto",) if "preset" in given else ()
        check_choice("preset", params.preset, tuple(PRESETS))
        defaults = PRESETS[params.preset].items()
        params = replace(
            params, **{name: value for name, value in defaults if is_auto(getattr(params, name))}
        )
        _check_tree(params)
        _check_splits(params, auto)
        _check_forest(params)
        return params

    @property
    def n_threads(self) -> int:
        """Number of threads."""
        return count_threads(self.n_jobs)

    @property
    def is_exact(self) -> bool:
        """Whether the exact engine has these rules; the paper's are those of version 0.1."""
        is_accurate = self.contrast == "fisher" and self.criterion == "gini"
        is_plain = self.voting == "membership" and self.alpha == 0 and self.beta == 0
        return self.is_forest and is_accurate and is_plain

    @property
    def balance(self) -> bool:
        """Whether to give the classes equal weight within the rows of each estimator."""
        is_word = isinstance(self.class_weight, str)
        return self.is_forest and is_word and self.class_weight == "balanced_subsample"

    @property
    def out_of_bag_reader(self) -> str:
        """The parameter that needs out-of-bag votes; empty if none does."""
        if is_auto(self.n_estimators):
            return "n_estimators='auto'"
        if self.oob_score:
            return f"oob_score={self.oob_score!r}"
        return f"calibration={self.calibration!r}" if self.calibration == "oob" else ""

    def limit_estimators(self, n_old: int) -> int | None:
        """Return the final number of estimators; None if it depends on the data."""
        n: int | None = self.n_estimators
        if n is None:
            return None
        name = "max_estimators" if is_auto(n) else "n_estimators"
        if getattr(self, name) < n_old:
            raise ValueError(
                f"{name}={getattr(self, name)} must be at least {n_old}, the number of "
                "estimators already grown, when warm_start=True."
            )
        return None if is_auto(n) else n

    def draw_seed(self) -> int:
        """Draw the seed of a fit from `random_state`."""
        return draw_seed(self.random_state)

    def resolve_draw(self, n_rows: int) -> Draw:
        """Return how many of the rows each estimator draws."""
        n_draws = count_draws(self.max_samples, n_rows, bootstrap=self.bootstrap)
        draw = Draw(n_rows, n_draws, bool(self.bootstrap))
        if self.out_of_bag_reader and not draw.has_out_of_bag:
            raise ValueError(
                f"{self.out_of_bag_reader} needs out-of-bag rows, but max_samples="
                f"{self.max_samples!r} draws all {n_rows}; use a smaller max_samples or "
                "bootstrap=True."
            )
        return draw

    def resolve(
        self, draw: Draw, *, n_columns: int, n_weighted: float, n_classes: int, seed: int
    ) -> Plan:
        """Return the plan for data of a given size, with the estimators still open.

        Parameters
        ----------
        draw : Draw
            How to draw rows.
        n_columns : int
            Number of columns of the table.
        n_weighted : float
            Weighted number of rows, before class weights.
        n_classes : int
            Number of classes.
        seed : int
            Seed of all draws.
        """
        least = count_min_samples(self.min_samples_leaf, n_weighted, least=1)
        return Plan(
            n_classes=n_classes,
            positive_class=list_positive_classes(n_classes),
            beta=(),
            n_draws=draw.n_draws,
            seed=seed,
            bootstrap=draw.bootstrap,
            balance=self.balance,
            alpha=float(self.alpha),
            gamma=float(self.gamma),
            min_samples_split=count_min_samples(self.min_samples_split, n_weighted, least=2),
            max_depth=self._limit_depth(),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            min_samples_leaf=0.0 if least == 1 else least,  # one row of any weight
            max_leaf_nodes=min(self.max_leaf_nodes or 0, NO_MAX_DEPTH),
            ccp_alpha=float(self.ccp_alpha),
            contrast=CONTRASTS.index(self.contrast),
            criterion=CRITERIA.index(self.criterion),
            max_features=count_columns("max_features", self.max_features, n_columns),
            axis_splits=bool(self.axis_splits),
            n_hyperplanes=min(self.n_hyperplanes, MOST_HYPERPLANES),
            max_features_per_tree=count_columns(
                "max_features_per_tree", self.max_features_per_tree, n_columns
            ),
        )

    def _limit_depth(self) -> int:
        """Return the maximum depth; a path has fewer splits than the tree has leaves."""
        limits = [NO_MAX_DEPTH, self.max_depth, self.max_leaf_nodes and self.max_leaf_nodes - 1]
        return min(int(limit) for limit in limits if limit is not None)


def refuse_renamed(names: Any) -> None:
    """Refuse names that parameters had before version 0.2."""
    for name in names:
        if name in RENAMED:
            raise TypeError(f"{name!r} is now called {RENAMED[name]!r}; use the new name.")


# ---- checks of related parameters -------------------------------------------------


def _check_tree(params: Params) -> None:
    """Check the parameters that control how a tree grows."""
    check_real("alpha", params.alpha, "a number of at least 0", low=0)
    check_real("beta", params.beta, "a number from 0 to 1", low=0, high=1)
    check_real("gamma", params.gamma, "a number above 0", low=SMALLEST)
    wanted = "an integer of at least 2, or a float in (0, 1] for a fraction of the rows"
    _check_number_or_fraction("min_samples_split", params.min_samples_split, wanted, 2, 1.0)
    wanted = "an integer of at least 1, or a float in (0, 1) for a fraction of the rows"
    below_one = math.nextafter(1.0, 0.0)
    _check_number_or_fraction("min_samples_leaf", params.min_samples_leaf, wanted, 1, below_one)
    if params.max_depth is not None:
        wanted = "an integer of at least 0, or None for no limit"
        check_integer("max_depth", params.max_depth, wanted, low=0)
    for name in ("max_leaf_nodes", "max_categories"):
        if getattr(params, name) is not None:
            wanted = "an integer of at least 2, or None for no limit"
            check_integer(name, getattr(params, name), wanted, low=2)
    check_real("ccp_alpha", params.ccp_alpha, "a number of at least 0", low=0)
    name = "min_weight_fraction_leaf"
    check_real(name, getattr(params, name), "a number from 0 to 0.5", low=0, high=0.5)
    check_flag("standardize", params.standardize)
    count_threads(params.n_jobs)


def _check_splits(params: Params, auto: tuple[str, ...]) -> None:
    """Check the parameters that control the candidates of a node.

    The preset has replaced "auto" by now; `auto` names it in messages where it is allowed.
    """
    check_choice("contrast", params.contrast, CONTRASTS + auto)
    check_choice("criterion", params.criterion, CRITERIA + auto)
    count_columns("max_features", params.max_features, 1, auto)
    count_columns("max_features_per_tree", params.max_features_per_tree, 1)
    check_flag("axis_splits", params.axis_splits, auto)
    wanted = "an integer of at least 0, or 'auto'"
    check_integer("n_hyperplanes", params.n_hyperplanes, wanted, low=0)
    if not params.axis_splits and params.n_hyperplanes == 0:
        raise ValueError(
            "n_hyperplanes=0 with axis_splits=False leaves nodes without candidates; set one."
        )


def _check_forest(params: Params) -> None:
    """Check the parameters that control estimators, votes and out-of-bag work."""
    wanted = f"an integer from 1 to {MOST_ESTIMATORS}, 'auto' or None"
    if params.n_estimators is not None and not is_auto(params.n_estimators):
        check_integer("n_estimators", params.n_estimators, wanted, low=1, high=MOST_ESTIMATORS)
    wanted = f"an integer from 1 to {MOST_ESTIMATORS}"
    check_integer("max_estimators", params.max_estimators, wanted, low=1, high=MOST_ESTIMATORS)
    if params.calibration is not None:
        check_choice("calibration", params.calibration, ("auto", "oob"))
        if params.calibration == "oob" and params.voting == "margin":
            raise ValueError(
                "calibration='oob' needs voting='membership': votes by margin have no scale."
            )
    if not is_auto(params.shrinkage):
        wanted = "a number of at least 0, or 'auto'"
        check_real("shrinkage", params.shrinkage, wanted, low=0)
    for name in ("bootstrap", "warm_start"):
        check_flag(name, getattr(params, name))
    if not callable(params.oob_score):
        check_flag("oob_score", params.oob_score)
    check_class_weight(params.class_weight, is_forest=params.is_forest)
    check_choice("voting", params.voting, VOTINGS)
    count_draws(params.max_samples, MOST_ROWS, bootstrap=True)
    check_verbose(params.verbose)


def _check_number_or_fraction(
    name: str, value: Any, wanted: str, least: int, most_fraction: float
) -> None:
    """Accept an integer number of rows, or a float that is a fraction of them."""
    if _is_integer(value):
        check_integer(name, value, wanted, low=least)
        check_real(name, value, wanted, low=least)  # within the range of floats
    else:
        check_real(name, value, wanted, low=SMALLEST, high=most_fraction)


# ---- checks of single values --------------------------------------------------------


def _refuse(error: type[Exception], name: str, value: object, wanted: str) -> NoReturn:
    raise error(f"{name} must be {wanted}, got {value!r}.")


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def is_auto(value: Any) -> bool:
    """Whether the data or the preset should decide."""
    return isinstance(value, str) and value == "auto"


def check_real(name: str, value: Any, wanted: str, *, low: float, high: float = math.inf) -> None:
    """Accept finite numbers in [low, high]."""
    if not _is_real(value):
        _refuse(TypeError, name, value, wanted)
    if not low <= value <= min(high, sys.float_info.max):
        _refuse(ValueError, name, value, wanted)


def check_integer(name: str, value: Any, wanted: str, *, low: int, high: float = math.inf) -> None:
    """Accept integers in [low, high]."""
    if not _is_integer(value):
        _refuse(TypeError, name, value, wanted)
    if not low <= value <= high:
        _refuse(ValueError, name, value, wanted)


def join_words(*words: str) -> str:
    """Return words listed as in a sentence."""
    return ", ".join(words[:-1]) + " or " + words[-1]


def check_flag(name: str, value: Any, words: tuple[str, ...] = ()) -> None:
    """Accept True and False; messages also name `words`, which were resolved before."""
    if not isinstance(value, bool | np.bool_):
        _refuse(TypeError, name, value, join_words("True", "False", *map(repr, words)))


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Accept one of a few words."""
    if not isinstance(value, str) or value not in choices:
        error = ValueError if isinstance(value, str) else TypeError
        _refuse(error, name, value, "one of " + ", ".join(map(repr, choices)))


def check_verbose(value: Any) -> None:
    """Accept numbers, and True and False."""
    if not _is_real(value) and not isinstance(value, bool | np.bool_):
        _refuse(TypeError, "verbose", value, "a number; 0 prints nothing")


# ---- what parameters mean for given data --------------------------------------------


def draw_seed(random_state: Any) -> int:
    """Draw the seed of a fit from `random_state`."""
    try:
        generator = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            "random_state must be None, an integer from 0 to 2**32 - 1 or a RandomState, got "
            f"{random_state!r}."
        ) from error
    return int(generator.randint(2**31 - 1))


def count_threads(n_jobs: Any) -> int:
    """Return the number of threads for `n_jobs`.

    None means all cores available to the process, but only one inside a joblib or Dask
    worker, which has its own cores. A number that the caller set for joblib wins.
    """
    if n_jobs is not None:
        wanted = "a nonzero integer, or None for all cores"
        check_integer("n_jobs", n_jobs, wanted, low=-(2**31))
        if n_jobs == 0:
            _refuse(ValueError, "n_jobs", 0, wanted)
        return min(int(effective_n_jobs(n_jobs)), MOST_THREADS)
    backend, n_set = get_active_backend()
    if backend.nesting_level or _is_dask_task():
        return 1
    is_set = n_set not in (None, 1)
    return min(int(effective_n_jobs(None)) if is_set else _count_cores(), MOST_THREADS)


@cache  # the system call takes longer than predicting a row
def _count_cores() -> int:
    return int(cpu_count())


def _is_dask_task() -> bool:
    """Whether this runs as a task on a Dask worker, which has imported `distributed`."""
    if "distributed" not in sys.modules:
        return False
    try:
        sys.modules["distributed"].get_worker()
    except ValueError:
        return False
    return True


def count_columns(
    name: str,
    value: Any,
    n_features: int,
    words: tuple[str, ...] = (),
    *,
    takes_auto: bool = True,
) -> int:
    """Return the number of columns for `max_features`, as scikit-learn counts them.

    Messages also name `words`, which were resolved before.
    """
    wanted = "an integer of at least 1, a float in (0, 1], " + join_words(
        *map(repr, ("sqrt", "log2", *words)), "None"
    )
    if value is None:
        return n_features
    if is_auto(value) and name == "max_features" and takes_auto:
        return min(n_features, MOST_DRAWN, max(1, int(2 * math.sqrt(n_features))))
    if isinstance(value, str):
        if value not in ("sqrt", "log2"):
            _refuse(ValueError, name, value, wanted)
        return max(1, int(getattr(math, value)(n_features)))
    if _is_integer(value):
        check_integer(name, value, wanted, low=1)
        return min(int(value), n_features)
    check_real(name, value, wanted, low=SMALLEST, high=1)
    return max(1, int(value * n_features))


def count_draws(value: Any, n_rows: int, *, bootstrap: bool) -> int:
    """Return the number of rows for `max_samples`."""
    wanted = "a float in (0, 1], an integer from 1 to 2**30, or None for all rows"
    if value is None:
        return n_rows
    if _is_integer(value):
        check_integer("max_samples", value, wanted, low=1)
        if value > MOST_ROWS:
            _refuse(ValueError, "max_samples", value, wanted)
        if value > n_rows and not bootstrap:
            wanted = f"at most the number of rows, {n_rows}, unless bootstrap=True"
            _refuse(ValueError, "max_samples", value, wanted)
        return int(value)
    check_real("max_samples", value, wanted, low=SMALLEST, high=1)
    return max(1, round(float(value) * n_rows))


def count_min_samples(value: Any, n_rows: float, *, least: int) -> float:
    """Return the number of rows for `min_samples_split` or `min_samples_leaf`."""
    return float(value) if _is_integer(value) else float(max(least, math.ceil(value * n_rows)))
