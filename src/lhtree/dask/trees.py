"""Trees in progress, and putting together what different workers grew."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Arrays, Floats, Ints, Scale
from lhtree.model.forest import Forest

NODE_FIELDS = (
    "n_samples", "threshold_kind", "extremes", "threshold", "norm", "value", "weight_sum",
)  # fmt: skip
NO_TERMS: _core.Terms = (np.empty(0, np.int32), np.empty(0), np.empty(0), np.empty(0))


@dataclass
class Record:
    """A node of a tree in progress: a split, a leaf, or the root of a subtree."""

    left: int = -1  # its children are records left and left + 1
    threshold: float = 0.0
    norm: float = 0.0
    value: float = 0.0
    n_samples: int = 0
    weight_sum: float = 0.0
    threshold_kind: int = 0
    extremes: Floats = field(default_factory=lambda: np.zeros(4))
    terms: _core.Terms = NO_TERMS
    subtree: tuple[Arrays, int] | None = None  # trees grown elsewhere, and which of them

    def describe(self, count: Floats) -> None:
        """Note what rows a node has: weights and numbers, positive and negative."""
        self.weight_sum = float(count[0] + count[1])
        self.value = float(count[0] / self.weight_sum)
        self.n_samples = int(count[2] + count[3])


@dataclass
class GrowingTree:
    """A tree in progress."""

    estimator: int  # of the batch
    positive_class: int
    key: int
    beta: float
    weight_sum: float
    columns: NDArray[np.int32]
    records: list[Record] = field(default_factory=list)

    def add_children(self, record: Record) -> int:
        """Return the number of the first of two new records."""
        record.left = len(self.records)
        self.records += [Record(), Record()]
        return record.left


def _list_terms(records: list[Record], n_features: int) -> Arrays:
    sizes = np.array([len(record.terms[0]) for record in records], dtype=np.int64)
    listed = [r.terms[0] if len(r.terms[0]) < n_features else r.terms[0][:0] for r in records]
    arrays: Arrays = {
        "start": np.cumsum([0, *sizes]),
        "feature_start": np.cumsum([0, *map(len, listed)]),
        "feature": np.concatenate(listed),
    }
    for k, name in enumerate(("weight", "center", "std"), start=1):
        arrays[name] = np.concatenate([record.terms[k] for record in records])
    return arrays


def _to_arrays(records: list[Record], n_features: int) -> Arrays:
    """Return the fields of records, whose children are still numbers of records."""
    arrays: Arrays = {
        "left": np.array([record.left for record in records], dtype=np.int32),
        "n_samples": np.array([record.n_samples for record in records], dtype=np.int64),
        "threshold_kind": np.array([record.threshold_kind for record in records], dtype=np.int8),
        "extremes": np.array([record.extremes for record in records], dtype=np.float64),
    }
    for name in ("threshold", "norm", "value", "weight_sum"):
        arrays[name] = np.array([getattr(r, name) for r in records], dtype=np.float64)
    return arrays | _list_terms(records, n_features)


def _cut_out(arrays: Arrays, number: int) -> Arrays:
    """Return one tree of several."""
    a, b = arrays["tree_start"][number : number + 2]
    part: Arrays = {}
    for name in ("left", *NODE_FIELDS):
        part[name] = arrays[name][a:b]
    for name, of in (
        ("start", ("weight", "center", "std")),
        ("feature_start", ("feature",)),
    ):
        bounds = arrays[name][a : b + 1]
        part[name] = bounds - bounds[0]
        for values in of:
            part[values] = arrays[values][bounds[0] : bounds[-1]]
    return part


def _order_by_level(left: Ints, right: Ints) -> Ints:
    """Return the nodes breadth-first, children in the order of their parents."""
    levels = [np.zeros(1, np.int64)]
    while len(levels[-1]):
        split = levels[-1][left[levels[-1]] >= 0]
        levels.append(np.column_stack([left[split], right[split]]).ravel())
    return np.concatenate(levels)


def _reorder(values: NDArray[Any], start: Ints, order: Ints) -> tuple[NDArray[Any], Ints]:
    size = np.diff(start)[order]
    new_start = np.cumsum([0, *size])
    index = np.repeat(start[order] - new_start[:-1], size) + np.arange(new_start[-1])
    return values[index], new_start


def _join_nodes(parts: list[Arrays]) -> tuple[Arrays, Ints]:
    """Put the nodes of parts one after the other; returns where each part begins."""
    offset = np.cumsum([0, *(len(part["left"]) for part in parts)])
    joined: Arrays = {}
    for name in parts[0]:
        if name in ("start", "feature_start"):
            shift = np.cumsum([0, *(part[name][-1] for part in parts[:-1])])
            ends = [part[name][1:] + s for part, s in zip(parts, shift, strict=True)]
            joined[name] = np.concatenate([[0], *ends]).astype(np.int64)
        else:
            joined[name] = np.concatenate([part[name] for part in parts])
    return joined, offset


def assemble_tree(tree: GrowingTree, n_features: int) -> Arrays:
    """Return the arrays of a tree, with its subtrees attached, breadth-first."""
    records = tree.records
    replaced = [i for i, record in enumerate(records) if record.subtree is not None]
    subtrees = [_cut_out(*records[i].subtree) for i in replaced]  # type: ignore[misc]
    joined, offset = _join_nodes([_to_arrays(records, n_features), *subtrees])
    alias = np.arange(len(records))
    alias[replaced] = offset[1:-1]
    left = joined["left"].astype(np.int64)
    right = np.where(left >= 0, left + 1, -1)
    upper = np.flatnonzero(left[: len(records)] >= 0)
    right[upper] = alias[left[upper] + 1]
    left[upper] = alias[left[upper]]
    for first, end in pairwise(offset[1:]):
        part = slice(first, end)
        is_split = left[part] >= 0
        left[part] += np.where(is_split, first, 0)
        right[part] += np.where(is_split, first, 0)
    if replaced and replaced[0] == 0:  # the whole tree was grown elsewhere
        return subtrees[0]
    order = _order_by_level(left, right)
    is_split = left[order] >= 0
    arrays: Arrays = {name: joined[name][order] for name in NODE_FIELDS}
    numbers = np.where(is_split, 2 * np.cumsum(is_split) - 1, -1)
    arrays["left"] = numbers.astype(np.int32)
    for name in ("weight", "center", "std"):
        arrays[name], arrays["start"] = _reorder(joined[name], joined["start"], order)
    arrays["feature"], arrays["feature_start"] = _reorder(
        joined["feature"], joined["feature_start"], order
    )
    return arrays


def assemble_forest(trees: list[GrowingTree], scale: Scale) -> Forest:
    """Return the forest of finished trees."""
    joined, offset = _join_nodes([assemble_tree(tree, len(scale[0])) for tree in trees])
    joined["tree_start"] = offset
    joined["positive_class"] = np.array([tree.positive_class for tree in trees], dtype=np.int32)
    joined["column_mean"], joined["column_std"] = scale
    return Forest(**joined)
