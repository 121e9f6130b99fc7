"""The nodes of trees as functions of a move."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats
from lhtree.explain.counterfactuals.polytope import HalfSpace, solve_nearest_point
from lhtree.explain.counterfactuals.problem import Problem
from lhtree.explain.counterfactuals.regions import NO_SLOPE, Affine
from lhtree.model.tree import Tree, repeat_roots


class Cell(NamedTuple):
    """A polytope: ``normal @ move > offset``, and ``limit @ move >= limit_offset``."""

    normal: Floats
    offset: Floats
    limit: Floats
    limit_offset: Floats

    def compute_nearest_move(self, margin: float) -> Floats | None:
        """Return the shortest move that lies `margin` inside; None if there is none."""
        normal = np.concatenate([self.normal, self.limit])
        offset = np.concatenate([self.offset + margin, self.limit_offset])
        return solve_nearest_point(normal, offset)


class Hyperplanes:
    """Splits, leaves and cells of trees, as seen from the row of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.forest = problem.model.forest_
        self.view = problem.view
        self.z = self.view.standardize(problem.row[np.newaxis])[0]
        self.limits = list(self._limit_moves())
        self.parent = self.forest.compute_parents()
        self.functions: dict[tuple[int, int], Affine] = {}

    def _limit_moves(self) -> Iterator[HalfSpace]:
        limits = zip(self.problem.lower, self.problem.upper, strict=True)
        for j, (least, most) in enumerate(limits):
            axis = np.zeros(len(self.problem.free))
            axis[j] = 1.0
            if least > -np.inf:
                yield HalfSpace(axis, float(least), is_open=False)
            if most < np.inf:
                yield HalfSpace(-axis, -float(most), is_open=False)

    def look_up_function(self, tree: Tree, node: int) -> Affine:
        """Return the function of a node: projection minus threshold, or membership."""
        key = tree.number, node
        if key not in self.functions:
            feature, weight, center, _ = tree.terms(node)
            slope = np.zeros(len(self.z))
            slope[feature] = weight
            offset = self.z[feature] - center
            value = weight @ np.where(np.isnan(offset), 0.0, offset)
            if tree.left[node] >= 0:
                value += weight @ center - tree.threshold[node]
            else:
                value += tree.value[node]
            self.functions[key] = Affine(slope[self.problem.free], float(value))
        return self.functions[key]

    def locate_cell(self, move: Floats) -> Cell:
        """Return the cell that a move reaches: there, every tree keeps its leaf.

        Hyperplanes that are farther away than the move is long are left out: no shorter
        move crosses them.
        """
        leaf = self.forest.apply(self.problem.make_table(move[np.newaxis]))[0]
        child = leaf + self.forest.tree_start[:-1]
        children = []
        while len(child := child[self.parent[child] >= 0]):
            children.append(child)
            child = self.parent[child]
        passed = np.concatenate([child, *children])
        slope, value = self.view.compute_functions(self.parent[passed], self.z)
        slope = slope[:, self.problem.free]
        side = np.where(self._is_right[passed], 1.0, -1.0)
        slope, value = side * slope.T, side * value
        length = np.linalg.norm(slope, axis=0)
        offset = -value / np.maximum(length, 1e-300)
        is_near = (length > NO_SLOPE) & (offset > -np.linalg.norm(move) - 1e-6)
        normal = (slope[:, is_near] / length[is_near]).T
        limit = np.array([space.normal for space in self.limits]).reshape(-1, len(move))
        limit_offset = np.array([space.offset for space in self.limits])
        return Cell(normal, offset[is_near], limit, limit_offset)

    @cached_property
    def _is_right(self) -> NDArray[np.bool_]:
        """Whether each node is the right child of its parent."""
        forest = self.forest
        root = repeat_roots(forest.tree_start)
        is_later = np.arange(len(root)) > root + forest.left[self.parent]
        is_right: NDArray[np.bool_] = is_later & (self.parent >= 0)
        return is_right
