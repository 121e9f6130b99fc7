"""What a model relies on: features by class, and pairs of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, triu

from lhtree.arrays import Floats
from lhtree.estimators import lookup
from lhtree.explain import model_view
from lhtree.explain.model_view import ModelView
from lhtree.explain.scores import SplitTerms
from lhtree.explain.splits import to_frame


def class_importances(model: Any) -> Floats:
    """Return how strongly the score of each class relies on each column.

    Parameters
    ----------
    model : classifier of this package
        A fitted model.

    Returns
    -------
    ndarray of shape (n_classes, n_columns)
        Row k is for the class ``classes_[k]``. Of trees, and of forests whose leaves are not
        constant (see :func:`explain_rows`), it is what ``feature_importances_`` is for all
        trees, over the trees of which this is the positive class. Of other models, it is how
        much the splits by each column change the score of the class, in a forest the vote for
        it by its own trees: the mean change, without signs, over the training rows of each
        tree, where a hyperplane's change is divided by its weights. A row sums to one,
        or is all zeros without a split. Columns are those of ``column_names_``. Two classes
        share their trees, so both rows are the same.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.explain import class_importances
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = LHTClassifier(beta=0.5).fit(X, y)
    >>> strongest = class_importances(model).argmax(axis=1)
    >>> [model.column_names_[j] for j in strongest]
    ['proline', 'alcohol', 'color_intensity']
    """
    remedy = "of a model of numbers, feature_importances_ says the same"
    lookup.check_is_classifier(model, "class_importances", remedy)
    return model_view.view_model(model).compute_class_importances()


def interactions(model: Any, *, n_pairs: int | None = None) -> Any:
    """Return how often and how strongly two columns share a split.

    In a split each column counts ``|weight| * std`` (in the split's rows, or in all rows where
    leaves are constant, see :func:`explain_rows`), normalised to sum one over the columns. The
    strength of a pair is the product of the two counts, weighted by the rows that reach the
    split, summed over all splits, and normalised to sum one over all pairs. Splits on a single
    column have no pair.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.
    n_pairs : int, default=None
        How many pairs to return, the strongest first; None returns all.

    Returns
    -------
    pandas.DataFrame or dict of str to ndarray
        A frame if pandas is installed, otherwise its columns: ``feature_1``,
        ``feature_2``, ``n_splits`` (how many splits use both) and ``strength``; the
        strongest pairs come first.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.explain import interactions
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> table = interactions(LHTClassifier(beta=0.5).fit(X, y), n_pairs=3)
    >>> table["feature_1"][0], table["feature_2"][0]
    ('alcohol', 'proline')
    """
    view = model_view.view_model(model)
    if n_pairs is not None:
        lookup.check_number("n_pairs", n_pairs, 1, np.iinfo(np.int64).max)
    first, second, n_splits, strength = _sum_pairs(view)
    order = np.lexsort((second, first, -n_splits, -strength))[:n_pairs]
    name = np.array(model.column_names_, dtype=object)
    return to_frame(
        {
            "feature_1": name[first[order]],
            "feature_2": name[second[order]],
            "n_splits": n_splits[order],
            "strength": strength[order] / (strength.sum() or 1.0),
        }
    )


def _sum_pairs(view: ModelView) -> tuple[NDArray[Any], ...]:
    """Return both columns, number of splits and strength of every pair that shares a split."""
    trees = view.model.forest_
    m = trees.n_features
    count, strength = csr_matrix((m, m)), csr_matrix((m, m))
    for tree in trees:
        importance, is_used, weight = _tabulate_splits(view.list_terms(tree), m)
        weighted = importance.multiply(weight[:, np.newaxis]).tocsr()
        strength = strength + importance.T @ weighted
        count = count + is_used.T @ is_used
    pair = triu(count, k=1, format="coo")
    n_splits = pair.data.astype(np.int64)
    if not len(n_splits):  # scipy has no empty selection of single entries
        return pair.row, pair.col, n_splits, np.empty(0)
    return pair.row, pair.col, n_splits, np.asarray(strength[pair.row, pair.col]).ravel()


def _tabulate_splits(terms: SplitTerms, n_columns: int) -> tuple[csr_matrix, csr_matrix, Floats]:
    """Return each column's importance in each split, which splits use it, and their weights.

    A split weighs the fraction of the tree's rows that reach it.
    """
    size, shape = terms.size, (len(terms.split), n_columns)
    total = np.bincount(terms.row, size, len(terms.split))[terms.row]
    importance = np.divide(size, total, np.zeros(len(size)), where=total > 0)
    place = terms.row, terms.column
    is_used = csr_matrix((np.ones(len(size)), place), shape)
    return csr_matrix((importance, place), shape), is_used, terms.fraction
