"""The planes around a row: functions of a move that are linear in a cell of the trees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lhtree.explain.polytope import HalfSpace
from lhtree.explain.question import Question
from lhtree.explain.reading import standardize
from lhtree.explain.regions import Line, bound_by
from lhtree.tree import Floats, Tree


class Planes:
    """What the nodes of a forest are for the moves of a question."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.forest = question.model.forest_
        self.z = standardize(self.forest, question.row[np.newaxis])[0]
        self.limits = list(self._limit_moves())
        self.parent = self.forest.find_parent()
        self.lines: dict[tuple[int, int], Line] = {}
        self.sides: dict[int, HalfSpace | bool] = {}

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

    def find_cell(self, move: Floats) -> list[HalfSpace]:
        """Return the half-spaces that hold where every tree answers as after a move."""
        leaf = self.forest.apply(self.question.make_table(move[np.newaxis]))[0]
        half_spaces = list(self.limits)
        for tree, node in zip(self.forest, leaf + self.forest.tree_start[:-1], strict=True):
            child = int(node)
            while self.parent[child] >= 0:
                side = self._find_side(tree, child)
                if isinstance(side, HalfSpace):
                    half_spaces.append(side)
                child = int(self.parent[child])
        return half_spaces

    def _find_side(self, tree: Tree, child: int) -> HalfSpace | bool:
        """Return where rows go from a node's parent to the node, both counted over the forest."""
        if child not in self.sides:
            root = int(self.forest.tree_start[tree.number])
            parent = int(self.parent[child]) - root
            line = self.find_line(tree, parent)
            is_right = child - root > tree.left[parent]
            self.sides[child] = bound_by(line if is_right else line.flip())
        return self.sides[child]
