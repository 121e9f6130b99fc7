"""The nearest change of class, proven, for a model of one tree per class.

A leaf of a tree is a polytope, and a *cell* is where one leaf of each tree overlaps.
Within a cell the output of each tree is an affine function, clipped to [0, 1]. So the set
in which a class wins is a union of polytopes: the function of the class is above the
others, or equal votes of 0 or 1 are decided by distances from hyperplanes, which are
affine in a cell, too. The search visits polytopes in the order of their distance. So the
first one in which the model predicts a desired class holds the nearest such point.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any

import numpy as np

from lhtree.arrays import Floats
from lhtree.explain.counterfactuals.hyperplanes import Hyperplanes
from lhtree.explain.counterfactuals.polytope import (
    HalfSpace,
    NumericalFailure,
    compute_nearest_point,
)
from lhtree.explain.counterfactuals.problem import Problem
from lhtree.explain.counterfactuals.regions import (
    Affine,
    Leaf,
    list_winning_regions,
    make_half_space,
)
from lhtree.model.tree import Tree

MARGINS = 10.0 ** np.arange(-9, -4)  # how far inside a polytope a solution may lie
MAX_REGIONS = 4096  # of one class in one cell
TOLERANCE = 1e-6  # by how much a proven move may be longer than the shortest
INTEGER_TOLERANCE = 1e-6  # by how much an integer may be missed before it is rounded


@dataclass(frozen=True, eq=False)
class State:
    """A polytope on the way to a cell, or to a region of a cell in which a class wins."""

    half_spaces: list[HalfSpace]
    nodes: tuple[int, ...]  # where each tree has arrived
    distances: tuple[tuple[Affine, ...], ...]  # from the splits passed
    is_final: bool = False
    bound: float = 0.0  # no point of it is nearer


@dataclass(frozen=True)
class SearchResult:
    """The move that a search found, and whether it is proven to be the shortest."""

    move: Floats | None
    is_proven: bool


@dataclass
class CellSearch:
    """A search over cells, nearest first."""

    problem: Problem
    heap: list[tuple[float, int, State]] = field(default_factory=list)
    proven_below: float = np.inf  # nearer than this, no polytope was skipped without a proof

    def __post_init__(self) -> None:
        self.trees: list[Tree] = list(self.problem.model.forest_)
        self.hyperplanes = Hyperplanes(self.problem)
        self.number = count()

    def run(self, max_states: int) -> SearchResult:
        """Return the shortest move to a desired class."""
        roots = tuple(0 for _ in self.trees)
        no_distances: tuple[tuple[Affine, ...], ...] = tuple(() for _ in self.trees)
        self._push(State(self.hyperplanes.limits, roots, no_distances))
        for _ in range(max_states):
            if not self.heap:
                return SearchResult(None, self.proven_below == np.inf)
            move = self._visit(heapq.heappop(self.heap)[2])
            if move is not None:
                is_proven = np.linalg.norm(move) <= self.proven_below + TOLERANCE
                return SearchResult(move, bool(is_proven))
        return SearchResult(None, False)

    def _push(self, state: State) -> None:
        heapq.heappush(self.heap, (state.bound, next(self.number), state))

    def _skip(self, state: State) -> None:
        """Give up a polytope: nothing is proven beyond its distance."""
        self.proven_below = min(self.proven_below, state.bound)

    def _visit(self, state: State) -> Floats | None:
        """Return a move to a desired class, or push what a state divides into."""
        try:
            point = self._compute_nearest(state)
        except NumericalFailure:
            self._skip(state)
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

    def _compute_nearest(self, state: State) -> Floats | None:
        if not state.half_spaces:
            return np.zeros(len(self.problem.free))
        return compute_nearest_point(state.half_spaces)

    def _divide(self, state: State, point: Floats) -> None:
        """Walk down to the cell of a point; push its regions and what branches off."""
        for k, tree in enumerate(self.trees):
            while tree.left[state.nodes[k]] >= 0:
                state = self._step_down(state, k, point)
        leaves = [
            Leaf(self.hyperplanes.look_up_function(tree, node), distance)
            for tree, node, distance in zip(self.trees, state.nodes, state.distances, strict=True)
        ]
        for k in self.problem.desired:
            self._push_regions(state, leaves, k)

    def _step_down(self, state: State, k: int, point: Floats) -> State:
        """Go to the side of a split on which a point lies; push the other side."""
        tree, node = self.trees[k], state.nodes[k]
        function = self.hyperplanes.look_up_function(tree, node)
        is_right = bool(function.value + function.slope @ point >= 0)
        near, far = (function, function.flip()) if is_right else (function.flip(), function)
        child = int(tree.left[node])
        if function.is_constant:  # no move crosses this hyperplane
            near = far = Affine(function.slope, 1.0)
        other = self._descend(state, k, child + (not is_right), far)
        if other is not None and not function.is_constant:
            self._push(other)
        inside = self._descend(state, k, child + is_right, near)
        assert inside is not None  # the point is there
        return inside

    def _descend(self, state: State, k: int, child: int, function: Affine) -> State | None:
        """Return the part of a state in which tree `k` goes to a child."""
        nodes = (*state.nodes[:k], child, *state.nodes[k + 1 :])
        norm = self.trees[k].forest.norm[self.trees[k].forest.tree_start[k] + state.nodes[k]]
        distance = Affine(function.slope / norm, function.value / norm)
        distances = (
            *state.distances[:k],
            (*state.distances[k], distance),
            *state.distances[k + 1 :],
        )
        return self._narrow(state, [function], nodes=nodes, distances=distances)

    def _narrow(self, state: State, functions: list[Affine], **changes: Any) -> State | None:
        """Return the part of a state in which some functions are not negative."""
        half_spaces, bound = list(state.half_spaces), state.bound
        for function in functions:
            half_space = make_half_space(function)
            if half_space is False:
                return None
            if isinstance(half_space, HalfSpace):
                half_spaces.append(half_space)
                bound = max(bound, half_space.offset)
        return replace(state, half_spaces=half_spaces, bound=bound, **changes)

    def _push_regions(self, state: State, leaves: list[Leaf], winner: int) -> None:
        regions = list_winning_regions(leaves, winner)
        if regions is None:
            self._skip(state)
            return
        chosen = list(islice(regions, MAX_REGIONS + 1))
        if len(chosen) > MAX_REGIONS:
            self._skip(state)
        for functions in chosen[:MAX_REGIONS]:
            region = self._narrow(state, functions, is_final=True)
            if region is not None:
                self._push(region)

    def _finish(self, state: State, point: Floats) -> Floats | None:
        """Return a move just inside a region, if the model agrees."""
        problem = self.problem
        raw = problem.row[problem.free] + point * problem.unit
        is_broken = problem.is_integer & (np.abs(raw - np.round(raw)) > INTEGER_TOLERANCE)
        if is_broken.any():
            self._branch_on_integer(state, int(is_broken.argmax()), raw)
            return None
        pinned = [*state.half_spaces, *self._pin_integers(point)]
        is_inside = False
        for margin in MARGINS:
            try:
                move = compute_nearest_point(pinned, margin * (1 + np.abs(point).max()))
            except NumericalFailure:
                continue
            if move is None:
                break
            is_inside = True
            move = problem.make_feasible(move)
            if problem.predict(move[np.newaxis])[0] in problem.desired:
                return move
        if is_inside:
            self._skip(state)
        elif problem.is_integer.any():
            self._branch_around_integers(state, raw)
        return None

    def _pin_integers(self, point: Floats) -> Iterator[HalfSpace]:
        fixed = self.problem.make_feasible(point)
        for j in np.flatnonzero(self.problem.is_integer):
            axis = np.zeros(len(point))
            axis[j] = 1.0
            yield HalfSpace(axis, float(fixed[j]), is_open=False)
            yield HalfSpace(-axis, -float(fixed[j]), is_open=False)

    def _branch_on_integer(self, state: State, j: int, raw: Floats) -> None:
        """Push the parts of a region below and above a value that is not an integer."""
        self._push(self._limit_raw(state, j, None, float(np.floor(raw[j]))))
        self._push(self._limit_raw(state, j, float(np.ceil(raw[j])), None))

    def _branch_around_integers(self, state: State, raw: Floats) -> None:
        """Push what lies beside the integers of a point on the edge of its region."""
        for j in np.flatnonzero(self.problem.is_integer).tolist():
            integer = float(np.round(raw[j]))
            self._push(self._limit_raw(state, j, None, integer - 1))
            self._push(self._limit_raw(state, j, integer + 1, None))
            state = self._limit_raw(state, j, integer, integer)

    def _limit_raw(self, state: State, j: int, least: float | None, most: float | None) -> State:
        """Return the part of a state in which a raw value lies within limits."""
        problem = self.problem
        unit, start = problem.unit[j], problem.row[problem.free[j]]
        axis = np.zeros(len(problem.free))
        axis[j] = 1.0
        half_spaces = list(state.half_spaces)
        if least is not None:
            half_spaces.append(HalfSpace(axis, float((least - start) / unit), is_open=False))
        if most is not None:
            half_spaces.append(HalfSpace(-axis, float((start - most) / unit), is_open=False))
        return replace(state, half_spaces=half_spaces)
