"""Tables as they come: frames, missing values, other units, outliers, out-of-bag estimates.

Usage::

    LHTREE_DATA=folder python -m benchmarks.robustness [--seeds 0 1 2] [--tasks holes oob]

Forests have their defaults. Each measurement is one JSON line in
``benchmarks/results/robustness.jsonl``, written at once; a second start skips what is
there. The page ``docs/results/robustness.md`` is made from all lines. Accuracies are those
of test rows, which nothing is tuned on.
"""

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks import lines
from lhtree import LHForestClassifier

ROOT = Path(__file__).resolve().parents[1]
LINES = ROOT / "benchmarks" / "results" / "robustness.jsonl"
PAGE = ROOT / "docs" / "results" / "robustness.md"
FRAMES = ("car_evaluation", "breast_cancer_wisconsin", "mixed", "connect4")
TABLES = ("segment", "spambase", "satimage")
SMALL = (  # by size; the default forest has 100 members
    "acute_inflammation_1", "acute_inflammation_2", "wine", "seeds", "sonar", "climate_crashes",
    "wdbc", "balance_scale", "breast_cancer_wisconsin", "blood_transfusion", "banknote",
    "wine_red", "car_evaluation", "segment", "rice", "spambase", "wine_white", "satimage",
    "pendigits", "eeg_eye_state", "magic",
)  # fmt: skip
TITLES = {
    "frame": "Frames as they are, and prepared by hand (one-hot, median)",
    "holes": "30 % of the values removed",
    "units": 'Columns times powers of ten, `contrast="standardized"`',
    "outliers": "Ten values of 1e6 times the range",
    "oob": "Out-of-bag estimate and accuracy on test rows",
}
Split = tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.Series]


def load(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return the columns and labels of a data set."""
    if name == "mixed":
        return make_mixed()
    table = pd.read_parquet(Path(os.environ["LHTREE_DATA"]) / f"{name}.parquet")
    return table.drop(columns=["target", "split"], errors="ignore"), table["target"]


def make_mixed(n: int = 3000) -> tuple[pd.DataFrame, pd.Series]:
    """Return numbers, categories, text, flags and gaps, and labels that follow all of them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    frame["city"] = pd.Categorical(rng.choice(list("KLMNOPQR"), n))
    frame["colour"] = rng.choice(["red", "green", "blue"], n)
    frame["is_new"] = rng.random(n) < 0.5
    effect = frame["city"].cat.codes.isin([1, 4, 6]) * 1.5 + (frame["colour"] == "red")
    score = frame["a"] + frame["b"] * frame["is_new"] + effect + rng.normal(size=n) / 2
    frame.loc[rng.random(n) < 0.1, "a"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    return frame, pd.Series(np.digitize(score, [0.5, 2.0]))


def split(name: str, seed: int) -> Split:
    """Return training and test rows."""
    X, y = load(name)
    train, test, y_train, y_test = train_test_split(
        X, y, test_size=0.2, stratify=y, random_state=seed
    )
    return train, test, y_train, y_test


def prepare(train: pd.DataFrame, test: pd.DataFrame) -> tuple[Any, Any]:
    """Prepare by hand: indicators for text, the median of the training rows for gaps."""
    both = pd.get_dummies(pd.concat([train, test])).astype(float)
    both = both.fillna(both.iloc[: len(train)].median())
    return both.iloc[: len(train)].to_numpy(), both.iloc[len(train) :].to_numpy()


def measure_frame(parts: Split, forest: BaseEstimator) -> dict[str, float]:
    """Compare a frame as it is with one prepared by hand."""
    train, test, y_train, y_test = parts
    as_is = forest.fit(train, y_train).score(test, y_test)
    by_hand, by_hand_test = prepare(train, test)
    prepared = forest.fit(by_hand, y_train).score(by_hand_test, y_test)
    return {"as it is": as_is, "by hand": prepared}


def measure_holes(parts: Split, forest: BaseEstimator, seed: int) -> dict[str, float]:
    """Remove 30 % of the values from training and test rows."""
    train, test, y_train, y_test = parts
    rng = np.random.default_rng(seed)
    holed, holed_test = (
        np.where(rng.random(X.shape) < 0.3, np.nan, X.to_numpy(dtype=float)) for X in (train, test)
    )
    boosting = HistGradientBoostingClassifier(random_state=0)
    imputed = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), forest)
    return {
        "full": forest.fit(train.to_numpy(), y_train).score(test.to_numpy(), y_test),
        "with holes": forest.fit(holed, y_train).score(holed_test, y_test),
        "median imputed": imputed.fit(holed, y_train).score(holed_test, y_test),
        "HistGB full": boosting.fit(train.to_numpy(), y_train).score(test.to_numpy(), y_test),
        "HistGB with holes": boosting.fit(holed, y_train).score(holed_test, y_test),
    }


def measure_units(parts: Split, forest: BaseEstimator, seed: int) -> dict[str, float]:
    """Multiply the columns by powers of ten, up to a million either way."""
    train, test, y_train, _ = parts
    unit = 10.0 ** np.random.default_rng(seed).integers(-6, 7, train.shape[1])
    forest.set_params(contrast="standardized")
    plain = forest.fit(train.to_numpy(), y_train).predict(test.to_numpy())
    scaled = forest.fit(train.to_numpy() * unit, y_train).predict(test.to_numpy() * unit)
    return {"labels changed": float(np.mean(plain != scaled))}


def measure_outliers(parts: Split, forest: BaseEstimator, seed: int) -> dict[str, float]:
    """Put ten values far outside into the training rows."""
    train, test, y_train, y_test = parts
    rng = np.random.default_rng(seed)
    spoilt = train.to_numpy(dtype=float).copy()
    span = np.ptp(spoilt, axis=0)
    row, column = rng.integers(len(spoilt), size=10), rng.integers(spoilt.shape[1], size=10)
    spoilt[row, column] += 1e6 * span[column] * rng.choice([-1, 1], 10)
    plain = forest.fit(train.to_numpy(), y_train).score(test.to_numpy(), y_test)
    return {
        "plain": plain,
        "with outliers": forest.fit(spoilt, y_train).score(test.to_numpy(), y_test),
    }


def measure_left_out(parts: Split, forest: BaseEstimator) -> dict[str, float]:
    """Compare the out-of-bag estimate with the accuracy on test rows."""
    train, test, y_train, y_test = parts
    forest.set_params(oob_score=True).fit(train, y_train)
    result = {"out of bag": forest.oob_score_, "test": forest.score(test, y_test)}
    return result | {"difference": result["out of bag"] - result["test"]}


def measure(task: str, name: str, seed: int) -> tuple[int, dict[str, float]]:
    """Return the number of members and what one line says."""
    forest = LHForestClassifier(random_state=0, n_jobs=1)
    parts = split(name, seed)
    if task in ("frame", "oob"):
        result = (measure_frame if task == "frame" else measure_left_out)(parts, forest)
    else:
        of = {"holes": measure_holes, "units": measure_units, "outliers": measure_outliers}
        result = of[task](parts, forest, seed)
    return forest.n_estimators_, result


def list_work(seeds: list[int], tasks: list[str]) -> Iterator[tuple[str, str, int]]:
    """Yield task, data set and seed of every line; connect4, the largest, once and last."""
    names = {"frame": FRAMES[:-1], "oob": SMALL}
    for task in tasks:
        for name in names.get(task, TABLES):
            yield from ((task, name, seed) for seed in seeds)
    if "frame" in tasks:
        yield "frame", FRAMES[-1], 0


def read_lines() -> list[dict[str, Any]]:
    """Return the measurements that are there."""
    if not LINES.exists():
        return []
    every = [json.loads(line) for line in LINES.read_text(encoding="utf-8").splitlines()]
    return [line for line in every if "task" in line]


def write_row(name: str, group: list[dict[str, Any]], columns: list[str]) -> str:
    """Return a row of a table: means over the seeds."""
    members = "/".join(map(str, sorted({line["members"] for line in group})))
    means = [f"{100 * np.mean([line['result'][key] for line in group]):.2f}" for key in columns]
    return f"| {name} | {members} | {len(group)} | " + " | ".join(means) + " |"


def write_page(measured: list[dict[str, Any]]) -> None:
    """Make the page from the lines: means over the seeds."""
    text = ["# Robustness", "", "Made by `python -m benchmarks.robustness` from its lines."]
    text += ["Default forests; accuracy on test rows in percent, means over 80/20 splits.", ""]
    for task, title in TITLES.items():
        groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in measured:
            if line["task"] == task:
                groups[line["data"]].append(line)
        if not groups:
            continue
        columns = list(next(iter(groups.values()))[0]["result"])
        text += [
            f"## {title}",
            "",
            "| data set | members | splits | " + " | ".join(columns) + " |",
        ]
        text.append("| --- | --- | --- |" + " --- |" * len(columns))
        text += [write_row(name, group, columns) for name, group in groups.items()]
        if task == "oob":
            every = [line for group in groups.values() for line in group]
            text.append(write_row("**mean**", every, columns))
        text.append("")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(text), encoding="utf-8")


def main() -> None:
    """Measure what is missing and write the page."""
    parser = argparse.ArgumentParser(description="Measure accuracy on tables as they come.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tasks", nargs="+", default=list(TITLES), choices=list(TITLES))
    arguments = parser.parse_args()
    if "LHTREE_DATA" not in os.environ:
        parser.error("set LHTREE_DATA to the folder of the data sets")
    LINES.parent.mkdir(parents=True, exist_ok=True)
    done = {(line["task"], line["data"], line["seed"]) for line in read_lines()}
    missing = [x for x in list_work(arguments.seeds, arguments.tasks) if x not in done]
    run = lines.start_run(LINES) if missing else 0
    for task, name, seed in missing:
        started = time.perf_counter()
        n_members, result = measure(task, name, seed)
        line = {"run": run, "task": task, "data": name, "seed": seed, "members": n_members}
        line["seconds"] = round(time.perf_counter() - started, 1)
        line["result"] = {key: round(value, 6) for key, value in result.items()}
        lines.append(LINES, line)
        print(json.dumps(line), flush=True)
    write_page(read_lines())


if __name__ == "__main__":
    main()
