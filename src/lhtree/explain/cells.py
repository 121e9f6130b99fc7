"""The nearest change of class of a single tree per class, proven.

A leaf of a tree is a polytope, and a *cell* is where one leaf of each tree overlaps.
Within a cell each tree answers by one line, clipped to [0, 1], so the set in which a
class wins is a union of polytopes: its line is above the others, or equal votes of 0
or 1 are decided by distances from hyperplanes, which are linear in a cell, too. The
search visits polytopes in the order of their distance, so that the first in which the
model predicts another class holds the nearest such point.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any

import numpy as np

from lhtree.arrays import Floats
from lhtree.explain.planes import Planes
from lhtree.explain.polytope import HalfSpace, NumericalFailure, find_nearest
from lhtree.explain.question import Question
from lhtree.explain.regions import Leaf, Line, bound_by, find_regions
from lhtree.model.forest import Tree

MARGINS = 10.0 ** np.arange(-9, -4)  # how far inside a polytope an answer may lie
MOST_REGIONS = 4096  # of one class in one cell
TOLERANCE = 1e-6  # by how much a proven answer may be longer than the least
WHOLE = 1e-6  # by how much an integer may be missed before it is rounded


@dataclass(frozen=True, eq=False)
class State:
    """A polytope on the way to a cell, or to a region of a cell in which a class wins."""

    half_spaces: list[HalfSpace]
    nodes: tuple[int, ...]  # where each tree has arrived
    distances: tuple[tuple[Line, ...], ...]  # to the splits passed
    is_final: bool = False
    bound: float = 0.0  # no point of it is nearer


@dataclass(frozen=True)
class Answer:
    """What a search found."""

    move: Floats | None
    is_proven: bool


@dataclass
class CellSearch:
    """A search over cells, nearest first."""

    question: Question
    heap: list[tuple[float, int, State]] = field(default_factory=list)
    doubt: float = np.inf  # below it, no polytope was left out without a proof

    def __post_init__(self) -> None:
        question = self.question
        forest = question.model.forest_
        self.trees: list[Tree] = list(forest)
        self.planes = Planes(question)
        self.number = count()

    def run(self, max_states: int) -> Answer:
        """Return the nearest move to a wanted class."""
        limits = self.planes.limits
        nothing = tuple(() for _ in self.trees)
        self._push(State(limits, tuple(0 for _ in self.trees), nothing))
        for _ in range(max_states):
            if not self.heap:
                return Answer(None, self.doubt == np.inf)
            move = self._visit(heapq.heappop(self.heap)[2])
            if move is not None:
                return Answer(move, bool(np.linalg.norm(move) <= self.doubt + TOLERANCE))
        return Answer(None, False)

    def _push(self, state: State) -> None:
        heapq.heappush(self.heap, (state.bound, next(self.number), state))

    def _leave_out(self, state: State) -> None:
        """Remember that nothing is known of a polytope."""
        self.doubt = min(self.doubt, state.bound)

    def _narrow(self, state: State, lines: list[Line], **changes: Any) -> State | None:
        """Return the part of a state in which some functions are not negative."""
        half_spaces, bound = list(state.half_spaces), state.bound
        for line in lines:
            half_space = bound_by(line)
            if half_space is False:
                return None
            if isinstance(half_space, HalfSpace):
                half_spaces.append(half_space)
                bound = max(bound, half_space.need)
        return replace(state, half_spaces=half_spaces, bound=bound, **changes)

    def _visit(self, state: State) -> Floats | None:
        """Return an answer, or push what a state divides into."""
        try:
            point = self._find_point(state)
        except NumericalFailure:
            self._leave_out(state)
            return None
        if point is None:
            return None
        bound = float(np.linalg.norm(point))
        if self.heap and bound > self.heap[0][0] * (1 + 1e-12):
            self._push(replace(state, bound=bound))
            return None
        state = replace(state, bound=bound)
        if state.is_final:
            return self._finish(state, point)
        self._divide(state, point)
        return None

    def _find_point(self, state: State) -> Floats | None:
        if not state.half_spaces:
            return np.zeros(len(self.question.free))
        return find_nearest(state.half_spaces)

    def _divide(self, state: State, point: Floats) -> None:
        """Walk down to the cell of a point; push its regions and what branches off."""
        for k, tree in enumerate(self.trees):
            while tree.left[state.nodes[k]] >= 0:
                node = state.nodes[k]
                line = self.planes.find_line(tree, node)
                is_right = bool(line.value + line.slope @ point >= 0)
                near, far = (line, line.flip()) if is_right else (line.flip(), line)
                child = int(tree.left[node])
                if line.is_constant:  # no move crosses this plane
                    near = far = Line(line.slope, 1.0)
                other = self._descend(state, k, child + (not is_right), far)
                if other is not None and not line.is_constant:
                    self._push(other)
                inside = self._descend(state, k, child + is_right, near)
                assert inside is not None  # the point is there
                state = inside
        leaves = [
            Leaf(self.planes.find_line(tree, node), distance)
            for tree, node, distance in zip(self.trees, state.nodes, state.distances, strict=True)
        ]
        for k in self.question.wanted:
            self._push_regions(state, leaves, k)

    def _descend(self, state: State, k: int, child: int, line: Line) -> State | None:
        nodes = (*state.nodes[:k], child, *state.nodes[k + 1 :])
        norm = self.trees[k].forest.norm[self.trees[k].forest.tree_start[k] + state.nodes[k]]
        distance = Line(line.slope / norm, line.value / norm)
        distances = (
            *state.distances[:k],
            (*state.distances[k], distance),
            *state.distances[k + 1 :],
        )
        return self._narrow(state, [line], nodes=nodes, distances=distances)

    def _push_regions(self, state: State, leaves: list[Leaf], winner: int) -> None:
        regions = find_regions(leaves, winner)
        if regions is None:
            self._leave_out(state)
            return
        chosen = list(islice(regions, MOST_REGIONS + 1))
        if len(chosen) > MOST_REGIONS:
            self._leave_out(state)
        for lines in chosen[:MOST_REGIONS]:
            region = self._narrow(state, lines, is_final=True)
            if region is not None:
                self._push(region)

    def _finish(self, state: State, point: Floats) -> Floats | None:
        """Return a move just inside a region, if the model agrees."""
        question = self.question
        raw = question.row[question.free] + point * question.unit
        is_broken = question.is_integer & (np.abs(raw - np.round(raw)) > WHOLE)
        if is_broken.any():
            self._divide_integer(state, int(is_broken.argmax()), raw)
            return None
        pinned = [*state.half_spaces, *self._pin_integers(point)]
        is_inside = False
        for margin in MARGINS:
            try:
                move = find_nearest(pinned, margin * (1 + np.abs(point).max()))
            except NumericalFailure:
                continue
            if move is None:
                break
            is_inside = True
            move = question.allow(move)
            if question.predict(move[np.newaxis])[0] in question.wanted:
                return move
        if is_inside:
            self._leave_out(state)
        elif question.is_integer.any():
            self._leave_integers(state, raw)
        return None

    def _pin_integers(self, point: Floats) -> Iterator[HalfSpace]:
        fixed = self.question.allow(point)
        for j in np.flatnonzero(self.question.is_integer):
            axis = np.zeros(len(point))
            axis[j] = 1.0
            yield HalfSpace(axis, float(fixed[j]), is_open=False)
            yield HalfSpace(-axis, -float(fixed[j]), is_open=False)

    def _divide_integer(self, state: State, j: int, raw: Floats) -> None:
        """Push the parts of a region below and above a broken number."""
        self._push_between(state, j, None, float(np.floor(raw[j])))
        self._push_between(state, j, float(np.ceil(raw[j])), None)

    def _leave_integers(self, state: State, raw: Floats) -> None:
        """Push what lies beside the integers of a point that is on the edge of its region."""
        for j in np.flatnonzero(self.question.is_integer).tolist():
            whole = float(np.round(raw[j]))
            self._push_between(state, j, None, whole - 1)
            self._push_between(state, j, whole + 1, None)
            state = self._between(state, j, whole, whole)

    def _push_between(self, state: State, j: int, least: float | None, most: float | None) -> None:
        part = self._between(state, j, least, most)
        self._push(part)

    def _between(self, state: State, j: int, least: float | None, most: float | None) -> State:
        """Return the part of a state in which a raw value lies within limits."""
        question = self.question
        unit, start = question.unit[j], question.row[question.free[j]]
        axis = np.zeros(len(question.free))
        axis[j] = 1.0
        half_spaces = list(state.half_spaces)
        if least is not None:
            half_spaces.append(HalfSpace(axis, float((least - start) / unit), is_open=False))
        if most is not None:
            half_spaces.append(HalfSpace(-axis, float((start - most) / unit), is_open=False))
        return replace(state, half_spaces=half_spaces)
