"""The planes around a row: functions of a move that are linear in a cell of the trees."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.explain.polytope import HalfSpace, find_nearest_of
from lhtree.explain.question import Question
from lhtree.explain.reading import standardize
from lhtree.explain.regions import NO_SLOPE, Line
from lhtree.model.forest import Tree


class Cell(NamedTuple):
    """A polytope: ``normal @ move > need`` and, for limits, ``limit @ move >= limit_need``."""

    normal: Floats
    need: Floats
    limit: Floats
    limit_need: Floats

    def find_nearest(self, margin: float) -> Floats | None:
        """Return the shortest move that is `margin` inside; None if there is none."""
        normal = np.concatenate([self.normal, self.limit])
        return find_nearest_of(normal, np.concatenate([self.need + margin, self.limit_need]))


class Planes:
    """What the nodes of a forest are for the moves of a question."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.forest = question.model.forest_
        self.z = standardize(self.forest, question.row[np.newaxis])[0]
        self.limits = list(self._limit_moves())
        self.parent = self.forest.find_parent()
        self.lines: dict[tuple[int, int], Line] = {}

    def _limit_moves(self) -> Iterator[HalfSpace]:
        limits = zip(self.question.lower, self.question.upper, strict=True)
        for j, (least, most) in enumerate(limits):
            axis = np.zeros(len(self.question.free))
            axis[j] = 1.0
            if least > -np.inf:
                yield HalfSpace(axis, float(least), is_open=False)
            if most < np.inf:
                yield HalfSpace(-axis, -float(most), is_open=False)

    def find_line(self, tree: Tree, node: int) -> Line:
        """Return the function of a node: projection minus threshold, or membership."""
        key = tree.number, node
        if key not in self.lines:
            feature, weight, center, _ = tree.terms(node)
            slope = np.zeros(len(self.z))
            slope[feature] = weight
            part = self.z[feature] - center
            value = weight @ np.where(np.isnan(part), 0.0, part)
            if tree.left[node] >= 0:
                value += weight @ center - tree.threshold[node]
            else:
                value += tree.share[node]
            self.lines[key] = Line(slope[self.question.free], float(value))
        return self.lines[key]

    def find_cell(self, move: Floats) -> Cell:
        """Return where every tree answers as after a move, as far as a shorter move may reach."""
        leaf = self.forest.apply(self.question.make_table(move[np.newaxis]))[0]
        child = leaf + self.forest.tree_start[:-1]
        children = []
        while len(child := child[self.parent[child] >= 0]):
            children.append(child)
            child = self.parent[child]
        slope, value = self._find_slopes(self.parent[np.concatenate([child, *children])])
        is_right = self._is_right[np.concatenate([child, *children])]
        slope, value = (np.where(is_right, 1.0, -1.0) * part.T for part in (slope, value))
        length = np.linalg.norm(slope, axis=0)
        need = -value / np.maximum(length, 1e-300)
        is_near = (length > NO_SLOPE) & (need > -np.linalg.norm(move) - 1e-6)
        normal = (slope[:, is_near] / length[is_near]).T
        limit = np.array([space.normal for space in self.limits]).reshape(-1, len(move))
        limit_need = np.array([space.need for space in self.limits])
        return Cell(normal, need[is_near], limit, limit_need)

    def _find_slopes(self, node: Ints) -> tuple[Floats, Floats]:
        """Return slopes and values of the functions of some splits, counted over the forest."""
        forest, start = self.forest, self.forest.start
        size = start[node + 1] - start[node]
        row = np.repeat(np.arange(len(node)), size)
        term = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size) + start[node][row]
        column = self._column[term]
        weight, center = forest.weight[term], forest.center[term]
        slope = np.zeros((len(node), forest.n_features))
        slope[row, column] = weight
        filled = np.where(np.isnan(self.z[column]), center, self.z[column])
        value = np.bincount(row, weight * filled, len(node)) - forest.threshold[node]
        return slope[:, self.question.free], value

    @cached_property
    def _column(self) -> Ints:
        """Column of every term of the forest."""
        columns: Ints = self.forest.find_columns().astype(np.int64)
        return columns

    @cached_property
    def _is_right(self) -> NDArray[np.bool_]:
        """Whether each node is the right child of its parent."""
        forest = self.forest
        root = np.repeat(forest.tree_start[:-1], np.diff(forest.tree_start))
        is_later = np.arange(len(root)) > root + forest.left[self.parent]
        is_right: NDArray[np.bool_] = is_later & (self.parent >= 0)
        return is_right
