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

Flags = NDArray[np.uint8]
MOST_BINS = 255  # of a column of numbers
SMALL_TABLE = 2**22  # values
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
    held_out: Flags | None = None  # rows that only say when to stop; None: there are none
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
    raw: Any = None,
) -> Rows:
    """Return rows whose scores are those before the first round."""
    score = np.broadcast_to(scale.base, (len(y), len(scale.base)))
    return Rows(
        **vars(encoded), y=y, weight=weights.values, score=score, held_out=held_out, raw=raw
    )


class TargetScale(NamedTuple):
    """How integer scores become real ones, and the score before the first round."""

    power: int
    origin: float
    base: Ints  # [n_outputs]


class Losses(NamedTuple):
    """Mean losses of the rows before and after each round."""

    training: Floats
    validation: Floats  # empty without validation rows


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
    return Encoded(*_core.encode_sparse(start, column, X.data, columns, wants_z), start, column)


def _get_entries(X: Any) -> tuple[Ints, NDArray[np.int32]]:
    return X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)


def place_numbers(
    y: Floats, weights: Weights, held_out: Flags | None, validation: Floats
) -> tuple[NDArray[np.int32], NDArray[np.int32], TargetScale]:
    """Return numbers on a grid of their own, those of validation rows, and the scale."""
    no_codes = np.zeros(1, dtype=np.int32)
    column = np.ascontiguousarray(y[:, None])
    arrays, (_, z) = _core.learn_columns(
        column, weights.values, held_out, no_codes, MOST_BINS, True, 1
    )
    grid = GridColumns(**arrays)
    # Numbers beyond those of training count as what they are.
    widest = np.iinfo(np.int32)
    open_grid = replace(
        grid,
        low=np.array([widest.min + 1], dtype=np.int32),
        high=np.array([widest.max], dtype=np.int32),
    )
    if held_out is not None:
        _, z = _core.encode_rows(column, open_grid, True, 1)
    _, other = _core.encode_rows(np.ascontiguousarray(validation[:, None]), open_grid, True, 1)
    assert z is not None
    assert other is not None
    start = np.array([grid.fill[0]], dtype=np.int64)
    scale = TargetScale(int(grid.power[0]), float(grid.origin[0]), start)
    if grid.low[0] == grid.high[0]:  # the grid of a constant is all zeros
        value = y[0] if held_out is None else y[held_out.argmin()]
        fraction, exponent = math.frexp(value)
        scale = TargetScale(53 - exponent, math.ldexp(fraction, 53), np.zeros(1, dtype=np.int64))
        return np.zeros_like(z.ravel()), np.zeros_like(other.ravel()), scale
    return z.ravel(), other.ravel(), scale


def place_classes(
    y: NDArray[np.int32], weights: Weights, held_out: Flags | None, n_classes: int
) -> TargetScale:
    """Return the scale of log-odds, which start with the logarithms of the classes' shares.

    Two classes have one score, the log-odds of the second; more have one each.
    """
    weight = np.ones(len(y), dtype=np.int64) if weights.values is None else weights.values
    is_counted = np.ones(len(y), dtype=bool) if held_out is None else held_out == 0
    of_class = [int(weight[is_counted & (y == k)].sum()) for k in range(n_classes)]
    if n_classes > 2:
        odds = [n_classes * each / sum(of_class) for each in of_class]
    else:
        odds = [of_class[1] / of_class[0]] if n_classes == 2 and all(of_class) else [1.0]
    unit = 2.0**LOG_ODDS_POWER
    base = [math.floor(_core.compute_log(each) * unit + 0.5) for each in odds]
    return TargetScale(LOG_ODDS_POWER, 0.0, np.array(base, dtype=np.int64))


def boost(
    columns: GridColumns,
    rows: Rows,
    validation: Rows,
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
    rows, validation : Rows
        Rows to train on, some of which may be held out, and more rows that say when to stop.
    loss : {"squared_error", "log_loss"}
        What the rounds lower.
    plan : BoostingPlan
        Rounds and trees.
    scale : TargetScale
        What integer scores mean.
    n_threads : int
        Number of threads.
    """
    result = _core.boost(columns, rows, validation, loss, plan, n_threads)
    trained, held_out = rows.weigh()
    held_out += sum(validation.weigh())
    losses = Losses(
        _average(result["training_loss"], trained, scale, loss),
        _average(result["validation_loss"], held_out, scale, loss) if held_out else np.empty(0),
    )
    trees = result["trees"]
    ensemble = Ensemble(
        columns=columns.without_bins(),
        base=scale.base,
        power=scale.power,
        origin=scale.origin,
        importance=sum_gains(trees, len(columns.n_codes)),
        **{name: trees[name] for name in NODE_ARRAYS},
    )
    return ensemble, losses


def _average(total: Floats, weight: int, scale: TargetScale, loss: str) -> Floats:
    """Return mean losses from sums of integer ones; squared errors are halved."""
    power = scale.power if loss == "log_loss" else 2 * scale.power + 1
    with np.errstate(over="ignore"):  # the square of a huge error is infinite
        return np.ldexp(total / weight, -power)
