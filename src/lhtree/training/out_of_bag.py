"""Votes of estimators on training rows that they did not draw, and their uses.

Out-of-bag votes are as honest as votes on new rows. They score a forest, show when it has
enough estimators, choose its shrinkage and calibrate its probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lhtree.arrays import Floats, Ints
from lhtree.model.forest import Forest
from lhtree.model.prediction import Voting, normalize_scores
from lhtree.training import calibration, shrinkage
from lhtree.training.backend import Backend, OutOfBagRows
from lhtree.training.plan import Plan

MOST_ROWS = 5_000  # enough to decide on the number of estimators and on shrinkage


@dataclass(frozen=True)
class OutOfBag:
    """Out-of-bag votes of a forest on its training rows."""

    backend: Backend
    plan: Plan
    voting: Voting
    reader: str  # the parameter that needs the votes, for messages; empty if none does

    def compute_accuracy(self, forest: Forest) -> float:
        """Return the weighted accuracy on some of the rows."""
        rows, n_voters = self._take_rows(forest, MOST_ROWS)
        is_right = self._score(rows, n_voters, forest).argmax(axis=1) == rows.y_encoded
        count = (n_voters > 0) * rows.counts
        # If estimators leave only a row or two undrawn, these rows may include none of them.
        return float(np.average(is_right, weights=count)) if count.any() else 0.0

    def choose_shrinkage(self, forest: Forest) -> float:
        """Return the strength of shrinkage with the lowest error; see `shrinkage`."""
        t = self.voting.count_estimators(forest)
        if t == 1:  # too few to compare
            return 0.0
        rows, n_all = self._take_rows(forest, MOST_ROWS)
        n_half = rows.count_voters(t // 2)
        has_voters = n_half > 0
        voters = n_half[has_voters], n_all[has_voters]
        measured = (
            self._measure_shrunk(rows, forest, t // 2, n_half),
            self._measure_shrunk(rows, forest, None, n_all),
        )
        errors = [
            shrinkage.extrapolate_error(
                (few[has_voters], every[has_voters]), voters, t, rows.counts[has_voters]
            )
            for few, every in zip(*measured, strict=True)
        ]
        return shrinkage.choose_strength(errors)

    def calibrate(self, forest: Forest) -> Floats:
        """Return offset and exponent of the probabilities; see `calibration`."""
        rows, n_voters = self._take_rows(forest, None)
        score, is_voted = self._score(rows, n_voters, forest), n_voters > 0
        half_vote = calibration.HALF_VOTE / n_voters[is_voted, np.newaxis]
        exponent = calibration.fit_exponent(
            np.log(score[is_voted] + half_vote), rows.y_encoded[is_voted], rows.counts[is_voted]
        )
        return np.array([calibration.HALF_VOTE / self.voting.count_estimators(forest), exponent])

    def score_rows(self, forest: Forest) -> tuple[OutOfBagRows, Floats, Ints]:
        """Return all rows, their scores and how many estimators voted on each."""
        rows, n_voters = self._take_rows(forest, None)
        return rows, self._score(rows, n_voters, forest), n_voters

    def _take_rows(self, forest: Forest, most_rows: int | None) -> tuple[OutOfBagRows, Ints]:
        n_estimators = self.voting.count_estimators(forest)
        rows = self.backend.take_out_of_bag(self.plan, n_estimators, most_rows)
        if self.reader and not rows.has_voters:
            raise ValueError(
                f"{self.reader} needs out-of-bag rows, but every estimator drew all "
                f"{self.backend.n_rows} rows; use a smaller max_samples."
            )
        return rows, rows.count_voters()

    def _score(self, rows: OutOfBagRows, n_voters: Ints, forest: Forest) -> Floats:
        return self.voting.score(rows.vote(forest, self.voting), _at_least_one(n_voters))

    def _measure_shrunk(
        self, rows: OutOfBagRows, forest: Forest, n_estimators: int | None, n_voters: Ints
    ) -> Floats:
        """Return the squared errors of the votes, one row per strength."""
        error = np.empty((len(shrinkage.STRENGTHS), len(rows.y_encoded)))
        votes = rows.vote_shrunk(forest, self.voting, shrinkage.STRENGTHS, n_estimators)
        for some, all_sums in votes:
            for k, sums in enumerate(zip(*all_sums, strict=True)):
                score = self.voting.score(sums, _at_least_one(n_voters[some]))
                proba = normalize_scores(score)
                error[k, some] = shrinkage.measure_error(proba, rows.y_encoded[some])
        return error


def _at_least_one(n_voters: Ints) -> Ints:
    return np.maximum(n_voters, 1)[:, np.newaxis]
