"""Arrays that views of models hand to explanations."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints


class Scores(NamedTuple):
    """Scores of some rows, and what they are made of."""

    base: Floats  # [n_outputs]
    contribution: Floats  # [n_rows, n_outputs, n_columns]
    score: Floats  # [n_rows, n_outputs]


class SplitTerms(NamedTuple):
    """The terms of all splits of a tree; a split by a single column has one term."""

    split: Ints  # [n_splits] their nodes
    fraction: Floats  # [n_splits] of the rows of the tree that reach them
    row: Ints  # [n_terms] position in `split` of the split of each term
    column: NDArray[Any]  # [n_terms]
    weight: Floats  # [n_terms] for columns in comparable units
    size: Floats  # [n_terms] how much the term moves the rows of its split
