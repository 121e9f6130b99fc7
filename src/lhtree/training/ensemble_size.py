"""Which members a forest has: how many, and the beta of each."""

from __future__ import annotations

import math
from collections.abc import Sequence

FEWEST, MOST = 15, 100  # members, where the size of the table decides
MOST_NUMBERS = 150_000_000  # that the members read at their roots, all together
BATCH = 20  # members that are added before the out-of-bag score is looked at again
LEAST_GAIN = 0.001  # of the out-of-bag score; less is no improvement
PATIENCE = 2  # batches without improvement


def count_members(n_rows: int, n_columns: int, n_trees: int) -> int:
    """Return the number of members for a table of this size.

    100, as long as the members read at most 150 million numbers at their roots;
    for larger tables fewer, at least 15.

    Parameters
    ----------
    n_rows, n_columns : int
        Size of the table that the trees see.
    n_trees : int
        Trees of a member: one for two classes, else one for each class.

    Returns
    -------
    int
        Number of members.

    Examples
    --------
    >>> count_members(4_435, 36, 6)
    100
    >>> count_members(40_000, 50, 5)
    15
    """
    return max(FEWEST, min(MOST, MOST_NUMBERS // (n_rows * n_columns * n_trees)))


def schedule_beta(beta: float, first: int, last: int, n_members: int | None) -> tuple[float, ...]:
    """Return the beta of the members from number `first` to `last`.

    Member i of t has ``beta * i / t``. Where the number of members is not known,
    numbers i / t are replaced by van der Corput's sequence, which fills [0, 1) evenly
    wherever it ends.

    Parameters
    ----------
    beta : float
        End of the schedule.
    first, last : int
        Members `first`, ..., ``last - 1``.
    n_members : int or None
        Number of all members; None if it is not known.

    Returns
    -------
    tuple of float
        A single member of one has `beta` itself.

    Examples
    --------
    >>> schedule_beta(0.8, 0, 4, 4)
    (0.0, 0.2, 0.4, 0.6000000000000001)
    >>> schedule_beta(1.0, 0, 5, None)
    (0.0, 0.5, 0.25, 0.75, 0.125)
    """
    if n_members == 1:
        return (float(beta),) * (last - first)
    if n_members is None:
        return tuple(beta * find_van_der_corput(i) for i in range(first, last))
    return tuple(beta * i / n_members for i in range(first, last))


def find_van_der_corput(i: int) -> float:
    """Return the binary digits of `i` mirrored at the point."""
    digits = f"{i:b}"[::-1]
    return math.ldexp(int(digits, 2), -len(digits))


def is_enough(scores: Sequence[float]) -> bool:
    """Return whether the last batches of members brought no improvement.

    Parameters
    ----------
    scores : sequence of float
        Out-of-bag score after each batch.

    Returns
    -------
    bool
        True if the last two scores lie less than 0.001 above the best before them.

    Examples
    --------
    >>> is_enough([0.90, 0.92, 0.9205])
    False
    >>> is_enough([0.90, 0.92, 0.9205, 0.9208])
    True
    """
    before, last = scores[:-PATIENCE], scores[-PATIENCE:]
    return len(before) > 0 and max(last) < max(before) + LEAST_GAIN
