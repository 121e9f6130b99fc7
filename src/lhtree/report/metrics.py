"""How well a model predicts: the numbers of the report's summary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lhtree.arrays import Floats, Ints
from lhtree.explain.reliability import Reliability, compute_reliability

N_BINS = 10  # of probabilities, for calibration


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for some rows, and their true classes."""

    y_encoded: Ints  # true classes
    predicted: Ints  # by `predict`: calibration may make the largest probabilities equal
    probability: Floats  # (n_rows, n_classes)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y_encoded)


@dataclass(frozen=True, eq=False)
class Metrics:
    """Quality of predictions on some rows."""

    accuracy: float
    baseline: float  # accuracy of always predicting the most frequent class
    log_loss: float
    brier: float
    confusion: Ints  # (true class, predicted class)
    precision: Floats  # per class; NaN where nothing was predicted
    recall: Floats  # per class; NaN where there is no row
    f1: Floats
    reliability: Reliability  # by the probability of the predicted class


def compute_metrics(predictions: Predictions) -> Metrics:
    """Return how good the predictions are."""
    y_encoded, predicted = predictions.y_encoded, predictions.predicted
    probability = predictions.probability
    n_rows, n_classes = probability.shape
    pairs = np.bincount(n_classes * y_encoded + predicted, minlength=n_classes**2)
    confusion = pairs.reshape(n_classes, n_classes)
    is_right = predicted == y_encoded
    of_true_class = probability[np.arange(n_rows), y_encoded]
    smallest = np.finfo(probability.dtype).eps  # as scikit-learn clips
    top = probability[np.arange(n_rows), predicted]
    reliability = compute_reliability(top, is_right, N_BINS)
    n_right = confusion.diagonal()
    with np.errstate(invalid="ignore"):
        precision, recall = n_right / confusion.sum(axis=0), n_right / confusion.sum(axis=1)
        f1 = 2 * n_right / (confusion.sum(axis=0) + confusion.sum(axis=1))
    return Metrics(
        accuracy=float(is_right.mean()),
        baseline=float(confusion.sum(axis=1).max() / n_rows),
        log_loss=float(-np.log(np.clip(of_true_class, smallest, 1)).mean()),
        brier=float((np.square(probability).sum(axis=1) - 2 * of_true_class + 1).mean()),
        confusion=confusion,
        precision=precision,
        recall=recall,
        f1=f1,
        reliability=reliability,
    )
