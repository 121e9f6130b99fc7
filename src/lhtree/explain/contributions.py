"""How much each feature adds to the votes for a row, or to its raw scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats
from lhtree.data.reading import name_features
from lhtree.estimators import lookup
from lhtree.explain import model_view
from lhtree.explain.paths import Path, trace_paths


@dataclass(frozen=True, eq=False)
class Explanation:
    """How much each column adds to the scores of some rows.

    ``base + contribution.sum(axis=-1)`` is ``score``: of trees and forests the votes for the
    classes, of boosted models the raw scores. With two classes, the numbers of the first
    mirror those of the second. A model of numbers has one output instead of classes. What is
    said of the scores of boosted models holds for forests of numbers, too, whose scores are
    means over trees.

    Parameters
    ----------
    base : ndarray of float64, shape (n_classes,)
        Score before anything is known of a row: of trees and forests the fraction of
        training rows that belong to the class, at the roots; of boosted models the mean
        score, by the training rows of each tree.
    contribution : ndarray of float64, shape (n_rows, n_classes, n_columns)
        How much each column adds to the score of each class.
    score : ndarray of float64, shape (n_rows, n_classes)
        Of trees and forests the mean membership over the trees of each class; of boosted
        models what ``decision_function`` returns, or before its link ``predict``.
    output_names : tuple of str
        What each score is, in words.
    column_names : list of str
        Names of the columns: those that the trees see, ``model.column_names_``.
    classes : ndarray of shape (n_classes,), or None
        Class labels; None for a model of numbers.
    feature_names : list of str
        Names of the features of `X`; where leaves are not constant (see
        :func:`explain_rows`), a category has one feature and many columns.
    source : ndarray of int64, shape (n_columns,)
        Position in `feature_names` of the feature that each column is made from.
    codes : tuple of tuple of str
        Where leaves are constant, the names of the codes of each column of categories.
    table : ndarray of shape (n_rows, n_columns), or None
        The rows as the trees see them, in raw units; None after :meth:`by_feature`.
    paths : tuple of tuple of Path, or None
        ``paths[i][k]`` is the path of row i through tree k; None unless requested.
    """

    base: Floats
    contribution: Floats
    score: Floats
    output_names: tuple[str, ...]
    column_names: list[str]
    classes: NDArray[Any] | None
    feature_names: list[str]
    source: NDArray[np.int64]
    codes: tuple[tuple[str, ...], ...] = ()
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
            codes=(),
            table=None,
            paths=None,
        )


def explain_rows(model: Any, X: Any, *, paths: bool = False) -> Explanation:
    """Return how much each column adds to the votes, or to the raw scores, of each row.

    Every tree starts from its value at the root. At each split on the path of a row the
    value changes, and the change is divided among the columns of the split, so that the sum
    over the columns leads from ``base`` to ``score`` exactly.

    In an LHTClassifier, and in forests of such trees (``preset="paper"``), the value is the
    fraction of training rows in the tree's positive class. A change is divided in proportion
    to ``|weight * (x - mean of the split's rows)|``. The leaf adds its linear terms, and what
    clipping to [0, 1] cuts off is divided in the same proportion. Forests average over their
    trees.

    In boosted models, in forests of numbers, and in forests of classes by default, leaves are
    constant. The value is what the leaves below add, or in a forest predict, on average over
    the training rows. The change at a split by a single column is that column's. At a
    hyperplane it is divided in proportion to ``|weight * (x - fill)|``; the fill of a term is
    what a missing value counts as: the mean over the rows of the node if the column had gaps
    in training, otherwise over all training rows. All parts are whole steps of the raw score
    (the term with the largest part takes what rounding leaves over), so nothing is lost in the
    sum. A forest divides these sums by its number of trees, which rounds last digits.

    In a hyperplane, a missing value gets nothing. Only if all these products are 0 (the row
    lies at the mean, or all its values are missing), the change is divided in proportion to
    ``|weight|``.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.
    X : array-like of shape (n_rows, n_features)
        Rows with the columns of the training data.
    paths : bool, default=False
        Whether to return the path of each row through each tree of an LHTClassifier or
        LHForestClassifier; paths are large.

    Returns
    -------
    Explanation
        Base values, contributions and scores.

    Notes
    -----
    The vote of trees and forests is the mean membership over the trees of a class.
    ``predict_proba`` starts from it: it adds the tie-break, divides by the sum over classes,
    and applies calibration if the model has one. A model with ``voting="margin"`` weighs the
    memberships by distances when it predicts; this function explains the plain vote.

    The raw score of a boosted model is the log-odds for two classes, a score per class for
    more (probabilities are their softmax), and the prediction for numbers, or its logarithm
    for a loss that predicts positive numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.explain import explain_rows
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> explanation = explain_rows(LHTClassifier().fit(X, y), X.iloc[:1])
    >>> float(explanation.base[0].round(3)), float(explanation.score[0, 0])
    (0.331, 1.0)
    >>> explanation.column_names[explanation.contribution[0, 0].argmax()]
    'alcohol'
    """
    view = model_view.view_model(model)
    if not isinstance(paths, bool | np.bool_):
        raise ValueError(f"paths must be True or False, got {paths!r}.")
    if paths:
        remedy = "decision_path has the nodes that rows pass"
        lookup.check_is_forest(model, "paths=True", remedy)
    table = model.encode_rows(X)
    scores = view.explain(table)
    return Explanation(
        *scores,
        output_names=view.output_names,
        column_names=list(model.column_names_),
        classes=view.classes,
        feature_names=list(name_features(model)),
        source=model.column_source_,
        codes=view.codes,
        table=table,
        paths=trace_paths(view, table) if paths else None,
    )
