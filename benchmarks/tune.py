"""A small search for a forest's settings, by cross-validation on the training rows.

The settings of :data:`SETTINGS` are tried with few members on at most 2,000 training rows,
three folds each, and more repeats of them on small tables. The one with the best mean accuracy
is grown on all training rows, with the members that the defaults have, unless its lead over
the defaults is within the standard error of that lead: then the defaults stay. Hyperplanes
over all columns at once are tried on tables of up to 128 columns only: the time of their
covariance grows with the cube of the columns. Test rows play no part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split

from lhtree import LHForestClassifier

Settings = dict[str, dict[str, Any]]

ALL_COLUMNS, MOST_COLUMNS = "all columns", 128
SETTINGS: Settings = {
    "default": {},
    ALL_COLUMNS: {"max_features": 1.0},
    "single columns": {"n_planes": 0},
    "single columns, all": {"n_planes": 0, "max_features": 1.0},
    "hyperplanes": {"axes": False},
    "standardized": {"contrast": "standardized"},
    "large leaves": {"min_samples_leaf": 10},
    "few rows": {"max_samples": 0.3},
    "paper, beta 0": {"preset": "paper"},
    "paper, beta 0.8": {"preset": "paper", "beta": 0.8},
    "paper, beta 0.8, raw": {"preset": "paper", "beta": 0.8, "standardize": False},
    "paper, beta 0.8, standardized": {
        "preset": "paper", "beta": 0.8, "contrast": "standardized"
    },
    "paper, beta 1, gamma 6, raw": {
        "preset": "paper", "beta": 1.0, "gamma": 6, "standardize": False
    },
}  # fmt: skip
DEFAULT = "default"
MOST_ROWS = 2000
MOST_REPEATS = 3
N_MEMBERS = 20
N_FOLDS = 3


class TunedForest:
    """A forest that chooses one of :data:`SETTINGS` by cross-validation in `fit`."""

    def __init__(self, seed: int, settings: Settings | None = None) -> None:
        self.seed = seed
        self.settings = SETTINGS if settings is None else settings

    def fit(self, X: NDArray[np.float64], y: NDArray[np.int64]) -> TunedForest:
        """Choose a setting and grow the forest."""
        self.scores_ = score_settings(X, y, self.settings, self.seed)
        self.setting_ = choose(self.scores_)
        self.model_ = LHForestClassifier(
            random_state=self.seed, n_jobs=1, **self.settings[self.setting_]
        )
        self.model_.fit(X, y)
        return self

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of the forest that was chosen."""
        proba: NDArray[np.float64] = self.model_.predict_proba(X)
        return proba


def choose(scores: dict[str, NDArray[np.float64]]) -> str:
    """Return the best setting; the defaults unless its lead is above its standard error."""
    best = max(scores, key=lambda name: float(np.round(scores[name].mean(), 9)))
    lead = scores[best] - scores[DEFAULT]
    error = lead.std(ddof=1) / np.sqrt(len(lead))
    return best if lead.mean() > error else DEFAULT


def score_settings(
    X: NDArray[np.float64], y: NDArray[np.int64], settings: Settings, seed: int
) -> dict[str, NDArray[np.float64]]:
    """Return the accuracy of each setting on each fold."""
    if len(X) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, stratify=y, random_state=seed)
    is_common = np.bincount(y)[y] >= N_FOLDS  # folds cannot share out rarer classes
    X, y = X[is_common], y[is_common]
    n_repeats = int(np.clip(MOST_ROWS // len(X), 1, MOST_REPEATS))
    folds = RepeatedStratifiedKFold(n_splits=N_FOLDS, n_repeats=n_repeats, random_state=seed)
    scores = {}
    for name, setting in settings.items():
        if name == ALL_COLUMNS and X.shape[1] > MOST_COLUMNS:
            continue
        model = LHForestClassifier(N_MEMBERS, random_state=seed, n_jobs=1, **setting)
        scores[name] = np.array(
            [model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds.split(X, y)]
        )
    return scores
