"""From what the trees say to probabilities."""

from __future__ import annotations

import numpy as np

from lhtree.tree import Floats, Ints

TIE_WEIGHT = 1e-6  # what the signed distance may add to a vote


def tie_break(signed_distance: Floats) -> Floats:
    """Return ``TIE_WEIGHT * (1 + s / (1 + |s|)) / 2``, positive for any finite ``s``."""
    size = np.abs(signed_distance)
    # Below zero, 1 - |s| / (1 + |s|) would cancel to 0 for large distances.
    share = np.where(signed_distance < 0, 1 / (1 + size), 1 + size / (1 + size))
    return TIE_WEIGHT * share / 2


def find_probabilities(
    sums: tuple[Floats, Floats, Floats], n_members: int | Ints, *, by_margin: bool
) -> Floats:
    """Turn sums over trees into class probabilities.

    Parameters
    ----------
    sums : tuple of ndarrays
        What :meth:`lhtree.tree.Forest.vote` returns.
    n_members : int or ndarray of shape (n_rows, 1)
        Number of members that voted.
    by_margin : bool
        Whether votes are sums weighted by distance rather than mean memberships.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Rows sum to one.
    """
    vote, distance, complement = sums
    if not by_margin:
        vote = vote / n_members
    distance = distance / n_members
    if vote.shape[1] == 2:  # only the trees of the second class exist
        other = complement if by_margin else 1 - vote[:, 1]
        vote = np.column_stack([other, vote[:, 1]])
        distance = np.column_stack([-distance[:, 1], distance[:, 1]])
    score = vote + tie_break(distance)
    probability: Floats = score / score.sum(axis=1, keepdims=True)
    return probability
