"""The pages on accuracy: models and peers, the paper's tables, probabilities, robustness."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks import lines, models
from benchmarks.data import ALL, PAPER
from benchmarks.kinds.comparison import N_FOLDS
from benchmarks.lines import Line
from benchmarks.models import read_paper_accuracy, read_paper_table
from benchmarks.report import summary
from benchmarks.report.summary import (
    PM,
    Result,
    Results,
    format_result,
    format_row,
    group_lines,
    make_table,
)

OURS = (models.DEFAULTS, models.TUNED)
MAIN = (*OURS, *models.PEERS)
NOTE = (
    "`python -m benchmarks.report` makes this page from `benchmarks/results/accuracy.jsonl`; "
    "do not edit it."
)


def write(path: Path, out: Path) -> list[Path]:
    """Write the pages and figures of a file of lines; return the files made."""
    measured = lines.read(path, "data", "model", "seed")
    results = summary.summarize(measured)
    pages = {
        "accuracy.md": make_accuracy_page(path, measured, results),
        "paper.md": make_paper_page(measured, results),
    }
    for name, text in pages.items():
        (out / name).write_text(text, encoding="utf-8")
    draw(measured, results, out)
    return [out / name for name in (*pages, "ranks.svg", "time.svg", "paper.svg")]


def list_present(results: Results) -> list[str]:
    """Return the models of the main comparison that have run at all."""
    return [model for model in MAIN if any(key[1] == model for key in results)]


def list_datasets(results: Results) -> list[str]:
    """Return the paper's data sets; or, for a partial run, those that were run."""
    run = {key[0] for key in results}
    return [name for name in ALL if name in run or (len(run) > 20 and name in PAPER)]


# ---- Models and peers


def make_rank_table(measured: list[Line], present: list[str]) -> str:
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
    rows = []
    for j in np.argsort(columns["accuracy"]):
        digits = (2, 2, 2, 3, 2, 3)
        texts = [f"{column[j]:.{d}f}" for column, d in zip(columns.values(), digits, strict=True)]
        wins = [
            " / ".join(map(str, summary.count_wins(table[:, present.index(m)] - table[:, j])))
            if m != present[j]
            else ""
            for m in ours
        ]
        rows.append([present[j], *texts, *wins])
    return (
        f"Over the {len(names)} data sets on which all of these models have run, on the splits "
        "that they share. Rank 1 is best. A win is a mean accuracy higher by at least "
        f"{summary.TIE} points.\n\n{make_table(header, rows)}\n"
    )


def make_rank_sections(measured: list[Line], present: list[str]) -> str:
    """Return the ranks of all models, and of fewer models on more splits."""
    untuned = [model for model in present if model != models.TUNED]
    groups = {
        "All models": present,
        "Defaults only": untuned,
        "Without CatBoost, which has run on fewer splits": [m for m in untuned if m != "CatBoost"],
    }
    sections: dict[tuple[str, ...], str] = {}
    for title, group in groups.items():
        complete, _ = summary.compare(measured, group)
        if tuple(group) in sections or not complete:
            continue
        text = f"### {title}\n\n{make_rank_table(measured, group)}"
        if left := [name for name in PAPER if name not in complete]:
            text += (
                "\nNot in the ranks, because a model has not run there (see the table above): "
                f"{', '.join(left)}.\n"
            )
        sections[tuple(group)] = text
    return "\n".join(sections.values())


def describe_runs(path: Path) -> str:
    """Return versions and machine of the runs."""
    seen = {}
    for run in lines.read_runs(path):
        versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
        seen[versions] = f"{run['cpu']}, {run['cores']} cores, Python {run['python']}: {versions}"
    return "\n".join(f"- {text}" for text in seen.values())


def make_accuracy_page(path: Path, measured: list[Line], results: Results) -> str:
    """Return the page of all models with their defaults."""
    present = list_present(results)
    rows = [
        [
            name,
            summary.describe_splits(results, name, present),
            *format_row(results, name, present),
        ]
        for name in list_datasets(results)
    ]
    return f"""# Accuracy of lhtree and its peers

{NOTE}

Accuracy in percent on test rows, mean ± standard deviation; the best of each row is bold.
Splits: "given" is the predefined split of the data set, with the standard deviation over
bootstrapped test rows; a number is that of random stratified 80/20 splits, with the standard
deviation over them. "LHForest, defaults" is `LHForestClassifier()`; "LHForest, tuned" is a small
search by cross-validation on the training rows of each split (`TunedForest` in
`benchmarks/models.py`). Peers have their own defaults and one thread: CART, RF, ExtraTrees and
HistGB are scikit-learn's. Cheap models have run on more splits than costly ones: compare them by
the ranks below, which rest on shared splits.

{make_table(["data set", "splits", *present], rows)}

## Ranks

{make_rank_sections(measured, present)}
![Mean ranks](ranks.svg)

## Accuracy against time

CPU time of a fit on one thread, on a machine that did other work at the same time: good for
factors, not for percentages. `python -m benchmarks.run speed` measures time properly.

![Accuracy against time](time.svg)

## Machine and versions

{describe_runs(path)}
"""


def draw(measured: list[Line], results: Results, out: Path) -> None:
    """Write the figures."""
    present = list_present(results)
    names, table = summary.compare(measured, present)
    mean_rank = summary.rank(table).mean(axis=0)
    critical = summary.compute_critical_difference(len(present), len(names))
    summary.plot_ranks(out / "ranks.svg", present, mean_rank, critical, len(names))
    _, seconds = summary.compare(measured, present, "cpu_s")
    seconds = np.log(np.maximum(seconds, 0.002))  # what the clock of the process resolves
    ratio = np.exp((seconds - seconds[:, [present.index("RF")]]).mean(axis=0))
    summary.plot_time(out / "time.svg", present, mean_rank, ratio)
    quoted = read_paper_accuracy("LHT")
    best = {
        name: max(
            r.accuracy for m in OURS if (r := results.get((name, m))) is not None and not r.over_s
        )
        for name in PAPER
        if any((name, m) in results for m in OURS)
    }
    ours, theirs = np.array(list(best.values())), np.array([quoted[name][0] for name in best])
    summary.plot_gains(out / "paper.svg", list(best), ours, theirs)


# ---- The paper's tables


def format_quoted(column: dict[str, tuple[float, float]], name: str) -> str:
    """Return a number of the paper."""
    if name not in column:
        return ""
    value, std = column[name]
    return f"{value:g}{PM}{std:g}"


def check_paper(result: Result | None, quoted: tuple[float, float]) -> str:
    """Return how a result stands to the paper's: above, within a standard deviation, or below."""
    if result is None or result.over_s is not None:
        return "not run"
    value, std = quoted
    if round(result.accuracy, 2) >= value:
        return "above"
    return "within" if result.accuracy >= value - std else "below"


def make_reproduction(results: Results) -> str:
    """Return our rows (a), (b), (c) next to the paper's column of LHT."""
    quoted = read_paper_accuracy("LHT")
    kinds = (models.PAPER, *OURS)
    rows = []
    counts = {kind: Counter[str]() for kind in ("sampled", *kinds, "better")}
    for name in list_datasets(results):
        if name not in quoted:
            continue
        cells = [name, format_quoted(quoted, name)]
        if not ALL[name].checksum:
            rows.append([*cells, "data not available", *[""] * 6])
            continue
        is_sampled = (models.read_paper_forest(name) or {}).get("max_samples") is not None
        found = [results.get((name, kind)) for kind in kinds]
        checks = [check_paper(result, quoted[name]) for result in found]
        best = next((c for c in ("above", "within", "below") if c in checks[1:]), "not run")
        for kind, check in zip((*kinds, "better"), (*checks, best), strict=True):
            counts[kind][check] += 1
        counts["sampled"][checks[0]] += is_sampled
        for result, check in zip(found, checks, strict=True):
            cells += [format_result(result), check]
        rows.append([*cells, "yes" if is_sampled else ""])
    header = ["data set", "paper"]
    for letter, kind in zip("abc", kinds, strict=True):
        header += [f"({letter}) {kind}", ""]
    titles = (
        f"(a) {models.PAPER}, rows with max_samples < 1",
        f"(a) {models.PAPER}, all rows",
        f"(b) {models.DEFAULTS}",
        f"(c) {models.TUNED}",
        "the better of (b) and (c)",
    )
    checks = ["above", "within", "below", "not run"]
    totals = [
        [title, *[count[check] for check in checks]]
        for title, count in zip(titles, counts.values(), strict=True)
    ]
    table = make_table([*header, "max_samples < 1"], rows)
    return f"{table}\n\n{make_table(['', *checks], totals)}"


def make_quoted_table(results: Results, number: int) -> str:
    """Return table 1 or 2, quoted, next to the same models here."""
    rows_of_table = read_paper_table(number)
    columns = [name.removesuffix("_std") for name in rows_of_table[0] if name.endswith("_std")]
    quoted = {model: read_paper_accuracy(model) for model in columns}
    peers = ["CART"] if number == 1 else [x + models.TABLE_6 for x in columns if x != "LHT"]
    here = [*peers, models.PAPER, *OURS]
    rows = []
    for name in (row["dataset"] for row in rows_of_table):
        texts = format_row(results, name, here)
        if ALL[name].checksum and models.read_paper_peer(name, "RF") is None and number == 2:
            texts[: len(peers)] = ["no settings"] * len(peers)
        rows.append([name, *[format_quoted(c, name) for c in quoted.values()], *texts])
    header = ["data set", *[f"{m} (quoted)" for m in columns], *[f"{m} (here)" for m in here]]
    return make_table(header, rows)


def make_time_table(results: Results) -> str:
    """Return training times: the paper's seconds, and CPU seconds on one thread here."""
    peers = ("RF", "XGBoost", "CatBoost", "LightGBM")
    here = [*[peer + models.TABLE_6 for peer in peers], models.PAPER]
    rows = []
    for row in read_paper_table(3):
        found = [results.get((row["dataset"], model)) for model in here]
        times = [f"{r.cpu_s:.2f}" if r and r.over_s is None else "not run" for r in found]
        rows.append([row["dataset"], *[f"{row[m]:g}" for m in (*peers, "LHT")], *times])
    quoted = [f"{m} (quoted)" for m in (*peers, "LHT")]
    return make_table(["data set", *quoted, *[f"{m} (here)" for m in here]], rows)


def make_beta_table(results: Results) -> str:
    """Return Wine by beta."""
    rows = [
        [
            name,
            f"{row['accuracy']:g}{PM}{row['std']:g}",
            format_result(results.get(("wine", name))),
        ]
        for row, name in zip(read_paper_table(4), models.BETAS, strict=True)
    ]
    return make_table(["model", "paper", "here"], rows)


def make_settings_table(measured: list[Line]) -> str:
    """Return LHT's settings in the paper, and what the search chose most often."""
    rows = []
    for row in read_paper_table(5):
        chosen = Counter(
            line["setting"]
            for line in measured
            if line["data"] == row["dataset"] and "setting" in line
        )
        name, n = chosen.most_common(1)[0] if chosen else ("", 0)
        ours = f"{name} ({n} of {chosen.total()})" if n else ""
        rows.append([*[v for k, v in row.items() if k != "normalized"], ours])
    header = ["data set", "gamma and min_samples", "beta' or beta", "trees per class",
              "forest rate", "alpha", f"chosen by {models.TUNED}"]  # fmt: skip
    return make_table(header, rows)


def make_paper_page(measured: list[Line], results: Results) -> str:
    """Return the page of the paper's tables."""
    return f"""# The paper's tables, next to ours

{NOTE}

"Quoted" is as printed in the paper; "here" was run by this package's benchmarks on the same
data sets (`data not available`: no complete public copy could be reached).

## Does it reproduce?

LHT's column of the paper against (a) {models.PAPER}, with the paper's settings, table 5 as
written; (b) {models.DEFAULTS}; (c) {models.TUNED}, measured with the forest of version 0.1, before
it moved to the exact engine. "within": less than one of the paper's
standard deviations below the paper's number.

{make_reproduction(results)}

![Gap to the paper's LHT](paper.svg)

## Table 1: single oblique trees

TAO, DGT and DTSemNet are quoted only.

{make_quoted_table(results, 1)}

## Table 2: ensembles

Here: peers with the settings of the paper's table 6.

{make_quoted_table(results, 2)}

## Table 3: training time in seconds

Here: CPU time on one thread, of fits with the settings of tables 5 and 6.

{make_time_table(results)}

## Table 4: Wine by beta

One tree per class, `LHTClassifier`.

{make_beta_table(results)}

## Table 5: settings of LHT

{make_settings_table(measured)}
"""


# ---- Probabilities and out-of-bag estimates


def make_probability_table(measured: list[Line]) -> str:
    """Return accuracy, log-loss and calibration error on the tables that all models share."""
    names = list(dict.fromkeys(line["model"] for line in measured))
    columns = []
    for field, factor, digits in (("accuracy", 1, 2), ("log_loss", 1, 3), ("ece", 100, 1)):
        tables, values = summary.compare(measured, names, field, "fold")
        ranks = summary.rank(values, is_loss=field != "accuracy").mean(axis=0)
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
    return f"{len(tables)} tables, {N_FOLDS} folds each.\n\n{make_table(header, rows)}"


def write_probabilities(path: Path, out: Path) -> list[Path]:
    """Write the page of a file of lines."""
    measured = lines.read(path, "data", "model", "fold")
    page = f"""# Probabilities and out-of-bag estimates

`python -m benchmarks.report` makes this page from the lines of
`python -m benchmarks.run defaults`; do not edit it.

Cross-validation within the training rows of split 0 (at most 3,000) and on synthetic tables;
peers with their defaults. Log-loss and the calibration error of the most probable class (15 bins
of equal width) are better where they are lower. Forests fit their probabilities to out-of-bag
votes by default; with `calibration=None` they are the votes as they are.

{make_probability_table(measured)}

Calibration has one exponent, fitted to the votes that each row gets from trees that did not see
it; it leaves the labels as they are. Ranks are among the models of this table.
"""
    (out / "probabilities.md").write_text(page, encoding="utf-8")
    return [out / "probabilities.md"]


# ---- Tables as they come

TITLES = {
    "frame": f"{models.DEFAULTS}: frames as they are, and prepared by hand (one-hot, median)",
    "holes": f"{models.DEFAULTS}: 30 % of the values removed",
    "units": 'LHForest, contrast="standardized": columns times powers of ten',
    "outliers": f"{models.DEFAULTS}: ten values of 1e6 times the range",
    "oob": f"{models.DEFAULTS}: out-of-bag estimate and accuracy on test rows",
}


def make_robustness_row(name: str, group: list[Line], columns: list[str]) -> list[object]:
    """Return a row of a table: means over the splits."""
    n_estimators = "/".join(map(str, sorted({line["n_estimators"] for line in group})))
    means = [f"{100 * np.mean([line['result'][key] for line in group]):.2f}" for key in columns]
    return [name, n_estimators, len(group), *means]


def make_robustness_page(measured: list[Line]) -> str:
    """Return the page on tables as they come."""
    pieces = [
        "# Robustness",
        "`python -m benchmarks.report` makes this page from the lines of "
        "`python -m benchmarks.run robustness`;\ndo not edit it.",
        "Accuracy on test rows in percent, means over 80/20 splits. HistGB is scikit-learn's\n"
        "`HistGradientBoostingClassifier` with its defaults.",
        "**The lines are of the forest of version 0.1**, before it moved to the exact engine;\n"
        "the command measures them again.",
    ]
    for task, title in TITLES.items():
        every = [line for line in measured if line["task"] == task]
        if not every:
            continue
        columns = list(every[0]["result"])
        groups = group_lines(every, "data")
        rows = [make_robustness_row(key[0], group, columns) for key, group in groups.items()]
        if task == "oob":
            rows.append(make_robustness_row("**mean**", every, columns))
        header = ["data set", "estimators", "splits", *columns]
        pieces += [f"## {title}", make_table(header, rows)]
    return "\n\n".join(pieces) + "\n"


def write_robustness(path: Path, out: Path) -> list[Path]:
    """Write the page of a file of lines."""
    page = make_robustness_page(lines.read(path, "task", "data", "model", "seed"))
    (out / "robustness.md").write_text(page, encoding="utf-8")
    return [out / "robustness.md"]
