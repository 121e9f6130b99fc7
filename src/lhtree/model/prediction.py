"""From the votes of trees to scores, and from scores to probabilities.

Let vote_k be the mean membership over the trees of class k, and s_k its signed distance.
The score of a class is ``q_k = vote_k + 1e-6 * (1 + s_k / (1 + |s_k|)) / 2``, and its
probability is proportional to ``(q_k + offset) ** exponent``. Offset and exponent are the
two numbers of ``calibration_``; without calibration they are 0 and 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.model.forest import Forest, Votes, list_positive_classes

TIE_WEIGHT = 1e-6  # the most that the signed distance adds to a vote
CHUNK = 512  # rows scored at once, which takes little memory
MOST_EXTREME = 1e154  # the core moves numbers beyond it to it; see native/old/predict.hpp
VOTINGS = ("membership", "margin")
NOT_CALIBRATED = (0.0, 1.0)  # offset and exponent that change nothing


@dataclass(frozen=True)
class Voting:
    """How the trees of a forest vote on classes.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    by_margin : bool
        Whether votes are memberships weighted by distance rather than mean memberships.
    """

    n_classes: int
    by_margin: bool

    @property
    def n_trees_per_estimator(self) -> int:
        """Trees per estimator: one per class, or one for two classes."""
        return len(list_positive_classes(self.n_classes))

    def count_estimators(self, forest: Forest) -> int:
        """Return the number of estimators of a forest."""
        return len(forest) // self.n_trees_per_estimator

    def vote(
        self,
        forest: Forest,
        X: Any,
        out_of_bag: NDArray[np.uint64] | None = None,
        *,
        n_threads: int = 1,
    ) -> Votes:
        """Sum the outputs of the trees of each class; see :meth:`Forest.vote`."""
        return forest.vote(
            X,
            n_classes=self.n_classes,
            by_margin=self.by_margin,
            out_of_bag=out_of_bag,
            n_trees_per_estimator=self.n_trees_per_estimator,
            n_threads=n_threads,
        )

    def vote_shrunk(
        self,
        forest: Forest,
        X: Any,
        strengths: Sequence[float],
        out_of_bag: NDArray[np.uint64] | None = None,
        *,
        n_threads: int = 1,
    ) -> Votes:
        """Sum the outputs for each strength of shrinkage; see :meth:`Forest.vote_shrunk`."""
        return forest.vote_shrunk(
            X,
            strengths,
            n_classes=self.n_classes,
            by_margin=self.by_margin,
            out_of_bag=out_of_bag,
            n_trees_per_estimator=self.n_trees_per_estimator,
            n_threads=n_threads,
        )

    def score(self, votes: Votes, n_voters: int | Ints) -> Floats:
        """Turn sums over trees into the scores q of the classes.

        Parameters
        ----------
        votes : tuple of ndarrays
            What :meth:`vote` returns.
        n_voters : int or ndarray of shape (n_rows, 1)
            Number of estimators that voted.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Positive numbers.
        """
        n_rows = len(votes[0])
        if n_rows <= CHUNK:
            return self._score_chunk(votes, n_voters)
        score = np.empty(votes[0].shape)
        for rows in cut_chunks(n_rows):
            n_some = n_voters[rows] if isinstance(n_voters, np.ndarray) else n_voters
            few = votes[0][rows], votes[1][rows], votes[2][rows]
            score[rows] = self._score_chunk(few, n_some)
        return score

    def _score_chunk(self, votes: Votes, n_voters: int | Ints) -> Floats:
        vote, distance, complement = votes
        if not self.by_margin:
            vote = vote / n_voters
        distance = distance / n_voters
        if vote.shape[1] == 2:  # only the trees of the second class exist
            other = complement if self.by_margin else 1 - vote[:, 1]
            vote = np.column_stack([other, vote[:, 1]])
            distance = np.column_stack([-distance[:, 1], distance[:, 1]])
        score: Floats = vote + tie_break(distance)
        return score

    def score_rows(self, forest: Forest, X: Any, *, n_threads: int = 1) -> Floats:
        """Return the scores q of rows by all estimators of a forest."""
        votes = self.vote(forest, X, n_threads=n_threads)
        return self.score(votes, self.count_estimators(forest))


def predict_classes(score: Floats) -> NDArray[np.int64]:
    """Return the index of the class with the highest score, the first in a tie."""
    # Compare probabilities: the division may equalise scores that differ in the last bit.
    return np.asarray(normalize_scores(score).argmax(axis=1))


def cut_chunks(n_rows: int) -> Iterator[slice]:
    """Yield chunks of rows to score one after another."""
    for begin in range(0, n_rows, CHUNK):
        yield slice(begin, begin + CHUNK)


def tie_break(signed_distance: Floats) -> Floats:
    """Return ``TIE_WEIGHT * (1 + s / (1 + |s|)) / 2``, positive for any finite ``s``."""
    size = np.abs(signed_distance)
    # Below zero, 1 - |s| / (1 + |s|) would cancel to 0 for large distances.
    bonus = np.where(signed_distance < 0, 1 / (1 + size), 1 + size / (1 + size))
    return TIE_WEIGHT * bonus / 2


def normalize_scores(score: Floats, offset: float = 0.0, exponent: float = 1.0) -> Floats:
    """Turn scores into class probabilities.

    Parameters
    ----------
    score : ndarray of shape (n_rows, n_classes)
        Positive numbers.
    offset, exponent : float
        The two numbers of ``calibration_``.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Rows sum to one.
    """
    if offset != 0.0:
        score = score + offset
    if exponent != 1.0:  # relative to the largest, so that no power overflows
        score = (score / score.max(axis=1, keepdims=True)) ** exponent
    probability: Floats = score / score.sum(axis=1, keepdims=True)
    return probability
