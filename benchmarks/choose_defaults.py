"""How the defaults were chosen: cross-validation within training rows alone.

::

    python -m benchmarks.choose_defaults --lines FILE --models RF "LHT default, calibrated"
    python -m benchmarks.choose_defaults --lines FILE --models ours "ours:max_features=1.0"
    python -m benchmarks.choose_defaults --lines FILE --page docs/results/probabilities.md

A model ``ours:name=value,name=value`` is :class:`lhtree.LHForestClassifier` with these
parameters. The rows are those of the training part of split 0 of each of the paper's
data sets (at most 3,000, drawn by class), and of synthetic tables that none of the
rules was made for. Every fold is one JSON line; lines that are there are not run again.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification, make_gaussian_quantiles
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks.accuracy import compute_calibration_error

Rows = tuple[NDArray[np.float64], NDArray[np.int64]]

PEERS = ("RF", "ExtraTrees", "HistGB", "XGBoost", "LightGBM", "CatBoost")
CALIBRATED = ", calibrated"  # such a model leaves two lines: the other of its plain votes
MOST_ROWS = 3000
N_FOLDS = 3

PAPER = (
    "acute_inflammation_1", "acute_inflammation_2", "avila", "balance_scale", "banknote",
    "blood_transfusion", "breast_cancer_wisconsin", "car_evaluation", "climate_crashes",
    "connect4_onehot", "dry_bean", "eeg_eye_state", "letter", "magic", "mnist", "optdigits",
    "pendigits", "rice", "satimage", "seeds", "segment", "skin", "sonar", "spambase", "wdbc",
    "wine", "wine_red", "wine_white",
)  # fmt: skip
ORDER = {  # ordered categories of car_evaluation
    "low": 0, "med": 1, "high": 2, "vhigh": 3, "small": 0, "big": 2,
    "2": 2, "3": 3, "4": 4, "5more": 5, "more": 5, "no": 0, "yes": 1,
}  # fmt: skip


def read_training_rows(name: str) -> Rows:
    """Return the training part of split 0 of one of the paper's data sets."""
    import pandas as pd

    table = pd.read_parquet(Path(os.environ["LHTREE_DATA"]) / f"{name}.parquet")
    y = np.unique(table.pop("target"), return_inverse=True)[1].astype(np.int64)
    if "split" in table:
        train = np.flatnonzero(table.pop("split") == "train")
    else:
        train = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=0)[0]
    table, y = table.iloc[train], y[train]
    for column in table.columns[[not pd.api.types.is_numeric_dtype(t) for t in table.dtypes]]:
        table[column] = table[column].map(ORDER)
    return table.fillna(table.median()).to_numpy(np.float64), y


def make_synthetic(name: str) -> Rows:
    """Return one of the synthetic tables."""
    rng = np.random.default_rng(0)
    make: dict[str, Callable[[], Rows]] = {
        "synth_easy": lambda: make_classification(
            2000, 20, n_informative=5, n_classes=3, random_state=1
        ),
        "synth_hard": lambda: make_classification(
            3000, 30, n_informative=15, n_redundant=5, n_classes=5, flip_y=0.02, random_state=2
        ),
        "synth_noise_labels": lambda: make_classification(
            1500, 10, n_informative=4, flip_y=0.4, random_state=3
        ),
        "synth_noise_columns": lambda: make_classification(
            1500, 100, n_informative=5, n_redundant=0, random_state=4
        ),
        "synth_tiny": lambda: make_classification(
            80, 8, n_informative=3, flip_y=0.1, random_state=5
        ),
        "synth_wide": lambda: make_classification(
            150, 500, n_informative=20, n_redundant=50, random_state=6
        ),
        "synth_unbalanced": lambda: make_classification(
            3000, 12, n_informative=6, weights=[0.95], flip_y=0.02, random_state=7
        ),
        "synth_shells": lambda: make_gaussian_quantiles(
            n_samples=2000, n_features=6, n_classes=3, random_state=8
        ),
        "synth_xor": lambda: make_xor(rng, 1500, 8),
        "synth_spirals": lambda: make_spirals(rng, 1500),
        "synth_steps": lambda: make_steps(rng, 2000, 12),
        "synth_heavy_tails": lambda: make_heavy_tails(rng, 2000, 10),
    }
    X, y = make[name]()
    return X.astype(np.float64), y.astype(np.int64)


SYNTHETIC = (
    "synth_easy", "synth_hard", "synth_noise_labels", "synth_noise_columns", "synth_tiny",
    "synth_wide", "synth_unbalanced", "synth_shells", "synth_xor", "synth_spirals",
    "synth_steps", "synth_heavy_tails",
)  # fmt: skip


def make_xor(rng: np.random.Generator, n: int, m: int) -> Rows:
    """Return classes by the signs of two of the columns."""
    X = rng.normal(size=(n, m))
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int64)


def make_spirals(rng: np.random.Generator, n: int) -> Rows:
    """Return two spirals, with two columns of noise."""
    turn, y = np.sqrt(rng.uniform(0.02, 1, n)) * 10, rng.integers(0, 2, n)
    angle = turn + np.pi * y
    spiral = np.column_stack([turn * np.cos(angle), turn * np.sin(angle)])
    return np.hstack([spiral + rng.normal(0, 0.4, (n, 2)), rng.normal(size=(n, 2))]), y


def make_steps(rng: np.random.Generator, n: int, m: int) -> Rows:
    """Return classes by nested rules on single columns."""
    X = rng.uniform(size=(n, m))
    y = np.where(X[:, 0] > 0.6, X[:, 1] > 0.3, (X[:, 2] > 0.5) ^ (X[:, 3] > 0.7))
    return X, (y ^ (rng.uniform(size=n) < 0.03)).astype(np.int64)


def make_heavy_tails(rng: np.random.Generator, n: int, m: int) -> Rows:
    """Return Cauchy columns and classes by a line through their signs and logarithms."""
    X = rng.standard_cauchy((n, m))
    form = np.arctan(X) @ rng.normal(size=m)
    return X, np.digitize(form, np.quantile(form, [0.4, 0.75]))


def load_rows(name: str) -> Rows:
    """Return at most `MOST_ROWS` rows of a table, drawn by class; no class below `N_FOLDS`."""
    X, y = make_synthetic(name) if name.startswith("synth") else read_training_rows(name)
    if len(y) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, stratify=y, random_state=0)
    is_kept = np.bincount(y)[y] >= N_FOLDS
    return X[is_kept], np.unique(y[is_kept], return_inverse=True)[1]


def make_model(name: str) -> Any:
    """Return a peer with its defaults, or the forest with the parameters in its name."""
    from lhtree import LHForestClassifier

    if name == "LHT default" + CALIBRATED:
        return LHForestClassifier(random_state=0, calibration="oob", oob_score=True, n_jobs=1)
    if name.startswith("ours"):
        given = name.partition(":")[2]
        pairs = (pair.split("=") for pair in given.split(",") if pair)
        return LHForestClassifier(
            random_state=0, n_jobs=1, **{key: ast.literal_eval(value) for key, value in pairs}
        )
    from benchmarks.models import make_peer

    if name == "CatBoost":  # its own defaults, not a fixed number of rounds
        from catboost import CatBoostClassifier

        return CatBoostClassifier(
            thread_count=1, verbose=0, allow_writing_files=False, random_state=0
        )
    return make_peer(name, "", 1)


def measure(name: str, model_name: str, X: Any, y: Any, folds: Any) -> Iterator[dict[str, Any]]:
    """Yield one line for each fold."""
    for fold, (train, test) in folds:
        model = make_model(model_name)
        start = time.process_time()
        model.fit(X[train], y[train])
        seconds = time.process_time() - start
        line = {"table": name, "model": model_name, "fold": fold, "fit_s": round(seconds, 3)}
        if hasattr(model, "oob_score_"):
            line["oob_accuracy"] = round(model.oob_score_, 5)
        yield {**line, **measure_answers(model.predict_proba(X[test]), y[test])}
        if hasattr(model, "calibration_"):  # the same forest without it
            del model.calibration_
            plain = measure_answers(model.predict_proba(X[test]), y[test])
            yield {**line, "model": model_name.removesuffix(CALIBRATED), **plain}


def measure_answers(proba: Any, y: NDArray[Any]) -> dict[str, float]:
    """Return accuracy, log-loss and calibration error of probabilities."""
    proba = np.clip(np.asarray(proba, dtype=np.float64), 1e-15, 1.0)
    proba /= proba.sum(axis=1, keepdims=True)
    loss = -np.log(proba[np.arange(len(y)), y]).mean()
    is_right = proba.argmax(axis=1) == y
    return {
        "accuracy": round(float(is_right.mean()), 5),
        "log_loss": round(float(loss), 5),
        "calibration_error": round(compute_calibration_error(proba, is_right), 5),
    }


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines written so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(path: Path, models: list[str], tables: list[str]) -> None:
    """Append the lines that are not there yet."""
    done = {(line["table"], line["model"], line["fold"]) for line in read_lines(path)}
    for model in models:
        for name in tables:
            missing = {f for f in range(N_FOLDS) if (name, model, f) not in done}
            if not missing:
                continue
            X, y = load_rows(name)
            splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
            folds = [pair for pair in enumerate(splitter.split(X, y)) if pair[0] in missing]
            with path.open("a") as file, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for line in measure(name, model, X, y, folds):
                    file.write(json.dumps(line) + "\n")
                    file.flush()


def compare(path: Path) -> str:
    """Return accuracy, log-loss and calibration error, over the tables that all models share."""
    import pandas as pd

    frame = pd.DataFrame(read_lines(path))
    measures = ["accuracy", "log_loss", "calibration_error"]
    score = frame.groupby(["table", "model"])[measures].mean().unstack().dropna()
    out = [
        f"{len(score)} tables, {N_FOLDS} folds each.\n",
        "| model | rank of accuracy | accuracy, % | rank of log-loss | log-loss "
        "| rank of calibration error | calibration error, % |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rank = {name: score[name].rank(axis=1, ascending=name != "accuracy") for name in measures}
    for model in score["log_loss"].mean().sort_values().index:
        cells = [model]
        for name, factor, digits in zip(measures, (100, 1, 100), (2, 3, 1), strict=True):
            mean = factor * score[name][model].mean()
            cells += [f"{rank[name][model].mean():.2f}", f"{mean:.{digits}f}"]
        out.append(f"| {' | '.join(cells)} |")
    return "\n".join(out)


def compare_left_out(path: Path) -> str:
    """Return how far out-of-bag accuracy is from that on the rows of the fold."""
    import pandas as pd

    frame = pd.DataFrame(read_lines(path)).dropna(subset="oob_accuracy")
    frame = frame[frame.model == frame.model.iloc[0]]
    gap = 100 * (frame.oob_accuracy - frame.accuracy).groupby(frame.table).mean()
    return (
        f"Out-of-bag minus held-out accuracy, mean over {len(gap)} tables: "
        f"{gap.mean():+.2f} points (mean size {gap.abs().mean():.2f}, from {gap.min():+.1f} on "
        f"{gap.idxmin()} to {gap.idxmax()} with {gap.max():+.1f})."
    )


PAGE = """# Probabilities and out-of-bag estimates

Made by `python -m benchmarks.choose_defaults --lines benchmarks/results/defaults.jsonl --page
docs/results/probabilities.md`; do not edit.

Cross-validation within the training rows of split 0 (at most 3,000) and on synthetic tables;
peers with their defaults. Log-loss and the calibration error of the most probable class (15 bins
of equal width) are better where they are lower. "Calibrated" is `calibration="oob"`: the same
forests, whose probabilities are fitted to out-of-bag votes.

{comparison}

Calibration has one exponent, fitted to the votes that each row gets from members that did not see
it; it leaves the labels as they are. Ranks are among the models of this table.

## Out of bag

{left_out} {members}
"""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--tables", nargs="+", default=[*PAPER, *SYNTHETIC])
    parser.add_argument("--page", type=Path, help="Markdown file to write")
    arguments = parser.parse_args()
    run(arguments.lines, arguments.models, arguments.tables)
    if arguments.page:
        page = PAGE.format(
            comparison=compare(arguments.lines),
            left_out=compare_left_out(arguments.lines),
            members="Forests of 100 members.",
        )
        arguments.page.write_text(page)


if __name__ == "__main__":
    main()
