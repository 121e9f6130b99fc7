"""Where in a cell of the trees a class wins.

In a cell, where every tree has arrived in a leaf, each class has a line: its membership
before clipping. Votes that are equal after clipping are decided by the distances from
the hyperplanes on the paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from lhtree.arrays import Floats
from lhtree.explain.polytope import HalfSpace

NO_SLOPE = 1e-12  # functions whose slopes are shorter count as constant
SAME_VOTE = 1e-6  # what the tie-break may add to a vote


class Line(NamedTuple):
    """An affine function of a move: ``value + slope @ move``."""

    slope: Floats
    value: float

    def __sub__(self, other: Line) -> Line:
        return Line(self.slope - other.slope, self.value - other.value)

    def shift(self, amount: float) -> Line:
        """Return the function plus a constant."""
        return Line(self.slope, self.value + amount)

    def flip(self) -> Line:
        """Return minus the function."""
        return Line(-self.slope, -self.value)

    @property
    def is_constant(self) -> bool:
        """Whether no move changes the value."""
        return not self.slope.any()


class Leaf(NamedTuple):
    """What a tree says in a cell: membership before clipping, distances on the path."""

    line: Line
    distance: tuple[Line, ...]  # none is negative in the cell


def bound_by(line: Line) -> HalfSpace | bool:
    """Return where the function is not negative; True for everywhere, False for nowhere."""
    length = float(np.linalg.norm(line.slope))
    if length < NO_SLOPE:
        # The difference of two distances from the same plane is 0 up to rounding.
        return line.value > 0 or (bool(line.slope.any()) and line.value > -NO_SLOPE)
    return HalfSpace(line.slope / length, -line.value / length)


def find_regions(leaves: list[Leaf], winner: int) -> Iterator[list[Line]] | None:
    """Return the parts of a cell in which a class wins, as functions that are >= 0 there.

    None if the votes are too close for a proof.
    """
    if len(leaves) == 1:  # two classes have the trees of the second only
        line = leaves[0].line.shift(-0.5)
        # Equal votes are the first's, in a leaf of equal shares everywhere.
        return iter([[line if winner == 1 else _touch(line.flip())]])
    return _find_regions_of_many(leaves, winner)


def _find_regions_of_many(leaves: list[Leaf], winner: int) -> Iterator[list[Line]] | None:
    own, others = leaves[winner], [leaf for k, leaf in enumerate(leaves) if k != winner]
    if own.line.is_constant and 0 < own.line.value < 1:
        close = [
            leaf
            for leaf in others
            if leaf.line.is_constant and abs(leaf.line.value - own.line.value) <= SAME_VOTE
        ]
        if close:
            return None
    return _chain_regions(own, others)


def _chain_regions(own: Leaf, others: list[Leaf]) -> Iterator[list[Line]]:
    # Between 0 and 1, no clipped line of another class may be above.
    between = [own.line, own.line.shift(-1).flip()]
    yield [*between, *(own.line - leaf.line for leaf in others)]
    # At 1, each other class is below, or claims the row, too, but lies nearer to a plane.
    full = own.line.shift(-1)
    options = [_list_options(own, leaf) for leaf in others]
    if _can_be(own.line, above=1.0):
        for choice in product(*options):
            yield [_touch(full), *(line for lines in choice for line in lines)]
    # At 0, all refuse the row, and this class lies nearest to a plane.
    if _can_be(own.line, below=0.0):
        empty = [_touch(line.flip()) for line in [own.line, *(leaf.line for leaf in others)]]
        farther = [distance for leaf in others for distance in leaf.distance]
        if not own.distance:  # a tree without a split has the distance 0
            yield empty
        elif all(leaf.distance for leaf in others):
            for least in own.distance:
                yield [*empty, *(distance - least for distance in farther)]


def _list_options(own: Leaf, other: Leaf) -> list[list[Line]]:
    """Return how a class with the vote 1 can win over another."""
    options = []
    if _can_be(other.line, below=1.0) and not (other.line.is_constant and other.line.value >= 1):
        options.append([other.line.shift(-1).flip()])
    if _can_be(other.line, above=1.0):
        tied = _touch(other.line.shift(-1))
        if not other.distance:  # a tree without a split has the distance 0
            options.append([tied])
        elif own.distance:
            options += [
                [tied, *(distance - least for distance in own.distance)]
                for least in other.distance
            ]
    return options


def _can_be(line: Line, *, above: float = -np.inf, below: float = np.inf) -> bool:
    """Whether a function reaches values of at least `above` and at most `below` anywhere."""
    return not line.is_constant or above <= line.value <= below


def _touch(line: Line) -> Line:
    """Return the function, with a constant 0 made positive: it holds on its boundary."""
    return Line(line.slope, 1.0) if line.is_constant and line.value >= 0 else line
