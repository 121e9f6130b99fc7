"""What `benchmarks.speed` measures: the jobs, the most important first, and one of them.

Times are wall-clock seconds. Memory is the peak of the resident memory during the first
fit, minus what was resident before it; the size of a model is that of its pickle.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

import lhtree
from benchmarks import data, models

TASKS = ("synth", "table3", "mnist", "growth", "load", "import", "hardware", "large", "others")
TABLE_3 = ("satimage", "segment", "pendigits")
BARS = ("LHT paper", "LHT default", "RF", "LightGBM", "XGBoost", "CatBoost")
OTHERS = ("ExtraTrees", "HistGB", "YDF")
GROWTH_ROWS = tuple(25_000 * 2**k for k in range(6))
GROWTH_COLUMNS = tuple(25 * 2**k for k in range(6))
SLOW = 15.0  # seconds; a fit that takes longer is not repeated
N_REPEATS = 3

Job = dict[str, Any]


def make_job(task: str, name: str, model: str, threads: int, **more: Any) -> Job:
    """Return one measurement in words."""
    return {"task": task, "data": name, "model": model, "threads": threads, **more}


def list_growth() -> list[Job]:
    """Return fits of growing tables; small ones and those with a limited depth first."""
    shapes = [(n, 50) for n in GROWTH_ROWS] + [(25_000, m) for m in GROWTH_COLUMNS if m != 50]
    return [
        make_job("growth", "synth50k", model, 1, rows=n, columns=m, depth=depth)
        for depth in (10, None)
        for model in models.LHT
        for n, m in shapes
    ]


def list_jobs() -> list[Job]:
    """Return all measurements, those that decide about the bars first."""
    both = (1, 2)
    jobs = [make_job("synth", "synth50k", model, n) for n in both for model in BARS]
    jobs += [make_job("import", "none", "lhtree", 1)]
    jobs += [
        make_job("table3", name, model, n) for n in both for name in TABLE_3 for model in BARS
    ]
    jobs += [make_job("mnist", "mnist", model, 2) for model in ("LHT paper", "LightGBM")]
    jobs += [
        make_job("load", "synth50k", model, 2, loaded=True)
        for model in ("LHT paper", "LHT default", "LightGBM", "HistGB")
    ]
    jobs += [make_job("others", "synth50k", "HistGB", n) for n in both]
    jobs += [make_job("hardware", name, "LHT paper", 1) for name in ("synth50k", "mnist")]
    jobs += list_growth()
    jobs += [
        make_job("large", name, model, n)
        for name in ("skin", "connect4_onehot")
        for n in both
        for model in BARS
    ]
    jobs += [make_job("large", "mnist", "LHT default", 2)]
    jobs += [
        make_job("others", name, model, n)
        for n in both
        for name in ("synth50k", *TABLE_3)
        for model in OTHERS
    ]
    return list({str(job): job for job in jobs}.values())


def find_build() -> str:
    """Return a digest of the package as it is installed: sources and native core."""
    digest = hashlib.sha256()
    folders = {Path(lhtree.__file__).parent, Path(lhtree._core.__file__).parent}
    files = [path for folder in sorted(folders) for path in sorted(folder.rglob("*"))]
    for path in files:
        if path.suffix in (".py", ".so", ".pyd"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def time_best(call: Callable[[], Any], n_repeats: int, limit: float = SLOW) -> float:
    """Return the least time of several calls; one that is slow is not repeated."""
    best = np.inf
    for _ in range(n_repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        if best > limit:
            break
    return float(best)


def read_resident() -> float:
    """Return the resident memory in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def reset_peak() -> None:
    """Give free memory back and forget the peak so far, where the system can."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def read_peak() -> float:
    """Return the peak of the resident memory in MB."""
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in status if line.startswith("VmHWM"))
    return int(peak.split()[1]) * 1024 / 1e6


def measure(job: Job) -> dict[str, Any]:
    """Return the numbers of one job."""
    if job["task"] == "import":
        return measure_import()
    if job["task"] == "hardware":
        return measure_hardware(job)
    table = load_table(job)
    step = max(1, len(table.X) // 500)  # every class takes part: rows may be sorted by it
    make_job_model(job).fit(table.X[::step], table.y[::step])  # warm-up
    model = make_job_model(job)
    reset_peak()
    before = read_resident()
    fit = time_best(lambda: model.fit(table.X, table.y), 1)
    peak = read_peak()
    size = {
        "n": len(table.X), "m": table.X.shape[1], "k": int(table.y.max()) + 1,
        "X_mb": table.X.size * 8 / 1e6, "memory_mb": peak - before,
        "model_mb": measure_size(model), **describe_trees(model),
    }  # fmt: skip
    if fit < SLOW:
        again = make_job_model(job)
        fit = min(fit, time_best(lambda: again.fit(table.X, table.y), N_REPEATS))
    asked = {} if job["task"] in ("growth", "load") else ask(model, table)
    return {"fit_s": fit, **size, **asked}


def ask(model: Any, table: data.Table) -> dict[str, float]:
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
    X, y = make_classification(
        job["rows"], job["columns"], n_informative=20, n_redundant=0, n_classes=5,
        n_clusters_per_class=2, flip_y=0.01, random_state=0,
    )  # fmt: skip
    return data.Table(X, y, X[:1000], y[:1000])  # only the fit counts here


def make_job_model(job: Job) -> Any:
    """Return the unfitted model of a job."""
    model = models.make_model(job["model"], job["data"], job["threads"])
    if job["task"] == "growth":
        model.set_params(n_estimators=2, max_depth=job["depth"])
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
    return {
        "members": model._n_members,
        "depth": model.get_depth(),
        "leaves": model.get_n_leaves(),
        "rows_in_splits": float(forest.n_samples[forest.left >= 0].sum()),
        "arrays_mb": sum(x.nbytes for x in vars(forest).values() if isinstance(x, np.ndarray))
        / 1e6,
    }


def measure_import() -> dict[str, Any]:
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


def measure_bandwidth() -> float:
    """Return how many bytes a second a copy of a large array reads and writes."""
    source = np.ones(2**25)  # 256 MB, far beyond any cache
    target = np.empty_like(source)
    return 2 * source.nbytes / time_best(lambda: np.copyto(target, source), 7)


def measure_hardware(job: Job) -> dict[str, Any]:
    """Return what the paper's rules must read against what the machine can copy.

    A split reads every value of its rows once to project them. Sums are read from the
    smaller child only, and once from the root: the larger child's follow by subtraction.
    """
    table = data.load(job["data"])
    model = make_job_model(job)
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
