"""What all estimators share: reading rows, and methods that read the fitted trees."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lhtree.data.reading import Encoding, name_features, read_rows, read_training_rows
from lhtree.data.table import make_table
from lhtree.data.weights import resolve_sample_weight
from lhtree.estimators.params import count_threads, refuse_renamed
from lhtree.training.local import Local

__all__ = ["TreeEstimator", "restored_on_error", "with_callbacks"]

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in for scikit-learn's class in older versions."""

    def with_callbacks(method):
        """Return the method unchanged: this scikit-learn has no callbacks.

        Parameters
        ----------
        method : function
            The method ``fit``.

        Returns
        -------
        function
            The same method.
        """
        return method


@contextmanager
def restored_on_error(estimator):
    """Leave the estimator as it was if the block raises.

    Parameters
    ----------
    estimator : estimator
        The estimator that the block changes.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class TreeEstimator(CallbackSupportMixin, BaseEstimator):
    """Base class: the model is `forest_`, grown from the columns that `columns_` describes.

    Parameters
    ----------
    *args, **kwargs : object
        Parameters of the estimator.
    """

    def __new__(cls, *args, **kwargs):
        """Refuse the names that parameters had before version 0.2."""
        refuse_renamed(kwargs)
        return super().__new__(cls)

    def set_params(self, **params):
        """Set parameters, as in any scikit-learn estimator.

        Parameters
        ----------
        **params : dict
            Values by name.

        Returns
        -------
        object
            The estimator itself.
        """
        refuse_renamed(params)
        return super().set_params(**params)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _read_training(
        self,
        X,
        y,
        sample_weight,
        params,
        *,
        learns_columns,
        has_codes=False,
        y_numeric=False,
        order="C",
    ):
        """Return checked rows, targets and weights for a local fit."""
        encoding = Encoding(
            params.categorical_features, params.max_categories, sample_weight, has_codes
        )
        rows, y = read_training_rows(
            self,
            X,
            y,
            encoding,
            learns_columns=learns_columns,
            y_numeric=y_numeric,
            order=order,
        )
        return rows, y, resolve_sample_weight(sample_weight, rows.shape[0])

    def _make_local(self, rows, y, weight, params):
        """Return the backend for a fit in this process."""
        table, target = make_table(rows, y, weight)
        is_named = hasattr(self, "feature_names_in_") or not self.columns_.is_plain
        return Local(
            table,
            target,
            names=self.columns_.name_columns(name_features(self)) if is_named else None,
            is_indicator=self.columns_.list_indicators(),
            n_threads=params.n_threads,
        )

    def encode_rows(self, X):
        """Return the table that the trees see.

        Sparse rows become dense: pass a few at a time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            The columns that ``column_names_`` names, in raw units.
        """
        table = read_rows(self, X)
        return table.toarray() if issparse(table) else table

    @property
    def column_names_(self):
        """Names of the columns that the trees see.

        Returns
        -------
        list of str
            ``feature_names_in_``, or x0, x1, ... where `X` had no names. An indicator of
            a category reads ``column=value``, that of the merged ones ``column=(others)``.
        """
        check_is_fitted(self)
        return self.columns_.name_columns(name_features(self))

    @property
    def column_source_(self):
        """Position in `X` of the column behind each column that the trees see.

        Returns
        -------
        ndarray of int64, shape (n_columns,)
            Positions in `X`; the indicators of one column share a position.
        """
        check_is_fitted(self)
        return self.columns_.list_sources()

    @property
    def trees_(self):
        """Trees of all estimators, ordered by estimator, then class.

        Returns
        -------
        list of lhtree.Tree
            ``tree.positive_class`` is the index of the class that the tree votes for.
        """
        check_is_fitted(self)
        return list(self.forest_)

    def apply(self, X):
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of int64, shape (n_samples, n_trees)
            Node numbers within each tree of ``trees_``.
        """
        rows = read_rows(self, X)
        return self.forest_.apply(rows, n_threads=count_threads(self.n_jobs))

    def decision_path(self, X):
        """Return the nodes on the path of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        indicator : sparse matrix of shape (n_samples, n_nodes)
            Nonzero where a row passes a node; the columns are the nodes of one tree
            after another.
        n_nodes_ptr : ndarray of shape (n_trees + 1,)
            Columns ``n_nodes_ptr[k]:n_nodes_ptr[k + 1]`` belong to tree ``k``.
        """
        leaf = self.apply(X)
        start, parent = self.forest_.tree_start, self.forest_.compute_parents()
        row = np.repeat(np.arange(len(leaf)), leaf.shape[1])
        node = (leaf + start[:-1]).ravel()
        rows, nodes = [], []
        while len(node):
            rows.append(row)
            nodes.append(node)
            is_inner = parent[node] >= 0
            row, node = row[is_inner], parent[node[is_inner]]
        if not rows:  # there is no tree
            return csr_matrix((len(leaf), 0), dtype=np.int64), start.copy()
        row, node = np.concatenate(rows), np.concatenate(nodes)
        shape = len(leaf), int(start[-1])
        return csr_matrix((np.ones(len(node), dtype=np.int64), (row, node)), shape), start.copy()

    def get_depth(self):
        """Return the number of splits on the longest path of any tree.

        Returns
        -------
        int
            Depth of the deepest tree.
        """
        check_is_fitted(self)
        return int(self.forest_.compute_depth().max(initial=0))

    def get_n_leaves(self):
        """Return the number of leaves of all trees.

        Returns
        -------
        int
            Sum over ``trees_``.
        """
        check_is_fitted(self)
        return int(np.count_nonzero(self.forest_.left < 0))

    @property
    def feature_importances_(self):
        """How strongly the splits rely on each feature.

        In each split a feature counts ``|weight| * std`` over the rows of the split,
        normalised to sum to one over the features. Splits count by the weighted fraction
        of rows that reach them, and each tree is normalised to sum to one. The result is
        the mean over all trees with a split. A category counts as the sum of its
        indicators.

        Returns
        -------
        ndarray of shape (n_features,)
            Sums to one, or all zeros if no tree has a split.
        """
        check_is_fitted(self)
        importance = self.forest_.compute_importances()
        return np.bincount(self.column_source_, importance, self.n_features_in_)
