"""Frames of pandas, polars, pyarrow and other libraries, read by narwhals.

No library is imported here before X is a frame, narwhals neither.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import validation

from lhtree.data.sparse import check_format

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


def is_frame(X: Any) -> bool:
    """Whether X is a frame in memory, of pandas, polars, pyarrow or any other library."""
    if isinstance(X, np.ndarray | list | tuple) or issparse(X):
        return False
    import narwhals.stable.v2 as nw

    return nw.dependencies.is_into_dataframe(X) or is_of(X, "pyarrow", "RecordBatch")


def check_names(X: Any) -> None:
    """Refuse frames of pandas and pyarrow in which two columns have one name."""
    if is_of(X, "pandas", "DataFrame"):
        names = [] if X.columns.is_unique else X.columns.tolist()
    elif is_of(X, "pyarrow", "Table") or is_of(X, "pyarrow", "RecordBatch"):
        names = X.schema.names
    else:
        return
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"X has several columns with the name {twice[0]!r}; rename them.")


def is_numeric(X: Any) -> bool:
    """Whether a frame holds nothing but the plain numbers that NumPy reads at once."""
    if not is_of(X, "pandas", "DataFrame"):
        return False
    return all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in X.dtypes)


class _Names:
    """The shape and the names of a frame, by the interchange protocol."""

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self.shape, self._names = frame.shape, frame.columns

    def __dataframe__(self) -> _Names:
        return self

    def column_names(self) -> list[str]:
        return self._names


def show_names(X: Any) -> Any:
    """Return X, or what shows scikit-learn the shape and the names of a frame.

    Before it used narwhals, scikit-learn read names by the interchange protocol, which not
    all libraries have.
    """
    if not is_frame(X) or is_of(X, "pandas", "DataFrame"):
        return X
    return wrap(X) if hasattr(validation, "nw") else _Names(wrap(X))


def split_columns(X: Any) -> list[Any]:
    """Return the columns of a two-dimensional array or a frame: of NumPy, pandas or narwhals."""
    if isinstance(X, np.ndarray):
        return list(X.T)
    if is_of(X, "pandas", "DataFrame"):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    frame = wrap(X)
    if frame.implementation.is_pandas_like():
        return split_columns(frame.to_pandas())
    return list(frame.iter_columns())


def take_rows(X: Any, number: NDArray[Any]) -> Any:
    """Return some rows of a frame, an array or a list in its own form; sparse ones by rows."""
    if hasattr(X, "iloc"):
        return X.iloc[number]
    if issparse(X):  # not every kind of sparse array has rows to take
        check_format(X)
        return X.tocsr()[number]
    if is_frame(X):
        return wrap(X)[number].to_native()
    return (X if hasattr(X, "shape") else np.asarray(X))[number]


def change_row(X: Any, value: Mapping[int, float]) -> Any:
    """Return one row, in the form of X, with other numbers in the columns of some positions."""
    if is_frame(X) and not hasattr(X, "iloc"):
        import narwhals.stable.v2 as nw

        frame = wrap(X)
        names = frame.columns
        changed = [nw.lit(number, nw.Float64).alias(names[j]) for j, number in value.items()]
        return frame.with_columns(changed).to_native()
    result = X.copy()
    for j, number in value.items():
        if hasattr(X, "iloc"):
            result.isetitem(j, [number])
        else:
            result[0, j] = number
    return result


def is_of(X: Any, package: str, name: str) -> bool:
    """Whether X is of a class of a package; nothing is imported for it."""
    module = sys.modules.get(package)  # who has such an object has imported it
    return module is not None and isinstance(X, getattr(module, name, ()))


def wrap(X: Any) -> nw.DataFrame[Any]:
    """Return a frame of any library as one of narwhals."""
    import narwhals.stable.v2 as nw

    if is_of(X, "pyarrow", "RecordBatch"):
        X = sys.modules["pyarrow"].Table.from_batches([X])
    if is_of(X, "pyarrow", "Table"):
        for j, field in enumerate(X.schema):
            if str(field.type) == "string_view":  # of which pyarrow cannot take rows
                X = X.set_column(j, field.name, X.column(j).cast("large_string"))
    frame: nw.DataFrame[Any] = nw.from_native(X, eager_only=True)
    return frame
