"""Reports of a long fit: lines on standard error, and scikit-learn's callbacks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

SECONDS_BETWEEN_LINES = 1.0


class Progress:
    """Reports how many estimators of a forest have grown.

    Estimators grow in parallel, so callbacks run when one is done; they cannot stop a fit
    early.

    Parameters
    ----------
    estimator : estimator
        The estimator whose ``fit`` runs.
    n_estimators : int or None
        Number of estimators that this ``fit`` grows; None if it is not known yet.
    is_verbose : bool
        Whether to print lines.
    """

    def __init__(self, estimator: Any, n_estimators: int | None, *, is_verbose: bool) -> None:
        self.n_trees_per_estimator = 1  # set once the classes are known
        self.n_before = 0  # estimators grown by earlier batches of this fit
        self._estimator = estimator
        self._n_estimators = n_estimators
        self._n_reported = 0
        self._is_verbose = is_verbose
        self._start = self._last_line = time.monotonic()
        self._context: Any = None
        if hasattr(estimator, "_init_callback_context"):  # scikit-learn 1.9 and later
            self._context = estimator._init_callback_context(max_subtasks=n_estimators)
            self._context.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, n_trees: int) -> None:
        """Report that `n_trees` trees have grown."""
        n_done = self.n_before + n_trees // self.n_trees_per_estimator
        while self._context is not None and self._n_reported < n_done:
            task = self._context.subcontext(task_name="estimator")
            task.call_on_fit_task_begin(estimator=self._estimator)
            task.call_on_fit_task_end(estimator=self._estimator)
            self._n_reported += 1
        if self._is_verbose:
            self._write_line(n_done)

    def end(self) -> None:
        """Report that the fit is complete."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)

    def _write_line(self, n_done: int) -> None:
        now = time.monotonic()
        is_last = n_done == self._n_estimators
        if is_last or now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            whole = "" if self._n_estimators is None else f" of {self._n_estimators}"
            text = f"[lhtree] {n_done}{whole} estimators, {now - self._start:.1f} s"
            print(text, file=sys.stderr, flush=True)


class RoundProgress(Progress):
    """Reports rounds of boosting, whose callbacks may stop the fit.

    Parameters
    ----------
    estimator : estimator
        The estimator whose ``fit`` runs.
    data : dict
        ``X``, ``y`` and ``metadata`` for callbacks.
    is_verbose : bool
        Whether to print lines.
    """

    def __init__(self, estimator: Any, data: dict[str, Any], *, is_verbose: bool) -> None:
        super().__init__(estimator, None, is_verbose=is_verbose)
        self.n_rounds = 0  # that the model has at most
        self._data = data
        self._task: Any = None

    @property
    def has_callbacks(self) -> bool:
        """Whether there are callbacks to call after each round."""
        return bool(getattr(self._context, "_callbacks", ()))

    @property
    def is_needed(self) -> bool:
        """Whether anything is reported."""
        return self._is_verbose or self.has_callbacks

    def begin_round(self) -> None:
        """Report that a round begins."""
        if self.has_callbacks:
            self._task = self._context.subcontext(task_name="round")
            self._task.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end_round(
        self, n_done: int, scores: list[float], get_model: Callable[[], dict[str, Any]]
    ) -> bool:
        """Report the rounds of this fit so far; return whether a callback stops it."""
        stops = False
        if self.has_callbacks:
            stops = self._task.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=get_model, **self._data
            )
        n_all = self.n_before + n_done
        now = time.monotonic()
        is_due = n_all == self.n_rounds or now - self._last_line >= SECONDS_BETWEEN_LINES
        if self._is_verbose and is_due:
            self._last_line = now
            left = (self.n_rounds - n_all) * (now - self._start) / n_done
            words = ["score", "validation"][: len(scores)]
            shown = ", ".join(f"{w} {s:.6g}" for w, s in zip(words, scores, strict=True))
            text = f"[lhtree] {n_all} of {self.n_rounds} rounds, {shown}"
            text += f", {now - self._start:.1f} s, {left:.1f} s to go"
            print(text, file=sys.stderr, flush=True)
        return stops

    def report_refit(self, best_round: int, n_rounds: int) -> None:
        """Report that a model of so many rounds grows from all rows."""
        if self._is_verbose:
            text = f"[lhtree] best round: {best_round}; refit: {n_rounds} rounds on all rows"
            print(text, file=sys.stderr, flush=True)
