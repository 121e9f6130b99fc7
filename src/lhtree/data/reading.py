"""How estimators read X: arrays, frames and sparse tables, checked and encoded.

Like scikit-learn's `validate_data`, these functions take the estimator whose columns they
learn in training and compare with afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from lhtree import _core
from lhtree.arrays import Floats
from lhtree.data import sparse
from lhtree.data.columns import Columns, DefaultNames, learn_columns
from lhtree.data.frames import check_names, is_frame, is_numeric, show_names
from lhtree.data.table import MOST_ROWS
from lhtree.data.validation import (
    check_dates,
    check_labels,
    check_numbers,
    check_present,
    look_up_text,
    read_labels,
    show_gaps,
)
from lhtree.data.weights import resolve_sample_weight

SMALL_INPUT = 2**16  # numbers; for more, scikit-learn's own checks are as fast
LOADERS = ("collect", "execute", "fetch_arrow_table")  # of polars and Spark, ibis, DuckDB
OPTIONS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "order": "C",
    "ensure_all_finite": "allow-nan",
    "accept_sparse": ["csr", "csc", "coo"],
}


class Encoding(NamedTuple):
    """How training rows say which of their columns are categories."""

    categorical_features: Any
    max_categories: int | None
    sample_weight: Any  # of the rows, by which categories are counted
    has_codes: bool = False  # whether categories become codes, not indicators

    @property
    def names_categories(self) -> bool:
        """Whether the caller says which columns are categories."""
        given = self.categorical_features
        return given is not None and not (isinstance(given, str) and given == "from_dtype")


def read_training_rows(
    estimator: Any,
    X: Any,
    y: Any,
    encoding: Encoding,
    *,
    learns_columns: bool,
    y_numeric: bool = False,
    order: str | None = "C",
) -> tuple[Any, NDArray[Any]]:
    """Return the table that the trees see, and `y`.

    NaN stays where a value is missing; what is so already is not copied.

    Parameters
    ----------
    estimator : estimator
        Gets `columns_`, `n_features_in_` and `feature_names_in_`.
    X, y : array-like
        Rows and their targets.
    encoding : Encoding
        Which columns are categories.
    learns_columns : bool
        Whether these rows say what the columns are; a warm start keeps those it has.
    y_numeric : bool
        Whether the targets are numbers.
    order : {"C", None}, default="C"
        The order of the table in memory; None leaves the order that `X` has.
    """
    options = OPTIONS | {"order": order}
    X = _check_kind(X)
    check_present("y", y)
    if y_numeric:
        check_dates("y", y)
        check_numbers("y", y)
    else:
        y = read_labels("y", y)
    new_encoding = encoding if learns_columns else None
    if _has_categories(estimator, X, new_encoding):
        table = _encode(estimator, X, new_encoding)
        with _ignore_overflow():
            rows, labels = check_X_y(table, y, **options, y_numeric=y_numeric, estimator=estimator)
    else:
        with explained_text(X, is_training=learns_columns), _ignore_overflow():
            rows, labels = validate_data(
                estimator, X, y, **options, y_numeric=y_numeric, reset=learns_columns
            )
        if learns_columns:
            estimator.columns_ = Columns(estimator.n_features_in_)
    check_labels(labels)
    rows = _finish_rows(rows)
    if learns_columns and issparse(rows):
        sparse.check_present(rows)
        kept = sparse.select_columns(rows)
        estimator.columns_ = Columns(estimator.n_features_in_, kept=kept)
    return estimator.columns_.keep(rows), labels


def read_rows(estimator: Any, X: Any) -> Any:
    """Return the table that the trees see, sparse if `X` is.

    A plain array that needs no change passes at once: for a single row, scikit-learn's
    checks take longer than the prediction.
    """
    if not hasattr(estimator, "columns_"):
        check_is_fitted(estimator)  # raises
    is_plain = (
        type(X) is np.ndarray
        and X.dtype in (np.float64, np.float32)
        and X.ndim == 2
        and 0 < X.size <= SMALL_INPUT
        and X.shape[1] == estimator.n_features_in_
        and X.flags.c_contiguous
        and X.flags.aligned
        and estimator.columns_.is_plain
        and not hasattr(estimator, "feature_names_in_")
    )
    if is_plain and not _core.has_infinity(X):
        return X
    X = _check_kind(X)
    if _has_categories(estimator, X, None):
        table = _encode(estimator, X, None)
        with _ignore_overflow():
            rows = check_array(table, **OPTIONS, estimator=estimator)
    else:
        with explained_text(X, is_training=False), _ignore_overflow():
            rows = validate_data(estimator, X, **OPTIONS, reset=False)
    return estimator.columns_.keep(_finish_rows(rows))


def name_features(estimator: Any) -> Sequence[str]:
    """Return the names of the columns of `X`: x0, x1, ... where it had none."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return DefaultNames(estimator.n_features_in_)
    return [str(name) for name in names]


def _ignore_overflow() -> Any:
    """Return a context without the warning of a sum of numbers near both ends of the range."""
    return np.errstate(over="ignore", invalid="ignore")


def _check_kind(X: Any) -> Any:
    """Refuse what cannot be a table in memory; return X with its gaps as missing values."""
    # Of the type: a frame has its columns as attributes.
    if isinstance(X, str | bytes):
        raise TypeError(f"X must be a table, got the text {X!r}; read that file first.")
    method = next((name for name in LOADERS if hasattr(type(X), name)), None)
    if method is not None and not is_frame(X):
        raise TypeError(f"X must be in memory, got a {type(X).__name__}; call its {method}().")
    check_names(X)
    sparse.check_format(X)
    X = show_gaps(X)
    check_dates("X", X)
    return X


def _finish_rows(rows: Any) -> Any:
    if rows.shape[0] > MOST_ROWS:
        raise ValueError(f"X must have at most {MOST_ROWS} rows, got {rows.shape[0]}.")
    return sparse.to_rows(rows) if issparse(rows) else np.require(rows, requirements="A")


def _has_categories(estimator: Any, X: Any, encoding: Encoding | None) -> bool:
    """Whether columns must be read one by one: there may be categories among them.

    `encoding` is None once the columns are known.
    """
    is_known = (
        bool(estimator.columns_.categories) if encoding is None else encoding.names_categories
    )
    return is_known or (is_frame(X) and not is_numeric(X))


def _encode(estimator: Any, X: Any, encoding: Encoding | None) -> Floats:
    """Return the columns that trees see; learn what they are where an encoding is given."""
    is_training = encoding is not None
    if not is_frame(X):
        X = X if hasattr(X, "dtype") else np.asarray(X, dtype=object)
        X = check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator)
    validate_data(estimator, show_names(X), reset=is_training, skip_check_array=True)
    names = name_features(estimator)
    if encoding is not None:
        weight = resolve_sample_weight(encoding.sample_weight, len(X))
        estimator.columns_ = learn_columns(
            X,
            encoding.categorical_features,
            encoding.max_categories,
            names,
            weight,
            has_codes=encoding.has_codes,
        )
    columns: Columns = estimator.columns_
    return columns.encode(X, names, is_training=is_training)


@contextmanager
def explained_text(X: Any, *, is_training: bool) -> Iterator[None]:
    """Say which column has text, and what to do, where scikit-learn says it is not a number."""
    try:
        yield
    except TypeError as error:
        if not str(error).startswith(("float()", "int()")):
            raise
        raise TypeError(f"X must hold numbers or categories: {error}.") from error
    except ValueError as error:
        found = look_up_text(X)
        if found is None:
            raise
        column, text = found
        remedy = (
            "name it in categorical_features"
            if is_training
            else "the training rows had numbers there"
        )
        raise ValueError(f"X has text in column {column}, such as {text!r}; {remedy}.") from error
