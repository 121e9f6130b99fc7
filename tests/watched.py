"""Small boosted models, their rows, and a callback: for tests of what happens between rounds."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from lhtree import LHBoostClassifier, LHBoostRegressor

MODELS = {
    "numbers": LHBoostRegressor(n_hyperplanes=3),
    "drawn": LHBoostRegressor(subsample=0.6, max_features=2),
    "absolute error": LHBoostRegressor("absolute_error"),
    "quantiles": LHBoostRegressor("quantile", quantile=[0.2, 0.5, 0.8]),
    "poisson": LHBoostRegressor("poisson"),
    "gamma": LHBoostRegressor("gamma"),
    "two classes": LHBoostClassifier(),
    "three classes": LHBoostClassifier(n_hyperplanes=2),
    "one class": LHBoostClassifier(),
}
NAMES = pytest.mark.parametrize("name", MODELS)


def make_rows(name="numbers", n=500):
    """Return rows with gaps and categories, and targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    X[:, 4] = rng.integers(0, 6, n)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 4] % 2 + rng.normal(size=n) / 2
    X[rng.random((n, 5)) < 0.05] = np.nan
    if "class" in name:
        bounds = {"one class": [], "two classes": [0.5], "three classes": [0, 1]}[name]
        return X, np.array(["a", "b", "c"])[np.digitize(y, bounds)]
    return X, np.floor(np.exp(y / 2)) + (name == "gamma")


def make(name, **parameters):
    """Return a small model of so many rounds: no rows are held out unless a test says so."""
    settings: dict[str, Any] = {"n_estimators": 15, "early_stopping": False, "learning_rate": 0.1}
    settings |= {"random_state": 0, "n_jobs": 1, "categorical_features": [4]}
    return clone(MODELS[name]).set_params(**settings | parameters)


def assert_same(first, second):
    """Demand the same trees, importances and scores."""
    for name, array in vars(first.forest_).items():
        if isinstance(array, np.ndarray):
            assert_array_equal(getattr(second.forest_, name), array, name)
    assert_array_equal(second.train_score_, first.train_score_)
    assert_array_equal(second.validation_score_, first.validation_score_)
    assert second.n_iter_ == first.n_iter_


class Recorder:
    """Notes what a fit calls, and may stop it."""

    def __init__(self, last=None):
        self.calls, self.predictions, self.last = [], [], last

    def setup(self, estimator, context):
        """Note the call, as all methods do."""
        self.calls.append("setup")

    def teardown(self, estimator, context):
        """Note the call."""
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        """Note the call."""
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        """Note the call and what the model says; return whether to stop."""
        self.calls.append(f"end {context.task_name}")
        if context.task_name == "round":
            self.predictions.append(fitted_estimator.predict(X))
        return len(self.predictions) == self.last
