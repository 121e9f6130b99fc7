"""Columns of frames and arrays as numbers or categories.

pandas and polars are read if the caller uses them; neither is imported here.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import validation

from lhtree.arrays import Floats, Ints
from lhtree.data.sparse import check_format

Value = str | int | float | bool  # what a category may be: plain data that JSON holds
Kind = Literal["number", "category", "other"]
# What pandas calls the contents of an object column.
NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty"}


def is_frame(X: Any) -> bool:
    """Whether X is a frame of pandas or polars."""
    return _is_of(X, "pandas", "DataFrame") or _is_of(X, "polars", "DataFrame")


def show_gaps(X: Any) -> Any:
    """Return X with missing values in place of the masked ones of NumPy's masked arrays."""
    if isinstance(X, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        X = np.ma.stack([np.ma.asarray(row) for row in X])
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if X.dtype.kind == "V" or not np.ma.is_masked(X):  # records are no table, masked or not
        return X.data
    kind = X.dtype if X.dtype.kind == "f" else np.float64 if X.dtype.kind in "biu" else object
    values = X.data.astype(kind)
    values[np.ma.getmaskarray(X)] = None if kind is object else np.nan
    return values


def check_present(name: str, values: Any) -> None:
    """Refuse masked values where none may be missing."""
    parts = values if isinstance(values, list | tuple) else [values]
    n_masked = sum(
        int(np.sum(np.ma.getmaskarray(part)))
        for part in parts
        if isinstance(part, np.ma.MaskedArray)
    )
    if n_masked:
        raise ValueError(
            f"{name} is masked in {n_masked} places, but must have a value for every row; leave "
            "out those rows."
        )


def check_dates(name: str, X: Any) -> None:
    """Refuse the dates and time differences of NumPy, which would be read as numbers."""
    if is_frame(X) or issparse(X):
        return
    if not isinstance(X, np.ndarray):
        try:
            X = np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
        except (TypeError, ValueError):  # no table, or rows of different lengths
            return
    found: Any = X.dtype if X.dtype.kind in "Mm" else None
    if X.dtype.kind == "O":
        types = {type(value) for value in X.ravel()}
        found = next((each.__name__ for each in types if _is_date(each)), None)
    if found is not None:
        raise ValueError(
            f"{name} holds dates or time differences ({found}), which are not numbers; turn them "
            "into numbers (of a date, for example, days since another)."
        )


def check_labels(y: NDArray[Any]) -> None:
    """Refuse dates that are missing: no label is one."""
    if y.dtype.kind in "Mm" and np.isnat(y).any():
        raise ValueError("y must have a label for every row, got NaT; leave out those rows.")


def _is_date(kind: type) -> bool:
    kinds = (np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta)
    return issubclass(kind, kinds) and kind.__name__ != "NaTType"


def find_text(X: Any) -> tuple[int, str] | None:
    """Return the first column of a list or an array with text that is no number, and the text."""
    if is_frame(X) or issparse(X):
        return None
    try:
        table = np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths
        return None
    if table.ndim != 2:
        return None
    for place, column in enumerate(table.T):
        for value in column:
            if isinstance(value, str) and not _is_number(value):
                return place, str(value)
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Names:
    """The shape and the names of a frame, told by the interchange protocol."""

    def __init__(self, X: Any) -> None:
        self.shape, self._names = X.shape, list(X.columns)

    def __dataframe__(self) -> _Names:
        return self

    def column_names(self) -> list[str]:
        return self._names


def show_names(X: Any) -> Any:
    """Return X, or what stands for it where scikit-learn reads names only.

    Before it used narwhals, scikit-learn asked polars for names by the interchange
    protocol, which newer versions of polars no longer have.
    """
    is_deaf = not hasattr(validation, "nw") and not hasattr(X, "__dataframe__")
    return _Names(X) if is_deaf and _is_of(X, "polars", "DataFrame") else X


def split_columns(X: Any) -> list[Any]:
    """Return the columns of a frame or of a two-dimensional array."""
    if _is_of(X, "pandas", "DataFrame"):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    if _is_of(X, "polars", "DataFrame"):
        return list(X.get_columns())
    return [X[:, j] for j in range(X.shape[1])]


def take_rows(X: Any, number: NDArray[Any]) -> Any:
    """Return some rows of a frame, an array or a list in its own form; sparse ones by rows."""
    if hasattr(X, "iloc"):
        return X.iloc[number]
    if issparse(X):  # not every kind of sparse array has rows to take
        check_format(X)
        return X.tocsr()[number]
    return (X if hasattr(X, "shape") else np.asarray(X))[number]


def change_row(X: Any, value: Mapping[int, float]) -> Any:
    """Return one row, in the form of X, with other numbers in the columns of some positions."""
    if _is_of(X, "polars", "DataFrame"):
        pl, names = sys.modules["polars"], X.columns
        return X.with_columns(pl.Series(names[j], [number]) for j, number in value.items())
    result = X.copy()
    for j, number in value.items():
        if _is_of(X, "pandas", "DataFrame"):
            result.isetitem(j, [number])
        else:
            result[0, j] = number
    return result


def is_numeric(X: Any) -> bool:
    """Whether a frame holds nothing but the plain numbers that NumPy reads at once."""
    if not _is_of(X, "pandas", "DataFrame"):
        return False
    return all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in X.dtypes)


def find_kind(column: Any) -> Kind:
    """Return what the type of a column says that it holds."""
    if _is_of(column, "pandas", "Series"):
        return _find_pandas_kind(column)
    if _is_of(column, "polars", "Series"):
        return _find_polars_kind(column)
    return "number" if column.dtype.kind in "biufO" else "other"


def read_numbers(column: Any) -> Floats:
    """Return a column of numbers as float64, NaN where a value is missing."""
    if _is_of(column, "pandas", "Series"):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if _is_of(column, "polars", "Series"):
        pl = sys.modules["polars"]
        numbers: Floats = column.cast(pl.Float64).to_numpy()
        return numbers
    if column.dtype.kind == "O":
        column = np.where([is_missing(value) for value in column], np.nan, column)
    return np.asarray(column.astype(np.float64))


def read_categories(column: Any) -> tuple[Ints, list[Value]]:
    """Return the number of each row's category, -1 if it is missing, and the categories.

    Values that are the same as plain data, such as a date and its text, are one category.
    """
    if _is_of(column, "pandas", "Series"):
        code, values = _read_pandas(column)
    elif _is_of(column, "polars", "Series"):
        code, values = _read_polars(column)
    elif column.dtype.kind == "O":
        code, values = _read_objects(column)
    else:
        code, values = _read_array(column)
    number: dict[Value, int] = {}
    number_of = [number.setdefault(to_value(value), len(number)) for value in values]
    # One more place at the end, where the code of a missing category points to.
    return np.array([*number_of, -1], dtype=np.int64)[code], list(number)


def to_value(value: Any) -> Value:
    """Return a category as plain data; what is neither text nor number by its text."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, np.timedelta64):  # NumPy has it among the integers
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    return str(value)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or the NA of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _is_of(X: Any, package: str, name: str) -> bool:
    module = sys.modules.get(package)  # who has such an object has imported it
    return module is not None and isinstance(X, getattr(module, name, ()))


def _find_pandas_kind(column: Any) -> Kind:
    pd, dtype = sys.modules["pandas"], column.dtype
    types = pd.api.types
    is_text = isinstance(dtype, pd.CategoricalDtype | pd.StringDtype) or (
        isinstance(dtype, pd.ArrowDtype) and types.is_string_dtype(dtype)
    )
    if is_text:
        return "category"
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        inferred = types.infer_dtype(column, skipna=True)
        return "category" if inferred == "string" else "number" if inferred in NUMBERS else "other"
    is_number = types.is_bool_dtype(dtype) or types.is_numeric_dtype(dtype)
    return "number" if is_number and not types.is_complex_dtype(dtype) else "other"


def _find_polars_kind(column: Any) -> Kind:
    pl, dtype = sys.modules["polars"], column.dtype
    if dtype in (pl.Categorical, pl.Enum, pl.String):
        return "category"
    return "number" if dtype.is_numeric() or dtype in (pl.Boolean, pl.Null) else "other"


def _read_pandas(column: Any) -> tuple[Ints, Sequence[Any]]:
    pd = sys.modules["pandas"]
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(), column.cat.categories.tolist()
    code, values = pd.factorize(column)
    return code, values.tolist()


def _read_polars(column: Any) -> tuple[Ints, Sequence[Any]]:
    pl = sys.modules["polars"]
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype.is_float():
        column = column.fill_nan(None)
    values = column.drop_nulls().unique(maintain_order=True)
    number = pl.Series(range(len(values)), dtype=pl.Int64)
    code = column.replace_strict(values, number, default=-1, return_dtype=pl.Int64)
    return code.to_numpy(), values.to_list()


def _read_array(column: NDArray[Any]) -> tuple[Ints, Sequence[Any]]:
    values, code = np.unique(column, return_inverse=True)
    if column.dtype.kind == "f":
        code = np.where(np.isnan(column), -1, code)  # NaN comes last among the values
    return code, [value for value in values.tolist() if value == value]


def _read_objects(column: NDArray[Any]) -> tuple[Ints, Sequence[Any]]:
    number: dict[Any, int] = {}
    code = [
        -1 if is_missing(value) else number.setdefault(to_value(value), len(number))
        for value in column
    ]
    return np.array(code, dtype=np.int64), list(number)
