"""Compare boosting with its peers: every model with its defaults, on the same splits.

::

    python -m benchmarks.boosting                          # measure what has no line; takes days
    python -m benchmarks.boosting --models LightGBM XGBoost --roles judge
    python -m benchmarks.boosting --stale                  # our lines of another build once more
    python -m benchmarks.report boosting                   # the page from the lines

Tables are the paper's data sets, those of the folders ``regression`` and ``frames`` beside them,
and ``synth50k``. Of each kind, sorted by name, every other table may be used to choose
defaults by ("choose"), the rest are there to judge by ("judge").

Each measurement runs in a process of its own within a limit of CPU time. Times are of the
processor, because the machine may do other work, and of the first seed. Short fits are repeated,
and their mean counts. Peers get frames in the form that they are made for: text as categories
where they know any, and as numbers where they do not. Frames are converted before the clock
starts.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OrdinalEncoder
from tqdm import tqdm

from benchmarks import accuracy, data, lines, models, run, speed
from benchmarks.lines import Line

OUT = lines.RESULTS / "boosting.jsonl"
KEY = ("data", "model", "seed", "threads")
LIMIT = 600.0  # seconds of CPU time for each thread of a measurement
SHORT, LONG = 0.5, 60.0  # seconds of a fit
MOST_CODES = 255  # categories of a column that HistGB takes

# ---- Tables

SYNTHETIC = "synth50k"
NAMED = ("connect4", "mnist", SYNTHETIC, "avila", "letter")  # for which there are numbers to reach
N_SEEDS = 3
FEW_ROWS = 10_000  # rows up to which a table has several seeds; with more, two threads are tried


class Description(NamedTuple):
    """What is known of a table before it is read."""

    role: str
    n_rows: int
    n_columns: int
    is_given: bool = False  # the split


def _describe_file(path: Path, role: str) -> Description:
    from pyarrow.parquet import read_metadata

    metadata = read_metadata(path)
    return Description(role, metadata.num_rows, metadata.num_columns - 1)


@cache
def list_tables() -> dict[str, Description]:
    """Return the tables by name; of each kind, every other one is to choose by."""
    roles = ("choose", "judge")
    paper = [each for _, each in sorted(data.PAPER.items()) if each.checksum]
    found = {
        each.name: Description(
            roles[i % 2], each.n_rows, each.n_columns, is_given=each.n_train is not None
        )
        for i, each in enumerate(paper)
    }
    folder = Path(os.environ.get("LHTREE_DATA", ""))
    for kind in ("regression", "frames"):
        for i, path in enumerate(sorted((folder / kind).glob("*.parquet"))):
            found[f"{kind}/{path.stem}"] = _describe_file(path, roles[i % 2])
    return {**found, SYNTHETIC: Description("named", 50_000, 50)}


def is_of_numbers(name: str) -> bool:
    """Return whether a table has numbers to predict, not classes."""
    return name.startswith("regression/")


def split_table(name: str, seed: int) -> data.Table:
    """Return training rows and test rows; those with text are frames."""
    if name == SYNTHETIC:
        return data.split(*data.make_clusters(50_000, 50), seed=seed)
    if "/" not in name:
        return data.split_rows(data.read_rows(data.ALIASES.get(name, name)), seed)
    import pandas as pd

    X: Any = pd.read_parquet(Path(os.environ["LHTREE_DATA"]) / f"{name}.parquet")
    y = X.pop("target").to_numpy()
    if not is_of_numbers(name):
        y = np.unique(y, return_inverse=True)[1]
    text = find_text(X)
    X = X.astype({column: object if column in text else float for column in X})
    X = X if text else X.to_numpy()
    rows = train_test_split(
        X, y, test_size=0.2, random_state=seed, stratify=None if is_of_numbers(name) else y
    )
    return data.Table(rows[0], rows[2], rows[1], rows[3])


def find_text(X: Any) -> list[str]:
    """Return the columns of a frame that hold text; none of an array."""
    if isinstance(X, np.ndarray):
        return []
    from pandas.api.types import is_numeric_dtype

    return [name for name in X if not is_numeric_dtype(X[name])]


# ---- Models


class Model(NamedTuple):
    """Where a model is found, and how it is told of threads and categories."""

    module: str
    name: str  # followed by Classifier or Regressor
    form: str = "as it is"  # of text: also "words", "categories", "codes"
    threads: str | None = "n_jobs"
    categories: str | None = None  # parameter with the places of the columns of text
    settings: Mapping[str, Any] = MappingProxyType({})


BOOST = "LHBoost, defaults"
OURS = {
    BOOST: Model("lhtree", "LHBoost"),
    models.DEFAULTS: Model("lhtree", "LHForest"),
}
PEERS = {
    "LightGBM": Model("lightgbm", "LGBM", "categories", settings={"verbose": -1}),
    "XGBoost": Model("xgboost", "XGB", "categories", settings={"enable_categorical": True}),
    "HistGB": Model("sklearn.ensemble", "HistGradientBoosting", "categories", threads=None),
    "CatBoost": Model(
        *("catboost", "CatBoost", "words", "thread_count", "cat_features"),
        settings={"verbose": 0, "allow_writing_files": False},
    ),
    "ChimeraBoost": Model("chimeraboost", "ChimeraBoost", "words", "thread_count", "cat_features"),
    "YDF oblique": Model("benchmarks.boosting", "Ydf", "words", "n_threads"),
    "OQBoost": Model("oqboost", "OQBoost", "codes", None, "categorical_features"),
    "RF": Model("sklearn.ensemble", "RandomForest", "codes"),
    "ExtraTrees": Model("sklearn.ensemble", "ExtraTrees", "codes"),
}
MODELS = {**OURS, **PEERS}
FORESTS = (models.DEFAULTS, "RF", "ExtraTrees")


def make_model(
    name: str, text: list[int], *, predicts_numbers: bool, threads: int, seed: int
) -> Any:
    """Return an unfitted model; `text` has the places of the columns of text."""
    model = MODELS[name]
    kind = "Regressor" if predicts_numbers else "Classifier"
    settings = {"random_state": seed, **model.settings}
    if model.threads:
        settings[model.threads] = threads
    if model.categories and text:
        settings[model.categories] = text
    return getattr(importlib.import_module(model.module), model.name + kind)(**settings)


def convert(name: str, X: Any, X_test: Any) -> tuple[Any, Any]:
    """Return training and test rows in the form that a model is made for."""
    text, form = find_text(X), MODELS[name].form
    if not text or form == "as it is":
        return X, X_test
    X, X_test = X.copy(), X_test.copy()
    if form == "words":  # a gap is a word, too
        for frame in (X, X_test):
            frame[text] = frame[text].fillna("").astype(str).astype(object)
        return X, X_test
    coded = text
    if form == "categories":
        coded = [column for column in text if X[column].nunique() > MOST_CODES]
        coded = coded if name == "HistGB" else []
        for column in set(text) - set(coded):
            X[column] = X[column].astype("category")
            is_known = X_test[column].isin(X[column].cat.categories)  # a new word is a gap
            X_test[column] = X_test[column].where(is_known).astype(X[column].dtype)
    if coded:
        encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        X[coded] = encoder.fit_transform(X[coded].astype(object)).astype(float)
        X_test[coded] = encoder.transform(X_test[coded].astype(object)).astype(float)
    return (
        (X.to_numpy(dtype=float), X_test.to_numpy(dtype=float)) if form == "codes" else (X, X_test)
    )


class YdfClassifier:
    """YDF's boosting with sparse oblique splits, by its template for such models."""

    task = "CLASSIFICATION"

    def __init__(self, n_threads: int, random_state: int) -> None:
        self.n_threads = n_threads
        self.random_state = random_state

    def _to_columns(self, X: Any) -> dict[str, Any]:
        if isinstance(X, np.ndarray):
            return {f"x{j}": X[:, j] for j in range(X.shape[1])}
        return {f"x{j}": X[name].to_numpy() for j, name in enumerate(X)}

    def fit(self, X: Any, y: Any) -> YdfClassifier:
        """Train with the template."""
        import ydf

        ydf.verbose(0)
        learner = ydf.GradientBoostedTreesLearner
        template = learner.hyperparameter_templates()["benchmark_rank1v1"]
        self.model_ = learner(
            label="y", task=getattr(ydf.Task, self.task), random_seed=self.random_state,
            num_threads=self.n_threads, **template,
        ).train({**self._to_columns(X), "y": y})  # fmt: skip
        if self.task == "CLASSIFICATION":
            self.classes_ = np.array(self.model_.label_classes()).astype(np.int64)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return a column for each class."""
        proba = self.model_.predict(self._to_columns(X), num_threads=self.n_threads)
        return np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba

    def predict(self, X: Any) -> Any:
        """Return labels."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class YdfRegressor(YdfClassifier):
    """The same for numbers."""

    task = "REGRESSION"

    def predict(self, X: Any) -> Any:
        """Return numbers."""
        return self.model_.predict(self._to_columns(X), num_threads=self.n_threads)


def measure_file(name: str, model: Any) -> int:
    """Return the bytes of the saved model: in the library's own format, or else pickled."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        if name in OURS:
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


# ---- Measurements

Job = dict[str, Any]


def time_calls(call: Callable[[], object], at_least: float = 0.2) -> float:
    """Return the mean CPU time of a call, of as many as take long enough for a coarse clock."""
    n, total = 1, 0.0
    while total < at_least:
        start = time.process_time()
        for _ in range(n):
            call()
        total, last = time.process_time() - start, n
        n = math.ceil(n * min(max(1.3 * at_least / max(total, 1e-9), 1.5), 10.0))
    return total / last


def warm_up(name: str, *, has_text: bool, predicts_numbers: bool, n_classes: int) -> None:
    """Do all that a first fit and prediction does once, such as to compile."""
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(120, 3))
    y = X[:, 0] if predicts_numbers else np.arange(120) % min(n_classes, 3)
    if has_text:
        import pandas as pd

        X = pd.DataFrame(X, columns=list("abc")).assign(
            d=np.resize(list("xyz"), 120).astype(object)
        )
    if name == "ChimeraBoost":
        importlib.import_module("chimeraboost").warmup()
    X, _ = convert(name, X, X)
    text = [3] if has_text else []
    with suppress(Exception):  # what fails here fails again where it is seen
        make_model(name, text, predicts_numbers=predicts_numbers, threads=1, seed=0).fit(
            X, y
        ).predict(X)


def measure(job: Job) -> Line:
    """Fit and score one model on one split; return the fields of its line."""
    warnings.simplefilter("ignore")  # peers warn of small classes, and of their defaults
    name, predicts_numbers = job["model"], is_of_numbers(job["data"])
    table = split_table(job["data"], job["seed"])
    text = find_text(table.X)
    n_classes = 0 if predicts_numbers else int(table.y.max()) + 1
    if job["seed"] == 0:
        warm_up(name, has_text=bool(text), predicts_numbers=predicts_numbers, n_classes=n_classes)
    X, X_test = convert(name, table.X, table.X_test)
    places = [list(table.X).index(column) for column in text]

    walls: list[float] = []

    def fit() -> Any:
        model = make_model(
            name, places, predicts_numbers=predicts_numbers, threads=job["threads"],
            seed=job["seed"],
        )  # fmt: skip
        start = time.perf_counter()
        model.fit(X, table.y)
        walls.append(time.perf_counter() - start)
        return model

    speed.reset_peak()
    before, start = speed.read_resident(), time.process_time()
    model = fit()
    peak, cpu = speed.read_peak() - before, time.process_time() - start
    size = {"n": len(table.y), "m": table.X.shape[1], "k": n_classes}
    if job["seed"] > 0:
        return {**size, **score(model, X_test, table.y_test, n_classes)}
    if cpu < SHORT:
        cpu = time_calls(fit, SHORT)
    elif cpu < LONG and name == BOOST and len(table.y) > FEW_ROWS / 2:  # to compare threads
        fit(), fit()
    line = {
        **size,
        "fit_s": round(min(walls), 5), "cpu_s": round(cpu, 5), "memory_mb": round(peak, 1),
        "bytes": measure_file(name, model),
    }  # fmt: skip
    if job["threads"] > 1:  # only for its time
        return line
    return {
        **line,
        **score(model, X_test, table.y_test, n_classes),
        **measure_predict(model, X_test, n_classes),
    }


def score(model: Any, X: Any, y: Any, n_classes: int) -> Line:
    """Return accuracy and log-loss, or the root of the mean squared error."""
    if not n_classes:
        error = np.asarray(model.predict(X), dtype=float).ravel() - y
        return {"test": len(y), "rmse": float(f"{np.sqrt(np.mean(error**2)):.7g}")}
    proba = np.zeros((len(y), n_classes))
    proba[:, np.asarray(model.classes_, dtype=np.int64)] = model.predict_proba(X)
    return accuracy.score(proba, y)


def measure_predict(model: Any, X: Any, n_classes: int) -> Line:
    """Return the times of prediction in bulk, and of one row of an array."""
    predict = model.predict_proba if n_classes else model.predict
    rows = X[:10_000]
    line = {"bulk_rows": len(rows), "bulk_s": float(f"{time_calls(lambda: predict(rows)):.4g}")}
    if isinstance(X, np.ndarray):
        one = np.ascontiguousarray(X[:1])
        line["one_ms"] = float(f"{1e3 * time_calls(lambda: predict(one), 0.1):.4g}")
    return line


# ---- The command


def count_seeds(name: str, model: str) -> int:
    """Return the seeds of a model on a table."""
    table = list_tables()[name]
    if model in OURS and name in NAMED:
        return N_SEEDS  # where the split is given, of the model alone
    return 1 if table.is_given or table.n_rows > FEW_ROWS else N_SEEDS


def list_jobs() -> list[Job]:
    """Return all jobs: first seeds, tables to judge by and small tables first."""
    tables = list_tables()
    jobs = [
        {"data": name, "model": model, "seed": seed, "threads": 1}
        for name in tables
        for model in MODELS
        for seed in range(count_seeds(name, model))
    ]
    jobs += [
        {"data": name, "model": BOOST, "seed": 0, "threads": 2}
        for name, table in tables.items()
        if table.n_rows > FEW_ROWS
    ]
    order = list(MODELS)

    def rank(job: Job) -> tuple[Any, ...]:
        table = tables[job["data"]]
        size = table.n_rows * table.n_columns
        return job["seed"], table.role != "judge", size, job["data"], order.index(job["model"])

    return sorted(jobs, key=rank)


def drop_done(jobs: list[Job], out: Path, *, stale: bool) -> list[Job]:
    """Return the jobs without a line; if `stale`, also ours with a line of another build."""
    build = lines.compute_build()
    done = {
        tuple(line[name] for name in KEY)
        for line in lines.read(out, *KEY)
        if not (stale and line["model"] in OURS and line["build"] != build)
    }
    return [job for job in jobs if tuple(job[name] for name in KEY) not in done]


def describe_result(result: Any, limit: float) -> Line:
    """Return the fields of a measurement, or of what stopped it."""
    if isinstance(result, run.OverLimit):
        return {"over_s": limit}
    if isinstance(result, run.Failed):
        return {"error": " ".join(str(result).split())[:300]}
    return dict(result)


def measure_all(
    jobs: list[Job], out: Path, limit: float = LIMIT, work: Callable[[Job], Line] = measure
) -> None:
    """Do the jobs one at a time and append their lines."""
    number, build = lines.start_run(out), lines.compute_build()
    tables = list_tables()
    done = run.do_jobs(jobs, work, 1, limit, is_fresh=True)
    with closing(done), tqdm(total=len(jobs)) as bar:
        for job, result in done:
            role = {"role": tables[job["data"]].role}
            load = {"load": round(os.getloadavg()[0], 2)} if hasattr(os, "getloadavg") else {}
            own = {"build": build} if job["model"] in OURS else {}
            line = {**job, **role, **describe_result(result, limit), **load, **own, "run": number}
            lines.append(out, line)
            bar.update()
            tqdm.write(str(line))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.boosting",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add = parser.add_argument
    add("--datasets", nargs="+", metavar="NAME", choices=list_tables(), help="only these tables")
    add("--models", nargs="+", metavar="NAME", choices=MODELS, help="only these models")
    add("--peers", action="store_true", help="all models but ours")
    add("--roles", nargs="+", choices=["judge", "choose", "named"], help="only these tables")
    add("--stale", action="store_true", help="measure our lines of another build again")
    add("--list", action="store_true", help="print the jobs and leave")
    add("--limit", type=float, default=LIMIT, help="seconds of CPU time for each thread")
    add("--out", type=Path, default=OUT, help="file of lines")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Measure what the command line asks for and has no line yet."""
    options = parse(arguments)
    lines.mend(options.out)
    jobs = [
        job
        for job in drop_done(list_jobs(), options.out, stale=options.stale)
        if job["data"] in (options.datasets or [job["data"]])
        and job["model"] in (options.models or (PEERS if options.peers else MODELS))
        and list_tables()[job["data"]].role in (options.roles or ["judge", "choose", "named"])
    ]
    if options.list:
        print(*jobs, sep="\n")
    elif jobs:
        measure_all(jobs, options.out, options.limit)


if __name__ == "__main__":
    main()
