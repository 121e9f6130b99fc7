"""A fitted model of the exact engine as explanations see it: raw scores, on its grids."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.estimators.params import count_threads
from lhtree.explain import linear_splits
from lhtree.explain.linear_splits import STEPS_PER_STD
from lhtree.explain.scores import Projections, Scores, SplitFacts, SplitTerms
from lhtree.explain.wording import name_codes, name_label
from lhtree.model.ensemble import BoostedTree, Ensemble
from lhtree.model.ensemble_splits import (
    HYPERPLANE,
    NUMBER,
    CategorySplit,
    list_fills,
    list_terms,
    sum_changes,
)
from lhtree.model.link import VOTES, read_link
from lhtree.model.prediction import MOST_EXTREME


class BoostedView:
    """Boosted trees, or a forest: what is explained are the raw scores, or the votes.

    Of two classes, the score of the first is minus that of the second, its vote one minus it.

    Parameters
    ----------
    model : LHBoostClassifier, LHBoostRegressor, LHForestClassifier or LHForestRegressor
        A fitted model.
    """

    margin = 4e-6  # above the rounding of values to grids
    can_be_proven = False

    def __init__(self, model: Any) -> None:
        self.model = model
        self.ensemble: Ensemble = model.forest_
        self.link = read_link(model)
        self.classes: NDArray[Any] | None = self.link.classes
        self.codes = name_codes(model.columns_)
        self.is_number: NDArray[np.bool_] = self.ensemble.columns.n_codes == 0
        self.n_estimators = len(self.ensemble) // self.ensemble.n_turns
        self.is_mirrored = self.link.is_mirrored
        self.output_names = self._name_outputs()
        self.score_name = self.link.score_word
        self.has_votes = self.link.name == VOTES
        self.preposition = "for" if self.has_votes else "of"  # between the score and the class
        self.start_name = "fraction in training" if self.has_votes else "mean in training"
        lowered = "impurity" if self.has_votes else "loss"
        self.importance_name = f"fraction of the lowered {lowered}"
        self.class_importance_name = f"fraction of the changes of the {self.score_name}"

    def _name_outputs(self) -> tuple[str, ...]:
        if self.is_mirrored and self.classes is not None:
            word = "vote for" if self.link.name == VOTES else "log-odds of"
            return tuple(f"{word} {label}" for label in self.classes)
        return tuple(map(self.link.name_score, range(self.ensemble.n_outputs)))

    @property
    def column_std(self) -> Floats:
        """Powers of two next to the standard deviations of columns of numbers, ones of others."""
        return linear_splits.compute_units(self.ensemble)

    def standardize(self, table: NDArray[Any]) -> Floats:
        """Return encoded rows in units of `column_std`; NaN stays where a value is missing."""
        with np.errstate(over="ignore"):
            Z = table.astype(np.float64) / self.column_std
        return np.clip(Z, -MOST_EXTREME, MOST_EXTREME)

    def predict_encoded(self, table: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of the class that the model predicts for encoded rows."""
        rows, n_threads = np.ascontiguousarray(table), count_threads(self.model.n_jobs)
        score = self.ensemble.score(rows, n_threads=n_threads)
        if score.shape[1] > 1:
            return np.asarray(score.argmax(axis=1), dtype=np.int64)
        limit = 0.5 if self.has_votes else 0.0
        return ((score[:, 0] > limit) & self.is_mirrored).astype(np.int64)

    def predict_number(self, table: NDArray[Any]) -> Floats:
        """Return the number that the model predicts for encoded rows; of several, the middle."""
        rows, n_threads = np.ascontiguousarray(table), count_threads(self.model.n_jobs)
        predicted = self.link.predict_numbers(self.ensemble.score(rows, n_threads=n_threads))
        middle: Floats = predicted[:, predicted.shape[1] // 2]
        return middle

    def explain(self, table: NDArray[Any]) -> Scores:
        """Return base, contributions and raw scores of encoded rows."""
        ensemble, n_threads = self.ensemble, count_threads(self.model.n_jobs)
        rows = np.ascontiguousarray(table)
        whole = ensemble.divide(rows, n_threads=n_threads)
        base = ensemble.to_raw(ensemble.start + ensemble.root_value)
        contribution = ensemble.to_change(whole)
        score = ensemble.score(rows, n_threads=n_threads)
        if not self.is_mirrored:
            return Scores(base, contribution, score)
        sign = np.array([-1.0, 1.0])
        start = np.array([float(self.has_votes), 0.0])
        # The sum with 0 makes a zero of a negative zero.
        mirrored = contribution * sign[:, np.newaxis] + 0.0
        return Scores(start + base * sign, mirrored, start + score * sign)

    def compute_class_importances(self) -> Floats:
        """Return how much the splits by each column change the score of each class."""
        importance = sum_changes(self.ensemble)
        total = importance.sum(axis=1, keepdims=True)
        importance = np.divide(importance, total, np.zeros(importance.shape), where=total > 0)
        return np.repeat(importance, 2, axis=0) if self.is_mirrored else importance

    def compute_functions(self, node: Ints, z: Floats) -> tuple[Floats, Floats]:
        """Return projection minus threshold of some splits, counted over all trees.

        They are slopes by column, and the values for a standardised row. Where no number
        decides (categories, missing values), both are 0.
        """
        ensemble, columns = self.ensemble, self.ensemble.columns
        row, column, coefficient = list_terms(ensemble, node)
        kind, position = ensemble.index.kind[node], ensemble.index.position[node]
        is_plane = kind == HYPERPLANE
        slope = np.zeros((len(node), ensemble.n_features))
        slope[row, column] = coefficient
        of_plane = is_plane[row]
        origin, fill = np.zeros((2, len(row)))
        origin[of_plane] = np.ldexp(columns.origin[column[of_plane]], -STEPS_PER_STD)
        fill[of_plane] = np.ldexp(list_fills(ensemble, node[is_plane]), -STEPS_PER_STD)
        offset = np.where(np.isnan(z[column]), fill, z[column] - origin)
        value = np.bincount(row, coefficient * offset, len(node))
        cut = np.zeros(len(node))
        cut[is_plane] = np.ldexp(ensemble.cut[position[is_plane]].astype(float), -STEPS_PER_STD)
        is_number = kind == NUMBER
        threshold = ensemble.threshold[position[is_number]]
        cut[is_number] = threshold / self.column_std[ensemble.column[node[is_number]]]
        is_fixed = ~(is_plane | is_number) | np.isinf(cut)
        slope[is_fixed], value[is_fixed], cut[is_fixed] = 0.0, 0.0, 0.0
        return slope, value - cut

    def name_tree(self, tree: BoostedTree) -> str:
        """Return a short name of a tree: of a forest of classes, its class."""
        if not self.has_votes or self.classes is None:
            return f"tree {tree.number}"
        return name_label(self.classes[self.link.get_class(tree)])

    def list_trees(self, estimator: int) -> list[BoostedTree]:
        """Return the trees of an estimator: one, or one for each class."""
        n = self.ensemble.n_turns
        return [self.ensemble[estimator * n + k] for k in range(n)]

    def get_class(self, tree: BoostedTree) -> int:
        """Return the index of the class that a tree of a forest of classes votes for."""
        return self.link.get_class(tree)

    def list_terms(self, tree: BoostedTree) -> SplitTerms:
        """Return the terms of all splits of a tree; the largest weight of each split is one."""
        split = np.flatnonzero(tree.left >= 0)
        row, column, coefficient = list_terms(self.ensemble, split + tree.first_node)
        size = np.abs(coefficient).astype(np.float64)
        largest = np.ones(len(split))
        np.maximum.at(largest, row, size)
        weight = coefficient / largest[row]
        return SplitTerms(split, tree.fraction[split], row, column, weight, size)

    def read_shares(self, tree: BoostedTree) -> Floats:
        """Return the share of its class in the nodes of a tree that votes for one."""
        share: Floats = tree.prediction[:, 0]
        return share

    def divide_projections(self, tree: BoostedTree, node: Ints, Z: Floats) -> Projections:
        """Return what each column adds to the projections of rows at some splits.

        The largest weight of a split is one. Where no number decides, all is 0.
        """
        splits = linear_splits.read_splits(self.ensemble, tree.first_node + node)
        contribution = np.zeros((len(Z), len(node), Z.shape[1]))
        contribution[:, splits.row, splits.column] = splits.divide(Z)
        return Projections(contribution, splits.constant, splits.norm)

    def divide_leaf(self, tree: BoostedTree, leaf: int, Z: Floats) -> Floats:
        """Return zeros: leaves are constant."""
        del tree, leaf
        return np.zeros(Z.shape)

    def look_at_split(self, tree: BoostedTree, node: int, Z: Floats) -> SplitFacts:
        """Return what a split does to standardised rows, in raw units of its strongest term."""
        number = np.array([tree.first_node + node])
        split = linear_splits.read_splits(self.ensemble, number)
        unit, threshold = 1.0, np.nan
        if len(split.column):
            described = tree.split(node)
            assert not isinstance(described, CategorySplit)
            threshold = described.threshold
            unit = float(self.column_std[split.column[np.abs(split.coefficient).argmax()]])
        gap = split.compare(Z) * unit
        # Rounding must not take a row to the other side.
        low, high = np.minimum(threshold + gap, np.nextafter(threshold, -np.inf)), threshold + gap
        return SplitFacts(
            np.where(gap < 0, low, np.maximum(high, threshold)),
            threshold,
            None,
            "gini",
            int(self.ensemble.weight[tree.first_node + node]),
            float(self.read_shares(tree)[node]),
        )
