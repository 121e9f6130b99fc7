"""Weights of the training rows, from `sample_weight` and `class_weight`."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from lhtree.arrays import Floats, Ints
from lhtree.data.validation import check_dates, check_present

UNIT_BITS = 16  # after the point, of weights that are not integers
MOST_WEIGHT_BITS = 40  # of the sum of all weights
LARGEST = 1e60  # keeps products of two sums of weights and a square in range


def resolve_sample_weight(
    sample_weight: Any, n_rows: int, name: str = "sample_weight", table: str = "X"
) -> Floats | None:
    """Return one weight per row, or None if every row counts once.

    Integer weights stay as they are: they stand for copies of rows. Otherwise the
    positive weights are scaled to mean one, so that `gamma` and `min_samples_split`
    still count rows.
    """
    if sample_weight is None:
        return None
    check_present(name, sample_weight)
    check_dates(name, sample_weight)
    weight = to_numbers(name, sample_weight)
    if weight.ndim == 0:
        weight = np.full(n_rows, weight)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"{name} must have one entry per row of {table}, shape {(n_rows,)}, got an array "
            f"of shape {weight.shape}."
        )
    if not np.isfinite(weight).all() or weight.min() < 0:
        bad = weight[~(np.isfinite(weight) & (weight >= 0))][0]
        raise ValueError(f"{name} must be finite and not negative, got {bad}.")
    if not weight.any():
        raise ValueError(f"{name} is zero for every row; give at least one row a positive weight.")
    check_range(name, weight)
    positive = weight[weight > 0]
    if np.any(weight != np.floor(weight)):
        is_same = positive.min() == positive.max()  # equal weights: their mean must be exact
        mean = positive[0] if is_same else math.fsum(positive) / len(positive)
        weight = weight / mean
    return None if np.all(weight == 1) else weight


def to_numbers(name: str, values: Any) -> Floats:
    """Return numbers in an array-like as doubles, infinite ones where they are too large."""
    if issparse(values):
        raise TypeError(f"{name} must be a dense array of numbers, got a sparse one.")
    array = np.asarray(values)
    if np.iscomplexobj(array):
        raise TypeError(f"{name} must be an array of real numbers, got complex ones.")
    try:
        with np.errstate(over="ignore"):
            numbers: Floats = array.astype(np.float64)
    except OverflowError:  # an integer of Python
        raise ValueError(f"{name} must be finite, got a number too large for a float.") from None
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers: {error}.") from error
    return numbers


def to_units(weight: Floats | None, name: str = "sample_weight") -> tuple[Ints | None, int]:
    """Return positive weights as integers, and what a row of weight one weighs.

    Integers stay as they are; others become multiples of 2**-16, at least one of them.
    """
    if weight is None:
        return None, 1
    is_whole = bool(np.all(weight == np.floor(weight)))
    unit = 1 if is_whole else 1 << UNIT_BITS
    units = np.maximum(np.floor(weight * unit + 0.5), 1.0)
    if not units.sum() < 2.0**MOST_WEIGHT_BITS:
        raise ValueError(
            f"{name} adds up to {weight.sum():g} over the rows, but the sum must be below "
            f"{2.0**MOST_WEIGHT_BITS / unit:g}; divide it by a constant."
        )
    return units.astype(np.int64), unit


def check_range(name: str, weight: Floats) -> None:
    """Refuse positive weights too large or too far apart for their sums to mean anything."""
    positive = weight[weight > 0]
    smallest, largest = positive.min(), positive.max()
    if largest > LARGEST or smallest < largest / LARGEST:
        raise ValueError(
            f"{name} must have positive values below {LARGEST:g} and within a factor of "
            f"{LARGEST:g} of each other, got {smallest:g} and {largest:g}; scale them, or set "
            "the smallest to 0."
        )


def check_class_weight(class_weight: Any, *, is_forest: bool) -> None:
    """Refuse what cannot weigh classes, whatever they are."""
    words = ("balanced", "balanced_subsample") if is_forest else ("balanced",)
    is_word = isinstance(class_weight, str) and class_weight in words
    if class_weight is not None and not is_word and not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None, a dict from label to weight, 'balanced' or "
            f"(forests only) 'balanced_subsample', got {class_weight!r}."
        )


def compute_class_weight(
    class_weight: Any, classes: NDArray[Any], y_encoded: NDArray[Any], weight: Floats | None
) -> Floats | None:
    """Return the factor of each class, or None if all are one."""
    total = np.bincount(y_encoded, weights=weight, minlength=len(classes))
    return compute_class_factor(class_weight, classes, total)


def compute_class_factor(
    class_weight: Any, classes: NDArray[Any], total: NDArray[Any]
) -> Floats | None:
    """Return the factor of each class from the total weights of their rows.

    "balanced" gives every class the same total weight.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        factor = np.zeros(len(total))
        np.divide(total.sum(), np.count_nonzero(total) * total, out=factor, where=total > 0)
        return factor
    return _look_up(class_weight, classes)


def _look_up(class_weight: Mapping[Any, Any], classes: NDArray[Any]) -> Floats:
    labels = classes.tolist()
    if unknown := [label for label in class_weight if label not in labels]:
        raise ValueError(
            f"class_weight names the class {unknown[0]!r}, which is not in y; "
            f"its classes are {labels}."
        )
    factor = [class_weight.get(label, 1.0) for label in labels]
    for label, value in zip(labels, factor, strict=True):
        if not isinstance(value, Real) or not 0 <= value <= sys.float_info.max:  # type: ignore[operator]
            raise ValueError(
                f"class_weight must hold finite numbers of at least 0, got {value!r} "
                f"for the class {label!r}."
            )
    return np.asarray(factor, dtype=np.float64)
