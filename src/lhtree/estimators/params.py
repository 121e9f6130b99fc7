"""Checks of the estimators' parameters, and what they mean for given data."""

from __future__ import annotations

import math
import sys
from functools import cache
from numbers import Integral, Real
from typing import Any, NamedTuple, NoReturn

import numpy as np
from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend

from lhtree.model.forest import CONTRASTS, THRESHOLDS

PRESETS: dict[str, dict[str, Any]] = {
    "accurate": {
        "contrast": "fisher",
        "threshold": "gini",
        "max_features": "auto",
        "axes": True,
        "n_planes": 3,
        "shrinkage": "auto",
    },
    "paper": {
        "contrast": "mean",
        "threshold": "purity",
        "max_features": 1.0,
        "axes": False,
        "n_planes": 1,
        "shrinkage": 0.0,
    },
}
MOST_DRAWN = 128  # columns that "auto" draws: Fisher's direction costs the cube of them
MOST_THREADS = 1024
MOST_ROWS = 2**30  # a tree has up to twice as many nodes, which are numbered by 32 bits


def _refuse(error: type[Exception], name: str, value: object, wanted: str) -> NoReturn:
    raise error(f"{name} must be {wanted}, got {value!r}.")


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def check_real(name: str, value: Any, wanted: str, *, low: float, high: float = math.inf) -> None:
    """Accept finite numbers in [low, high]."""
    if not _is_real(value):
        _refuse(TypeError, name, value, wanted)
    if not low <= value <= min(high, sys.float_info.max):
        _refuse(ValueError, name, value, wanted)


def check_integer(name: str, value: Any, wanted: str, *, low: int) -> None:
    """Accept integers of at least `low`."""
    if not _is_integer(value):
        _refuse(TypeError, name, value, wanted)
    if value < low:
        _refuse(ValueError, name, value, wanted)


def join_words(*words: str) -> str:
    """Return words as a sentence lists them."""
    return ", ".join(words[:-1]) + " or " + words[-1]


def check_flag(name: str, value: Any, words: tuple[str, ...] = ()) -> None:
    """Accept True and False; words that were accepted before are named, too."""
    if not isinstance(value, bool | np.bool_):
        _refuse(TypeError, name, value, join_words("True", "False", *map(repr, words)))


def check_voting(voting: Any) -> None:
    """Accept the names of the two rules of voting."""
    check_choice("voting", voting, ("membership", "margin"))


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Accept one of a few words."""
    if not isinstance(value, str) or value not in choices:
        error = ValueError if isinstance(value, str) else TypeError
        _refuse(error, name, value, "one of " + ", ".join(map(repr, choices)))


def check_rules(estimator: Any) -> None:
    """Check the parameters that say how a tree grows."""
    check_real("alpha", estimator.alpha, "a number of at least 0", low=0)
    check_real("beta", estimator.beta, "a number from 0 to 1", low=0, high=1)
    smallest = math.ulp(0.0)
    check_real("gamma", estimator.gamma, "a number above 0", low=smallest)
    wanted = "an integer of at least 2, or a float in (0, 1] for a share of the rows"
    split = estimator.min_samples_split
    if _is_integer(split):
        check_integer("min_samples_split", split, wanted, low=2)
        check_real("min_samples_split", split, wanted, low=2)
    else:
        check_real("min_samples_split", split, wanted, low=smallest, high=1)
    if estimator.max_depth is not None:
        wanted = "an integer of at least 0, or None for no limit"
        check_integer("max_depth", estimator.max_depth, wanted, low=0)
    _check_small_trees(estimator)
    name = "min_weight_fraction_leaf"
    check_real(name, getattr(estimator, name), "a number from 0 to 0.5", low=0, high=0.5)
    check_flag("standardize", estimator.standardize)
    if estimator.max_categories is not None:
        wanted = "an integer of at least 2, or None for no limit"
        check_integer("max_categories", estimator.max_categories, wanted, low=2)
    count_threads(estimator.n_jobs)


def _check_small_trees(estimator: Any) -> None:
    wanted = "an integer of at least 1, or a float in (0, 1) for a share of the rows"
    least = estimator.min_samples_leaf
    if _is_integer(least):
        check_integer("min_samples_leaf", least, wanted, low=1)
        check_real("min_samples_leaf", least, wanted, low=1)
    else:
        check_real("min_samples_leaf", least, wanted, low=math.ulp(0.0), high=1 - 2**-53)
    if estimator.max_leaf_nodes is not None:
        wanted = "an integer of at least 2, or None for no limit"
        check_integer("max_leaf_nodes", estimator.max_leaf_nodes, wanted, low=2)
    check_real("ccp_alpha", estimator.ccp_alpha, "a number of at least 0", low=0)


def check_members(estimator: Any) -> None:
    """Check the parameters that say which members a forest has."""
    wanted = "an integer of at least 1, 'auto' or None"
    if estimator.n_estimators is not None and not _is_auto(estimator.n_estimators):
        check_integer("n_estimators", estimator.n_estimators, wanted, low=1)
    check_integer("max_estimators", estimator.max_estimators, "an integer of at least 1", low=1)
    if estimator.calibration is not None:
        check_choice("calibration", estimator.calibration, ("oob",))
        if estimator.voting == "margin":
            raise ValueError(
                "calibration='oob' needs voting='membership': votes by margin have no scale."
            )
    resolve_shrinkage(estimator)
    for name in ("bootstrap", "warm_start"):
        check_flag(name, getattr(estimator, name))
    if not callable(estimator.oob_score):
        check_flag("oob_score", estimator.oob_score)
    check_voting(estimator.voting)
    if not _is_real(estimator.verbose) and not isinstance(estimator.verbose, bool | np.bool_):
        _refuse(TypeError, "verbose", estimator.verbose, "a number; 0 prints nothing")


def limit_members(estimator: Any, n_old: int) -> int | None:
    """Return the number of members that are to be; None if only the data will tell."""
    n: int | None = estimator.n_estimators
    if n is None:
        return None
    name = "max_estimators" if _is_auto(n) else "n_estimators"
    if getattr(estimator, name) < n_old:
        raise ValueError(
            f"{name}={getattr(estimator, name)} must be at least {n_old}, the number of "
            "members already grown, when warm_start=True."
        )
    return None if _is_auto(n) else n


def find_reader_of_left_out(estimator: Any) -> str:
    """Return the parameter that asks for out-of-bag votes; empty if none does."""
    if _is_auto(estimator.n_estimators):
        return "n_estimators='auto'"
    if estimator.oob_score:
        return f"oob_score={estimator.oob_score!r}"
    return "" if estimator.calibration is None else f"calibration={estimator.calibration!r}"


def resolve_shrinkage(estimator: Any) -> float | None:
    """Return the strength of the shrinkage; None if out-of-bag votes are to choose it."""
    check_choice("preset", estimator.preset, tuple(PRESETS))
    value = estimator.shrinkage
    if _is_auto(value):
        value = PRESETS[estimator.preset]["shrinkage"]
    if _is_auto(value):
        return None
    check_real("shrinkage", value, "a number of at least 0, or 'auto'", low=0)
    return float(value)


def count_threads(n_jobs: Any) -> int:
    """Return how many threads `n_jobs` means.

    None means all cores that the process may use, but one inside a worker of joblib or
    Dask, which has its own share of them. A number that the caller set for joblib wins.
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


@cache  # asking the system takes longer than the answer for a row
def _count_cores() -> int:
    return int(cpu_count())


def _is_dask_task() -> bool:
    """Whether this is a task on a worker of Dask's, which has imported it."""
    if "distributed" not in sys.modules:
        return False
    try:
        sys.modules["distributed"].get_worker()
    except ValueError:
        return False
    return True


class Splits(NamedTuple):
    """Which candidates a node has, and how they are made."""

    contrast: str
    threshold: str
    n_columns: int  # drawn at each node
    axes: bool
    n_planes: int

    def is_dense(self, n_features: int) -> bool:
        """Whether a node has one candidate, over all columns."""
        is_single = not self.axes and self.n_planes == 1 and self.contrast != "fisher"
        return is_single and self.n_columns == n_features


def resolve_splits(estimator: Any, n_features: int) -> Splits:
    """Replace "auto" by what the preset says, and shares by numbers of columns."""
    check_choice("preset", estimator.preset, tuple(PRESETS))
    preset = PRESETS[estimator.preset]
    value = {
        name: preset[name] if _is_auto(getattr(estimator, name)) else getattr(estimator, name)
        for name in preset
        if name != "shrinkage"
    }
    auto = ("auto",) if "preset" in vars(estimator) else ()  # a preset that is no parameter
    check_choice("contrast", value["contrast"], CONTRASTS + auto)
    check_choice("threshold", value["threshold"], THRESHOLDS + auto)
    if value["max_features"] == "auto":
        n_columns = min(n_features, MOST_DRAWN, max(1, int(2 * math.sqrt(n_features))))
    else:
        n_columns = count_columns("max_features", value["max_features"], n_features, auto)
    axes, n_planes = value["axes"], value["n_planes"]
    check_flag("axes", axes, auto)
    check_integer("n_planes", n_planes, "an integer of at least 0, or 'auto'", low=0)
    if not axes and n_planes == 0:
        raise ValueError("n_planes=0 with axes=False leaves a node no candidate; set one of them.")
    return Splits(value["contrast"], value["threshold"], n_columns, bool(axes), n_planes)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def count_columns(name: str, value: Any, n_features: int, words: tuple[str, ...] = ()) -> int:
    """Return how many of the columns `max_features` means, as scikit-learn counts them.

    Words that were accepted before are named in messages, too.
    """
    words = ("sqrt", "log2", *words)
    wanted = "an integer of at least 1, a float in (0, 1], " + join_words(
        *map(repr, words), "None"
    )
    if value is None:
        return n_features
    if isinstance(value, str):
        if value not in ("sqrt", "log2"):  # "auto" is resolved by now
            _refuse(ValueError, name, value, wanted)
        return max(1, int(getattr(math, value)(n_features)))
    if _is_integer(value):
        check_integer(name, value, wanted, low=1)
        return min(int(value), n_features)
    check_real(name, value, wanted, low=math.ulp(0.0), high=1)
    return max(1, int(value * n_features))


def count_draws(value: Any, n_rows: int, *, bootstrap: bool) -> int:
    """Return how many rows `max_samples` means."""
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
    check_real("max_samples", value, wanted, low=math.ulp(0.0), high=1)
    return max(1, round(float(value) * n_rows))


def count_min_samples(value: Any, n_rows: float, *, least: int) -> float:
    """Return how many rows `min_samples_split` or `min_samples_leaf` means."""
    return float(value) if _is_integer(value) else float(max(least, math.ceil(value * n_rows)))
