"""The estimators of a cluster: those of one process, fitted where the rows are."""

from __future__ import annotations

import inspect
from typing import Any

import dask.array as da
import numpy as np
from sklearn.utils.validation import check_is_fitted

from lhtree import estimators as local
from lhtree.dask.backend import DaskBackend
from lhtree.dask.cluster import Cluster, get_current_client
from lhtree.dask.partitions import check_table, is_array, is_frame, list_partitions
from lhtree.data.columns import Columns
from lhtree.estimators.base import restored_on_error, with_callbacks
from lhtree.estimators.docstrings import describe
from lhtree.estimators.fit import fit_trees
from lhtree.estimators.forest import OWN_TEXTS
from lhtree.estimators.params import Params, check_integer
from lhtree.training.progress import Progress

REFUSED = {
    "categorical_features": "encode categories first",
    "warm_start": "add estimators on one machine, with to_local()",
    "oob_score": "score rows that were kept apart",
    "calibration": "calibrate the classifier of to_local() on rows that were kept apart",
    "max_bins": "a cluster looks at all cuts",
    "monotonic_cst": "fit on one machine",
    "interaction_cst": "fit on one machine",
}


def add_row_limit(cls):
    """Give a class the parameters of its local base, and `row_limit`."""
    base = inspect.signature(cls._local.__init__)
    limit = inspect.Parameter("row_limit", inspect.Parameter.KEYWORD_ONLY, default=None)

    def __init__(self, *args, row_limit=None, **kwargs):
        cls._local.__init__(self, *args, **kwargs)
        self.row_limit = row_limit

    own = base.replace(parameters=[*base.parameters.values(), limit])
    __init__.__signature__ = own  # type: ignore[attr-defined]
    cls.__init__ = __init__
    return cls


class OnCluster:
    """What fitting and predicting on a cluster add to a classifier."""

    # What the classifier beside it has.
    _local: Any
    _keep: Any
    get_params: Any
    classes_: Any
    n_classes_: int
    forest_: Any
    row_limit: Any

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Grow the trees on the workers of the current client.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            Training rows: finite numbers. Chunks of an array hold whole rows, and
            their sizes are known.
        y : dask array or dask series of shape (n_samples,)
            Class labels, in the same partitions.
        sample_weight : dask array or dask series of shape (n_samples,), default=None
            Weights of the rows, as in a local fit.

        Returns
        -------
        object
            The fitted classifier itself.
        """
        params = Params.read(self)
        self._check_refused()
        if self.row_limit is not None:
            wanted = "an integer of at least 1, or None for what the memory of a worker allows"
            check_integer("row_limit", self.row_limit, wanted, low=1)
        table = check_table(X)
        list_partitions(table, y, sample_weight)  # refuses what does not fit before work starts
        cluster = Cluster(get_current_client())
        progress = Progress(self, params.limit_estimators(0), is_verbose=bool(params.verbose))
        try:
            with restored_on_error(self):
                given, is_held = cluster.persist_if_small(table, y, sample_weight)
                partitions = list_partitions(*given)
                cluster.divide(partitions, is_held=is_held)
                backend = DaskBackend(
                    cluster, partitions, self._learn_columns(given[0]),
                    row_limit=self.row_limit, is_verbose=bool(params.verbose),
                )  # fmt: skip
                self.n_features_in_ = backend.n_columns
                self.columns_ = Columns(backend.n_columns)
                fitted, _ = fit_trees(backend, params, None, progress)
                self._keep(fitted)
                self.growth_ = backend.describe()
        finally:
            cluster.free()
        progress.end()
        return self

    def _check_refused(self):
        for name, remedy in REFUSED.items():
            value = getattr(self, name, None)
            default = inspect.signature(type(self)).parameters.get(name)
            is_default = default is not None and _is_same(value, default.default)
            if value is not None and value is not False and not is_default:
                raise ValueError(
                    f"{name}={value!r} is not supported on a cluster; leave it at its default and "
                    f"{remedy}."
                )

    def _learn_columns(self, table):
        """Set the names of the columns, and return them."""
        names = _list_names(table)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        return names

    def to_local(self):
        """Return the plain classifier with the same trees.

        Returns
        -------
        object
            A classifier of ``lhtree`` itself, fitted; it predicts arrays in memory.
        """
        check_is_fitted(self)
        given = {name: value for name, value in self.get_params().items() if name != "row_limit"}
        model = self._local(**given)
        state = {
            name: value for name, value in vars(self).items() if name not in self.get_params()
        }
        state.pop("growth_", None)
        vars(model).update(state)
        return model

    def _predict(self, method, X, n_outputs, dtype, names):
        """Return a lazy collection of what the local classifier returns for each partition."""
        check_is_fitted(self)
        if not is_array(X) and not is_frame(X):
            return getattr(self.to_local(), method)(X)
        table, model = check_table(X), self.to_local()
        if is_frame(X):
            meta = _make_frame(np.empty((0, n_outputs) if n_outputs else 0, dtype), None, names)
            return table.map_partitions(_predict_frame, model, method, names, meta=meta)
        if n_outputs is None:
            return table.map_blocks(
                _predict_block, model, method, None, dtype, drop_axis=1, dtype=dtype,
                meta=np.empty(0, dtype),
            )  # fmt: skip
        chunks = (table.chunks[0], (n_outputs,))
        return table.map_blocks(
            _predict_block, model, method, n_outputs, dtype, chunks=chunks, dtype=dtype,
            meta=np.empty((0, 0), dtype),
        )  # fmt: skip

    def predict(self, X):
        """Return the most probable class of each row.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        dask array or dask series of shape (n_samples,)
            Labels from ``classes_``, lazily. An array in memory is predicted at once.
        """
        check_is_fitted(self)
        return self._predict("predict", X, None, self.classes_.dtype, "prediction")

    def predict_proba(self, X):
        """Return the probability of each class.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        dask array or dask dataframe of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``, lazily.
        """
        check_is_fitted(self)
        return self._predict(
            "predict_proba", X, self.n_classes_, np.dtype(np.float64), self.classes_.tolist()
        )

    def predict_log_proba(self, X):
        """Return the logarithm of the class probabilities.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        dask array or dask dataframe of shape (n_samples, n_classes)
            Logarithms of :meth:`predict_proba`, lazily.
        """
        return np.log(self.predict_proba(X))

    def apply(self, X):
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        dask array or dask dataframe of shape (n_samples, n_trees)
            Node numbers within each tree of ``trees_``, lazily.
        """
        check_is_fitted(self)
        n_trees = len(self.forest_)
        return self._predict("apply", X, n_trees, np.dtype(np.int64), list(range(n_trees)))

    def score(self, X, y, sample_weight=None):
        """Return the fraction of rows whose class is predicted.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            Rows with the columns of the training data.
        y : dask array or dask series of shape (n_samples,)
            Their classes.
        sample_weight : dask array or dask series of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            The (weighted) accuracy.
        """
        predicted = self.predict(X)
        if not is_array(predicted) and not is_frame(predicted):
            return self.to_local().score(X, y, sample_weight)
        is_right = _to_values(predicted) == _to_values(y)
        if sample_weight is None:
            return float(is_right.mean().compute())
        weight = _to_values(sample_weight)
        right, total = da.compute((is_right * weight).sum(), weight.sum())
        return float(right / total)


def _is_same(value, default):
    return value is default or (isinstance(value, str) and value == default)


def _to_values(column):
    return column.values if is_frame(column) else column


def _list_names(table):
    """Return the names of a dataframe's columns; refuse columns that are not numbers."""
    if is_array(table):
        return None
    for name, dtype in table.dtypes.items():
        if getattr(dtype, "kind", "O") not in "fiub":
            raise TypeError(
                f"X must hold numbers, got dtype {dtype} in column {name!r}; encode it first, "
                "or use lhtree's local classifiers."
            )
    names = list(table.columns)
    return names if all(isinstance(name, str) for name in names) else None


def _predict_block(block, model, method, n_outputs, dtype):
    if len(block) == 0:
        return np.empty(0 if n_outputs is None else (0, n_outputs), dtype)
    return getattr(model, method)(block)


def _make_frame(values, index, names):
    import pandas as pd

    if values.ndim == 1:
        return pd.Series(values, index=index, name=names)
    return pd.DataFrame(values, index=index, columns=names)


def _predict_frame(frame, model, method, names):
    n_outputs = None if isinstance(names, str) else len(names)
    if len(frame) == 0:
        dtype = {"predict": model.classes_.dtype, "apply": np.int64}.get(method, np.float64)
        return _make_frame(
            np.empty(0 if n_outputs is None else (0, n_outputs), dtype), frame.index, names
        )
    return _make_frame(getattr(model, method)(frame), frame.index, names)


@describe()
@add_row_limit
class LHTClassifier(OnCluster, local.LHTClassifier):
    """One oblique tree per class, grown on the rows of a Dask cluster.

    It takes the parameters of :class:`lhtree.LHTClassifier`, with the same defaults, and
    grows the same trees; see :class:`lhtree.dask.LHForestClassifier`.

    Parameters
    ----------
    {parameters}

    See Also
    --------
    lhtree.LHTClassifier : The same for rows in memory; explains the parameters.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_wine
    >>> from lhtree.dask import LHTClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     X, y = da.from_array(X, (50, 13)), da.from_array(y, 50)
    ...     model = LHTClassifier().fit(X, y)
    ...     model.score(X, y)
    1.0
    """

    _local = local.LHTClassifier


@describe(**OWN_TEXTS)
@add_row_limit
class LHForestClassifier(OnCluster, local.LHForestClassifier):
    """Estimators of one oblique tree per class, grown on the rows of a Dask cluster.

    It takes the parameters of :class:`lhtree.LHForestClassifier`, with the same defaults,
    and one more. All presets grow on the engine of version 0.1, on which a local fit grows with
    ``preset="paper"`` only; the trees are those of such a local fit. Nodes with more than
    `row_limit` rows grow in rounds, from sums that merge over the partitions; the rows of
    smaller nodes come together on one worker each, which finishes them. The client sees no row.

    Sums are merged in the order of the partitions. Where they are exact (small integers,
    ``standardize=False``) the trees are the same bit for bit; elsewhere rounding may
    decide between equally good splits. Gini cuts of nodes above `row_limit` come from
    histograms of the projections, which are refined where the best cut may lie; that is
    exact unless more than 1,024 of them share a 2**18-th part of their range.

    `warm_start`, `oob_score`, `calibration`, `max_bins`, `monotonic_cst` and `interaction_cst`
    are not supported on a cluster, nor are missing values and categories: they are refused.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    growth_ : dict of int
        How the trees grew: ``n_rounds``, ``n_passes`` over the partitions, ``n_bytes`` of
        merged statistics, and the ``row_limit`` in use.

    See Also
    --------
    lhtree.LHForestClassifier : The same for rows in memory; explains the parameters.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_wine
    >>> from lhtree.dask import LHForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     X, y = da.from_array(X, (50, 13)), da.from_array(y, 50)
    ...     model = LHForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    ...     model.predict_proba(X).compute().shape
    (178, 3)
    """

    _local = local.LHForestClassifier
