"""Models next to their peers: scores, and what fits, predictions and files cost.

Three kinds of jobs: ``accuracy`` (the paper's data sets, many seeds), ``defaults``
(cross-validation within training rows alone, by which defaults of forests were chosen) and
``comparison`` (all tables, models with their defaults, few seeds; of the first one also costs).

Costs are measured in a process of its own. Times are of the processor, because the machine may
do other work; those of the wall clock are there for two threads. Short fits are repeated, and
their mean counts. Peers get frames in the form that they are made for: text as categories where
they know any, and as numbers where they do not. Frames are converted before the clock starts.
"""

from __future__ import annotations

import importlib
import pickle
import tempfile
import time
import warnings
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks import data, models
from benchmarks.kinds import clocks
from benchmarks.lines import Line

Job = dict[str, Any]

# ---- Jobs on the paper's data sets

LARGE, FEW_SEEDS = 50_000, 3  # rows, and the most seeds of data sets that have more
OF_PAPER = (
    models.PAPER, models.DEFAULTS, models.TUNED, *models.PEERS,
    *[peer + models.TABLE_6 for peer in models.PAPER_PEERS], *models.BETAS,
)  # fmt: skip


def count_seeds(name: str, n_seeds: int) -> int:
    """Return the number of splits: one if it is given, few for the largest data sets."""
    dataset = data.get_dataset(name)
    if dataset.n_train is not None:
        return 1
    return min(n_seeds, FEW_SEEDS) if dataset.n_rows > LARGE else n_seeds


def has_settings(model: str, name: str) -> bool:
    """Return whether a model exists for a data set: the paper has settings for some only."""
    if model in models.BETAS:
        return name == "wine"
    models.get_library(model)  # refuses a name that says nothing
    return model == models.TUNED or models.read_settings(model, name) is not None


def list_accuracy(options: Namespace) -> list[Job]:
    """Return the jobs, small tables first; after three seeds others have precedence."""
    jobs = [
        {"data": name, "model": model, "seed": seed}
        for name in options.datasets or data.PAPER
        for model in options.models or OF_PAPER
        for seed in range(count_seeds(name, options.seeds))
        if has_settings(model, name)
    ]

    def rank(job: Job) -> tuple[Any, ...]:
        table = data.ALL[job["data"]]
        size = table.n_rows * table.n_columns * table.n_classes
        is_late = job["seed"] >= 3
        return size * (4 if is_late else 1), *job.values()

    return sorted(jobs, key=rank)


# ---- Jobs on folds of training rows

MAX_ROWS = 3000
N_FOLDS = 3
OF_FOLDS = (models.PLAIN, models.DEFAULTS, *models.PEERS[1:])


def list_folds(options: Namespace) -> list[Job]:
    """Return folds of the training part of each data set's split 0, and of synthetic tables."""
    names = [data.FILES.get(name, name) for name in data.PAPER if data.ALL[name].checksum]
    return [
        {"data": name, "model": model, "fold": fold}
        for model in options.models or OF_FOLDS
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


# ---- Jobs on all tables

NAMED = ("connect4", "mnist", data.CLUSTERS, "avila", "letter")  # that have numbers to reach
KEY = ("data", "model", "seed", "threads")
FEW_ROWS = 10_000  # rows up to which a table has several seeds
OURS = (models.BOOST, models.DEFAULTS)
PEERS = (
    "LightGBM", "XGBoost", "HistGB", "CatBoost", "ChimeraBoost", "YDF oblique", "OQBoost", "RF",
    "ExtraTrees",
)  # fmt: skip


def list_comparison(options: Namespace) -> list[Job]:
    """Return the jobs: first seeds, tables to judge by and small tables first.

    Unless the command line says how many threads, boosting has two as well on large tables.
    """
    tables = data.list_tables()
    order = list(options.models or (*OURS, *PEERS))
    for model in order:
        models.get_library(model)
    jobs = []
    for name, table in tables.items():
        is_large = table.n_rows > FEW_ROWS
        for model in order:
            more = (2,) if is_large and model == models.BOOST else ()
            is_once = table.is_given or is_large
            if models.is_ours(model) and name in NAMED:
                is_once = False  # where the split is given, seeds of the model alone
            jobs += [
                {"data": name, "model": model, "seed": seed, "threads": n, "role": table.role}
                for n in options.threads or (1, *more)
                for seed in range(1 if is_once or n > 1 else options.seeds)
            ]

    def rank(job: Job) -> tuple[Any, ...]:
        table = tables[job["data"]]
        size = table.n_rows * table.n_columns
        return job["seed"], table.role != "judge", size, job["data"], order.index(job["model"])

    return sorted(jobs, key=rank)


# ---- One measurement

SHORT, LONG = 0.5, 60.0  # seconds of a fit


def measure(job: Job) -> Line:
    """Fit and score one model on one split, or one fold; return the fields of its line."""
    warnings.simplefilter("ignore")  # peers warn of small classes, and of their defaults
    name, seed, n_threads = job["model"], job.get("seed", 0), job.get("threads", 1)
    has_costs = "threads" in job and seed == 0
    fold = job.get("fold")
    table = data.load(job["data"], seed) if fold is None else make_fold(job["data"], fold)
    n_classes = 0 if data.is_of_numbers(job["data"]) else int(table.y.max()) + 1
    text = data.find_text(table.X)
    if has_costs:
        warm_up(job, n_classes, has_text=bool(text))
    X, X_test = models.convert(name, table.X, table.X_test)
    places = [list(table.X).index(column) for column in text]
    walls: list[float] = []
    cpus: list[float] = []

    def fit() -> Any:
        model = models.make_model(name, job["data"], n_threads, seed, places)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(X, table.y)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        return model

    line: Line = {"n": len(table.y), "m": table.X.shape[1], "k": n_classes}
    fitted: list[Any] = []
    if has_costs:
        memory = clocks.measure_memory(lambda: fitted.append(fit()))
        if cpus[0] < SHORT:
            cpus = [clocks.time_calls(fit, SHORT)]
        elif cpus[0] < LONG and models.is_ours(name) and len(table.y) > FEW_ROWS / 2:
            fit(), fit()  # to compare threads
        line["memory_mb"] = round(memory, 1)
        line["bytes"] = measure_file(name, fitted[0])
    else:
        fitted.append(fit())
    model = fitted[0]
    line |= {"fit_s": round(min(walls), 5), "cpu_s": round(cpus[0], 5)}
    if has_costs:
        line |= measure_predict(model, X_test, n_classes)
    if n_threads == 1:  # with more the scores are the same
        line |= score(model, X_test, table.y_test, n_classes)
    if hasattr(model, "setting_"):
        line["setting"] = model.setting_
    return line


def warm_up(job: Job, n_classes: int, *, has_text: bool) -> None:
    """Do all that a first fit and prediction does once, such as to compile."""
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(120, 3))
    y = np.arange(120) % min(n_classes, 3) if n_classes else X[:, 0]
    if has_text:
        import pandas as pd

        words = np.resize(list("xyz"), 120).astype(object)
        X = pd.DataFrame(X, columns=list("abc")).assign(d=words)
    if job["model"] == "ChimeraBoost":
        importlib.import_module("chimeraboost").warmup()
    X, _ = models.convert(job["model"], X, X)
    with suppress(Exception):  # what fails here fails again where it is seen
        model = models.make_model(job["model"], job["data"], text=[3] if has_text else [])
        model.fit(X, y).predict(X)


def score(model: Any, X: Any, y: Any, n_classes: int) -> Line:
    """Return the root of the mean squared error; or correct rows, log-loss, calibration error."""
    if not n_classes:
        error = np.asarray(model.predict(X), dtype=float).ravel() - y
        return {"test": len(y), "rmse": float(f"{np.sqrt(np.mean(error**2)):.7g}")}
    proba = np.zeros((len(y), n_classes))
    proba[:, np.asarray(model.classes_, dtype=np.int64)] = model.predict_proba(X)
    is_right = proba.argmax(axis=1) == y
    truth = proba[np.arange(len(y)), y]
    return {
        "test": len(y),
        "right": int(is_right.sum()),
        "log_loss": round(float(-np.log(np.maximum(truth, 1e-15)).mean()), 5),
        "ece": round(compute_calibration_error(proba.max(axis=1), is_right), 5),
    }


def compute_calibration_error(
    confidence: NDArray[np.float64], is_right: NDArray[np.bool_], n_bins: int = 15
) -> float:
    """Return the mean gap between confidence and accuracy over bins of equal width."""
    place = np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    gap = np.bincount(place, confidence, n_bins) - np.bincount(place, is_right, n_bins)
    return float(np.abs(gap).sum() / len(place))


def measure_predict(model: Any, X: Any, n_classes: int) -> Line:
    """Return the times of prediction in bulk, and of one row of an array."""
    predict: Callable[[Any], Any] = model.predict_proba if n_classes else model.predict
    rows = X[:10_000]
    line = {
        "bulk_rows": len(rows),
        "bulk_s": float(f"{clocks.time_calls(lambda: predict(rows), 0.2):.4g}"),
        "bulk_wall_s": float(f"{clocks.time_best(lambda: predict(rows), 7, 0.5):.4g}"),
    }
    if isinstance(X, np.ndarray):
        one = np.ascontiguousarray(X[:1])
        line["one_ms"] = float(f"{1e3 * clocks.time_calls(lambda: predict(one), 0.1):.4g}")
    return line


def measure_file(name: str, model: Any) -> int:
    """Return the bytes of the saved model: in the library's own format, or else pickled."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        if models.is_ours(name):
            importlib.import_module("lhtree").save(model, path)
        elif name == "CatBoost":
            model.save_model(str(path))
        elif name == "XGBoost":
            model.save_model(str(path.with_suffix(".ubj")))
        elif name.startswith("YDF"):
            model.model_.save(str(path))
        else:
            path.write_bytes(pickle.dumps(model))
        return sum(each.stat().st_size for each in Path(folder).rglob("*") if each.is_file())
