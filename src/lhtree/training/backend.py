"""The interface between a fit and its rows, wherever they are.

`Local` in :mod:`lhtree.training.local` keeps them in memory; :mod:`lhtree.dask` has a backend
for clusters. A fit reads rows and grows trees through these functions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints, Scale
from lhtree.model.forest import Forest, Votes
from lhtree.model.prediction import Voting
from lhtree.training.plan import Plan

Report = Callable[[int], object]  # called from time to time with the number of trees grown


class OutOfBagRows(Protocol):
    """Some training rows, and the votes of the estimators that did not draw them."""

    @property
    def y_encoded(self) -> NDArray[np.int32]:
        """Class of each row."""

    @property
    def counts(self) -> Floats:
        """How much each row counts."""

    @property
    def has_voters(self) -> bool:
        """Whether some estimator left any row of the whole table undrawn."""

    def count_voters(self, n_estimators: int | None = None) -> Ints:
        """Return how many of the first `n_estimators` did not draw each row; None: of all."""

    def vote(self, forest: Forest, voting: Voting) -> Votes:
        """Sum the votes of the estimators that did not draw a row."""

    def vote_shrunk(
        self, forest: Forest, voting: Voting, strengths: Sequence[float], n_estimators: int | None
    ) -> Iterator[tuple[slice, Votes]]:
        """Yield rows and their votes by the first estimators, shrunk by each strength."""


class Backend(Protocol):
    """Holds the rows of one fit and grows trees from them."""

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""

    @property
    def n_columns(self) -> int:
        """Number of columns that the trees see."""

    @property
    def weight_sum(self) -> float:
        """Weighted number of rows."""

    @property
    def weight_max(self) -> float:
        """Largest weight of a row."""

    @property
    def classes(self) -> NDArray[Any]:
        """Labels of the classes, ascending."""

    def check_overflow(self, weight_sum: float) -> None:
        """Refuse columns whose sums of squares overflow at this total weight."""

    def compute_scale(self, *, standardize_indicators: bool) -> Scale:
        """Return the units of the columns, weighted by `sample_weight`."""

    def weigh_classes(self, class_weight: Any) -> None:
        """Multiply the weight of each row by that of its class."""

    def grow(self, plan: Plan, scale: Scale | None, report: Report) -> Forest:
        """Grow the estimators of a plan, in raw units if there is no scale."""

    def take_out_of_bag(
        self, plan: Plan, n_estimators: int, most_rows: int | None
    ) -> OutOfBagRows:
        """Return at most `most_rows` evenly spread rows, and which estimators drew them."""
