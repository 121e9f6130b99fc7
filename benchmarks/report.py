"""Write the pages of ``docs/results`` and the tables of ``docs/scaling.md``.

::

    python -m benchmarks.report                      # all pages
    python -m benchmarks.report accuracy speed       # some of them

Everything in them comes from the lines in ``benchmarks/results`` and from the paper.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import (
    accuracy,
    lines,
    models,
    report_accuracy,
    report_boosting,
    report_speed,
    summary,
)
from benchmarks.lines import Line
from benchmarks.summary import make_table

DOCS = Path(__file__).parents[1] / "docs"


def group_lines(found: list[Line], *fields: str) -> dict[tuple[Any, ...], list[Line]]:
    """Return the lines by the values of some fields, in the order of their first lines."""
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in found:
        groups.setdefault(tuple(line[name] for name in fields), []).append(line)
    return groups


# ---- Robustness

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


# ---- Probabilities


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


def write_probabilities(path: Path, out: Path) -> list[Path]:
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


# ---- Scaling


def format_size(n_bytes: float) -> str:
    """Return a number of bytes for people."""
    for unit in ("B", "kB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} MB"


def make_overhead_table(measured: list[Line]) -> str:
    """Return CPU time, rounds and traffic of fits on clusters of several sizes."""
    # Lines of the first version of the benchmark counted the start of the workers.
    found = [x for x in measured if x["task"] == "overhead" and "start_cpu" in x]
    last = {(x["model"], x["n_workers"], x["row_limit"]): x for x in found}
    order = sorted(last, key=lambda key: (key[0], key[2], key[1]))
    header = ["model", "workers", "row limit", "rounds", "passes", "statistics sent a round",
              "local CPU", "CPU", "against local", "same predictions", "load"]  # fmt: skip
    rows = [
        [
            *(line["model"], line["n_workers"], f"{line['row_limit']:,}"),
            *(line["n_rounds"], line["n_passes"]),
            format_size(line["n_bytes"] / line["n_rounds"]) if line["n_rounds"] else "none",
            *(f"{line['local_cpu']:.1f} s", f"{line['cpu']:.1f} s", f"{line['ratio']:.2f}"),
            *(f"{line['same_predictions']:.2%}", line["load"]),
        ]
        for line in (last[key] for key in order)
    ]
    return make_table(header, rows)


def make_equal_table(measured: list[Line]) -> str:
    """Return how alike the forests of a cluster and of one process are."""
    fields = ("data", "preset", "standardize", "n_partitions")
    found = [x for x in measured if x["task"] == "equal" and "n_test" in x]
    last = {tuple(x[name] for name in (*fields, "n_test")): x for x in found}
    yes = {True: "yes", False: "no"}
    header = ["model", "table", "standardize", "partitions", "row limit", "rounds", "nodes",
              "same trees", "same bits", "same predictions (least)"]  # fmt: skip
    rows = [
        [
            *(f"LHForest, preset {preset}", name, yes[standardize]),
            ", ".join(str(line["n_partitions"]) for line in group),
            *(f"{group[0]['row_limit']:,}", group[0]["n_rounds"], f"{group[0]['n_nodes']:,}"),
            yes[all(line["same_structure"] for line in group)],
            yes[all(line["same_bits"] for line in group)],
            f"{min(line['same_predictions'] for line in group):.3%}",
        ]
        for (name, preset, standardize), group in group_lines(
            list(last.values()), *fields[:3]
        ).items()
    ]
    return make_table(header, rows)


def make_memory_table(measured: list[Line]) -> str:
    """Return what a table took that is larger than the memory of its workers."""
    header = ["model", "table", "workers", "limit of each", "partitions", "rounds", "passes",
              "row limit", "peaks of the workers", "died"]  # fmt: skip
    found = [line for line in measured if line["task"] == "memory"]
    rows = [
        [
            f"LHForest, n_estimators={line['n_estimators']}, max_depth={line['max_depth']}",
            f"{line['n_bytes_of_table'] / 1e9:.1f} GB",
            *(line["n_workers"], line["memory_limit"], line["n_partitions"]),
            *(line["n_rounds"], line["n_passes"], f"{line['row_limit']:,}"),
            ", ".join(f"{peak} MiB" for peak in line["peak_mib"]),
            "none" if line["no_worker_died"] else "some",
        ]
        for line in found[-1:]
    ]
    return make_table(header, rows)


def replace_table(text: str, name: str, table: str) -> str:
    """Replace what stands between the marks of a table."""
    mark = re.escape(f"% table: {name}\n")
    place = rf"(?<={mark})\n.*?\n(?=\n% end)"
    text, n = re.subn(place, lambda _: f"\n{table}\n", text, flags=re.S)
    if n != 1:
        raise ValueError(f"The page has the mark of the table {name!r} {n} times, not once.")
    return text


def write_scaling(path: Path, out: Path) -> list[Path]:
    """Replace the tables of ``scaling.md``, beside the folder `out`."""
    page = out.parent / "scaling.md"
    measured = lines.read(path)
    text = page.read_text(encoding="utf-8")
    text = replace_table(text, "overhead", make_overhead_table(measured))
    text = replace_table(text, "equal", make_equal_table(measured))
    text = replace_table(text, "memory", make_memory_table(measured))
    page.write_text(text, encoding="utf-8")
    return [page]


# ---- The command

Writer = Callable[[Path, Path], list[Path]]

# By page: its lines, and what writes it.
PAGES: dict[str, tuple[str, Writer]] = {
    "accuracy": ("accuracy", report_accuracy.write),
    "speed": ("speed", report_speed.write),
    "robustness": ("robustness", write_robustness),
    "probabilities": ("defaults", write_probabilities),
    "scaling": ("dask", write_scaling),
    "boosting": ("boosting", report_boosting.write),
}


def main(arguments: list[str] | None = None) -> None:
    """Write the pages that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.report",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("pages", nargs="*", help=f"of: {', '.join(PAGES)} (default: all)")
    parser.add_argument("--results", type=Path, default=lines.RESULTS, help="folder of lines")
    parser.add_argument("--out", type=Path, default=DOCS / "results", help="folder of pages")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.pages or PAGES:
        if name not in PAGES:
            parser.error(f"no page is called {name!r}; there are {', '.join(PAGES)}")
        kind, write = PAGES[name]
        path = options.results / f"{kind}.jsonl"
        if not lines.read(path):
            command = "boosting" if kind == "boosting" else f"run {kind}"
            raise SystemExit(f"{path} has no lines: run python -m benchmarks.{command} first.")
        for made in write(path, options.out):
            print(made)


if __name__ == "__main__":
    main()
