"""A search for near changes of class that knows nothing but the predictions.

It finds good answers for forests, whose cells are too many to visit, and proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lhtree.explain.question import Question
from lhtree.tree import Floats

N_RADII = 24  # distances tried in each direction
LEAST_RADIUS, MOST_RADIUS = 0.02, 20.0  # standardised units
N_HALVINGS = 30
BATCH = 256  # moves predicted at once


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

    def run(self, starts: Floats) -> Floats | None:
        """Return the shortest move found from some moves to start with."""
        self._try(starts)
        self._shoot(starts)
        while self.best is None and self.budget > 0:
            self._shoot(self._draw(64))
        while self.best is not None and self.budget > 0:
            before = self.length
            self._shorten()
            self._drop_columns()
            self._perturb()
            if self.length > before * (1 - 1e-4):
                break
        return self.best

    def _draw(self, n: int) -> Floats:
        """Return random directions, the first half of them with few columns."""
        moves = self.rng.normal(size=(n, len(self.question.free)))
        is_few = self.rng.random(moves.shape) < 3 / len(self.question.free)
        moves[: n // 2] *= is_few[: n // 2]
        return moves

    def _try(self, moves: Floats) -> None:
        """Predict moves; keep the shortest that reaches a wanted class."""
        moves = self.question.allow(moves)
        length = np.linalg.norm(moves, axis=1)
        order = np.argsort(length)
        order = order[length[order] < self.length][: max(self.budget, 0)]
        for begin in range(0, len(order), BATCH):
            part = order[begin : begin + BATCH]
            self.budget -= len(part)
            hit = np.isin(self.question.predict(moves[part]), self.question.wanted)
            if hit.any():
                first = part[hit.argmax()]
                self.best, self.length = moves[first], float(length[first])
                return

    def _shoot(self, directions: Floats) -> None:
        """Try growing steps in each direction."""
        length = np.linalg.norm(directions, axis=1)
        unit = directions[length > 0] / length[length > 0, np.newaxis]
        radius = np.geomspace(LEAST_RADIUS, MOST_RADIUS, N_RADII)
        self._try((radius[:, np.newaxis, np.newaxis] * unit).reshape(-1, directions.shape[1]))

    def _shorten(self) -> None:
        """Halve the way back until the class changes again."""
        assert self.best is not None
        low, direction = 0.0, self.best
        high = 1.0
        for _ in range(N_HALVINGS):
            if self.budget <= 0 or high - low < 1e-9:
                return
            middle = (low + high) / 2
            before = self.length
            self._try(middle * direction[np.newaxis])
            if self.length < before:
                high = middle
            else:
                low = middle

    def _drop_columns(self) -> None:
        """Undo the change of single columns, as a whole or in part."""
        assert self.best is not None
        changed = np.flatnonzero(self.best)
        moves = np.repeat(self.best[np.newaxis], 3 * len(changed), axis=0)
        for part, factor in enumerate((0.0, 0.5, 0.9)):
            moves[part * len(changed) + np.arange(len(changed)), changed] *= factor
        self._try(moves)

    def _perturb(self) -> None:
        """Try shorter moves in random directions near the best."""
        for spread in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01):
            if self.best is None or self.budget <= 0:
                return
            for _ in range(4):
                noise = self._draw(BATCH)
                noise *= self.length / np.linalg.norm(noise, axis=1, keepdims=True).clip(1e-9)
                moves = self.best + spread * noise
                # The same length or less: what counts is the direction.
                length = np.linalg.norm(moves, axis=1, keepdims=True)
                shrink = self.rng.uniform(1 - spread, 1, size=length.shape)
                before = self.length
                self._try(moves * (self.length * shrink / length))
                if self.length == before:
                    break
