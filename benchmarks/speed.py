"""Time and memory of training and prediction, side by side in one run.

::

    python -m benchmarks.speed                          # all of it; takes hours
    python -m benchmarks.speed --tasks table3 synth     # some of it
    python -m benchmarks.speed_report                   # tables from the lines

Every measurement runs in a process of its own with fixed threads, so that no model
inherits another one's memory or thread pool, and is one JSON line in
``benchmarks/results/speed.jsonl``. Fit times are the best of several repeats after a
warm-up on few rows.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks import data, models

RESULTS = Path(__file__).parent / "results" / "speed.jsonl"
PACKAGES = ("lhtree", "numpy", "scikit-learn", "xgboost", "lightgbm", "catboost", "ydf")
SLOW = 20.0  # seconds; a fit that takes longer is not repeated

TASKS: dict[str, list[str]] = {
    "table3": ["satimage", "segment", "pendigits"],
    "synth": ["synth50k"],
    "large": ["mnist", "skin", "connect4_onehot"],
}
GROWTH_ROWS = [25_000 * 2**k for k in range(6)]
GROWTH_COLUMNS = [25 * 2**k for k in range(6)]


def describe_machine() -> dict[str, Any]:
    """Return what a reader must know of the machine and the versions."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    cpu = next((line.split(":")[1].strip() for line in lines if "model name" in line), "")
    return {
        "cpu": cpu or platform.processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def time_best(call: Any, n_repeats: int, limit: float = SLOW) -> float:
    """Return the least time of several calls; one that is slow is not repeated."""
    best = np.inf
    for _ in range(n_repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        if best > limit:
            break
    return float(best)


def read_memory() -> tuple[float, float]:
    """Return resident memory now and its peak so far, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    now = pages * resource.getpagesize() / 1e6
    return now, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Fit and ask one model on one table."""
    table = load_table(job)
    n_threads = job["threads"]
    step = max(1, len(table.X) // 500)  # every class takes part: rows may be sorted by it
    make_job_model(job, n_threads).fit(table.X[::step], table.y[::step])  # warm-up
    before, _ = read_memory()
    model = make_job_model(job, n_threads)
    start = time.perf_counter()
    model.fit(table.X, table.y)
    fit = time.perf_counter() - start
    _, peak = read_memory()
    if fit < SLOW:
        again = make_job_model(job, n_threads)
        fit = min(fit, time_best(lambda: again.fit(table.X, table.y), job["repeats"]))
    rows = np.ascontiguousarray(table.X_test[:10_000])
    one = np.ascontiguousarray(rows[:1])
    proba = model.predict_proba(rows)
    proba = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
    return {
        "n": len(table.X),
        "m": table.X.shape[1],
        "k": int(table.y.max()) + 1,
        "fit_s": fit,
        "memory_mb": peak - before,
        "X_mb": table.X.nbytes / 1e6,
        "bulk_rows": len(rows),
        "bulk_s": time_best(lambda: model.predict_proba(rows), 5),
        "one_ms": 1e3 * time_best(lambda: model.predict_proba(one), 200),
        "model_mb": measure_size(model),
        "accuracy": float(np.mean(proba.argmax(axis=1) == table.y_test[:10_000])),
        **describe_trees(model),
    }


def load_table(job: dict[str, Any]) -> data.Table:
    """Return the table of a job."""
    if job["task"] == "growth":
        # Test rows are few: only the fit counts here.
        X, y, X_test, y_test = data.make_synthetic(job["rows"] * 5 // 4, job["columns"])
        return data.Table(X, y, X_test[:1000], y_test[:1000])
    return data.load(job["data"])


def make_job_model(job: dict[str, Any], n_threads: int) -> Any:
    """Return the unfitted model of a job."""
    model = models.make_model(job["model"], job["data"], n_threads)
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
    is_split = forest.left >= 0
    return {
        "depth": model.get_depth(),
        "leaves": model.get_n_leaves(),
        "rows_in_splits": float(forest.n_samples[is_split].sum()),
    }


def list_jobs(tasks: list[str], threads: list[int], n_repeats: int) -> Iterator[dict[str, Any]]:
    """Yield what to measure."""
    common = {"repeats": n_repeats}
    for task, names in TASKS.items():
        for name in names if task in tasks else []:
            for n_threads in threads:
                for model in (*models.LHT, *models.PEERS):
                    job = {"task": task, "data": name, "model": model, "threads": n_threads}
                    yield {**job, **common}
    if "growth" in tasks:
        shapes = [(n, 50) for n in GROWTH_ROWS] + [(25_000, m) for m in GROWTH_COLUMNS]
        for model in models.LHT:
            for depth in (10, None):
                for n, m in dict.fromkeys(shapes):
                    yield {
                        "task": "growth", "data": "synth50k", "model": model, "threads": 1,
                        "rows": n, "columns": m, "depth": depth, **common,
                    }  # fmt: skip


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Measure in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(job["threads"])}
    command = [sys.executable, "-m", "benchmarks.speed", "--job", json.dumps(job)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr else "no message"}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Run the measurements that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", default=[*TASKS, "growth"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--models", nargs="+", help="only these")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(measure(json.loads(options.job))))
        return
    jobs = list(list_jobs(options.tasks, options.threads, options.repeats))
    jobs = [job for job in jobs if not options.models or job["model"] in options.models]
    options.out.parent.mkdir(exist_ok=True)
    for job in (bar := tqdm(jobs)):
        bar.set_description(f"{job['data']} {job['model']} {job['threads']}")
        line = {**job, **run_job(job), **describe_machine()}
        if "error" in line:
            tqdm.write(f"skipped: {job['data']}, {job['model']}: {line['error']}")
            continue
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
