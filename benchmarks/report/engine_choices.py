"""The page on other values of the constants of the exact engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import lines
from benchmarks.kinds.choices import DEFAULT, KEY
from benchmarks.kinds.engine_choices import (
    CHOICES,
    CURVES,
    MAX_ROWS,
    MAX_VALUES,
    N_ROUNDS,
    N_SPLITS,
    Choice,
)
from benchmarks.lines import Line
from benchmarks.report import summary
from benchmarks.report.summary import TIE, count_wins, format_change, format_ratio, make_table

TOP = f"""# Choices of the exact engine

`python -m benchmarks.run engine_choices` measures what is here, `python -m benchmarks.report`
makes this page; do not edit it.
[The exact engine](exact-engine.md) says what the constants mean.

Each value takes the place of the default alone. Models have {N_ROUNDS} rounds of 31 leaves,
learning rate 0.1, l2 regularisation 1, one thread, no early stopping and the defaults
otherwise. To choose by serves every other one, by name, of the
paper's data sets, of those with numbers to predict and of those with categories; the others are
left to judge by. Of their training rows up to {MAX_ROWS:,} are used (with many columns fewer, so
that there are at most {MAX_VALUES:,} values), and split {N_SPLITS} times into 75 % to train on and
25 % to score. More than two classes become the most frequent one against the rest.
The curves are a made table: 200 columns, rows that differ by six orders of magnitude in height,
two classes that differ by 5 % in shape. It was made so that small rows need a fine grid; it counts
in no other column but time.

Scores (accuracy, R2) are means over tables, in percent. Differences are those to the default, with
their standard errors over tables; a table is a tie below {TIE} points. Time is the geometric mean
over tables of process times of fits relative to the default's, on a machine that did other work
too: a tenth more or less says nothing. Any other bit lets other splits win, so scores differ even
where nothing is better: differences within two standard errors say nothing, either. Sections name
the sources and the number of tables that they rest on.
"""
FIRST_COMMIT = "e058db3"
FIRST_ENGINE = f"""**Sections of commit {FIRST_COMMIT} are of an engine before today's.**
It grew other models from the same settings: now a split must gain more than chance would, a
hyperplane pays for each of its terms, and a node draws at most one column for four of its rows.
These sections say what other values did in that engine, and give hints on this one. The command
measures what is missing with the sources of today."""
HEADER = ("", "accuracy", "difference", "R2", "difference", "wins/ties/losses", "time", CURVES)
Summary = dict[str, tuple[str, float, float]]  # measure, score and seconds of each table


def summarize(found: list[Line], choice: str, value: str) -> Summary:
    """Return means over splits, of tables that have all of them."""
    groups: dict[str, list[Line]] = {}
    for line in found:
        if (line["choice"], line["value"]) == (choice, value):
            groups.setdefault(line["data"], []).append(line)
    return {
        name: (group[0]["measure"], *np.mean([(g["score"], g["cpu_s"]) for g in group], axis=0))
        for name, group in groups.items()
        if len(group) == N_SPLITS
    }


def make_row(label: str, own: Summary, default: Summary) -> list[str]:
    """Return the row of a value."""
    names = [name for name in own if name in default]
    cells, differences = [label], {n: own[n][1] - default[n][1] for n in names if n != CURVES}
    for measure_ in ("accuracy", "R2"):
        chosen = [name for name in differences if own[name][0] == measure_]
        gain = np.array([differences[name] for name in chosen])
        cells.append(f"{np.mean([own[name][1] for name in chosen]):.2f}")
        cells.append("" if own is default else format_change(gain))
    counts = "/".join(map(str, count_wins(np.array(list(differences.values())))))
    ratio = format_ratio(np.log([own[name][2] / default[name][2] for name in names]))
    curves = f"{own[CURVES][1]:.1f}" if CURVES in names else ""
    return [*cells, "" if own is default else counts, ratio, curves]


def make_section(found: list[Line], choice: Choice) -> list[str]:
    """Return the table and the verdict of a choice, from lines of the same sources."""
    newest = summary.choose_newest(found, choice.name)
    default = summarize(newest, *DEFAULT)
    if not default:
        return [f"## {choice.title}", "Not measured."]
    kinds = [measure for name, (measure, *_) in default.items() if name != CURVES]
    commits = ", ".join(sorted({line["commit"] for line in newest}))
    rows = [make_row(f"**{choice.values[0]:g}**", default, default)]
    for value in choice.values[1:]:
        own = summarize(newest, choice.name, f"{value:g}")
        blank = summary.leave_blank(f"{value:g}", HEADER)
        rows.append(make_row(f"{value:g}", own, default) if own else blank)
    counts = f"{kinds.count('accuracy')} tables for accuracy, {kinds.count('R2')} for R2"
    source = f"Sources of commit {commits}; {counts}."
    return [f"## {choice.title}", source, make_table(HEADER, rows), choice.verdict]


def make_page(found: list[Line]) -> str:
    """Return the page: a section for each choice."""
    pieces = [piece for choice in CHOICES for piece in make_section(found, choice)]
    remark = [FIRST_ENGINE] if any(FIRST_COMMIT in piece for piece in pieces) else []
    pieces = [TOP.rstrip(), *remark, *pieces]
    return "\n\n".join(pieces) + "\n"


def write(path: Path, out: Path) -> list[Path]:
    """Write the page, in the folder ``design`` beside `out`."""
    page = make_page(lines.read(path, *KEY, "build"))
    return [summary.write_design(out, "engine-choices", page)]
