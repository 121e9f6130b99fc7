"""A fitted model as explanations see it, whatever it is made of.

:func:`view_model` returns what models of floating-point trees
(:mod:`lhtree.explain.forest_view`) and those of the exact engine
(:mod:`lhtree.explain.boosted_view`) have in common.
"""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.estimators import lookup
from lhtree.explain.boosted_view import BoostedView
from lhtree.explain.forest_view import ForestView
from lhtree.explain.scores import Projections, Scores, SplitFacts, SplitTerms
from lhtree.model.link import is_exact


class ModelView(Protocol):
    """What explanations need of a fitted model.

    The *scores* of a row are what is explained: votes of trees and forests, raw scores of
    boosted models. Columns are those that the trees see. Paths and close views of splits are
    for models whose trees each vote for one class.
    """

    model: Any
    start_name: str  # what the scores start from, in words
    score_name: str  # what they are, in one or two words
    preposition: str  # between the name of the score and the class
    output_names: tuple[str, ...]  # the same, one by one: those of the classes, or of numbers
    importance_name: str  # what importances are fractions of, of all trees
    class_importance_name: str  # and by class
    n_estimators: int
    classes: NDArray[Any] | None  # labels; None for numbers
    codes: tuple[tuple[str, ...], ...]  # names of categories by column, where columns hold codes
    is_number: NDArray[np.bool_]  # which columns are numbers
    margin: float  # by which a standardised row lies surely on its side of a hyperplane

    @property
    def column_std(self) -> Floats:
        """Size of a step of one in each column, in raw units."""

    def standardize(self, table: NDArray[Any]) -> Floats:
        """Return encoded rows in units of `column_std`; NaN stays where a value is missing."""

    def predict_encoded(self, table: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of the class that the model predicts for encoded rows."""

    def predict_number(self, table: NDArray[Any]) -> Floats:
        """Return the number that the model predicts for encoded rows; of several, the middle."""

    def explain(self, table: NDArray[Any]) -> Scores:
        """Return base, contributions and scores of encoded rows."""

    def compute_class_importances(self) -> Floats:
        """Return how strongly the score of each class relies on each column."""

    @property
    def can_be_proven(self) -> bool:
        """Whether the nearest change of class can be proven."""

    def compute_functions(self, node: Ints, z: Floats) -> tuple[Floats, Floats]:
        """Return slopes by column, and values for a standardised row, of some splits."""

    def name_tree(self, tree: Any) -> str:
        """Return a short name of a tree."""

    def list_trees(self, estimator: int) -> list[Any]:
        """Return the trees of an estimator; a boosted tree is one of its own."""

    def get_class(self, tree: Any) -> int:
        """Return the index of the class that a tree of a forest of classes votes for."""

    def list_terms(self, tree: Any) -> SplitTerms:
        """Return the terms of all splits of a tree."""

    def read_shares(self, tree: Any) -> Floats:
        """Return the fraction of its class in the nodes of a tree that votes for one."""

    def divide_projections(self, tree: Any, node: Ints, Z: Floats) -> Projections:
        """Return what each column adds to the projections of rows at some splits."""

    def divide_leaf(self, tree: Any, leaf: int, Z: Floats) -> Floats:
        """Return what each column adds to the membership of rows in a leaf, before clipping."""

    def look_at_split(self, tree: Any, node: int, Z: Floats) -> SplitFacts:
        """Return what a split of a tree that votes does to standardised rows."""


def view_model(model: Any) -> ModelView:
    """Return the view of a fitted model; refuse anything else."""
    lookup.check_model(model)
    if is_exact(model):
        return BoostedView(model)
    return ForestView(model)


def look_up_output(view: ModelView, class_label: Any) -> int:
    """Return which of the scores is meant: that of a class; of numbers, the one in the middle."""
    if view.classes is not None:
        return lookup.look_up_class(view.model, class_label)
    if class_label is not None:
        raise ValueError(
            f"class_label={class_label!r} is for classifiers, and this model predicts numbers; "
            "leave it out."
        )
    return len(view.output_names) // 2


def sum_by_feature(value: Floats, source: Ints, n_features: int) -> Floats:
    """Add up the numbers of each feature's columns, along the last axis."""
    total = np.zeros((*value.shape[:-1], n_features))
    for j, feature in enumerate(source):
        total[..., feature] += value[..., j]
    return total


def encode_row(model: Any, row: Any) -> Floats:
    """Return one row as the trees see it; an array may lack the names that the model knows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        table = model.encode_rows(row)
    encoded: Floats = np.asarray(table, dtype=np.float64)[0]
    return encoded
