"""How much each feature adds to the votes for a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats
from lhtree.data.reading import name_features
from lhtree.estimators import lookup
from lhtree.estimators.params import count_threads
from lhtree.explain import model_view
from lhtree.explain.paths import Path, trace_paths


@dataclass(frozen=True, eq=False)
class Explanation:
    """How much each column adds to the votes for some rows.

    ``base + contribution.sum(axis=-1)`` is ``vote``.

    Parameters
    ----------
    base : ndarray of float64, shape (n_classes,)
        Vote for each class before anything is known of a row: the fraction of training
        rows that belong to it, at the roots.
    contribution : ndarray of float64, shape (n_rows, n_classes, n_columns)
        How much each column adds to the vote for each class.
    vote : ndarray of float64, shape (n_rows, n_classes)
        Mean membership over the trees of each class.
    column_names : list of str
        Names of the columns: those that the trees see, ``model.column_names_``.
    classes : ndarray of shape (n_classes,)
        Class labels.
    feature_names : list of str
        Names of the features of `X`; a category has one feature and many columns.
    source : ndarray of int64, shape (n_columns,)
        Position in `feature_names` of the feature that each column is made from.
    table : ndarray of shape (n_rows, n_columns), or None
        The rows as the trees see them, in raw units; None after :meth:`by_feature`.
    paths : tuple of tuple of Path, or None
        ``paths[i][k]`` is the path of row i through tree k; None unless requested.
    """

    base: Floats
    contribution: Floats
    vote: Floats
    column_names: list[str]
    classes: NDArray[Any]
    feature_names: list[str]
    source: NDArray[np.int64]
    table: NDArray[Any] | None = None
    paths: tuple[tuple[Path, ...], ...] | None = None

    def by_feature(self) -> Explanation:
        """Return the same explanation with the columns of each feature added up.

        Returns
        -------
        Explanation
            Its columns are the features of `X`; it has no paths.
        """
        n_features = len(self.feature_names)
        return replace(
            self,
            contribution=model_view.sum_by_feature(self.contribution, self.source, n_features),
            column_names=list(self.feature_names),
            source=np.arange(n_features),
            table=None,
            paths=None,
        )


def explain_rows(model: Any, X: Any, *, paths: bool = False) -> Explanation:
    """Return how much each column adds to the votes for each row.

    Every tree starts from its value at the root: the fraction of training rows in its
    positive class. At each split on the path of a row the value changes, and the change is
    divided among the columns of the split in proportion to
    ``|weight * (x - mean of the split's rows)|``. The leaf adds its linear terms, and what
    clipping to [0, 1] cuts off is divided in the same proportion. A missing value gets
    nothing. Only if all these products are 0 (the row lies at the mean, or all its values
    are missing), the change is divided in proportion to ``|weight|``. So the sum over the
    columns leads from ``base`` to ``vote`` exactly; for forests both are averages over the
    trees.

    Parameters
    ----------
    model : LHTClassifier or LHForestClassifier
        A fitted model.
    X : array-like of shape (n_rows, n_features)
        Rows with the columns of the training data.
    paths : bool, default=False
        Whether to return the path of each row through each tree; paths are large.

    Returns
    -------
    Explanation
        Base values, contributions and votes.

    Notes
    -----
    The vote is the mean membership over the trees of a class. ``predict_proba`` starts
    from it: it adds the tie-break, divides by the sum over classes, and applies
    calibration if the model has one. A model with ``voting="margin"`` weighs the
    memberships by distances when it predicts; this function explains the plain vote.

    With two classes, only the second has trees: the numbers of the first mirror its.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.explain import explain_rows
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> explanation = explain_rows(LHTClassifier().fit(X, y), X.iloc[:1])
    >>> float(explanation.base[0].round(3)), float(explanation.vote[0, 0])
    (0.331, 1.0)
    >>> explanation.column_names[explanation.contribution[0, 0].argmax()]
    'alcohol'
    """
    lookup.check_is_forest(model)
    if not isinstance(paths, bool | np.bool_):
        raise ValueError(f"paths must be True or False, got {paths!r}.")
    table = model.encode_rows(X)
    forest, n_classes = model.forest_, model.n_classes_
    n_estimators = model.n_estimators_
    n_threads = count_threads(model.n_jobs)
    vote, contribution = forest.explain(table, n_classes=n_classes, n_threads=n_threads)
    root = forest.tree_start[:-1]
    base: Floats = np.bincount(forest.positive_class, forest.value[root], n_classes) / n_estimators
    vote /= n_estimators
    contribution /= n_estimators
    if n_classes == 2:  # only the trees of the second class exist
        base[0], vote[:, 0] = 1 - base[1], 1 - vote[:, 1]
        contribution[:, 0] = -contribution[:, 1]
    return Explanation(
        base=base,
        contribution=contribution,
        vote=vote,
        column_names=list(model.column_names_),
        classes=model.classes_,
        feature_names=list(name_features(model)),
        source=model.column_source_,
        table=table,
        paths=trace_paths(model, table) if paths else None,
    )
