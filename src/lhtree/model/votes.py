"""From the shares in leaves to votes, and from votes to probabilities: forests of classes.

The vote for a class is the mean share of it in the leaves that a row reaches, over the trees of
the class; of two classes, only the second has trees. The probability of a class is proportional
to ``(vote + offset) ** exponent``: the two numbers are those of ``calibration_``, or the ones
here. The class with the largest vote is predicted, the first of equal ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lhtree.arrays import Floats, Ints
from lhtree.model.ensemble import Ensemble

UNCALIBRATED = (5e-7, 1.0)  # the offset gives equal probabilities where no tree claims a row


def count_votes(forest: Ensemble, X: Any, *, n_classes: int, n_threads: int = 1) -> Floats:
    """Return the votes for each class: one column per class."""
    return complete_votes(forest.score(X, n_threads=n_threads), n_classes)


def complete_votes(vote: Floats, n_classes: int) -> Floats:
    """Return a column for the first of two classes, too."""
    if n_classes != 2:
        return vote
    return np.column_stack([1.0 - vote[:, 0], vote[:, 0]])


def average_votes(total: Ints, n_voters: Ints, power: int, n_classes: int) -> Floats:
    """Return the votes of some estimators for each row, 0 where there are none."""
    count = np.maximum(n_voters, 1)[:, np.newaxis]
    return complete_votes(np.ldexp(total / count, -power), n_classes)
