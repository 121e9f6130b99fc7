"""The point of a polytope that is nearest to the origin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from lhtree.arrays import Floats

FEASIBLE = 1e-10  # by how much a point may miss a half-space, relative to its distance
EMPTY = 1e-9  # least residual that is more than rounding; below, the polytope is empty


class NumericalFailure(ArithmeticError):
    """No answer can be had in double precision."""


class HalfSpace(NamedTuple):
    """The points u with ``normal @ u >= need``; `normal` has length one."""

    normal: Floats
    need: float  # distance of the origin from the half-space; below 0 if it is inside
    is_open: bool = True  # whether the boundary itself does not belong to it


def find_nearest(half_spaces: list[HalfSpace], margin: float = 0.0) -> Floats | None:
    """Return the point of least length in all half-spaces; None if there is none.

    Open half-spaces are moved inwards by `margin`. Few of many half-spaces touch the
    answer, so it is sought for the most violated ones, more of which are added until
    none is left.
    """
    normal = np.array([half_space.normal for half_space in half_spaces])
    need = np.array([space.need + margin * space.is_open for space in half_spaces])
    return find_nearest_of(normal, need)


def find_nearest_of(normal: Floats, need: Floats) -> Floats | None:
    """Return the point u of least length with ``normal @ u >= need``; None without one."""
    active = np.zeros(len(need), dtype=bool)
    point = np.zeros(normal.shape[1])
    for _ in range(len(need)):
        missing = need - normal @ point
        missing[active] = -np.inf
        worst = missing.argmax()
        if missing[worst] <= FEASIBLE * (1.0 + np.abs(point).max()):
            return point
        active[worst] = True
        shortest = _find_shortest(normal[active], need[active])
        if shortest is None:
            return None
        point = shortest
        _check_inside(normal[active], need[active], point)
    return point


def _check_inside(normal: Floats, need: Floats, point: Floats) -> None:
    if np.any(normal @ point < need - 10 * FEASIBLE * (1.0 + np.linalg.norm(point))):
        raise NumericalFailure


def _find_shortest(normal: Floats, need: Floats) -> Floats | None:
    """Solve the least-distance problem by non-negative least squares.

    Lawson and Hanson, Solving Least Squares Problems, chapter 23: the residual of
    fitting (0, ..., 0, 1) by non-negative multiples of (normal, need) is the answer, up
    to a factor; it vanishes if the half-spaces have no point in common.
    """
    unit = need.max()
    if unit <= 0:
        return np.zeros(normal.shape[1])
    basis: NDArray[np.float64] = np.vstack([normal.T, need / unit])
    wanted = np.zeros(len(basis))
    wanted[-1] = 1.0
    try:
        multiple, _ = nnls(basis, wanted)
    except RuntimeError as error:  # too many iterations
        raise NumericalFailure from error
    residual = wanted - basis @ multiple
    if residual[-1] < EMPTY:
        return None
    point: Floats = -residual[:-1] / residual[-1] * unit
    return point
