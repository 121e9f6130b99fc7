"""From what the trees say to probabilities.

With vote_k the mean membership over the trees of class k and s_k its signed distance,
the score of a class is ``q_k = vote_k + 1e-6 * (1 + s_k / (1 + |s_k|)) / 2``, and its
probability is proportional to ``(q_k + offset) ** exponent``. Offset and exponent are
the two numbers of ``calibration_``; a model without it has plain votes, (0, 1).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lhtree.arrays import Floats, Ints

TIE_WEIGHT = 1e-6  # what the signed distance may add to a vote
PIECE = 512  # rows whose numbers on the way to an answer take little memory


def cut_pieces(n_rows: int) -> Iterator[slice]:
    """Yield the parts in which rows are answered, one after the other."""
    for begin in range(0, n_rows, PIECE):
        yield slice(begin, begin + PIECE)


def tie_break(signed_distance: Floats) -> Floats:
    """Return ``TIE_WEIGHT * (1 + s / (1 + |s|)) / 2``, positive for any finite ``s``."""
    size = np.abs(signed_distance)
    # Below zero, 1 - |s| / (1 + |s|) would cancel to 0 for large distances.
    share = np.where(signed_distance < 0, 1 / (1 + size), 1 + size / (1 + size))
    return TIE_WEIGHT * share / 2


def find_scores(
    sums: tuple[Floats, Floats, Floats], n_members: int | Ints, *, by_margin: bool
) -> Floats:
    """Turn sums over trees into the scores q of the classes.

    Parameters
    ----------
    sums : tuple of ndarrays
        What :meth:`lhtree.model.forest.Forest.vote` returns.
    n_members : int or ndarray of shape (n_rows, 1)
        Number of members that voted.
    by_margin : bool
        Whether votes are sums weighted by distance rather than mean memberships.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Positive numbers.
    """
    n_rows = len(sums[0])
    if n_rows <= PIECE:
        return _score_piece(sums, n_members, by_margin=by_margin)
    score = np.empty(sums[0].shape)
    for part in cut_pieces(n_rows):
        n_voters = n_members[part] if isinstance(n_members, np.ndarray) else n_members
        few = sums[0][part], sums[1][part], sums[2][part]
        score[part] = _score_piece(few, n_voters, by_margin=by_margin)
    return score


def _score_piece(
    sums: tuple[Floats, Floats, Floats], n_members: int | Ints, *, by_margin: bool
) -> Floats:
    vote, distance, complement = sums
    if not by_margin:
        vote = vote / n_members
    distance = distance / n_members
    if vote.shape[1] == 2:  # only the trees of the second class exist
        other = complement if by_margin else 1 - vote[:, 1]
        vote = np.column_stack([other, vote[:, 1]])
        distance = np.column_stack([-distance[:, 1], distance[:, 1]])
    score: Floats = vote + tie_break(distance)
    return score


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
    if (offset, exponent) != (0.0, 1.0):
        score = score + offset
        # Relative to the largest, so that no power leaves the range of doubles.
        score = (score / score.max(axis=1, keepdims=True)) ** exponent
    probability: Floats = score / score.sum(axis=1, keepdims=True)
    return probability
