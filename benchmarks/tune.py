"""A small search for a forest's settings, by cross-validation on the training rows.

The settings of :data:`SETTINGS` are tried with few members on at most 3,000 training rows;
the one with the best mean accuracy is then grown on all of them. Test rows play no part.
The first setting is that of the defaults; another one must be better to replace it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split

from lhtree import LHForestClassifier

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "standardized": {"contrast": "standardized"},
    "all columns": {"max_features": 1.0},
    "no single columns": {"axes": False},
    "shallow": {"min_samples_split": 0.05},
    "paper, beta 0": {"preset": "paper"},
    "paper, beta 0.8": {"preset": "paper", "beta": 0.8},
    "paper, beta 0.8, raw": {"preset": "paper", "beta": 0.8, "standardize": False},
}
MOST_ROWS = 3000
N_MEMBERS = 30
N_FOLDS = 3


class TunedForest:
    """A forest that chooses one of :data:`SETTINGS` by cross-validation in `fit`."""

    def __init__(self, seed: int, settings: dict[str, dict[str, Any]] | None = None) -> None:
        self.seed = seed
        self.settings = SETTINGS if settings is None else settings

    def fit(self, X: NDArray[np.float64], y: NDArray[np.int64]) -> TunedForest:
        """Choose a setting and grow the forest."""
        self.scores_ = score_settings(X, y, self.settings, self.seed)
        self.setting_ = max(self.settings, key=lambda name: round(self.scores_[name], 9))
        self.model_ = LHForestClassifier(random_state=self.seed, **self.settings[self.setting_])
        self.model_.fit(X, y)
        return self

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of the forest that was chosen."""
        proba: NDArray[np.float64] = self.model_.predict_proba(X)
        return proba


def score_settings(
    X: NDArray[np.float64], y: NDArray[np.int64], settings: dict[str, dict[str, Any]], seed: int
) -> dict[str, float]:
    """Return the cross-validated accuracy of each setting; small tables get more repeats."""
    if len(X) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, stratify=y, random_state=seed)
    is_common = np.bincount(y)[y] >= N_FOLDS  # folds cannot share out rarer classes
    X, y = X[is_common], y[is_common]
    folds = RepeatedStratifiedKFold(
        n_splits=N_FOLDS, n_repeats=int(np.clip(MOST_ROWS // len(X), 1, 5)), random_state=seed
    )
    scores = {}
    for name, setting in settings.items():
        model = LHForestClassifier(N_MEMBERS, random_state=seed, **setting)
        scores[name] = float(
            np.mean([model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds.split(X, y)])
        )
    return scores
