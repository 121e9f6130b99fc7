"""Boosted trees cut into parts and joined again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Arrays, Ints

# The arrays of trees, by what they have an entry for.
OF_NODES = ("left", "column", "missing_left", "weight")
OF_TERMS = ("feature", "coefficient", "fill")
TREE_ARRAYS = (
    *OF_NODES, "value", "threshold", "codes", "cut", *OF_TERMS, "tree_start", "term_start",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TreeStarts:
    """First entry of each tree in each kind of array, and the end."""

    node: Ints
    leaf: Ints
    number: Ints
    category: Ints
    plane: Ints
    term: Ints

    @classmethod
    def of(cls, trees: Mapping[str, NDArray[Any]], n_codes: NDArray[np.int32]) -> TreeStarts:
        """Return where the entries of trees are."""
        column, node = trees["column"], trees["tree_start"]
        is_leaf = trees["left"] < 0
        is_category = (column >= 0) & (n_codes[column] > 0)
        is_number = (column >= 0) & ~is_category
        leaf, number, category, plane = (
            np.concatenate([[0], np.cumsum(each)])[node]
            for each in (is_leaf, is_number, is_category, ~is_leaf & (column < 0))
        )
        return cls(node, leaf, number, category, plane, trees["term_start"][plane])


def cut_trees(
    trees: Mapping[str, NDArray[Any]], starts: TreeStarts, first: int, last: int
) -> Arrays:
    """Return the arrays of the trees from `first` to before `last`; a gain stays, if any."""

    def cut(name: str, start: Ints, end: int = 0) -> NDArray[Any]:
        return trees[name][int(start[first]) : int(start[last]) + end]

    gain = ("gain",) if "gain" in trees else ()
    part = {name: cut(name, starts.node) for name in (*OF_NODES, *gain)}
    part |= {name: cut(name, starts.term) for name in OF_TERMS}
    part["value"] = cut("value", starts.leaf)
    part["threshold"] = cut("threshold", starts.number)
    part["codes"] = cut("codes", starts.category)
    part["cut"] = cut("cut", starts.plane)
    part["term_start"] = cut("term_start", starts.plane, 1) - starts.term[first]
    part["tree_start"] = trees["tree_start"][first : last + 1] - starts.node[first]
    return part


def join_trees(parts: Sequence[Mapping[str, NDArray[Any]]]) -> Arrays:
    """Return the arrays of trees one after another; `gain` stays if all parts have it."""
    gain = ("gain",) if all("gain" in part for part in parts) else ()
    names = [name for name in TREE_ARRAYS if not name.endswith("_start")]
    whole = {name: np.concatenate([part[name] for part in parts]) for name in (*names, *gain)}
    for name in ("tree_start", "term_start"):
        sizes = np.concatenate([np.diff(part[name]) for part in parts])
        whole[name] = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return whole
