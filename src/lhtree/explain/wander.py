"""A search for near changes of class where the cells are too many to visit them all.

It finds good answers for forests and proves nothing. From moves that reach a wanted
class, found by steps in many directions, it goes to the nearest point of their cell,
then over the planes that hold it there to cells nearer to the row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lhtree.arrays import Floats
from lhtree.explain.planes import Planes
from lhtree.explain.polytope import NumericalFailure
from lhtree.explain.question import Question

N_RADII = 16  # distances tried in each direction
LEAST_RADIUS, MOST_RADIUS = 0.02, 20.0  # standardised units
MOST_DIRECTIONS = 48  # of each kind
N_STARTS = 6  # moves from which a descent starts
N_HALVINGS = 12
PATIENCE = 3  # rounds without a shorter move
BATCH = 256  # moves predicted at once
MARGIN = 1e-7  # how far inside a cell an answer lies
COST_OF_CELL = 128  # rows that could be predicted in the time of finding a cell's nearest point
MOST_CROSSED = 8  # planes over which a descent goes on, of those that lead to a wanted class


@dataclass
class Wanderer:
    """Looks for short moves to a wanted class within a budget of predictions."""

    question: Question
    budget: int  # rows that may still be predicted
    seed: int = 0
    best: Floats | None = None
    length: float = np.inf  # of the best move
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.planes = Planes(self.question)

    def run(self, moves: Floats, directions: Floats) -> Floats | None:
        """Return the shortest move found, from moves and directions to start with."""
        moves = self.question.allow(moves)
        nearest = moves[np.argsort(np.linalg.norm(moves, axis=1))][: self.budget // 4]
        n = min(MOST_DIRECTIONS, max(1, self.budget // (8 * N_RADII)))
        reached = nearest[self._reaches(nearest)][:n]
        directions = self.rng.permutation(directions)[:n]
        shots = np.concatenate([reached, directions, self._draw(2 * n)])
        hits = [*reached[:N_STARTS], *self._shoot(shots)]
        while not hits and self.budget > 0:
            hits = self._shoot(self._draw(2 * n))
        hits.sort(key=lambda move: float(np.linalg.norm(move)))
        for move in hits[: 2 * N_STARTS]:
            self._descend(self._shorten(move))
        n_vain = 0
        while self.best is not None and self.budget > 0 and n_vain < PATIENCE:
            before = self.length
            self._perturb()
            n_vain = n_vain + 1 if self.length > before * (1 - 1e-3) else 0
        return self.best

    def _draw(self, n: int) -> Floats:
        """Return random directions, the first half of them with few columns."""
        moves = self.rng.normal(size=(n, len(self.question.free)))
        is_few = self.rng.random(moves.shape) < 3 / len(self.question.free)
        moves[: n // 2] *= is_few[: n // 2]
        return moves

    def _reaches(self, moves: Floats) -> np.ndarray:
        """Return the positions of moves that reach a wanted class, as the budget allows."""
        moves = moves[: max(self.budget, 0)]
        self.budget -= len(moves)
        if not len(moves):
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(np.isin(self.question.predict(moves), self.question.wanted))

    def _keep(self, move: Floats) -> bool:
        """Remember a move that reaches a wanted class if it is the shortest."""
        length = float(np.linalg.norm(move))
        if length < self.length:
            self.best, self.length = move, length
            return True
        return False

    def _shoot(self, directions: Floats) -> list[Floats]:
        """Return the first step of each direction that reaches a wanted class."""
        length = np.linalg.norm(directions, axis=1)
        unit = directions[length > 0] / length[length > 0, np.newaxis]
        open_ones, hits = np.arange(len(unit)), []
        for radius in np.geomspace(LEAST_RADIUS, MOST_RADIUS, N_RADII):
            moves = self.question.allow(radius * unit[open_ones])
            reached = self._reaches(moves)
            hits += list(moves[reached])
            open_ones = np.delete(open_ones, reached)
            if len(hits) >= 2 * N_STARTS:
                break
        return hits

    def _shorten(self, move: Floats) -> Floats:
        """Halve the way back while the class stays the wanted one."""
        low, high = 0.0, 1.0
        for _ in range(N_HALVINGS):
            middle = (low + high) / 2
            shorter = self.question.allow(middle * move[np.newaxis])
            low, high = (low, middle) if len(self._reaches(shorter)) else (middle, high)
        return self.question.allow(high * move)

    def _descend(self, move: Floats) -> None:
        """Go from cell to cell towards the row as long as a wanted class is predicted."""
        if len(self._reaches(move[np.newaxis])):
            self._keep(move)
        while self.budget > 0:
            nearest = self._find_nearest_of_cell(move)
            if nearest is None:
                return
            self._keep(nearest)
            crossed = self._cross_planes(nearest)
            shorter = [self._find_nearest_of_cell(each) for each in crossed]
            found = [each for each in shorter if each is not None]
            if not found:
                return
            following = min(found, key=lambda each: float(np.linalg.norm(each)))
            if np.linalg.norm(following) > np.linalg.norm(nearest) * (1 - 1e-6):
                return
            move = following

    def _find_nearest_of_cell(self, move: Floats) -> Floats | None:
        """Return the shortest move to the cell of a move; None if it leaves the wanted class."""
        self.budget -= COST_OF_CELL
        try:
            nearest = self.planes.find_cell(move).find_nearest(MARGIN)
        except NumericalFailure:
            return None
        if nearest is None:
            return None
        # Lines in the leaves may change the class within the cell.
        for share in (0.0, 0.25, 0.5, 0.75):
            between = self.question.allow(nearest + share * (move - nearest))
            if len(self._reaches(between[np.newaxis])):
                return between
        return None

    def _cross_planes(self, move: Floats) -> Floats:
        """Return steps over the planes that a move touches, if they keep the wanted class."""
        cell = self.planes.find_cell(move)
        gap = cell.normal @ move - cell.need
        # Only what the pull back to the row presses against.
        holds = (gap < 10 * MARGIN) & (cell.normal @ move > 0)
        steps = move - (gap[holds] + 10 * MARGIN)[:, np.newaxis] * cell.normal[holds]
        steps = self.question.allow(steps)
        kept: Floats = steps[self._reaches(steps)][:MOST_CROSSED]
        return kept

    def _perturb(self) -> None:
        """Try shorter moves in random directions near the best, and descend from them."""
        for spread in (0.5, 0.25, 0.1, 0.05):
            if self.best is None or self.budget <= 0:
                return
            noise = self._draw(BATCH)
            noise *= self.length / np.linalg.norm(noise, axis=1, keepdims=True).clip(1e-9)
            moves = self.best + spread * noise
            # The same length or less: what counts is the direction.
            length = np.linalg.norm(moves, axis=1, keepdims=True).clip(1e-300)
            shrink = self.rng.uniform(1 - spread / 2, 1 + spread / 4, size=length.shape)
            moves = self.question.allow(moves * (self.length * shrink / length))
            reached = moves[self._reaches(moves)]
            for move in reached[np.argsort(np.linalg.norm(reached, axis=1))][:2]:
                self._descend(move)
