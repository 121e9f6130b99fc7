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


class Projections(NamedTuple):
    """Projections of rows at some splits of a tree, minus thresholds, divided by column."""

    contribution: Floats  # [n_rows, n_splits, n_columns]
    constant: Floats  # [n_splits] what the columns' sums are added to
    norm: Floats  # [n_splits] length of the weights


class SplitFacts(NamedTuple):
    """What a split of a tree that votes does to some rows, and did to those of training."""

    projection: Floats  # [n_rows] NaN where no number decides
    threshold: float  # NaN if none does for any row
    extremes: Floats | None  # [4] of the training rows, where the model keeps them
    threshold_kind: str
    n_samples: int  # training rows, or their weight
    value: float  # fraction of positive rows among them
