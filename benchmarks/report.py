"""Tables and figures of the accuracy measurements.

::

    python -m benchmarks.report        # docs/results from benchmarks/results/accuracy.jsonl

Writes ``accuracy.md`` (lhtree and its peers, run here), ``paper.md`` (the paper's tables next
to ours) and three figures. Everything in them comes from the lines and from the paper.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import accuracy, cells, figures, lines, models, paper, paper_page, summary
from benchmarks.datasets import DATASETS

OUT = Path(__file__).parents[1] / "docs" / "results"
MAIN = (*cells.OURS, *models.DEFAULT_PEERS)


def make_accuracy_table(results: summary.Results) -> str:
    """Return the table of all models with their defaults."""
    present = [model for model in MAIN if any(key[1] == model for key in results)]
    rows = [
        [
            name,
            cells.describe_splits(results, name, present),
            *cells.format_row(results, name, present),
        ]
        for name in cells.select_datasets(results)
    ]
    return cells.make_table(["data set", "splits", *present], rows)


def make_rank_table(measured: list[summary.Line], present: list[str]) -> str:
    """Return mean ranks of accuracy, log-loss and calibration error, and wins."""
    names, table = summary.compare(measured, present)
    columns = {"accuracy": summary.rank(table).mean(axis=0), "mean accuracy": table.mean(axis=0)}
    for field in ("log_loss", "ece"):
        _, losses = summary.compare(measured, present, field)
        columns[field] = summary.rank(losses, is_loss=True).mean(axis=0)
        columns[f"mean {field}"] = losses.mean(axis=0)
    ours = [model for model in cells.OURS if model in present]
    header = ["model", "rank of accuracy", "mean accuracy", "rank of log-loss", "mean log-loss",
              "rank of calibration error", "mean calibration error",
              *[f"{model}: wins / ties / losses" for model in ours]]  # fmt: skip
    digits = (2, 2, 2, 3, 2, 3)
    rows = []
    for j in np.argsort(columns["accuracy"]):
        texts = [f"{column[j]:.{d}f}" for column, d in zip(columns.values(), digits, strict=True)]
        wins = [
            " / ".join(map(str, summary.count_wins(table[:, present.index(m)], table[:, j])))
            if m != present[j]
            else ""
            for m in ours
        ]
        rows.append([present[j], *texts, *wins])
    return (
        f"Over the {len(names)} data sets on which all of these models have run, on the splits "
        "that they share. Rank 1 is best. A win is a mean accuracy higher by at least "
        f"{summary.TIE} points.\n\n" + cells.make_table(header, rows)
    )


def list_incomplete(measured: list[summary.Line], present: list[str]) -> str:
    """Return a sentence on the data sets that the ranks leave out."""
    complete, _ = summary.compare(measured, present)
    left = [name for name in DATASETS if name not in complete]
    if not left:
        return ""
    return (
        "\nLeft out, because a model has not run there (see the table above): "
        + ", ".join(left)
        + ".\n"
    )


def make_rank_sections(measured: list[summary.Line], present: list[str]) -> str:
    """Return the ranks of all models, and of fewer models on more splits."""
    untuned = [model for model in present if model != "LHT tuned"]
    groups = {
        "All models": present,
        "Defaults only": untuned,
        "Without CatBoost, which has run on fewer splits": [m for m in untuned if m != "CatBoost"],
    }
    sections, seen = [], []
    for title, group in groups.items():
        if group not in seen and summary.compare(measured, group)[0]:
            text = make_rank_table(measured, group) + list_incomplete(measured, group)
            sections.append(f"### {title}\n\n{text}")
        seen.append(group)
    return "\n".join(sections)


def describe_runs(path: Path) -> str:
    """Return versions and machine of the runs."""
    seen = {}
    for run in lines.read_runs(path):
        versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
        seen[versions] = f"{run['cpu']}, {run['cores']} cores, Python {run['python']}: {versions}"
    return "\n".join(f"- {text}" for text in seen.values()) + "\n"


def draw(measured: list[summary.Line], results: summary.Results, out: Path) -> None:
    """Write the figures."""
    present = find_present(results)
    names, table = summary.compare(measured, present)
    mean_rank = summary.rank(table).mean(axis=0)
    critical = summary.find_critical_difference(len(present), len(names))
    figures.plot_ranks(out / "ranks.svg", present, mean_rank, critical, len(names))
    _, seconds = summary.compare(measured, present, "cpu_s")
    seconds = np.log(np.maximum(seconds, 0.002))  # what the clock of the process resolves
    ratio = np.exp((seconds - seconds[:, [present.index("RF")]]).mean(axis=0))
    figures.plot_time(out / "time.svg", present, mean_rank, ratio)
    quoted = paper.read_accuracy("LHT")
    best = {
        name: max(
            r.accuracy
            for m in cells.OURS
            if (r := results.get((name, m))) is not None and not r.over_s
        )
        for name in DATASETS
        if any((name, m) in results for m in cells.OURS)
    }
    ours = np.array(list(best.values()))
    figures.plot_gains(
        out / "paper.svg", list(best), ours, np.array([quoted[name][0] for name in best])
    )


def find_present(results: summary.Results) -> list[str]:
    """Return the models of the main comparison that have run at all."""
    return [model for model in MAIN if any(key[1] == model for key in results)]


def write(path: Path, out: Path) -> list[Path]:
    """Write the report of a file of lines; return the files made."""
    measured = lines.read(path)
    if not measured:
        raise SystemExit(f"{path} holds no measurement: run python -m benchmarks.accuracy first.")
    results = summary.summarize(measured)
    present = find_present(results)
    out.mkdir(parents=True, exist_ok=True)
    pages = {
        "accuracy.md": _fill_accuracy(path, measured, results, present),
        "paper.md": paper_page.make_page(measured, results),
    }
    for name, text in pages.items():
        (out / name).write_text(text, encoding="utf-8")
    draw(measured, results, out)
    return [out / name for name in (*pages, "ranks.svg", "time.svg", "paper.svg")]


def _fill_accuracy(path: Path, measured: list[Any], results: Any, present: list[str]) -> str:
    return f"""# Accuracy of lhtree and its peers

{cells.NOTE}
Accuracy in percent on test rows, mean ± deviation; the best of each row is bold.
Splits: "given" is the predefined split of the data set, with the deviation of a bootstrapped
test set; a number is that of random stratified 80/20 splits, with the deviation over them.
Peers have their own defaults and one thread. LHT default is `LHForestClassifier()`, LHT tuned
a small search by cross-validation on the training rows of each split (`benchmarks/tune.py`).
Cheap models have run on more splits than costly ones: compare them by the ranks below, which
rest on shared splits.

{make_accuracy_table(results)}
## Ranks

{make_rank_sections(measured, present)}
![Mean ranks](ranks.svg)

## Accuracy against time

CPU time of a fit on one thread, in a machine that did other work at the same time: good for
factors, not for per cents. `benchmarks.speed` measures time properly.

![Accuracy against time](time.svg)

## Machine and versions

{describe_runs(path)}"""


def main(arguments: list[str] | None = None) -> None:
    """Write the report that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.report",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--lines", type=Path, default=accuracy.RESULTS, help="(%(default)s)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder (%(default)s)")
    options = parser.parse_args(arguments)
    for path in write(options.lines, options.out):
        print(path)


if __name__ == "__main__":
    main()
