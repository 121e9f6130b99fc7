"""What another program needs of a fitted model to predict as it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import LANES, Floats, Ints
from lhtree.data.columns import Columns
from lhtree.data.reading import name_features
from lhtree.estimators.lookup import check_model
from lhtree.model.forest import Forest
from lhtree.model.prediction import NOT_CALIBRATED


@dataclass(frozen=True)
class PlainModel:
    """A forest, and how its votes become probabilities."""

    forest: Forest
    classes: NDArray[Any]
    columns: Columns  # how the columns of X become those that the trees see
    feature_names: Sequence[str]  # of the columns of X
    n_trees_per_estimator: int
    by_margin: bool
    calibration: tuple[float, float]  # offset and exponent

    @property
    def column_names(self) -> list[str]:
        """Names of the columns that the trees see."""
        return self.columns.name_columns(self.feature_names)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_estimators(self) -> int:
        """Number of estimators, each with one tree per class."""
        return len(self.forest) // self.n_trees_per_estimator

    @property
    def is_calibrated(self) -> bool:
        """Whether scores become probabilities by more than a division."""
        return self.calibration != NOT_CALIBRATED


def read_model(model: Any) -> PlainModel:
    """Return the plain parts of a fitted classifier."""
    check_model(model)
    by_margin = model.voting_.by_margin
    offset, exponent = NOT_CALIBRATED
    if not by_margin:
        offset, exponent = getattr(model, "calibration_", NOT_CALIBRATED)
    return PlainModel(
        forest=model.forest_,
        classes=model.classes_,
        columns=model.columns_,
        feature_names=name_features(model),
        n_trees_per_estimator=model.voting_.n_trees_per_estimator,
        by_margin=by_margin,
        calibration=(float(offset), float(exponent)),
    )


@dataclass(frozen=True)
class Terms:
    """The terms of some nodes as matrices whose columns are the slots of a sum.

    Slot ``8 * j + r`` is the j-th summand of partial sum r; a slot without a term has
    weight 0. Either every column of the table has its own slot, or each node lists the
    columns of its slots.
    """

    weight: Floats  # [n_nodes, n_slots]
    center: Floats
    column: Ints | None  # None: slot j is column j

    @property
    def n_slots(self) -> int:
        """Number of slots, a multiple of eight."""
        return int(self.weight.shape[1])


def place_terms(forest: Forest, node: Ints, *, may_list: bool = True) -> Terms:
    """Return the terms of some nodes; they are listed if that takes half of the slots or less."""
    column = forest.list_columns().astype(np.int64)
    size = np.diff(forest.start)[node]
    first = np.repeat(forest.start[node] - np.cumsum(size) + size, size)
    term = first + np.arange(size.sum())
    owner, column = np.repeat(np.arange(len(node)), size), column[term]
    rank = _rank_in_lane(owner, column % LANES)
    n_dense = -(-forest.n_features // LANES)
    n_listed = int(rank.max(initial=0)) + 1
    is_listed = may_list and 2 * n_listed <= n_dense
    slot = (LANES * rank + column % LANES) if is_listed else column
    shape = (len(node), LANES * (n_listed if is_listed else n_dense))
    weight, center = np.zeros(shape), np.zeros(shape)
    weight[owner, slot], center[owner, slot] = forest.weight[term], forest.center[term]
    listed = None
    if is_listed:
        listed = np.zeros(shape, dtype=np.int64)
        listed[owner, slot] = column
    return Terms(weight, center, listed)


def place_all_terms(forest: Forest, node: Ints) -> Terms:
    """Return the terms of some nodes with one slot for every column, and no more."""
    terms = place_terms(forest, node, may_list=False)
    m = forest.n_features
    return Terms(terms.weight[:, :m], terms.center[:, :m], None)


def _rank_in_lane(owner: Ints, lane: Ints) -> Ints:
    """Return how many terms of the same node and lane come before each term."""
    key = owner * LANES + lane
    order = np.argsort(key, kind="stable")
    position = np.arange(len(key))
    begins = np.concatenate([[True], np.diff(key[order]) > 0])[: len(key)]
    rank = np.empty(len(key), dtype=np.int64)
    rank[order] = position - np.maximum.accumulate(np.where(begins, position, 0))
    return rank
