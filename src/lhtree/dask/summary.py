"""What is known of a table once all of its partitions have been looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from lhtree.arrays import Floats, Ints
from lhtree.dask.tasks import Survey
from lhtree.data.table import compute_largest_value, refuse_columns
from lhtree.data.weights import check_range, compute_class_factor


class TableSummary(NamedTuple):
    """A whole table: its classes, the weights of its rows, the ends of its columns."""

    classes: NDArray[Any]
    counts: Ints  # (n_partitions, n_classes) rows of positive weight
    weight: Floats  # (n_classes,) their weight
    smallest: Floats  # (n_classes,) least of these weights
    largest: Floats
    unit: float  # by which weights are divided
    is_weighted: bool
    low: Floats
    high: Floats
    mean: Floats  # about the mean of each column

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.low)


def summarize(surveys: Sequence[Survey], names: Sequence[str] | None) -> TableSummary:
    """Merge what partitions say; refuse what cannot be learned from."""
    _check_sizes(surveys)
    if any(survey.has_missing_label for survey in surveys):
        raise ValueError("y has missing labels; drop these rows, or give them a label.")
    bad = next((s.bad_weight for s in surveys if s.bad_weight is not None), None)
    if bad is not None:
        raise ValueError(f"sample_weight must be finite and not negative, got {bad}.")
    used = [survey for survey in surveys if survey.n_rows]
    classes = np.unique(np.concatenate([survey.labels for survey in used]))
    check_classification_targets(classes)
    low: Floats = np.array([survey.low for survey in used]).min(axis=0)
    high: Floats = np.array([survey.high for survey in used]).max(axis=0)
    _check_finite(low, high, names)
    positions = [np.searchsorted(classes, survey.labels) for survey in surveys]
    weight, smallest = np.zeros(len(classes)), np.full(len(classes), np.inf)
    largest = np.zeros(len(classes))
    count = np.zeros((len(surveys), len(classes)), dtype=np.int64)
    for i, (survey, position) in enumerate(zip(surveys, positions, strict=True)):
        weight[position] += survey.weight
        smallest[position] = np.minimum(smallest[position], survey.smallest)
        largest[position] = np.maximum(largest[position], survey.largest)
        count[i, position] = survey.counts
    if not largest.any():
        raise ValueError(
            "sample_weight is zero for every row; give at least one row a positive weight."
        )
    ends = np.concatenate([smallest[np.isfinite(smallest)], largest[largest > 0]])
    check_range("sample_weight", ends)
    unit = _compute_unit(surveys, ends, int(count.sum()))
    sums = [survey.weight.sum() * survey.mean for survey in used]
    summary = TableSummary(
        classes=classes,
        counts=count,
        weight=weight / unit,
        smallest=smallest / unit,
        largest=largest / unit,
        unit=unit,
        is_weighted=bool(np.any(ends / unit != 1) or any(s.n_zero for s in surveys)),
        low=low,
        high=high,
        mean=np.sum(sums, axis=0) / weight.sum(),
    )
    return keep_classes(summary, summary.largest > 0)


def keep_classes(summary: TableSummary, is_kept: NDArray[np.bool_]) -> TableSummary:
    """Drop classes whose rows do not count."""
    of_class = ("classes", "weight", "smallest", "largest")
    kept = {name: getattr(summary, name)[is_kept] for name in of_class}
    return summary._replace(counts=summary.counts[:, is_kept], **kept)


def _check_sizes(surveys: Sequence[Survey]) -> None:
    for i, survey in enumerate(surveys):
        for name, n in (("y", survey.n_labels), ("sample_weight", survey.n_weights)):
            if n != survey.n_rows:
                raise ValueError(
                    f"X and {name} must have the same partitions, but partition {i} has "
                    f"{survey.n_rows} rows in X and {n} in {name}."
                )
    if not any(survey.n_rows for survey in surveys):
        raise ValueError("X has no rows; give at least one.")


def _check_finite(low: Floats, high: Floats, names: Sequence[str] | None) -> None:
    bad = np.flatnonzero(~np.isfinite(low) | ~np.isfinite(high))
    if len(bad):
        name = bad[0] if names is None else repr(names[bad[0]])
        kind = "missing" if np.isnan(low[bad[0]]) else "infinite"
        raise ValueError(
            f"X has {kind} values in column {name}, which lhtree.dask does not take; fill them "
            "first, or use lhtree's local classifiers."
        )


def _compute_unit(surveys: Sequence[Survey], ends: Floats, n_rows: int) -> float:
    """Return what weights are divided by: their mean, unless all are integers."""
    if all(survey.is_integer for survey in surveys):
        return 1.0
    if ends.min() == ends.max():
        return float(ends[0])
    return math.fsum(value for survey in surveys for value in survey.weight) / n_rows


def weigh_classes(summary: TableSummary, class_weight: Any) -> Floats | None:
    """Return the factor of each class, or None; see :mod:`lhtree.data.weights`."""
    factor = compute_class_factor(class_weight, summary.classes, summary.weight)
    if factor is None:
        return None
    ends = np.concatenate([factor * summary.smallest, factor * summary.largest])
    if not ends.any():
        raise ValueError(f"class_weight={class_weight!r} leaves no row with a positive weight.")
    check_range("class_weight times sample_weight", ends)
    return factor


def check_overflow(summary: TableSummary, names: Any, weight_sum: float) -> None:
    """Refuse columns whose weighted sums of squares leave the range of doubles."""
    limit = compute_largest_value(weight_sum)
    beyond = np.flatnonzero(np.maximum(np.abs(summary.low), np.abs(summary.high)) > limit)
    refuse_columns(beyond, names, limit)
