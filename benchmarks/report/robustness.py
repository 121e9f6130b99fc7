"""The page on tables as they come: frames, missing values, other units, outliers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import lines, models
from benchmarks.lines import Line
from benchmarks.report.summary import group_lines, make_table

TITLES = {
    "frame": f"{models.DEFAULTS}: frames as they are, and prepared by hand (one-hot, median)",
    "holes": f"{models.DEFAULTS}: 30 % of the values removed",
    "units": 'LHForest, contrast="standardized": columns times powers of ten',
    "outliers": f"{models.DEFAULTS}: ten values of 1e6 times the range",
    "oob": f"{models.DEFAULTS}: out-of-bag estimate and accuracy on test rows",
}


def make_row(name: str, group: list[Line], columns: list[str]) -> list[object]:
    """Return a row of a table: means over the splits."""
    n_estimators = "/".join(map(str, sorted({line["n_estimators"] for line in group})))
    means = [f"{100 * np.mean([line['result'][key] for line in group]):.2f}" for key in columns]
    return [name, n_estimators, len(group), *means]


def make_page(measured: list[Line]) -> str:
    """Return the page on tables as they come."""
    pieces = [
        "# Robustness",
        "`python -m benchmarks.report` makes this page from the lines of "
        "`python -m benchmarks.run robustness`;\ndo not edit it.",
        "Accuracy on test rows in percent, means over 80/20 splits. HistGB is scikit-learn's\n"
        "`HistGradientBoostingClassifier` with its defaults.",
    ]
    for task, title in TITLES.items():
        every = [line for line in measured if line["task"] == task]
        if not every:
            continue
        columns = list(every[0]["result"])
        groups = group_lines(every, "data")
        rows = [make_row(key[0], group, columns) for key, group in groups.items()]
        if task == "oob":
            rows.append(make_row("**mean**", every, columns))
        header = ["data set", "estimators", "splits", *columns]
        pieces += [f"## {title}", make_table(header, rows)]
    return "\n\n".join(pieces) + "\n"


def write(path: Path, out: Path) -> list[Path]:
    """Write the page of a file of lines."""
    page = make_page(lines.read(path, "task", "data", "model", "seed"))
    (out / "robustness.md").write_text(page, encoding="utf-8")
    return [out / "robustness.md"]
