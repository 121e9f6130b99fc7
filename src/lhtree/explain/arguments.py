"""Check the labels and the row that callers pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from lhtree.data.frames import is_frame
from lhtree.data.sparse import check_format
from lhtree.data.validation import check_present, join_few, show_gaps


def check_labels(model: Any, y: Any, n_rows: int) -> NDArray[Any]:
    """Return the labels of some rows: one each, all of them classes of the model."""
    check_present("y", y)
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise ValueError(
            f"y must have one label for each of the {n_rows} rows of X, got the shape "
            f"{labels.shape}."
        )
    known = set(model.classes_.tolist())  # compared as they are: "1" is not 1
    unknown = [label for label in dict.fromkeys(labels.tolist()) if label not in known]
    if unknown:
        raise ValueError(
            f"y has {join_few(unknown)}, but the model's classes are "
            f"{join_few(model.classes_.tolist())}."
        )
    return labels


def check_targets(model: Any, y: Any, n_rows: int) -> NDArray[Any]:
    """Return the labels of some rows, or their numbers, one each, as the model has them."""
    if hasattr(model, "classes_"):
        return check_labels(model, y, n_rows)
    check_present("y", y)
    targets = np.asarray(y)
    if targets.shape != (n_rows,):
        raise ValueError(
            f"y must have one number for each of the {n_rows} rows of X, got the shape "
            f"{targets.shape}."
        )
    try:
        numbers = targets.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("y must be numbers: the model predicts numbers.") from error
    if not np.isfinite(numbers).all():
        raise ValueError("y must be finite numbers; leave out rows without a target.")
    return numbers


def read_row(x: Any) -> Any:
    """Return one row as a table of one row: a frame keeps its names, all else is an array."""
    if hasattr(x, "iloc") and x.ndim == 1:
        return x.to_frame().T.infer_objects()
    row = x if is_frame(x) else _to_array(x)
    if len(row.shape) == 1:
        return row.reshape(1, -1)
    if len(row.shape) != 2 or row.shape[0] != 1:
        raise ValueError(
            f"x must be one row, got the shape {row.shape}; pass X[[i]], or X.iloc[[i]] "
            "of a frame."
        )
    return row


def _to_array(x: Any) -> NDArray[Any]:
    if issparse(x):
        check_format(x)
        return np.asarray(x.toarray())
    x = show_gaps(x)
    array = np.asarray(x)
    if array.dtype.kind in "biuf" or hasattr(x, "dtype"):
        return array
    return np.asarray(x, dtype=object)  # numbers beside text stay numbers
