"""The splits of an ensemble one by one, in the units of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Arrays, Floats, Ints
from lhtree.model.tree import repeat_roots

if TYPE_CHECKING:
    from lhtree.model.ensemble import Ensemble

LEAF, NUMBER, CATEGORY, HYPERPLANE = range(4)  # kinds of nodes


@dataclass(frozen=True)
class NumberSplit:
    """A split by a column of numbers: ``x < threshold`` goes left.

    A threshold of infinity divides present values, on the left, from missing ones.
    """

    column: int
    threshold: float
    missing_left: bool
    has_gaps: bool  # whether a training row has a missing value in the column


@dataclass(frozen=True)
class CategorySplit:
    """A split by a column of categories: listed codes go left.

    The code after the last stands for missing and unknown categories.
    """

    column: int
    left: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True)
class HyperplaneSplit:
    """A split by a hyperplane: ``sum(weight * x) < threshold`` goes left.

    Weights are divided by the magnitude of the strongest, that with the largest integer on
    the grids of the columns. Terms are sorted, the strongest first.
    """

    feature: Ints
    weight: Floats
    fill: Floats  # what a missing value counts as
    threshold: float
    coefficient: Ints  # the integer weights


@dataclass(frozen=True, eq=False)
class NodeIndex:
    """What each node of an ensemble is, and where its numbers are."""

    kind: NDArray[np.int8]  # of each node
    position: Ints  # of each node among those of its kind

    @classmethod
    def of(cls, ensemble: Ensemble) -> NodeIndex:
        """Return the index of all nodes."""
        column = ensemble.column
        single = np.where(ensemble.columns.n_codes[column] > 0, CATEGORY, NUMBER)
        kind = np.where(ensemble.left < 0, LEAF, np.where(column < 0, HYPERPLANE, single))
        position = np.empty(len(kind), dtype=np.int64)
        for each in (LEAF, NUMBER, CATEGORY, HYPERPLANE):
            of_kind = np.flatnonzero(kind == each)
            position[of_kind] = np.arange(len(of_kind))
        return cls(kind.astype(np.int8), position)


def describe_split(ensemble: Ensemble, node: int) -> NumberSplit | CategorySplit | HyperplaneSplit:
    """Return a split in the units of the data; `node` is counted over all trees."""
    kind, position = ensemble.index.kind[node], int(ensemble.index.position[node])
    column = int(ensemble.column[node])
    if kind == NUMBER:
        return NumberSplit(
            column,
            float(ensemble.threshold[position]),
            bool(ensemble.missing_left[node]),
            bool(ensemble.columns.has_gaps[column]),
        )
    if kind == CATEGORY:
        is_left = list_code_sides(ensemble, column, position)
        left, right = np.flatnonzero(is_left), np.flatnonzero(~is_left)
        return CategorySplit(column, tuple(left.tolist()), tuple(right.tolist()))
    if kind == HYPERPLANE:
        return _describe_hyperplane(ensemble, position)
    raise ValueError(f"node={node} is a leaf.")


def list_code_sides(ensemble: Ensemble, column: int, position: int) -> NDArray[np.bool_]:
    """Return which codes of a column, missing last, go left in a split by categories."""
    bits = np.unpackbits(ensemble.codes[position].view(np.uint8), bitorder="little")
    return bits[: ensemble.columns.n_codes[column] + 1].astype(bool)


def _describe_hyperplane(ensemble: Ensemble, position: int) -> HyperplaneSplit:
    columns = ensemble.columns
    terms = slice(*ensemble.term_start[position : position + 2].tolist())
    coefficient = ensemble.coefficient[terms].astype(np.int64)
    order = np.argsort(-np.abs(coefficient), kind="stable")
    coefficient, feature = coefficient[order], ensemble.feature[terms][order].astype(np.int64)
    # The cut is taken apart before it is scaled: a whole sum may be beyond doubles.
    power = columns.power[feature].astype(np.int64) - int(columns.power[feature[0]])
    weight = np.ldexp(coefficient / abs(coefficient[0]), power)
    grid_cut = float(ensemble.cut[position]) + float(coefficient @ columns.origin[feature])
    threshold = np.ldexp(grid_cut / abs(coefficient[0]), -int(columns.power[feature[0]]))
    fill = ensemble.fill[terms][order] + columns.origin[feature]
    raw_fill = np.ldexp(fill, -columns.power[feature].astype(np.int64))
    return HyperplaneSplit(feature, weight, raw_fill, float(threshold), coefficient)


def average_leaves(ensemble: Ensemble) -> Ints:
    """Return for each node the mean of its leaves' values, weighted by their rows, as integers.

    A split has the value of its left child, plus the difference of the right one's times
    its fraction of the rows, rounded half up.
    """
    value = np.zeros((len(ensemble.left), ensemble.value.shape[1]), dtype=np.int64)
    value[ensemble.left < 0] = ensemble.value
    root = repeat_roots(ensemble.tree_start)
    depth = ensemble.compute_depth()
    for level in range(int(depth.max(initial=0)) - 1, -1, -1):
        node = np.flatnonzero((depth == level) & (ensemble.left >= 0))
        left = root[node] + ensemble.left[node]
        fraction = ensemble.weight[left + 1] / ensemble.weight[node]
        step = (value[left + 1] - value[left]) * fraction[:, np.newaxis]
        value[node] = value[left] + np.floor(step + 0.5).astype(np.int64)
    return value


def list_terms(ensemble: Ensemble, node: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the terms of some splits: position in `node`, column and integer weight of each.

    A split by a single column has one term, of weight one.
    """
    is_plane = ensemble.index.kind[node] == HYPERPLANE
    of_planes, n_terms = _locate_terms(ensemble, node[is_plane])
    size = np.ones(len(node), dtype=np.int64)
    size[is_plane] = n_terms
    row = np.repeat(np.arange(len(node)), size)
    column = ensemble.column[node][row].astype(np.int64)
    coefficient = np.ones(len(row), dtype=np.int64)
    column[is_plane[row]] = ensemble.feature[of_planes]
    coefficient[is_plane[row]] = ensemble.coefficient[of_planes]
    return row, column, coefficient


def list_fills(ensemble: Ensemble, node: Ints) -> Ints:
    """Return what a missing value counts as on the grid, in the terms of some hyperplanes."""
    term, _ = _locate_terms(ensemble, node)
    return ensemble.fill[term].astype(np.int64)


def _locate_terms(ensemble: Ensemble, node: Ints) -> tuple[Ints, Ints]:
    """Return the positions of the terms of some hyperplanes, and how many each has."""
    position = ensemble.index.position[node]
    start = ensemble.term_start[position]
    size = ensemble.term_start[position + 1] - start
    term = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size - start, size)
    return term, size


def sum_changes(ensemble: Ensemble) -> Floats:
    """Return how much the splits by each column change each score: one row per output.

    A split counts the mean change from its value to those of its children, without signs,
    over the rows of its tree; a hyperplane's is divided by its integer weights.
    """
    root = repeat_roots(ensemble.tree_start)
    node = np.flatnonzero(ensemble.left >= 0)
    change = np.zeros((len(node), ensemble.value.shape[1]))
    for side in (0, 1):
        child = root[node] + ensemble.left[node] + side
        fraction = ensemble.weight[child] / ensemble.weight[root[node]]
        step = np.abs(ensemble.node_value[child] - ensemble.node_value[node])
        change += step * fraction[:, np.newaxis]
    row, column, coefficient = list_terms(ensemble, node)
    size = np.abs(coefficient).astype(np.float64)
    size /= np.bincount(row, size, len(node))[row]
    if ensemble.n_turns > 1:  # the changes of a split are those of the score of its tree
        tree = np.searchsorted(ensemble.tree_start, node, side="right") - 1
        change = change * (tree[:, np.newaxis] % ensemble.n_turns == np.arange(ensemble.n_turns))
    total = [
        np.bincount(column, of_split[row] * size, ensemble.n_features) for of_split in change.T
    ]
    changes: Floats = np.ldexp(np.array(total) / ensemble.n_averaged, -ensemble.power)
    return changes


def sum_gains(trees: Arrays, start: Floats) -> Floats:
    """Return the gain of all splits by column, added to `start` in the order of the nodes.

    A hyperplane's gain is divided by its weights: a step of a grid is about the same fraction
    of each column's standard deviation, so the integer weights compare.
    """
    split = np.flatnonzero(trees["left"] >= 0)
    is_plane = trees["column"][split] < 0
    n_terms = np.diff(trees["term_start"])
    size = np.abs(trees["coefficient"].astype(np.float64))
    whole = np.add.reduceat(size, trees["term_start"][:-1]) if len(n_terms) else np.empty(0)
    of_plane = (
        np.repeat(trees["gain"][split[is_plane]], n_terms) * size / np.repeat(whole, n_terms)
    )
    node = np.concatenate([split[~is_plane], np.repeat(split[is_plane], n_terms)])
    column = np.concatenate([trees["column"][split[~is_plane]], trees["feature"]])
    gain = np.concatenate([trees["gain"][split[~is_plane]], of_plane])
    order = np.argsort(node, kind="stable")
    column = np.concatenate([np.arange(len(start)), column[order]])
    gain = np.concatenate([start, gain[order]])
    return np.asarray(np.bincount(column, gain, len(start)), dtype=np.float64)
