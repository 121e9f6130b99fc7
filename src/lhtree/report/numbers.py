"""How well a model predicts numbers: the numbers and the charts of the report's summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lhtree.arrays import Floats, Ints
from lhtree.estimators.boosting import BoostingEstimator
from lhtree.explain.learning import read_learning

N_POINTS = 400  # of the chart of predictions
N_BINS = 24  # of the distribution of residuals
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # quantiles of residuals
LOW, HIGH = 40.0, 240.0  # ends of an axis of a chart


class NumberPredictions(NamedTuple):
    """Predicted and true numbers of some rows."""

    true: Floats
    predicted: Floats

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.true)


@dataclass(frozen=True, eq=False)
class NumberMetrics:
    """Quality of predicted numbers on some rows; residuals are true minus predicted."""

    r2: float  # NaN where all true numbers are equal
    rmse: float
    mae: float
    baseline: float  # root of the mean squared error of always predicting the mean
    quantiles: tuple[tuple[float, float], ...]  # of the residuals


def compute_number_metrics(predictions: NumberPredictions) -> NumberMetrics:
    """Return how good the predictions are."""
    true, predicted = predictions
    residual = true - predicted
    variance = float(np.square(true - true.mean()).mean())
    error = float(np.square(residual).mean())
    return NumberMetrics(
        r2=1 - error / variance if variance > 0 else float("nan"),
        rmse=float(np.sqrt(error)),
        mae=float(np.abs(residual).mean()),
        baseline=float(np.sqrt(variance)),
        quantiles=tuple(zip(LEVELS, np.quantile(residual, LEVELS).tolist(), strict=True)),
    )


def choose_number_rows(predictions: NumberPredictions, max_rows: int) -> Ints:
    """Return the rows to explain: a quarter with the largest errors, others at even steps."""
    n_rows = len(predictions.true)
    if n_rows <= max_rows:
        return np.arange(n_rows)
    error = np.abs(predictions.true - predictions.predicted)
    worst = np.argsort(-error, kind="stable")[: max_rows // 4]
    others = np.setdiff1d(np.arange(n_rows), worst)
    n_others = max_rows - len(worst)
    return np.union1d(worst, others[(np.arange(n_others) * len(others)) // n_others])


def draw_predictions(predictions: NumberPredictions) -> dict[str, Any]:
    """Return points of true against predicted numbers, in the units of a chart."""
    n_rows = len(predictions.true)
    n_points = min(n_rows, N_POINTS)
    shown = (np.arange(n_points) * n_rows) // n_points
    low = float(min(each.min() for each in predictions))
    high = float(max(each.max() for each in predictions))
    across, up = (
        _place(each[shown], low, high) for each in (predictions.predicted, predictions.true)
    )
    points = zip(across.round(1).tolist(), (LOW + HIGH - up - 30).round(1).tolist(), strict=True)
    return {"points": list(points), "low": low, "high": high, "n_hidden": n_rows - n_points}


def draw_residuals(predictions: NumberPredictions) -> dict[str, Any]:
    """Return the distribution of the residuals, in the units of a chart."""
    residual = predictions.true - predictions.predicted
    largest = float(np.abs(residual).max()) or 1.0
    count, _ = np.histogram(residual, N_BINS, (-largest, largest))
    height = 190 * count / count.max()
    width = (HIGH - LOW) / N_BINS
    bars = [
        {"x": round(LOW + i * width, 2), "height": round(float(height[i]), 2), "count": int(n)}
        for i, n in enumerate(count)
    ]
    return {"bars": bars, "width": round(width, 2), "largest": largest}


def draw_learning(model: Any) -> dict[str, Any] | None:
    """Return what the rounds of a boosted model reached, in the units of a chart."""
    if not isinstance(model, BoostingEstimator):
        return None
    learning = read_learning(model)
    lines = [
        ("training", learning.training, "positive"),
        ("validation", learning.validation, "negative"),
    ]
    lines = [(name, value, kind) for name, value, kind in lines if len(value) > 1]
    if not lines:
        return None
    low = float(min(value.min() for _, value, _ in lines))
    high = float(max(value.max() for _, value, _ in lines))
    drawn = []
    for name, value, kind in lines:
        shown = np.unique(np.linspace(0, len(value) - 1, min(len(value), N_POINTS)).astype(int))
        across = _place(shown.astype(float), 0.0, float(learning.n_rounds))
        up = LOW + HIGH - 30 - _place(value[shown], low, high)
        points = zip(across.round(1).tolist(), up.round(1).tolist(), strict=True)
        drawn.append({"name": name, "kind": kind, "points": list(points), "last": value[-1]})
    return {
        "lines": drawn,
        "low": low,
        "high": high,
        "n_rounds": learning.n_rounds,
        "measure": learning.measure,
        "is_loss": learning.is_loss,
        "best_round": learning.best_round,
        "n_refitted": learning.n_refitted,
    }


def _place(value: Floats, low: float, high: float) -> Floats:
    """Return where values lie on an axis."""
    placed: Floats = LOW + (HIGH - LOW) * (value - low) / ((high - low) or 1.0)
    return placed
