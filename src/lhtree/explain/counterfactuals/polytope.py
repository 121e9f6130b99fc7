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
    """Double precision is not enough for a solution."""


class HalfSpace(NamedTuple):
    """The points u with ``normal @ u >= offset``; `normal` has length one."""

    normal: Floats
    offset: float  # distance of the origin from the half-space; below 0 if it is inside
    is_open: bool = True  # whether it excludes its boundary


def compute_nearest_point(half_spaces: list[HalfSpace], margin: float = 0.0) -> Floats | None:
    """Return the point of least length in all half-spaces; None if there is none.

    Open half-spaces move inwards by `margin`.
    """
    normal = np.array([half_space.normal for half_space in half_spaces])
    offset = np.array([space.offset + margin * space.is_open for space in half_spaces])
    return solve_nearest_point(normal, offset)


def solve_nearest_point(normal: Floats, offset: Floats) -> Floats | None:
    """Return the point u of least length with ``normal @ u >= offset``; None without one.

    Few of many half-spaces touch the nearest point. So this solves for the most violated
    ones only and adds more until none is violated.
    """
    active = np.zeros(len(offset), dtype=bool)
    point = np.zeros(normal.shape[1])
    for _ in range(len(offset)):
        missing = offset - normal @ point
        missing[active] = -np.inf
        worst = missing.argmax()
        if missing[worst] <= FEASIBLE * (1.0 + np.abs(point).max()):
            return point
        active[worst] = True
        shortest = _solve_least_distance(normal[active], offset[active])
        if shortest is None:
            return None
        point = shortest
        _check_inside(normal[active], offset[active], point)
    return point


def _check_inside(normal: Floats, offset: Floats, point: Floats) -> None:
    if np.any(normal @ point < offset - 10 * FEASIBLE * (1.0 + np.linalg.norm(point))):
        raise NumericalFailure


def _solve_least_distance(normal: Floats, offset: Floats) -> Floats | None:
    """Solve the least-distance problem by non-negative least squares.

    Lawson and Hanson, Solving Least Squares Problems, chapter 23: fit (0, ..., 0, 1) by
    non-negative multiples of (normal, offset). Up to a factor, the residual is the
    solution; it vanishes if the half-spaces have no point in common.
    """
    unit = offset.max()
    if unit <= 0:
        return np.zeros(normal.shape[1])
    basis: NDArray[np.float64] = np.vstack([normal.T, offset / unit])
    goal = np.zeros(len(basis))
    goal[-1] = 1.0
    try:
        multiple, _ = nnls(basis, goal)
    except RuntimeError as error:  # too many iterations
        raise NumericalFailure from error
    residual = goal - basis @ multiple
    if residual[-1] < EMPTY:
        return None
    point: Floats = -residual[:-1] / residual[-1] * unit
    return point
