"""How many estimators a forest has, and the beta of each."""

from __future__ import annotations

import math
from collections.abc import Sequence

FEWEST, MOST = 15, 100  # estimators, if the size of the table decides
MOST_NUMBERS = 150_000_000  # read at the roots of all estimators together
FEWEST_OF_ENGINE = 30  # on the exact engine
BATCH = 20  # estimators to add before the next out-of-bag score
LEAST_GAIN = 0.001  # of the out-of-bag score; less does not count as an improvement
PATIENCE = 2  # batches without improvement


def choose_n_estimators(n_rows: int, n_columns: int, n_trees: int, *, fewest: int = FEWEST) -> int:
    """Return the number of estimators for a table of this size.

    It is 100 while the estimators read at most 150 million numbers at their roots, and
    fewer for larger tables, but at least `fewest`.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_columns : int
        Number of columns that a root reads: on the exact engine, those that a node draws.
    n_trees : int
        Trees per estimator: one for two classes and numbers, otherwise one per class.
    fewest : int
        Smallest number.

    Returns
    -------
    int
        Number of estimators.

    Examples
    --------
    >>> choose_n_estimators(4_435, 36, 6)
    100
    >>> choose_n_estimators(40_000, 50, 5)
    15
    """
    return max(fewest, min(MOST, MOST_NUMBERS // (n_rows * n_columns * n_trees)))


def schedule_beta(
    beta: float, first: int, last: int, n_estimators: int | None
) -> tuple[float, ...]:
    """Return the beta of estimators `first` to ``last - 1``.

    Estimator i of t has ``beta * i / t``. If t is not known yet, van der Corput's sequence
    takes the place of i / t: it fills [0, 1) evenly wherever it ends.

    Parameters
    ----------
    beta : float
        End of the schedule.
    first, last : int
        Estimators `first`, ..., ``last - 1``.
    n_estimators : int or None
        Number of all estimators; None if it is not known yet.

    Returns
    -------
    tuple of float
        If there is only one estimator, `beta` itself.

    Examples
    --------
    >>> schedule_beta(0.8, 0, 4, 4)
    (0.0, 0.2, 0.4, 0.6000000000000001)
    >>> schedule_beta(1.0, 0, 5, None)
    (0.0, 0.5, 0.25, 0.75, 0.125)
    """
    if n_estimators == 1:
        return (float(beta),) * (last - first)
    if n_estimators is None:
        return tuple(beta * compute_van_der_corput(i) for i in range(first, last))
    return tuple(beta * i / n_estimators for i in range(first, last))


def compute_van_der_corput(i: int) -> float:
    """Return `i` with its binary digits mirrored at the point."""
    digits = f"{i:b}"[::-1]
    return math.ldexp(int(digits, 2), -len(digits))


def is_enough(scores: Sequence[float]) -> bool:
    """Return whether the last batches of estimators did not improve the score.

    Parameters
    ----------
    scores : sequence of float
        Out-of-bag score after each batch.

    Returns
    -------
    bool
        True if the last two scores are less than 0.001 above the best one before them.

    Examples
    --------
    >>> is_enough([0.90, 0.92, 0.9205])
    False
    >>> is_enough([0.90, 0.92, 0.9205, 0.9208])
    True
    """
    before, last = scores[:-PATIENCE], scores[-PATIENCE:]
    return len(before) > 0 and max(last) < max(before) + LEAST_GAIN
