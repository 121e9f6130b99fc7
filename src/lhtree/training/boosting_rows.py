"""The rows of boosting: encoded, with weights and the scores before the first round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Ints
from lhtree.model.grid_columns import GridColumns
from lhtree.training.plan import BoostingPlan
from lhtree.training.targets import Flags, TargetScale, Weights

MOST_STEPS = 50  # to the best scores before the first round
LEAST_RATE = 1 / 64  # of such a step
SMALL_TABLE = 2**22  # values


def stores_grid(X: Any) -> bool:
    """Return whether hyperplanes have grid values of all rows beside them.

    They are faster to read than raw rows, but take half the memory of these.
    """
    return not isinstance(X, np.ndarray) or X.size <= SMALL_TABLE


@dataclass
class Encoded:
    """Encoded rows: bins, and values on the grids."""

    bin: NDArray[np.uint8]  # of a sparse table: of its entries
    z: NDArray[np.int32] | None  # None if there are no hyperplanes
    start: Ints | None = None  # of a sparse table: first entry of each row
    column: NDArray[np.int32] | None = None  # of a sparse table: column of each entry


@dataclass
class Rows:
    """Encoded rows, their integer targets and scores: what the core reads."""

    bin: NDArray[np.uint8]
    z: NDArray[np.int32] | None
    start: Ints | None
    column: NDArray[np.int32] | None
    y: NDArray[np.int32]
    weight: Ints | None
    score: Ints  # [n_rows, n_outputs]
    held_out: Flags | None = None  # which rows are for validation; None: none
    raw: Any = None  # dense rows of which hyperplanes make grid values, where there is no z

    @property
    def n_outputs(self) -> int:
        """Number of scores of a row."""
        return int(self.score.shape[1])

    def weigh(self) -> tuple[int, int]:
        """Return the weight of the rows to train on, and of those held out."""
        weight = np.ones(len(self.y), dtype=np.int64) if self.weight is None else self.weight
        held_out = 0 if self.held_out is None else int(weight[self.held_out > 0].sum())
        return int(weight.sum()) - held_out, held_out


def make_rows(
    encoded: Encoded,
    y: NDArray[np.int32],
    weights: Weights,
    scale: TargetScale,
    held_out: Flags | None = None,
    offset: Ints | int = 0,
    raw: Any = None,
) -> Rows:
    """Return rows whose scores are those before the first round, plus an offset."""
    score = np.broadcast_to(scale.base, (len(y), len(scale.base)))
    if np.any(offset):
        score = score + offset
    return Rows(
        **vars(encoded), y=y, weight=weights.values, score=score, held_out=held_out, raw=raw
    )


def learn_rows(
    X: Any,
    weight: Ints | None,
    held_out: Flags | None,
    n_codes: NDArray[np.int32],
    *,
    max_bins: int,
    wants_z: bool,
    n_threads: int,
) -> tuple[GridColumns, Encoded]:
    """Return what is learned of the columns of rows not held out, and all rows encoded."""
    if isinstance(X, np.ndarray):
        arrays, dense = _core.learn_columns(
            X, weight, held_out, n_codes, max_bins, wants_z, n_threads
        )
        return GridColumns(**arrays), Encoded(*dense)
    start, column = _get_entries(X)
    arrays, entries = _core.learn_sparse(
        start, column, X.data, X.shape[1], weight, held_out, max_bins, wants_z, n_threads
    )
    return GridColumns(**arrays), Encoded(*entries, start, column)


def encode_rows(X: Any, columns: GridColumns, *, wants_z: bool, n_threads: int) -> Encoded:
    """Return rows encoded by columns that are known."""
    if isinstance(X, np.ndarray):
        return Encoded(*_core.encode_rows(X, columns, wants_z, n_threads))
    start, column = _get_entries(X)
    entries = _core.encode_sparse(start, column, X.data, columns, wants_z, n_threads)
    return Encoded(*entries, start, column)


def _get_entries(X: Any) -> tuple[Ints, NDArray[np.int32]]:
    return X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)


def settle_start(
    columns: GridColumns,
    rows: Rows,
    others: Sequence[Rows],
    *,
    loss: str,
    plan: BoostingPlan,
    scale: TargetScale,
    n_threads: int,
) -> TargetScale:
    """Move the scores before the first round to where the loss of offset rows is lowest.

    Each step is a tree of one leaf; a step that does not lower the loss is halved, a few times.
    This changes the scores of `rows` and `others`, too.
    """
    alone = replace(
        plan, n_rounds=1, rate_growth=0.0, most_rate=1.0, subsample=1.0, l2_regularization=0.0,
        max_depth=0, patience=0, n_hyperplanes=0, max_features=0,
    )  # fmt: skip
    base, rate = scale.base.copy(), 1.0
    for _ in range(MOST_STEPS):
        own = replace(alone, learning_rate=rate)
        result = _core.boost(columns, rows, rows, loss, own, n_threads)
        before, after = result["training_loss"]
        step = result["trees"]["value"][0].astype(np.int64)
        if after < before:
            base += step
            for each in (rows, *others):
                each.score = each.score + step
        rate = 1.0 if after < before else rate / 2
        if rate < LEAST_RATE or not step.any():
            break
    return scale._replace(base=base)
