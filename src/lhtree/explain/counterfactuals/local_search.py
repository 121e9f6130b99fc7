"""A search for short moves where there are too many cells to visit them all.

It finds good counterfactuals of forests and boosted models, and proves nothing. Line
searches in many directions give candidates: moves that reach a desired class. From each of
the shortest, the search goes to the nearest point of its cell, then crosses the hyperplanes
that hold it there to cells nearer to the row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lhtree.arrays import Floats, Ints
from lhtree.explain.counterfactuals.hyperplanes import Hyperplanes
from lhtree.explain.counterfactuals.polytope import NumericalFailure
from lhtree.explain.counterfactuals.problem import Problem

N_RADII = 16  # distances tried in each direction
MIN_RADIUS, MAX_RADIUS = 0.02, 20.0  # standardised units
MAX_DIRECTIONS = 48  # of each kind
N_STARTS = 6  # candidates from which a descent starts
N_BISECTIONS = 12
PATIENCE = 3  # rounds without a shorter move
BATCH_SIZE = 256  # moves predicted at once
CELL_COST = 128  # rows that could be predicted in the time that one nearest point takes
MAX_CROSSINGS = 8  # cells in which a descent goes on, of those that keep a desired class


@dataclass
class LocalSearch:
    """Looks for short moves to a desired class within a budget of predictions."""

    problem: Problem
    budget: int  # rows that may still be predicted
    seed: int = 0
    best: Floats | None = None
    length: float = np.inf  # of the best move
    rng: np.random.Generator = field(init=False)
    margin: float = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.hyperplanes = Hyperplanes(self.problem)
        self.margin = self.problem.view.margin  # how far inside a cell a move lies

    def run(self, moves: Floats, directions: Floats) -> Floats | None:
        """Return the shortest move found, given moves and directions to start with."""
        for move in self._list_candidates(moves, directions):
            self._descend(self._bisect(move))
        n_vain = 0
        while self.best is not None and self.budget > 0 and n_vain < PATIENCE:
            before = self.length
            self._perturb()
            n_vain = n_vain + 1 if self.length > before * (1 - 1e-3) else 0
        return self.best

    def _list_candidates(self, moves: Floats, directions: Floats) -> list[Floats]:
        """Return short moves that reach a desired class, the shortest first."""
        moves = self.problem.make_feasible(moves)
        nearest = moves[np.argsort(np.linalg.norm(moves, axis=1))][: self.budget // 4]
        n = min(MAX_DIRECTIONS, max(1, self.budget // (8 * N_RADII)))
        reached = nearest[self._select_reaching(nearest)][:n]
        directions = self.rng.permutation(directions)[:n]
        lines = np.concatenate([reached, directions, self._draw_directions(2 * n)])
        candidates = [*reached[:N_STARTS], *self._search_lines(lines)]
        while not candidates and self.budget > 0:
            candidates = self._search_lines(self._draw_directions(2 * n))
        candidates.sort(key=lambda move: float(np.linalg.norm(move)))
        return candidates[: 2 * N_STARTS]

    def _draw_directions(self, n: int) -> Floats:
        """Return random directions; half of them change few columns."""
        moves = self.rng.normal(size=(n, len(self.problem.free)))
        is_few = self.rng.random(moves.shape) < 3 / len(self.problem.free)
        moves[: n // 2] *= is_few[: n // 2]
        return moves

    def _select_reaching(self, moves: Floats) -> Ints:
        """Return the positions of moves that reach a desired class, as the budget allows."""
        moves = moves[: max(self.budget, 0)]
        self.budget -= len(moves)
        if not len(moves):
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(np.isin(self.problem.predict(moves), self.problem.desired))

    def _keep(self, move: Floats) -> None:
        """Remember a move that reaches a desired class if it is the shortest."""
        length = float(np.linalg.norm(move))
        if length < self.length:
            self.best, self.length = move, length

    def _search_lines(self, directions: Floats) -> list[Floats]:
        """Return the first step of each direction that reaches a desired class."""
        length = np.linalg.norm(directions, axis=1)
        unit = directions[length > 0] / length[length > 0, np.newaxis]
        unfinished, candidates = np.arange(len(unit)), []
        for radius in np.geomspace(MIN_RADIUS, MAX_RADIUS, N_RADII):
            moves = self.problem.make_feasible(radius * unit[unfinished])
            reaching = self._select_reaching(moves)
            candidates += list(moves[reaching])
            unfinished = np.delete(unfinished, reaching)
            if len(candidates) >= 2 * N_STARTS:
                break
        return candidates

    def _bisect(self, move: Floats) -> Floats:
        """Shorten a move by bisection as long as it reaches a desired class."""
        low, high = 0.0, 1.0
        for _ in range(N_BISECTIONS):
            middle = (low + high) / 2
            shorter = self.problem.make_feasible(middle * move[np.newaxis])
            reaching = self._select_reaching(shorter)
            low, high = (low, middle) if len(reaching) else (middle, high)
        return self.problem.make_feasible(high * move)

    def _descend(self, move: Floats) -> None:
        """Go from cell to cell towards the row while the model predicts a desired class."""
        if len(self._select_reaching(move[np.newaxis])):
            self._keep(move)
        while self.budget > 0:
            nearest = self._compute_nearest_in_cell(move)
            if nearest is None:
                return
            self._keep(nearest)
            crossed = self._cross_hyperplanes(nearest)
            shorter = [self._compute_nearest_in_cell(each) for each in crossed]
            found = [each for each in shorter if each is not None]
            if not found:
                return
            following = min(found, key=lambda each: float(np.linalg.norm(each)))
            if np.linalg.norm(following) > np.linalg.norm(nearest) * (1 - 1e-6):
                return
            move = following

    def _compute_nearest_in_cell(self, move: Floats) -> Floats | None:
        """Return the shortest move to the cell of a move; None if it loses the desired class."""
        self.budget -= CELL_COST
        try:
            nearest = self.hyperplanes.locate_cell(move).compute_nearest_move(self.margin)
        except NumericalFailure:
            return None
        if nearest is None:
            return None
        # Slopes in the leaves may change the class within the cell.
        for fraction in (0.0, 0.25, 0.5, 0.75):
            between = self.problem.make_feasible(nearest + fraction * (move - nearest))
            if len(self._select_reaching(between[np.newaxis])):
                return between
        return None

    def _cross_hyperplanes(self, move: Floats) -> Floats:
        """Return steps over the hyperplanes that a move touches, if they keep the class."""
        cell = self.hyperplanes.locate_cell(move)
        gap = cell.normal @ move - cell.offset
        # Only those that keep the move from getting shorter.
        holds = (gap < 10 * self.margin) & (cell.normal @ move > 0)
        steps = move - (gap[holds] + 10 * self.margin)[:, np.newaxis] * cell.normal[holds]
        steps = self.problem.make_feasible(steps)
        kept: Floats = steps[self._select_reaching(steps)][:MAX_CROSSINGS]
        return kept

    def _perturb(self) -> None:
        """Try shorter moves in random directions near the best, and descend from them."""
        for spread in (0.5, 0.25, 0.1, 0.05):
            if self.best is None or self.budget <= 0:
                return
            noise = self._draw_directions(BATCH_SIZE)
            noise *= self.length / np.linalg.norm(noise, axis=1, keepdims=True).clip(1e-9)
            moves = self.best + spread * noise
            # About the same length or less: what counts is the direction.
            length = np.linalg.norm(moves, axis=1, keepdims=True).clip(1e-300)
            shrink = self.rng.uniform(1 - spread / 2, 1 + spread / 4, size=length.shape)
            moves = self.problem.make_feasible(moves * (self.length * shrink / length))
            reached = moves[self._select_reaching(moves)]
            for move in reached[np.argsort(np.linalg.norm(reached, axis=1))][:2]:
                self._descend(move)
