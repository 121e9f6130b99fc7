"""From the columns of X to those that trees see: numbers as they are, categories as indicators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lhtree.arrays import Floats, Ints
from lhtree.data import frames, series, sparse
from lhtree.data.series import Value
from lhtree.data.warn import warn

OTHERS = "(others)"  # names the indicator that the rarest categories share
# Columns are written in blocks: writing whole columns would load the table for each of them.
COLUMNS_AT_ONCE, ROWS_AT_ONCE = 32, 2048


@dataclass(frozen=True)
class Category:
    """A column of categories: plain data.

    Parameters
    ----------
    feature : int
        Position of the column in `X`.
    values : tuple of str, int, float or bool
        Categories with an indicator of their own, in the order of these.
    merged : tuple of str, int, float or bool
        The rarest, which share one more indicator.
    """

    feature: int
    values: tuple[Value, ...]
    merged: tuple[Value, ...] = ()

    @property
    def has_others(self) -> bool:
        """Whether there is a shared indicator; a column without a value has no other."""
        return bool(self.merged) or not self.values

    @property
    def n_columns(self) -> int:
        """Number of indicators."""
        return len(self.values) + self.has_others

    def list_slots(self) -> dict[Value, int]:
        """Return which indicator is one for each category."""
        own = {value: k for k, value in enumerate(self.values)}
        return own | dict.fromkeys(self.merged, len(self.values))

    def name_columns(self, feature_name: str) -> list[str]:
        """Return the names of the indicators: ``column=value``."""
        values = [str(value) for value in self.values] + [OTHERS] * self.has_others
        return [f"{feature_name}={value}" for value in values]


@dataclass(frozen=True)
class Columns:
    """How the columns of X become those that trees see: plain data.

    Parameters
    ----------
    n_features : int
        Number of columns of `X`.
    categories : tuple of Category
        The columns of categories, ascending; all others are numbers.
    kept : tuple of int or None
        Columns of a very wide sparse table that have a value in some training row,
        ascending: the trees see no others. None keeps all.
    has_codes : bool
        Whether a column of categories stays one column, of codes, instead of becoming
        indicators.
    """

    n_features: int
    categories: tuple[Category, ...] = ()
    kept: tuple[int, ...] | None = None
    has_codes: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the trees see the columns of X as they are."""
        return not self.categories and self.kept is None

    def keep(self, X: Any) -> Any:
        """Return the kept columns of rows of numbers, dense or sparse."""
        if self.kept is None:
            return X
        column = self.list_sources()
        if isinstance(X, csr_array):
            return sparse.move_columns(X, column, np.arange(len(column)))
        return np.ascontiguousarray(X[:, column])

    def list_sources(self) -> Ints:
        """Return the position in X of the column that each column is made from."""
        if self.kept is not None:
            return np.array(self.kept, dtype=np.int64)
        size = np.ones(self.n_features, dtype=np.int64)
        for category in self._expanded:
            size[category.feature] = category.n_columns
        return np.repeat(np.arange(self.n_features), size)

    @property
    def _expanded(self) -> tuple[Category, ...]:
        """The columns that become indicators."""
        return () if self.has_codes else self.categories

    def count_codes(self) -> NDArray[np.int32]:
        """Return the number of codes of each column that trees see; 0 for numbers."""
        n_codes = np.zeros(len(self.list_sources()), dtype=np.int32)
        for category in self.categories if self.has_codes else ():
            n_codes[category.feature] = category.n_columns
        return n_codes

    def list_indicators(self) -> NDArray[np.bool_]:
        """Return which columns are indicators of a category."""
        feature = [category.feature for category in self._expanded]
        return np.isin(self.list_sources(), feature)

    def name_columns(self, feature_names: Sequence[str]) -> list[str]:
        """Return the names of the columns that trees see."""
        if self.kept is not None:
            return [feature_names[j] for j in self.kept]
        names = [[name] for name in feature_names]
        for category in self._expanded:
            names[category.feature] = category.name_columns(feature_names[category.feature])
        return [name for group in names for name in group]

    def encode(self, X: Any, feature_names: Sequence[str], *, is_training: bool = False) -> Floats:
        """Return the table that trees see.

        A missing number is NaN; a missing or unknown category has no indicator of one, or
        the code NaN.
        Other kinds of values than in training are worth a warning.
        """
        columns = frames.split_columns(X)
        source = self.list_sources()
        start = np.searchsorted(source, np.arange(self.n_features))
        table = np.zeros((len(X), len(source)))
        categories = {category.feature: category for category in self.categories}
        numbers = [j for j in range(self.n_features) if j not in categories]
        for k in range(0, len(numbers), COLUMNS_AT_ONCE):
            batch = numbers[k : k + COLUMNS_AT_ONCE]
            read = [_read_numbers(columns[j], feature_names[j]) for j in batch]
            _fill(table, start[batch], read)
        for j, category in categories.items():
            code, values = _read_categories(columns[j], feature_names[j])
            if not is_training:
                present = [values[k] for k in np.unique(code[code >= 0])]
                _warn_of_others(present, category, feature_names[j])
            slot = _look_up_slots(code, values, category)
            if self.has_codes:
                table[:, j] = np.where(slot >= 0, slot, np.nan)
                continue
            row = np.flatnonzero(slot >= 0)
            table[row, start[j] + slot[row]] = 1.0
        return table


class DefaultNames(Sequence[str]):
    """The names x0, x1, ... of columns without names, which may be a billion.

    Parameters
    ----------
    n_features : int
        Number of columns.
    """

    def __init__(self, n_features: int) -> None:
        self._numbers = range(n_features)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        found = self._numbers[index]
        return f"x{found}" if isinstance(found, int) else [f"x{j}" for j in found]

    def index(self, value: Any, *bounds: Any) -> int:
        """Return the position of a name; ValueError if there is none."""
        digits = str(value).removeprefix("x")
        if isinstance(value, str) and digits.isdecimal() and value == f"x{int(digits)}":
            return self._numbers.index(int(digits), *bounds)
        raise ValueError(f"{value!r} is not in the list")

    def __contains__(self, value: object) -> bool:
        try:
            self.index(value)
        except ValueError:
            return False
        return True


def learn_columns(
    X: Any,
    categorical_features: Any,
    max_categories: int | None,
    feature_names: Sequence[str],
    weight: Floats | None = None,
    *,
    has_codes: bool = False,
) -> Columns:
    """Return how the columns of training rows are to be encoded.

    Rows count by their weight, None: once each; one of weight 0 says nothing of its columns.
    """
    if weight is not None and not weight.all():
        X, weight = frames.take_rows(X, np.flatnonzero(weight)), weight[weight > 0]
    columns = frames.split_columns(X)
    found = []
    for j in resolve_categorical(categorical_features, columns, feature_names):
        code, values = _read_categories(columns[j], feature_names[j])
        is_present = code >= 0
        counts = None if weight is None else weight[is_present]
        count = np.bincount(code[is_present], counts, minlength=len(values))
        found.append(_choose_values(j, values, count, max_categories))
    return Columns(len(columns), tuple(found), has_codes=has_codes)


def _fill(table: Floats, position: Ints, columns: list[Floats]) -> None:
    """Write columns to some positions of a table."""
    for start in range(0, len(table), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        for j, column in zip(position, columns, strict=True):
            table[rows, j] = column[rows]


def _choose_values(
    feature: int, values: list[Value], count: NDArray[Any], max_categories: int | None
) -> Category:
    """Keep the most frequent categories, the first of equal ones, in their own order."""
    seen = [k for k in _sort(values) if count[k] > 0]
    if max_categories is None or len(seen) <= max_categories:
        return Category(feature, tuple(values[k] for k in seen))
    by_count = sorted(seen, key=lambda k: -count[k])  # stable
    kept = set(by_count[: max_categories - 1])
    return Category(
        feature,
        tuple(values[k] for k in seen if k in kept),
        tuple(values[k] for k in seen if k not in kept),
    )


def _sort(values: list[Value]) -> list[int]:
    """Return the order of categories: numbers by size, then text."""
    return sorted(
        range(len(values)),
        key=lambda k: (isinstance(values[k], str), values[k]),
    )


def _look_up_slots(code: Ints, values: list[Value], category: Category) -> Ints:
    """Return the indicator of each row that is one; -1: none."""
    slots = category.list_slots()
    # One more entry at the end, where the code of a missing category points to.
    slot_of = np.array([slots.get(value, -1) for value in values] + [-1], dtype=np.int64)
    slot: Ints = slot_of[code]
    return slot


def _warn_of_others(values: list[Value], category: Category, name: str) -> None:
    """Warn if a column holds other kinds of values than in training, or none that is known."""
    known = category.values + category.merged
    kinds, known_kinds = _list_kinds(values), _list_kinds(known)
    if not kinds or not known:
        return
    is_unknown = set(known).isdisjoint(values)
    if not is_unknown and kinds.keys() <= known_kinds.keys():
        return
    other = next((kind for kind in kinds if kind not in known_kinds), next(iter(kinds)))
    trained = " and ".join(f"{kind}, such as {value!r}" for kind, value in known_kinds.items())
    warn(
        f"X has {'only unknown categories' if is_unknown else 'other categories'} in the column "
        f"{name!r}: {other}, such as {kinds[other]!r}, where training had {trained}; give the "
        "column as in training.",
        key=("categories", name),
    )


def _list_kinds(values: Iterable[Value]) -> dict[str, Value]:
    """Return the kinds of categories, each with its first value."""
    kinds: dict[str, Value] = {}
    for value in values:
        is_flag, is_text = isinstance(value, bool), isinstance(value, str)
        kinds.setdefault("truth values" if is_flag else "text" if is_text else "numbers", value)
    return kinds


def _read_categories(column: Any, name: str) -> tuple[Ints, list[Value]]:
    try:
        return series.read_categories(column)
    except (TypeError, NotImplementedError) as error:  # lists, for example
        raise ValueError(
            f"X has the type {series.name_type(column)} in the column {name!r}, whose values "
            "cannot be categories; turn them into text or numbers."
        ) from error


def _read_numbers(column: Any, name: str) -> Floats:
    kind = series.kind_of(column)
    if kind == "number":
        try:
            return series.read_numbers(column)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must have numbers in the column {name!r}: {error}.") from error
    if kind == "category":
        raise ValueError(
            f"X has text or categories in the column {name!r}, which the model reads as "
            "numbers; name it in categorical_features, or turn it into numbers."
        )
    raise ValueError(
        f"X has the type {series.name_type(column)} in the column {name!r}, which is neither a "
        "number nor a category; turn it into numbers (of a date, for example, days since "
        "another), or name it in categorical_features."
    )


def resolve_categorical(
    categorical_features: Any, columns: list[Any], feature_names: Sequence[str]
) -> list[int]:
    """Return the positions of the columns of categories, ascending."""
    if categorical_features is None:
        return []
    if isinstance(categorical_features, str):
        if categorical_features != "from_dtype":
            _refuse(categorical_features, "is not one of these")
        return [j for j, column in enumerate(columns) if series.kind_of(column) == "category"]
    try:
        wanted = np.asarray(categorical_features)
    except ValueError:
        _refuse(categorical_features, "is not a list")
    if wanted.ndim != 1:
        _refuse(categorical_features, "is not a list")
    if wanted.size == 0:
        return []
    if wanted.dtype == bool:
        if len(wanted) != len(columns):
            _refuse(
                categorical_features,
                f"does not have one entry for each of the {len(columns)} columns",
            )
        return np.flatnonzero(wanted).tolist()
    return sorted({_look_up_position(each, feature_names) for each in wanted.tolist()})


def _look_up_position(wanted: Any, feature_names: Sequence[str]) -> int:
    if isinstance(wanted, str):
        if wanted not in feature_names:
            _refuse(wanted, "is not a column of X")
        return list(feature_names).index(wanted)
    if not isinstance(wanted, Integral) or isinstance(wanted, bool):
        _refuse(wanted, "is neither a name nor a position")
    if not 0 <= wanted < len(feature_names):
        _refuse(wanted, f"is not a position from 0 to {len(feature_names) - 1}")
    return int(wanted)


def _refuse(value: Any, reason: str) -> None:
    raise ValueError(
        "categorical_features must be 'from_dtype', None, or a mask, positions or names of "
        f"columns of X, but {value!r} {reason}."
    )
