"""What happens between rounds: scores, lines of progress, callbacks that may stop the fit."""

from __future__ import annotations

import time
from typing import Any

from lhtree.estimators.boosting.scoring import GrowingScores
from lhtree.training.progress import RoundProgress
from lhtree.training.rounds import Boosting

SECONDS_BETWEEN_LOOKS = 0.3


class FitWatch:
    """Watches the rounds of a fit.

    Parameters
    ----------
    progress : RoundProgress
        Lines and callbacks.
    scores : GrowingScores, or None
        Scores that replace the losses.
    tol : float
        By how much a score must be better to count.
    model : callable
        Returns the attributes of a model of the rounds so far, for callbacks.
    """

    def __init__(
        self, progress: RoundProgress, scores: GrowingScores | None, tol: float, model: Any
    ) -> None:
        self._progress, self._scores, self._model = progress, scores, model
        self._tol = tol
        self._size, self._start = 1, 0.0
        self.is_stopped = False  # by a callback

    def get_tolerance(self, boosting: Boosting) -> float:
        """Return by how much a loss, or minus a score, must be lower to count."""
        return boosting.plan.tolerance if self._scores is None else self._tol

    def begin(self, boosting: Boosting) -> int:
        """Return how many rounds to add before the next look."""
        self._progress.begin_round()
        self._start = time.monotonic()
        if self._scores is not None or self._progress.has_callbacks:
            return 1
        return self._size

    def measure(self, boosting: Boosting, n_rounds: int) -> float:
        """Return the loss or minus the score after a number of rounds."""
        if self._scores is None:
            return boosting.held_out_sum[n_rounds]
        self._scores.add(boosting)
        return -(self._scores.validation or self._scores.training)[-1]

    def end(self, boosting: Boosting) -> bool:
        """Report the rounds so far; return whether a callback stops the fit."""
        seconds = max(1e-6, time.monotonic() - self._start)
        self._size = max(1, min(2 * self._size, int(self._size * SECONDS_BETWEEN_LOOKS / seconds)))
        self.is_stopped = self._progress.end_round(
            boosting.n_done, self._list_scores(boosting), lambda: self._model(boosting)
        )
        return self.is_stopped

    def _list_scores(self, boosting: Boosting) -> list[float]:
        """Return the last score of the training rows, and of validation rows if there are any."""
        if self._scores is not None:
            lists = [self._scores.training, self._scores.validation]
            return [each[-1] for each in lists if each]
        return [-float(each[0]) for each in boosting.average_losses(-1) if len(each)]
