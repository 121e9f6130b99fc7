"""Compare fit times of boosting with LightGBM's, at the same settings and on one thread.

::

    python -m benchmarks.engine_speed          # measure what has no line, write the page
    python -m benchmarks.engine_speed --page   # write the page from the lines alone

100 rounds of trees with 31 leaves, learning rate 0.1, l2 regularisation 1, at most 255 bins, no
early stopping; a table of more than two classes is its most frequent class against the rest. All
models fit a table in turn, three times; the fastest of the three counts. Times are of the
processor.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor
from numpy.typing import NDArray

from benchmarks import data, lines
from lhtree import LHBoostClassifier, LHBoostRegressor

FILE = lines.RESULTS / "engine_speed.jsonl"
PAGE = Path(__file__).parents[1] / "docs" / "design" / "engine-speed.md"
NUMBERS = ("houses", "diamonds", "pol", "cps1988")  # to predict; of the folder regression/
CLASSES = ("synth50k", "magic", "eeg_eye_state", "spambase", "skin", "dry_bean")
N_REPEATS = 3
PEER = "LightGBM"
MODELS = {"single columns": 0, "one hyperplane per node": 1, "three": 3}

Labelled = tuple[NDArray[np.float64], NDArray[Any]]


def load(name: str) -> Labelled:
    """Return a table of numbers; categories are their codes."""
    if name in CLASSES:
        table = data.load(name)
        most = np.bincount(table.y).argmax()
        return np.ascontiguousarray(table.X), (table.y == most).astype(np.int64)
    folder = os.environ.get("LHTREE_DATA")
    if not folder:
        raise data.Absent(f"{name} is looked for in the folder that LHTREE_DATA names")
    frame = pd.read_parquet(Path(folder) / "regression" / f"{name}.parquet")
    y = frame.pop("target").to_numpy(dtype=np.float64)
    columns = [
        column if column.dtype.kind in "biuf" else column.astype("category").cat.codes
        for _, column in frame.items()
    ]
    return np.column_stack([column.to_numpy(dtype=np.float64) for column in columns]), y


def make_models(*, predicts_numbers: bool) -> dict[str, Any]:
    """Return the models of a table, by name."""
    boost = LHBoostRegressor if predicts_numbers else LHBoostClassifier
    peer = LGBMRegressor if predicts_numbers else LGBMClassifier
    own = {
        name: boost(n_hyperplanes=n, early_stopping=False, n_jobs=1, random_state=0)
        for name, n in MODELS.items()
    }
    return {PEER: peer(reg_lambda=1.0, n_jobs=1, verbose=-1), **own}


def measure(fit: Callable[[], object]) -> float:
    """Return the seconds of processor time that a fit takes."""
    start = time.process_time()
    fit()
    return time.process_time() - start


def measure_table(name: str) -> dict[str, float]:
    """Return the fastest fit of each model."""
    X, y = load(name)
    models = make_models(predicts_numbers=name in NUMBERS)
    rounds = [
        {key: measure(lambda m=model: m.fit(X, y)) for key, model in models.items()}  # type: ignore[misc]
        for _ in range(N_REPEATS)
    ]
    return {key: min(each[key] for each in rounds) for key in models}


def run() -> None:
    """Measure the tables that have no line yet for this build."""
    lines.mend(FILE)
    number = lines.start_run(FILE)
    build = lines.compute_build()
    done = {line["data"] for line in lines.read(FILE, "data", "build") if line["build"] == build}
    for name in (*CLASSES, *NUMBERS):
        if name in done:
            continue
        try:
            seconds = measure_table(name)
        except data.Absent as error:
            print(f"{name}: skipped, {error}")
            continue
        lines.append(FILE, {"run": number, "data": name, "build": build, "fit_s": seconds})
        print(name, {key: round(value, 3) for key, value in seconds.items()}, flush=True)


def make_page(found: list[lines.Line]) -> str:
    """Return the page for the measurements of one build."""
    rows = [
        f"| table | {PEER}, s | " + " | ".join(f"{name}, of it" for name in MODELS) + " |",
        "| --- | ---: |" + " ---: |" * len(MODELS),
    ]
    ratios: dict[str, list[float]] = {name: [] for name in MODELS}
    for line in found:
        seconds = line["fit_s"]
        for name in MODELS:
            ratios[name].append(seconds[name] / seconds[PEER])
        own = " | ".join(f"{ratios[name][-1]:.2f}" for name in MODELS)
        rows.append(f"| {line['data']} | {seconds[PEER]:.2f} | {own} |")
    means = [math.exp(np.log(ratios[name]).mean()) for name in MODELS]
    rows.append("| geometric mean | | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")
    return "\n".join([HEADER, *rows, ""])


HEADER = """# Speed of the exact engine

Fit times of boosting on one thread next to LightGBM's at the same settings: 100 rounds of trees
with 31 leaves, learning rate 0.1, l2 regularisation 1, no early stopping, processor time, the
fastest of three. Columns of `lhtree` say how many times LightGBM's time they take.
`python -m benchmarks.engine_speed` measures and writes this page.
"""


def main() -> None:
    """Measure, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the page only")
    if not parser.parse_args().page:
        run()
    found = lines.read(FILE, "data", "build")
    newest = [line for line in found if line["build"] == found[-1]["build"]]
    PAGE.write_text(make_page(newest), encoding="utf-8")


if __name__ == "__main__":
    main()
