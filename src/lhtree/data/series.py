"""One column of X: what it holds, as numbers or as categories.

A column is an array, a series of pandas, or the series of narwhals for all other libraries.
pandas and pyarrow encode categories themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.data.frames import is_of

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

Value = str | int | float | bool  # what a category may be: plain data that JSON holds
Kind = Literal["number", "category", "other"]
# What pandas calls the contents of an object column.
NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty"}
# Native types of numbers that narwhals does not know, or not in all of its versions.
MORE_NUMBERS = {"null", "halffloat", "float16"}


def kind_of(column: Any) -> Kind:
    """Return what the type of a column says that it holds."""
    if isinstance(column, np.ndarray):
        return "number" if column.dtype.kind in "biufO" else "other"
    if is_of(column, "pandas", "Series"):
        return _kind_of_pandas(column)
    import narwhals.stable.v2 as nw

    dtype = column.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return "number"
    if dtype in (nw.Categorical, nw.Enum, nw.String):
        return "category"
    return "number" if name_type(column).lower() in MORE_NUMBERS else "other"


def name_type(column: Any) -> str:
    """Return the type of a column as its library calls it."""
    if isinstance(column, np.ndarray) or is_of(column, "pandas", "Series"):
        return str(column.dtype)
    native = column.to_native()
    return str(native.type if is_of(native, "pyarrow", "ChunkedArray") else native.dtype)


def read_numbers(column: Any) -> Floats:
    """Return a column of numbers as float64, NaN where a value is missing."""
    if is_of(column, "pandas", "Series"):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if not isinstance(column, np.ndarray):
        import narwhals.stable.v2 as nw

        native = column.to_native()
        if is_of(native, "pyarrow", "ChunkedArray"):  # not safe: large integers are rounded
            return np.asarray(native.cast("double", safe=False).to_numpy())
        return np.asarray(column.cast(nw.Float64).to_numpy())
    if column.dtype.kind == "O":
        column = np.where([is_missing(value) for value in column], np.nan, column)
    return np.asarray(column.astype(np.float64))


def read_categories(column: Any) -> tuple[Ints, list[Value]]:
    """Return the number of each row's category, -1 if it is missing, and the categories.

    Values that are the same as plain data, such as a date and its text, are one category.
    """
    if is_of(column, "pandas", "Series"):
        code, values = _encode_pandas(column)
    elif not isinstance(column, np.ndarray):
        code, values = _encode_series(column)
    elif column.dtype.kind == "O":
        code, values = _encode_objects(column)
    else:
        unique, code = np.unique(column, return_inverse=True)
        values = unique.tolist()
    number: dict[Value, int] = {}
    number_of = [
        -1 if is_missing(value) else number.setdefault(to_value(value), len(number))
        for value in values
    ]
    # One more entry at the end, where the code of a missing category points to.
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


def _kind_of_pandas(column: Any) -> Kind:
    pd, dtype = sys.modules["pandas"], column.dtype
    types = pd.api.types
    if isinstance(dtype, pd.ArrowDtype):
        import narwhals.stable.v2 as nw

        empty = sys.modules["pyarrow"].chunked_array([], type=dtype.pyarrow_dtype)
        return kind_of(nw.from_native(empty, series_only=True))
    if isinstance(dtype, pd.CategoricalDtype | pd.StringDtype):
        return "category"
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        inferred = types.infer_dtype(column, skipna=True)
        return "category" if inferred == "string" else "number" if inferred in NUMBERS else "other"
    is_number = types.is_bool_dtype(dtype) or types.is_numeric_dtype(dtype)
    return "number" if is_number and not types.is_complex_dtype(dtype) else "other"


def _encode_pandas(column: Any) -> tuple[Ints, Sequence[Any]]:
    pd = sys.modules["pandas"]
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(), column.cat.categories.tolist()
    code, values = pd.factorize(column)
    return code, values.tolist()


def _encode_series(column: nw.Series[Any]) -> tuple[Ints, Sequence[Any]]:
    """Return the codes and the values of a series of narwhals."""
    import narwhals.stable.v2 as nw

    native = column.to_native()
    if is_of(native, "pyarrow", "ChunkedArray"):
        encoded = native.dictionary_encode().unify_dictionaries().combine_chunks()
        code = encoded.indices.cast("int64").fill_null(-1)
        return code.to_numpy(), encoded.dictionary.to_pylist()
    rows = column.alias("value").to_frame().with_row_index("row")
    first = rows.select(nw.col("row").min().over("value"))["row"].to_numpy()
    # Grouping works for every type, where replacing values by their codes does not.
    is_first = first == np.arange(len(first))
    code = np.cumsum(is_first)[first] - 1
    return code, column[np.flatnonzero(is_first)].to_list()


def _encode_objects(column: NDArray[Any]) -> tuple[Ints, Sequence[Any]]:
    number: dict[Any, int] = {}
    code = [
        -1 if is_missing(value) else number.setdefault(to_value(value), len(number))
        for value in column
    ]
    return np.array(code, dtype=np.int64), list(number)
