"""The problem that a counterfactual solves: which row, which classes, what may change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.data.frames import change_row
from lhtree.data.reading import name_features
from lhtree.data.validation import join_few
from lhtree.estimators import lookup
from lhtree.explain import arguments, model_view
from lhtree.explain.model_view import ModelView

ROUNDING = 1e-6  # by how much the limit of an integer may be missed


@dataclass(frozen=True, eq=False)
class Problem:
    """A row, what may change in it, and the classes it should reach.

    A *move* is a change of the free columns in standardised units.
    """

    model: Any
    view: ModelView
    given: Any  # the row as the caller gave it, with two dimensions
    row: Floats  # [n_columns] as the trees see it, in raw units, NaN where missing
    original: int  # class that the model predicts for it
    desired: tuple[int, ...]  # classes of which the model should predict one
    free: Ints  # columns that may change
    lower: Floats  # [n_free] limits of a move
    upper: Floats
    is_integer: NDArray[np.bool_]  # [n_free] whether the raw value must be an integer

    @property
    def unit(self) -> Floats:
        """Raw size of a move by one, for each free column."""
        std: Floats = self.view.column_std[self.free]
        return std

    def compute_raw(self, moves: Floats) -> Floats:
        """Return the raw values of the free columns after some moves."""
        raw: Floats = self.row[self.free] + moves * self.unit
        return np.where(self.is_integer, np.round(raw), raw)

    def make_feasible(self, moves: Floats) -> Floats:
        """Return the nearest moves within the limits, to integers where they must be."""
        raw = self.compute_raw(np.clip(moves, self.lower, self.upper))
        start = self.row[self.free]
        # The limits were divided by the unit: an integer among them may be missed by rounding.
        least = np.ceil(start + self.lower * self.unit - ROUNDING)
        most = np.floor(start + self.upper * self.unit + ROUNDING)
        raw = np.where(self.is_integer, np.clip(raw, least, most), raw)
        feasible: Floats = (raw - self.row[self.free]) / self.unit
        return feasible

    def make_table(self, moves: Floats) -> Floats:
        """Return the row after each move, as the trees see it."""
        table = np.repeat(self.row[np.newaxis], len(moves), axis=0)
        table[:, self.free] = self.compute_raw(moves)
        return table

    def predict(self, moves: Floats) -> Ints:
        """Return the index of the class that the model predicts after each move."""
        return self.view.predict_encoded(self.make_table(moves))

    def make_row(self, move: Floats) -> Any:
        """Return the row in the caller's form, with the free columns changed."""
        feature = self.model.column_source_[self.free]
        raw = self.compute_raw(move)
        is_changed = move != 0
        changed = zip(feature[is_changed].tolist(), raw[is_changed].tolist(), strict=True)
        return change_row(self.given, dict(changed))


def state_problem(
    model: Any,
    x: Any,
    desired_class: Any,
    features: Iterable[Any] | None,
    ranges: Mapping[Any, Any] | None,
    integers: Iterable[Any] | None,
) -> Problem:
    """Check the arguments of :func:`lhtree.explain.nearest_counterfactual`."""
    remedy = "explain_rows says what a predicted number is made of"
    lookup.check_is_classifier(model, "nearest_counterfactual", remedy)
    view = model_view.view_model(model)
    given = arguments.read_row(x)
    if isinstance(given, np.ndarray) and given.dtype.kind in "biuf":
        given = given.astype(np.float64)
    row = model_view.encode_row(model, given)
    original = int(view.predict_encoded(row[np.newaxis])[0])
    if desired_class is None:
        desired = tuple(k for k in range(len(model.classes_)) if k != original)
    else:
        desired = (lookup.look_up_class(model, desired_class),)
    free = _list_free(view, row, features)
    lower, upper = _compute_limits(view, row, free, ranges)
    integer_columns = [] if integers is None else _look_up_columns(view, "integers", integers)
    _check_integers(view, ranges, integer_columns)
    is_integer = np.isin(free, integer_columns)
    return Problem(model, view, given, row, original, desired, free, lower, upper, is_integer)


def _look_up_column(view: ModelView, argument: str, feature: Any) -> int:
    """Return the column of a numeric feature, by its name or position."""
    names = name_features(view.model)
    is_position = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
    if isinstance(feature, str) and feature in names:
        position = names.index(feature)
    elif is_position and 0 <= feature < len(names):
        position = int(feature)
    else:
        raise ValueError(
            f"{argument} has {feature!r}, which is not a feature of the model; pass names or "
            f"positions of {join_few(names)}."
        )
    column = np.flatnonzero(view.model.column_source_ == position)
    if len(column) != 1 or not view.is_number[column[0]]:
        raise ValueError(
            f"{argument} has {feature!r}, which holds categories (or is ignored); only numbers "
            "can change."
        )
    return int(column[0])


def _look_up_columns(view: ModelView, argument: str, features: Iterable[Any]) -> list[int]:
    """Return the columns of some numeric features."""
    if isinstance(features, str) or not isinstance(features, Iterable):
        raise ValueError(f"{argument} must be a list of names or positions, got {features!r}.")
    return [_look_up_column(view, argument, name) for name in features]


def _list_free(view: ModelView, row: Floats, features: Iterable[Any] | None) -> Ints:
    """Return the columns that may change: numbers that are present, never categories."""
    if features is None:
        return np.flatnonzero(view.is_number & ~np.isnan(row))
    column = sorted(set(_look_up_columns(view, "features", features)))
    if not column:
        raise ValueError("features must name at least one feature, got none.")
    missing = [view.model.column_names_[j] for j in column if np.isnan(row[j])]
    if missing:
        raise ValueError(
            f"features has {join_few(missing)}, which is missing in x; fill it in or "
            "remove it from features."
        )
    return np.array(column)


def _check_integers(
    view: ModelView, ranges: Mapping[Any, Any] | None, integer_columns: list[int]
) -> None:
    """Refuse limits that have no integer between them where one is required."""
    for name, limits in (ranges or {}).items():
        least, most = (np.nan if limit is None else float(limit) for limit in limits)
        is_integer = _look_up_column(view, "ranges", name) in integer_columns
        if is_integer and np.ceil(least) > np.floor(most):
            raise ValueError(f"ranges[{name!r}] must contain an integer, got {limits!r}.")


def _compute_limits(
    view: ModelView, row: Floats, free: Ints, ranges: Mapping[Any, Any] | None
) -> tuple[Floats, Floats]:
    """Return the least and the largest move of each free column."""
    lower, upper = np.full(len(free), -np.inf), np.full(len(free), np.inf)
    for name, limits in (ranges or {}).items():
        column = _look_up_column(view, "ranges", name)
        try:
            least, most = (np.nan if limit is None else float(limit) for limit in limits)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"ranges[{name!r}] must be a pair of numbers or None, got {limits!r}."
            ) from error
        if least > most:
            raise ValueError(f"ranges[{name!r}] must not decrease, got {limits!r}.")
        is_column = free == column
        unit = view.column_std[column]
        if not np.isnan(least):
            lower[is_column] = (least - row[column]) / unit
        if not np.isnan(most):
            upper[is_column] = (most - row[column]) / unit
    return lower, upper
