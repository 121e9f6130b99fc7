"""Rounds of boosting on rows in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Floats, Ints
from lhtree.model.ensemble import Ensemble, GridColumns, sum_gains
from lhtree.training.plan import BoostingPlan

LOG_ODDS_POWER = 24  # log-odds are multiples of 2**-24

NODE_ARRAYS = (
    "tree_start",
    "left",
    "column",
    "missing_left",
    "value",
    "weight",
    "threshold",
    "codes",
    "term_start",
    "feature",
    "coefficient",
    "fill",
    "cut",
)


class Weights(NamedTuple):
    """Weights of rows as integers."""

    values: Ints | None  # None: all are one
    unit: int = 1  # what a row of weight one weighs

    def sum_over(self, n_rows: int) -> int:
        """Return the weight of all rows."""
        return n_rows if self.values is None else int(self.values.sum())


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
    score: Ints


def make_rows(
    encoded: Encoded, y: NDArray[np.int32], weights: Weights, scale: TargetScale
) -> Rows:
    """Return rows whose scores are those before the first round."""
    score = np.full(len(y), scale.base, dtype=np.int64)
    return Rows(**vars(encoded), y=y, weight=weights.values, score=score)


class TargetScale(NamedTuple):
    """How integer scores become real ones, and the score before the first round."""

    power: int
    origin: float
    base: int


class Losses(NamedTuple):
    """Mean losses of the rows before and after each round."""

    training: Floats
    validation: Floats  # empty without validation rows


def learn_rows(
    X: Any, weight: Ints | None, n_codes: NDArray[np.int32], *, wants_z: bool, n_threads: int
) -> tuple[GridColumns, Encoded]:
    """Return what is learned of the columns of training rows, and the rows encoded."""
    if isinstance(X, np.ndarray):
        arrays, dense = _core.learn_columns(X, weight, n_codes, wants_z, n_threads)
        return GridColumns(**arrays), Encoded(*dense)
    start, column = _get_entries(X)
    arrays, entries = _core.learn_sparse(
        start, column, X.data, X.shape[1], weight, wants_z, n_threads
    )
    return GridColumns(**arrays), Encoded(*entries, start, column)


def encode_rows(X: Any, columns: GridColumns, *, wants_z: bool, n_threads: int) -> Encoded:
    """Return rows encoded by columns that are known."""
    if isinstance(X, np.ndarray):
        return Encoded(*_core.encode_rows(X, columns, wants_z, n_threads))
    start, column = _get_entries(X)
    return Encoded(*_core.encode_sparse(start, column, X.data, columns, wants_z), start, column)


def _get_entries(X: Any) -> tuple[Ints, NDArray[np.int32]]:
    return X.indptr.astype(np.int64), X.indices.astype(np.int32)


def place_numbers(
    y: Floats, weights: Weights, held_out: Floats
) -> tuple[NDArray[np.int32], NDArray[np.int32], TargetScale]:
    """Return numbers on a grid of their own, those of the held-out rows, and the scale."""
    no_codes = np.zeros(1, dtype=np.int32)
    column = np.ascontiguousarray(y[:, None])
    arrays, (_, z) = _core.learn_columns(column, weights.values, no_codes, True, 1)
    grid = GridColumns(**arrays)
    # Held-out numbers beyond those of training count as what they are.
    widest = np.iinfo(np.int32)
    open_grid = replace(
        grid,
        low=np.array([widest.min + 1], dtype=np.int32),
        high=np.array([widest.max], dtype=np.int32),
    )
    _, other = _core.encode_rows(np.ascontiguousarray(held_out[:, None]), open_grid, True, 1)
    assert z is not None
    scale = TargetScale(int(grid.power[0]), float(grid.origin[0]), int(grid.fill[0]))
    if grid.low[0] == grid.high[0]:  # the grid of a constant is all zeros
        fraction, exponent = math.frexp(y[0])
        scale = TargetScale(53 - exponent, math.ldexp(fraction, 53), 0)
    rest = np.empty(0, dtype=np.int32) if other is None else other.ravel()
    return z.ravel(), rest, scale


def place_classes(y: NDArray[np.int32], weights: Weights) -> TargetScale:
    """Return the scale of log-odds, which start with those of the second of two classes."""
    weight = np.ones(len(y), dtype=np.int64) if weights.values is None else weights.values
    positive, whole = int(weight[y == 1].sum()), int(weight.sum())
    base = 0
    if 0 < positive < whole:
        log_odds = _core.compute_log(positive / (whole - positive))
        base = int(np.floor(log_odds * 2.0**LOG_ODDS_POWER + 0.5))
    return TargetScale(LOG_ODDS_POWER, 0.0, base)


def boost(
    columns: GridColumns,
    rows: Rows,
    held_out: Rows,
    *,
    loss: str,
    plan: BoostingPlan,
    scale: TargetScale,
    n_threads: int,
) -> tuple[Ensemble, Losses]:
    """Add rounds of boosting, up to the one of the lowest validation loss.

    Parameters
    ----------
    columns : GridColumns
        How the columns were encoded.
    rows, held_out : Rows
        Rows to train on, and rows that say when to stop; there may be none of the latter.
    loss : {"squared_error", "log_loss"}
        What the rounds lower.
    plan : BoostingPlan
        Rounds and trees.
    scale : TargetScale
        What integer scores mean.
    n_threads : int
        Number of threads.
    """
    result = _core.boost(columns, rows, held_out, loss, plan, n_threads)
    training = _average(result["training_loss"], rows, scale, loss)
    validation = np.empty(0)
    if len(held_out.y):
        validation = _average(result["validation_loss"], held_out, scale, loss)
    trees = result["trees"]
    ensemble = Ensemble(
        columns=columns.without_bins(),
        base=np.array([scale.base], dtype=np.int64),
        power=scale.power,
        origin=scale.origin,
        importance=sum_gains(trees, len(columns.n_codes)),
        **{name: trees[name] for name in NODE_ARRAYS},
    )
    return ensemble, Losses(training, validation)


def _average(total: Floats, rows: Rows, scale: TargetScale, loss: str) -> Floats:
    """Return mean losses from sums of integer ones; squared errors are halved."""
    weight = len(rows.y) if rows.weight is None else int(rows.weight.sum())
    power = scale.power if loss == "log_loss" else 2 * scale.power + 1
    with np.errstate(over="ignore"):  # the square of a huge error is infinite
        return np.ldexp(total / weight, -power)
