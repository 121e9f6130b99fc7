"""Tables and figures of the accuracy measurements.

::

    python -m benchmarks.report        # docs/results from benchmarks/results/accuracy.jsonl

Writes ``accuracy.md`` (lhtree and its peers, run here), ``paper.md`` (the paper's tables next
to ours) and three figures. Everything in them comes from the lines and from the paper.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import accuracy, figures, lines, models, paper, summary
from benchmarks.datasets import ALL, DATASETS

OUT = Path(__file__).parents[1] / "docs" / "results"
OURS = ("LHT default", "LHT tuned")
MAIN = (*OURS, *models.DEFAULT_PEERS)
PM = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
NOTE = (
    "Made by `python -m benchmarks.report` from `benchmarks/results/accuracy.jsonl`; "
    "do not edit.\n"
)


def make_table(header: Sequence[str], rows: Iterable[Sequence[str]], n_left: int = 1) -> str:
    """Return a Markdown table; all columns but the first ones are aligned to the right."""
    rule = ["---"] * n_left + ["---:"] * (len(header) - n_left)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows]) + "\n"


def format_result(result: summary.Result | None, *, is_best: bool = False) -> str:
    """Return accuracy ± deviation, or why there is none."""
    if result is None:
        return "not run"
    if result.over_s is not None:
        return "not run: over the time limit"
    digits = 2 if result.accuracy > 99.5 else 1
    text = f"{result.accuracy:.{digits}f}"
    text = f"**{text}**" if is_best else text
    return text if math.isnan(result.deviation) else f"{text}{PM}{result.deviation:.{digits}f}"


def format_quoted(column: dict[str, tuple[float, float]], name: str) -> str:
    """Return a number of the paper."""
    if name not in column:
        return ""
    value, deviation = column[name]
    return f"{value:g}{PM}{deviation:g}"


def format_row(results: summary.Results, name: str, columns: Sequence[str]) -> list[str]:
    """Return the cells of a data set; the best ones of those printed are marked."""
    if is_absent(name):
        return ["data not available", *[""] * (len(columns) - 1)]
    found = [results.get((name, model)) for model in columns]
    best = max((round(r.accuracy, 2) for r in found if r and r.over_s is None), default=math.nan)
    return [
        format_result(r, is_best=r is not None and round(r.accuracy, 2) == best) for r in found
    ]


def is_absent(name: str) -> bool:
    """Return whether no complete copy of a data set could be had."""
    return not ALL[name].checksum


def describe_splits(results: summary.Results, name: str, columns: Sequence[str]) -> str:
    """Return how many random splits a row rests on."""
    if ALL[name].n_train is not None:
        return "given"
    seeds = {results[name, m].n_seeds for m in columns if (name, m) in results} - {0}
    if not seeds:
        return ""
    return str(max(seeds)) if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"


def make_accuracy_table(results: summary.Results) -> str:
    """Return the table of all models with their defaults."""
    present = [model for model in MAIN if any(key[1] == model for key in results)]
    rows = [
        [name, describe_splits(results, name, present), *format_row(results, name, present)]
        for name in select_datasets(results)
    ]
    return make_table(["data set", "splits", *present], rows)


def select_datasets(results: summary.Results) -> list[str]:
    """Return the paper's data sets; or, for a partial run, those that were run."""
    run = {key[0] for key in results}
    return [name for name in ALL if name in run or (len(run) > 20 and name in DATASETS)]


def make_rank_table(measured: list[summary.Line], present: list[str]) -> str:
    """Return mean ranks of accuracy, log-loss and calibration error, and wins."""
    names, table = summary.compare(measured, present)
    columns = {"accuracy": summary.rank(table).mean(axis=0), "mean accuracy": table.mean(axis=0)}
    for field in ("log_loss", "ece"):
        _, losses = summary.compare(measured, present, field)
        columns[field] = summary.rank(losses, is_loss=True).mean(axis=0)
        columns[f"mean {field}"] = losses.mean(axis=0)
    ours = [model for model in OURS if model in present]
    header = ["model", "rank of accuracy", "mean accuracy", "rank of log-loss", "mean log-loss",
              "rank of calibration error", "mean calibration error",
              *[f"{model}: wins / ties / losses" for model in ours]]  # fmt: skip
    digits = (2, 2, 2, 3, 2, 3)
    rows = []
    for j in np.argsort(columns["accuracy"]):
        cells = [f"{column[j]:.{d}f}" for column, d in zip(columns.values(), digits, strict=True)]
        wins = [
            " / ".join(map(str, summary.count_wins(table[:, present.index(m)], table[:, j])))
            if m != present[j]
            else ""
            for m in ours
        ]
        rows.append([present[j], *cells, *wins])
    return (
        f"Over the {len(names)} data sets on which all of these models have run, on the splits "
        "that they share. Rank 1 is best. A win is a mean accuracy higher by at least "
        f"{summary.TIE} points.\n\n" + make_table(header, rows)
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


def check_paper(result: summary.Result | None, quoted: tuple[float, float]) -> str:
    """Return how a result stands to the paper's: above, within a deviation, or below."""
    if result is None or result.over_s is not None:
        return "not run"
    value, deviation = quoted
    if round(result.accuracy, 2) >= value:
        return "above"
    return "within" if result.accuracy >= value - deviation else "below"


def make_reproduction(results: summary.Results) -> str:
    """Return LHT's rows (a), (b), (c) next to the paper's column."""
    quoted = paper.read_accuracy("LHT")
    kinds = ("LHT paper", *OURS)
    rows, counts = [], {kind: Counter[str]() for kind in (*kinds, "better", "forest")}
    for name in select_datasets(results):
        if name not in quoted:
            continue
        is_forest = paper.read_forest(name)["max_samples"] is not None
        found = [results.get((name, kind)) for kind in kinds]
        if is_absent(name):
            rows.append([name, format_quoted(quoted, name), "data not available", *[""] * 6])
            continue
        checks = [check_paper(result, quoted[name]) for result in found]
        best = next((c for c in ("above", "within", "below") if c in checks[1:]), "not run")
        for kind, check in zip((*kinds, "better"), (*checks, best), strict=True):
            counts[kind][check] += 1
        if is_forest:
            counts["forest"][checks[0]] += 1
        cells = [format_result(result) for result in found]
        mixed = [text for pair in zip(cells, checks, strict=True) for text in pair]
        rows.append([name, format_quoted(quoted, name), *mixed, "yes" if is_forest else ""])
    header = ["data set", "paper", "(a) paper settings", "", "(b) defaults", "", "(c) tuned", "",
              "max_samples < 1"]  # fmt: skip
    text = {
        "forest": "(a), rows with max_samples < 1",
        "LHT paper": "(a), all rows",
        "LHT default": "(b)",
        "LHT tuned": "(c)",
        "better": "the better of (b) and (c)",
    }
    total = make_table(
        ["", "above", "within", "below", "not run"],
        [
            [title, *[str(counts[kind][c]) for c in ("above", "within", "below", "not run")]]
            for kind, title in text.items()
        ],
    )
    return make_table(header, rows) + "\n" + total


def make_table_1(results: summary.Results) -> str:
    """Return the paper's single oblique trees, quoted, next to CART and LHT here."""
    quoted = {m: paper.read_accuracy(m) for m in ("CART", "TAO", "DGT", "DTSemNet", "LHT")}
    here = ("CART", "LHT paper", *OURS)
    rows = [
        [row["dataset"], *[format_quoted(c, row["dataset"]) for c in quoted.values()],
         *format_row(results, row["dataset"], here)]
        for row in paper.read_table(paper.TABLE_1)
    ]  # fmt: skip
    header = ["data set", *[f"{m} (quoted)" for m in quoted], *[f"{m} (here)" for m in here]]
    return make_table(header, rows)


def make_table_2(results: summary.Results) -> str:
    """Return the paper's ensembles, quoted, next to the same settings here."""
    peers = ("RF", "XGBoost", "CatBoost", "LightGBM")
    quoted = {m: paper.read_accuracy(m) for m in (*peers, "LHT")}
    here = [*[f"{m} (table 6)" for m in peers], "LHT paper", *OURS]
    rows = []
    for row in paper.read_table(paper.TABLE_2):
        name = row["dataset"]
        cells = format_row(results, name, here)
        for i, peer in enumerate(peers):
            if cells[0] != "data not available" and paper.read_peer(name, peer) is None:
                cells[i] = "no settings"
        rows.append([name, *[format_quoted(c, name) for c in quoted.values()], *cells])
    header = ["data set", *[f"{m} (quoted)" for m in quoted], *[f"{m} (here)" for m in here]]
    return make_table(header, rows)


def make_table_3(results: summary.Results) -> str:
    """Return training times: the paper's seconds, and CPU seconds on one thread here."""
    peers = ("RF", "XGBoost", "CatBoost", "LightGBM")
    rows = []
    for row in paper.read_table(paper.TABLE_3):
        name = row["dataset"]
        here = [results.get((name, model)) for model in [*[f"{p} (table 6)" for p in peers],
                                                         "LHT paper"]]  # fmt: skip
        times = [f"{r.cpu_s:.2f}" if r and r.over_s is None else "not run" for r in here]
        rows.append([name, *[f"{row[m]:g}" for m in (*peers, "LHT")], *times])
    header = ["data set", *[f"{m} (quoted)" for m in (*peers, "LHT")],
              *[f"{m} (here)" for m in (*peers, "LHT")]]  # fmt: skip
    return make_table(header, rows)


def make_table_4(results: summary.Results) -> str:
    """Return Wine by beta."""
    rows = []
    for row in paper.read_table(paper.TABLE_4):
        here = results.get(("wine", f"LHT beta={row['beta']:g}"))
        rows.append(
            [f"{row['beta']:g}", f"{row['accuracy']:g}{PM}{row['std']:g}", format_result(here)]
        )
    return make_table(["beta", "paper", "here"], rows)


def make_table_5(measured: list[summary.Line]) -> str:
    """Return LHT's settings in the paper, and what the search chose most often."""
    rows = []
    for row in paper.read_table(paper.TABLE_5):
        chosen = Counter(
            line["setting"]
            for line in measured
            if line["data"] == row["dataset"] and "setting" in line
        )
        name, n = chosen.most_common(1)[0] if chosen else ("", 0)
        ours = f"{name} ({n} of {chosen.total()})" if n else ""
        rows.append([str(v) for k, v in row.items() if k != "normalized"] + [ours])
    header = ["data set", "gamma and min_samples", "beta' or beta", "trees per class",
              "forest rate", "alpha", "chosen by the search"]  # fmt: skip
    return make_table(header, rows)


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
            r.accuracy for m in OURS if (r := results.get((name, m))) is not None and not r.over_s
        )
        for name in DATASETS
        if any((name, m) in results for m in OURS)
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
        "paper.md": _fill_paper(measured, results),
    }
    for name, text in pages.items():
        (out / name).write_text(text, encoding="utf-8")
    draw(measured, results, out)
    return [out / name for name in (*pages, "ranks.svg", "time.svg", "paper.svg")]


def _fill_accuracy(path: Path, measured: list[Any], results: Any, present: list[str]) -> str:
    return f"""# Accuracy of lhtree and its peers

{NOTE}
Accuracy in percent on test rows, mean ± deviation; the best of each row is bold.
Splits: "given" is the predefined split of the data set, with the deviation of a bootstrapped
test set; a number is that of random stratified 80/20 splits, with the deviation over them.
Peers have their own defaults and one thread. LHT default is `LHForestClassifier()`, LHT tuned
a small search by cross-validation on the training rows of each split (`benchmarks/tune.py`).

{make_accuracy_table(results)}
## Ranks

{make_rank_table(measured, present)}{list_incomplete(measured, present)}
![Mean ranks](ranks.svg)

## Accuracy against time

CPU time of a fit on one thread, in a machine that did other work at the same time: good for
factors, not for per cents. `benchmarks.speed` measures time properly.

![Accuracy against time](time.svg)

## Machine and versions

{describe_runs(path)}"""


def _fill_paper(measured: list[Any], results: Any) -> str:
    return f"""# The paper's tables, next to ours

{NOTE}
"Quoted" is as printed in the paper; "here" was run by this package's benchmarks on the same
data sets (`data not available`: no complete public copy could be reached).

## Does it reproduce?

LHT's column of the paper against (a) the paper's settings, table 5 as written; (b) the defaults
of `LHForestClassifier`; (c) the tuned forest. "within": less than one of the paper's standard
deviations below the paper's number.

{make_reproduction(results)}
![Gap to the paper's LHT](paper.svg)

## Table 1: single oblique trees

TAO, DGT and DTSemNet are quoted only.

{make_table_1(results)}
## Table 2: ensembles

Here: peers with the settings of the paper's table 6.

{make_table_2(results)}
## Table 3: training time in seconds

Here: CPU time on one thread, of fits with the settings of tables 5 and 6.

{make_table_3(results)}
## Table 4: Wine by beta

One tree per class.

{make_table_4(results)}
## Table 5: settings of LHT

{make_table_5(measured)}"""


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
