"""Hierarchical shrinkage: pull the values of small nodes towards those of the nodes above.

On the path from the root to a node, every step from a parent of weight n to its child
counts by ``n / (n + shrinkage)``. A fully grown tree outputs 0 or 1 in leaves of a few
rows; if labels are noisy, the values of the larger nodes above them are better estimates.
Splits stay the same: only ``value`` changes, in closed form from numbers that every node has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Floats, Ints
from lhtree.model.forest import Forest

STRENGTHS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0)  # what "auto" chooses from


def shrink(forest: Forest, strength: float) -> Forest:
    """Return the forest with its values pulled towards those of the nodes above.

    Parameters
    ----------
    forest : Forest
        A forest whose values are those of the training rows.
    strength : float
        Weight of a parent at which the step to its child counts half; 0 changes
        nothing.

    Returns
    -------
    Forest
        The same splits; roots keep their values, and all values stay in [0, 1].
    """
    if strength == 0.0:
        return forest
    arrays = {field.name: getattr(forest, field.name) for field in fields(Forest)}
    return Forest.from_arrays({**arrays, "value": _core.shrink(forest, strength)})


def choose_strength(errors: Sequence[float] | Floats) -> float:
    """Return the strength with the lowest error, the smallest in a tie.

    Parameters
    ----------
    errors : sequence of float
        Error of the forest for each of `STRENGTHS`; see :func:`extrapolate_error`.

    Returns
    -------
    float
        One of `STRENGTHS`.

    Examples
    --------
    >>> choose_strength([0.4, 0.3, 0.2, 0.2, 0.21, 0.25])
    3.0
    """
    return STRENGTHS[int(np.argmin(errors))]


def measure_error(proba: Floats, y_encoded: NDArray[np.int32]) -> Floats:
    """Return the squared error of each row's probabilities.

    Parameters
    ----------
    proba : ndarray of shape (n_rows, n_classes)
        Probabilities.
    y_encoded : ndarray of shape (n_rows,)
        Class of each row.

    Returns
    -------
    ndarray of shape (n_rows,)
        ``sum_k (p_k - [k is the class])**2``.
    """
    own = proba[np.arange(len(y_encoded)), y_encoded]
    error: Floats = (proba**2).sum(axis=1) - own**2 + (1 - own) ** 2
    return error


def extrapolate_error(
    error: Sequence[Floats], n_voters: Sequence[Ints], n_estimators: int, weight: Floats
) -> float:
    """Return the error that the votes of all estimators would have.

    Only about a fifth of the estimators vote on a row out of bag, and the fewer vote, the
    more useful shrinkage looks. The error of v votes is that of infinitely many plus a
    constant divided by v. The errors at two numbers of votes give the constant.

    Parameters
    ----------
    error : two ndarrays of shape (n_rows,)
        Squared errors of the rows with some of the voters and with all of them.
    n_voters : two ndarrays of shape (n_rows,)
        Their numbers, at least one.
    n_estimators : int
        Number of votes to extrapolate to.
    weight : ndarray of shape (n_rows,)
        How much each row counts.

    Returns
    -------
    float
        Sum over the rows.

    Examples
    --------
    >>> import numpy as np
    >>> few, all_voters = np.array([2, 1]), np.array([4, 4])
    >>> error = 0.3 + 1 / few, 0.3 + 1 / all_voters
    >>> round(extrapolate_error(error, (few, all_voters), 10, np.ones(2)), 9)
    0.8
    """
    few, every = (1 / count for count in n_voters)
    gap = float(weight @ (few - every))
    slope = float(weight @ (error[0] - error[1])) / gap if gap > 0 else 0.0
    return float(weight @ error[1]) - max(slope, 0.0) * float(weight @ (every - 1 / n_estimators))
