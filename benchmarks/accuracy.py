"""Accuracy of lhtree and its peers on the paper's data sets.

::

    python -m benchmarks.accuracy                               # all of it; takes hours
    python -m benchmarks.accuracy --datasets wine wdbc --seeds 3
    python -m benchmarks.report                                 # tables from the lines

Each data set, model and seed is one JSON line of ``benchmarks/results/accuracy.jsonl``,
written as soon as it is known. What has a line is skipped, so a run that was killed goes
on where it stopped. Every model has one thread; two jobs run at a time.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from benchmarks import data, lines, models, paper, tune, workers
from benchmarks.datasets import ALL, DATASETS
from lhtree import LHTClassifier
from lhtree.explain.reliability import find_reliability

RESULTS = Path(__file__).parent / "results" / "accuracy.jsonl"
N_SEEDS = 10
LARGE, FEW_SEEDS = 50_000, 3  # rows, and the most seeds of data sets that have more
LIMIT = 1500.0  # seconds of CPU time for one job

PAPER_PEERS = tuple(f"{name} (table 6)" for name in ("RF", "XGBoost", "LightGBM", "CatBoost"))
LHT = ("LHT paper", "LHT default", "LHT tuned")
# The paper's table 4: one tree per class on Wine.
BETAS = {f"LHT beta={row['beta']:g}": row["beta"] for row in paper.read_table(paper.TABLE_4)}
MODELS = (*LHT, *models.DEFAULT_PEERS, *PAPER_PEERS, *BETAS)

# Seconds of a fit, roughly: fixed, and per million (rows x columns x classes). Only the
# order of the jobs and the time to go depend on them.
COST = {
    "CART": (0.05, 0.3),
    "LHT paper": (0.05, 1.0),
    "LHT tuned": (3.0, 30.0),
    "ExtraTrees": (0.2, 1.0),
    "RF": (0.2, 2.0),
    "CatBoost": (3.0, 20.0),
}


class Job(NamedTuple):
    """One measurement."""

    data: str
    model: str
    seed: int


def make_model(job: Job) -> Any:
    """Return the unfitted model of a job; None where the paper has none for the data set."""
    if job.model in BETAS:
        return LHTClassifier(beta=BETAS[job.model], n_jobs=1) if job.data == "wine" else None
    if job.model == "LHT paper":
        return models.make_paper_forest(job.data, 1, job.seed)
    if job.model == "LHT default":
        return models.make_default_forest(job.seed)
    if job.model == "LHT tuned":
        return tune.TunedForest(job.seed)
    if job.model in PAPER_PEERS:
        return models.make_paper_peer(job.model.removesuffix(" (table 6)"), job.data, job.seed)
    return models.make_default_peer(job.model, job.seed)


def compute_calibration_error(proba: NDArray[np.float64], is_right: NDArray[np.bool_]) -> float:
    """Return the mean gap between confidence and accuracy over 15 bins of equal width."""
    return find_reliability(proba.max(axis=1), is_right, n_bins=15).error


_last: tuple[str, data.Rows] | None = None  # of this process: jobs come data set by data set


def read_rows(name: str, folder: Path | None) -> data.Rows:
    """Return a data set; the last one is kept."""
    global _last
    if _last is None or _last[0] != name:
        _last = name, data.read_rows(name, folder)
    return _last[1]


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Fit and ask one model on one split; return the fields of its line."""
    key = Job(job["data"], job["model"], job["seed"])
    table = data.split_rows(read_rows(key.data, job["folder"]), key.seed)
    model = make_model(key)
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(table.X, table.y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    asked = time.process_time()
    proba = np.asarray(model.predict_proba(table.X_test), dtype=np.float64)
    asked = time.process_time() - asked
    is_right = proba.argmax(axis=1) == table.y_test
    truth = proba[np.arange(len(proba)), table.y_test]
    line = {
        "test": len(is_right),
        "right": int(is_right.sum()),
        "log_loss": round(float(-np.log(np.maximum(truth, 1e-15)).mean()), 5),
        "ece": round(compute_calibration_error(proba, is_right), 5),
        "fit_s": round(wall, 4),
        "cpu_s": round(cpu, 4),
        "ask_s": round(asked, 4),
    }
    if hasattr(model, "setting_"):
        line["setting"] = model.setting_
    return line


def estimate_cost(job: Job) -> float:
    """Return about how many seconds a job takes."""
    dataset = ALL[job.data]
    size = dataset.n * dataset.m * (dataset.k if dataset.k > 2 else 1) / 1e6
    fixed, slope = COST.get(job.model.removesuffix(" (table 6)"), (0.2, 1.2))
    return fixed + slope * size


def count_seeds(name: str, n_seeds: int) -> int:
    """Return the number of splits: one if it is given, few for the largest data sets."""
    if ALL[name].n_train is not None:
        return 1
    return min(n_seeds, FEW_SEEDS) if ALL[name].n > LARGE else n_seeds


def list_jobs(datasets: list[str], names: list[str], n_seeds: int) -> list[Job]:
    """Return the jobs, cheap ones first; after three seeds others have precedence."""
    jobs = [
        Job(name, model, seed)
        for name in datasets
        for model in names
        for seed in range(count_seeds(name, n_seeds))
        if model in (*LHT, *models.DEFAULT_PEERS) or make_model(Job(name, model, 0)) is not None
    ]

    def rank(job: Job) -> tuple[float, str, str, int]:
        late = (4.0 if job.seed >= 3 else 1.0) * (3.0 if job.model in PAPER_PEERS else 1.0)
        return estimate_cost(job) * late, job.data, job.model, job.seed

    return sorted(jobs, key=rank)


def run(jobs: list[Job], out: Path, folder: Path | None, n_workers: int, limit: float) -> int:
    """Do the jobs and append their lines; return how many failed."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # workers inherit it: one thread for each model
    costs = {job: estimate_cost(job) for job in jobs}
    run_id = lines.start_run(out)
    n_failed = 0
    bar_format = "{l_bar}{bar}| {postfix} [{elapsed}<{remaining}]"
    with tqdm(total=sum(costs.values()), bar_format=bar_format) as bar:
        asked = [{**job._asdict(), "folder": folder} for job in jobs]
        for done, answer in workers.do_jobs(asked, measure, n_workers, limit):
            job = Job(done["data"], done["model"], done["seed"])
            if isinstance(answer, workers.Failed):
                n_failed += 1
                tqdm.write(f"failed: {job.data}, {job.model}, seed {job.seed}: {answer}")
            else:
                if isinstance(answer, workers.OverLimit):
                    answer = {"over_s": limit}
                lines.append(out, {**job._asdict(), **answer, "run": run_id})
            bar.set_postfix_str(f"{job.data}, {job.model}, seed {job.seed}", refresh=False)
            bar.update(costs[job])
    return n_failed


def drop_absent(names: list[str], folder: Path | None, may_download: bool) -> list[str]:
    """Return the data sets that can be had; say which cannot."""
    present = []
    for name in names:
        try:
            data.ensure(name, folder, may_download=may_download)
        except data.Absent as absent:
            tqdm.write(f"skipped: {absent}")
        else:
            present.append(name)
    return present


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=list(ALL),
                        metavar="NAME", help="of: " + ", ".join(ALL))  # fmt: skip
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS,
                        metavar="NAME", help="of: " + ", ".join(MODELS))  # fmt: skip
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="random splits (%(default)s)")
    parser.add_argument("--data", type=Path, help="folder of data sets (default: LHTREE_DATA)")
    parser.add_argument("--offline", action="store_true", help="do not download data sets")
    parser.add_argument("--out", type=Path, default=RESULTS, help="file of lines (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="jobs at a time (%(default)s)")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="seconds of CPU per job (%(default)s)"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for and has no line yet."""
    options = parse(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines.mend(options.out)
    done = {
        (line["data"], line["model"], line["seed"])
        for line in lines.read(options.out)
        if line.get("over_s", options.limit) >= options.limit
    }
    names = drop_absent(options.datasets, options.data, not options.offline)
    jobs = [job for job in list_jobs(names, options.models, options.seeds) if job not in done]
    if not jobs:
        print("Nothing to do: every line is there.")
        return 0
    return 1 if run(jobs, options.out, options.data, options.workers, options.limit) else 0


if __name__ == "__main__":
    raise SystemExit(main())
