"""What a fitted classifier answers: votes, probabilities, labels, leaves."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from lhtree.estimators import params
from lhtree.estimators.reader import RowReader
from lhtree.model.forest import Forest, list_targets
from lhtree.model.prediction import find_scores, normalize_scores
from lhtree.training import calibration


class FittedTrees(RowReader, ClassifierMixin, BaseEstimator):
    """Members with one tree per class each, or one for two classes, that can be asked."""

    classes_: np.ndarray
    n_classes_: int
    forest_: Forest

    @property
    def _n_members(self):
        return len(self.forest_) // len(list_targets(self.n_classes_))

    def _vote(self, X, left_out=None):
        return self.forest_.vote(X, left_out=left_out, **self._describe_vote())

    def _describe_vote(self):
        """Return how the trees are asked for votes."""
        params.check_voting(self.voting)
        return {
            "n_classes": self.n_classes_,
            "by_margin": self.voting == "margin",
            "n_trees_per_member": len(self.forest_) // self._n_members,
            "n_threads": params.count_threads(self.n_jobs),
        }

    def _find_probabilities(self, sums, n_members):
        """Return the shares of the votes, whose order decides the label."""
        return normalize_scores(find_scores(sums, n_members, by_margin=self.voting == "margin"))

    def _normalize(self, score):
        """Return probabilities, calibrated if they are to be."""
        if self.voting == "margin":  # its votes have no scale
            return normalize_scores(score)
        return normalize_scores(score, *getattr(self, "calibration_", calibration.PLAIN))

    def predict_proba(self, X):
        """Return the share of the votes that each class gets, calibrated if asked for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``; rows sum to one.
        """
        sums = self._vote(self._read_rows(X))
        by_margin = self.voting == "margin"
        return self._normalize(find_scores(sums, self._n_members, by_margin=by_margin))

    def predict_log_proba(self, X):
        """Return the logarithm of the class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of :meth:`predict_proba`.
        """
        return np.log(self.predict_proba(X))

    def predict(self, X):
        """Return the most probable class of each row, the first of equal ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        share = self._find_probabilities(self._vote(self._read_rows(X)), self._n_members)
        return self.classes_[share.argmax(axis=1)]

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
        rows = self._read_rows(X)
        return self.forest_.apply(rows, n_threads=params.count_threads(self.n_jobs))

    def decision_path(self, X):
        """Return the nodes that each row passes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        indicator : sparse matrix of shape (n_samples, n_nodes)
            Nonzero where a row passes a node; the nodes of all trees one after
            the other.
        n_nodes_ptr : ndarray of shape (n_trees + 1,)
            Columns ``n_nodes_ptr[k]:n_nodes_ptr[k + 1]`` belong to tree ``k``.
        """
        leaf = self.apply(X)
        start, parent = self.forest_.tree_start, self.forest_.find_parent()
        row = np.repeat(np.arange(len(leaf)), leaf.shape[1])
        node = (leaf + start[:-1]).ravel()
        rows, nodes = [], []
        while len(node):
            rows.append(row)
            nodes.append(node)
            is_inner = parent[node] >= 0
            row, node = row[is_inner], parent[node[is_inner]]
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
        return int(self.forest_.find_depth().max())

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
    def n_estimators_(self):
        """Number of members grown.

        Returns
        -------
        int
            What `n_estimators` came to.
        """
        check_is_fitted(self)
        return self._n_members

    @property
    def trees_(self):
        """Trees of all members, ordered by member, then class.

        Returns
        -------
        list of lhtree.Tree
            ``tree.target`` is the index of the class that a tree votes for.
        """
        check_is_fitted(self)
        return list(self.forest_)

    @property
    def feature_importances_(self):
        """How strongly the splits rely on each feature.

        In each split a feature counts ``|weight| * deviation`` (in the split's rows),
        normalised to sum one over the features; splits count by the weighted share of
        rows that reach them; each tree is normalised to sum one; trees without a split
        are left out; the rest is averaged. A category counts what its indicators count
        together.

        Returns
        -------
        ndarray of shape (n_features,)
            Sums to one, or all zeros if no tree has a split.
        """
        check_is_fitted(self)
        importance = self.forest_.find_importances()
        return np.bincount(self.column_source_, importance, self.n_features_in_)
