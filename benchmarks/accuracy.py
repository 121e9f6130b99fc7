"""How often models are right: on test rows, on folds of training rows, on difficult tables.

Three kinds of jobs: ``accuracy`` (the paper's data sets), ``defaults`` (cross-validation within
training rows alone, by which the defaults were chosen) and ``robustness`` (frames, missing
values, other units, outliers, out-of-bag estimates).
"""

from __future__ import annotations

import os
import time
import warnings
from argparse import Namespace
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks import data, models

Job = dict[str, Any]

# ---- The paper's data sets

LARGE, FEW_SEEDS = 50_000, 3  # rows, and the most seeds of data sets that have more
N_BINS = 15  # of the calibration error
MODELS = (
    models.PAPER, models.DEFAULTS, models.TUNED, *models.PEERS,
    *[peer + models.TABLE_6 for peer in models.PAPER_PEERS], *models.BETAS,
)  # fmt: skip

# Seconds of a fit, roughly: fixed, and per million (rows x columns x classes). Only the order
# of the jobs depends on them.
COST = {
    "CART": (0.05, 0.3),
    models.PAPER: (0.05, 1.0),
    models.TUNED: (3.0, 30.0),
    "ExtraTrees": (0.2, 1.0),
    "RF": (0.2, 2.0),
    "CatBoost": (3.0, 20.0),
}


def count_seeds(name: str, n_seeds: int) -> int:
    """Return the number of splits: one if it is given, few for the largest data sets."""
    dataset = data.get_dataset(name)
    if dataset.n_train is not None:
        return 1
    return min(n_seeds, FEW_SEEDS) if dataset.n_rows > LARGE else n_seeds


def estimate_cost(job: Job) -> float:
    """Return about how many seconds a job takes."""
    dataset = data.ALL[job["data"]]
    n_trees = dataset.n_classes if dataset.n_classes > 2 else 1
    fixed, slope = COST.get(job["model"].removesuffix(models.TABLE_6), (0.2, 1.2))
    return fixed + slope * dataset.n_rows * dataset.n_columns * n_trees / 1e6


def has_settings(model: str, name: str) -> bool:
    """Return whether a model exists for a data set: the paper has settings for some only."""
    if model in models.BETAS:
        return name == "wine"
    if model.endswith(models.TABLE_6):
        peer = model.removesuffix(models.TABLE_6)
        return models.read_paper_peer(name, peer) is not None
    return True


def list_jobs(options: Namespace) -> list[Job]:
    """Return the jobs, cheap ones first; after three seeds others have precedence."""
    jobs = [
        {"data": name, "model": model, "seed": seed}
        for name in options.datasets or data.PAPER
        for model in options.models or MODELS
        for seed in range(count_seeds(name, options.seeds))
        if has_settings(model, name)
    ]

    def rank(job: Job) -> float:
        is_paper_peer = job["model"].endswith(models.TABLE_6)
        late = (4.0 if job["seed"] >= 3 else 1.0) * (3.0 if is_paper_peer else 1.0)
        return estimate_cost(job) * late

    return sorted(jobs, key=lambda job: (rank(job), *job.values()))


@lru_cache(maxsize=1)  # of a worker: jobs come data set by data set
def _read_rows(name: str) -> data.Rows:
    return data.read_rows(name)


def measure(job: Job) -> dict[str, Any]:
    """Fit and score one model on one split, or one fold; return the fields of its line."""
    if "fold" in job:
        table = make_fold(job["data"], job["fold"])
    else:
        table = data.split_rows(_read_rows(job["data"]), job["seed"])
    model = models.make_model(job["model"], job["data"], seed=job.get("seed", 0))
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn of small classes, and of their defaults
        model.fit(table.X, table.y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    start = time.process_time()
    proba = np.asarray(model.predict_proba(table.X_test), dtype=np.float64)
    predict = time.process_time() - start
    line = {
        **score(proba, table.y_test),
        "fit_s": round(wall, 4),
        "cpu_s": round(cpu, 4),
        "predict_s": round(predict, 4),
    }
    if hasattr(model, "setting_"):
        line["setting"] = model.setting_
    if hasattr(model, "oob_score_"):
        line["oob_accuracy"] = round(model.oob_score_, 5)
    return line


def score(proba: NDArray[np.float64], y: NDArray[np.int64]) -> dict[str, Any]:
    """Return rows, correct rows, log-loss and calibration error of probabilities."""
    is_right = proba.argmax(axis=1) == y
    truth = proba[np.arange(len(y)), y]
    return {
        "test": len(y),
        "right": int(is_right.sum()),
        "log_loss": round(float(-np.log(np.maximum(truth, 1e-15)).mean()), 5),
        "ece": round(compute_calibration_error(proba.max(axis=1), is_right), 5),
    }


def compute_calibration_error(
    confidence: NDArray[np.float64], is_right: NDArray[np.bool_]
) -> float:
    """Return the mean gap between confidence and accuracy over bins of equal width."""
    place = np.minimum((confidence * N_BINS).astype(np.int64), N_BINS - 1)
    gap = np.bincount(place, confidence, N_BINS) - np.bincount(place, is_right, N_BINS)
    return float(np.abs(gap).sum() / len(place))


# ---- Folds of training rows, by which the defaults were chosen

MAX_ROWS = 3000
N_FOLDS = 3
FOLD_MODELS = (models.CALIBRATED, models.DEFAULTS, *models.PEERS[1:])


def list_folds(options: Namespace) -> list[Job]:
    """Return folds of the training part of each data set's split 0, and of synthetic tables."""
    names = [data.FILES.get(name, name) for name in data.PAPER if data.ALL[name].checksum]
    return [
        {"data": name, "model": model, "fold": fold}
        for model in options.models or FOLD_MODELS
        for name in options.datasets or (*names, *data.SYNTHETIC)
        for fold in range(N_FOLDS)
    ]


def load_training_rows(name: str) -> data.Labelled:
    """Return at most `MAX_ROWS` rows, drawn by class; no class has fewer than `N_FOLDS`."""
    X, y = data.make_synthetic(name) if name in data.SYNTHETIC else data.load(name)[:2]
    if len(y) > MAX_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MAX_ROWS, stratify=y, random_state=0)
    is_kept = np.bincount(y)[y] >= N_FOLDS
    return X[is_kept], np.unique(y[is_kept], return_inverse=True)[1]


def make_fold(name: str, fold: int) -> data.Table:
    """Return one fold of the training rows as test rows, the others as training rows."""
    X, y = load_training_rows(name)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y)
    train, test = list(folds)[fold]
    return data.Table(X[train], y[train], X[test], y[test])


# ---- Robustness

TASKS = ("frame", "holes", "units", "outliers", "oob")
FRAMES = ("car_evaluation", "breast_cancer_wisconsin", "mixed")
TABLES = ("segment", "spambase", "satimage")
SMALL = (  # by size; the default forest has 100 estimators
    "acute_inflammation_1", "acute_inflammation_2", "wine", "seeds", "sonar", "climate_crashes",
    "wdbc", "balance_scale", "breast_cancer_wisconsin", "blood_transfusion", "banknote",
    "wine_red", "car_evaluation", "segment", "rice", "spambase", "wine_white", "satimage",
    "pendigits", "eeg_eye_state", "magic",
)  # fmt: skip


def list_robustness(options: Namespace) -> list[Job]:
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


def read_frame(name: str) -> tuple[Any, Any]:
    """Return the columns and labels of a data set as they are, not as numbers."""
    import pandas as pd

    if name == "mixed":
        return make_mixed()
    path = Path(os.environ.get("LHTREE_DATA", "")) / f"{name}.parquet"
    if not path.is_file():
        raise data.Absent(f"{name}: set LHTREE_DATA to a folder that holds it")
    table = pd.read_parquet(path)
    return table.drop(columns=["target", "split"], errors="ignore"), table["target"]


def make_mixed(n: int = 3000) -> tuple[Any, Any]:
    """Return numbers, categories, text, flags and gaps, and labels that follow all of them."""
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    frame["city"] = pd.Categorical(rng.choice(list("KLMNOPQR"), n))
    frame["colour"] = rng.choice(["red", "green", "blue"], n)
    frame["is_new"] = rng.random(n) < 0.5
    effect = frame["city"].cat.codes.isin([1, 4, 6]) * 1.5 + (frame["colour"] == "red")
    signal = frame["a"] + frame["b"] * frame["is_new"] + effect + rng.normal(size=n) / 2
    frame.loc[rng.random(n) < 0.1, "a"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    return frame, pd.Series(np.digitize(signal, [0.5, 2.0]))


def measure_robustness(job: Job) -> dict[str, Any]:
    """Return the number of estimators and the accuracies of one line."""
    X, y = read_frame(job["data"])
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
