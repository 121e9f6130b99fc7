"""Time, memory and size of models next to their peers.

Each job runs in a process of its own with fixed threads. Times are wall-clock seconds, the best
of several repeats after a warm-up on few rows. Memory is the peak of the resident memory during
the first fit, minus what was resident before it; the size of a model is that of its pickle.
Peers have the settings of the paper's table 6 where it has some, and 100 trees elsewhere.
"""

from __future__ import annotations

import importlib
import math
import os
import pickle
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import lhtree
from benchmarks import data, models
from benchmarks.kinds.clocks import SLOW, measure_memory, time_best

LHT = (models.PAPER, models.DEFAULTS)
PEERS = ("RF", "LightGBM", "XGBoost", "CatBoost")
OTHERS = ("ExtraTrees", "HistGB", "YDF")
TABLE_3 = ("satimage", "segment", "pendigits")
GROWTH_ROWS = tuple(25_000 * 2**k for k in range(6))
GROWTH_COLUMNS = tuple(25 * 2**k for k in range(6))
N_REPEATS = 3
# Keep the first core busy, as long as the process that wants it is there.
BURN = "import os\nos.sched_setaffinity(0, {0})\np = os.getppid()\nwhile os.getppid() == p: pass"

Job = dict[str, Any]


def make_job(task: str, name: str, model: str, threads: int, **more: Any) -> Job:
    """Return one measurement; peers are named by their settings for the data set."""
    if model in PEERS:
        model = models.name_timed_peer(model, name)
    return {"task": task, "data": name, "model": model, "threads": threads, **more}


def list_growth() -> list[Job]:
    """Return fits of growing tables; small ones and those with a limited depth first."""
    shapes = [(n, 50) for n in GROWTH_ROWS] + [(25_000, m) for m in GROWTH_COLUMNS if m != 50]
    return [
        make_job("growth", "synth50k", model, 1, rows=n, columns=m, max_depth=depth)
        for depth in (10, None)
        for model in LHT
        for n, m in shapes
    ]


def list_jobs(_: Namespace | None = None) -> list[Job]:
    """Return all measurements, those that decide about the goals first."""
    both = (1, 2)
    compared = (*LHT, *PEERS)
    jobs = [make_job("synth", "synth50k", model, n) for n in both for model in compared]
    jobs += [make_job("import", "none", "lhtree", 1)]
    jobs += [
        make_job("table3", name, model, n) for n in both for name in TABLE_3 for model in compared
    ]
    jobs += [make_job("mnist", "mnist", model, 2) for model in (models.PAPER, "LightGBM")]
    jobs += [make_job("load", "synth50k", model, 2) for model in (*LHT, "LightGBM", "HistGB")]
    jobs += [make_job("others", "synth50k", "HistGB", n) for n in both]
    jobs += [make_job("hardware", name, models.PAPER, 1) for name in ("synth50k", "mnist")]
    jobs += list_growth()
    jobs += [
        make_job("large", name, model, n)
        for name in ("skin", "connect4_onehot")
        for n in both
        for model in compared
    ]
    jobs += [make_job("large", "mnist", models.DEFAULTS, 2)]
    jobs += [
        make_job("others", name, model, n)
        for n in both
        for name in ("synth50k", *TABLE_3)
        for model in OTHERS
    ]
    jobs += [make_job("onnx", "satimage", model, 1) for model in LHT]
    return list({str(job): job for job in jobs}.values())


# ---- Measurements


@contextmanager
def busy_core() -> Iterator[None]:
    """Keep the first core busy with another process."""
    burner = subprocess.Popen([sys.executable, "-c", BURN])
    try:
        yield
    finally:
        burner.kill()
        burner.wait()


def measure(job: Job) -> dict[str, Any]:
    """Return the numbers of one job."""
    special = {"import": measure_import, "hardware": measure_hardware, "onnx": measure_onnx}
    if job["task"] in special:
        return special[job["task"]](job)
    if job["task"] == "load":
        with busy_core():
            return measure_fit(job)
    return measure_fit(job)


def measure_fit(job: Job) -> dict[str, Any]:
    """Return time, memory and size of a fit, and of predictions where they count."""
    table = load_table(job)
    step = max(1, len(table.X) // 500)  # every class takes part: rows may be sorted by it
    make_model(job).fit(table.X[::step], table.y[::step])  # warm-up
    model = make_model(job)
    times: list[float] = []

    def fit() -> None:
        times.append(time_best(lambda: model.fit(table.X, table.y), N_REPEATS if times else 1))

    memory = measure_memory(fit)
    size = {
        "n": len(table.X), "m": table.X.shape[1], "k": int(table.y.max()) + 1,
        "X_mb": table.X.size * 8 / 1e6, "memory_mb": memory,
        "model_mb": measure_size(model), **describe_trees(model),
    }  # fmt: skip
    if times[0] < SLOW:
        fit()
    more = {} if job["task"] in ("growth", "load") else measure_predict(model, table)
    return {"fit_s": min(times), **size, **more}


def measure_predict(model: Any, table: data.Table) -> dict[str, float]:
    """Return times of prediction in bulk and of one row, and the accuracy."""
    rows = np.ascontiguousarray(table.X_test[:10_000])
    one = np.ascontiguousarray(rows[:1])
    proba = np.asarray(model.predict_proba(rows))
    proba = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
    return {
        "bulk_rows": len(rows),
        "bulk_s": time_best(lambda: model.predict_proba(rows), 7, 3.0),
        "one_ms": 1e3 * time_best(lambda: model.predict_proba(one), 200, 0.1),
        "accuracy": float(np.mean(proba.argmax(axis=1) == table.y_test[: len(rows)])),
    }


def load_table(job: Job) -> data.Table:
    """Return the table of a job."""
    if job["task"] != "growth":
        return data.load(job["data"])
    X, y = data.make_clusters(job["rows"], job["columns"])
    return data.Table(X, y, X[:1000], y[:1000])  # only the fit counts here


def make_model(job: Job) -> Any:
    """Return the unfitted model of a job."""
    model = models.make_model(job["model"], job["data"], job["threads"])
    if job["task"] == "growth":
        model.set_params(n_estimators=2, max_depth=job["max_depth"])
    return model


def measure_size(model: Any) -> float | None:
    """Return the size of the pickled model in MB; None if it cannot be pickled."""
    try:
        return len(pickle.dumps(model)) / 1e6
    except Exception:  # whatever a peer raises: its size is then not known
        return None


def describe_trees(model: Any) -> dict[str, float]:
    """Return depth, leaves and row visits of our models."""
    if not hasattr(model, "forest_"):
        return {}
    forest = model.forest_
    arrays = [x for x in vars(forest).values() if isinstance(x, np.ndarray)]
    return {
        "n_estimators": model.n_estimators_,
        "depth": model.get_depth(),
        "leaves": model.get_n_leaves(),
        "rows_in_splits": float(forest.n_samples[forest.left >= 0].sum()),
        "arrays_mb": sum(x.nbytes for x in arrays) / 1e6,
    }


def measure_import(_: Job) -> dict[str, Any]:
    """Return what `import lhtree` adds to `import sklearn.ensemble`, in milliseconds."""
    # Without compiled files, which an installed package has, every import would compile.
    env = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def run(code: str) -> float:
        code = f"import time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
        return 1e3 * float(subprocess.check_output([sys.executable, "-c", code], env=env))

    # In turns, so that both meet the same noise.
    pairs = [
        (run("import sklearn.ensemble"), run("import sklearn.ensemble, lhtree")) for _ in range(9)
    ]
    plain, both = np.min(pairs, axis=0)
    return {"plain_ms": float(plain), "both_ms": float(both)}


def measure_onnx(job: Job) -> dict[str, Any]:
    """Return times of prediction in bulk by the package and by onnxruntime."""
    from lhtree.export import to_onnx

    onnxruntime: Any = importlib.import_module("onnxruntime")

    table = data.load(job["data"])
    model = make_model(job).fit(table.X, table.y)
    rows = np.resize(table.X_test, (10_000, table.X.shape[1]))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job["threads"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        to_onnx(model, path)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return {
        "bulk_s": time_best(lambda: model.predict_proba(rows), 5),
        "onnx_s": time_best(lambda: session.run(None, {"X": rows}), 5),
    }


def measure_bandwidth() -> float:
    """Return how many bytes a second a copy of a large array reads and writes."""
    source = np.ones(2**25)  # 256 MB, far beyond any cache
    copy = np.empty_like(source)
    return 2 * source.nbytes / time_best(lambda: np.copyto(copy, source), 7)


def measure_hardware(job: Job) -> dict[str, Any]:
    """Return what the paper's splits must read against what the machine can copy.

    A split reads every value of its rows once to project them. Sums are read from the
    smaller child only, and once from the root: the larger child's follow by subtraction.
    """
    table = data.load(job["data"])
    model = make_model(job)
    fit = time_best(lambda: model.fit(table.X, table.y), 2, 30.0)
    forest = model.forest_
    n = forest.n_samples
    is_split = forest.left >= 0
    root = np.repeat(forest.tree_start[:-1], np.diff(forest.tree_start))
    child = (root + forest.left)[is_split]
    n_summed = np.minimum(n[child], n[child + 1]).sum() + n[forest.tree_start[:-1]].sum()
    n_values = (n[is_split].sum() + n_summed) * table.X.shape[1]
    bandwidth = measure_bandwidth()
    return {
        "fit_s": fit, "depth": model.get_depth(), "trees": len(forest),
        "bytes_gb": 8e-9 * n_values, "bandwidth_gb_s": 1e-9 * bandwidth,
        "factor": fit * bandwidth / (8.0 * n_values),
    }  # fmt: skip


# ---- Boosting next to LightGBM at the same settings

PEER_OF_BOOSTS = "LightGBM"
BOOSTS = {"single columns": 0, "one hyperplane per node": 1, "three": 3}  # hyperplanes of a node
LIKE_PEER = {
    "n_estimators": 100,
    "learning_rate": 0.1,
    "max_leaf_nodes": 31,
    "l2_regularization": 1.0,
    "early_stopping": False,
}
OF_BOOSTS = (
    "synth50k", "magic", "eeg_eye_state", "spambase", "skin", "dry_bean",
    "regression/houses", "regression/diamonds", "regression/pol", "regression/cps1988",
)  # fmt: skip


def list_boosts(_: Namespace | None = None) -> list[Job]:
    """Return a job for each table."""
    return [{"data": name} for name in OF_BOOSTS]


def load_boosts(name: str) -> data.Labelled:
    """Return training rows: categories are codes, and classes the most frequent one."""
    table = data.load(name)
    X, _ = models.convert("RF", table.X, table.X_test)
    if data.is_of_numbers(name):
        return X, table.y
    return X, (table.y == np.bincount(table.y).argmax()).astype(np.int64)


def measure_boosts(job: Job) -> dict[str, Any]:
    """Return the fastest of several fits of each model; all fit the table in turn."""
    import lightgbm

    X, y = load_boosts(job["data"])
    is_number = data.is_of_numbers(job["data"])
    boost = lhtree.LHBoostRegressor if is_number else lhtree.LHBoostClassifier
    peer = lightgbm.LGBMRegressor if is_number else lightgbm.LGBMClassifier
    made = {PEER_OF_BOOSTS: peer(reg_lambda=1.0, n_jobs=1, verbose=-1)}
    for name, n in BOOSTS.items():
        made[name] = boost(n_hyperplanes=n, **LIKE_PEER, n_jobs=1, random_state=0)
    fit_s = dict.fromkeys(made, math.inf)
    for _ in range(N_REPEATS):
        for name, model in made.items():
            start = time.process_time()
            model.fit(X, y)
            fit_s[name] = min(fit_s[name], time.process_time() - start)
    return {"fit_s": fit_s}
