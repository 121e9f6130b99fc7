"""The page on probabilities and out-of-bag estimates."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import accuracy, lines, models
from benchmarks.lines import Line
from benchmarks.report.summary import compare, group_lines, make_table, rank


def make_probability_table(measured: list[Line]) -> str:
    """Return accuracy, log-loss and calibration error on the tables that all models share."""
    names = list(dict.fromkeys(line["model"] for line in measured))
    columns = []
    for field, factor, digits in (("accuracy", 1, 2), ("log_loss", 1, 3), ("ece", 100, 1)):
        tables, values = compare(measured, names, field, "fold")
        ranks = rank(values, is_loss=field != "accuracy").mean(axis=0)
        means = values.mean(axis=0)
        columns += [
            [f"{rank:.2f}" for rank in ranks],
            [f"{factor * mean:.{digits}f}" for mean in means],
        ]
        if field == "log_loss":
            order = np.argsort(means)
    header = ["model", "rank of accuracy", "accuracy, %", "rank of log-loss", "log-loss",
              "rank of calibration error", "calibration error, %"]  # fmt: skip
    rows = [[names[j], *[column[j] for column in columns]] for j in order]
    return f"{len(tables)} tables, {accuracy.N_FOLDS} folds each.\n\n{make_table(header, rows)}"


def describe_oob(measured: list[Line]) -> str:
    """Return how far out-of-bag accuracy is from that on the rows of the fold."""
    every = [x for x in measured if "oob_accuracy" in x and x["model"] == models.CALIBRATED]
    groups = group_lines(every, "data")
    gap = {
        name: 100 * float(np.mean([x["oob_accuracy"] - x["accuracy"] for x in group]))
        for (name,), group in groups.items()
    }
    least, most = min(gap, key=lambda x: gap[x]), max(gap, key=lambda x: gap[x])
    values = np.array(list(gap.values()))
    return (
        f"Out-of-bag minus held-out accuracy, mean over {len(gap)} tables: "
        f"{values.mean():+.2f} points\n(mean size {np.abs(values).mean():.2f}, from "
        f"{gap[least]:+.1f} on {least} to {gap[most]:+.1f} on {most}). Forests of 100 estimators."
    )


def write(path: Path, out: Path) -> list[Path]:
    """Write the page of a file of lines."""
    measured = lines.read(path, "data", "model", "fold")
    page = f"""# Probabilities and out-of-bag estimates

`python -m benchmarks.report` makes this page from the lines of
`python -m benchmarks.run defaults`; do not edit it.

Cross-validation within the training rows of split 0 (at most 3,000) and on synthetic tables;
peers with their defaults. Log-loss and the calibration error of the most probable class (15 bins
of equal width) are better where they are lower. "Calibrated" is `calibration="oob"`: the same
forests, whose probabilities are fitted to out-of-bag votes.

{make_probability_table(measured)}

Calibration has one exponent, fitted to the votes that each row gets from trees that did not see
it; it leaves the labels as they are. Ranks are among the models of this table.

## Out of bag

{describe_oob(measured)}
"""
    (out / "probabilities.md").write_text(page, encoding="utf-8")
    return [out / "probabilities.md"]
