"""Check that the numbers of boosted trees are such that a fit could have made them.

`_core.prepare_ensemble` checks before that types, lengths and children fit together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lhtree.model.ensemble_packing import cut_codes, restore_codes
from lhtree.model.tree import repeat_roots

if TYPE_CHECKING:
    from lhtree.model.ensemble import Ensemble

Check = tuple[bool, str]  # whether it holds, and what is wrong if not

LARGEST_POWER = 1200  # of the steps of a grid
LARGEST_SCORE = 2**53
MOST_AVERAGED = 2**20  # trees, whose values add up to less than LARGEST_SCORE
GAP = np.iinfo(np.int32).min  # a missing value


def check_ensemble(ensemble: Ensemble) -> None:
    """Raise a ValueError unless the numbers of an ensemble are valid."""
    for check in (_check_scale, _check_columns, _check_nodes, _check_splits, _check_terms):
        for is_valid, message in check(ensemble):
            if not is_valid:
                raise ValueError(f"This is not a valid ensemble: {message}.")


# Each check may rely on the earlier ones.


def _check_scale(ensemble: Ensemble) -> Iterator[Check]:
    power, origin, base = ensemble.power, ensemble.origin, ensemble.base
    is_power = type(power) is int and abs(power) < LARGEST_POWER
    yield is_power, "power is not an integer in range"
    yield type(origin) is float and _is_integer(origin), "origin is not an integer in a float"
    yield base.dtype == np.int64 and base.ndim == 1, "base is not a list of int64"
    yield len(base) > 0, "there is no output"
    is_wide = ensemble.value.shape[1] in (1, len(base))
    yield is_wide, "value does not have one column per output, nor one for all"
    n_estimators, n_more = divmod(len(ensemble), ensemble.n_turns)
    yield n_more == 0, "its estimators do not have one tree per output"
    n_averaged = ensemble.n_averaged
    is_count = type(n_averaged) is int and 1 <= n_averaged <= MOST_AVERAGED
    yield is_count, f"n_averaged is not an integer from 1 to {MOST_AVERAGED}"
    is_whole = n_averaged in (1, n_estimators)
    yield is_whole, "n_averaged is neither 1 nor the number of estimators"
    largest = LARGEST_SCORE / n_averaged
    yield bool(np.all(np.abs(base.astype(np.float64)) < largest)), "base is out of range"
    importance = ensemble.importance
    yield importance.dtype == np.float64, "importance is not float64"
    is_fitting = importance.shape == ensemble.columns.n_codes.shape
    yield is_fitting, "importance does not have one entry per column"
    is_gain = np.isfinite(importance) & (importance >= 0)
    yield bool(is_gain.all()), "an importance is negative or not finite"


def _is_integer(x: float) -> bool:
    return math.isfinite(x) and x.is_integer()


def _check_columns(ensemble: Ensemble) -> Iterator[Check]:
    columns = ensemble.columns
    yield len(columns.n_codes) > 0, "there are no columns"
    origin = columns.origin
    is_integer = np.isfinite(origin) & (np.floor(origin) == origin)
    yield bool(is_integer.all()), "the origin of a column is not an integer"
    yield bool(np.all(columns.low <= columns.high)), "low and high of a column are exchanged"
    yield bool(np.all(columns.low > GAP)), "the low of a column is that of a missing value"
    is_inside = (columns.low <= columns.fill) & (columns.fill <= columns.high)
    yield bool(is_inside.all()), "the fill of a column is out of its range"
    yield bool(np.all(columns.has_gaps <= 1)), "has_gaps of a column is neither 0 nor 1"


def _check_nodes(ensemble: Ensemble) -> Iterator[Check]:
    left, weight = ensemble.left, ensemble.weight
    is_split = left >= 0
    yield bool(np.all(left[~is_split] == -1)), "a leaf is not marked by -1"
    yield bool(np.all(ensemble.column[~is_split] == -1)), "a leaf has a column"
    yield bool(np.all(weight > 0)), "a node's rows have no weight"
    root = repeat_roots(ensemble.tree_start)
    child = (root + left)[is_split]
    # In two steps: a sum of both could overflow.
    is_sum = weight[is_split] - weight[child] == weight[child + 1]
    yield bool(is_sum.all()), "a split does not have the weight of its children"


def _check_splits(ensemble: Ensemble) -> Iterator[Check]:
    n_codes, column = ensemble.columns.n_codes, ensemble.column
    is_single = column >= 0
    yield bool(np.all(column[~is_single] == -1)), "the column of a split is negative"
    is_number = is_single & (n_codes[column] == 0)
    yield bool(np.all(ensemble.missing_left <= is_number)), "missing_left is not a truth value"
    yield bool(np.all(ensemble.threshold > -np.inf)), "a threshold is not a number or +inf"
    of_splits = n_codes[column[is_single & ~is_number]]
    restored = restore_codes(cut_codes(ensemble.codes, of_splits), of_splits)
    is_even = np.array_equal(restored, ensemble.codes)
    yield is_even, "codes that a column lacks go both ways in a split"


def _check_terms(ensemble: Ensemble) -> Iterator[Check]:
    columns, feature = ensemble.columns, ensemble.feature
    n_terms = np.diff(ensemble.term_start)
    yield bool(np.all(n_terms > 1)), "a hyperplane has fewer than two terms"
    yield bool(np.all(ensemble.coefficient != 0)), "a term has no weight"
    yield bool(np.all(columns.n_codes[feature] == 0)), "a hyperplane has a column of categories"
    fill = ensemble.fill
    is_inside = (columns.low[feature] <= fill) & (fill <= columns.high[feature])
    yield bool(is_inside.all()), "the fill of a term is out of the range of its column"
    is_plain = (columns.has_gaps[feature] > 0) | (fill == columns.fill[feature])
    yield bool(is_plain.all()), "a column without gaps has a fill of its own"
