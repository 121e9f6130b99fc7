"""How forests do on difficult tables: frames, gaps, other units, outliers; and out of bag."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks import data, models

Job = dict[str, Any]

TASKS = ("frame", "holes", "units", "outliers", "oob")
FRAMES = ("car_evaluation", "breast_cancer_wisconsin", "mixed")
TABLES = ("segment", "spambase", "satimage")
SMALL = (  # by size; the default forest has 100 estimators
    "acute_inflammation_1", "acute_inflammation_2", "wine", "seeds", "sonar", "climate_crashes",
    "wdbc", "balance_scale", "breast_cancer_wisconsin", "blood_transfusion", "banknote",
    "wine_red", "car_evaluation", "segment", "rice", "spambase", "wine_white", "satimage",
    "pendigits", "eeg_eye_state", "magic",
)  # fmt: skip


def list_jobs(options: Namespace) -> list[Job]:
    """Return tasks, data sets and seeds; connect4, the largest, once and last."""
    names = {"frame": FRAMES, "oob": SMALL}
    keys = [
        (task, name, seed)
        for task in TASKS
        for name in names.get(task, TABLES)
        for seed in range(options.seeds)
    ]
    keys.append(("frame", "connect4", 0))
    return [
        {"task": task, "data": name, "model": models.DEFAULTS, "seed": seed}
        for task, name, seed in keys
    ]


def measure(job: Job) -> dict[str, Any]:
    """Return the number of estimators and the accuracies of one line."""
    X, y = data.read_frame(job["data"])
    table = train_test_split(X, y, test_size=0.2, stratify=y, random_state=job["seed"])
    forest = models.make_model(job["model"], job["data"])
    start = time.perf_counter()
    result = MEASURES[job["task"]](forest, *table, np.random.default_rng(job["seed"]))
    return {
        "n_estimators": forest.n_estimators_,
        "seconds": round(time.perf_counter() - start, 1),
        "result": {key: round(float(value), 6) for key, value in result.items()},
    }


def _measure_frame(forest: Any, X: Any, X_test: Any, y: Any, y_test: Any, _: Any) -> Any:
    """Compare a frame as it is with indicators for text and the training median for gaps."""
    import pandas as pd

    as_is = forest.fit(X, y).score(X_test, y_test)
    both = pd.get_dummies(pd.concat([X, X_test])).astype(float)
    both = both.fillna(both.iloc[: len(X)].median()).to_numpy()
    prepared = forest.fit(both[: len(X)], y).score(both[len(X) :], y_test)
    return {"as it is": as_is, "by hand": prepared}


def _measure_holes(forest: Any, X: Any, X_test: Any, y: Any, y_test: Any, rng: Any) -> Any:
    """Remove 30 % of the values from training and test rows."""
    full, full_test = X.to_numpy(dtype=float), X_test.to_numpy(dtype=float)
    holed, holed_test = (
        np.where(rng.random(values.shape) < 0.3, np.nan, values) for values in (full, full_test)
    )
    boosting = HistGradientBoostingClassifier(random_state=0)
    imputed = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), forest)
    return {
        "full": forest.fit(full, y).score(full_test, y_test),
        "with holes": forest.fit(holed, y).score(holed_test, y_test),
        "median imputed": imputed.fit(holed, y).score(holed_test, y_test),
        "HistGB full": boosting.fit(full, y).score(full_test, y_test),
        "HistGB with holes": boosting.fit(holed, y).score(holed_test, y_test),
    }


def _measure_units(forest: Any, X: Any, X_test: Any, y: Any, _: Any, rng: Any) -> Any:
    """Multiply the columns by powers of ten, up to a million either way."""
    unit = 10.0 ** rng.integers(-6, 7, X.shape[1])
    forest.set_params(contrast="standardized")
    plain = forest.fit(X.to_numpy(), y).predict(X_test.to_numpy())
    scaled = forest.fit(X.to_numpy() * unit, y).predict(X_test.to_numpy() * unit)
    return {"labels changed": np.mean(plain != scaled)}


def _measure_outliers(forest: Any, X: Any, X_test: Any, y: Any, y_test: Any, rng: Any) -> Any:
    """Put ten values far outside into the training rows."""
    spoilt = X.to_numpy(dtype=float).copy()
    span = np.ptp(spoilt, axis=0)
    row, column = rng.integers(len(spoilt), size=10), rng.integers(spoilt.shape[1], size=10)
    spoilt[row, column] += 1e6 * span[column] * rng.choice([-1, 1], 10)
    test = X_test.to_numpy()
    return {
        "plain": forest.fit(X.to_numpy(), y).score(test, y_test),
        "with outliers": forest.fit(spoilt, y).score(test, y_test),
    }


def _measure_oob(forest: Any, X: Any, X_test: Any, y: Any, y_test: Any, _: Any) -> Any:
    """Compare the out-of-bag estimate with the accuracy on test rows."""
    forest.set_params(oob_score=True).fit(X, y)
    oob, test = forest.oob_score_, forest.score(X_test, y_test)
    return {"out of bag": oob, "test": test, "difference": oob - test}


MEASURES: dict[str, Callable[..., Any]] = {
    "frame": _measure_frame,
    "holes": _measure_holes,
    "units": _measure_units,
    "outliers": _measure_outliers,
    "oob": _measure_oob,
}
