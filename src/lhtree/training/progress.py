"""Reports of a long fit: lines on standard error, and scikit-learn's callbacks."""

from __future__ import annotations

import sys
import time
from typing import Any

SECONDS_BETWEEN_LINES = 1.0


class Progress:
    """Tells how many members of a forest are grown.

    Members grow at the same time, so a callback hears of a member when it is done;
    a callback's wish to stop early is not followed.

    Parameters
    ----------
    estimator : estimator
        The classifier whose ``fit`` runs.
    n_members : int or None
        Number of members that this ``fit`` grows; None if it is not known.
    """

    def __init__(self, estimator: Any, n_members: int | None) -> None:
        self.n_trees_per_member = 1  # known once the classes are
        self.n_before = 0  # members that earlier batches of this fit have grown
        self._estimator = estimator
        self._n_members = n_members
        self._n_reported = 0
        self._is_verbose = bool(estimator.verbose)
        self._start = self._last_line = time.monotonic()
        self._context = None
        if hasattr(estimator, "_init_callback_context"):  # scikit-learn 1.9 and later
            self._context = estimator._init_callback_context(max_subtasks=n_members)
            self._context.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, n_trees: int) -> None:
        """Hear that `n_trees` trees are grown."""
        n_done = self.n_before + n_trees // self.n_trees_per_member
        while self._context is not None and self._n_reported < n_done:
            task = self._context.subcontext(task_name="member")
            task.call_on_fit_task_begin(estimator=self._estimator)
            task.call_on_fit_task_end(estimator=self._estimator)
            self._n_reported += 1
        if self._is_verbose:
            self._write_line(n_done)

    def end(self) -> None:
        """Hear that the fit is complete."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)

    def _write_line(self, n_done: int) -> None:
        now = time.monotonic()
        is_last = n_done == self._n_members
        if is_last or now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            whole = "" if self._n_members is None else f" of {self._n_members}"
            text = f"[lhtree] {n_done}{whole} members, {now - self._start:.1f} s"
            print(text, file=sys.stderr, flush=True)
