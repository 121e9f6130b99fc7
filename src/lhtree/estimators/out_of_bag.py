"""What the members say of the training rows that they left out, and what follows from it.

Such votes, out of bag, are as honest as those on new rows. They score a forest, say when
it has members enough, choose its shrinkage and calibrate its probabilities.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import accuracy_score

from lhtree import _core
from lhtree.data.notices import warn
from lhtree.data.rows import Draw, LeftOut
from lhtree.estimators import params
from lhtree.estimators.answers import FittedTrees
from lhtree.model.prediction import find_scores, normalize_scores
from lhtree.training import calibration, shrinkage

MOST_JUDGES = 5_000  # rows whose out-of-bag votes decide on members and shrinkage
MOST_AT_ONCE = 1_024  # whose votes under all strengths take little memory; whole words of bits


class JudgedTrees(FittedTrees):
    """Members that are judged by the rows that they did not see."""

    _seed: int
    _draw: Draw

    def _find_left_out(self, n_members=None):
        """Return which rows the first members left out; None: all members."""
        n_threads = params.count_threads(self.n_jobs)
        n = self._n_members if n_members is None else n_members
        left_out = LeftOut(*_core.find_left_out(self._seed, n, *self._draw, n_threads))
        reader = params.find_reader_of_left_out(self)
        if reader and n_members is None and not left_out.n_voters.any():
            raise ValueError(
                f"{reader} needs rows that are left out, but every member drew all "
                f"{self._draw.n_rows} rows; use a smaller max_samples."
            )
        return left_out

    def _find_judges(self, rows, *n_members):
        """Return some of the rows, evenly spread, and which of the first members left them out."""
        step = -(-rows.n_rows // MOST_JUDGES)
        return rows.take_every(step), *(self._find_left_out(n).take_every(step) for n in n_members)

    def _vote_left_out(self, rows, left_out):
        """Return the scores of rows by the members that left them out."""
        sums = self._vote(rows.X, left_out=left_out.pad(self._n_members))
        return self._score_votes(sums, left_out.n_voters)

    def _vote_shrunk(self, rows, left_out):
        """Yield rows, and the same sums of votes for each strength that may shrink the forest."""
        bits, step = left_out.pad(self._n_members), MOST_AT_ONCE
        for begin in range(0, rows.n_rows, step):
            part = slice(begin, min(begin + step, rows.n_rows))
            words = np.ascontiguousarray(bits[:, begin // 64 : (begin + step) // 64])
            yield (
                part,
                self.forest_.vote_shrunk(
                    rows.X[part], shrinkage.STRENGTHS, left_out=words, **self._describe_vote()
                ),
            )

    def _score_votes(self, sums, n_voters):
        """Return the scores of rows by so many members."""
        n_voters = np.maximum(n_voters, 1)[:, np.newaxis]
        return find_scores(sums, n_voters, by_margin=self.voting == "margin")

    def _measure_shrunk(self, rows, left_out):
        """Return the squared errors of the votes, a row for each strength."""
        error = np.empty((len(shrinkage.STRENGTHS), len(rows.code)))
        for part, all_sums in self._vote_shrunk(rows, left_out):
            for k, sums in enumerate(zip(*all_sums, strict=True)):
                score = self._score_votes(sums, left_out.n_voters[part])
                proba = normalize_scores(score)
                error[k, part] = shrinkage.measure_error(proba, rows.code[part])
        return error

    def _find_left_out_accuracy(self, rows):
        some, left_out = self._find_judges(rows, None)
        is_right = self._vote_left_out(some, left_out).argmax(axis=1) == some.code
        count = (left_out.n_voters > 0) * some.counts
        # Where members leave out a row or two, none of them may be among the judges.
        return float(np.average(is_right, weights=count)) if count.any() else 0.0

    def _shrink(self, rows):
        """Move the shares of small nodes towards those above, as `shrinkage` says."""
        strength = params.resolve_shrinkage(self)
        if strength is None:
            strength = 0.0
            if self._draw.bootstrap or self._draw.n_draws < self._draw.n_rows:
                strength = self._choose_strength(rows)
        self.shrinkage_ = float(strength)
        self.forest_ = shrinkage.shrink(self.forest_, self.shrinkage_)

    def _choose_strength(self, rows):
        """Return the strength that suits the out-of-bag votes; see `shrinkage`."""
        t = self._n_members
        if t == 1:  # too few to tell
            return 0.0
        some, half, whole = self._find_judges(rows, t // 2, None)
        is_judge = half.n_voters > 0
        voters = half.n_voters[is_judge], whole.n_voters[is_judge]
        measured = (self._measure_shrunk(some, left_out) for left_out in (half, whole))
        errors = [
            shrinkage.extrapolate_error(
                (few[is_judge], every[is_judge]), voters, t, some.counts[is_judge]
            )
            for few, every in zip(*measured, strict=True)
        ]
        return shrinkage.choose_strength(errors)

    def _calibrate(self, rows):
        """Set `calibration_` from the votes of the members that left a row out."""
        left_out = self._find_left_out()
        score, is_voted = self._vote_left_out(rows, left_out), left_out.n_voters > 0
        half_vote = calibration.HALF_VOTE / left_out.n_voters[is_voted, np.newaxis]
        weight = None if rows.weight is None else rows.weight[is_voted]
        exponent = calibration.fit_exponent(
            np.log(score[is_voted] + half_vote), rows.code[is_voted], weight
        )
        self.calibration_ = np.array([calibration.HALF_VOTE / self._n_members, exponent])

    def _score_left_out(self, rows, n_samples):
        """Set the out-of-bag attributes from the members that did not see a row."""
        left_out = self._find_left_out()
        score, is_voted = self._vote_left_out(rows, left_out), left_out.n_voters > 0
        if not is_voted.all():
            warn(
                f"{np.count_nonzero(~is_voted)} rows were seen by every member and have no "
                "out-of-bag votes; use more members.",
            )
        self.oob_decision_function_ = np.full((n_samples, self.n_classes_), np.nan)
        number = rows.find_numbers(np.flatnonzero(is_voted))
        self.oob_decision_function_[number] = self._normalize(score)[is_voted]
        measure = self.oob_score if callable(self.oob_score) else accuracy_score
        predicted = self.classes_[normalize_scores(score[is_voted]).argmax(axis=1)]
        self.oob_score_ = measure(self.classes_[rows.code[is_voted]], predicted)
