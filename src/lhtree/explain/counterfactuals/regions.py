"""Where in a cell of the trees a class wins.

In a cell every tree has arrived in a leaf, so the membership of each class, before
clipping, is an affine function of the move. Where clipped votes are equal, the distances
from the hyperplanes on the paths decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from lhtree.arrays import Floats
from lhtree.explain.counterfactuals.polytope import HalfSpace

NO_SLOPE = 1e-12  # functions with shorter slopes count as constant
SAME_VOTE = 1e-6  # what the tie-break may add to a vote


class Affine(NamedTuple):
    """An affine function of a move: ``value + slope @ move``."""

    slope: Floats
    value: float

    def __sub__(self, other: Affine) -> Affine:
        return Affine(self.slope - other.slope, self.value - other.value)

    def shift(self, amount: float) -> Affine:
        """Return the function plus a constant."""
        return Affine(self.slope, self.value + amount)

    def flip(self) -> Affine:
        """Return minus the function."""
        return Affine(-self.slope, -self.value)

    @property
    def is_constant(self) -> bool:
        """Whether no move changes the value."""
        return not self.slope.any()


class Leaf(NamedTuple):
    """The output of a tree in a cell."""

    membership: Affine  # before clipping
    distance: tuple[Affine, ...]  # from the hyperplanes on the path; not negative in the cell


def make_half_space(function: Affine) -> HalfSpace | bool:
    """Return where a function is not negative; True for everywhere, False for nowhere."""
    length = float(np.linalg.norm(function.slope))
    if length < NO_SLOPE:
        # The difference of two distances from the same hyperplane is 0 up to rounding.
        is_rounding = bool(function.slope.any()) and function.value > -NO_SLOPE
        return function.value > 0 or is_rounding
    return HalfSpace(function.slope / length, -function.value / length)


def list_winning_regions(leaves: list[Leaf], winner: int) -> Iterator[list[Affine]] | None:
    """Return the regions of a cell in which a class wins, as functions that are >= 0 there.

    None if the votes are too close for a proof.
    """
    if len(leaves) == 1:  # two classes have the trees of the second only
        excess = leaves[0].membership.shift(-0.5)
        # Equal votes go to the first class: everywhere in a leaf whose value is one half.
        return iter([[excess if winner == 1 else _include_boundary(excess.flip())]])
    own, others = leaves[winner], [leaf for k, leaf in enumerate(leaves) if k != winner]
    if _has_equal_rival(own, others):
        return None
    return _generate_regions(own, others)


def _has_equal_rival(own: Leaf, others: list[Leaf]) -> bool:
    """Whether another class has the same constant vote, neither 0 nor 1."""
    vote = own.membership
    if not vote.is_constant or not 0 < vote.value < 1:
        return False
    return any(
        leaf.membership.is_constant and abs(leaf.membership.value - vote.value) <= SAME_VOTE
        for leaf in others
    )


def _generate_regions(own: Leaf, others: list[Leaf]) -> Iterator[list[Affine]]:
    vote = own.membership
    # Between 0 and 1, no clipped membership of another class may be larger.
    between = [vote, vote.shift(-1).flip()]
    yield [*between, *(vote - leaf.membership for leaf in others)]
    # At 1, each other class is below 1, or also at 1 but nearer to one of its hyperplanes.
    options = [_list_options(own, leaf) for leaf in others]
    if _can_be(vote, above=1.0):
        for choice in product(*options):
            conditions = [function for functions in choice for function in functions]
            yield [_include_boundary(vote.shift(-1)), *conditions]
    # At 0, so are all other classes, and this one is nearest to one of its hyperplanes.
    if _can_be(vote, below=0.0):
        empty = [_include_boundary(leaf.membership.flip()) for leaf in [own, *others]]
        farther = [distance for leaf in others for distance in leaf.distance]
        if not own.distance:  # a tree without a split has the distance 0
            yield empty
        elif all(leaf.distance for leaf in others):
            for least in own.distance:
                yield [*empty, *(distance - least for distance in farther)]


def _list_options(own: Leaf, other: Leaf) -> list[list[Affine]]:
    """Return the ways in which a class with the vote 1 wins over another."""
    options = []
    vote = other.membership
    if _can_be(vote, below=1.0) and not (vote.is_constant and vote.value >= 1):
        options.append([vote.shift(-1).flip()])
    if _can_be(vote, above=1.0):
        tied = _include_boundary(vote.shift(-1))
        if not other.distance:  # a tree without a split has the distance 0
            options.append([tied])
        elif own.distance:
            options += [
                [tied, *(distance - least for distance in own.distance)]
                for least in other.distance
            ]
    return options


def _can_be(function: Affine, *, above: float = -np.inf, below: float = np.inf) -> bool:
    """Whether a function reaches values of at least `above` and at most `below` anywhere."""
    return not function.is_constant or above <= function.value <= below


def _include_boundary(function: Affine) -> Affine:
    """Return the function, with a constant 0 made positive: its boundary counts as inside."""
    if function.is_constant and function.value >= 0:
        return Affine(function.slope, 1.0)
    return function
