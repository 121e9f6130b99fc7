"""Where the nodes of a tree are drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lhtree.arrays import Floats, Ints
from lhtree.model.tree import Tree


class Layout(NamedTuple):
    """Nodes to draw, breadth-first, and their positions."""

    node: Ints
    x: Floats  # one unit is the width of a node with its gap
    depth: Ints
    n_hidden: Ints  # nodes below that are not drawn


def choose_cut(depth: Ints, max_nodes: int) -> int:
    """Return the largest depth down to which there are at most `max_nodes` nodes."""
    n_down_to = np.cumsum(np.bincount(depth))
    return max(int(np.searchsorted(n_down_to, max_nodes, side="right")) - 1, 0)


def lay_out(tree: Tree, max_nodes: int) -> Layout:
    """Place nodes so that subtrees are close but do not overlap, and parents are centred.

    Reingold and Tilford's layout: each subtree has an outline per level; the right one is
    pushed just far enough to clear the left one.
    """
    depth = tree.compute_depth()
    cut = choose_cut(depth, max_nodes)
    node = np.flatnonzero(depth <= cut)
    left = np.where(depth[node] < cut, tree.left[node], -1)
    offset = np.zeros(len(node))  # of a node from its parent
    outline: dict[int, tuple[list[float], list[float]]] = {}
    for i in reversed(range(len(node))):
        if left[i] < 0:
            outline[i] = [0.0], [0.0]
            continue
        (left_low, left_high), (right_low, right_high) = (
            outline.pop(int(left[i])),
            outline.pop(int(left[i]) + 1),
        )
        gap = 1 + max(h - low for h, low in zip(left_high, right_low, strict=False))
        offset[left[i]], offset[left[i] + 1] = -gap / 2, gap / 2
        low = [v - gap / 2 for v in left_low] + [v + gap / 2 for v in right_low[len(left_low) :]]
        high = [v + gap / 2 for v in right_high]
        high += [v - gap / 2 for v in left_high[len(right_high) :]]
        outline[i] = [0.0, *low], [0.0, *high]
    x = offset
    for parent in np.flatnonzero(left >= 0):
        x[left[parent] : left[parent] + 2] += x[parent]
    n_below = np.zeros(tree.n_nodes, dtype=np.int64)
    for k in np.flatnonzero(tree.left >= 0)[::-1]:
        n_below[k] = 2 + n_below[tree.left[k]] + n_below[tree.left[k] + 1]
    return Layout(node, x - x.min(), depth[node], np.where(left < 0, n_below[node], 0))
