"""Models of the exact engine of all kinds, for tests of what reads them."""

import numpy as np
import pandas as pd
from sklearn.base import clone

from lhtree import LHBoostClassifier, LHBoostRegressor, LHForestRegressor

COLORS = ["red", "it's", 'a "b"', "grey", "ü"]
# So many rounds: no rows are held out.
ROUNDS = {"learning_rate": 0.1, "early_stopping": False, "random_state": 0}
REGRESSORS = {
    "numbers": LHBoostRegressor(**ROUNDS, n_estimators=12),
    "single columns": LHBoostRegressor(**ROUNDS, n_estimators=12, n_hyperplanes=0),
    "hyperplanes": LHBoostRegressor(**ROUNDS, n_estimators=5, n_hyperplanes=7, max_terms=4),
    "deep": LHBoostRegressor(**ROUNDS, n_estimators=2, max_leaf_nodes=90),
    "stumps": LHBoostRegressor(**ROUNDS, n_estimators=9, max_depth=1),
    "absolute error": LHBoostRegressor("absolute_error", **ROUNDS, n_estimators=7),
    "a quantile": LHBoostRegressor("quantile", quantile=0.9, **ROUNDS, n_estimators=7),
    "quantiles": LHBoostRegressor(
        "quantile", quantile=[0.4, 0.5, 0.6], **ROUNDS | {"learning_rate": 1.0}, n_estimators=9
    ),
    "poisson": LHBoostRegressor("poisson", **ROUNDS, n_estimators=7),
    "gamma": LHBoostRegressor("gamma", **ROUNDS, n_estimators=7),
    "no tree": LHBoostRegressor(**ROUNDS, n_estimators=1, min_samples_leaf=10_000),
}
FORESTS = {
    "forest": LHForestRegressor(7, max_leaf_nodes=40, random_state=0),
    "forest of one": LHForestRegressor(1, max_depth=3, shrinkage=2.0, random_state=0),
}
REGRESSORS |= FORESTS
CLASSIFIERS = {
    "one class": (LHBoostClassifier(**ROUNDS, n_estimators=3), 1),
    "two classes": (LHBoostClassifier(**ROUNDS, n_estimators=12), 2),
    "three classes": (LHBoostClassifier(**ROUNDS, n_estimators=12), 3),
    "five classes": (LHBoostClassifier(**ROUNDS, n_estimators=6, n_hyperplanes=0), 5),
}
NAMES = [*REGRESSORS, *CLASSIFIERS]


def make_frame(n_rows=400, seed=0):
    """Return a frame with gaps, units far apart and a column of categories, and numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5)) * [1, 1e3, 1e-3, 1, 1e9] + [0, 0, 5, 0, 0]
    y = X[:, 0] * X[:, 3] + 1e-3 * X[:, 1] + rng.normal(size=n_rows) / 3
    color = rng.choice(np.array([*COLORS, None], dtype=object), n_rows)
    y = y + 2 * (color == "red") - (color == "ü")
    X[rng.random(n_rows) < 0.2, 1] = np.nan
    X[rng.random(n_rows) < 0.1, 3] = np.nan
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.insert(3, "color", pd.Series(color, dtype=object))
    return frame, y


def to_targets(name, y):
    """Return numbers that the loss of a regressor may have as targets."""
    loss = getattr(REGRESSORS[name], "loss", None)
    if loss == "poisson":
        return np.floor(np.exp(y / 3))
    return np.exp(y / 3) if loss == "gamma" else y


def fit_boosted(name, *, has_categories=True, labels=None):
    """Return a fitted model, and rows to predict, some of them unlike those of training."""
    frame, y = make_frame()
    if not has_categories:
        frame = frame.drop(columns="color")
    new = pd.concat([frame.head(150), make_frame(seed=1)[0][frame.columns].head(50)])
    new = new.reset_index(drop=True)
    numbers = [column for column in frame if column != "color"]
    new.loc[150:, numbers] *= 7.5
    new.loc[3, numbers] = np.nan
    new.loc[4, "a"] = 1e200
    if has_categories:
        new.loc[5, "color"] = "unheard of"
        new.loc[6, "color"] = None
    if name in REGRESSORS:
        return clone(REGRESSORS[name]).fit(frame, to_targets(name, y)), new
    model, n_classes = CLASSIFIERS[name]
    code = np.searchsorted(np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]), y)
    return clone(model).fit(frame, code if labels is None else np.asarray(labels)[code]), new


def get_scores(model, X):
    """Return the raw scores of rows: one column per output."""
    return model.forest_.score(np.ascontiguousarray(model.encode_rows(X)))
