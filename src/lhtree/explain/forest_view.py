"""A fitted tree or forest as explanations see it: its units, its votes, its nodes at work."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import LANES, Floats, Ints
from lhtree.estimators.params import count_threads
from lhtree.explain.scores import Projections, Scores, SplitFacts, SplitTerms
from lhtree.explain.wording import name_label
from lhtree.model.forest import Forest
from lhtree.model.prediction import MOST_EXTREME, predict_classes
from lhtree.model.tree import Tree

THRESHOLD_KINDS = ("leaf", "N1", "N2", "N3", "N4", "e", "gini")  # by Forest.threshold_kind


class ForestView:
    """Trees that vote: what is explained are the votes for the classes.

    Parameters
    ----------
    model : LHTClassifier or LHForestClassifier
        A fitted model.
    """

    preposition = "for"  # between the score and the class
    start_name = "fraction in training"
    score_name = "vote"
    importance_name = class_importance_name = "fraction of the splits' strength"
    margin = 1e-7  # by which a row lies surely on its side of a hyperplane
    codes: tuple[tuple[str, ...], ...] = ()  # categories are indicators

    def __init__(self, model: Any) -> None:
        self.model = model
        self.forest: Forest = model.forest_
        self.classes: NDArray[Any] | None = model.classes_
        self.output_names = tuple(f"vote for {label}" for label in model.classes_)
        self.n_estimators = len(self.forest) // model.voting_.n_trees_per_estimator
        self.is_number: NDArray[np.bool_] = ~model.columns_.list_indicators()

    @property
    def column_std(self) -> Floats:
        """Size of a step of one in each column, in raw units."""
        return self.forest.column_std

    def standardize(self, table: NDArray[Any]) -> Floats:
        """Return encoded rows in the units of the trees; NaN stays where a value is missing."""
        return standardize(self.forest, table)

    def predict_encoded(self, table: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of the class that the model predicts for encoded rows."""
        rows, n_threads = np.ascontiguousarray(table), count_threads(self.model.n_jobs)
        voting = self.model.voting_
        return predict_classes(voting.score_rows(self.forest, rows, n_threads=n_threads))

    def predict_number(self, table: NDArray[Any]) -> Floats:
        """Refuse: these trees predict classes."""
        raise TypeError(f"model predicts classes, not the numbers of {len(table)} rows.")

    def explain(self, table: NDArray[Any]) -> Scores:
        """Return base, contributions and votes of encoded rows."""
        model, n_classes = self.model, self.model.n_classes_
        n_threads = count_threads(model.n_jobs)
        vote, contribution = self.forest.explain(table, n_classes=n_classes, n_threads=n_threads)
        root = self.forest.tree_start[:-1]
        total = np.bincount(self.forest.positive_class, self.forest.value[root], n_classes)
        base: Floats = total / model.n_estimators_
        vote /= model.n_estimators_
        contribution /= model.n_estimators_
        if n_classes == 2:  # only the trees of the second class exist
            base[0], vote[:, 0] = 1 - base[1], 1 - vote[:, 1]
            contribution[:, 0] = -contribution[:, 1]
        return Scores(base, contribution, vote)

    def compute_class_importances(self) -> Floats:
        """Return how strongly the trees of each class rely on each column."""
        n_classes = self.model.n_classes_
        importance = np.zeros((n_classes, self.forest.n_features))
        n_trees = np.zeros(n_classes)
        for tree in self.forest:
            if tree.left[0] >= 0:
                importance[tree.positive_class] += tree.compute_importances()
                n_trees[tree.positive_class] += 1
        importance /= np.maximum(n_trees, 1)[:, np.newaxis]
        if n_classes == 2:  # only the trees of the second class exist
            importance[0] = importance[1]
        return importance

    @property
    def can_be_proven(self) -> bool:
        """Whether the nearest change of class can be proven: votes are linear in few cells."""
        return bool(self.model.n_estimators_ == 1 and not self.model.voting_.by_margin)

    def compute_functions(self, node: Ints, z: Floats) -> tuple[Floats, Floats]:
        """Return projection minus threshold of some splits, counted over all trees.

        They are slopes by column, and the values for a standardised row.
        """
        forest, start = self.forest, self.forest.start
        size = start[node + 1] - start[node]
        row = np.repeat(np.arange(len(node)), size)
        term = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size) + start[node][row]
        column = self._column[term]
        weight, center = forest.weight[term], forest.center[term]
        slope = np.zeros((len(node), forest.n_features))
        slope[row, column] = weight
        filled = np.where(np.isnan(z[column]), center, z[column])
        value = np.bincount(row, weight * filled, len(node)) - forest.threshold[node]
        return slope, value

    @cached_property
    def _column(self) -> Ints:
        """Column of every term of the forest."""
        columns: Ints = self.forest.list_columns().astype(np.int64)
        return columns

    def name_tree(self, tree: Tree) -> str:
        """Return a short name of a tree: its class."""
        return name_label(self.model.classes_[tree.positive_class])

    def list_trees(self, estimator: int) -> list[Tree]:
        """Return the trees of an estimator: one per class, or one of two classes."""
        n_trees = self.model.voting_.n_trees_per_estimator
        return [self.forest[estimator * n_trees + k] for k in range(n_trees)]

    def get_class(self, tree: Tree) -> int:
        """Return the index of the class that a tree votes for."""
        return int(tree.positive_class)

    def list_terms(self, tree: Tree) -> SplitTerms:
        """Return the terms of all splits of a tree, and the weights of the splits."""
        split = np.flatnonzero(tree.left >= 0)
        terms = [tree.terms(int(node)) for node in split]
        none = np.empty(0)
        return SplitTerms(
            split=split,
            fraction=tree.weight_sum[split] / tree.weight_sum[0],
            row=np.repeat(np.arange(len(split)), [len(term.feature) for term in terms]),
            column=np.concatenate([none.astype(np.int64), *(term.feature for term in terms)]),
            weight=np.concatenate([none, *(term.weight for term in terms)]),
            size=np.concatenate([none, *(np.abs(term.weight) * term.std for term in terms)]),
        )

    def read_shares(self, tree: Tree) -> Floats:
        """Return the fraction of positive rows in the nodes of a tree, after shrinkage."""
        return tree.value

    def divide_projections(self, tree: Tree, node: Ints, Z: Floats) -> Projections:
        """Return what each column adds to the projections of rows at some splits."""
        contribution = np.zeros((len(Z), len(node), Z.shape[1]))
        constant = np.empty(len(node))
        for step, number in enumerate(node.tolist()):
            feature, added = compute_contributions(tree, number, Z)
            contribution[:, step, feature] = added
            _, weight, center, _ = tree.terms(number)
            constant[step] = weight @ center - tree.threshold[number]
        return Projections(contribution, constant, self.forest.norm[tree.first_node + node])

    def divide_leaf(self, tree: Tree, leaf: int, Z: Floats) -> Floats:
        """Return what each column adds to the membership of rows in a leaf, before clipping."""
        contribution = np.zeros(Z.shape)
        feature, added = compute_contributions(tree, leaf, Z)
        contribution[:, feature] = added
        return contribution

    def look_at_split(self, tree: Tree, node: int, Z: Floats) -> SplitFacts:
        """Return what a split does to standardised rows."""
        return SplitFacts(
            project(tree, node, Z),
            float(tree.threshold[node]),
            tree.extremes[node],
            THRESHOLD_KINDS[tree.threshold_kind[node]],
            int(tree.n_samples[node]),
            float(tree.value[node]),
        )


def standardize(forest: Forest, table: NDArray[Any]) -> Floats:
    """Return encoded rows in the units of the trees; NaN stays where a value is missing."""
    with np.errstate(over="ignore"):
        Z = (table.astype(np.float64) - forest.column_mean) / forest.column_std
    return np.clip(Z, -MOST_EXTREME, MOST_EXTREME)


def compute_contributions(tree: Tree, node: int, Z: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Return the columns of a node's terms and what each adds: weight times (z - center).

    A missing value adds nothing.
    """
    feature, weight, center, _ = tree.terms(node)
    offset = Z[:, feature] - center
    offset[np.isnan(offset)] = 0.0
    with np.errstate(over="ignore"):  # slopes of nearly constant columns, far away
        return feature, offset * weight


def project(tree: Tree, node: int, Z: Floats) -> Floats:
    """Return the projections of rows at a node, added up as the core does, bit for bit."""
    feature, weight, center, _ = tree.terms(node)
    lanes = np.zeros((LANES, len(Z)))
    for j, w, c in zip(feature, weight, center, strict=True):
        lanes[j % LANES] += w * np.where(np.isnan(Z[:, j]), c, Z[:, j])
    halves = lanes[:4] + lanes[4:]
    score: Floats = (halves[0] + halves[2]) + (halves[1] + halves[3])
    return score
