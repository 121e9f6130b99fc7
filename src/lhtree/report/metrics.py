"""How well a model answers: the numbers of the report's summary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lhtree.arrays import Floats, Ints
from lhtree.explain.reliability import Reliability, find_reliability

N_BINS = 10  # of probabilities, for calibration


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says of some rows, next to what is true."""

    code: Ints  # true classes
    predicted: Ints  # classes by `predict`; calibration may round the largest share away
    probability: Floats  # (n_rows, n_classes)


@dataclass(frozen=True, eq=False)
class Metrics:
    """Quality of predictions on some rows."""

    accuracy: float
    baseline: float  # accuracy of always naming the most frequent class
    log_loss: float
    brier: float
    confusion: Ints  # (true class, predicted class)
    precision: Floats  # per class; NaN where nothing was predicted
    recall: Floats  # per class; NaN where there is no row
    f1: Floats
    reliability: Reliability  # by the probability of the predicted class


def find_metrics(answers: Answers) -> Metrics:
    """Return how good the answers are."""
    code, predicted, probability = answers.code, answers.predicted, answers.probability
    n_rows, n_classes = probability.shape
    pairs = np.bincount(n_classes * code + predicted, minlength=n_classes**2)
    confusion = pairs.reshape(n_classes, n_classes)
    is_right = predicted == code
    true_share = probability[np.arange(n_rows), code]
    smallest = np.finfo(probability.dtype).eps  # as scikit-learn clips
    top = probability[np.arange(n_rows), predicted]
    reliability = find_reliability(top, is_right, N_BINS)
    hit = confusion.diagonal()
    with np.errstate(invalid="ignore"):
        precision, recall = hit / confusion.sum(axis=0), hit / confusion.sum(axis=1)
        f1 = 2 * hit / (confusion.sum(axis=0) + confusion.sum(axis=1))
    return Metrics(
        accuracy=float(is_right.mean()),
        baseline=float(confusion.sum(axis=1).max() / n_rows),
        log_loss=float(-np.log(np.clip(true_share, smallest, 1)).mean()),
        brier=float((np.square(probability).sum(axis=1) - 2 * true_share + 1).mean()),
        confusion=confusion,
        precision=precision,
        recall=recall,
        f1=f1,
        reliability=reliability,
    )
