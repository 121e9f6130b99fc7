"""What the classifiers read: arrays, frames and sparse tables, checked and encoded."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from lhtree import _core
from lhtree.data import sparse
from lhtree.data.columns import Columns, DefaultNames, find_columns
from lhtree.data.frames import (
    check_dates,
    check_labels,
    check_present,
    find_text,
    is_frame,
    is_numeric,
    show_gaps,
    show_names,
)  # fmt: skip
from lhtree.data.weights import resolve_sample_weight
from lhtree.estimators import params

SMALL_INPUT = 2**16  # numbers; for more, scikit-learn's own checks are as fast


@contextmanager
def explained_text(X, *, is_training):
    """Say which column has text, and what to do, where scikit-learn says that it is no number."""
    try:
        yield
    except TypeError as error:
        if not str(error).startswith(("float()", "int()")):
            raise
        raise TypeError(f"X must hold numbers or categories: {error}.") from error
    except ValueError as error:
        found = find_text(X)
        if found is None:
            raise
        place, text = found
        remedy = (
            "name it in categorical_features"
            if is_training
            else "the training rows had numbers there"
        )
        raise ValueError(f"X has text in column {place}, such as {text!r}; {remedy}.") from error


class RowReader:
    """Reads the rows of a classifier; a fit sets `columns_`."""

    columns_: Columns
    n_features_in_: int
    categorical_features: object
    max_categories: int | None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _validate(self, X, *y, reset=False, sample_weight=None):
        """Return the table that the trees see, in C order, and `y`.

        NaN stays where a value is missing; what is so already is not copied. The weights
        are those of training rows, by which categories are counted.
        """
        if hasattr(type(X), "collect"):  # of the type: a frame has its columns as attributes
            raise TypeError(f"X must be in memory, got a {type(X).__name__}; call its collect().")
        sparse.check_format(X)
        X = show_gaps(X)
        check_dates("X", X)
        for labels in y:
            check_present("y", labels)
        options = {
            "dtype": [np.float64, np.float32],
            "order": "C",
            "ensure_all_finite": "allow-nan",
            "accept_sparse": ["csr", "csc", "coo"],
        }
        if self._needs_encoding(X, reset):
            table = self._encode(X, reset, sample_weight)
            check = check_X_y if y else check_array
            checked = check(table, *y, **options, estimator=self)
        else:
            with explained_text(X, is_training=reset):
                checked = validate_data(self, X, *y, **options, reset=reset)
            if reset:
                self.columns_ = Columns(self.n_features_in_)
        rows, *labels = checked if y else (checked,)
        for label in labels:
            check_labels(label)
        if rows.shape[0] > params.MOST_ROWS:
            raise ValueError(f"X must have at most {params.MOST_ROWS} rows, got {rows.shape[0]}.")
        rows = sparse.to_rows(rows) if issparse(rows) else np.require(rows, requirements="A")
        if reset and issparse(rows):
            sparse.check_present(rows)
            self.columns_ = Columns(self.n_features_in_, kept=sparse.find_kept(rows))
        rows = self.columns_.keep(rows)
        return (rows, *labels) if y else rows

    def _needs_encoding(self, X, is_training):
        """Whether columns must be read one by one: there may be categories among them."""
        is_asked = self.categorical_features is not None and not (
            isinstance(self.categorical_features, str)
            and self.categorical_features == "from_dtype"
        )
        is_told = is_asked if is_training else bool(self.columns_.categories)
        return is_told or (is_frame(X) and not is_numeric(X))

    def _encode(self, X, is_training, sample_weight):
        if not is_frame(X):
            X = X if hasattr(X, "dtype") else np.asarray(X, dtype=object)
            X = check_array(X, dtype=None, ensure_all_finite=False, estimator=self)
        validate_data(self, show_names(X), reset=is_training, skip_check_array=True)
        if is_training:
            self.columns_ = find_columns(
                X,
                self.categorical_features,
                self.max_categories,
                self._name_features(),
                resolve_sample_weight(sample_weight, len(X)),
            )
        return self.columns_.encode(X, self._name_features(), is_training=is_training)

    def _name_features(self):
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return DefaultNames(self.n_features_in_)
        return [str(name) for name in names]

    def encode_rows(self, X):
        """Return the table that the trees see.

        Sparse rows become dense: give a few at a time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            The columns that ``column_names_`` names, in raw units.
        """
        table = self._read_rows(X)
        return table.toarray() if issparse(table) else table

    def _read_rows(self, X):
        """Return the table that the trees see, sparse if `X` is.

        A plain array that needs no change passes at once: for a single row,
        scikit-learn's checks take longer than the answer.
        """
        if not hasattr(self, "columns_"):
            check_is_fitted(self)  # raises
        is_plain = (
            type(X) is np.ndarray
            and X.dtype in (np.float64, np.float32)
            and X.ndim == 2
            and 0 < X.size <= SMALL_INPUT
            and X.shape[1] == self.n_features_in_
            and X.flags.c_contiguous
            and X.flags.aligned
            and self.columns_.is_plain
            and not hasattr(self, "feature_names_in_")
        )
        if is_plain and not _core.has_infinity(X):
            return X
        return self._validate(X)

    @property
    def column_names_(self):
        """Names of the columns that the trees see.

        Returns
        -------
        list of str
            ``feature_names_in_``, or x0, x1, ... where `X` had no names. An indicator of
            a category reads ``column=value``, that of all merged ones ``column=(others)``.
        """
        check_is_fitted(self)
        return self.columns_.name_columns(self._name_features())

    @property
    def column_source_(self):
        """Column of `X` that each column that the trees see is made from.

        Returns
        -------
        ndarray of int64, shape (n_columns,)
            Positions in `X`; the indicators of a category share one.
        """
        check_is_fitted(self)
        return self.columns_.find_source()
