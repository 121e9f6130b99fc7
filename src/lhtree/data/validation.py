"""What X, y and weights must not hold: masked values, dates, text among numbers."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from lhtree.data.frames import is_frame


def show_gaps(X: Any) -> Any:
    """Return X with missing values in position of the masked ones of NumPy's masked arrays."""
    if isinstance(X, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        X = np.ma.stack([np.ma.asarray(row) for row in X])
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if X.dtype.kind == "V" or not np.ma.is_masked(X):  # records are not a table
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
        except (TypeError, ValueError):  # not a table, or rows of different lengths
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


def check_numbers(y: Any) -> None:
    """Refuse targets that are text where numbers are predicted; text of numbers may pass."""
    try:
        values = np.asarray(y)
    except (TypeError, ValueError):  # not a list
        return
    for value in values.ravel() if values.dtype.kind in "OU" else ():
        if not isinstance(value, str):
            continue
        try:
            float(value)
        except ValueError:
            raise ValueError(
                f"y must be numbers, got text such as {str(value)!r}; turn it into numbers, or "
                "use a classifier for classes."
            ) from None


def check_labels(y: NDArray[Any]) -> None:
    """Refuse dates that are missing: no label is one."""
    if y.dtype.kind in "Mm" and np.isnat(y).any():
        raise ValueError("y must have a label for every row, got NaT; leave out those rows.")


def _is_date(kind: type) -> bool:
    kinds = (np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta)
    return issubclass(kind, kinds) and kind.__name__ != "NaTType"


def look_up_text(X: Any) -> tuple[int, str] | None:
    """Return the first column of an array or a list with text among numbers, and the text."""
    if is_frame(X) or issparse(X):
        return None
    try:
        table = np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths
        return None
    if table.ndim != 2:
        return None
    for position, column in enumerate(table.T):
        for value in column:
            if isinstance(value, str) and not _is_number(value):
                return position, str(value)
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def join_few(values: Sequence[Any], most: int = 8) -> str:
    """Return the first few values in one line, and how many more there are."""
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(map(str, values[:most])) + more
