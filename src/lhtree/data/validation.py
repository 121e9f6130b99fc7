"""What X, y and weights must not hold: masked values, dates, text among numbers."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from lhtree.data.frames import is_frame
from lhtree.data.series import is_missing


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


def check_numbers(name: str, y: Any) -> None:
    """Refuse targets that are no finite numbers; text of numbers may pass.

    What NumPy reads as plain numbers is left to scikit-learn's checks.
    """
    values = _list_objects(y)
    if np.iscomplexobj(values):
        raise ValueError(f"{name} must be real numbers: Complex data not supported.")
    for value in values:
        if _is_gap(value):
            raise ValueError(
                f"{name} must be finite numbers, got {value!r}; leave out rows without a target."
            )
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        except (TypeError, ValueError):
            is_text = isinstance(value, str | bytes)
            found = f"text such as {str(value)!r}" if is_text else f"{value!r}"
            raise ValueError(
                f"{name} must be numbers, got {found}; turn it into numbers, or use a classifier "
                "for classes."
            ) from None
        if not math.isfinite(number):
            shown = repr(value) if isinstance(value, str | float) else "one too large for a float"
            raise ValueError(
                f"{name} must be finite numbers, got {shown}; leave out rows without a target."
            )


def read_labels(name: str, y: Any) -> Any:
    """Return labels, integers among objects as integers; refuse gaps, and text beside numbers."""
    values = _list_objects(y)
    gaps = [value for value in values if _is_gap(value)]
    if gaps:
        raise ValueError(
            f"{name} must have a label for every row, got {gaps[0]!r}; leave out those rows."
        )
    if len(values) == 0 or isinstance(y, list | tuple):  # NumPy makes text of numbers beside text
        return y
    text = [value for value in values if isinstance(value, str)]
    if 0 < len(text) < len(values):
        other = next(value for value in values if not isinstance(value, str))
        raise ValueError(
            f"{name} must have labels of one kind, got {text[0]!r} and {other!r}; turn all into "
            "text, or all into numbers."
        )
    is_whole = all(isinstance(value, Integral | np.bool_) for value in values)
    return np.array(list(values)).reshape(np.shape(y)) if is_whole else y


def _list_objects(y: Any) -> Any:
    """Return the values of a list or an array that are not plain numbers to NumPy: one by one."""
    if y is None or issparse(y):
        return ()
    try:
        array = np.asarray(y)
    except (TypeError, ValueError):  # not a list
        return ()
    if array.dtype.kind == "c":
        return array
    if array.dtype.kind not in "OUS":
        return ()
    return y if isinstance(y, list | tuple) and array.ndim == 1 else array.ravel()


def _is_gap(value: Any) -> bool:
    """Whether a single value is missing; a list is none."""
    return not isinstance(value, np.ndarray | list | tuple) and is_missing(value)


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
